# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How the role kubernetes sets up Docker Engine and cri-dockerd, and when it restarts them."""

from __future__ import annotations

import ast
import base64
import contextlib
import hashlib
import io
import re
import tarfile
import typing as t
from pathlib import Path

import pytest
from ansible_collections.ipu.fabric.plugins.module_utils._component.kubernetes_documents import Seen, decide
from ansible_collections.ipu.fabric.tests.unit.fixtures.components import defaults
from ansible_collections.ipu.fabric.tests.unit.fixtures.play import Answers, Call, Data, Outcome, play
from ansible_collections.ipu.fabric.tests.unit.fixtures.templates import evaluate

GROUPS = {"kube_control_plane": ["cp1", "cp2"], "kube_node": ["w1"]}
PAUSE = "registry.k8s.io/pause:3.10.2"
# Flags of cri-dockerd, by their kind, as its source has them at the tags v0.3.25 and v0.4.3.
CRI_DOCKERD_0_3_25_AND_0_4_3 = {
    **dict.fromkeys(
        (
            "cni-bin-dir",
            "cni-cache-dir",
            "cni-conf-dir",
            "container-runtime-endpoint",
            "cri-dockerd-root-directory",
            "docker-endpoint",
            "network-plugin",
            "pod-cidr",
            "pod-infra-container-image",
            "runtime-cgroups",
            "streaming-bind-addr",
        ),
        "text",
    ),
    "hairpin-mode": "mode",
    "image-pull-progress-deadline": "duration",
    "ipv6-dual-stack": "switch",
    "network-plugin-mtu": "number",
    "runtime-request-timeout": "duration",
}


class Hosts(Answers):
    def kubernetes_node_info(self, args: Data) -> Data:
        node = {"name": self.host, "address": "192.0.2.1", "distribution": "debian", "release": "bookworm", "seen": ""}
        more = {"kubelet": "1.36.3", "taints": [], "images": [self.state["pause"]], "kubeconfig_sha256": ""}
        there = {"membership": "none" if self.host in self.state["bare"] else "member", "architecture": "x86_64"}
        return {"node": {**node, **more, **there}}

    def slurp(self, args: Data) -> Data:
        path = args["src"]
        if path == self.state["record"] and self.state["recorded"]:
            return {"content": self.state["recorded"]}
        return {"failed": True, "msg": f"file not found: {path}"}

    def apt_packages(self, args: Data) -> Data:
        return {"versions": {"containerd.io": "2.2.1-1", "docker-ce": "5:28.5.2-1~debian.12~bookworm"}}

    def docker_daemon_info(self, args: Data) -> Data:
        if self.state["refused"]:
            return {"failed": True, "msg": self.state["refused"]}
        content = repr(args["settings"])
        keeps: Data = {"keeps_containers": self.host not in self.state["forgets"]}
        keeps["others_cri_dockerd"] = self.state["others"]
        return {"path": "/etc/docker/daemon.json", "content": content, "mode": "0600", "differs": True, **keeps}

    def systemd_units(self, args: Data) -> Data:
        restart = {unit["name"]: unit.get("restart", "stale") for unit in args["units"]}.get("docker", "")
        stale = self.host in self.state["stale"]
        return {"stale": ["docker"] if restart == "never" and stale else [], "seconds": 0.3 * (restart == "always")}


def archive(folder: Path) -> t.Tuple[Path, str]:
    """An archive as cri-dockerd's publisher packs it, and its digest."""
    path = folder / "cri-dockerd.tgz"
    with contextlib.suppress(FileExistsError), tarfile.open(path, "x:gz") as packed:
        program = b"#!/bin/sh\necho cri-dockerd\n"
        about = tarfile.TarInfo("cri-dockerd/cri-dockerd")
        about.size, about.mode = len(program), 0o755
        packed.addfile(about, io.BytesIO(program))
    return path, hashlib.sha256(path.read_bytes()).hexdigest()


def prepare(
    folder: Path,
    *options: str,
    bare: t.Sequence[str] = (),
    stale: t.Sequence[str] = (),
    refused: str = "",
    others: bool = False,
    recorded: str = "",
    groups: t.Optional[t.Mapping[str, t.Sequence[str]]] = None,
    **variables: t.Any,
) -> Outcome:
    packed, digest = archive(folder)
    tasks = [
        {"import_role": {"name": "ipu.fabric.kubernetes", "tasks_from": name}} for name in ("node_info", "prepare")
    ]
    record = str(folder / "lib/cri-dockerd.sha256")
    state = {"bare": list(bare), "stale": list(stale), "refused": refused, "pause": PAUSE, "record": record}
    state.update(forgets=[], others=others)
    state["recorded"] = base64.b64encode(recorded.encode()).decode()
    content: t.List[Data] = [{"hosts": "all", "gather_facts": False, "tasks": tasks}]
    given = {
        "kubernetes_runtime": "docker",
        "kubernetes_cri_dockerd": {"version": "9.9.9", "url": f"file://{packed}", "checksum": f"sha256:{digest}"},
        "_kubernetes_cri_dockerd_program": str(folder / "cri-dockerd"),
        "_kubernetes_cri_dockerd_record": record,
        **variables,
    }
    return play(folder, content, Hosts, groups or GROUPS, *options, state=state, **given)


