# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The plan compared with the existing cluster: what no role can change is found here, before a role starts."""

from __future__ import annotations

import dataclasses
import ipaddress
import shlex
import typing as t
import urllib.parse

from .._common.addresses import Network
from .._common.cni import NO_CNI
from .._common.findings import Findings
from .._common.pod_security import POD_SECURITY, PRIVILEGED
from .._common.text import EXPIRED, shorten_list
from .._host.role_files import SYSCTL
from .._ipam.nv_ipam import keeps_block
from .._kubeadm.membership import REMOVED
from .._model.observation import EMBEDDED, ClusterFacts, HostFacts
from .._model.plan import PlannedNetwork, Releases, RunningCluster
from .._model.settings import Settings
from .._model.stacks import STACKS, StackName, stack_name
from .._network.releases import parse
from .certificates import RENEW, expired
from .cluster import normal_endpoint
from .cluster_identity import is_node, trusted_ca
from .endpoints import is_loopback
from .hosts import Hosts

# Objects that identify a pod network installed by the role kubernetes. Others with the same name are not ours.
OURS = {
    "calico": ("DaemonSet calico-system/calico-node", "Installation default"),
    "flannel": ("DaemonSet kube-flannel/kube-flannel-ds",),
}
REBUILD = (
    " If the cluster can be lost, remove it, and site builds a new one: ipu.fabric.reset with -e fabric_reset=cluster."
)
CONFIGURATION = "ConfigMap kube-system/kubeadm-config"


@dataclasses.dataclass(frozen=True)
class Running:
    """The existing cluster, as one of its control planes reports it."""

    host: str  # its inventory name
    ca: str  # digest of the cluster's CA; may be empty
    facts: ClusterFacts


def find_running(hosts: Hosts, managed: bool, findings: Findings) -> t.Optional[Running]:
    """The facts of the first control plane whose API server answers. None if there is no cluster; silence is a finding.

    If certificates have expired, that is the finding, not the silence.
    """
    planes = [host for host in hosts.values() if "control_plane" in host.roles and not host.observation.get("recalled")]
    seen = {host.name: host.facts["cluster"] for host in planes if host.facts}
    for host in planes:
        if host.facts and host.facts["cluster"]["answered"]:
            return Running(host.name, host.facts["kubelet"]["cluster"], host.facts["cluster"])
    silent = [name for name, facts in seen.items() if facts["present"] and not facts["unfinished"]]
    silent = [name for name in silent if not expired(hosts[name])]
    if silent:
        error = seen[silent[0]]["error"]
        kubeconfig, logs = _where_to_look(hosts[silent[0]].facts)
        step = f"Start its API server: see {logs} there. Then run again."
        (findings.error if managed else findings.warning)(
            "cluster-unread",
            silent,
            "The existing cluster can't be compared with the plan.",
            f"{error} (kubectl with {kubeconfig})",
            RENEW if EXPIRED in error else step,
        )
    elif not managed and not any(facts["present"] for facts in seen.values()):
        answers = [(host.name, host.facts) for host in planes]
        nodes = [name for name, facts in answers if facts and (facts["kubelet"]["server"] or facts.get("kubernetes"))]
        _report_workers(nodes, findings)
    return None


def _report_workers(planes: t.Sequence[str], findings: Findings) -> None:
    """Without a control plane nothing is known of a cluster that others manage, such as its networks and operators."""
    if planes:
        findings.warning(
            "cluster-unread",
            planes,
            "The existing cluster can't be compared with the plan: these hosts look like workers of it.",
            "no administrator's kubeconfig, such as /etc/kubernetes/admin.conf, on a host of kube_control_plane",
            "Put a control plane into kube_control_plane, and workers into kube_node. If they are there, restore"
            " that file.",
        )


def _where_to_look(facts: t.Optional[HostFacts]) -> t.Tuple[str, str]:
    """The administrator's kubeconfig, and where to see why an API server is down."""
    made = facts.get("kubernetes") if facts else None
    if made and made["distribution"] in EMBEDDED:
        return made["kubeconfig"], f"journalctl -u {made['units'][0]}"
    return "/etc/kubernetes/admin.conf", "crictl ps and journalctl -u kubelet"


