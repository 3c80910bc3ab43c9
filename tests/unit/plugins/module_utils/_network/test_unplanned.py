"""What is left of former plans, who uses it, and which addresses whereabouts keeps for pods that are gone."""

from __future__ import annotations

import ipaddress
import json
import types
import typing as t

import netaddr
import pytest
from ansible_collections.ipu.fabric.plugins.module_utils._common.result import FabricError
from ansible_collections.ipu.fabric.plugins.module_utils._ipam import leaks
from ansible_collections.ipu.fabric.plugins.module_utils._network import address_sources, unplanned
from ansible_collections.ipu.fabric.tests.unit.fixtures.objects import Lists

Object = t.Dict[str, t.Any]
KEY = "k8s.v1.cni.cncf.io/networks"
APPLIED = [{"manager": "ipu.fabric", "operation": "Apply"}]
RANGE = {"type": "whereabouts", "range": "10.5.0.0/24"}
CIDRS = {ipaddress.ip_network("10.5.0.0/24"), ipaddress.ip_network("fd00:5::/64")}


def macvlan(name: str = "old", ipam: t.Any = None, ours: bool = True) -> Object:
    text = ipam if isinstance(ipam, str) else json.dumps(RANGE if ipam is None else ipam)
    spec = {"networkNamespace": "jobs", "master": "eth1", "mode": "bridge", "mtu": 1500, "ipam": text}
    metadata = {"name": name, "managedFields": APPLIED if ours else []}
    return {"kind": "MacvlanNetwork", "metadata": metadata, "spec": spec}


def pool(name: str = "old", namespace: str = "operator", ours: bool = True, kind: str = "IPPool") -> Object:
    metadata = {"name": name, "namespace": namespace, "managedFields": APPLIED if ours else []}
    return {"kind": kind, "metadata": metadata, "spec": {"subnet": "10.5.0.0/24"}}


def pod(name: str, networks: str, namespace: str = "jobs") -> Object:
    return {"metadata": {"name": name, "namespace": namespace, "annotations": {KEY: networks}}}


def left(*objects: Object, users: t.Optional[t.Dict[str, t.List[str]]] = None) -> unplanned.Unplanned:
    networks = [obj for obj in objects if obj["kind"] == "MacvlanNetwork"]
    return unplanned.Unplanned(networks, [], [obj for obj in objects if obj not in networks], users or {}, [], [])


def test_only_ours_that_is_not_planned_is_found() -> None:
    planned = [{"name": "rail", "ipam": {"type": "nv-ipam", "poolName": "rail"}, "pools": [{"name": "rail"}]}]
    networks = [macvlan("rail"), macvlan("old"), macvlan("foreign", ours=False)]
    assert [each["metadata"]["name"] for each in unplanned.unplanned_networks(networks, planned)] == ["old"]
    pools = [
        pool("rail"),
        pool("rail", kind="CIDRPool"),
        pool("rail", "elsewhere"),
        pool("old"),
        pool("foreign", ours=False),
    ]
    assert unplanned.unplanned_pools(pools, planned, "operator") == pools[1:4]


def test_what_others_made_and_is_not_planned() -> None:
    planned = [{"name": "rail", "ipam": {"type": "nv-ipam", "poolName": "rail"}, "pools": [{"name": "rail"}]}]
    made = [("IPPool", "rail", False), ("IPPool", "lab", False), ("IPPool", "old", True), ("CIDRPool", "rail", False)]
    sources = [
        address_sources.address_source(pool(name, kind=kind), ours, "nv-ipam", netaddr.IPSet(), [])
        for kind, name, ours in made
    ]
    assert unplanned.others_of(sources * 2, planned) == ["IPPool operator/lab", "CIDRPool operator/rail"]


OWNED = [{"kind": "MacvlanNetwork", "name": "old"}]
CONFIG = {"type": "macvlan", "master": "eth1", "mode": "bridge", "mtu": 1500, "ipam": RANGE}


