"""What a module keeps to itself: in the log of the host, in its result, and in diffs."""

import io
import json
import sys

import pytest
from ansible.module_utils import basic
from ansible_collections.ipu.fabric.plugins.module_utils._common import secrets
from ansible_collections.ipu.fabric.plugins.module_utils._common.result import FabricError, outcome, run_module

MARKER = "planted-4711"
SPEC = {"name": {"type": "str", "default": ""}, "values": {"type": "dict", "default": {}}}
VALUES = {"flag": True, "tag": "1.2", "deep": [{"word": MARKER}], "env": [{"name": "API_TOKEN", "value": "tok-0815"}]}


@pytest.mark.parametrize(
    ("name", "secret"),
    [
        ("password", True), ("adminPassword", True), ("DB_PASSWORD", True), ("apiKey", True), ("client-secret", True),
        ("identity.token", True), ("Authorization", True), ("pass", True), ("credentials", True),
        ("secretName", False), ("tokenTTL", False), ("key", False), ("compass", False), ("image", False), ("", False),
    ],
)  # fmt: skip
def test_names_of_secrets(name, secret):
    assert secrets.is_secret_name(name) is secret


def test_a_diff_says_that_a_secret_changes_and_not_into_what():
    before = {"a": "old", "same": "x", "n": 1, "list": ["u", "v"], "gone": "g", "empty": ""}
    after = {"a": "new", "same": "x", "n": 2, "list": ["u"], "more": "m", "empty": ""}
    assert secrets.hide(before, after, secrets.every_text) == (
        {
            "a": "(not shown, before)", "same": "(not shown)", "n": 1, "list": ["(not shown)", "(not shown, before)"],
            "gone": "(not shown, before)", "empty": "",
        },
        {
            "a": "(not shown, after)", "same": "(not shown)", "n": 2, "list": ["(not shown)"],
            "more": "(not shown, after)", "empty": "",
        },
    )  # fmt: skip


def test_of_objects_only_the_environment_and_what_is_called_a_secret():
    container = {"name": "a", "image": "i", "env": [{"name": "X", "value": MARKER}, {"name": "Y", "valueFrom": {}}]}
    pod = {"spec": {"containers": [container], "nodeName": "w1"}, "password": MARKER}
    shown = secrets.hide_one(pod, secrets.in_objects)
    assert MARKER not in json.dumps(shown)
    assert shown["spec"]["nodeName"] == "w1"
    assert shown["spec"]["containers"][0]["env"] == [
        {"name": "X", "value": "(not shown)"},
        {"name": "Y", "valueFrom": {}},
    ]


@pytest.mark.parametrize(
    "line",
    [
        'authorization = "Basic {}"',
        "auth = '{}'",
        "  password: {}",
        "auth_pass {}",
        "export API_TOKEN={}",
        '"password" = "{}"',
    ],
)
def test_lines_of_a_file(line):
    shown = secrets.hide_lines(f'head = "stays"\n{line.format(MARKER)}\nserver = "stays"\n')
    assert MARKER not in shown
    assert shown.count("stays") == 2
    assert "(not shown)" in shown


def run(monkeypatch, body, **arguments):
    """What a module writes to the log of the host, and prints."""
    logged, printed = [], io.StringIO()
    wrapped = json.dumps({"ANSIBLE_MODULE_ARGS": {**arguments, "_ansible_no_log": False}}).encode()
    monkeypatch.setattr(basic, "_ANSIBLE_ARGS", wrapped)
    monkeypatch.setattr(basic, "_ANSIBLE_PROFILE", "legacy", raising=False)
    monkeypatch.setattr(
        basic.AnsibleModule, "log", lambda self, text, log_args=None: logged.append(f"{text} {log_args}")
    )
    monkeypatch.setattr(sys, "stdout", printed)
    with pytest.raises(SystemExit):
        run_module({name: dict(option) for name, option in SPEC.items()}, body, hidden=("values",))
    return " ".join(logged), json.loads(printed.getvalue())


def test_neither_log_nor_result_have_what_is_hidden(monkeypatch):
    def body(module):
        assert module.params["values"] == VALUES  # the module itself has all of it
        return outcome(*secrets.hide({}, {"values": module.params["values"]}, secrets.every_text), tag="1.2 is true")

    log, result = run(monkeypatch, body, name="a", values=VALUES)
    assert MARKER not in log
    assert "tok-0815" not in log + json.dumps(result)
    assert MARKER not in json.dumps(result)
    assert result["invocation"]["module_args"] == {"name": "a", "values": "VALUE_SPECIFIED_IN_NO_LOG_PARAMETER"}
    assert result["tag"] == "1.2 is true"  # ordinary values are no secrets wherever they occur
    assert result["diff"]["after"]["values"]["flag"] is True


def test_nor_does_an_error_that_repeats_a_secret(monkeypatch):
    def body(module):
        raise FabricError(
            "helm failed.", "here", f"Invalid value: tok-0815 at {module.params['values']['tag']}", "Fix it."
        )

    log, result = run(monkeypatch, body, values=VALUES)
    assert result["failed"]
    assert "tok-0815" not in log + json.dumps(result)
    assert "at 1.2" in result["error"]["seen"]