def adopt(settings: Settings, running: t.Optional[Running]) -> Settings:
    """For a cluster managed elsewhere, use its own addresses: the site's settings may just be the defaults."""
    if settings.manage_kubernetes or not running:
        return settings
    facts = running.facts
    return dataclasses.replace(
        settings,
        pod_cidr=facts["pod_cidr"] or settings.pod_cidr,
        service_cidr=facts["service_cidr"] or settings.service_cidr,
        control_plane_endpoint=settings.control_plane_endpoint or facts["endpoint"],
    )


def check_running(
    settings: Settings, hosts: Hosts, running: t.Optional[Running], endpoint: str, findings: Findings
) -> None:
    """Report differences that no role can change. `endpoint` is the planned one."""
    if not running:
        return
    _check_kubeconfig(settings, running, findings)
    if settings.manage_kubernetes:
        _check_builder(running, findings)
        if findings.has_error("cluster-builder"):
            return  # then the advice to adapt the site to the cluster would be wrong
        # An upgrade's own plan compares versions. One that does not exist is a finding already.
        if not settings.upgrade and not findings.has_error("kubernetes-version"):
            _check_version(settings, hosts, running, findings)
        _check_pod_network(settings, running, findings)
        _check_cidr("fabric_pod_cidr", settings.pod_cidr, running.facts["pod_cidr"], running, findings)
        _check_cidr("fabric_service_cidr", settings.service_cidr, running.facts["service_cidr"], running, findings)
        _check_endpoint(settings, running, endpoint, findings)


def _check_builder(running: Running, findings: Findings) -> None:
    """Refuse another team's cluster: it would get our settings for API server, kubelets and container runtimes."""
    if not running.facts.get("built_here", True):
        findings.error(
            "cluster-builder",
            [running.host],
            "ipu.fabric has not built this cluster: site would change its API server, kubelets and container runtimes.",
            f"{running.host} is a control plane without {SYSCTL}, which the role kubernetes writes",
            "Set fabric_manage_kubernetes to false, so that only the fabric is installed.",
        )


def _check_version(settings: Settings, hosts: Hosts, running: Running, findings: Findings) -> None:
    version = running.facts["version"]
    if version != settings.kubernetes_version:
        findings.error(
            "cluster-version",
            [running.host],
            "The cluster runs another release of Kubernetes, and site does not upgrade it.",
            f"fabric_kubernetes_version is {settings.kubernetes_version}; "
            f"the API server of {running.host} runs {version}",
            f"Run ipu.fabric.upgrade, or set fabric_kubernetes_version to {version}."
            if parse(settings.kubernetes_version) > parse(version)
            else f"Set fabric_kubernetes_version to {version}. No role downgrades a cluster.",
        )
    for name, host in hosts.items():
        if not host.facts or host.observation.get("recalled") or not host.facts["kubelet"]["server"]:
            continue
        kubelet = host.facts["kubelet"]["version"].lstrip("v")
        if not kubelet:
            findings.warning(
                "node-version",
                [name],
                "A node's version of Kubernetes can't be compared with that of its cluster.",
                "its kubelet did not report its version, or took too long",
                "Run kubelet --version on the host.",
            )
        elif kubelet not in (version, settings.kubernetes_version):
            findings.error(
                "node-version",
                [name],
                "A node runs another release of Kubernetes than its cluster, and site does not upgrade it.",
                f"kubelet {kubelet}; the cluster runs {version}",
                "Run ipu.fabric.upgrade. It takes every node to fabric_kubernetes_version.",
            )


