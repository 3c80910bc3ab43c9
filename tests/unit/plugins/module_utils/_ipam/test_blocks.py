"""Blocks of nv-ipam: their sizes, and what each node gets."""

import random

import netaddr
import pytest
from ansible_collections.ipu.fabric.plugins.module_utils._common.result import FabricError
from ansible_collections.ipu.fabric.plugins.module_utils._ipam.blocks import Blocks, parse_release
from ansible_collections.ipu.fabric.tests.unit.fixtures.ipams import TWO, allocate_blocks, nodes, plan_subnet


@pytest.mark.parametrize(
    ("text", "release"),
    [("26.7.1", (26, 7)), ("v25.10.0-rc.1", (25, 10)), ("24.7", (24, 7)), ("1.4.0", (1, 4))],
)
def test_parse_release(text, release):
    assert parse_release(text) == release


@pytest.mark.parametrize(
    ("pods", "count", "block", "served"),
    [
        # A /24 without its lower half, as other people counted it: 8 for 15 nodes, 16 for 7, 32 for 3.
        (8 * 15, 15, 8, 15),
        (16 * 7, 7, 16, 7),
        (32 * 3, 3, 32, 3),
        (2, 2, 1, 127),
    ],
)
def test_block_sizes_of_half_a_24(pods, count, block, served):
    many = nodes(*(f"10.5.0.{10 + number}" for number in range(count)))
    plan = plan_subnet(nodes=many, gateway="10.5.0.1", pods=pods, ipam="nv-ipam", pool_name="rdma-net")
    assert plan["ipam"] == {"type": "nv-ipam", "poolName": "rdma-net"}
    assert plan["pool"]["perNodeBlockSize"] == block
    assert plan["capacity"] == pods
    assert len(allocate_blocks(plan["pool"], 500, True)) == served
    assert bool(plan["warnings"]) == (served == count)


def test_poor_blocks_are_given_up():
    """.128 belongs to the block that begins at .121: it is excluded too, or a node would get a block of one address."""
    plan = plan_subnet(nodes=TWO, gateway="10.5.0.1", pods=16, ipam="nv-ipam")
    assert plan["pool"] == {
        "subnet": "10.5.0.0/24",
        "perNodeBlockSize": 8,
        "gateway": "10.5.0.1",
        "exclusions": [{"startIP": "10.5.0.1", "endIP": "10.5.0.128"}],
    }
    assert plan["ipam"] == {"type": "nv-ipam"}
    assert (plan["range_start"], plan["exclude"]) == ("10.5.0.129", ["10.5.0.0/25", "10.5.0.128/32"])


def test_without_a_need_the_blocks_are_as_large_as_they_can():
    assert plan_subnet(nodes=TWO, ipam="nv-ipam")["pool"]["perNodeBlockSize"] == 32
    assert plan_subnet(nodes=TWO, ipam="nv-ipam", share="all")["pool"]["perNodeBlockSize"] == 64


def test_odd_sizes_where_powers_of_two_do_not_fit():
    plan = plan_subnet(nodes=TWO, pods=120, ipam="nv-ipam")
    assert plan["pool"]["perNodeBlockSize"] == 63
    assert plan["capacity"] >= 120


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"ipam_release": "25.10.0", "pods": 16}, "26.1 or later"),
        ({"ipam_release": "25.10.0", "pods": 16}, "set share to all"),
        ({"ipam_release": "24.4.0", "pods": 16}, "24.7 or later"),
        ({"pods": 126}, "set fabric_pods_per_node to 32 (64 pods on 2 nodes)"),
        ({"pods": 126}, "whereabouts (127 addresses)"),
        ({"ipam_release": "new"}, "26.7.1"),
        ({"share": "10.5.0.130"}, "share to all"),
    ],
)
def test_nv_ipam_refuses_and_says_what_would_work(options, message):
    with pytest.raises(FabricError) as error:
        plan_subnet(nodes=TWO, ipam="nv-ipam", **options)
    assert message.lower() in error.value.next_step.lower()


def test_before_26_1_blocks_in_front_must_serve():
    plan = plan_subnet(nodes=TWO, gateway="10.5.0.1", pods=16, ipam="nv-ipam", ipam_release="25.7.0", share="all")
    allocated = allocate_blocks(plan["pool"], 2, False)
    assert all(len(block) >= 8 for block in allocated)
    assert plan["capacity"] == sum(len(block) for block in allocated)


def test_blocks_count_as_they_are_allocated():
    """The quick count by edges agrees with allocating block by block."""
    rng = random.Random(4)
    for _turn in range(500):
        firsts = rng.sample(range(1, 80), rng.randrange(1, 8))
        allowed = netaddr.IPSet([netaddr.IPRange(first, first + rng.randrange(9)) for first in firsts])
        blocks = Blocks(allowed, netaddr.IPAddress(1), netaddr.IPAddress(94), True)
        for step in (1, 3, 4, 8, 20):
            allocated = blocks.allocated(step, 1000)
            assert blocks.whole(step) + len(blocks.edges(step)) == len(allocated)
            for count in range(1, len(allocated) + 2):
                wanted = sorted(allocated, reverse=True)[count - 1] if count <= len(allocated) else 0
                assert blocks.least(step, count) == wanted
