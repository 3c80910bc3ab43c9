# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json

import pytest
from ansible_collections.ipu.fabric.plugins.module_utils._network import macvlan

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
    faults = macvlan.nad_faults(found, network)
    assert fault in " ".join(faults)
    assert bool(faults) == bool(fault)


@pytest.mark.parametrize(
    ("spec", "readable"),
    [
        (None, None),
        ({"ipam": '{"b":1,"a":2}'}, {"mtu": 0, "mode": "bridge", "ipam": {"a": 2, "b": 1}}),
        ({"ipam": "broken"}, {"mtu": 0, "mode": "bridge", "ipam": "broken"}),
        ({"mtu": 5}, {"mtu": 5, "mode": "bridge"}),
    ],
)
def test_readable_spec(spec, readable):
    assert macvlan.readable_spec(spec) == readable


def test_every_field_is_set():
    assert set(macvlan.macvlan_object(NETWORK)["spec"]) == {"networkNamespace", "master", "mode", "mtu", "ipam"}
