"""The playbook upgrade on hosts that are only names: who is upgraded when, and what ends it."""

from __future__ import annotations

import json
import typing as t
from pathlib import Path

import pytest
from ansible_collections.ipu.fabric.tests.unit.fixtures.play import Answers, Data, Outcome, play

OLD, NEW = "1.35.4", "1.36.3"
PLANES, WORKERS = ["cp1", "cp2"], ["w1", "w2"]
NAMES = [*PLANES, *WORKERS]


class Cluster(Answers):
    """Nodes with the release of their kubelets. `broken` fail kubeadm, `worse` the proof once they are upgraded."""

    def fabric_plan(self, args: Data) -> Data:
        nodes = self.state["nodes"]
        if args.get("scope") == "cluster":
            return self.cluster_info(args)
        if args.get("scope") == "upgrade":
            wanted = args["kubernetes_version"]
            due = [name for name in nodes if nodes[name]["version"] != wanted]
            upgrade = {
                "control_planes": [name for name in due if name.startswith("cp")],
                "workers": [name for name in due if name.startswith("w")],
                "done": [name for name in nodes if name not in due],
                "begun": any(name.startswith("cp") for name in nodes if name not in due),
                "marked": [name for name in nodes if nodes[name]["marked"] and name not in due],
                "behind": {name: f"kubelet {nodes[name]['version']}" for name in due},
                "nodes": {name: name for name in nodes},
                "ca": args["cluster"]["ca"],
                "resumed": self.is_resumed(f"{args.get('artifacts_dir')}/upgrade-{wanted}.json"),
            }
            return {"upgrade": upgrade, "text": "turns", "errors": 0}
        hosts = {name: {"node": name, "address": "", "links": {}, "roles": []} for name in nodes}
        plan = {"hosts": hosts, "releases": {"kubernetes": self.state["wanted"]}, "cluster": {}, "networks": []}
        return {"plan": plan, "text": "plan", "errors": 0, "refusal": ""}

    def is_resumed(self, path: str) -> bool:
        # This class runs in a process that has none of this file's imports.
        from ansible_collections.ipu.fabric.plugins.module_utils._plan import upgrade

        try:
            with open(path) as file:
                return upgrade.is_resumed(file.read(), "ab")
        except FileNotFoundError:
            return False

    def delegated_module(self, args: Data) -> Data:
        return {"hosts": {name: {} for name in args["hosts"]}}

    def cluster_info(self, args: Data) -> Data:
        nodes = [{"name": name, **node} for name, node in self.state["nodes"].items()]
        return {"present": True, "ca": "ab", "version": "1.35.4", "nodes": nodes}

    def kubernetes_node_info(self, args: Data) -> Data:
        node = {"name": self.host, "address": "", "distribution": "debian", "release": "bookworm"}
        return {"node": {**node, "membership": "member", "images": ["registry.k8s.io/pause:3.10.1"]}}

    def apt_packages(self, args: Data) -> Data:
        return {"changed": True, "versions": {"containerd.io": "2.2.1"}}

    def kubeadm(self, args: Data) -> Data:
        if self.host in self.state["broken"]:
            return {"failed": True, "msg": "kubeadm upgrade node failed"}
        return {"changed": True, "unreachable": self.host in self.state["lost"]}

    def systemd_units(self, args: Data) -> Data:
        if self.host in self.state["lost"]:
            return {"unreachable": True}
        if args["units"][-1].get("restart") == "always" and not self.check:
            self.state["nodes"][self.host]["version"] = "1.36.3"
        return {"stale": [], "changed": True}

    def kube_wait(self, args: Data) -> Data:
        old = [name for name in args.get("nodes") or () if self.state["nodes"][name]["version"] != "1.36.3"]
        return {"failed": True, "msg": f"node {old[0]} is not Ready with the release"} if old else {}

    def node_drain(self, args: Data) -> Data:
        drained, name = args.get("state") != "uncordoned", args["name"]
        if drained and name in self.state["blocked"]:
            return {"failed": True, "msg": "pod jobs/train: The disruption budget train needs 1 healthy pods"}
        if not self.check:
            self.state["nodes"][name]["marked"] = drained
        return {"changed": True}

    def fabric_probe(self, args: Data) -> Data:
        return {"probe": {"probed": True, "nodes": args["nodes"]}}

    def fabric_report(self, args: Data) -> Data:
        proved = args["nodes"] or list(self.state["nodes"])
        ill = [name for name in proved if name in self.state["worse"]]
        ill = [name for name in ill if self.state["nodes"][name]["version"] == "1.36.3"]
        checks = [{"check": "ping", "status": "failed" if name in ill else "passed", "node": name} for name in proved]
        worse = [
            {**c, "network": "", "subject": "", "pair": [], "expected": "", "seen": "", "next": ""} for c in checks
        ]
        worse = [check for check in worse if check["status"] == "failed" and args["before"]]
        why = f"The fabric is worse than before on {', '.join(args['nodes'])}." if worse else ""
        proofs = [{"name": name, "status": "True", "reason": "Proved", "text": ""} for name in proved]
        found = {"checks": checks, "regressions": worse, "refusal": why, "bare": False, "proofs": proofs}
        return {**found, "table": "", "summary": "proved", "outcome": "proved"}

    def node_admission(self, args: Data) -> Data:
        return {"changed": bool(args["proofs"]), "lines": []}

    def control_plane_backup(self, args: Data) -> Data:
        return {"changed": True, "path": args["snapshot"]}


