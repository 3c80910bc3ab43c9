# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""How much memory the services of a host can be allowed to lock, whatever their units ask for."""

from __future__ import annotations

import os
import re
import resource

from .files import read_text


def parse_hard_limit(limits: str) -> str:
    """Of locked memory in /proc/PID/limits: `unlimited`, or bytes. Empty if it is not there."""
    match = re.search(r"^Max locked memory +\S+ +(\S+)", limits, re.MULTILINE)
    return match.group(1) if match else ""


def may_raise() -> bool:
    """Whether root may raise its hard limit. Tried: in a container capabilities may look as if it could."""
    before = resource.getrlimit(resource.RLIMIT_MEMLOCK)
    try:
        resource.setrlimit(resource.RLIMIT_MEMLOCK, (before[0], resource.RLIM_INFINITY))
    except (ValueError, OSError):
        return False
    resource.setrlimit(resource.RLIMIT_MEMLOCK, before)
    return True


def read_locked_memory(root: str) -> str:
    """The most that systemd can give a service: `unlimited`, or bytes. Empty where this user can't tell.

    systemd starts services with the hard limit of its own process where it may not raise it.
    """
    limit = parse_hard_limit(read_text(os.path.join(root, "proc/1/limits")))
    if limit in ("", "unlimited"):
        return limit
    if os.geteuid() != 0:
        return ""
    return "unlimited" if may_raise() else limit
