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
from .._model.observation import EMBEDDED
from .settings import NoSettings as Settings

RENEWS = "on one server after another: when it starts, it renews certificates that are about to expire."
INSTALLER = (
    "run its installer with the new release, on one server after another, then on the other nodes. Then run site."
)
ONLY_FABRIC = "run it with -e fabric_reset=fabric to remove what this collection has added."


class Verb(t.NamedTuple):
    """What a playbook would do, and how it is done with k3s, RKE2 and everything else."""

    done: str
    k3s: str
    rke2: str
    other: str


VERBS = {
    "backup": Verb(
        "it is backed up",
        "run k3s etcd-snapshot save, or with SQLite copy /var/lib/rancher/k3s/server/db; keep"
        " /var/lib/rancher/k3s/server/token with it.",
        "run rke2 etcd-snapshot save, and keep /var/lib/rancher/rke2/server/token with the snapshot.",
        "back it up with what manages it.",
    ),
    "remove_node": Verb(
        "its nodes are removed",
        "drain and delete the node with kubectl, run k3s-agent-uninstall.sh (on a server, k3s-uninstall.sh) on its"
        " host, remove the host from the inventory, then run site.",
        "drain and delete the node with kubectl, run rke2-uninstall.sh on its host, remove the host from the inventory,"
        " then run site.",
        "remove the node with what manages it, remove its host from the inventory, then run site.",
    ),
    "renew_certificates": Verb(
        "its certificates are renewed",
        f"run systemctl restart k3s {RENEWS}",
        f"run systemctl restart rke2-server {RENEWS}",
        "renew them with what manages it.",
    ),
    "reset": Verb(
        "the whole cluster is removed",
        f"{ONLY_FABRIC} k3s-uninstall.sh and k3s-agent-uninstall.sh remove k3s itself.",
        f"{ONLY_FABRIC} rke2-uninstall.sh removes RKE2 itself.",
        ONLY_FABRIC,
    ),
    "restore": Verb(
        "it is restored",
        "stop k3s on all servers, then run k3s server --cluster-reset --cluster-reset-restore-path=SNAPSHOT on the"
        " first one.",
        "stop rke2-server on all servers, then run rke2 server --cluster-reset --cluster-reset-restore-path=SNAPSHOT on"
        " the first one.",
        "restore it with what manages it.",
    ),
    "upgrade": Verb("it is upgraded", INSTALLER, INSTALLER, "upgrade it with what manages it, then run site."),
}


@dataclasses.dataclass(frozen=True)
class Seen:
    """The playbook, fabric_manage_kubernetes, and the hosts."""

    verb: str
    managed: bool
    names: t.Sequence[str]
    found: t.Sequence[t.Mapping[str, t.Any]]  # by host_info, in this order; {}: nothing


def decide(_settings: Settings, seen: Seen) -> t.Dict[str, t.Any]:
    """Raise FabricError also where fabric_manage_kubernetes was forgotten, and the hosts show who built the cluster."""
    made = {name: query("kubernetes.distribution", host) for name, host in zip(seen.names, seen.found)}
    nodes = {name: distribution for name, distribution in made.items() if distribution in EMBEDDED}
    strangers = [name for name, host in zip(seen.names, seen.found) if query("cluster.built_elsewhere", host)]
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
