# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which fabric NICs of a host are nearest to each of its GPUs."""

from __future__ import annotations

import typing as t

from .._common.findings import Findings
from .._common.text import shorten_list
from .._model.observation import Link
from .._model.plan import PlannedGpu
from .._model.settings import Settings
from .host_links import NetworkLinks
from .hosts import Hosts, PlacedHost
from .nics import common_ports, nearest

SHOWN = 4  # ports in a finding


def check_gpus(settings: Settings, hosts: Hosts, findings: Findings) -> None:
    """Warn if the GPU operator is requested, but no observed host has a GPU."""
    observed = {name: host.rdma["gpus"] for name, host in hosts.items() if host.rdma}
    if settings.gpu and observed and not any(observed.values()):
        findings.warning(
            "gpu-hosts",
            observed,
            "fabric_gpu is true, and no host has a GPU.",
            "fabric_gpu is true; no PCI device of any host is an NVIDIA GPU",
            "Set fabric_gpu: false, or run lspci -d 10de: on the hosts that should have GPUs.",
        )


def check_redirects(chosen: t.Sequence[NetworkLinks], findings: Findings) -> None:
    """GPUs and NICs behind one switch reach each other directly, unless its ports redirect all to the processor."""
    found: t.Dict[str, t.Set[str]] = {}
    for network in chosen:
        for name, link in network.links.items():
            rdma = link.host.rdma
            redirects = set(rdma.get("redirects", [])) if rdma else set()
            if rdma and redirects:
                nics = [each["path"] for each in rdma["links"] if each["netdev"] in link.nic["rdma_netdevs"]]
                between = {port for nic in nics for gpu in rdma["gpus"] for port in _between(nic, gpu["path"])}
                found.setdefault(name, set()).update(between & redirects)
    for name, ports in found.items():
        if ports:
            listed = sorted(ports)
            findings.warning(
                "pcie-link",
                [name],
                "PCIe switches should let GPUs and NICs reach each other. With ACS all traffic goes through the"
                " processor, and GPUDirect RDMA is slow or hangs.",
                f"ACS redirects at {shorten_list(listed, SHOWN)}",
                "Switch ACS off in the firmware of the host, or at each boot: setpci -s PORT ECAP_ACS+0x6.w=0000 for"
                " each of these ports. Leave ACS on if virtual machines get these devices.",
            )


def _between(one: str, other: str) -> t.Set[str]:
    """The ports between two PCI functions behind one switch; none if only a processor connects them."""
    common = common_ports(one, other)
    # The host bridge, a port of the processor, and the switch's upstream port are common to both.
    return {port for way in (one, other) for port in way.split("/")[common:-1]} if common > 2 else set()


def plan_gpus(host: PlacedHost, nics: t.Mapping[str, Link]) -> t.List[PlannedGpu]:
    """The GPUs of a host, each with the networks whose NIC, among `nics`, is nearest."""
    if not host.rdma:
        return []
    found = []
    for gpu in host.rdma["gpus"]:
        near = [link["netdev"] for link in nearest(gpu, list(nics.values()), host.rdma["links"])]
        networks = [network for network, link in nics.items() if link["netdev"] in near]
        found.append(PlannedGpu(pci=gpu["pci"], model=gpu.get("model", ""), networks=networks))
    return found
