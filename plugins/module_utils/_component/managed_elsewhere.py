# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Playbooks for clusters that the role kubernetes built: they refuse all others, and say what does the same there."""

from __future__ import annotations

import dataclasses
import typing as t

from .._common.result import FabricError
from .._common.text import shorten_list
from .._host.role_files import SYSCTL
from .._kube.query import query
from .settings import NoSettings as Settings

EMBEDDED = ("k3s", "rke2")
RENEWS = "renews those that are about to end when it starts. On one server after another: systemctl restart"
INSTALLER = (
    "run its installer with the new release, on one server after another, then on the other nodes. Then run site."
)
ONLY_FABRIC = "-e fabric_reset=fabric removes what this collection has added to it."


class Verb(t.NamedTuple):
    """What a playbook would do, and how it is done with k3s, RKE2 and everything else."""

    done: str
    k3s: str
    rke2: str
    other: str


VERBS = {
    "backup": Verb(
        "it is backed up",
        "k3s etcd-snapshot save, and keep /var/lib/rancher/k3s/server/token with it. SQLite is a file in server/db"
        " beside it.",
        "rke2 etcd-snapshot save, and keep /var/lib/rancher/rke2/server/token with it.",
        "back it up with what manages it.",
    ),
    "remove_node": Verb(
        "its nodes are removed",
        "drain and delete it with kubectl, run k3s-agent-uninstall.sh (k3s-uninstall.sh) on its host, take that out of"
        " the inventory, and run site.",
        "drain and delete it with kubectl, run rke2-uninstall.sh on its host, take that out of the inventory, and run"
        " site.",
        "remove the node with what manages it, take its host out of the inventory, and run site.",
    ),
    "renew_certificates": Verb(
        "its certificates are renewed",
        f"k3s {RENEWS} k3s.",
        f"RKE2 {RENEWS} rke2-server.",
        "renew them with what manages it.",
    ),
    "reset": Verb(
        "the whole cluster is removed",
        f"{ONLY_FABRIC} k3s goes with k3s-uninstall.sh and k3s-agent-uninstall.sh.",
        f"{ONLY_FABRIC} RKE2 goes with rke2-uninstall.sh.",
        ONLY_FABRIC,
    ),
    "restore": Verb(
        "it is restored",
        "k3s server --cluster-reset --cluster-reset-restore-path=SNAPSHOT.",
        "rke2 server --cluster-reset --cluster-reset-restore-path=SNAPSHOT.",
        "restore it with what manages it.",
    ),
    "upgrade": Verb("it is upgraded", INSTALLER, INSTALLER, "upgrade it with what manages it, then run site."),
}


@dataclasses.dataclass(frozen=True)
class Seen:
    """The playbook, fabric_manage_kubernetes, and what host_info found on each host; {}: nothing."""

    verb: str
    managed: bool
    hosts: t.Mapping[str, t.Mapping[str, t.Any]]


def decide(_settings: Settings, seen: Seen) -> t.Dict[str, t.Any]:
    """Raise FabricError also where fabric_manage_kubernetes was forgotten, and the hosts show who built the cluster."""
    made = {name: query("kubernetes.distribution", host) for name, host in seen.hosts.items()}
    nodes = {name: distribution for name, distribution in made.items() if distribution in EMBEDDED}
    strangers = [name for name, host in seen.hosts.items() if query("cluster.built_elsewhere", host)]
    if seen.managed and not nodes and not strangers:
        return {}
    verb = VERBS[seen.verb]
    shown = [f"fabric_manage_kubernetes is {str(seen.managed).lower()}"]
    shown += [f"the host is a node of {distribution}" for distribution in dict.fromkeys(nodes.values())]
    shown += [f"the control plane lacks {SYSCTL}, which the role kubernetes writes"] * bool(strangers)
    raise FabricError(
        f"This cluster is managed elsewhere: {verb.done} with what manages it.",
        shorten_list([*nodes, *strangers], 5) or "the inventory",
        "; ".join(shown),
        getattr(verb, next(iter(nodes.values()), "other")),
        code="not-ours",
    )
