# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The action plugin that gives the module its script."""

from __future__ import annotations

import types
import typing as t

import pytest
from ansible_collections.ipu.fabric.plugins.action import fabric_probe


def test_the_module_gets_its_script_and_every_other_option(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: t.Dict[str, t.Any] = {}

    def execute(self: t.Any, **arguments: t.Any) -> t.Dict[str, t.Any]:
        asked.update(arguments)
        return {"changed": False, "probe": {"probed": True}}

    monkeypatch.setattr(fabric_probe.ActionModule, "_execute_module", execute)
    options = {"plan": {"hosts": {}}, "script": "of somebody else"}
    task = types.SimpleNamespace(args=options, check_mode=False, async_val=0, action="fabric_probe", diff=False)
    nobody: t.Any = None
    connection: t.Any = types.SimpleNamespace(transport="ssh", _shell=types.SimpleNamespace(tmpdir=""))
    result = fabric_probe.ActionModule(task, connection, nobody, nobody, nobody, nobody).run(task_vars={"x": 1})
    assert result["probe"] == {"probed": True}
    assert asked["module_name"] == "ipu.fabric.fabric_probe"
    assert asked["task_vars"] == {"x": 1}
    assert asked["module_args"]["plan"] == {"hosts": {}}
    assert asked["module_args"]["script"].startswith("#!/bin/sh\n")
    assert options["script"] == "of somebody else"
