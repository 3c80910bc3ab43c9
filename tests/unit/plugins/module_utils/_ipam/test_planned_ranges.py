"""The ranges that a plan gives to pods."""

from __future__ import annotations

import typing as t

import pytest
from ansible_collections.ipu.fabric.plugins.module_utils._ipam.planned_ranges import address_fault, read_entry

NETWORK = {
    "subnets": [
        {
            "cidr": "10.5.0.0/24",
            "range_start": "10.5.0.128",
            "range_end": "10.5.0.254",
            "exclude": ["10.5.0.0/25", "10.5.0.130/32"],
        }
    ],
    "pools": [{"exclusions": [{"startIP": "10.5.0.140", "endIP": "10.5.0.143"}]}],
}


@pytest.mark.parametrize(
    ("entry", "first", "last"),
    [
        ("10.5.0.0/25", "10.5.0.0", "10.5.0.127"),
        ("10.5.0.7/32", "10.5.0.7", "10.5.0.7"),
        ("10.5.0.7", "10.5.0.7", "10.5.0.7"),
        ("10.5.0.7 - 10.5.0.9", "10.5.0.7", "10.5.0.9"),
        ({"startIP": "fd00::1", "endIP": "fd00::2"}, "fd00::1", "fd00::2"),
    ],
)
def test_read_entry(entry: t.Any, first: str, last: str) -> None:
    assert str(read_entry(entry)) == f"{first}-{last}"


@pytest.mark.parametrize(
    ("address", "fault"),
    [
        ("10.5.0.128", ""),
        ("10.5.0.254", ""),
        ("10.5.0.127", "10.5.0.127 is outside 10.5.0.128 - 10.5.0.254"),
        ("10.5.0.255", "10.5.0.255 is outside 10.5.0.128 - 10.5.0.254"),
        ("fd00::1", "fd00::1 is outside 10.5.0.128 - 10.5.0.254"),
        ("10.5.0.130", "10.5.0.130 is excluded"),
        ("10.5.0.141", "10.5.0.141 is excluded (10.5.0.140 - 10.5.0.143)"),
    ],
)
def test_address_fault(address: str, fault: str) -> None:
    assert address_fault(NETWORK, address) == fault
