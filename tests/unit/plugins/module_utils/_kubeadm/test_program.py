# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Documents for kubeadm, and what it prints."""

from __future__ import annotations

import json
import os

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
