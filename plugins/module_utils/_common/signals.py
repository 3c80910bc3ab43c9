# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Signals that end a process."""

from __future__ import annotations

import contextlib
import signal
import threading
import typing as t


@contextlib.contextmanager
def termination_as_error() -> t.Iterator[None]:
    """Let SIGTERM and SIGHUP run the `finally` blocks first, as Ctrl-C does. Only a main thread can handle signals."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def interrupt(number: int, _frame: t.Any) -> None:
        raise KeyboardInterrupt(f"signal {number}")

    before = {number: signal.signal(number, interrupt) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
