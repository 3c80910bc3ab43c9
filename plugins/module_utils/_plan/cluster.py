# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The cluster around the fabric: its Kubernetes version, its API endpoint, and its pod and service CIDRs."""

from __future__ import annotations

import dataclasses
import ipaddress
import itertools
import os
import re
import typing as t

from .._common.addresses import Network
from .._common.findings import Findings
from .._common.text import join_endpoint, shorten_list
from .._host.vipu import split_endpoint
from .._model.plan import Cluster, Distribution, RunningCluster, Runtime, VirtualAddress
from .._model.settings import Settings
from .endpoints import DNS_NAME, is_loopback, parse_address
from .hosts import Hosts, with_role

API_PORT = 6443
ENDPOINT = "fabric_control_plane_endpoint"
EXAMPLES = {"fabric_pod_cidr": "10.244.0.0/16", "fabric_service_cidr": "10.96.0.0/12"}
CidrList = t.List[Network]
SHOWN = 4  # addresses


@dataclasses.dataclass(frozen=True)
class ClusterCidrs:
    """CIDRs of pods and services; an invalid variable is empty here, and a finding."""

    pods: CidrList
    services: CidrList

    def has_ipv6_pods(self) -> bool:
        return any(cidr.version == 6 for cidr in self.pods)

    def as_text(self) -> t.List[str]:
        return [str(cidr) for cidr in self.pods + self.services]

    def owners(self) -> t.Dict[str, str]:
        """For each CIDR, whether it is for pods or for services."""
        return {**{str(cidr): "services" for cidr in self.services}, **{str(cidr): "pods" for cidr in self.pods}}


def kubernetes_version(settings: Settings, hosts: Hosts) -> str:
    """The site's version, or, for a cluster managed elsewhere, the one that its first control plane runs."""
    facts = [hosts[name].facts for name in with_role(hosts, "control_plane")]
    running = [seen["kubelet"]["version"] for seen in facts if seen and seen["kubelet"]["version"]]
    return running[0] if running and not settings.manage_kubernetes else settings.kubernetes_version


def normal_endpoint(endpoint: str) -> str:
    """host:port in a canonical notation; invalid text is returned unchanged."""
    try:
        host, port = split_endpoint(endpoint, API_PORT)
        return join_endpoint(str(ipaddress.ip_address(host)) if ":" in host else host.lower(), port)
    except ValueError:
        return endpoint


def plan_endpoint(settings: Settings, hosts: Hosts, findings: Findings) -> str:
    """host:port of the API server: the virtual address, the site's endpoint, or the first control plane's address."""
    wanted, planes = settings.control_plane_endpoint, with_role(hosts, "control_plane")
    virtual = parse_address(settings.control_plane_vip) if settings.manage_kubernetes else None
    if virtual is not None:
        endpoint = join_endpoint(str(virtual), API_PORT)
        if wanted and normal_endpoint(wanted) != endpoint:
            findings.error(
                "endpoint",
                [],
                "The API has one endpoint.",
                f"fabric_control_plane_vip makes it {endpoint}, fabric_control_plane_endpoint is {wanted}",
                "Leave fabric_control_plane_endpoint empty, or leave fabric_control_plane_vip empty.",
            )
        return endpoint
    if wanted:
        return _stated_endpoint(wanted, settings.manage_kubernetes, len(hosts), findings)
    address = hosts[planes[0]].address if planes else ""
    if not address:
        return ""  # already a finding
    if len(planes) > 1 and settings.manage_kubernetes and not settings.control_plane_vip:
        findings.warning(
            "endpoint",
            [],
            "With several control planes the endpoint should survive the loss of any of them.",
            f"fabric_control_plane_endpoint is empty, so the endpoint is {address}, that of the first control plane",
            "Set fabric_control_plane_vip to a free address, or fabric_control_plane_endpoint to a load balancer,"
            " before the cluster is built: later it is hard to change.",
        )
    return join_endpoint(address, API_PORT)


