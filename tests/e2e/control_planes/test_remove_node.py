"""Three control planes and a worker: the worker leaves and comes back, then control planes leave, one of them dead."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Iterator
from typing import Any

import pytest
from ansible_collections.ipu.fabric.tests.e2e.bed import KUBECTL, Bed

PLANES = ["cp1", "cp2", "cp3"]
PKI = "/etc/kubernetes/pki/etcd"
MEMBERS = (
    f"{KUBECTL} -n kube-system exec etcd-cp2 -- etcdctl --cacert {PKI}/ca.crt --cert {PKI}/server.crt "
    f"--key {PKI}/server.key member list --write-out=json"
)
# What a node has, and a host that has left has not.
TRACES = """
ls -d /etc/kubernetes/*.conf /etc/kubernetes/pki/ca.crt /var/lib/etcd/member /etc/cni/net.d/10-flannel.conflist 2>&-
iptables-save | grep -E 'KUBE-|FLANNEL-'
ip -o link show | grep -E ': (cni0|flannel)'
ctr -n k8s.io containers list -q
systemctl is-active kubelet | grep -x active
true
"""


def nodes(bed: Bed) -> dict[str, bool]:
    """The nodes, and whether they are Ready, as the second control plane says."""
    found: list[dict[str, Any]] = json.loads(bed.on("cp2", f"{KUBECTL} get nodes -o json"))["items"]
    return {
        node["metadata"]["name"]: any(
            each["type"] == "Ready" and each["status"] == "True" for each in node["status"]["conditions"]
        )
        for node in found
    }


def members(bed: Bed) -> list[str]:
    return sorted(member["name"] for member in json.loads(bed.on("cp2", MEMBERS))["members"])


def nodes_with_blocks(bed: Bed) -> set[str]:
    """Nodes for which nv-ipam keeps a block."""
    pools = json.loads(bed.on("cp2", f"{KUBECTL} get ippools.nv-ipam.nvidia.com -A -o json"))["items"]
    return {each["nodeName"] for pool in pools for each in pool.get("status", {}).get("allocations", [])}


def remove(bed: Bed, name: str) -> None:
    """Remove a node: in check mode first, which changes nothing, and a second time, when there is nothing to do."""
    before = nodes(bed), members(bed)
    checked = bed.play("remove_node", "--check", fabric_remove_nodes=name, drain_force=True)
    assert checked.code == 0
    assert checked.changed()
    assert (nodes(bed), members(bed)) == before
    assert bed.play("remove_node", fabric_remove_nodes=name, drain_force=True).code == 0
    assert name not in nodes(bed)
    again = bed.play("remove_node", fabric_remove_nodes=name)
    assert (again.code, again.changed()) == (0, {})
    assert f"{name}: is not in the cluster" in again.shown


def refused(bed: Bed, name: str) -> str:
    before = nodes(bed), members(bed)
    result = bed.play("remove_node", fabric_remove_nodes=name)
    assert result.code != 0
    assert (nodes(bed), members(bed)) == before
    return " ".join(result.shown.split())


@pytest.fixture(scope="module")
def three(bed: Bed) -> Iterator[Bed]:
    bed.testbed("control-planes", "3")
    assert bed.play("site").code == 0
    yield bed
    bed.testbed("control-planes", "1")


def test_names_are_needed(three: Bed) -> None:
    assert "The cluster has cp1, cp2, cp3, w1" in refused(three, "")
    assert "neither the cluster nor the inventory has w7" in refused(three, "w7")


def test_a_worker(three: Bed) -> None:
    assert three.on("w1", TRACES)
    assert "w1" in nodes_with_blocks(three)
    remove(three, "w1")
    assert three.on("w1", TRACES) == ""
    # The controller of nv-ipam may have been on that node.
    deadline = time.monotonic() + 120
    while "w1" in nodes_with_blocks(three):
        assert time.monotonic() < deadline, "nv-ipam keeps the block of a node that has left"
        time.sleep(5)


def test_it_comes_back(three: Bed) -> None:
    """It is still in the inventory, and nothing of its former life is in the way."""
    assert three.play("site").code == 0
    assert nodes(three)["w1"]


def test_a_living_control_plane_beside_a_dead_one(three: Bed) -> None:
    subprocess.run(["podman", "stop", "--time=0", f"ipu-fabric-{three.number}-cp1"], check=True)
    deadline = time.monotonic() + 300
    while nodes(three)["cp1"]:
        assert time.monotonic() < deadline, "the dead node stays Ready"
        time.sleep(5)
    assert "etcd keeps a majority of its members" in refused(three, "cp3")


def test_a_dead_control_plane(three: Bed) -> None:
    remove(three, "cp1")
    assert members(three) == ["cp2", "cp3"]


def test_a_living_control_plane(three: Bed) -> None:
    remove(three, "cp3")
    assert members(three) == ["cp2"]
    assert three.on("cp3", TRACES) == ""


def test_the_last_control_plane_stays(three: Bed) -> None:
    assert "A cluster needs at least one control plane" in refused(three, "cp2")
    assert nodes(three) == {"cp2": True, "w1": True}
