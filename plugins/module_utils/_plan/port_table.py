# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Ports that components need between hosts: one table, which docs/requirements.md shows.

Traffic among pods goes through the pod network, so its ports are not listed. No component of this collection needs a
NodePort.
"""

from __future__ import annotations

import re
import typing as t

from .._model.settings import Settings
from .._model.stacks import STACKS

Port = t.Tuple[str, int]  # protocol and number

# Directions: from which hosts to which.
TO_PLANES = "all hosts to control planes"
FROM_PLANES = "control planes to all hosts"
BETWEEN_PLANES = "between control planes"
ALL = "between all hosts"
SERVERS = "all nodes to servers"
ON_FABRIC = "between the NICs of a fabric network"

IP_PROTOCOL = "IP protocol"
ROCE: Port = ("UDP", 4791)
SUPERVISOR: Port = ("TCP", 9345)
API_SERVER: Port = ("TCP", 6443)
FLANNEL_VXLAN: Port = ("UDP", 8472)
# Since this release, its controller is on the pod network.
IPU_OPERATOR_MODERN = (1, 2)


class Use(t.NamedTuple):
    """A port that a component needs."""

    component: str
    port: Port
    way: str
    needed: str  # condition, in words
    when: t.Callable[[Settings], bool]


def _calico_network(settings: Settings) -> t.Mapping[str, object]:
    installation = settings.pod_network.get("calico")
    network = installation.get("calicoNetwork") if isinstance(installation, dict) else None
    return network if isinstance(network, dict) else {}


def _on_stack(name: str) -> t.Callable[[Settings], bool]:
    return lambda settings: bool(settings.networks) and settings.stack == name


def _has_bgp(settings: Settings) -> bool:
    return _is(settings, "calico") and _calico_network(settings).get("bgp", "Disabled") != "Disabled"


def _encapsulations(settings: Settings) -> t.Set[str]:
    """Encapsulations of Calico's pools: VXLAN if the site defines none; its own pools default to Calico's choice."""
    pools = _calico_network(settings).get("ipPools")
    if not isinstance(pools, list):
        return {"VXLAN"}
    default = "IPIP" if _has_bgp(settings) else "VXLAN"
    found = {str(pool.get("encapsulation") or default) for pool in pools if isinstance(pool, dict)}
    return {name.replace("CrossSubnet", "") for name in found}


def _is(settings: Settings, cni: str) -> bool:
    return settings.manage_kubernetes and settings.cni == cni


def _flannel_backend(settings: Settings) -> t.Mapping[str, object]:
    backend = settings.pod_network.get("flannel")
    return backend if isinstance(backend, dict) and backend else {"Type": "vxlan"}


def _is_flannel(settings: Settings, backend: str) -> bool:
    return _is(settings, "flannel") and _flannel_backend(settings).get("Type") == backend


def _has_host_webhook(settings: Settings) -> bool:
    numbers = tuple(int(part) for part in re.findall(r"\d+", settings.ipu_operator_version)[:2])
    return settings.ipu and bool(numbers) and numbers < IPU_OPERATOR_MODERN


MANAGED = "always"
TABLE: t.Tuple[Use, ...] = (
    Use("API server", API_SERVER, TO_PLANES, MANAGED, lambda site: site.manage_kubernetes),
    Use("etcd", ("TCP", 2379), BETWEEN_PLANES, MANAGED, lambda site: site.manage_kubernetes),
    Use("etcd", ("TCP", 2380), BETWEEN_PLANES, MANAGED, lambda site: site.manage_kubernetes),
    Use("kubelet", ("TCP", 10250), FROM_PLANES, MANAGED, lambda site: site.manage_kubernetes),
    Use(
        "VRRP",
        (IP_PROTOCOL, 112),
        BETWEEN_PLANES,
        "`fabric_control_plane_vip`",
        lambda site: site.manage_kubernetes and bool(site.control_plane_vip),
    ),
    Use("Calico's Typha", ("TCP", 5473), ALL, "Calico", lambda site: _is(site, "calico")),
    Use(
        "Calico's VXLAN",
        ("UDP", 4789),
        ALL,
        "Calico, unless its pools say otherwise",
        lambda site: _is(site, "calico") and "VXLAN" in _encapsulations(site),
    ),
    Use("Calico's BGP", ("TCP", 179), ALL, "Calico with `bgp: Enabled`", _has_bgp),
    Use(
        "Calico's IP in IP",
        (IP_PROTOCOL, 4),
        ALL,
        "Calico with such pools",
        lambda site: _is(site, "calico") and "IPIP" in _encapsulations(site),
    ),
    Use("flannel's VXLAN", FLANNEL_VXLAN, ALL, "flannel", lambda site: _is_flannel(site, "vxlan")),
    Use("flannel's UDP", ("UDP", 8285), ALL, "flannel's backend `udp`", lambda site: _is_flannel(site, "udp")),
    Use(
        "flannel's WireGuard",
        ("UDP", 51820),
        ALL,
        "flannel's backend `wireguard`",
        lambda site: _is_flannel(site, "wireguard"),
    ),
    *(
        Use(
            f"{stack.title}'s webhook",
            ("TCP", stack.webhook),
            FROM_PLANES,
            f"`fabric_stack: {name}`",
            _on_stack(name),
        )
        for name, stack in STACKS.items()
        if stack.webhook
    ),
    Use("IPU operator's webhook", ("TCP", 9443), FROM_PLANES, "IPU operator before 1.2", _has_host_webhook),
    Use("RoCE", ROCE, ON_FABRIC, "`fabric_require_rdma`", lambda site: site.require_rdma),
    Use("RKE2's supervisor", SUPERVISOR, SERVERS, "nodes of RKE2", lambda site: not site.manage_kubernetes),
)


def uses(settings: Settings) -> t.List[Use]:
    """The lines that apply to a site. flannel's VXLAN may use another port."""
    port = _flannel_backend(settings).get("Port")
    own: Port = ("UDP", port) if isinstance(port, int) and port > 0 else FLANNEL_VXLAN
    return [line._replace(port=own) if line.port == FLANNEL_VXLAN else line for line in TABLE if line.when(settings)]


def component_names(settings: Settings) -> t.Dict[Port, str]:
    return {line.port: line.component for line in (*TABLE, *uses(settings))}
