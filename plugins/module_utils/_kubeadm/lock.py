# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""One kubeadm at a time on a host."""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
import typing as t

from .._common.result import FabricError
from .._host.files import open_private
from . import paths
from .membership import host_name


@contextlib.contextmanager
def hold_lock(timeout: int, what: str = "kubeadm") -> t.Iterator[t.IO[str]]:
    """Prevent others from running kubeadm. Waits for one that a killed run started."""
    give_up = time.monotonic() + timeout
    with open_private(paths.LOCK) as lock:
        while True:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > give_up:
                    raise FabricError(
                        f"Another {what} has been running for more than {timeout} s.",
                        host_name(),
                        f"{paths.LOCK} is held",
                        "Wait for it or end it, then run again.",
                        code="busy",
                    ) from None
                time.sleep(1)
        yield lock


def is_locked() -> bool:
    """Whether a kubeadm that an earlier run started is still running."""
    if not os.path.exists(paths.LOCK):
        return False
    with open_private(paths.LOCK) as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False