ONE = {"kube_control_plane": ["cp1"]}


def check_units(service: Data, socket: Data) -> None:
    """Enabling and starting the service does so with its socket, which it takes over by its descriptor."""
    first, release = service["content"].splitlines()[:2]
    assert first == evaluate("kubernetes", "_kubernetes_mark")
    assert release.startswith("# cri-dockerd 9.9.9 sha256:")
    assert service["units"] == ["cri-docker"]
    for setting in ("Requires=cri-docker.socket", "Also=cri-docker.socket", "Type=notify", "KillMode=process"):
        assert f"\n{setting}\n" in service["content"]
    assert re.search(
        r"^ExecStart=/.*/cri-dockerd --container-runtime-endpoint fd:// ", service["content"], re.MULTILINE
    )
    assert "ListenStream=%t/cri-dockerd.sock\n" in socket["content"]
    assert socket["content"].startswith(f"{first}\n[Unit]\n")


def units(outcome: Outcome) -> t.List[t.Tuple[Call, t.Dict[str, str]]]:
    """Each call of systemd_units with what it does to a running unit."""
    return [
        (call, {unit["name"]: unit.get("restart", "stale") for unit in call.args["units"]})
        for call in outcome.of("systemd_units")
    ]


def files(outcome: Outcome) -> t.Dict[str, Data]:
    return {file["path"]: file for file in outcome.of("systemd_units")[0].args["files"]}


def test_a_bare_host(tmp_path: Path) -> None:
    result = prepare(tmp_path, bare=["cp1"], groups=ONE)
    assert result.code == 0, result.text
    packages = {package["name"]: package["version"] for package in result.of("apt_packages")[0].args["packages"]}
    assert {"docker-ce", "docker-ce-cli", "containerd.io", "kubelet"} <= set(packages)
    assert packages["docker-ce"] == packages["docker-ce-cli"] == "28"
    # containerd is left as its package has it.
    written = files(result)
    assert not [path for path in written if path.startswith("/etc/containerd")]
    daemon = written["/etc/docker/daemon.json"]
    assert ast.literal_eval(daemon["content"]) == {
        "exec-opts": ["native.cgroupdriver=systemd"],
        "log-driver": "json-file",
        "log-opts": {"max-size": "100m", "max-file": "3"},
        "live-restore": True,
        "ip-forward-no-drop": True,
    }
    assert (daemon["mode"], daemon["backup"], daemon["units"]) == ("0600", True, ["docker"])
    assert daemon["validate"] == "/usr/bin/dockerd --validate --config-file %s"
    assert written["/etc/crictl.yaml"]["content"] == "runtime-endpoint: unix:///run/cri-dockerd.sock\n"
    assert units(result)[0][1] == {"docker": "stale", "cri-docker": "stale", "kubelet": "stale"}
    assert len(units(result)) == 1
    check_units(written["/etc/systemd/system/cri-docker.service"], written["/etc/systemd/system/cri-docker.socket"])
    # The program and what is known of it; a second run has nothing to do.
    program, digest = tmp_path / "cri-dockerd", archive(tmp_path)[1]
    assert program.stat().st_mode & 0o777 == 0o755
    seen = hashlib.sha256(program.read_bytes()).hexdigest()
    assert (tmp_path / "lib/cri-dockerd.sha256").read_text() == f"{seen} sha256:{digest}\n"


OURS = hashlib.sha256(b"ours").hexdigest()


@pytest.mark.parametrize(
    ("there", "recorded", "installs"),
    [
        (b"ours", f"{OURS} sha256:{{digest}}\n", False),
        (b"theirs", f"{OURS} sha256:{{digest}}\n", True),  # somebody has put another program in its place
        (b"ours", f"{OURS} sha256:{'0' * 64}\n", True),  # another archive is asked for
    ],
)
def test_the_program_is_installed_when_it_is_another_one(
    tmp_path: Path, there: bytes, recorded: str, installs: bool
) -> None:
    program, digest = tmp_path / "cri-dockerd", archive(tmp_path)[1]
    program.write_bytes(there)
    result = prepare(tmp_path, recorded=recorded.format(digest=digest), groups=ONE)
    assert result.code == 0, result.text
    assert (program.read_bytes() != there) == installs


