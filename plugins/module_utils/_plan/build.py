# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The plan: a pure function of settings and observations, in stages. It does not stop at the first finding."""

from __future__ import annotations

import dataclasses
import typing as t

from .._common.findings import Findings, fold_networks
from .._model.observation import Observations, PortNeeds
from .._model.plan import Plan, PlannedHost, Preflight
from .._model.settings import Settings
from .._model.stacks import named_stack
from .._network.releases import choose_releases, parse
from .._network.support import check_support, support_of
from . import cluster
from .address_checks import check_addresses, check_moved, check_node_ranges
from .approved import check_approved
from .bundle import check_bundle, host_platform
from .calico import check_autodetection
from .certificates import (
    check_certificates,
    check_cni_tokens,
    describe_certificates,
    describe_cni_tokens,
    keeping_tokens,
)
from .changes import host_changes, summarize
from .clocks import read_servers
from .cni_files import check_cni_files
from .device_files import check_device_files
from .distribution import made_by, plan_distribution
from .gpus import check_gpus, check_redirects, plan_gpus
from .hardening import plan_hardening, short_tokens
from .host_checks import Expected, check_hosts, check_identity, read_memlock, read_memlock_limit
from .host_links import (
    NetworkLinks,
    check_bond,
    check_mtu,
    check_node_subnet,
    check_own_node,
    check_pcie,
    check_pvrdma,
    choose_links,
    planned_link,
)
from .host_ports import (
    check_host_ports,
    cluster_needs,
    embedded_needs,
    listen_ports,
    port_targets,
    roce_needs,
    vipu_needs,
)
from .host_sizes import read_sizes
from .hosts import Hosts, check_inventory, place_hosts
from .ipu_operator import check_ipu_operator, describe_release, labels_in_use
from .limit import check_limit
from .macvlan_masters import name_masters
from .names import check_foreign_variables, check_groups, check_passed, check_variables
from .network_operator import check_network_operator, check_only_one
from .network_spec import host_device, read_networks
from .networks import NetworkRules, plan_networks, taken_addresses
from .nic_groups import plan_nic_groups
from .node_addresses import read_rules
from .obstacles import check_obstacles
from .own_devices import check_own_devices, plan_own_devices
from .port_table import component_names, uses
from .proxy import plan_no_proxy
from .rail_nics import check_alike
from .resources import check_resources, plan_resources
from .role_variables import with_role_variables
from .running_cluster import (
    adopt,
    check_api_host,
    check_attachments,
    check_blocks,
    check_joined,
    check_multus,
    check_nodes,
    check_own_cidrs,
    check_own_kubeconfig,
    check_own_pod_network,
    check_pod_security,
    check_running,
    check_stack,
    check_unplanned,
    describe_running,
    find_running,
)
from .runtime import cri_dockerd_sources, plan_runtime
from .shared_nics import check_shared_nics
from .source_questions import check_answers, offered_releases
from .sources import pin_components, plan_images, plan_sources
from .vipu_controllers import controller_addresses, name_controllers, plan_vipu
from .virtual_address import plan_virtual_address, without_virtual_address

SCHEMA = 1


