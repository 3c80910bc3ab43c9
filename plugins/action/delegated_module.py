# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Delegate a module to many hosts at a time. Ansible itself takes the items of a loop one after another.

Each process takes a share of the hosts, and runs Ansible's own executor for a copy of the task that is delegated to one
of them, so connection, privileges and interpreter are those of a task with delegate_to.
"""

from __future__ import annotations

import inspect
import json
import multiprocessing
import typing as t
from multiprocessing.connection import Connection

from ansible import constants, context
from ansible.errors import AnsibleActionFail
from ansible.executor.task_executor import TaskExecutor
from ansible.plugins.action import ActionBase

from ..modules import delegated_module
from ..plugin_utils._controller_action import argument_spec, plain_result

Result = t.Dict[str, t.Any]
Results = t.Dict[str, Result]
NO_ANSWER = plain_result("The process that asked this host ended without an answer.", "failed")


def plain(result: Result) -> Result:
    """A module's result as plain data, without what is only for Ansible's display."""
    kept = {key: value for key, value in result.items() if key != "exception" and not key.startswith("_ansible_")}
    data: Result = json.loads(json.dumps(kept, default=str))
    return data


class ActionModule(ActionBase):
    """See the module of the same name."""

    TRANSFERS_FILES = False
    _requires_connection = False

    def delegate(self, host: str, task_vars: t.Dict[str, t.Any]) -> Result:
        """What the module returns on this host, as if a task were delegated to it."""
        task = self._task.copy()
        task.action, task.args = self._task.args["module"], dict(self._task.args["hosts"][host])
        for more in self._task.args.get("also", []):
            task.args.update(more["options"] if host in more["hosts"] else {})
        task.delegate_to, task.loop, task.timeout = host, None, int(self._task.args.get("timeout", 0))
        known = task_vars["hostvars"]
        executor = {
            "host": known._inventory.get_host(task_vars["inventory_hostname"]),
            "task": task,
            "job_vars": task_vars.copy(),
            "play_context": self._play_context.copy(),
            "new_stdin": None,  # before ansible-core 2.19
            "loader": self._loader,
            "shared_loader_obj": self._shared_loader_obj,
            "final_q": None,
            "variable_manager": known._variable_manager,
        }
        taken = inspect.signature(TaskExecutor).parameters
        return plain(TaskExecutor(**{name: value for name, value in executor.items() if name in taken}).run())

    def delegate_share(self, hosts: t.Sequence[str], task_vars: t.Dict[str, t.Any], answers: Connection) -> None:
        """In a process of its own."""
        for host in hosts:
            answers.send((host, self.delegate(host, task_vars)))

    def run(self, tmp: t.Any = None, task_vars: t.Optional[t.Dict[str, t.Any]] = None) -> t.Dict[str, t.Any]:
        result: Result = super().run(tmp, task_vars)
        try:
            self.validate_argument_spec(argument_spec=argument_spec(delegated_module))
        except AnsibleActionFail as error:
            return {**result, **plain_result(str(error), "invalid-input")}
        hosts, forks = list(self._task.args["hosts"]), int(context.CLIARGS.get("forks") or constants.DEFAULT_FORKS)
        fork = multiprocessing.get_context("fork")  # as Ansible's own workers
        shares: t.List[Connection] = []
        for number in range(min(forks, len(hosts))):
            receiver, sender = fork.Pipe(duplex=False)
            fork.Process(target=self.delegate_share, args=(hosts[number::forks], task_vars, sender)).start()
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
        return {"changed": False, **result, "hosts": {host: answered.get(host, NO_ANSWER) for host in hosts}}
