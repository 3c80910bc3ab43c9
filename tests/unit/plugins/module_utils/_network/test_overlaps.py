# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which addresses a pool or an IPAM configuration deals, and which two of them deal both."""

from __future__ import annotations

import json
import typing as t

import pytest
from ansible_collections.ipu.fabric.plugins.module_utils._kube.client import Cluster
from ansible_collections.ipu.fabric.plugins.module_utils._network import overlaps as dealers
from hypothesis import given
from hypothesis import strategies as st

Object = t.Dict[str, t.Any]
UPPER = {"type": "whereabouts", "range": "10.5.0.0/24", "range_start": "10.5.0.128", "exclude": ["10.5.0.140/31"]}
APPLIED = [{"manager": "ipu.fabric", "operation": "Apply"}]
RUNS = st.lists(st.tuples(st.integers(0, 60), st.integers(0, 9)), max_size=6)


def addresses(runs: t.Sequence[t.Tuple[int, int]]) -> dealers.Addresses:
    return dealers.union((4, [(first, first + more)]) for first, more in runs)


def members(found: dealers.Addresses) -> t.Set[int]:
    return {number for first, last in found.get(4, []) for number in range(first, last + 1)}


@given(RUNS, RUNS)
def test_shared_is_what_both_sets_hold(one: t.Any, other: t.Any) -> None:
    both = dealers.shared(addresses(one), addresses(other))
    assert members(both) == members(addresses(one)) & members(addresses(other))
    assert dealers.from_texts(dealers.texts(both)) == {version: runs for version, runs in both.items() if runs}


def test_families_never_meet() -> None:
    assert dealers.shared({4: [(1, 9)]}, {6: [(1, 9)]}) == {}


@pytest.mark.parametrize(
    ("spec", "ranges"),
    [
        ({"subnet": "10.5.0.0/29"}, ["10.5.0.1-10.5.0.6"]),
        ({"cidr": "10.5.0.0/30", "perNodeNetworkPrefix": 31}, ["10.5.0.1-10.5.0.2"]),
        ({"subnet": "10.5.0.0/31"}, ["10.5.0.0-10.5.0.1"]),
        ({"subnet": "fd00::/126"}, ["fd00::-fd00::3"]),
        (
            {"subnet": "10.5.0.0/29", "exclusions": [{"startIP": "10.5.0.0", "endIP": "10.5.0.3"}]},
            ["10.5.0.4-10.5.0.6"],
        ),
        ({"subnet": "10.5.0.0/29", "exclusions": [{"startIP": "10.5.0.0", "endIP": "10.5.0.9"}]}, []),
    ],
)
def test_pools(spec: Object, ranges: t.List[str]) -> None:
    assert dealers.texts(dealers.pool_addresses(spec)) == ranges


@pytest.mark.parametrize(
    ("ipam", "ranges", "stores"),
    [
        (UPPER, ["10.5.0.128-10.5.0.139", "10.5.0.142-10.5.0.254"], ["10.5.0.0/24"]),
        ({"type": "whereabouts", "range": "10.5.0.9-10.5.0.11/24"}, ["10.5.0.9-10.5.0.11"], ["10.5.0.0/24"]),
        (
            {
                "type": "whereabouts",
                "ipRanges": [{"range": "10.5.0.0/30"}, {"range": "fd00::/126"}],
                "network_name": "a",
            },
            ["10.5.0.1-10.5.0.2", "fd00::1-fd00::2"],
            ["a 10.5.0.0/30", "a fd00::/126"],
        ),
        ({"type": "host-local", "subnet": "10.5.0.0/29", "rangeEnd": "10.5.0.4"}, ["10.5.0.1-10.5.0.4"], []),
        (
            {
                "type": "host-local",
                "ranges": [[{"subnet": "10.5.0.0/29", "rangeStart": "10.5.0.5"}], [{"subnet": "fd00::/126"}]],
            },
            ["10.5.0.5-10.5.0.6", "fd00::1-fd00::2"],
            [],
        ),
        ({"type": "nv-ipam", "poolName": "rail", "range": "10.5.0.0/24"}, [], []),
        ({"type": "static", "addresses": [{"address": "10.5.0.9/24"}]}, [], []),
        ({}, [], []),
    ],
)
def test_ipams(ipam: Object, ranges: t.List[str], stores: t.List[str]) -> None:
    assert dealers.texts(dealers.range_addresses(dealers.ranges(ipam))) == ranges
    assert dealers.stores(ipam) == stores


