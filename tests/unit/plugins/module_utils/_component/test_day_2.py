"""Decisions of playbooks that only a running cluster asks for: renew_certificates, backup and restore."""

from __future__ import annotations

import typing as t

import pytest
from ansible_collections.ipu.fabric.plugins.module_utils._common.result import FabricError
from ansible_collections.ipu.fabric.plugins.module_utils._component import backup, rejoining, renewal
from ansible_collections.ipu.fabric.plugins.module_utils._component.settings import NoSettings

PLANES = ["cp1", "cp2", "cp3"]
VALID = {"renewed": [], "expired": [], "interrupted": False}
EXPIRED = {"renewed": ["admin.conf"], "expired": ["admin.conf"], "interrupted": False}
INTERRUPTED = {**VALID, "interrupted": True}
SILENT: t.Dict[str, t.Any] = {"msg": "no answer"}


@pytest.mark.parametrize(
    ("found", "wait"),
    [
        ([VALID, VALID, VALID], True),
        ([VALID, EXPIRED, VALID], True),  # the others go on
        ([EXPIRED, VALID, EXPIRED], False),  # no majority: none of them gets ready before the others
        ([EXPIRED, EXPIRED, EXPIRED], False),
        ([INTERRUPTED, INTERRUPTED, EXPIRED], False),  # they may not have read their new certificates yet
        ([EXPIRED, SILENT, VALID], False),  # one that is down is no majority
        ([EXPIRED], True),
    ],
)
def test_control_planes_without_a_majority_do_not_wait_for_each_other(found: t.Any, wait: bool) -> None:
    planes = PLANES[: len(found)]
    assert renewal.decide(NoSettings(), renewal.Seen(planes, planes, found)).wait is wait


def test_whose_certificates_are_renewed() -> None:
    found = [
        EXPIRED,
        {**VALID, "signed": True, "requested": False},
        SILENT,
        {**VALID, "signed": True, "requested": True},
    ]
    wish = renewal.decide(NoSettings(), renewal.Seen(PLANES, [*PLANES, "w1"], found))
    assert (wish.kubeconfigs, wish.signed, wish.requested) == (["cp1"], ["cp2", "w1"], ["w1"])


def facts(answered: bool, endpoint: str = "api:6443", server: str = "https://10.0.0.1:6443") -> t.Any:
    cluster = {"answered": answered, "endpoint": endpoint, "version": "1.36.3", "pod_cidr": "a", "service_cidr": "b"}
    return {"host": {"cluster": cluster, "kubelet": {"server": server}}}


def test_a_backup_is_of_the_first_control_plane_that_answers() -> None:
    nodes = [{"name": "n2"}, {"name": "n1"}]
    found = [SILENT, facts(False), facts(True, "")]
    wish = backup.decide(NoSettings(), backup.Seen(PLANES, found, "aa", nodes))
    assert wish.control_plane == "cp3"
    assert wish.cluster == {
        "name": "https://10.0.0.1:6443", "ca": "aa", "version": "1.36.3", "pod_cidr": "a", "service_cidr": "b",
        "nodes": ["n1", "n2"],
    }  # fmt: skip
    with pytest.raises(FabricError, match="none answers"):
        backup.decide(NoSettings(), backup.Seen(PLANES, found[:2], "aa", nodes))


def test_what_a_restored_cluster_has_to_miss() -> None:
    hosts = ["cp1", "cp2", "w1", "w2", "w3"]
    found = [facts(False, server=""), facts(False), facts(False, server=""), facts(False), SILENT]
    held = [
        *({"pod": f"default/{name}", "node": "n-w1"} for name in ("one", "one", "two")),
        {"pod": "jobs/three", "node": "n-w1"},
        {"pod": "jobs/four", "node": "n-w2"},
    ]
    seen = rejoining.Seen("cp1", ["cp2"], {name: {"node": f"n-{name}"} for name in hosts}, hosts, found, held)
    wish = rejoining.decide(NoSettings(), seen)
    assert sorted(wish.ready) == ["n-cp2 True", "n-w1 True"]
    assert wish.pods == [
        {"namespace": "default", "names": ["one", "two"]},
        {"namespace": "jobs", "names": ["three"]},
    ]
