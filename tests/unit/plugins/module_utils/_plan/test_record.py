"""Who made a plan, and what differs from the one before."""

import copy
import json
import shlex

import pytest
import yaml
from ansible_collections.ipu.fabric.plugins.module_utils._plan import report as plan_report
from ansible_collections.ipu.fabric.plugins.module_utils._plan.approved import decisions
from ansible_collections.ipu.fabric.plugins.module_utils._plan.record import (
    Earlier,
    name_site,
    parse_plan,
    record,
    with_fabric,
)
from ansible_collections.ipu.fabric.plugins.plugin_utils._render.pages import plan_page
from ansible_collections.ipu.fabric.tests.unit.fixtures.paths import ROOT
from ansible_collections.ipu.fabric.tests.unit.fixtures.site import change, finished, plan, running, site

MADE = {"time": "2026-11-27T12:00:00Z", "site": "rack", "collection": "0.9.0", "by": "ops@deploy"}
LATER = {**MADE, "time": "2026-11-28T12:00:00Z", "by": "ci@runner"}
NONE = Earlier(None, None)
IMAGE = "mirror.site/tools:1"  # of the proof


def kept(planned, **more):
    return json.loads(json.dumps({**planned, **more}))


def test_who_made_a_plan_and_when_is_not_compared():
    first, second = (record(plan(site()), made, NONE) for made in (MADE, LATER))
    assert first != second
    assert decisions(kept(first)) == decisions(kept(second))
    assert json.dumps({**first, "made": None}) == json.dumps({**second, "made": None})


def test_the_head_says_who_made_it():
    text = " ".join(plan_report.as_text(record(plan(site()), MADE, NONE)).split())
    assert "Made 2026-11-27T12:00:00Z, for rack, by ops@deploy, ipu.fabric 0.9.0" in text
    assert text.endswith("Plan: 3 hosts to install.")


def test_what_differs_from_the_plan_before():
    before = kept(record(plan(site()), MADE, NONE))
    hosts = site()
    change(("rdma", "links", 1, "mtu"), 4200)(hosts, ["w1"])
    hosts["w3"] = copy.deepcopy(hosts.pop("w2"))
    now = record(plan(hosts), LATER, Earlier(before, None))
    assert now["since"]["time"] == MADE["time"]
    assert not now["since"]["applied"]
    found = {(each["mark"], each["host"], each["thing"]): each["fields"] for each in now["since"]["moved"]}
    assert found["-", "w2", "Host"] == found["+", "w3", "Host"] == []
    assert ("+", "w3", "NIC on rdma-net") not in found  # it comes with its host
    assert found["~", "w1", "NIC on rdma-net"] == ["mtu: 9000 before, 4200 now"]
    text = plan_report.as_text({**now, "since": {**now["since"], "applied": True}})
    assert "  - w2 Host\n" in text
    assert "      mtu: 9000 before, 4200 now\n" in text
    assert max(map(len, text.splitlines())) <= plan_report.WIDTH


def test_a_plan_of_another_site_is_not_one_before():
    before = kept(record(plan(site()), MADE, NONE))
    hosts = {f"other-{name}": seen for name, seen in site().items()}
    assert record(plan(hosts), LATER, Earlier(before, None))["since"] is None


def test_the_plan_that_was_applied_comes_before_that_of_the_last_run():
    last, applied = (kept(record(plan(site(), **more), MADE, NONE)) for more in ({"pods_per_node": 4}, {}))
    assert record(plan(site()), LATER, Earlier(last, None))["since"]["moved"]
    now = record(plan(site()), LATER, Earlier(last, applied))
    assert now["since"] == {"time": MADE["time"], "applied": True, "moved": []}


def test_a_plan_of_an_earlier_release_says_no_time():
    before = kept(plan(site()), made=None)
    assert record(plan(site()), LATER, Earlier(before, None))["since"]["time"] == ""


@pytest.mark.parametrize("pods", [8, 4])
def test_a_comparison_says_whether_that_plan_was_applied(pods):
    """Decisions differed from "the plan of the last run", which nobody had applied, weeks ago."""
    before = kept(record(plan(site()), MADE, NONE))
    for earlier, what in (
        (Earlier(before, None), f"the last plan, of {MADE['time']}"),
        (Earlier(kept(plan(site()), made=None), None), "the last plan"),
        (Earlier(None, before), f"the plan that was applied, of {MADE['time']}"),
    ):
        now = record(plan(site(), pods_per_node=pods), LATER, earlier)
        assert (pods == 8) == (now["since"]["moved"] == [])
        told = [" ".join(plan_report.as_text(now).split()), plan_page(now)]
        assert [what in each for each in told] == [pods != 8, True]
        assert now["since"]["applied"] == (earlier.applied is not None)


