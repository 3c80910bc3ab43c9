# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Copy to a host what it lacks of a bundle: files in one go, images one by one, since hosts' disks are small."""

from __future__ import annotations

import os
import typing as t

from ansible.module_utils.parsing.convert_bool import boolean
from ansible.plugins.action import ActionBase

from ..module_utils._common.result import FabricError
from ..module_utils._host.bundle import fault_of
from ..module_utils._model.bundle import LIST, Bundle, BundleFile
from ..plugin_utils._bundle import UNFINISHED, read_bundle
from ..plugin_utils._controller_action import Result, failure


class ActionModule(ActionBase):
    """See the module of the same name."""

    TRANSFERS_FILES = True

    def ask(self, arguments: Result, task_vars: t.Dict[str, t.Any]) -> Result:
        result: Result = self._execute_module(
            module_name="ipu.fabric.bundle_files", module_args=arguments, task_vars=task_vars
        )
        return result

    def send(self, path: str, remote: str) -> None:
        if not os.path.isfile(path):
            raise FabricError("A file of the bundle is missing.", path, "no such file", UNFINISHED, code="not-found")
        self._transfer_file(path, remote)

    def explain(self, result: Result, path: str, wanted: BundleFile) -> Result:
        """If a file that a host rejected is already damaged here, report that instead."""
        fault = fault_of(path, wanted)
        if not fault:
            return result
        error = FabricError(
            "A file of the bundle is damaged.", path, fault, f"Remove the file. {UNFINISHED}", code="wrong-content"
        )
        return {**result, **failure(error)}

    def files(self, bundle: str, content: Bundle, options: Result, task_vars: t.Dict[str, t.Any]) -> Result:
        part, every = options["part"].strip("/"), content["files"]
        files = {name[len(part) + 1 :]: entry for name, entry in every.items() if name.startswith(f"{part}/")}
        if not files:
            there = ", ".join(sorted({name.rpartition("/")[0] for name in every}))
            raise FabricError(
                "The bundle has no files for this part.",
                f"{os.path.join(bundle, LIST)}, {part}",
                f"it has {there}",
                "Make a bundle for these hosts too: run ipu.fabric.bundle with their platforms in bundle_platforms.",
                code="not-found",
            )
        asked = {"directory": options["directory"], "files": files}
        seen = self.ask(asked, task_vars)
        if seen.get("failed") or seen.get("unreachable") or self._task.check_mode or not seen["missing"]:
            return seen
        incoming = {name: self.place(number) for number, name in enumerate(seen["missing"])}
        for name, remote in incoming.items():
            self.send(os.path.join(bundle, part, name), remote)
        result = self.ask({**asked, "incoming": incoming}, task_vars)
        if result.get("failed"):
            for name in incoming:
                result = self.explain(result, os.path.join(bundle, part, name), files[name])
        return {**result, "copied": sorted(incoming)}

    def images(self, bundle: str, content: Bundle, options: Result, task_vars: t.Dict[str, t.Any]) -> Result:
        architecture, planes = options["architecture"], boolean(options.get("control_plane", False))
        images = [
            image
            for image in content["images"]
            if image["architecture"] == architecture and (planes or not image["control_plane"])
        ]
        asked = {"architecture": architecture, "images": images, "timeout": options.get("timeout", 1800)}
        seen = self.ask(asked, task_vars)
        if seen.get("failed") or seen.get("unreachable") or self._task.check_mode:
            return seen
        imported = []
        for image in images:
            name = image["name"]
            if name not in seen["missing"]:
                continue
            path, remote, entry = os.path.join(bundle, image["file"]), self.place(0), content["files"][image["file"]]
            self.send(path, remote)
            result = self.ask({**asked, "files": {name: entry}, "incoming": {name: remote}}, task_vars)
            if result.get("failed") or result.get("unreachable"):
                return self.explain(result, path, entry)
            imported.append(name)
        return {**seen, "imported": imported}

    def run(self, tmp: t.Any = None, task_vars: t.Optional[t.Dict[str, t.Any]] = None) -> Result:
        result: Result = super().run(tmp, task_vars)
        options = self._task.args
        work = self.images if options.get("architecture") else self.files
        try:
            bundle = os.path.expanduser(options["bundle"])
            return {**result, **work(bundle, read_bundle(bundle), options, task_vars or {})}
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
