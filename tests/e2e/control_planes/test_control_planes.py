"""Three control planes behind a load balancer: made from bare hosts; the first of them down, and reinstalled."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest
from ansible_collections.ipu.fabric.tests.e2e.bed import KUBECTL, Bed, wait_for

PLANES = ["cp1", "cp2", "cp3"]
PKI = "/etc/kubernetes/pki/etcd"
MEMBERS = (
    f"{KUBECTL} -n kube-system exec etcd-cp2 -- etcdctl --cacert {PKI}/ca.crt --cert {PKI}/server.crt "
    f"--key {PKI}/server.key member list --write-out=json"
)


def ready(bed: Bed) -> list[str]:
    """The nodes that are Ready, as the second control plane says."""
    nodes: list[dict[str, Any]] = json.loads(bed.on("cp2", f"{KUBECTL} get nodes -o json"))["items"]
    return [
        node["metadata"]["name"]
        for node in nodes
        if any(c["type"] == "Ready" and c["status"] == "True" for c in node["status"]["conditions"])
    ]


def members(bed: Bed) -> list[str]:
    return sorted(member["name"] for member in json.loads(bed.on("cp2", MEMBERS))["members"])


@pytest.fixture(scope="module")
def three(bed: Bed) -> Iterator[Bed]:
    bed.testbed("control-planes", "3")
    yield bed
    bed.testbed("control-planes", "1")


def test_from_bare_hosts(three: Bed) -> None:
    assert three.play("site").code == 0
    assert sorted(ready(three)) == [*PLANES, "w1"]
    assert members(three) == PLANES
    again = three.play("site")
    assert (again.code, again.changed()) == (0, {})


def test_the_first_is_down(three: Bed) -> None:
    """Nothing that belongs to it is taken away, and nobody else's run ends early."""
    subprocess.run(["podman", "stop", "--time=0", f"ipu-fabric-{three.number}-cp1"], check=True)
    refused = three.play("site")
    assert refused.code != 0
    assert [finding["check"] for finding in three.errors()] == ["unobserved"]
    wait_for("cp1 is NotReady", lambda: "cp1" not in ready(three))  # from then on its pods count as not ready
    rest = three.play("plan kubernetes fabric", "--limit", "!cp1", fabric_allow=["cgroup-v2", "unobserved"])
    # Only the kubeconfig on the controller is another: it was the first one's.
    assert (rest.code, rest.changed()) == (0, {"cp2": 1})
    assert "planned from its last observation, of" in " ".join(rest.shown.split())


def test_a_worker_is_reinstalled(three: Bed) -> None:
    three.testbed("reset", "w1")
    assert three.play("site").code == 0
    assert sorted(ready(three)) == [*PLANES, "w1"]


def test_the_first_is_reinstalled(three: Bed) -> None:
    """It joins the existing cluster: were it to begin another, both would answer behind one address."""
    three.testbed("reset", "cp1")
    assert three.play("site").code == 0
    assert sorted(ready(three)) == [*PLANES, "w1"]
    assert members(three) == PLANES
    again = three.play("site")
    assert (again.code, again.changed()) == (0, {})
