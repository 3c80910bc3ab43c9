# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the plan says of --limit."""

import pytest
from ansible_collections.ipu.fabric.plugins.module_utils._plan.limit import unknown_names
from ansible_collections.ipu.fabric.tests.unit.fixtures import site as sites

GROUPS = {"all": ["cp1", "w1", "w2", "db1"], "kube_node": ["w1", "w2"], "ungrouped": []}


@pytest.mark.parametrize(
    ("limit", "expected"),
    [
        ("", []),
        ("cp1,w2", []),
        ("kube_node:!w1", []),
        ("all,&kube_node", []),
        ("db1", []),
        ("w1,localhost", []),  # Ansible adds it to each inventory
        ("cp1, w3", ["w3"]),
        ("w9:!w8", ["w9", "w8"]),
        ("w*,x?", []),
        ("w[1:2]", []),
        ("~w[0-9]+", []),
        ("@site.retry", []),
    ],
)
def test_names_that_match_nothing(limit, expected):
    assert unknown_names(limit, GROUPS) == expected


def test_a_misspelt_host_is_named():
    found = sites.errors(sites.plan(sites.site(), inventory_groups=GROUPS, limit="cp1,w11", run_hosts=["cp1"]))
    assert found["limit"]["seen"] == "w11 (did you mean w1?)"


@pytest.mark.parametrize(
    ("hosts", "run", "refused"),
    [
        (sites.site(), ["w1"], True),
        (sites.site(), ["cp1", "w1"], False),
        (sites.finished(), ["w1"], False),
    ],
)
def test_a_cluster_begins_with_its_first_control_plane(hosts, run, refused):
    found = sites.errors(sites.plan(hosts, limit=",".join(run), inventory_groups=GROUPS, run_hosts=run))
    assert ("limit" in found) is refused


def test_a_cluster_of_others_is_there_already():
    found = sites.errors(sites.plan(sites.site(), manage_kubernetes=False, limit="w1", inventory_groups=GROUPS))
    assert "limit" not in found