def _stated_endpoint(wanted: str, managed: bool, size: int, findings: Findings) -> str:
    """The site's endpoint; empty if it is none. A host name of upper-case letters is the same in lower case."""

    def refuse(what: str, step: str) -> None:
        findings.error("endpoint", [], f"fabric_control_plane_endpoint {what}", wanted, step)

    try:
        host, port = split_endpoint(wanted, API_PORT)
    except ValueError:
        meant = re.sub(r"^\w+://|/.*$", "", wanted)  # of a URL
        known = bool(re.fullmatch(r"[\w.-]+(:\d{1,5})?", meant)) and meant != wanted
        refuse(
            "is not an endpoint.",
            f"Set fabric_control_plane_endpoint to {meant if known else 'host:port, such as k8s.example.org:6443'}.",
        )
        return ""
    host = host.lower()
    if managed and parse_address(host) is None and not DNS_NAME.fullmatch(host):
        refuse(
            "has a name that kubeadm refuses.",
            "Give it a name of letters, digits, hyphens and dots in DNS, without underscores, or an address.",
        )
    if managed and size > 1 and is_loopback(host):
        refuse(
            "is each host itself: other hosts would not find the API.",
            "Set fabric_control_plane_vip to a free address and leave fabric_control_plane_endpoint empty, or name a"
            " load balancer there.",
        )
    return join_endpoint(host, port)


def read_cidrs(settings: Settings, hosts: Hosts, findings: Findings) -> ClusterCidrs:
    """The CIDRs of pods and services, which must overlap neither each other nor addresses of hosts."""
    cidrs = ClusterCidrs(
        _parse_cidrs(settings.pod_cidr, "fabric_pod_cidr", findings),
        _parse_cidrs(settings.service_cidr, "fabric_service_cidr", findings),
    )
    free = "addresses that nothing else has" if settings.manage_kubernetes else "the cluster's own CIDRs"
    for pods, services in itertools.product(cidrs.pods, cidrs.services):
        if pods.overlaps(services):
            findings.error(
                "cidr",
                [],
                "fabric_pod_cidr and fabric_service_cidr overlap.",
                f"{pods} and {services}",
                f"Set one of them to {free}." if settings.manage_kubernetes else f"Set both to {free}.",
            )
    named = [("fabric_pod_cidr", cidr) for cidr in cidrs.pods]
    named += [("fabric_service_cidr", cidr) for cidr in cidrs.services]
    for variable, cidr in named:
        covered = _covered(cidr, {host.name: host.addresses for host in hosts.values()})
        if covered:
            findings.error(
                "cidr",
                list(covered),
                f"{variable} covers addresses of hosts.",
                _said(cidr, covered),
                f"Set {variable} to {free}.",
            )
        known = {host.name: host.facts.get("resolver") if host.facts else None for host in hosts.values()}
        servers = {name: resolver["servers"] for name, resolver in known.items() if resolver}
        covered = _covered(cidr, servers) if settings.manage_kubernetes else {}
        if covered:
            findings.warning(
                "cidr",
                list(covered),
                f"{variable} covers a DNS server of the hosts: pods could not reach it.",
                _said(cidr, covered),
                f"Set {variable} to addresses that nothing else has.",
            )
    return cidrs


def check_cluster_config(settings: Settings, endpoint: str, findings: Findings) -> None:
    """kubeadm would take these from kubernetes_cluster_config, and everything else from the plan."""
    given: t.Mapping[str, object] = settings.cluster_config if settings.manage_kubernetes else {}
    networking = given.get("networking")
    inner: t.Mapping[str, object] = networking if isinstance(networking, dict) else {}
    for check, key, value, variable, planned in (
        ("cidr", "networking.podSubnet", inner.get("podSubnet"), "fabric_pod_cidr", settings.pod_cidr),
        ("cidr", "networking.serviceSubnet", inner.get("serviceSubnet"), "fabric_service_cidr", settings.service_cidr),
        ("endpoint", "controlPlaneEndpoint", given.get("controlPlaneEndpoint"), ENDPOINT, endpoint),
    ):
        if value and normal_endpoint(str(value)) != normal_endpoint(planned):
            findings.error(
                check,
                [],
                f"kubernetes_cluster_config contradicts {variable}.",
                f"{key} is {value}, the plan has {planned}",
                f"Set {variable} to {value}, and take {key} out of kubernetes_cluster_config.",
            )


