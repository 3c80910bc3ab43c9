# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""OpenPGP keys without gpg: fingerprints, as `gpg --show-keys` prints them, and expiry.

What can't be parsed for certain is refused. The parsed packets are packed again, so that no other reader finds
different keys in them.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import math
import re
import typing as t

ARMOR = re.compile(rb"^-----BEGIN PGP PUBLIC KEY BLOCK-----\r?\n.+?^-----END PGP PUBLIC KEY BLOCK-----", re.M | re.S)
BEGIN = b"-----BEGIN PGP"
ANY = ["NONE"]  # stands in for fingerprints if the site accepts any key
SIGNATURE, PUBLIC_KEY, USER_ID, SUBKEY, USER_ATTRIBUTE = 2, 6, 13, 14, 17
KEPT = (SIGNATURE, PUBLIC_KEY, USER_ID, SUBKEY, USER_ATTRIBUTE)  # nothing else is needed to verify a signature
SECRET_KEYS = (5, 7)
# Types of signatures, and of their subpackets.
SELF, BINDING = b"\x10\x11\x12\x13\x1f", b"\x18"
MADE, KEY_LIFE, KEY_FLAGS = 2, 9, 27
SIGNS = 2  # the flag of a key that can sign data


class KeyFormatError(ValueError):
    """Why a key can't be read."""


class Keyring(t.NamedTuple):
    """Public keys as parsed."""

    data: bytes  # their packets, repacked
    fingerprints: t.List[str]  # of all primary keys
    end: float  # when the last of them expires, in seconds since 1970; infinity: never


def dearmor(block: bytes) -> bytes:
    """The packets of one armored block. Its checksum gives no protection and is not verified."""
    lines = block.replace(b"\r", b"").split(b"\n")[1:-1]
    if b"" not in [line.strip() for line in lines]:
        raise KeyFormatError("an armored key without the empty line after its headers")
    start = [line.strip() for line in lines].index(b"") + 1
    body = [line.strip() for line in lines[start:] if line.strip()]
    if body and body[-1].startswith(b"="):
        body.pop()
    try:
        return base64.b64decode(b"".join(body), validate=True)
    except binascii.Error as error:
        raise KeyFormatError("an armored key that is not base64") from error


def packets(data: bytes) -> t.Iterator[t.Tuple[int, bytes]]:
    """Tag and body of each packet."""
    place = 0
    while place < len(data):
        head = data[place]
        if not head & 0x80:
            raise KeyFormatError("data that is not an OpenPGP packet")
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


def pack(tag: int, body: bytes) -> bytes:
    """A packet with the shortest length encoding."""
    size = len(body)
    if size < 192:
        return bytes([0xC0 | tag, size]) + body
    if size < 8384:
        return bytes([0xC0 | tag, (size - 192 >> 8) + 192, size - 192 & 255]) + body
    return bytes([0xC0 | tag, 255]) + size.to_bytes(4, "big") + body


def key_fingerprint(body: bytes) -> str:
    """The fingerprint of a public key packet."""
    version = body[0] if body else 0
    if version == 4 and len(body) < 1 << 16:
        return hashlib.sha1(b"\x99" + len(body).to_bytes(2, "big") + body).hexdigest().upper()  # RFC 9580: SHA-1
    if version == 6:
        return hashlib.sha256(b"\x9b" + len(body).to_bytes(4, "big") + body).hexdigest().upper()
    raise KeyFormatError(f"a key of version {version} and {len(body)} bytes")


def _subpackets(area: bytes) -> t.Iterator[t.Tuple[int, bytes]]:
    place = 0
    while place < len(area):
        first = area[place]
        size = 1 if first < 192 else 2 if first < 255 else 5
        rest = int.from_bytes(area[place + 1 : place + size], "big")
        length = {1: first, 2: (first - 192 << 8) + rest + 192, 5: rest}[size]
        place += size
        yield int.from_bytes(area[place : place + 1], "big") & 0x7F, area[place + 1 : place + length]
        place += length


def _said(signature: bytes) -> t.Dict[int, bytes]:
    """The hashed subpackets of a version 4 or 6 signature, by type."""
    size = {4: 2, 6: 4}.get(int.from_bytes(signature[:1], "big"), 0)
    length = int.from_bytes(signature[4 : 4 + size], "big")
    return dict(_subpackets(signature[4 + size : 4 + size + length])) if size else {}


def _number(said: t.Mapping[int, bytes], kind: int) -> int:
    return int.from_bytes(said.get(kind, b"")[:4], "big")


def _end(key: bytes, signatures: t.Sequence[t.Mapping[int, bytes]]) -> float:
    """When a key expires, by the newest signature with key flags or a lifetime. Signatures by others have neither."""
    own = [said for said in signatures if KEY_FLAGS in said or KEY_LIFE in said]
    life = _number(max(own, key=lambda said: _number(said, MADE)), KEY_LIFE) if own else 0
    return int.from_bytes(key[1:5], "big") + life if life else math.inf


def _end_of_all(found: t.Sequence[t.Tuple[int, bytes]]) -> float:
    """When no signature by a primary key or its subkeys is valid any more."""
    bodies: t.List[bytes] = []  # of the primary key and its subkeys, with the signatures of each
    signed: t.List[t.List[t.Dict[int, bytes]]] = []
    for tag, body in found:
        if tag in (PUBLIC_KEY, SUBKEY):
            bodies.append(body)
            signed.append([])
        elif tag == SIGNATURE and body[1:2] in (SELF if len(bodies) == 1 else BINDING):
            signed[-1].append(_said(body))
    signers = [
        _end(body, said)
        for body, said in zip(bodies[1:], signed[1:])
        if any(int.from_bytes(one.get(KEY_FLAGS, b"")[:1], "big") & SIGNS for one in said)
    ]
    return min(_end(bodies[0], signed[0]), max(signers, default=math.inf))


def read_keys(key: bytes) -> Keyring:
    """All public keys, armored or not. KeyFormatError if the data may contain keys that are not understood."""
    blocks = ARMOR.findall(key)
    if blocks and key.count(BEGIN) != len(blocks):
        raise KeyFormatError("an armored block that is not a complete public key")
    keys: t.List[t.List[t.Tuple[int, bytes]]] = []
    for data in [dearmor(block) for block in blocks] or [key]:
        for tag, body in packets(data):
            if tag in SECRET_KEYS:
                raise KeyFormatError("a secret key")
            if tag == PUBLIC_KEY:
                keys.append([])
            elif tag in KEPT and not keys:
                raise KeyFormatError("a packet that belongs to no key")
            if tag in KEPT:
                keys[-1].append((tag, body))
    return Keyring(
        b"".join(pack(tag, body) for one in keys for tag, body in one),
        [key_fingerprint(one[0][1]) for one in keys],
        max(map(_end_of_all, keys), default=math.inf),
    )


def split_fingerprints(text: str) -> t.List[str]:
    """Fingerprints as people write them: with or without spaces, separated by commas."""
    return [part for part in (re.sub(r"\s|^0x", "", each).upper() for each in text.split(",")) if part]
