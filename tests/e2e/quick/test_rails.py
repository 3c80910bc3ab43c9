"""Eight fabric NICs a host, on a finished cluster: one network a rail, each proved from inside pods; then one again."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from ansible_collections.ipu.fabric.tests.e2e.bed import Bed

SUBNETS = ["10.5.0.0/24", *(f"10.{4 + rail}.0.0/24" for rail in range(2, 9))]
NETWORKS = [{"name": f"rail{number}", "select": {"subnet": cidr}} for number, cidr in enumerate(SUBNETS, 1)]
RAILS = {network["name"] for network in NETWORKS}
KINDS = ("macvlannetworks.mellanox.com", "network-attachment-definitions", "ippools.nv-ipam.nvidia.com")


def names(bed: Bed) -> list[set[str]]:
    """The networks, attachments and pools of the cluster."""
    return [{item["metadata"]["name"] for item in bed.kubectl(f"get {kind} -A")["items"]} for kind in KINDS]


@pytest.fixture(scope="module")
def eight(bed: Bed, unbroken: object) -> Iterator[Bed]:
    bed.finish()
    bed.testbed("rails", "8")
    yield bed
    bed.testbed("rails", "1")


def test_a_former_network_is_in_the_way(eight: Bed) -> None:
    """rail1 would have the addresses of rdma-net."""
    before = eight.state()
    refused = eight.play("plan fabric", fabric_networks=NETWORKS)
    assert refused.code != 0
    assert "rdma-net shares" in refused.text
    assert "fabric_prune_networks: true" in refused.text
    assert eight.state() == before


def test_eight_rails(eight: Bed) -> None:
    assert eight.play("plan fabric prove", fabric_networks=NETWORKS, fabric_prune_networks=True).code == 0
    planned = eight.plan()["networks"]
    assert [(network["master"], network["subnet"]["cidr"]) for network in planned] == [
        (f"eth{number}", cidr) for number, cidr in enumerate(SUBNETS, 1)
    ]
    assert names(eight) == [RAILS] * 3
    again = eight.play("plan fabric prove", fabric_networks=NETWORKS)
    assert again.code == 0
    assert again.changed() == {}


def test_back_to_one(eight: Bed) -> None:
    eight.testbed("rails", "1")
    assert eight.play("plan fabric", "--check", fabric_prune_networks=True).code == 0
    assert names(eight) == [RAILS] * 3
    assert eight.play("plan fabric prove", fabric_prune_networks=True).code == 0
    assert names(eight) == [{"rdma-net"}] * 3
    again = eight.play("plan fabric prove")
    assert again.code == 0
    assert again.changed() == {}