def build_plan(settings: Settings, observations: Observations, today: str, recorded: str = "") -> Plan:
    """The whole plan with all its findings, as of a day (YYYY-MM-DD); recorded: when the hosts were, if not now.

    record() adds who made it, and compares it with earlier plans.
    """
    findings = Findings(settings.allow)
    cluster.check_artifacts_dir(settings, findings)

    # Hosts: their roles in the cluster, and problems with them.
    at = read_rules(settings, findings)
    hosts = place_hosts(without_virtual_address(observations, settings.control_plane_vip), at)
    check_groups(settings.inventory_groups, findings)
    check_inventory(hosts, settings.manage_kubernetes, findings, settings.inventory_groups)
    check_variables(observations, settings.site_variables, findings)
    check_passed(observations, settings.passed_variables, findings)
    if settings.manage_kubernetes:
        check_foreign_variables(observations, findings)
    check_certificates(hosts, settings.renew_days, settings.manage_kubernetes, findings)
    running = find_running(hosts, settings.manage_kubernetes, findings)
    check_limit(settings, hosts, findings)
    check_own_cidrs(settings, hosts, running, findings)
    settings = adopt(settings, running)
    kubernetes = cluster.kubernetes_version(settings, hosts)
    asked = dataclasses.replace(settings, kubernetes_version=kubernetes)
    releases = choose_releases(asked, findings, offered_releases(hosts))
    distribution = plan_distribution(settings, hosts, releases, findings)
    runtime = plan_runtime(settings, hosts, kubernetes, findings)
    sources = plan_sources(settings, releases, findings) + cri_dockerd_sources(settings, hosts, findings)
    images = plan_images(settings, releases, findings)
    releases = pin_components(releases, images)
    support = support_of(releases if settings.ipu else {**releases, "ipu_operator": ""}, today)
    check_support(support, settings.manage_kubernetes, findings, today)
    endpoint = cluster.plan_endpoint(settings, hosts, findings)
    cidrs = cluster.read_cidrs(settings, hosts, findings)
    cluster.check_cluster_config(settings, endpoint, findings)
    virtual = plan_virtual_address(settings, hosts, cidrs, findings)
    check_running(settings, hosts, running, endpoint, findings)
    check_nodes(settings, hosts, running, findings)
    check_joined(settings, hosts, running, findings)
    check_network_operator(running, releases, findings)
    check_own_kubeconfig(settings, findings)
    check_own_pod_network(settings, hosts, running, findings)
    check_api_host(hosts, findings)
    check_cni_files(settings, hosts, running, bool(settings.networks), findings)
    joined = running.facts["endpoint"] if running else ""
    keeping = keeping_tokens(releases)
    hardening = plan_hardening(settings, hosts, kubernetes, keeping)
    short = short_tokens(settings, hosts)
    check_cni_tokens(hosts, settings.renew_days, keeping, short, findings)
    bundled = {"chrony": "fabric_ntp"} if settings.ntp else {}
    check_bundle(settings.bundle, releases, hosts, settings.manage_kubernetes, findings, bundled)
    check_hosts(hosts, _expected(settings, joined or endpoint, kubernetes, findings), findings)
    check_gpus(settings, hosts, findings)
    if settings.manage_kubernetes:
        check_addresses(at, hosts, findings)
        check_node_ranges(settings, cidrs, len(hosts), findings)
        check_moved(hosts, running.facts.get("nodes", []) if running else [], findings)
    check_identity(
        hosts,
        running.facts.get("nodes", []) if running else [],
        joined or endpoint,
        settings.manage_kubernetes,
        findings,
    )
    check_host_ports(hosts, component_names(settings), findings)
    check_answers(settings, hosts, running, findings)
    controllers = name_controllers(settings, hosts, findings)
    vipu_of = controller_addresses(controllers)

    # NICs: one for each host on each network.
    specs = read_networks(settings.networks, findings)
    chosen = choose_links(specs, hosts, vipu_of, settings.require_rdma, findings)
    devices = _host_devices(settings, hosts, findings)
    for network in (*chosen, *devices):
        check_pcie(network, findings)
        check_alike(network, findings)
        check_pvrdma(network, findings)
        check_bond(network, findings)
    stack = named_stack(settings.stack)
    for network in chosen:
        check_mtu(network, settings.require_rdma, findings)
        check_own_node(network, findings)
        check_node_subnet(network, bool(stack and stack.routes_nodes), findings)
    check_redirects([*chosen, *devices], findings)
    if not settings.manage_kubernetes:
        check_autodetection(running, [*chosen, *devices], findings)
    labels = labels_in_use(settings, running)
    vipu = plan_vipu(settings, hosts, controllers, chosen, cidrs.has_ipv6_pods(), findings, labels)
    check_ipu_operator(settings, running, vipu, findings)
    chosen = name_masters(chosen, findings)

    # Addresses and RDMA resources.
    rules = NetworkRules(
        releases=releases,
        pods_per_node=settings.pods_per_node,
        require_rdma=settings.require_rdma,
        taken=taken_addresses(hosts, vipu_of) + ([virtual["address"]] if virtual else []),
        avoid=cidrs.owners(),
        avoid_stays=not settings.manage_kubernetes,
        cluster_size=len(hosts),
        vipu=[controller["address"] for controller in vipu["controllers"]] if settings.ipu else None,
        cni_network_directory=distribution["cni_network_directory"],
    )
    if settings.pods_per_node < 1 and chosen:
        findings.error(
            "subnet",
            [],
            "fabric_pods_per_node has to be 1 or more.",
            str(settings.pods_per_node),
            "Set fabric_pods_per_node to the most pods of a host with a fabric address, such as 8.",
        )
    networks = plan_networks(chosen, rules, findings)
    check_blocks(running, networks, findings)
    check_stack(running, networks, releases, findings)
    check_unplanned(settings, running, networks, releases, findings)
    check_attachments(running, networks, findings)
    check_multus(settings, running, networks, releases, findings)
    check_pod_security(settings, running, networks, releases, findings)
    check_only_one(settings, running, releases, findings)
    check_shared_nics(running, chosen, networks, settings.pods_per_node, findings)
    check_own_devices(chosen, networks, vipu_of, settings.pods_per_node, findings)
    check_obstacles(settings, hosts, running, networks, findings)
    resources = plan_resources(chosen, networks)
    groups = plan_nic_groups(settings.nic_policy, running, chosen, resources, releases, findings)
    check_resources(chosen, networks, resources, settings.pods_per_node, bool(groups), findings)
    if settings.require_rdma:
        check_device_files(chosen, releases, settings.ipam, findings)
    planned = _planned_hosts(hosts, [*chosen, *devices], settings.ipu)
    memlock = "" if settings.runtime == "docker" else read_memlock_limit(settings.memlock_limit, findings)
    changes = host_changes(
        hosts,
        planned,
        running,
        settings.manage_kubernetes,
        kubernetes,
        memlock,
        hardening,
        settings.require_rdma,
    )
    plan: Plan = {
        "schema": SCHEMA,
        "recorded": recorded,
        "made": {"time": today, "site": "", "collection": "", "by": ""},
        "summary": summarize(changes, [], None, None),
        "since": None,
        "releases": releases,
        "support": support,
        "cluster": cluster.describe_cluster(
            settings, hosts, endpoint, distribution, runtime, virtual, describe_running(running, settings.ipu, releases)
        ),
        "hardening": hardening,
        "hosts": planned,
        "vipu": vipu,
        "ipu_operator": describe_release(settings),
        "networks": networks,
        "rdma_resources": resources,
        "no_proxy": plan_no_proxy(settings, hosts, [endpoint, joined], cidrs.as_text(), vipu, networks),
        "certificates": describe_certificates(hosts, settings.renew_days),
        "cni_token_ends": describe_cni_tokens(hosts, settings.renew_days, keeping, short),
        "sources": sources,
        "image_digests": images,
        "drift": None,
        "drift_time": "",
        "findings": [],
    }
    plan = with_role_variables({**plan, **plan_own_devices(chosen, networks)}, observations)
    if groups:
        plan["nic_groups"] = groups
    if settings.admission != "off":
        plan["admission"] = {"mode": settings.admission, "max_unproved": str(settings.max_unproved)}
    check_approved(settings.plan_file, plan, findings)
    found = fold_networks(findings.as_list(), [(one["name"], *filter(None, [one["resource"]])) for one in networks])
    return {**plan, "findings": found, "summary": summarize(changes, found, None, None)}


