"""Fingerprints of keys, and keys that nobody can be sure of."""

import base64
import hashlib
import math

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
    assert openpgp.read_keys(key).fingerprints == [FIRST]


def test_every_key_counts():
    second = hashlib.sha1(b"\x99\x00\x06" + OTHER).hexdigest().upper()
    assert openpgp.read_keys(new(6, BODY) + old(6, OTHER)).fingerprints == [FIRST, second]
    assert openpgp.read_keys(armored(new(6, BODY)) + b"words\n" + armored(new(6, OTHER))).fingerprints == [
        FIRST,
        second,
    ]


@pytest.mark.parametrize(
    "key",
    [
        b"\x00not a packet", new(6, BODY)[:-1], bytes([0x80 | 6 << 2 | 3]) + BODY, bytes([0xC6, 0xE1]) + BODY,
        new(6, b"\x03old"), new(6, b""), new(5, BODY), new(13, b"a user") + new(6, BODY),
        b"\xc6\xff\x00\x01\x00\x00\x04" + bytes(65535),  # longer than what a fingerprint is made of
        armored(new(6, BODY)) + b"-----BEGIN PGP PUBLIC KEY BLOCK-----\n",
        armored(new(6, BODY)).replace(b"\n", b"\n*", 3),
    ],
)  # fmt: skip
def test_what_can_not_be_read_for_sure_is_refused(key):
    with pytest.raises(openpgp.KeyFormatError):
        openpgp.read_keys(key)


@pytest.mark.parametrize(
    "key",
    [
        new(6, BODY) + new(13, b"a user"), old(6, BODY) + old(13, b"a user"),
        armored(new(6, BODY) + new(13, b"a user")),
        new(6, BODY) + new(60, b"private") + new(12, b"trust") + new(13, b"a user"),
        armored(new(6, BODY)) + armored(new(13, b"a user")),
    ],
)  # fmt: skip
def test_what_was_read_is_packed_in_one_way(key):
    keyring = openpgp.read_keys(key)
    assert keyring.data == new(6, BODY) + new(13, b"a user")
    assert openpgp.read_keys(keyring.data) == keyring


@pytest.mark.parametrize("size", [0, 191, 192, 8383, 8384, 70000])
def test_lengths_of_packets(size):
    assert list(openpgp.packets(openpgp.pack(13, bytes(size)))) == [(13, bytes(size))]


MADE = 1000
KEY = new(6, b"\x04" + MADE.to_bytes(4, "big") + b"\x01")
SUBKEY = new(14, b"\x04" + MADE.to_bytes(4, "big") + b"\x01")


def signature(kind, made, life=0, flags=b"\x03"):
    fields = [b"\x05\x02" + made.to_bytes(4, "big")]
    fields += [b"\x05\x89" + life.to_bytes(4, "big")] if life else []
    fields += [bytes([len(flags) + 1, 27]) + flags] if flags else []
    area = b"".join(fields)
    return new(2, bytes([4, kind, 1, 8]) + len(area).to_bytes(2, "big") + area + b"\x00\x00ab" + b"s" * 40)


@pytest.mark.parametrize(
    ("key", "end"),
    [
        (KEY, math.inf),
        (KEY + signature(0x13, 1), math.inf),
        (KEY + signature(0x13, 1, 500), 1500),
        (KEY + signature(0x13, 1, 500) + signature(0x13, 2, 900), 1900),  # renewed
        (KEY + signature(0x13, 2, 900) + signature(0x13, 1, 500), 1900),
        (KEY + signature(0x13, 1, 500) + signature(0x13, 2), math.inf),
        (KEY + signature(0x13, 1, 500) + signature(0x10, 2, flags=b""), 1500),  # of somebody else
        (KEY + signature(0x18, 1, 500), math.inf),  # of no subkey
        (KEY + signature(0x13, 1) + SUBKEY + signature(0x18, 1, 700, b"\x02"), 1700),
        (KEY + signature(0x13, 1, 500) + SUBKEY + signature(0x18, 1, 700, b"\x02"), 1500),
        (KEY + signature(0x13, 1) + SUBKEY + signature(0x18, 1, 700, b"\x0c"), math.inf),  # it encrypts
        (KEY + SUBKEY + signature(0x18, 1, 700, b"\x02") + SUBKEY + signature(0x18, 1, 900, b"\x02"), 1900),
        (KEY + signature(0x13, 1, 500) + KEY + signature(0x13, 1, 800), 1800),
        (KEY + new(2, b"") + new(2, b"\x03\x13") + new(2, b"\x04\x13\x01\x08\xff\xff\xff\x01"), math.inf),
    ],
)
def test_when_a_key_expires(key, end):
    assert openpgp.read_keys(key).end == end


@pytest.mark.parametrize(
    ("text", "found"),
    [("", []), ("de15 b144", ["DE15B144"]), ("0xAB, cd", ["AB", "CD"]), (",", [])],
)
def test_fingerprints_as_people_write_them(text, found):
    assert openpgp.split_fingerprints(text) == found
