"""What hosts need for their roles, and what the plan says of those that have less."""

import pytest
import yaml
from ansible_collections.ipu.fabric.plugins.module_utils._plan.host_sizes import KINDS, ROLES, SIZES, due_sizes
from ansible_collections.ipu.fabric.tests.unit.fixtures import site as sites

CHECKS = ("cpus", "memory", "disk")
PLANE, WORKER = ["kube_control_plane"], ["kube_node"]


def of(groups, seen, number=1, gpus=(), **settings):
    """Findings about a host beside others that are all right, in a cluster of so many."""
    hosts = {f"x{index}": sites.host(100 + index, WORKER) for index in range(1, number)}
    hosts["cp"] = sites.host(10, PLANE)
    hosts["it"] = sites.host(11, groups, **seen)
    hosts["it"]["rdma"]["gpus"] = list(gpus)
    results = [
        [(each["level"], each["check"], each) for each in made["findings"] if each["hosts"] == ["it"]]
        for made in (sites.plan(hosts, **settings), sites.preflight(hosts, **settings))
    ]
    assert [each[:2] for each in results[0]] == [each[:2] for each in results[1]]
    return [each for each in results[0] if each[1] in CHECKS]


@pytest.mark.parametrize(
    ("groups", "seen", "expected"),
    [
        (PLANE, {"cpus": 2, "memory_mb": 3900}, set()),
        (PLANE, {"cpus": 1}, {("error", "cpus")}),
        (PLANE, {"memory_mb": 1690}, {("error", "memory")}),
        (PLANE, {"memory_mb": 1960}, {("warning", "memory")}),
        (WORKER, {"cpus": 1, "memory_mb": 1960, "disk_mb": {"/var/lib": 11000}}, set()),
        (WORKER, {"memory_mb": 1000}, {("error", "memory")}),
        (WORKER, {"memory_mb": 1100}, {("warning", "memory")}),
        (WORKER, {"disk_mb": {"/var/lib": 900}}, {("error", "disk")}),
        (WORKER, {"cpus": 0}, set()),  # not known
        ([*PLANE, *WORKER], {"cpus": 1, "memory_mb": 1690}, {("error", "cpus"), ("error", "memory")}),
    ],
)
def test_what_a_host_without_accelerators_needs(groups, seen, expected):
    assert {each[:2] for each in of(groups, seen, ipu=False)} == expected


def test_a_machine_that_is_sold_with_so_much_passes():
    for groups, seen in ((PLANE, {"memory_mb": 15000}), (WORKER, {"memory_mb": 23400})):  # of 16 and 24 GiB
        assert of(groups, seen, number=90) == []


@pytest.mark.parametrize(
    ("number", "expected"),
    [(9, set()), (10, {"memory", "cpus", "disk"}), (99, {"memory", "cpus", "disk"}), (251, {"memory", "cpus", "disk"})],
)
def test_a_control_plane_needs_more_for_more_hosts(number, expected):
    seen = {"cpus": 2, "memory_mb": 7200, "disk_mb": {"/var/lib": 20000}}
    found = of(PLANE, seen, number, ipu=False)
    assert {check for _level, check, _finding in found} == expected
    assert {level for level, _check, _finding in found} <= {"warning"}


def test_the_finding_says_what_was_seen_and_what_is_needed():
    ((_level, _check, finding),) = of(PLANE, {"memory_mb": 7200}, 60)
    assert finding["what"] == (
        "The role control plane of a cluster of 61 hosts should have 15 GB of memory"
        " (Kubernetes' own masters on GCE: n1 machines, 3.75 GB for each processor)."
    )
    assert finding["seen"] == "it has 7.55"
    setting = "fabric_host_sizes: {control_plane: {memory_gb: 7.54}}"
    assert finding["next"] == f"Add memory, or set {setting} if that is enough."


SMALL = {"cpus": 2, "memory_mb": 8000, "disk_mb": {"/var/lib": 20000}}


@pytest.mark.parametrize(
    ("groups", "gpus", "settings", "roles"),
    [
        (WORKER, [], {"ipu": True}, ["ipu"]),
        (WORKER, [], {"ipu": False}, []),
        (WORKER, [{"pci": "0000:82:00.0", "path": "", "numa_node": 0}], {"ipu": False}, ["gpu"]),
        (PLANE, [{"pci": "0000:82:00.0", "path": "", "numa_node": 0}], {"ipu": False}, []),
    ],
)
def test_hosts_with_accelerators_should_have_more(groups, gpus, settings, roles):
    found = of(groups, SMALL, gpus=gpus, **settings)
    assert {(level, check) for level, check, _finding in found} == {("warning", check) for check in CHECKS if roles}
    assert all(f"fabric_host_sizes: {{{role}: {{" in each[2]["next"] for role in roles for each in found)


