# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Check the facts of a probe against the plan, and write the reports, on the controller, which has the templates."""

from __future__ import annotations

import datetime
import hashlib
import json
import os
import typing as t

from ..module_utils._common.result import FabricError
from ..module_utils._model.checks import Check, Expect, Head
from ..module_utils._model.probe import Probe
from ..module_utils._verify import admission, baseline, history, narrow, report
from ..module_utils._verify.catalog import FAILED, PASSED
from ..module_utils._verify.checks import check_fabric, counts, lacks_fabric, outcome, summary
from ..module_utils._verify.speed_checks import LIMITS, read_limit
from ..modules import fabric_report
from ..plugin_utils._artifacts import plan_text, read_file, sign_file, write_files
from ..plugin_utils._controller_action import ControllerAction, argument_spec, plain
from ..plugin_utils._render.pages import report_page
from ..plugin_utils._signing import sign

LIBRARIES = ("cryptography", "jmespath", "netaddr")
FILES: t.Dict[str, t.Callable[[t.Sequence[Check], Head], str]] = {
    "report.json": report.to_json,
    "junit.xml": report.to_junit,
}
HISTORY, BASELINE, REPORT, SIGNATURE = "history.json", "baseline.json", "report.json", "report.json.sig"


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


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def site_path(path: str) -> str:
    """The path of a file that a person named. A relative one starts at the folder in which the playbook was started."""
    return os.path.join(os.environ.get("PWD") or os.getcwd(), os.path.expanduser(path)) if path else ""


def judge(
    checks: t.List[Check],
    probe: Probe,
    head: Head,
    kept: baseline.Baseline,
    options: t.Mapping[str, t.Any],
    other: str = "",
) -> baseline.Verdict:
    """Compare the checks of a proof with earlier ones, or with the report that the site names.

    other: why existing earlier proofs don't count.
    """
    wanted, only = options["baseline"], options["checks"]
    word, whole = wanted if wanted in (baseline.NONE, baseline.ACCEPT) else "", not (only or head.nodes)
    base = kept
    if wanted and not word:
        path = site_path(wanted)
        base = baseline.of_report(read_file(path), path)
    reasons = {
        baseline.OF_WHOLE: only == ["regression"],
        baseline.SWITCHED_OFF: whole and word == baseline.NONE,
        other or baseline.NO_PROOF: whole and not base.times,
    }
    if not probe["probed"] or (options["before"] and not wanted):
        return baseline.as_they_are(checks)
    for reason, holds in reasons.items():
        if holds:
            return baseline.as_they_are(checks, reason)
    if word == baseline.NONE or not base.times:
        return baseline.as_they_are(checks)
    soft = baseline.software_figures(checks, probe)
    verdict = baseline.compare(checks, head.groups or {}, base, kept, soft, whole)
    if only:  # a repeated check that passes is listed under its own name
        return verdict._replace(checks=[c for c in verdict.checks if (c.check, c.status) != ("regression", PASSED)])
    if word == baseline.ACCEPT and whole:
        return verdict._replace(checks=baseline.as_they_are(checks, baseline.ACCEPTED_NOW).checks)
    return verdict


class ActionModule(ControllerAction):
    """See the module of the same name."""

    spec = argument_spec(fabric_report)
    libraries = LIBRARIES
    inventory = ""  # the groups of its hosts, as JSON

    def run(self, tmp: t.Any = None, task_vars: t.Optional[t.Dict[str, t.Any]] = None) -> t.Dict[str, t.Any]:
        self.inventory = json.dumps(plain((task_vars or {}).get("groups", {})), sort_keys=True)
        return super().run(tmp, task_vars)

    def act(self, options: t.Dict[str, t.Any]) -> t.Dict[str, t.Any]:
        plan, folder = options["plan"], options["artifacts_dir"]
        only = options["checks"]
        narrow.known_checks(options["allow_unproven"], "Only checks can be accepted unproven.", "allow_unproven")
        narrow.known_checks(only, "Only existing checks can be run alone.", "checks")
        for name in LIMITS.values():
            read_limit(name, options[name])
        probe = options.get("probe") or read_probe(options.get("probe_file"))
        expect = Expect(**{name: options[name] for name in Expect._fields})
        nodes, before = options["nodes"], options["before"]
        every = check_fabric(narrow.narrow_plan(plan, nodes), probe, expect)
        head = Head(
            time=datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
            seconds=probe.get("seconds", 0),
            cluster=str(plan.get("cluster", {}).get("endpoint", "")),
            version=str(probe.get("version", "")),
            expect=expect._asdict(),
            nodes=nodes,
            groups=baseline.groups_of(plan),
            digests={
                "plan": digest(plan_text(plan)),
                "probe": digest(json.dumps(probe)),
                "inventory": digest(self.inventory),
            },
        )
        place = os.path.join(self._loader.get_basedir(), folder) if folder else ""
        earlier_proofs = baseline.read_baseline(read_file(os.path.join(place, BASELINE)) if place else "")
        kept = baseline.of_cluster(earlier_proofs, probe.get("ca", ""))
        other = baseline.OTHER_CLUSTER if earlier_proofs.times and not kept.times else ""
        made = narrow.only_checks(narrow.about_nodes(every, nodes), only)
        verdict = judge(made, probe, head, kept, options, other)
        checks = verdict.checks
        worse = narrow.regressions(checks, before) if before and probe["probed"] else []
        said = admission.verdicts(checks, nodes) if probe["probed"] and not only else {}
        reports, texts = [], {}
        if place and not (only or self._task.check_mode):
            texts = {name: render(checks, head) for name, render in FILES.items()}
            earlier = history.read_history(read_file(os.path.join(place, HISTORY)))
            accepted = options["baseline"] == baseline.ACCEPT
            later = baseline.remember(kept, head, checks, verdict, accepted) if probe["probed"] and not nodes else kept
            texts["report.html"] = report_page(checks, head, earlier, probe, later)
            if later is not kept:  # proofs of single nodes are no proofs of the site
                texts[HISTORY] = history.to_json([history.this_run(checks, head), *earlier])
                texts[BASELINE] = baseline.to_json(later)
            key = site_path(options["report_key"])
            signature = sign(key, texts[REPORT].encode()) if key else b""
            reports = write_files(place, texts, "artifacts_dir")
            sign_file(os.path.join(place, SIGNATURE), signature)
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
            "time": head.time,
            "sha256": digest(texts[REPORT]) if texts else "",
            "bare": bool(probe["probed"]) and lacks_fabric(plan, probe),
            "proofs": [{"name": name, **each._asdict()} for name, each in said.items()],
        }
