"""The kubelet's configuration on a host of files, with a kubelet that comes up with it, or does not."""

import datetime
import json
import os
import stat
import time

import pytest
from ansible_collections.ipu.fabric.plugins.module_utils._common.command import Done
from ansible_collections.ipu.fabric.plugins.module_utils._common.result import FabricError
from ansible_collections.ipu.fabric.plugins.module_utils._host import kubectl
from ansible_collections.ipu.fabric.plugins.module_utils._kubeadm import kubelet_config, paths
from ansible_collections.ipu.fabric.tests.unit.fixtures import module as fake
from ansible_collections.ipu.fabric.tests.unit.fixtures.certificates import certificate

OLD, NEW, BROKEN = "kind: KubeletConfiguration\n", "podPidsLimit: 5\n", "broken: true\n"


class Host(fake.Module):
    """A node. Its clock goes on with every sleep; its kubelet ends at once where `broken` is in its configuration."""

    def __init__(self, root, check_mode=False, **params):
        super().__init__(
            check_mode=check_mode,
            **{"content": NEW, "node_name": "w1", "ready_timeout": 60, "lock_timeout": 0, **params},
        )
        self.root, self.now, self.restarts, self.pid = root, time.time(), [], 100
        self.reports, self.ready, self.api, self.dies = True, "True", True, ""
        self.heartbeat, self.crashes, self.counts = self.now - 100, 0, False

    def config(self):
        return (self.root / "var/lib/kubelet/config.yaml").read_text()

    def write(self, path, text, mode=0o644):
        path = self.root / path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(mode)

    def run_command(self, argv, **options):
        if argv[0] == "journalctl":
            return 0, "failed to validate kubelet configuration", ""
        if "kubectl" in argv[0]:
            if not self.api:
                return 1, "", "connection refused"
            beat = datetime.datetime.fromtimestamp(self.heartbeat, datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
            condition = {"type": "Ready", "status": self.ready, "lastHeartbeatTime": beat}
            return 0, json.dumps({"metadata": {"name": "w1"}, "status": {"conditions": [condition]}}), ""
        assert argv == ["systemctl", "restart", "kubelet"]
        if self.dies == "restart":
            raise KeyboardInterrupt
        self.restarts.append(self.config())
        self.pid += 1
        if self.reports and not self.broken():
            self.heartbeat = self.now
        return 0, "", ""

    def broken(self):
        return "broken" in self.config()

    def process(self):
        self.pid += self.broken()  # again and again
        self.crashes += self.counts and self.broken()  # a restart by hand does not end systemd's count
        return kubelet_config.Process("" if self.broken() and self.pid % 2 else str(self.pid), self.crashes)

    def sleep(self, seconds):
        self.now += seconds


@pytest.fixture
def make(tmp_path, monkeypatch):
    def host(**params):
        host = Host(tmp_path, **params)
        monkeypatch.setattr(paths, "KUBELET", str(tmp_path / "etc/kubernetes/kubelet.conf"))
        monkeypatch.setattr(paths, "ROOT", str(tmp_path))
        monkeypatch.setattr(paths, "LOCK", str(tmp_path / "run/lock"))
        monkeypatch.setattr(paths, "EARLIER_KUBELET_CONFIG", str(tmp_path / "before.yaml"))
        for user in (kubelet_config, kubectl):
            monkeypatch.setattr(user, "run_program", host.run_program)
        monkeypatch.setattr(kubelet_config, "read_process", host.process)
        monkeypatch.setattr(kubelet_config.time, "sleep", host.sleep)
        monkeypatch.setattr(kubelet_config.time, "time", lambda: host.now)
        monkeypatch.setattr(kubelet_config.time, "monotonic", lambda: host.now)
        (tmp_path / "run").mkdir(mode=0o700, exist_ok=True)
        if not (tmp_path / "var/lib/kubelet").exists():
            host.write("var/lib/kubelet/config.yaml", OLD)
            host.write("etc/kubernetes/kubelet.conf", "", 0o600)
        return host

    return host


def apply(host):
    return kubelet_config.KubeletConfig(host).apply()


def test_a_new_configuration_is_written_and_the_kubelet_restarted(make, tmp_path):
    host = make()
    result = apply(host)
    assert (host.config(), host.restarts, result["changed"], result["needed"]) == (NEW, [NEW], True, True)
    assert not (tmp_path / "before.yaml").exists()
    again = make()
    assert not apply(again)["changed"]
    assert again.restarts == []


def test_check_mode_says_so_and_touches_nothing(make):
    host = make(check_mode=True)
    result = apply(host)
    assert (host.config(), host.restarts, result["changed"], result["needed"]) == (OLD, [], True, True)
    assert result["diff"][0]["after"] == NEW


def test_a_host_that_is_no_node_is_left_alone(make, tmp_path):
    host = make()
    (tmp_path / "var/lib/kubelet/config.yaml").unlink()
    result = apply(host)
    assert (result["changed"], result["needed"], result["serves"]) == (False, False, False)


def test_modes_alone_restart_nothing(make, tmp_path):
    host = make(content="")
    unit = "usr/lib/systemd/system/kubelet.service.d/10-kubeadm.conf"
    host.write(unit, "[Service]\n", 0o644)
    host.write("usr/lib/systemd/system/kubelet.service", "", 0o400)
    (tmp_path / "lib").symlink_to("usr/lib")
    assert apply(host)["changed"]
    modes = {path: stat.S_IMODE(os.stat(tmp_path / path).st_mode) for path in (unit, "var/lib/kubelet/config.yaml")}
    assert modes == {unit: 0o600, "var/lib/kubelet/config.yaml": 0o600}
    assert stat.S_IMODE(os.stat(tmp_path / "usr/lib/systemd/system/kubelet.service").st_mode) == 0o400
    assert host.restarts == []
    assert not apply(make(content=""))["changed"]


def test_a_configuration_that_the_kubelet_refuses_is_put_back(make, tmp_path):
    host = make(content=BROKEN)
    with pytest.raises(FabricError) as caught:
        apply(host)
    assert (host.config(), host.restarts) == (OLD, [BROKEN, OLD])
    assert "failed to validate kubelet configuration" in caught.value.seen
    assert "earlier configuration is back, and the kubelet runs with it" in caught.value.seen
    assert not (tmp_path / "before.yaml").exists()


def test_a_kubelet_that_crashes_again_and_again_is_not_waited_for(make):
    host = make(content=BROKEN, ready_timeout=600)
    host.counts, begin = True, host.now
    with pytest.raises(FabricError, match="earlier configuration is back, and the kubelet runs with it"):
        apply(host)
    assert host.now - begin < 60


@pytest.mark.parametrize(("field", "value", "seen"), [
    ("reports", False, "has not reported since"),
    ("ready", "False", "was Ready before, but is not now"),
])  # fmt: skip
def test_a_kubelet_that_runs_but_is_no_node_any_more(make, field, value, seen):
    host = make()
    restart = host.run_command

    def run_command(argv, **options):
        if argv[0] == "systemctl":
            setattr(host, field, value if host.config() == NEW else getattr(Host(host.root), field))
        return restart(argv, **options)

    host.run_command = run_command
    with pytest.raises(FabricError, match=seen):
        apply(host)
    assert host.config() == OLD


def test_a_node_that_was_not_ready_does_not_have_to_become_so(make):
    host = make()
    host.ready = "False"
    assert apply(host)["changed"]


def test_nothing_is_changed_where_nobody_could_tell_what_came_of_it(make, tmp_path):
    host = make()
    host.api = False
    with pytest.raises(FabricError, match="Start the API server"):
        apply(host)
    assert (host.config(), host.restarts, (tmp_path / "before.yaml").exists()) == (OLD, [], False)


def test_a_run_that_was_killed_before_the_restart_is_completed(make, tmp_path):
    host = make()
    host.dies = "restart"
    with pytest.raises(KeyboardInterrupt):
        apply(host)
    assert (tmp_path / "before.yaml").read_text() == OLD
    checked = apply(make(check_mode=True))
    assert checked["changed"]
    assert checked["needed"]
    again = make()
    assert apply(again)["changed"]
    assert again.restarts == [NEW]
    assert not (tmp_path / "before.yaml").exists()


def test_after_a_killed_run_it_still_goes_back_to_what_worked(make, tmp_path):
    host = make(content=BROKEN)
    host.dies = "restart"
    with pytest.raises(KeyboardInterrupt):
        apply(host)
    with pytest.raises(FabricError):
        apply(make(content=BROKEN))
    assert host.config() == OLD


@pytest.mark.parametrize(
    ("days", "serves"),
    [(None, False), (30, True), (-1, False)],
)
def test_whether_the_kubelet_has_a_certificate_of_the_cluster(tmp_path, days, serves):
    now = datetime.datetime.now(datetime.timezone.utc)
    if days is not None:
        path = tmp_path / "var/lib/kubelet/pki/kubelet-server-current.pem"
        path.parent.mkdir(parents=True)
        path.write_bytes(certificate(now + datetime.timedelta(days=days)))
    assert kubelet_config.has_certificate(str(tmp_path), now.timestamp()) == serves


@pytest.mark.parametrize(
    ("shown", "process"),
    [
        ("ActiveState=active\nMainPID=7\nNRestarts=0", ("7", 0)),
        ("ActiveState=activating\nMainPID=0\nNRestarts=3", ("", 3)),
        ("", ("", 0)),
    ],
)
def test_the_process_of_the_kubelet(monkeypatch, shown, process):
    monkeypatch.setattr(kubelet_config, "output_of", lambda *argv: shown)
    assert kubelet_config.read_process() == process


def test_a_restart_without_an_end(make, monkeypatch):
    host = make()
    monkeypatch.setattr(
        kubelet_config, "run_program", lambda argv, timeout=30: Done(None) if argv[0] == "systemctl" else Done(0, "")
    )
    with pytest.raises(FabricError, match="timed out after 120 s"):
        apply(host)
