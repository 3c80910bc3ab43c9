# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Run a program, but never wait forever for it."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
import time
import typing as t

from .._model.failure import Code
from .text import printable

# Where system programs live that a user's PATH may lack.
SYSTEM_PATHS = ("/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin")
ASK = 5.0  # seconds between two questions whether a program runs in vain
GRACE = 5.0  # seconds that a program whose time is up has to tidy up


class Done(t.NamedTuple):
    """How a program ended. rc is None when it was killed because its time was up, 127 when there is no such program."""

    rc: t.Optional[int]
    out: str = ""
    err: str = ""

    @property
    def code(self) -> Code:
        """Of the failure, where it is one."""
        return "timeout" if self.rc is None else "missing-requirement" if self.rc == 127 else "command-failed"


def find_program(name: str) -> str:
    """The program's path; empty when there is none."""
    return shutil.which(name, path=os.pathsep.join([os.environ.get("PATH", ""), *SYSTEM_PATHS])) or ""


def _text(data: t.Optional[bytes]) -> str:
    return (data or b"").decode("utf-8", "replace")


def _ended(rc: t.Optional[int], out: t.Optional[bytes], err: t.Optional[bytes]) -> Done:
    """What a program prints is parsed, its errors are shown."""
    return Done(rc, _text(out), printable(_text(err)))


def run_program(
    argv: t.Sequence[str],
    timeout: float = 30,
    *,
    data: str = "",
    env: t.Optional[t.Mapping[str, str]] = None,
    pass_fds: t.Sequence[int] = (),
    in_vain: t.Optional[t.Callable[[], bool]] = None,
) -> Done:
    """Run `argv` in a session of its own, so that what it started can be killed with it. `data` is its input.

    Its time is up early when `in_vain`, asked every few seconds, says that it waits for nothing.
    """
    program = find_program(argv[0])
    if not program:
        return Done(127, "", f"{argv[0]}: not found")
    try:
        process = subprocess.Popen(
            [program, *argv[1:]],
            stdin=subprocess.PIPE if data else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, "LC_ALL": "C", **(env or {})},
            pass_fds=pass_fds,
            start_new_session=True,
        )
    except OSError as error:
        return Done(126, "", str(error))
    end, given = time.monotonic() + timeout, data.encode() or None
    while True:
        left = end - time.monotonic()
        try:
            out, err = process.communicate(given, timeout=min(left, ASK) if in_vain else left)
            return _ended(process.returncode, out, err)
        except subprocess.TimeoutExpired as expired:
            given = None  # it is on its way
            if in_vain is None or left <= ASK or in_vain():
                return _kill(process, expired)


def nameless_file(text: str) -> t.IO[str]:
    """A file for secrets, which programs read at path_of() it. It has no name, so none is left if this is killed."""
    # Elsewhere than on Linux, all who open it there would share one place in it: a second reader would get nothing.
    make = tempfile.TemporaryFile if os.path.isdir("/proc/self/fd") else tempfile.NamedTemporaryFile
    file = t.cast(t.IO[str], make("w", encoding="utf-8"))
    file.write(text)
    file.flush()
    return file


def path_of(file: t.IO[str]) -> str:
    """Where a program finds an open file that it was given by `pass_fds`."""
    return file.name if isinstance(file.name, str) else f"/dev/fd/{file.fileno()}"


def output_of(*argv: str, timeout: float = 30) -> str:
    """What a program prints, without spaces around it; empty when it is missing, fails or does not end in time."""
    done = run_program(argv, timeout)
    return done.out.strip() if done.rc == 0 else ""


def _ends_within(process: subprocess.Popen[bytes], seconds: float) -> bool:
    """Whether a process ends. It is not reaped, so that its number stays that of its group."""
    give_up = time.monotonic() + seconds
    while os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
        if time.monotonic() > give_up:
            return False
        time.sleep(0.05)
    return True


def _kill(process: subprocess.Popen[bytes], expired: subprocess.TimeoutExpired) -> Done:
    # The leader and all its children may just have ended.
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGTERM)
        _ends_within(process, GRACE)
        os.killpg(process.pid, signal.SIGKILL)
    try:
        out, err = process.communicate(timeout=1)
        return _ended(None, out, err)
    except subprocess.TimeoutExpired:
        # A child that left the session still holds the pipes: take what came so far.
        return _ended(None, expired.stdout, expired.stderr)
