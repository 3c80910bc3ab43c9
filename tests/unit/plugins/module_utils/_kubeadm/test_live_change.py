"""A control plane of files whose kubelet starts pods by their manifests: changed, put back, killed and taken up."""

import os
import stat
import time

import pytest
from ansible_collections.ipu.fabric.plugins.module_utils._common.command import Done
from ansible_collections.ipu.fabric.plugins.module_utils._common.result import FabricError
from ansible_collections.ipu.fabric.plugins.module_utils._host import kubectl
from ansible_collections.ipu.fabric.plugins.module_utils._host.control_plane import manifest_arguments
from ansible_collections.ipu.fabric.plugins.module_utils._kubeadm import (
    control_plane,
    hardening,
    live_change,
    paths,
    program,
)
from ansible_collections.ipu.fabric.plugins.module_utils._kubeadm.hardening import Wanted, harden
from ansible_collections.ipu.fabric.plugins.module_utils._kubeadm.live_change import LiveChange
from ansible_collections.ipu.fabric.plugins.module_utils._kubeadm.static_pods import Process
from ansible_collections.ipu.fabric.tests.unit.fixtures import module as fake

PODS = tuple(hardening.STATIC_POD.values())
PLAIN = {"apiVersion": hardening.API_VERSION, "kind": "ClusterConfiguration", "kubernetesVersion": "v1.35.4"}
BAD = "--no-such-flag"


def manifest_of(configuration, component):
    arguments = (configuration.get(component) or {}).get("extraArgs") or []
    lines = [f"    - --{each['name']}={each['value']}" for each in arguments]
    pod = hardening.STATIC_POD[component]
    return "\n".join(["spec:", "  containers:", "  - command:", f"    - {pod}", *lines, ""])


class Host(fake.Module):
    """The module, kubeadm and the kubelet of a control plane."""

    def __init__(self, folder, level="baseline", **params):
        self.folder, self.documents = folder, []
        self.configuration = harden(PLAIN, Wanted(level, (1, 35), frozenset())).configuration
        super().__init__(
            documents=[{"kind": "InitConfiguration"}, self.configuration],
            **{
                "files": [],
                "private": True,
                "super_admin": True,
                "configuration": "",
                "ready_timeout": 5,
                "lock_timeout": 0,
                "timeout": 60,
                "state": "present",
                **params,
            },
        )

    def run_program(self, argv, timeout=30, **options):
        self.commands.append(argv)
        if "control-plane" in argv:
            for component, pod in hardening.STATIC_POD.items():
                (self.folder / "rendered" / f"{pod}.yaml").write_text(manifest_of(self.configuration, component))
        if argv[-1] == "/readyz":
            return Done(int(BAD in self.text("kube-apiserver")))
        return Done(0, "{}", "")

    def path(self, pod):
        return self.folder / "manifests" / f"{pod}.yaml"

    def text(self, pod):
        return self.path(pod).read_text()

    def processes(self, name):
        if BAD in self.text(name):
            return []
        return [Process(self.path(name).stat().st_ino, 0.0)]


@pytest.fixture
def make(tmp_path, monkeypatch):
    for name in ("EARLIER", "LOCK", "CONFIG", "ADMIN"):
        monkeypatch.setattr(paths, name, str(tmp_path / "own" / name.lower()))
    (tmp_path / "own").mkdir(mode=0o700)
    (tmp_path / "own/admin").write_text("")
    (tmp_path / "etc").mkdir()
    (tmp_path / "manifests").mkdir()
    monkeypatch.setattr(paths, "ROOT", str(tmp_path))
    monkeypatch.setattr(paths, "KUBERNETES", str(tmp_path / "etc"))
    monkeypatch.setattr(paths, "MANIFESTS", str(tmp_path / "manifests"))
    monkeypatch.setattr(paths, "RENDERED", str(tmp_path / "rendered"))
    monkeypatch.setattr(live_change.time, "sleep", lambda seconds: None)
    clock = iter(range(10**6))
    monkeypatch.setattr(live_change.time, "monotonic", lambda: next(clock))
    monkeypatch.setattr(control_plane, "too_open", lambda root: {})
    monkeypatch.setattr(control_plane, "SUPER_ADMIN", str(tmp_path / "etc/super-admin.conf"))
    monkeypatch.setattr(control_plane, "CA_KEY", str(tmp_path / "etc/ca.key"))
    (tmp_path / "etc/ca.key").write_text("")
    (tmp_path / "etc/super-admin.conf").write_text("")
    for component, pod in hardening.STATIC_POD.items():
        (tmp_path / "manifests" / f"{pod}.yaml").write_text(manifest_of(PLAIN, component))
        os.chmod(tmp_path / "manifests" / f"{pod}.yaml", 0o600)

    def running(root):
        texts = {pod: (tmp_path / "manifests" / f"{pod}.yaml").read_text() for pod in PODS}
        return {pod: manifest_arguments(text) for pod, text in texts.items()}

    monkeypatch.setattr(control_plane, "read_arguments", running)

    def build(level="baseline", **params):
        host = Host(tmp_path, level, **params)
        for user in (kubectl, program):
            monkeypatch.setattr(user, "run_program", host.run_program)
        monkeypatch.setattr(live_change, "processes", host.processes)
        monkeypatch.setattr(live_change, "end_process", lambda process: None)
        return host

    return build


