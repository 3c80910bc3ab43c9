# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Check the facts of a probe against the plan, and write the reports. Runs on the controller: templates are there."""

from __future__ import annotations

import datetime
import os
import typing as t

from ansible.plugins.action import ActionBase
from ansible_collections.ipu.fabric.plugins.module_utils._common.result import FabricError
from ansible_collections.ipu.fabric.plugins.module_utils._model.checks import Check, Expect, Head
from ansible_collections.ipu.fabric.plugins.module_utils._verify import report
from ansible_collections.ipu.fabric.plugins.module_utils._verify.catalog import FAILED
from ansible_collections.ipu.fabric.plugins.module_utils._verify.checks import check_fabric, counts, summary
from ansible_collections.ipu.fabric.plugins.plugin_utils._render.pages import report_page

ARGUMENT_SPEC: t.Dict[str, t.Dict[str, t.Any]] = {
    "plan": {"type": "dict", "required": True},
    "probe": {"type": "dict", "required": True},
    "artifacts_dir": {"type": "path", "default": ""},
    "memlock": {"type": "str", "default": "unlimited"},
    "rdma_bandwidth": {"type": "float", "default": 0},
    "rdma_latency": {"type": "float", "default": 0},
    "host_traffic": {"type": "float", "default": 0},
    "ipu": {"type": "bool", "default": True},
    "ipu_partition": {"type": "str", "default": ""},
}
FILES: t.Dict[str, t.Callable[[t.Sequence[Check], Head], str]] = {
    "report.json": report.to_json,
    "report.html": report_page,
    "junit.xml": report.to_junit,
}


def write_reports(folder: str, checks: t.Sequence[Check], head: Head) -> t.List[str]:
    """The paths of the files."""
    paths = {name: os.path.join(folder, name) for name in FILES}
    try:
        os.makedirs(folder, exist_ok=True)
        for name, render in FILES.items():
            with open(paths[name], "w", encoding="utf-8", errors="backslashreplace") as file:
                file.write(render(checks, head))
    except OSError as error:
        raise FabricError(
            "The reports could not be written.",
            folder,
            str(error),
            "Set artifacts_dir to a directory that can be written.",
        ) from error
    return list(paths.values())


class ActionModule(ActionBase):
    """There is no module behind it."""

    TRANSFERS_FILES = False
    _requires_connection = False

    def run(self, tmp: t.Any = None, task_vars: t.Optional[t.Dict[str, t.Any]] = None) -> t.Dict[str, t.Any]:
        result: t.Dict[str, t.Any] = super().run(tmp, task_vars)
        _valid, options = self.validate_argument_spec(argument_spec=ARGUMENT_SPEC)
        try:
            return {**result, **self.report(options)}
        except FabricError as error:
            return {**result, "failed": True, "msg": str(error), **error.as_dict()}

    def report(self, options: t.Dict[str, t.Any]) -> t.Dict[str, t.Any]:
        plan, probe, folder = options["plan"], options["probe"], options["artifacts_dir"]
        checks = check_fabric(plan, probe, Expect(**{name: options[name] for name in Expect._fields}))
        head = Head(
            time=datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
            seconds=probe.get("seconds", 0),
            cluster=str(plan.get("cluster", {}).get("endpoint", "")),
            version=str(probe.get("version", "")),
        )
        write = folder and not self._task.check_mode
        return {
            "changed": False,
            "checks": [report.as_dict(check) for check in checks],
            "failed_checks": counts(checks)[FAILED],
            "summary": summary(checks),
            "table": report.table(checks),
            "reports": write_reports(os.path.join(self._loader.get_basedir(), folder), checks, head) if write else [],
        }
