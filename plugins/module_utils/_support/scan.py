# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Look for secrets in what was redacted. For mistakes of redaction.py: they share no code."""

from __future__ import annotations

import base64
import re
import typing as t


def encoded(text: bytes) -> t.List[str]:
    """What base64 has for a text, wherever in the encoded data it begins: the part that depends on nothing else."""
    return [
        base64.b64encode(b"\0" * before + text).decode()[-(-before * 8 // 6) : (before + len(text)) * 8 // 6]
        for before in range(3)
    ]


HIDDEN = r"(?!\\*['\"]?\(not shown)"
NAMES = (
    r"(?:(?:(?<![A-Za-z0-9])|(?<=\\[nrt]))"
    r"(?i:password|passwd|passphrase|(?:api|secret|access)[_-]?key|identitytoken|client-key-data)"
    r"|(?i:[_-](?:token|secret))|[a-z](?:Password|Token|Secret))"
)
PATTERNS = {
    "a private key": re.compile(r"BEGIN [A-Z ]*PRIVATE KEY-|END [A-Z ]*PRIVATE KEY-"),
    "a private key in base64": re.compile("|".join(map(re.escape, encoded(b"PRIVATE KEY-")))),
    "a web token": re.compile(r"\beyJhbGciOi|\beyJ[A-Za-z0-9_-]+\.eyJ"),
    "a bearer token": re.compile(r"\b[Bb]earer [A-Za-z0-9]"),
    "a bootstrap token": re.compile(r"\b(?=[a-z.]{0,21}\d)[a-z0-9]{6}\.[a-z0-9]{16}\b"),
    "a URL with a password": re.compile(r"[a-z]://[^\s/:'\"]+:[^\s@'\"]+@(?!sha256:)"),
    "a login of a registry": re.compile(r"\"auth\\*\": *\\*\"[A-Za-z0-9+]"),
    "a password": re.compile(NAMES + r"\\*['\"]?(?:=| *: +| *:(?=\\*['\"]))" + HIDDEN + r"\\*['\"]?\w"),
}


def leaks(files: t.Mapping[str, str]) -> t.List[str]:
    """What looks like a secret, and in which file; never the secret itself."""
    return [f"{what} in {name}" for name, text in files.items() for what, form in PATTERNS.items() if form.search(text)]
