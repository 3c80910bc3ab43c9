"""Playbooks that write to an API: only to that of these hosts, from the host that the site names."""

import pytest
from ansible_collections.ipu.fabric.tests.unit.fixtures import site
from ansible_collections.ipu.fabric.tests.unit.fixtures.playbooks import play

GROUPS = {"kube_control_plane": ["cp1"], "kube_node": ["w1", "w2"]}
OURS, OTHER = "0123456789abcdef", "fedcba9876543210"
READERS = ["host_info", "cluster_info"]
WRITERS = {
    "ipu.fabric.fabric": ["macvlan_network", "helm_release", "kube_apply"],
    "ipu.fabric.verify": ["fabric_probe"],
    "ipu.fabric.workloads": ["kube_apply"],
    "ipu.fabric.reset": ["fabric_stack", "helm_release"],
}


def no(*names):
    return dict.fromkeys(names, ())


def answers(ca=OURS):
    hosts = site.site()
    for seen in hosts.values():
        seen["host"]["kubelet"].update(server="10.88.0.11:6443", cluster=OURS)
    operator = {
        **no("nodes", "nfd", "multus", "nv_ipam", "api_groups", "network_operators", "own"),
        **no("whereabouts", "whereabouts_networks"),
        "present": True,
        "version": "1.36.3",
        "ca": ca,
        "policy_ipam": "",
        "device_plugin": "",
        "node_policies": [],
        "policy_in_chart": False,
        "gpu": no("operators", "pods", "drivers", "labelled"),
        "mpi": {"ours": False, "jobs": []},
        "ipu": {
            **no("operators", "own", "vipu_controllers", "labelled", "jobs"),
            "tracker": False,
            "definition": False,
        },
    }
    return {
        "host_info": site.observed(hosts),
        "cluster_info": {"*": operator},
        "fabric_stack": {
            "*": no("objects", "pods", "other_pods", "attachments", "needed_by", "installations", "definitions")
        },
        "kube_apply": {"*": {"updated": [], "objects": [], "kept": []}},
        "fabric_probe": {"*": {"probe": {"probed": False, "reason": "check mode"}}},
        "host_reset": {"*": {"removed": {}}},
    }


def run(folder, playbook, found, *arguments, **variables):
    manifest = folder / "mpi-operator.yaml"
    manifest.write_text("kind: Namespace")
    given = {
        "fabric_probe_ports": False,
        "fabric_reset": "fabric",
        "fabric_metrics": False,
        "fabric_mirror": {"mpi_operator": {"url": str(manifest), "sha256": ""}},
        **variables,
    }
    return play(folder, playbook, GROUPS, found, *arguments, **given)


@pytest.mark.parametrize("playbook", WRITERS)
def test_nothing_is_written_to_the_api_of_another_cluster(tmp_path, playbook):
    """As in the folder of another site, whose nodes have the same names."""
    done = run(tmp_path, playbook, answers(OTHER))
    assert done.code != 0
    assert "must lead to the cluster that the hosts of this inventory are in" in done.said, done.text
    assert f"its CA is {OTHER}, that of cp1, w1, w2 is {OURS}" in done.said
    assert {call.module for call in done.calls} <= set(READERS)


@pytest.mark.parametrize(
    ("playbook", "tag"),
    [("fabric", "macvlan"), ("verify", "verify"), ("workloads", "mpi_operator"), ("workloads", "metrics")],
)
def test_tags_of_a_role_do_not_skip_that_check(tmp_path, playbook, tag):
    done = run(tmp_path, f"ipu.fabric.{playbook}", answers(OTHER), "--tags", tag, fabric_metrics=True)
    assert done.code != 0, done.text
    assert f"its CA is {OTHER}, that of cp1, w1, w2 is {OURS}" in done.said
    assert {call.module for call in done.calls} <= set(READERS)


