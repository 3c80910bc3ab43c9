"""The role whereabouts carries out what _component/test_whereabouts.py sees decided."""

from __future__ import annotations

import typing as t
from pathlib import Path

from ansible_collections.ipu.fabric.tests.unit.fixtures.play import Answers, Data, Outcome, play

OPERATOR = {"namespace": "netops", "name": "network-operator", "version": "26.7.1", "release": "network-operator"}
OF_OPERATOR, OURS = "netops/whereabouts", "whereabouts-whereabouts-chart"
CLUSTER: Data = {"whereabouts": [], "whereabouts_networks": [], "network_operators": [OPERATOR], "own": []}


class Cluster(Answers):
    def cluster_info(self, args: Data) -> Data:
        return dict(self.state)

    def helm_release(self, args: Data) -> Data:
        return {"upgraded": False}

    def kube_apply(self, args: Data) -> Data:
        return {"objects": [], "kept": []}

    def kube_wait(self, args: Data) -> Data:
        return {}


def run(folder: Path, state: str, *, own: t.Sequence[str] = (), others: t.Sequence[str] = (), **more: t.Any) -> Outcome:
    variables = {"whereabouts_state": state, "whereabouts_start_pod": more.pop("start", True)}
    task = {"import_role": {"name": "ipu.fabric.whereabouts"}, "vars": variables}
    content = [{"hosts": "cp1", "gather_facts": False, "tasks": [task]}]
    found = {**CLUSTER, "whereabouts": [*own, *others], "own": [*own], **more}
    return play(folder, content, Cluster, {"kube_control_plane": ["cp1"]}, state=found)


def removed(outcome: Outcome) -> t.List[str]:
    calls = [call for call in outcome.of("kube_apply") if call.args.get("state") == "absent"]
    return [f"{each['kind']} {each['metadata']['name']}" for call in calls for each in call.args["objects"]]


def test_it_takes_over_from_the_network_operator(tmp_path: Path) -> None:
    result = run(tmp_path, "present", others=[OF_OPERATOR])
    assert result.code == 0, result.text
    assert result.of("helm_release")[0].args["namespace"] == "netops"
    assert "DaemonSet whereabouts" in removed(result)
    # At last, when the former one is gone: ready DaemonSets don't say that a pod can start.
    waited, started = result.of("kube_wait")
    assert {each["namespace"] for each in waited.args["objects"]} == {"netops"}
    assert result.calls[-1] == started
    assert started.args["pods"] == [{"namespace": "netops"}]


def test_a_playbook_that_proves_the_fabric_starts_no_pod_here(tmp_path: Path) -> None:
    (waited,) = run(tmp_path, "present", start=False).of("kube_wait")
    assert "pods" not in waited.args


def test_a_second_one_is_refused(tmp_path: Path) -> None:
    result = run(tmp_path, "present", others=["team/whereabouts"])
    assert result.code != 0
    assert "team/whereabouts" in result.text
    assert not result.of("helm_release")


def test_it_goes_with_its_namespace(tmp_path: Path) -> None:
    result = run(tmp_path, "absent", own=[f"netops/{OURS}"], network_operators=[])
    assert result.code == 0, result.text
    assert [call.args["namespace"] for call in result.of("helm_release")] == ["netops"]
    assert "Namespace netops" in removed(result)
