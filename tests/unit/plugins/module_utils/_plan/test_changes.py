"""What happens to each host, in a word, and the closing line of the plan."""

import pytest
from ansible_collections.ipu.fabric.plugins.module_utils._plan.changes import (
    Drifted,
    change_lines,
    host_changes,
    summarize,
)
from ansible_collections.ipu.fabric.plugins.module_utils._plan.hosts import place_hosts
from ansible_collections.ipu.fabric.plugins.module_utils._plan.running_cluster import Running
from ansible_collections.ipu.fabric.tests.unit.fixtures.site import change, finished, plan, site

BARE = {"present": False, "version": "", "server": "", "cluster": ""}


def members(hosts, *nodes):
    hosts["cp1"]["host"]["cluster"]["nodes"] = [{"name": name, "machine_id": ""} for name in nodes]
    return hosts


def changed(hosts=None, **settings):
    return plan(finished() if hosts is None else hosts, **settings)["summary"]


def word(summary, name="w2"):
    return summary["hosts"][name]["word"]


@pytest.mark.parametrize(
    ("hosts", "expected"),
    [
        (site(), "install"),
        (finished(), "untouched"),
    ],
)
def test_bare_hosts_are_installed_and_nodes_stay(hosts, expected):
    summary = changed(hosts)
    assert summary["counts"] == {expected: 3}
    assert summary["bare"] == (expected == "install")


@pytest.mark.parametrize(
    ("where", "value", "nodes", "expected"),
    [
        (("host", "kubelet"), BARE, ["node11", "node12"], "join"),
        (("host", "kubelet"), BARE, ["node11", "node12", "node13"], "rejoin"),
        (("host", "kubelet", "version"), "v1.35.6", ["node11"], "upgrade"),
        (("host", "kubelet", "version"), "", ["node11"], "untouched"),  # a finding of its own
        (("host", "cluster", "unfinished"), True, ["node11"], "finish"),
        (("recalled",), "2026-11-20", ["node11"], "unknown"),
        (("host",), None, ["node11"], "unknown"),
        (("rdma", "memlock"), {"containerd": "65536"}, ["node11"], "change"),
    ],
)
def test_a_host_of_a_running_cluster(where, value, nodes, expected):
    hosts = members(finished(), *nodes)
    change(where, value)(hosts, ["w2"])
    summary = changed(hosts)
    assert (word(summary, "w1"), word(summary)) == ("untouched", expected)
    assert summary["counts"] == {expected: 1, "untouched": 2} if expected != "untouched" else {"untouched": 3}


def test_why_a_host_changes():
    hosts = finished()
    change(("rdma", "memlock"), {"containerd": "65536"})(hosts, ["w1", "w2"])
    summary = changed(hosts)
    assert change_lines(summary["hosts"], 8) == ["~ change: w1, w2 (locked memory of containerd)"]


@pytest.mark.parametrize(
    ("has", "limit", "expected"),
    [
        ("8388608", "infinity", "change"),
        ("infinity", "infinity", "untouched"),
        ("1073741824", "1G", "untouched"),
        ("infinity", "1G", "change"),
        ("65536", "much", "untouched"),  # the role refuses it
    ],
)
@pytest.mark.parametrize("managed", [True, False])
def test_what_the_proof_expects_is_not_what_the_role_sets(has, limit, expected, managed):
    """Site sets the limit also where verify_memlock asks for less, and on hosts of a cluster that others manage."""
    hosts = finished()
    change(("rdma", "memlock"), {"containerd": has})(hosts, ["w2"])
    assert word(changed(hosts, memlock="8388608", memlock_limit=limit, manage_kubernetes=managed)) == expected


@pytest.mark.parametrize(
    ("modules", "settings", "why"),
    [
        (["ib_uverbs"], {}, ["kernel modules ib_umad, rdma_ucm"]),
        (["ib_uverbs"], {"manage_kubernetes": False}, ["kernel modules ib_umad, rdma_ucm"]),
        (["ib_uverbs"], {"require_rdma": False}, []),
        (["ib_uverbs"], {"networks": [], "require_rdma": False}, []),
        (["ib_uverbs", "ib_umad", "rdma_ucm"], {}, []),
        (None, {}, []),  # nothing tells
    ],
)
def test_modules_that_site_loads_are_a_change(modules, settings, why):
    """A node was untouched, and site loaded ib_umad on it."""
    hosts = finished()
    change(("rdma", "modules"), modules)(hosts, ["w2"])
    assert changed(hosts, **settings)["hosts"]["w2"] == {"word": "change" if why else "untouched", "why": why}


