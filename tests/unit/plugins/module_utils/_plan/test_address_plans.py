"""The address plans of whole sites, of several rails and families, against what the two IPAMs would really hand out."""

from __future__ import annotations

import ipaddress
import itertools
import random
import time
import typing as t

import pytest
from ansible_collections.ipu.fabric.plugins.module_utils._common.findings import Findings
from ansible_collections.ipu.fabric.plugins.module_utils._network.address_sets import planned_addresses
from ansible_collections.ipu.fabric.plugins.module_utils._plan.host_links import check_own_node, choose_links
from ansible_collections.ipu.fabric.plugins.module_utils._plan.hosts import PlacedHost
from ansible_collections.ipu.fabric.plugins.module_utils._plan.macvlan_masters import name_masters
from ansible_collections.ipu.fabric.plugins.module_utils._plan.network_spec import read_networks
from ansible_collections.ipu.fabric.plugins.module_utils._plan.networks import (
    NetworkRules,
    plan_networks,
    taken_addresses,
)
from ansible_collections.ipu.fabric.tests.unit.fixtures import site as sites
from ansible_collections.ipu.fabric.tests.unit.fixtures.ipams import (
    allocate_blocks,
    everything_in,
    hand_out,
    name,
    number,
)

PODS = (1, 2, 4, 8)
RELEASES = ("26.4.1", "26.1.0", "25.10.0", "24.10.1")


class Site(t.NamedTuple):
    """Hosts with a NIC for each rail, and what the site wrote."""

    hosts: t.Dict[str, t.Dict[str, t.Any]]
    networks: t.List[t.Dict[str, t.Any]]
    vipu: str
    ipam: str
    release: str
    pods: int
    never: t.Set[int]  # addresses that no pod of any network may get


def subnets_of_a_rail(rng: random.Random, rail: int) -> t.List[t.Any]:
    """One of each family. One rail in a while has that of another."""
    rail = rail if rng.random() < 0.97 else 0
    v4, v6 = (width - rng.choice([4, 5, 6, 7]) for width in (32, 128))
    return [ipaddress.ip_network(f"10.5.{rail}.0/{v4}"), ipaddress.ip_network(f"fd00:{rail:x}::/{v6}")]


def pick(rng: random.Random, subnet: t.Any) -> str:
    return name(rng.randrange(number(subnet[1]), number(subnet[-1])))


def random_rail(rng: random.Random, rail: int, hosts: t.Dict[str, t.Dict[str, t.Any]]) -> t.Dict[str, t.Any]:
    """A network, and its NIC on every host."""
    subnets = subnets_of_a_rail(rng, rail)
    for place, host in enumerate(hosts.values(), rng.choice([1, 2, 9])):
        entries = [{"address": name(number(net[0]) + place), "prefix": net.prefixlen} for net in subnets]
        host["rdma"]["links"].append(
            {
                **dict.fromkeys(("device", "pci", "mac", "driver"), "x"),
                "port": 1,
                "netdev": f"rail{rail}",
                "kind": "physical",
                "link_layer": "Ethernet",
                "state": "ACTIVE",
                "up": True,
                "lower": [],
                "rdma_netdevs": [f"rail{rail}"],
                "mtu": 9000,
                "addresses": entries,
                "altnames": [],
            }
        )
    families = rng.choice([[], ["ipv4"], ["ipv6"], ["ipv4", "ipv6"], ["ipv6", "ipv4"]])
    used = [subnet for subnet in subnets if f"ipv{subnet.version}" in (families or ["ipv4"])]
    gateways = [pick(rng, subnet) for subnet in used if rng.random() < 0.5]
    reserved = [pick(rng, rng.choice(subnets)) for _item in range(rng.choice([0, 0, 1, 4]))]
    network = {
        "name": f"rail-{rail}",
        "select": {"name": f"rail{rail}"},
        "families": families,
        "reserved": reserved,
        "gateway": ",".join(gateways),
        "share": rng.choice(["all", "all", "upper_half"]),
    }
    if rng.random() < 0.2 and len(hosts) > 1:
        network["hosts"] = [next(iter(hosts))]
    return network


def random_site(rng: random.Random) -> Site:
    names = [f"w{place}" for place in range(rng.choice([1, 2, 3, 5]))]
    hosts: t.Dict[str, t.Dict[str, t.Any]] = {one: {"groups": [], "rdma": {"links": [], "routes": {}}} for one in names}
    networks = [random_rail(rng, rail, hosts) for rail in range(rng.choice([1, 2, 2, 3, 4]))]
    vipu = pick(rng, ipaddress.ip_network("10.5.0.0/28"))
    way_out = pick(rng, ipaddress.ip_network("10.5.0.0/28"))
    hosts[names[0]]["rdma"]["routes"][vipu] = {"dev": "rail0", "source": "", "gateway": way_out}
    links = [link for host in hosts.values() for link in host["rdma"]["links"]]
    never = [vipu, way_out, *(entry["address"] for link in links for entry in link["addresses"])]
    return Site(
        hosts, networks, vipu, rng.choice(["whereabouts", "nv-ipam"]), rng.choice(RELEASES), rng.choice(PODS),
        set(map(number, never)),
    )  # fmt: skip


