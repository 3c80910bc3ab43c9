"""pod.sh as a pod runs it, with tools that say how they were called."""

from __future__ import annotations

import shutil
import subprocess
import time
import typing as t
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import quote_plus

import pytest
from ansible_collections.ipu.fabric.plugins.action.fabric_probe import without_comments
from ansible_collections.ipu.fabric.plugins.module_utils._verify import parsers
from ansible_collections.ipu.fabric.tests.unit.fixtures.paths import ROOT

SCRIPT = without_comments((ROOT / "plugins/plugin_utils/_probe/pod.sh").read_text(encoding="utf-8"))
NEEDED = ("sh", "cat", "grep", "ls", "id", "date", "sleep", "timeout", "touch", "tr", "wc", "bash")  # what an image has

Answers = t.Dict[str, parsers.Answer]


class Image:
    """An image with these tools: each prints its arguments, or does what it is told to."""

    def __init__(self, path: Path) -> None:
        self.path, self.script = path, SCRIPT
        for name in NEEDED:
            (path / name).symlink_to(t.cast(str, shutil.which(name)))

    def add(self, tool: str, body: str = 'echo "$0 $*" | sed "s,.*/,,"') -> None:
        (self.path / tool).unlink(missing_ok=True)
        (self.path / tool).write_text(f"#!/bin/sh\n{body}\n")
        (self.path / tool).chmod(0o755)

    def output(self, *command: str) -> str:
        argv = [str(self.path / "sh"), "-c", self.script, "pod.sh", *command]
        return subprocess.run(
            argv, env={"PATH": str(self.path)}, capture_output=True, text=True, check=False, timeout=60
        ).stdout

    def answers(self, *command: str) -> Answers:
        return parsers.sections(self.output(*command))


@pytest.fixture
def image(tmp_path: Path) -> Image:
    (tmp_path / "bin").mkdir()
    found = Image(tmp_path / "bin")
    (found.path / "sed").symlink_to(t.cast(str, shutil.which("sed")))
    return found


def test_sections_keep_rc_text_and_standard_error_of_each_command(image: Image) -> None:
    image.add("id", "printf 'no newline at the end'")
    assert image.answers("limits")["uid"] == parsers.Answer(0, "no newline at the end")
    image.add("id", "echo gone; echo oops >&2; exit 3")
    assert image.answers("limits")["uid"] == parsers.Answer(3, "gone\noops")
    image.add("id", "true")
    assert image.answers("limits")["uid"] == parsers.Answer(0, "")


def test_limits_of_this_very_process(image: Image) -> None:
    limits = parsers.read_user(image.output("limits"))
    assert isinstance(limits["uid"], int)
    assert limits["memlock"] is not None
    assert set(limits["memlock"]) == {"soft", "hard"}


OTHER = ("uid", "limits", "kernel", "driver", "modules", "servers", "dns")


def test_addresses_routes_and_rules_of_both_families_are_asked(image: Image) -> None:
    image.add("ip")
    found = image.answers("network")
    assert {name: answer.text.splitlines() for name, answer in found.items() if name not in OTHER} == {
        "links": ["ip -j -d address show"],
        "routes": ["ip -j route show default", "", "ip -j -6 route show default"],
        "rules": ["ip -j rule show", "", "ip -j -6 rule show"],
        "tables": ["ip -j route show table all", "", "ip -j -6 route show table all"],
    }


def test_the_kernel_says_what_gpus_need(image: Image, tmp_path: Path) -> None:
    for name in ("nvidia", "gdrdrv", "mlx5_core"):
        (tmp_path / "module" / name).mkdir(parents=True)
    (tmp_path / "version").write_text("NVRM version: NVIDIA UNIX Open Kernel Module  580\nGCC version: 13\n")
    facts = parsers.read_network(image.output("network"))["gpu"]
    assert (bool(facts["kernel"]), facts["driver"], facts["modules"]) == (True, "", [])
    image.script = SCRIPT.replace("/sys/module", f"{tmp_path}/module").replace("/proc/driver/nvidia", str(tmp_path))
    facts = parsers.read_network(image.output("network"))["gpu"]
    assert facts["driver"] == "NVRM version: NVIDIA UNIX Open Kernel Module 580"
    assert facts["modules"] == ["gdrdrv", "nvidia"]


SEARCH = "search verify-x.svc.example.org svc.example.org example.org\nnameserver 10.96.0.10\nnameserver fd00::a\n"
FOUND = "printf 'Server:\\t10.96.0.10\\nAddress:\\t10.96.0.10:53\\n\\nName:\\t%s\\nAddress: 10.96.0.1\\n' \"$1\""
LOST = "printf ';; connection timed out; no servers could be reached\\n\\n'; exit 1"


