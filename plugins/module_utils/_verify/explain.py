# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What RDMA and networks a pod has besides the cluster's, what it lacks for RDMA, and why. Pure functions."""

from __future__ import annotations

import ipaddress
import math
import re
import typing as t
from dataclasses import dataclass, field

from .._common.memlock_limits import limit_bytes, readable
from .._common.text import shorten_list, wrapped
from .._kube.multus import INSTALL
from .._kube.pod_problems import Problem
from .look import EVERYWHERE, Inside
from .parsers import gid_of

WIDTH = 78
NETWORKS_KEY = "k8s.v1.cni.cncf.io/networks"
RDMA_NAME = re.compile(r"rdma|roce|sriov|hca|mlnx|vf\b", re.IGNORECASE)
NAMED = 6  # networks and resources to list in a next step
AGAIN = "Then delete the pod and have it created again: networks are attached when it starts."


@dataclass(frozen=True)
class PodNetwork:
    """A network that the pod requests, and what became of it."""

    name: str  # NAMESPACE/NAME
    exists: bool = True
    fault: str = ""  # why a running pod lacks it
    interface: str = ""  # in the pod; empty if not attached
    addresses: t.Sequence[str] = ()
    kind: str = ""  # CNI plugin, such as macvlan
    master: str = ""  # interface of the node
    mtu: int = 0  # MTU in its definition; 0 if none
    resource: str = ""  # resource in its definition, as with SR-IOV


@dataclass(frozen=True)
class Amount:
    """The amount of a device resource on the pod's node."""

    allocatable: int
    used: t.Optional[int] = None  # by the node's pods; None if unknown


@dataclass(frozen=True)
class PodSeen:
    """A pod, from the API and from inside one of its containers."""

    name: str  # NAMESPACE/NAME
    phase: str = "Running"
    node: str = ""  # empty without a node
    container: str = ""  # the one that was examined
    host_network: bool = False
    privileged: bool = False  # of that container
    problems: t.Sequence[Problem] = ()  # what keeps it from running
    networks: t.Sequence[PodNetwork] = ()
    available: t.Optional[t.Sequence[str]] = ()  # the cluster's networks, NAMESPACE/NAME; None if unreadable
    served: bool = True  # whether the cluster serves the kind NetworkAttachmentDefinition
    asks: t.Mapping[str, int] = field(default_factory=dict)  # device resources of that container
    others: t.Mapping[str, str] = field(default_factory=dict)  # those of other containers, with the container's name
    node_has: t.Mapping[str, Amount] = field(default_factory=dict)  # device resources
    inside: t.Optional[Inside] = None  # None if it does not run
    nics: t.Mapping[str, int] = field(default_factory=dict)  # MTUs of the node's interfaces; empty if unknown
    unread: t.Sequence[str] = ()  # what the API did not return


class Lack(t.NamedTuple):
    """Something that the pod lacks, or that is not as RDMA requires."""

    what: str
    why: str
    next: str


@dataclass(frozen=True)
class Explanation:
    has: t.Sequence[str]
    lacks: t.Sequence[Lack]
    unread: t.Sequence[str]  # what could not be seen, and why


def explain(pod: PodSeen) -> Explanation:
    """What a pod has, what it lacks, and what could not be read."""
    lacks = [*not_running(pod), *network_lacks(pod), *resource_lacks(pod)]
    unread = list(pod.unread)
    inside = pod.inside
    if inside:
        unread += [*([f"the inside of container {pod.container}: {inside.error}"] if inside.error else [])]
        unread += inside.unread
        if not inside.error:
            lacks += [*file_lacks(pod, inside), *memlock_lacks(inside), *gid_lacks(pod, inside)]
            lacks += [*route_lacks(pod, inside), *mtu_lacks(pod, inside)]
            if any(network.master and network.master not in pod.nics for network in pod.networks):
                unread.append("the MTU of the node's NIC: no plan has it, and no pod with hostNetwork showed it")
    return Explanation(list(has(pod)), lacks, unread)


def is_rdma(resource: str, networks: t.Iterable[PodNetwork] = ()) -> bool:
    """Whether a device resource is for RDMA: by its name, or because a network refers to it."""
    return bool(RDMA_NAME.search(resource)) or resource in {network.resource for network in networks}


