# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The fabric in other sizes, on a finished cluster: each is proved from inside pods, or refused by the plan."""

from __future__ import annotations

import ipaddress

import pytest
from bed import Bed

SIZES = ["10.5.0.0/23", "10.5.0.0/25", "10.5.0.0/26", "fd00:5::/64", "10.5.0.0/24"]


@pytest.mark.parametrize("cidr", SIZES)
def test_size(finished: Bed, cidr: str) -> None:
    finished.testbed("fabric", cidr)
    result = finished.play("plan fabric prove")
    network = finished.plan()["networks"][0]
    if result.code:
        assert finished.errors()
        assert "next: " in result.text
        return
    subnet, fabric = network["subnet"], ipaddress.ip_network(cidr)
    assert subnet["cidr"] == cidr
    assert ipaddress.ip_address(subnet["range_start"]) in fabric
    assert ipaddress.ip_address(subnet["range_end"]) in fabric
    assert subnet["capacity"] >= subnet["needed"]


def test_too_small_is_refused(finished: Bed) -> None:
    """A /27 has 16 addresses in its upper half: too few for 2 hosts with 16 pods each."""
    finished.testbed("fabric", "10.5.0.0/27")
    try:
        result = finished.play("site", fabric_pods_per_node=16)
        assert result.code != 0
        assert [error["check"] for error in finished.errors()] == ["subnet"]
        assert result.changed() == {}
    finally:
        finished.testbed("fabric", "10.5.0.0/24")
