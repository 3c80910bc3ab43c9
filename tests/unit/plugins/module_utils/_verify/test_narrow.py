"""The proof of some nodes, and how it compares with one before."""

import pytest
from ansible_collections.ipu.fabric.plugins.module_utils._common.result import FabricError
from ansible_collections.ipu.fabric.plugins.module_utils._model.checks import Check
from ansible_collections.ipu.fabric.plugins.module_utils._verify import narrow

HOSTS = {f"h{n}": {"node": f"n{n}", "links": {"rail": {}} if n < 6 else {}, "roles": ["worker"]} for n in range(1, 7)}
PLAN = {"hosts": HOSTS, "networks": [{"name": "rail", "hosts": ["h1", "h2", "h3", "h4", "h5"]}], "schema": 1}


@pytest.mark.parametrize(
    ("nodes", "hosts"),
    [
        ([], ["h1", "h2", "h3", "h4", "h5", "h6"]),
        (["n3"], ["h2", "h3", "h4"]),
        (["n1"], ["h1", "h2", "h5"]),
        (["n2", "n3"], ["h1", "h2", "h3", "h4"]),
        (["n6"], ["h6"]),
    ],
)
def test_nodes_and_their_neighbours(nodes, hosts):
    narrowed = narrow.narrow_plan(PLAN, nodes)
    assert sorted(narrowed["hosts"]) == hosts
    assert narrowed["networks"][0]["hosts"] == [host for host in hosts if host != "h6"]
    assert PLAN["networks"][0]["hosts"] == ["h1", "h2", "h3", "h4", "h5"]


def test_no_such_node():
    with pytest.raises(FabricError, match="the plan has no node n9"):
        narrow.narrow_plan(PLAN, ["n1", "n9"])


def check(status, name="ping", **where):
    return Check(name, status, "", "", **where)


def test_checks_about_nodes():
    checks = [
        check("passed", "policy"),
        check("passed", "node", node="n1"),
        check("passed", "node", node="n2"),
        check("passed", "limits", node="n1 (second pod)"),
        check("passed", pair=("n2", "n1"), network="rail"),
        check("passed", pair=("n2", "n3"), network="rail"),
    ]
    assert narrow.about_nodes(checks, []) == checks
    assert narrow.about_nodes(checks, ["n1"]) == [checks[0], checks[1], checks[3], checks[4]]


def test_checks_by_name():
    checks = [check("passed", "policy"), check("failed", "mtu"), check("passed", "mtu", node="n2")]
    assert narrow.only_checks(checks, []) == checks
    assert narrow.only_checks(checks, ["mtu"]) == checks[1:]
    narrow.known_checks(["mtu"], "What.", "checks")
    with pytest.raises(FabricError, match=r"no check named mtuu \(did you mean mtu\?\)"):
        narrow.known_checks(["mtuu"], "What.", "checks")


@pytest.mark.parametrize(
    ("before", "now", "worse"),
    [
        ("passed", "failed", True),
        ("passed", "unproven", True),
        ("passed", "passed", False),
        ("failed", "failed", False),
        ("unproven", "failed", False),
        ("failed", "passed", False),
        (None, "failed", True),
        (None, "unproven", False),
        ("passed", "skipped", False),
    ],
)
def test_what_is_worse(before, now, worse):
    there = {"pair": ("n1", "n2"), "network": "rail"}
    then = [check(before, **there)._asdict()] if before else []
    then = [{**each, "pair": list(each["pair"])} for each in then]  # as JSON has it
    then.append(check("passed", pair=("n2", "n1"), network="rail")._asdict())
    found = narrow.regressions([check(now, **there)], then)
    assert [each.status for each in found] == ([now] if worse else [])
