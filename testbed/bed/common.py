"""Paths, messages, commands, locks and the store of built things."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[1]
_CACHES = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
CACHE = Path(os.environ.get("IPU_FABRIC_CACHE") or _CACHES / "ipu-fabric")
STORE = CACHE / "store"


class Problem(Exception):
    """Something a person has to look at: the message says what, and what to do next."""


def say(text: str) -> None:
    print(f"testbed: {text}", file=sys.stderr, flush=True)


@contextmanager
def step(text: str) -> Iterator[None]:
    """Say what begins now and, when it is done, how long it took."""
    say(f"{text} ...")
    start = time.monotonic()
    yield
    say(f"{text}: {time.monotonic() - start:.1f} s")


def run(*command: object, check: bool = True, **options) -> subprocess.CompletedProcess:
    """Run a command quietly; a failure shows the command and the end of what it said."""
    words = [str(word) for word in command]
    options.setdefault("stdout", subprocess.PIPE)
    options.setdefault("stderr", subprocess.STDOUT if options["stdout"] is subprocess.PIPE else None)
    done = subprocess.run(words, text=True, check=False, **options)
    if check and done.returncode:
        tail = "\n".join((done.stdout or "").splitlines()[-25:])
        raise Problem(f"`{' '.join(words)}` ended with {done.returncode}:\n{tail}")
    return done


def output(*command: object, **options) -> str:
    """What a command prints, without its complaints."""
    return run(*command, stderr=subprocess.DEVNULL, **options).stdout.strip()


@contextmanager
def lock(name: str) -> Iterator[None]:
    """One process at a time; the lock goes with the process, however that ends."""
    CACHE.mkdir(parents=True, exist_ok=True)
    with (CACHE / f"{name}.lock").open("w") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say(f"waiting for another process that holds the lock `{name}`")
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def digest(*parts: object) -> str:
    """A short name for these inputs. A path counts with its content, a directory with everything below it."""
    total = hashlib.sha256()
    for part in parts:
        files = [part] if not isinstance(part, Path) or part.is_file() else sorted(p for p in part.rglob("*") if p.is_file())
        for file in files:
            if isinstance(file, Path):
                content = file.read_bytes()
                name = str(file.relative_to(part)) if file != part else file.name
                total.update(f"{name}\0{file.stat().st_mode & 0o111}\0{len(content)}\0".encode() + content)
            else:
                total.update(json.dumps(file, sort_keys=True).encode() + b"\0")
    return total.hexdigest()[:12]


def stored(name: str, key: str, make: Callable[[Path], None]) -> Path:
    """The directory STORE/name-key. `make` fills a temporary one, which then gets its name in one step: what is
    in the store is whole."""
    place = STORE / f"{name}-{key}"
    if not place.exists():
        STORE.mkdir(parents=True, exist_ok=True)
        scratch = Path(tempfile.mkdtemp(prefix=f".{name}-", dir=STORE))
        scratch.chmod(0o755)
        try:
            with step(f"build {name}"):
                make(scratch)
            scratch.rename(place)
        finally:
            shutil.rmtree(scratch, ignore_errors=True)
    return place


def sweep() -> None:
    """Remove what a killed build left behind. Only for a caller that holds the build lock."""
    for scratch in STORE.glob(".*-*"):
        shutil.rmtree(scratch, ignore_errors=True)
