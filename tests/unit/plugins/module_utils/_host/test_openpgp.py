# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Fingerprints of keys, and keys that nobody can be sure of."""

from __future__ import annotations

import base64
import hashlib

import pytest
from ansible_collections.ipu.fabric.plugins.module_utils._host import openpgp

BODY = b"\x04" + b"\x00" * 4 + b"\x01" + b"k" * 250
FIRST = hashlib.sha1(b"\x99\x01\x00" + BODY).hexdigest().upper()
OTHER = b"\x04other"


def new(tag, body):
    size = len(body)
    length = bytes([size]) if size < 192 else bytes([(size - 192 >> 8) + 192, size - 192 & 255])
    return bytes([0xC0 | tag]) + length + body


def old(tag, body):
    return bytes([0x80 | tag << 2 | 1]) + len(body).to_bytes(2, "big") + body


def armored(data, head=b""):
    text = base64.encodebytes(data)
    name = b"PGP PUBLIC KEY BLOCK-----"
    return b"-----BEGIN " + name + b"\n" + head + b"\n" + text + b"=abcd\n-----END " + name + b"\n"


@pytest.mark.parametrize(
    "key",
    [
        new(6, BODY), old(6, BODY), armored(new(6, BODY)), armored(old(6, BODY), b"Version: GnuPG v2\n"),
        armored(new(6, BODY)).replace(b"\n", b"\r\n"), new(6, BODY) + new(13, b"a user") + new(14, BODY),
        new(6, b"")[:1] + b"\xff" + len(BODY).to_bytes(4, "big") + BODY,
    ],
)  # fmt: skip
def test_the_fingerprint_of_a_key(key):
    assert openpgp.fingerprints(key) == [FIRST]


def test_every_key_counts():
    second = hashlib.sha1(b"\x99\x00\x06" + OTHER).hexdigest().upper()
    assert openpgp.fingerprints(new(6, BODY) + old(6, OTHER)) == [FIRST, second]
    assert openpgp.fingerprints(armored(new(6, BODY)) + b"words\n" + armored(new(6, OTHER))) == [FIRST, second]


@pytest.mark.parametrize(
    "key",
    [
        b"\x00not a packet", new(6, BODY)[:-1], bytes([0x80 | 6 << 2 | 3]) + BODY, bytes([0xC6, 0xE1]) + BODY,
        new(6, b"\x03old"), new(6, b""), new(5, BODY),
        armored(new(6, BODY)) + b"-----BEGIN PGP PUBLIC KEY BLOCK-----\n",
        armored(new(6, BODY)).replace(b"\n", b"\n*", 3),
    ],
)  # fmt: skip
def test_what_can_not_be_read_for_sure_is_refused(key):
    with pytest.raises(openpgp.KeyFormatError):
        openpgp.fingerprints(key)


@pytest.mark.parametrize(
    ("text", "found"),
    [("", []), ("de15 b144", ["DE15B144"]), ("0xAB, cd", ["AB", "CD"]), (",", [])],
)
def test_fingerprints_as_people_write_them(text, found):
    assert openpgp.split_fingerprints(text) == found