@pytest.mark.parametrize(
    ("place", "owners", "config", "along"),
    [
        (("jobs", "old"), OWNED, CONFIG, True),
        (("former", "old"), OWNED, {}, True),
        (("jobs", "old"), [{"kind": "MacvlanNetwork", "name": "rail"}], CONFIG, False),
        (("jobs", "old"), [{"kind": "SpiderMultusConfig", "name": "old"}], CONFIG, False),
        (("jobs", "old"), [], CONFIG, True),
        (("default", "old"), [], CONFIG, False),
        (("jobs", "old"), [], {**CONFIG, "master": "eth2"}, False),
    ],
)
def test_attachments_that_go_along(
    place: t.Tuple[str, str], owners: t.List[Object], config: Object, along: bool
) -> None:
    metadata = {"namespace": place[0], "name": place[1], "ownerReferences": owners}
    attachment = {"metadata": metadata, "spec": {"config": json.dumps(config)}}
    assert unplanned.belongs_to(attachment, [unplanned.attachment_of(macvlan())]) is along


@pytest.mark.parametrize(
    ("found", "network", "text"),
    [
        (macvlan(), {"ipam": {**RANGE, "range_start": "10.5.0.200"}}, "MacvlanNetwork old shares 55 addresses"),
        (macvlan(), {"ipam": {**RANGE, "range": "10.6.0.0/24"}}, ""),
        (macvlan(ipam="{broken"), {"ipam": RANGE}, ""),
        (macvlan(ipam={"type": "whereabouts", "range": "broken"}), {"ipam": RANGE}, ""),
        (macvlan(ipam={"type": "nv-ipam", "poolName": "old"}), {"ipam": RANGE}, ""),
        (pool(), {"ipam": RANGE}, "IPPool operator/old shares 254 addresses, 10.5.0.1 to 10.5.0.254, with network new"),
        (pool(), {"pools": [{"name": "new", "subnet": "10.5.0.0/29"}]}, "shares 6 addresses"),
    ],
)
def test_conflicts(found: Object, network: Object, text: str) -> None:
    seen = unplanned.find_conflicts(left(found), [{"name": "new", **network}])
    assert text in "; ".join(seen)
    assert bool(seen) == bool(text)


@pytest.mark.parametrize(
    ("item", "used"),
    [
        (pod("a", "rail, old@net7"), ["jobs/old"]),
        (pod("a", "jobs/old", "default"), ["jobs/old"]),
        (pod("a", "old", "default"), []),
        (pod("a", '[{"name": "rail"}, {"name": "old"}]'), ["jobs/old"]),
        (pod("a", '[{"name": "rail", "cni-args": {"poolNames": ["old"]}}]'), ["IPPool old"]),
        (pod("a", '[{"name": "rail", "cni-args": {"poolNames": ["old"], "poolType": "cidrpool"}}]'), []),
        (pod("a", '[{"name": "rail", "cni-args": null}, 1]'), []),
        (pod("a", "[broken"), []),
        ({"metadata": {"name": "a", "namespace": "jobs"}}, []),
    ],
)
def test_users(item: Object, used: t.List[str]) -> None:
    found = unplanned.find_users([item], {("jobs", "old")}, {("IPPool", "old")})
    assert found == ({f"{item['metadata']['namespace']}/a": used} if used else {})


def test_many_users_are_not_all_named() -> None:
    with pytest.raises(FabricError, match=r"23 pods use them: .*jobs/p10 \(jobs/old\).* and 3 more") as error:
        unplanned.refuse_users(left(macvlan(), users={f"jobs/p{n}": ["jobs/old"] for n in range(23)}))
    assert "MacvlanNetwork old" in error.value.where
    unplanned.refuse_users(left(macvlan()))


