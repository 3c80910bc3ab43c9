"""Address plans, by tables and, for 3,000 random ones, against what the two IPAMs would really hand out."""

from __future__ import annotations

import ipaddress
import itertools
import math
import random
import time
import typing as t

import pytest
from ansible_collections.ipu.fabric.plugins.module_utils._common.result import FabricError
from ansible_collections.ipu.fabric.plugins.module_utils._ipam.ranges import parse_ranges, range_texts
from ansible_collections.ipu.fabric.tests.unit.fixtures.ipams import (
    TWO,
    TWO6,
    allocate_blocks,
    everything_in,
    hand_out,
    name,
    nodes,
    number,
    plan_subnet,
)

# ---- plans ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("prefix", "start", "end", "exclude", "capacity"),
    [
        (23, "10.5.1.0", "10.5.1.254", ["10.5.0.0/24"], 255),
        (24, "10.5.0.128", "10.5.0.254", ["10.5.0.0/25"], 127),
        (25, "10.5.0.64", "10.5.0.126", ["10.5.0.0/26"], 63),
        (26, "10.5.0.32", "10.5.0.62", ["10.5.0.0/27"], 31),
        (27, "10.5.0.16", "10.5.0.30", ["10.5.0.0/28"], 15),
    ],
)
def test_the_seeds_way_fits_every_subnet(prefix, start, end, exclude, capacity):
    plan = plan_subnet(nodes=nodes("10.5.0.11", "10.5.0.12", prefix=prefix), gateway="10.5.0.1", reserved=["10.5.0.14"])
    assert plan == {
        "cidr": f"10.5.0.0/{prefix}",
        "prefix": prefix,
        "gateway": "10.5.0.1",
        "range_start": start,
        "range_end": end,
        "exclude": exclude,
        "capacity": capacity,
        "mtu": 1500,
        "ipam": {
            "type": "whereabouts",
            "range": f"10.5.0.0/{prefix}",
            "range_start": start,
            "range_end": end,
            "exclude": exclude,
        },
        "pool": None,
        "warnings": [],
    }


@pytest.mark.parametrize(
    ("options", "start", "end", "exclude", "capacity"),
    [
        # Nodes, gateway and reserved addresses inside the pods' half.
        (
            {
                "nodes": nodes("10.5.0.200", "10.5.0.201"),
                "gateway": "10.5.0.254",
                "reserved": ["10.5.0.128-10.5.0.131"],
            },
            "10.5.0.132",
            "10.5.0.253",
            ["10.5.0.0/25", "10.5.0.128/30", "10.5.0.200/31", "10.5.0.254/31"],
            120,
        ),
        # .0 and .1 join to one CIDR, because nobody gets .0 anyway.
        (
            {"nodes": TWO, "gateway": "10.5.0.1", "share": "all"},
            "10.5.0.2",
            "10.5.0.254",
            ["10.5.0.0/31", "10.5.0.11/32", "10.5.0.12/32"],
            251,
        ),
        (
            {"nodes": TWO, "share": "10.5.0.64/27"},
            "10.5.0.64",
            "10.5.0.95",
            ["10.5.0.0/26", "10.5.0.96/27", "10.5.0.128/25"],
            32,
        ),
        (
            {"nodes": TWO, "share": "10.5.0.10-10.5.0.13"},
            "10.5.0.10",
            "10.5.0.13",
            [
                "10.5.0.0/29",
                "10.5.0.8/31",
                "10.5.0.11/32",
                "10.5.0.12/32",
                "10.5.0.14/31",
                "10.5.0.16/28",
                "10.5.0.32/27",
                "10.5.0.64/26",
                "10.5.0.128/25",
            ],
            2,
        ),
        # What is reserved outside the subnet, or in the other family, does no harm.
        (
            {"nodes": TWO, "reserved": ["10.1.2.3", "fd00::/8", "10.0.0.0-10.5.0.140"]},
            "10.5.0.141",
            "10.5.0.254",
            ["10.5.0.0/25", "10.5.0.128/29", "10.5.0.136/30", "10.5.0.140/32"],
            114,
        ),
        ({"nodes": nodes("10.5.0.1", prefix=30)}, "10.5.0.2", "10.5.0.2", ["10.5.0.0/31"], 1),
        (
            {"nodes": nodes("fd00::1", prefix=120), "gateway": "fd00::fe", "reserved": ["fd00::80/126"]},
            "fd00::84",
            "fd00::fd",
            ["fd00::/121", "fd00::80/126", "fd00::fe/127"],
            122,
        ),
    ],
)
def test_whereabouts(options, start, end, exclude, capacity):
    plan = plan_subnet(**options)
    assert (plan["range_start"], plan["range_end"], plan["capacity"]) == (start, end, capacity)
    assert plan["exclude"] == exclude == plan["ipam"]["exclude"]