def _covered(cidr: Network, texts: t.Mapping[str, t.Sequence[str]]) -> t.Dict[str, t.List[str]]:
    """The addresses of each host that lie in a CIDR."""
    found = {}
    for name, listed in texts.items():
        inside = [address for address in map(parse_address, listed) if address is not None and address in cidr]
        if inside:
            found[name] = list(map(str, inside))
    return found


def _said(cidr: Network, covered: t.Mapping[str, t.Sequence[str]]) -> str:
    addresses = list(dict.fromkeys(address for listed in covered.values() for address in listed))
    return f"{shorten_list(addresses, SHOWN)} {'is' if len(addresses) == 1 else 'are'} in {cidr}"


def _parse_cidrs(text: str, variable: str, findings: Findings) -> CidrList:
    """One CIDR, or two of different families separated by a comma."""
    try:
        cidrs = [ipaddress.ip_network(part.strip()) for part in text.split(",")]
        if len({cidr.version for cidr in cidrs}) < len(cidrs):
            raise ValueError(f"{text} has two of one family")
        return cidrs
    except ValueError as error:
        step = f"to a CIDR such as {EXAMPLES[variable]}, or to one of IPv4 and one of IPv6, separated by a comma."
        if "host bits" in str(error):
            parts = (part.strip() for part in text.split(","))
            step = f"to {','.join(str(ipaddress.ip_network(part, strict=False)) for part in parts)}."
        findings.error("cidr", [], f"{variable} is not a CIDR.", str(error), f"Set {variable} {step}")
        return []


def describe_cluster(
    settings: Settings,
    hosts: Hosts,
    endpoint: str,
    distribution: Distribution,
    runtime: Runtime,
    virtual_address: t.Optional[VirtualAddress],
    running: t.Optional[RunningCluster],
) -> Cluster:
    return {
        "pod_cidr": settings.pod_cidr,
        "service_cidr": settings.service_cidr,
        "endpoint": endpoint,
        "distribution": distribution,
        "runtime": runtime,
        "virtual_address": virtual_address,
        "control_planes": with_role(hosts, "control_plane"),
        "workers": with_role(hosts, "worker"),
        "single_node": len(hosts) == 1,
        "running": running,
    }


def check_artifacts_dir(settings: Settings, findings: Findings) -> None:
    """Ansible parses every file in an inventory directory: a plan there would break the next run."""
    folder, kubeconfig = settings.artifacts_dir, settings.kubeconfig.path
    for source in settings.inventory_sources:
        if _is_inside(folder, source):
            findings.error(
                "artifacts-dir",
                [],
                "Files of the plan must not be in the inventory directory: Ansible would read them as inventory.",
                f"fabric_artifacts_dir is {folder}, an inventory directory is {source}",
                "Set fabric_artifacts_dir to a folder outside the inventory directory.",
            )
            return
        if _is_inside(kubeconfig, source):
            findings.warning(
                "artifacts-dir",
                [],
                "The kubeconfig should not be in the inventory directory: Ansible warns that it is no inventory.",
                f"fabric_kubeconfig is {kubeconfig}, an inventory directory is {source}",
                "Move the kubeconfig out of the inventory directory, and set fabric_kubeconfig to its new path.",
            )
            return


def _is_inside(path: str, folder: str) -> bool:
    if not path or not os.path.isabs(folder):
        return False
    outer = os.path.abspath(folder)
    return os.path.commonpath([outer, os.path.abspath(path)]) == outer
