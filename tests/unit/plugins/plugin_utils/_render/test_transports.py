"""The comparison of transports, from logs of benchmarks."""

import subprocess
import sys

import pytest
from ansible_collections.ipu.fabric.plugins.module_utils._common.result import FabricError
from ansible_collections.ipu.fabric.plugins.plugin_utils._render import transports
from ansible_collections.ipu.fabric.plugins.plugin_utils._render.transports import Key
from ansible_collections.ipu.fabric.tests.unit.fixtures.paths import ROOT

# As OSU's benchmarks 5.8 and 7.4 print them.
LATENCY = """\
Warning: Permanently added '[compare-worker-0]:2222' (ECDSA) to the list of known hosts.

# OSU MPI Latency Test v5.8
# Size          Latency (us)
0                       {0:.2f}
1                       {1:.2f}
1024                    {2:.2f}
"""
BANDWIDTH = """\
# OSU MPI Bandwidth Test v7.4
# Datatype: MPI_CHAR.
# Size      Bandwidth (MB/s)
1                       {0:.2f}
1048576             {1:.2f}
"""
ROCE = LATENCY.format(1.5, 2, 4) + BANDWIDTH.format(5, 11000)
TCP = LATENCY.format(20, 25, 30) + BANDWIDTH.format(1, 1100)


def grew(*lines):
    return "".join(f"@@ rank 0 on compare-worker-0: {line}\n" for line in lines)


HARD = grew("mlx5_0 1 port_xmit_data 300000", "mlx5_0 1 port_rcv_data 300000", "net1 - tx_bytes 900")
SOCKETS = grew("net1 - tx_bytes 2000000", "net1 - rx_bytes 2000000", "eth0 - tx_bytes 900")


def compared(roce=ROCE + HARD, tcp=TCP + SOCKETS, **more):
    return transports.transport_comparison({"logs": {"roce": roce, "tcp": tcp}, **more})


def test_tables():
    latency, bandwidth = compared()["tables"]
    assert (latency["title"], latency["unit"], latency["less_is_better"]) == ("MPI Latency", "us", True)
    assert [tuple(row.values()) for row in latency["rows"]] == [
        (0, 1.5, 20, 20 / 1.5),
        (1, 2, 25, 12.5),
        (1024, 4, 30, 7.5),
    ]
    assert (bandwidth["title"], bandwidth["unit"], bandwidth["less_is_better"]) == ("MPI Bandwidth", "MB/s", False)
    assert [tuple(row.values()) for row in bandwidth["rows"]] == [(1, 5, 1, 5), (1048576, 11000, 1100, 10)]


def test_summary_has_the_smallest_message_and_the_largest():
    assert compared()["summary"] == [
        "MPI Latency at 0 B: RoCE 1.50 us, TCP 20.00 us, TCP / RoCE is 13.33.",
        "MPI Bandwidth at 1 MiB: RoCE 11,000.00 MB/s, TCP 1,100.00 MB/s, RoCE / TCP is 10.00.",
    ]


def test_a_size_that_one_of_them_lacks():
    found = compared(tcp=LATENCY.format(20, 25, 30).rsplit("1024", 1)[0] + SOCKETS)
    assert [row["ratio"] for row in found["tables"][0]["rows"]] == [20 / 1.5, 12.5, None]
    assert found["summary"][1] == "MPI Bandwidth: no size was measured over both."
    assert "| 1 MiB | 11,000.00 |  |  |" in found["markdown"]


@pytest.mark.parametrize(
    ("text", "figures"),
    [
        (
            "# OSU MPI Allreduce Latency Test v7.4\n# Size       Avg Latency(us)   Min Latency(us)\n4   3.50   3.10\n",
            {Key("MPI Allreduce Latency", "Latency", "us"): {4: 3.5}},
        ),
        ("# Size          Latency (us)\n8 7.25\n", {Key("Latency", "Latency", "us"): {8: 7.25}}),
        # The same test again is what counts; words are no row.
        (
            "# Size  Latency (us)\n8 7.25\n16 9\n# Size  Latency (us)\n8 7.50\n8 packets\n",
            {Key("Latency", "Latency", "us"): {8: 7.5}},
        ),
        ("# OSU MPI Latency Test v5.8\n# Size          Latency (us)\n", {}),
        ("1 2.5\nmpirun noticed that process rank 1 exited on signal 9\n", {}),
    ],
)
def test_what_programs_print(text, figures):
    assert transports.read_log(text).figures == figures


@pytest.mark.parametrize(
    ("log", "said"),
    [("", "no output"), ("ssh: no route to host\n", "ssh: no route"), (["", "no RoCE v2 GID\n"], "no RoCE v2 GID")],
)
def test_a_transport_that_was_not_measured(log, said):
    with pytest.raises(FabricError, match=rf"logs\.roce.*{said}.*Next: "):
        compared(roce=log)


