"""What kubernetes_node_info returns, and what an interrupted kubeadm leaves for it to see."""

import fcntl

import pytest
from ansible_collections.ipu.fabric.plugins.module_utils._common.command import Done
from ansible_collections.ipu.fabric.plugins.module_utils._common.result import FabricError
from ansible_collections.ipu.fabric.plugins.module_utils._host import facts
from ansible_collections.ipu.fabric.plugins.module_utils._kubeadm import lock, node_info, paths
from ansible_collections.ipu.fabric.plugins.module_utils._kubeadm.bootstrap import write_marker


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Kubernetes v1.35.4", "1.35.4"),
        ("containerd github.com/containerd/containerd/v2 v2.2.1 0123456789", "2.2.1"),
        ("containerd containerd.io 1.7.27 05044ec0a9a75232cad458027ca83437aae3f4da", "1.7.27"),
        ("", ""),
    ],
)
def test_program_version(text, expected):
    assert node_info.program_version(text) == expected


@pytest.mark.parametrize(
    ("done", "seen"),
    [(Done(None), "timed out after 120 s"), (Done(1, "", "cannot execute binary\n"), "cannot execute binary")],
)
def test_a_program_that_does_not_say_its_version_is_not_a_missing_one(monkeypatch, done, seen):
    monkeypatch.setattr(node_info, "run_program", lambda *_: done)
    with pytest.raises(FabricError) as failure:
        node_info.installed_version("kubelet")
    assert (failure.value.where, failure.value.seen) == ("kubelet --version", seen)
    monkeypatch.setattr(node_info, "run_program", lambda *_: Done(127))
    assert node_info.installed_version("kubelet") == ""


def test_parse_os_release():
    text = 'PRETTY_NAME="Debian GNU/Linux 12 (bookworm)"\nID=debian\nVERSION_CODENAME=bookworm\nEMPTY=\n\n# word\n'
    found = facts.parse_os_release(text)
    assert (found["ID"], found["VERSION_CODENAME"]) == ("debian", "bookworm")
    assert "EMPTY" not in found


def test_is_locked(tmp_path, monkeypatch):
    file = tmp_path / "lock"
    monkeypatch.setattr(paths, "LOCK", str(file))
    assert not lock.is_locked()
    with file.open("a") as holder:
        fcntl.flock(holder, fcntl.LOCK_EX)
        assert lock.is_locked()
    assert not lock.is_locked()


def test_file_digest(tmp_path):
    assert node_info.file_digest(str(tmp_path / "none")) == ""
    (tmp_path / "some").write_text("")
    assert node_info.file_digest(str(tmp_path / "some")).startswith("e3b0c442")


@pytest.mark.parametrize("marked", [False, True])
@pytest.mark.parametrize("running", [False, True])
def test_an_interrupted_kubeadm_is_seen(host, make_module, marked, running):
    """By the marker or by the lock, where kubeadm itself leaves them."""
    module = make_module(address="192.0.2.11", image_repository="")
    if marked:
        write_marker(module, "join")
    with open(paths.LOCK, "a", encoding="utf-8") as holder:
        if running:
            fcntl.flock(holder, fcntl.LOCK_EX)
        node = node_info.read_node_info(module)["node"]
    assert node["membership"] == ("unfinished" if marked or running else "none")
    assert (node["name"], node["address"]) == ("n1", "192.0.2.11")
