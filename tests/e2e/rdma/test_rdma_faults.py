"""Faults of tests/faults.md on a cluster with RDMA: plan or proof names them, and passes when they are gone.

Several faults a run, each on a node of its own: a proof takes minutes here.
"""

from __future__ import annotations

import contextlib
import json
import shlex
import subprocess
import time
from collections.abc import Iterator

import pytest
from ansible_collections.ipu.fabric.tests.e2e.bed import KUBECTL
from ansible_collections.ipu.fabric.tests.e2e.rdma.conftest import WORKERS, Fabric

fault = pytest.mark.fault

PLUGIN = "-n nvidia-network-operator {} pod -l app=rdma-shared-dp --field-selector spec.nodeName={}"
INSIDE = "ip netns exec soft-roce"  # where the NIC's RDMA device is


@contextlib.contextmanager
def changed(fabric: Fabric, host: str, fault: str, cure: str) -> Iterator[None]:
    """A fault for a while, and its end whatever happens."""
    fabric.bed.on(host, fault)
    try:
        yield
    finally:
        fabric.bed.on(host, cure)


def restart_plugin(fabric: Fabric, node: str) -> None:
    fabric.bed.on("cp1", f"{KUBECTL} {PLUGIN.format('delete', node)}")


def heal_resource(fabric: Fabric) -> None:
    """The device plugin looks at the devices every five minutes: it may have looked while they were away."""
    for node in WORKERS:
        restart_plugin(fabric, node)
    fabric.bed.on("cp1", f"{KUBECTL} -n nvidia-network-operator rollout status ds/rdma-shared-dp-ds --timeout 300s")
    for node in WORKERS:
        wait_for_resource(fabric, node, there=True)


def set_plugin_config(config: str) -> str:
    patch = json.dumps({"spec": {"rdmaSharedDevicePlugin": {"config": config}}})
    return f"{KUBECTL} patch nicclusterpolicy nic-cluster-policy --type merge --patch {shlex.quote(patch)}"


def allocatable(fabric: Fabric, node: str) -> int:
    found = fabric.bed.kubectl(f"get node {node}")["status"]["allocatable"]
    return max((int(count) for name, count in found.items() if name.startswith("rdma/")), default=0)


def boot_id(fabric: Fabric, node: str) -> str:
    return fabric.bed.kubectl(f"get node {node}")["status"]["nodeInfo"]["bootID"]


def not_started_since(fabric: Fabric, node: str, moment: str) -> list[str]:
    """Pods of a node that have not been Ready since then. Right after a boot the API shows them as they were before."""
    pods = fabric.bed.kubectl(f"get pods -A --field-selector spec.nodeName={node},status.phase!=Succeeded")["items"]
    found = []
    for pod in pods:
        states = pod["status"].get("containerStatuses", [])
        started = [state["ready"] and state["state"]["running"]["startedAt"] > moment for state in states]
        if not (started and all(started)):
            found.append(pod["metadata"]["name"])
    return found


def wait_for_reboot(fabric: Fabric, node: str, before: str, moment: str) -> None:
    """Until the kubelet of the new boot has reported the node, and its pods are back."""
    deadline = time.monotonic() + 600
    while boot_id(fabric, node) == before:
        assert time.monotonic() < deadline, f"{node}: its kubelet has not reported since the reboot"
        time.sleep(5)
    fabric.bed.on("cp1", f"{KUBECTL} wait --for condition=Ready --timeout 300s node {node}")
    deadline = time.monotonic() + 600
    while missing := not_started_since(fabric, node, moment):
        assert time.monotonic() < deadline, f"{node}: {missing}"
        time.sleep(5)


def wait_for_runtime(fabric: Fabric, node: str) -> None:
    """A kubelet whose runtime was away for 30 seconds says so with its next status, which is due every 10 seconds."""
    time.sleep(20)
    fabric.bed.on("cp1", f"{KUBECTL} wait --for condition=Ready --timeout 300s node {node}")


def wait_for_resource(fabric: Fabric, node: str, there: bool) -> None:
    deadline = time.monotonic() + 300
    while (allocatable(fabric, node) > 0) != there:
        assert time.monotonic() < deadline, f"{node}: allocatable is {allocatable(fabric, node)}"
        time.sleep(5)


