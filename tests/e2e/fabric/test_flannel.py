"""flannel from bare hosts to the proof, and again; `make test` runs on Calico."""

from __future__ import annotations

from ansible_collections.ipu.fabric.tests.e2e.bed import Bed


def test_flannel(bare: Bed) -> None:
    assert bare.play("site", fabric_cni="flannel").code == 0
    assert {item["metadata"]["name"] for item in bare.kubectl("get daemonsets -n kube-flannel")["items"]} == {
        "kube-flannel-ds"
    }
    again = bare.play("site", fabric_cni="flannel")
    assert (again.code, again.changed()) == (0, {})
