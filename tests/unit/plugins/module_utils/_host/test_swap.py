"""Swap that /etc/fstab does not know: systemd would turn it on again at the next boot."""

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


AZURE = (
    "# Microsoft Azure Linux Agent\nResourceDisk.Format=%s\nResourceDisk.EnableSwap=%s\nResourceDisk.SwapSizeMB=2048\n"
)


@pytest.mark.parametrize(
    ("text", "swaps"),
    [
        (AZURE % ("y", "y"), True),
        (AZURE % ("y", '"Y" # on'), True),
        (AZURE % ("y", "n"), False),
        (AZURE % ("n", "y"), False),  # cloud-init looks after the disk, and the agent leaves it alone
        ("#ResourceDisk.EnableSwap=y\n#ResourceDisk.Format=y\n", False),
        ("", False),
    ],
)
def test_swap_of_azures_agent(tmp_path, text, swaps):
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc/waagent.conf").write_text(text)
    found = [{"path": "/etc/waagent.conf", "seen": "ResourceDisk.EnableSwap=y"}]
    assert swap.swap_origins(str(tmp_path)) == found * swaps


WANTS = "etc/systemd/system/multi-user.target.wants"


@pytest.mark.parametrize(
    ("path", "text", "seen"),
    [
        ("etc/rc.local", "#!/bin/sh\nmkswap /mnt/swap\nswapon /mnt/swap\nexit 0\n", "swapon /mnt/swap"),
        ("etc/cron.d/swap", "@reboot root /sbin/swapon -a\n", "@reboot root /sbin/swapon -a"),
        (f"{WANTS}/swap.service", "[Service]\nExecStart=/sbin/swapon /s\n", "ExecStart=/sbin/swapon /s"),
        (f"{WANTS}/zramswap.service", "[Service]\nExecStart=/sbin/swapon /s\n", ""),  # it is masked
        (
            "var/lib/cloud/scripts/per-boot/swap.sh",
            "if [ ! -f /mnt/swap ]; then\n  fallocate /mnt/swap\nfi\n  swapon /mnt/swap\n",
            "swapon /mnt/swap",
        ),
        ("etc/rc.local", "# swapon /mnt/swap\nswapon --show\nswapon -s\nswapoff -a\n", ""),
        ("usr/local/bin/x", "swapon -a\n", ""),  # nothing runs it
    ],
)
def test_scripts_that_turn_swap_on_at_each_boot(tmp_path, path, text, seen):
    (tmp_path / path).parent.mkdir(parents=True)
    (tmp_path / path).write_text(text)
    assert swap.swap_origins(str(tmp_path)) == ([{"path": f"/{path}", "seen": seen}] if seen else [])
