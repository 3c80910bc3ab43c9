"""The path of a real site: from bare hosts to RDMA between pods, with the real device plugin.

Figures of software RDMA under emulation prove that traffic flows and which way. They say nothing about speed.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from ansible_collections.ipu.fabric.tests.e2e.bed import Result
from ansible_collections.ipu.fabric.tests.e2e.rdma.conftest import WORKERS, Fabric

RDMA_CHECKS = {
    "rdma_resource", "rdma_link", "link_layer", "rdma_files", "gid", "rping", "write_bandwidth", "read_latency",
}  # fmt: skip


def test_from_bare_hosts_to_rdma_between_pods(fabric: Fabric, site: Result) -> None:
    assert site.code == 0
    status = {name: {c["status"] for c in fabric.checks() if c["check"] == name} for name in RDMA_CHECKS}
    assert status == {name: {"passed"} for name in RDMA_CHECKS}
    for name in ("memlock_root", "memlock_user"):
        seen = {check["node"]: check["seen"] for check in fabric.checks() if check["check"] == name}
        assert {node: seen[node] for node in WORKERS} == dict.fromkeys(WORKERS, "unlimited")


def test_the_device_plugin_makes_the_resource_allocatable(proved: Fabric) -> None:
    for node in WORKERS:
        found = proved.bed.kubectl(f"get node {node}")["status"]["allocatable"]
        assert [int(count) > 0 for name, count in found.items() if name.startswith("rdma/")] == [True]
    pods = proved.bed.kubectl("-n nvidia-network-operator get pods -l app=rdma-shared-dp")["items"]
    assert {pod["spec"]["nodeName"] for pod in pods} == set(WORKERS)


def has_resources(fabric: Fabric, patience: float = 300) -> bool:
    """Kubelet says so a while after the plugin has registered."""
    end = time.monotonic() + patience
    while not offered(fabric) and time.monotonic() < end:
        time.sleep(5)
    return offered(fabric)


def offered(fabric: Fabric) -> bool:
    nodes = [fabric.bed.kubectl(f"get node {node}")["status"]["allocatable"] for node in WORKERS]
    return all(any(name.startswith("rdma/") and int(number) for name, number in node.items()) for node in nodes)


def plugins(fabric: Fabric) -> dict[str, list[str]]:
    """The nodes of each DaemonSet of the device plugin."""
    pods = fabric.bed.kubectl("-n nvidia-network-operator get pods")["items"]
    found: dict[str, list[str]] = {}
    for pod in pods:
        owner = pod["metadata"]["ownerReferences"][0]["name"]
        if owner.startswith("rdma-shared-dp"):
            found.setdefault(owner, []).append(pod["spec"]["nodeName"])
    return found


def settled(fabric: Fabric) -> dict[str, list[str]]:
    """The same in order, when pods of DaemonSets that are gone have ended, which takes emulated kubelets a while."""
    deadline = time.monotonic() + 300
    while len(plugins(fabric)) > 1 and time.monotonic() < deadline:
        time.sleep(5)
    return {name: sorted(nodes) for name, nodes in plugins(fabric).items()}


def section_left(fabric: Fabric) -> Callable[[str], bool]:
    """The NicClusterPolicy has lost the device plugin."""

    def moment(_output: str) -> bool:
        policy = fabric.bed.kubectl("get nicclusterpolicy nic-cluster-policy")
        return "rdmaSharedDevicePlugin" not in policy["spec"]

    return moment


def test_the_device_plugin_moves_to_node_policies_and_back(proved: Fabric) -> None:
    """Killed when the section has left the one and has not come to the other; the next run finishes it."""
    bed = proved.bed
    output = bed.play_until("fabric", section_left(proved), fabric_nic_policy="node")
    assert "PLAY RECAP" not in output
    moved = bed.play("fabric", fabric_nic_policy="node")
    assert moved.code == 0
    (policy,) = bed.kubectl("get nicnodepolicies")["items"]
    assert settled(proved) == {f"rdma-shared-dp-ds-{policy['metadata']['name']}": sorted(WORKERS)}
    assert has_resources(proved)
    assert bed.play("fabric", fabric_nic_policy="node").changed() == {}
    assert bed.play("fabric", fabric_nic_policy="cluster").code == 0
    assert bed.kubectl("get nicnodepolicies")["items"] == []
    assert settled(proved) == {"rdma-shared-dp-ds": sorted(WORKERS)}
    assert has_resources(proved)
    labels = [node["metadata"]["labels"] for node in bed.kubectl("get nodes")["items"]]
    assert [key for each in labels for key in each if "nic-group" in key] == []