def test_what_differs_from_a_plan_that_was_not_applied_is_counted_only():
    """Before the first site, what was tried with the last plan filled the screen."""
    before = kept(record(plan(site()), MADE, NONE))
    now = plan(site(), pods_per_node=4)
    tried, recorded, applied = (
        " ".join(
            plan_report.as_text(record({**now, "recorded": recorded}, LATER, earlier)).partition("Before: ")[2].split()
        )
        for earlier, recorded in (
            (Earlier(before, None), ""),
            (Earlier(before, None), "rack"),  # there it is what a setting would change
            (Earlier(None, before), ""),
        )
    )
    assert f"of {MADE['time']}: see plan.html Plan:" in tried
    assert ["~ Network rdma-net" in each for each in (tried, recorded, applied)] == [False, True, True]


@pytest.mark.parametrize("text", ["", "[]", "{", '{"hosts": []}', '{"hosts": {}}'])
def test_what_is_no_plan_is_not_compared(text):
    assert parse_plan(text) is None


@pytest.mark.parametrize(
    ("sources", "config", "expected"),
    [
        (["/site/inventories/rack/hosts.yml"], {}, "rack"),
        (["/site/inventories/rack"], {}, "rack"),
        (["/site/inventories/rack/"], {}, "rack"),
        (["/site/rack/hosts.yml"], {"clusterName": "oslo"}, "oslo"),
        (["h1,"], {}, ""),
        ([], {}, ""),
    ],
)
def test_the_name_of_a_site(sources, config, expected):
    assert name_site(sources, config) == expected


@pytest.mark.parametrize(
    ("change_word", "line"),
    [
        ("create", "+ create Node w1"),
        ("change", "~ change Node w1"),
        ("take over", "~ take over Node w1"),
        ("remove", "- remove Node w1"),
        ("leave", "  leave Node w1"),
    ],
)
def test_drift_has_the_marks_of_a_plan(change_word, line):
    one = {"object": "Node w1", "change": change_word, "ours": True, "fields": []}
    assert line in plan_report.drift_text([one]).splitlines()


JOB = "ansible-playbook examples/training.yml"


@pytest.mark.parametrize(
    ("settings", "host", "usual", "expected"),
    [
        ({}, "localhost", True, ["kubectl --kubeconfig /a/admin.conf get nodes", JOB]),
        ({}, "localhost", False, [f"""{JOB} -e '{{"fabric_kubeconfig": "/a/admin.conf"}}'"""]),
        ({"require_rdma": False}, "localhost", True, [f"""{JOB} -e '{{"rdma_resource": ""}}'"""]),
        ({"networks": [{"name": "rail"}]}, "localhost", True, [f"""{JOB} -e '{{"networks": ["rail"]}}'"""]),
        ({}, "cp1", True, ["ssh cp1 sudo kubectl --kubeconfig /a/admin.conf get nodes"]),
        ({"ipu": False, "networks": []}, "localhost", True, ["kubectl --kubeconfig /a/admin.conf get nodes"]),
    ],
)
def test_the_commands_after_site(settings, host, usual, expected):
    """They are those of this site: its kubeconfig, its networks, and its RDMA resource."""
    said = plan_report.next_steps(plan(site(), **settings), "/a/admin.conf", host, "examples", usual, IMAGE)
    assert [line.strip() for line in said[-len(expected) :]] == expected
    assert ("IPUJob" in said[0]) == (len(said) == 4)
    assert len(said) == (4 if host == "localhost" and settings.get("ipu", True) else 3)


@pytest.mark.parametrize(
    ("settings", "usual", "expected"),
    [
        (
            {},
            True,
            {"native_workload_network": "rdma-net", "native_workload_rdma_resource": "rdma/rdma_shared_device_a"},
        ),
        (
            {"require_rdma": False, "networks": [{"name": "rail", "namespace": "jobs"}]},
            False,
            {
                "native_workload_network": "jobs/rail",
                "native_workload_rdma_resource": "",
                "native_workload_check_memlock": False,
                "native_workload_kubeconfig": "/a/admin.conf",
            },
        ),
    ],
)
def test_without_ipus_the_first_job_shows_its_interface(settings, usual, expected):
    planned = plan(site(), ipu=False, **settings)
    said = plan_report.next_steps(planned, "/a/admin.conf", "localhost", "examples", usual, IMAGE)
    command = shlex.split(said[-1])
    assert said[0] == "Next: look at the nodes, then run a first job on the network."
    assert command[:3] == ["ansible-playbook", "examples/native-training.yml", "-e"]
    given = json.loads(command[3])
    own = {key: value for key, value in given.items() if not key.startswith("example_")}
    assert own == {"native_workload_name": "first-job", **expected}
    assert given["example_image"] == IMAGE
    example = (ROOT / "docs/examples/native-training.yml").read_text(encoding="utf-8")
    assert [name for name in given if name.startswith("example_") and name not in example] == []


