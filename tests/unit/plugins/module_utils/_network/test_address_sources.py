"""Which addresses a pool or an IPAM configuration gives to pods, and which of them another one gives too."""

from __future__ import annotations

import json
import typing as t

import pytest
from ansible_collections.ipu.fabric.plugins.module_utils._ipam.ranges import parse_ranges, range_texts
from ansible_collections.ipu.fabric.plugins.module_utils._network import address_sets, address_sources
from ansible_collections.ipu.fabric.tests.unit.fixtures.objects import Lists

Object = t.Dict[str, t.Any]
UPPER = {"type": "whereabouts", "range": "10.5.0.0/24", "range_start": "10.5.0.128", "exclude": ["10.5.0.140/31"]}
APPLIED = [{"manager": "ipu.fabric", "operation": "Apply"}]


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
    assert range_texts(address_sets.pool_addresses(spec)) == ranges


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
    assert range_texts(address_sets.range_addresses(address_sets.read_ranges(ipam))) == ranges
    assert address_sets.stores(ipam) == stores


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
    assert range_texts(address_sets.planned_addresses(network)) == ranges
    assert address_sets.planned_pools(network) == pools


@pytest.mark.parametrize(
    ("found", "text"),
    [(["0.0.0.1"], "the address 0.0.0.1"), (["0.0.0.1-0.0.0.2", "0.0.0.9"], "3 addresses, 0.0.0.1 to 0.0.0.9")],
)
def test_describe_addresses(found: t.List[str], text: str) -> None:
    assert address_sets.describe_addresses(parse_ranges(found, "here")) == text


def test_every_source_of_addresses_and_nothing_else() -> None:
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
            attachment("seven", {"ipam": {"type": "static", "addresses": [{"address": "10.5.0.9/24"}]}}),
            attachment("eight", {"ipam": {"type": "static", "addresses": [{"address": "broken"}]}}),
            attachment("nine", {"ipam": {"type": "static"}}),
        ],
    )
    assert [(found["what"], found["ours"], found["ranges"]) for found in address_sources.address_sources(api)] == [
        ("IPPool operator/rail", True, ["10.5.0.1-10.5.0.2"]),
        ("CIDRPool operator/blocks", False, ["10.6.0.1-10.6.0.2"]),
        ("NetworkAttachmentDefinition jobs/one", True, ["10.5.0.128-10.5.0.139", "10.5.0.142-10.5.0.254"]),
        ("NetworkAttachmentDefinition jobs/three", False, ["10.7.0.1-10.7.0.2"]),
        ("NetworkAttachmentDefinition jobs/seven", False, ["10.5.0.9-10.5.0.9"]),
    ]
