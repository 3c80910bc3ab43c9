# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Delegate a module to many hosts at a time. Ansible itself takes the items of a loop one after another.

Each process takes a share of the hosts, and runs Ansible's own executor for a copy of the task that is delegated to one
of them, so connection, privileges and interpreter are those of a task with delegate_to.
"""

from __future__ import annotations

import contextlib
import inspect
import json
import multiprocessing
import typing as t
from multiprocessing.connection import Connection

from ansible import constants, context
from ansible.executor.task_executor import TaskExecutor
from ansible.playbook.play_context import PlayContext
from ansible.plugins.action import ActionBase

from ._controller_action import plain_result

try:
    from ansible._internal import _task
except ImportError:  # before ansible-core 2.19
    _task = None

if _task:

    def untemplated(options: t.Any) -> t.Any:
        """Only text that is marked as trusted is a template."""
        return options

else:
    from ansible.utils.unsafe_proxy import wrap_var as untemplated  # type: ignore[no-redef]  # what a host has said must not run here

Result = t.Dict[str, t.Any]
Results = t.Dict[str, Result]
NO_ANSWER = plain_result("The process that asked this host ended without an answer.", "failed")


def text_of(value: t.Any) -> str:
    """Since ansible-core 2.19 a warning is an object, whose text is that of its event."""
    return str(getattr(getattr(value, "event", None), "msg", value))


def plain(result: Result) -> Result:
    """A module's result as plain data, without what is only for Ansible's display."""
    kept = {key: value for key, value in result.items() if key != "exception" and not key.startswith("_ansible_")}
    data: Result = json.loads(json.dumps(kept, default=text_of))
    return data


def own_context(task: t.Any, job_vars: Result, host: str) -> t.ContextManager[t.Any]:
    """Since ansible-core 2.21 the executor takes task and variables from a context, and returns an object."""
    create = getattr(getattr(_task, "TaskContext", None), "create", None)
    return create(task=task, task_vars=job_vars, host_name=host) if create else contextlib.nullcontext()


class DelegatingAction(ActionBase):
    """An action that runs modules on other hosts."""

    def connection_settings(self, task_vars: Result) -> PlayContext:
        """Those of the play: user, passwords and the like that this host's own variables set are not the others'."""
        settings, of_command_line = self._play_context.copy(), PlayContext()
        for name, variables in constants.MAGIC_VARIABLE_MAPPING.items():
            if any(variable in task_vars for variable in variables):
                setattr(settings, name, getattr(of_command_line, name, None))
        return settings

    def delegate(self, module: str, options: Result, host: str, timeout: int, task_vars: Result) -> Result:
        """What a module returns on this host, as if a task were delegated to it."""
        task = self._task.copy()
        task.action, task.args = module, untemplated(dict(options))
        task.delegate_to, task.loop, task.timeout = host, None, timeout
        known = task_vars["hostvars"]
        executor = {
            "host": known._inventory.get_host(task_vars["inventory_hostname"]),
            "task": task,
            "job_vars": task_vars.copy(),
            "play_context": self.connection_settings(task_vars),
            "new_stdin": None,  # before ansible-core 2.19
            "loader": self._loader,
            "shared_loader_obj": self._shared_loader_obj,
            "final_q": None,
            "variable_manager": known._variable_manager,
        }
        taken = inspect.signature(TaskExecutor).parameters
        with own_context(task, executor["job_vars"], task_vars["inventory_hostname"]):
            found: t.Any = TaskExecutor(**{name: value for name, value in executor.items() if name in taken}).run()
            return plain(found if isinstance(found, dict) else found.as_result_dict())

    def delegate_all(self, module: str, hosts: t.Mapping[str, Result], timeout: int, task_vars: Result) -> Results:
        """What a module returns on each of these hosts with its options, on as many at a time as Ansible has forks."""
        names, forks = list(hosts), int(context.CLIARGS.get("forks") or constants.DEFAULT_FORKS)

        def delegate_share(share: t.Sequence[str], answers: Connection) -> None:
            """In a process of its own."""
            for host in share:
                answers.send((host, self.delegate(module, hosts[host], host, timeout, task_vars)))

        fork = multiprocessing.get_context("fork")  # as Ansible's own workers
        shares: t.List[Connection] = []
        for number in range(min(forks, len(names))):
            receiver, sender = fork.Pipe(duplex=False)
            fork.Process(target=delegate_share, args=(names[number::forks], sender)).start()
            sender.close()  # the child has its own copy; when the child ends, the receiver gets EOF
            shares.append(receiver)
        answered: Results = {}
        for receiver in shares:
            try:
                while True:
                    host, answer = receiver.recv()
                    answered[host] = answer
            except EOFError:
                continue
        return {host: answered.get(host, NO_ANSWER) for host in names}
