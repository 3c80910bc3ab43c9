# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Addresses, CIDRs and ranges as people write them, and sets of them."""

from __future__ import annotations

import ipaddress

import pytest
from ansible_collections.ipu.fabric.plugins.module_utils._common.result import FabricError
from ansible_collections.ipu.fabric.plugins.module_utils._ipam.ranges import merge, parse_run, size, subtract


@pytest.mark.parametrize(
    ("runs", "merged"),
    [
        ([], []),
        ([(5, 7)], [(5, 7)]),
        ([(8, 9), (5, 7)], [(5, 9)]),
        ([(5, 7), (6, 12), (20, 20)], [(5, 12), (20, 20)]),
        ([(1, 100), (5, 7)], [(1, 100)]),
    ],
)
def test_merge(runs, merged):
    assert merge(runs) == merged


@pytest.mark.parametrize(
    ("taken", "left"),
    [
        ([], [(10, 20)]),
        ([(0, 5), (30, 40)], [(10, 20)]),
        ([(10, 10), (20, 20)], [(11, 19)]),
        ([(0, 12)], [(13, 20)]),
        ([(18, 40)], [(10, 17)]),
        ([(14, 15), (12, 13)], [(10, 11), (16, 20)]),
        ([(0, 40)], []),
        ([(10, 20)], []),
    ],
)
def test_subtract(taken, left):
    assert subtract((10, 20), taken) == left
    assert size(left) == 11 - sum(1 for number in range(10, 21) if any(a <= number <= b for a, b in taken))


@pytest.mark.parametrize(
    ("text", "run"),
    [
        ("10.5.0.20", ("10.5.0.20", "10.5.0.20")),
        ("10.5.0.64/26", ("10.5.0.64", "10.5.0.127")),
        ("10.5.0.10-10.5.0.20", ("10.5.0.10", "10.5.0.20")),
        ("10.5.0.10 - 10.5.0.20", ("10.5.0.10", "10.5.0.20")),
        ("fd00::1-fd00::ff", ("fd00::1", "fd00::ff")),
    ],
)
def test_parse_run(text, run):
    version, found = parse_run(text, "here")
    assert found == tuple(int(ipaddress.ip_address(end)) for end in run)
    assert version == ipaddress.ip_address(run[0]).version


@pytest.mark.parametrize(
    "text", ["", "vipu", "10.5.0.300", "10.5.0.5/24", "10.5.0.9-10.5.0.1", "10.5.0.1-fd00::1", "1-2-3", "10.5.0.1-"]
)
def test_parse_run_refuses(text):
    with pytest.raises(FabricError) as error:
        parse_run(text, "reserved")
    assert error.value.where == "reserved"
    assert repr(text) in error.value.seen
