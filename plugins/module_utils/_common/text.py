# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Text for people, and short forms of long data."""

from __future__ import annotations

import hashlib
import json
import re
import textwrap
import typing as t

# Sequences that a terminal obeys instead of showing.
CONTROL_SEQUENCE = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"  # colours, the cursor
    r"|(?:\x1b\]|\x9d)[^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c)"  # the title, the clipboard
    r"|\x1b[ -/]*[0-~]"  # other modes
)

# What kubectl and the Kubernetes client print if the API server's certificate has expired.
EXPIRED = "certificate has expired"

# Of a task that ran into Ansible's own time-out.
HUNG = "The host accepts a connection, and then does not answer."
HUNG_STEP = (
    "Log in and see what hangs there (uptime, dmesg, df), or restart it. If it is only slow, set fabric_observe_timeout"
    " to more seconds."
)


def printable(text: str) -> str:
    """Output of hosts and pods, without terminal control sequences and characters that XML can't contain."""
    if text.isprintable():  # nearly always
        return text
    return "".join(c for c in CONTROL_SEQUENCE.sub("", text) if c in "\t\n\u00a0" or c.isprintable())


def join_endpoint(host: str, port: int) -> str:
    """host:port, with brackets around an IPv6 address."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def first_of(addresses: str) -> str:
    """A node's first address: dual-stack addresses are separated by a comma."""
    return addresses.split(",")[0].strip()


def scheme_of(url: str) -> str:
    """The scheme of a URL, in lower case as programs read it; empty for a path, and for host:port."""
    scheme, separator, _rest = url.strip().partition("://")
    return scheme.lower() if separator else ""


def shorten_list(names: t.Iterable[str], most: int, separator: str = ", ") -> str:
    """The first names, and the number of others: `a, b and 3 more`."""
    listed = list(names)
    more = f" and {len(listed) - most} more" if len(listed) > most else ""
    return separator.join(listed[:most]) + more


def natural(name: str) -> t.List[t.Tuple[int, str]]:
    """A key that sorts names as people do: w9 comes before w10."""
    return [(int(part or 0), "") if part.isdecimal() else (0, part) for part in re.split(r"(\d+)", name)]


def fingerprint(value: object) -> str:
    """A short digest that shows only whether two values are the same."""
    text = value if isinstance(value, str) else json.dumps(value, sort_keys=True)
    return "sha256:" + hashlib.sha256(text.encode()).hexdigest()[:16]


NO_BREAK = "\u00a0"  # a space at which lines are not wrapped


def wrapped(text: str, width: int, first: str = "", then: str = "") -> t.List[str]:
    """The wrapped lines. Words are not cut, nor are commands in backticks: they are for copying."""
    whole = re.sub(r"`[^`]+`", lambda match: match[0].replace(" ", NO_BREAK), text)
    lines = textwrap.wrap(
        whole, width, initial_indent=first, subsequent_indent=then, break_long_words=False, break_on_hyphens=False
    )
    return [line.replace(NO_BREAK, " ") for line in lines]
