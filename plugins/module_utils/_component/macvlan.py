# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The networks of a plan, and the nv-ipam address pools for pods on them."""

from __future__ import annotations

import dataclasses
import typing as t

from .._kube.query import Object
from .._model.plan import PlannedNetwork
from .._model.wish import Networks
from .._network.address_sets import pools_of
from .._network.macvlan_objects import namespaces
from .objects import pods_on

# The part of a planned network that ipu.fabric.macvlan_network takes.
OPTIONS = ("name", "namespace", "master", "mtu", "ipam", "pools", "pool")
OF_MACVLAN = ("mode",)
OF_OTHERS = ("cni", "resource", "meta_plugins")


@dataclasses.dataclass(frozen=True)
class Settings:
    """Variables of the role, without its name as a prefix."""

    networks: t.Sequence[PlannedNetwork]
    pool_namespace: str
    namespace_labels: t.Mapping[str, str]


@dataclasses.dataclass(frozen=True)
class Seen:
    """Nothing: ipu.fabric.macvlan_network compares the networks with the cluster."""


def decide(settings: Settings, _seen: Seen) -> Networks:
    pools = [pool for network in settings.networks for pool in pools_of({**network})]
    return Networks(
        networks=[
            {
                key: value
                for key, value in network.items()
                if key in (*OPTIONS, *(OF_OTHERS if "cni" in network else OF_MACVLAN))
            }
            for network in settings.networks
        ],
        objects=[
            *namespaces(settings.networks, (settings.pool_namespace,), settings.namespace_labels),
            *(pool_object(pool, settings.pool_namespace) for pool in pools),
        ],
        pods=pods_on(settings.networks),
    )


def pool_object(pool: Object, namespace: str) -> Object:
    return {
        "apiVersion": "nv-ipam.nvidia.com/v1alpha1",
        "kind": "IPPool",
        "metadata": {"name": pool["name"], "namespace": namespace},
        "spec": {key: value for key, value in pool.items() if key != "name"},
    }
