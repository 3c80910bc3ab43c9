"""Documents for kubeadm, and what it prints."""

from __future__ import annotations

import json
import os
import typing as t

import pytest
from ansible_collections.ipu.fabric.plugins.module_utils._common.result import FabricError
from ansible_collections.ipu.fabric.plugins.module_utils._kubeadm import program


def test_to_yaml():
    texts = program.to_yaml([{"a": 1}, {"b": "x: y"}]).split("\n---\n")
    assert [json.loads(text) for text in texts] == [{"a": 1}, {"b": "x: y"}]


def test_error_lines_leave_out_progress():
    text = """\
[certs] Generating "ca" certificate and key
[control-plane-check] kube-scheduler is healthy after 17s
[control-plane-check] kube-apiserver is not healthy after 4m0s

error: port 6443 is in use
\t[ERROR Port-6443]: Port 6443 is in use
"""
    assert program.error_lines(text).splitlines() == [
        "[control-plane-check] kube-apiserver is not healthy after 4m0s",
        "error: port 6443 is in use",
        "\t[ERROR Port-6443]: Port 6443 is in use",
    ]


def test_config_file_is_for_root_only(host):
    with program.config_file([{"kind": "JoinConfiguration"}]) as path:
        assert os.stat(path).st_mode & 0o777 == 0o600
    assert not os.path.exists(path)


def test_kubeadm_gets_no_proxy(monkeypatch, tmp_path, host):
    """It would write the variables into the manifests of the API server."""
    kubeadm = tmp_path / "kubeadm"
    kubeadm.write_text('#!/bin/sh\necho "$HTTPS_PROXY$https_proxy$NO_PROXY|$HOME"\n')
    kubeadm.chmod(0o755)
    for name in ("HTTPS_PROXY", "https_proxy", "NO_PROXY"):
        monkeypatch.setenv(name, "http://user:secret@proxy.site:3128")
    monkeypatch.setenv("HOME", "/root")

    class Module:
        params: t.ClassVar[t.Dict[str, int]] = {"timeout": 60}

        def get_bin_path(self, name, required=False):
            return str(kubeadm)

    with open(os.devnull, encoding="utf-8") as lock:
        assert program.Kubeadm(Module(), lock).run("init", next_step="").strip() == "|/root"


JOURNALS = """#!/bin/sh
case "$1" in
  --unit=containerd)
    echo 'time="2026-11-23T04:00:00Z" level=error msg="failed to resolve registry.k8s.io/pause:3.10: no such host"'
    echo 'time="2026-11-23T04:00:05Z" level=error msg="failed to resolve registry.k8s.io/pause:3.10: no such host"'
    echo 'time="2026-11-23T04:00:05Z" level=info msg="connect"' ;;
  --unit=kubelet) echo "I1123 04:00:00.1  77 server.go:1] started" ;;
esac
"""


@pytest.mark.parametrize(
    ("journals", "seen", "units"),
    [
        (
            JOURNALS,
            'it went wrong\ncontainerd: level=error msg="failed to resolve registry.k8s.io/pause:3.10: no such host"',
            "containerd",
        ),
        (JOURNALS.replace("I1123", "E1123"), "kubelet: server.go:1] started", "containerd -u kubelet"),
        ("#!/bin/sh\nexit 1\n", "it went wrong", "kubelet"),
        (
            JOURNALS.replace(
                "failed to resolve registry.k8s.io/pause:3.10: no such host", "unable to start container process"
            ),
            'unable to start container process"',
            "containerd",
        ),
    ],
)
def test_the_service_that_failed_says_why(monkeypatch, tmp_path, journals, seen, units):
    for name, text in (("kubeadm", "#!/bin/sh\necho it went wrong >&2\nexit 1\n"), ("journalctl", journals)):
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)

    class Module:
        params: t.ClassVar[t.Dict[str, int]] = {"timeout": 60}

        def get_bin_path(self, name, required=False):
            return str(tmp_path / name)

    with open(os.devnull, encoding="utf-8") as lock, pytest.raises(FabricError) as error:
        program.Kubeadm(Module(), lock).bootstrap("init", "kubeadm.yaml")
    assert error.value.seen.endswith(seen)
    assert error.value.next_step.endswith(f"it starts over. journalctl -u {units} says more.")
    assert ("itself a container" in error.value.next_step) == ("unable to start" in journals)
