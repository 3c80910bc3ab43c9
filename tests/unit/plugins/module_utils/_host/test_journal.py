"""The journal of a host, by a stand-in for journalctl."""

from __future__ import annotations

import os
import typing as t
from pathlib import Path

import pytest
from ansible_collections.ipu.fabric.plugins.module_utils._common.result import FabricError
from ansible_collections.ipu.fabric.plugins.module_utils._host.journal import both_ends, read_journal

SCRIPT = """#!/bin/sh
case "$1" in
  --unit=kubelet) echo "token=hunter22 $2"; printf '%090d' 0 ;;
  --unit=broken) echo "no such journal" >&2; exit 1 ;;
esac
"""


@pytest.fixture
def read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> t.Callable[..., t.Any]:
    (tmp_path / "journalctl").write_text(SCRIPT)
    (tmp_path / "journalctl").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)

    def call(*units: str, size: int = 200) -> t.Any:
        return read_journal(units, 7, size)

    return call


def test_last_lines_without_secrets(read: t.Callable[..., t.Any]) -> None:
    assert read("kubelet", "containerd") == {"kubelet": f"token=(not shown) --lines=7\n{'0' * 90}"}
    assert read("kubelet", size=5) == {"kubelet": "00000"}


def test_a_journal_that_can_not_be_read(read: t.Callable[..., t.Any]) -> None:
    with pytest.raises(FabricError, match="no such journal"):
        read("broken")


@pytest.mark.parametrize("length", [10, 399, 400, 401, 900])
def test_a_long_line_keeps_what_failed_and_why(length: int) -> None:
    line = f"failed {'x' * (length - 11)} EOF"
    told = both_ends(line)
    assert len(told) <= 400
    assert told.startswith("failed")
    assert told.endswith("EOF")
    assert (told == line) == (length <= 400)
