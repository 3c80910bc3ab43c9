"""How the role kubernetes carries out what was decided for Docker Engine and cri-dockerd, and when it restarts them."""

from __future__ import annotations

import typing as t
from pathlib import Path

import pytest
from ansible_collections.ipu.fabric.plugins.module_utils._component.kubernetes_documents import Seen, decide
from ansible_collections.ipu.fabric.tests.unit.fixtures.components import defaults
from ansible_collections.ipu.fabric.tests.unit.fixtures.control_plane import NODE
from ansible_collections.ipu.fabric.tests.unit.fixtures.play import Answers, Call, Data, Outcome, play

GROUPS = {"kube_control_plane": ["cp1", "cp2"], "kube_node": ["w1"]}


class Hosts(Answers):
    def kubernetes_node_info(self, args: Data) -> Data:
        return {"node": {"name": self.host, "membership": "none" if self.host in self.state["bare"] else "member"}}

    def apt_packages(self, args: Data) -> Data:
        return {"versions": {"containerd.io": "2.2.1-1", "docker-ce": "5:28.5.2-1~debian.12~bookworm"}}

    def systemd_units(self, args: Data) -> Data:
        restart = {unit["name"]: unit.get("restart", "stale") for unit in args["units"]}.get("docker", "")
        stale = self.host in self.state["stale"]
        failed = restart == "reload" and self.host in self.state["forgets"]
        left = ["docker"] if restart == "never" and stale else []
        return {"stale": left, "seconds": 0.3 * (restart == "always"), "failed": failed, "msg": "it would end them"}


def prepare(
    folder: Path,
    *options: str,
    bare: t.Sequence[str] = (),
    stale: t.Sequence[str] = (),
    forgets: t.Sequence[str] = (),
    groups: t.Optional[t.Mapping[str, t.Sequence[str]]] = None,
) -> Outcome:
    tasks = [
        {"import_role": {"name": "ipu.fabric.kubernetes", "tasks_from": name}} for name in ("node_info", "prepare")
    ]
    state = {"bare": list(bare), "stale": list(stale), "forgets": list(forgets)}
    content: t.List[Data] = [{"hosts": "all", "gather_facts": False, "tasks": tasks}]
    return play(folder, content, Hosts, groups or GROUPS, *options, state=state, kubernetes_runtime="docker")


def units(outcome: Outcome) -> t.List[t.Tuple[Call, t.Dict[str, str]]]:
    """Each call of systemd_units with what it does to a running unit."""
    return [
        (call, {unit["name"]: unit.get("restart", "stale") for unit in call.args["units"]})
        for call in outcome.of("systemd_units")
    ]


def test_a_bare_host(tmp_path: Path) -> None:
    """cri-dockerd is there before its unit is."""
    result = prepare(tmp_path, bare=["cp1"], groups={"kube_control_plane": ["cp1"]})
    assert result.code == 0, result.text
    modules = [call.module for call in result.calls]
    assert modules.index("apt_packages") < modules.index("program") < modules.index("systemd_units")
    (program,) = result.of("program")
    assert program.args["path"] == "/usr/local/bin/cri-dockerd"
    assert program.args["member"] == "cri-dockerd"
    assert "/cri-dockerd-0.3.26.amd64.tgz" in program.args["url"]
    (call,) = result.of("systemd_units")
    assert {"/etc/docker/daemon.json", "/etc/systemd/system/cri-docker.service"} <= {
        file["path"] for file in call.args["files"]
    }


def test_a_node_of_the_cluster_restarts_by_turns(tmp_path: Path) -> None:
    """First Docker reads that it keeps its containers, then the control planes restart it one after another."""
    result = prepare(tmp_path, stale=["cp1", "cp2", "w1"])
    assert result.code == 0, result.text
    assert {how["docker"] for call, how in units(result)[:3]} == {"never"}
    reloads = [call for call, how in units(result) if how == {"docker": "reload"}]
    restarts = [call for call, how in units(result) if how == {"docker": "always"}]
    assert sorted(call.host for call in reloads) == ["cp1", "cp2", "w1"]
    assert [call.host for call in restarts] == ["cp1", "cp2", "w1"]
    assert max(call.end for call in reloads) <= restarts[0].start
    assert restarts[0].end <= restarts[1].start
    # cri-dockerd alone may restart at any time: containers are not its children.
    assert all("cri-docker" not in how for _call, how in units(result)[3:])


def test_docker_that_would_end_its_containers_is_not_restarted(tmp_path: Path) -> None:
    result = prepare(tmp_path, stale=["cp1"], forgets=["cp1"], groups={"kube_control_plane": ["cp1"]})
    assert result.code != 0
    assert [how["docker"] for _call, how in units(result)] == ["never", "reload"]


@pytest.mark.parametrize(
    ("runtime", "socket"),
    [("docker", "unix:///run/cri-dockerd.sock"), ("containerd", "unix:///run/containerd/containerd.sock")],
)
def test_the_kubelet_speaks_to_cri_dockerd(runtime: str, socket: str) -> None:
    settings = defaults("kubernetes", "kubernetes_documents", runtime=runtime)
    (document,) = decide(settings, Seen("w1", {**NODE, "name": "w1"}, {"is_first": False}, False)).documents
    assert document["nodeRegistration"]["criSocket"] == socket