def test_several_jobs_are_added_up():
    jobs = [LATENCY.format(1, 2, 4) + HARD, BANDWIDTH.format(5, 11000) + HARD.replace("worker", "bandwidth-worker")]
    found = compared(roce=jobs)
    assert [table["title"] for table in found["tables"]] == ["MPI Latency", "MPI Bandwidth"]
    moved = {(each["pod"], each["device"]): each["amount"] for each in found["moved"] if each["transport"] == "roce"}
    assert moved["compare-worker-0", "mlx5_0"] == moved["compare-bandwidth-worker-0", "mlx5_0"] == 2_400_000


def test_ranks_of_a_pod_see_the_same_counters():
    found = compared(roce=ROCE + HARD + HARD.replace("rank 0", "rank 1"))
    assert [each["amount"] for each in found["moved"] if each["device"] == "mlx5_0"] == [2_400_000]


SOFT = grew("rxp1 1 sent_pkts 5000", "net1 - tx_bytes 5000000")
QUIET = grew("net1 - tx_bytes 900", "mlx5_0 1 lifespan 7")


@pytest.mark.parametrize(
    ("roce", "tcp", "states"),
    [
        (HARD, SOCKETS, ("passed", "passed")),
        # Software RDMA passes the interface as well.
        (SOFT, SOCKETS, ("passed", "passed")),
        # It fell back to TCP, on the fabric or not.
        (SOCKETS, SOCKETS, ("failed", "passed")),
        (grew("mlx5_0 1 port_xmit_data 7", "eth0 - tx_bytes 2000000"), SOCKETS, ("failed", "passed")),
        (HARD, grew("eth0 - tx_bytes 2000000"), ("passed", "failed")),
        (HARD, HARD, ("passed", "failed")),
        # Another pod of the node uses the device meanwhile.
        (HARD, SOCKETS + grew("mlx5_0 1 port_xmit_data 3000000"), ("passed", "passed")),
        # In the pod nothing counts what hardware does.
        (QUIET, SOCKETS, ("unproven", "passed")),
        ("", "", ("unproven", "unproven")),
    ],
)
def test_which_way_the_data_took(roce, tcp, states):
    found = compared(ROCE + roce, TCP + tcp, interfaces=["net1"])
    assert tuple(way["state"] for way in found["ways"]) == states
    assert len(found["problems"]) == states.count("failed")
    for problem in found["problems"]:
        assert problem in found["markdown"].replace("| failed | ", "").replace("| RoCE ", "RoCE: ").replace(
            "| TCP ", "TCP: "
        )


def test_software_says_nothing_about_speed():
    assert compared()["notes"] == []
    found = compared(roce=ROCE + SOFT)
    assert found["notes"] == ["Figures of software RDMA say nothing about speed."]
    for text in (found["markdown"], found["html"]):
        assert found["notes"][0] in text


def test_report_in_markdown():
    text = compared(title="Rack 7", about={"network": "rdma-net"})["markdown"]
    assert text.startswith("# Rack 7\n\n- network: rdma-net\n\n- MPI Latency at 0 B")
    table = """\
## MPI Latency

| Size | RoCE (us) | TCP (us) | TCP / RoCE |
| ---: | ---: | ---: | ---: |
| 0 B | 1.50 | 20.00 | 13.33 |
| 1 B | 2.00 | 25.00 | 12.50 |
| 1 KiB | 4.00 | 30.00 | 7.50 |
"""
    assert table in text
    assert "| RoCE | passed | mlx5_0 of compare-worker-0 moved 2.4 MB of at least 1.05 MB |" in text
    assert "| RoCE | compare-worker-0 | mlx5_0 port 1 | 2.4 MB |" in text


def test_report_in_html():
    text = compared(about={"image": "<b>"})["html"]
    assert "<td>1,100.00</td>" in text
    assert "&lt;b&gt;" in text
    assert "<b>" not in text


MPI4PY = """
class MPI:
    class COMM_WORLD:
        rank, size = 0, {size}
        Barrier = Send = Recv = Isend = Irecv = staticmethod(lambda *words: None)
    class Request:
        Waitall = staticmethod(list)
    time = 0.0
    @classmethod
    def Wtime(cls):
        cls.time += 0.001
        return cls.time
"""


def pingpong(tmp_path, *words, size=2):
    (tmp_path / "mpi4py.py").write_text(MPI4PY.format(size=size))
    command = [sys.executable, str(ROOT / "docs/examples/files/pingpong.py"), *words]
    return subprocess.run(command, env={"PYTHONPATH": str(tmp_path)}, capture_output=True, text=True, check=False)


def test_the_program_of_the_example_prints_what_is_read(tmp_path):
    done = pingpong(tmp_path, "65536", "16", "20")
    assert done.returncode == 0, done.stderr
    figures = transports.read_log(done.stdout).figures
    assert [key.title for key in figures] == ["MPI Latency", "MPI Bandwidth"]
    assert {tuple(each) for each in figures.values()} == {(1, 16, 256, 4096, 65536)}
    # A tenth of the messages in the same time.
    latency = figures["MPI Latency", "Latency", "us"]
    assert (latency[1], latency[65536]) == (25.0, 250.0)


def test_the_program_of_the_example_needs_two_ranks(tmp_path):
    done = pingpong(tmp_path, size=1)
    assert done.returncode == 1
    assert "needs two ranks" in done.stderr
