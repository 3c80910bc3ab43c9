# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every check: what it is called, where it belongs, what is asked of it, and what to do when it fails."""

from __future__ import annotations

import typing as t

AREAS = ("cluster", "network", "limits", "ipu", "rdma")


class Kind(t.NamedTuple):
    """What a check is called, where it belongs, and what to do when it fails."""

    title: str
    area: str
    next_step: str


MEMLOCK = "Apply the role ipu.fabric.memlock to this host, then make new pods."

KINDS: t.Dict[str, Kind] = {
    "release": Kind(
        "Helm release", "cluster", "Run the playbook ipu.fabric.fabric; `helm history` says what went wrong."
    ),
    "kinds": Kind("Kinds are served", "cluster", "Run the playbook ipu.fabric.fabric: it applies the operators' CRDs."),
    "policy": Kind(
        "NicClusterPolicy is ready",
        "cluster",
        "See the pods of the states that are not ready: `kubectl -n nvidia-network-operator get pods -o wide`.",
    ),
    "network": Kind(
        "Network is made",
        "cluster",
        "`kubectl describe macvlannetwork NAME`, or spidermultusconfig with Spiderpool, has the reason.",
    ),
    "attachment": Kind(
        "Attachment equals the plan",
        "cluster",
        "Run the playbook ipu.fabric.fabric; if the network was changed on purpose, change the site variables instead.",
    ),
    "nfd": Kind(
        "Node Feature Discovery once",
        "cluster",
        "Remove one of them: of the network operator's by nfd.enabled=false and nfd.deployNodeFeatureRules=false.",
    ),
    "multus_once": Kind(
        "Multus once",
        "cluster",
        "Remove one: they take each other's place in /etc/cni/net.d (Spiderpool: multus.multusCNI.install=false).",
    ),
    "multus_node": Kind(
        "Multus runs on the node",
        "cluster",
        "Tolerate the node's taints: spec.tolerations of the NicClusterPolicy, from 23.7 on; before, remove the taint.",
    ),
    "node": Kind("Node is Ready", "cluster", "`kubectl describe node NAME`, then `journalctl -u kubelet` on the host."),
    "pod": Kind(
        "Pod starts", "network", "Do what the message asks for; for an image, set verify_image to one in reach."
    ),
    "multus": Kind(
        "Multus handles pods",
        "network",
        "00-multus.conf must be the node's first CNI configuration: restart the node's pod of kube-multus-ds.",
    ),
    "interface": Kind(
        "Pod has the interface",
        "network",
        "Look for the macvlan and IPAM plugins in the node's CNI directory, and for CNI errors in the kubelet's log.",
    ),
    "address": Kind(
        "Address is in the plan",
        "network",
        "Compare the network's pool or range with plan.json: an address outside it may belong to somebody else.",
    ),
    "unique": Kind(
        "No address twice", "network", "Delete the pods that share it, then look for leaked or overlapping allocations."
    ),
    "ip_pool": Kind(
        "Address pool has room",
        "network",
        "Plan more addresses for the network: a larger `share`, fewer `reserved` ones or a larger subnet.",
    ),
    "pool_overlap": Kind(
        "Nobody else deals addresses",
        "network",
        "What is left over goes with fabric_prune_networks: true; of two makers' pools one has to move (key share).",
    ),
    "default_route": Kind(
        "Default route stays on eth0", "network", "Remove `gateway` and default `routes` from the network's IPAM."
    ),
    "policy_routes": Kind(
        "Answers leave by their rail",
        "network",
        "Let the coordinator tune routes (spiderpool_coordinator: tunePodRoutes), then make new pods.",
    ),
    "mtu": Kind("MTU of the interface", "network", "Set the same MTU on the host's interface and in the plan."),
    "ping": Kind(
        "Pods reach each other",
        "network",
        "Both masters must be on one layer 2 network whose switch allows several MAC addresses a port.",
    ),
    "full_size": Kind(
        "Full-size packets pass",
        "network",
        "Set the MTU of switch ports and masters to the plan's, or plan a smaller one.",
    ),
    "memlock_root": Kind("Locked memory, uid 0", "limits", MEMLOCK),
    "memlock_user": Kind("Locked memory, uid 1000", "limits", MEMLOCK),
    "vipu": Kind(
        "V-IPU port opens",
        "ipu",
        "Check that the V-IPU service runs, its firewall, and the route to it from the pod's net1.",
    ),
    "ipu_labels": Kind(
        "IPU node labels",
        "ipu",
        "Run the playbook ipu.fabric.fabric: jobs find their V-IPU controller by these labels.",
    ),
    "ipu_operator": Kind(
        "IPU operator runs", "ipu", "`kubectl describe` the Deployment that is not ready, and its pods."
    ),
    "webhook": Kind(
        "IPUJob passes the webhook",
        "ipu",
        "Run the playbook ipu.fabric.fabric: it renews the webhook's certificate and restarts the controller.",
    ),
    "ipu_certificate": Kind(
        "Webhook's certificate lasts",
        "ipu",
        "Run the playbook ipu.fabric.fabric: it renews the certificate in its last 30 days (ipu_operator_renew_days).",
    ),
    "vipu_proxy": Kind(
        "V-IPU proxy is healthy", "ipu", "See the proxy's log; it must reach the planned V-IPU controllers."
    ),
    "rdma_resource": Kind(
        "RDMA resource on the node",
        "rdma",
        "Load ib_umad and rdma_cm on the host, check the device plugin's selectors, then restart its pod of this node.",
    ),
    "rdma_link": Kind(
        "RDMA link is ACTIVE", "rdma", "Check cable and switch port; `rdma link` on the host must say ACTIVE."
    ),
    "link_layer": Kind(
        "Link layer is Ethernet",
        "rdma",
        "Macvlan is for RoCE: set LINK_TYPE of the port to Ethernet, or use IPoIB networks.",
    ),
    "rdma_files": Kind(
        "RDMA files in the pod",
        "rdma",
        "Load ib_uverbs and rdma_cm on the host, then restart the node's device plugin pod.",
    ),
    "gid": Kind(
        "RoCE v2 GID of the address",
        "rdma",
        "`rdma system` on the host must say shared, and the device must speak RoCE v2.",
    ),
    "rping": Kind("rping from pod to pod", "rdma", "UDP port 4791 must pass between the nodes on the fabric."),
    "write_bandwidth": Kind(
        "ib_write_bw", "rdma", "Check the speed of both ports, and PFC, ECN and MTU on the path between the nodes."
    ),
    "read_latency": Kind("ib_read_lat", "rdma", "Check power saving, congestion and the path between the nodes."),
    "host_traffic": Kind(
        "gc-hosttraffictest", "rdma", "Compare with a node that does better: PCIe width, NUMA, MTU of the fabric."
    ),
}

PASSED, FAILED, SKIPPED = "passed", "failed", "skipped"

# Why a check is skipped.
NODE_POD = "the probe pod of this node does not run"
TWO_NODES = "needs pods with an address on two nodes"
NO_IPU = "IPU checks are off"


class Expect(t.NamedTuple):
    """What the site asks for beyond the plan."""

    memlock: str = "unlimited"
    rdma_bandwidth: float = 0
    rdma_latency: float = 0
    host_traffic: float = 0
    ipu: bool = True
    ipu_partition: str = ""


class Check(t.NamedTuple):
    check: str
    status: str
    expected: str
    seen: str
    next: str = ""
    node: str = ""
    pair: t.Tuple[str, ...] = ()
    network: str = ""
    subject: str = ""
    value: t.Optional[float] = None
    unit: str = ""


def result(check: str, good: bool, expected: str, seen: str, **where: t.Any) -> Check:
    return Check(check, PASSED if good else FAILED, expected, seen, "" if good else KINDS[check].next_step, **where)


def skip(check: str, reason: str, **where: t.Any) -> Check:
    return Check(check, SKIPPED, "", reason, **where)
