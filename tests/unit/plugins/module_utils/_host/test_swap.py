# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Swap that /etc/fstab does not know: systemd would turn it on again at the next boot."""

from __future__ import annotations

import os

import pytest
from ansible_collections.ipu.fabric.plugins.module_utils._common.command import Done
from ansible_collections.ipu.fabric.plugins.module_utils._common.result import FabricError
from ansible_collections.ipu.fabric.plugins.module_utils._host import swap
from ansible_collections.ipu.fabric.tests.unit.fixtures.module import Module

GENERATED = "/run/systemd/generator"


def unit(name, load="loaded", active="active", file="generated", fragment="", source=""):
    return (
        f"Id={name}\nLoadState={load}\nActiveState={active}\nUnitFileState={file}\n"
        f"FragmentPath={fragment}\nSourcePath={source}\n"
    )


@pytest.mark.parametrize(
    ("shown", "found"),
    [
        ("", []),
        # zram-generator, and a partition of the type for swap
        (unit("dev-zram0.swap", fragment=f"{GENERATED}/dev-zram0.swap"), ["dev-zram0.swap"]),
        (unit("dev-sda3.swap", active="inactive", fragment=f"{GENERATED}.late/dev-sda3.swap"), ["dev-sda3.swap"]),
        # an administrator's
        (unit("swapfile.swap", file="enabled", fragment="/etc/systemd/system/swapfile.swap"), ["swapfile.swap"]),
        # Its line in fstab is taken out.
        (unit("dev-sda2.swap", fragment=f"{GENERATED}/dev-sda2.swap", source="/etc/fstab"), []),
        # another name of a swap that is on: it comes from nowhere
        (unit(r"dev-disk-by\x2duuid-1.swap", file="", source="/proc/swaps"), []),
        # would not start
        (unit("old.swap", active="inactive", file="disabled", fragment="/etc/systemd/system/old.swap"), []),
        (unit("dev-zram0.swap", load="masked", active="inactive", file="masked", fragment="/dev/null"), []),
        (unit("zram-config.service", load="not-found", active="inactive", file=""), []),
        (
            unit("zramswap.service", file="enabled", fragment="/lib/systemd/zramswap.service"),
            ["zramswap.service"],
        ),
    ],
)
def test_units_that_turn_swap_on(shown, found):
    assert swap.starting_units(shown) == found
    others = unit("a.swap", fragment="/run/a.swap"), unit("z.swap", fragment="/run/z.swap")
    assert swap.starting_units("\n".join([others[0], shown, others[1]])) == ["a.swap", *found, "z.swap"]


@pytest.fixture
def units(tmp_path, monkeypatch):
    monkeypatch.setattr(swap, "UNITS", str(tmp_path))
    monkeypatch.setattr(swap, "systemd_runs", lambda: True)
    return tmp_path


def test_masked_units_stay_off(units, monkeypatch):
    (units / "swapfile.swap").write_text("[Swap]\nWhat=/swapfile\n")
    (units / "dev-zram0.swap").symlink_to("/somewhere/else")
    (units / "zramswap.service.part").symlink_to("/dev/null")  # of a run that was killed
    module = Module()
    monkeypatch.setattr(swap, "run_program", module.run_program)
    swap.mask_units(module, ["dev-zram0.swap", "swapfile.swap", "zramswap.service"])
    assert {path.name: os.readlink(path) for path in units.iterdir()} == dict.fromkeys(
        ("dev-zram0.swap", "swapfile.swap", "zramswap.service"), "/dev/null"
    )
    assert module.backups == [str(units / "swapfile.swap")]
    assert module.commands == [
        ["systemctl", "daemon-reload"],
        ["systemctl", "stop", "dev-zram0.swap", "swapfile.swap", "zramswap.service"],
    ]


def test_a_unit_that_can_not_be_stopped(units, monkeypatch):
    answers = iter([Done(0), Done(1, "", "Job for swapfile.swap failed.")])
    monkeypatch.setattr(swap, "run_program", lambda *_: next(answers))
    with pytest.raises(FabricError) as caught:
        swap.mask_units(Module(), ["swapfile.swap"])
    assert (caught.value.where, caught.value.seen) == ("swapfile.swap", "Job for swapfile.swap failed.")
