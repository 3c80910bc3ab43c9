"""The role kubernetes with a bundle, and with a proxy: what hosts take, from where, and in which order."""

import hashlib
import json

import pytest
from ansible_collections.ipu.fabric.tests.unit.fixtures.playbooks import play

GROUPS = {"kube_control_plane": ["cp1"], "kube_node": ["w1"]}
PROXY = {"http": "http://user:secret@proxy:3128", "https": "http://proxy:3128", "no_proxy": ["10.96.0.0/12", ".svc"]}
VARIABLES = {"kubernetes_cni": "none", "kubernetes_version": "1.35.4"}
PLAY = [{"hosts": "all", "gather_facts": False, "roles": ["ipu.fabric.kubernetes"], "vars": VARIABLES}]
ORDER = ["bundle_files", "apt_packages", "systemd_units", "bundle_files", "kubeadm"]


def node(host):
    return {
        "name": host,
        "address": "10.88.0.11",
        "kubelet": "1.35.4",
        "containerd": "2.2.1",
        "images": ["registry.k8s.io/pause:3.10.1"],
        "kubeconfig_sha256": hashlib.sha256(b"").hexdigest(),
        "membership": "none",
        "seen": "",
        "next_step": "",
        "answered": False,
        "registered": False,
        "is_control_plane": False,
        "taints": [],
    }


@pytest.fixture
def install(tmp_path):
    """Run the role on bare hosts, up to the first control plane, which fails."""

    def run(*arguments, **variables):
        answers = {
            "kubernetes_node_info": {host: {"node": node(host)} for host in ("cp1", "w1")},
            "apt_packages": {"*": {"versions": {"containerd.io": "2.2.1"}}},
            "systemd_units": {"*": {"stale": []}},
            "kubeadm": {"cp1": {"failed": True, "msg": "enough"}},
        }
        settings = {"kubernetes_kubeconfig": str(tmp_path / "admin.conf"), **variables}
        return play(tmp_path, PLAY, GROUPS, answers, *arguments, **settings)

    return run


def calls(run, module, with_option=""):
    found = [call for call in run.calls if call.module == module]
    return {call.host: call.options for call in found if not with_option or call.options.get(with_option)}


def test_packages_and_images_come_from_the_bundle_alone(install):
    run = install(kubernetes_bundle="/media/bundle")
    assert "enough" in run.text
    assert [call.module for call in run.calls if call.host == "cp1" and call.module in ORDER] == ORDER
    files, images = (calls(run, "bundle_files", with_option=name) for name in ("part", "architecture"))
    for host, options in files.items():
        assert (host, options["part"]) == (host, "apt/debian-bookworm-amd64")
    for options in calls(run, "apt_packages").values():
        assert options["only"] is True
        assert [(one["uri"], one["trusted"]) for one in options["repositories"].values()] == [
            ("file:/var/lib/ipu-fabric/bundle/apt/", True)
        ]
    planes = {host: options["control_plane"] for host, options in images.items()}
    assert files.keys() == planes.keys()
    assert planes == {"cp1": True, "w1": False}


def test_without_a_bundle_nothing_of_it(install):
    run = install()
    assert calls(run, "bundle_files") == {}
    assert all(options["only"] is False for options in calls(run, "apt_packages").values())


def test_the_proxy_of_the_site_is_that_of_apt_and_containerd(install):
    run = install(kubernetes_proxy=PROXY)
    (told,) = {json.dumps([one["download_proxy"], one["sets_proxy"]]) for one in calls(run, "apt_packages").values()}
    assert json.loads(told) == [PROXY, True]
    states = {file["path"]: file["state"] for file in calls(run, "systemd_units")["cp1"]["files"]}
    assert states["/etc/containerd/proxy.env"] == "present"
