"""What hosts reported, out of the variables of a play."""

import re
import time
from unittest.mock import ANY

import pytest
from ansible_collections.ipu.fabric.plugins.plugin_utils._observations import (
    members,
    observations,
)
from ansible_collections.ipu.fabric.tests.bench import sites
from ansible_collections.ipu.fabric.tests.unit.fixtures.site import site

GROUPS = {"all": ["w1", "cp1", "db"], "kube_control_plane": ["cp1"], "kube_node": ["w1"], "rack1": ["w1"]}
RESULTS = {"host": ["own_host", "others_host"], "listener": ["my_listener"]}
HOST = {key: value for key, value in site()["cp1"]["host"].items() if key != "sources"}
HOST["time"] = {key: value for key, value in HOST["time"].items() if key != "offset"}
SEEN = {**HOST, "time": ANY}  # with the clock's offset
RDMA = site()["w1"]["rdma"]
VIPU = {"host": "vipu", "port": 8090, "address": "10.5.0.20", "version": "1", "source": "json"}


def test_members():
    assert members(GROUPS) == ["cp1", "w1"]


def test_answers_of_the_play():
    hostvars = {
        "cp1": {
            "own_host": {"changed": False, "host": HOST, "rdma": RDMA, "failures": {}},
            "my_listener": {"skipped": True, "msg": "Conditional result was False"},
        },
        "w1": {"ip": "10.88.0.12", "own_host": {"host": HOST, "vipu": VIPU}},
    }
    assert observations(hostvars, GROUPS, RESULTS) == {
        "cp1": {
            "groups": ["kube_control_plane"],
            "address": "",
            "errors": [],
            "host": SEEN,
            "rdma": RDMA,
        },
        "w1": {
            "groups": ["kube_node", "rack1"],
            "address": "10.88.0.12",
            "errors": [],
            "host": SEEN,
            "vipu": VIPU,
        },
    }


def test_hosts_outside_the_limit():
    """Every host of the play has what a task with run_once registered."""
    delegated = {
        "others_host": {"hosts": {"cp1": {"host": HOST, "rdma": RDMA, "vipu": VIPU}, "db": {"vipu": VIPU}}},
    }
    groups = {**GROUPS, "kube_node": ["w1", "w2"]}
    seen = observations({"cp1": {}, "w1": delegated, "w2": delegated}, groups, RESULTS)
    assert seen["cp1"]["host"] == SEEN
    assert seen["cp1"]["rdma"] == RDMA
    assert seen["cp1"]["vipu"]["address"] == "10.5.0.20"
    assert "host" not in seen["w1"]
    delegated["others_host"] = {"hosts": {"cp1": {"unreachable": True, "msg": "No route to host"}}}
    errors = observations({"cp1": {}, "w1": delegated, "w2": delegated}, groups, RESULTS)["cp1"]["errors"]
    assert [error["seen"] for error in errors] == ["No route to host"]


@pytest.mark.parametrize(
    ("variables", "meant"),
    [
        ({"ansible_hots": "10.75.0.11"}, "ansible_hots, which nothing reads: did you mean ansible_host?"),
        ({"ansible_ssh_usr": "root"}, "did you mean ansible_ssh_user?"),
        ({"ansibel_host": "10.75.0.11"}, "did you mean ansible_host?"),
        ({"ansible_host": "10.75.0.11", "ansible_hostname": "cp1", "ansible_user_id": "root"}, ""),
        ({"ansible_ssh_args": "-C", "ansible_python_interpreter": "python3", "answer": 42}, ""),
    ],
)
@pytest.mark.parametrize("unreachable", [True, False])
def test_a_host_out_of_reach_is_asked_about_misspelt_variables(variables, meant, unreachable):
    result = {"unreachable": True, "msg": "No route to host"} if unreachable else {"msg": "No module"}
    (error,) = observations({"cp1": {**variables, "own_host": result}, "w1": {}}, GROUPS, RESULTS)["cp1"]["errors"]
    assert error["next_step"].startswith("The inventory sets ") == bool(meant and unreachable)
    assert meant in error["next_step"] or not unreachable
    assert "remove it from the inventory" in error["next_step"]


def test_a_name_that_does_not_resolve():
    ssh = "Task failed: Failed to connect to the host via ssh: ssh: Could not resolve hostname w1: Name not known"
    failed = {"own_host": {"unreachable": True, "msg": ssh}}
    (error,) = observations({"cp1": {}, "w1": failed}, GROUPS, RESULTS)["w1"]["errors"]
    assert error["seen"].startswith("Failed to connect to the host via ssh")
    assert "set ansible_host" in error["next_step"]


