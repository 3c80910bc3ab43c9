# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every check: its title, its area, and the next step when it fails."""

from __future__ import annotations

import typing as t

from .._common.cni import WRITE_AGAIN
from .._kube.multus import INSTALL
from .._model.checks import Check, CheckType
from .._model.stacks import STACKS

AREAS = ("cluster", "network", "limits", "ipu", "rdma", "gpu")


MEMLOCK = (
    "Run the playbook ipu.fabric.site with --tags memlock, then recreate the node's pods. If that changes nothing, the"
    " host's own limit is lower, for example because the host is a container: raise it (`grep locked /proc/1/limits`"
    " shows it), or lower verify_memlock (in bytes)."
)

# For overlapping pools and ranges: left over from a former plan of this collection, or foreign.
LEFT_OVER = "Run the playbook ipu.fabric.fabric with fabric_prune_networks: true, which removes what is left over."
NOT_OURS = (
    "Keep the planned network off the addresses of networks that this collection did not create: change `share` in"
    " fabric_networks, or add single addresses to `reserved`. Then run the playbook ipu.fabric.fabric."
)

CHECK_TYPES: t.Dict[str, CheckType] = {
    "release": CheckType(
        "Helm release", "cluster", "Run the playbook ipu.fabric.fabric, which installs the planned release."
    ),
    "kinds": CheckType(
        "API kinds are served", "cluster", "Run the playbook ipu.fabric.fabric: it applies the operators' CRDs."
    ),
    "policy": CheckType(
        "NicClusterPolicy is ready",
        "cluster",
        "Run the playbook ipu.fabric.fabric, which applies the policy again. If that changes nothing, look at the pods"
        " of the states that are not ready: `kubectl -n nvidia-network-operator get pods -o wide`.",
    ),
    "network": CheckType(
        "Network is ready",
        "cluster",
        "Run the playbook ipu.fabric.fabric, which applies the network again. If that changes nothing, "
        + " or ".join(f"`kubectl describe {stack.network.lower()} NAME`" for stack in STACKS.values())
        + " has the reason.",
    ),
    "attachment": CheckType(
        "Attachment matches the plan",
        "cluster",
        "Run the playbook ipu.fabric.fabric, then recreate the network's pods. If the network was changed on purpose,"
        " change the site variables instead.",
    ),
    "nfd": CheckType(
        "One Node Feature Discovery",
        "cluster",
        "Run the playbook ipu.fabric.fabric: its operators bring no Node Feature Discovery if the cluster already has"
        " one. If neither of the two came with them, remove one.",
    ),
    "multus_once": CheckType(
        "One multus",
        "cluster",
        "Remove one: each overwrites the other's CNI configuration. To keep the one that this collection"
        " did not install, run the playbook ipu.fabric.fabric with fabric_multus: false.",
    ),
    "multus_node": CheckType(
        "Multus runs on the node",
        "cluster",
        "Run the playbook ipu.fabric.fabric. If that changes nothing, `kubectl describe node NAME` shows whether the"
        " node is Ready and has a taint that multus does not tolerate: remove the taint, or add it to the defaults in"
        " network_operator_tolerations (network operator 23.7 and later), and run it again. If multus has a pod there,"
        " `kubectl logs` says why it is not ready.",
    ),
    "node": CheckType(
        "Node is Ready, no pressure",
        "cluster",
        "Run `systemctl restart containerd && systemctl restart kubelet` on the host (with k3s and RKE2 the unit k3s,"
        " k3s-agent, rke2-server or rke2-agent). It is Ready half a minute later. If it is not, `kubectl describe node"
        " NAME` and `journalctl -u kubelet` say why."
        f" If it is the network plugin, {WRITE_AGAIN}.",
    ),
    "certificates": CheckType(
        "Certificates are valid",
        "cluster",
        "Run the playbook ipu.fabric.renew_certificates, or renew them with what manages the cluster. That does not"
        " renew a CA: for that, follow the finding `certificates` of the plan.",
    ),
    "cni_tokens": CheckType(
        "CNI plugin tokens are valid",
        "cluster",
        "Run the playbook ipu.fabric.site, which restarts the network operator's multus. For another plugin, restart"
        " its pod on this node, so that it writes a new kubeconfig.",
    ),
    "kubelet_requests": CheckType(
        "Kubelets get certificates",
        "cluster",
        "Run the playbook ipu.fabric.site, which approves what fits the inventory. Deny the rest: `kubectl certificate"
        " deny NAME`.",
    ),
    "image_digest": CheckType(
        "Images are the pinned ones",
        "cluster",
        "Find out where the other image came from. Then correct fabric_image_digests, or delete the pods.",
    ),
    "regression": CheckType(
        "No worse than before",
        "cluster",
        "Find out what changed since: inventory, cables, switches, drivers, firmware. If the change was intended,"
        " run one proof with `-e fabric_baseline=accept`: later proofs then expect what it saw.",
    ),
    "pod": CheckType(
        "Pod starts",
        "network",
        "Act on the message; if the image cannot be pulled, set verify_rdma_image (without RDMA: verify_image). If a"
        " file below /etc/cni/net.d is missing, delete the node's pod that writes it: kube-flannel-ds or calico-node,"
        " kube-multus-ds, nv-ipam-node.",
    ),
    "dns": CheckType(
        "Service names resolve",
        "network",
        "See `kubectl -n kube-system get pods -l k8s-app=kube-dns` and their logs, kube-proxy on this node, and whether"
        " port 53, UDP and TCP, passes between pods of different nodes.",
    ),
    "multus": CheckType(
        "Multus handles pods",
        "network",
        "00-multus.conf must be the node's first CNI configuration: restart the node's pod of kube-multus-ds"
        " (delete it; `kubectl get pods -A --field-selector spec.nodeName=NAME` shows its name).",
    ),
    "workloads": CheckType(
        "Running pods are attached",
        "network",
        "Delete the named pods, so that they are recreated: a pod gets its networks only when it starts.",
    ),
    "interface": CheckType(
        "Pod has the interface",
        "network",
        "Look for the macvlan and IPAM plugins in the node's CNI directory, and for CNI errors in the kubelet's log.",
    ),
    "address": CheckType(
        "Address is in the plan",
        "network",
        "Run the playbook ipu.fabric.fabric, which sets the network's pool or range to the plan's, then recreate the"
        " network's pods: an address outside it may be another device's.",
    ),
    "unique": CheckType(
        "Addresses are unique",
        "network",
        "Run the playbook ipu.fabric.fabric, which sets the network's IPAM and pool to the plan's, then recreate the"
        " network's pods. If that changes nothing, two pools have these addresses: act on `No overlapping pool`.",
    ),
    "ip_pool": CheckType(
        "Address pool has room",
        "network",
        "Run the playbook ipu.fabric.fabric, which sets the pool to the plan's. If that changes nothing, delete pods"
        " that need no address, or plan more addresses: raise fabric_pods_per_node, and in fabric_networks give a"
        " larger `share`, fewer `reserved` addresses or a larger subnet.",
    ),
    "pool_overlap": CheckType(
        "No overlapping pool",
        "network",
        f"{LEFT_OVER} {NOT_OURS}",
    ),
    "default_route": CheckType(
        "Default route stays on eth0",
        "network",
        "Run the playbook ipu.fabric.fabric, then recreate the network's pods: planned networks have no default route."
        " If that changes nothing, remove `gateway` and default `routes` from the network's IPAM.",
    ),
    "main_routes": CheckType(
        "Routes of the main table",
        "network",
        "Run the playbook ipu.fabric.fabric, then recreate the network's pods: planned networks have no routes but the"
        " one to their own subnet. If that changes nothing, remove `routes` from the network's IPAM.",
    ),
    "gateway": CheckType(
        "Gateway answers",
        "network",
        "Check the gateway and the VLAN of the switch ports. If there is no gateway, leave `gateway` out of"
        " fabric_networks.",
    ),
    "policy_routes": CheckType(
        "Replies leave by their rail",
        "network",
        " ".join(stack.routes for stack in STACKS.values() if stack.routes)
        + " With `meta_plugins: [sbr]` look for sbr in the NetworkAttachmentDefinition, then recreate the pods.",
    ),
    "mtu": CheckType(
        "MTU of the interface",
        "network",
        "Set the MTU of the host's interface and `mtu` in fabric_networks to the same value, run the playbook"
        " ipu.fabric.fabric, then recreate the network's pods.",
    ),
    "ping": CheckType(
        "Pods reach each other",
        "network",
        "Both masters must be on one layer 2 network whose switch allows several MAC addresses per port.",
    ),
    "full_size": CheckType(
        "Full-size packets pass",
        "network",
        "Set the MTU of switch ports and masters to the plan's. Or set a smaller `mtu` in fabric_networks and run the"
        " playbook ipu.fabric.fabric.",
    ),
    "rail_isolation": CheckType(
        "Rail isolation",
        "network",
        "Compare VLANs and routes of the switches with the site's design; a cable may be in a port of another rail. If"
        " the design differs, change fabric_rail_isolation: expect if rails must be isolated, forbid if they must not.",
    ),
    "memlock_root": CheckType("Locked memory, uid 0", "limits", MEMLOCK),
    "memlock_user": CheckType("Locked memory, uid 1000", "limits", MEMLOCK),
    "vipu": CheckType(
        "V-IPU port opens",
        "ipu",
        "Check that the V-IPU service runs, that its firewall lets pods in, and that the pod's net1 has a route to it.",
    ),
    "ipu_labels": CheckType(
        "IPU node labels",
        "ipu",
        "Run the playbook ipu.fabric.fabric: workers of jobs run on nodes with the label of their V-IPU controller. To "
        "set a label of your own: `fabric_vipu_hosts: [{host: ..., serves: [...], label: ...}]`.",
    ),
    "ipu_operator": CheckType(
        "IPU operator runs",
        "ipu",
        "Run the playbook ipu.fabric.fabric, which waits for the Deployments and says what keeps their pods from"
        " starting.",
    ),
    "webhook": CheckType(
        "IPUJob passes the webhook",
        "ipu",
        "Run the playbook ipu.fabric.fabric: it renews the webhook's certificate, restarts the controller, and "
        "restores the failure policy.",
    ),
    "ipu_certificate": CheckType(
        "Webhook certificate",
        "ipu",
        "Run the playbook ipu.fabric.fabric: it renews the certificate in its last 30 days (ipu_operator_renew_days).",
    ),
    "vipu_proxy": CheckType(
        "V-IPU proxy is healthy",
        "ipu",
        "Check that the V-IPU service runs and that pods reach it: see the log of the Deployment"
        " ipu-operator-vipu-proxy.",
    ),
    "rdma_resource": CheckType(
        "RDMA resource on the node",
        "rdma",
        "Run `modprobe -a ib_uverbs ib_umad rdma_ucm` on the host, and list them in /etc/modules-load.d/rdma.conf."
        " Check the device plugin's selectors, then restart its pod on this node.",
    ),
    "rdma_link": CheckType(
        "RDMA link is ACTIVE", "rdma", "Check cable and switch port; `rdma link` on the host must say ACTIVE."
    ),
    "link_layer": CheckType(
        "Link layer as planned",
        "rdma",
        "This network is planned for RoCE: set LINK_TYPE of the port to Ethernet (rdma_host_link_type), or plan it with"
        " type ipoib.",
    ),
    "rdma_files": CheckType(
        "RDMA files in the pod",
        "rdma",
        "Run `modprobe -a ib_uverbs rdma_ucm` on the host, and list them in /etc/modules-load.d/rdma.conf. Then restart"
        " the node's device plugin pod.",
    ),
    "gid": CheckType(
        "RoCE v2 GID of the address",
        "rdma",
        "If `rdma system` on the host does not say shared, run the playbook ipu.fabric.site with"
        " rdma_host_reboot: true. The device must support RoCE v2.",
    ),
    "rping": CheckType("rping from pod to pod", "rdma", "UDP port 4791 must pass between the nodes on the fabric."),
    "write_bandwidth": CheckType(
        "ib_write_bw",
        "rdma",
        "Check the speed of both ports, and PFC, ECN and MTU on the path between the nodes. verify_rdma_bandwidth sets"
        " what to expect.",
    ),
    "read_latency": CheckType(
        "ib_read_lat",
        "rdma",
        "Check power saving, congestion and the path between the nodes. verify_rdma_latency sets what to expect.",
    ),
    "rdma_counters": CheckType(
        "Traffic goes over RDMA",
        "rdma",
        "Find out which device the tool used, and why: look at the GIDs of the pod's address, at `rdma link` in the"
        " pod, and at other RDMA devices.",
    ),
    "host_traffic": CheckType(
        "gc-hosttraffictest",
        "rdma",
        "Compare with a faster node: PCIe width, NUMA, MTU of the fabric. verify_host_traffic sets what to expect.",
    ),
    "gpudirect": CheckType(
        "GPUDirect RDMA on the node",
        "gpu",
        "With MLNX_OFED or DOCA, set gpu_operator_rdma to true and run the playbook ipu.fabric.fabric. If the host has"
        " NVIDIA's driver itself, run `modprobe nvidia_peermem` there. DMA-BUF needs NVIDIA's open kernel modules and"
        " kernel 5.12 or later.",
    ),
    "gpu_bandwidth": CheckType(
        "ib_write_bw between GPUs",
        "gpu",
        "First act on `ib_write_bw` of this pair, and on `GPUDirect RDMA on the node` of both nodes. If both pass, the"
        " path between NIC and GPU is at fault: `nvidia-smi topo -m` should say PIX or PXB, and ACS should be off."
        " If kernel, driver or NIC lacks DMA-BUF, set gpu_operator_rdma: true."
        " verify_gpu_bandwidth sets what to expect.",
    ),
    "gdrcopy": CheckType(
        "gdrdrv on the node",
        "gpu",
        "Set gpu_operator_gdrcopy to true, run the playbook ipu.fabric.fabric, and look at the driver's pod on this"
        " node. If the host has NVIDIA's driver itself, install gdrcopy there and run `modprobe gdrdrv`.",
    ),
}

