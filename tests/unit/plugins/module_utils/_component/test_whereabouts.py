"""The role whereabouts stays in the namespace that has the address pools, and leaves what others have."""

from __future__ import annotations

import typing as t

import pytest
from ansible_collections.ipu.fabric.plugins.module_utils._common.result import FabricError
from ansible_collections.ipu.fabric.plugins.module_utils._component.whereabouts import Seen, decide
from ansible_collections.ipu.fabric.plugins.module_utils._model.wish import Wish
from ansible_collections.ipu.fabric.tests.unit.fixtures.components import defaults

OPERATOR = {"namespace": "netops", "name": "network-operator", "version": "26.7.1", "release": "network-operator"}
OF_OPERATOR, OURS = "netops/whereabouts", "whereabouts-whereabouts-chart"


def wish(own: t.Sequence[str] = (), others: t.Sequence[str] = (), seen: t.Any = None, **settings: t.Any) -> Wish:
    found = {"network_operators": [OPERATOR], **(seen or {})}
    return decide(defaults("whereabouts", **settings), Seen([*own, *others], own, **found))


def names(objects: t.Sequence[t.Any]) -> t.List[str]:
    return [f"{each['kind']} {each['metadata']['name']}" for each in objects]


@pytest.mark.parametrize(
    ("own", "others", "namespace"),
    [
        ([], [], "kube-system"),
        # The network operator's, whose pools hold the addresses that pods have.
        ([], [OF_OPERATOR], "netops"),
        # Killed before that was removed, and the run after it.
        ([f"netops/{OURS}"], [OF_OPERATOR], "netops"),
        ([f"netops/{OURS}"], [], "netops"),
    ],
)
def test_pools_stay_where_they_are(own: t.List[str], others: t.List[str], namespace: str) -> None:
    decided = wish(own, others)
    assert decided.release.namespace == decided.release.values["namespaceOverride"] == namespace
    assert {each["namespace"] for each in decided.ready} == {namespace}
    assert ("DaemonSet whereabouts" in names(decided.former)) == bool(others)


def test_a_second_one_is_refused() -> None:
    with pytest.raises(FabricError, match="team/whereabouts"):
        wish(others=["team/whereabouts"])


@pytest.mark.parametrize(("operators", "goes"), [([OPERATOR], False), ([], True)])
def test_its_namespace_goes_when_no_operator_is_in_it(operators: t.List[t.Any], goes: bool) -> None:
    decided = wish([f"netops/{OURS}"], seen={"network_operators": operators}, state="absent")
    assert decided.release.namespace == "netops"
    assert ("Namespace netops" in names(decided.remnants)) is goes
    assert decided.paths == ["/etc/cni/net.d/whereabouts.d", "/opt/cni/bin/whereabouts"]


def test_what_others_need_stays() -> None:
    decided = wish(others=["team/whereabouts"], state="absent")
    assert (decided.remnants, decided.paths) == ([], [])
    with pytest.raises(FabricError, match="team/net take addresses from it"):
        wish([f"netops/{OURS}"], seen={"whereabouts_networks": ["team/net"]}, state="absent")


def test_values_of_a_site_win() -> None:
    given = {"resources": {"limits": {"memory": "1Gi"}}}
    decided = wish(values=given)
    assert decided.release.values["resources"]["limits"] == {"cpu": None, "memory": "1Gi"}
