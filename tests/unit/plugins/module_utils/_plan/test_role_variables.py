"""Role variables are part of what is approved and compared, with as few words as there are changes."""

from __future__ import annotations

import copy

import pytest
from ansible_collections.ipu.fabric.plugins.module_utils._plan.approved import since
from ansible_collections.ipu.fabric.tests.unit.fixtures.site import plan, site


def given(**by_host):
    hosts = copy.deepcopy(site())
    for name, decided in by_host.items():
        hosts[name]["decided"] = decided
    return plan(hosts)


def moves(before, after):
    return [(each["host"], each["thing"], each["fields"]) for each in since(before, after)]


ALL = {name: {"rdma_host_mtu": "9000"} for name in site()}


@pytest.mark.parametrize(
    ("before", "after", "seen"),
    [
        ({}, {}, []),
        ({}, ALL, [("", "Variables of roles", [])]),
        (ALL, {**ALL, "w1": {"rdma_host_mtu": "1500"}}, [("w1", "Host", ["role_variables: absent before, "])]),
        (ALL, {name: {"rdma_host_mtu": "4200"} for name in ALL}, [("", "Variables of roles", ["rdma_host_mtu: 9000"])]),
        (ALL, {**ALL, "w1": {}}, [("w1", "Host", ["role_variables: absent before, rdma_host_mtu none now"])]),
    ],
)
def test_a_change_is_seen_once(before, after, seen):
    found = moves(given(**before), given(**after))
    assert [(host, thing) for host, thing, _fields in found] == [(host, thing) for host, thing, _fields in seen]
    for each, wanted in zip(found, seen):
        assert all(any(field.startswith(start) for field in each[2]) for start in wanted[2]), each


def test_a_site_without_them_has_no_such_part():
    assert "role_variables" not in plan(site())
    assert all("role_variables" not in host for host in plan(site())["hosts"].values())
