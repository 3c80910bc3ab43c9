"""The action plugin that gives the module its script."""

from __future__ import annotations

import json
import types
import typing as t
from pathlib import Path

import pytest
from ansible.parsing.dataloader import DataLoader
from ansible_collections.ipu.fabric.plugins.action import fabric_probe

Facts = t.Dict[str, t.Any]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> t.Callable[..., t.Tuple[Facts, Facts]]:
    """The result, and what the module was asked."""

    def call(check: bool = False, **options: t.Any) -> t.Tuple[Facts, Facts]:
        asked: Facts = {}

        def execute(self: t.Any, **arguments: t.Any) -> Facts:
            asked.update(arguments)
            return {"changed": False, "probe": {"probed": True}}

        monkeypatch.setattr(fabric_probe.ActionModule, "_execute_module", execute)
        task = types.SimpleNamespace(args=options, check_mode=check, async_val=0, action="fabric_probe", diff=False)
        loader = DataLoader()
        loader.set_basedir(str(tmp_path))
        nobody: t.Any = None
        connection: t.Any = types.SimpleNamespace(transport="ssh", _shell=types.SimpleNamespace(tmpdir=""))
        action = fabric_probe.ActionModule(task, connection, nobody, loader, nobody, nobody)
        return action.run(task_vars={"x": 1}), asked

    return call


def test_the_module_gets_its_script_and_every_other_option(run: t.Callable[..., t.Tuple[Facts, Facts]]) -> None:
    result, asked = run(plan={"hosts": {}}, script="of somebody else")
    assert result["probe"] == {"probed": True}
    assert asked["module_name"] == "ipu.fabric.fabric_probe"
    assert asked["task_vars"] == {"x": 1}
    assert asked["module_args"]["plan"] == {"hosts": {}}
    assert asked["module_args"]["script"].startswith("#!/bin/sh\n")


def test_what_was_seen_is_kept_in_a_file(run: t.Callable[..., t.Tuple[Facts, Facts]], tmp_path: Path) -> None:
    result, _asked = run(dest="artifacts/probe.json")
    assert "probe" not in result
    assert result["probe_file"] == str(tmp_path / "artifacts/probe.json")
    assert json.loads((tmp_path / "artifacts/probe.json").read_text()) == {"probed": True}


@pytest.mark.parametrize("options", [{"dest": ""}, {"dest": "artifacts/probe.json", "check": True}])
def test_without_a_file(options: Facts, run: t.Callable[..., t.Tuple[Facts, Facts]], tmp_path: Path) -> None:
    result, _asked = run(**options)
    assert result["probe"] == {"probed": True}
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_cannot_be_written(run: t.Callable[..., t.Tuple[Facts, Facts]], tmp_path: Path) -> None:
    (tmp_path / "artifacts").write_text("a file")
    result, _asked = run(dest="artifacts/probe.json")
    assert result["failed"]
    assert "Files could not be written" in result["msg"]