def upgrade(
    folder: Path, *options: str, state: t.Optional[Data] = None, more: t.Sequence[str] = (), **given: t.Any
) -> Outcome:
    nodes = {name: {"version": OLD, "marked": False} for name in [*NAMES, *more]}
    wanted = given.get("fabric_kubernetes_version", NEW)
    state = {"nodes": nodes, "wanted": wanted, "broken": [], "lost": [], "blocked": [], "worse": [], **(state or {})}
    variables: Data = {
        "fabric_artifacts_dir": str(folder / "artifacts"),
        "fabric_kubernetes_version": NEW,
        "fabric_ipu": False,
        "fabric_probe_ports": False,
        "upgrade_snapshot_dir": str(folder / "snapshots"),
        "ansible_become": False,
        "_upgrade_pause": 0,
    }
    (folder / "artifacts").mkdir(exist_ok=True)
    groups = {"kube_control_plane": PLANES, "kube_node": [*WORKERS, *more]}
    return play(folder, "ipu.fabric.upgrade", Cluster, groups, *options, state=state, **{**variables, **given})


def steps(outcome: Outcome) -> t.List[str]:
    found = []
    for call in outcome.of("node_drain", "kubeadm", "fabric_probe", "control_plane_backup"):
        if call.module == "node_drain":
            found.append(f"{call.args.get('state', 'drained')} {call.args['name']}")
        elif call.module == "fabric_probe":
            found.append(" ".join(["prove", *(call.args["nodes"] or ["all"])]))
        elif call.module == "kubeadm":
            found.append(f"{'apply' if call.args['first'] else 'node'} {call.host}")
        else:
            found.append(f"snapshot {call.host}")
    return found


def one(name: str, command: str = "node") -> t.List[str]:
    return [f"drained {name}", f"{command} {name}", f"uncordoned {name}", f"prove {name}"]


def versions(outcome: Outcome) -> t.Dict[str, str]:
    return {name: node["version"] for name, node in outcome.state["nodes"].items()}


def test_one_after_another_and_a_second_run_changes_nothing(tmp_path: Path) -> None:
    result = upgrade(tmp_path)
    assert result.code == 0, result.text
    workers = [step for name in WORKERS for step in one(name)]
    assert steps(result) == ["prove all", "snapshot cp1", *one("cp1", "apply"), *one("cp2"), *workers]
    assert result.of("cluster_kubelets") == []
    assert set(versions(result).values()) == {NEW}
    assert not any(node["marked"] for node in result.state["nodes"].values())
    again = upgrade(tmp_path, state=result.state)
    assert again.code == 0, again.text
    assert steps(again) == []
    assert "changed=0" in again.text
    assert "changed=1" not in again.text


@pytest.mark.parametrize(("mode", "marks"), [("off", []), ("warn", ["", "w1"]), ("enforce", ["", "w1"])])
def test_an_upgraded_node_is_unproved_from_before_it_takes_pods_until_it_is_proved(
    tmp_path: Path, mode: str, marks: t.List[str]
) -> None:
    result = upgrade(tmp_path, fabric_admission=mode, fabric_max_unproved=2)
    assert result.code == 0, result.text
    calls = result.of("node_drain", "node_admission", "fabric_report")
    order = [(call.module, call.args.get("state") or call.args.get("nodes")) for call in calls]
    at = order.index(("node_drain", "uncordoned"), order.index(("fabric_report", ["cp2"])))  # of w1
    after = [module for module, _args in order[at - bool(marks) : at + 2 + bool(marks)]]
    expected = ["node_admission", "node_drain", "fabric_report", "node_admission"] if marks else []
    assert after == (expected or ["node_drain", "fabric_report"])
    told = result.of("node_admission")
    assert {(call.args["mode"], call.args["max_unproved"]) for call in told} == ({(mode, 2)} if marks else set())
    names = [" ".join(proof["name"] for proof in call.args["proofs"]) for call in told]
    assert names == ([name for host in NAMES for name in ("", host)] if marks else [])


