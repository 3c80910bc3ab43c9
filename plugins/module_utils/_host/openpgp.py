# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Fingerprints of OpenPGP keys, as `gpg --show-keys` says them, without gpg. What can't be read for sure is refused."""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
import typing as t

ARMOR = re.compile(rb"^-----BEGIN PGP PUBLIC KEY BLOCK-----\r?\n.+?^-----END PGP PUBLIC KEY BLOCK-----", re.M | re.S)
BEGIN = b"-----BEGIN PGP"
PUBLIC_KEY = 6
SECRET_KEYS = (5, 7)


class KeyFormatError(ValueError):
    """Why a key can't be read."""


def dearmor(block: bytes) -> bytes:
    """The packets of one armored block. The checksum behind them is no protection, and is not compared."""
    lines = block.replace(b"\r", b"").split(b"\n")[1:-1]
    if b"" not in [line.strip() for line in lines]:
        raise KeyFormatError("an armored key without the empty line behind its headers")
    start = [line.strip() for line in lines].index(b"") + 1
    body = [line.strip() for line in lines[start:] if line.strip()]
    if body and body[-1].startswith(b"="):
        body.pop()
    try:
        return base64.b64decode(b"".join(body), validate=True)
    except binascii.Error as error:
        raise KeyFormatError("an armored key that is no base64") from error


def packets(data: bytes) -> t.Iterator[t.Tuple[int, bytes]]:
    """Tag and body of each packet."""
    place = 0
    while place < len(data):
        head = data[place]
        if not head & 0x80:
            raise KeyFormatError("data that is no OpenPGP packet")
        tag, place, length = _new_length(data, place) if head & 0x40 else _old_length(data, place)
        if place + length > len(data):
            raise KeyFormatError("a packet that is cut off")
        yield tag, data[place : place + length]
        place += length


def _old_length(data: bytes, place: int) -> t.Tuple[int, int, int]:
    head = data[place]
    size = {0: 1, 1: 2, 2: 4}.get(head & 3)
    if size is None:
        raise KeyFormatError("a packet of unknown length")
    return (head >> 2) & 15, place + 1 + size, int.from_bytes(data[place + 1 : place + 1 + size], "big")


def _new_length(data: bytes, place: int) -> t.Tuple[int, int, int]:
    tag, first = data[place] & 63, int.from_bytes(data[place + 1 : place + 2], "big")
    if first < 192:
        return tag, place + 2, first
    if first < 224:
        return tag, place + 3, ((first - 192) << 8) + int.from_bytes(data[place + 2 : place + 3], "big") + 192
    if first < 255:
        raise KeyFormatError("a packet in parts")
    return tag, place + 6, int.from_bytes(data[place + 2 : place + 6], "big")


def key_fingerprint(body: bytes) -> str:
    """The fingerprint of a public key packet."""
    version = body[0] if body else 0
    if version == 4:
        return hashlib.sha1(b"\x99" + len(body).to_bytes(2, "big") + body).hexdigest().upper()  # RFC 9580 wants SHA-1
    if version == 6:
        return hashlib.sha256(b"\x9b" + len(body).to_bytes(4, "big") + body).hexdigest().upper()
    raise KeyFormatError(f"a key of version {version}")


def fingerprints(key: bytes) -> t.List[str]:
    """Those of all primary keys, armored or not. KeyFormatError where there may be others that are not understood."""
    blocks = ARMOR.findall(key)
    if blocks and key.count(BEGIN) != len(blocks):
        raise KeyFormatError("an armored block that is no whole public key")
    found = []
    for data in [dearmor(block) for block in blocks] or [key]:
        for tag, body in packets(data):
            if tag in SECRET_KEYS:
                raise KeyFormatError("a secret key")
            if tag == PUBLIC_KEY:
                found.append(key_fingerprint(body))
    return found


def split_fingerprints(text: str) -> t.List[str]:
    """Fingerprints as people write them: with spaces in them or none, several with commas between."""
    return [part for part in (re.sub(r"\s|^0x", "", each).upper() for each in text.split(",")) if part]