def shown(names: t.Iterable[str], none: str) -> str:
    """The first names, and the number of others."""
    return shorten_list(sorted(names), NAMED) or none


# What it has


def has(pod: PodSeen) -> t.Iterator[str]:
    where = f"on node {pod.node}" if pod.node else "on no node"
    kinds = [
        word for word, true in (("privileged", pod.privileged), ("on the host's network", pod.host_network)) if true
    ]
    yield ", ".join([f"{pod.phase} {where}", f"container {pod.container}", *kinds])
    inside = pod.inside or Inside()
    for network in pod.networks:
        if network.interface:
            mtu = inside.mtus.get(network.interface)
            parts = [f"{network.interface} {' '.join(network.addresses)}".strip(), f"MTU {mtu}" if mtu else ""]
            parts.append(f"{network.kind} on {network.master}" if network.master else network.kind)
            yield f"network {network.name}: {', '.join(filter(None, parts))}"
    for resource, count in sorted(pod.asks.items()):
        amount = pod.node_has.get(resource)
        node = "" if amount is None else f" (node: {amount.allocatable}{_used(amount)})"
        yield f"resource {resource}: {count}{node}"
    ports = {name: port for name, port in inside.ports.items() if name.partition("/")[0] in inside.held}
    if ports:
        states = [
            f"{name} {port.get('state', '?')} {port.get('link_layer', '')}".strip() for name, port in ports.items()
        ]
        yield f"RDMA devices: {', '.join(states)}"
    if inside.files:
        yield f"/dev/infiniband: {', '.join(sorted(inside.files))}"
    for gid in own_gids(inside):
        yield "GID of {0}: {1[device]} port {1[port]} index {1[index]}, {1[type]}".format(*gid)
    if inside.memlock:
        yield f"locked memory: {readable(inside.memlock)}{', and IPC_LOCK' if inside.ipc_lock else ''}"
    if inside.routes:
        yield f"routes: {'; '.join(route.text for route in inside.routes)}"


def _used(amount: Amount) -> str:
    return "" if amount.used is None else f", {amount.used} in use"


def own_gids(inside: Inside) -> t.List[t.Tuple[str, t.Mapping[str, t.Any]]]:
    """GIDs of the container's own addresses, each with its address, on devices that the container may open."""
    wanted = {gid_of(address): address for address in inside.addresses}
    return [(wanted[gid["gid"]], gid) for gid in inside.gids if gid["gid"] in wanted and gid["device"] in inside.held]


# What it lacks, with a function for each subject

PLUGIN = "ipu.fabric.site installs one where NICs have RDMA, unless fabric_require_rdma is false."
CAUSES = (
    (
        "untolerated taint",
        "Tolerate the taint in the pod's spec, or remove its cause; kubectl describe node shows the taints.",
    ),
    (
        "Insufficient",
        "Ask for less of what the message names, or wait for pods that hold it: kubectl describe node shows them.",
    ),
    ("affinity/selector", "Give a node the labels that nodeSelector or affinity of the pod ask for, or change those."),
    (
        "which no node has",
        "Ask for a resource that the nodes have; ipu.fabric.prove says why a node lacks one. If no node has any, no"
        f" device plugin runs: {PLUGIN}",
    ),
    ("Image", "Correct the image's name, or give its pod a pull secret."),
    (
        "configuration for pool",
        "nv-ipam has no block for this node: the nodeSelector of the IPPool leaves it out. Run the pod on another node,"
        " or add this one to kube_node and run ipu.fabric.site.",
    ),
    ("network could not be set up", "Read the log of multus on that node, and the message above: it names the plugin."),
)


