# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Files of the plan: written whole, only where they differ, never in check mode."""

from __future__ import annotations

import json
import os
import shutil
import types

import pytest
from ansible_collections.ipu.fabric.plugins.module_utils._common.result import FabricError
from ansible_collections.ipu.fabric.plugins.modules import fabric_plan

PLAN = {"schema": 1, "hosts": {}, "findings": []}


def module(folder, check_mode=False):
    return types.SimpleNamespace(
        params={"artifacts_dir": str(folder)},
        check_mode=check_mode,
        tmpdir=str(folder.parent),
        atomic_move=shutil.move,
    )


def test_written_once(tmp_path):
    folder = tmp_path / "site" / "artifacts"
    folder.parent.mkdir()
    first = fabric_plan.keep(module(folder), PLAN, {})
    assert first["changed"]
    assert first["diff"] == {"before": None, "after": {"schema": 1, "hosts": {}}}
    assert json.loads((folder / "plan.json").read_text()) == PLAN
    assert json.loads((folder / "observations.json").read_text()) == {}
    assert "<html" in (folder / "plan.html").read_text()
    assert os.stat(folder / "plan.json").st_mode & 0o777 == 0o644
    assert not fabric_plan.keep(module(folder), PLAN, {})["changed"]


def test_findings_alone_are_no_change(tmp_path):
    folder = tmp_path / "artifacts"
    fabric_plan.keep(module(folder), PLAN, {})
    found = {"level": "warning", "check": "swap", "hosts": [], "what": "Swap is on.", "seen": "", "next": ""}
    assert not fabric_plan.keep(module(folder), {**PLAN, "findings": [found]}, {})["changed"]
    assert "Swap is on." in (folder / "plan.html").read_text()


def test_what_is_no_plan_is_written_anew(tmp_path):
    (tmp_path / "plan.json").write_text("[]")
    assert fabric_plan.keep(module(tmp_path), PLAN, {})["changed"]


def test_check_mode_writes_nothing(tmp_path):
    folder = tmp_path / "artifacts"
    assert fabric_plan.keep(module(folder, check_mode=True), PLAN, {})["changed"]
    assert not folder.exists()


def test_a_file_in_the_way(tmp_path):
    (tmp_path / "artifacts").write_text("")
    with pytest.raises(FabricError, match="fabric_artifacts_dir"):
        fabric_plan.keep(module(tmp_path / "artifacts"), PLAN, {})


def test_resolve_vipu(monkeypatch):
    monkeypatch.setattr(
        fabric_plan.socket, "getaddrinfo", lambda name, *_rest, **_more: [(0, 0, 0, "", ("10.5.0.20", 0))]
    )
    assert fabric_plan.resolve_vipu(["vipu:8090", "10.5.0.21", {"host": "b"}, "a b"]) == {
        "vipu": "10.5.0.20",
        "b": "10.5.0.20",
    }
