"""Programs and servers that never answer: everything that waits for one gives up, and says for whom it waited."""

from __future__ import annotations

import os
import socket
import threading
import types
import typing as t

import pytest
from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.testing import patch_module_args
from ansible_collections.ipu.fabric.plugins.module_utils._common.result import FabricError
from ansible_collections.ipu.fabric.plugins.module_utils._host import apt
from ansible_collections.ipu.fabric.plugins.module_utils._kube import helm, pod_exec
from ansible_collections.ipu.fabric.plugins.module_utils._kubeadm import images, program
from ansible_collections.ipu.fabric.plugins.module_utils._verify import probe

SECONDS = 15  # far more than the limits that are set here, and less than the programs take


@pytest.fixture
def module(tmp_path, monkeypatch) -> AnsibleModule:
    """A real one, on a host whose programs never end."""
    for name in ("apt-get", "ctr", "helm", "kubeadm"):
        path = tmp_path / "bin" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text('#!/bin/sh\n[ "$4" = list ] && exit\necho started >&2\nexec sleep 30\n')
        path.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"), prepend=os.pathsep)
    with patch_module_args({}):
        made = AnsibleModule({}, supports_check_mode=True)
    made.params.update(binary="helm", images=["registry.example/pause:1"], kubeconfig="/nowhere", timeout=1)
    made.params.update(runtime="containerd")
    return made


def run(function: t.Callable[[], t.Any]) -> t.Any:
    """What the function returns or raises; a failure if it is still at work after SECONDS."""
    results: t.List[t.Any] = []

    def work() -> None:
        try:
            results.append(function())
        except FabricError as error:
            results.append(error)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join(SECONDS)
    assert results, f"timed out after {SECONDS} s"
    return results[0]


def test_kubeadm(module, tmp_path):
    with open(tmp_path / "lock", "w") as lock:
        error = run(lambda: program.Kubeadm(module, lock).run("init", next_step="Look."))
    assert (error.what, error.next_step) == ("kubeadm init did not end within 1 s.", "Look.")
    assert error.seen == "started"


def test_apt(module):
    error = run(lambda: apt.Apt(0, 1).get("update", what="Could not read the package lists."))
    assert "timed out after 1 s" in error.seen
    assert "apt-get" in error.where


def test_helm(module, monkeypatch):
    monkeypatch.setattr(helm, "MARGIN", 0)
    with helm.Helm(module, types.SimpleNamespace()) as program:
        error = run(lambda: program.call("The chart could not be downloaded.", "http://mirror", "pull"))
    assert (error.where, error.seen) == ("http://mirror", "timed out after 1 s: started")


def test_image_pull(module, monkeypatch):
    warnings: t.List[str] = []
    monkeypatch.setattr(images, "PULL_SECONDS", 1)
    monkeypatch.setattr(module, "warn", warnings.append)
    assert not run(lambda: images.pull_images(module))["changed"]
    assert warnings == [
        "Images not pulled yet; the kubelet will try again: registry.example/pause:1. Seen: timed out after 1 s"
    ]


def test_connection_to_a_pod(monkeypatch):
    """An API server, or a firewall before it, that takes a connection and says nothing."""
    monkeypatch.setattr(pod_exec, "CONNECT_SECONDS", 1)
    with socket.create_server(("127.0.0.1", 0)) as server:
        configuration = types.SimpleNamespace(
            host=f"https://127.0.0.1:{server.getsockname()[1]}", verify_ssl=False, ssl_ca_cert=None, proxy=None,
            cert_file=None, key_file=None, tls_server_name=None, assert_hostname=None, proxy_headers=None,
            auth_settings=dict,
        )  # fmt: skip
        cluster = types.SimpleNamespace(client=types.SimpleNamespace(configuration=configuration))
        options = types.SimpleNamespace(script="")
        asked = probe.Run(cluster, {}, options, None, "ns")  # type: ignore[arg-type]
        output = run(lambda: probe.run_in(asked, "pod", "root", ["network"], 1))
    assert output.error.startswith("exec failed: ")
    assert "timed out" in output.error