def not_running(pod: PodSeen) -> t.Iterator[Lack]:
    missing = {network.name.partition("/")[2] for network in pod.networks if not network.exists}
    for problem in pod.problems:
        # A network that does not exist is reported as such.
        if not ("network could not be set up" in problem.text and any(name in problem.text for name in missing)):
            step = problem.step or next((step for words, step in CAUSES if words in problem.text), "")
            yield Lack("it does not run", problem.text, step or "kubectl describe pod shows its events.")
    if pod.inside is None and not pod.problems and not missing:
        ended = pod.phase in ("Succeeded", "Failed")
        why = "its containers have ended" if ended else f"it is {pod.phase}, and nothing says why"
        step = (
            "Run ipu.fabric.explain for a pod that is running."
            if ended
            else "Wait a moment and ask again; kubectl describe pod shows events."
        )
        yield Lack("it does not run", why, step)


def network_lacks(pod: PodSeen) -> t.Iterator[Lack]:
    if pod.host_network:
        if pod.networks:
            names = ", ".join(network.name for network in pod.networks)
            yield Lack(
                f"none of the networks that it asks for: {names}",
                "it is on its host's network (hostNetwork: true), where multus adds nothing",
                f"Remove hostNetwork from its spec, or the annotation {NETWORKS_KEY} if it is to use the node's NICs.",
            )
        return
    if not pod.networks:
        known = shown(pod.available or (), "the cluster has none yet")
        if pod.available is None:
            known = "kubectl get network-attachment-definitions -A lists them"
        yield Lack(
            "no network but the cluster's",
            f"it has no annotation {NETWORKS_KEY}",
            f"Put the annotation with a network ({known}) into the manifest that creates the pod. {AGAIN}",
        )
    for network in pod.networks:
        name = network.name.partition("/")[2]
        elsewhere = [other for other in pod.available or () if other.partition("/")[2] == name and not network.exists]
        if elsewhere:
            yield Lack(
                f"no network {network.name}",
                f"it is in another namespace: {', '.join(elsewhere)}; a name without a namespace means the pod's own",
                f"Write {elsewhere[0]} in the annotation {NETWORKS_KEY}. {AGAIN}",
            )
        elif not network.exists and not pod.served:
            yield Lack(
                f"no network {network.name}",
                "the cluster does not have the kind NetworkAttachmentDefinition, so it has no multus",
                f"{INSTALL} Then create the network, and delete the pod.",
            )
        elif not network.exists:
            yield Lack(
                f"no network {network.name}",
                "there is no NetworkAttachmentDefinition of this name",
                f"Correct the annotation {NETWORKS_KEY}, or create that network. The cluster has:"
                f" {shown(pod.available or (), 'none')}. {AGAIN}",
            )
        elif network.fault:
            yield Lack(
                f"no network {network.name}",
                network.fault,
                f"Check that multus runs on the node. {AGAIN}",
            )


def resource_lacks(pod: PodSeen) -> t.Iterator[Lack]:
    """What a container lacks in resources; a privileged one has the node's devices without requesting any."""
    if pod.privileged and pod.inside and pod.inside.files:
        return
    mine = [name for name in pod.asks if is_rdma(name, pod.networks)]
    for name in mine:
        if pod.node and not pod.node_has.get(name, Amount(1)).allocatable and pod.inside is None:
            yield Lack(
                f"no resource {name} on node {pod.node}",
                "the device plugin offers none there",
                "Read the log of the RDMA device plugin on that node, or run ipu.fabric.prove: rdma_resource says why.",
            )
    if mine:
        return
    other = {name: container for name, container in pod.others.items() if is_rdma(name, pod.networks)}
    if other:
        name, container = min(other.items())
        yield Lack(
            f"no RDMA resource in container {pod.container}",
            f"only container {container} asks for {name}",
            f"Ask for {name} in the container that uses RDMA, or look at the other one: -e container={container}.",
        )
        return
    offered = sorted(name for name in pod.node_has if is_rdma(name, pod.networks))
    wanted = [network.resource for network in pod.networks if network.resource] or offered
    yield Lack(
        "no RDMA resource",
        f"no container asks for one; {f'node {pod.node}' if pod.node else 'its node'} has {shown(offered, 'none')}",
        f"Add {shown(wanted, '')}: 1 to resources.limits of the container, and the capability IPC_LOCK."
        if wanted
        else f"The nodes need an RDMA device plugin: {PLUGIN}",
    )


