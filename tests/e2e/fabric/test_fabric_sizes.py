"""The fabric in other sizes, on a finished cluster: each is proved from inside pods, or refused by the plan."""

from __future__ import annotations

import ipaddress
from typing import Any

import pytest
from ansible_collections.ipu.fabric.tests.e2e.bed import HOSTS, Bed


def works(bed: Bed, cidr: str, **variables: Any) -> None:
    """The fabric playbooks make a network of this subnet, and pods prove it."""
    assert bed.play("plan fabric prove", **variables).code == 0
    subnet, fabric = bed.plan()["networks"][0]["subnet"], ipaddress.ip_network(cidr)
    assert subnet["cidr"] == cidr
    assert ipaddress.ip_address(subnet["range_start"]) in fabric
    assert ipaddress.ip_address(subnet["range_end"]) in fabric
    assert subnet["capacity"] >= subnet["needed"]


def test_too_small_is_refused(finished: Bed) -> None:
    """The upper half of a /27 has 16 addresses: too few for 2 hosts with 16 pods each."""
    finished.testbed("fabric", "10.5.0.0/27")
    assert finished.play("site", fabric_pods_per_node=16).code != 0
    assert [error["check"] for error in finished.errors()] == ["subnet"]


def test_ipv6(finished: Bed) -> None:
    """V-IPU is on the fabric, and pods have IPv4 only besides it: refused with IPUs, a working network without."""
    finished.testbed("fabric", "fd00:5::/64")
    assert finished.play("plan").code != 0
    assert [error["check"] for error in finished.errors()] == ["vipu-address"]
    works(finished, "fd00:5::/64", fabric_ipu=False)


def test_both_families(finished: Bed) -> None:
    finished.testbed("fabric", "10.5.0.0/24")
    for number, host in enumerate(HOSTS, 11):
        finished.on(host, f"ip address replace fd00:5::{number}/64 dev eth1 nodad")
    try:
        network = {"name": "rdma-net", "select": {"name": "eth1"}, "families": ["ipv4", "ipv6"]}
        assert finished.play("plan fabric prove", fabric_networks=[network]).code == 0
        subnets = finished.plan()["networks"][0]["subnets"]
        assert [subnet["cidr"] for subnet in subnets] == ["10.5.0.0/24", "fd00:5::/64"]
    finally:
        for number, host in enumerate(HOSTS, 11):
            finished.on(host, f"ip address delete fd00:5::{number}/64 dev eth1")


# The last one is what the testbed began with. The pool of the second family is no longer planned.
@pytest.mark.parametrize("cidr", ["10.5.0.0/23", "10.5.0.0/25", "10.5.0.0/26", "10.5.0.0/24"])
def test_ipv4(finished: Bed, cidr: str) -> None:
    finished.testbed("fabric", cidr)
    works(finished, cidr, fabric_prune_networks=True)
    pools = finished.kubectl("get ippools.nv-ipam.nvidia.com -A")["items"]
    assert [pool["metadata"]["name"] for pool in pools] == ["rdma-net"]
