# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs with --limit: hosts outside it are observed, and many at a time."""

from __future__ import annotations

from ansible_collections.ipu.fabric.tests.unit.fixtures import site
from ansible_collections.ipu.fabric.tests.unit.fixtures.playbooks import play

HOSTS = ["w1", "w2", "w3", "w4"]
ASK = {
    "module": "ansible.builtin.command",
    "hosts": {name: {"argv": ["sleep", "6"]} for name in HOSTS} | {"away": {"argv": ["true"]}},
}
PLAY = [
    {
        "hosts": "all",
        "gather_facts": False,
        "tasks": [
            {"ipu.fabric.delegated_module": ASK, "register": "asked", "run_once": True},
            {"ansible.builtin.copy": {"content": "{{ asked.hosts | to_json }}", "dest": "asked.json"}},
        ],
    }
]


def test_a_module_runs_on_many_hosts_at_a_time(tmp_path):
    away = {"ansible_connection": "ssh", "ansible_host": "127.0.0.1", "ansible_port": 9}
    groups = {"here": ["cp1"], "there": [*HOSTS, "away"]}
    run = play(tmp_path, PLAY, groups, {}, "--limit", "cp1", host_vars={"away": away})
    assert run.code == 0, run.text
    asked = run.read("asked.json")
    assert asked["away"]["unreachable"]
    assert "Connection refused" in asked["away"]["msg"]
    begin, end = ([asked[name][key] for name in HOSTS] for key in ("start", "end"))
    assert max(begin) < min(end)


def test_the_plan_of_one_host_covers_the_others(tmp_path):
    hosts = site.site()
    found = {name: {"host": seen["host"], "seconds": 4} for name, seen in hosts.items()}
    answers = {
        "host_info": {**found, "w2": {"unreachable": True, "msg": "Connection timed out", "seconds": 4}},
        "rdma_info": {name: {"rdma": seen["rdma"]} for name, seen in hosts.items()},
        "vipu_info": {name: seen["vipu"] for name, seen in hosts.items()},
    }
    groups = {"kube_control_plane": ["cp1"], "kube_node": ["w1", "w2"]}
    run = play(tmp_path, "ipu.fabric.plan", groups, answers, "--limit", "w1", fabric_probe_ports=False)
    asked = {call.host: call for call in run.calls if call.module == "host_info"}
    assert sorted(asked) == ["cp1", "w1", "w2"]
    assert asked["cp1"].begin < asked["w2"].end
    assert asked["w2"].begin < asked["cp1"].end
    assert sorted(run.where("vipu_info")) == ["w1"]  # without ipu_node it is the workers; w2 can't be asked
    assert run.where("rdma_info", routes_to=["10.5.0.20"]) == ["w1"]
    plan = run.read("artifacts/plan.json")
    assert plan["hosts"]["cp1"]["node"] == "node11"
    [error] = [one for one in plan["findings"] if one["check"] == "unobserved"]
    assert error["hosts"] == ["w2"]
    assert "Connection timed out" in error["seen"]