@pytest.mark.parametrize("ipam", ["whereabouts", "nv-ipam"])
def test_ipv6_64_uses_what_ipams_can_count(ipam):
    plan = plan_subnet(nodes=TWO6, gateway="fd00:5::1", pods=16, ipam=ipam)
    network = ipaddress.ip_network("fd00:5::/64")
    assert plan["cidr"] == str(network)
    assert plan["range_end"] == "fd00:5::1f:ffff:ffff:ffff"
    assert int(ipaddress.ip_address(plan["range_end"])) - int(network[0]) < 2**53
    assert any("2^53" in warning for warning in plan["warnings"])
    excluded = [ipaddress.ip_network(cidr) for cidr in plan["exclude"]]
    allowed = 2**52 - (1 if ipam == "nv-ipam" else 0)  # .129 is the first of a whole block
    assert sum(cidr.num_addresses for cidr in excluded) == 2**64 - allowed
    assert plan["capacity"] == (2**52 if ipam == "whereabouts" else 16)


@pytest.mark.parametrize(
    ("share", "end"), [("all", "fd00:5::1f:ffff:ffff:ffff"), ("fd00:5::1:0:0/96", "fd00:5::1:ffff:ffff")]
)
def test_ipv6_shares(share, end):
    assert plan_subnet(nodes=TWO6, share=share)["range_end"] == end


def test_mtu_is_the_least_that_is_known():
    mixed = [*nodes("10.5.0.11", mtu=9000), {"name": "x", "address": "10.5.0.12", "prefix": 24, "mtu": 4200}]
    plan = plan_subnet(nodes=mixed)
    assert plan["mtu"] == 4200
    assert "4200: x; 9000: w1" in plan["warnings"][0]
    unknown = [*nodes("10.5.0.11", mtu=9000), {"name": "x", "address": "10.5.0.12", "prefix": 24, "mtu": 0}]
    assert plan_subnet(nodes=unknown)["mtu"] == 9000
    assert plan_subnet(nodes=unknown)["warnings"] == []
    assert plan_subnet(nodes=[{"name": "x", "address": "10.5.0.12", "prefix": 24}])["mtu"] == 0


