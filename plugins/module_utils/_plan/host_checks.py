# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Checks of single hosts and between hosts: pure, on host_info's results."""

from __future__ import annotations

import os
import re
import typing as t

from .._common.addresses import normal_addresses
from .._common.dns import LOOP_STEP
from .._common.findings import Findings
from .._common.memlock_limits import limit_bytes, readable
from .._common.result import FabricError
from .._common.text import join_endpoint
from .._host import memlock
from .._host.facts import CNI_PLUGINS
from .._host.port_probe import PROCESS as LISTENER
from .._host.swap import AGENT
from .._model.observation import HostFacts, NodeIdentity
from .clocks import check_clock
from .cluster import API_PORT, normal_endpoint
from .cluster_identity import inventory_addresses, mistaken
from .endpoints import DNS_NAME, is_loopback
from .host_sizes import Size, check_sizes
from .hosts import Hosts, PlacedHost
from .kubelet_settings import check_eviction, check_fields

SUPPORTED = {"debian": ("12", "13"), "ubuntu": ("22.04", "24.04")}
CONTROL_PLANE_PORTS = (2379, 2380, 6443, 10257, 10259)
NODE_PORTS = (10250, 10256)
# Health port of a pod network's agent, on each node; the agent does not start if the port is taken.
AGENT_PORTS = {"calico": (9099,), "flannel": (8081,)}
# Truncated to the kernel's length of process names. kubeadm and port_probe clean up after an interrupted run.
KUBERNETES_PROCESSES = (
    "kubelet",
    "etcd",
    "kube-apiserver",
    "kube-controller",
    "kube-scheduler",
    "kube-proxy",
    "calico-node",
    "flanneld",
    LISTENER,
)

# They create uverbs*, umad* and rdma_cm in /dev/infiniband.
RDMA_MODULES = ("ib_uverbs", "ib_umad", "rdma_ucm")


class Expected(t.NamedTuple):
    """What the planned cluster requires of its hosts."""

    kubernetes: t.Tuple[int, ...]  # major, minor; empty if the version is invalid
    endpoint: str
    managed: bool  # whether the role kubernetes builds the cluster and sets up its hosts
    sizes: t.Sequence[Size]
    kubelet: t.Mapping[str, object]  # kubernetes_kubelet_config
    ipu: bool  # whether hosts have IPUs
    memlock: float  # bytes of locked memory that the proof expects in pods
    ntp: t.Sequence[str]  # servers for chrony; empty: chrony is not set up
    macvlan: bool  # whether there are fabric networks
    cni: str  # pod network


Observed = t.List[t.Tuple[PlacedHost, HostFacts]]


def check_hosts(hosts: Hosts, expected: Expected, findings: Findings) -> None:
    """Run all checks of single hosts and between hosts, except on observations from an earlier run."""
    for host in hosts.values():
        _check_observed(host, findings)
    observed = [(host, host.facts) for host in hosts.values() if host.facts and not host.observation.get("recalled")]
    for host, facts in observed:
        for check in _ALWAYS + (_MANAGED if expected.managed else ()):
            check(host, facts, findings)
        check_clock(host, facts, expected.ntp, expected.managed, findings)
        _check_locked_memory(host, facts, expected, findings)
        if expected.managed:
            check_eviction(host, facts, expected.kubelet, findings)
            _check_ports(host, facts, expected, findings)
            _check_kernel_modules(host, facts, expected, findings)
            _check_cgroup(host, facts, expected, findings)
    twice = _check_machines(observed, findings)
    for unique in _UNIQUE:
        _check_unique([one for one in observed if one[0].name not in twice], unique, findings)
    if expected.managed:
        check_fields(expected.kubelet, findings)
        check_sizes(observed, expected.sizes, len(hosts), expected.ipu, findings)
        _check_existing_cluster(hosts, observed, expected, findings)


