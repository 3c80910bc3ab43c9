# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a cluster may be removed from its hosts: it must be named, and be the one of these hosts. Pure."""

from __future__ import annotations

import typing as t

from .._common.text import printable, shorten_list
from .._kubeadm.host_reset import ClusterMark
from .._model.observation import NodeIdentity
from .cluster_identity import is_node
from .report import wrap_words

SHOWN = 8  # names in a line


class FoundOnHost(t.TypedDict, total=False):
    """Result of host_reset in check mode; for an unreachable host, only the reason."""

    cluster: ClusterMark
    removed: t.Dict[str, t.List[str]]
    kept: t.List[str]
    msg: str


class ClusterAnswer(t.TypedDict, total=False):
    """The API's answer, as cluster_info returns it."""

    present: bool
    ca: str
    nodes: t.List[NodeIdentity]


class Confirmation(t.NamedTuple):
    """The confirmation given on the command line."""

    name: str
    force: bool


class Site(t.NamedTuple):
    """What the controller has of the site."""

    ca: str  # digest; of the cluster that answers with its kubeconfig, empty if none does
    reports: t.Sequence[str]  # paths


class ResetPlan(t.TypedDict):
    """What reset.yml does with fabric_reset=cluster."""

    name: str  # of the cluster; empty if no host is in it any more
    ca: str  # digest; empty if no host is in the cluster any more
    serving: t.List[str]  # hosts whose API server runs
    reports: t.List[str]  # paths on the controller to remove; none if no host is in the cluster any more
    kubeconfig: bool  # the site's kubeconfig leads to this cluster, and to none after it
    table: t.List[str]
    refusal: str  # why nothing is removed, and what to do; empty if everything may be removed


def describe_host(name: str, found: FoundOnHost) -> t.List[str]:
    parts = [f"{kind.replace('_', ' ')}: {shorten_list(names, SHOWN)}" for kind, names in found["removed"].items()]
    lines = [f"{name}: {'; '.join(parts) or 'nothing is left'}"]
    lines += [f"{name} keeps {', '.join(found['kept'])}"] if found["kept"] else []
    return [row for line in lines for row in wrap_words(line, "  ")]


def is_elsewhere(mark: ClusterMark, known: t.Collection[ClusterMark]) -> bool:
    """Whether a host without a known CA has another API server than the hosts with one."""
    return bool(known and mark["server"] and not mark["ca"]) and mark["server"] not in {
        word for each in known for word in (each["server"], each["name"])
    }


def why_not_one_to_one(marks: t.Mapping[str, ClusterMark], nodes: t.Sequence[NodeIdentity]) -> str:
    """Which hosts look like the same node, or like one that the cluster knows as another machine; empty if none do."""
    ids: t.Dict[str, t.List[str]] = {}
    for name, mark in marks.items():
        ids.setdefault(mark["machine_id"], []).append(name)
    known = {node["name"]: node["machine_id"] for node in nodes}
    return "; ".join(
        [
            *(
                f"{', '.join(names)} have the machine-id {each}"
                for each, names in ids.items()
                if each and len(names) > 1
            ),
            *(
                f"{name} is {mark['hostname']} with the machine-id {mark['machine_id']}, the cluster has that node with"
                f" {known[mark['hostname']]}"
                for name, mark in marks.items()
                if mark["ca"] and known.get(mark["hostname"]) and not is_node(mark, _node(mark, known))
            ),
        ]
    )


def _node(mark: ClusterMark, known: t.Mapping[str, str]) -> NodeIdentity:
    return {"name": mark["hostname"], "machine_id": known[mark["hostname"]]}


