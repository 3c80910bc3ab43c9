"""Every fault of tests/faults.md is put into a good site or a good fabric: the checks named there must report it."""

from __future__ import annotations

import ast
import re
import typing as t

import pytest
from ansible_collections.ipu.fabric.plugins.module_utils._common.findings import CHECKS
from ansible_collections.ipu.fabric.plugins.module_utils._ipam import leaks, whereabouts
from ansible_collections.ipu.fabric.plugins.module_utils._model.checks import Check, Head
from ansible_collections.ipu.fabric.plugins.module_utils._model.settings import Kubeconfig, PlanFile
from ansible_collections.ipu.fabric.plugins.module_utils._plan.upgrade import plan_upgrade
from ansible_collections.ipu.fabric.plugins.module_utils._verify import baseline, pod_manifests
from ansible_collections.ipu.fabric.plugins.module_utils._verify import checks as verify_checks
from ansible_collections.ipu.fabric.plugins.module_utils._verify.catalog import CHECK_TYPES
from ansible_collections.ipu.fabric.tests.unit.fixtures import site as sites
from ansible_collections.ipu.fabric.tests.unit.fixtures.paths import ROOT
from ansible_collections.ipu.fabric.tests.unit.plugins.module_utils._verify import test_checks as fabrics

Facts = t.Dict[str, t.Any]
PAGE = ROOT / "tests/faults.md"


class Row(t.NamedTuple):
    """A row of the table."""

    fault: str
    plan: t.FrozenSet[str]
    proof: t.FrozenSet[str]
    tested: t.FrozenSet[str]


def rows(page: str) -> t.Iterator[Row]:
    for fault, reported, tested in re.findall(r"^\| ([^|]+) \| (p[^|]+) \| ([^|]+) \|$", page, re.MULTILINE):
        named = {part.partition(":")[0]: frozenset(re.findall(r"`([^`]+)`", part)) for part in reported.split("; ")}
        assert set(named) <= {"plan", "proof"}
        yield Row(fault, named.get("plan", frozenset()), named.get("proof", frozenset()), frozenset(tested.split(", ")))


ROWS = list(rows(PAGE.read_text(encoding="utf-8")))
TESTED = {"unit", "integration", "cluster", "soft-RoCE", "hardware"}


