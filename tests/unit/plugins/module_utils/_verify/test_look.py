"""The script that looks into pods: in a tree that looks like one, in a real network namespace, and without programs."""

from __future__ import annotations

import os
import shutil
import subprocess
import typing as t
from pathlib import Path

import pytest
from ansible_collections.ipu.fabric.plugins.module_utils._verify import look
from ansible_collections.ipu.fabric.plugins.module_utils._verify.look import Inside, Route
from ansible_collections.ipu.fabric.plugins.module_utils._verify.parsers import gid_of

ALL = (*look.FACTS, "counters", "environment")
ZERO = "0000:0000:0000:0000:0000:0000:0000:0000"
PORT = "sys/class/infiniband/mlx5_0/ports/1"
FILES = {
    f"{PORT}/state": "4: ACTIVE\n",
    f"{PORT}/link_layer": "Ethernet\n",
    f"{PORT}/gids/0": "fe80:0000:0000:0000:0000:0000:0000:0001\n",
    f"{PORT}/gid_attrs/types/0": "IB/RoCE v1\n",
    f"{PORT}/gids/1": f"{ZERO}\n",
    f"{PORT}/gids/2": f"{gid_of('10.5.0.131')}\n",
    f"{PORT}/gid_attrs/types/2": "RoCE v2\n",
    f"{PORT}/gid_attrs/ndevs/2": "net1\n",
    f"{PORT}/counters/port_xmit_data": "250\n",
    f"{PORT}/hw_counters/rx_write_requests": "7\n",
    "sys/class/infiniband_verbs/uverbs0/ibdev": "mlx5_0\n",
    "sys/class/net/net1/mtu": "9000\n",
    "sys/class/net/net1/statistics/tx_bytes": "5\n",
    "dev/infiniband/rdma_cm": "",
    "dev/infiniband/uverbs0": "",
    "proc/self/limits": "Limit  Soft Limit  Hard Limit  Units\nMax locked memory  65536  unlimited  bytes\n",
    "proc/self/status": "Name:\tsh\nUid:\t1000\t1001\t1000\t1000\nCapEff:\t0000000000004000\n",
    "proc/1/environ": "PATH=/bin\0NCCL_IB_HCA==mlx5_0:1\0SECRET=x\0",
    "proc/7/environ": "UCX_TLS=rc,sm\0OMPI_MCA_pml=ucx\0OMPI_MCA_orte_hnp_uri=x\0",
    "proc/net/route": "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT\n"
    "eth0\t00000000\t0101F40A\t0003\t0\t0\t5\t00000000\t0\t0\t0\n"
    "net1\t0000050A\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0\n"
    "*\t0000060A\t00000000\t0201\t0\t0\t0\t00FFFFFF\t0\t0\t0\n",
    "proc/net/fib_trie": "Main:\n  +-- 0.0.0.0/0 3 0 5\n     |-- 10.5.0.0\n        /24 link UNICAST\n"
    "     |-- 10.5.0.131\n        /32 host LOCAL\n     |-- 127.0.0.1\n        /32 host LOCAL\n",
    "proc/net/if_inet6": "fe800000000000000000000000000001 02 40 20 80 net1\n"
    "fd000005000000000000000000000083 02 40 00 80 net1\n",
    "proc/net/ipv6_route": "fd000005000000000000000000000000 40 00000000000000000000000000000000 00"
    " 00000000000000000000000000000000 00000100 00000001 00000000 00000001 net1\n",
}
SHELLS = [shell for shell in ("dash", "bash") if shutil.which(shell)]


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path


