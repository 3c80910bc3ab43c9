"""Each check of the proof fails by a fault; what its advice names is done to the same fabric, and it passes.

What a playbook or a command may change is a table: advice that names one which leaves the fault as it is fails here.
On a real cluster tests/e2e/fabric/test_followed_advice.py does the same.
"""

from __future__ import annotations

import copy
import fnmatch
import typing as t

import pytest
from ansible_collections.ipu.fabric.plugins.module_utils._common.dns import LOOPED_STEP
from ansible_collections.ipu.fabric.plugins.module_utils._model.checks import Check, Expect
from ansible_collections.ipu.fabric.plugins.module_utils._verify.catalog import CHECK_TYPES
from ansible_collections.ipu.fabric.plugins.module_utils._verify.checks import check_fabric
from ansible_collections.ipu.fabric.plugins.module_utils._verify.pool_checks import FREE_LEAKS
from ansible_collections.ipu.fabric.plugins.module_utils._verify.traffic_checks import NEXT_STEPS
from ansible_collections.ipu.fabric.tests.unit.fixtures import advice
from ansible_collections.ipu.fabric.tests.unit.plugins.module_utils._verify import test_checks as fabrics
from ansible_collections.ipu.fabric.tests.unit.plugins.module_utils._verify import test_faults as faults
from ansible_collections.ipu.fabric.tests.unit.plugins.module_utils._verify import test_unproven as unproven

Facts = t.Dict[str, t.Any]
Changes = t.Mapping[str, t.Any]
FABRIC = (
    *("releases*", "kinds", "policy", "networks/*", "addons/*", "pools*", "address_sources", "nodes/*/labels", "ipu/*"),
    *("webhook", "pods/*/root/links*", "pods/*/root/*_routes*", "pods/*/root/policy*", "pods/*/network_status"),
    "pairs/*",
)
# What is better after each: parts of what the probe sees, as it names them. `plan/` is of the plan.
CURES: t.Dict[str, t.Tuple[str, ...]] = {
    "fabric": FABRIC,
    "fabric -e fabric_multus=false": ("addons/multus",),
    "fabric -e fabric_prune_networks=true": ("address_sources",),
    "site": (*FABRIC, "plan/cni_token_ends*", "kubelet_requests", "pods/w1", "nodes/*"),
    "site --tags memlock": ("pods/*/*/memlock",),
    "site -e rdma_host_reboot=true": ("pods/*/rdma/gids*",),
    "renew_certificates": ("plan/certificates",),
    "systemctl restart containerd && systemctl restart kubelet": ("nodes/*/ready",),
    "kubectl certificate deny NAME": ("kubelet_requests",),
    "kubectl -n kube-system delete pods -l k8s-app=kube-dns": ("pods/*/root/dns", "dns_problems"),
    "kubectl edit -n NAMESPACE ippools.whereabouts.cni.cncf.io rdma-net": ("pools/*/leaked",),
    "modprobe -a ib_uverbs ib_umad rdma_ucm": ("nodes/*/allocatable/*", "pods/*/rdma/classes"),
    "modprobe -a ib_uverbs rdma_ucm": ("pods/*/rdma/files",),
    # By the playbook that is run with it.
    "gpu_operator_rdma: true": ("pods/*/root/gpu/modules", "traffic/3"),  # without DMA-BUF nvidia_peermem serves
    "gpu_operator_gdrcopy: true": ("pods/*/root/gpu/modules",),
    "modprobe nvidia_peermem": ("pods/*/root/gpu/modules",),
    "modprobe gdrdrv": ("pods/*/root/gpu/modules",),
}


class Fabric(t.NamedTuple):
    plan: Facts
    probe: Facts
    expect: Expect = fabrics.EXPECT

    def checks(self) -> t.List[Check]:
        return check_fabric(self.plan, self.probe, self.expect)  # type: ignore[arg-type]

    def bad(self, check: str) -> t.List[Check]:
        checks = faults.compared(self.checks(), self.plan) if check == "regression" else self.checks()
        return [each for each in checks if each.check == check and each.status in ("failed", "unproven")]

    def changed(self, changes: Changes) -> Fabric:
        plan, probe = copy.deepcopy(self.plan), copy.deepcopy(self.probe)
        for path, value in changes.items():
            inside = path.startswith("plan/")
            fabrics.put(plan if inside else probe, path[len("plan/") :] if inside else path, copy.deepcopy(value))
        return Fabric(plan, probe, self.expect)

    def part(self, path: str) -> t.Any:
        found: t.Any = self.plan if path.startswith("plan/") else self.probe
        for key in path.split("/")[path.startswith("plan/") :]:
            key = key.replace("\\", "/")
            found = found[int(key)] if isinstance(found, list) else found.get(key)
            if found is None:
                break
        return found


