# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Eight fabric NICs a host, on a finished cluster: one network a rail, each proved from inside pods."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from bed import Bed

SUBNETS = ["10.5.0.0/24", *(f"10.{4 + rail}.0.0/24" for rail in range(2, 9))]
NETWORKS = [{"name": f"rail{number}", "select": {"subnet": cidr}} for number, cidr in enumerate(SUBNETS, 1)]


@pytest.fixture(scope="module")
def eight(bed: Bed, unbroken: object) -> Iterator[Bed]:
    bed.testbed("rails", "8")
    yield bed
    bed.testbed("rails", "1")


def test_eight_rails(eight: Bed) -> None:
    assert eight.play("plan fabric prove", fabric_networks=NETWORKS).code == 0
    planned = eight.plan()["networks"]
    assert [(network["master"], network["subnet"]["cidr"]) for network in planned] == [
        (f"eth{number}", cidr) for number, cidr in enumerate(SUBNETS, 1)
    ]
    again = eight.play("plan fabric prove", fabric_networks=NETWORKS)
    assert again.code == 0
    assert again.changed() == {}
