# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is left of former plans, who uses it, and which addresses whereabouts keeps for pods that are gone."""

from __future__ import annotations

import ipaddress
import json
import typing as t

import netaddr
import pytest
from ansible_collections.ipu.fabric.plugins.module_utils._common.result import FabricError
from ansible_collections.ipu.fabric.plugins.module_utils._network import address_sources, unplanned

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
