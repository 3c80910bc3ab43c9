# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Copies a directory of a bundle to a host: what it lacks, in one go."""

from __future__ import annotations

import os
import typing as t

from ansible_collections.ipu.fabric.plugins.module_utils._common.result import FabricError
from ansible_collections.ipu.fabric.plugins.module_utils._model.bundle import LIST
from ansible_collections.ipu.fabric.plugins.plugin_utils._bundle import BundleAction, read_bundle
from ansible_collections.ipu.fabric.plugins.plugin_utils._controller_action import Result


class ActionModule(BundleAction):
    """See the module of the same name."""

    module = "bundle_files"

    def work(self, options: t.Dict[str, t.Any], task_vars: t.Dict[str, t.Any]) -> Result:
        bundle, part = os.path.expanduser(options["bundle"]), options["part"].strip("/")
        every = read_bundle(bundle)["files"]
        files = {name[len(part) + 1 :]: entry for name, entry in every.items() if name.startswith(f"{part}/")}
        if not files:
            there = ", ".join(sorted({name.rpartition("/")[0] for name in every}))
            raise FabricError(
                "The bundle has nothing of this part.",
                f"{os.path.join(bundle, LIST)}, {part}",
                f"there is {there}",
                "Make a bundle for these hosts too: bundle_platforms of ipu.fabric.bundle.",
                code="not-found",
            )
        asked = {"directory": options["directory"], "files": files}
        seen = self.ask(asked, task_vars)
        if seen.get("failed") or seen.get("unreachable") or self._task.check_mode or not seen["missing"]:
            return seen
        incoming = {name: self.place(number) for number, name in enumerate(seen["missing"])}
        for name, remote in incoming.items():
            self.send(os.path.join(bundle, part, name), name, remote)
        result = self.ask({**asked, "incoming": incoming}, task_vars)
        if result.get("failed"):
            for name in incoming:
                result = self.explain(result, os.path.join(bundle, part, name), files[name])
        return {**result, "copied": sorted(incoming)}
