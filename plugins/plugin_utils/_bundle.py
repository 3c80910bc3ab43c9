# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A bundle on the controller: its list, and its files on their way to a host."""

from __future__ import annotations

import json
import os
import typing as t

from ansible.plugins.action import ActionBase
from ansible_collections.ipu.fabric.plugins.module_utils._common.result import FabricError
from ansible_collections.ipu.fabric.plugins.module_utils._host.bundle import fault_of
from ansible_collections.ipu.fabric.plugins.module_utils._model.bundle import (
    LIST,
    SCHEMA,
    Bundle,
    BundleFile,
    SeenBundle,
)
from ansible_collections.ipu.fabric.plugins.plugin_utils._controller_action import Result, failure

KEPT_HERE = ("charts/", "helm/", "manifests/")  # parts that no host takes: they are compared before anything is changed
UNFINISHED = "Make it with ipu.fabric.bundle, which goes on where it stopped."


def read_bundle(path: str) -> Bundle:
    """The list of a bundle, or the error that says why there is none."""
    place = os.path.join(path, LIST)
    try:
        with open(place, encoding="utf-8") as file:
            content: Bundle = json.load(file)
        if content["schema"] != SCHEMA:
            raise ValueError(f"its schema is {content['schema']}, this release of the collection reads {SCHEMA}")
        return content
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise FabricError(
            "The list of the bundle can't be read.", place, str(error), UNFINISHED, code="unusable-file"
        ) from error


def see_bundle(path: str) -> t.Optional[SeenBundle]:
    """A bundle for the plan. Large files are compared by their size, and by their digest when they get to a host."""
    if not path:
        return None
    try:
        content = read_bundle(path)
    except FabricError as error:
        return SeenBundle(path, f"{error.where}: {error.seen}", [], None)
    faults = {name: _fault(os.path.join(path, name), name, wanted) for name, wanted in content["files"].items()}
    return SeenBundle(path, "", [f"{name} ({fault})" for name, fault in faults.items() if fault], content)


def _fault(path: str, name: str, wanted: BundleFile) -> str:
    if name.startswith(KEPT_HERE) or not os.path.isfile(path):
        return fault_of(path, wanted)
    size = os.path.getsize(path)
    return "" if size == wanted["size"] else f"{size} bytes instead of {wanted['size']}"


class BundleAction(ActionBase):
    """Asks the host what it lacks of a bundle, and sends it that."""

    TRANSFERS_FILES = True
    module = ""

    def ask(self, arguments: Result, task_vars: t.Dict[str, t.Any]) -> Result:
        result: Result = self._execute_module(
            module_name=f"ipu.fabric.{self.module}", module_args=arguments, task_vars=task_vars
        )
        return result

    def send(self, path: str, name: str, remote: str) -> None:
        if not os.path.isfile(path):
            raise FabricError("A file of the bundle is missing.", path, "no such file", UNFINISHED, code="not-found")
        self._transfer_file(path, remote)

    def explain(self, result: Result, path: str, wanted: BundleFile) -> Result:
        """What a host could not take may be broken here already: then that is the error."""
        fault = fault_of(path, wanted)
        if not fault:
            return result
        error = FabricError(
            "A file of the bundle is damaged.", path, fault, f"Remove the file. {UNFINISHED}", code="wrong-content"
        )
        return {**result, **failure(error)}

    def work(self, options: t.Dict[str, t.Any], task_vars: t.Dict[str, t.Any]) -> Result:
        raise NotImplementedError

    def run(self, tmp: t.Any = None, task_vars: t.Optional[t.Dict[str, t.Any]] = None) -> Result:
        result: Result = super().run(tmp, task_vars)
        try:
            return {**result, **self.work(self._task.args, task_vars or {})}
        except FabricError as error:
            return {**result, **failure(error)}
        finally:
            self._remove_tmp_path(self._connection._shell.tmpdir)

    def place(self, number: int) -> str:
        """A path on the host, in the directory that Ansible removes after the task."""
        shell = self._connection._shell
        if shell.tmpdir is None:
            self._make_tmp_path()
        path: str = shell.join_path(shell.tmpdir, f"bundle-{number}")
        return path
