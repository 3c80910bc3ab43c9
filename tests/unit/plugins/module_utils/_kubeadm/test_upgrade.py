"""kubeadm upgrade: when it runs, with which command, and what it says that it changes."""

import pytest
from ansible_collections.ipu.fabric.plugins.module_utils._common.result import FabricError
from ansible_collections.ipu.fabric.plugins.module_utils._kubeadm import paths, upgrade
from ansible_collections.ipu.fabric.plugins.module_utils._kubeadm.membership import Lookup

MANIFEST = "spec:\n  containers:\n  - command:\n    - {0}\n    image: {1}registry.k8s.io/{0}:v{2}{3}\n    name: {0}\n"
IMAGES = "registry.k8s.io/kube-apiserver:v1.36.3\nregistry.k8s.io/etcd:3.6.6-0\n"
DOCUMENT = {"apiVersion": "kubeadm.k8s.io/v1beta4", "kind": "UpgradeConfiguration"}


@pytest.fixture
def run(host, make_module, monkeypatch):
    """Run the command on a node whose kubelet runs a release; without one, no API answers."""

    def run(kubelet="1.35.4", manifests="", etcd="", **params):
        control_plane = bool(manifests)
        monkeypatch.setattr(paths, "MANIFESTS", str(host["path"]))
        for name in upgrade.COMPONENTS if control_plane else ():
            (host["path"] / f"{name}.yaml").write_text(MANIFEST.format(name, "", manifests, ""))
        if etcd:
            (host["path"] / "etcd.yaml").write_text(MANIFEST.format("etcd", "", etcd, ""))
        monkeypatch.setattr(upgrade, "output_of", lambda *_argv: IMAGES)
        node = {"status": {"nodeInfo": {"kubeletVersion": f"v{kubelet}"}}} if kubelet else None
        monkeypatch.setattr(upgrade, "find_node", lambda name: Lookup(node, "connection refused"))
        module = make_module("upgrade", control_plane=control_plane, documents=[DOCUMENT], **params)
        module.params.update({"version": "1.36.3", "first": False, **params})
        return module, module.apply()

    return run


@pytest.mark.parametrize(
    ("given", "command"),
    [
        ({"manifests": "1.35.4", "first": True}, "kubeadm upgrade apply v1.36.3 --yes"),
        ({"manifests": "1.35.4"}, "kubeadm upgrade node"),
        # An interrupted run had come to the kubelet.
        ({"manifests": "1.36.3", "first": True}, "kubeadm upgrade apply v1.36.3 --yes"),
        # Somebody had upgraded the package of the kubelet.
        ({"manifests": "1.35.4", "kubelet": "1.36.3"}, "kubeadm upgrade node"),
        ({}, "kubeadm upgrade node"),
    ],
)
def test_which_command(run, given, command):
    module, result = run(**given)
    assert module.calls == ["kubeadm config validate", command]
    assert result["changed"]
    assert result["diff"]["after"]["configuration"] == "1.36.3"


@pytest.mark.parametrize(
    ("etcd", "runs"), [("3.5.21-0", True), ("3.6.6-0", False), ("3.6.10-0", False), ("3.6.10", False)]
)
def test_etcd_is_one_of_its_parts(run, etcd, runs):
    """It is never taken back to an older one."""
    module, result = run(kubelet="1.36.3", manifests="1.36.3", etcd=etcd)
    assert bool(module.calls) == runs
    assert result["changed"] == runs
    assert "v" not in result["diff"]["before"]["components"]["etcd"]


@pytest.mark.parametrize("manifests", ["", "1.36.3"])
def test_a_node_that_is_done(run, manifests):
    module, result = run(kubelet="1.36.3", manifests=manifests, first=True)
    assert module.calls == []
    assert not result["changed"]


def test_check_mode_says_what_changes(run):
    module, result = run(manifests="1.35.4", check_mode=True)
    assert module.calls == []
    assert result["changed"]
    assert result["diff"]["before"] == {
        "components": dict.fromkeys(upgrade.COMPONENTS, "1.35.4"),
        "configuration": "1.35.4",
    }


def test_only_a_node_is_upgraded(run):
    with pytest.raises(FabricError, match=r"Only a node of a cluster.*connection refused"):
        run(kubelet="")


@pytest.mark.parametrize(
    ("prefix", "suffix", "release"),
    [("", "", "1.35.4"), ("mirror.site:5000/", "", "1.35.4"), ("", "@sha256:ab12", "1.35.4")],
)
def test_release_of_an_image(prefix, suffix, release):
    assert upgrade.image_release(MANIFEST.format("kube-apiserver", prefix, "1.35.4", suffix)) == release
    assert upgrade.image_release("") == ""


@pytest.mark.parametrize("check_mode", [True, False])
def test_a_node_with_docker_is_refused(run, monkeypatch, check_mode):
    monkeypatch.setattr(upgrade, "node_runtime", lambda: "docker")
    with pytest.raises(FabricError, match="Only nodes with containerd are upgraded"):
        run(check_mode=check_mode)