def check_identity(
    hosts: Hosts, nodes: t.Sequence[NodeIdentity], endpoint: str, managed: bool, findings: Findings
) -> None:
    """Check that no host passes for another, by name or address: certificates are signed for planned hosts."""
    for name, why in mistaken({name: host.observation for name, host in hosts.items()}, nodes).items():
        findings.error(
            "host-identity",
            [name],
            "A host has the name of another one.",
            why,
            "Give each host its own name with hostnamectl; correct its address in the inventory (ip) if that is wrong.",
        )
    if managed:
        _check_addresses_of_nodes(hosts, nodes, findings)
    owners: t.Dict[str, t.List[str]] = {}
    for name, host in hosts.items():
        for address in host.addresses:
            owners.setdefault(address, []).append(name)
    for address, names in owners.items():
        if len(names) > 1:
            # In a cluster of others, nodes may have addresses that the default route does not show.
            (findings.error if managed else findings.warning)(
                "host-identity",
                names,
                "Each host needs its own address.",
                f"{address} is that of {', '.join(names)}",
                "Set ip of each in the inventory to its own address, or correct its default route.",
            )
        workers = [name for name in names if "control_plane" not in hosts[name].roles]
        at, api = join_endpoint(address, API_PORT), normal_endpoint(endpoint)
        # A worker may be the load balancer, if the inventory says so; the host's own claim proves nothing.
        given = all(address in hosts[name].observation.get("address", "").split(",") for name in workers)
        if workers == names and (at == api if given else at.rpartition(":")[0] == api.rpartition(":")[0]):
            findings.error(
                "host-identity",
                workers,
                "The address of the API must not be a worker's.",
                f"{address} is that of {', '.join(workers)}, and the endpoint is {endpoint}",
                "Set ip of the host in the inventory to its own address, or correct the endpoint.",
            )


def _check_addresses_of_nodes(hosts: Hosts, nodes: t.Sequence[NodeIdentity], findings: Findings) -> None:
    """Check that an address only the host itself claims is not another node's, even of one outside the inventory."""
    given = inventory_addresses({name: host.observation for name, host in hosts.items()})
    for name, host in hosts.items():
        said = normal_addresses(host.addresses) - given[name]
        others = {
            f"{address}, which is that of the node {node['name']} in the cluster"
            for node in nodes
            if node["name"] != host.node
            for address in said & normal_addresses(node.get("addresses", ()))
        }
        if others:
            findings.error(
                "host-identity",
                [name],
                "Each host needs its own address.",
                f"{name} says that it has {'; '.join(sorted(others))}",
                "Set ip of the host in the inventory. Remove a node that is gone for good with ipu.fabric.remove_node.",
            )


def _check_observed(host: PlacedHost, findings: Findings) -> None:
    errors = [error for error in host.observation["errors"] if error["source"] != "vipu"]
    recalled = host.observation.get("recalled", "")
    if recalled:
        consequence = f"; planned from its last observation, of {recalled}"
    else:
        consequence = "" if host.facts else "; its addresses are not known, so pods may get them"
    for error in errors[:1] if consequence else errors:  # for a host that is down, the first one is enough
        seen = f"{error['seen']} (at {error['where']}){consequence}"
        findings.error("unobserved", [host.name], error["what"], seen, error["next_step"])
    if consequence and not errors:
        findings.error(
            "unobserved",
            [host.name],
            "The host could not be observed.",
            f"it left the play before it answered: its own message is above{consequence}",
            "Make it reachable by SSH (ansible_host, ansible_port) with Python 3 and privileges, or remove it from the"
            " inventory.",
        )


def _check_distribution(host: PlacedHost, facts: HostFacts, findings: Findings) -> None:
    if facts["version"] not in SUPPORTED.get(facts["distribution"], ()):
        findings.error(
            "distribution",
            [host.name],
            "This distribution is not supported.",
            f"{facts['distribution'] or 'unknown'} {facts['version']}".strip(),
            "Install Debian 12 or 13, or Ubuntu 22.04 or 24.04.",
        )


def _check_architecture(host: PlacedHost, facts: HostFacts, findings: Findings) -> None:
    if facts["architecture"] not in ("x86_64", "amd64"):
        findings.error(
            "architecture",
            [host.name],
            "IPU and RDMA images are built for x86_64.",
            f"the host is {facts['architecture']}",
            "Use an x86_64 host.",
        )


