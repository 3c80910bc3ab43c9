# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest
from ansible_collections.ipu.fabric.plugins.module_utils._common.result import FabricError
from ansible_collections.ipu.fabric.plugins.plugin_utils._render import gpu_operator

CHART = {"driver": True, "toolkit": True}
VGPU = {"license_secret": "licensing", "driver_repository": "registry.site/vgpu"}


def at(values, path):
    for part in path.split("."):
        values = (values or {}).get(part)
    return values


@pytest.mark.parametrize(
    ("settings", "path", "value"),
    [
        ({}, "driver", {"enabled": True, "rdma": {"enabled": False, "useHostMofed": False}}),
        ({"driver": False}, "driver.enabled", False),
        ({"driver_version": "595.91.07"}, "driver.version", "595.91.07"),
        ({"rdma": True}, "driver.rdma", {"enabled": True, "useHostMofed": False}),
        ({"rdma": True, "host_mofed": True}, "driver.rdma", {"enabled": True, "useHostMofed": True}),
        ({"gdrcopy": True}, "gdrcopy.enabled", True),
        ({}, "toolkit", {"enabled": True}),
        ({"toolkit": False}, "toolkit.enabled", False),
        (
            {"containerd_config": "/etc/c.toml", "containerd_socket": "/run/c.sock", "toolkit_env": {"A": 1}},
            "toolkit.env",
            [
                {"name": "A", "value": "1"},
                {"name": "CONTAINERD_CONFIG", "value": "/etc/c.toml"},
                {"name": "CONTAINERD_SOCKET", "value": "/run/c.sock"},
            ],
        ),
        (VGPU, "driver.licensingConfig", {"secretName": "licensing", "nlsEnabled": True}),
        ({**VGPU, "license_nls": False}, "driver.licensingConfig.nlsEnabled", False),
        ({}, "nfd.enabled", False),
        ({"nfd": True}, "nfd.enabled", True),
        ({}, "operator", {"upgradeCRD": False}),
        ({}, "devicePlugin", None),
        ({"registry": "r:5000"}, "devicePlugin", {"repository": "r:5000/nvidia"}),
        ({"registry": "r:5000"}, "driver.manager", {"repository": "r:5000/nvidia/cloud-native"}),
        ({"registry": "r:5000"}, "driver.repository", "r:5000/nvidia"),
        ({"registry": "r:5000", **VGPU}, "driver.repository", "registry.site/vgpu"),
        ({"pull_secrets": ["s"]}, "gfd", {"imagePullSecrets": ["s"]}),
        ({"pull_secrets": ["s"]}, "driver.imagePullSecrets", ["s"]),
        ({"pull_secrets": ["s"]}, "driver.manager", None),
        (
            {"values": {"mig": {"strategy": "mixed"}, "driver": {"rdma": {"enabled": True}}}},
            "driver.rdma.enabled",
            True,
        ),
        ({"values": {"mig": {"strategy": "mixed"}}}, "mig.strategy", "mixed"),
    ],
)
def test_values(settings, path, value):
    assert at(gpu_operator.gpu_operator_values({**CHART, **settings}), path) == value


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"driver": False, "rdma": True}, "gpu_operator_rdma"),
        ({"driver": False, "rdma": True, "gdrcopy": True}, "gpu_operator_rdma and gpu_operator_gdrcopy"),
        ({"host_mofed": True}, "gpu_operator_host_mofed"),
        ({"license_secret": "s"}, "no gpu_operator_driver_repository"),
        ({**VGPU, "driver": False}, "gridd.conf"),
    ],
)
def test_refused(settings, message):
    with pytest.raises(FabricError) as caught:
        gpu_operator.gpu_operator_values({**CHART, **settings})
    assert message in str(caught.value)
