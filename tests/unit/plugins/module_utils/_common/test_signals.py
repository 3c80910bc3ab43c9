# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import os
import signal
import threading

import pytest
from ansible_collections.ipu.fabric.plugins.module_utils._common.signals import termination_as_error


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_is_an_error_that_finally_blocks_see(number):
    handler = signal.getsignal(number)
    with pytest.raises(KeyboardInterrupt, match=f"signal {int(number)}"), termination_as_error():
        os.kill(os.getpid(), number)
    assert signal.getsignal(number) is handler


def test_a_thread_changes_no_handler():
    seen = []

    def enter():
        with termination_as_error():
            seen.append(signal.getsignal(signal.SIGTERM))

    thread = threading.Thread(target=enter)
    thread.start()
    thread.join()
    assert seen == [signal.getsignal(signal.SIGTERM)]
