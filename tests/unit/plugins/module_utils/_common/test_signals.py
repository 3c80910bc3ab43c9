import os
import signal
import threading

import pytest
from ansible_collections.ipu.fabric.plugins.module_utils._common.signals import termination_as_error


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_is_an_error_that_finally_blocks_see(number):
    handler = signal.getsignal(number)
    with pytest.raises(KeyboardInterrupt, match=f"signal {int(number)}"), termination_as_error():
        os.kill(os.getpid(), number)
    assert signal.getsignal(number) is handler


def test_what_is_cleaned_up_is_not_interrupted_again():
    """Ansible sends a second signal to a process that takes its time."""
    cleaned = []

    def be_interrupted():
        try:
            os.kill(os.getpid(), signal.SIGINT)
        finally:
            os.kill(os.getpid(), signal.SIGTERM)
            cleaned.append(True)

    with pytest.raises(KeyboardInterrupt), termination_as_error():
        be_interrupted()
    assert cleaned == [True]


def test_a_thread_changes_no_handler():
    seen = []

    def enter():
        with termination_as_error():
            seen.append(signal.getsignal(signal.SIGTERM))

    thread = threading.Thread(target=enter)
    thread.start()
    thread.join()
    assert seen == [signal.getsignal(signal.SIGTERM)]
