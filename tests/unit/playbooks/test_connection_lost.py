"""A connection that breaks once, at a task on a host: nothing goes on without it, and the next run ends as it should.

Each run costs seconds: only the upgrade of a node loses each of its tasks, as many hosts are upgraded in one run. Of
the other playbooks one task is lost that changes much. LOSE_EVERY_TASK=1 loses every task on every host in turn, once
before and once after it was done; it takes half an hour. With a larger number it is each so many.
"""

from __future__ import annotations

import concurrent.futures
import dataclasses
import json
import os
import shutil
import sys
import typing as t
from pathlib import Path

import pytest
import yaml
from ansible_collections.ipu.fabric.tests.unit.fixtures import playbooks, site
from ansible_collections.ipu.fabric.tests.unit.fixtures.control_plane import DEFAULT_ANSWERS, NODE
from ansible_collections.ipu.fabric.tests.unit.fixtures.lost_connection import NEW, OLD
from ansible_collections.ipu.fabric.tests.unit.fixtures.paths import FIXTURES, ROOT
from ansible_collections.ipu.fabric.tests.unit.fixtures.playbooks import Run
from ansible_collections.ipu.fabric.tests.unit.playbooks import test_restore

Data = t.Dict[str, t.Any]
Loss = t.Tuple[str, str, int, str]  # host, module, which of its calls there, before or after it was done
GROUPS = {"kube_control_plane": ["cp1", "cp2", "cp3"], "kube_node": ["w1", "w2"]}
NAMES = [name for names in GROUPS.values() for name in names]
CA, ENDPOINT = test_restore.CA, test_restore.ENDPOINT
# On hosts, in roles and playbooks; the rest of Ansible's own is done on this machine.
BUILTIN = ("slurp", "stat", "command", "file", "copy")
# What upgrade.yml of the role kubernetes does on a host, in this order.
UPGRADE = [
    *("kubernetes_node_info", "slurp", "apt_packages", "kubeadm", "apt_packages", "kubernetes_node_info", "slurp"),
    *("systemd_units", "kubelet_config", "systemd_units"),
]
UPGRADED = [f"cp{number}" for number in range(1, 2 + len(UPGRADE))]


@dataclasses.dataclass(frozen=True)
class Case:
    """A playbook, what its hosts are before it, and what they are to be."""

    play: t.Union[str, t.Sequence[Data]]
    host: Data
    done: t.Callable[[Data], bool]  # whether a state is the wanted one
    loss: t.Sequence[Loss] = ()
    state: Data = dataclasses.field(default_factory=dict)
    given: Data = dataclasses.field(default_factory=dict)
    groups: t.Mapping[str, t.Sequence[str]] = dataclasses.field(default_factory=lambda: GROUPS)


def upgraded_losses() -> t.List[Loss]:
    """Each host but the last one loses another of these tasks, in turns before and after it was done."""
    return [
        (UPGRADED[number], module, UPGRADE[: number + 1].count(module), ("before", "after")[number % 2])
        for number, module in enumerate(UPGRADE)
    ]


UPGRADE_PLAY = {
    "hosts": "kube_control_plane",
    "gather_facts": False,
    "vars": {
        "upgrade_node": "{{ inventory_hostname }}",
        "upgrade_prove": False,
        "kubernetes_version": NEW,
        "upgrade_version": NEW,
    },
    "tasks": [{"ansible.builtin.include_role": {"name": "ipu.fabric.upgrade"}}],
}
RESTORED: Data = {"order": [], "restoring": "", "aside": "", "files": True, "membership": "member"}
CASES = {
    "upgrade": Case(
        [UPGRADE_PLAY],
        {"parts": OLD, "kubelet": OLD, "cordoned": False, "membership": "member"},
        lambda state: all((host["parts"], host["kubelet"]) == (NEW, NEW) for host in state["hosts"].values()),
        upgraded_losses(),
        groups={"kube_control_plane": UPGRADED},
    ),
    "rotate_encryption_key": Case(
        "ipu.fabric.rotate_encryption_key",
        {"order": ["key1", "identity"], "membership": "member"},
        lambda state: (
            len({tuple(host["order"]) for name, host in state["hosts"].items() if name.startswith("cp")}) == 1
            and "key1" not in state["hosts"]["cp1"]["order"]
        ),
        [("cp2", "secrets_encryption", 3, "after")],
        {"written": "key1"},
    ),
    "remove_node": Case(
        "ipu.fabric.remove_node",
        {"cordoned": False, "member": True, "membership": "member"},
        lambda state: state["deleted"] == ["cp3", "w2"] and all(state["hosts"][n].get("gone") for n in ("cp3", "w2")),
        [("cp3", "host_reset", 1, "after")],
        {"leaves": ["w2", "cp3"]},
        {"fabric_remove_nodes": "w2,cp3"},
    ),
    "renew_certificates": Case(
        "ipu.fabric.renew_certificates",
        {"renewed": False, "membership": "member"},
        lambda state: all(host["renewed"] for host in state["hosts"].values()),
        [("cp2", "node_certificates", 2, "before")],
    ),
    "reset": Case(
        "ipu.fabric.reset",
        {"membership": "member"},
        lambda state: all(host.get("gone") for host in state["hosts"].values()),
        [("w2", "host_reset", 2, "before")],
        given={"fabric_reset": "cluster", "fabric_reset_name": ENDPOINT},
    ),
    "restore": Case(
        "ipu.fabric.restore",
        RESTORED,
        lambda state: all(
            (h["membership"], h["files"], h["restoring"]) == ("member", True, "") for h in state["hosts"].values()
        ),
        [("cp1", "control_plane_restore", 4, "after")],
        given={
            "fabric_control_plane_endpoint": ENDPOINT,
            "fabric_cni": "flannel",
            "fabric_probe_ports": False,
            "fabric_restore": ENDPOINT,
        },
    ),
}


