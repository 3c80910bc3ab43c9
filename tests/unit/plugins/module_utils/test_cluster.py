# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest
from ansible_collections.ipu.fabric.plugins.module_utils import _cluster


def deployment(image, **metadata):
    containers = [{"name": "network-operator", "image": image}]
    names = {"namespace": "nvidia-network-operator", "name": "network-operator"}
    return {"metadata": {**names, **metadata}, "spec": {"template": {"spec": {"containers": containers}}}}


@pytest.mark.parametrize(
    ("image", "metadata", "version", "release"),
    [
        ("nvcr.io/nvidia/cloud-native/network-operator:v26.4.1", {}, "26.4.1", ""),
        ("mirror:5000/nvidia/network-operator@sha256:00", {}, "", ""),
        (
            "mirror:5000/nvidia/network-operator:patched",
            {
                "labels": {"app.kubernetes.io/version": "v1.4.0"},
                "annotations": {"meta.helm.sh/release-name": "network-operator"},
            },
            "1.4.0",
            "network-operator",
        ),
    ],
)
def test_operator_view(image, metadata, version, release):
    view = _cluster.operator_view(deployment(image, **metadata))
    assert (view["version"], view["release"]) == (version, release)
    assert (view["namespace"], view["name"]) == ("nvidia-network-operator", "network-operator")


@pytest.mark.parametrize(
    ("image", "is_one"),
    [
        ("nvcr.io/nvidia/cloud-native/network-operator:v26.4.1", True),
        ("nvcr.io/nvidia/mellanox/sriov-network-operator:v26.4.1", False),
        ("ghcr.io/mellanox/network-operator-init-container:v0.0.2", False),
    ],
)
def test_a_network_operator_is_known_by_its_image(image, is_one):
    assert ("network-operator" in _cluster.image_names(deployment(image))) == is_one


@pytest.mark.parametrize(
    ("labels", "annotations", "deleted"),
    [
        ({}, {}, False),
        ({"app.kubernetes.io/managed-by": "Helm"}, {}, True),
        ({"app.kubernetes.io/managed-by": "Helm"}, {"helm.sh/resource-policy": "keep"}, False),
        ({"app.kubernetes.io/managed-by": "flux"}, None, False),
    ],
)
def test_a_policy_that_the_chart_would_take_away(labels, annotations, deleted):
    assert _cluster.in_chart({"metadata": {"labels": labels, "annotations": annotations}}) == deleted
    assert not _cluster.in_chart(None)


@pytest.mark.parametrize(
    ("policy", "ipam"),
    [
        (None, ""),
        ({"spec": {"nvIpam": {"image": "x"}, "secondaryNetwork": {}}}, "nv-ipam"),
        ({"spec": {"secondaryNetwork": {"ipamPlugin": {"image": "x"}}}}, "whereabouts"),
        ({"spec": {"secondaryNetwork": {"multus": {"image": "x"}}}}, "whereabouts"),
    ],
)
def test_policy_ipam(policy, ipam):
    assert _cluster.policy_ipam(policy) == ipam