# ---- errors ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "what", "step", "never"),
    [
        # nvidia-k8s-ipam#40, #43 and #57: a /31 for each NIC, the switch at its other end.
        (["10.5.0.1/31", "10.5.0.3/31"], "point-to-point", "CIDRPool", "one network for each"),
        (["10.5.0.1/30", "10.5.0.5/30"], "point-to-point", "CIDRPool", "one network for each"),
        (["10.5.0.1/32", "10.5.0.2/32"], "point-to-point", "CIDRPool", "one network for each"),
        (["fd00::1/127", "fd00::3/127"], "point-to-point", "CIDRPool", "one network for each"),
        # A subnet for each rack, or for each node.
        (["10.5.1.11/24", "10.5.1.12/24", "10.5.2.11/24"], "rack or node", "one network for each subnet", "prefix"),
        (["10.5.1.11/26", "10.5.1.75/26"], "rack or node", "one network for each subnet", "prefix"),
        (["fd00:5:1::11/64", "fd00:5:2::11/64"], "rack or node", "one network for each subnet", "prefix"),
        # A mistake.
        (["10.5.0.11/24", "10.5.0.12/16"], "one subnet", "Correct the prefix", "CIDRPool"),
        (["10.5.0.11/24", "fd00::12/64"], "one subnet", "same family", "prefix"),
    ],
)
def test_several_subnets_are_told_apart(given, what, step, never):
    texts = [text.split("/") for text in given]
    members = [{"name": f"w{n}", "address": address, "prefix": int(bits)} for n, (address, bits) in enumerate(texts)]
    with pytest.raises(FabricError) as error:
        plan_subnet(nodes=members, pods=len(members))
    assert what in error.value.what
    assert step in error.value.next_step
    assert never not in error.value.next_step
    assert all(str(ipaddress.ip_interface(text).network) in error.value.seen for text in given)


def test_many_subnets_are_cut_short():
    members = [{"name": f"w{n}", "address": f"10.5.{n}.1", "prefix": 31} for n in range(200)]
    with pytest.raises(FabricError) as error:
        plan_subnet(nodes=members)
    assert error.value.seen.endswith("10.5.7.0/31: w7 and 192 more")


@pytest.mark.parametrize(
    ("options", "what", "seen"),
    [
        ({"nodes": []}, "comes from the nodes", "no node"),
        ({"nodes": nodes("10.5.0.300")}, "address with its prefix", "10.5.0.300/24"),
        ({"nodes": nodes("10.5.0.3", prefix=40)}, "address with its prefix", "10.5.0.3/40"),
        ({"nodes": nodes("fe80::1", prefix=64)}, "reachable from other nodes", "fe80::1/64"),
        ({"nodes": nodes("127.0.0.1")}, "reachable from other nodes", "127.0.0.1/24"),
        ({"nodes": nodes("10.5.0.11", "10.5.1.12")}, "on one subnet", "10.5.0.0/24: w1; 10.5.1.0/24: w2"),
        ({"nodes": nodes("10.5.0.11", "fd00::1")}, "on one subnet", "w2"),
        ({"nodes": [*TWO, *nodes("10.5.0.3", prefix=16)]}, "on one subnet", "10.5.0.0/16"),
        ({"nodes": nodes("10.5.0.11", "10.5.0.11")}, "an address of its own", "10.5.0.11"),
        ({"nodes": nodes("10.5.0.0", prefix=31)}, "room for pods", "10.5.0.0/31"),
        ({"nodes": nodes("10.5.0.0", prefix=32)}, "room for pods", "/32"),
        ({"nodes": nodes("fd00::", prefix=127)}, "room for pods", "/127"),
        ({"nodes": nodes("10.5.0.1", "10.5.0.2", prefix=30)}, "Pods need addresses", "0 are left"),
        ({"avoid": ["10.244.0.0/16", "10.0.0.0/8"]}, "must not overlap", "10.5.0.0/24"),
        ({"avoid": ["10.5.0.128/25"]}, "must not overlap", "10.5.0.0/24"),
        ({"avoid": ["10.5.0.1/24"]}, "An address, a CIDR", "host bits"),
        ({"gateway": "10.6.0.1"}, "gateway must be a host address", "10.6.0.1"),
        ({"gateway": "10.5.0.0"}, "gateway must be a host address", "10.5.0.0"),
        ({"gateway": "10.5.0.255"}, "gateway must be a host address", "10.5.0.255"),
        ({"gateway": "fd00::1"}, "gateway must be a host address", "fd00::1"),
        ({"gateway": "router"}, "An IP address", "router"),
        ({"gateway": "10.5.0.11"}, "cannot reach its own node", "10.5.0.11"),
        ({"reserved": ["10.5.0.20", "gateway"]}, "An address, a CIDR", "gateway"),
        ({"share": "lower_half"}, "share of the subnet is not valid", "lower_half"),
        ({"share": ""}, "share of the subnet is not valid", "''"),
        ({"share": "10.5.0.0/23"}, "must lie in the fabric subnet", "10.5.0.0/23"),
        ({"share": "10.6.0.0/25"}, "must lie in the fabric subnet", "10.6.0.0/25"),
        ({"share": "fd00::/64"}, "must lie in the fabric subnet", "fd00::/64"),
        ({"share": "10.5.0.9-10.5.0.1"}, "An address, a CIDR", "10.5.0.9-10.5.0.1"),
        (
            {"nodes": TWO6, "share": "fd00:5:0:0:8000::/65"},
            "within the addresses that the IPAMs can count",
            "fd00:5::1f:ffff:ffff:ffff",
        ),
        ({"reserved": ["10.5.0.128/25"]}, "Pods need addresses", "0 are left"),
        ({"pods": 128}, "Addresses for 128 pods", "127 are left"),
        ({"pods": -1}, "number of pods", "-1"),
        ({"ipam": "dhcp"}, "An IPAM", "dhcp"),
    ],
)
def test_errors_say_what_where_seen_and_next(options, what, seen):
    with pytest.raises(FabricError) as error:
        plan_subnet(**{"nodes": TWO, **options})
    assert what in error.value.what
    assert seen in error.value.seen
    assert error.value.where
    assert error.value.next_step


