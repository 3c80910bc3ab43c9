"""Check mode on a finished cluster from a folder that has nothing of it: no kubeconfig, no helm."""

from __future__ import annotations

import hashlib
import typing as t
from pathlib import Path

import pytest
from ansible_collections.ipu.fabric.tests.unit.fixtures import control_plane
from ansible_collections.ipu.fabric.tests.unit.fixtures.stubs import Playground, Ran

ADMIN = "apiVersion: v1\nkind: Config\nclusters: []\nusers: []\n# the administrator's\n"
NODE = {
    **control_plane.NODE, "name": "cp1", "kubelet": "1.36.3", "membership": "member", "seen": "",
    "kubeconfig_sha256": hashlib.sha256(ADMIN.encode()).hexdigest(), "registered": True, "is_control_plane": True,
    "taints": [],
}  # fmt: skip
SITE = {
    "kubeconfig": "{{ folder }}/admin.conf", "api_kubeconfig": "{{ folder }}/admin.conf", "manage_kubernetes": True,
    "api_host": "localhost", "require_rdma": False, "proxy": {},
    "mirror": {"apt": {}, "registry": "", "calico": {}}, "bundle": "", "pod_security_exempt": [], "allow": [],
}  # fmt: skip
PLAN = {
    "releases": {"kubernetes": "1.36.3", "cni": "flannel", "cni_version": ""},
    "hosts": {"cp1": {"links": {}, "node": "cp1", "address": "192.0.2.1"}},
    "cluster": {"endpoint": "192.0.2.1:6443", "pod_cidr": "10.244.0.0/16", "service_cidr": "10.96.0.0/12"},
    "hardening": {"level": "baseline"},
    "vipu": {"controllers": []},
}
# The playbook, and a play after it that uses the API as the playbook fabric does.
PLAYS = [
    {
        "hosts": "all",
        "gather_facts": False,
        "tasks": [{"ansible.builtin.set_fact": {"fabric_site": SITE, "fabric_plan": PLAN}}],
    },
    {"ansible.builtin.import_playbook": "ipu.fabric.plays.kubernetes"},
    {
        "hosts": "all",
        "gather_facts": False,
        "tasks": [
            {"ansible.builtin.import_role": {"name": "ipu.fabric.helm"}, "delegate_to": "localhost"},
            {"ipu.fabric.helm_release": {"name": "x", "kubeconfig": "{{ fabric_site.api_kubeconfig }}"}},
            {"ansible.builtin.fail": {"msg": "broken"}, "when": "broken | default(false)"},
        ],
        "vars": {"helm_directory": "{{ folder }}/bin"},
    },
]


@pytest.fixture
def check(tmp_path: Path) -> t.Callable[..., Ran]:
    (tmp_path / "etc").write_text(ADMIN)
    ground = Playground(tmp_path)
    ground.answer(
        kubernetes_node_info=[({}, {"node": NODE})],
        memlock=[({}, {"restartable": [], "stale": [], "units": []})],
        systemd_units=[({}, {"stale": []})],
        apt_packages=[({}, {"versions": {"containerd.io": "2.2.1"}})],
    )

    def run(*arguments: str, plays: t.Any = None, **variables: t.Any) -> Ran:
        folder = str(tmp_path / "second")
        settings = {"folder": folder, "_kubernetes_admin_kubeconfig": str(tmp_path / "etc"), **variables}
        return ground.play(plays or PLAYS, *arguments, groups={"kube_control_plane": ["cp1"]}, **settings)

    return run


def kubeconfigs(ran: Ran) -> t.List[t.Tuple[str, t.Any]]:
    """For each module that had a kubeconfig: what was in it, and its mode."""
    return [(call.module, call.kubeconfig) for call in ran.calls if "kubeconfig" in call.options]


def left(folder: Path) -> t.List[str]:
    """Files with the administrator's credentials, other than that of the host."""
    files = (path for path in folder.rglob("*") if path.is_file() and path.name not in ("etc", "calls"))
    return sorted(str(path.relative_to(folder)) for path in files if ADMIN.encode() in path.read_bytes())


def test_it_reads_the_cluster_and_reports_no_change(check, tmp_path):
    ran = check("--check")
    assert (ran.code, ran.changed()) == (0, 0), ran.output
    found = dict(kubeconfigs(ran))
    names = ("kube_apply", "kube_wait", "cluster_kubelets", "helm_release")
    assert found == {name: {"text": ADMIN, "mode": "0600"} for name in names}
    assert left(tmp_path) == []
    assert not (tmp_path / "second").exists()


def test_a_check_that_fails_leaves_no_credentials_either(check, tmp_path):
    ran = check("--check", broken=True)
    assert ran.code != 0
    assert "helm_release" in dict(kubeconfigs(ran))
    assert left(tmp_path) == []


def test_another_kubeconfig_would_be_replaced_and_is_not_used(check, tmp_path):
    (tmp_path / "second").mkdir()
    (tmp_path / "second" / "admin.conf").write_text("old")
    ran = check("--check")
    assert (ran.code, ran.changed()) == (0, 1), ran.output
    assert {text["text"] for _module, text in kubeconfigs(ran)} == {ADMIN}
    assert (tmp_path / "second" / "admin.conf").read_text() == "old"
    assert left(tmp_path) == []


def test_for_real_it_is_fetched(check, tmp_path):
    (tmp_path / "second").mkdir()
    (tmp_path / "second" / "admin.conf").write_text("old")
    ran = check(plays=PLAYS[:2])
    assert ran.code == 0, ran.output
    assert {config["text"] for _module, config in kubeconfigs(ran)} == {ADMIN}
    assert left(tmp_path) == ["second/admin.conf"]
    assert (tmp_path / "second" / "admin.conf").stat().st_mode & 0o777 == 0o600