# If no multus was found. It may be installed in a way that is not recognised.
NO_MULTUS = (
    f"No DaemonSet of multus was found. {INSTALL} Then recreate pods that ask for networks. If the cluster has multus"
    " under another name, its configuration must be the node's first: restart its pod there."
)
# Next steps if others manage the cluster, and no variable of ours can help.
OF_OTHERS = {
    "nfd": "Remove one of them.",
    "multus_once": "Remove one of them: each overwrites the other's CNI configuration.",
    "multus_node": "Add tolerations of the node's taints to the DaemonSet of multus, or remove the taints.",
    "policy": "Look at the operator's pods that are not ready: `kubectl -n nvidia-network-operator get pods -o wide`.",
    "network": "`kubectl describe macvlannetwork NAME` or `kubectl describe spidermultusconfig NAME` has the reason.",
    "attachment": "Apply the network again with what made it, then recreate its pods.",
    "unique": "Give the network one pool of its own, then recreate its pods.",
    **dict.fromkeys(
        ("default_route", "main_routes"),
        "Remove `gateway` and `routes` from the IPAM of the network, then recreate its pods.",
    ),
    "gid": "If `rdma system` on the host does not say shared, run `rdma system set netns shared` before any pod has the"
    " device. The device must support RoCE v2.",
    "address": "Look for what else gives out addresses of this subnet.",
    "ip_pool": "Widen the range or the pool of the network.",
    "pool_overlap": "Give one of them another range.",
    "gateway": "Check the gateway and the VLAN of the switch ports. If there is none, remove `gateway` from the IPAM.",
    "mtu": "Set the MTU of the node's NIC and `mtu` of the network to the same value.",
    "full_size": "Set the MTU of switch ports and masters to that of the pods, or give the network a smaller one.",
    **dict.fromkeys(
        ("memlock_root", "memlock_user"),
        "Raise LimitMEMLOCK in the unit of the node's container runtime, restart it, then recreate the node's pods.",
    ),
}

