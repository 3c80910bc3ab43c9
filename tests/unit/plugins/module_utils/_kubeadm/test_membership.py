# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest
from ansible_collections.ipu.fabric.plugins.module_utils._kubeadm import membership, paths
from ansible_collections.ipu.fabric.tests.unit.fixtures.module import Module

WORKER = {"metadata": {"labels": {}}, "spec": {}}
CONTROL_PLANE = {
    "metadata": {"labels": {membership.CONTROL_PLANE_LABEL: ""}},
    "spec": {"taints": [{"key": membership.CONTROL_PLANE_LABEL, "effect": "NoSchedule"}]},
}
TRACES = [paths.KUBELET]


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
    assert membership.classify(traces, unfinished, node, control_plane) == expected


@pytest.mark.parametrize(
    ("node", "expected"),
    [(None, "gives no answer"), ({}, "knows no such node"), (WORKER, "not as a control plane")],
)
def test_why_broken(node, expected):
    reason = membership.why_broken(TRACES, node)
    assert paths.KUBELET in reason
    assert expected in reason


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
    monkeypatch.setattr(paths, "KUBELET", str(kubelet))
    assert membership.read_node(Module(answer, programs=bool(answer)), "w1") == expected


def test_inspect_host(tmp_path, monkeypatch):
    kubelet = tmp_path / "kubelet.conf"
    monkeypatch.setattr(paths, "TRACES", [str(kubelet)])
    monkeypatch.setattr(membership, "read_node", lambda module, name: CONTROL_PLANE)
    assert membership.inspect_host(Module(), "cp1", True, False)["membership"] == "none"
    kubelet.write_text("")
    assert membership.inspect_host(Module(), "cp1", True, False) == {
        "membership": "member",
        "seen": "",
        "registered": True,
        "is_control_plane": True,
        "taints": [membership.CONTROL_PLANE_LABEL],
    }