def run(root: t.Union[str, Path], parts: t.Sequence[str], shell: str = "sh", path: str = os.environ["PATH"]) -> Inside:
    argv = [shutil.which(shell) or shell, *look.argv(parts)[1:]]
    done = subprocess.run(argv, env={"ROOT": str(root), "PATH": path}, capture_output=True, text=True, check=True)
    assert done.stderr == ""
    return look.read(done.stdout)


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize("tools", [True, False])
def test_a_pod(tree: Path, shell: str, tools: bool) -> None:
    found = run(tree, ALL, shell, os.environ["PATH"] if tools else "/none")
    variables = {"NCCL_IB_HCA": "=mlx5_0:1", "UCX_TLS": "rc,sm", "OMPI_MCA_pml": "ucx"}
    assert found == Inside(
        unread=[] if tools else [look.TITLES["environment"]],
        uid=1001,
        memlock="65536",
        ipc_lock=True,
        files=["rdma_cm", "uverbs0"],
        verbs={"uverbs0": "mlx5_0"},
        ports={"mlx5_0/1": {"state": "ACTIVE", "link_layer": "Ethernet"}},
        gids=[
            {"device": "mlx5_0", "port": 1, "index": index, "gid": gid, "type": kind, "netdev": netdev}
            for index, gid, kind, netdev in (
                (0, "fe80:0000:0000:0000:0000:0000:0000:0001", "IB/RoCE v1", ""),
                (2, gid_of("10.5.0.131"), "RoCE v2", "net1"),
            )
        ],
        mtus={"net1": 9000},
        addresses=frozenset({"10.5.0.131", "fd00:5::83"}),
        routes=[
            Route("0.0.0.0/0", "eth0", "10.244.1.1", 5),
            Route("10.5.0.0/24", "net1", ""),
            Route("fd00:5::/64", "net1", "", 256),
        ],
        counters={
            ("mlx5_0", "1", "port_xmit_data"): 250,
            ("mlx5_0", "1", "rx_write_requests"): 7,
            ("net1", "", "tx_bytes"): 5,
        },
        environment=variables if tools else {},
    )


def test_no_secret_of_the_environment_leaves_the_pod(tree: Path) -> None:
    argv = look.argv(["environment"])
    done = subprocess.run(argv, env={**os.environ, "ROOT": str(tree)}, capture_output=True, text=True, check=True)
    assert "SECRET" not in done.stdout
    assert "hnp_uri" not in done.stdout


def test_what_is_not_there_is_unread(tmp_path: Path) -> None:
    found = run(tmp_path, look.FACTS)
    assert found.error == ""
    assert set(found.unread) == {text for name, text in look.TITLES.items() if name != "environment"}
    assert (found.held, found.addresses, found.memlock) == (set(), frozenset(), "")


@pytest.mark.parametrize(
    ("text", "error", "said"),
    [
        ("", "exec failed: 403 Forbidden", "exec failed: 403 Forbidden"),
        ('exec: "sh": executable file not found in $PATH', "", 'exec: "sh": executable file not found in $PATH'),
        ("", "", "no output"),
    ],
)
def test_a_container_without_a_shell(text: str, error: str, said: str) -> None:
    assert look.read(text, error) == Inside(error=said)


@pytest.mark.skipif(os.geteuid() != 0, reason="network namespaces need root")
def test_a_real_network_namespace() -> None:
    name = f"look{os.getpid()}"
    commands = (
        f"netns add {name}",
        f"-n {name} link set lo up",
        f"-n {name} link add net1 mtu 4200 type veth peer name peer",
        f"-n {name} link set net1 up",
        f"-n {name} link set peer up",
        f"-n {name} address add 10.5.0.131/24 dev net1",
        f"-n {name} address add fd00:5::83/64 dev net1 nodad",
        f"-n {name} route add default via 10.5.0.1",
    )
    try:
        for command in commands:
            subprocess.run(["ip", *command.split()], check=True)
        argv = ["ip", "netns", "exec", name, *look.argv(look.FACTS)]
        found = look.read(subprocess.run(argv, capture_output=True, text=True, check=True).stdout)
    finally:
        subprocess.run(["ip", "netns", "delete", name], check=False)
    assert found.mtus["net1"] == 4200
    assert found.addresses == {"10.5.0.131", "fd00:5::83"}
    assert found.routes == [
        Route("0.0.0.0/0", "net1", "10.5.0.1"),
        Route("10.5.0.0/24", "net1", ""),
        Route("fd00:5::/64", "net1", "", 256),
    ]


def test_shellcheck() -> None:
    program = shutil.which("shellcheck")
    if program is None:
        pytest.skip("no shellcheck here")
    done = subprocess.run([program, "-s", "sh", "-"], input=look.SCRIPT, capture_output=True, text=True, check=False)
    assert done.stdout == ""