def _check_python(host: PlacedHost, facts: HostFacts, findings: Findings) -> None:
    version = facts["python"]
    if tuple(int(part) for part in version.split(".")[:2]) < (3, 8):
        findings.error(
            "python-version",
            [host.name],
            "The modules need Python 3.8 or later.",
            f"Python {version}",
            "Point ansible_python_interpreter at a newer one.",
        )


def _check_systemd(host: PlacedHost, facts: HostFacts, findings: Findings) -> None:
    if not facts["systemd"]:
        findings.error(
            "systemd",
            [host.name],
            "Services are managed by systemd.",
            "systemd does not run this host",
            "Boot the host with systemd.",
        )


def _check_swap(host: PlacedHost, facts: HostFacts, findings: Findings) -> None:
    if facts["swap"]:
        findings.warning(
            "swap",
            [host.name],
            "Swap is on; the role kubernetes turns it off permanently.",
            ", ".join(facts["swap"]),
            "Nothing, unless something else on this host needs swap.",
        )


def _check_swap_origins(host: PlacedHost, facts: HostFacts, findings: Findings) -> None:
    """The role masks units and edits fstab. Swap from an agent or a script is left to its owner."""
    for origin in facts.get("swap_origins", []):
        cure = (
            "Set ResourceDisk.EnableSwap=n there, restart walinuxagent, and run swapoff --all."
            if origin["path"] == AGENT
            else f"Take it out of {origin['path']}, or disable the service, and run swapoff --all."
        )
        findings.warning(
            "swap",
            [host.name],
            "Swap comes back at the next boot, and the kubelet does not start while it is on.",
            f"{origin['path']} has {origin['seen']}",
            cure,
        )


def _check_ports(host: PlacedHost, facts: HostFacts, expected: Expected, findings: Findings) -> None:
    planes = CONTROL_PLANE_PORTS if "control_plane" in host.roles else ()
    wanted = (*NODE_PORTS, *AGENT_PORTS.get(expected.cni, ()), *planes)
    for busy in facts["ports_busy"]:
        if busy["port"] in wanted and busy["process"] not in KUBERNETES_PROCESSES:
            findings.error(
                "ports",
                [host.name],
                f"Port {busy['port']} must be free for Kubernetes.",
                f"{busy['process'] or 'a process'} listens on it",
                "Stop that service, or move it to another port.",
            )


def _check_name(host: PlacedHost, _facts: HostFacts, findings: Findings) -> None:
    if not DNS_NAME.fullmatch(host.node):
        findings.error(
            "node-name",
            [host.name],
            "A node has the name of its host: lower case letters, digits, hyphens and dots, with a letter or digit at"
            " both ends of each part.",
            host.node,
            f"Rename the host: hostnamectl set-hostname {_node_name(host.node)}.",
        )


def _node_name(name: str) -> str:
    """The nearest name that Kubernetes accepts."""
    parts = (re.sub(r"[^a-z0-9]+", "-", part).strip("-") for part in name.lower().split("."))
    return ".".join(filter(None, parts)) or "node1"


def _check_shadows(host: PlacedHost, facts: HostFacts, findings: Findings) -> None:
    """Files left by another installer or by hand would run instead of the packages' own."""
    shadows = facts.get("shadows", [])
    masked = [os.path.basename(each["path"]) for each in shadows if each["masks"]]
    files = [each["path"] for each in shadows if not each["masks"]]
    if files:
        findings.error(
            "shadowed-packages",
            [host.name],
            "Files that are not from our packages take precedence over those that would be installed.",
            ", ".join(files),
            f"Move them away, then run systemctl daemon-reload: {' '.join(files)}.",
        )
    if masked:
        findings.error(
            "shadowed-packages",
            [host.name],
            "A service that a node needs is masked: systemd never starts it.",
            ", ".join(masked),
            f"Run systemctl unmask {' '.join(masked)}.",
        )


