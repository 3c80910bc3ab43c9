# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What set up the cluster's nodes, and where they look for CNI files: a DaemonSet has one path for all nodes."""

from __future__ import annotations

import typing as t

from .._common.findings import Findings
from .._common.text import shorten_list
from .._host.distributions import CNI_BIN, CNI_NETWORK, KUBEADM, OTHER_KUBERNETES
from .._model.observation import KubernetesFacts
from .._model.plan import Distribution, Releases
from .._model.settings import Settings
from .._model.stacks import describe_stack
from .hosts import Hosts

NAMES = 4  # host names in one line
# Keys of directories in a host's facts, each with the directory that charts use by default.
DIRECTORIES: t.Tuple[t.Tuple[t.Literal["cni_bin_directory", "cni_network_directory"], str], ...] = (
    ("cni_bin_directory", CNI_BIN),
    ("cni_network_directory", CNI_NETWORK),
)


def made_by(hosts: Hosts) -> t.Dict[str, KubernetesFacts]:
    """The facts of the hosts that are nodes. Observations of earlier releases lack them."""
    found = {
        name: host.facts["kubernetes"] for name, host in hosts.items() if host.facts and "kubernetes" in host.facts
    }
    return {name: facts for name, facts in found.items() if facts["distribution"] != "none"}


def plan_distribution(settings: Settings, hosts: Hosts, releases: Releases, findings: Findings) -> Distribution:
    """The cluster's distribution. A cluster that the collection manages is kubeadm's, whatever is on its hosts now."""
    nodes = {} if settings.manage_kubernetes else made_by(hosts)
    if not settings.manage_kubernetes:
        _check_nodes(settings, hosts, nodes, findings)
    first = next(iter(nodes.values()), None)
    socket = first["containerd_socket"] if first else KUBEADM.containerd_socket
    given = {"cni_bin_directory": settings.cni_bin_directory, "cni_network_directory": settings.cni_network_directory}
    planned: Distribution = {
        "name": first["distribution"] if first else ("kubeadm" if settings.manage_kubernetes else "none"),
        "containerd_socket": "" if socket == KUBEADM.containerd_socket else socket,
        "cni_bin_directory": "",
        "cni_network_directory": "",
    }
    for key, usual in DIRECTORIES:
        directory = given[key].rstrip("/") or (first[key] if first else usual)
        planned[key] = "" if directory == usual else directory
    _check_release(planned, releases, findings)
    return planned


def _by_value(values: t.Mapping[str, str]) -> str:
    """Hosts grouped by value, for a message."""
    found: t.Dict[str, t.List[str]] = {}
    for name, value in values.items():
        found.setdefault(value, []).append(name)
    return "; ".join(f"{value} on {shorten_list(names, NAMES)}" for value, names in found.items())


def _check_nodes(settings: Settings, hosts: Hosts, nodes: t.Mapping[str, KubernetesFacts], findings: Findings) -> None:
    made = {name: facts["distribution"] for name, facts in nodes.items()}
    if len(set(made.values())) > 1:
        findings.error(
            "node-distribution",
            made,
            "All nodes of a cluster are of one distribution of Kubernetes.",
            _by_value(made),
            "Take the hosts of another cluster out of the inventory. Uninstall what another installer left on a host.",
        )
    for key, _usual in DIRECTORIES if len(set(made.values())) == 1 else ():
        places: t.Dict[str, str] = {name: facts[key] for name, facts in nodes.items()}
        given = settings.cni_bin_directory if key == "cni_bin_directory" else settings.cni_network_directory
        if len(set(places.values())) > 1 and not given:
            findings.error(
                "cni-directories",
                places,
                f"All nodes need their CNI {'plugins' if key == 'cni_bin_directory' else 'configurations'} in one"
                " directory: a DaemonSet has one path for all of them.",
                _by_value(places),
                f"Install one release with the same options on all nodes, or set fabric_{key} to a directory that all"
                " of them have.",
            )
    others = [name for name, host in hosts.items() if host.facts and name not in nodes]
    if nodes and others:
        findings.error(
            "node-distribution",
            others,
            f"The cluster was built by {next(iter(made.values()))}, and these hosts are not nodes of it.",
            "they have no /etc/kubernetes/kubelet.conf",
            "Join them with the tool that manages the cluster, or take them out of the inventory.",
        )
    unknown = {
        name: ", ".join(facts["other_kubernetes"])
        for name, facts in ((name, hosts[name].facts) for name in others)
        if facts and set(facts["other_kubernetes"]) & (set(OTHER_KUBERNETES) - {"k3s", "rke2"})
    }
    if unknown and not (settings.cni_bin_directory and settings.cni_network_directory):
        findings.warning(
            "cni-directories",
            unknown,
            f"It is not known where this distribution has its CNI files: {CNI_BIN} and {CNI_NETWORK} are assumed.",
            _by_value(unknown),
            "Set fabric_cni_bin_directory and fabric_cni_network_directory to where its containerd looks for them.",
        )


def _check_release(planned: Distribution, releases: Releases, findings: Findings) -> None:
    """A stack that does not know these directories would write its files where no runtime looks."""
    lacking = [planned[key] for key, _usual in DIRECTORIES if planned[key] and not releases["features"].get(key)]
    if lacking and releases["ipam"]:  # an unknown release is already a finding
        findings.error(
            "cni-directories",
            [],
            "CNI files have to be written where containerd looks for them.",
            f"{describe_stack(releases)} can't be told to use {' and '.join(lacking)}",
            "Set fabric_stack to network_operator, and fabric_network_operator_version to 25.7 or later.",
        )