def _check_pod_network(settings: Settings, running: Running, findings: Findings) -> None:
    found = running.facts["pod_networks"]
    strange = [network for network in found if network["seen"] not in OURS.get(settings.cni, ())]
    if settings.cni not in OURS or not strange:
        return
    kept = next((cni for cni, marks in OURS.items() if all(network["seen"] in marks for network in found)), "")
    listed = ", ".join(f"{network['name']} ({network['seen']})" for network in found)
    findings.error(
        "cluster-cni",
        [running.host],
        "The cluster's pod network is not that of the plan: pods of two pod networks don't reach each other.",
        f"fabric_cni is {settings.cni}; {running.host} has {listed}",
        (f"Set fabric_cni to {kept}, the installed one." if kept else "Set fabric_cni to none to leave it as it is.")
        + " If something else manages this cluster, set fabric_manage_kubernetes to false. No role replaces a pod"
        " network." + (REBUILD if running.facts.get("built_here", True) else ""),
    )


def _networks(text: str) -> t.List[t.Union[Network, str]]:
    """CIDRs in a canonical notation, in order: the first is the cluster's main family. Invalid text stays as it is."""
    found: t.List[t.Union[Network, str]] = []
    for part in text.split(","):
        try:
            found.append(ipaddress.ip_network(part.strip()))
        except ValueError:
            found.append(part.strip())
    return found


def _check_cidr(variable: str, planned: str, there: str, running: Running, findings: Findings) -> None:
    if there and _networks(planned) != _networks(there):
        findings.error(
            "cluster-cidr",
            [running.host],
            f"{variable} is not that of the cluster, and no role changes it.",
            f"{variable} is {planned}; {running.host} has {there} ({CONFIGURATION})",
            f"Set {variable} to {there}.",
        )


def _check_endpoint(settings: Settings, running: Running, endpoint: str, findings: Findings) -> None:
    there, wanted = running.facts["endpoint"], settings.control_plane_endpoint
    if (there or wanted) and normal_endpoint(endpoint) != normal_endpoint(there):
        given = f"fabric_control_plane_endpoint is {wanted or f'empty, so it is {endpoint}'}"
        if settings.control_plane_vip:
            given = f"fabric_control_plane_vip makes it {endpoint}"
        findings.error(
            "cluster-endpoint",
            [running.host],
            "The cluster's API has another endpoint, and no role changes that: certificates and kubeconfigs have it.",
            f"{given}; the cluster has {there or 'none'} ({CONFIGURATION})",
            (
                f"Set fabric_control_plane_endpoint to {there}, if this is the cluster of this site."
                if there
                else "Leave fabric_control_plane_endpoint empty."
            )
            + (" Leave fabric_control_plane_vip empty." if settings.control_plane_vip else ""),
        )


def _check_kubeconfig(settings: Settings, running: Running, findings: Findings) -> None:
    config = settings.kubeconfig
    if config.ca and running.ca and config.ca != running.ca:
        findings.error(
            "other-cluster",
            [running.host],
            "The kubeconfig on the controller does not lead to the cluster of the hosts.",
            f"{config.path} leads to {config.server}, and its CA is not the one that {running.host} trusts",
            ("Move the file away" if settings.manage_kubernetes else "Copy a kubeconfig of this cluster there")
            + ", or set fabric_kubeconfig to that of this cluster. A proxy may have a CA of its own.",
        )


def check_blocks(running: t.Optional[Running], networks: t.Sequence[PlannedNetwork], findings: Findings) -> None:
    """Warn of pools whose nodes lose blocks. It is harmless unless pods use the addresses, which the role checks."""
    there = {pool["name"]: pool for pool in running.facts["nv_ipam_pools"]} if running else {}
    for pool in (pool for network in networks for pool in network["pools"] if pool["name"] in there):
        now, subnet, size = there[pool["name"]], pool["subnet"], pool["perNodeBlockSize"]
        if running and not all(keeps_block(pool, node, block) for node, block in now["blocks"].items()):
            findings.warning(
                "pool-blocks",
                [running.host],
                "nv-ipam takes the pool's blocks away from its nodes, and hands out addresses of running pods again.",
                f"IPPool {pool['name']} has {now['subnet']} in blocks of {now['block_size']}; "
                f"{subnet} in blocks of {size} is planned",
                "Stop the pods of this network before site, which refuses the change while they have these addresses. "
                "Or keep the blocks: their size follows from fabric_pods_per_node, share, reserved and the number of "
                "hosts, their nodes from the hosts with a NIC on the network.",
            )


