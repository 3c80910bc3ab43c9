"""What is said of pods on a real cluster. Hosts that are containers have no RDMA, so each lacks at least that."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from ansible_collections.ipu.fabric.tests.e2e.bed import KUBECTL, Bed

IMAGE = "docker.io/library/busybox:1.37"
NETWORKS = "k8s.v1.cni.cncf.io/networks"
NO_RESOURCE = "No RDMA resource"
MEMLOCK = "Too little locked memory: 8 MiB"


def pod(name: str, network: str = "", limits: Any = None, lock: bool = False, **spec: Any) -> dict[str, Any]:
    capabilities = {"securityContext": {"capabilities": {"add": ["IPC_LOCK"]}}} if lock else {}
    container = {"name": "main", "image": IMAGE, "command": ["sleep", "3600"], "resources": {"limits": limits or {}}}
    annotations = {NETWORKS: network} if network else {}
    metadata = {"name": name, "namespace": "explained", "annotations": annotations}
    whole = {"containers": [{**container, **capabilities}], "terminationGracePeriodSeconds": 0, **spec}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": whole}


# The pods, and what they lack besides an RDMA resource.
PODS: dict[str, tuple[dict[str, Any], list[str]]] = {
    "plain": (pod("plain"), ["No network but the cluster's", MEMLOCK]),
    "rail": (pod("rail", "default/rdma-net"), [MEMLOCK]),
    "lock": (pod("lock", "default/rdma-net", lock=True), []),
    "none": (pod("none", "rail-9"), ["No network explained/rail-9"]),
    "other": (pod("other", "rdma-net"), ["No network explained/rdma-net"]),
    "host": (pod("host", "default/rdma-net", hostNetwork=True), ["None of the networks", MEMLOCK]),
    "taint": (pod("taint", "default/rdma-net", nodeSelector={"no": "node"}), ["It does not run"]),
    "waits": (pod("waits", "default/rdma-net", {"rdma/none": "1"}), ["It does not run"]),
}
RUN = ("plain", "rail", "lock", "host")


@pytest.fixture(scope="module")
def pods(bed: Bed, unbroken: dict[str, Any]) -> Iterator[Bed]:
    bed.finish()
    bed.on("cp1", f"{KUBECTL} create namespace explained")
    try:
        text = json.dumps({"apiVersion": "v1", "kind": "List", "items": [made for made, _lacks in PODS.values()]})
        bed.on("cp1", f"{KUBECTL} -n explained wait --for=create serviceaccount/default --timeout=60s")
        bed.on("cp1", f"{KUBECTL} apply -f - <<'END'\n{text}\nEND")
        names = " ".join(f"pod/{name}" for name in RUN)
        bed.on("cp1", f"{KUBECTL} -n explained wait --for=condition=Ready {names} --timeout=120s")
        yield bed
    finally:
        bed.on("cp1", f"{KUBECTL} delete namespace explained")


def items(text: str) -> list[str]:
    """The numbered lines of what is said."""
    return [line.split(". ", 1)[1] for line in text.splitlines() if line[:1].isdigit() and line[1:3] == ". "]


@pytest.mark.parametrize("name", PODS)
def test_each_pod_lacks_its_own(pods: Bed, name: str) -> None:
    result = pods.play("explain", pod=f"explained/{name}")
    assert (result.code, result.changed()) == (0, {})
    lacks = PODS[name][1] + ([] if name == "waits" else [NO_RESOURCE])
    found = items(result.shown)
    assert len(found) == len(lacks), result.shown
    assert all(item.startswith(tuple(lacks)) for item in found), result.shown
    if name in ("rail", "lock"):
        assert "network default/rdma-net: net1 10.5.0." in result.shown
        assert "MTU 1500, macvlan on eth1" in result.shown
        assert "10.5.0.0/24 dev net1" in result.shown


def test_a_container_without_a_shell(pods: Bed) -> None:
    dns = pods.kubectl("-n kube-system get pods -l k8s-app=kube-dns")["items"][0]["metadata"]["name"]
    result = pods.play("explain", pod=f"kube-system/{dns}")
    assert result.code == 0
    assert "executable file not found in $PATH" in " ".join(result.shown.split())