def test_what_whereabouts_keeps_for_pods_that_are_gone() -> None:
    def kept(name: str, cidr: str, **held: str) -> Object:
        allocations = {offset.strip("_"): {"podref": pod} for offset, pod in held.items()}
        metadata = {"name": name, "namespace": "kube-system", "resourceVersion": "7"}
        return {"metadata": metadata, "spec": {"range": cidr, "allocations": allocations}}

    def reservation(name: str, podref: str) -> Object:
        return {"metadata": {"name": name, "namespace": "kube-system"}, "spec": {"podref": podref}}

    pools = [
        kept("a", "10.5.0.0/24", _5="jobs/alive", _6="jobs/gone", _7=""),
        kept("b", "fd00:5::/64", _9="jobs/gone"),
        kept("c", "10.6.0.0/24", _8="jobs/gone"),
        kept("d", "10.5.0.0/24"),
    ]
    reservations = [
        reservation("10.5.0.5", "jobs/alive"),
        reservation("net-10.5.0.6", "jobs/gone"),
        reservation("10.6.0.8", "jobs/gone"),
    ]
    found = unplanned.stale_addresses(pools, reservations, CIDRS, {"jobs/alive"})
    assert [(each.verb, each.address, each.path.rpartition("/")[2]) for each in found] == [
        ("patch", "10.5.0.6", "a"),
        ("patch", "fd00:5::9", "b"),
        ("delete", "10.5.0.6", "net-10.5.0.6"),
    ]
    assert found[0].body == {"metadata": {"resourceVersion": "7"}, "spec": {"allocations": {"6": None}}}


NODES = ("w1", "10.5.0.1", "10.5.0.8"), ("w2", "10.5.0.9", "10.5.0.16")


def live_pool(**changes: t.Any) -> Object:
    allocations = [{"nodeName": node, "startIP": start, "endIP": end} for node, start, end in NODES]
    spec = {"subnet": "10.5.0.0/24", "perNodeBlockSize": 8}
    return {**pool("rail"), "spec": spec, "status": {"allocations": allocations}, **changes}


def wanted(**changes: t.Any) -> t.List[Object]:
    spec = {"name": "rail", "subnet": "10.5.0.0/24", "perNodeBlockSize": 8, "exclusions": [], **changes}
    return [{"name": "rail", "ipam": {"type": "nv-ipam", "poolName": "rail"}, "pools": [spec]}]


def holder(*addresses: str) -> t.Dict[str, leaks.Pod]:
    return {"jobs/trainer": leaks.Pod("u", "w2", True, addresses, addresses)}


def test_blocks_in_use_are_not_given_to_other_nodes() -> None:
    """Real nv-ipam gives all blocks of another size up: w1 gets 10.5.0.1 to 16, and with it an address that w2 uses."""
    lost = unplanned.blocks_given_up([live_pool()], wanted(perNodeBlockSize=16), "operator")
    with pytest.raises(FabricError) as caught:
        unplanned.refuse_blocks_in_use(lost, holder("10.5.0.9", "10.5.0.9", "10.244.0.7"))
    assert caught.value.code == "unsafe"
    text = str(caught.value)
    for part in (
        "IPPool operator/rail: 10.5.0.0/24 in blocks of 8 now, 10.5.0.0/24 in blocks of 16 planned",
        "lose their block: 2 of 2",
        "in use: jobs/trainer (10.5.0.9)",
        "fabric_pods_per_node",
    ):
        assert part in text


@pytest.mark.parametrize(
    ("items", "planned", "held"),
    [
        ([live_pool()], wanted(), "10.5.0.9"),  # as it is
        ([live_pool()], wanted(gateway="10.5.0.254"), "10.5.0.9"),
        ([live_pool()], wanted(perNodeBlockSize=16), "10.5.0.200"),  # of no block
        ([live_pool(status={})], wanted(perNodeBlockSize=16), "10.5.0.9"),  # nothing was given to nodes
        ([live_pool()], wanted(subnet="10.6.0.0/24"), "10.5.0.9"),  # nobody gets them again
        (
            [live_pool()],
            wanted(perNodeBlockSize=16, exclusions=[{"startIP": "10.5.0.0", "endIP": "10.5.0.127"}]),
            "10.5.0.9",  # nor these
        ),
        ([live_pool(kind="CIDRPool")], wanted(perNodeBlockSize=16), "10.5.0.9"),
        ([{**live_pool(), **pool("rail", "elsewhere")}], wanted(perNodeBlockSize=16), "10.5.0.9"),
        ([live_pool()], [{"name": "rail", "ipam": RANGE, "pools": [{"name": "rail"}]}], "10.5.0.9"),  # no spec at all
    ],
)
def test_a_pool_may_change_where_no_address_is_given_twice(
    items: t.List[Object], planned: t.List[Object], held: str
) -> None:
    unplanned.refuse_blocks_in_use(unplanned.blocks_given_up(items, planned, "operator"), holder(held))