@pytest.mark.parametrize(
    ("network", "ranges", "pools"),
    [
        (
            {"ipam": {"type": "nv-ipam", "poolName": "a,b"}, "pools": [{"name": "a", "subnet": "10.5.0.0/30"}]},
            ["10.5.0.1-10.5.0.2"],
            {("IPPool", "a"), ("IPPool", "b")},
        ),
        ({"pool": {"name": "a", "subnet": "10.5.0.0/30"}}, ["10.5.0.1-10.5.0.2"], {("IPPool", "a")}),
        ({"ipam": {"type": "nv-ipam", "poolName": "a", "poolType": "cidrpool"}}, [], {("CIDRPool", "a")}),
        ({"ipam": UPPER}, ["10.5.0.128-10.5.0.139", "10.5.0.142-10.5.0.254"], set()),
        (
            {
                "ipam": {"type": "spiderpool"},
                "subnets": [{"cidr": "10.5.0.0/24", "range_start": "10.5.0.250", "exclude": ["10.5.0.252/32"]}],
            },
            ["10.5.0.250-10.5.0.251", "10.5.0.253-10.5.0.254"],
            set(),
        ),
        ({"name": "rail", "subnet": {}, "pool": None}, [], set()),
    ],
)
def test_planned(network: Object, ranges: t.List[str], pools: t.Set[t.Tuple[str, str]]) -> None:
    assert dealers.texts(dealers.planned_addresses(network)) == ranges
    assert dealers.planned_pools(network) == pools


@pytest.mark.parametrize(
    ("managers", "ours"),
    [
        (APPLIED, True),
        ([{"manager": "kubectl", "operation": "Apply"}, *APPLIED], True),
        ([{"manager": "ipu.fabric", "operation": "Update"}], False),
        ([{"manager": "kubectl-edit", "operation": "Update"}], False),
        (None, False),
    ],
)
def test_who_made_it(managers: t.Any, ours: bool) -> None:
    assert dealers.is_ours({"metadata": {"name": "a", "managedFields": managers}}) is ours


@pytest.mark.parametrize(
    ("found", "text"),
    [({4: [(1, 1)]}, "the address 0.0.0.1"), ({4: [(1, 2), (9, 9)]}, "3 addresses, 0.0.0.1 to 0.0.0.9")],
)
def test_told(found: dealers.Addresses, text: str) -> None:
    assert dealers.told(found) == text


class Lists(Cluster):
    """Answers with lists of objects."""

    def __init__(self, **lists: t.Sequence[Object]) -> None:
        super().__init__(None)
        self.lists = lists

    def get(self, path: str, **query: t.Any) -> t.Optional[Object]:
        return {"items": self.lists.get(path.rpartition("/")[2].replace("-", "_"), [])}


def test_everything_that_deals_and_nothing_that_does_not() -> None:
    def attachment(name: str, config: t.Any, owner: str = "") -> Object:
        owners = [{"kind": "MacvlanNetwork", "name": owner}] if owner else []
        metadata = {"name": name, "namespace": "jobs", "ownerReferences": owners}
        return {"metadata": metadata, "spec": {"config": config if isinstance(config, str) else json.dumps(config)}}

    pool = {"metadata": {"name": "rail", "namespace": "operator", "managedFields": APPLIED}}
    api = Lists(
        macvlannetworks=[{"metadata": {"name": "ours", "managedFields": APPLIED}}, {"metadata": {"name": "theirs"}}],
        ippools=[{**pool, "spec": {"subnet": "10.5.0.0/30"}}, {**pool, "spec": {"subnet": "broken"}}],
        cidrpools=[{"metadata": {"name": "blocks", "namespace": "operator"}, "spec": {"cidr": "10.6.0.0/30"}}],
        network_attachment_definitions=[
            attachment("one", {"ipam": UPPER}, "ours"),
            attachment("two", {"plugins": [{"type": "tuning"}, {"ipam": {**UPPER, "type": "host-local"}}]}, "theirs"),
            attachment("three", {"plugins": [{"ipam": {"type": "host-local", "subnet": "10.7.0.0/30"}}]}, "theirs"),
            attachment("four", {"ipam": {"type": "nv-ipam", "poolName": "rail"}}),
            attachment("five", "{broken"),
            attachment("six", {"ipam": {"type": "whereabouts", "range": "broken"}}),
        ],
    )
    assert [(found["what"], found["ours"], found["ranges"]) for found in dealers.dealers(api)] == [
        ("IPPool operator/rail", True, ["10.5.0.1-10.5.0.2"]),
        ("CIDRPool operator/blocks", False, ["10.6.0.1-10.6.0.2"]),
        ("NetworkAttachmentDefinition jobs/one", True, ["10.5.0.128-10.5.0.139", "10.5.0.142-10.5.0.254"]),
        ("NetworkAttachmentDefinition jobs/three", False, ["10.7.0.1-10.7.0.2"]),
    ]
