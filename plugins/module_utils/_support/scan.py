# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Looks for secrets in redacted data, to catch mistakes of redaction.py: they share no code."""

from __future__ import annotations

import base64
import collections
import math
import re
import typing as t


def encoded(text: bytes) -> t.List[str]:
    """The base64 forms of a text at any offset in the encoded data: the part that depends on nothing else."""
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
    "a bearer token": re.compile(r"\b[Bb]earer [\w.~+/=-]{6,}"),  # shorter is a word: "invalid bearer token"
    "a bootstrap token": re.compile(r"\b(?=[a-z.]{0,21}\d)[a-z0-9]{6}\.[a-z0-9]{16}\b"),
    "a URL with a password": re.compile(r"[a-z]://[^\s/:'\"]{1,99}:[^\s@'\"]{1,99}@(?!sha256:)"),
    "a token of a service": re.compile(
        r"\b(?:A[KS]IA[0-9A-Z]{16}\b|AIza[\w-]{35}|gh[pousr]_\w{30}|github_pat_\w{22}|glpat-[\w-]{20}|xox[abeoprs]-\d"
        r"|npm_\w{36}|hf_\w{30}|sk-(?:proj|ant|live)-\w{16}|nvapi-\w{20}|dckr_pat_\w{16}|hv[sbr]\.\w{24}|pypi-AgE)"
    ),
    "a certificate key": re.compile(r"(?i:certificate[ -]key\W{1,4})[0-9a-f]{64}"),
    "the hash of a password": re.compile(r"\$(?:2[aby]|[156y])\$[\w./]{4}"),
    "a login of a registry": re.compile(r"\"auth\\*\": *\\*\"[A-Za-z0-9+]"),
    "a password": re.compile(NAMES + r"\\*['\"]?(?:=| *: +| *:(?=\\*['\"]))" + HIDDEN + r"\\*['\"]?\w"),
}


RANDOM = "letters and digits as in a random key"
CANDIDATE = re.compile(r"(?<![0-9A-Za-z])[0-9A-Za-z]{20,}")
# Bits per character of text: words and names have fewer. Digests, UIDs and IDs of images and containers are lower-case
# hex, and never get here.
MOST_BITS = 4.0


def has_random(text: str) -> bool:
    """Whether a word mixes upper case, lower case and digits at random."""
    for match in CANDIDATE.finditer(text):
        word = match[0]
        digits = re.findall(r"\d+", word)
        if len(digits) < 2 or not re.search("[a-z]", word) or not re.search("[A-Z]", word):
            continue
        counts = collections.Counter(word).values()
        if sum(-n / len(word) * math.log2(n / len(word)) for n in counts) >= MOST_BITS:
            return True
    return False


def leaks(files: t.Mapping[str, str]) -> t.List[str]:
    """What looks like a secret, and in which file; never the secret itself."""
    found: t.List[str] = []
    for name, text in files.items():
        kinds = [what for what, form in PATTERNS.items() if form.search(text)]
        found += [f"{what} in {name}" for what in kinds or ([RANDOM] if has_random(text) else [])]
    return found
