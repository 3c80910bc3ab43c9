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

# Directories of system programs that a user's PATH may lack.
SYSTEM_PATHS = ("/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin")
ASK = 5.0  # seconds between two checks whether a program runs in vain
GRACE = 5.0  # seconds that a program has to clean up after its time-out


class Done(t.NamedTuple):
    """How a program ended. rc is None if it was killed after its time-out, and 127 if there is no such program."""

    rc: t.Optional[int]
    out: str = ""
    err: str = ""

    @property
    def code(self) -> Code:
        """The error code, if it failed."""
        return "timeout" if self.rc is None else "missing-requirement" if self.rc == 127 else "command-failed"


def find_program(name: str) -> str:
    """The program's path; empty if there is none."""
    return shutil.which(name, path=os.pathsep.join([os.environ.get("PATH", ""), *SYSTEM_PATHS])) or ""


def _text(data: t.Optional[bytes]) -> str:
    return (data or b"").decode("utf-8", "replace")


def _ended(rc: t.Optional[int], out: t.Optional[bytes], err: t.Optional[bytes]) -> Done:
    """Output gets parsed and stays as it is; errors are shown and made printable."""
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
    """Run `argv` in its own session, so that its children can be killed with it. `data` is its standard input.

    It is ended early if `in_vain`, checked every few seconds, says that waiting is pointless.
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
            given = None  # sent already
            if in_vain is None or left <= ASK or in_vain():
                return _kill(process, expired)


def nameless_file(text: str) -> t.IO[str]:
    """A file for secrets, which programs read at its path_of(). It has no name, so a kill leaves no file behind."""
    # On other systems than Linux, all readers there would share one file offset: a second one would get nothing.
    make = tempfile.TemporaryFile if os.path.isdir("/proc/self/fd") else tempfile.NamedTemporaryFile
    file = t.cast(t.IO[str], make("w", encoding="utf-8"))
    file.write(text)
    file.flush()
    return file


def path_of(file: t.IO[str]) -> str:
    """The path at which a program finds an open file that it inherits by `pass_fds`."""
    return file.name if isinstance(file.name, str) else f"/dev/fd/{file.fileno()}"


def output_of(*argv: str, timeout: float = 30) -> str:
    """The stripped output of a program; empty if it is missing, fails or does not end in time."""
    done = run_program(argv, timeout)
    return done.out.strip() if done.rc == 0 else ""


def _ends_within(process: subprocess.Popen[bytes], seconds: float) -> bool:
    """Whether a process ends. It is not reaped, so that its process group keeps its ID."""
    give_up = time.monotonic() + seconds
    while os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
        if time.monotonic() > give_up:
            return False
        time.sleep(0.05)
    return True


def _kill(process: subprocess.Popen[bytes], expired: subprocess.TimeoutExpired) -> Done:
    # The leader and all its children may have just ended.
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGTERM)
        _ends_within(process, GRACE)
        os.killpg(process.pid, signal.SIGKILL)
    try:
        out, err = process.communicate(timeout=1)
        return _ended(None, out, err)
    except subprocess.TimeoutExpired:
        # A child that left the session still holds the pipes: use what has arrived.
        return _ended(None, expired.stdout, expired.stderr)
