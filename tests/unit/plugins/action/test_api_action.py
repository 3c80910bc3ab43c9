"""Modules of the Kubernetes API within Ansible's process: where they run, and that they end as modules do."""

from __future__ import annotations

import os
import sys
import types
import typing as t
from pathlib import Path

import pytest
from ansible_collections.ipu.fabric.plugins.module_utils._common.result import FabricError, outcome
from ansible_collections.ipu.fabric.plugins.plugin_utils import _api_action
from ansible_collections.ipu.fabric.tests.unit.fixtures.paths import ROOT
from ansible_collections.kubernetes.core.plugins.module_utils.k8s import client
from kubernetes.config import kube_config

Result = t.Dict[str, t.Any]
SPEC: Result = {
    "name": {"type": "str", "required": True},
    "size": {"type": "int", "default": 3},
    "token": {"type": "str", "no_log": True},
    "kubeconfig": {"type": "raw", "no_log": True},
    "objects": {"type": "list", "elements": "dict", "default": []},
}


class Task:
    """A task of the module node_labels with a body of the test."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, body: t.Callable[[t.Any], Result], **options: t.Any) -> None:
        def main(run: t.Callable[..., None]) -> None:
            run(dict(SPEC), body, libraries=("json",), hidden=("objects",))

        module = types.SimpleNamespace(main=main)
        monkeypatch.setitem(sys.modules, _api_action.MODULES + "node_labels", t.cast(types.ModuleType, module))
        monkeypatch.setattr(_api_action.ApiAction, "_execute_module", lambda _self, **asked: {"asked": asked})
        self.task = types.SimpleNamespace(
            args=options, action="ipu.fabric.node_labels", check_mode=True, async_val=0, delegate_to=None,
            environment=[{"HTTPS_PROXY": "http://proxy:8080"}], diff=False,
        )  # fmt: skip
        shell = types.SimpleNamespace(tmpdir="", env_prefix=lambda **_variables: "")
        self.connection = types.SimpleNamespace(transport="local", become=None, _shell=shell)

    def run(self, **task_vars: t.Any) -> Result:
        nobody: t.Any = None
        templar: t.Any = types.SimpleNamespace(template=lambda value: value)
        action = _api_action.ApiAction(self.task, self.connection, nobody, nobody, templar, nobody)
        return action.run(task_vars={"x": 1, **task_vars})


def environment(_module: t.Any) -> Result:
    return {"changed": False, "proxy": os.environ.get("HTTPS_PROXY"), "process": os.getpid()}


@pytest.mark.parametrize("python", [{}, {"ansible_python_interpreter": "auto_silent"}])
def test_a_module_for_the_controller_runs_here_with_the_environment_of_its_task(
    monkeypatch: pytest.MonkeyPatch, python: Result
) -> None:
    monkeypatch.delenv("HTTPS_PROXY", raising=False)
    result = Task(monkeypatch, environment, name="x").run(**python)
    assert (result["proxy"], result["process"]) == ("http://proxy:8080", os.getpid())
    assert "HTTPS_PROXY" not in os.environ


def test_the_python_that_runs_ansible_is_the_one_of_its_modules(monkeypatch: pytest.MonkeyPatch) -> None:
    task = Task(monkeypatch, environment, name="x")
    task.task.delegate_to = "localhost"
    hosts = {"localhost": {"ansible_python_interpreter": sys.executable}}
    result = task.run(ansible_python_interpreter="/usr/bin/other", ansible_delegated_vars=hosts)
    assert result["process"] == os.getpid()


def labels(_module: t.Any) -> Result:
    return outcome({"w1": {"labels": {}}}, {"w1": {"labels": {"a": "b"}}}, nodes=["w1"])


W1 = {"object": "Node w1", "change": "change", "ours": True, "fields": ["labels a: absent now, b planned"]}


@pytest.mark.parametrize("elsewhere", [False, True])
def test_drift_is_added_to_what_earlier_tasks_found(monkeypatch: pytest.MonkeyPatch, elsewhere: bool) -> None:
    task, earlier = Task(monkeypatch, labels, name="x"), {**W1, "object": "Node w0"}
    if elsewhere:
        task.connection.transport = "ssh"
        monkeypatch.setattr(_api_action.ApiAction, "_execute_module", lambda _self, **_asked: labels(None))
    result = task.run(_fabric_drift=True, ansible_facts={"_fabric_drift_found": [earlier]})
    assert result["ansible_facts"] == {"_fabric_drift_found": [earlier, W1]}
    assert result["nodes"] == ["w1"]


@pytest.mark.parametrize("task_vars", [{}, {"ansible_facts": {"_fabric_drift_found": [W1]}}])
def test_other_playbooks_keep_no_drift(monkeypatch: pytest.MonkeyPatch, task_vars: Result) -> None:
    assert "ansible_facts" not in Task(monkeypatch, labels, name="x").run(**task_vars)


@pytest.mark.parametrize("what", ["ssh", "become", "async", "python"])
def test_a_module_for_somebody_else_is_run_as_a_module(monkeypatch: pytest.MonkeyPatch, what: str) -> None:
    task, variables = Task(monkeypatch, environment, name="x"), {}
    if what == "ssh":
        task.connection.transport = "ssh"
    elif what == "become":
        task.connection.become = object()  # type: ignore[assignment]  # nothing of it is used
    elif what == "async":
        task.task.async_val = 60
    else:
        variables = {"ansible_python_interpreter": "/opt/other/bin/python"}
    asked = task.run(**variables)["asked"]
    assert (asked["module_name"], asked["module_args"]) == ("ipu.fabric.node_labels", {"name": "x"})


def test_options_are_those_of_the_module(monkeypatch: pytest.MonkeyPatch) -> None:
    def body(module: t.Any) -> Result:
        module.warn("careful")
        return {"changed": False, "seen": [module.params["name"], module.params["size"], module.check_mode], "set": {1}}

    result = Task(monkeypatch, body, name="x", size="5").run()
    assert (result["seen"], result["set"], result["warnings"]) == (["x", 5, True], [1], ["careful"])
    wrong = Task(monkeypatch, body, size="many").run()
    assert (wrong["failed"], wrong["error"]["code"]) == (True, "invalid-input")
    assert "name" in wrong["msg"]


def test_failures_have_the_parts_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_module: t.Any) -> Result:
        raise FabricError("What.", "where", "seen", "next", code="busy", facts={"found": [2]})

    result = Task(monkeypatch, refuse, name="x").run()
    error = {"code": "busy", "what": "What.", "where": "where", "seen": "seen", "next_step": "next", "transient": True}
    assert (result["failed"], result["error"], result["found"]) == (True, error, [2])

    def fail(module: t.Any) -> Result:
        module.fail_json(msg="no", found=[1])
        return {}

    failed = Task(monkeypatch, fail, name="x").run()
    assert (failed["failed"], failed["msg"], failed["found"]) == (True, "no", [1])
    assert (failed["error"]["code"], failed["error"]["what"]) == ("failed", "no")


def test_secrets_are_hidden_and_paths_are_not(monkeypatch: pytest.MonkeyPatch) -> None:
    def body(module: t.Any) -> Result:
        return {"changed": False, "text": f"{module.params['token']} {module.params['kubeconfig']}"}

    result = Task(monkeypatch, body, name="x", token="s3cret-value", kubeconfig="/etc/admin.conf").run()
    assert result["text"] == "******** /etc/admin.conf"


def test_the_next_item_of_a_loop_has_its_own_defaults(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ansible puts the defaults of suboptions into the default of the specification, and takes no dict for a secret."""
    deep = {"type": "dict", "default": {}, "options": {"url": {"type": "str", "default": "none"}}}
    monkeypatch.setitem(SPEC, "objects", deep)
    for _item in range(2):
        assert not Task(monkeypatch, environment, name="n").run().get("failed")
    assert deep["default"] == {}