def check_stack(
    running: t.Optional[Running], networks: t.Sequence[PlannedNetwork], releases: Releases, findings: Findings
) -> None:
    """Two stacks with a network of one name write one NetworkAttachmentDefinition, and allocate the same addresses."""
    planned, wanted = {network["name"] for network in networks}, stack_name(releases)
    for name, stack in STACKS.items():
        seen = running.facts.get("fabric_networks", []) if running else []
        both = sorted({each["name"] for each in seen if each["stack"] == name} & planned)
        if running and both and name != wanted:
            findings.error(
                "cluster-stack",
                [running.host],
                "The cluster has these networks from another stack: both would give out the same addresses.",
                f"fabric_stack is {wanted}; {running.host} has {stack.network} {', '.join(both)}",
                f"Set fabric_stack to {name}. To change it, remove the fabric first: "
                f"ipu.fabric.reset with -e fabric_reset=fabric -e fabric_stack={name}.",
            )


def check_unplanned(
    settings: Settings,
    running: t.Optional[Running],
    networks: t.Sequence[PlannedNetwork],
    releases: Releases,
    findings: Findings,
) -> None:
    """Warn of networks that stay, such as a renamed one: roles refuse two with the same addresses."""
    name, there = stack_name(releases), running.facts.get("fabric_networks", []) if running else []
    left = sorted({each["name"] for each in there if each["stack"] == name} - {one["name"] for one in networks})
    if running and left and networks and not settings.prune_networks:
        findings.warning(
            "cluster-networks",
            [running.host],
            "The cluster has fabric networks that are not planned. site stops if one of them gives out planned"
            " addresses.",
            f"{STACKS[name].network} {', '.join(left)}",
            "Set fabric_prune_networks to true to remove networks of earlier plans, renamed ones too. Others can stay"
            " if they give out other addresses.",
        )


def check_attachments(running: t.Optional[Running], networks: t.Sequence[PlannedNetwork], findings: Findings) -> None:
    """A NetworkAttachmentDefinition that no network of its name stands behind is somebody else's, and would be lost."""
    if not running or "fabric_networks" not in running.facts:
        return
    there = {each["name"] for each in running.facts["fabric_networks"]}
    macvlans = {(one["namespace"], one["name"]) for one in networks if "cni" not in one and one["name"] not in there}
    seen = {(each["namespace"], each["name"]) for each in running.facts.get("attachments", [])}
    lost = [f"{namespace}/{name}" for namespace, name in sorted(seen & macvlans)]
    if lost:
        findings.error(
            "networks",
            [running.host],
            "A NetworkAttachmentDefinition of a planned network's name exists, but was made for no MacvlanNetwork.",
            f"NetworkAttachmentDefinition {', '.join(lost)}",
            "Give the planned network another name in fabric_networks, or delete the object if nobody needs it: the"
            " operator would overwrite it.",
        )


def stack_home(settings: Settings, stack: StackName) -> str:
    """The namespace in which the site installs a stack, and with it multus."""
    return settings.homes.get(stack) or STACKS[stack].namespace


def multus_problem(variable: str, wanted: bool, others: t.Sequence[str]) -> t.Tuple[str, str]:
    """What is wrong with multus, if there are two or none, and what to do; both empty if nothing is wrong."""
    if wanted and others:
        return (
            "The cluster has a multus already, and two of them overwrite each other's CNI configuration.",
            f"Set {variable} to false to use the installed one, or remove it first.",
        )
    if not wanted and not others:
        return (
            "Without multus pods would get no fabric interface.",
            f"Set {variable} to true, or install one first with the tool that manages the cluster.",
        )
    return "", ""


