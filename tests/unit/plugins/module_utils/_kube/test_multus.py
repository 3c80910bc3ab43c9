# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json

import pytest
from ansible_collections.ipu.fabric.plugins.module_utils._kube import multus


def pod(name, namespace="default", **annotations):
    return {"metadata": {"name": name, "namespace": namespace, "annotations": annotations}}


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("", set()),
        ("rdma-net", {("default", "rdma-net")}),
        ("rdma-net@net7, jobs/other", {("default", "rdma-net"), ("jobs", "other")}),
        ('[{"name": "a"}, {"name": "b", "namespace": "jobs"}]', {("default", "a"), ("jobs", "b")}),
        ("[broken", set()),
        ("[1]", set()),
        (" , ", set()),
    ],
)
def test_requested(text, names):
    assert multus.networks_of(pod("p", **{multus.NETWORKS: text})) == names


@pytest.mark.parametrize("key", multus.REQUESTS)
def test_networks_of_a_pod(key):
    assert multus.networks_of(pod("p", "jobs", **{key: "a"})) == {("jobs", "a")}
    assert multus.networks_of({"metadata": {"namespace": "jobs", "name": "p"}}) == set()


@pytest.mark.parametrize("key", multus.REQUESTS)
@pytest.mark.parametrize(
    ("text", "pools"),
    [
        ("", set()),
        ("rail, jobs/old@net7", set()),
        ('[{"name": "a"}]', set()),
        ('[{"name": "a", "cni-args": {"poolNames": ["x", "y"]}}]', {("IPPool", "x"), ("IPPool", "y")}),
        ('[{"name": "a", "cni-args": {"poolNames": ["x"], "poolType": "cidrpool"}}]', {("CIDRPool", "x")}),
        ('[{"name": "a", "cni-args": null}, {"name": "b", "cni-args": {"poolNames": null}}]', set()),
        ("[broken", set()),
    ],
)
def test_named_pools_of_a_pod(key, text, pools):
    assert multus.named_pools(pod("p", **{key: text})) == pools


NETWORK = {
    "name": "rdma-net",
    "namespace": "default",
    "master": "ens1f0",
    "mode": "bridge",
    "mtu": 1500,
    "ipam": {"a": [1]},
}
CONFIG = {
    "cniVersion": "0.3.1",
    "type": "macvlan",
    "master": "ens1f0",
    "mode": "bridge",
    "mtu": 1500,
    "ipam": {"a": [1]},
}


def nad(**changes):
    return {"spec": {"config": json.dumps({**CONFIG, **changes})}}


@pytest.mark.parametrize(
    ("found", "network", "fault"),
    [
        (nad(), NETWORK, ""),
        (nad(mtu=None), {**NETWORK, "mtu": 0}, ""),
        (None, NETWORK, "is not there"),
        ({"spec": {"config": '{"ipam":broken}'}}, NETWORK, "is not valid JSON"),
        ({"spec": {}}, NETWORK, "is not valid JSON"),
        (nad(master="ens2f0"), NETWORK, "master='ens2f0', planned is 'ens1f0'"),
        (nad(mtu=9000), NETWORK, "mtu=9000, planned is 1500"),
        (nad(mtu=9000), {**NETWORK, "mtu": 0}, "mtu=9000, planned is the master's"),
        (nad(ipam={}), NETWORK, "ipam={}"),
        (nad(type="ipvlan"), NETWORK, "type='ipvlan'"),
    ],
)
def test_nad_faults(found, network, fault):
    faults = multus.nad_faults(found, network)
    assert fault in " ".join(faults)
    assert bool(faults) == bool(fault)
