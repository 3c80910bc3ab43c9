# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest
from ansible_collections.ipu.fabric.plugins.module_utils._common.findings import Findings
from ansible_collections.ipu.fabric.plugins.module_utils._common.result import FabricError
from ansible_collections.ipu.fabric.plugins.module_utils._network import spiderpool

SUBNET = {
    "cidr": "172.16.11.0/24",
    "gateway": "172.16.11.254",
    "range_start": "172.16.11.128",
    "range_end": "172.16.11.254",
    "exclude": ["172.16.11.254/32", "172.16.11.130/32", "172.16.11.131/32", "172.16.11.0/25"],
    "needed": 16,
}
NETWORK = {
    "name": "rail-0",
    "namespace": "jobs",
    "master": "enp11s0f0np0",
    "mode": "bridge",
    "mtu": 9000,
    "rdma": True,
    "resource": "rdma/rail_0",
    "subnet": SUBNET,
}


def network(**changes):
    subnet = {**SUBNET, **changes.pop("subnet", {})}
    return {**NETWORK, "subnet": subnet, **changes}


def test_a_network_without_subnet_is_refused():
    with pytest.raises(FabricError, match="no subnet"):
        spiderpool.ipam({**NETWORK, "subnet": {}})


@pytest.mark.parametrize(
    ("change", "level", "check"),
    [
        ({}, None, None),
        ({"mode": "vepa"}, "error", "networks"),
        ({"subnet": {"gateway": ""}}, "warning", "policy-routes"),
        ({"subnet": {"needed": 500}}, "error", "subnet"),
    ],
)
def test_judge(change, level, check):
    found = Findings([])
    spiderpool.check_networks([network(**change)], found)
    assert [(item["level"], item["check"]) for item in found.as_list()] == ([(level, check)] if level else [])
