"""How the role kubernetes carries out what was decided for containerd, and when it restarts it."""

from __future__ import annotations

import base64
import typing as t
from pathlib import Path

import pytest
import tomllib
from ansible_collections.ipu.fabric.tests.unit.fixtures.paths import ROOT
from ansible_collections.ipu.fabric.tests.unit.fixtures.play import Answers, Call, Data, Outcome, play

PLANES, WORKERS = ["cp1", "cp2", "cp3"], ["w1", "w2"]
GROUPS = {"kube_control_plane": PLANES, "kube_node": WORKERS}
OTHER = "/etc/containerd/conf.d/99-site.toml"
TABLES = 'version = 3\n[plugins."io.containerd.cri.v1.images".registry.mirrors."docker.io"]\nendpoint = ["https://x"]\n'


class Hosts(Answers):
    def kubernetes_node_info(self, args: Data) -> Data:
        membership = "none" if self.host in self.state["bare"] else "member"
        return {"node": {"name": self.host, "membership": membership, "containerd_files": list(self.state["others"])}}

    def slurp(self, args: Data) -> Data:
        return {"content": self.state["others"][args["src"]]}

    def apt_packages(self, args: Data) -> Data:
        return {"versions": {"containerd.io": "2.2.1-1"}}

    def systemd_units(self, args: Data) -> Data:
        restart = {unit["name"]: unit.get("restart", "stale") for unit in args["units"]}["containerd"]
        stale = self.host in self.state["stale"]
        now = restart == "always" or (restart == "stale" and stale)
        left = ["containerd"] if restart == "never" and stale else []
        failed = restart == "always" and self.host in self.state["broken"]
        return {"failed": failed, "msg": "broken", "stale": left, "changed": now, "seconds": 0.3 * now}


def prepare(
    folder: Path,
    *options: str,
    stale: t.Sequence[str] = (),
    broken: t.Sequence[str] = (),
    bare: t.Sequence[str] = (),
    others: t.Optional[t.Mapping[str, str]] = None,
    groups: t.Optional[t.Mapping[str, t.Sequence[str]]] = None,
    **variables: t.Any,
) -> Outcome:
    tasks = [
        {"import_role": {"name": "ipu.fabric.kubernetes", "tasks_from": name}} for name in ("node_info", "prepare")
    ]
    encoded = {path: base64.b64encode(text.encode()).decode() for path, text in (others or {}).items()}
    state = {"stale": list(stale), "broken": list(broken), "bare": list(bare), "others": encoded}
    content: t.List[Data] = [{"hosts": "all", "gather_facts": False, "tasks": tasks}]
    return play(folder, content, Hosts, groups or GROUPS, *options, state=state, **variables)


def restarts(outcome: Outcome) -> t.List[Call]:
    return [
        call
        for call in outcome.of("systemd_units")
        if any(unit["name"] == "containerd" and unit.get("restart") != "never" for unit in call.args["units"])
    ]


def files(outcome: Outcome) -> t.Dict[str, Data]:
    """The TOML files of the first host by their path."""
    first = outcome.of("systemd_units")[0]
    return {
        each["path"]: tomllib.loads(each["content"]) for each in first.args["files"] if each["path"].endswith(".toml")
    }


def test_check_mode_on_a_bare_host_shows_what_it_would_get(tmp_path: Path) -> None:
    result = prepare(tmp_path, "--check", groups={"kube_control_plane": ["cp1"]}, bare=["cp1"])
    assert result.code == 0, result.text
    assert files(result)["/etc/containerd/config.toml"] == {"version": 3, "imports": ["/etc/containerd/conf.d/*.toml"]}


def test_control_planes_restart_one_after_another(tmp_path: Path) -> None:
    result = prepare(tmp_path, stale=["cp1", "cp2", "w1"], bare=["w2"])
    assert result.code == 0, result.text
    planes = [call for call in restarts(result) if call.host in PLANES]
    assert [call.host for call in planes] == ["cp1", "cp2"]
    assert planes[0].end <= planes[1].start
    kept = {call.host: call.args["keep"] for call in result.of("apt_packages")}
    assert "containerd.io" in kept["cp1"]
    # A host that is no node yet has nothing to lose.
    assert kept["w2"] == []
    assert sorted(call.host for call in restarts(result) if call.host in WORKERS) == ["w1", "w2"]


def test_a_control_plane_that_fails_is_the_last_to_restart(tmp_path: Path) -> None:
    result = prepare(tmp_path, stale=[*PLANES, *WORKERS], broken=["cp2"])
    assert result.code != 0
    assert [call.host for call in restarts(result)] == ["cp1", "cp2"]


def test_what_is_refused_is_said_before_a_file_is_written(tmp_path: Path) -> None:
    settings = {"groups": {"kube_control_plane": ["cp1"]}, "others": {OTHER: TABLES}}
    result = prepare(tmp_path, **settings, kubernetes_registry_mirror="mirror.local:5000")
    assert result.code != 0
    assert "settings of registries in two forms" in result.text
    assert not result.of("systemd_units")


@pytest.mark.parametrize("playbook", ["plays/kubernetes.yml", "upgrade.yml"])
def test_a_mirror_keeps_its_login(playbook: str) -> None:
    """All that write its hosts.toml know the login."""
    text = (ROOT / "playbooks" / playbook).read_text()
    assert text.count(" kubernetes_registry_mirror:") == text.count(" kubernetes_registry_auth:") == 1