def test_check_mode_on_a_bare_host(tmp_path: Path) -> None:
    result = prepare(tmp_path, "--check", bare=["cp1"], groups=ONE)
    assert result.code == 0, result.text
    assert "cri-dockerd 9.9.9 would be installed from file://" in result.text
    assert not (tmp_path / "cri-dockerd").exists()


def test_a_cri_dockerd_of_others_stays_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "cri-dockerd").write_bytes(b"theirs")
    result = prepare(tmp_path, bare=["cp1"], groups=ONE, others=True)
    assert result.code == 0, result.text
    assert (tmp_path / "cri-dockerd").read_bytes() == b"theirs"
    assert [path for path in files(result) if "cri-docker" in path] == []
    assert result.of("docker_daemon_info")[0].args["cri_dockerd"] == "9.9.9"


@pytest.mark.parametrize("checksum", ["", "sha256:https://site/sum", "md5:1"])
def test_an_archive_without_a_digest_is_refused(tmp_path: Path, checksum: str) -> None:
    source = {"version": "0.4.3", "url": "https://site/{version}/{arch}.tgz", "checksum": checksum}
    result = prepare(tmp_path, groups=ONE, kubernetes_cri_dockerd=source)
    assert result.code != 0
    assert "`curl -fsSL https://site/0.4.3/amd64.tgz | sha256sum`" in " ".join(result.text.split())
    assert not result.of("systemd_units")


def test_another_archive_is_refused(tmp_path: Path) -> None:
    packed, _digest = archive(tmp_path)
    source = {"version": "0.4.3", "url": f"file://{packed}", "checksum": f"sha256:{'0' * 64}"}
    result = prepare(tmp_path, groups=ONE, kubernetes_cri_dockerd=source)
    assert result.code != 0
    assert not (tmp_path / "cri-dockerd").exists()


def test_why_docker_can_not_be_configured(tmp_path: Path) -> None:
    """What is in its configuration is not shown, the error is."""
    result = prepare(tmp_path, groups=ONE, refused="Docker's configuration is not valid JSON. Seen: line 2")
    assert result.code != 0
    assert "is not valid JSON. Seen: line 2" in result.text


def test_a_node_of_the_cluster_restarts_by_turns(tmp_path: Path) -> None:
    """First Docker reads that it keeps its containers, then the control planes restart it one after another."""
    program = tmp_path / "cri-dockerd"
    program.write_bytes(b"ours")
    digest = archive(tmp_path)[1]
    recorded = f"{hashlib.sha256(b'ours').hexdigest()} sha256:{digest}\n"
    result = prepare(tmp_path, stale=["cp1", "cp2", "w1"], recorded=recorded)
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


@pytest.mark.parametrize("keeps", [True, False])
def test_docker_that_would_end_its_containers_is_not_restarted(tmp_path: Path, keeps: bool) -> None:
    """It was told to read its files, and has not: dockerd leaves out all of them where it refuses one setting."""
    tasks = [{"import_role": {"name": "ipu.fabric.kubernetes", "tasks_from": "docker_reload"}}]
    state = {"forgets": [] if keeps else ["cp1"], "others": False, "refused": "", "stale": []}
    told: Data = {"__kubernetes_units": {"stale": ["docker"]}, "__kubernetes_packages": {"versions": {}}}
    told |= {"__kubernetes_docker": {"path": "/etc/docker/daemon.json"}, "_kubernetes_docker_files": []}
    content: t.List[Data] = [{"hosts": "all", "gather_facts": False, "tasks": tasks}]
    result = play(tmp_path, content, Hosts, ONE, state=state, _kubernetes_docker_patience=0, **told)
    assert [how for _call, how in units(result)] == [{"docker": "reload"}]
    assert (result.code == 0) == keeps, result.text
    assert ("would end all containers of cp1" in result.text) != keeps


def test_containers_may_end_where_the_site_says_so() -> None:
    told: Data = {"__kubernetes_units": {"stale": ["docker"]}, "__kubernetes_packages": {"versions": {}}}
    for keeps in (True, False):
        chosen = {"kubernetes_docker_config": {"live-restore": keeps}, "ansible_check_mode": False}
        assert evaluate("kubernetes", "_kubernetes_docker_keeps", **told, **chosen) is keeps


