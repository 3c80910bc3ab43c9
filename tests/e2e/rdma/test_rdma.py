"""The path of a real site: from bare hosts to RDMA between pods, with the real device plugin.

Figures of software RDMA under emulation prove that traffic flows and which way. They say nothing about speed.
"""

from __future__ import annotations

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
