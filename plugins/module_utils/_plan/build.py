# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The plan: a pure function of what the site wrote and of what its hosts said. It never stops at the first finding."""

from __future__ import annotations

import ipaddress
import itertools
import os
import typing as t

from ansible_collections.ipu.fabric.plugins.module_utils._common.findings import Findings
from ansible_collections.ipu.fabric.plugins.module_utils._host.vipu import split_endpoint
from ansible_collections.ipu.fabric.plugins.module_utils._network import releases as release_table
from ansible_collections.ipu.fabric.plugins.module_utils._network import spiderpool
from ansible_collections.ipu.fabric.plugins.module_utils._plan import network_spec, rails
from ansible_collections.ipu.fabric.plugins.module_utils._plan import networks as plan_networks
from ansible_collections.ipu.fabric.plugins.module_utils._plan.host_checks import Expected, Host, Hosts, judge
from ansible_collections.ipu.fabric.plugins.module_utils._plan.vipu_controllers import (
    as_address,
    join_endpoint,
    plan_vipu,
)

SCHEMA = 1
API_PORT = 6443
Settings = t.Mapping[str, t.Any]
CidrList = t.List[t.Union[ipaddress.IPv4Network, ipaddress.IPv6Network]]


def place(hosts: Hosts) -> t.Dict[str, Host]:
    """Each host with its roles, its node's name and its address.

    A single host is everything; IPU hosts are those of ipu_node, or every worker where the group is missing.
    """
    alone = len(hosts) == 1
    named = any("ipu_node" in host["groups"] for host in hosts.values())
    placed = {}
    for name, host in hosts.items():
        groups = set(host["groups"])
        worker = "kube_node" in groups or alone
        roles = {
            "control_plane": "kube_control_plane" in groups,
            "worker": worker,
            "ipu": "ipu_node" in groups or (not named and worker),
        }
        seen = host.get("host") or {}
        placed[name] = {
            **host,
            "roles": [role for role, has in roles.items() if has],
            "node": (seen.get("hostname") or name).lower(),
            "address": host.get("address") or seen.get("default_address", ""),
        }
    return placed


def judge_inventory(hosts: Hosts, managed: bool, found: Findings) -> None:
    planes = [name for name, host in hosts.items() if "control_plane" in host["roles"]]
    workers = [name for name, host in hosts.items() if "worker" in host["roles"]]
    if not planes:
        seen = f"{len(hosts)} hosts, none in kube_control_plane"
        found.error("inventory", [], "A cluster needs a control plane.", seen, "Put a host into kube_control_plane.")
    elif not workers:
        found.error(
            "inventory",
            [],
            "A cluster needs hosts that run pods.",
            "kube_node is empty, and there is more than one control plane",
            "Put the workers into kube_node; control planes that run pods too belong into both groups.",
        )
    if managed and planes and len(planes) % 2 == 0:
        found.warning(
            "control-plane-count",
            planes,
            "An even number of control planes survives no more failures than one less.",
            f"{len(planes)} in kube_control_plane",
            "Use 1, 3 or 5.",
        )
    homeless = [name for name, host in hosts.items() if not {"control_plane", "worker"} & set(host["roles"])]
    if homeless:
        found.error(
            "inventory",
            homeless,
            "A host of ipu_node must be a node of the cluster.",
            "it is in neither kube_control_plane nor kube_node",
            "Put it into kube_node.",
        )
    etcd = {name for name, host in hosts.items() if "etcd" in host["groups"]}
    if managed and etcd and etcd != set(planes):
        found.warning(
            "etcd-group",
            sorted(etcd ^ set(planes)),
            "etcd runs on every control plane, and nowhere else.",
            "group etcd names other hosts than kube_control_plane",
            "Name the same hosts in both groups.",
        )


