# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Gives containerd of a host the images of a bundle that it lacks, one after another: disks of hosts are small."""

from __future__ import annotations

import os
import typing as t

from ansible.module_utils.parsing.convert_bool import boolean
from ansible_collections.ipu.fabric.plugins.plugin_utils._bundle import BundleAction, read_bundle
from ansible_collections.ipu.fabric.plugins.plugin_utils._controller_action import Result


class ActionModule(BundleAction):
    """See the module of the same name."""

    module = "bundle_images"

    def work(self, options: t.Dict[str, t.Any], task_vars: t.Dict[str, t.Any]) -> Result:
        bundle, planes = os.path.expanduser(options["bundle"]), boolean(options.get("control_plane", False))
        content = read_bundle(bundle)
        images = [
            image
            for image in content["images"]
            if image["architecture"] == options["architecture"] and (planes or not image["control_plane"])
        ]
        asked = {"images": images, "timeout": options.get("timeout", 1800)}
        seen = self.ask(asked, task_vars)
        if seen.get("failed") or seen.get("unreachable") or self._task.check_mode:
            return seen
        imported = []
        for image in images:
            if image["name"] not in seen["missing"]:
                continue
            path, remote = os.path.join(bundle, image["file"]), self.place(0)
            self.send(path, image["name"], remote)
            entry = content["files"][image["file"]]
            result = self.ask({**asked, "name": image["name"], "archive": remote, "file": entry}, task_vars)
            if result.get("failed") or result.get("unreachable"):
                return self.explain(result, path, entry)
            imported.append(image["name"])
        return {**seen, "imported": imported}
