# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Judge an archive. Runs on the controller, in memory."""

from __future__ import annotations

import os
import typing as t

from ansible_collections.ipu.fabric.plugins.module_utils._common.result import FabricError
from ansible_collections.ipu.fabric.plugins.module_utils._support.archive import NEXT_STEP, unpack
from ansible_collections.ipu.fabric.plugins.module_utils._support.contents import ABOUT
from ansible_collections.ipu.fabric.plugins.module_utils._support.judge import as_text, judge
from ansible_collections.ipu.fabric.plugins.modules import support_archive_info
from ansible_collections.ipu.fabric.plugins.plugin_utils._controller_action import ControllerAction, argument_spec

LIBRARIES = ("jmespath", "netaddr")


class ActionModule(ControllerAction):
    """See the module of the same name."""

    spec = argument_spec(support_archive_info)
    libraries = LIBRARIES

    def act(self, options: t.Dict[str, t.Any]) -> t.Dict[str, t.Any]:
        path = os.path.join(self._loader.get_basedir(), os.path.expanduser(options["path"]))
        try:
            with open(path, "rb") as packed:
                files = unpack(packed, path)
        except OSError as error:
            raise FabricError("An archive is needed.", path, str(error), NEXT_STEP, code="unusable-file") from error
        if ABOUT not in files:
            raise FabricError(
                "The archive must say what it is.", path, f"it has no {ABOUT}", NEXT_STEP, code="unusable-file"
            )
        problems = judge(files)
        return {
            "changed": False,
            "problems": [problem._asdict() for problem in problems],
            "text": as_text(files, problems),
        }
