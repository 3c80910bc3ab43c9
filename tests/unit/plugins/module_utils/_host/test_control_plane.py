"""What the manifests of a control plane say, and which of its files are too open."""

import pytest
from ansible_collections.ipu.fabric.plugins.module_utils._host.control_plane import (
    manifest_arguments,
    read_control_plane,
    too_open,
)

MANIFEST = """\
apiVersion: v1
kind: Pod
spec:
  containers:
  - command:
    - kube-apiserver
    - --advertise-address=10.88.0.11
    - --allow-privileged
    - "--audit-log-path=/var/log/kubernetes/audit/audit.log"
    - '--service-account-issuer=it''s'
    - --enable-admission-plugins=NodeRestriction,EventRateLimit
    image: registry.k8s.io/kube-apiserver:v1.35.4
    volumeMounts:
    - mountPath: /etc/ssl/certs
"""


def test_arguments():
    assert manifest_arguments(MANIFEST) == {
        "advertise-address": "10.88.0.11",
        "allow-privileged": "true",
        "audit-log-path": "/var/log/kubernetes/audit/audit.log",
        "service-account-issuer": "it's",
        "enable-admission-plugins": "NodeRestriction,EventRateLimit",
    }


def put(root, path, mode=0o600, text=""):
    target = root / path
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(text)
    target.chmod(mode)
    return target


@pytest.mark.parametrize(
    ("path", "mode", "seen"),
    [
        ("etc/kubernetes/admin.conf", 0o600, False),
        ("etc/kubernetes/admin.conf", 0o640, True),
        ("etc/kubernetes/pki/ca.key", 0o644, True),
        ("etc/kubernetes/pki/ca.crt", 0o644, False),
        ("etc/kubernetes/pki/etcd/server.key", 0o604, True),
        ("etc/kubernetes/manifests/etcd.yaml", 0o400, False),
    ],
)
def test_files_that_are_too_open(tmp_path, path, mode, seen):
    target = put(tmp_path, path, mode)
    assert too_open(str(tmp_path)) == ({str(target): mode & 0o600} if seen else {})


def test_links_are_left_alone(tmp_path):
    target = put(tmp_path, "srv/admin.conf", 0o644)
    (tmp_path / "etc/kubernetes").mkdir(parents=True)
    (tmp_path / "etc/kubernetes/admin.conf").symlink_to(target)
    assert too_open(str(tmp_path)) == {}


def test_a_worker_is_no_control_plane(tmp_path):
    assert read_control_plane(str(tmp_path)) is None


def test_a_control_plane(tmp_path):
    put(tmp_path, "etc/kubernetes/manifests/kube-apiserver.yaml", 0o644, MANIFEST)
    put(tmp_path, "etc/kubernetes/super-admin.conf")
    found = read_control_plane(str(tmp_path))
    assert list(found["arguments"]) == ["kube-apiserver"]
    assert found["open_files"] == ["/etc/kubernetes/manifests/kube-apiserver.yaml"]
    assert found["super_admin"]
