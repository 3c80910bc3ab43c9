# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""NICs that drivers of Dynamic Resource Allocation (DRA) offer to pods, and the ResourceClaims that hold them.

Attributes as in dranet 1.4 (pkg/apis/attributes.go) and the SR-IOV driver (pkg/consts/consts.go).
"""

from __future__ import annotations

import typing as t

from .._common.helm_record import Object
from .._model.observation import DraNic
from .kubectl import Ask

# GA since Kubernetes 1.34, which both drivers need.
SLICES = "/apis/resource.k8s.io/v1/resourceslices"
CLAIMS = "/apis/resource.k8s.io/v1/resourceclaims"
# The attribute of each driver that holds the name of the NIC on its host.
NAMES = {"dra.net": "ifName", "sriovnetwork.k8snetworkplumbingwg.io": "interfaceName"}

Device = t.Tuple[str, str, str]  # driver, pool and name


def read_dra_nics(asks: Ask) -> t.List[DraNic]:
    """The NICs of all nodes. Claims are read only if there are any NICs."""
    specs = [each["spec"] for each in asks(SLICES).get("items", [])]
    specs = [spec for spec in specs if spec["driver"] in NAMES]
    if not specs:
        return []
    holders = _holders(asks(CLAIMS).get("items", []))
    return [
        {
            "driver": spec["driver"],
            "node": spec.get("nodeName", ""),
            "nic": _attribute(device, spec["driver"], NAMES[spec["driver"]]),
            "pci": _attribute(device, spec["driver"], "pciAddress"),
            "claims": holders.get((spec["driver"], spec["pool"]["name"], device["name"]), []),
        }
        for spec in specs
        for device in spec.get("devices", [])
    ]


def _holders(claims: t.Sequence[Object]) -> t.Dict[Device, t.List[str]]:
    """The ResourceClaims that hold each device, as NAMESPACE/NAME."""
    found: t.Dict[Device, t.List[str]] = {}
    for claim in claims:
        allocation = claim.get("status", {}).get("allocation") or {}
        for each in allocation.get("devices", {}).get("results", []):
            device = (each["driver"], each["pool"], each["device"])
            found.setdefault(device, []).append("{namespace}/{name}".format(**claim["metadata"]))
    return found


def _attribute(device: Object, driver: str, name: str) -> str:
    """A string attribute, whose name may be written with or without its driver's domain."""
    attributes = device.get("attributes", {})
    value = attributes.get(f"{driver}/{name}") or attributes.get(name) or {}
    return str(value.get("string", ""))