@pytest.mark.parametrize(("ca", "asked"), [(OURS, 1), (OTHER, 0)])
def test_nodes_of_another_cluster_stay_cordoned(tmp_path, ca, asked):
    """Those that an interrupted run of that site has left so. The role kubernetes fetches another kubeconfig."""
    found = {**answers(ca), "rdma_host": {"*": {"reboot": [], "node": "w1"}}}
    given = {"rdma_host_reboot": True, "fabric_manage_kubernetes": False}
    done = run(tmp_path, "ipu.fabric.kubernetes", found, "--tags", "rdma_host", **given)
    assert len(done.where("node_drain", owner="rdma_host")) == asked, done.text
    assert ("were not looked for: The kubeconfig must lead to" in done.said) == (not asked)


@pytest.mark.parametrize("playbook", WRITERS)
def test_the_api_host_uses_a_kubeconfig_of_its_own(tmp_path, playbook):
    """In check mode: builtin modules would write to this machine."""
    done = run(tmp_path, playbook, answers(), "--check", fabric_api_host="cp1")
    assert done.code == 0, done.text
    calls = [call for call in done.calls if "kubeconfig" in call.options]
    assert {call.module for call in calls} >= {"cluster_info", *WRITERS[playbook]}, done.text
    used = {(call.host, call.become, call.options["kubeconfig"]) for call in calls}
    assert used == {("cp1", True, "/etc/kubernetes/admin.conf")}


def test_the_controller_uses_the_kubeconfig_that_was_fetched(tmp_path):
    done = run(tmp_path, "ipu.fabric.verify", answers(), "--check")
    [call] = [call for call in done.calls if call.module == "fabric_probe"]
    assert (call.host, call.become) == ("localhost", False)
    assert call.options["kubeconfig"] == str(tmp_path / "artifacts/admin.conf")


def test_metrics_of_ipus_go_where_there_are_no_ipus_any_more(tmp_path):
    found = answers()
    done = run(
        tmp_path, "ipu.fabric.workloads", found, fabric_metrics=True, fabric_mpi_operator=False, fabric_ipu=False
    )
    assert done.code == 0, done.text
    applied = [
        (call.options["state"], [each["metadata"]["name"] for each in call.options["objects"]])
        for call in done.calls
        if call.module == "kube_apply"
    ]
    assert applied == [
        (
            "absent",
            ["ipu-operator-metrics", "ipu-operator-metrics-token", "ipu-operator-metrics-reader-prometheus"],
        ),
        ("present", ["ipu-fabric-prometheus", "ipu-fabric-dashboard"]),
    ]


@pytest.mark.parametrize(
    ("playbook", "mode", "ca", "marked"),
    [
        ("verify", "enforce", OURS, True),
        ("fabric", "warn", OURS, True),
        ("site", "enforce", OURS, True),
        ("verify", "off", OURS, False),
        ("plan", "enforce", OURS, False),  # it changes nothing
        ("verify", "enforce", OTHER, False),
    ],
)
def test_nodes_of_hosts_that_errors_of_the_plan_name_are_marked(tmp_path, playbook, mode, ca, marked):
    """The run ends before a proof, and with the plan's errors whatever came of the marks."""
    found = answers(ca)
    found["host_info"]["w1"]["rdma"]["links"][1]["up"] = False
    line = "w1, Unknown, PlanError"
    found["node_admission"] = {"*": {"nodes": ["w1"], "lines": [line]}}
    done = run(tmp_path, f"ipu.fabric.{playbook}", found, fabric_admission=mode)
    assert done.code != 0
    assert "ERROR fabric-nic: w1" in done.said, done.text
    assert "Errors in the plan: 1." in done.said
    calls = [call for call in done.calls if call.module == "node_admission"]
    assert [(call.host, call.options["mode"]) for call in calls] == [("localhost", mode)] * marked, done.text
    assert (line in done.said) == marked
    told = [each["check"] for call in calls for each in call.options["plan"]["findings"] if each["hosts"] == ["w1"]]
    assert told == ["fabric-nic"] * marked
    assert ("Nodes could not be marked, and stay as they are. Seen: " in done.said) == (ca == OTHER)
    assert {call.module for call in done.calls} <= {*READERS, "node_admission"}
