# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import fcntl

import pytest
from ansible_collections.ipu.fabric.plugins.module_utils._kubeadm import membership
from ansible_collections.ipu.fabric.tests.unit.fixtures.module import Module

WORKER = {"metadata": {"labels": {}}, "spec": {}}
CONTROL_PLANE = {
    "metadata": {"labels": {membership.CONTROL_PLANE_LABEL: ""}},
    "spec": {"taints": [{"key": membership.CONTROL_PLANE_LABEL, "effect": "NoSchedule"}]},
}
TRACES = [membership.KUBELET]


@pytest.mark.parametrize(
    ("traces", "unfinished", "node", "control_plane", "expected"),
    [
        ([], False, {}, False, "none"),
        (TRACES, False, WORKER, False, "member"),
        (TRACES, False, CONTROL_PLANE, True, "member"),
        (TRACES, False, WORKER, True, "broken"),  # a node, but not the control plane that it should be
        (TRACES, False, {}, False, "broken"),  # the cluster has forgotten it
        (TRACES, False, None, False, "broken"),  # the cluster is down
        ([], True, {}, False, "unfinished"),  # marked, and interrupted before the first file
        (TRACES, True, None, True, "unfinished"),
        (TRACES, True, WORKER, False, "unfinished"),
    ],
)
def test_membership(traces, unfinished, node, control_plane, expected):
    assert membership.membership(traces, unfinished, node, control_plane) == expected


@pytest.mark.parametrize(
    ("node", "expected"),
    [(None, "gives no answer"), ({}, "knows no such node"), (WORKER, "not as a control plane")],
)
def test_why_broken(node, expected):
    reason = membership.why_broken(TRACES, node)
    assert membership.KUBELET in reason
    assert expected in reason


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
    assert membership.program_version(text) == expected


def test_parse_os_release():
    text = 'PRETTY_NAME="Debian GNU/Linux 12 (bookworm)"\nID=debian\nVERSION_CODENAME=bookworm\nEMPTY=\n\n# word\n'
    found = membership.parse_os_release(text)
    assert (found["ID"], found["VERSION_CODENAME"]) == ("debian", "bookworm")
    assert "EMPTY" not in found


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ((0, '{"kind": "Node"}', ""), {"kind": "Node"}),
        ((1, "", 'Error from server (NotFound): nodes "w1" not found'), {}),
        ((1, "", "Unable to connect to the server: dial tcp: i/o timeout"), None),
        ((), None),
    ],
)
def test_read_node(answer, expected, tmp_path, monkeypatch):
    kubelet = tmp_path / "kubelet.conf"
    kubelet.write_text("")
    monkeypatch.setattr(membership, "KUBELET", str(kubelet))
    assert membership.read_node(Module(answer, programs=bool(answer)), "w1") == expected


def test_inspect(tmp_path, monkeypatch):
    kubelet = tmp_path / "kubelet.conf"
    monkeypatch.setattr(membership, "TRACES", [str(kubelet)])
    monkeypatch.setattr(membership, "read_node", lambda module, name: CONTROL_PLANE)
    assert membership.inspect(Module(), "cp1", True, False)["membership"] == "none"
    kubelet.write_text("")
    assert membership.inspect(Module(), "cp1", True, False) == {
        "membership": "member",
        "seen": "",
        "registered": True,
        "is_control_plane": True,
        "taints": [membership.CONTROL_PLANE_LABEL],
    }


def test_is_busy(tmp_path, monkeypatch):
    lock = tmp_path / "lock"
    monkeypatch.setattr(membership, "LOCK", str(lock))
    assert not membership.is_busy()
    with lock.open("a") as holder:
        fcntl.flock(holder, fcntl.LOCK_EX)
        assert membership.is_busy()
    assert not membership.is_busy()


def test_file_digest(tmp_path):
    assert membership.file_digest(str(tmp_path / "none")) == ""
    (tmp_path / "some").write_text("")
    assert membership.file_digest(str(tmp_path / "some")).startswith("e3b0c442")
