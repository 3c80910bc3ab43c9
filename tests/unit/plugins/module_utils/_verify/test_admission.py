"""Which nodes are proved, by what a proof saw; and which of them are closed, however many fail."""

from __future__ import annotations

import itertools
import json
import typing as t

import pytest
from ansible_collections.ipu.fabric.plugins.module_utils._common.admission import TAINT, TOLERATION, at_most
from ansible_collections.ipu.fabric.plugins.module_utils._common.result import FabricError
from ansible_collections.ipu.fabric.plugins.module_utils._kube.readiness import tolerates
from ansible_collections.ipu.fabric.plugins.module_utils._model.checks import Check
from ansible_collections.ipu.fabric.plugins.module_utils._verify import admission
from ansible_collections.ipu.fabric.plugins.module_utils._verify.admission import (
    FALSE,
    LEFT_OPEN,
    TRUE,
    UNKNOWN,
    NodeProof,
    NodeSeen,
    Proof,
    Record,
    Verdict,
)
from ansible_collections.ipu.fabric.plugins.module_utils._verify.catalog import result, skip, unproven
from ansible_collections.ipu.fabric.plugins.module_utils._verify.node_admission import status_patch
from ansible_collections.ipu.fabric.plugins.module_utils._verify.pods import SECOND
from ansible_collections.ipu.fabric.tests.unit.fixtures import site as sites
from hypothesis import given, settings
from hypothesis import strategies as st

NET = "rdma-net"
PARTS = {"machine": "m", "boot": "b", "kernel": "k", "nics": "n", "kubelet": "v1", "releases": "r"}
RECORD = Record("2026-11-20T10:00:00Z", "ab" * 32, PARTS)
PASSED = Verdict(TRUE, "Proved", "All checks of this node passed.")
FAILED = Verdict(FALSE, "CheckFailed", "Gateway: no answer. Next: see the switch.")
Pairs = t.Collection[t.Tuple[str, str]]


def checks_of(
    nodes: t.Sequence[str], bad: Pairs = (), broken: t.Sequence[str] = (), name: str = "rping", both: bool = True
) -> t.List[Check]:
    """All nodes have a pod; bad pairs fail, in both directions; broken nodes do not reach their gateway."""
    found = [result("pod", True, "running", "running", node=node) for node in nodes]
    found += [result("gateway", node not in broken, "answers", "no answer", node=node, network=NET) for node in nodes]
    for pair in itertools.permutations(nodes, 2):
        good = pair not in bad and (not both or pair[::-1] not in bad)
        found.append(result(name, good, "10 of 10", "no answer", pair=pair, network=NET))
    return found


def statuses(checks: t.Sequence[Check], nodes: t.Sequence[str] = ()) -> t.Dict[str, t.Tuple[str, str]]:
    return {name: (one.status, one.reason) for name, one in admission.verdicts(checks, nodes).items()}


GOOD, OWN, PATH = (TRUE, "Proved"), (FALSE, "CheckFailed"), (FALSE, "PathFailed")
UNCLEAR, UNTRIED = (UNKNOWN, "PathUnclear"), (UNKNOWN, "Unproven")
FOUR = ("w1", "w2", "w3", "w4")


