"""Runs with --limit: hosts outside it are observed, and many at a time."""

import re

from ansible_collections.ipu.fabric.tests.unit.fixtures import site
from ansible_collections.ipu.fabric.tests.unit.fixtures.playbooks import play

HOSTS = ["w1", "w2", "w3", "w4"]
# Each waits until all have begun.
MEET = 'touch "$0"; for _try in $(seq 1200); do [ "$(ls w? | wc -l)" = 4 ] && exit; sleep 0.1; done; exit 1'


def test_a_module_runs_on_many_hosts_at_a_time(tmp_path):
    asks = {name: {"argv": ["sh", "-c", MEET, name], "chdir": str(tmp_path)} for name in HOSTS}
    ask = {"module": "ansible.builtin.command", "hosts": {**asks, "away": {"argv": ["true"]}}}
    tasks = [
        {"ipu.fabric.delegated_module": ask, "register": "asked", "run_once": True},
        {"ansible.builtin.copy": {"content": "{{ asked.hosts | to_json }}", "dest": str(tmp_path / "asked.json")}},
    ]
    away = {"ansible_connection": "ssh", "ansible_host": "127.0.0.1", "ansible_port": 9}
    groups = {"here": ["cp1"], "there": [*HOSTS, "away"]}
    plays = [{"hosts": "all", "gather_facts": False, "tasks": tasks}]
    run = play(tmp_path, plays, groups, {}, "--limit", "cp1", one_process=False, host_vars={"away": away})
    assert run.code == 0, run.text
    asked = run.read("asked.json")
    assert asked["away"]["unreachable"]
    assert "Connection refused" in asked["away"]["msg"]
    assert {name: asked[name]["rc"] for name in HOSTS} == dict.fromkeys(HOSTS, 0)


def test_another_host_is_not_asked_as_the_user_of_this_one(tmp_path):
    away = {"ansible_connection": "ssh", "ansible_host": "127.0.0.1", "ansible_port": 9}
    ask = {"module": "ansible.builtin.ping", "hosts": {"w1": {}, "w2": {}}}
    plays = [{"hosts": "cp1", "gather_facts": False, "tasks": [{"ipu.fabric.delegated_module": ask}]}]
    host_vars = {"cp1": {"ansible_user": "alice"}, "w1": away, "w2": {**away, "ansible_user": "bob"}}
    groups = {"kube_control_plane": ["cp1"], "kube_node": ["w1", "w2"]}
    run = play(tmp_path, plays, groups, {}, "-vvv", host_vars=host_vars, one_process=False)
    assert run.code == 0, run.text
    users = set(re.findall(r"CONNECTION FOR USER: (\w+)", run.text))
    assert users == {"None", "bob"}, run.text


def test_the_plan_of_one_host_covers_the_others(tmp_path):
    hosts = site.site()
    found = site.observed(hosts)
    found["cp1"]["meets"] = ["w2"]
    answers = {
        "host_info": {**found, "w2": {"unreachable": True, "msg": "Connection timed out", "meets": ["cp1"]}},
    }
    groups = {"kube_control_plane": ["cp1"], "kube_node": ["w1", "w2"]}
    run = play(tmp_path, "ipu.fabric.plan", groups, answers, "--limit", "w1", fabric_probe_ports=False)
    assert sorted(run.where("host_info")) == ["cp1", "w1", "w2"]
    # Without ipu_node it is the workers.
    assert sorted(call.host for call in run.calls if call.options.get("vipu") is not None) == ["w1", "w2"]
    plan = run.read("artifacts/plan.json")
    assert plan["hosts"]["cp1"]["node"] == "node11"
    [error] = [one for one in plan["findings"] if one["check"] == "unobserved"]
    assert error["hosts"] == ["w2"]
    assert "Connection timed out" in error["seen"]
