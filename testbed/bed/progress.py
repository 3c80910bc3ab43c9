"""Progress of running work: in a terminal, a line that is rewritten each second; in a log, a line each 30 seconds."""

from __future__ import annotations

import os
import re
import sys
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache

EVERY = 30.0  # seconds between lines in a log
TICK = 1.0


@dataclass
class Work:
    name: str
    begun: float = field(default_factory=time.monotonic)
    thread: int = field(default_factory=threading.get_ident)
    compiled: int = 0
    packages: int = 0  # of its programs; those compiled by an earlier build are not compiled again

    def read(self, line: str) -> None:
        """Count a line of `go build -v`: it prints one per package, which contains only the package's path."""
        self.compiled += bool(re.fullmatch(r"[\w.~/-]+", line.strip()))

    def says(self, now: float) -> str:
        took = round(now - self.begun)
        said = f"{self.name} {took} s" if took < 120 else f"{self.name} {took // 60} min {took % 60:02} s"
        if not self.compiled:
            return said
        most = f" of {self.packages}" if self.packages >= self.compiled else ""
        return f"{said}, compiled {self.compiled}{most} packages"


def line(works: Iterable[Work], now: float) -> str:
    return "testbed: " + "; ".join(work.says(now) for work in works)


_works: list[Work] = []
_lock = threading.Lock()
_drawn = False


def _clear() -> None:
    global _drawn
    if _drawn:
        sys.stderr.write("\r\x1b[K")
        _drawn = False


def show(text: str) -> None:
    """Print a permanent line."""
    with _lock:
        _clear()
        print(text, file=sys.stderr, flush=True)


def _tick(now: float, told: float) -> float:
    """Show the progress; returns when a log last got a line."""
    global _drawn
    with _lock:
        if not _works:
            return now
        text = line(_works, now)
        if sys.stderr.isatty():
            _clear()
            columns = os.get_terminal_size(sys.stderr.fileno()).columns or 80
            sys.stderr.write(text[: columns - 1])
            sys.stderr.flush()
            _drawn = True
        elif now - told >= EVERY:
            print(text, file=sys.stderr, flush=True)
            return now
    return told


def _watch() -> None:
    told = time.monotonic()
    while True:
        time.sleep(TICK)
        told = _tick(time.monotonic(), told) if _works else time.monotonic()


@cache
def _watcher() -> None:
    """Start the thread with the first work, and only once."""
    threading.Thread(target=_watch, daemon=True).start()


@contextmanager
def work(name: str) -> Iterator[None]:
    """Show this work as running until it ends."""
    mine = Work(name)
    with _lock:
        _works.append(mine)
    _watcher()
    try:
        yield
    finally:
        with _lock:
            _works.remove(mine)
            _clear()


def current() -> Work:
    """The present work of this thread."""
    mine = [one for one in _works if one.thread == threading.get_ident()]
    return mine[-1] if mine else Work("")
