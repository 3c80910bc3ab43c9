# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""CNI configurations on the hosts: a runtime takes the first one by file name, whoever wrote it."""

from __future__ import annotations

import typing as t

from .._common import cilium
from .._common.cni import WRITE_AGAIN
from .._common.findings import Findings
from .._host.distributions import CNI_NETWORK
from .._model.observation import CniFile, HostFacts
from .._model.settings import Settings
from .hosts import Hosts
from .running_cluster import Running

CHECK = "cni-files"
# The file of each pod network that the role kubernetes installs, and its plugin.
OURS = {"calico": CniFile(name="10-calico.conflist", plugin="calico")}
OURS["flannel"] = CniFile(name="10-flannel.conflist", plugin="flannel")
MULTUS = ("multus", "multus-shim")


def check_cni_files(
    settings: Settings, hosts: Hosts, running: t.Optional[Running], has_networks: bool, findings: Findings
) -> None:
    """Check every host, except those with only an observation from an earlier run."""
    pod_networks = running.facts["pod_networks"] if running else []
    exclusive = next((each for each in pod_networks if each.get("exclusive")), None)
    if running and exclusive and has_networks:
        seen = f"{exclusive['seen']}, whose ConfigMap {cilium.CONFIG} has cni-exclusive: true"
        findings.error(CHECK, [running.host], cilium.WHY, seen, cilium.ADVICE)
    for name, host in hosts.items():
        if host.facts and "cni_files" in host.facts and not host.observation.get("recalled"):
            _check_host(name, host.facts, settings, bool(running) and not pod_networks, findings)
            if has_networks and not exclusive:
                _check_disabled(name, host.facts, findings)


def _describe(files: t.Sequence[CniFile]) -> str:
    return ", ".join(f"{file['name']} ({file['plugin'] or 'not readable'})" for file in files)


def _check_disabled(name: str, facts: HostFacts, findings: Findings) -> None:
    """Find multus configurations that Cilium renamed: they stay renamed even if Cilium no longer renames new files."""
    disabled = [file for file in facts.get("cni_disabled", []) if file["plugin"] in MULTUS]
    if disabled and not any(file["plugin"] in MULTUS for file in facts["cni_files"]):
        findings.error(CHECK, [name], cilium.WHY, f"{_describe(disabled)}, and no other file of multus", cilium.ADVICE)


def _check_host(name: str, facts: HostFacts, settings: Settings, unfinished: bool, findings: Findings) -> None:
    """unfinished: the cluster has no pod network yet."""
    files = facts["cni_files"]
    is_node = bool(facts["kubelet"]["cluster"])
    made = facts.get("kubernetes")
    folder = made["cni_network_directory"] if made else CNI_NETWORK
    multus = next((number for number, file in enumerate(files) if file["plugin"] in MULTUS), 0)
    if is_node and multus:
        findings.error(
            CHECK,
            [name],
            "The configuration of multus has to sort first: otherwise pods get no second network.",
            f"{folder} has {_describe(files[: multus + 1])}",
            "Remove the files before it, or rename them so that they sort after it.",
        )
    ours = OURS.get(settings.cni) if settings.manage_kubernetes else None
    if is_node and not files and not (unfinished and ours):
        findings.warning(
            CHECK,
            [name],
            "A node without a configuration of a pod network can't start pods.",
            f"nothing in {folder}",
            f"If there is a pod network, {WRITE_AGAIN}. If there is none, site installs one if fabric_cni names it.",
        )
    # Otherwise each node would repeat what was already reported for the cluster, or the pod network in use would go.
    if ours and not findings.has_error("cluster-cni") and not findings.has_error("cluster-builder"):
        _check_foreign(name, [file for file in files if file["plugin"] not in MULTUS], ours, folder, findings)


def _check_foreign(name: str, files: t.Sequence[CniFile], ours: CniFile, folder: str, findings: Findings) -> None:
    foreign = [file for file in files if file["plugin"] != ours["plugin"]]
    before = [file for file in foreign if file["name"] < ours["name"]]
    remove = "Remove what is left of another pod network, and rename what another program needs (podman, CRI-O)"
    if before:
        findings.error(
            CHECK,
            [name],
            "Pods get the network of the first configuration, which would not be that of fabric_cni.",
            f"{folder} has {_describe(before)}, which sorts before {ours['name']}",
            f"{remove} so that it sorts after {ours['name']}.",
        )
    elif foreign and len(foreign) == len(files):
        findings.warning(
            CHECK,
            [name],
            "Pods that start before the pod network is up get another one, and keep it.",
            f"{folder} has {_describe(foreign)}, and no {ours['name']} yet",
            f"{remove} so that it does not end in .conf, .conflist or .json until the cluster is up.",
        )
