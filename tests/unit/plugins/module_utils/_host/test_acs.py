"""ACS in the configuration space of bridges: NCCL#489, #606 and #1737 have it between GPUs and NICs."""

from __future__ import annotations

import pathlib
import struct

import pytest
from ansible_collections.ipu.fabric.plugins.module_utils._host.acs import acs_control, redirecting


def config(*capabilities: tuple[int, int, int]) -> bytes:
    """A configuration space with extended capabilities: offset, ID, and the 16 bits at its offset 6."""
    space = bytearray(4096)
    ends = [each[0] for each in capabilities[1:]] + [0]
    for (offset, identity, value), following in zip(capabilities, ends):
        struct.pack_into("<I", space, offset, identity | 1 << 16 | following << 20)
        struct.pack_into("<H", space, offset + 6, value)
    return bytes(space)


@pytest.mark.parametrize(
    ("space", "control"),
    [
        (config((0x100, 0x0001, 9), (0x148, 0x000D, 0x001D)), 0x1D),
        (config((0x100, 0x000D, 0)), 0),
        (config((0x100, 0x0001, 9)), 0),
        (config((0x100, 0x0001, 9))[:64], 0),  # what others than root read
        (struct.pack("<I", 0x100 << 20 | 1).rjust(0x104, b"\0").ljust(4096, b"\0"), 0),  # leads to itself
        (b"\xff" * 4096, 0),  # does not answer
    ],
)
def test_the_control_register(space: bytes, control: int) -> None:
    assert acs_control(space) == control


def test_bridges_that_redirect(tmp_path: pathlib.Path) -> None:
    """Source validation alone redirects nothing, and root ports are no part of a switch."""
    controls = {"0000:80:01.0": 0x1D, "0000:82:08.0": 0x1D, "0000:82:10.0": 0x01, "0000:83:00.0": 0x1D}
    for name, control in controls.items():
        folder = tmp_path / "bus/pci/devices" / name
        folder.mkdir(parents=True)
        (folder / "config").write_bytes(config((0x100, 0x000D, control)))
    ways = [
        f"pci0000:80/0000:80:01.0/0000:81:00.0/{end}"
        for end in ("0000:82:08.0/0000:83:00.0", "0000:82:10.0/0000:84:00.0")
    ]
    assert redirecting(str(tmp_path), ways) == ["0000:82:08.0"]
