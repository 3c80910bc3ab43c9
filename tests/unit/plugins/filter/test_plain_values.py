# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Ansible gives filters strings of a class of its own, which YAML can't write."""

from __future__ import annotations

import yaml
from ansible_collections.ipu.fabric.plugins.filter import hardened_configuration, kubelet_config


class Marked(str):
    """As Ansible's."""


def test_a_kubelets_configuration():
    settings = {
        Marked("authorization"): {"mode": Marked("Webhook")},
        "tlsCipherSuites": [Marked("A")],
        "x": True,
        "y": 5,
    }
    text = kubelet_config.FilterModule().filters()["kubelet_config"]("kind: KubeletConfiguration\n", settings)
    after = yaml.safe_load(text)
    assert after["authorization"] == {"mode": "Webhook"}
    assert (after["tlsCipherSuites"], after["x"], after["y"]) == (["A"], True, 5)


def test_a_hardened_cluster():
    given = {"apiVersion": "kubeadm.k8s.io/v1beta4", "controlPlaneEndpoint": Marked("10.0.0.1:6443")}
    site = {"apiServer": {"extraArgs": [{"name": Marked("audit-log-maxage"), "value": Marked("7")}]}}
    harden = hardened_configuration.FilterModule().filters()["hardened_configuration"]
    after = yaml.safe_load(harden(given, "baseline", "1.35.4", site=site)["text"])
    assert after["controlPlaneEndpoint"] == "10.0.0.1:6443"
    assert {"name": "audit-log-maxage", "value": "7"} in after["apiServer"]["extraArgs"]