def file_lacks(pod: PodSeen, inside: Inside) -> t.Iterator[Lack]:
    asks = [name for name in pod.asks if is_rdma(name, pod.networks)]
    uverbs = any(name.startswith("uverbs") for name in inside.files)
    if uverbs and "rdma_cm" in inside.files:
        if not inside.held and not inside.gids:
            yield Lack(
                "no RDMA device in its network namespace",
                "it has the device files, and /sys/class/infiniband is empty: the node's RDMA namespaces are exclusive,"
                " and the device is in another one",
                "On the node: `rdma system` shows the mode; set it to shared (role ipu.fabric.rdma_host), or use the"
                " CNI plugin rdma with SR-IOV. Then start the pod again.",
            )
        for name, port in sorted(inside.ports.items()):
            # Without `verbs`, other devices of the node may be among them.
            mine = inside.verbs and name.partition("/")[0] in inside.held
            if mine and port.get("state") not in (None, "ACTIVE"):
                yield Lack(f"port {name} is {port['state']}", "the NIC's link is down", _LINK)
    elif asks or pod.privileged:
        part = "/dev/infiniband" if not inside.files else "rdma_cm" if uverbs else "uverbs*"
        seen = f" (it has {', '.join(sorted(inside.files))})" if inside.files else ""
        yield Lack(
            f"no {part}{'' if part.startswith('/') else ' in /dev/infiniband'}",
            f"the resource {', '.join(asks)} brought no such file{seen}: the node lacked it when the pod started"
            if asks
            else f"it is privileged, and the node's /dev/infiniband is not mounted{seen}",
            "Load ib_uverbs and rdma_ucm on the node (role ipu.fabric.rdma_host), restart the RDMA device plugin there,"
            " then delete the pod."
            if asks
            else "Mount /dev/infiniband of the host, or ask for an RDMA resource.",
        )


_LINK = "Check cable and switch port; on the node: ip link, rdma link."


def memlock_lacks(inside: Inside) -> t.Iterator[Lack]:
    if inside.memlock and not inside.ipc_lock and limit_bytes(inside.memlock) < math.inf:
        yield Lack(
            f"too little locked memory: {readable(inside.memlock)}",
            f"the runtime's limit, and uid {inside.uid} has no IPC_LOCK in effect",
            "Add the capability IPC_LOCK if the container runs as root; for other users run the role"
            " ipu.fabric.memlock, which lifts the runtime's limit. Then delete the pod, so that it is recreated.",
        )


def rails(pod: PodSeen, inside: Inside) -> t.Iterator[t.Tuple[PodNetwork, str]]:
    """Each attached network, with one of its addresses: an IPv4 one if there is any."""
    for network in pod.networks:
        mine = [address for address in network.addresses if address in inside.addresses or not inside.addresses]
        four = [address for address in mine if ipaddress.ip_address(address).version == 4]
        if network.interface and mine:
            yield network, (four or mine)[0]


def gid_lacks(pod: PodSeen, inside: Inside) -> t.Iterator[Lack]:
    if not inside.held:
        return
    if pod.host_network:
        if not any(gid["type"] == "RoCE v2" for _address, gid in own_gids(inside)):
            yield Lack(
                "no RoCE v2 GID of an address of the node",
                f"{shown(inside.held, '')} has none: its NIC has no address",
                "Give the NIC an address, or put the pod on a network: remove hostNetwork and annotate it.",
            )
        return
    for network, address in rails(pod, inside):
        same = [gid for gid in inside.gids if gid["gid"] == gid_of(address)]
        v2 = [gid for gid in same if gid["type"] == "RoCE v2"]
        if any(gid["device"] in inside.held for gid in v2):
            continue
        what, held = f"no RoCE v2 GID for {address} ({network.interface})", shown(inside.held, "")
        nics = sorted({gid["netdev"] for gid in inside.gids if gid["device"] in inside.held and gid["netdev"]})
        foreign = [nic for nic in nics if nic not in inside.mtus]
        if v2:
            device = v2[0]["device"]
            why = f"the GID is on {device}, and the pod may open only {held}"
            step = f"Ask for the resource of {device}: {_resources(pod)}."
        elif same:
            why = f"{held} has it only as {', '.join(sorted({gid['type'] or 'no type' for gid in same}))}"
            step = "Let the NIC use RoCE v2: run the role ipu.fabric.rdma_host on the node, then delete the pod."
        elif network.master and foreign and network.master not in nics:
            other = ", ".join(foreign)
            why = f"{held} belongs to {other}, which is not in the pod; {network.interface} is on {network.master}"
            step = f"Ask for the resource of {network.master} ({_resources(pod)}), or for a network on {foreign[0]}."
        else:
            why = f"{held} has no GID for this address"
            step = (
                "On the node, `rdma system` must say shared, and the device must support RoCE v2 (role"
                " ipu.fabric.rdma_host)."
            )
        yield Lack(what, why, step)