def build_preflight(settings: Settings, observations: Observations) -> Preflight:
    """A plan of hosts and their NICs only: no releases, no V-IPU, no addresses."""
    findings = Findings(settings.allow)
    at = read_rules(settings, findings)
    hosts = place_hosts(without_virtual_address(observations, settings.control_plane_vip), at)
    check_inventory(hosts, settings.manage_kubernetes, findings)
    endpoint = cluster.plan_endpoint(settings, hosts, findings)
    plan_virtual_address(settings, hosts, cluster.ClusterCidrs([], []), findings)
    check_hosts(hosts, _expected(settings, endpoint, settings.kubernetes_version, findings), findings)
    if settings.manage_kubernetes:
        check_addresses(at, hosts, findings)
    check_identity(hosts, [], endpoint, settings.manage_kubernetes, findings)
    check_host_ports(hosts, component_names(settings), findings)
    chosen = choose_links(read_networks(settings.networks, findings), hosts, {}, settings.require_rdma, findings)
    devices = _host_devices(settings, hosts, findings)
    for network in (*chosen, *devices):
        check_pcie(network, findings)
        check_alike(network, findings)
    for network in chosen:
        check_mtu(network, settings.require_rdma, findings)
    planned = _planned_hosts(hosts, [*chosen, *devices], settings.ipu)
    return {"schema": SCHEMA, "hosts": planned, "findings": findings.as_list()}


