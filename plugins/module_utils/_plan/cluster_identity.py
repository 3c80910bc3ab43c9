# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a kubeconfig leads to the cluster that the hosts of the inventory are in."""

from __future__ import annotations

import typing as t

from ansible_collections.ipu.fabric.plugins.module_utils._common.result import FabricError
from ansible_collections.ipu.fabric.plugins.module_utils._common.text import shorten_list
from ansible_collections.ipu.fabric.plugins.module_utils._model.observation import (
    ClusterIdentity,
    HostFacts,
    NodeIdentity,
    Observations,
)

SHOWN = 8  # names in a message


def observed(observations: Observations) -> t.Dict[str, HostFacts]:
    return {name: seen["host"] for name, seen in observations.items() if seen.get("host")}


def trusted_ca(facts: HostFacts) -> str:
    """The digest of the CA of the host's cluster; empty without one.

    What an interrupted kubeadm left is no cluster: the next run resets it, and a new init makes a new CA.
    """
    return "" if facts["cluster"]["unfinished"] else facts["kubelet"]["cluster"]


def is_bare(observations: Observations) -> bool:
    """Whether no host is in a cluster that kubeadm built."""
    return not any(
        trusted_ca(facts) or (facts["kubelet"]["server"] and not facts["cluster"]["unfinished"])
        for facts in observed(observations).values()
    )


class HostIdentity(t.TypedDict):
    """What tells a host."""

    hostname: str
    machine_id: str


def is_node(facts: t.Union[HostFacts, HostIdentity], node: NodeIdentity) -> bool:
    """Names repeat from site to site; machine IDs do not, where both are known."""
    if facts["machine_id"] and node["machine_id"]:
        return facts["machine_id"] == node["machine_id"]
    return facts["hostname"].lower() == node["name"]


def why_another(observations: Observations, cluster: ClusterIdentity) -> str:
    """What shows that the hosts are in another cluster; empty if nothing does.

    Every host that trusts a CA has to trust the cluster's. Where no host says which, as with k3s, one of them has to be
    a node.
    """
    hosts = observed(observations)
    trusted = {name: trusted_ca(facts) for name, facts in hosts.items() if trusted_ca(facts)}
    if trusted and cluster["ca"]:
        strangers = [name for name, ca in trusted.items() if ca != cluster["ca"]]
        if not strangers:
            return ""
        return f"its CA is {cluster['ca']}, that of {shorten_list(strangers, SHOWN)} is {trusted[strangers[0]]}"
    if any(is_node(facts, node) for facts in hosts.values() for node in cluster["nodes"]):
        return ""
    nodes = shorten_list([node["name"] for node in cluster["nodes"]], SHOWN) or "none"
    return f"no host of the inventory ({shorten_list(observations, SHOWN)}) is one of its nodes ({nodes})"


def check_cluster(observations: Observations, cluster: ClusterIdentity) -> None:
    """Refuse to go on with another cluster."""
    why = why_another(observations, cluster)
    if not why:
        return
    interrupted = [name for name, facts in observed(observations).items() if facts["cluster"]["unfinished"]]
    raise FabricError(
        "The kubeconfig must lead to the cluster that the hosts of this inventory are in.",
        cluster["kubeconfig"],
        why,
        "Run in the folder of this site, or set fabric_kubeconfig (with another fabric_api_host,"
        " fabric_api_kubeconfig) to the kubeconfig of this cluster."
        # Allowed there, the run would write to whichever cluster the file is of.
        + (
            f" kubeadm was interrupted on {shorten_list(interrupted, SHOWN)}: ipu.fabric.site finishes it."
            if interrupted
            else " While the CA of a cluster is being changed, allow it with fabric_allow: [other-cluster]."
        )
        + " Nothing was written to its API.",
        code="other-cluster",
    )