def _resources(pod: PodSeen) -> str:
    offered = [name for name in pod.node_has if is_rdma(name, pod.networks) and name not in pod.asks]
    return f"the node has {shown(offered, 'no other')}"


def route_lacks(pod: PodSeen, inside: Inside) -> t.Iterator[Lack]:
    if not inside.routes or pod.host_network:
        return
    for network, address in rails(pod, inside):
        ip = ipaddress.ip_address(address)
        subnets = [r for r in inside.routes if r.dst not in EVERYWHERE and r.network.version == ip.version]
        around = [route for route in subnets if ip in route.network]
        if not any(route.dev == network.interface for route in around):
            through = f"; {around[0].text} takes the traffic" if around else ""
            yield Lack(
                f"no route to the subnet of {address} through {network.interface}",
                f"the kernel creates this route from the address and its prefix length{through}",
                f"In the IPAM of {network.name}, set the subnet's own prefix length, and remove routes that send it"
                f" anywhere but {network.interface}; then delete the pod.",
            )
    interfaces = {network.interface: network.name for network in pod.networks if network.interface}
    for everywhere in EVERYWHERE:
        defaults = sorted((r for r in inside.routes if r.dst == everywhere), key=lambda route: route.metric)
        if defaults and defaults[0].dev in interfaces:
            name = interfaces[defaults[0].dev]
            yield Lack(
                f"the default route is through {defaults[0].dev}",
                f"{defaults[0].text}: traffic to services, DNS and the internet leaves through {name}",
                f"Remove the gateway from the IPAM of {name}, and default-route from the annotation; if routers"
                " advertise the route, turn that off. Then delete the pod.",
            )


def mtu_lacks(pod: PodSeen, inside: Inside) -> t.Iterator[Lack]:
    for network in pod.networks:
        mine, nic = inside.mtus.get(network.interface, 0), pod.nics.get(network.master, 0)
        if mine and mine < nic:
            why = f"{network.name} states {network.mtu}" if network.mtu else "the NIC had it when the pod started"
            yield Lack(
                f"MTU {mine} of {network.interface} is below that of the NIC ({network.master}: {nic})",
                why,
                f"Set mtu of {network.name} to {nic} (in fabric_networks, or its definition), then delete the pod."
                if network.mtu
                else "Delete the pod, so that it takes the NIC's MTU.",
            )


# As text


def as_text(name: str, found: Explanation) -> t.List[str]:
    """Lines of at most WIDTH columns. Longer names and commands are not wrapped."""
    count = len(found.lacks)
    blind = " that can be seen from here" if found.unread else ""
    head = (
        f"lacks {count} {'thing' if count == 1 else 'things'} that RDMA needs"
        if count
        else f"has all that RDMA needs{blind}"
    )
    lines = wrapped(f"Pod {name} {head}.", WIDTH)
    for number, lack in enumerate(found.lacks, 1):
        lines += wrapped(lack.what[0].upper() + lack.what[1:], WIDTH, f"{number}. ", "   ")
        lines += wrapped(lack.why, WIDTH, "   Why:  ", "         ")
        lines += wrapped(lack.next, WIDTH, "   Next: ", "         ")
    lines += ["Has:", *(line for text in found.has for line in wrapped(text, WIDTH, "   ", "     "))]
    if found.unread:
        lines += ["Not read:", *(line for text in found.unread for line in wrapped(text, WIDTH, "   ", "     "))]
    return lines
