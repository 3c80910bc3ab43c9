# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What hosts reported, out of the variables of a play."""

from __future__ import annotations

import json
import time

import pytest
from ansible_collections.ipu.fabric.plugins.module_utils._common.result import FabricError
from ansible_collections.ipu.fabric.plugins.plugin_utils._observations import (
    known_nodes,
    members,
    observations,
    vipu_addresses,
)

GROUPS = {"all": ["w1", "cp1", "db"], "kube_control_plane": ["cp1"], "kube_node": ["w1"], "rack1": ["w1"]}
RESULTS = {
    "host": ["preflight_host", "others_host"],
    "rdma": ["preflight_rdma", "others_rdma"],
    "vipu": ["my_vipu", "others_vipu"],
}
VIPU = {"changed": False, "host": "vipu", "port": 8090, "address": "10.5.0.20", "version": "1", "source": "json"}


def test_members():
    assert members(GROUPS) == ["cp1", "w1"]


def test_answers_of_the_play():
    hostvars = {
        "cp1": {
            "preflight_host": {"changed": False, "host": {"hostname": "cp1"}},
            "preflight_rdma": {"rdma": {"links": []}},
            "my_vipu": {"skipped": True, "skip_reason": "Conditional result was False"},
        },
        "w1": {"ip": "10.88.0.12", "preflight_host": {"host": {"hostname": "w1"}}, "my_vipu": VIPU},
    }
    assert observations(hostvars, GROUPS, RESULTS) == {
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
    """Every host of the play has what a task with run_once registered."""
    delegated = {
        "others_host": {"hosts": {"cp1": {"host": {"hostname": "cp1"}}}},
        "others_rdma": {"hosts": {"cp1": {"rdma": {"links": []}}}},
        "others_vipu": {"hosts": {"cp1": VIPU, "db": VIPU}},
    }
    groups = {**GROUPS, "kube_node": ["w1", "w2"]}
    seen = observations({"cp1": {}, "w1": delegated, "w2": delegated}, groups, RESULTS)
    assert seen["cp1"]["host"] == {"hostname": "cp1"}
    assert seen["cp1"]["rdma"] == {"links": []}
    assert seen["cp1"]["vipu"]["address"] == "10.5.0.20"
    assert "host" not in seen["w1"]
    delegated["others_host"] = {"hosts": {"cp1": {"unreachable": True, "msg": "No route to host"}}}
    errors = observations({"cp1": {}, "w1": delegated, "w2": delegated}, groups, RESULTS)["cp1"]["errors"]
    assert [error["seen"] for error in errors] == ["No route to host"]


@pytest.mark.parametrize(
    ("variable", "result", "error"),
    [
        (
            "my_vipu",
            {
                "msg": "all",
                "error": {
                    "code": "command-failed",
                    "what": "vipu did not answer.",
                    "where": "vipu",
                    "seen": "rc 1",
                    "next_step": "Start it.",
                    "transient": False,
                },
            },
            {
                "source": "vipu",
                "what": "vipu did not answer.",
                "where": "vipu",
                "seen": "rc 1",
                "next_step": "Start it.",
            },
        ),
        (
            "my_vipu",
            {"unreachable": True, "msg": "No route to host"},
            {"source": "host", "seen": "No route to host", "where": "vipu_info"},
        ),
    ],
)
def test_failures_are_kept_for_the_plan(variable, result, error):
    seen = observations({"cp1": {variable: result}, "w1": {}}, GROUPS, RESULTS)["cp1"]["errors"]
    assert len(seen) == 1
    assert error.items() <= seen[0].items()


def test_other_variables_are_not_read():
    hostvars = {"cp1": {"preflight_host": {"host": {"hostname": "cp1"}}, "other": VIPU}, "w1": {}}
    assert observations(hostvars, GROUPS, {"vipu": ["other"]})["cp1"].keys() == {"groups", "address", "errors", "vipu"}


def test_the_clock_is_compared_with_the_controllers(monkeypatch):
    monkeypatch.setattr(time, "time", lambda: 1010.0)
    clock = {"synchronized": True, "asked": 1000.0, "read": 1400.0}
    hostvars = {"cp1": {"preflight_host": {"host": {"time": clock}}}, "w1": {}}
    assert observations(hostvars, GROUPS, RESULTS)["cp1"]["host"]["time"] == {**clock, "offset": 390}


def test_vipu_addresses():
    entries = ["10.5.0.20:8090", "vipu.example:8090", {"host": "[fd00::20]", "serves": []}, {"port": 1}]
    assert vipu_addresses(entries) == ["10.5.0.20", "fd00::20"]


@pytest.mark.parametrize(("value", "reboot"), [(True, True), ("yes", True), ("false", None), (False, None)])
def test_hosts_that_may_be_rebooted(value, reboot):
    hostvars = {"cp1": {"rdma_host_reboot": value}, "w1": {}}
    found = observations(hostvars, GROUPS, {})
    assert [found[name].get("reboot") for name in ("cp1", "w1")] == [reboot, None]


def test_names_of_the_collections_variables():
    hostvars = {"cp1": {"fabric_netwroks": [], "fabric_gpu": True, "ip": "10.88.0.11"}, "w1": {"rack": "r1"}}
    collected = observations(hostvars, GROUPS, {})
    assert collected["cp1"]["variables"] == ["fabric_gpu", "fabric_netwroks"]
    assert "variables" not in collected["w1"]


@pytest.mark.parametrize("text", [None, "{", '{"hosts": null}'])
def test_nodes_are_known_by_the_inventory_without_a_plan(tmp_path, text):
    path = tmp_path / "plan.json"
    if text:
        path.write_text(text)
    hostvars = {
        "cp1": {"ip": "10.0.0.11", "found": {"node": "CP1"}},
        "w1": {"ip": "10.0.0.50", "found": {"node": "cp1"}},
    }
    found = known_nodes(hostvars, GROUPS, "found", str(path), "10.0.0.50", "10.0.0.11:6443")
    assert (found["nodes"], found["addresses"]) == ({"cp1": "cp1"}, {"cp1": ["10.0.0.11"]})
    assert "w1 says that it is cp1" in found["problems"]["w1"]


@pytest.mark.parametrize("fact", ["ip", "fabric_api_host", "kubernetes_extra_packages"])
def test_a_host_says_nothing_by_facts_that_the_inventory_says(tmp_path, fact):
    """Ansible would have them before the inventory's."""
    hostvars = {"cp1": {"found": {"node": "cp1"}}, "w1": {"ansible_facts": {"distribution": "Debian"}}}
    assert set(observations(hostvars, GROUPS, {})) == {"cp1", "w1"}
    hostvars["w1"]["ansible_facts"][fact] = "10.0.0.100"
    with pytest.raises(FabricError, match=rf"ansible_facts of w1\. Seen: {fact}"):
        observations(hostvars, GROUPS, {})
    with pytest.raises(FabricError, match="not facts"):
        known_nodes(hostvars, GROUPS, "found", str(tmp_path / "plan.json"), "", "")


def test_without_a_plan_nothing_begins_that_only_a_plan_can_say(tmp_path):
    """Neither is w1 the node x7, nor is there an address for what its kubelet asks for."""
    path = tmp_path / "plan.json"
    cp1 = {"found": {"node": "cp1"}}
    for w1, seen in (
        ({"ip": "10.0.0.21", "found": {"node": "x7"}}, "w1 says that it is x7, and is w1 by the inventory"),
        ({"found": {"node": "w1", "requested": True}}, "w1 needs a serving certificate"),
    ):
        hostvars = {"cp1": cp1, "w1": w1}
        path.unlink(missing_ok=True)
        with pytest.raises(FabricError, match=rf"plan\.json\. Seen: {seen}.*Run ipu\.fabric\.plan"):
            known_nodes(hostvars, GROUPS, "found", str(path), "", "")
        path.write_text(json.dumps({"hosts": {"w1": {"node": w1["found"]["node"], "address": "10.0.0.21"}}}))
        found = known_nodes(hostvars, GROUPS, "found", str(path), "", "")
        assert found["addresses"][w1["found"]["node"]] == ["10.0.0.21"]


def test_a_plan_that_doubts_a_host_does_not_say_which_node_it_is(tmp_path):
    finding = {"level": "error", "check": "host-identity", "hosts": ["w1"]}
    hosts = {"w1": {"node": "x7", "address": "10.0.0.5"}}
    hostvars = {"cp1": {"found": {"node": "cp1"}}, "w1": {"ip": "10.0.0.5", "found": {"node": "x7"}}}
    for findings, nodes in (([], {"cp1": "cp1", "w1": "x7"}), ([finding], {"cp1": "cp1"})):
        (tmp_path / "plan.json").write_text(json.dumps({"hosts": hosts, "findings": findings}))
        assert known_nodes(hostvars, GROUPS, "found", str(tmp_path / "plan.json"), "", "")["nodes"] == nodes


def test_no_certificate_of_a_kubelet_has_the_address_of_the_api(tmp_path):
    """Of the plan's endpoint and virtual address, or those that are set now."""
    hosts = {"cp1": {"node": "cp1", "address": "10.0.0.11"}, "w1": {"node": "w1", "address": "10.0.0.21"}}
    hostvars = {"cp1": {"found": {"node": "cp1"}}, "w1": {"found": {"node": "w1"}}}
    for taken in ("10.0.0.50", "10.0.0.51", "10.0.0.52", "10.0.0.53", "10.96.0.1"):
        hosts["w1"]["address"] = taken
        virtual = {"address": "10.0.0.52"}
        cluster = {"endpoint": "10.0.0.53:6443", "virtual_address": virtual, "service_cidr": "10.96.0.0/12"}
        (tmp_path / "plan.json").write_text(json.dumps({"hosts": hosts, "cluster": cluster}))
        found = known_nodes(hostvars, GROUPS, "found", str(tmp_path / "plan.json"), "10.0.0.50", "10.0.0.51")
        assert found["addresses"] == {"cp1": ["10.0.0.11"], "w1": []}