@pytest.mark.parametrize(
    ("checks", "expected"),
    [
        (checks_of(FOUR), dict.fromkeys(FOUR, GOOD)),
        (checks_of(FOUR, broken=["w2"]), {**dict.fromkeys(FOUR, GOOD), "w2": OWN}),
        # One node in all bad pairs: it alone, not the other ends.
        (checks_of(FOUR, bad=[("w2", name) for name in FOUR]), {**dict.fromkeys(FOUR, GOOD), "w2": PATH}),
        # One bad path: neither end.
        (checks_of(FOUR, bad=[("w1", "w2")]), {**dict.fromkeys(FOUR, GOOD), "w1": UNCLEAR, "w2": UNCLEAR}),
        # With two nodes the matrix tells nothing; what else failed does.
        (checks_of(FOUR[:2], bad=[("w1", "w2")]), {"w1": UNCLEAR, "w2": UNCLEAR}),
        (checks_of(FOUR[:2], bad=[("w1", "w2")], broken=["w2"]), {"w1": GOOD, "w2": OWN}),
        (
            [*checks_of(FOUR[:2], bad=[("w1", "w2")]), result("vipu", False, "open", "timed out", node="w2")],
            {"w1": GOOD, "w2": OWN},
        ),
        # All pairs: no node is at fault.
        (checks_of(FOUR, bad=list(itertools.permutations(FOUR, 2))), dict.fromkeys(FOUR, UNCLEAR)),
        # A ping's answer comes back on the other direction.
        (
            checks_of(FOUR, bad=[("w3", "w1"), ("w3", "w2"), ("w3", "w4")], name="ping"),
            {**dict.fromkeys(FOUR, GOOD), "w3": PATH},
        ),
        ([skip("gateway", "none", node="w1", network=NET)], {}),
        ([result("network", False, "ready", "error", network=NET), *checks_of(FOUR[:1])], {"w1": GOOD}),
        ([unproven("dns", "no tool", "Set verify_image.", node="w1")], {"w1": UNTRIED}),
        (
            [*checks_of(FOUR[:2]), unproven("rping", "no tool", "x", pair=("w1", "w2"), network=NET)],
            {"w1": UNTRIED, "w2": UNTRIED},
        ),
    ],
)
def test_verdicts(checks, expected):
    assert statuses(checks) == expected


def test_what_was_not_tried_because_of_a_bad_node_is_not_held_against_the_others():
    broken = [check for check in checks_of(FOUR, broken=["w1"]) if not check.pair]
    pairs = [unproven("rping", "failed before", "x", pair=pair, network=NET) for pair in (("w1", "w2"), ("w3", "w1"))]
    assert statuses([*broken, *pairs]) == {"w1": OWN, "w2": GOOD, "w3": GOOD, "w4": GOOD}


def test_two_pods_of_one_node_point_to_it():
    pair = ("w1", f"w1{SECOND}")
    assert statuses([result("ping", False, "answers", "0 of 3", pair=pair, network=NET)]) == {"w1": PATH}
    assert statuses([*checks_of(["w1"]), result("ping", True, "answers", "3", pair=pair, network=NET)]) == {"w1": GOOD}


def test_a_figure_that_fell_is_a_failure_of_its_test():
    def fell(*pair: str) -> Check:
        return result("rping", False, ">= 90", "50", pair=pair, network=NET)

    good = checks_of(FOUR)
    assert statuses([*good, fell("w1", "w2")]) == {**dict.fromkeys(FOUR, GOOD), "w1": UNCLEAR, "w2": UNCLEAR}
    worse = [fell(*pair) for name in FOUR[1:] for pair in (("w1", name), (name, "w1"))]
    assert statuses([*good, *worse]) == {**dict.fromkeys(FOUR, GOOD), "w1": PATH}
    moved = result("regression", False, "rail-a", "rail-b", node="w1", subject="groups")
    assert statuses([*good, moved]) == dict.fromkeys(FOUR, GOOD)


def test_a_proof_of_one_node_speaks_of_that_node_alone():
    pairs = [("w3", name) for name in FOUR]
    some = [check for check in checks_of(FOUR, bad=pairs) if not check.pair or "w3" in check.pair]
    assert statuses(some, ["w3"]) == {"w3": PATH}


def test_a_message_fits_a_terminal_and_names_the_next_step():
    checks = [
        result("gateway", False, "x", "very long " * 100, node="w1", network=NET),
        *checks_of(["w1"], broken=["w1"]),
    ]
    message = admission.verdicts(checks)["w1"].text
    assert len(message) < 450
    assert "Gateway" in message
    assert "Next: " in message
    assert "1 more" in message


# What nodes carry


def seen(name: str = "w1", status: str = TRUE, tainted: bool = False, **more: t.Any) -> NodeSeen:
    record = RECORD if status == TRUE else None
    return NodeSeen(name, status, "Proved" if status == TRUE else "New", "", record, tainted, True, PARTS)._replace(
        **more
    )


OTHER = seen("other")  # it takes ordinary pods, and is not in the fabric


def decided(
    *nodes: NodeSeen, mode: str = "enforce", wanted: t.Union[int, str] = "10%", **verdicts: Verdict
) -> t.Dict[str, NodeProof]:
    members = [node.name for node in nodes if node != OTHER]
    return admission.decide(mode, wanted, nodes, members, Proof(verdicts, "2026-11-27T20:00:00Z", "cd" * 32))