PASSED, FAILED, SKIPPED = "passed", "failed", "skipped"
UNPROVEN = "unproven"  # the plan requires it, but it could not be tested
ACCEPTED = "accepted"  # unproven, and the site accepts that
STATUSES = (PASSED, FAILED, UNPROVEN, ACCEPTED, SKIPPED)

# Outcomes of a whole report.
PROVED, NOT_RUN = "proved", "not run"
PARTIAL = "partial"  # none of the requested checks failed, but this is not a proof

# Reasons why a check is unproven, and what would prove it.
NO_NODE = (
    "the cluster has no node of this name",
    "Run site, which joins the host, or take it out of the inventory. Where others manage the cluster, join it with"
    " their tool.",
)
NOT_READY = "the node is not Ready"
NODE_POD = ("the probe pod of this node does not run", "First act on the check `Pod starts`, which has the reason.")
TWO_NODES = (
    "needs pods with an address on two nodes",
    "First act on failed checks of probe pods, if there are any. Add a second node with a NIC on this network if there"
    " is only one.",
)
NO_ADDRESS = (
    "the pod has no address on this network",
    "First act on the failed checks of this network: they say why pods have no address on it.",
)

NOT_MEASURED = (
    "only pods on a fabric network are measured",
    "Run an MPIJob with `count` (filter ipu.fabric.mpi_job): its ranks say how much their devices carried.",
)

