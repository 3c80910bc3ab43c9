"""What a NIC has room for, by sysfs."""

from __future__ import annotations

import pathlib
import typing as t

import pytest
from ansible_collections.ipu.fabric.plugins.module_utils._host.nic_model import gid_room


@pytest.mark.parametrize(
    ("entries", "types", "room"),
    [
        (256, {0: "IB/RoCE v1", 1: "RoCE v2", 2: "IB/RoCE v1"}, 128),
        (256, {}, 128),  # a port without any address
        (32, {0: "RoCE v2", 3: "RoCE v2"}, 32),  # irdma
        (0, {}, 0),
    ],
)
def test_the_room_of_a_gid_table(entries: int, types: t.Mapping[int, str], room: int, tmp_path: pathlib.Path) -> None:
    port = tmp_path / "class/infiniband/rocep1s0/ports/1"
    (port / "gids").mkdir(parents=True)
    (port / "gid_attrs/types").mkdir(parents=True)
    for number in range(entries):
        (port / f"gids/{number}").touch()
        (port / f"gid_attrs/types/{number}").write_text(types.get(number, ""))
    assert gid_room(str(tmp_path), "rocep1s0", 1) == room
    assert gid_room(str(tmp_path), "", 0) == 0