def check_multus(
    settings: Settings,
    running: t.Optional[Running],
    networks: t.Sequence[PlannedNetwork],
    releases: Releases,
    findings: Findings,
) -> None:
    """Require exactly one multus: the stack's role would refuse a second one, or none."""
    if not networks or findings.has_error("cluster-stack"):
        return
    if settings.manage_kubernetes and not running and not settings.own_multus.multus:
        why, step = multus_problem("fabric_multus", False, [])
        findings.warning(
            "cluster-stack", [], f"{why} site would stop in the new cluster.", "fabric_multus is false", step
        )
    if not running or "multus" not in running.facts:
        return
    own, there = settings.own_multus, running.facts["multus"]
    namespace = stack_home(settings, stack_name(releases))
    others = [place for place in there if not place.startswith(f"{namespace}/")]
    why, step = multus_problem("fabric_multus", own.multus, others)
    if why:
        seen = ", ".join(others) or "no DaemonSet of another multus"
        said = f"fabric_multus is {str(own.multus).lower()}; {running.host} has {seen}"
        findings.error("cluster-stack", [running.host], why, said, step)


def check_pod_security(
    settings: Settings,
    running: t.Optional[Running],
    networks: t.Sequence[PlannedNetwork],
    releases: Releases,
    findings: Findings,
) -> None:
    """Operators need a level that a namespace of others may not allow. Their roles would refuse to change it."""
    if not running or findings.has_error("cluster-stack"):
        return
    stack = stack_name(releases)
    homes, kubectl = {**settings.homes, stack: stack_home(settings, stack)}, _kubectl(settings)
    installed = {
        stack: bool(networks),
        "whereabouts": bool(networks) and releases["whereabouts_standalone"],
        "gpu_operator": settings.gpu,
    }
    for role, namespace in homes.items():
        level = running.facts.get("pod_security", {}).get(namespace) if installed.get(role) else None
        if level:
            findings.error(
                "pod-security",
                [running.host],
                "Pod Security of an existing namespace refuses pods of an operator, which use the host.",
                f"{role}_namespace is {namespace}; its label {POD_SECURITY} is {level}",
                f"Set {role}_namespace to a namespace that does not exist yet. Or, if all pods there may be privileged:"
                f" `{kubectl} label namespace {namespace} {POD_SECURITY}={PRIVILEGED} --overwrite`.",
            )


def check_own_kubeconfig(settings: Settings, findings: Findings) -> None:
    """Check the site's kubeconfig for a cluster that others manage: roles would miss it after they changed hosts."""
    path, server, _ca, fault = settings.kubeconfig
    if settings.manage_kubernetes:
        return
    if settings.rights:
        findings.error(
            "kubeconfig",
            [],
            "The kubeconfig lacks rights that site needs: the API would refuse its requests.",
            f"{path or 'fabric_api_kubeconfig'} may not {', '.join(settings.rights)}",
            "Take a kubeconfig with the rights of cluster-admin, or have its user bound to that: kubectl create"
            f" clusterrolebinding NAME --clusterrole=cluster-admin --user={shlex.quote(settings.user or 'USER')}.",
        )
    if not path:
        return
    if not server:
        findings.error(
            "kubeconfig",
            [],
            "The cluster is managed elsewhere, and this controller needs a kubeconfig of it.",
            f"{path} {fault}" if fault else f"no file at {path}",
            "Copy one with the rights of cluster-admin there, or set fabric_kubeconfig to its path: the default"
            " is in the folder that you run in.",
        )
    elif is_loopback(urllib.parse.urlsplit(server).hostname or ""):
        findings.error(
            "kubeconfig",
            [],
            "The kubeconfig leads to the controller itself: it was made for a control plane's own use.",
            f"{path} has the server {server}",
            "Change the server in the kubeconfig to an address of the API that this controller reaches, such as a"
            " control plane's.",
        )
    elif settings.api_silence and not findings.has_error("other-cluster"):  # TLS refuses it with a wrong CA
        findings.error(
            "kubeconfig",
            [],
            "The cluster is managed elsewhere, and its API does not answer this controller, or refuses it.",
            f"{server} with {path}: {settings.api_silence}",
            "Check that this is the address of the API, that the controller reaches it, and that the token or"
            " certificate in the kubeconfig has not expired. If there is no cluster yet, and ipu.fabric is to build it,"
            " leave out fabric_manage_kubernetes: false.",
        )


