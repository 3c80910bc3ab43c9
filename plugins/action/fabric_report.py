# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Check the facts of a probe against the plan, and write the reports. Runs on the controller: templates are there."""

from __future__ import annotations

import datetime
import json
import os
import typing as t

from ..module_utils._common.result import FabricError
from ..module_utils._model.checks import Check, Expect, Head
from ..module_utils._model.probe import Probe
from ..module_utils._verify import history, narrow, report
from ..module_utils._verify.catalog import FAILED
from ..module_utils._verify.checks import check_fabric, counts, outcome, summary
from ..module_utils._verify.speed_checks import read_limit
from ..modules import fabric_report
from ..plugin_utils._artifacts import read_file, write_files
from ..plugin_utils._controller_action import ControllerAction, argument_spec
from ..plugin_utils._render.pages import report_page

LIBRARIES = ("jmespath", "netaddr")
FILES: t.Dict[str, t.Callable[[t.Sequence[Check], Head], str]] = {
    "report.json": report.to_json,
    "junit.xml": report.to_junit,
}
HISTORY = "history.json"


def read_probe(path: t.Optional[str]) -> Probe:
    try:
        with open(path or "", encoding="utf-8") as file:
            return t.cast(Probe, json.load(file))
    except (OSError, ValueError) as error:
        raise FabricError(
            "The facts of a probe are needed.",
            f"option probe_file, {path}" if path else "options probe and probe_file",
            str(error) if path else "neither is given",
            "Give what ipu.fabric.fabric_probe has returned.",
            code="unusable-file" if path else "invalid-input",
        ) from error


class ActionModule(ControllerAction):
    """See the module of the same name."""

    spec = argument_spec(fabric_report)
    libraries = LIBRARIES

    def act(self, options: t.Dict[str, t.Any]) -> t.Dict[str, t.Any]:
        plan, folder = options["plan"], options["artifacts_dir"]
        only = options["checks"]
        narrow.known_checks(options["allow_unproven"], "Only checks can be accepted unproven.", "allow_unproven")
        narrow.known_checks(only, "Only checks that exist can be made alone.", "checks")
        for name in ("rdma_bandwidth", "rdma_latency"):
            read_limit(name, options[name])
        probe = options.get("probe") or read_probe(options.get("probe_file"))
        expect = Expect(**{name: options[name] for name in Expect._fields})
        nodes, before = options["nodes"], options["before"]
        every = check_fabric(narrow.narrow_plan(plan, nodes), probe, expect)
        checks = narrow.only_checks(narrow.about_nodes(every, nodes), only)
        worse = narrow.regressions(checks, before) if before and probe["probed"] else []
        head = Head(
            time=datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
            seconds=probe.get("seconds", 0),
            cluster=str(plan.get("cluster", {}).get("endpoint", "")),
            version=str(probe.get("version", "")),
            expect=expect._asdict(),
            nodes=nodes,
        )
        reports = []
        if folder and not (only or self._task.check_mode):
            place = os.path.join(self._loader.get_basedir(), folder)
            texts = {name: render(checks, head) for name, render in FILES.items()}
            earlier = history.read_history(read_file(os.path.join(place, HISTORY)))
            texts["report.html"] = report_page(checks, head, earlier, probe)
            if probe["probed"] and not nodes:  # proofs of single nodes are no proofs of the site
                texts[HISTORY] = history.to_json([history.this_run(checks, head), *earlier])
            reports = write_files(place, texts, "artifacts_dir")
        return {
            "changed": False,
            "checks": [report.as_dict(check) for check in checks],
            "regressions": [report.as_dict(check) for check in worse],
            "outcome": outcome(checks, bool(only)),
            "failed_checks": counts(checks)[FAILED],
            "unproven": [entry._asdict() for entry in report.missing(checks)],
            "summary": summary(checks, bool(only)),
            "table": report.table(checks, bool(only)),
            "refusal": report.refusal_worse(worse, nodes)
            if before
            else report.refusal(checks, reports, only if probe["probed"] else ()),
            "reports": reports,
        }
