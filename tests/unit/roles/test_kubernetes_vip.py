"""keepalived's check of the API server."""

import http.server
import os
import subprocess
import sys
import time

import pytest
import yaml
from ansible_collections.ipu.fabric.plugins.module_utils._component.keepalived import BEGIN, CHECK
from ansible_collections.ipu.fabric.tests.unit.fixtures.certificates import server_files
from ansible_collections.ipu.fabric.tests.unit.fixtures.paths import ROOT
from ansible_collections.ipu.fabric.tests.unit.fixtures.web_server import Quiet, serving

# ---- the check


class Api(Quiet, http.server.BaseHTTPRequestHandler):
    status = 200

    def do_GET(self):
        self.send_response(self.status if self.path == "/readyz" else 404)
        self.end_headers()


@pytest.fixture
def check(tmp_path, monkeypatch):
    """Runs the script against a port of this machine."""

    def run(port, begin="/nowhere"):
        text = CHECK.replace(f'"{BEGIN}"', f'"{begin}"')
        role = yaml.safe_load((ROOT / "roles/kubernetes/vars/main.yml").read_text(encoding="utf-8"))
        assert role["_kubernetes_vip_begin"] == BEGIN
        assert text.startswith("#!/usr/bin/python3 -IS\n")
        script = tmp_path / "check"
        script.write_text(text.replace("6443", str(port)))
        command = [sys.executable, "-IS", str(script), "127.0.0.1"]
        return subprocess.run(command, timeout=60, check=False, capture_output=True, text=True)

    return run


def api(tmp_path, status=200):
    return serving(type("Answer", (Api,), {"status": status}), server_files(tmp_path))


@pytest.mark.parametrize(("status", "code"), [(200, 0), (500, 1), (401, 1)])
def test_ready(tmp_path, check, status, code):
    with api(tmp_path, status) as port:
        done = check(port)
    assert done.returncode == code, done.stderr


def test_no_api_server(tmp_path, check):
    with api(tmp_path) as port:
        pass
    assert check(port).returncode == 1


def test_a_cluster_begins(tmp_path, check):
    """It needs the address before there is an API server, but not for ever."""
    begin = tmp_path / "begin"
    begin.touch()
    assert check(1, begin).returncode == 0
    long_ago = time.time() - 1801
    os.utime(begin, (long_ago, long_ago))
    assert check(1, begin).returncode == 1
