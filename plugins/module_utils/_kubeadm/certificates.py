# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Certificates of a host that have expired. Hosts have no library for them, so their end is read from the DER."""

from __future__ import annotations

import datetime
import re
import ssl
import typing as t

from ansible_collections.ipu.fabric.plugins.module_utils._host.files import read_text

PEM = re.compile(r"-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----", re.DOTALL)
VERSION, GENERALIZED_TIME = 0xA0, 0x18  # tags of DER


class Element(t.NamedTuple):
    """An element of DER."""

    tag: int
    content: bytes
    rest: bytes  # what follows it


def read_element(data: bytes) -> Element:
    """The first element. ValueError where there is none, or a part of one."""
    if len(data) < 2:
        raise ValueError("cut off")
    length, begin = data[1], 2
    if length > 0x7F:  # the number of bytes that hold the length
        begin += length & 0x7F
        length = int.from_bytes(data[2:begin], "big")
    if len(data) < begin + length:
        raise ValueError("cut off")
    return Element(data[0], data[begin : begin + length], data[begin + length :])


def not_after(pem: str) -> datetime.datetime:
    """When the first certificate of a PEM text ends. ValueError without one."""
    found = PEM.search(pem)
    if not found:
        raise ValueError("no certificate")
    fields = read_element(read_element(ssl.PEM_cert_to_DER_cert(found.group())).content).content
    first = read_element(fields)
    fields = first.rest if first.tag == VERSION else fields
    for _field in ("serial number", "signature", "issuer"):
        fields = read_element(fields).rest
    end = read_element(read_element(read_element(fields).content).rest)  # validity: not before, not after
    digits = end.content.decode("ascii").rstrip("Z")
    if end.tag != GENERALIZED_TIME:  # two digits of the year
        digits = ("20" if int(digits[:2]) < 50 else "19") + digits
    return datetime.datetime.strptime(digits, "%Y%m%d%H%M%S").replace(tzinfo=datetime.timezone.utc)


def expired_certificates(files: t.Sequence[str], now: float) -> t.List[str]:
    """Those of the files whose certificate has expired, each with the day. `now` is in seconds since 1970."""
    expired = []
    for path in files:
        try:
            end = not_after(read_text(path))
        except ValueError:  # no such file, or something else in it
            continue
        if end.timestamp() < now:
            expired.append(f"{path} on {end:%Y-%m-%d}")
    return expired
