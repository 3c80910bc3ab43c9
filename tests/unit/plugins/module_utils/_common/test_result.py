"""However a module fails, it says so to a machine in one form."""

from __future__ import annotations

import json
import typing as t

import pytest
from ansible.module_utils.testing import patch_module_args
from ansible_collections.ipu.fabric.plugins.module_utils._common.command import Done
from ansible_collections.ipu.fabric.plugins.module_utils._common.result import FabricError, printed_by, run_module
from ansible_collections.ipu.fabric.plugins.module_utils._model.failure import KINDS, Code, Failure

SPEC: t.Dict[str, t.Any] = {"size": {"type": "int"}, "token": {"type": "str", "no_log": True}}


def refuse(_module: t.Any) -> t.Dict[str, t.Any]:
    raise FabricError("It was asked for.", "here", "nothing", "Ask again.", code="timeout", facts={"waited": 3})


def retry(_module: t.Any) -> t.Dict[str, t.Any]:
    raise FabricError("It arrived.", "here", "half of it", "Ask again.", code="wrong-content", transient=True)


def unnamed(_module: t.Any) -> t.Dict[str, t.Any]:
    raise FabricError("It was asked for.", "here", "nothing", "Ask again.")


def bare(module: t.Any) -> t.Dict[str, t.Any]:
    module.fail_json(msg="no", found=[1])
    return {}


def repeats(module: t.Any) -> t.Dict[str, t.Any]:
    raise FabricError("It was asked for.", "here", f"a bad token {module.params['token']}", "Ask again.")


@pytest.mark.parametrize(
    ("body", "options", "libraries", "error", "more"),
    [
        (refuse, {}, (), {"code": "timeout", "where": "here", "seen": "nothing", "transient": True}, {"waited": 3}),
        (retry, {}, (), {"code": "wrong-content", "seen": "half of it", "transient": True}, {}),
        (unnamed, {}, (), {"code": "failed", "next_step": "Ask again.", "transient": False}, {}),
        (bare, {}, (), {"code": "failed", "what": "no", "seen": ""}, {"msg": "no", "found": [1]}),
        (bare, {"size": "many"}, (), {"code": "invalid-input", "transient": False}, {}),
        (bare, {"sise": 1}, (), {"code": "invalid-input"}, {}),
        (bare, {}, ("no_such_library",), {"code": "missing-requirement", "transient": False}, {}),
        (repeats, {"token": "s3cret-value"}, (), {"seen": "a bad token ********"}, {}),
    ],
)
def test_a_module_that_fails(
    capsys: pytest.CaptureFixture[str],
    body: t.Callable[[t.Any], t.Dict[str, t.Any]],
    options: t.Dict[str, t.Any],
    libraries: t.Tuple[str, ...],
    error: t.Dict[str, t.Any],
    more: t.Dict[str, t.Any],
) -> None:
    with patch_module_args(options), pytest.raises(SystemExit):
        run_module(SPEC, body, libraries)
    result = json.loads(capsys.readouterr().out)
    assert result["failed"] is True
    assert set(result["error"]) == set(Failure.__annotations__)
    assert error.items() <= result["error"].items()
    assert more.items() <= result.items()
    assert result["msg"].startswith(result["error"]["what"])


@pytest.mark.parametrize(("rc", "code"), [(None, "timeout"), (127, "missing-requirement"), (1, "command-failed")])
def test_the_code_of_a_program_that_failed(rc: t.Optional[int], code: str) -> None:
    assert Done(rc).code == code


def test_every_code_has_a_meaning() -> None:
    assert sorted(KINDS) == sorted(t.get_args(Code)) == list(t.get_args(Code))


@pytest.mark.parametrize(
    ("done", "seen", "code"),
    [
        (Done(1, "out", " no room \n"), "no room", "command-failed"),
        (Done(1, "out\n"), "out", "command-failed"),
        (Done(3), "rc 3", "command-failed"),
        (Done(127, "", "ip: not found"), "ip: not found", "missing-requirement"),
        (Done(None), "timed out after 60 s", "timeout"),
        (Done(None, "", "waiting"), "timed out after 60 s: waiting", "timeout"),
        (Done(1, "", "a" * 900 + "b"), "a" * 799 + "b", "command-failed"),
    ],
)
def test_a_program_that_has_to_succeed(done: Done, seen: str, code: Code) -> None:
    with pytest.raises(FabricError) as caught:
        printed_by(done, 60, "It failed.", "here", "Run again.")
    assert (caught.value.seen, caught.value.code) == (seen, code)
    assert printed_by(Done(0, "all of it\n"), 60, "It failed.", "here", "Run again.") == "all of it\n"