class Row(t.NamedTuple):
    """A check, what is wrong, what is followed of its advice, and what that changes beside the fault's own parts."""

    check: str
    fault: Changes
    words: str  # a step as code finds it in the sentence, or words of it that a person acts on
    done: t.Optional[Changes] = None  # None: the parts that were wrong are as they were
    expect: t.Mapping[str, t.Any] = {}
    site: t.Callable[[], t.Tuple[Facts, Facts]] = lambda: (fabrics.plan(), fabrics.probe())


def of(fault: str) -> Changes:
    """What the probe sees of a fault of tests/faults.md."""
    return faults.FAULTS[fault].probe


def of_plan(fault: str, key: str) -> Changes:
    """What the hosts say of a fault, which the proof has from the plan."""
    return {f"plan/{key}": faults.proof_inputs(faults.FAULTS[fault])[0][key]}


SLAAC = [{"address": fabrics.ADDRESSES["w1"], "prefix": 24}, fabrics.SLAAC]
ADDRESS, LINKS = fabrics.ADDRESS, "pods/w1/root/links/net1/addresses"
POOL, LAB = "pools/0", fabrics.source("lab", "NetworkAttachmentDefinition", "lab", ours=False, ipam="host-local")
WHEREABOUTS = {
    "plan/networks/0/ipam": {"type": "whereabouts"},
    "networks/rdma-net/attachment/ipam": {"type": "whereabouts"},
    "pools/0/ipam": "whereabouts",
    "pools/0/nodes": [],
}
TWO_NFDS = of("Node Feature Discovery is installed twice")
TWO_MULTUS = of("multus is installed twice")
NO_MULTUS = of("multus has no pod on a control-plane node")
SHUT_DNS = of("CoreDNS crashes, or does not answer pods")
LOOP = {**SHUT_DNS, "dns_problems": ['log: [FATAL] plugin/loop: Loop (127.0.0.1:4 -> :53) detected for zone "."']}
TOKENS = of_plan("multus keeps a token that is about to end, or has ended", "cni_token_ends")
OTHER_IMAGE = of("a node runs another image than the one that is pinned")
PRESSURE = of("a node is short of disk space, memory or processes (DiskPressure), and takes no pods")
NO_PULL = {"pods/w1": {**unproven.STOPPED, "reason": "ErrImagePull"}}
RENAMED = of("a network was renamed, and its former pool is still there")
LOST = {"pods/w1/network_status": None, "pods/w1/root/links": {}}
EXCLUSIVE = {**LOST, "exclusive_cilium": "ConfigMap kube-system/cilium-config"}
NO_MODULES = {"nodes/w1/allocatable/rdma-net/count": 0, "pods/w1/rdma/classes": ["infiniband/mlx5_0"]}
NO_DMA_BUF = of("the way from NIC to GPU is slow, or has no DMA-BUF")
GATEWAY = of("the gateway of a rail does not answer")
PAIRS = [("cp1", "w1"), ("w1", "cp1"), ("cp1", "w2")]
SLOW_ALL = {"traffic": [{**fabrics.probe()["traffic"][1], "from": a, "to": b, "value": 50.0} for a, b in PAIRS[:2]]}
NO_PEERMEM = {"pods/w1/root/gpu/modules": ["nvidia", "gdrdrv"]}
NO_GDRDRV = {"pods/w1/root/gpu/modules": ["nvidia", "nvidia_peermem"]}
CLOSED = {"pods/w1/root/gpu/driver": fabrics.CLOSED, "pods/w1/root/gpu/modules": ["nvidia"]}
ROWS = [
    Row("rail_isolation", {"crossings": [fabrics.crossing(near=True)]}, "VLANs", {"crossings": [fabrics.crossing()]}),
    Row("regression", of("a check that passed in earlier proofs cannot be made"), "cables"),
    # cluster
    Row("release", {"releases/0/status": "failed"}, "fabric"),
    Row("kinds", {"kinds": ["NicClusterPolicy", "MacvlanNetwork", "IPUJob"]}, "fabric"),
    Row("policy", {"policy": fabrics.LATE}, "fabric"),
    Row("policy", {"policy": None}, "fabric"),
    Row("network", {"networks/rdma-net/state": None}, "fabric"),
    Row("attachment", {"networks/rdma-net/attachment": "{broken"}, "fabric"),
    Row(
        "attachment",
        {"networks/rdma-net/attachment/mtu": 9000},
        "change the site variables",
        {"plan/networks/0/mtu": 9000},
    ),
    Row("nfd", TWO_NFDS, "fabric"),
    Row("nfd", TWO_NFDS, "If neither of the two came with them, remove one"),
    Row("multus_once", TWO_MULTUS, "Remove one"),
    Row("multus_once", TWO_MULTUS, "fabric -e fabric_multus=false"),
    Row("multus_node", NO_MULTUS, "fabric"),
    Row("multus_node", NO_MULTUS, "remove the taint"),
    Row("node", {"nodes/w1/ready": False}, "systemctl restart containerd && systemctl restart kubelet"),
    Row("node", PRESSURE, "crictl rmi --prune", {"nodes/w1/pressures": []}),
    *(
        Row("certificates", of_plan(f"certificates of the cluster {when}", "certificates"), "renew_certificates")
        for when in ("are about to end", "have expired")
    ),
    Row("cni_tokens", TOKENS, "site"),
    Row("cni_tokens", TOKENS, "restart its pod on this node"),
    Row(
        "kubelet_requests", {"kubelet_requests": [{**faults.REQUEST, "problem": ""}]}, "site", {"kubelet_requests": []}
    ),
    Row(
        "kubelet_requests",
        {"kubelet_requests": [faults.REQUEST]},
        "kubectl certificate deny NAME",
        {"kubelet_requests": []},
    ),
    Row("image_digest", OTHER_IMAGE, "delete the pods"),
    Row(
        "image_digest",
        OTHER_IMAGE,
        "correct fabric_image_digests",
        {"plan/image_digests": {faults.PINNED: f"sha256:{'1' * 64}"}},
    ),
    # network
    Row("pod", NO_PULL, "set verify_rdma_image (without RDMA: verify_image)"),
    Row("pod", {"pods/w1": faults.status(faults.BUSY)}, "ipvlans of other pods"),
    Row("dns", SHUT_DNS, "whether port 53, UDP and TCP, passes"),
    Row(
        "dns",
        LOOP,
        "kubectl -n kube-system delete pods -l k8s-app=kube-dns",
        {"dns_problems": [], "pods/w1/root/dns": fabrics.DNS},
    ),
    Row("multus", LOST, "restart the node's pod of kube-multus-ds"),
    Row("multus", EXCLUSIVE, "Set cni.exclusive to false"),
    Row("workloads", of("a node reboots, and its pods start before multus does"), "Delete the named pods"),
    Row("interface", {"pods/w1/root/links/net1/kind": "veth"}, "Look for the macvlan and IPAM plugins"),
    Row("address", {ADDRESS: "10.5.0.127"}, "fabric"),
    Row("address", {LINKS: SLAAC}, "Turn router advertisements off"),
    Row("address", {LINKS: SLAAC}, "set accept_ra to false", site=fabrics.spiderpool),
    Row("unique", {ADDRESS: "10.5.0.129"}, "fabric"),
    Row("ip_pool", {"pools": []}, "fabric"),
    Row("ip_pool", {f"{POOL}/nodes/1/node": "w9"}, "fabric"),
    Row("ip_pool", {f"{POOL}/nodes/1/free": 0}, "delete pods that need no address"),
    Row("ip_pool", {f"{POOL}/nodes/1/free": 0}, "fabric_pods_per_node"),
    Row("ip_pool", {f"{POOL}/leaked": fabrics.LEAK}, "Delete the named pods"),
    Row(
        "ip_pool",
        {**WHEREABOUTS, f"{POOL}/leaked": fabrics.LEAK},
        "kubectl edit -n NAMESPACE ippools.whereabouts.cni.cncf.io rdma-net",
        {f"{POOL}/leaked": []},
    ),
    Row(
        "ip_pool",
        {**WHEREABOUTS, f"{POOL}/leaked": fabrics.LEAK},
        "Wait for whereabouts' reconciler",
        {f"{POOL}/leaked": []},
    ),
    Row("pool_overlap", RENAMED, "fabric -e fabric_prune_networks=true"),
    Row(
        "pool_overlap",
        {"address_sources": [{**LAB, "ranges": ["10.5.0.128-10.5.0.191"]}]},
        "`share` in fabric_networks",
        {"plan/networks/0/subnets/0/range_start": "10.5.0.192"},
    ),
    Row(
        "pool_overlap",
        {"address_sources": [{**LAB, "ranges": ["10.5.0.200"]}]},
        "add single addresses to `reserved`",
        {"plan/networks/0/subnets/0/exclude": ["10.5.0.200/32"]},
    ),
    Row("default_route", of("the network takes the default route"), "fabric"),
    Row("default_route", {"pods/w1/root/default_routes": ["net1"]}, "remove `gateway` and default `routes`"),
    Row("main_routes", of("addresses of pods or services are routed into the fabric"), "fabric"),
    Row("main_routes", of("the subnet of a rail is on another interface"), "remove `routes` from the network's IPAM"),
    Row("gateway", GATEWAY, "Check the gateway and the VLAN"),
    Row(
        "gateway",
        GATEWAY,
        "leave `gateway` out of fabric_networks",
        {"plan/networks/0/subnet/gateway": "", "plan/networks/0/subnets/0/gateway": "", "pods/w1/gateways": []},
    ),
    Row("policy_routes", {"pods/w1/root/policy/defaults": {}}, "fabric", site=fabrics.spiderpool),
    Row("mtu", {"pods/w1/root/links/net1/mtu": 1450}, "fabric"),
    Row("ping", {"pairs/0/small": fabrics.NO_REPLY}, "on one layer 2 network"),
    Row("full_size", of("a switch port's MTU is below the master's"), "Set the MTU of switch ports and masters"),
    Row("full_size", of("a switch port's MTU is below the master's"), "fabric"),
    # limits
    *(
        Row(f"memlock_{user}", of(fault), words, expect=expect)
        for user, fault in (
            ("root", "locked memory is limited for root"),
            ("user", "locked memory is limited for uid 1000, whatever IPC_LOCK says"),
        )
        for words, expect in (("site --tags memlock", {}),)
    ),
    # ipu
    Row("vipu", of("V-IPU cannot be reached"), "Check that the V-IPU service runs"),
    Row("ipu_labels", of("the IPU operator knows a V-IPU by another label than the nodes have"), "fabric"),
    Row("ipu_operator", {"ipu/deployments/0/ready": 0}, "fabric"),
    Row(
        "webhook",
        of("a run that was killed has left the IPU operator's webhooks at Ignore"),
        "fabric",
        {"ipu/ignored": []},
    ),
    Row("ipu_certificate", of("the certificate of the IPU operator's webhook is about to end"), "fabric"),
    Row("vipu_proxy", {"ipu/proxy": {"healthy": False, "seen": "503"}}, "Check that the V-IPU service runs"),
    # rdma
    Row("rdma_resource", NO_MODULES, "modprobe -a ib_uverbs ib_umad rdma_ucm"),
    Row(
        "rdma_resource",
        of("the device plugin selects no NIC, the resource counts 0"),
        "Check the device plugin's selectors",
    ),
    Row("rdma_link", of("the RDMA link is down"), "Check cable and switch port"),
    Row("link_layer", of("the master is InfiniBand"), "set LINK_TYPE of the port to Ethernet"),
    Row("rdma_files", of("the container has no RDMA device files"), "modprobe -a ib_uverbs rdma_ucm"),
    Row("gid", of("no GID is the pod's address; its index differs from pod to pod"), "site -e rdma_host_reboot=true"),
    Row("gid", of("the address has a RoCE v1 GID only"), "must support RoCE v2"),
    Row("rping", of("UDP 4791 is blocked between two nodes"), "UDP port 4791 must pass"),
    Row(
        "write_bandwidth", of("a path is slow: PFC, ECN, or a port at half its speed"), "Check the speed of both ports"
    ),
    Row("read_latency", of("a path is slow: PFC, ECN, or a port at half its speed"), "Check power saving, congestion"),
    Row("rdma_counters", of("RDMA tests silently go over TCP, or over another RDMA device"), "other RDMA devices"),
    Row("host_traffic", of("an IPU host's path to its IPUs is slow"), "PCIe width, NUMA, MTU of the fabric"),
    # gpu
    Row("gpudirect", NO_PEERMEM, "gpu_operator_rdma: true"),
    Row("gpudirect", NO_PEERMEM, "modprobe nvidia_peermem"),
    Row("gpudirect", CLOSED, "NVIDIA's open kernel modules", expect={"gpu_rdma": "dma-buf", "gdrcopy": False}),
    Row("gdrcopy", NO_GDRDRV, "gpu_operator_gdrcopy: true"),
    Row("gdrcopy", NO_GDRDRV, "modprobe gdrdrv"),
    Row("gpu_bandwidth", NO_DMA_BUF, "gpu_operator_rdma: true"),
    Row(
        "gpu_bandwidth", {"traffic/3/value": 61.2}, "`nvidia-smi topo -m` should say PIX or PXB, and ACS should be off"
    ),
    Row("gpu_bandwidth", {"traffic/3": fabrics.NO_CUDA}, "verify_rdma_image"),
    Row("gpu_bandwidth", {**unproven.NO_GPU_TEST, **unproven.NOT_GIVEN}, "when no other pod holds one of them"),
]
# What a site expects instead: the fault stays, and the check passes.
LOWERED = [
    Row("memlock_root", of("locked memory is limited for root"), "lower verify_memlock", expect={"memlock": "8388608"}),
    Row(
        "memlock_user",
        of("locked memory is limited for uid 1000, whatever IPC_LOCK says"),
        "lower verify_memlock",
        expect={"memlock": "8388608"},
    ),
    Row("write_bandwidth", {"traffic/1/value": 40.0}, "verify_rdma_bandwidth", expect={"rdma_bandwidth": "40"}),
    Row("write_bandwidth", SLOW_ALL, "verify_rdma_bandwidth", expect={"rdma_bandwidth": "50"}),
    Row("read_latency", {"traffic/2/value": 9.5}, "verify_rdma_latency", expect={"rdma_latency": "10"}),
    Row("gpu_bandwidth", {"traffic/3/value": 61.2}, "verify_gpu_bandwidth", expect={"gpu_bandwidth": "60"}),
    Row("host_traffic", {"host_traffic/0/value": 12.0}, "verify_host_traffic", expect={"host_traffic": 12}),
]