@pytest.mark.parametrize(
    ("tool", "body", "address", "rc", "seen"),
    [
        ("getent", 'echo "10.96.0.1       STREAM $2"', "10.96.0.1", 0, ""),
        ("getent", 'echo "fd00:96::1      STREAM $2"', "fd00:96::1", 0, ""),
        ("getent", "exit 2", "", 2, "no answer"),
        ("nslookup", FOUND, "10.96.0.1", 0, ""),
        ("nslookup", 'echo "** server can\'t find $1: NXDOMAIN"; exit 1', "", 1, "** server can't find"),
        ("nslookup", LOST, "", 1, ";; connection timed out; no servers could be reached"),
        ("", "", "", 127, "no answer"),
    ],
)
def test_the_name_of_the_api_is_looked_up(
    image: Image, tmp_path: Path, tool: str, body: str, address: str, rc: int, seen: str
) -> None:
    (tmp_path / "resolv.conf").write_text(SEARCH)
    image.script = SCRIPT.replace("/etc/resolv.conf", f"{tmp_path}/resolv.conf")
    if tool:
        image.add(tool, body)
    found = parsers.read_network(image.output("network"))["dns"]
    assert (found["name"], found["servers"]) == ("kubernetes.default.svc.example.org", ["10.96.0.10", "fd00::a"])
    assert (found["address"], found["rc"]) == (address, rc)
    assert found["seen"].startswith(seen)


def test_an_image_without_ip_is_told_apart(image: Image) -> None:
    assert parsers.read_network(image.output("network"))["tool_missing"]


def test_each_controller_is_asked_with_the_tool_that_is_there(image: Image) -> None:
    image.add("nc")
    assert image.answers("network", "10.5.0.20", "8090", "fd00::20", "8091")["vipu fd00::20 8091"] == parsers.Answer(
        0, "nc -v -z -w 3 fd00::20 8091"
    )
    (image.path / "nc").unlink()
    assert parsers.read_network(image.output("network", "127.0.0.1", "1"))["vipu"][0]["rc"] == 1
    (image.path / "bash").unlink()
    facts = parsers.read_network(image.output("network", "10.5.0.20", "8090"))
    assert [(each["host"], each["port"], each["rc"]) for each in facts["vipu"]] == [("10.5.0.20", 8090, 127)]


@pytest.mark.parametrize("tool", ["nc", "bash"])
def test_odd_names_are_no_commands(image: Image, tool: str, tmp_path: Path) -> None:
    if tool == "nc":
        image.add("nc", "exit 1")
    spilled = tmp_path / "spilled"
    for host in (f"$(touch {spilled})", f"; touch {spilled};", f"`touch {spilled}`", f"' touch {spilled} '"):
        image.output("network", host, "80")
        image.output("reach", host, host, "0")
        image.output("host_traffic", "0", host, "80", host)
    assert not spilled.exists()


def test_the_tools_of_the_image_are_listed(image: Image) -> None:
    image.add("rping")
    image.add("ib_write_bw")
    facts = parsers.read_rdma(image.output("rdma", "rping", "ib_write_bw", "ib_read_lat"))
    assert facts["tools"] == ["rping", "ib_write_bw"]


def test_rdma_is_read_from_sysfs(image: Image, tmp_path: Path) -> None:
    port = tmp_path / "class/infiniband/mlx5_0/ports/1"
    for name, text in {
        "state": "4: ACTIVE", "link_layer": "Ethernet", "gids/0": ":".join(["0000"] * 8),
        "gids/3": parsers.gid_of("10.5.0.130"), "gid_attrs/types/3": "RoCE v2", "gid_attrs/ndevs/3": "net1",
    }.items():  # fmt: skip
        (port / name).parent.mkdir(parents=True, exist_ok=True)
        (port / name).write_text(text + "\n")
    for name in ("infiniband_verbs/uverbs0", "infiniband_mad/umad0", "misc/rdma_cm", "misc/other"):
        (tmp_path / "class" / name).mkdir(parents=True)
    image.add("grep", f'exec {shutil.which("grep")} "$@"')
    script = SCRIPT.replace("SYSFS=/sys/class", f"SYSFS={tmp_path}/class")
    argv = [str(image.path / "sh"), "-c", script, "pod.sh", "rdma"]
    text = subprocess.run(argv, env={"PATH": str(image.path)}, capture_output=True, text=True, check=True).stdout
    facts = parsers.read_rdma(text.replace(str(tmp_path), "/sys"))
    assert facts["ports"] == {"mlx5_0/1": {"state": "ACTIVE", "link_layer": "Ethernet"}}
    assert facts["gids"] == [
        {"device": "mlx5_0", "port": 1, "index": 3, "gid": parsers.gid_of("10.5.0.130"), "type": "RoCE v2",
         "netdev": "net1"}
    ]  # fmt: skip
    expected = {"infiniband/mlx5_0", "infiniband_verbs/uverbs0", "infiniband_mad/umad0", "misc/rdma_cm"}
    assert set(facts["classes"]) == expected


