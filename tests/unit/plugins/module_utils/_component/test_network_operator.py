# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the role network_operator installs and refuses, and what its removal takes and leaves to others."""

from __future__ import annotations

import typing as t

import pytest
from ansible_collections.ipu.fabric.plugins.module_utils._common.result import FabricError
from ansible_collections.ipu.fabric.plugins.module_utils._component.network_operator import (
    NIC_LABEL,
    OperatorWish,
    Seen,
    decide,
)
from ansible_collections.ipu.fabric.tests.unit.fixtures.components import defaults

OPERATOR = {"namespace": "nvidia-network-operator", "name": "network-operator", "version": "26.4.1"}
OURS = {**OPERATOR, "release": "network-operator"}
THEIRS = {**OPERATOR, "namespace": "gpu-team", "release": "fabric"}
OUR_NAME = "nvidia-network-operator/network-operator"
MULTUS = "nvidia-network-operator/kube-multus-ds"
ENDS = "2026-12-01T00:00:00Z"


def wish(seen: t.Any = None, **settings: t.Any) -> OperatorWish:
    return decide(defaults("network_operator", **settings), Seen(**{"present": True, **(seen or {})}))


def removal(**seen: t.Any) -> OperatorWish:
    return wish({"network_operators": [OURS], "own": [OUR_NAME], **seen}, state="absent")


def names(objects: t.Sequence[t.Any]) -> t.Set[str]:
    return {each["metadata"]["name"] for each in objects}


@pytest.mark.parametrize(
    ("seen", "settings", "said"),
    [
        ({"version": "1.37.0"}, {}, ""),
        ({"version": "1.33.4+rke2r1"}, {}, ""),
        ({"version": "1.31.9"}, {}, "made for Kubernetes 1.32 to 1.37.*it runs 1.31.9"),
        ({"version": "1.38.0"}, {}, "made for Kubernetes 1.32 to 1.37"),
        ({"version": "1.31.9"}, {"version": "26.4.1"}, ""),
        ({"version": "1.38.0"}, {"allow_kubernetes": True}, ""),
        ({"multus": [MULTUS]}, {}, ""),
        ({"multus": [MULTUS, "kube-system/rke2-multus"]}, {}, "has a multus already.*kube-system/rke2-multus"),
        ({"multus": [MULTUS]}, {"multus": False}, "no multus"),
        ({"multus": ["kube-system/rke2-multus"]}, {"multus": False}, ""),
        # A bundle is of no cluster yet.
        ({"present": False}, {"multus": False}, ""),
        ({"network_operators": [OURS]}, {}, ""),
        ({"network_operators": [OURS, THEIRS]}, {}, "a network operator already.*gpu-team"),
        ({}, {"ofed_driver": {"version": "1"}}, "no Node Feature Discovery"),
        ({}, {"ofed_driver": {"version": "1"}, "nfd": True}, ""),
        ({"nfd": ["gpu/nfd-worker"]}, {"ofed_driver": {"version": "1"}}, ""),
        # Others' networks would lose their IPAM as well.
        ({"policy_ipam": "whereabouts", "other_pods": ["jobs/stranger"]}, {}, "second time.*jobs/stranger"),
        ({"policy_ipam": "whereabouts", "pods": ["jobs/ours"]}, {}, "second time.*jobs/ours"),
        ({"policy_ipam": "whereabouts"}, {}, ""),
        ({"policy_ipam": "nv-ipam", "pods": ["jobs/ours"]}, {}, ""),
        ({}, {"version": "0.0.1"}, "network_operator_version"),
    ],
)
def test_what_has_to_be_so_before_anything_is_changed(seen, settings, said):
    if not said:
        wish(seen, **settings)
        return
    with pytest.raises(FabricError, match=said):
        wish(seen, **settings)


@pytest.mark.parametrize(
    ("installed", "wanted", "more", "said"),
    [
        ("26.4.1", "26.7.1", {}, ""),
        ("25.10.0", "26.7.1", {}, "next line only.*26.1.2, then 26.4.2, then 26.7.1"),
        ("25.10.0", "26.7.1", {"allow_skip": True}, ""),
        ("26.7.1", "26.4.1", {"allow_skip": True}, "no downgrade"),
    ],
)
def test_an_upgrade_leads_to_the_next_line(installed, wanted, more, said):
    seen = {"network_operators": [{**OURS, "version": installed}]}
    if not said:
        assert wish(seen, version=wanted, **more).settle == 15
        return
    with pytest.raises(FabricError, match=said):
        wish(seen, version=wanted, **more)


