"""A proxy in a host's environment is not asked for the API server, and no cache stays on the host."""

import pytest
from ansible_collections.ipu.fabric.plugins.module_utils._host.kubectl import run_kubectl

PROXY = "http://proxy.example.com:3128"


@pytest.mark.parametrize("name", ["HTTPS_PROXY", "https_proxy", "http_proxy", "ALL_PROXY"])
def test_kubectl_goes_straight_to_the_api(name, tmp_path, monkeypatch):
    program = tmp_path / "kubectl"
    program.write_text(f'#!/bin/sh\necho "${name}:$NO_PROXY:$*"\n')
    program.chmod(0o755)
    monkeypatch.setenv(name, PROXY)
    monkeypatch.setenv("NO_PROXY", "localhost")
    done = run_kubectl("/etc/kubernetes/admin.conf", "get", "--raw", "/version", program=[str(program)])
    asked = "--kubeconfig /etc/kubernetes/admin.conf --request-timeout 30s get --raw /version"
    assert done.out == f":localhost:{asked}\n"


def test_kubectl_leaves_no_cache(tmp_path):
    program = tmp_path / "kubectl"
    program.write_text('#!/bin/sh\necho "$KUBECACHEDIR"\n')
    program.chmod(0o755)
    assert run_kubectl("/etc/kubernetes/admin.conf", "get", "nodes", program=[str(program)]).out == "/dev/null\n"
