# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""In which order the role rdma_host reboots hosts, and what becomes of their nodes."""

from __future__ import annotations

import typing as t
from pathlib import Path

from ansible_collections.ipu.fabric.tests.unit.fixtures.play import Answers, Data, Outcome, play

GROUPS = {"kube_control_plane": ["cp1", "cp2"], "kube_node": ["w1", "w2", "w3"]}


class Hosts(Answers):
    def rdma_host(self, args: Data) -> Data:
        due = ["RDMA devices are exclusive"] if self.host in self.state["due"] else []
        return {"reboot": due, "notes": [], "node": self.host if self.host in self.state["nodes"] else ""}

    def reboot(self, args: Data) -> Data:
        if self.host in self.state["dead"]:
            return {"failed": True, "msg": "Timed out waiting for last boot time check"}
        if not self.check:
            self.state["due"].remove(self.host)
            self.state["nodes"].get(self.host, {"boot": 0})["boot"] += 1
        return {"changed": True, "seconds": 0.3}

    def k8s_info(self, args: Data) -> Data:
        if args["kind"] == "Pod":
            return {"resources": self.state["pods"].get(args["field_selectors"][0].partition("=")[2], [])}
        nodes = self.state["nodes"]
        if args.get("name") and self.state["error"]:
            return {"failed": True, "msg": self.state["error"]}
        named = [args["name"]] if args.get("name") else [name for name in nodes if nodes[name]["marked"]]
        return {"resources": [self.seen(name, nodes[name]) for name in named if name in nodes]}

    def seen(self, name: str, node: Data) -> Data:
        labels = {"ipu.fabric/cordoned": "rdma_host"} if node["marked"] else {}
        conditions = [{"type": "Ready", "status": "True"}]
        return {
            "metadata": {"name": name, "labels": labels},
            "spec": {"unschedulable": True} if node["cordoned"] else {},
            "status": {"nodeInfo": {"bootID": str(node["boot"])}, "conditions": conditions},
        }

    def k8s_drain(self, args: Data) -> Data:
        if self.check:
            return {"skipped": True}
        self.state["nodes"][args["name"]]["cordoned"] = args["state"] != "uncordon"
        if args["state"] == "drain" and args["name"] in self.state["blocked"]:
            return {"failed": True, "msg": "Failed to delete pod jobs/train due to: disruption budget"}
        return {"changed": True}

    def node_labels(self, args: Data) -> Data:
        for node in [] if self.check else args["nodes"]:
            self.state["nodes"][node["name"]]["marked"] = node["labels"]["ipu.fabric/cordoned"] is not None
        return {}


def node(cordoned: bool = False, marked: bool = False) -> Data:
    return {"cordoned": cordoned, "marked": marked, "boot": 1}


def run(
    folder: Path,
    *options: str,
    due: t.Sequence[str],
    nodes: t.Mapping[str, Data],
    blocked: t.Sequence[str] = (),
    dead: t.Sequence[str] = (),
    pods: Data | None = None,
    reboot: bool = True,
    error: str = "",
) -> Outcome:
    state: Data = {"due": list(due), "nodes": dict(nodes), "blocked": list(blocked), "dead": list(dead)}
    state.update(pods=pods or {}, error=error)
    tasks = [{"import_role": {"name": "ipu.fabric.rdma_host"}}]
    content: t.List[Data] = [{"hosts": "all", "gather_facts": False, "tasks": tasks}]
    variables = {"rdma_host_reboot": reboot, "rdma_host_drain_timeout": 1}
    return play(folder, content, Hosts, GROUPS, *options, state=state, **variables)


def steps(outcome: Outcome) -> t.List[str]:
    """What happened to nodes and hosts, in that order."""
    found = []
    for call in outcome.of("k8s_drain", "reboot"):
        found.append(
            f"{call.args['state']} {call.args['name']}" if call.module == "k8s_drain" else f"reboot {call.host}"
        )
    return found


def test_nodes_are_drained_and_rebooted_one_after_another(tmp_path: Path) -> None:
    nodes = {"cp1": node(), "cp2": node(), "w1": node(cordoned=True), "w3": node(cordoned=True, marked=True)}
    result = run(tmp_path, due=["cp1", "cp2", "w1", "w2"], nodes=nodes)
    assert result.code == 0, result.text
    assert [step for step in steps(result) if not step.endswith(" w2")] == [
        *("drain cp1", "reboot cp1", "uncordon cp1", "drain cp2", "reboot cp2", "uncordon cp2"),
        # Somebody else has cordoned it.
        *("drain w1", "reboot w1"),
        # An interrupted run has left it so.
        "uncordon w3",
    ]
    assert {name for name, each in result.state["nodes"].items() if each["cordoned"]} == {"w1"}
    assert not any(each["marked"] for each in result.state["nodes"].values())
    reboots = [call for call in result.of("reboot") if call.host != "w2"]
    assert all(one.end <= other.start for one, other in zip(reboots, reboots[1:]))
    # Each has its settings again before its pods come back.
    calls = [
        (call.module, call.host if call.module == "rdma_host" else call.args["name"])
        for call in result.calls
        if call.module == "rdma_host" or (call.module == "k8s_drain" and call.args["state"] == "uncordon")
    ]
    assert calls.index(("k8s_drain", "cp1")) > len(calls) - 1 - calls[::-1].index(("rdma_host", "cp1"))
    # What its API server needs is there before the next one goes.
    assert [call.host for call in result.of("uri")] == ["cp1", "cp2"]


def test_a_node_that_can_not_be_drained_ends_it(tmp_path: Path) -> None:
    pod = {"metadata": {"namespace": "jobs", "name": "slow", "deletionTimestamp": "now"}}
    nodes = {"cp1": node(), "cp2": node()}
    result = run(tmp_path, due=["cp1", "cp2"], nodes=nodes, blocked=["cp1"], pods={"cp1": [pod]})
    assert result.code != 0
    assert set(steps(result)) == {"drain cp1", "uncordon cp1"}
    for text in ("disruption budget", "jobs/slow", "cp1 failed before it"):
        assert text in result.text
    assert not any(each["cordoned"] or each["marked"] for each in result.state["nodes"].values())


def test_pods_that_do_not_go_block_the_reboot(tmp_path: Path) -> None:
    static = {"metadata": {"namespace": "kube-system", "name": "etcd-cp1", "ownerReferences": [{"kind": "Node"}]}}
    slow = {"metadata": {"namespace": "jobs", "name": "slow", "ownerReferences": [{"kind": "IPUJob"}]}}
    result = run(tmp_path, due=["cp1"], nodes={"cp1": node()}, pods={"cp1": [static, slow]})
    assert result.code != 0
    assert steps(result) == ["drain cp1", "uncordon cp1"]
    assert "Pods on it: jobs/slow." in result.text


def test_a_host_that_does_not_come_back_is_uncordoned_and_the_last(tmp_path: Path) -> None:
    result = run(tmp_path, due=["cp1", "w1"], nodes={"cp1": node(), "w1": node()}, dead=["cp1"])
    assert result.code != 0
    assert steps(result) == ["drain cp1", "reboot cp1", "uncordon cp1"]
    assert "Timed out waiting" in result.text


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