def test_no_key_stays_in_a_file(monkeypatch: pytest.MonkeyPatch) -> None:
    files = []

    def body(_module: t.Any) -> Result:
        files.append(Path(kube_config._create_temp_file_with_content("a client's key")))
        assert files[0].exists()
        raise FabricError("What.", "where", "seen", "next")

    assert Task(monkeypatch, body, name="x").run()["failed"]
    assert not files[0].exists()


def test_the_next_item_of_a_loop_has_its_own_client(monkeypatch: pytest.MonkeyPatch) -> None:
    """One process takes all items, and kubernetes.core would hand out the client of the first, whose files are gone."""

    def body(_module: t.Any) -> Result:
        client._pool["digest of the options"] = "a client"
        return {"changed": False}

    Task(monkeypatch, body, name="x").run()
    assert client._pool == {}


def test_every_module_of_the_api_has_this_action() -> None:
    actions, modules = ROOT / "plugins/action", ROOT / "plugins/modules"
    sources = {path.stem: path.read_text(encoding="utf-8") for path in modules.glob("*.py")}
    of_api = {name for name, source in sources.items() if "_kube.client import" in source}
    linked = {path.stem for path in actions.glob("*.py") if path.is_symlink()}
    assert linked | {"kube_apply", "fabric_probe"} == of_api
    assert {(actions / f"{name}.py").resolve().name for name in linked} == {"kube_apply.py"}
    for name in of_api:
        assert "def main(run: Runner = run_module) -> None:" in sources[name]