def _check_service_route(host: PlacedHost, facts: HostFacts, findings: Findings) -> None:
    """kube-proxy rewrites packets to services on output: without any route, the kernel sends none."""
    cidrs = list(facts.get("service_routes", {}).items())[:1]  # the API's service address is in the first
    for cidr, there in cidrs:
        if not there:
            findings.error(
                "service-route",
                [host.name],
                "The pod network reaches the API by its service. On a host without a route to it, that fails with"
                " 'network is unreachable'.",
                f"no route to {cidr}, and no default route of that family",
                f"Give the host a default route, or run ip route add {cidr} dev NIC, and add this route to the host's"
                " network configuration.",
            )


def _check_resolver(host: PlacedHost, facts: HostFacts, findings: Findings) -> None:
    """CoreDNS asks its host's servers: a loopback address is CoreDNS itself, and it ends with "Loop detected"."""
    resolver = facts.get("resolver")
    own = [server for server in resolver["servers"] if is_loopback(server)] if resolver else []
    if resolver and own:
        findings.error(
            "resolver",
            [host.name],
            "CoreDNS asks the DNS servers of its host, and one on the loopback interface would be CoreDNS itself.",
            f"{resolver['path']} has nameserver {', '.join(own)}",
            LOOP_STEP,
        )


def _check_kernel_modules(host: PlacedHost, facts: HostFacts, expected: Expected, findings: Findings) -> None:
    modules = {name: there for name, there in facts["modules"].items() if name != "macvlan" or expected.macvlan}
    missing = sorted(module for module, there in modules.items() if there is False)
    unknown = sorted(module for module, there in modules.items() if there is None)
    if missing:
        findings.error(
            "kernel-modules",
            [host.name],
            "Pod networks need kernel modules.",
            f"kernel {facts['kernel']} has no {', '.join(missing)}",
            "Install the full kernel package (linux-image-amd64, or linux-modules-extra on Ubuntu).",
        )
    if unknown:
        findings.warning(
            "kernel-modules",
            [host.name],
            "It is not known whether the kernel has a module.",
            f"{', '.join(unknown)}: not loaded, and no /lib/modules of kernel {facts['kernel']}",
            "Nothing if it is built in; verify shows it.",
        )


def _check_noexec(host: PlacedHost, facts: HostFacts, findings: Findings) -> None:
    """Only folders that programs are run from are observed: others may have noexec."""
    for folder in facts.get("noexec", []):
        if folder == CNI_PLUGINS:
            findings.error(
                "noexec",
                [host.name],
                "containerd has to run CNI plugins: without them no pod gets a network.",
                f"{folder} is on a mount with noexec",
                f"Mount {folder} without noexec, in /etc/fstab too.",
            )
        else:
            findings.warning(
                "noexec",
                [host.name],
                "Ansible's temporary directory is mounted with noexec. Modules in Python run anyway.",
                f"{folder} is on a mount with noexec",
                "Nothing for this collection. For other modules set ansible_remote_tmp to another directory.",
            )


def _check_dns(host: PlacedHost, facts: HostFacts, findings: Findings) -> None:
    missing = sorted(asked for asked, resolved in facts["dns"].items() if not resolved)
    if missing:
        findings.error(
            "dns",
            [host.name],
            "Names that the cluster needs must resolve on every host.",
            f"no answer for {', '.join(missing)}",
            "Correct the variable that has the name, fabric_control_plane_endpoint or fabric_mirror.registry (with one"
            " control plane the endpoint may be empty), or add the name to DNS or to /etc/hosts, on this controller"
            " too.",
        )


def _check_netns_mode(host: PlacedHost, facts: HostFacts, findings: Findings) -> None:
    if not host.rdma or host.rdma["netns_mode"] != "exclusive":
        return
    what = "RDMA devices must be shared between network namespaces: the shared device plugin crashes otherwise."
    seen = "`rdma system` says exclusive"
    if host.observation.get("reboot"):
        step = "Nothing: rdma_host sets it permanently, and reboots the host for it (rdma_host_reboot)."
        findings.warning("netns-mode", [host.name], what, seen, step)
    else:
        step = "Run once with rdma_host_reboot: true. rdma_host then sets it permanently, and reboots the host for it."
        findings.error("netns-mode", [host.name], what, seen, step)


