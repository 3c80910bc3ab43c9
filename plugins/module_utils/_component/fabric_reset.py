# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a removal of the fabric takes off a cluster, what stays, and why it may be refused, for the playbook reset."""

from __future__ import annotations

import dataclasses
import typing as t

from .._common.text import shorten_list
from .._model.observation import Observations
from .._model.operators import IpuFacts
from .._model.stacks import STACKS, StackName
from .._plan.cluster_identity import is_bare, observed
from .settings import NoSettings as Settings

NAMES = 8  # node names in one line
REQUEST = "fabric"  # value of fabric_reset
MPI_OPERATOR = "the MPI operator (ipu.fabric.workloads -e mpi_operator_state=absent -e fabric_metrics=false removes it)"
HOST_SETTINGS = "Settings that site made on hosts stay: the limit of locked memory, kernel modules and sysctls."
WITH_OPERATORS = (
    " The operators' CustomResourceDefinitions, their namespaces and their files on the hosts are removed with them:"
    " add --check to see each."
)
HOSTS_TOO = "-e fabric_reset=cluster shows what is left on the hosts."


class Stack(t.TypedDict, total=False):
    """The part of what fabric_stack and cluster_info return about an operator and its objects that decides."""

    objects: t.List[str]
    pods: t.List[str]
    needed_by: t.List[str]
    installations: t.List[t.Dict[str, t.Any]]


@dataclasses.dataclass(frozen=True)
class Seen:
    """At first only the hosts; what the cluster has, once it has answered."""

    hosts: Observations = dataclasses.field(default_factory=dict)
    request: str = ""  # value of fabric_reset
    force: bool = False
    removes_cluster: bool = True  # whether fabric_reset=cluster could remove Kubernetes too
    stacks: t.Mapping[StackName, Stack] = dataclasses.field(default_factory=dict)
    own: t.Sequence[str] = ()  # NAMESPACE/NAME of our operators and of our whereabouts
    marked: t.Sequence[str] = ()  # nodes with a condition, record or taint from the proof
    scheduled: t.Sequence[str] = ()  # objects of scheduled proofs
    whereabouts: t.Sequence[str] = ()
    whereabouts_networks: t.Sequence[str] = ()  # of others
    gpu_operators: t.Sequence[str] = ()  # empty if the site has no GPUs, like the next two
    gpu_pods: t.Sequence[str] = ()
    ipu: t.Optional[IpuFacts] = None
    keeps_tracker: bool = False
    mpi_operator: bool = False  # whether there is one installed by this collection
    reports: t.Sequence[str] = ()  # paths on the controller: records of what was proved and applied


class FabricReset(t.TypedDict):
    """What reset.yml does with fabric_reset=fabric, or without fabric_reset."""

    bare: bool  # whether no host is in a cluster
    nothing: str  # printed if there is nothing to remove and no removal was requested; otherwise empty
    table: t.List[str]
    refusal: str
    whereabouts_stays: t.List[str]  # because of these
    end: str  # printed after the removal


def decide(settings: Settings, seen: Seen) -> FabricReset:
    found, asked = found_in(seen), seen.request == REQUEST
    users = [*stack_list(seen, "pods"), *seen.gpu_pods, *(seen.ipu["jobs"] if seen.ipu else [])]
    kept, staying = whereabouts_stays(seen), " ".join(what_stays(seen))
    left = [*found["objects"], *seen.marked, *seen.scheduled, *found["operators"], *found["GPU operators"], *users]
    rest = f"{staying} Nothing else" if staying else "Nothing"
    but = f" but {', '.join(found['stays on purpose'])}" if found["stays on purpose"] else ""
    nothing = f"{rest} of this fabric is left in the cluster{but}. {HOSTS_TOO if seen.removes_cluster else ''}"
    refusal = ""
    if asked and users and not seen.force:
        refusal = (
            f"Nothing may use the fabric when it is removed. Seen: {', '.join(users)}. Next: delete or stop what"
            " creates them, or have them deleted with -e fabric_reset_force=true."
            f"{' If pods with GPUs are ending already, run it again when they have ended.' if seen.gpu_pods else ''}"
        )
    elif not asked and left:
        refusal = (
            "Not confirmed: nothing is removed unless it is asked for."
            f" Seen: fabric_reset is {seen.request or 'empty'}. Next: "
            f"{'stop the pods and jobs of the table above, then ' if users else ''}run it again with -e"
            " fabric_reset=fabric, which removes the fabric and leaves Kubernetes"
            f"{'; -e fabric_reset=cluster shows how to remove both' if seen.removes_cluster else ''}."
            f"{WITH_OPERATORS if found['operators'] else ''}"
        )
    return {
        "bare": is_without_cluster(seen.hosts),
        "nothing": "" if asked or left else nothing.rstrip(),
        "table": [
            f"{what if not number else '':<28}{each}"
            for what, names in found.items()
            for number, each in enumerate(names or ["none"])
        ],
        "refusal": refusal,
        "whereabouts_stays": kept,
        "end": f"{rest} of this fabric is left in the cluster{but}. {HOST_SETTINGS}",
    }