@pytest.mark.parametrize(
    ("options", "advice"),
    [
        ({"pods": 200}, "share to all (253 addresses:"),
        ({"pods": 253, "share": "all", "gateway": "10.5.0.1"}, "a /23"),
        ({"pods": 500}, "a /22"),
        ({"reserved": ["10.5.0.128/25"]}, "share to all (126 addresses:"),
        ({"reserved": ["10.5.0.0/24"]}, "Remove addresses from `reserved`: without it, 127 are left."),
        ({"reserved": ["10.5.0.0/24"], "pods": 200}, "Renumber"),
    ],
)
def test_too_few_addresses_names_what_would_work(options, advice):
    with pytest.raises(FabricError) as error:
        plan_subnet(**{"nodes": nodes("10.5.0.11"), **options})
    assert advice in error.value.next_step


@pytest.mark.parametrize(("ipam", "share"), [("whereabouts", "all"), ("nv-ipam", "all"), ("nv-ipam", "upper_half")])
def test_1000_nodes_in_a_16_take_less_than_a_second(ipam, share):
    many = nodes(*(f"10.6.{number // 250 * 7}.{number % 250 + 1}" for number in range(1000)), prefix=16)
    reserved = [f"10.6.{number}.251-10.6.{number}.254" for number in range(256)]
    began = time.process_time()
    plan = plan_subnet(nodes=many, reserved=reserved, share=share, pods=8000, ipam=ipam)
    assert time.process_time() - began < 1
    assert plan["capacity"] >= 8000


def test_a_refusal_of_1000_nodes_is_quick_too():
    many = nodes(*(f"10.6.{number // 250 * 7}.{number % 250 + 1}" for number in range(1000)), prefix=16)
    began = time.process_time()
    with pytest.raises(FabricError):
        plan_subnet(nodes=many, pods=64500, share="all", ipam="nv-ipam")
    assert time.process_time() - began < 1


# ---- random questions ----------------------------------------------------------------------------------------------