def test_a_first_job_is_proposed_until_the_fabric_was_proved_once():
    arguments = (plan(site()), "/a/admin.conf", "localhost", "examples", True, IMAGE)
    assert plan_report.next_steps(*arguments)[0] == "Next: look at the nodes, then run a first IPUJob."
    assert plan_report.next_steps(*arguments, proved=True)[0] == "Next: look at the nodes."


def test_the_report_comes_first():
    said = plan_report.next_steps(plan(site()), "/a/admin.conf", "cp1", "examples", True, IMAGE, "/a/report.html")
    assert said[:2] == ["Report: /a/report.html", "Next: look at the nodes."]


def test_the_defaults_of_the_example_are_those_that_the_command_leaves_out():
    [train] = yaml.safe_load((ROOT / "docs/examples/training.yml").read_text(encoding="utf-8"))
    assert (train["vars"]["networks"], train["vars"]["rdma_resource"]) == (["rdma-net"], "rdma_shared_device_a")
    assert "artifacts/admin.conf" in train["vars"]["fabric_kubeconfig"]


UNDRIFTED = "Nothing to do, unless objects (ipu.fabric.drift) or files of hosts (ipu.fabric.site --check) have drifted."


@pytest.mark.parametrize(
    ("there", "line"),
    [(None, UNDRIFTED), (["rdma-net"], UNDRIFTED), ([], "rdma-net is not in the cluster.")],
)
def test_a_fabric_that_was_removed_is_something_to_do(there, line):
    """Whatever site applied from this folder: the cluster itself says what it has."""
    hosts = finished()
    seen = running() if there is None else running(
        fabric_networks=[{"stack": "network_operator", "name": name} for name in there]
    )  # fmt: skip
    hosts["cp1"]["host"]["cluster"] = seen
    planned = plan(hosts)
    assert record(planned, MADE, Earlier(None, kept(planned)))["summary"]["line"].endswith(line)


DRIFT = {"object": "Node w1", "change": "change", "ours": True, "fields": []}
LOST = {"object": "NetworkAttachmentDefinition default/rdma-net", "change": "create", "ours": True, "fields": []}


@pytest.mark.parametrize(
    ("hosts", "there", "drift", "stays"),
    [
        (finished, ["rdma-net"], [DRIFT], True),
        (finished, None, [DRIFT], True),  # observed by an earlier release
        (finished, [], [DRIFT], False),  # the fabric was reset
        (finished, [], [DRIFT, LOST], True),  # somebody deleted the network, as the drift says
        (site, None, [DRIFT, LOST], False),  # the cluster was reset
    ],
)
def test_drift_goes_with_what_it_was_seen_in(hosts, there, drift, stays):
    seen = hosts()
    if there is not None:
        networks = [{"stack": "network_operator", "name": name} for name in there]
        seen["cp1"]["host"]["cluster"] = running(fabric_networks=networks)
    last = kept(plan(finished()), drift=drift, drift_time=MADE["time"])
    now = record(plan(seen), LATER, Earlier(last, None))
    assert (now["drift"], now["drift_time"]) == ((drift, MADE["time"]) if stays else (None, ""))
    assert ("Drift at" in now["summary"]["line"]) is stays


def test_a_run_of_the_fabric_alone_has_not_applied_kubernetes():
    """Its settings would otherwise never be a difference again."""
    hosts = site()
    hosts["cp1"]["decided"] = {"kubernetes_sysctl": "a", "network_operator_values": "b"}
    now = plan(hosts, pod_cidr="10.96.128.0/17", service_cidr="10.96.0.0/17")
    assert with_fabric(None, now) is None
    assert with_fabric(None, {**now, "hardening": None}) == {**now, "hardening": None}
    before = {**plan(site()), "role_variables": {"kubernetes_sysctl": "c", "network_operator_values": "d"}}
    for host in hosts.values():
        host["decided"] = {"kubernetes_sysctl": "a", "network_operator_values": "b"}
    saved = with_fabric(before, plan(hosts, pods_per_node=4, cluster_config={"clusterName": "x"}))
    assert saved["role_variables"] == {"kubernetes_sysctl": "c", "network_operator_values": "b"}
    assert saved["cluster"] == before["cluster"]
    assert saved["networks"] != before["networks"]
