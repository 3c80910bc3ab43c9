# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What sets the clock of a host, and which NTP servers answer it. Nothing is changed here."""

from __future__ import annotations

import contextlib
import os
import socket
import struct
import threading
import time
import typing as t

from .._common.command import output_of

# Services of which at most one may set the clock.
SERVICES = ("chrony", "chronyd", "systemd-timesyncd", "ntp", "ntpd", "ntpsec", "openntpd", "phc2sys")
PORT = 123
SECONDS = 5.0
RESEND = 1.0  # seconds until an unanswered request is sent again
CLIENT, SERVER, MODE = 0x23, 4, 0x07  # version 4
LAST_STRATUM = 15  # 16 means not synchronized, 0 a refusal to serve
FORM = struct.Struct("!BBBb11I")


def parse_services(shown: str) -> t.List[str]:
    """The active units in the output of `systemctl show -p Id -p ActiveState`."""
    blocks = (dict(line.partition("=")[::2] for line in block.splitlines()) for block in shown.split("\n\n"))
    running = {block.get("Id", "") for block in blocks if block.get("ActiveState") == "active"}
    return sorted(name.replace(".service", "") for name in running if name)


def read_services() -> t.List[str]:
    units = [f"{name}.service" for name in SERVICES]
    return parse_services(output_of("systemctl", "show", "-p", "Id", "-p", "ActiveState", *units, timeout=SECONDS))


def question(mark: bytes) -> bytes:
    """A client's request. The server returns the client's time, which here is `mark` and identifies the answer."""
    return FORM.pack(CLIENT, 0, 0, 0, *[0] * 9, *struct.unpack("!II", mark))


def is_answer(packet: bytes, mark: bytes) -> bool:
    """Whether a synchronized server answered this request."""
    if len(packet) < FORM.size:
        return False
    fields = FORM.unpack(packet[: FORM.size])
    return fields[0] & MODE == SERVER and 0 < fields[1] <= LAST_STRATUM and struct.pack("!II", *fields[9:11]) == mark


def ask_server(name: str, port: int, seconds: float) -> bool:
    """Whether an NTP server answers on one of its addresses."""
    end, mark = time.monotonic() + seconds, os.urandom(8)
    for family, kind, protocol, _name, address in socket.getaddrinfo(name, port, type=socket.SOCK_DGRAM):
        with contextlib.suppress(OSError), socket.socket(family, kind, protocol) as asking:
            asking.connect(address)
            asking.settimeout(RESEND)
            for _attempt in range(2):
                asking.send(question(mark))
                with contextlib.suppress(socket.timeout):
                    if is_answer(asking.recv(512), mark):
                        return True
        if time.monotonic() > end:
            break
    return False


def _ask(name: str, port: int, answers: t.Dict[str, bool]) -> None:
    with contextlib.suppress(OSError, UnicodeError):  # no such name
        answers[name] = ask_server(name, port, SECONDS)


def ask_servers(names: t.Iterable[str], port: int = PORT) -> t.Dict[str, bool]:
    """Whether each NTP server answers in time; all are asked at once, and slow ones are not waited for."""
    answers: t.Dict[str, bool] = {}
    asking = {
        name: threading.Thread(target=_ask, args=(name, port, answers), daemon=True) for name in set(names) if name
    }
    for thread in asking.values():
        thread.start()
    end = time.monotonic() + SECONDS
    for thread in asking.values():
        thread.join(max(0.0, end - time.monotonic()))
    return {name: answers.get(name, False) for name in sorted(asking)}
