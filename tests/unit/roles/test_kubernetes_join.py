"""The role kubernetes, while hosts join: their token lasts as long as that takes, and no longer."""

from __future__ import annotations

import hashlib

import pytest
from ansible_collections.ipu.fabric.tests.unit.fixtures.control_plane import NODE
from ansible_collections.ipu.fabric.tests.unit.fixtures.stubs import Playground, Ran

DISCOVERY = {
    "endpoint": "cp1:6443",
    "token": "abcdef.0123456789abcdef",
    "ca_hashes": ["sha256:1"],
    "certificate_key": "",
}
GROUPS = {"kube_control_plane": ["cp1"], "kube_node": ["w1", "w2", "w3"]}
PLAY = {
    "hosts": "all",
    "gather_facts": False,
    "roles": [{"role": "ipu.fabric.kubernetes"}],
    "vars": {
        "kubernetes_cni": "none",
        "kubernetes_node_name": "{{ inventory_hostname }}",
        "kubernetes_join_retries": 0,
        "kubernetes_join_throttle": 1,
    },
}


def node(name: str, membership: str) -> dict:
    return {
        **NODE, "name": name, "kubelet": "1.36.3", "membership": membership, "seen": "",
        "kubeconfig_sha256": hashlib.sha256(b"").hexdigest(),
        "registered": False, "is_control_plane": name == "cp1", "taints": [],
    }  # fmt: skip


@pytest.fixture
def join(tmp_path):
    """Three workers join; those that are named fail."""

    def run(*failing: str, check: bool = False, **given: str) -> Ran:
        ground = Playground(tmp_path)
        ground.answer(
            kubernetes_node_info=[
                ({"node_name": name}, {"node": node(name, "member" if name == "cp1" else "none")})
                for names in GROUPS.values()
                for name in names
            ],
            systemd_units=[({}, {"stale": []})],
            apt_packages=[({}, {"versions": {"containerd.io": "2.2.1"}})],
            kubeadm=[
                ({"command": "token"}, {"changed": True, "discovery": DISCOVERY}),
                *[({"command": "join", "node_name": name}, {"failed": True, "msg": "no"}) for name in failing],
                ({"command": "join"}, {"changed": True}),
            ],
        )
        (tmp_path / "admin.conf").write_text("")
        settings = {"kubernetes_kubeconfig": str(tmp_path / "admin.conf"), **given}
        return ground.play([PLAY], *["--check"] * check, groups=GROUPS, **settings)

    return run


@pytest.mark.parametrize("failing", [(), ("w1",), ("w2", "w3"), ("w1", "w2", "w3")])
def test_the_token_is_deleted_once_the_hosts_have_joined_or_failed(join, failing):
    ran = join(*failing)
    assert (ran.code == 0) == (not failing), ran.output
    calls = [call.options for call in ran.calls if call.module == "kubeadm" and call.options["command"] != "images"]
    assert [call["command"] for call in calls] == ["rejoin", "token", "join", "join", "join", "token"]
    assert calls[1]["ttl"] == "30m0s30m"  # ten minutes for each worker; the control plane is a member
    assert calls[-1]["state"] == "absent"
    assert calls[-1]["discovery"] == DISCOVERY


def test_a_release_with_its_v_is_that_release(join):
    """The role on its own: the node was refused as one of another release, and apt looked for a package v1.36.3."""
    ran = join(kubernetes_version="v1.36.3")
    assert ran.code == 0, ran.output
    asked = [call.options.get("version") for call in ran.calls if call.options.get("version")]
    packages = [one["version"] for each in ran.options("apt_packages") for one in each["packages"] if one["version"]]
    assert set(asked) == {"1.36.3"}
    assert "1.36.3" in packages
    assert not [version for version in packages if version.startswith("v")]
    assert "/v1.36/deb/" in str(ran.options("apt_packages"))
