"""Judging what a probe has found, and the pages that say it."""

from __future__ import annotations

from functools import partial

from ansible_collections.ipu.fabric.plugins.module_utils._model.checks import Check, Expect, Head
from ansible_collections.ipu.fabric.plugins.module_utils._verify import report
from ansible_collections.ipu.fabric.plugins.module_utils._verify.checks import check_fabric
from ansible_collections.ipu.fabric.plugins.plugin_utils._render.pages import report_page
from ansible_collections.ipu.fabric.tests.bench import sites
from ansible_collections.ipu.fabric.tests.bench.figures import Figure, best
from ansible_collections.ipu.fabric.tests.bench.planning import SETTINGS, there_and_back
from ansible_collections.ipu.fabric.tests.unit.fixtures import site

NODES, RAILS = 200, 8


def figures() -> list[Figure]:
    expect = Expect(ipu=False)
    plan = site.plan(sites.observations(NODES, RAILS), networks=sites.networks(RAILS), **SETTINGS)
    probe, head = sites.proof(plan), Head("", 0, "", "")
    checks: list[Check] = check_fabric(plan, probe, expect)
    size = f"{NODES} nodes with {RAILS} rails"
    name, through_json = "the probe to JSON and back", best(partial(there_and_back, probe))
    page = report_page(checks, head)
    return [
        Figure(f"{len(checks)} checks of {size}", best(partial(check_fabric, plan, probe, expect)), name, through_json),
        Figure(f"report.html, {len(page) / 1e6:.2f} MB", best(partial(report_page, checks, head)), name, through_json),
        Figure("report.json", best(partial(report.to_json, checks, head)), name, through_json),
    ]