def test_a_full_size_packet_must_not_be_fragmented(image: Image) -> None:
    image.add("ping")
    assert {name: answer.text for name, answer in image.answers("reach", "10.5.0.138", "net1", "8972").items()} == {
        "full": "ping -c 2 -i 0.2 -w 3 -I net1 -M do -s 8972 10.5.0.138",
        "small": "ping -c 2 -i 0.2 -w 3 -I net1 10.5.0.138",
    }


def test_each_gateway_is_asked_on_its_own_interface(image: Image) -> None:
    image.add("ping")
    image.add("ip")
    found = image.answers("gateways", "10.5.0.1", "net1", "fd00::1", "net2")
    assert {name: answer.text for name, answer in found.items()} == {
        "gateway 10.5.0.1 net1": "ping -c 2 -i 0.2 -w 3 -I net1 10.5.0.1",
        "neighbour 10.5.0.1 net1": "ip neigh show to 10.5.0.1 dev net1",
        "gateway fd00::1 net2": "ping -c 2 -i 0.2 -w 3 -I net2 fd00::1",
        "neighbour fd00::1 net2": "ip neigh show to fd00::1 dev net2",
    }


def test_an_unknown_mtu_leaves_the_full_size_out(image: Image) -> None:
    image.add("ping")
    assert set(image.answers("reach", "10.5.0.138", "net1", "0")) == {"small"}


@pytest.mark.parametrize("family", [4, 6])
@pytest.mark.parametrize("device", ["", "mlx5_3"])
@pytest.mark.parametrize(
    ("check", "served", "asked"),
    [
        ("rping", "rping -s -a {server} -p 18515 -C 10", "rping -c -a {server} -p 18515 -I {client} -C 10 -v -V"),
        (
            "write_bandwidth",
            "ib_write_bw -R -F -p 18515 -D 4 --report_gbits{device}{six}",
            "ib_write_bw -R -F -p 18515 -D 4 --report_gbits{device}{six} {server}",
        ),
        ("read_latency", "ib_read_lat -R -F -p 18515{device}{six}", "ib_read_lat -R -F -p 18515{device}{six} {server}"),
    ],
)
def test_traffic_needs_no_gid_index_and_knows_ipv6(
    image: Image, check: str, served: str, asked: str, device: str, family: int
) -> None:
    for tool in ("rping", "ib_write_bw", "ib_read_lat"):
        image.add(tool)
    server, client = ("10.5.0.138", "10.5.0.130") if family == 4 else ("fd00::138", "fd00::130")
    words = {"server": server, "client": client, "six": " --ipv6-addr" if family == 6 else ""}
    words["device"] = f" -d {device}" if device else ""
    about = (check, server, client, "18515", "5", device)
    assert image.answers("serve", *about)["server"] == parsers.Answer(0, served.format(**words))
    assert image.answers("ask", *about)["client"] == parsers.Answer(0, asked.format(**words))


@pytest.mark.parametrize("way", [[], ["--use_cuda_dmabuf"]])
def test_memory_of_a_gpu_is_an_option_of_its_own_end(image: Image, way: t.List[str]) -> None:
    image.add("ib_write_bw")
    gpu = ["--use_cuda_bus_id=0000:81:00.0", *way]
    about = ("gpu_bandwidth", "10.5.0.138", "10.5.0.130", "18515", "5", "mlx5_3", *gpu)
    expected = " ".join(["ib_write_bw -R -F -p 18515 -D 4 --report_gbits", *gpu, "-d mlx5_3"])
    assert image.answers("serve", *about)["server"] == parsers.Answer(0, expected)
    assert image.answers("ask", *about)["client"] == parsers.Answer(0, f"{expected} 10.5.0.138")


