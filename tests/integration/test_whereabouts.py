"""The pods of whereabouts' chart as the role installs it: where they may run, and what they may use."""

from __future__ import annotations

import typing as t
from pathlib import Path

import pytest
from ansible_collections.ipu.fabric.plugins.module_utils._component.whereabouts import Seen, decide
from ansible_collections.ipu.fabric.tests.integration.api_server import ApiServer, Modules, Result
from ansible_collections.ipu.fabric.tests.unit.fixtures.components import defaults
from ansible_collections.ipu.fabric.tests.unit.fixtures.paths import ROOT

CHART = ROOT / "testbed/standins/charts/whereabouts-chart-0.9.4"
NAMESPACE = "kube-system"
NAME = "whereabouts-whereabouts-chart"
ANY_TAINT = {"operator": "Exists", "effect": "NoSchedule"}


@pytest.fixture
def release(run: Modules, binaries: Path) -> t.Iterator[Result]:
    """What the role gives to helm_release."""
    options = {"name": "whereabouts", "namespace": NAMESPACE, "binary": str(binaries / "helm"), "timeout": 20}
    settings = defaults("whereabouts")
    chart = {"chart": str(CHART), "chart_version": "0.9.4", "values": dict(decide(settings, Seen()).release.values)}
    yield {**options, **chart, "tolerations": settings.tolerations}
    run("helm_release", **options, state="absent")


def test_pods_run_on_nodes_with_taints_and_without_a_limit_of_cpu(
    run: Modules, api: ApiServer, release: Result
) -> None:
    assert run("helm_release", **release)["changed"]
    for kind, name in (("daemonset", NAME), ("deployment", f"{NAME}-reconciler")):
        pod = api.get(kind, name, "-n", NAMESPACE)["spec"]["template"]["spec"]
        assert pod["tolerations"] == [ANY_TAINT]
        (container,) = pod["containers"]
        assert container["resources"]["limits"] == {"memory": "200Mi"}
        assert container["resources"]["requests"] == {"cpu": "100m", "memory": "100Mi"}
    for check in (True, False):
        assert not run("helm_release", **release, check=check)["changed"]


def test_other_tolerations_are_a_change(run: Modules, api: ApiServer, release: Result) -> None:
    run("helm_release", **release)
    wanted = [{"key": "ipu", "operator": "Exists", "effect": "NoSchedule"}]
    assert run("helm_release", **{**release, "tolerations": wanted})["changed"]
    pod = api.get("deployment", f"{NAME}-reconciler", "-n", NAMESPACE)["spec"]["template"]["spec"]
    assert pod["tolerations"] == wanted
