"""Schedules that can't work are refused, and a removal needs none. The objects: tests/integration."""

from __future__ import annotations

import typing as t

import pytest
from ansible_collections.ipu.fabric.plugins.module_utils._common.result import FabricError
from ansible_collections.ipu.fabric.plugins.module_utils._component.scheduled_proof import Seen, decide
from ansible_collections.ipu.fabric.plugins.module_utils._model.wish import Objects
from ansible_collections.ipu.fabric.tests.unit.fixtures.components import defaults

GOOD = {"schedule": "17 * * * *", "schedule_image": "registry.site/prover:1", "admission": "warn"}


def objects(**settings: t.Any) -> Objects:
    return decide(defaults("verify", component="scheduled_proof", **{**GOOD, **settings}), Seen())


@pytest.mark.parametrize(
    ("settings", "where", "step"),
    [
        ({"schedule": "hourly"}, "verify_schedule", "17 \\* \\* \\* \\*"),
        ({"schedule": "17 * * *"}, "verify_schedule", "17 \\* \\* \\* \\*"),
        ({"schedule_image": ""}, "verify_schedule_image", "prover.Containerfile"),
        ({"admission": "off"}, "fabric_admission", "warn or enforce"),
        ({"schedule_slice": "some"}, "verify_schedule_slice", "10%"),
    ],
)
def test_a_schedule_that_can_not_work(settings: t.Dict[str, t.Any], where: str, step: str) -> None:
    with pytest.raises(FabricError, match=step) as raised:
        objects(**settings)
    assert raised.value.where == where


def test_a_name_of_cron_is_a_schedule() -> None:
    assert objects(schedule="@daily").objects[-1]["spec"]["schedule"] == "@daily"  # type: ignore[index]  # an Object


def test_a_removal_takes_the_same_objects() -> None:
    def names(wish: Objects) -> t.List[t.Any]:
        return [(each["kind"], each["metadata"]["name"]) for each in wish.objects]  # type: ignore[index]  # an Object

    assert names(objects()) == names(objects(schedule="none", schedule_image="", admission="off", plan={}))


@pytest.mark.parametrize(("rdma", "level"), [(True, "privileged"), (False, "baseline")])
def test_the_namespace_allows_no_more_than_the_pods_need(rdma: bool, level: str) -> None:
    plan = {"hosts": {}, "networks": [{"name": "rail", "rdma": rdma}]}
    labels = objects(plan=plan).objects[0]["metadata"]["labels"]  # type: ignore[index]  # an Object
    assert labels == {"pod-security.kubernetes.io/enforce": level}


def test_reports_on_a_volume() -> None:
    spec = objects(schedule_claim="reports").objects[-1]["spec"]["jobTemplate"]["spec"]["template"]["spec"]  # type: ignore[index]  # an Object
    assert {"name": "reports", "persistentVolumeClaim": {"claimName": "reports"}} in spec["volumes"]
    assert {"name": "reports", "mountPath": "/prover/artifacts"} in spec["containers"][0]["volumeMounts"]
