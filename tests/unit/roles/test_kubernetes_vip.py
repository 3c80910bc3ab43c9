# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the role kubernetes tells keepalived, and its check of the API server."""

from __future__ import annotations

import contextlib
import http.server
import os
import re
import ssl
import subprocess
import sys
import threading
import time

import pytest
from ansible_collections.ipu.fabric.tests.unit.fixtures.certificates import server_files
from ansible_collections.ipu.fabric.tests.unit.fixtures.templates import evaluate

PLANES = {"cp1": "10.88.0.11", "cp2": "10.88.0.12", "cp3": "10.88.0.13"}


def scope(host, **more):
    node = {"name": f"node-{host}", "address": PLANES[host], "interface": "eno1"}
    return {
        "inventory_hostname": host,
        "groups": {"kube_control_plane": list(PLANES)},
        "__kubernetes_node": {"node": node},
        "kubernetes_control_plane_vip": "10.88.0.50",
        "kubernetes_control_plane_addresses": PLANES,
        **more,
    }


def keepalived(host, **more):
    return evaluate("kubernetes", "lookup('template', 'keepalived.conf.j2')", **scope(host, **more))


def section(text, name):
    found = re.search(rf"^ *{name} \{{\n(.*?)^ *\}}", text, re.MULTILINE | re.DOTALL)
    return [line.strip() for line in found.group(1).splitlines()]


@pytest.mark.parametrize(("host", "priority"), [("cp1", 200), ("cp2", 199), ("cp3", 198)])
def test_each_has_the_others_as_peers(host, priority):
    text = keepalived(host)
    others = [address for name, address in PLANES.items() if name != host]
    assert section(text, "unicast_peer") == [f"{address} min_ttl 255" for address in others]
    assert section(text, "virtual_ipaddress") == ["10.88.0.50/32 dev eno1"]
    assert f"unicast_src_ip {PLANES[host]}\n" in text
    assert f"priority {priority}\n" in text
    assert f'script "/etc/keepalived/check-api-server {PLANES[host]}"\n' in text
    assert text.endswith("}\n")


def test_who_has_it_keeps_it():
    """nopreempt holds only for one that began as BACKUP, and for a check without a weight."""
    text = keepalived("cp1")
    assert {"state BACKUP", "nopreempt"} <= {line.strip() for line in text.splitlines()}
    assert "weight" not in text
    assert "init_fail" in section(text, "vrrp_script api_server")


def test_a_control_plane_without_an_answer_is_no_peer_until_it_has_one():
    silent = {name: {"address": address} for name, address in PLANES.items()}
    silent["cp3"] = {"address": ""}
    text = keepalived("cp1", kubernetes_control_plane_addresses={}, __kubernetes_cluster={"planes": silent})
    assert section(text, "unicast_peer") == ["10.88.0.12 min_ttl 255"]


def test_only_its_peers_are_heard():
    """VRRPv3 has no authentication, and that of version 2 can be read on the wire: docs/decisions/keepalived.md."""
    text = keepalived("cp1")
    assert "vrrp_check_unicast_src" in section(text, "global_defs")
    assert "authentication" not in text


def test_ipv6_has_its_prefix():
    text = keepalived("cp1", kubernetes_control_plane_vip="fd00:88::50")
    assert section(text, "virtual_ipaddress") == ["fd00:88::50/128 dev eno1"]


def test_of_ipv6_no_hop_limit_is_asked():
    """keepalived sends 64 there: with `min_ttl 255` no control plane hears another, and all have the address."""
    planes = {"cp1": "10.88.0.11", "cp2": "fd00:88::12"}
    assert section(keepalived("cp1", kubernetes_control_plane_addresses=planes), "unicast_peer") == ["fd00:88::12"]


# ---- the check


class Api(http.server.BaseHTTPRequestHandler):
    status = 200

    def do_GET(self):
        self.send_response(self.status if self.path == "/readyz" else 404)
        self.end_headers()

    def log_message(self, *_arguments):
        pass


@pytest.fixture
def check(tmp_path, monkeypatch):
    """Runs the script against a port of this machine."""

    def run(port, begin="/nowhere"):
        text = evaluate("kubernetes", "lookup('template', 'check-api-server.j2')", _kubernetes_vip_begin=str(begin))
        assert text.startswith("#!/usr/bin/python3 -IS\n")
        script = tmp_path / "check"
        script.write_text(text.replace("6443", str(port)))
        command = [sys.executable, "-IS", str(script), "127.0.0.1"]
        return subprocess.run(command, timeout=60, check=False, capture_output=True, text=True)

    return run


@contextlib.contextmanager
def api(tmp_path, status=200):
    certificate, key = server_files(tmp_path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    server = http.server.HTTPServer(("127.0.0.1", 0), type("Answer", (Api,), {"status": status}))
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        server.server_close()


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