def test_a_second_call_changes_nothing(make):
    assert control_plane.run(make())["changed"]
    host = make()
    assert not control_plane.run(host)["changed"]
    assert [argv for argv in host.commands if "control-plane" in argv] == []
    assert "--profiling=false" in host.text("kube-scheduler")
    assert stat.S_IMODE(host.path("kube-scheduler").stat().st_mode) == 0o600
    assert not os.path.exists(paths.EARLIER)


def test_check_mode_says_the_same_and_touches_nothing(make):
    host = make()
    host.check_mode = True
    said = control_plane.run(host)
    assert said["changed"]
    assert host.commands == []
    assert "--profiling" not in host.text("kube-apiserver")
    assert control_plane.run(make())["diff"] == said["diff"]


def test_a_control_plane_that_does_not_come_up_is_put_back(make):
    host = make()
    before = {pod: host.text(pod) for pod in PODS}
    host.configuration = {
        **host.configuration,
        "apiServer": {"extraArgs": [*host.configuration["apiServer"]["extraArgs"], {"name": BAD[2:], "value": "1"}]},
    }
    with pytest.raises(FabricError, match="The earlier files are back, and the control plane runs as before"):
        control_plane.run(host)
    assert {pod: host.text(pod) for pod in PODS} == before
    assert not os.path.exists(paths.EARLIER)


@pytest.mark.parametrize(("bad", "action"), [(True, "restored"), (False, "completed")])
def test_a_run_that_was_killed_is_settled(make, bad, action):
    host = make()
    path = str(host.path("kube-apiserver"))
    before = host.text("kube-apiserver")
    live_change.keep([path])
    live_change.write({path: {"content": before + (f"    - {BAD}=1\n" if bad else "    - --v=1\n"), "mode": "0600"}})
    assert LiveChange(host).settle() == action
    assert (host.text("kube-apiserver") == before) == bad
    assert LiveChange(host).settle() == "nothing"


def test_what_is_kept_is_for_root_alone(make):
    host = make()
    live_change.keep([str(host.path("kube-apiserver"))])
    assert stat.S_IMODE(os.stat(paths.EARLIER).st_mode) == 0o700
    assert stat.S_IMODE(os.stat(os.path.join(paths.EARLIER, live_change.LIST)).st_mode) == 0o600


def test_a_manifest_with_something_of_the_site_is_not_overwritten(make):
    host = make()
    path = host.path("kube-apiserver")
    path.write_text(host.text("kube-apiserver") + "    - --oidc-issuer-url=https://example.org\n")
    with pytest.raises(FabricError, match="oidc-issuer-url"):
        control_plane.run(host)
    assert "--oidc-issuer-url" in host.text("kube-apiserver")


@pytest.mark.parametrize(("key", "level", "stays"), [(True, True, True), (True, False, False), (False, False, True)])
def test_super_admin_goes_only_where_it_can_come_back(make, key, level, stays):
    host = make(super_admin=level)
    if not key:
        (host.folder / "etc/ca.key").unlink()
    control_plane.run(host)
    assert (host.folder / "etc/super-admin.conf").exists() == stays
    assert not control_plane.run(make(super_admin=level))["changed"]


def test_a_file_that_changes_restarts_the_api_server(make, monkeypatch):
    control_plane.run(make())
    ended = []
    host = make(files=[{"path": str(make().folder / "etc/hardening/audit-policy.yaml"), "content": "kind: Policy\n"}])
    monkeypatch.setattr(live_change, "end_process", ended.append)
    monkeypatch.setattr(live_change, "processes", lambda name: [Process(2 if ended else 1, time.time() - 60)])
    assert control_plane.run(host)["changed"]
    assert [process.pid for process in ended] == [1]