def why_not(
    hosts: t.Mapping[str, FoundOnHost], answer: ClusterAnswer, jobs: t.Sequence[str], force: bool
) -> t.Tuple[str, str]:
    """What prevents the removal, and what to do about it; both empty if nothing does."""
    silent = [name for name, found in hosts.items() if "removed" not in found]
    if silent:
        return (
            f"Every host has to answer. Seen: {silent[0]}: {hosts[silent[0]].get('msg', 'no answer')}"
            + (f"; no answer from {', '.join(silent[1:])} either." if silent[1:] else "."),
            "Start them, or take those that are gone for good out of the inventory.",
        )
    every = {name: found["cluster"] for name, found in hosts.items()}
    marks = {name: mark for name, mark in every.items() if mark["ca"]}
    authorities = {mark["ca"] for mark in marks.values()}
    if len(authorities) > 1:
        seen = ", ".join(f"{name}: {mark['ca']} ({mark['server']})" for name, mark in marks.items())
        return (
            f"The hosts are in several clusters. Seen: CAs {seen}.",
            "Take the hosts of another cluster out of the inventory.",
        )
    elsewhere = {name: mark["server"] for name, mark in every.items() if is_elsewhere(mark, marks.values())}
    if elsewhere:
        seen = ", ".join(f"{name}: its API server is {server}" for name, server in elsewhere.items())
        servers = ", ".join(sorted({mark["server"] for mark in marks.values()}))
        return (
            f"Nothing shows that all hosts are in one cluster. Seen: {seen}; that of {', '.join(marks)} is {servers}.",
            "Take the hosts of another cluster out of the inventory. If a host was in this cluster, run kubeadm reset"
            " on it.",
        )
    # A host that does not report whether its API server runs may have one.
    serving = [name for name, mark in every.items() if mark.get("serves", bool(mark["server"]))]
    if not answer.get("present") and serving:
        return (
            "An API server runs, but could not be asked: nodes outside the inventory, and IPUJobs, would go unnoticed."
            f" Seen: no answer with the kubeconfig of this site, nor with that of {', '.join(serving)}.",
            "Make it answer: if its certificates have expired, run ipu.fabric.renew_certificates. If the cluster is"
            " lost, stop the API server on these hosts (systemctl stop kubelet, then its container), and run again.",
        )
    # A host without a known CA may still be in a cluster.
    if not answer.get("present") or not (authorities or any(mark["server"] for mark in every.values())):
        return "", ""
    if authorities and answer["ca"] not in ("", *authorities):
        return (
            f"The kubeconfig does not lead to the cluster of the hosts. Seen: its CA is {answer['ca']}, that of"
            f" {', '.join(marks)} is {authorities.pop()}.",
            "Run in the folder of this site, or set fabric_kubeconfig to the kubeconfig of this cluster.",
        )
    what = why_not_one_to_one(every, answer["nodes"])
    if what:
        return (
            f"It has to be clear which host is which node. Seen: {what}.",
            "Give each host a machine-id of its own (on a clone: rm /etc/machine-id, then systemd-machine-id-setup,"
            " then reboot), and correct the inventory.",
        )
    own = list(every.values())
    others = [node["name"] for node in answer["nodes"] if not any(is_node(mark, node) for mark in own)]
    if others:
        return (
            f"The cluster has nodes that are not in the inventory. Seen: {shorten_list(others, SHOWN)}.",
            "Put their hosts into the inventory, or remove them first with ipu.fabric.remove_node.",
        )
    if jobs and not force:
        return (
            f"IPUJobs hold IPUs, which nobody would give back to V-IPU. Seen: {shorten_list(jobs, SHOWN)}.",
            "Delete them, or run ipu.fabric.reset with -e fabric_reset=fabric first. With -e fabric_reset_force=true"
            " they are removed with the cluster, and you have to remove their partitions with vipu.",
        )
    return "", ""


def plan_reset(
    hosts: t.Mapping[str, FoundOnHost],
    answer: ClusterAnswer,
    jobs: t.Sequence[str],
    site: Site,
    given: Confirmation,
) -> ResetPlan:
    reached = {name: found for name, found in hosts.items() if "removed" in found}
    marks = [found["cluster"] for found in reached.values()]
    ca = next((mark["ca"] for mark in marks if mark["ca"]), "")
    # Without a CA, nothing shows that these files are of a cluster of these hosts.
    reports = list(site.reports) if ca else []
    table = [line for host, found in reached.items() for line in describe_host(host, found)]
    table += wrap_words(f"this machine: files: {', '.join(reports)}", "  ") if reports else []
    name = next((mark["name"] for mark in marks if mark["name"]), "")
    what, next_step = why_not(hosts, answer, jobs, given.force)
    left = any(found["removed"] for found in reached.values())
    if not what and left and (given.name != name if name else not given.name):
        what = "Not confirmed: this deletes the cluster and all of its data, on all of its hosts."
        what += f" Its name is {name}." if name else " No host knows its name any more."
        what += f" Seen: fabric_reset_name is {given.name or 'empty'}."
        next_step = (
            f"If this is what you want, run again with -e fabric_reset=cluster -e fabric_reset_name={name or 'NAME'}."
        )
    return {
        "name": name,
        "ca": ca,
        "serving": [host for host, found in reached.items() if found["cluster"].get("serves")],
        "reports": reports,
        "kubeconfig": bool(ca) and site.ca == ca,
        "table": [printable(line) for line in table],
        "refusal": printable(f"{what} Next: {next_step}") if what else "",
    }
