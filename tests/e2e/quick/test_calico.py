"""Calico under a finished cluster: its tunnel keeps to the management network, and what is broken in it is named."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
import yaml
from ansible_collections.ipu.fabric.tests.e2e.bed import HOSTS, KUBECTL, Bed

SYSTEM = f"{KUBECTL} -n calico-system"


def tunnels(bed: Bed) -> dict[str, tuple[str, str]]:
    """For each host, the address that calico-node has taken, and the one from which the tunnel sends."""
    found = {}
    for node in bed.kubectl("get nodes")["items"]:
        name = node["metadata"]["name"]
        link = json.loads(bed.on(name, "ip -details -json link show vxlan.calico"))
        taken = node["metadata"]["annotations"]["projectcalico.org/IPv4Address"]
        found[name] = (taken.partition("/")[0], link[0]["linkinfo"]["info_data"]["local"])
    return found


def management(bed: Bed) -> dict[str, str]:
    groups = yaml.safe_load(bed.inventory.read_text())["all"]["children"].values()
    return {
        name: settings["ansible_host"]
        for group in groups
        for name, settings in group["hosts"].items()
        if (settings or {}).get("ansible_host")
    }


@pytest.fixture(scope="module")
def calico(bed: Bed, unbroken: object) -> Iterator[Bed]:
    """A finished cluster; what its tests break is whole again afterwards."""
    bed.finish()
    yield bed
    assert bed.play("plan kubernetes").code == 0


def test_the_tunnel_keeps_to_management(calico: Bed) -> None:
    """Also after a fabric NIC came later: alone, calico-node takes the last NIC that has an address."""
    wanted = {name: (address, address) for name, address in management(calico).items()}
    assert sorted(wanted) == sorted(HOSTS)
    assert tunnels(calico) == wanted
    calico.testbed("rails", "2")
    try:
        calico.on("cp1", f"{SYSTEM} rollout restart daemonset calico-node")
        calico.on("cp1", f"{SYSTEM} rollout status daemonset calico-node --timeout 180s")
        assert tunnels(calico) == wanted
    finally:
        calico.testbed("rails", "1")


def test_images_that_are_not_there(calico: Bed) -> None:
    """The run ends early, and not well, though both nodes are Ready."""
    result = calico.play("plan kubernetes", kubernetes_calico_installation={"imagePrefix": "no-"})
    assert result.code != 0
    assert "waiting longer can't help" in result.shown
    assert "container calico-typha: " in result.shown
    assert "quay.io/calico/no-typha:v" in result.shown