def what_stays(seen: Seen) -> t.Iterator[str]:
    """A sentence for each of our stacks, and for whereabouts, if others need it or have their own."""
    ours = any(each not in seen.whereabouts for each in seen.own)
    for name, stack in seen.stacks.items():
        there = ours if name == "network_operator" else bool(stack.get("installations"))
        needed_by = stack.get("needed_by", ()) if there else ()
        attached = any(each.startswith("NetworkAttachmentDefinition ") for each in needed_by)
        beside = "multus and 00-multus.conf" if attached else "its files on the hosts"
        yield from stays_for(f"{STACKS[name].title} stays, with {beside}", needed_by)
    strangers = [each for each in seen.whereabouts if each not in seen.own]
    if strangers:
        yield f"Whereabouts stays, because {', '.join(strangers)} is not of this fabric."
    else:
        networks = [f"NetworkAttachmentDefinition {each}" for each in seen.whereabouts_networks]
        yield from stays_for("Whereabouts stays, with its files on the hosts", networks)


def stays_for(what: str, needed_by: t.Sequence[str]) -> t.Iterator[str]:
    if needed_by:
        needs, them = ("needs", "that") if len(needed_by) == 1 else ("need", "these")
        title = what if what[0].isupper() else f"The {what}"
        yield f"{title}, because {shorten_list(needed_by, NAMES)} {needs} it; delete {them} first to remove it."


def is_without_cluster(hosts: Observations) -> bool:
    """Whether all hosts have answered and none of them is a node of any cluster."""
    facts = observed(hosts)
    made = {each["kubernetes"]["distribution"] for each in facts.values() if "kubernetes" in each}
    return bool(facts) and len(facts) == len(hosts) and made <= {"none"} and is_bare(hosts)


def stack_list(seen: Seen, name: t.Literal["objects", "pods", "needed_by"]) -> t.List[str]:
    return [each for stack in seen.stacks.values() for each in stack.get(name, ())]


def own_operators(seen: Seen) -> t.List[str]:
    """Our operators that are removed, without those that others need."""
    found = [
        f"{each['namespace']}/{each['name']}"
        for stack in seen.stacks.values()
        for each in (() if stack.get("needed_by") else stack.get("installations", ()))
    ]
    needed = bool(seen.stacks.get("network_operator", {}).get("needed_by"))
    kept = bool(whereabouts_stays(seen))
    return [*(each for each in seen.own if not (kept if each in seen.whereabouts else needed)), *found]


def whereabouts_stays(seen: Seen) -> t.List[str]:
    """Installations of whereabouts by others, and networks of others that take addresses from it."""
    return [*(each for each in seen.whereabouts if each not in seen.own), *seen.whereabouts_networks]


def found_in(seen: Seen) -> t.Dict[str, t.List[str]]:
    """Rows of the table of what was found."""
    ipu, jobs = (seen.ipu["own"], seen.ipu["jobs"]) if seen.ipu else ([], [])
    pods = {f"Pod {each.partition(' of ')[0]}" for each in stack_list(seen, "pods")}  # they have their own row
    stays = {
        "the IPU operator's partitions (ipu_operator_keep_tracker)": bool(seen.ipu and seen.ipu["tracker"])
        and seen.keeps_tracker,
        MPI_OPERATOR: seen.mpi_operator,
    }
    return {
        "objects": [each for each in stack_list(seen, "objects") if each not in pods],
        "operators": [*own_operators(seen), *ipu],
        "GPU operators": [*seen.gpu_operators],
        "files of this machine": [*seen.reports],
        **{f"{STACKS[name].title} stays for": [*stack.get("needed_by", ())] for name, stack in seen.stacks.items()},
        "whereabouts stays for": whereabouts_stays(seen),
        "nodes marked by the proof": [shorten_list(seen.marked, NAMES)] if seen.marked else [],
        "proofs on a schedule": [each for each in seen.scheduled if each.startswith(("CronJob", "Namespace"))],
        "stays on purpose": [what for what, there in stays.items() if there],
        "pods on the networks": stack_list(seen, "pods"),
        "pods with GPUs": [*seen.gpu_pods],
        "IPUJobs": [*jobs],
    }
