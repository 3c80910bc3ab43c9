"""The example that compares transports: four jobs, one after the other, and a report of their logs."""

from __future__ import annotations

import typing as t

import pytest
from ansible_collections.ipu.fabric.tests.unit.fixtures.paths import ROOT
from ansible_collections.ipu.fabric.tests.unit.fixtures.play import Answers, Data, Outcome, play


class Jobs(Answers):
    """Logs as OSU's benchmarks and the script of the ranks print them."""

    def kube_wait(self, args: Data) -> Data:
        name = args["job"]["name"]
        roce, latency = name.endswith("-roce"), name.startswith("latency")
        figure = {(True, True): 2, (True, False): 11000, (False, True): 25, (False, False): 1100}[roce, latency]
        title, column = ("Latency", "Latency (us)") if latency else ("Bandwidth", "Bandwidth (MB/s)")
        rows = f"# OSU MPI {title} Test v7.4\n# Size {column}\n4096 {figure}.00\n"
        device = "mlx5_0 1 port_xmit_data" if roce and not self.state.get("fallback") else "net1 - tx_bytes"
        grown = f"@@ rank 0 on {name}-worker-0: {device} 900000\n"
        return {"logs": {f"{name}-launcher/launcher": rows + grown}, "status": {}}


def compare(tmp_path: t.Any, *options: str, **state: t.Any) -> Outcome:
    example = [{"import_playbook": str(ROOT / "docs/examples/mpi-compare.yml")}]
    given = {
        "example_programs": {"latency": ["osu_latency"], "bandwidth": ["osu_bw"]},
        "example_artifacts": str(tmp_path / "artifacts"),
    }
    return play(tmp_path, example, Jobs, {"all": ["localhost"]}, *options, state=state, **given)


@pytest.fixture(scope="module")
def compared(tmp_path_factory: t.Any) -> t.Tuple[Outcome, t.Any]:
    folder = tmp_path_factory.mktemp("compare")
    return compare(folder), folder / "artifacts"


def test_each_program_runs_over_each_transport(compared: t.Any) -> None:
    outcome, _artifacts = compared
    assert outcome.code == 0, outcome.text
    jobs = [call.args["objects"][0] for call in outcome.of("kube_apply")]
    names = [job["metadata"]["name"] for job in jobs]
    assert names == ["latency-roce", "bandwidth-roce", "latency-tcp", "bandwidth-tcp"]
    launchers = [job["spec"]["mpiReplicaSpecs"]["Launcher"]["template"]["spec"] for job in jobs]
    starts = [launcher["containers"][0]["command"] for launcher in launchers]
    assert [start[-1] for start in starts] == ["osu_latency", "osu_bw"] * 2
    assert all(",show,count," in start for start in starts)
    # One after the other: they would share the network.
    assert [call.module for call in outcome.of("kube_apply", "kube_wait")] == ["kube_apply", "kube_wait"] * 4


def test_the_report_has_both_tables(compared: t.Any) -> None:
    outcome, artifacts = compared
    text = (artifacts / "transports.md").read_text()
    assert "| 4 KiB | 2.00 | 25.00 | 12.50 |" in text
    assert "| 4 KiB | 11,000.00 | 1,100.00 | 10.00 |" in text
    assert "- Programs: latency, bandwidth" in text
    assert "<td>12.50</td>" in (artifacts / "transports.html").read_text()
    assert "RoCE / TCP is 10.00" in outcome.text
    assert (artifacts / "transports-tcp.log").read_text().count("# OSU MPI") == 2


def test_roce_that_went_over_tcp_is_an_error_after_the_report(tmp_path: t.Any) -> None:
    outcome = compare(tmp_path, fallback=True)
    assert outcome.code != 0
    assert "RoCE: net1 of bandwidth-roce-worker-0 moved 900 kB of at least 8.19 kB" in outcome.text
    assert (tmp_path / "artifacts/transports.md").exists()


def test_check_mode_needs_no_logs(tmp_path: t.Any) -> None:
    outcome = compare(tmp_path, "--check")
    assert outcome.code == 0, outcome.text
    assert not (tmp_path / "artifacts").exists()