@pytest.mark.parametrize(
    ("result", "error"),
    [
        (
            {
                "host": HOST,
                "failures": {
                    "vipu": {
                        "code": "command-failed",
                        "what": "vipu did not answer.",
                        "where": "vipu",
                        "seen": "rc 1",
                        "next_step": "Start it.",
                        "transient": False,
                    }
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
        ({"host": HOST, "failures": {"rdma": {"seen": "no ip"}}}, {"source": "host", "seen": "no ip"}),
        (
            {"unreachable": True, "msg": "No route to host"},
            {"source": "host", "seen": "No route to host", "where": "host_info"},
        ),
        (
            {"unreachable": True, "msg": "Failed to connect: Host key verification failed."},
            {"next_step": "Log in to it once by ssh, compare the key that it shows, and accept it."},
        ),
        (
            {"unreachable": True, "msg": "Failed to connect: root@10.0.0.1: Permission denied (publickey,password)."},
            {
                "next_step": "Set ansible_user to a user of the host, and ansible_ssh_private_key_file to a key that it"
                " accepts, in the inventory."
            },
        ),
        (
            {"msg": "Module result deserialization failed", "module_stderr": "banner\nsudo: unknown user admin\n"},
            {
                "seen": "sudo: unknown user admin",
                "next_step": "Set ansible_become_user to root: modules need its privileges.",
            },
        ),
        ({"msg": "Module result deserialization failed", "module_stdout": "\nhello"}, {"seen": "hello"}),
    ],
)
def test_failures_are_kept_for_the_plan(result, error):
    seen = observations({"cp1": {"own_host": result}, "w1": {}}, GROUPS, RESULTS)["cp1"]["errors"]
    assert len(seen) == 1
    assert error.items() <= seen[0].items()


def test_other_variables_are_not_read():
    hostvars = {"cp1": {"own_host": {"host": HOST}, "other": {"vipu": VIPU}}, "w1": {}}
    assert observations(hostvars, GROUPS, {"host": ["other"]})["cp1"].keys() == {"groups", "address", "errors", "vipu"}


def test_variables_that_roles_decide_by_are_kept_without_secrets():
    variables = {
        "rdma_host_mtu": 9000,
        "network_operator_values": {"operator": {"token": "s3cret"}},
        "gpu_operator_license_token": "s3cret",
        "kubernetes_join_throttle": 3,  # says how the run goes
        "kubernetes_version": "1.36.5",  # site sets it
        "memlock_mine": 1,
    }
    hostvars = {"cp1": variables, "w1": {}}
    decided = observations(hostvars, GROUPS, RESULTS)["cp1"]["decided"]
    assert decided.pop("rdma_host_mtu") == "9000"
    assert decided.pop("gpu_operator_license_token") == "(not shown)"
    digest = decided.pop("network_operator_values")
    assert re.fullmatch("sha256:[0-9a-f]{12}", digest)
    assert not decided
    assert "decided" not in observations(hostvars, GROUPS, RESULTS)["w1"]
    # Nobody can find a secret by its digest, so its change is not seen.
    variables["network_operator_values"] = {"operator": {"token": "0ther"}}
    assert observations(hostvars, GROUPS, RESULTS)["cp1"]["decided"]["network_operator_values"] == digest
    variables["network_operator_values"] = {"operator": {"replicas": 2}}
    assert observations(hostvars, GROUPS, RESULTS)["cp1"]["decided"]["network_operator_values"] != digest


def test_the_clock_is_compared_with_the_controllers(monkeypatch):
    monkeypatch.setattr(time, "time", lambda: 1010.0)
    clock = {**HOST["time"], "asked": 1000.0, "read": 1400.0}
    hostvars = {"cp1": {"own_host": {"host": {**HOST, "time": clock}}}, "w1": {}}
    assert observations(hostvars, GROUPS, RESULTS)["cp1"]["host"]["time"] == {**clock, "offset": 390}


@pytest.mark.parametrize(
    ("answer", "seen"),
    [
        ({"host": "no"}, 'host is "no", not an object'),
        ({"host": {"time": {}}}, "host.architecture is missing"),
        ({"host": {**HOST, "memory_mb": "much"}}, 'host.memory_mb is "much", not a whole number'),
        ({"host": {**HOST, "machine_id": None}}, "host.machine_id is null, not a string"),
        ({"host": HOST, "rdma": {**RDMA, "links": [{}]}}, "rdma.links.0.addresses is missing"),
        ({"host": HOST, "vipu": {**VIPU, "host": "{{ lookup('pipe', 'id') }}"}}, "vipu: "),
        ({"host": HOST, "vipu": {**VIPU, "address": "10.5.0.20; id"}}, "vipu: "),
        ({"host": HOST, "vipu": {**VIPU, "port": 0}}, "vipu.port is 0"),
    ],
)
def test_an_answer_of_another_shape_is_an_error_of_its_host(answer, seen):
    """One host that answered with something else ended every playbook with a traceback, its own removal too."""
    found = observations({"cp1": {"own_host": answer}, "w1": {"own_host": {"host": HOST}}}, GROUPS, RESULTS)
    assert found["cp1"].keys() == {"groups", "address", "errors"}
    [error] = found["cp1"]["errors"]
    assert error["seen"].startswith(seen)
    assert found["w1"]["host"]["hostname"] == HOST["hostname"]


def test_hosts_of_the_bench_answer_as_the_module_does():
    """Otherwise `make bench` ends at the plan of its hosts."""
    made = sites.observations(1, 2)["h0001"]
    answer = {part: made[part] for part in ("host", "rdma", "vipu") if part in made}
    found = observations({"cp1": {"own_host": answer}, "w1": {"own_host": {"host": HOST}}}, GROUPS, RESULTS)
    assert found["cp1"]["errors"] == []
