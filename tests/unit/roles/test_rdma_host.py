"""In which order the role rdma_host reboots hosts, and what becomes of their nodes."""

from __future__ import annotations

import typing as t
from pathlib import Path

import pytest
from ansible_collections.ipu.fabric.tests.unit.fixtures.play import Answers, Data, Outcome, play

GROUPS = {"kube_control_plane": ["cp1", "cp2"], "kube_node": ["w1", "w2", "w3"]}


class Hosts(Answers):
    def rdma_host(self, args: Data) -> Data:
        due = ["RDMA devices are exclusive"] if self.host in self.state["due"] else []
        node = self.host if self.host in self.state["nodes"] else ""
        return {"reboot": due, "notes": [], "node": node, "machine_id": f"id-{self.host}"}

    def reboot(self, args: Data) -> Data:
        if self.host in self.state["dead"]:
            return {"failed": True, "msg": "Timed out waiting for last boot time check"}
        if not self.check:
            self.state["due"].remove(self.host)
            self.state["nodes"].get(self.host, {"boot": 0})["boot"] += 1
        return {"changed": True, "seconds": 0.3}

    def uri(self, args: Data) -> Data:
        return {"unreachable": self.host in self.state["lost"], "msg": "Connection timed out"}

    def k8s_info(self, args: Data) -> Data:
        nodes = self.state["nodes"]
        if self.state["error"]:
            return {"failed": True, "msg": self.state["error"]}
        return {"resources": [self.seen(name, nodes[name]) for name in [args["name"]] if name in nodes]}

    def seen(self, name: str, node: Data) -> Data:
        conditions = [{"type": "Ready", "status": "True"}]
        return {
            "metadata": {"name": name},
            "status": {
                "nodeInfo": {"bootID": str(node["boot"]), "machineID": node.get("id", f"id-{name}")},
                "conditions": conditions,
            },
        }

    def node_drain(self, args: Data) -> Data:
        nodes = self.state["nodes"]
        drained = args.get("state") != "uncordoned"
        named = [args["name"]] if args["name"] else [name for name in nodes if nodes[name]["marked"]]
        for name in [] if self.check else named:
            if drained and not nodes[name]["cordoned"]:
                nodes[name].update(cordoned=True, marked=True)
            if not drained and nodes[name]["marked"]:
                nodes[name].update(cordoned=False, marked=False)
        if drained and args["name"] in self.state["blocked"]:
            return {"failed": True, "msg": "A node could not be drained. Seen: pod jobs/train: budget train"}
        return {"changed": True, "nodes": named}


def node(cordoned: bool = False, marked: bool = False) -> Data:
    return {"cordoned": cordoned, "marked": marked, "boot": 1}


def run(
    folder: Path,
    *options: str,
    due: t.Sequence[str],
    nodes: t.Mapping[str, Data],
    blocked: t.Sequence[str] = (),
    dead: t.Sequence[str] = (),
    lost: t.Sequence[str] = (),
    reboot: bool = True,
    error: str = "",
) -> Outcome:
    state: Data = {"due": list(due), "nodes": dict(nodes), "blocked": list(blocked), "dead": list(dead)}
    state.update(error=error, lost=list(lost))
    tasks = [{"import_role": {"name": "ipu.fabric.rdma_host"}}]
    content: t.List[Data] = [{"hosts": "all", "gather_facts": False, "tasks": tasks}]
    variables = {"rdma_host_reboot": reboot, "rdma_host_drain_timeout": 1}
    return play(folder, content, Hosts, GROUPS, *options, state=state, **variables)


def steps(outcome: Outcome) -> t.List[str]:
    """What happened to nodes and hosts, in that order."""
    return [
        f"{call.args.get('state', 'drained')} {call.args['name'] or 'all'}"
        if call.module == "node_drain"
        else f"reboot {call.host}"
        for call in outcome.of("node_drain", "reboot")
    ]