def test_a_member_of_the_cluster_has_its_images():
    member = {"present": True, "version": "v1.35.4", "server": "10.88.0.10:6443", "cluster": ""}
    assert of(WORKER, {"disk_mb": {"/var/lib": 900}, "kubelet": member}) == []


def test_one_setting_is_enough_for_all_hosts():
    """Pasted once, it cures each finding of each host, and lasts while the disk fills."""
    hosts = sites.site()
    hosts["w1"]["host"].update(cpus=1, disk_mb={"/var/lib": 20000})
    hosts["w2"]["host"].update(memory_mb=8000, disk_mb={"/var/lib": 15000})
    found = [one["next"] for one in sites.plan(hosts, ipu=True)["findings"] if one["check"] in CHECKS]
    settings = {one.partition("or set ")[2].partition(" if that is enough")[0] for one in found}
    assert settings == {"fabric_host_sizes: {ipu: {cpus: 1, disk_gb: 14, memory_gb: 8.38}}"}
    pasted = yaml.safe_load(settings.pop())["fabric_host_sizes"]
    assert not {one["check"] for one in sites.plan(hosts, host_sizes=pasted, ipu=True)["findings"]} & set(CHECKS)


def test_clusters_of_others_are_not_measured():
    assert of(WORKER, {"memory_mb": 500}, manage_kubernetes=False) == []


@pytest.mark.parametrize(
    ("sizes", "expected"),
    [
        ({"ipu": {"cpus": 1, "memory_gb": 2, "disk_gb": 10}}, set()),
        ({"ipu": {"cpus": 1, "memory_gb": 2}}, {("warning", "disk")}),
        ({"ipu": {"memory_gb": "64"}}, {("warning", "cpus"), ("error", "memory"), ("warning", "disk")}),
        ({"ipu": dict.fromkeys(KINDS, 0)}, set()),
        ({"worker": {"memory_gb": 10}}, {("warning", "cpus"), ("error", "memory"), ("warning", "disk")}),
    ],
)
def test_a_site_says_what_its_hosts_need(sizes, expected):
    assert {each[:2] for each in of(WORKER, SMALL, host_sizes=sizes)} == expected


@pytest.mark.parametrize(
    ("sizes", "seen"),
    [
        ({"master": {"cpus": 2}}, "master: {'cpus': 2}"),
        ({"ipu": 4}, "ipu: 4"),
        ({"ipu": {"memory": 4}}, "ipu.memory: 4"),
        ({"ipu": {"memory_gb": "much"}}, "ipu.memory_gb: 'much'"),
        ({"ipu": {"memory_gb": -1, "cpus": True}}, "ipu.memory_gb: -1, ipu.cpus: True"),
        ({"ipu": {"memory_gb": "nan"}}, "ipu.memory_gb: 'nan'"),
    ],
)
def test_what_is_no_size_is_an_error(sizes, seen):
    finding = sites.errors(sites.plan(sites.site(), host_sizes=sizes))["host-sizes"]
    assert finding["seen"] == seen


def test_the_table_has_an_answer_for_every_cluster():
    for nodes in (1, 5, 6, 10, 11, 100, 101, 250, 251, 500, 501, 1000):
        for role in ROLES:
            due = due_sizes(SIZES, [role], nodes)
            assert len({(size.kind, size.level) for size in due}) == len(due)
        least = {(size.kind, size.level): size.least for size in due_sizes(SIZES, ["control_plane"], nodes)}
        assert {kind for kind, level in least if level == "warning"} == set(KINDS)
        assert all(least[kind, "warning"] >= least[kind, "error"] for kind in KINDS)


def test_the_setting_is_printed_with_what_the_site_has_set_before():
    """As an inventory has it: pasted, it replaces the former one."""
    hosts = sites.site()
    hosts["w1"]["host"]["cpus"] = 1
    own = {"worker": {"cpus": 4, "memory_gb": 8}, "control_plane": {"cpus": 2}}
    [finding] = [one for one in sites.plan(hosts, host_sizes=own, ipu=False)["findings"] if one["check"] == "cpus"]
    step = finding["next"].partition(" Or allow")[0]
    text = step.partition(", or set ")[2].rpartition(" if that is enough.")[0]
    pasted = yaml.safe_load(text)
    assert pasted == {"fabric_host_sizes": {**own, "worker": {"cpus": 1, "memory_gb": 8}}}
    assert sites.plan(hosts, host_sizes=pasted["fabric_host_sizes"], ipu=False)["findings"] == []