def missing_rdma_modules(host: PlacedHost) -> t.List[str]:
    """Modules that a host with an RDMA device lacks, and that the role rdma_host loads. Empty if not known."""
    loaded = host.rdma["modules"] if host.rdma else None
    if not host.rdma or loaded is None or not any(link["device"] for link in host.rdma["links"]):
        return []
    return [module for module in RDMA_MODULES if module not in loaded]


def _check_rdma_modules(host: PlacedHost, facts: HostFacts, findings: Findings) -> None:
    """Without its device files, the device plugin ignores a NIC: the node has 0 of the resource, and no message."""
    missing = missing_rdma_modules(host)
    if missing:
        findings.warning(
            "rdma-modules",
            [host.name],
            "The RDMA device plugin needs the device files of all these modules: without one the node has 0 of the"
            " resource.",
            f"not loaded: {', '.join(missing)}",
            "site loads them on hosts with a fabric NIC (role rdma_host). On others, name them in"
            f" /etc/modules-load.d/rdma.conf, and run `modprobe -a {' '.join(missing)}`.",
        )


def _check_cgroup(host: PlacedHost, facts: HostFacts, expected: Expected, findings: Findings) -> None:
    if facts["cgroup"] == "v2":
        return
    seen = f"the host has cgroup {facts['cgroup']}"
    step = "Boot with systemd.unified_cgroup_hierarchy=1, or a distribution that has cgroup v2."
    if expected.kubernetes >= (1, 35):
        findings.error(
            "cgroup-v2",
            [host.name],
            "From 1.35 on the kubelet refuses to run without cgroup v2.",
            seen,
            step,
            allowed="Or set fabric_allow: [cgroup-v2], which makes kubelet and kubeadm accept this host.",
        )
    else:
        findings.warning("cgroup-v2", [host.name], "Kubernetes is about to drop cgroup v1.", seen, step)


def read_memlock(limit: str, findings: Findings) -> float:
    """The limit that the proof expects, in bytes; 0 if it is invalid."""
    try:
        return limit_bytes(limit)
    except ValueError as error:
        findings.error(
            "locked-memory",
            [],
            "The proof compares limits of locked memory with verify_memlock.",
            f"verify_memlock: {error}",
            'Set verify_memlock to "unlimited", or to bytes, such as "67108864" or 64M.',
        )
        return 0


def read_memlock_limit(limit: str, findings: Findings) -> str:
    """The limit that the role memlock sets, near the end of a run; empty if it is invalid."""
    try:
        memlock.limit_bytes(limit)
        return limit
    except FabricError as error:
        step = "Set memlock_limit to infinity, or to bytes, such as 67108864 or 64M."
        findings.error("locked-memory", [], error.what, f"memlock_limit is {limit}", step)
        return ""


def _check_locked_memory(host: PlacedHost, facts: HostFacts, expected: Expected, findings: Findings) -> None:
    """Checked before anything is installed, because no role can change the host's own limit."""
    most = facts.get("locked_memory", "")
    if not most or limit_bytes(most) >= expected.memlock or not {"worker", "ipu"} & set(host.roles):
        return
    findings.error(
        "locked-memory",
        [host.name],
        "RDMA needs locked memory, and the proof fails where a pod may lock less than verify_memlock.",
        f"systemd itself has a limit of {readable(most)} and may not raise it, as in a container",
        f'Raise the limit where the host is started. Or accept it with verify_memlock: "{most}" (bytes): the report'
        " says that less was expected.",
    )


class _Unique(t.NamedTuple):
    """Values that must be unique among hosts."""

    check: str
    read: t.Callable[[HostFacts], t.List[str]]
    what: str
    next_step: str


def _check_machines(observed: Observed, findings: Findings) -> t.Set[str]:
    """Extra inventory names of one machine: whatever else these hosts share follows from that."""
    names: t.Dict[t.Tuple[str, str], t.List[str]] = {}
    for host, facts in observed:
        reached = host.observation.get("reached", "")
        if reached and facts["machine_id"]:
            names.setdefault((reached, facts["machine_id"]), []).append(host.name)
    for (reached, _machine), same in names.items():
        if len(same) > 1:
            findings.error(
                "host-identity",
                same,
                "Several hosts of the inventory are one machine.",
                f"ansible_host of each is {reached}, and the same machine-id answers there",
                "Correct ansible_host, or remove all but one.",
            )
    return {name for same in names.values() for name in same[1:]}