def collection(folder: Path) -> Path:
    """The collection with the stand-in for its modules, and for those of Ansible's own that would reach a host."""
    made = playbooks.shadow(folder) / "ansible_collections/ipu/fabric"
    for part in ("roles", "playbooks"):
        (made / part).unlink()
        shutil.copytree(ROOT / part, made / part)
        for path in (made / part).rglob("*.yml"):
            text = path.read_text(encoding="utf-8")
            for name in BUILTIN:
                text = text.replace(f"ansible.builtin.{name}:", f"ipu.fabric.{name}:")
            path.write_text(text, encoding="utf-8")
    for name in BUILTIN:
        (made / f"plugins/action/{name}.py").symlink_to(FIXTURES / "lost_connection.py")
    for path in (made / "plugins/action").iterdir():
        if path.resolve().name == "module_stand_in.py":
            path.unlink()
            path.symlink_to(FIXTURES / "lost_connection.py")
    return folder


def begin(case: Case) -> Data:
    names = [name for names in case.groups.values() for name in names]
    addresses = {name: f"10.88.0.{number}" for number, name in enumerate(names, 1)}
    facts = {}
    for number, name in enumerate(names, 1):
        facts[name] = site.host(number, [])["host"]
        facts[name]["hostname"] = name
        facts[name]["kubelet"].update(server=ENDPOINT, cluster=CA, version=f"v{NEW}")
        if name.startswith("cp"):
            facts[name]["cluster"].update(present=True, answered=True, version=NEW, endpoint=ENDPOINT)
    nodes = [
        {
            "name": name,
            "machine_id": facts[name]["machine_id"],
            "ready": True,
            "version": NEW,
            "control_plane": name.startswith("cp"),
            "addresses": [addresses[name]],
            "own_labels": [],
        }
        for name in names
    ]
    hosts = {
        name: {**case.host, "node": {"name": name, "address": addresses[name], "is_control_plane": name[0] == "c"}}
        for name in names
    }
    for name in names:
        if not name.startswith("cp"):
            hosts[name].pop("member", None)
    node = {
        **NODE,
        **test_restore.answers()["kubernetes_node_info"]["cp1"]["node"],
        "next_step": "",
        "unsettled": False,
    }
    node["containerd_files"] = ["/etc/containerd/config.toml"]
    known: Data = {"wrong": [], "changes": [], "deleted": [], "leaves": [], "ca": CA, "endpoint": ENDPOINT}
    rdma = {name: site.host(number, [])["rdma"] for number, name in enumerate(names, 1)}
    return {
        **known,
        "node": node,
        "facts": facts,
        "rdma": rdma,
        "nodes": nodes,
        "addresses": addresses,
        "hosts": hosts,
        **case.state,
    }