@pytest.mark.parametrize(
    ("node", "said", "status", "reason", "tainted"),
    [
        (seen(status=""), None, UNKNOWN, "New", True),
        (seen(status=""), PASSED, TRUE, "Proved", False),
        (seen(status="", tainted=True), PASSED, TRUE, "Proved", False),
        (seen(status=""), FAILED, FALSE, "CheckFailed", True),
        (seen(), None, TRUE, "Proved", False),
        (seen(), FAILED, FALSE, "CheckFailed", True),
        (seen(status=FALSE, tainted=True, record=RECORD), None, FALSE, "New", True),
        (seen(status=FALSE, tainted=True, record=RECORD), PASSED, TRUE, "Proved", False),
        # Opened by hand: until a proof fails again.
        (seen(status=FALSE, record=RECORD), None, FALSE, "New", False),
        # A condition that nobody proved.
        (seen(record=None), None, UNKNOWN, "New", True),
        # Not tested, or a path that points to no node: it stays as it was.
        (seen(), Verdict(UNKNOWN, "PathUnclear", "x"), UNKNOWN, "PathUnclear", False),
        (seen(status="", tainted=True), Verdict(UNKNOWN, "PathUnclear", "x"), UNKNOWN, "PathUnclear", True),
        *[
            (seen(parts={**PARTS, part: "x"}), None, UNKNOWN, reason, True)
            for part, reason in (
                ("boot", "Rebooted"),
                ("machine", "Reinstalled"),
                ("kernel", "Changed"),
                ("nics", "Changed"),
                ("kubelet", "Upgraded"),
            )
        ],
        # What changes on all nodes at once closes none of them; a failure after it closes within the budget.
        (seen(parts={**PARTS, "releases": "x"}), None, UNKNOWN, "Upgraded", False),
        (seen(parts={**PARTS, "releases": "x"}), PASSED, TRUE, "Proved", False),
        (seen(parts={**PARTS, "releases": "x"}, tainted=True), None, UNKNOWN, "Upgraded", True),
        (seen(parts={**PARTS, "boot": "x"}), PASSED, TRUE, "Proved", False),
        (seen(parts={**PARTS, "boot": "x"}), FAILED, FALSE, "CheckFailed", True),
        # What was not known then, or is not known now, is no change.
        (seen(parts={"boot": "b", "firmware": "f"}), None, TRUE, "Proved", False),
    ],
)
def test_one_node(node, said, status, reason, tainted):
    found = decided(node, OTHER, **({"w1": said} if said else {}))["w1"]
    assert (found.status, found.reason, found.tainted) == (status, reason, tainted)
    again = decided(node._replace(**carried(found)), OTHER)["w1"]
    assert again._replace(time=found.time) == found  # a round without a proof changes nothing


def carried(found: NodeProof) -> t.Dict[str, t.Any]:
    """The fields of a node that carries this."""
    kept = found._asdict()
    kept.pop("time")
    return kept


def test_a_reboot_is_told_with_the_time_of_the_proof():
    found = decided(seen(parts={**PARTS, "boot": "x"}), OTHER)["w1"]
    assert (
        found.message == "Rebooted since the proof of 2026-11-20T10:00:00Z."
        " Next: run ipu.fabric.verify, or ipu.fabric.site, to prove it."
    )
    assert decided(seen(parts={**PARTS, "boot": "x"}), OTHER, w1=PASSED)["w1"].record.parts["boot"] == "x"


@pytest.mark.parametrize("mode", ["off", "warn"])
def test_other_modes_close_nothing(mode):
    found = decided(seen(status="", tainted=True), seen("w2", tainted=True), OTHER, mode=mode)
    assert not any(one.tainted for one in found.values())
    assert (found["w1"] == NodeProof()) == (mode == "off")