def check_api_host(hosts: Hosts, findings: Findings) -> None:
    """The API host runs modules that need more than Python's standard library."""
    for host in hosts.values():
        lacking = host.facts.get("lacking_packages", []) if host.facts else []
        if lacking:
            distribution = " ".join(f"python3-{name}" for name in lacking)
            findings.error(
                "api-packages",
                [host.name],
                "The host that speaks to the API lacks Python packages, and modules would fail in the middle of a run.",
                f"fabric_api_host is {host.name}; its Python has no {', '.join(lacking)}",
                f"Install them there: apt-get install {distribution}. Or set fabric_api_host to localhost, where the"
                " controller reaches the API.",
            )


def states(hosts: Hosts, variable: str) -> bool:
    """Whether the inventory itself sets a variable."""
    return any(variable in host.observation.get("variables", ()) for host in hosts.values())


def check_own_pod_network(settings: Settings, hosts: Hosts, running: t.Optional[Running], findings: Findings) -> None:
    """In a cluster that others manage, the pod network is theirs, whatever the site says."""
    there = [network["name"] for network in running.facts["pod_networks"]] if running else []
    if states(hosts, "fabric_cni") and not settings.manage_kubernetes and settings.cni not in ("none", *there):
        findings.warning(
            "cluster-cni",
            [],
            "The pod network of a cluster that is managed elsewhere stays as it is.",
            f"fabric_cni is {settings.cni}, and fabric_manage_kubernetes is false",
            "Set fabric_cni to none, or remove it from the inventory.",
        )


def check_own_cidrs(settings: Settings, hosts: Hosts, running: t.Optional[Running], findings: Findings) -> None:
    """Compare the inventory's CIDRs with those of a cluster that others manage; the plan uses the cluster's."""
    if not running or settings.manage_kubernetes:
        return
    for variable, stated, there in (
        ("fabric_pod_cidr", settings.pod_cidr, running.facts["pod_cidr"]),
        ("fabric_service_cidr", settings.service_cidr, running.facts["service_cidr"]),
    ):
        if there and states(hosts, variable) and _networks(stated) != _networks(there):
            findings.warning(
                "cluster-cidr",
                [running.host],
                f"{variable} is not that of the cluster, and the plan uses the cluster's.",
                f"{variable} is {stated}; {running.host} has {there}",
                f"Set {variable} to {there}, or remove it from the inventory.",
            )


def check_nodes(settings: Settings, hosts: Hosts, running: t.Optional[Running], findings: Findings) -> None:
    """Warn of nodes without a plan, which DaemonSets and address pools reach nevertheless."""
    planned = {host.node for host in hosts.values()}
    strangers = sorted({node["name"] for node in running.facts.get("nodes", [])} - planned) if running else []
    if running and strangers and not settings.upgrade and not settings.node_affinity:
        has_affinity = settings.stack == "network_operator"
        off = " Or keep the fabric off them with network_operator_node_affinity." if has_affinity else ""
        gone = " Remove nodes that are gone for good with ipu.fabric.remove_node." if settings.manage_kubernetes else ""
        findings.warning(
            "cluster-nodes",
            [running.host],
            "Nodes of the cluster are not in the inventory: the fabric's DaemonSets run there too, pods get addresses"
            " there that nobody planned, and no proof or removal reaches these hosts.",
            ", ".join(strangers),
            f"Add them to kube_node.{gone}{off}",
        )
    if running and not settings.upgrade:
        _check_states(hosts, running, _kubectl(settings), findings)


def _kubectl(settings: Settings) -> str:
    """The command as it works on this controller, if it has a kubeconfig."""
    config = settings.kubeconfig
    return f"kubectl --kubeconfig {shlex.quote(config.path)}" if config.server else "kubectl"


