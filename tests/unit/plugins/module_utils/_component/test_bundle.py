"""What a bundle has of each role, and which plans there is none of."""

from __future__ import annotations

import typing as t

import pytest
from ansible_collections.ipu.fabric.plugins.module_utils._common.result import FabricError
from ansible_collections.ipu.fabric.plugins.module_utils._component.bundle import BundleWish, Seen, decide
from ansible_collections.ipu.fabric.plugins.module_utils._model.wish import Package
from ansible_collections.ipu.fabric.tests.unit.fixtures.components import defaults

RELEASES = {"stack": "network_operator", "whereabouts_standalone": False}


def wish(parts: t.Optional[t.Mapping[str, t.Any]] = None, **seen: t.Any) -> BundleWish:
    whole = {"releases": RELEASES, "cluster": {}, "hosts": {}, "networks": [], "findings": [], **(parts or {})}
    given = {"directory": "/media", "plan_file": "plan.json", "plan": whole, "gpu": False, "ipu": False, "ntp": []}
    return decide(defaults("verify", "bundle", image="small", rdma_image="tools"), Seen(**{**given, **seen}))


@pytest.mark.parametrize(
    ("releases", "seen", "charts"),
    [
        ({}, {}, ["network_operator"]),
        ({"whereabouts_standalone": True}, {"ipu": True}, ["network_operator", "whereabouts", "ipu_operator"]),
        ({"stack": "spiderpool"}, {"gpu": True}, ["spiderpool", "gpu_operator"]),
    ],
)
def test_charts(releases: t.Any, seen: t.Any, charts: t.Sequence[str]) -> None:
    assert wish({"releases": {**RELEASES, **releases}}, **seen).charts == charts


def test_packages_and_images_of_roles_without_a_chart() -> None:
    assert (wish().packages, wish().images) == ([], ["small"])
    networks = [{"rdma": False}, {"rdma": True}]
    assert wish({"networks": networks}).images == ["tools"]
    assert wish(ntp=["10.0.0.1"]).packages == [Package("chrony", hold=False)]


@pytest.mark.parametrize(
    ("parts", "seen", "said"),
    [
        ({}, {"directory": ""}, "fabric_bundle is '', and the plan exists"),
        ({}, {"plan": {}}, "fabric_bundle is '/media', and the plan does not exist"),
        ({"findings": [{"level": "error", "check": "mtu", "what": "Too small."}]}, {}, "Too small."),
        ({"cluster": {"runtime": {"name": "docker"}}}, {}, "fabric_runtime docker"),
    ],
)
def test_plans_that_there_is_no_bundle_of(parts: t.Any, seen: t.Any, said: str) -> None:
    with pytest.raises(FabricError) as raised:
        wish(parts, **seen)
    assert said in raised.value.seen


def test_a_bundle_that_is_damaged_or_of_another_plan_is_no_obstacle() -> None:
    assert wish({"findings": [{"level": "error", "check": "bundle", "what": "It is damaged."}]}).charts