def test_the_last_node_stays_open():
    found = decided(seen("w1", ""), seen("w2", ""))
    assert [found[name].tainted for name in ("w1", "w2")] == [False, True]
    assert found["w1"].message.endswith(f"{LEFT_OPEN}no other node takes ordinary pods.")
    # With a control plane for nothing else, and workers that have joined with the taint.
    planes = seen("cp1", "", ordinary=False)
    found = decided(planes, seen("w1", "", tainted=True), seen("w2", "", tainted=True))
    assert [found[name].tainted for name in ("cp1", "w1", "w2")] == [True, False, True]


def test_the_budget_is_told():
    found = decided(*(seen(f"w{number}") for number in range(1, 5)), wanted=1, w1=FAILED, w2=FAILED)
    assert [name for name, one in found.items() if one.tainted] == ["w1"]
    assert found["w2"].message.endswith("Left open: fabric_max_unproved (1) allows no more closed nodes than 1.")


# A plan with errors


def error(check: str, *hosts: str, level: str = "error") -> t.Dict[str, t.Any]:
    what, step = "The fabric NIC must be up.", "Check the cable, then `ip link set eth1 up`."
    return {"level": level, "check": check, "hosts": list(hosts), "what": what, "seen": "eth1 is down", "next": step}


def by_plan(
    *findings: t.Dict[str, t.Any], nodes: t.Sequence[NodeSeen], wanted: t.Union[int, str] = "10%"
) -> t.Dict[str, NodeProof]:
    plan = {"findings": findings, "hosts": {f"h{number}": {"node": f"w{number}"} for number in range(1, 5)}}
    proof = Proof(admission.plan_verdicts(plan), "2026-11-27T20:00:00Z")
    return admission.decide("enforce", wanted, nodes, [node.name for node in nodes], proof)


def test_errors_of_the_plan_close_the_nodes_of_their_hosts():
    nodes = [seen(f"w{number}") for number in range(1, 5)]
    other = error("swap", "h2", level="warning")
    found = by_plan(error("fabric-nic", "h1"), error("networks"), other, nodes=nodes)
    assert (found["w1"].status, found["w1"].reason, found["w1"].tainted) == (UNKNOWN, "PlanError", True)
    assert found["w1"].message == (
        "The plan has errors. fabric-nic: The fabric NIC must be up. Seen: eth1 is down. Next: Check the cable, then"
        " `ip link set eth1 up`. Then run ipu.fabric.verify, or ipu.fabric.site, to prove it. Plan of"
        " 2026-11-27T20:00:00Z."
    )
    assert found["w1"].record == RECORD
    assert {name: (one.status, one.tainted) for name, one in found.items() if name != "w1"} == dict.fromkeys(
        ("w2", "w3", "w4"), (TRUE, False)
    )
    fixed = decided(*(node._replace(**carried(found[node.name])) for node in nodes), w1=PASSED)
    assert (fixed["w1"].status, fixed["w1"].tainted) == (TRUE, False)


def test_errors_of_the_plan_keep_to_the_budget_and_the_last_node():
    nodes = [seen(f"w{number}") for number in range(1, 5)]
    everywhere = error("fabric-nic", "h1", "h2", "h3", "h4")
    found = by_plan(everywhere, nodes=nodes, wanted=2)
    assert [one.tainted for one in found.values()] == [True, True, False, False]
    assert found["w3"].message.endswith(f"{LEFT_OPEN}fabric_max_unproved (2) allows no more closed nodes than 2.")
    found = by_plan(everywhere, nodes=nodes, wanted=4)
    assert sum(one.tainted for one in found.values()) == 3


@pytest.mark.parametrize(
    ("node", "check", "expected"),
    [
        # That it did not answer says nothing of the node: as a check that could not run.
        (seen(), "unobserved", (UNKNOWN, "Unproven", False)),
        (seen(status="", tainted=True), "unobserved", (UNKNOWN, "Unproven", True)),
        # What a proof saw stays, and so does a node that was opened by hand after it.
        (seen(status=FALSE, reason="CheckFailed", record=RECORD), "fabric-nic", (FALSE, "CheckFailed", False)),
    ],
)
def test_errors_of_the_plan_on_one_node(node, check, expected):
    found = by_plan(error(check, "h1"), nodes=[node, seen("w2")])["w1"]
    assert (found.status, found.reason, found.tainted) == expected


