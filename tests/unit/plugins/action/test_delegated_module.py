"""How delegated_module itself fails. What it delegates is in tests/unit/playbooks/test_limit.py."""

from __future__ import annotations

import types
import typing as t

import pytest
from ansible_collections.ipu.fabric.plugins.action import delegated_module


@pytest.mark.parametrize(("options", "named"), [({"hosts": {}}, "module"), ({"module": "x", "hosts": "w1"}, "hosts")])
def test_options_are_checked_before_anybody_is_asked(options: t.Dict[str, t.Any], named: str) -> None:
    task = types.SimpleNamespace(
        args=options, check_mode=False, async_val=0, action="ipu.fabric.delegated_module", diff=False
    )
    nobody: t.Any = None
    connection: t.Any = types.SimpleNamespace(_shell=types.SimpleNamespace(tmpdir=None))
    result = delegated_module.ActionModule(task, connection, nobody, nobody, nobody, nobody).run(task_vars={})
    assert (result["failed"], result["error"]["code"]) == (True, "invalid-input")
    assert named in result["msg"]


def test_a_host_whose_process_ended_has_an_error_too() -> None:
    assert delegated_module.NO_ANSWER["failed"]
    assert delegated_module.NO_ANSWER["error"]["code"] == "failed"
