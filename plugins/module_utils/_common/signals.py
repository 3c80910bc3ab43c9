# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Signals that end a process."""

from __future__ import annotations

import contextlib
import signal
import threading
import typing as t

ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextlib.contextmanager
def termination_as_error() -> t.Iterator[None]:
    """Let a terminating signal run the `finally` blocks first, once. Only the main thread can handle signals.

    Otherwise Ctrl-C would end a process of Ansible at once; a second signal follows soon after the first.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def interrupt(number: int, _frame: t.Any) -> None:
        for each in ENDING:
            signal.signal(each, signal.SIG_IGN)
        raise KeyboardInterrupt(f"signal {number}")

    before = {number: signal.signal(number, interrupt) for number in ENDING}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