def build_port_needs(settings: Settings, observations: Observations) -> PortNeeds:
    """Which ports each host needs of the others. RoCE's port is needed only if the fabric needs RDMA."""
    ignored = Findings()
    hosts = place_hosts(observations, read_rules(settings, ignored))
    controllers = name_controllers(settings, hosts, ignored)
    chosen: t.Sequence[NetworkLinks] = []
    if settings.require_rdma or any(controller.runs_on for controller in controllers):
        specs = read_networks(settings.networks, ignored)
        chosen = choose_links(specs, hosts, controller_addresses(controllers), False, ignored)
    needs = list(cluster_needs(hosts, uses(settings)))
    needs += roce_needs(chosen) if settings.require_rdma else []
    vipu = plan_vipu(settings, hosts, controllers, chosen, False, ignored)
    needs += vipu_needs(hosts, vipu["controllers"], bool(settings.vipu_hosts))
    if not settings.manage_kubernetes:
        needs += embedded_needs(hosts, {facts["distribution"] for facts in made_by(hosts).values()})
    return {"listen": listen_ports(hosts, needs), "ports": port_targets(hosts, needs)}


def _host_devices(settings: Settings, hosts: Hosts, findings: Findings) -> t.List[NetworkLinks]:
    """The RDMA NIC of each host that runs pods, if there are no fabric networks."""
    if settings.networks or not settings.require_rdma:
        return []
    return choose_links([host_device()], hosts, {}, True, findings)


def _expected(settings: Settings, endpoint: str, kubernetes: str, findings: Findings) -> Expected:
    return Expected(
        kubernetes=parse(kubernetes)[:2],
        endpoint=endpoint,
        managed=settings.manage_kubernetes and not findings.has_error("cluster-builder"),
        sizes=read_sizes(settings.host_sizes, findings),
        kubelet=settings.kubelet_config,
        ipu=settings.ipu,
        memlock=read_memlock(settings.memlock, findings),
        ntp=read_servers(settings.ntp, findings),
        macvlan=bool(settings.networks),
        cni=settings.cni,
    )


def _planned_hosts(hosts: Hosts, chosen: t.Sequence[NetworkLinks], ipu: bool) -> t.Dict[str, PlannedHost]:
    planned: t.Dict[str, PlannedHost] = {}
    for name, host in hosts.items():
        mine = {one.network.name: (one.links[name], one.master) for one in chosen if name in one.links}
        planned[name] = {
            "node": host.node,
            "platform": host_platform(host),
            "address": ",".join(host.addresses),
            # Without IPUs, a host in ipu_node is a normal worker.
            "roles": list(dict.fromkeys(role if ipu or role != "ipu" else "worker" for role in host.roles)),
            "links": {network: planned_link(link, master) for network, (link, master) in mine.items()},
            "gpus": plan_gpus(host, {network: link.nic for network, (link, _master) in mine.items()}),
        }
    return planned