def read_cidrs(text: str, variable: str, found: Findings) -> CidrList:
    """One CIDR, or two of different families with a comma between."""
    try:
        cidrs = [ipaddress.ip_network(part.strip()) for part in text.split(",")]
        if len({cidr.version for cidr in cidrs}) < len(cidrs):
            raise ValueError(f"{text} has two of one family")
        return cidrs
    except ValueError as error:
        found.error(
            "cidr",
            [],
            f"{variable} can't be used.",
            str(error),
            "Write a CIDR such as 10.244.0.0/16, or one IPv4 and one IPv6 CIDR with a comma between.",
        )
        return []


def judge_cidrs(named: t.Mapping[str, CidrList], hosts: Hosts, found: Findings) -> None:
    """Pods, services and hosts must not share addresses."""
    flat = [(variable, cidr) for variable, cidrs in named.items() for cidr in cidrs]
    for (one, first), (other, second) in itertools.combinations(flat, 2):
        if one != other and first.overlaps(second):
            found.error("cidr", [], f"{one} and {other} overlap.", f"{first} and {second}", "Move one of them.")
    for name, host in hosts.items():
        address = as_address(host["address"])
        for variable, cidr in flat:
            if address is not None and address in cidr:
                found.error(
                    "cidr",
                    [name],
                    f"{variable} covers the address of a host.",
                    f"{address} is in {cidr}",
                    f"Choose another {variable}.",
                )


def plan_endpoint(wanted: str, hosts: Hosts, found: Findings) -> str:
    """host:port of the API server: the site's, or that of the first control plane."""
    planes = [host for host in hosts.values() if "control_plane" in host["roles"]]
    if wanted:
        try:
            return join_endpoint(*split_endpoint(wanted, API_PORT))
        except ValueError:
            found.error(
                "endpoint",
                [],
                "fabric_control_plane_endpoint can't be used.",
                wanted,
                "Write host:port, for example k8s.example.org:6443.",
            )
            return ""
    if not planes or not planes[0]["address"]:
        return ""  # a finding already
    if len(planes) > 1:
        found.warning(
            "endpoint",
            [],
            "With several control planes the endpoint should outlive each of them.",
            f"fabric_control_plane_endpoint is empty, so it is {planes[0]['address']}, the first one's",
            "Set it to a load balancer or a virtual address before the cluster is made: later it is hard to change.",
        )
    return join_endpoint(planes[0]["address"], API_PORT)


def judge_artifacts(folder: str, sources: t.Sequence[str], found: Findings) -> bool:
    """Ansible parses every file of an inventory directory: a plan or a kubeconfig in it breaks the next run."""
    for source in sources:
        inside = os.path.commonpath([os.path.abspath(source), os.path.abspath(folder)]) == os.path.abspath(source)
        if folder and os.path.isabs(source) and inside:
            found.error(
                "artifacts-dir",
                [],
                "Files of the plan must not lie in the inventory: Ansible would read them as one.",
                f"fabric_artifacts_dir is {folder}, an inventory directory is {source}",
                "Set fabric_artifacts_dir to a folder beside it. Nothing was written.",
            )
            return False
    return True


def _kubernetes_version(settings: Settings, hosts: Hosts) -> str:
    """Of a cluster that somebody else keeps: the one it has."""
    planes = [host for host in hosts.values() if "control_plane" in host["roles"] and host.get("host")]
    versions = [plane["host"]["kubelet"]["version"] for plane in planes if plane["host"]["kubelet"]["version"]]
    return versions[0] if versions and not settings["manage_kubernetes"] else settings["kubernetes_version"]


def _expected(settings: Settings, endpoint: str, kubernetes: str) -> Expected:
    return Expected(release_table.parse(kubernetes)[:2], endpoint, settings["manage_kubernetes"])


def _summary(host: Host, links: t.Mapping[str, t.Any]) -> t.Dict[str, t.Any]:
    return {"node": host["node"], "address": host["address"], "roles": host["roles"], "links": links}


def _vipu_of(vipu: t.Mapping[str, t.Any]) -> t.Dict[str, str]:
    """V-IPU's address of each host; a name that nobody could resolve is no address."""
    known = [item for item in vipu["controllers"] if as_address(item["address"])]
    return {name: item["address"] for item in known for name in item["serves"]}