@pytest.mark.parametrize("failure", ["blocked", "worse"])
def test_the_first_failure_ends_it_and_the_next_run_goes_on(tmp_path: Path, failure: str) -> None:
    result = upgrade(tmp_path, state={failure: ["w1"]})
    assert result.code != 0
    assert not [step for step in steps(result) if step.endswith(" w2")]
    assert not any(node["marked"] for node in result.state["nodes"].values()), "uncordoned whatever happens"
    said = {"blocked": "disruption budget train", "worse": "worse than before on w1"}
    assert said[failure] in " ".join(result.text.split())
    if failure == "worse":  # it is on the release, and nothing goes on while it is worse
        still = upgrade(tmp_path, state=result.state)
        assert still.code != 0
        assert steps(still) == ["prove cp1 cp2 w1"] * 2
    healed = upgrade(tmp_path, state={**result.state, failure: []})
    assert healed.code == 0, healed.text
    rest = [] if failure == "worse" else one("w1")
    done = "prove cp1 cp2" + (" w1" if failure == "worse" else "")
    assert steps(healed) == [done, *rest, *one("w2")]
    assert set(versions(healed).values()) == {NEW}


def test_what_another_cluster_could_do_before_an_upgrade_counts_for_nothing(tmp_path: Path) -> None:
    """It was reset, or restored elsewhere, in the middle of its upgrade to the same release."""
    before = tmp_path / "artifacts" / f"upgrade-{NEW}.json"
    before.parent.mkdir()
    before.write_text('{"ca": "cd", "checks": []}')
    result = upgrade(tmp_path, state={"broken": ["cp1"]})
    assert steps(result)[:2] == ["prove all", "snapshot cp1"], result.text
    assert json.loads(before.read_text())["ca"] == "ab"


def test_a_batch_of_which_one_fails(tmp_path: Path) -> None:
    """The others of the batch are finished and proved; the next batch does not begin."""
    result = upgrade(tmp_path, state={"broken": ["w1"]}, more=["w3"], fabric_upgrade_batch=2)
    assert result.code != 0
    assert versions(result) == {"cp1": NEW, "cp2": NEW, "w1": OLD, "w2": NEW, "w3": OLD}
    assert [step for step in steps(result) if step.startswith("prove")][1:] == ["prove cp1", "prove cp2", "prove w2"]
    assert "kubeadm upgrade node failed" in result.text
    assert "w3 was not upgraded: w1 failed before it" in " ".join(result.text.split())


def test_a_host_that_is_lost_on_the_way_is_uncordoned(tmp_path: Path) -> None:
    """It answers no SSH any more, so nothing more can be done on it; the API can still be asked."""
    result = upgrade(tmp_path, state={"lost": ["w1"]})
    assert result.code != 0
    assert versions(result) == {"cp1": NEW, "cp2": NEW, "w1": OLD, "w2": OLD}
    assert steps(result)[-3:] == one("w1")[:3]
    assert "The connection was lost while w1 was upgraded" in " ".join(result.text.split())
    assert not result.state["nodes"]["w1"]["marked"]
    assert [call.module for call in result.calls if call.host == "w1"][-1] == "kubeadm", "nothing comes after that"


def test_a_control_plane_that_fails_spares_the_rest(tmp_path: Path) -> None:
    result = upgrade(tmp_path, state={"broken": ["cp1"]})
    assert result.code != 0
    assert set(versions(result).values()) == {OLD}
    assert steps(result)[2:] == one("cp1", "apply")[:3]


def test_a_node_left_out_ends_it_red(tmp_path: Path) -> None:
    result = upgrade(tmp_path, "--limit", "!w2")
    assert result.code != 0
    assert "Seen: w2 (kubelet 1.35.4)." in " ".join(result.text.split())
    refused = upgrade(tmp_path, "--limit", "w2")
    assert refused.code != 0
    assert "--limit leaves out cp1, cp2" in " ".join(refused.text.split())


def test_check_mode_touches_nothing(tmp_path: Path) -> None:
    """Allowing cgroup v1 is all that it takes: kubeadm writes the kubelets' settings, so they come first."""
    result = upgrade(tmp_path, "--check", fabric_allow=["cgroup-v2"])
    assert result.code == 0, result.text
    assert set(versions(result).values()) == {OLD}
    assert all(call.check for call in result.calls if call.module in ("kubeadm", "node_drain", "apt_packages"))
    assert [step for step in steps(result) if step.startswith(("prove", "snapshot"))] == []
    assert [step for step in steps(result) if step.startswith(("apply", "node"))] == [
        "apply cp1",
        *(f"node {name}" for name in NAMES[1:]),
    ]
    first, *others = result.of("cluster_kubelets", "kubeadm")
    assert (first.module, first.args["settings"]) == ("cluster_kubelets", {"failCgroupV1": False})
    assert [call.module for call in others] == ["kubeadm"] * len(NAMES)
    for call in others:
        assert call.args["documents"][0]["node"]["ignorePreflightErrors"] == ["SystemVerification"]
