# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Documents for kubeadm, and what it prints."""

from __future__ import annotations

import json
import os
import typing as t

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
