"""Paths, messages, commands, locks and the store of built things."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from . import progress

SOURCE = Path(__file__).resolve().parents[1]
_CACHES = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
CACHE = Path(os.environ.get("IPU_FABRIC_CACHE") or _CACHES / "ipu-fabric")
STORE = CACHE / "store"


class ProblemError(Exception):
    """A problem for a person to solve: the message says what is wrong and what to do next."""


def say(text: str) -> None:
    progress.show(f"testbed: {text}")


@contextmanager
def step(text: str) -> Iterator[None]:
    """Print what begins now and, when it is done, how long it took."""
    say(f"{text} ...")
    start = time.monotonic()
    with progress.work(text):
        yield
    say(f"{text}: {time.monotonic() - start:.1f} s")


def run(*command: object, check: bool = True, **options: Any) -> subprocess.CompletedProcess[str]:
    """Run a command quietly; on failure, show the command and the end of its output."""
    words = [str(word) for word in command]
    options.setdefault("stdout", subprocess.PIPE)
    options.setdefault("stderr", subprocess.STDOUT if options["stdout"] is subprocess.PIPE else None)
    done: subprocess.CompletedProcess[str] = subprocess.run(words, text=True, check=False, **options)
    if check and done.returncode:
        tail = "\n".join((done.stdout or "").splitlines()[-25:])
        raise ProblemError(f"`{' '.join(words)}` ended with {done.returncode}:\n{tail}")
    return done


def output(*command: object, **options: Any) -> str:
    """The standard output of a command."""
    return run(*command, stderr=subprocess.DEVNULL, **options).stdout.strip()


@contextmanager
def lock(name: str, shared: bool = False) -> Iterator[None]:
    """Hold a lock, exclusively or shared. It is released with the process, however that ends."""
    places = CACHE / "locks"
    places.mkdir(parents=True, exist_ok=True)
    kind = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
    with (places / name).open("w") as handle:
        try:
            fcntl.flock(handle, kind | fcntl.LOCK_NB)
        except BlockingIOError:
            say(f"waiting for another process that holds the lock `{name}`")
            fcntl.flock(handle, kind)
        yield


def digest(*parts: object) -> str:
    """A short name for these inputs. For a path, its content counts; for a directory, everything below it."""
    total = hashlib.sha256()
    for part in parts:
        if not isinstance(part, Path):
            total.update(json.dumps(part, sort_keys=True).encode() + b"\0")
            continue
        for file in [part] if part.is_file() else sorted(path for path in part.rglob("*") if path.is_file()):
            content = file.read_bytes()
            name = file.relative_to(part.parent)
            total.update(f"{name}\0{file.stat().st_mode & 0o111}\0{len(content)}\0".encode() + content)
    return total.hexdigest()[:12]


def is_stored(name: str, key: str) -> bool:
    """Whether `stored` has built it already."""
    return (STORE / f"{name}-{key}").exists()


def stored(name: str, key: str, make: Callable[[Path], None]) -> Path:
    """The directory STORE/name-key. `make` fills a temporary directory, which is then renamed: so everything in the
    store is complete, and the next build removes what a killed one left."""
    place = STORE / f"{name}-{key}"
    if place.exists():
        return place
    STORE.mkdir(parents=True, exist_ok=True)
    with lock(f"build-{name}"):
        if not place.exists():
            for left in STORE.glob(f".{name}.*"):
                shutil.rmtree(left)
            scratch = Path(tempfile.mkdtemp(prefix=f".{name}.", dir=STORE))
            scratch.chmod(0o755)
            with step(f"build {name}"):
                make(scratch)
            scratch.rename(place)
    return place
