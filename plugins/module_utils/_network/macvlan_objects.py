# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""MacvlanNetworks and their namespaces as objects. Pure."""

from __future__ import annotations

import json
import typing as t

from .._kube.multus import Attachment
from .._kube.query import Object, query
from .._model.plan import PlannedNetwork

API = "mellanox.com/v1alpha1"
MACVLANS = f"/apis/{API}/macvlannetworks"


def macvlan_object(network: Attachment) -> Object:
    """The MacvlanNetwork of a network: every field is set, so that none keeps an old value."""
    return {
        "apiVersion": API,
        "kind": "MacvlanNetwork",
        "metadata": {"name": network["name"]},
        "spec": {
            "networkNamespace": network["namespace"],
            "master": network["master"],
            "mode": network["mode"],
            "mtu": network["mtu"],
            "ipam": json.dumps(network["ipam"], sort_keys=True),
        },
    }


def owners(attachment: Object) -> t.Set[str]:
    """The MacvlanNetworks that an attachment was made for."""
    return set(query("metadata.ownerReferences[?kind=='MacvlanNetwork'].name", attachment) or ())


def readable_spec(spec: t.Optional[Object]) -> t.Optional[Object]:
    """A spec with its IPAM as data: two texts that say the same compare as the same."""
    if spec is None:
        return None
    shown = {"mtu": 0, "mode": "bridge", **spec}
    try:
        return {**shown, "ipam": json.loads(spec["ipam"])}
    except (KeyError, ValueError):
        return shown


def namespaces(
    networks: t.Sequence[PlannedNetwork], known: t.Sequence[str], labels: t.Mapping[str, str]
) -> t.List[Object]:
    """The namespaces of networks, except those that every cluster has, and those in `known`."""
    names = dict.fromkeys(network.get("namespace") or "default" for network in networks)
    return [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, **({"labels": labels} if labels else {})}}
        for name in names
        if name not in ("default", "kube-system", *known)
    ]