@pytest.mark.parametrize("unplanned_ones", ["check", "remove"])
def test_the_module_refuses_before_it_removes_anything(monkeypatch: pytest.MonkeyPatch, unplanned_ones: str) -> None:
    status = json.dumps([{"name": "jobs/rail", "ips": ["10.5.0.9"]}])
    running = pod("trainer", "rail")
    running["metadata"]["annotations"]["k8s.v1.cni.cncf.io/network-status"] = status
    api = Lists(ippools=[live_pool(), pool("old")], pods=[running])
    monkeypatch.setattr(unplanned, "connect", lambda _module: api)
    params = {"networks": wanted(perNodeBlockSize=16), "unplanned": unplanned_ones, "pool_namespace": "operator"}
    module = types.SimpleNamespace(params={**params, "timeout": 1}, check_mode=True)
    with pytest.raises(FabricError, match=r"jobs/trainer \(10.5.0.9\)"):
        unplanned.prune_networks(t.cast(t.Any, module))


UPPER = [{"startIP": "10.5.0.0", "endIP": "10.5.0.127"}]


@pytest.mark.parametrize(
    ("networks", "pools", "planned", "told"),
    [
        ([], [live_pool()], wanted(exclusions=UPPER), ["jobs/trainer (10.5.0.9)"]),
        ([], [live_pool()], wanted(), []),
        ([], [live_pool()], wanted(exclusions=[{"startIP": "10.5.0.1", "endIP": "10.5.0.8"}]), []),  # of no pod
        ([macvlan("rail")], [], [{"name": "rail", "ipam": {**RANGE, "range_start": "10.5.0.128"}}], ["(10.5.0.9)"]),
        ([macvlan("rail")], [], [{"name": "rail", "ipam": {**RANGE, "exclude": ["10.5.0.9/32"]}}], ["(10.5.0.9)"]),
        ([macvlan("other")], [], [{"name": "rail", "ipam": {**RANGE, "range_start": "10.5.0.128"}}], []),
        ([macvlan("rail", "no JSON")], [], [{"name": "rail", "ipam": RANGE}], []),
    ],
)
def test_pods_keep_addresses_that_are_no_longer_planned(
    monkeypatch: pytest.MonkeyPatch,
    networks: t.List[Object],
    pools: t.List[Object],
    planned: t.List[Object],
    told: t.List[str],
) -> None:
    """A changed share: the proof alone saw it."""
    status = json.dumps([{"name": "jobs/rail", "ips": ["10.5.0.9"]}])
    running = pod("trainer", "rail")
    running["metadata"]["annotations"]["k8s.v1.cni.cncf.io/network-status"] = status
    api = Lists(macvlannetworks=networks, ippools=pools, pods=[running])
    monkeypatch.setattr(unplanned, "connect", lambda _module: api)
    warned: t.List[str] = []
    params = {"networks": planned, "unplanned": "remove", "pool_namespace": "operator", "timeout": 1}
    module = types.SimpleNamespace(params=params, check_mode=True, warn=warned.append)
    unplanned.prune_networks(t.cast(t.Any, module))
    assert len(warned) == len(told)
    for text, part in zip(warned, told):
        assert part in text
        assert "restart these pods" in text
