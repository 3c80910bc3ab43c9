# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What hosts said, out of the variables of a play."""

from __future__ import annotations

import pytest
from ansible_collections.ipu.fabric.plugins.filter.observations import members, observations, vipu_addresses

GROUPS = {"all": ["w1", "cp1", "db"], "kube_control_plane": ["cp1"], "kube_node": ["w1"], "rack1": ["w1"]}
VIPU = {"changed": False, "host": "vipu", "port": 8090, "address": "10.5.0.20", "version": "1", "source": "json"}


def test_members():
    assert members(GROUPS) == ["cp1", "w1"]


def test_answers_of_the_play():
    hostvars = {
        "cp1": {
            "__preflight_host": {"changed": False, "host": {"hostname": "cp1"}},
            "__preflight_rdma": {"rdma": {"links": []}},
            "__fabric_vipu": {"skipped": True, "skip_reason": "Conditional result was False"},
        },
        "w1": {"ip": "10.88.0.12", "__preflight_host": {"host": {"hostname": "w1"}}, "__fabric_vipu": VIPU},
    }
    assert observations(hostvars, GROUPS) == {
        "cp1": {
            "groups": ["kube_control_plane"],
            "address": "",
            "errors": [],
            "host": {"hostname": "cp1"},
            "rdma": {"links": []},
        },
        "w1": {
            "groups": ["kube_node", "rack1"],
            "address": "10.88.0.12",
            "errors": [],
            "host": {"hostname": "w1"},
            "vipu": {key: value for key, value in VIPU.items() if key != "changed"},
        },
    }


def test_hosts_outside_the_limit():
    hostvars = {
        "cp1": {},
        "w1": {
            "__preflight_host_others": {"results": [{"item": "cp1", "host": {"hostname": "cp1"}}]},
            "__preflight_rdma_others": {"results": [{"item": {"item": "cp1"}, "rdma": {"links": []}}]},
            "__fabric_vipu_others": {"results": [{"item": "cp1", **VIPU}]},
        },
    }
    seen = observations(hostvars, GROUPS)
    assert seen["cp1"]["host"] == {"hostname": "cp1"}
    assert seen["cp1"]["rdma"] == {"links": []}
    assert seen["cp1"]["vipu"]["address"] == "10.5.0.20"
    assert "host" not in seen["w1"]


@pytest.mark.parametrize(
    ("variable", "result", "error"),
    [
        (
            "__fabric_vipu",
            {"msg": "all", "what": "vipu did not answer.", "where": "vipu", "seen": "rc 1", "next_step": "Start it."},
            {
                "source": "vipu",
                "what": "vipu did not answer.",
                "where": "vipu",
                "seen": "rc 1",
                "next_step": "Start it.",
            },
        ),
        (
            "__fabric_vipu",
            {"unreachable": True, "msg": "No route to host"},
            {"source": "host", "seen": "No route to host", "where": "vipu_info"},
        ),
    ],
)
def test_failures_are_kept_for_the_plan(variable, result, error):
    seen = observations({"cp1": {variable: result}, "w1": {}}, GROUPS)["cp1"]["errors"]
    assert len(seen) == 1
    assert error.items() <= seen[0].items()


def test_vipu_addresses():
    entries = ["10.5.0.20:8090", "vipu.example:8090", {"host": "[fd00::20]", "serves": []}, {"port": 1}]
    assert vipu_addresses(entries) == ["10.5.0.20", "fd00::20"]
