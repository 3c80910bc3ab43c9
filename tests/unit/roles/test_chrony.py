"""What the role chrony installs, writes and waits for."""

from __future__ import annotations

import base64
import typing as t
from pathlib import Path

import pytest
from ansible_collections.ipu.fabric.tests.unit.fixtures.play import Answers, Data, Outcome, play
from ansible_collections.ipu.fabric.tests.unit.plugins.module_utils._component.test_chrony import DEBIAN

SERVERS = ["ntp1.site", "fd00::123"]


def encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


class Hosts(Answers):
    def slurp(self, args: Data) -> Data:
        if self.state["conf"] is None:
            return {"failed": True, "msg": f"file not found: {args['src']}"}
        return {"content": self.state["conf"]}

    def apt_packages(self, args: Data) -> Data:
        return {"changed": True, "versions": {"chrony": "4.3-2"}}


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> t.Callable[..., Outcome]:
    """The role on two hosts. `chronyc` says what its file says, and remembers how it was called."""
    program = tmp_path / "bin/chronyc"
    program.parent.mkdir()
    program.write_text(
        f'#!/bin/sh\necho "$*" >> {tmp_path}/chronyc.calls\necho "^? ntp1.site"\ntest -e {tmp_path}/synced\n'
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:/usr/bin:/bin")

    def once(*options: str, conf: t.Optional[str] = DEBIAN, synced: bool = True, **variables: t.Any) -> Outcome:
        (tmp_path / "synced").unlink(missing_ok=True)
        if synced:
            (tmp_path / "synced").touch()
        content = [{"hosts": "all", "gather_facts": False, "roles": ["ipu.fabric.chrony"]}]
        hosts = {"kube_node": ["w1", "w2"]}
        return play(
            tmp_path, content, Hosts, hosts, *options, state={"conf": encoded(conf) if conf else None}, **variables
        )

    return once


def calls_of_chronyc(tmp_path: Path) -> t.List[str]:
    file = tmp_path / "chronyc.calls"
    return file.read_text(encoding="utf-8").splitlines() if file.exists() else []


def test_every_host_gets_the_servers_in_files_of_their_own(run, tmp_path):
    done = run(chrony_servers=SERVERS)
    assert done.code == 0, done.text
    assert {call.host for call in done.of("systemd_units")} == {"w1", "w2"}
    for call in done.of("systemd_units"):
        files = {file["path"]: file["content"] for file in call.args["files"]}
        assert files["/etc/chrony/sources.d/ipu-fabric.sources"].splitlines()[1:] == [
            "server ntp1.site iburst prefer",
            "server fd00::123 iburst prefer",
        ]
        assert files["/etc/chrony/conf.d/ipu-fabric.conf"].splitlines()[1:] == ["makestep 1 3", "rtcsync"]
        assert len(files) == 2
        assert [unit["name"] for unit in call.args["units"]] == ["chrony"]
        assert all(file["units"] == ["chrony"] for file in call.args["files"])
    for call in done.of("apt_packages"):
        assert call.args["packages"] == [{"name": "chrony", "hold": False}]
        assert (call.args["repositories"], call.args["only"]) == ({}, False)
        assert call.args["replaces"] == ["systemd-timesyncd"]
    assert calls_of_chronyc(tmp_path) == ["-n waitsync 60 0.5 0 1"] * 2


def test_without_servers_nothing_is_done(run, tmp_path):
    done = run()
    assert (done.code, done.calls, calls_of_chronyc(tmp_path)) == (0, [], [])


def test_the_variable_of_the_site_is_the_default(run):
    done = run(fabric_ntp=["ntp1.site"], chrony_wait=0)
    assert len(done.of("systemd_units")) == 2


def test_packages_come_from_the_bundle_alone(run):
    done = run(chrony_servers=SERVERS, chrony_bundle="/media/bundle", chrony_platform="debian-bookworm-amd64")
    assert [call.module for call in done.calls if call.host == "w1"][:2] == ["bundle_files", "apt_packages"]
    assert all(call.args["part"] == "apt/debian-bookworm-amd64" for call in done.of("bundle_files"))
    for call in done.of("apt_packages"):
        assert call.args["only"] is True
        assert [one["uri"] for one in call.args["repositories"].values()] == ["file:/var/lib/ipu-fabric/bundle/apt/"]


def test_a_clock_that_does_not_get_right_is_shown_with_its_sources(run, tmp_path):
    done = run(chrony_servers=SERVERS, chrony_wait=3, synced=False)
    assert done.code != 0
    assert "The clock was not synchronized within 3 s." in done.text
    assert "^? ntp1.site" in done.text
    assert set(calls_of_chronyc(tmp_path)) == {"-n waitsync 3 0.5 0 1", "-n sources"}


def test_a_configuration_that_reads_no_directories_is_left_alone(run):
    done = run(chrony_servers=SERVERS, conf="server ntp.old\n")
    assert done.code != 0
    assert "no line confdir /etc/chrony/conf.d, nor sourcedir /etc/chrony/sources.d" in " ".join(done.text.split())
    assert done.of("systemd_units") == []


@pytest.mark.parametrize("conf", [DEBIAN, None])
def test_check_mode_on_a_finished_host_and_on_a_bare_one(run, tmp_path, conf):
    done = run("--check", chrony_servers=SERVERS, conf=conf)
    assert done.code == 0, done.text
    assert len(done.of("systemd_units")) == 2
    assert calls_of_chronyc(tmp_path) == []