@fault(
    "the RDMA link is down",
    "the RDMA NIC has no RDMA device",
    "ib_umad or rdma_ucm is not loaded, the resource counts 0",
)
def test_plan_names_what_hosts_lack(proved: Fabric) -> None:
    one, other = WORKERS
    with (
        changed(proved, one, "ip link set ens8 down", "ip link set ens8 up && networkctl reconfigure ens8"),
        changed(proved, other, "rdma link delete rxe0", f"{INSIDE} rdma link add rxe0 type rxe netdev ens8"),
        changed(proved, one, "modprobe --remove ib_umad", "modprobe ib_umad"),
    ):
        assert proved.bed.play("plan").code != 0
        found = {(finding["check"], host) for finding in proved.bed.plan()["findings"] for host in finding["hosts"]}
        assert {("fabric-nic", one), ("fabric-nic", other), ("rdma-modules", one)} <= found
    heal_resource(proved)


LIMIT = "/etc/systemd/system/containerd.service.d/zz-fault.conf"
RESTART = "systemctl daemon-reload && systemctl restart containerd"
LIMITED = f"printf '[Service]\\nLimitMEMLOCK=8388608\\n' > {LIMIT} && {RESTART}"
SLOW = "modprobe sch_netem && tc qdisc add dev ens8 root netem delay 100ms rate 2mbit limit 10000"
BLOCKED = """nft add table netdev fault
nft add chain netdev fault in '{ type filter hook ingress device ens8 priority 0; }'
nft add rule netdev fault in udp dport 4791 drop"""


@fault(
    "locked memory is limited for uid 1000, whatever IPC_LOCK says",
    "locked memory is limited for root",
    "a path is slow: PFC, ECN, or a port at half its speed",
)
def test_limits_and_a_slow_path(proved: Fabric) -> None:
    one, other = WORKERS
    with (
        changed(proved, one, LIMITED, f"rm {LIMIT} && {RESTART}"),
        changed(proved, other, SLOW, "tc qdisc del dev ens8 root"),
    ):
        assert proved.prove(verify_rdma_latency=50000).code != 0
        failed = proved.failed()
        assert {("memlock_root", one), ("memlock_user", one)} <= failed
        assert "read_latency" in {check for check, _ in failed}
        assert ("memlock_root", other) not in failed
    wait_for_runtime(proved, one)


@fault("UDP 4791 is blocked between two nodes", "a switch port's MTU is below the master's")
def test_a_path_that_rdma_and_large_packets_do_not_pass(proved: Fabric) -> None:
    """As a firewall on the way, and a switch port that was left at 1400 bytes: it splits replies."""
    _one, other = WORKERS
    port = ["ip", "link", "set", f"ipu{proved.bed.number}-{other}-f", "mtu"]
    with changed(proved, other, BLOCKED, "nft delete table netdev fault"):
        subprocess.run([*port, "1400"], check=True)
        try:
            assert proved.prove().code != 0
        finally:
            subprocess.run([*port, "1500"], check=True)
        failed = {check for check, _ in proved.failed()}
        assert {"rping", "full_size"} <= failed
        assert not failed & {"ping", "rdma_link", "gid", "rdma_files"}


@fault("the device plugin selects no NIC, the resource counts 0", "the container has no RDMA device files")
def test_what_the_device_plugin_needs(proved: Fabric) -> None:
    """Its configuration selects no NIC, and on the second node a module of what it selects is missing as well."""
    one, other = WORKERS
    policy = proved.bed.kubectl("get nicclusterpolicy nic-cluster-policy")
    config = policy["spec"]["rdmaSharedDevicePlugin"]["config"]
    wrong = config.replace('"ens8"', '"ens99"')
    assert wrong != config
    with (
        changed(proved, "cp1", set_plugin_config(wrong), set_plugin_config(config)),
        changed(proved, other, "modprobe --remove ib_umad", "modprobe ib_umad"),
    ):
        for node in WORKERS:
            wait_for_resource(proved, node, there=False)
        assert proved.prove().code != 0
        assert {("rdma_files", one), ("rdma_files", other)} <= proved.failed()
        seen = {check["node"]: check["seen"] for check in proved.checks() if check["check"] == "rdma_resource"}
        assert "the device plugin does not select it" in seen[one]
        assert "the module ib_umad is not loaded" in seen[other]
    for node in WORKERS:
        wait_for_resource(proved, node, there=True)


def test_proved_again_after_restarts_and_a_reboot(proved: Fabric) -> None:
    one, other = WORKERS
    restart_plugin(proved, one)
    proved.bed.on(one, "systemctl restart containerd kubelet")
    before, moment = boot_id(proved, other), proved.bed.on(other, "date -u +%Y-%m-%dT%H:%M:%SZ").strip()
    proved.bed.reboot(other)
    wait_for_reboot(proved, other, before, moment)
    for node in WORKERS:
        wait_for_resource(proved, node, there=True)
    result = proved.prove()
    assert proved.failed() == set(), proved.why()
    assert result.code == 0