class Stage:
    """A site in a folder, on which a playbook is run again and again."""

    def __init__(self, folder: Path, case: Case) -> None:
        self.folder, self.case, self.kept = folder, case, folder / "site.json"
        folder.mkdir(exist_ok=True)
        if not (folder / "collections").exists():
            collection(folder / "collections")
        (folder / "saved").mkdir(exist_ok=True)
        (folder / "saved/objects.json").write_text('{"digests": {}, "addresses": [], "objects": []}')
        about = {**test_restore.ABOUT, "cluster": {**test_restore.ABOUT["cluster"], "nodes": NAMES}}
        backup = {"path": str(folder / "saved"), "about": about, "sums": {"control-plane.tar.gz": test_restore.SUM}}
        self.answers = {
            "control_plane_backup": {"*": backup},
            "memlock": {"*": {"restartable": []}},
            "cluster_kubelets": {"*": {"approved": []}},
            "control_plane": {"*": DEFAULT_ANSWERS["control_plane"]},
        }

    def run(self, losses: t.Sequence[Loss] = ()) -> t.Tuple[Run, Data]:
        before = json.loads(self.kept.read_text())["state"] if self.kept.exists() else begin(self.case)
        kept = {"state": before, "calls": [], "losses": losses, "answers": self.answers}
        self.kept.write_text(json.dumps(kept))
        given = {
            "fabric_artifacts_dir": str(self.folder / "artifacts"),
            "fabric_backup": str(self.folder / "saved"),
            "fabric_kubernetes_version": NEW,
            "fabric_ipu": False,
            "kubernetes_kubeconfig": str(self.folder / "none"),
            **self.case.given,
        }
        stage = playbooks.make_stage(
            self.folder, self.case.groups, {}, given, environment={"FABRIC_SITE": str(self.kept), "ANSIBLE_FORKS": "12"}
        )
        play = self.case.play
        if not isinstance(play, str):
            (self.folder / "play.yml").write_text(yaml.safe_dump(list(play)))
            play = str(self.folder / "play.yml")
        done = stage.run(sys.executable, "-m", "one_process", *stage.arguments, play)
        return done, json.loads(self.kept.read_text())


def check(folder: Path, case: Case, losses: t.Sequence[Loss]) -> None:
    stage = Stage(folder, case)
    broken, kept = stage.run(losses)
    assert [call for call in kept["calls"] if call[3]], f"{losses} was not reached\n{broken.text}"
    state = kept["state"]
    assert state["wrong"] == [], broken.text
    assert not [name for name, host in state["hosts"].items() if host.get("cordoned")] or state["leaves"], broken.text
    if case.done(state):  # only the answer of the last step was lost, or what was lost did not matter
        return
    assert broken.code != 0, broken.text
    after, kept = stage.run()
    state = kept["state"]
    assert state["wrong"] == [], after.text
    assert after.code == 0, after.text
    assert case.done(state), state["hosts"]
    # A restore that had not begun to restore begins again, and what is aside already stays there.
    changes = [change for change in state["changes"] if not change.startswith("aside ")]
    assert sorted(set(changes)) == sorted(changes), "nothing is done twice"


# The cluster of the backup goes on without the control plane: what is written to it is not to be lost.
ONE_THAT_JOINS = "restore, and one that joins"
CASES[ONE_THAT_JOINS] = dataclasses.replace(CASES["restore"], loss=[("cp2", "kubeadm", 2, "before")])


@pytest.mark.parametrize("name", CASES)
def test_at_a_task_that_changes_much(tmp_path: Path, name: str) -> None:
    check(tmp_path, CASES[name], CASES[name].loss)


def every_task(name: str, folder: Path) -> t.List[Loss]:
    """All calls on hosts in an unbroken run; of one that changes nothing, before and after are the same."""
    done, kept = Stage(folder, CASES[name]).run()
    assert done.code == 0, done.text
    calls = [call for call in kept["calls"] if call[0] != "localhost"]
    return [
        (host, module, number, when)
        for host, module, number, _lost, changed, _check in calls
        for when in (("before", "after") if changed else ("after",))
    ]


if "LOSE_EVERY_TASK" in os.environ:  # half an hour; hack/run_tests.py lost-connections

    @pytest.mark.parametrize("name", sorted({*CASES} - {"upgrade", ONE_THAT_JOINS}))
    def test_at_every_task(tmp_path: Path, name: str) -> None:
        losses = every_task(name, tmp_path / "unbroken")[:: int(os.environ["LOSE_EVERY_TASK"])]

        def fault(numbered: t.Tuple[int, Loss]) -> str:
            folder = tmp_path / str(numbered[0])
            try:
                check(folder, CASES[name], [numbered[1]])
            except AssertionError as error:
                return str(error)
            shutil.rmtree(folder)
            return ""

        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            faults = dict(zip(losses, pool.map(fault, enumerate(losses))))
        print(f"{name}: lost at {len(losses)} calls")
        assert {loss: text for loss, text in faults.items() if text} == {}