def test_nodes_are_drained_and_rebooted_one_after_another(tmp_path: Path) -> None:
    nodes = {"cp1": node(), "cp2": node(), "w1": node(cordoned=True), "w3": node(cordoned=True, marked=True)}
    result = run(tmp_path, due=["cp1", "cp2", "w1", "w2"], nodes=nodes)
    assert result.code == 0, result.text
    assert [step for step in steps(result) if not step.endswith(" w2")] == [
        *("drained cp1", "reboot cp1", "uncordoned cp1", "drained cp2", "reboot cp2", "uncordoned cp2"),
        # Somebody else has cordoned it, and it stays so.
        *("drained w1", "reboot w1", "uncordoned w1"),
        # What an interrupted run has left so.
        "uncordoned all",
    ]
    assert {name for name, each in result.state["nodes"].items() if each["cordoned"]} == {"w1"}
    assert not any(each["marked"] for each in result.state["nodes"].values())
    reboots = [call for call in result.of("reboot") if call.host != "w2"]
    assert all(one.end <= other.start for one, other in zip(reboots, reboots[1:]))
    # Each has its settings again before its pods come back.
    calls = [
        (call.module, call.host if call.module == "rdma_host" else call.args["name"])
        for call in result.calls
        if call.module == "rdma_host" or (call.module == "node_drain" and "state" in call.args)
    ]
    assert calls.index(("node_drain", "cp1")) > len(calls) - 1 - calls[::-1].index(("rdma_host", "cp1"))
    # What its API server needs is there before the next one goes.
    assert [call.host for call in result.of("uri")] == ["cp1", "cp2"]


def test_a_node_that_can_not_be_drained_ends_it(tmp_path: Path) -> None:
    nodes = {"cp1": node(), "cp2": node()}
    result = run(tmp_path, due=["cp1", "cp2"], nodes=nodes, blocked=["cp1"])
    assert result.code != 0
    assert steps(result)[:2] == ["drained cp1", "uncordoned cp1"]
    assert not result.of("reboot")
    for text in ("pod jobs/train: budget train", "cp1 failed before it"):
        assert text in result.text
    assert not any(each["cordoned"] or each["marked"] for each in result.state["nodes"].values())


@pytest.mark.parametrize(
    ("second", "fault", "said"),
    [("w1", "dead", "Timed out waiting"), ("cp2", "lost", "Seen: Connection timed out")],
)
def test_a_host_that_does_not_come_back_is_uncordoned_and_the_last(
    tmp_path: Path, second: str, fault: str, said: str
) -> None:
    """Whether the API server of a connection that breaks is ready is not known, so no other is rebooted either."""
    result = run(tmp_path, due=["cp1", second], nodes={"cp1": node(), second: node()}, **{fault: ["cp1"]})
    assert result.code != 0
    assert steps(result) == ["drained cp1", "reboot cp1", "uncordoned cp1"]
    assert said in " ".join(result.text.split())


def test_check_mode_leaves_nodes_alone(tmp_path: Path) -> None:
    nodes = {"cp1": node(), "w1": node(cordoned=True, marked=True)}
    result = run(tmp_path, "--check", due=["cp1", "w1", "w2"], nodes=nodes)
    assert result.code == 0, result.text
    assert sorted(call.host for call in result.of("reboot")) == ["cp1", "w1", "w2"]
    assert result.state["nodes"] == nodes


def test_an_api_that_gives_no_answer_is_no_reason_for_a_reset(tmp_path: Path) -> None:
    done = run(tmp_path, due=["w1"], nodes={"w1": node()}, error="certificate has expired")
    assert done.code != 0
    assert done.of("reboot") == []
    said = " ".join(done.text.split())
    assert "Seen: certificate has expired. w1 was not rebooted." in said
    assert "run ipu.fabric.renew_certificates" in said
    assert "kubeadm reset" not in said


def test_nothing_is_rebooted_without_being_told(tmp_path: Path) -> None:
    result = run(tmp_path, due=["cp1"], nodes={"cp1": node(), "w1": node(cordoned=True, marked=True)}, reboot=False)
    assert result.code == 0, result.text
    assert {call.module for call in result.calls} == {"rdma_host"}


def test_a_node_of_the_same_name_that_is_another_machine_is_not_drained(tmp_path: Path) -> None:
    """The kubeconfig leads to another cluster."""
    result = run(tmp_path, due=["w1"], nodes={"w1": {**node(), "id": "other"}})
    assert result.code != 0
    said = " ".join(result.text.split())
    assert "Seen: its machine-id is other, but that of the host is id-w1. w1 was not rebooted." in said, result.text
    assert [step for step in steps(result) if step != "uncordoned all"] == []