STATES = st.builds(
    seen,
    status=st.sampled_from([TRUE, FALSE, UNKNOWN, ""]),
    tainted=st.booleans(),
    ordinary=st.booleans(),
    record=st.sampled_from([None, RECORD]),
    parts=st.sampled_from([PARTS, {**PARTS, "boot": "x"}]),
)
SAID = st.sampled_from([PASSED, FAILED, Verdict(UNKNOWN, "Unproven", "x"), None])


@settings(deadline=None)
@given(nodes=st.lists(STATES, min_size=1, max_size=12), wanted=st.sampled_from([0, 1, 3, "10%", "50%"]), data=st.data())
def test_whatever_a_proof_says(nodes: t.List[NodeSeen], wanted: t.Union[int, str], data: st.DataObject) -> None:
    nodes = [node._replace(name=f"w{number}") for number, node in enumerate(nodes)]
    said = {node.name: one for node in nodes for one in [data.draw(SAID)] if one}
    found = admission.decide("enforce", wanted, nodes, [node.name for node in nodes], Proof(said, "now", "d"))
    by_name = {node.name: node for node in nodes}
    closed = {name for name, one in found.items() if one.tainted}
    # Only nodes that are not proved, and never the last.
    assert all(found[name].status != TRUE for name in closed)
    if any(node.ordinary for node in nodes):
        assert any(node.ordinary and node.name not in closed for node in nodes)
    # Nodes that were proved as they are, and open, are closed within the budget.
    now = [
        name
        for name in closed
        if not by_name[name].tainted and not admission.changed_parts(by_name[name]) and by_name[name].record
    ]
    assert len(now) <= at_most(wanted, len(nodes))
    # Without a further proof it stays so.
    again = [by_name[name]._replace(**carried(one)) for name, one in found.items()]
    later = admission.decide("enforce", wanted, again, list(found), Proof({}))
    assert {name: one._replace(time="") for name, one in found.items()} == later


@pytest.mark.parametrize(
    ("wanted", "nodes", "most"),
    [("10%", 1000, 100), ("10%", 3, 1), ("0%", 1000, 0), (2, 1000, 2), ("3", 10, 3), (0, 10, 0), ("100%", 7, 7)],
)
def test_budgets(wanted, nodes, most):
    assert at_most(wanted, nodes) == most


@pytest.mark.parametrize("wanted", ["", "x", "-1", "101%", "1.5", None, True])
def test_what_is_no_budget(wanted):
    with pytest.raises(FabricError, match="fabric_max_unproved"):
        at_most(wanted, 10)


# What a node is


@pytest.mark.parametrize(
    ("change", "reason", "told"),
    [
        ({}, "Proved", ""),
        ({"mac": "0c:42:a1:00:00:99"}, "Changed", "NICs changed (PCI address, MAC, device) since"),
        ({"guid": "0c42:a103:0000:0099"}, "Changed", "NICs changed (GUID) since"),
        ({"firmware": "28.43.2026"}, "Changed", "NIC firmware changed since"),
        ({"driver_version": "25.01-0.6.0"}, "Changed", "NIC driver version changed since"),
        ({"mtu": 1500, "rate_gbps": 200.0}, "Proved", ""),
    ],
)
def test_another_nic_firmware_or_driver_is_to_be_proved(change: t.Dict[str, t.Any], reason: str, told: str) -> None:
    then, now = sites.plan(sites.site()), sites.plan(sites.site())
    now["hosts"]["w1"]["links"]["rdma-net"].update(change)
    name = now["hosts"]["w1"]["node"]
    node = seen(name, record=RECORD._replace(parts=admission.nic_parts(then)[name]))
    found = decided(node._replace(parts=admission.nic_parts(now)[name]), OTHER)[name]
    assert (found.reason if reason != "Proved" else found.status) == (reason if reason != "Proved" else TRUE)
    assert found.tainted == (reason != "Proved")
    assert found.message.startswith(told)


def test_an_upgrade_of_operators_that_breaks_all_nodes_closes_some_of_them() -> None:
    upgraded = [seen(f"w{number}", parts={**PARTS, "releases": "x"}) for number in range(1, 11)]
    before = decided(*upgraded, OTHER)
    assert {(one.status, one.tainted) for one in before.values() if one.status} == {(UNKNOWN, False)}
    after = decided(*upgraded, OTHER, wanted=2, **{node.name: FAILED for node in upgraded})
    assert sum(one.tainted for one in after.values()) == 2


