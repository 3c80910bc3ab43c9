# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Text that a person reads, and short forms of long data."""

from __future__ import annotations

import hashlib
import json
import re
import typing as t

# What a terminal obeys instead of showing.
CONTROL_SEQUENCE = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"  # colours, the cursor
    r"|(?:\x1b\]|\x9d)[^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c)"  # its title, the clipboard
    r"|\x1b[ -/]*[0-~]"  # its other modes
)

# What kubectl and the Kubernetes client say of an API server whose certificate is past its end.
EXPIRED = "certificate has expired"

# Of a task that has run into Ansible's own limit.
HUNG = "The host accepts a connection, and then does not answer."
HUNG_STEP = (
    "Log in and see what hangs there (uptime, dmesg, df), or restart it. If it is only slow, set fabric_observe_timeout"
    " to more seconds."
)


def printable(text: str) -> str:
    """What hosts and pods say, without what would control a terminal or what XML cannot hold."""
    if text.isprintable():  # nearly always
        return text
    return "".join(c for c in CONTROL_SEQUENCE.sub("", text) if c in "\t\n\u00a0" or c.isprintable())


def join_endpoint(host: str, port: int) -> str:
    """host:port, with brackets around an IPv6 address."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def first_of(addresses: str) -> str:
    """A node's first address: with both families a comma stands between them."""
    return addresses.split(",")[0].strip()


def scheme_of(url: str) -> str:
    """The scheme of a URL in lower case, as programs read it; empty for a path, and for host:port."""
    scheme, separator, _rest = url.strip().partition("://")
    return scheme.lower() if separator else ""


def shorten_list(names: t.Iterable[str], most: int, separator: str = ", ") -> str:
    """The first names, and how many more there are: `a, b and 3 more`."""
    listed = list(names)
    more = f" and {len(listed) - most} more" if len(listed) > most else ""
    return separator.join(listed[:most]) + more


def natural(name: str) -> t.List[t.Tuple[int, str]]:
    """A key that orders names as a person does: w9 comes before w10."""
    return [(int(part or 0), "") if part.isdecimal() else (0, part) for part in re.split(r"(\d+)", name)]


def fingerprint(value: object) -> str:
    """A short digest that says whether two values are the same, and nothing else."""
    text = value if isinstance(value, str) else json.dumps(value, sort_keys=True)
    return "sha256:" + hashlib.sha256(text.encode()).hexdigest()[:16]
