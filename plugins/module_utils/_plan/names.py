# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Names in the inventory that nothing reads: a misspelt group leaves its hosts out, a misspelt variable its value."""

from __future__ import annotations

import difflib
import functools
import typing as t

from .._common.findings import Findings
from .._model.observation import Observations
from .._model.stacks import STACKS

GROUPS = ("kube_control_plane", "kube_node", "ipu_node")
# What others call them: kubespray's old inventories, k3s-ansible, and people.
GROUPS_ELSEWHERE = {
    **dict.fromkeys(
        ("kube_master", "master", "masters", "control_plane", "controllers", "server"), "kube_control_plane"
    ),
    **dict.fromkeys(("agent", "node", "nodes", "kube_worker", "kube_workers", "worker", "workers"), "kube_node"),
    **dict.fromkeys(("ipu", "ipus", "ipu_host", "ipu_hosts", "poplar", "poplar_hosts"), "ipu_node"),
}
# Variables by which kubespray and k3s-ansible are told how to build a cluster, and what they are called here.
VARIABLES_ELSEWHERE = {
    "container_manager": "fabric_runtime",
    "k3s_version": "fabric_kubernetes_version",
    "kube_network_plugin": "fabric_cni",
    "kube_network_plugin_multus": "fabric_multus",
    "kube_pods_subnet": "fabric_pod_cidr",
    "kube_service_addresses": "fabric_service_cidr",
    "kube_version": "fabric_kubernetes_version",
    "kube_vip_address": "fabric_control_plane_vip",
    "loadbalancer_apiserver": "fabric_control_plane_endpoint",
}
PREFIX = "fabric_"
# Roles whose variables a site may set too. Left out are those with a name that others may use as well, such as chrony.
ROLE_PREFIXES = (
    *(f"{stack}_" for stack in STACKS),
    "gpu_operator_",
    "ipu_operator_",
    "kubernetes_",
    "macvlan_",
    "memlock_",
    "mpi_operator_",
    "native_workload_",
    "rdma_host_",
    "verify_",
    "whereabouts_",
)
PREFIXES = (PREFIX, *ROLE_PREFIXES)
ALIKE_PREFIXES = 0.8  # by difflib
# How alike two names have to be, by difflib; 1 is the same. The group gpu_node, at 0.88, is no misspelt ipu_node.
ALIKE_GROUPS, ALIKE_VARIABLES, ALIKE_ROLE_VARIABLES, ALIKE_KEYS = 0.9, 0.8, 0.92, 0.6
# By the ending alone. Facts of a host, such as ansible_hostname and ansible_user_id, are less alike.
ANSIBLE, ALIKE_CONNECTION = "ansible_", 0.74


@functools.lru_cache(maxsize=None)
def may_be_ours(name: str) -> bool:
    """Whether a variable begins like one of ours, or nearly so: what is nearest to it decides."""
    if name.startswith(PREFIXES) or name in VARIABLES_ELSEWHERE:
        return True
    return any(
        difflib.SequenceMatcher(None, name[: len(prefix)], prefix).ratio() > ALIKE_PREFIXES for prefix in PREFIXES
    )


def nearest(name: str, known: t.Iterable[str], alike: float) -> str:
    """The known name that is meant, perhaps; empty when none is like it."""
    return next(iter(difflib.get_close_matches(name, list(known), 1, alike)), "")


def meant_group(group: str) -> str:
    """The group of ours that one is meant for, perhaps: misspelt, or as other tools call it; empty for none."""
    name = group.replace("-", "_").lower()
    return GROUPS_ELSEWHERE.get(name) or nearest(name, GROUPS, ALIKE_GROUPS)


def check_groups(groups: t.Mapping[str, t.Sequence[str]], findings: Findings) -> None:
    """Hosts that are in a group with a name like one of ours, and not in that one."""
    for group, hosts in sorted(groups.items()):
        meant = "" if group in GROUPS else nearest(group.replace("-", "_"), GROUPS, ALIKE_GROUPS)
        left_out = sorted(set(hosts) - set(groups.get(meant, ())))
        if meant and left_out:
            findings.error(
                "unknown-group",
                left_out,
                "A host is in a group that nothing reads.",
                f"group {group}",
                f"Did you mean {meant}?",
            )


def check_foreign_variables(observations: Observations, findings: Findings) -> None:
    """An inventory of another tool works as it is, but what it says of the cluster has other names here."""
    names = {name for observation in observations.values() for name in observation.get("variables", ())}
    foreign = {name: ours for name, ours in VARIABLES_ELSEWHERE.items() if name in names and ours not in names}
    if foreign:
        findings.warning(
            "unknown-variable",
            [],
            "The inventory tells kubespray or k3s-ansible how to build a cluster. This collection reads none of"
            " that, and would build one by its defaults.",
            ", ".join(foreign),
            f"Write {', '.join(f'{ours} for {name}' for name, ours in foreign.items())}. If the other tool has built"
            " the cluster, set fabric_manage_kubernetes to false.",
        )


def meant_connection_variables(names: t.Iterable[str], known: t.Collection[str]) -> t.Dict[str, str]:
    """Variables of a host that are nearly ones by which Ansible connects, which ignores them: what each is meant for.

    known: all by which it does, such as ansible_host.
    """
    found = {}
    endings = {name[len(ANSIBLE) :]: name for name in known if name.startswith(ANSIBLE)}
    for name in sorted(set(names) - set(known)):
        if name.startswith(ANSIBLE):
            found[name] = endings.get(nearest(name[len(ANSIBLE) :], endings, ALIKE_CONNECTION), "")
        elif name.startswith(ANSIBLE[:2]):
            found[name] = nearest(name, known, ALIKE_GROUPS)
    return {name: meant for name, meant in found.items() if meant}


def check_variables(observations: Observations, known: t.Collection[str], findings: Findings) -> None:
    """Variables with our prefix that are none of ours, and those that are named nearly like one of our roles'."""
    hosts_of: t.Dict[str, t.List[str]] = {}
    for host, observation in observations.items():
        for name in observation.get("variables", ()):
            if name not in known and name not in VARIABLES_ELSEWHERE:
                hosts_of.setdefault(name, []).append(host)
    words = {name[len(PREFIX) :]: name for name in known if name.startswith(PREFIX)}
    for name, having in sorted(hosts_of.items()):
        hosts = [] if len(having) == len(observations) else having
        if not name.startswith(PREFIX):
            _check_role_variable(name, hosts, known, findings)
            continue
        if ":" in name:
            findings.error(
                "unknown-variable",
                hosts,
                "A variable has lost its value: in YAML a colon needs a space after it.",
                name,
                f"Write {name.partition(':')[0]}: VALUE. In a shell, put -e '{{...}}' between single quotes.",
            )
            continue
        meant = words.get(nearest(name[len(PREFIX) :], words, ALIKE_VARIABLES))
        note = findings.error if meant else findings.warning
        note(
            "unknown-variable",
            hosts,
            f"The collection has no variable {name}, so nothing reads it.",
            name,
            f"Did you mean {meant}?" if meant else f"Give variables of your own another prefix than {PREFIX}.",
        )


def _check_role_variable(name: str, hosts: t.Sequence[str], known: t.Collection[str], findings: Findings) -> None:
    """Names that are less alike may be another collection's."""
    meant = nearest(name, known, ALIKE_ROLE_VARIABLES)
    if meant:
        findings.error(
            "unknown-variable",
            hosts,
            f"No role of the collection has a variable {name}, so none reads it.",
            name,
            f"Did you mean {meant}?",
        )