def test_counters_are_read_before_and_after_a_test(image: Image, tmp_path: Path) -> None:
    port = tmp_path / "class/infiniband/mlx5_0/ports/1"
    interface = tmp_path / "class/net/net1/statistics"
    for folder, name in ((port / "counters", "port_xmit_data"), (port / "hw_counters", "rx_write_requests")):
        folder.mkdir(parents=True)
        (folder / name).write_text("100\n")
    interface.mkdir(parents=True)
    (interface / "tx_bytes").write_text("7\n")
    grow = f"echo 1100 >{port}/counters/port_xmit_data; echo 103 >{port}/hw_counters/rx_write_requests"
    image.add("rping", f"{grow}; echo 57 >{interface}/tx_bytes; touch {tmp_path}/moved")
    image.add("grep", f'exec {shutil.which("grep")} "$@"')
    # As iproute2's program says it: a function of the script has the same name.
    says = 'echo "[{\\"ifname\\":\\"rxe0\\",\\"port\\":1,\\"sent_pkts\\":${n:-0}}]"'
    image.add("rdma", f"test $1 = -j && test -e {tmp_path}/moved && n=1; {says}")
    script = SCRIPT.replace("SYSFS=/sys/class", f"SYSFS={tmp_path}/class")
    about = ["rping", "10.5.0.138", "10.5.0.130", "18515", "5", ""]
    argv = [str(image.path / "sh"), "-c", script, "pod.sh", "serve", *about]
    text = subprocess.run(argv, env={"PATH": str(image.path)}, capture_output=True, text=True, check=True).stdout
    assert parsers.read_moved(parsers.sections(text)) == {
        "rdma": {"mlx5_0": {"bytes": 4000, "requests": 3}, "rxe0": {"packets": 1}},
        "interfaces": {"net1": 50},
    }


def test_counters_that_cannot_be_read_are_none(image: Image) -> None:
    image.add("rping")
    image.add("grep", "exit 1")
    answers = image.answers("serve", "rping", "10.5.0.138", "10.5.0.130", "18515", "5", "")
    assert answers["server"].rc == 0
    assert parsers.read_moved(answers) == {"rdma": {}, "interfaces": {}}


@pytest.mark.parametrize(
    ("shown", "waits"),
    [
        ("link soft0/- cm-idn 0 state LISTEN ps TCP pid 19 comm ib_write_bw src-addr 0.0.0.0:18515 ", False),
        ("link soft0/- cm-idn 0 state LISTEN ps TCP pid 19 comm ib_write_bw src-addr 0.0.0.0:18516 ", True),
        ("", True),
    ],
)
def test_a_client_starts_when_the_server_listens(image: Image, tmp_path: Path, shown: str, waits: bool) -> None:
    image.add("grep", f'exec {shutil.which("grep")} "$@"')
    image.add("rdma", f'test "$*" = "resource show cm_id" && echo "{shown}"')
    image.add("sleep", f'echo >>{tmp_path}/slept; exec {shutil.which("sleep")} "$@"')
    image.output("listening", "18515", "2")
    assert (tmp_path / "slept").exists() == waits


def test_a_test_that_hangs_is_ended(image: Image) -> None:
    image.add("rping", "exec sleep 30")
    assert image.answers("serve", "rping", "10.5.0.138", "10.5.0.130", "18515", "0.2", "")["server"].rc == 124


def test_a_server_is_stopped_by_its_port(image: Image, tmp_path: Path) -> None:
    image.add("ib_write_bw", f"echo $$ >>{tmp_path}/up; sleep 30")
    with ThreadPoolExecutor(2) as pool:
        about = ("write_bandwidth", "10.5.0.138", "10.5.0.130")
        other = pool.submit(image.answers, "serve", *about, "18516", "3", "")
        server = pool.submit(image.answers, "serve", *about, "18515", "30", "")
        while not (tmp_path / "up").exists() or (tmp_path / "up").read_text().count("\n") < 2:
            time.sleep(0.05)
        image.output("stop", "18515")
        assert server.result()["server"].rc == 143  # ended by a signal
        assert other.result()["server"].rc == 124  # by its own time


def test_host_traffic_is_told_its_partition(image: Image) -> None:
    echo = 'echo "$* $IPUOF_VIPU_API_HOST $IPUOF_VIPU_API_PORT $IPUOF_VIPU_API_PARTITION_ID"'
    image.add("gc-hosttraffictest", echo)
    found = image.answers("host_traffic", "2", "10.5.0.20", "8090", "a partition")
    assert found == {"host_traffic": parsers.Answer(0, "-d 2 -j 10.5.0.20 8090 a partition")}


def test_the_script_fits_the_url_of_an_exec() -> None:
    assert len(quote_plus(SCRIPT)) < 7000  # proxies allow 8 KiB for the first line of a request