def marked() -> t.Iterator[str]:
    """The rows that tests on a cluster say they put in: the texts of their `fault` marks."""
    for path in sorted((ROOT / "tests/e2e").rglob("test_*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and ast.unparse(node.func) in ("fault", "pytest.mark.fault"):
                yield from (ast.literal_eval(text) for text in node.args)


class Fault(t.NamedTuple):
    """What is changed: in what hosts say, in the site's settings, in what the probe saw, in nodes before an upgrade."""

    hosts: t.Mapping[str, t.Any] = {}
    settings: t.Mapping[str, t.Any] = {}
    probe: t.Mapping[str, t.Any] = {}
    nodes: t.Mapping[str, t.Any] = {}


def status(message: str) -> Facts:
    """Facts of a pod whose network could not be set up, by the way that the probe takes from the kubelet's events."""
    state = pod_manifests.pod_state({"status": {"phase": "Pending"}}, [message] * pod_manifests.SANDBOX_FAILURES)
    return {**fabrics.pod("w1"), "state": state.state, "reason": state.reason}


def pool(*allocated: int, alive: t.Sequence[int] = (), exclude: t.Sequence[str] = ()) -> t.List[Facts]:
    """Pools as the audit sees them: whereabouts gave these addresses out, and pods are alive with those."""
    allocations = {str(number): {"id": "c", "podref": f"default/p{number}"} for number in allocated}
    item = {"metadata": {"name": "10.5.0.0-24"}, "spec": {"range": "10.5.0.0/24", "allocations": allocations}}
    ipam = '{"ipam": {"type": "whereabouts", "range": "10.5.0.128-10.5.0.254/24", "exclude": [%s]}}'
    network = {"spec": {"config": ipam % ", ".join(f'"{cidr}"' for cidr in exclude)}}
    pods = {}
    for place, number in enumerate(alive):
        address = (f"10.5.0.{number}",)
        pods[f"default/p{number}" if number in allocated else f"default/other{place}"] = leaks.Pod(
            "", "w1", True, address, address
        )
    return whereabouts.whereabouts_pools([item], [], [network], pods)


LINK = "w1/rdma/links/1"
GID = "pods/w1/rdma/gids"
EARLIER = [{**gid, "index": gid["index"] - 2} for gid in fabrics.pod("w1")["rdma"]["gids"]]
BLOCKED = [{**test, "rc": 255, "value": 0.0, "seen": "UNREACHABLE"} for test in fabrics.probe()["traffic"][:1]]
SLOW = [{**test, "value": {"write_bandwidth": 24.1, "read_latency": 40.0}.get(test["check"], 10.0)}
        for test in fabrics.probe()["traffic"]]  # fmt: skip
NO_VIPU = {"source": "vipu", "what": "vipu did not answer.", "where": "vipu", "seen": "rc 1", "next_step": "Start it."}
TOO_BIG = "plugin type=macvlan failed (add): Invalid MTU 9000. The requested MTU is bigger than that of the master"
BUSY = "plugin type=macvlan failed (add): failed to create macvlan: device or resource busy"
NO_MASTER = 'plugin type=macvlan failed (add): failed to lookup master "eth1": Link not found'
LISTENER = {"name": "x", "tcp": [6443], "udp": []}
NO_API = {"host": "cp1", "address": "10.88.0.11", "protocol": "TCP", "port": 6443, "seen": "filtered"}
OLD_KUBELET = {"present": True, "version": "v1.35.3", "server": "10.88.0.11:6443", "cluster": ""}
MADE = {"distribution": "k3s", "server": False, "units": ["k3s"], "kubeconfig": "", "containerd_socket": "/run/k3s/s",
        "containerd_config": "", "registries": "", "cni_bin_directory": "/var/lib/rancher/k3s/data/cni",
        "cni_network_directory": "/etc/cni/net.d"}  # fmt: skip
IN_USE = {"address": "10.88.0.50", "held": False, "answered": "open", "mac": "02:00:00:00:00:99", "gateways": [],
          "foreign_keepalived": False}  # fmt: skip
BLOCKS_OF_8 = {"name": "rdma-net", "subnet": "10.5.0.0/24", "block_size": 8, "blocks": {"w1": "10.5.0.129-10.5.0.136"}}
FIRST_FOUND = {"name": "calico", "seen": "DaemonSet kube-system/calico-node",
               "autodetection": {"IP_AUTODETECTION_METHOD": "first-found"}}  # fmt: skip
EXCLUSIVE = {"name": "cilium", "seen": "DaemonSet kube-system/cilium", "exclusive": True}
SHORT_TOKENS = {"name": "service-account-extend-token-expiration", "value": "false"}
CROSSED = [fabrics.crossing(near=True)]
IPVLAN = {"namespace": "jobs", "name": "old", "plugin": "ipvlan", "nic": "ens1f0", "mode": "l2", "addresses": []}
STATIC = {**IPVLAN, "plugin": "bridge", "nic": "", "mode": "", "addresses": ["10.5.0.200"]}
PINNED = "mirror.site/a:v1"
LONE = {"device": "mlx5_0", "pci": "0000:81:00.0", "driver": "mlx5_core", "link_layer": "InfiniBand", "state": "ACTIVE"}
NO_ADDRESS = "plugin type=macvlan failed (add): Could not allocate IP in range: ip: 10.5.0.128 / - 10.5.0.254"
REQUEST = {"name": "csr-1", "requestor": "system:node:x", "node": "", "problem": "no host is the node x"}

APPROVED = PlanFile("plan.json", "", sites.plan(sites.site()))
STRANGERS = {**sites.plan(sites.site()), "hosts": {"x1": {}}}

DEAD = {
    "variable": "fabric_mirror.packages.kubernetes",
    "url": "http://mirror.example/kubernetes",
    "seen": "no answer within 5 s",
    **dict.fromkeys(("lacks", "release", "chart", "playbook"), ""),
}
OTHER_KEY = {
    **DEAD,
    "variable": "fabric_mirror.apt.kubernetes.key_url",
    "seen": "fingerprint CD34",
    "expected": "AB12",
    "setting": "fabric_mirror: {apt: {kubernetes: {key_fingerprint: FINGERPRINT}}}",
}
# A bond whose members are RDMA devices of their own.
TWO_CARDS = [
    sites.link("eno1", "10.88.0.12", rdma=False),
    sites.link("ens1f0", "", pci="0000:81:00.0"),
    sites.link("ens2f0", "", pci="0000:c1:00.0"),
    sites.link(
        "bond0",
        "10.5.0.12",
        kind="bond",
        lower=["ens1f0", "ens2f0"],
        rdma_netdevs=["ens1f0", "ens2f0"],
        rdma_devices=["mlx5_0", "mlx5_1"],
    ),
]

W1 = {"name": "node12", "machine_id": ""}
FAULTS: t.Dict[str, Fault] = {
    "multus has no pod on a control-plane node": Fault(
        probe={
            "addons/multus_nodes": ["w1"],
            "pods/cp1/network_status": None,
            "pods/cp1/root/links": {},
        }
    ),
    "multus is installed twice": Fault(
        hosts={"cp1/host/cluster": sites.running(multus=["kube-system/kube-multus-ds"])},
        probe={"addons/multus": ["nvidia/kube-multus-ds", "spiderpool/multus"]},
    ),
    "a pod starts while multus restarts, and lacks its network": Fault(
        probe={"pods/w1/network_status": None, "pods/w1/root/links": {}}
    ),
    "a node reboots, and its pods start before multus does": Fault(
        probe={"pods_without/rdma-net": ["default/trainer on w1: multus did not attach it"]}
    ),
    "Node Feature Discovery is installed twice": Fault(probe={"addons/nfd": ["gpu-operator/nfd", "nfd/nfd"]}),
    "the RDMA NIC has no RDMA device": Fault(
        hosts={f"{LINK}/rdma_netdevs": [], f"{LINK}/device": ""},
        probe={"nodes/w1/allocatable/rdma-net/count": 0, "pods/w1/rdma/classes": ["misc/rdma_cm"]},
    ),
    "the RDMA NIC is a member of a bond, a bridge or Open vSwitch": Fault(
        hosts={f"{LINK}/master": "ovs-system", f"{LINK}/master_kind": "openvswitch"}
    ),
    "an ipvlan, or a macvlan in mode passthru, has the RDMA NIC": Fault(hosts={f"{LINK}/taken_by": ["ipvlan pod0"]}),
    "a network of others has ipvlans on the RDMA NIC": Fault(
        hosts={"cp1/host/cluster": sites.running(attachments=[IPVLAN])}, probe={"pods/w1": status(BUSY)}
    ),
    "ib_umad or rdma_ucm is not loaded, the resource counts 0": Fault(
        hosts={"w1/rdma/modules": ["ib_uverbs", "ib_core"]},
        probe={"nodes/w1/allocatable/rdma-net/count": 0, "pods/w1/rdma/classes": ["infiniband/mlx5_0"]},
    ),
    "the kernel makes no issm* for RoCE, and an old device plugin demands it": Fault(
        hosts={"w1/host/kernel": "6.12.48+deb13-amd64"},
        settings={"network_operator_version": "24.7.0", "kubernetes_version": "1.30.4", "manage_kubernetes": False},
        probe={"nodes/w1/allocatable/rdma-net/count": 0},
    ),
    "the device plugin selects no NIC, the resource counts 0": Fault(probe={"nodes/w1/allocatable/rdma-net/count": 0}),
    "several network devices on one PCI function, the fabric NIC not the first": Fault(
        hosts={f"{LINK}/function_netdevs": ["ens0", "ens1f0"]}
    ),
    "the container has no RDMA device files": Fault(probe={"pods/w1/rdma/files": []}),
    "RDMA devices are exclusive to network namespaces": Fault(hosts={"w1/rdma/netns_mode": "exclusive"}),
    "no GID is the pod's address; its index differs from pod to pod": Fault(probe={GID: []}),
    "the address has a RoCE v1 GID only": Fault(probe={f"{GID}/1/type": "IB/RoCE v1"}),
    "locked memory is limited for uid 1000, whatever IPC_LOCK says": Fault(probe={"pods/w1/user/memlock": fabrics.LOW}),
    "locked memory is limited for root": Fault(probe={"pods/w1/root/memlock": fabrics.LOW}),
    "the host is a container that may not raise its limit of locked memory": Fault(
        hosts={"w1/host/locked_memory": "8388608"}
    ),
    "pods get addresses of IPU-Machines": Fault(settings={"networks": [{"name": "rdma-net", "share": "all"}]}),
    "nodes have their addresses in the subnet of the fabric": Fault(hosts={"w1/address": "10.5.0.12"}),
    "V-IPU is on a node's own master": Fault(hosts={f"{LINK}/addresses": [{"address": "10.5.0.20", "prefix": 24}]}),
    "the gateway is on a node's own master": Fault(
        settings={"networks": [{"name": "rdma-net", "gateway": "10.5.0.12"}]}
    ),
    "MTU above the master's": Fault(
        settings={"networks": [{"name": "rdma-net", "mtu": 9100}]}, probe={"pods/w1": status(TOO_BIG)}
    ),
    "a switch port's MTU is below the master's": Fault(probe={"pairs/0/full": fabrics.NO_REPLY}),
    "the master is InfiniBand": Fault(
        hosts={f"{LINK}/link_layer": "InfiniBand"}, probe={"pods/w1/rdma/ports/mlx5_0\\1/link_layer": "InfiniBand"}
    ),
    "a network on InfiniBand (ipoib) selects Ethernet NICs": Fault(
        settings={"networks": [{"name": "rdma-net", "type": "ipoib"}]}
    ),
    "host devices take a NIC that its host needs": Fault(
        hosts={f"{LINK}/addresses": [{"address": "10.88.0.12", "prefix": 24}]},
        settings={"networks": [{"name": "rdma-net", "type": "host_device"}]},
    ),
    "a NIC has too few VFs for the pods of a host": Fault(
        hosts={f"{LINK}/max_vfs": 4}, settings={"networks": [{"name": "rdma-net", "type": "sriov"}]}
    ),
    "RDMA without a network device: EFA, InfiniBand without IPoIB": Fault(
        hosts={
            f"{LINK}/rdma_netdevs": [],
            f"{LINK}/device": "",
            "w1/rdma/lone_devices": [LONE],
        }
    ),
    "the fabric NIC speaks iWARP": Fault(hosts={f"{LINK}/link_layer": "iWARP"}),
    "a bond has ports of two cards, which are no RoCE LAG": Fault(hosts={"w1/rdma/links": TWO_CARDS}),
    "all MTUs are too small for RDMA's largest packets": Fault(
        hosts={"w1/rdma/links/1/mtu": 1500, "w2/rdma/links/1/mtu": 1500}
    ),
    "the RDMA link is down": Fault(
        hosts={f"{LINK}/state": "DOWN"}, probe={"pods/w1/rdma/ports/mlx5_0\\1/state": "DOWN"}
    ),
    "loading a driver renames the NIC": Fault(
        hosts={f"{LINK}/netdev": "ens1f0np0", f"{LINK}/rdma_netdevs": ["ens1f0np0"]},
        settings={"networks": [{"name": "rdma-net", "select": {"name": "ens1f0"}}]},
        probe={"networks/rdma-net/attachment/master": "eth1np0", "pods/w1": status(NO_MASTER)},
    ),
    "a DHCP server of the fabric may give away the addresses of pods": Fault(
        hosts={"w1/rdma/links/1/addresses/0/origin": "lease"}
    ),
    "the GID table of a NIC is too small for the pods of a host": Fault(hosts={"w1/rdma/links/1/gid_room": 16}),
    "the subnet has too few addresses": Fault(settings={"pods_per_node": 200}),
    "the pool is exhausted": Fault(
        probe={"pools": pool(*range(128, 255), alive=range(128, 255)), "pods/w1": status(NO_ADDRESS)}
    ),
    "an exclude covers the whole range": Fault(probe={"pools": pool(exclude=["10.5.0.0/24"])}),
    "addresses leaked when a node crashed": Fault(probe={"pools": pool(129, 130, alive=[129])}),
    "two pods have one address": Fault(
        probe={
            "pools": pool(129, alive=[129, 137, 137]),
            "pods/w1/root/links/net1/addresses/0/address": fabrics.ADDRESSES["cp1"],
        }
    ),
    "a network was renamed, and its former pool is still there": Fault(probe={"address_sources": [fabrics.source()]}),
    "somebody else's network gives out addresses of the same subnet": Fault(
        probe={
            "address_sources": [
                fabrics.source("lab", "NetworkAttachmentDefinition", "lab", ours=False, ipam="host-local")
            ],
        }
    ),
    "a network of others gives out single addresses of the subnet (static)": Fault(
        hosts={"cp1/host/cluster": sites.running(attachments=[STATIC])},
        probe={"address_sources": [fabrics.source(ours=False, ipam="static", ranges=["10.5.0.200"])]},
    ),
    "a pool gets another block size while pods have addresses of it": Fault(
        hosts={"cp1/host/cluster": sites.running(nv_ipam_pools=[BLOCKS_OF_8])}, settings={"pods_per_node": 16}
    ),
    "nv-ipam has no block for a node": Fault(probe={"pools/0/nodes/1/node": "w9"}),
    "a MacvlanNetwork says ready with a broken IPAM": Fault(probe={"networks/rdma-net/attachment": "{broken"}),
    "the fabric NIC has no address, and its network no subnet": Fault(hosts={f"{LINK}/addresses": []}),
    "NICs have addresses of several subnets, and another one comes first": Fault(
        hosts={f"{LINK}/addresses": [{"address": f"10.{net}.0.12", "prefix": 24} for net in (6, 5)]}
    ),
    "each host has a point-to-point link of its own with the switch": Fault(
        hosts={
            f"{name}/rdma/links/1/addresses": [{"address": f"10.5.0.{last}", "prefix": 31}]
            for name, last in (("w1", 1), ("w2", 3))
        }
    ),
    "rails are on one subnet": Fault(
        hosts={
            f"{name}/rdma/links": [
                sites.link("eno1", f"10.88.0.{last}", rdma=False, mtu=1500),
                *(sites.link(f"ens{rail}f0", f"10.5.{rail}.{last}", 16) for rail in (1, 2)),
            ]
            for name, last in (("w1", 12), ("w2", 13))
        },
        settings={
            "networks": [
                {"name": f"rail-{rail}", "select": {"name": f"ens{rail}f0"}, "share": f"10.5.{rail}.128/25"}
                for rail in (1, 2)
            ]
        },
    ),
    "routers advertise addresses and a default route on a fabric network": Fault(
        hosts={f"{LINK}/addresses": [{"address": "10.5.0.12", "prefix": 24}, fabrics.SLAAC]},
        probe={
            "pods/w1/root/links/net1/addresses": [{"address": fabrics.ADDRESSES["w1"], "prefix": 24}, fabrics.SLAAC],
            "pods/w1/root/default_routes": ["eth0", "net1"],
        },
    ),
    "the network takes the default route": Fault(probe={"pods/w1/root/default_routes": ["net1"]}),
    "addresses of pods or services are routed into the fabric": Fault(probe={"pods/w1/root/main_routes/0/dev": "net1"}),
    "the subnet of a rail is on another interface": Fault(probe={"pods/w1/root/main_routes/1/dev": "eth0"}),
    "the gateway of a rail does not answer": Fault(
        probe={"pods/w1/gateways/0/ping/received": 0, "pods/w1/gateways/0/mac": ""}
    ),
    "the certificate of the IPU operator's webhook is about to end": Fault(probe={"ipu/certificate/days": 10}),
    "a run that was killed has left the IPU operator's webhooks at Ignore": Fault(
        probe={"ipu/ignored": ["ValidatingWebhookConfiguration ipu-operator-admission"]}
    ),
    "a firewall blocks a port between two hosts": Fault(
        hosts={"w1/probes": [NO_API], "cp1/listened": "x", "cp1/listener": LISTENER}
    ),
    "V-IPU cannot be reached": Fault(
        hosts={"w1/vipu": {}, "w1/errors": [NO_VIPU]},
        probe={"pods/w1/root/vipu/0": {**fabrics.VIPU, "rc": 1, "seen": "refused"}},
    ),
    "the IPU operator knows a V-IPU by another label than the nodes have": Fault(
        probe={"ipu/controllers": ["10.5.0.20:8090:ipunode=head1"]}
    ),
    "UDP 4791 is blocked between two nodes": Fault(probe={"traffic": BLOCKED}),
    "a path is slow: PFC, ECN, or a port at half its speed": Fault(probe={"traffic": SLOW}),
    "a NIC's PCIe link trained at half its width": Fault(
        hosts={f"{LINK}/pcie/width": 8, f"{LINK}/pcie/gbps": 126.0}, probe={"traffic/1/value": 50.2}
    ),
    "PCIe switches send what GPUs and NICs exchange by way of the processor": Fault(
        hosts={
            f"{LINK}/path": "pci0000:10/0000:10:01.0/0000:11:00.0/0000:12:00.0/0000:13:00.0",
            "w1/rdma/gpus": [
                {
                    "pci": "0000:14:00.0",
                    "path": "pci0000:10/0000:10:01.0/0000:11:00.0/0000:12:01.0/0000:14:00.0",
                    "numa_node": 0,
                }
            ],
            "w1/rdma/redirects": ["0000:12:01.0"],
        }
    ),
    "RDMA tests silently go over TCP, or over another RDMA device": Fault(
        probe={"traffic/1/moved/1": {"rdma": {"mlx5_0": {"requests": 0}}, "interfaces": {"net1": 10**11}}}
    ),
    "a path got slower than it was in earlier proofs, and is fast enough still": Fault(probe={"traffic/2/value": 4.9}),
    "a check that passed in earlier proofs cannot be made": Fault(probe={"traffic/2/missing": True}),
    "two rails share a layer 2 network, or a router leads from one to the other": Fault(probe={"crossings": CROSSED}),
    "nvidia_peermem is not loaded, and GPUs copy through their host": Fault(
        probe={"pods/w1/root/gpu/modules": ["nvidia", "gdrdrv"]}
    ),
    "gdrdrv is not loaded": Fault(probe={"pods/w1/root/gpu/modules": ["nvidia", "nvidia_peermem"]}),
    "the way from NIC to GPU is slow, or has no DMA-BUF": Fault(probe={"traffic/3": fabrics.NO_DMA_BUF}),
    "an IPU host's path to its IPUs is slow": Fault(probe={"host_traffic/0/value": 3.0}),
    "the site asks for another pod network than the cluster has": Fault(
        hosts={"cp1/host/cluster": sites.running()}, settings={"cni": "flannel"}
    ),
    "Calico of a cluster that others manage may take a fabric NIC's address": Fault(
        hosts={"cp1/host/cluster": sites.running(pod_networks=[FIRST_FOUND])}, settings={"manage_kubernetes": False}
    ),
    "the namespace of the stack exists, and Pod Security refuses privileged pods there": Fault(
        hosts={"cp1/host/cluster": sites.running(pod_security={"nvidia-network-operator": "baseline"})}
    ),
    "the site asks for another stack than the fabric networks of the cluster have": Fault(
        hosts={"cp1/host/cluster": sites.running(fabric_networks=[{"stack": "spiderpool", "name": "rdma-net"}])}
    ),
    "the GPU operator is asked for and no host has a GPU": Fault(settings={"gpu": True}),
    "a kubelet or a unit from elsewhere goes before that of the package, or is masked": Fault(
        hosts={"w1/host/shadows": [{"path": "/usr/local/bin/kubelet", "masks": False}]}
    ),
    "pods would get a DNS server on the loopback interface of their host": Fault(
        hosts={"w1/host/resolver": {"path": "/etc/resolv.conf", "servers": ["127.0.0.53"]}}
    ),
    "a host has no route to the addresses of services": Fault(
        hosts={"w1/host/service_routes": {"10.96.0.0/12": False}}
    ),
    "CoreDNS crashes, or does not answer pods": Fault(probe={"pods/w1/root/dns": fabrics.NO_DNS}),
    "a host has no address, or not one of each family of the cluster": Fault(hosts={"w1/host/default_address": ""}),
    "the inventory has an address that no interface of the host has": Fault(hosts={"w1/address": "203.0.113.7"}),
    "a node has another address in the cluster than in the plan": Fault(
        hosts={
            "cp1/host/cluster": sites.running(
                nodes=[{"name": "node12", "machine_id": "1", "addresses": ["10.77.0.12"]}]
            ),
            "w1/host/machine_id": "1",
        }
    ),
    "the name of a host is none that Kubernetes takes": Fault(hosts={"w1/host/hostname": "server_one"}),
    "flannel has fewer ranges for nodes than there are hosts": Fault(
        settings={"cni": "flannel", "pod_cidr": "10.244.0.0/24"}
    ),
    "the pod network has the address of the hosts' DNS server": Fault(
        hosts={"w1/host/resolver": {"path": "/etc/resolv.conf", "servers": ["10.244.0.53"]}}
    ),
    "containerd's data is on a file system that can't carry overlayfs: NFS, or an overlay": Fault(
        hosts={"w1/host/obstacles/filesystem": "nfs4"}
    ),
    "a module that pods need is not to be loaded, by modprobe.d or the kernel's command line": Fault(
        hosts={"w1/host/obstacles/unloadable": {"rdma_ucm": "/etc/modprobe.d/cis.conf"}}
    ),
    "the kernel runs without a cgroup controller that kubelets need": Fault(
        hosts={"w1/host/obstacles/controllers": ["cpuset", "cpu", "io", "pids"]}
    ),
    "NetworkManager takes the interfaces of pods for its own": Fault(hosts={"w1/host/obstacles/network_manager": True}),
    "the firewall of a host drops what pods send": Fault(hosts={"w1/host/obstacles/firewall": "firewalld"}),
    "a hypervisor drops TCP in VXLAN that its virtual NIC has divided": Fault(
        hosts={"w1/host/obstacles/tunnel_offloads": ["eno1"]}
    ),
    "the kernel keeps fewer neighbours than the pods of all rails have": Fault(
        hosts={"w1/host/obstacles/neighbours": 8}, settings={"manage_kubernetes": False}
    ),
    "the kubelet keeps its data elsewhere, and the resource counts 0": Fault(
        hosts={"w1/host/obstacles/kubelet_directory": "/data/kubelet"}
    ),
    "a cluster is managed elsewhere, and there is no kubeconfig of it": Fault(
        settings={"manage_kubernetes": False, "kubeconfig": Kubeconfig("/srv/artifacts/admin.conf")}
    ),
    "the API of a cluster that others manage does not answer the controller": Fault(
        settings={
            "manage_kubernetes": False,
            "kubeconfig": Kubeconfig("/srv/admin.conf", "https://10.88.0.99:6443"),
            "api_silence": "HTTP 401, Unauthorized",
        }
    ),
    "the kubeconfig of a cluster that others manage may only look": Fault(
        settings={"manage_kubernetes": False, "rights": ["create namespaces", "patch nodes"]}
    ),
    "the host that speaks to the API lacks Python packages": Fault(
        hosts={"cp1/host/lacking_packages": ["kubernetes", "jmespath"]}
    ),
    "the site would manage a cluster that it has not built": Fault(
        hosts={"cp1/host/cluster": sites.running(built_here=False)}
    ),
    "the site names a pod network for a cluster that others manage": Fault(
        hosts={"cp1/variables": ["fabric_cni"]}, settings={"manage_kubernetes": False, "cni": "flannel"}
    ),
    "a fabric network was renamed, and the cluster still has the former one": Fault(
        hosts={
            "cp1/host/cluster": sites.running(
                fabric_networks=[{"stack": "network_operator", "name": name} for name in ("former", "rdma-net")]
            )
        }
    ),
    "the cluster has a node that is not in the inventory": Fault(
        hosts={"cp1/host/cluster": sites.running(nodes=[{"name": "w9", "machine_id": "9"}])}
    ),
    "a control plane takes pods, and is not in `kube_node`": Fault(
        hosts={"cp1/host/cluster": sites.running(nodes=[{"name": "node11", "machine_id": "", "untainted": True}])}
    ),
    "a node of the cluster is not Ready": Fault(
        hosts={"cp1/host/cluster": sites.running(nodes=[{**W1, "not_ready": "KubeletNotReady: PLEG is not healthy"}])}
    ),
    "a node of the cluster is cordoned": Fault(
        hosts={"cp1/host/cluster": sites.running(nodes=[{**W1, "cordoned": True}])}
    ),
    "others deleted the node of a host": Fault(
        hosts={
            **{f"{name}/host/kubelet": seen["host"]["kubelet"] for name, seen in sites.finished().items()},
            "cp1/host/cluster": sites.running(
                nodes=[
                    {"name": seen["host"]["hostname"], "machine_id": seen["host"]["machine_id"]}
                    for name, seen in sites.finished().items()
                    if name != "w1"
                ]
            ),
        }
    ),
    "nodes have another container runtime than the site asks for": Fault(hosts={"w1/host/runtime": "docker"}),
    "Docker Engine is asked for together with what only containerd can do": Fault(
        settings={"runtime": "docker", "gpu": True}
    ),
    "a configuration of another pod network comes first on a host": Fault(
        hosts={"w1/host/cni_files": [{"name": "05-cilium.conflist", "plugin": "cilium-cni"}]}
    ),
    "Cilium takes the CNI configuration of multus out of service": Fault(
        hosts={"cp1/host/cluster": sites.running(pod_networks=[EXCLUSIVE])},
        settings={"manage_kubernetes": False},
        probe={"pods/w1/root/links": {}, "pods/w1/network_status": None},
    ),
    "the site asks for other addresses of pods or services than the cluster has": Fault(
        hosts={"cp1/host/cluster": sites.running()}, settings={"pod_cidr": "10.250.0.0/16"}
    ),
    "the site asks for another Kubernetes than the cluster runs": Fault(
        hosts={"cp1/host/cluster": sites.running()}, settings={"kubernetes_version": "1.35.5"}
    ),
    "a node runs another Kubernetes than its cluster": Fault(
        hosts={"cp1/host/cluster": sites.running(), "w1/host/kubelet": OLD_KUBELET}
    ),
    "nodes of one cluster are made by two distributions of Kubernetes": Fault(
        hosts={"cp1/host/kubernetes": MADE, "w1/host/kubernetes": {**MADE, "distribution": "rke2"}},
        settings={"manage_kubernetes": False},
    ),
    "nodes have their CNI plugins in different directories": Fault(
        hosts={"cp1/host/kubernetes": MADE, "w1/host/kubernetes": {**MADE, "cni_bin_directory": "/opt/cni/bin"}},
        settings={"manage_kubernetes": False},
    ),
    "the site asks for another endpoint than the cluster has": Fault(
        hosts={"cp1/host/cluster": sites.running()}, settings={"control_plane_endpoint": "k8s.example.org:6443"}
    ),
    "the virtual address of the API can't be held by the control planes": Fault(
        settings={"control_plane_vip": "192.0.2.50"}
    ),
    "the virtual address of the API is another host's": Fault(
        hosts={"cp1/host/vip": IN_USE}, settings={"control_plane_vip": "10.88.0.50"}
    ),
    "kubernetes_kubelet_config has a field or a signal that no kubelet knows": Fault(
        settings={"kubelet_config": {"evictionHard": {"imagefs.availble": "5%"}}}
    ),
    "the kubeconfig on the controller is of another cluster": Fault(
        hosts={"cp1/host/cluster": sites.running(), "cp1/host/kubelet/cluster": "ab"},
        settings={"kubeconfig": Kubeconfig("admin.conf", "https://other:6443", "cd")},
    ),
    "a NIC has got another name since the plan was approved": Fault(
        hosts={f"{LINK}/netdev": "ens2f0", f"{LINK}/rdma_netdevs": ["ens2f0"]}, settings={"plan_file": APPROVED}
    ),
    "the approved plan is another site's": Fault(settings={"plan_file": APPROVED._replace(content=STRANGERS)}),
    "the API server of the existing cluster is down": Fault(
        hosts={"cp1/host/cluster": sites.running(answered=False, error="connection refused")}
    ),
    "certificates of the cluster are about to end": Fault(hosts={"cp1/host/certificates": [sites.certificate(29)]}),
    "certificates of the cluster have expired": Fault(hosts={"cp1/host/certificates": [sites.certificate(-1)]}),
    "an upgrade skips a minor release, or goes back": Fault(
        hosts={"cp1/host/cluster": sites.running(version="1.34.9")}
    ),
    "a node of the cluster that is upgraded is not in the inventory": Fault(nodes={"w9/name": "w9"}),
    "a node is not Ready before an upgrade": Fault(nodes={"w1/ready": False}),
    "a kubelet is too old for the release of an upgrade": Fault(nodes={"w1/version": "1.32.9"}),
    "multus keeps a token that is about to end, or has ended": Fault(
        hosts={"w1/host/cni_token_ends": [sites.certificate(-1, "multus", renewed_by="nobody")]}
    ),
    "the site has tokens end after an hour, and multus keeps its own": Fault(
        settings={"cluster_config": {"apiServer": {"extraArgs": [SHORT_TOKENS]}}}
    ),
    "a certificate for a kubelet is requested that does not fit the inventory": Fault(
        probe={"kubelet_requests": [REQUEST]}
    ),
    "the directory of CNI plugins is mounted with noexec": Fault(hosts={"w1/host/noexec": ["/opt/cni/bin"]}),
    "a host has less memory, processors or disk than its role needs": Fault(
        hosts={"w1/host/memory_mb": 900, "cp1/host/cpus": 1, "w2/host/disk_mb": {"/var/lib": 900}}
    ),
    "an agent or a script turns swap on at each boot": Fault(
        hosts={"w1/host/swap_origins": [{"path": "/etc/waagent.conf", "seen": "ResourceDisk.EnableSwap=y"}]}
    ),
    "the clock of a host is wrong": Fault(hosts={"w1/host/time/offset": -400}),
    "no NTP server of the site answers a host": Fault(
        hosts={"w1/host/time/servers": {"ntp1.site": False}}, settings={"ntp": ["ntp1.site"]}
    ),
    "another service than chrony sets the clock": Fault(
        hosts={"w1/host/time/services": ["ntpsec"]}, settings={"ntp": ["ntp1.site"]}
    ),
    "a NIC has another firmware than the others of its rail": Fault(hosts={f"{LINK}/firmware": "20.31.1014"}),
    "charts, keys or manifests come by http without a digest": Fault(
        settings={"sources": {"charts": {"network_operator": "http://mirror.site/charts"}}}
    ),
    "nobody knows the digest of a chart": Fault(
        settings={"sources": {"charts": {"network_operator": "https://mirror.site/charts"}}}
    ),
    "a URL of the mirror has a password in it": Fault(
        settings={"sources": {"registry": "https://me:word@mirror.site"}}
    ),
    "a mirror or source is dead, refuses, hangs, has a certificate that nobody trusts, or lacks the release": Fault(
        hosts={"w1/host/sources": [DEAD]}
    ),
    "the mirror of registries of a finished cluster is dead": Fault(
        hosts={"w1/host/sources": [{**DEAD, "variable": "fabric_mirror.registry", "later": True}]}
    ),
    "what a source serves does not have the expected digest or fingerprint": Fault(
        hosts={"w1/host/sources": [OTHER_KEY]}
    ),
    "an image is pinned without a tag, or by something that is no digest": Fault(
        settings={"image_digests": {"mirror.site/a": "sha256:" + "0" * 64}}
    ),
    "a node runs another image than the one that is pinned": Fault(
        probe={"images": [{"image": PINNED, "id": f"mirror.site/a@sha256:{'1' * 64}", "pods": ["ns/a on w1"]}]}
    ),
    "a node is short of disk space, memory or processes (DiskPressure), and takes no pods": Fault(
        probe={"nodes/w1/pressures": ["DiskPressure: kubelet has disk pressure"]}
    ),
}


def planned_site(fault: Fault) -> Facts:
    hosts = sites.site()
    for path, value in fault.hosts.items():
        fabrics.put(hosts, path, value)
    return sites.plan(hosts, **fault.settings)


def found_by_plan(fault: Fault) -> t.Set[str]:
    """By the plan of the site, and by that of its upgrade."""
    hosts = sites.finished()
    names = {name: hosts[name]["host"]["hostname"].lower() for name in hosts}
    seen: Facts = {"ready": True, "version": "1.35.4", "components": {}, "own_labels": []}
    nodes = {name: {**seen, "name": names[name]} for name in hosts}
    for path, value in fault.hosts.items():
        fabrics.put(hosts, path, value)
    for path, value in fault.nodes.items():
        nodes.setdefault(path.partition("/")[0], dict(nodes["w1"]))
        fabrics.put(nodes, path, value)
    version = hosts["cp1"]["host"]["cluster"]["version"]
    upgrade = plan_upgrade(hosts, {"version": version, "nodes": list(nodes.values())}, "1.36.3", [])
    return {finding["check"] for finding in [*planned_site(fault)["findings"], *upgrade["findings"]]}


def proof_inputs(fault: Fault) -> t.Tuple[Facts, Facts]:
    """The plan and what the probe saw."""
    planned, probe = fabrics.plan(), fabrics.probe()
    for path, value in fault.probe.items():
        fabrics.put(probe, path, value)
    if any(path.endswith("/certificates") for path in fault.hosts):  # the proof takes them from the plan
        planned["certificates"] = planned_site(fault)["certificates"]
    if any(path.endswith("/cni_token_ends") for path in fault.hosts):
        planned["cni_token_ends"] = planned_site(fault)["cni_token_ends"]
    if "pools" in fault.probe:
        planned["networks"][0]["ipam"] = probe["networks"]["rdma-net"]["attachment"]["ipam"] = {"type": "whereabouts"}
    return planned, probe


def found_by_verify(fault: Fault) -> t.Set[str]:
    planned, probe = proof_inputs(fault)
    checks = verify_checks.check_fabric(planned, probe, fabrics.EXPECT)
    return {check.check for check in compared(checks, planned) if check.status == "failed"}


def compared(checks: t.List[Check], planned: t.Any) -> t.List[Check]:
    """With four good proofs before."""
    good, base = verify_checks.check_fabric(fabrics.plan(), fabrics.probe(), fabrics.EXPECT), baseline.EMPTY
    for number in range(4):
        head = Head(f"2026-11-2{number}T16:00:00Z", 4.2, "", "", groups=baseline.groups_of(planned))
        base = baseline.remember(base, head, good, baseline.as_they_are(good), False)
    return baseline.compare(checks, baseline.groups_of(planned), base, base, set(), True).checks


def test_a_good_site_and_a_good_fabric_report_nothing() -> None:
    assert found_by_plan(Fault()) | found_by_verify(Fault()) == set()


@pytest.mark.parametrize("row", ROWS, ids=[row.fault for row in ROWS])
def test_a_fault_is_reported_by_name(row: Row) -> None:
    fault = FAULTS[row.fault]
    assert row.plan <= found_by_plan(fault)
    assert row.proof <= found_by_verify(fault)
    assert row.plan | row.proof
    assert "unit" in row.tested


def test_the_page_and_the_tests_have_the_same_faults() -> None:
    assert [row.fault for row in ROWS] == list(FAULTS)


def test_the_page_names_checks_that_exist_and_places_that_exist() -> None:
    assert set().union(*(row.plan for row in ROWS)) <= set(CHECKS)
    assert set().union(*(row.proof for row in ROWS)) <= set(CHECK_TYPES)
    assert set().union(*(row.tested for row in ROWS)) <= TESTED


def test_what_the_page_says_of_a_cluster_is_what_tests_put_into_one() -> None:
    assert set(marked()) == {row.fault for row in ROWS if "cluster" in row.tested}


def test_a_nic_that_something_else_has_is_named_as_the_cause() -> None:
    probe = fabrics.probe()
    fabrics.put(probe, "pods/w1", status(BUSY))
    steps = {
        check.node: check.next
        for check in verify_checks.check_fabric(fabrics.plan(), probe, fabrics.EXPECT)
        if check.check == "pod"
    }
    assert "ipvlans of other pods" in steps["w1"]
    assert "ipvlans" not in steps["cp1"]


def test_a_gid_at_another_index_is_as_good() -> None:
    probe = fabrics.probe()
    fabrics.put(probe, GID, EARLIER)
    checks = verify_checks.check_fabric(fabrics.plan(), probe, fabrics.EXPECT)
    assert {check.seen for check in checks if check.check == "gid"} == {
        "mlx5_0 port 1 index 5",
        "mlx5_0 port 1 index 3",
    }


@pytest.mark.parametrize("modules", [["ib_umad", "ib_uverbs", "rdma_ucm"], None])
def test_modules_that_are_there_or_not_known_are_no_finding(modules: t.Optional[t.List[str]]) -> None:
    assert "rdma-modules" not in found_by_plan(Fault(hosts={"w1/rdma/modules": modules}))


def test_modules_do_not_matter_without_rdma_devices() -> None:
    hosts = {"w1/rdma/modules": [], f"{LINK}/device": "", f"{LINK}/rdma_netdevs": []}
    assert "rdma-modules" not in found_by_plan(Fault(hosts=hosts, settings={"require_rdma": False}))
