"""Limits of locked memory in all their spellings."""

import math

import pytest
from ansible_collections.ipu.fabric.plugins.module_utils._common import memlock_limits


@pytest.mark.parametrize(
    ("limit", "size", "shown"),
    [
        ("unlimited", math.inf, "unlimited"),
        ("infinity", math.inf, "unlimited"),
        ("-1", math.inf, "unlimited"),
        ("0", 0, "0 B"),
        ("65536", 65536, "64 KiB"),
        ("65537", 65537, "65537 B"),
        ("64M", 67108864, "64 MiB"),
        ("1T", 1 << 40, "1024 GiB"),
    ],
)
def test_limits(limit, size, shown):
    assert memlock_limits.limit_bytes(limit) == size
    assert memlock_limits.readable(limit) == shown


@pytest.mark.parametrize("limit", ["", "M", "64MB", "-2", "1.5G", "no limit"])
def test_what_is_no_limit(limit):
    with pytest.raises(ValueError, match="is not a limit"):
        memlock_limits.limit_bytes(limit)