def plan(site: Site) -> t.Tuple[t.List[t.Dict[str, t.Any]], Findings]:
    findings = Findings()
    hosts = {name: PlacedHost(name, seen, ["worker"], name, "") for name, seen in site.hosts.items()}
    vipu_of = dict.fromkeys(hosts, site.vipu)
    chosen = choose_links(read_networks(site.networks, findings), hosts, vipu_of, True, findings)
    for network in chosen:
        check_own_node(network, findings)
    rules = NetworkRules(
        releases={
            "stack": "network_operator",
            "ipam": site.ipam,
            "network_operator": site.release,
            "features": {"whereabouts_ranges": True},
        },
        pods_per_node=site.pods,
        require_rdma=True,
        taken=taken_addresses(hosts, vipu_of),
        avoid={},
        avoid_stays=False,
        cluster_size=len(hosts),
    )
    return plan_networks(name_masters(chosen, findings), rules, findings), findings


def given_by(site: Site, network: t.Dict[str, t.Any]) -> t.List[t.List[t.List[int]]]:
    """For each family, for each node, the addresses that its pods can get; whereabouts has one store for all nodes."""
    if site.ipam == "whereabouts":
        return [[hand_out(one)] for one in network["ipam"].get("ipRanges", [network["ipam"]])]
    assert network["ipam"]["poolName"] == ",".join(pool["name"] for pool in network["pools"])
    return [allocate_blocks(pool, len(network["hosts"]), site.release >= "26") for pool in network["pools"]]


def check_family(
    site: Site, written: t.Dict[str, t.Any], subnet: t.Dict[str, t.Any], blocks: t.List[t.List[int]], nodes: int
) -> None:
    own = [*written["reserved"], *filter(None, written["gateway"].split(","))]
    never = site.never | set(map(number, own))
    cidr = ipaddress.ip_network(subnet["cidr"])
    hosts = set(everything_in(cidr)) - {number(cidr[0]), number(cidr[-1])}
    given = set(itertools.chain.from_iterable(blocks))
    assert given <= hosts - never
    assert subnet["capacity"] == len(given) >= subnet["needed"] == site.pods * nodes
    if site.ipam == "nv-ipam":
        assert min(map(len, blocks)) >= site.pods
    elif written["share"] == "all":
        assert given == hosts - never


def test_no_address_twice_and_none_that_is_taken():
    """1,000 sites. Rails that overlap are refused; of all others every address is counted."""
    rng = random.Random(20261122)
    whole = refused = subnets = 0
    for _turn in range(1000):
        site = random_site(rng)
        planned, found = plan(site)
        cidrs = [ipaddress.ip_network(subnet["cidr"]) for network in planned for subnet in network["subnets"]]
        overlaps = any(one.overlaps(other) for one, other in itertools.combinations(cidrs, 2))
        if found.errors:
            refused += 1
            assert {finding["check"] for finding in found.errors} <= {"subnet", "on-master"}
            same = any("same addresses" in finding["what"] for finding in found.errors)
            assert not overlaps or same or any("subnets that overlap" in finding["what"] for finding in found.errors)
            given = [planned_addresses(network) for network in planned if network["subnets"]]
            assert not same or any(one & other for one, other in itertools.combinations(given, 2))
            continue
        whole += 1
        assert not overlaps
        everything: t.List[int] = []
        for written, network in zip(site.networks, planned):
            families = given_by(site, network)
            assert len(families) == len(network["subnets"]) == max(len(written["families"]), 1)
            for subnet, blocks in zip(network["subnets"], families):
                check_family(site, written, subnet, blocks, len(network["hosts"]))
                everything += itertools.chain.from_iterable(blocks)
                subnets += 1
        assert len(everything) == len(set(everything))
        pools = [pool["name"] for network in planned for pool in network["pools"]]
        assert len(pools) == len(set(pools))
    assert whole > 300
    assert refused > 100
    assert subnets > 1000


@pytest.mark.parametrize("ipam", ["whereabouts", "nv-ipam"])
def test_1000_hosts_with_8_rails_take_less_than_three_seconds(ipam: str) -> None:
    """Every rail looks at the addresses of all rails."""
    hosts = {}
    for place in range(1000):
        hosts[f"w{place}"] = sites.host(place + 256, ["kube_node" if place else "kube_control_plane"])
        hosts[f"w{place}"]["rdma"]["links"] = [
            sites.link(f"rail{rail}", f"10.{50 + rail}.{place // 250}.{place % 250 + 1}", 16) for rail in range(8)
        ]
    networks = [{"name": f"rail-{rail}", "select": {"name": f"rail{rail}"}} for rail in range(8)]
    began = time.process_time()
    planned = sites.plan(hosts, networks=networks, ipam=ipam)
    assert time.process_time() - began < 3
    subnets = [network["subnet"] for network in planned["networks"]]
    assert [subnet["capacity"] >= subnet["needed"] == 8 * 999 for subnet in subnets] == [True] * 8