def _check_unique(observed: Observed, unique: _Unique, findings: Findings) -> None:
    owners: t.Dict[str, t.List[str]] = {}
    for host, facts in observed:
        for value in filter(None, unique.read(facts)):
            owners.setdefault(value.lower(), []).append(host.name)
    for value, names in owners.items():
        if len(names) > 1:
            findings.error(unique.check, names, unique.what, f"{len(names)} hosts have '{value}'", unique.next_step)


def _check_existing_cluster(hosts: Hosts, observed: Observed, expected: Expected, findings: Findings) -> None:
    for host, facts in observed:
        for other in facts["other_kubernetes"]:
            findings.error(
                "existing-cluster",
                [host.name],
                "Another Kubernetes is on this host.",
                f"there is data of {other}",
                f"Uninstall {other}, or set fabric_manage_kubernetes to false and keep its cluster.",
            )
    planes = [host for host in hosts.values() if "control_plane" in host.roles]
    clusters = {plane.facts["kubelet"]["cluster"] for plane in planes if plane.facts} - {""}
    all_known = bool(planes) and all(plane.facts for plane in planes)
    endpoints = {expected.endpoint} | {join_endpoint(host.address, API_PORT) for host in hosts.values()}
    endpoints |= {join_endpoint(plane.facts["default_address"], API_PORT) for plane in planes if plane.facts}
    for host, facts in observed:
        server, cluster = facts["kubelet"]["server"], facts["kubelet"]["cluster"]
        if clusters == {cluster}:
            if server and server not in endpoints:
                _report_endpoint(host, server, expected, findings)
        # A control plane that was not observed may be in this host's cluster.
        elif (clusters or all_known) and (cluster or (server and server not in endpoints)):
            _report_other_cluster(host, server, expected, findings)


def _report_endpoint(host: PlacedHost, server: str, expected: Expected, findings: Findings) -> None:
    findings.error(
        "existing-cluster",
        [host.name],
        "A cluster keeps the endpoint that it was built with.",
        f"the host reaches the API server of this cluster at {server}, the plan's endpoint is {expected.endpoint}",
        f"Set fabric_control_plane_endpoint to {server}. The host needs no change.",
    )


def _report_other_cluster(host: PlacedHost, server: str, expected: Expected, findings: Findings) -> None:
    if findings.has_error("inventory"):
        step = "Correct the groups of the inventory first: another finding says what is wrong with them."
    else:
        step = (
            "If the host belongs to that cluster, correct the inventory. If it is to move, take it out of its cluster"
            " first: https://github.com/ipu-fabric/ipu.fabric/blob/main/docs/kubernetes.md#add-and-remove-hosts"
        )
    seen = f"its API server is {server or 'not known'}, the plan's is {expected.endpoint or 'not known'}"
    findings.error("existing-cluster", [host.name], "The host is part of another cluster.", seen, step)


_ALWAYS = (
    _check_distribution,
    _check_architecture,
    _check_python,
    _check_systemd,
    _check_noexec,
    _check_netns_mode,
    _check_rdma_modules,
)
_MANAGED = (
    _check_name,
    _check_shadows,
    _check_resolver,
    _check_service_route,
    _check_swap,
    _check_swap_origins,
    _check_dns,
)
_UNIQUE = (
    _Unique(
        "unique-hostname",
        lambda facts: [facts["hostname"]],
        "Each host needs its own name: it is the name of its node.",
        "Rename all but one with hostnamectl.",
    ),
    _Unique(
        "unique-mac",
        lambda facts: facts["macs"],
        "Each NIC needs its own MAC.",
        "Give the cloned machine a new MAC.",
    ),
    _Unique(
        "unique-machine-id",
        lambda facts: [facts["machine_id"]],
        "Each host needs its own machine-id: pod networks and logs rely on it.",
        # If D-Bus has its own copy, the old machine-id would be restored from there.
        "On the clones: rm -f /etc/machine-id /var/lib/dbus/machine-id, then systemd-machine-id-setup, then reboot.",
    ),
)
