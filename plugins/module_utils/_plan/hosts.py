# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Each host's roles in the cluster, from its groups, and problems with these groups."""

from __future__ import annotations

import dataclasses
import typing as t
from types import MappingProxyType

from .._common.findings import Findings
from .._model.observation import HostFacts, Observation, RdmaFacts
from .._model.plan import Role
from .cluster_identity import claimed_names, disputed
from .names import lost_groups, meant_group
from .node_addresses import AS_THE_HOST, AddressRules, choose_address


@dataclasses.dataclass(frozen=True)
class PlacedHost:
    """A host of the inventory, with its roles, its node's name and its addresses."""

    name: str  # in the inventory
    observation: Observation
    roles: t.List[Role]
    node: str
    addresses: t.List[str]  # one of each family, the main one first; may be empty

    @property
    def address(self) -> str:
        """The first address; empty if there is none."""
        return self.addresses[0] if self.addresses else ""

    @property
    def facts(self) -> t.Optional[HostFacts]:
        return self.observation.get("host") or None

    @property
    def rdma(self) -> t.Optional[RdmaFacts]:
        return self.observation.get("rdma") or None

    @property
    def groups(self) -> t.List[str]:
        return self.observation["groups"]


Hosts = t.Mapping[str, PlacedHost]


def place_hosts(
    observations: t.Mapping[str, Observation], rules: AddressRules = AS_THE_HOST
) -> t.Dict[str, PlacedHost]:
    """A single host has all roles; IPU hosts are those in ipu_node, or every worker if there is no such group."""
    single = len(observations) == 1
    claims = claimed_names(observations)
    others = disputed(observations, claims)
    has_ipu_group = any("ipu_node" in observation["groups"] for observation in observations.values())
    placed = {}
    for name, observation in observations.items():
        groups = observation["groups"]
        worker = "kube_node" in groups or single
        roles: t.Dict[Role, bool] = {
            "control_plane": "kube_control_plane" in groups,
            "worker": worker,
            "ipu": "ipu_node" in groups or (not has_ipu_group and worker),
        }
        placed[name] = PlacedHost(
            name=name,
            observation=observation,
            roles=[role for role, has in roles.items() if has],
            node=name.lower() if name in others else claims.get(name, name.lower()),
            addresses=[text.strip() for text in choose_address(observation, rules).split(",") if text.strip()],
        )
    return placed


def with_role(hosts: Hosts, role: Role) -> t.List[str]:
    return [name for name, host in hosts.items() if role in host.roles]


def _rename(meant: t.Mapping[str, str], group: str) -> str:
    return f"Rename the group {meant[group]} to {group}." if group in meant else ""


def check_inventory(
    hosts: Hosts, managed: bool, findings: Findings, groups: t.Mapping[str, t.Sequence[str]] = MappingProxyType({})
) -> None:
    """groups: all of the inventory, in one of which missing hosts may be."""
    planes, workers = with_role(hosts, "control_plane"), with_role(hosts, "worker")
    meant = {meant_group(group): group for group, members in groups.items() if members}
    # Their hosts are missing for a reason that is a finding already.
    lost = lost_groups(groups).values() if findings.has_error("unknown-group") else ()
    if not planes and "kube_control_plane" not in lost:
        findings.error(
            "inventory",
            [],
            "A cluster needs a control plane.",
            f"{len(hosts)} hosts, none in kube_control_plane",
            _rename(meant, "kube_control_plane") or "Put a host into kube_control_plane.",
        )
    elif planes and not workers and "kube_node" not in lost:
        findings.error(
            "inventory",
            [],
            "A cluster needs hosts that run pods.",
            f"kube_node is empty; kube_control_plane has {', '.join(planes)}, of {len(hosts)} hosts in all",
            _rename(meant, "kube_node")
            or "Put the workers into kube_node; put control planes that also run pods into both groups.",
        )
    if managed and planes and len(planes) % 2 == 0:
        findings.warning(
            "control-plane-count",
            planes,
            "An even number of control planes tolerates no more failures than one less.",
            f"{len(planes)} in kube_control_plane",
            "Use 1, 3 or 5.",
        )
    strays = [name for name, host in hosts.items() if not {"control_plane", "worker"} & set(host.roles)]
    if strays and not {"kube_control_plane", "kube_node"} & {*lost}:
        findings.error(
            "inventory",
            strays,
            "A host of ipu_node must be a node of the cluster.",
            "it is in neither kube_control_plane nor kube_node",
            "Put it into kube_node.",
        )
    etcd = {name for name, host in hosts.items() if "etcd" in host.groups}
    if managed and etcd and etcd != set(planes):
        sides = (("etcd", etcd - set(planes)), ("kube_control_plane", set(planes) - etcd))
        findings.warning(
            "etcd-group",
            sorted(etcd ^ set(planes)),
            "etcd runs on every control plane, and nowhere else.",
            "; ".join(f"only in {group}: {', '.join(sorted(names))}" for group, names in sides if names),
            "Name the same hosts in both groups.",
        )