def test_nothing_of_docker_runs_with_containerd(tmp_path: Path) -> None:
    result = prepare(tmp_path, groups=ONE, kubernetes_runtime="containerd")
    assert result.code == 0, result.text
    assert not result.of("docker_daemon_info")
    assert not [path for path in files(result) if "docker" in path]
    assert "docker-ce" not in str(result.of("apt_packages")[0].args)
    assert not (tmp_path / "cri-dockerd").exists()


NODE = {"node": {"name": "cp1", "images": [PAUSE], "architecture": "x86_64", "address": "192.0.2.1"}}
RENDERED = {"kubernetes_runtime": "docker", "__kubernetes_node": NODE}


@pytest.mark.parametrize("cidr", ["10.244.0.0/16", "10.244.0.0/16,fd00:10:244::/56", "fd00:10:244::/56"])
def test_the_unit_has_flags_that_cri_dockerd_knows(cidr: str) -> None:
    words = evaluate("kubernetes", "_kubernetes_cri_dockerd_command", kubernetes_pod_cidr=cidr, **RENDERED)
    assert words[:3] == ["/usr/local/bin/cri-dockerd", "--container-runtime-endpoint", "fd://"]
    flags = {word[2:].partition("=")[0]: word.partition("=")[2] for word in [words[1], *words[3:]]}
    assert set(flags) <= set(CRI_DOCKERD_0_3_25_AND_0_4_3)
    for name, value in flags.items():
        switch = CRI_DOCKERD_0_3_25_AND_0_4_3[name] == "switch"
        assert bool(value) == (not switch and name != "container-runtime-endpoint"), name
    assert flags["pod-infra-container-image"] == PAUSE
    assert ("ipv6-dual-stack" in flags) == (":" in cidr)


@pytest.mark.parametrize(
    ("runtime", "socket"),
    [("docker", "unix:///run/cri-dockerd.sock"), ("containerd", "unix:///run/containerd/containerd.sock")],
)
def test_the_kubelet_speaks_to_cri_dockerd(runtime: str, socket: str) -> None:
    settings = defaults("kubernetes", "kubernetes_documents", runtime=runtime)
    (document,) = decide(settings, Seen("w1", {**NODE["node"], "name": "w1"}, {"is_first": False}, False)).documents
    assert document["nodeRegistration"]["criSocket"] == socket
    assert evaluate("kubernetes", "_kubernetes_cri_socket", kubernetes_runtime=runtime) == socket


@pytest.mark.parametrize(
    ("version", "known"),
    [
        ("5:28.5.2-1~debian.12~bookworm", True),
        ("28", True),
        ("5:27.5.1-1~debian", False),
        ("5:29.0.0-1", True),
        ("", False),
    ],
)
def test_a_setting_that_old_dockers_do_not_know(version: str, known: bool) -> None:
    """They would not start with it."""
    installed = {"versions": {"docker-ce": version}}
    settings = evaluate("kubernetes", "_kubernetes_docker_settings", __kubernetes_packages=installed)
    assert ("ip-forward-no-drop" in settings) == known


def test_settings_of_the_site_count() -> None:
    more = {"log-opts": {"max-size": "1g"}, "data-root": "/data/docker"}
    installed: Data = {"versions": {}}
    settings = evaluate(
        "kubernetes", "_kubernetes_docker_settings", __kubernetes_packages=installed, kubernetes_docker_config=more
    )
    assert settings["log-opts"] == {"max-size": "1g", "max-file": "3"}
    assert settings["data-root"] == "/data/docker"


def test_log_options_go_with_their_driver() -> None:
    """dockerd does not start with those of another one."""
    drivers = {"local": {"max-size": "100m", "max-file": "3", "compress": "true"}, "journald": {"tag": "x"}}
    for driver, expected in drivers.items():
        own = {"local": {"compress": "true"}}.get(driver, {"tag": "x"})
        settings = evaluate(
            "kubernetes",
            "_kubernetes_docker_settings",
            __kubernetes_packages={"versions": {}},
            kubernetes_docker_config={"log-driver": driver, "log-opts": own},
        )
        assert (settings["log-driver"], settings["log-opts"]) == (driver, expected)


def test_downloads_of_docker_go_through_the_proxy(tmp_path: Path) -> None:
    result = prepare(tmp_path, bare=["cp1"], groups=ONE, kubernetes_proxy={"http": "http://proxy.site:3128"})
    assert result.code == 0, result.text
    drop_in = files(result)["/etc/systemd/system/docker.service.d/20-proxy.conf"]
    assert (drop_in["state"], drop_in["units"]) == ("present", ["docker"])
    assert "EnvironmentFile=-/etc/containerd/proxy.env\n" in drop_in["content"]