def test_nodes_of_others_are_neither_installed_nor_upgraded():
    hosts = finished()
    change(("host", "kubelet", "version"), "v1.35.6")(hosts, ["w1"])
    change(("host", "kubelet"), BARE)(hosts, ["w2"])
    assert changed(hosts, manage_kubernetes=False)["counts"] == {"untouched": 3}


def hosts_of(**words):
    return {f"{word}{n}": {"word": word, "why": []} for word, number in words.items() for n in range(number)}


SAME = {"time": "", "applied": True, "moved": []}
ONE = {"mark": "~", "host": "", "thing": "Cluster", "fields": ["a"]}


QUIET = Drifted([], "10:00")


@pytest.mark.parametrize(
    ("hosts", "levels", "since", "drifted", "line", "state", "code"),
    [
        (hosts_of(install=3), [], None, QUIET, "Plan: 3 hosts to install.", "changes", 2),
        (
            hosts_of(untouched=12, upgrade=1, install=3),
            ["warning"],
            SAME,
            QUIET,
            "Plan: 3 hosts to install, 1 to upgrade, 12 in the cluster.",
            "changes",
            2,
        ),
        (
            hosts_of(untouched=1),
            [],
            SAME,
            QUIET,
            "Plan: 1 host in the cluster. Nothing to do, unless files of hosts (ipu.fabric.site --check) have drifted.",
            "nothing",
            0,
        ),
        (
            hosts_of(untouched=1),
            [],
            SAME,
            None,
            "Plan: 1 host in the cluster. Nothing to do, unless objects (ipu.fabric.drift) or files of hosts"
            " (ipu.fabric.site --check) have drifted.",
            "nothing",
            0,
        ),
        (
            hosts_of(untouched=2),
            [],
            {**SAME, "applied": False},
            QUIET,
            "Plan: 2 hosts in the cluster. Whether the fabric is applied isn't known: ipu.fabric.site has not run"
            " from this folder for all hosts.",
            "changes",
            2,
        ),
        (
            hosts_of(install=1),
            [],
            {**SAME, "applied": False, "moved": [ONE]},
            QUIET,
            "Plan: 1 host to install.",
            "changes",
            2,
        ),
        (
            hosts_of(untouched=2),
            [],
            {**SAME, "moved": [ONE]},
            Drifted(["IPPool n/a", "DaemonSet n/b"], "10:00"),
            "Plan: 2 hosts in the cluster. 1 decision differs from the plan that was applied. Drift at 10:00,"
            " which ipu.fabric.fabric corrects: IPPool n/a, DaemonSet n/b.",
            "changes",
            2,
        ),
        (hosts_of(unknown=1), [], SAME, QUIET, "Plan: 1 host not seen.", "changes", 2),
        (
            hosts_of(untouched=2),
            ["error", "warning", "error"],
            SAME,
            Drifted(["IPPool n/a"], "10:00"),
            "Plan: 2 hosts in the cluster. site changes nothing until 2 errors are fixed.",
            "errors",
            1,
        ),
        ({}, ["error"], None, QUIET, "Plan: no hosts. site changes nothing until the error is fixed.", "errors", 1),
    ],
)
def test_the_closing_line(hosts, levels, since, drifted, line, state, code):
    findings = [{"level": level, "check": "swap"} for level in levels]
    summary = summarize(hosts, findings, since, drifted)
    assert (summary["line"], summary["state"], summary["exit_code"]) == (line, state, code)


def test_hardening_that_is_due_is_a_change():
    hosts = finished()
    planned, placed = plan(hosts), place_hosts(hosts)
    due = {"host": "cp1", "changes": ["kube-apiserver: profiling"], "kept": []}
    running = Running("cp1", "ab", hosts["cp1"]["host"]["cluster"])
    hardening = {**planned["hardening"], "due": [due]}
    found = host_changes(placed, planned["hosts"], running, True, "1.36.3", "infinity", hardening, True)
    assert found["cp1"] == {"word": "change", "why": ["kube-apiserver: profiling"]}
    assert found["w1"]["word"] == "untouched"