def may_change(words: str, path: str) -> bool:
    return words not in CURES or any(fnmatch.fnmatchcase(path, pattern) for pattern in CURES[words])


def named(row: Row, sentence: str) -> bool:
    """Whether a sentence has it: as a step that code finds where it is one, else in so many words."""
    return row.words in (advice.steps(sentence).all if row.words in CURES else sentence)


@pytest.mark.parametrize("row", ROWS, ids=[f"{number} {row.check}" for number, row in enumerate(ROWS)])
def test_advice_as_printed(row: Row) -> None:
    good = Fabric(*row.site(), fabrics.EXPECT._replace(**row.expect))
    broken = good.changed(row.fault)
    found = broken.bad(row.check)
    assert found
    for check in found:
        assert named(row, check.next), check.next
    done = {path: good.part(path) for path in row.fault} if row.done is None else row.done
    beyond = [path for path in done if not may_change(row.words, path)]
    assert beyond == [], f"{row.words} does not change that"
    assert broken.changed(done).bad(row.check) == []


@pytest.mark.parametrize("row", LOWERED, ids=[f"{number} {row.check}" for number, row in enumerate(LOWERED)])
def test_what_a_site_may_expect_instead(row: Row) -> None:
    broken = Fabric(*row.site()).changed(row.fault)
    found = broken.bad(row.check)
    assert found
    assert all(row.words in check.next for check in found), found
    assert Fabric(broken.plan, broken.probe, fabrics.EXPECT._replace(**row.expect)).bad(row.check) == []


def test_every_check_is_followed() -> None:
    assert {row.check for row in ROWS} == set(CHECK_TYPES)


SENTENCES = {
    *(kind.next_step for kind in CHECK_TYPES.values()),
    *(step.format(name="rdma-net") for step in FREE_LEAKS.values()),
    *NEXT_STEPS.values(),
    LOOPED_STEP,
}


def test_every_step_that_advice_names_is_followed() -> None:
    followed = {row.words for row in [*ROWS, *LOWERED]}
    named_steps = {step for sentence in SENTENCES for step in advice.steps(sentence).all}
    assert {step for step in named_steps if step not in followed} == set()
    assert set(CURES) <= named_steps
