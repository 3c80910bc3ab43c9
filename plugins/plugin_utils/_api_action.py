# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Run modules that only talk to the Kubernetes API inside Ansible's own process if they are for the controller.

A module's process takes a second to start and to import the Kubernetes client, for an answer that takes milliseconds.
Ansible loads actions in its main process, so the processes of its tasks find the client already imported. A module for
another host, user or Python runs like any other module.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import sys
import typing as t
import warnings

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.common.arg_spec import ArgumentSpecValidator
from ansible.module_utils.common.parameters import remove_values
from ansible.plugins.action import ActionBase
from ansible_collections.kubernetes.core.plugins.module_utils.k8s import client as core_client

from ..module_utils._common.result import FabricError, conceal, invocation, uncensor
from ..module_utils._common.signals import termination_as_error
from ..module_utils._kube.client import HAS_KUBERNETES, forget_keys
from ..module_utils._kube.drift import drift_of
from ._controller_action import Result, failure, lacking, plain, plain_result

Body = t.Callable[[AnsibleModule], Result]
MODULES = "ansible_collections.ipu.fabric.plugins.modules."


def forget_clients() -> None:
    """Forget clients and their key files, which an interpreter removes at exit but a forked process does not.

    kubernetes.core would hand out the same client for the next item of a loop.
    """
    core_client._pool.clear()
    forget_keys()
    importlib.import_module("kubernetes.config.kube_config")._cleanup_temp_files()


class ModuleError(Exception):
    """What fail_json was called with."""

    def __init__(self, result: Result) -> None:
        super().__init__(result["msg"])
        self.result = result


class ControllerModule(AnsibleModule):
    """The parts of AnsibleModule that the bodies of our modules use, without standard input and exit."""

    def __init__(self, params: Result, check_mode: bool, no_log_values: t.Iterable[str]) -> None:
        self.params, self.check_mode, self.no_log_values = params, check_mode, set(no_log_values)
        self.warnings: t.List[str] = []

    def warn(self, warning: str, *_args: t.Any, **_options: t.Any) -> None:
        self.warnings.append(warning)

    def log(self, msg: str, log_args: t.Any = None) -> None:
        """Log nothing: the log of a host is for what is done to that host."""

    def fail_json(self, msg: str, *_args: t.Any, **more: t.Any) -> t.NoReturn:
        raise ModuleError({**plain_result(msg, "failed"), **more})


@contextlib.contextmanager
def process_state(environment: t.Mapping[str, str]) -> t.Iterator[None]:
    """Set up and clean up what a process of its own would have: environment, warnings, signals, and files with keys."""
    before = dict(os.environ)
    os.environ.update(environment)
    try:
        with warnings.catch_warnings(), termination_as_error():
            warnings.simplefilter("ignore")
            yield
    finally:
        os.environ.clear()
        os.environ.update(before)
        forget_clients()


class ApiAction(ActionBase):
    """Run the module that the task names. FabricError and fail_json end as they do in a module."""

    TRANSFERS_FILES = False
    _supports_async = True

    def options(self) -> Result:
        """The options that the task gives the module."""
        return dict(self._task.args)

    def is_for_this_process(self, task_vars: Result) -> bool:
        """Whether the module would have been run by this user, on this machine, with this Python."""
        if self._connection.transport != "local" or self._connection.become or self._task.async_val:
            return False
        host = task_vars.get("ansible_delegated_vars", {}).get(self._task.delegate_to) or task_vars
        python = str(host.get("ansible_python_interpreter") or "auto")
        return (python.startswith("auto") or python == sys.executable) and HAS_KUBERNETES

    def run(self, tmp: t.Any = None, task_vars: t.Optional[Result] = None) -> Result:
        result: Result = super().run(tmp, task_vars)
        name, known = self._task.action.rpartition(".")[2], task_vars or {}
        result.update(self.ended(name, known))
        # The playbook drift sets _fabric_drift for plays in check mode. Results of other plays are not kept.
        drift = drift_of(name, plain(self.options()), result) if known.get("_fabric_drift") else []
        if drift:
            result["ansible_facts"] = {
                "_fabric_drift_found": plain(known.get("ansible_facts", {}).get("_fabric_drift_found", [])) + drift
            }
        return result

    def ended(self, name: str, task_vars: Result) -> Result:
        """What the module returns, wherever it runs."""
        if not self.is_for_this_process(task_vars):
            there: Result = self._execute_module(
                module_name=f"ipu.fabric.{name}", module_args=self.options(), task_vars=task_vars
            )
            return there
        environment: t.Dict[str, str] = {}
        self._compute_environment_string(environment)
        with process_state(environment):
            ended: t.List[Result] = []

            def run_here(
                spec: Result, body: Body, libraries: t.Sequence[str] = (), hidden: t.Sequence[str] = (), **rules: t.Any
            ) -> None:
                ended.append(self.run_body(spec, body, libraries, hidden, rules))

            importlib.import_module(MODULES + name).main(run_here)
        return ended[0]

    def run_body(
        self, spec: Result, body: Body, libraries: t.Sequence[str], hidden: t.Sequence[str], rules: Result
    ) -> Result:
        """Like run_module: the result of a body, or the failure that it ended with."""
        lack = lacking(libraries)
        if lack:
            return lack
        valid = ArgumentSpecValidator(conceal(spec, hidden), **rules).validate(plain(self.options()))
        if valid.error_messages:
            return plain_result("; ".join(valid.error_messages), "invalid-input")
        module = ControllerModule(valid.validated_parameters, bool(self._task.check_mode), valid._no_log_values)
        uncensor(module, hidden)
        try:
            ended = body(module)
        except FabricError as error:
            ended = failure(error)
        except ModuleError as ended_early:
            ended = ended_early.result
        ended = {**ended, **invocation(module, hidden)}
        if module.warnings:
            ended["warnings"] = module.warnings
        return t.cast(Result, remove_values(json.loads(json.dumps(ended, default=list)), module.no_log_values))
