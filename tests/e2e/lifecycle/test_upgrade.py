"""The fabric is taken off a finished cluster, put on again as it was years ago, and brought up to date step by step."""

from __future__ import annotations

from typing import Any

from ansible_collections.ipu.fabric.tests.e2e.bed import HOSTS, KUBECTL, Bed, Result

STEPS = ("25.7.0", "25.10.0", "26.1.2", "26.4.2", "26.7.1")
POD = """
apiVersion: v1
kind: Pod
metadata: {name: user, annotations: {k8s.v1.cni.cncf.io/networks: rdma-net}}
spec:
  nodeName: w1
  containers: [{name: pause, image: "registry.k8s.io/pause:3.10.2"}]
"""
LEFT = "ls -d /etc/cni/net.d/00-multus.conf /etc/cni/net.d/*.d /opt/cni/bin/multus* /opt/cni/bin/nv-ipam 2>/dev/null"


def fabric(bed: Bed, release: str, **variables: Any) -> Result:
    variables.setdefault("fabric_ipam", "whereabouts")
    allow = {"fabric_allow": ["cgroup-v2", "kubernetes-range"]}
    return bed.play("plan fabric", fabric_network_operator_version=release, **allow, **variables)


def make_pod(bed: Bed) -> None:
    bed.on("cp1", f"{KUBECTL} apply -f - <<'END'{POD}END\n{KUBECTL} wait --timeout=2m --for=condition=Ready pod/user")


def on_the_fabric(bed: Bed) -> list[str]:
    """What multus wrote down of the pod's second interface."""
    return bed.on("cp1", f"{KUBECTL} get pod user -o jsonpath='{{.metadata.annotations}}'").split("net1")[1:]


def test_reset_says_what_it_would_remove(finished: Bed) -> None:
    result = finished.play("reset")
    assert result.code != 0
    assert "MacvlanNetwork rdma-net" in result.text
    assert "fabric_reset=fabric" in result.text


def test_reset_spares_pods(finished: Bed) -> None:
    make_pod(finished)
    before = finished.state()
    result = finished.play("reset", fabric_reset="fabric")
    assert result.code != 0
    assert "default/user" in result.text
    assert finished.state() == before
    finished.on("cp1", f"{KUBECTL} delete pod user --timeout=2m")


def test_reset(finished: Bed) -> None:
    assert finished.play("reset", "--check", fabric_reset="fabric").code == 0
    assert finished.play("reset", fabric_reset="fabric").code == 0
    assert [finished.on(host, LEFT, check=False) for host in HOSTS] == ["", ""]
    again = finished.play("reset", fabric_reset="fabric")
    assert again.code == 0
    assert again.changed() == {}


def test_steps(finished: Bed) -> None:
    """A pod that runs all the time keeps its address; from 25.10 on whereabouts is installed beside the operator."""
    assert fabric(finished, STEPS[0]).code == 0
    make_pod(finished)
    address = on_the_fabric(finished)
    assert address
    refused = fabric(finished, STEPS[-1])
    assert refused.code != 0
    assert ", then ".join(STEPS[1:]) in refused.text
    for release in STEPS[1:]:
        assert fabric(finished, release).code == 0
        assert on_the_fabric(finished) == address
        again = fabric(finished, release)
        assert again.code == 0
        assert again.changed() == {}


def test_another_ipam_waits_for_the_pods(finished: Bed) -> None:
    refused = finished.play("plan fabric")
    assert refused.code != 0
    assert "default/user" in refused.text
    finished.on("cp1", f"{KUBECTL} delete pod user --timeout=2m")
    assert finished.play("plan fabric prove").code == 0