def fewest(network, allowed: t.Set[int]) -> int:
    """The least number of CIDRs that cover each host address but the allowed ones, by trying all of the tree."""
    low, high = number(network[0]), number(network[-1])

    def cover(first: int, count: int) -> int:
        inside = range(first, first + count)
        if all(ip in allowed or ip in (low, high) for ip in inside):
            return 0
        if not any(ip in allowed for ip in inside):
            return 1
        return cover(first, count // 2) + cover(first + count // 2, count // 2)

    return cover(low, high - low + 1)


class Case(t.NamedTuple):
    """A random question, and the set of addresses that pods may get by its words."""

    network: t.Any
    options: t.Dict[str, t.Any]
    free: t.Set[int]


def random_case(rng: random.Random) -> Case:
    bits = rng.choice([2, 3, 4, 4, 5, 5, 6, 6, 7, 8])
    base, width = rng.choice([("10.5.0.0", 32), ("fd00:5::", 128)])
    network = ipaddress.ip_network(f"{base}/{width - bits}")
    usable = range(number(network[0]) + 1, number(network[-1]))
    members = rng.sample(usable, min(rng.choice([1, 1, 2, 3, 5, 9]), len(usable)))
    gateway = rng.choice([None, usable[0], usable[-1], rng.choice(usable)])
    gateway = None if gateway in members else gateway
    taken, reserved = {*members, gateway}, []
    for _item in range(rng.choice([0, 0, 1, 3])):
        low = rng.choice(usable)
        high = min(low + rng.choice([0, 0, 1, 5]), usable[-1])
        reserved.append(name(low) if low == high else f"{name(low)}-{name(high)}")
        taken.update(range(low, high + 1))
    low, high = sorted(rng.choices(usable, k=2))
    share, part = rng.choice(
        [
            ("all", set(usable)),
            ("upper_half", set(range(number(network[0]) + network.num_addresses // 2, number(network[-1])))),
            (f"{name(low)}-{name(high)}", set(range(low, high + 1))),
        ]
    )
    options = {
        "nodes": [{"name": name(ip), "address": name(ip), "prefix": network.prefixlen, "mtu": 0} for ip in members],
        "gateway": name(gateway) if gateway else "",
        "reserved": reserved,
        "share": share,
        "pods": rng.choice([0, 0, 1, 2, 7, 16, 40, 120]),
        "ipam": rng.choice(["whereabouts", "nv-ipam"]),
        "ipam_release": rng.choice(["26.4.1", "26.1.0", "25.10.0", "24.7.0"]),
    }
    return Case(network, options, part - taken)


def check_whereabouts(case: Case, plan: t.Mapping[str, t.Any]) -> None:
    given = hand_out(plan["ipam"])
    assert len(given) == len(set(given)) == plan["capacity"] >= case.options["pods"]
    assert set(given) == case.free
    assert (number(plan["range_start"]), number(plan["range_end"])) == (given[0], given[-1])


def check_nv_ipam(case: Case, plan: t.Mapping[str, t.Any]) -> None:
    count = len(case.options["nodes"])
    skips = not case.options["ipam_release"].startswith("2") or case.options["ipam_release"] >= "26"
    blocks = allocate_blocks(plan["pool"], count, skips)
    given = [ip for block in blocks for ip in block]
    assert len(given) == len(set(given)) == plan["capacity"] >= case.options["pods"]
    assert set(given) <= case.free
    assert min(map(len, blocks)) >= max(math.ceil(case.options["pods"] / count), 1)
    assert len(blocks) == count
    texts = ["{startIP}-{endIP}".format(**item) for item in plan["pool"]["exclusions"]]
    assert texts == range_texts(parse_ranges(texts, "pool")), "exclusions overlap or touch"
    everything = {ip for block in allocate_blocks(plan["pool"], 10**6, skips) for ip in block}
    assert everything <= case.free, "a further node would hand out what is not free"


def check_exclude(case: Case, plan: t.Mapping[str, t.Any]) -> None:
    cidrs = [ipaddress.ip_network(cidr) for cidr in plan["exclude"]]
    assert cidrs == sorted(cidrs)
    excluded = {ip for cidr in cidrs for ip in everything_in(cidr)}
    hosts = set(range(number(case.network[0]) + 1, number(case.network[-1])))
    allowed = hosts - excluded
    assert allowed <= case.free
    assert len(cidrs) == fewest(case.network, allowed)


def check_refusal(case: Case) -> None:
    """It was refused: then it must be impossible, for any size of block."""
    count, need = len(case.options["nodes"]), max(math.ceil(case.options["pods"] / len(case.options["nodes"])), 1)
    if len(case.free) < max(case.options["pods"], 1):
        return
    assert case.options["ipam"] == "nv-ipam"
    first, last = number(case.network[0]) + 1, number(case.network[-1]) - (case.network.version == 4)
    until = [0, *itertools.accumulate(ip in case.free for ip in range(first, last + 1))]
    for step in range(1, last - first + 2):
        blocks = [until[at + step] - until[at] for at in range(0, last - first + 2 - step, step)]
        if case.options["ipam_release"] >= "26":
            assert sum(free >= need for free in blocks) < count, f"blocks of {step} would do"
        else:
            assert len(blocks) < count or min(blocks[:count]) < need, f"blocks of {step} would do"


def test_3000_random_plans():
    rng = random.Random(20261121)
    planned = 0
    for _turn in range(3000):
        case = random_case(rng)
        try:
            plan = plan_subnet(**case.options)
        except FabricError:
            check_refusal(case)
            continue
        planned += 1
        check_exclude(case, plan)
        (check_whereabouts if case.options["ipam"] == "whereabouts" else check_nv_ipam)(case, plan)
    assert planned > 1000


def allocate_by_jumps(pool: t.Mapping[str, t.Any], count: int) -> t.List[int]:
    """nv-ipam from 26.1 on in a wide subnet: where the blocks begin. It jumps over an exclusion in whole blocks."""
    step, start = pool["perNodeBlockSize"], number(ipaddress.ip_network(pool["subnet"])[0]) + 1
    excluded = [(number(item["startIP"]), number(item["endIP"])) for item in pool["exclusions"]]
    starts: t.List[int] = []
    while len(starts) < count:
        around = [high for low, high in excluded if low <= start and start + step - 1 <= high]
        if around:
            start += max((around[0] + 1 - start) // step, 1) * step
        else:
            starts.append(start)
            start += step
    return starts


def test_1000_random_plans_in_an_ipv6_64():
    """Too wide to count through: the blocks must begin, and be as free, as the plan says."""
    rng = random.Random(64)
    network = ipaddress.ip_network("fd00:5::/64")
    base = number(network[0])
    for _turn in range(1000):
        members = [name(base + rng.choice([rng.randrange(1, 200), rng.randrange(1, 2**64 - 1)])) for _node in range(4)]
        low = base + rng.choice([rng.randrange(1, 500), rng.randrange(1, 2**52)])
        high = low + rng.choice([rng.randrange(2**8, 2**12), rng.randrange(2**30)])
        share = rng.choice(["all", "upper_half", f"{name(low)}-{name(high)}"])
        pods = rng.choice([0, 4, 17, 100])
        gateway = rng.choice(["", name(base + 1), name(low)])
        if len(set(members)) < 4 or gateway in members:
            continue
        options = {"nodes": nodes(*members, prefix=64), "gateway": gateway, "share": share, "pods": pods}
        plan = plan_subnet(ipam="nv-ipam", **options)
        taken = {number(address) for address in (*members, *([gateway] if gateway else []))}
        allowed_low, allowed_high = number(plan["range_start"]), number(plan["range_end"])
        step = plan["pool"]["perNodeBlockSize"]
        free = [
            max(min(start + step - 1, allowed_high) - max(start, allowed_low) + 1, 0)
            - sum(max(start, allowed_low) <= ip <= min(start + step - 1, allowed_high) for ip in taken)
            for start in allocate_by_jumps(plan["pool"], 4)
        ]
        assert sum(free) == plan["capacity"] >= pods
        assert min(free) >= max(math.ceil(pods / 4), 1)
        assert all(start + step - 1 - base < 2**53 for start in allocate_by_jumps(plan["pool"], 4))
