# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Calico's Installation, in the form in which its operator keeps it. Pure.

The operator writes its defaults into ipPools, a list that the API server replaces as a whole: without them, a pool
would change in each run. They come from pkg/controller/ippool/defaults.go of tigera/operator.
"""

from __future__ import annotations

import ipaddress
import typing as t

from .._common.addresses import Network
from .._common.result import FabricError
from .._kube.merge_values import merge_values
from .._kube.query import Object

# Settings of pools that the site does not define itself; and no BGP, which VXLAN does not need.
OWN_POOL = {"encapsulation": "VXLAN", "natOutgoing": "Enabled"}
OWN_NETWORK = {"bgp": "Disabled"}


def network_of(pool: Object) -> Network:
    try:
        return ipaddress.ip_network(pool["cidr"], strict=False)
    except (KeyError, ValueError) as error:
        raise FabricError(
            "A pool of pod addresses has no valid range.",
            "kubernetes_calico_installation.calicoNetwork.ipPools, or kubernetes_pod_cidr",
            str(pool),
            "Give each pool a cidr, such as 10.244.0.0/16.",
            code="invalid-input",
        ) from error


def pool_name(pool: Object, pools: t.Sequence[Object]) -> str:
    """The name that the operator gives to a pool without a name."""
    network = network_of(pool)
    if len(pools) == 1 or (len(pools) == 2 and len(families(pools)) == 2):
        return f"default-ipv{network.version}-ippool"
    return f"{network.network_address.exploded.replace(':', '.')}-{network.prefixlen}"


def families(pools: t.Iterable[Object]) -> t.Set[int]:
    return {network_of(pool).version for pool in pools}


def with_defaults(pool: Object, pools: t.Sequence[Object], bgp: str) -> Object:
    """A pool with everything that the operator would add. Without BGP, it refuses its own default, IPIP."""
    ipv4 = network_of(pool).version == 4
    return {
        "name": pool_name(pool, pools),
        "allowedUses": ["Workload", "Tunnel"],
        "assignmentMode": "Automatic",
        "blockSize": 26 if ipv4 else 122,
        "disableBGPExport": False,
        "disableNewAllocations": False,
        "encapsulation": "VXLAN" if bgp == "Disabled" else "IPIP" if ipv4 else "None",
        "natOutgoing": "Enabled" if ipv4 else "Disabled",
        "nodeSelector": "all()",
        **{key: value for key, value in pool.items() if value is not None},
    }


def calico_installation(pod_cidrs: t.Sequence[str], settings: t.Optional[Object] = None) -> Object:
    """The Installation's spec for these ranges, with a site's own settings merged in."""
    network = merge_values(OWN_NETWORK, (settings or {}).get("calicoNetwork") or {})
    pools = network.get("ipPools", [{"cidr": cidr, **OWN_POOL} for cidr in pod_cidrs])
    if pools is not None:
        network["ipPools"] = [with_defaults(pool, pools, network["bgp"]) for pool in pools]
    for family in sorted(families([*({"cidr": cidr} for cidr in pod_cidrs), *(pools or [])])):
        key = f"nodeAddressAutodetectionV{family}"
        # The operator's default uses the first address that it finds, which may be a fabric NIC's. And it refuses a
        # second method beside that default, which clusters created with it still have.
        chosen = network.get(key) or {"kubernetes": "NodeInternalIP"}
        network[key] = {"firstFound": False, **chosen}
    return {**(settings or {}), "calicoNetwork": network}