# Reasons why a check is skipped: there is nothing to prove.
NO_RDMA = "planned without RDMA"
NO_NETWORK = "planned without a fabric network"
NO_RDMA_CM = "rdma_cm finds no device by addresses of the pod network"
NOT_ASKED = "hosts are not asked: the plan was derived from the cluster"
LATER = "Run ipu.fabric.verify, which looks again."  # for something that was created after the hosts were observed
ONE_ADDRESS = "all its pods get the same address (IPAM static), so there is only one pod at a time"
HOST_DEVICES = "pods take the devices of their host, without a device plugin"


# Omitted if IPUs are left to others.
OF_IPUS = frozenset({*(check for check, kind in CHECK_TYPES.items() if kind.area == "ipu"), "host_traffic"})


def need_image(tool: str) -> str:
    return f"Set verify_rdma_image (without RDMA: verify_image) to an image that has {tool}."


def result(
    check: str,
    good: bool,
    expected: str,
    seen: str,
    *,
    node: str = "",
    pair: t.Tuple[str, ...] = (),
    network: str = "",
    subject: str = "",
    value: t.Optional[float] = None,
    unit: str = "",
) -> Check:
    """A check that was made; the keywords are a Place, and the measured figure."""
    status, next_step = (PASSED, "") if good else (FAILED, CHECK_TYPES[check].next_step)
    return Check(check, status, expected, seen, next_step, node, pair, network, subject, value, unit)


def unproven(
    check: str,
    reason: str,
    missing: str,
    *,
    node: str = "",
    pair: t.Tuple[str, ...] = (),
    network: str = "",
    subject: str = "",
    value: t.Optional[float] = None,
    unit: str = "",
) -> Check:
    """A check that the plan requires but that could not be made: why, and what would make it possible."""
    return Check(check, UNPROVEN, "", reason, missing, node, pair, network, subject, value, unit)


def skip(
    check: str,
    reason: str,
    *,
    node: str = "",
    pair: t.Tuple[str, ...] = (),
    network: str = "",
    subject: str = "",
    later: bool = False,
) -> Check:
    """A check of something that is not in the plan, or was not requested. later: the next run makes it."""
    return Check(check, SKIPPED, "", reason, LATER if later else "", node, pair, network, subject)
