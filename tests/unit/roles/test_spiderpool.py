"""The role spiderpool carries out what _component/test_spiderpool.py sees decided, in an order that leaves no gap."""

from __future__ import annotations

import yaml
from ansible_collections.ipu.fabric.tests.unit.fixtures.paths import ROOT

TASKS = yaml.safe_load((ROOT / "roles/spiderpool/tasks/present.yml").read_text(encoding="utf-8"))


def test_networks_that_left_the_plan_go_before_a_planned_pool_is_to_have_their_addresses() -> None:
    """And while the controller runs."""
    modules = [key for task in TASKS for key in task if key.startswith("ipu.fabric.")]
    waited, pruned, applied = (
        modules.index(f"ipu.fabric.{name}") for name in ("kube_wait", "fabric_stack", "kube_apply")
    )
    assert waited < pruned < applied
    unplanned = TASKS[pruned]["ipu.fabric.fabric_stack"]["unplanned"]
    assert unplanned == "{{ spiderpool_prune | bool | ternary('remove', 'check') }}"


def test_the_role_ends_with_pods_that_start() -> None:
    assert TASKS[-1]["ipu.fabric.kube_wait"]["pods"] == "{{ __spiderpool_wish.pods }}"
    assert TASKS[-1]["when"] == "spiderpool_start_pod | bool"