def build_plan(settings: Settings, hosts: Hosts) -> t.Dict[str, t.Any]:
    """The whole plan with all its findings; see the module fabric_plan for the shape."""
    found = Findings(settings["allow"])
    placed = place(hosts)
    judge_artifacts(settings["artifacts_dir"], settings["inventory_sources"], found)
    judge_inventory(placed, settings["manage_kubernetes"], found)
    kubernetes = _kubernetes_version(settings, placed)
    releases = release_table.resolve(
        kubernetes,
        settings["network_operator_version"],
        settings["ipu_operator_version"],
        settings["ipam"],
        settings["cni"],
        found,
        settings["manage_kubernetes"],
        settings["stack"],
        settings["spiderpool_version"],
        settings["gpu_operator_version"] if settings["gpu"] else "",
    )
    endpoint = plan_endpoint(settings["control_plane_endpoint"], placed, found)
    pods = read_cidrs(settings["pod_cidr"], "fabric_pod_cidr", found)
    services = read_cidrs(settings["service_cidr"], "fabric_service_cidr", found)
    judge_cidrs({"fabric_pod_cidr": pods, "fabric_service_cidr": services}, placed, found)
    judge(placed, _expected(settings, endpoint, kubernetes), found)
    vipu = plan_vipu(settings, placed, any(cidr.version == 6 for cidr in pods), found)
    vipu_of = _vipu_of(vipu)
    networks: t.List[t.Dict[str, t.Any]] = []
    links: t.Dict[str, rails.Links] = {}
    with_avoid = {**settings, "avoid": [str(cidr) for cidr in pods + services]}
    for network in network_spec.read_networks(settings["networks"], found):
        names = plan_networks.members(network, placed, found)
        of_network = plan_networks.find_links(network, names, placed, vipu_of, settings["require_rdma"], found)
        links[network["name"]] = of_network
        networks.append(plan_networks.plan_network(network, of_network, placed, vipu_of, with_avoid, releases, found))
    rails.judge_overlaps(networks, found)
    rails.judge_masters(networks, links, found)
    rails.judge_resources(networks, links, placed, settings["pods_per_node"], found)
    if releases["stack"] == "spiderpool":
        spiderpool.check_networks(t.cast(t.Any, networks), found)
    return {
        "schema": SCHEMA,
        "releases": releases,
        "cluster": {
            "pod_cidr": settings["pod_cidr"],
            "service_cidr": settings["service_cidr"],
            "endpoint": endpoint,
            "control_planes": [name for name, host in placed.items() if "control_plane" in host["roles"]],
            "workers": [name for name, host in placed.items() if "worker" in host["roles"]],
            "single_node": len(placed) == 1,
        },
        "hosts": {
            name: _summary(host, {network: of[name] for network, of in links.items() if name in of})
            for name, host in placed.items()
        },
        "vipu": vipu,
        "networks": networks,
        "rdma_resources": rails.rdma_resources(networks),
        "findings": found.as_list(),
    }


def build_preflight(settings: Settings, hosts: Hosts) -> t.Dict[str, t.Any]:
    """Only what is said of hosts and their NICs: no releases, no V-IPU, no addresses."""
    found = Findings(settings["allow"])
    placed = place(hosts)
    judge_inventory(placed, settings["manage_kubernetes"], found)
    endpoint = plan_endpoint(settings["control_plane_endpoint"], placed, found)
    judge(placed, _expected(settings, endpoint, settings["kubernetes_version"]), found)
    links = {}
    for network in network_spec.read_networks(settings["networks"], found):
        names = plan_networks.members(network, placed, found)
        links[network["name"]] = plan_networks.find_links(network, names, placed, {}, settings["require_rdma"], found)
        plan_networks.judge_links(network, links[network["name"]], found)
    return {
        "schema": SCHEMA,
        "hosts": {
            name: _summary(host, {network: of[name] for network, of in links.items() if name in of})
            for name, host in placed.items()
        },
        "findings": found.as_list(),
    }