@pytest.mark.parametrize(
    ("release", "installed", "keeps"),
    [
        ("1.4.0", "1.4.0", (True, True)),
        ("1.4.0", "", (False, True)),
        ("23.4.0", "23.4.0", (False, True)),
        ("26.4.1", "26.4.1", (False, False)),
    ],
)
def test_what_a_release_reads_only_once(release, installed, keeps):
    seen = {"network_operators": [{**OURS, "version": installed}]} if installed else {}
    decided = wish(seen, version=release, ipam="whereabouts")
    assert (decided.keeps_policy, decided.keeps_config) == keeps
    assert decided.settle == 0


def test_node_feature_discovery_of_others_serves():
    assert wish(nfd=True).release.values["nfd"]["enabled"]
    assert not wish({"nfd": ["gpu/nfd-worker"]}, nfd=True).release.values["nfd"]["enabled"]


def test_what_has_to_be_there_before_networks():
    assert "ippools.nv-ipam.nvidia.com" in wish().crds
    assert "ippools.nv-ipam.nvidia.com" not in wish(ipam="whereabouts").crds
    assert wish(rdma_nodes=["w1"]).labels == [{"name": "w1", "labels": {NIC_LABEL: "true"}}]


@pytest.mark.parametrize(
    ("multus", "whereabouts", "restart", "expected"),
    [
        (["nvidia/kube-multus-ds"], [], {}, []),
        (["nvidia/kube-multus-ds"], [], {"multus": ENDS}, ["kube-multus-ds"]),
        ([], ["kube-system/whereabouts"], {"whereabouts": ENDS}, []),
        (["nvidia/kube-multus-ds"], ["kube-system/whereabouts"], {"whereabouts": ENDS}, []),
        (["nvidia/kube-multus-ds"], ["nvidia/whereabouts"], {"whereabouts": ENDS}, ["whereabouts"]),
    ],
)
def test_only_cni_plugins_of_this_operator_start_again(multus, whereabouts, restart, expected):
    decided = wish({"multus": multus, "whereabouts": whereabouts}, namespace="nvidia", restart=restart)
    assert [each["name"] for each in decided.restarted] == expected
    annotations = [each["spec"]["template"]["metadata"]["annotations"] for each in decided.restarts]
    assert annotations == [{"fabric.ipu/token-ends": ENDS}] * len(expected)


def test_the_multus_of_others_does_not_start_again():
    decided = wish({"multus": ["kube-system/kube-multus-ds"]}, multus=False, restart={"multus": ENDS})
    assert decided.restarts == []


@pytest.mark.parametrize("operator", [THEIRS, OURS])
def test_an_operator_of_others_is_not_removed(operator):
    named = rf"{operator['namespace']}/network-operator \(release {operator['release']}\)"
    with pytest.raises(FabricError, match=named):
        removal(network_operators=[operator], own=[])


def test_nor_is_ours_beside_another():
    with pytest.raises(FabricError, match=r"Seen: gpu-team/network-operator \(release fabric\) in"):
        removal(network_operators=[OURS, THEIRS])


def test_the_removal_takes_what_is_ours():
    nodes = [{"name": "w1", "own_labels": [NIC_LABEL]}, {"name": "w2", "own_labels": []}]
    decided = removal(nodes=nodes, nv_ipam=["dpf/nv-ipam-node"])
    gone = names(decided.remnants)
    assert {"macvlannetworks.mellanox.com", "nvidia-network-operator"} <= gone
    assert "ippools.nv-ipam.nvidia.com" not in gone
    assert [(each["name"], NIC_LABEL in each["labels"]) for each in decided.labels] == [("w1", True), ("w2", False)]
    with_nfd = removal(nodes=nodes, nfd=["gpu/nfd-worker"]).labels
    assert not any(NIC_LABEL in each["labels"] for each in with_nfd)


@pytest.mark.parametrize(
    ("seen", "stays"),
    [
        ({}, ()),
        ({"nv_ipam": ["dpf/nv-ipam-node"]}, ("ippools.nv-ipam.nvidia.com", "/opt/cni/bin/nv-ipam")),
        (
            {"multus": ["kube-system/rke2-multus"]},
            ("network-attachment-definitions.k8s.cni.cncf.io", "/etc/cni/net.d/00-multus.conf"),
        ),
        ({"attachments": ["jobs/theirs"]}, ("network-attachment-definitions.k8s.cni.cncf.io",)),
        # That of the role whereabouts stays where its pools are.
        ({"whereabouts": ["nvidia-network-operator/whereabouts-whereabouts-chart"]}, ("nvidia-network-operator",)),
        ({"whereabouts": ["team/whereabouts"]}, ("/opt/cni/bin/whereabouts",)),
    ],
)
def test_what_others_have_too_stays(seen, stays):
    def found(**given):
        decided = removal(**given)
        return {*names(decided.remnants), *decided.paths}

    assert found() - found(**seen) >= set(stays)
    assert bool(found() - found(**seen)) is bool(stays)
