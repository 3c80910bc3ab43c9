"""A kubeconfig that comes from a host is used on the controller."""

import pytest
import yaml
from ansible_collections.ipu.fabric.plugins.module_utils._common.result import FabricError
from ansible_collections.ipu.fabric.plugins.plugin_utils._kubeconfig import kubeconfig_without_programs, read_kubeconfig

CLUSTER = {"certificate-authority-data": "YQ==", "server": "https://10.0.0.1:6443"}
USER = {"client-certificate-data": "YQ==", "client-key-data": "YQ=="}


def kubeconfig(cluster=None, user=None):
    """As kubeadm writes admin.conf, but for these."""
    return yaml.safe_dump(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "kubernetes", "cluster": {**CLUSTER, **(cluster or {})}}],
            "contexts": [{"name": "a", "context": {"cluster": "kubernetes", "user": "a"}}],
            "current-context": "a",
            "users": [{"name": "a", "user": {**USER, **(user or {})}}],
        }
    )


def test_what_kubeadm_writes_is_taken():
    assert kubeconfig_without_programs(kubeconfig()) == kubeconfig()


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        (kubeconfig(user={"exec": {"command": "/bin/sh"}}), "user exec"),
        (kubeconfig(user={"auth-provider": {"name": "gcp"}}), "user auth-provider"),
        (kubeconfig(user={"client-key": "/root/.ssh/id_rsa"}), "user client-key"),
        (kubeconfig(cluster={"proxy-url": "http://10.9.9.9"}), "cluster proxy-url"),
        (kubeconfig(cluster={"insecure-skip-tls-verify": True}), "cluster insecure-skip-tls-verify"),
        ("", "it is not a kubeconfig"),
        ("a: [", "it is not a kubeconfig"),
    ],
)
def test_what_would_run_or_read_something_on_the_controller_is_refused(text, seen):
    with pytest.raises(FabricError, match=f"Seen: {seen}"):
        kubeconfig_without_programs(text)


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        (None, ""),
        ("", "is empty"),
        ("\n", "is empty"),
        ("apiVersion: v1\n", "is not a kubeconfig, or its current-context"),
        ("<html>", "is not a kubeconfig, or its current-context"),
        (
            kubeconfig().replace("current-context: a", "current-context: b"),
            "is not a kubeconfig, or its current-context",
        ),
    ],
)
def test_a_file_that_leads_to_no_cluster_says_why(tmp_path, text, fault):
    path = tmp_path / "admin.conf"
    if text is not None:
        path.write_text(text)
    found = read_kubeconfig(str(path))
    assert found.server == ""
    assert found.fault.startswith(fault)
    assert bool(found.fault) == bool(fault)


def test_a_folder_is_no_kubeconfig(tmp_path):
    assert read_kubeconfig(str(tmp_path)) == (str(tmp_path), "", "", "is a folder")
