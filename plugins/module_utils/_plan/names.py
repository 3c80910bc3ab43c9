# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Names in the inventory that nothing reads: a misspelt group loses its hosts, a misspelt variable its value."""

from __future__ import annotations

import difflib
import functools
import typing as t

from .._common.findings import Findings
from .._model.observation import Observations
from .._model.stacks import STACKS

GROUPS = ("kube_control_plane", "kube_node", "ipu_node")
# Names for these groups elsewhere: in old kubespray inventories, in k3s-ansible, and among people.
GROUPS_ELSEWHERE = {
    **dict.fromkeys(
        ("kube_master", "master", "masters", "control_plane", "controllers", "server"), "kube_control_plane"
    ),
    **dict.fromkeys(("agent", "node", "nodes", "kube_worker", "kube_workers", "worker", "workers"), "kube_node"),
    **dict.fromkeys(("ipu", "ipus", "ipu_host", "ipu_hosts", "poplar", "poplar_hosts"), "ipu_node"),
}
# Variables of kubespray and k3s-ansible that tell how to build a cluster, and their names here.
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
# Roles whose variables a site may set too, without those whose names others may use as well, such as chrony.
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
# Minimum similarity of two names, by difflib; 1 is identical. The group gpu_node (0.88) is not a misspelt ipu_node.
ALIKE_GROUPS, ALIKE_VARIABLES, ALIKE_ROLE_VARIABLES, ALIKE_KEYS = 0.9, 0.8, 0.92, 0.6
# Compares only the part after the prefix. A host's facts, such as ansible_hostname, are less similar.
ANSIBLE, ALIKE_CONNECTION = "ansible_", 0.74


@functools.lru_cache(maxsize=None)
def may_be_ours(name: str) -> bool:
    """Whether a variable's name starts like one of ours, or nearly so: then the most similar name decides."""
    if name.startswith(PREFIXES) or name in VARIABLES_ELSEWHERE:
        return True
    return any(
        difflib.SequenceMatcher(None, name[: len(prefix)], prefix).ratio() > ALIKE_PREFIXES for prefix in PREFIXES
    )


def nearest(name: str, known: t.Iterable[str], alike: float) -> str:
    """The known name that is probably meant; empty if none is similar."""
    return next(iter(difflib.get_close_matches(name, list(known), 1, alike)), "")


def with_meant(names: t.Iterable[str], known: t.Iterable[str]) -> str:
    """Unknown names in one line, each with the known one that is probably meant."""
    listed = sorted(known)
    near = ((name, nearest(name, listed, ALIKE_VARIABLES)) for name in names)
    return ", ".join(f"{name} (did you mean {meant}?)" if meant else name for name, meant in near)


def meant_group(group: str) -> str:
    """Our group that is probably meant by a name, misspelt or as in other tools; empty if none is."""
    name = group.replace("-", "_").lower()
    return GROUPS_ELSEWHERE.get(name) or nearest(name, GROUPS, ALIKE_GROUPS)


def lost_groups(groups: t.Mapping[str, t.Sequence[str]]) -> t.Dict[str, str]:
    """Groups whose names are similar to one of ours, with ours, if it does not have all their hosts."""
    meant = {group: nearest(group.replace("-", "_"), GROUPS, ALIKE_GROUPS) for group in {*groups} - {*GROUPS}}
    return {group: ours for group, ours in meant.items() if ours and {*groups[group]} - {*groups.get(ours, ())}}


def check_groups(groups: t.Mapping[str, t.Sequence[str]], findings: Findings) -> None:
    """Report hosts in a group whose name is similar to one of ours, if they are not in ours."""
    for group, meant in sorted(lost_groups(groups).items()):
        findings.error(
            "unknown-group",
            sorted({*groups[group]} - {*groups.get(meant, ())}),
            "A host is in a group whose name is nearly that of one of ours, and it is not in ours.",
            f"group {group}",
            f"Did you mean {meant}?",
        )


def check_foreign_variables(observations: Observations, findings: Findings) -> None:
    """Warn of variables of other tools: their inventories work here, but settings of the cluster have other names."""
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
    """Misspelt connection variables of Ansible, which ignores them: for each, the variable that is probably meant.

    known: all connection variables, such as ansible_host.
    """
    found = {}
    endings = {name[len(ANSIBLE) :]: name for name in known if name.startswith(ANSIBLE)}
    for name in sorted(set(names) - set(known)):
        if name.startswith(ANSIBLE):
            found[name] = endings.get(nearest(name[len(ANSIBLE) :], endings, ALIKE_CONNECTION), "")
        elif name.startswith(ANSIBLE[:2]):
            found[name] = nearest(name, known, ALIKE_GROUPS)
    return {name: meant for name, meant in found.items() if meant}


def check_passed(observations: Observations, passed: t.Mapping[str, str], findings: Findings) -> None:
    """Warn of role variables that site sets itself, from its plan: each has a variable of the site instead, or none."""
    for name in sorted({name for seen in observations.values() for name in seen.get("variables", ())} & passed.keys()):
        findings.warning(
            "unknown-variable",
            [],
            f"site sets {name} from its plan, so the inventory's value has no effect.",
            name,
            f"Set {passed[name]} instead." if passed[name] else "Remove it: the plan decides it.",
        )


def check_variables(observations: Observations, known: t.Collection[str], findings: Findings) -> None:
    """Report variables that have our prefix but are not ours, and those with names similar to our roles' variables."""
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
            f"Did you mean {meant}?"
            if meant
            else f"The page of all variables has the collection's. Give your own a prefix other than {PREFIX}.",
        )


def _check_role_variable(name: str, hosts: t.Sequence[str], known: t.Collection[str], findings: Findings) -> None:
    """Report very similar names only: others may belong to another collection."""
    meant = nearest(name.lower().replace("-", "_"), known, ALIKE_ROLE_VARIABLES)
    if meant:
        findings.error(
            "unknown-variable",
            hosts,
            f"No role of the collection has a variable {name}, so none reads it.",
            name,
            f"Did you mean {meant}?",
        )