@pytest.mark.parametrize(
    ("release", "value", "told"),
    [
        ("network_operator", "25.1.0", True),
        ("components", {"multus": {"version": "v9"}}, True),
        ("gpu_operator", "99.1.0", True),
        ("kubernetes", "1.99.1", False),  # the node says that itself
        ("ipu_operator", "9.9.9", False),  # nothing of it runs on nodes
    ],
)
def test_other_releases_are_to_be_proved(release: str, value: t.Any, told: bool) -> None:
    then, now = sites.plan(sites.site()), sites.plan(sites.site())
    now["releases"][release] = value
    name = now["hosts"]["w1"]["node"]
    node = seen(name, record=RECORD._replace(parts=admission.nic_parts(then)[name]))
    assert admission.changed_parts(node._replace(parts=admission.nic_parts(now)[name])) == ["releases"] * told


def test_an_upgraded_kubelet_or_runtime_is_another_node() -> None:
    def parts(**info: str) -> t.Mapping[str, str]:
        about = {"kubeletVersion": "v1.35.4", "containerRuntimeVersion": "containerd://2.2.1", **info}
        return admission.see_node({"metadata": {"name": "w1"}, "status": {"nodeInfo": about}}, {}).parts

    assert parts()["kubelet"] != parts(kubeletVersion="v1.36.3")["kubelet"]
    assert parts()["kubelet"] != parts(containerRuntimeVersion="containerd://2.3.0")["kubelet"]
    assert "kubelet" not in admission.see_node({"metadata": {"name": "w1"}}, {}).parts


def test_what_an_earlier_release_did_not_keep_is_no_change() -> None:
    plan = sites.plan(sites.site())
    parts = dict(admission.nic_parts(plan)[plan["hosts"]["w1"]["node"]])
    for name in ("guids", "driver_versions"):
        assert parts.pop(name)
    now = admission.nic_parts(plan)[plan["hosts"]["w1"]["node"]]
    assert admission.changed_parts(seen(record=RECORD._replace(parts=parts), parts=now)) == []


# The API


def test_only_our_condition_and_annotation_are_patched():
    others = [{"type": "Ready", "status": "True"}]
    node = {"metadata": {"name": "w1", "annotations": {"a": "b"}}, "status": {"conditions": others}}
    wanted = decided(admission.see_node(node, {"nics": "n"}), OTHER, w1=PASSED)["w1"]
    patch = status_patch(node, wanted, "now")
    assert list(patch["metadata"]["annotations"]) == ["ipu.fabric/proof"]
    assert [each["type"] for each in patch["status"]["conditions"]] == ["FabricProved"]
    patched = {
        "metadata": {"name": "w1", "annotations": {"a": "b", **patch["metadata"]["annotations"]}},
        "status": {"conditions": [*others, *patch["status"]["conditions"]]},
    }
    again = admission.see_node(patched, {"nics": "n"})
    assert again.record == wanted.record
    assert status_patch(patched, decided(again, OTHER)["w1"], "later") == {}
    gone = status_patch(patched, NodeProof(), "later")
    assert gone["metadata"] == {"annotations": {"ipu.fabric/proof": None}}
    assert gone["status"]["conditions"][0]["$patch"] == "delete"
    assert status_patch(node, NodeProof(), "later") == {}


@pytest.mark.parametrize("text", [None, "", "x", "[]", "{}", json.dumps({"time": 1, "report": "", "parts": []})])
def test_what_is_no_record(text):
    assert admission.read_record(text) is None


def test_the_toleration_is_that_of_the_taint():
    assert tolerates([TOLERATION], TAINT)


def test_what_keeps_ordinary_pods_away():
    def ordinary(taints: t.Sequence[t.Dict[str, str]] = (), **spec: t.Any) -> bool:
        return admission.see_node({"metadata": {"name": "w1"}, "spec": {"taints": list(taints), **spec}}, {}).ordinary

    assert ordinary()
    assert ordinary([TAINT, {"key": "x", "effect": "PreferNoSchedule"}])
    assert not ordinary([{"key": "x", "effect": "NoSchedule"}])
    assert not ordinary(unschedulable=True)
