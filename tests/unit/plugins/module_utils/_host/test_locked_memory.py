"""How much memory services of a host can be allowed to lock: a container may not raise the limit that it was given."""

from __future__ import annotations

import pathlib
import resource
import subprocess
import sys

import pytest
from ansible_collections.ipu.fabric.plugins.module_utils._host import locked_memory

LIMITS = (
    "Limit                     Soft Limit           Hard Limit           Units     \n"
    "Max cpu time              unlimited            unlimited            seconds   \n"
    "Max locked memory         {soft:<20} {hard:<20} bytes     \n"
    "Max address space         unlimited            unlimited            bytes     \n"
)


@pytest.fixture
def root(tmp_path: pathlib.Path) -> pathlib.Path:
    (tmp_path / "proc/1").mkdir(parents=True)
    return tmp_path


@pytest.mark.parametrize(
    ("hard", "user", "raises", "most"),
    [
        ("8388608", 0, False, "8388608"),
        ("8388608", 0, True, "unlimited"),
        ("unlimited", 0, False, "unlimited"),
        ("8388608", 1000, False, ""),  # whether systemd may raise it does not show
        ("unlimited", 1000, False, "unlimited"),
    ],
)
def test_the_most_that_services_get(
    root: pathlib.Path, monkeypatch: pytest.MonkeyPatch, hard: str, user: int, raises: bool, most: str
) -> None:
    (root / "proc/1/limits").write_text(LIMITS.format(soft="8388608", hard=hard))
    monkeypatch.setattr(locked_memory.os, "geteuid", lambda: user)
    monkeypatch.setattr(locked_memory, "may_raise", lambda: raises)
    assert locked_memory.read_locked_memory(str(root)) == most


def test_a_host_that_does_not_tell(root: pathlib.Path) -> None:
    assert locked_memory.read_locked_memory(str(root)) == ""


def test_it_is_tried_and_nothing_is_left_of_that() -> None:
    before = resource.getrlimit(resource.RLIMIT_MEMLOCK)
    locked_memory.may_raise()
    assert resource.getrlimit(resource.RLIMIT_MEMLOCK) == before


def test_a_user_without_the_right_may_not() -> None:
    """In a process of its own: a lower limit and another user stay."""
    script = (
        "import os, resource, sys\n"
        "from ansible_collections.ipu.fabric.plugins.module_utils._host import locked_memory\n"
        "resource.setrlimit(resource.RLIMIT_MEMLOCK, (4096, 4096))\n"
        "os.geteuid() or os.setuid(65534)\n"
        "sys.exit(locked_memory.may_raise())\n"
    )
    done = subprocess.run([sys.executable, "-c", script], env={"PYTHONPATH": ":".join(sys.path)}, check=False)
    assert done.returncode == 0