def _check_states(hosts: Hosts, running: Running, kubectl: str, findings: Findings) -> None:
    """Warn of nodes of the inventory that take no pods, and of control planes that take pods without being workers."""
    nodes = {node["name"]: node for node in running.facts.get("nodes", [])}
    members = [(host, nodes[host.node]) for host in hosts.values() if host.node in nodes]
    for host, node in members:
        if NO_CNI.search(node.get("not_ready", "")):
            continue  # site installs a pod network, or `cni-files` says what is missing
        if "not_ready" in node:
            findings.warning(
                "node-ready",
                [host.name],
                "The node is not Ready: it runs no new pods, and its proof will fail.",
                node["not_ready"] or "not Ready",
                "Run `systemctl restart containerd && systemctl restart kubelet` on its host. It is Ready half a minute"
                f" later. If it is not, `{kubectl} describe node {host.node}` and `journalctl -u kubelet` say why.",
            )
        elif node.get("cordoned"):
            findings.warning(
                "node-ready",
                [host.name],
                "The node is cordoned: the scheduler gives it no pods.",
                f"node {host.node} is SchedulingDisabled",
                f"Run `{kubectl} uncordon {host.node}` when its maintenance is over.",
            )
    open_planes = [host for host, node in members if node.get("untainted") and "worker" not in host.roles]
    for host in open_planes:
        findings.warning(
            "cluster-nodes",
            [host.name],
            "This control plane takes all pods, and is not in kube_node: a pod with a fabric network may come here, and"
            " does not start.",
            f"node {host.node} has no taint with the effect NoSchedule",
            f"Add the host to kube_node. Or keep such pods away: `{kubectl} taint node {host.node}"
            " node-role.kubernetes.io/control-plane:NoSchedule`.",
        )


def check_joined(settings: Settings, hosts: Hosts, running: t.Optional[Running], findings: Findings) -> None:
    """Each host that site does not join, since others manage the cluster or since it has joined, is a node."""
    nodes = running.facts.get("nodes", []) if running else []
    if not running or not nodes or findings.has_error("node-distribution"):
        return
    # By machine ID and by name: comparing each host with each node would be quadratic.
    by_id = {node["machine_id"]: node for node in nodes if node["machine_id"]}
    by_name = {node["name"]: node for node in nodes}
    lost: t.Dict[str, HostFacts] = {}
    for name, facts in ((name, host.facts) for name, host in hosts.items()):
        node = by_id.get(facts["machine_id"]) or by_name.get(facts["hostname"].lower()) if facts else None
        if facts and not (node and is_node(facts, node)):
            lost[name] = facts
    strangers = [*lost]
    if settings.manage_kubernetes:
        joined = [name for name, facts in sorted(lost.items()) if running.ca and trusted_ca(facts) == running.ca]
        if joined:
            findings.error(
                "node-removed",
                joined,
                "The host has joined the cluster, which has no node of it any more.",
                f"nodes of the cluster: {shorten_list(sorted(by_name), 8)}",
                f"{REMOVED} Then site joins it again; or take it out of the inventory.",
            )
        return
    addresses = {address for node in nodes for address in node.get("addresses", [])}
    for name, host in hosts.items():
        reached = host.observation.get("reached")
        if not host.facts and reached and reached not in addresses and not {name, host.node} & set(by_name):
            strangers.append(name)
    if strangers:
        findings.error(
            "node-distribution",
            sorted(strangers),
            "The cluster has no node of this host, and site joins none where others manage the cluster.",
            f"nodes of the cluster: {shorten_list(sorted(by_name), 8)}",
            "Join it with what manages the cluster, or take it out of the inventory.",
        )


def describe_running(running: t.Optional[Running], ipu: bool, releases: Releases) -> t.Optional[RunningCluster]:
    if not running:
        return None
    facts = running.facts
    there = facts.get("fabric_networks")
    seen = facts.get("ipu")
    return {
        "host": running.host,
        "version": facts["version"],
        "endpoint": facts["endpoint"],
        "pod_cidr": facts["pod_cidr"],
        "service_cidr": facts["service_cidr"],
        "pod_networks": sorted({network["name"] for network in facts["pod_networks"]}),
        "fabric_networks": None
        if there is None
        else sorted(each["name"] for each in there if each["stack"] == stack_name(releases)),
        "ipu_operators": [
            {"namespace": each["namespace"], "release": each["release"], "version": each["version"]}
            for each in (seen["operators"] if seen and ipu else [])
        ],
    }
