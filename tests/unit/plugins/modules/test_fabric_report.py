# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module around the verdict: what it writes, and what it leaves alone."""

from __future__ import annotations

import json
import typing as t
from pathlib import Path

import pytest
from ansible.module_utils import basic
from ansible.module_utils.testing import patch_module_args
from ansible_collections.ipu.fabric.plugins.module_utils._verify.catalog import KINDS
from ansible_collections.ipu.fabric.plugins.modules import fabric_verdict

PROBE = {"probed": False, "reason": "no cluster"}


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> t.Callable[..., t.Dict[str, t.Any]]:
    def call(check: bool = False, **params: t.Any) -> t.Dict[str, t.Any]:
        monkeypatch.setattr(basic, "_ANSIBLE_ARGS", None)
        arguments = {
            "plan": {"cluster": {"endpoint": "cp1:6443"}},
            "probe": PROBE,
            "_ansible_check_mode": check,
            **params,
        }
        with patch_module_args(arguments), pytest.raises(SystemExit):
            fabric_verdict.main()
        return t.cast(t.Dict[str, t.Any], json.loads(capsys.readouterr().out))

    return call


def test_three_reports_are_written_and_that_is_no_change(run: t.Callable[..., t.Any], tmp_path: Path) -> None:
    result = run(artifacts_dir=str(tmp_path / "new"))
    assert sorted(path.name for path in (tmp_path / "new").iterdir()) == ["junit.xml", "report.html", "report.json"]
    assert sorted(result["reports"]) == sorted(str(path) for path in (tmp_path / "new").iterdir())
    assert (result["changed"], result["failed_checks"]) == (False, 0)
    assert result["summary"] == f"0 passed, 0 failed, {len(KINDS)} skipped"
    assert json.loads((tmp_path / "new/report.json").read_text())["cluster"] == "cp1:6443"


@pytest.mark.parametrize("params", [{"check": True}, {"artifacts_dir": ""}])
def test_nothing_is_written(run: t.Callable[..., t.Any], tmp_path: Path, params: t.Dict[str, t.Any]) -> None:
    assert run(**{"artifacts_dir": str(tmp_path / "new"), **params})["reports"] == []
    assert not (tmp_path / "new").exists()


def test_a_place_that_cannot_be_written_is_said(run: t.Callable[..., t.Any], tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    result = run(artifacts_dir=str(tmp_path / "file"))
    assert result["failed"]
    assert result["where"] == str(tmp_path / "file")
    assert "artifacts_dir" in result["next_step"]
