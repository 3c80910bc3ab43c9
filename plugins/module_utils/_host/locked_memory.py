# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""How much memory a host's services may be allowed to lock, whatever their units ask for."""

from __future__ import annotations

import os
import re
import resource

from .files import read_text


def parse_hard_limit(limits: str) -> str:
    """The hard limit of locked memory in /proc/PID/limits: `unlimited`, or bytes. Empty if it is missing."""
    match = re.search(r"^Max locked memory +\S+ +(\S+)", limits, re.MULTILINE)
    return match.group(1) if match else ""


def may_raise() -> bool:
    """Whether root may raise its hard limit. This tries it: in a container, capabilities can be misleading."""
    before = resource.getrlimit(resource.RLIMIT_MEMLOCK)
    try:
        resource.setrlimit(resource.RLIMIT_MEMLOCK, (before[0], resource.RLIM_INFINITY))
    except (ValueError, OSError):
        return False
    resource.setrlimit(resource.RLIMIT_MEMLOCK, before)
    return True


def read_locked_memory(root: str) -> str:
    """The highest limit that systemd can give a service: `unlimited`, or bytes. Empty if this user can't tell.

    If systemd may not raise the limit, it starts services with the hard limit of its own process.
    """
    limit = parse_hard_limit(read_text(os.path.join(root, "proc/1/limits")))
    if limit in ("", "unlimited"):
        return limit
    if os.geteuid() != 0:
        return ""
    return "unlimited" if may_raise() else limit
