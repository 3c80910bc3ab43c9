# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What turns swap on: systemd units, which can be masked, and agents and scripts, which only their owner can stop."""

from __future__ import annotations

import contextlib
import glob
import os
import re
import typing as t

from .._common.command import output_of, run_program
from .._common.result import printed_by
from .._model.observation import SwapOrigin
from .files import read_text
from .systemd import Unit, parse_show

if t.TYPE_CHECKING:
    from ansible.module_utils.basic import AnsibleModule

UNITS = "/etc/systemd/system"
# Services that turn swap on without a unit of type swap.
SERVICES = ("dphys-swapfile.service", "swapspace.service", "zram-config.service", "zramswap.service")
PROPERTIES = "Id,LoadState,ActiveState,UnitFileState,FragmentPath,SourcePath"
SECONDS = 120
AGENT = "/etc/waagent.conf"  # Azure's agent can create a swap file on the temporary disk
# Files that run at each boot and may turn swap on.
SCRIPTS = (
    "/etc/rc.local",
    "/etc/crontab",
    "/etc/cron.d/*",
    "/etc/systemd/system/*.wants/*.service",
    "/var/lib/cloud/scripts/per-boot/*",
    "/var/spool/cron/crontabs/root",
)
SWAPON = re.compile(r"^(?![ \t]*[#;]).*\bswapon\b(?!.*(?:--show|--summary|\s-s\b)).*", re.MULTILINE)


def _starts(unit: Unit) -> bool:
    """Whether a unit turns swap on at the next boot, or has done so. fstab lines are removed in fstab itself."""
    asleep = unit.get("ActiveState") == "inactive" and unit.get("UnitFileState") == "disabled"
    written = bool(unit.get("FragmentPath")) and unit.get("SourcePath") != "/etc/fstab"
    return unit.get("LoadState") == "loaded" and written and not asleep


def starting_units(shown: str) -> t.List[str]:
    """The units that turn swap on, from the output of systemctl show."""
    return [unit["Id"] for unit in parse_show(shown).values() if _starts(unit)]


def agent_swaps(text: str) -> bool:
    """Whether Azure's agent is configured to turn swap on, which it does only on a disk that it may format."""
    pairs = (line.split("=", 1) for line in text.splitlines() if "=" in line and not line.startswith("#"))
    settings = {key.strip(): value.split("#")[0].strip('" ').lower() for key, value in pairs}
    return settings.get("ResourceDisk.EnableSwap") == settings.get("ResourceDisk.Format") == "y"


def swap_origins(root: str = "/") -> t.List[SwapOrigin]:
    """What turns swap on, at each boot or when the agent starts, other than fstab and swap units."""
    found: t.List[SwapOrigin] = []
    if agent_swaps(read_text(os.path.join(root, AGENT[1:]))):
        found.append({"path": AGENT, "seen": "ResourceDisk.EnableSwap=y"})
    for pattern in SCRIPTS:
        for path in sorted(glob.glob(os.path.join(root, pattern[1:]))):
            known = os.path.basename(path) in SERVICES or not os.path.isfile(path)
            line = None if known else SWAPON.search(read_text(path))
            if line:
                found.append({"path": f"/{os.path.relpath(path, root)}", "seen": line.group().strip()})
    return found


def systemd_runs() -> bool:
    return os.path.isdir("/run/systemd/system")


def read_swap_units() -> t.List[str]:
    """The units of this host that turn swap on."""
    if not systemd_runs():
        return []
    return starting_units(output_of("systemctl", "show", "--property", PROPERTIES, "*.swap", *SERVICES))


def _systemctl(*words: str) -> None:
    printed_by(
        run_program(["systemctl", *words], SECONDS),
        SECONDS,
        f"systemctl {words[0]} failed.",
        " ".join(words[1:]) or "systemd",
        "See why with systemctl status and journalctl, then run again. Swap stays off after the next boot.",
    )


def mask_units(module: AnsibleModule, names: t.Sequence[str]) -> None:
    """Mask units and stop them. An administrator's unit file, which would make systemctl refuse, is kept as a copy."""
    for name in names:
        path = os.path.join(UNITS, name)
        if os.path.isfile(path) and not os.path.islink(path):
            module.backup_local(path)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(f"{path}.part")  # left by a run that was killed
        os.symlink("/dev/null", f"{path}.part")
        os.replace(f"{path}.part", path)
    if systemd_runs():
        _systemctl("daemon-reload")
    if names:
        _systemctl("stop", *names)
