"""Advice of the plan is followed: settings as they are printed, and what a person does as it shows in the next plan."""

from __future__ import annotations

import copy
import re
import typing as t

import pytest
import yaml
from ansible_collections.ipu.fabric.plugins.module_utils._common.findings import ALLOWABLE, CHECKS
from ansible_collections.ipu.fabric.plugins.module_utils._common.result import FabricError
from ansible_collections.ipu.fabric.plugins.module_utils._component.network_operator import check_upgrade
from ansible_collections.ipu.fabric.plugins.module_utils._model.settings import IpuRelease, Kubeconfig, OwnMultus
from ansible_collections.ipu.fabric.plugins.module_utils._plan.network_spec import DEFAULTS
from ansible_collections.ipu.fabric.plugins.module_utils._plan.upgrade import plan_upgrade
from ansible_collections.ipu.fabric.tests.unit.fixtures import site as sites
from ansible_collections.ipu.fabric.tests.unit.fixtures.components import defaults
from ansible_collections.ipu.fabric.tests.unit.plugins.module_utils._plan import test_bundle as bundles
from ansible_collections.ipu.fabric.tests.unit.plugins.module_utils._plan.test_ipu_operator import ADOPTED, GC, KEPT
from ansible_collections.ipu.fabric.tests.unit.plugins.module_utils._plan.test_runtime import SOURCE as DOCKERD
from ansible_collections.ipu.fabric.tests.unit.plugins.module_utils._plan.test_source_questions import DEAD
from ansible_collections.ipu.fabric.tests.unit.plugins.module_utils._verify.test_checks import put
from ansible_collections.ipu.fabric.tests.unit.plugins.module_utils._verify.test_faults import (
    APPROVED,
    FAULTS,
    TWO_CARDS,
    Fault,
)

Data = t.Dict[str, t.Any]
LINK = "w1/rdma/links/1"


class Site(t.NamedTuple):
    """What hosts say and the inventory sets; `gone` are hosts that were taken out of it."""

    hosts: Data
    settings: Data

    def changed(self, hosts: t.Optional[Data] = None, gone: t.Sequence[str] = (), **settings: t.Any) -> Site:
        observed = {name: seen for name, seen in copy.deepcopy(self.hosts).items() if name not in gone}
        for path, value in (hosts or {}).items():
            put(observed, path, value)
        return Site(observed, {**copy.deepcopy(self.settings), **settings})

    def findings(self, check: str = "") -> t.List[Data]:
        found = sites.plan(copy.deepcopy(self.hosts), **self.settings)["findings"]
        return [each for each in found if check in ("", each["check"])]


GOOD = Site(sites.site(), {})


def faulty(fault: t.Union[str, Fault]) -> Site:
    fault = FAULTS[fault] if isinstance(fault, str) else fault
    return GOOD.changed(fault.hosts, **fault.settings)


# ---- settings that a sentence prints --------------------------------------------------------------------------------

KEYS = sorted(set(DEFAULTS) - {"name", "namespace", "hosts", "select"})
NAME = rf"`?((?:fabric_|verify_memlock|rdma_host_reboot)[a-z_]*(?:\.\w+|\['[^']+'\])*|{'|'.join(KEYS)})`?"
VALUE = r"(\[[^\]]*\]|\{.*\}|\"[^\"]*\"|[^\s,;]+?)(?=[.,;:]*(?:\s|$))"
SET = re.compile(rf"(?:[Ss]et|[,;] or|, and) {NAME} to (?:(?:(?!\. )[^;])*?such as )?{VALUE}")
GIVE = re.compile(rf"{NAME.replace('`?', '')}: {VALUE}")
LEAVE = re.compile(rf"[Ll]eave {NAME} (?:empty|out)")
# In place of a value that only a person knows.
PROSE = re.compile(r"(?:a|an|the|that|what|one|which|addresses|false,|sha256|list)$|.*\.\.\.")


def printed(sentence: str) -> t.List[t.Tuple[str, t.Any]]:
    """The settings that a sentence names together with their values, but for allowing the check."""
    found = [match.groups() for pattern in (SET, GIVE) for match in pattern.finditer(sentence)]
    given = [(name, yaml.safe_load(value)) for name, value in found if not PROSE.match(value)]
    given += [(name, None) for name in LEAVE.findall(sentence)]
    return [(name, value) for name, value in given if name != "fabric_allow"]


def test_settings_are_found_in_sentences() -> None:
    assert printed("Set fabric_ipam to auto. Or allow it with fabric_allow: [ipam].") == [("fabric_ipam", "auto")]
    assert printed("Set fabric_control_plane_vip to a free address, or leave fabric_control_plane_endpoint empty.") == [
        ("fabric_control_plane_endpoint", None)
    ]
    assert printed("Set fabric_pod_cidr to a CIDR such as 10.244.0.0/16, or an IPv4 one.") == [
        ("fabric_pod_cidr", "10.244.0.0/16")
    ]
    assert printed('Accept it with verify_memlock: "8388608" (bytes).') == [("verify_memlock", "8388608")]
    assert printed("Set mtu to 9000 or 0 in fabric_networks.") == [("mtu", 9000)]


def with_setting(site: Site, network: str, name: str, value: t.Any) -> Site:
    """The site once a setting is as it was printed. A key of fabric_networks is that of the network spoken of."""
    if name == "rdma_host_reboot":
        return site.changed({f"{host}/reboot": value for host in site.hosts})
    if name in KEYS:
        networks = copy.deepcopy(site.settings.get("networks", sites.SETTINGS["networks"]))
        for each in networks:
            if each["name"] == network or len(networks) == 1:
                each.update({name: value} if value is not None else {name: DEFAULTS[name]})
        return site.changed({}, networks=networks)
    if name == "fabric_multus":
        return site.changed({}, own_multus=OwnMultus(value))
    name, _dot, rest = {"verify_memlock": "memlock"}.get(name, name.partition("fabric_")[2]).partition(".")
    name = "sources" if name == "mirror" else name
    if rest:
        parts = [part.strip("'") for part in re.split(r"\.(?=\w+$|\w+\[)|\[|\]", rest) if part]
        whole = copy.deepcopy(site.settings.get(name, sites.SETTINGS[name]))
        inner = whole
        for part in parts[:-1]:
            inner = inner.setdefault(part, {})
        inner[parts[-1]] = value
        return site.changed({}, **{name: whole})
    return site.changed({}, **{name: sites.SETTINGS[name] if value is None else value})


def errors_of(site: Site) -> t.Set[str]:
    return {each["check"] for each in site.findings() if each["level"] == "error"}


def cured(before: Site, after: Site, finding: Data) -> bool:
    """It is gone, and no other error has come."""
    what = [(each["level"], each["what"], each["seen"]) for each in after.findings(finding["check"])]
    left = [each for each in what if each[0] == "error" or each == (finding["level"], finding["what"], finding["seen"])]
    mine = [each for each in left if each[1] == finding["what"]]
    return not mine and errors_of(after) <= errors_of(before)


OTHER = {"kubernetes_version": "1.35.4"}
EVICTION = {"kubelet_config": {"evictionHard": {"imagefs.available": "5%"}}}
CRI_DOCKERD = {"cri_dockerd": DOCKERD}
HELM = "https://get.helm.sh/helm-v{}-linux-amd64.tar.gz"
UNKNOWN_DIGEST = {"cri_dockerd": {**DOCKERD, "version": "0.3.1"}}
VIP = {"address": "10.88.0.51", "held": False, "answered": "", "mac": "", "gateways": [], "foreign_keepalived": False}
OPERATOR_26_1 = {"network_operator_version": "26.1.2", "kubernetes_version": "1.35.4"}
OTHER_POLICY = {
    "kind": "NicNodePolicy",
    "name": "gpu",
    "sections": ["rdmaSharedDevicePlugin"],
    "node_selector": {},
    "ours": False,
}
RAILS = [{"name": "one"}, {"name": "two"}]
OFFERS = {"w1/host/sources": [{**DEAD, "lacks": "kubelet", "offers": ["1.36.3"]}]}
# A fault, and the check whose sentence has settings: each of them cures it.
PRINTED: t.List[t.Tuple[str, t.Union[str, Fault]]] = [
    ("calico-version", Fault(settings={"calico_version": "3.29.0"})),
    ("calico-version", Fault(settings={"calico_version": "3.31.5"})),
    ("cidr", Fault(settings={"pod_cidr": "10.244.0.0/33"})),
    ("cidr", Fault(settings={"service_cidr": "10.96.0.1/12"})),
    ("cluster-builder", "the site would manage a cluster that it has not built"),
    ("cluster-cidr", "the site asks for other addresses of pods or services than the cluster has"),
    ("cluster-cni", "the site asks for another pod network than the cluster has"),
    ("cluster-cni", "the site names a pod network for a cluster that others manage"),
    ("cluster-endpoint", "the site asks for another endpoint than the cluster has"),
    ("cluster-runtime", Fault(hosts={"w1/host/runtime": "docker"}, settings={"sources": CRI_DOCKERD})),
    ("cluster-stack", "the site asks for another stack than the fabric networks of the cluster have"),
    ("cluster-stack", "multus is installed twice"),
    ("cluster-version", "the site asks for another Kubernetes than the cluster runs"),
    ("cni", Fault(settings={"cni": "cilium"})),
    ("cpus", "a host has less memory, processors or disk than its role needs"),
    ("disk", "a host has less memory, processors or disk than its role needs"),
    ("endpoint", Fault(settings={"control_plane_endpoint": "k8s:port"})),
    ("endpoint", Fault(settings={"control_plane_endpoint": "https://k8s.site:6443/"})),
    ("endpoint", Fault(settings={"control_plane_endpoint": "localhost:6443", "control_plane_vip": ""})),
    ("cidr", Fault(settings={"pod_cidr": "10.244.1.0/16"})),
    ("cidr", Fault(settings={"pod_cidr": "10.244.0.0"})),
    ("cidr", Fault(settings={"pod_cidr": "10.244.0.0/26"})),
    ("cidr", Fault(settings={"pod_cidr": "128.0.0.0/4"})),
    ("cidr", Fault(settings={"service_cidr": "10.96.0.0/30"})),
    ("cidr", Fault(settings={"service_cidr": "10.96.0.0/11"})),
    ("cluster-stack", Fault(settings={"own_multus": OwnMultus(False)})),
    ("subnet", Fault(settings={"pods_per_node": 0})),
    (
        "endpoint",
        Fault(settings={"control_plane_vip": "10.88.0.50", "control_plane_endpoint": "k8s.site:6443"}),
    ),
    ("existing-cluster", Fault(hosts={"w1/host/other_kubernetes": ["k3s"]})),
    ("fabric-mtu", "MTU above the master's"),
    ("fabric-nic", "the RDMA NIC has no RDMA device"),
    ("gpu-hosts", "the GPU operator is asked for and no host has a GPU"),
    ("gpu-operator-version", Fault(settings={"gpu": True, "gpu_operator_version": "24.9.0"})),
    ("ipam", Fault(settings={"stack": "spiderpool", "ipam": "nv-ipam"})),
    ("ipam", Fault(settings={"ipam": "calico-ipam"})),
    ("ipam", Fault(settings={"ipam": "nv-ipam", "network_operator_version": "24.4.1", **OTHER})),
    ("ipu-machines", "pods get addresses of IPU-Machines"),
    ("ipu-operator", Fault(settings={"ipu_release": IpuRelease(values={"fullnameOverride": "gc"})})),
    (
        "ipu-operator-upgrade",
        Fault(
            hosts={"cp1/host/cluster": sites.running(ipu={"operators": [GC], "jobs": []})},
            settings={"ipu_release": KEPT},
        ),
    ),
    ("ipu-operator-version", Fault(settings={"ipu_operator_version": "1.0.3"})),
    ("kubernetes-range", Fault(settings={"network_operator_version": "24.4.1"})),
    ("kubernetes-version", Fault(hosts=OFFERS, settings={"kubernetes_version": "1.35"})),
    ("kubernetes-version", Fault(hosts=OFFERS, settings={"kubernetes_version": "1.41.0"})),
    ("locked-memory", "the host is a container that may not raise its limit of locked memory"),
    ("locked-memory", Fault(settings={"memlock": "8 MB"})),
    ("cidr", Fault(settings={"cluster_config": {"networking": {"podSubnet": "10.32.0.0/16"}}})),
    ("cidr", Fault(settings={"cluster_config": {"networking": {"serviceSubnet": "10.112.0.0/12"}}})),
    ("endpoint", Fault(settings={"cluster_config": {"controlPlaneEndpoint": "api.site:6443"}})),
    ("memory", "a host has less memory, processors or disk than its role needs"),
    ("netns-mode", "RDMA devices are exclusive to network namespaces"),
    ("network-operator-version", Fault(settings={"network_operator_version": "19.1.0"})),
    (
        "network-operator-upgrade",
        Fault(
            hosts={"cp1/host/cluster": sites.running(charts=["network-operator-26.4.0"], version="1.35.8")},
            settings={"kubernetes_version": "1.35.8", "network_operator_version": "26.7.1"},
        ),
    ),
    (
        "network-operator-version",
        Fault(
            hosts={"cp1/host/cluster": sites.running(charts=["network-operator-26.4.0"], version="1.35.8")},
            settings={"kubernetes_version": "1.35.8", "network_operator_version": "26.1.0"},
        ),
    ),
    (
        "networks",
        Fault(settings={"stack": "spiderpool", "networks": [{"name": "a", "mode": "vepa", "gateway": "10.5.0.1"}]}),
    ),
    ("networks", Fault(settings={"networks": [{"name": "rdma-net", "mode": "passthru"}]})),
    ("ntp-setup", "another service than chrony sets the clock"),
    ("ofed", Fault(settings={"stack": "spiderpool", "ofed": {"version": "25.10"}})),
    ("rdma-modules", "the kernel makes no issm* for RoCE, and an old device plugin demands it"),
    ("nic-policy", Fault(settings={"nic_policy": "node", **OPERATOR_26_1})),
    ("rdma-resource", Fault(settings={"networks": [{"name": "rdma-net", "rdma_hca_max": 2}]})),
    ("rdma-resource", "the GID table of a NIC is too small for the pods of a host"),
    ("rdma-resource", Fault(settings={"pods_per_node": 16, "networks": [{"name": "rdma-net", "rdma_hca_max": 8}]})),
    ("on-master", "nodes have their addresses in the subnet of the fabric"),
    ("release-table", Fault(settings={"network_operator_version": "26.7.9"})),
    ("release-table", Fault(settings={"gpu": True, "gpu_operator_version": "26.3.2"})),
    ("runtime", Fault(settings={"runtime": "docker", "gpu": True, "sources": CRI_DOCKERD})),
    ("runtime", Fault(settings={"runtime": "docker", "sources": UNKNOWN_DIGEST})),
    ("spiderpool-version", Fault(settings={"stack": "spiderpool", "spiderpool_version": "0.9.0"})),
    ("stack", Fault(settings={"stack": "multus"})),
    ("subnet", Fault(settings={"pods_per_node": 100})),
    ("subnet", "a network of others gives out single addresses of the subnet (static)"),
    ("virtual-address", Fault(settings={"control_plane_vip": "10.88.0.51/24"})),
    ("virtual-address", Fault(settings={"control_plane_vip": "10.88.0.51:6443"})),
    ("virtual-address", Fault(settings={"control_plane_vip": "10.88.0.50", "control_plane_vip_router_id": 256})),
]


@pytest.mark.parametrize(
    ("check", "fault"), PRINTED, ids=[f"{number} {case[0]}" for number, case in enumerate(PRINTED)]
)
def test_settings_as_printed(check: str, fault: t.Union[str, Fault]) -> None:
    site = faulty(fault)
    found = site.findings(check)
    assert found
    sentences = 0
    for finding in found:
        network = finding["what"].partition(":")[0]
        for name, value in printed(finding["next"]):
            sentences += 1
            assert cured(site, with_setting(site, network, name, value), finding), f"{name}: {value}\n{finding}"
    assert sentences, [each["next"] for each in found]


# ---- what a person does ---------------------------------------------------------------------------------------------


class Done(t.NamedTuple):
    """Words of the advice, and what they change: in what hosts say, in settings, or the hosts of the inventory."""

    words: str
    hosts: t.Mapping[str, t.Any] = {}
    settings: t.Mapping[str, t.Any] = {}
    gone: t.Sequence[str] = ()


DRA_NIC = {"driver": "dra.net", "node": "node12", "nic": "ens1f0", "pci": "0000:81:00.0", "claims": []}
GOOD_LINK = GOOD.hosts["w1"]["rdma"]["links"][1]
NETWORK = {"name": "rdma-net"}
ADVERTISED = {"address": "2001:db8:7:1::a", "prefix": 64, "origin": "advertised"}
TWICE = {"networks": [{"name": "rdma-net"}, {"name": "rdma-net"}]}


def network(**keys: t.Any) -> t.Dict[str, t.Any]:
    return {"networks": [{**NETWORK, **keys}]}


def host(path: str, value: t.Any) -> Fault:
    return Fault(hosts={f"w1/{path}": value})


OTHERS = {
    "namespace": "default",
    "name": NETWORK["name"],
    "plugin": "bridge",
    "nic": "",
    "mode": "",
    "addresses": [],
    "ipam": {"type": "host-local", "subnet": "172.30.0.0/24"},
}


def undone(fault: str) -> t.Dict[str, t.Any]:
    """What hosts say once the fault is no longer there."""
    found = {}
    for path in FAULTS[fault].hosts:
        part: t.Any = GOOD.hosts
        for key in path.split("/"):
            part = part[int(key) if key.isdigit() else key] if not isinstance(part, dict) or key in part else None
        found[path] = part
    return found


DONE: t.List[t.Tuple[str, t.Union[str, Fault], Done]] = [
    ("allow", Fault(settings={"allow": ["other"]}), Done("Remove it", settings={"allow": []})),
    (
        "allow",
        Fault(settings={"allow": ["cgroupv2"]}),
        Done("Did you mean cgroup-v2?", settings={"allow": ["cgroup-v2"]}),
    ),
    (
        "architecture",
        host("host/architecture", "aarch64"),
        Done("Use an x86_64 host", {"w1/host/architecture": "x86_64"}),
    ),
    (
        "artifacts-dir",
        Fault(settings={"inventory_sources": ["/site"]}),
        Done(
            "Set fabric_artifacts_dir to a folder outside the inventory directory",
            settings={"artifacts_dir": "/site-artifacts"},
        ),
    ),
    (
        "artifacts-dir",
        Fault(
            settings={"inventory_sources": ["/srv/inventory"], "kubeconfig": Kubeconfig("/srv/inventory/admin.conf")}
        ),
        Done("set fabric_kubeconfig to its new path", settings={"kubeconfig": Kubeconfig("/srv/admin.conf")}),
    ),
    (
        "bundle",
        Fault(settings={"bundle": bundles.seen("no such file")}),
        Done("Make it with ipu.fabric.bundle", settings={"bundle": bundles.seen()}),
    ),
    (
        "bundle",
        Fault(settings={"bundle": bundles.seen(wrong=["helm/helm.tar.gz"])}),
        Done("Copy them again", settings={"bundle": bundles.seen()}),
    ),
    (
        "bundle",
        Fault(settings={"bundle": bundles.seen(), "network_operator_version": "26.4.2"}),
        Done(
            "Or set the site's variables to the bundle's releases",
            settings={"network_operator_version": sites.SETTINGS["network_operator_version"]},
        ),
    ),
    (
        "calico-address",
        "Calico of a cluster that others manage may take a fabric NIC's address",
        Done(
            "kubectl set env -n kube-system daemonset/calico-node IP_AUTODETECTION_METHOD=kubernetes-internal-ip",
            {"cp1/host/cluster/pod_networks/0/autodetection/IP_AUTODETECTION_METHOD": "kubernetes-internal-ip"},
        ),
    ),
    *(
        (
            "certificates",
            f"certificates of the cluster {when}",
            Done("ipu.fabric.renew_certificates", {"cp1/host/certificates": []}),
        )
        for when in ("are about to end", "have expired")
    ),
    (
        "cgroup-v2",
        host("host/cgroup", "hybrid"),
        Done("systemd.unified_cgroup_hierarchy=1", {"w1/host/cgroup": "v2"}),
    ),
    (
        "cidr",
        Fault(settings={"pod_cidr": "10.96.0.0/16"}),
        Done("Set one of them to addresses that nothing else has", settings={"pod_cidr": "10.244.0.0/16"}),
    ),
    (
        "cidr",
        Fault(settings={"service_cidr": "10.88.0.0/16"}),
        Done("Set fabric_service_cidr to addresses that nothing else has", settings={"service_cidr": "10.96.0.0/12"}),
    ),
    (
        "cluster-unread",
        "the API server of the existing cluster is down",
        Done("Start its API server", {"cp1/host/cluster": sites.running()}),
    ),
    (
        "cni-directories",
        "nodes have their CNI plugins in different directories",
        Done("set fabric_cni_bin_directory to a directory", settings={"cni_bin_directory": "/opt/cni/bin"}),
    ),
    (
        "cni-files",
        "a configuration of another pod network comes first on a host",
        Done("Remove what is left of another pod network", {"w1/host/cni_files": []}),
    ),
    (
        "cni-files",
        "Cilium takes the CNI configuration of multus out of service",
        Done(
            "Set cni.exclusive to false",
            {"cp1/host/cluster/pod_networks/0/exclusive": False},
        ),
    ),
    (
        "cni-tokens",
        "multus keeps a token that is about to end, or has ended",
        Done("Run site, which restarts multus", {"w1/host/cni_token_ends": []}),
    ),
    (
        "cni-tokens",
        "the site has tokens end after an hour, and multus keeps its own",
        Done("Take it out of kubernetes_cluster_config", settings={"cluster_config": {}}),
    ),
    (
        "control-plane-count",
        host("groups", ["kube_control_plane"]),
        Done("Use 1, 3 or 5", {"w1/groups": ["kube_node"]}),
    ),
    ("distribution", host("host/version", "11"), Done("Install Debian 12", {"w1/host/version": "12"})),
    ("dns", host("host/dns", {"mirror.example": False}), Done("/etc/hosts", {"w1/host/dns": {"mirror.example": True}})),
    (
        "endpoint",
        host("groups", ["kube_control_plane"]),
        Done(
            "Set fabric_control_plane_vip to a free address",
            {"cp1/host/vip": VIP, "w1/host/vip": VIP},
            {"control_plane_vip": "10.88.0.50"},
        ),
    ),
    (
        "etcd-group",
        host("groups", ["kube_node", "etcd"]),
        Done("Name the same hosts in both groups", {"w1/groups": ["kube_node"]}),
    ),
    (
        "existing-cluster",
        host("host/kubelet", {"present": True, "version": "v1.36.3", "server": "10.1.1.1:6443", "cluster": "ab"}),
        Done("take it out of its cluster", {"w1/host/kubelet": GOOD.hosts["w1"]["host"]["kubelet"]}),
    ),
    (
        "fabric-mtu",
        "MTU above the master's",
        Done("raise the NICs' MTU", {f"{n}/rdma/links/1/mtu": 9100 for n in ("w1", "w2")}),
    ),
    ("fabric-nic", "the RDMA link is down", Done("`ip link set ens1f0 up`", undone("the RDMA link is down"))),
    (
        "fabric-nic",
        "the RDMA NIC has no RDMA device",
        Done("Load the NIC's RDMA driver", undone("the RDMA NIC has no RDMA device")),
    ),
    (
        "fabric-nic",
        "the RDMA NIC is a member of a bond, a bridge or Open vSwitch",
        Done("Take ens1f0 out of ovs-system", {f"{LINK}/master": ""}),
    ),
    (
        "fabric-nic",
        "an ipvlan, or a macvlan in mode passthru, has the RDMA NIC",
        Done("Delete pod0", {f"{LINK}/taken_by": []}),
    ),
    (
        "fabric-nic",
        "a network of others has ipvlans on the RDMA NIC",
        Done("Delete NetworkAttachmentDefinition jobs/old", {"cp1/host/cluster": sites.running()}),
    ),
    (
        "fabric-nic",
        Fault(hosts={"cp1/host/cluster": sites.running(dra_nics=[{**DRA_NIC, "claims": ["jobs/rail"]}])}),
        Done("Delete the pods of the claim. Set args.filter of DRANET's chart", {"cp1/host/cluster": sites.running()}),
    ),
    (
        "fabric-nic",
        Fault(hosts={"cp1/host/cluster": sites.running(dra_nics=[DRA_NIC])}),
        Done("Set args.filter of DRANET's chart", {"cp1/host/cluster": sites.running()}),
    ),
    (
        "fabric-nic",
        "loading a driver renames the NIC",
        Done("Correct `select` in fabric_networks", settings=network(select={"name": "ens1f0*"})),
    ),
    (
        "fabric-nic",
        Fault(hosts={f"{LINK}/addresses": []}),
        Done("Give ens1f0 an address on the fabric", {f"{LINK}/addresses": GOOD_LINK["addresses"]}),
    ),
    (
        "fabric-nic",
        Fault(hosts={f"{LINK}/addresses": []}),
        Done("key subnet of rdma-net", settings=network(subnet="10.5.0.0/24")),
    ),
    ("fabric-nic", Fault(settings=network(select={"gpu": 0})), Done("Correct select.gpu", settings=network())),
    (
        "host-identity",
        Fault(hosts={"w1/host/default_address": "10.88.0.11"}),
        Done(
            "Set ip of each in the inventory to its own address",
            {"w1/address": "10.88.0.12", "cp1/address": "10.88.0.11"},
        ),
    ),
    (
        "host-ports",
        "a firewall blocks a port between two hosts",
        Done("Open TCP 6443 in the firewalls", {"w1/probes": []}),
    ),
    (
        "host-sizes",
        Fault(settings={"host_sizes": {"worker": {"ram": 4}}}),
        Done("memory_gb", settings={"host_sizes": {"worker": {"memory_gb": 4}}}),
    ),
    *(
        (
            "pod-security",
            "the namespace of the stack exists, and Pod Security refuses privileged pods there",
            done,
        )
        for done in (
            Done("Set network_operator_namespace to a", settings={"homes": {"network_operator": "fabric"}}),
            Done(
                "kubectl label namespace nvidia-network-operator pod-security.kubernetes.io/enforce=privileged",
                {"cp1/host/cluster": sites.running()},
            ),
        )
    ),
    (
        "http-source",
        "charts, keys or manifests come by http without a digest",
        Done(
            "Set its publisher's SHA-256, fabric_mirror: {chart_sha256: {network-operator-26.7.1: SHA256}}",
            settings={
                "sources": {
                    "charts": {"network_operator": "http://mirror.site/charts"},
                    "chart_sha256": {"network-operator-26.7.1": "0" * 64},
                }
            },
        ),
    ),
    (
        "image-digests",
        "an image is pinned without a tag, or by something that is no digest",
        Done("registry/name:tag", settings={"image_digests": {"mirror.site/a:v1": f"sha256:{'0' * 64}"}}),
    ),
    (
        "inventory",
        host("groups", ["ipu_node"]),
        Done("Put it into kube_node", {"w1/groups": ["ipu_node", "kube_node"]}),
    ),
    (
        "inventory",
        Fault(hosts={"cp1/groups": ["kube_node"]}),
        Done("Put a host into kube_control_plane", {"cp1/groups": ["kube_control_plane"]}),
    ),
    (
        "ipu-machines",
        "pods get addresses of IPU-Machines",
        Done("put their part into `reserved`", settings=network(share="all", reserved=["10.5.0.0/26"])),
    ),
    (
        "ipu-operator",
        Fault(settings={"ipu_release": IpuRelease(values={"fullnameOverride": "gc"})}),
        Done("Remove it", settings={"ipu_release": IpuRelease()}),
    ),
    (
        "ipu-operator",
        Fault(settings={"ipu_release": IpuRelease(values={"global.vipuControllers": "10.5.0.20:8090:ipunode=b"})}),
        Done("Take global.vipuControllers out of ipu_operator_values", settings={"ipu_release": IpuRelease()}),
    ),
    (
        "ipu-operator-crd",
        Fault(hosts={"cp1/host/cluster": sites.running(ipu=None)}, settings={"ipu_operator_version": "1.1.0"}),
        Done(
            "Set ipu_operator_crd_url to the graphcore_ai_ipujobs_*.yaml",
            settings={"ipu_release": IpuRelease(crd_url="https://site/crd")},
        ),
    ),
    (
        "ipu-operator-upgrade",
        Fault(
            hosts={"cp1/host/cluster": sites.running(ipu={"operators": [GC], "jobs": []})},
            settings={"ipu_operator_version": "1.1.0", "ipu_release": ADOPTED},
        ),
        Done("set them in ipu_operator_values", settings={"ipu_release": KEPT}),
    ),
    (
        "kernel-modules",
        host("host/modules", {"macvlan": False}),
        Done("Install the full kernel package", {"w1/host/modules": {}}),
    ),
    (
        "kernel-modules",
        "a module that pods need is not to be loaded, by modprobe.d or the kernel's command line",
        Done("Remove these settings, then run modprobe -a rdma_ucm", {"w1/host/obstacles/unloadable": {}}),
    ),
    (
        "kernel-modules",
        "the kernel runs without a cgroup controller that kubelets need",
        Done("Take cgroup_disable=memory out", {"w1/host/obstacles/controllers": ["cpu", "cpuset", "memory", "pids"]}),
    ),
    (
        "disk",
        Fault(hosts={"w1/host/disk_total_mb": {"/var/lib": 500000}}),
        Done("Free 27 GB or more there", {"w1/host/disk_mb": {"/var/lib": 76000}}),
    ),
    (
        "disk",
        Fault(hosts={"w1/host/disk_total_mb": {"/var/lib": 500000}}),
        Done("set kubernetes_kubelet_config", settings=EVICTION),
    ),
    (
        "kubelet-config",
        Fault(settings={"kubelet_config": {"evictionHard": {"imagefs.availble": "5%"}}}),
        Done("Known signals are memory.available", settings=EVICTION),
    ),
    (
        "kubelet-config",
        Fault(settings={"kubelet_config": {"maxpods": 250}}),
        Done("Correct its name", settings={"kubelet_config": {"maxPods": 250}}),
    ),
    (
        "kubelet-config",
        Fault(settings={"kubelet_config": {"maxPods": "250"}}),
        Done("Correct it; in YAML, 250 is a number", settings={"kubelet_config": {"maxPods": 250}}),
    ),
    (
        "disk",
        "containerd's data is on a file system that can't carry overlayfs: NFS, or an overlay",
        Done("Mount a local ext4 or XFS", {"w1/host/obstacles/filesystem": "xfs"}),
    ),
    (
        "host-ports",
        "the firewall of a host drops what pods send",
        Done("--zone=trusted --add-source=10.244.0.0/16", {"w1/host/obstacles/firewall_sources": ["10.244.0.0/16"]}),
    ),
    (
        "cidr",
        "the pod network has the address of the hosts' DNS server",
        Done("Set fabric_pod_cidr to addresses", settings={"pod_cidr": "172.20.0.0/16"}),
    ),
    (
        "fabric-nic",
        "a bond has ports of two cards, which are no RoCE LAG",
        Done(
            "take the ports out of the bond",
            {"w1/rdma/links": [TWO_CARDS[0], {**TWO_CARDS[1], "addresses": [{"address": "10.5.0.12", "prefix": 24}]}]},
        ),
    ),
    (
        "on-master",
        "nodes have their addresses in the subnet of the fabric",
        Done("Give nodes an address of another NIC", {"w1/address": "10.88.0.12"}),
    ),
    (
        "subnet",
        "a DHCP server of the fabric may give away the addresses of pods",
        Done("into `reserved`", settings=network(reserved=["10.5.0.64/26"])),
    ),
    (
        "tunnel-offload",
        "a hypervisor drops TCP in VXLAN that its virtual NIC has divided",
        Done("Run ethtool -K eno1 tx-udp_tnl-segmentation off", {"w1/host/obstacles/tunnel_offloads": []}),
    ),
    (
        "pcie-link",
        "PCIe switches send what GPUs and NICs exchange by way of the processor",
        Done("Switch ACS off in the firmware", {"w1/rdma/redirects": []}),
    ),
    (
        "fabric-mtu",
        "all MTUs are too small for RDMA's largest packets",
        Done("such as 4200", {"w1/rdma/links/1/mtu": 4200, "w2/rdma/links/1/mtu": 4200}),
    ),
    (
        "neighbours",
        "the kernel keeps fewer neighbours than the pods of all rails have",
        Done("Set net.ipv4.neigh.default.gc_thresh3 to 16", {"w1/host/obstacles/neighbours": 16}),
    ),
    (
        "nic-policy",
        Fault(hosts={"cp1/host/cluster": sites.running(nic_policies=[OTHER_POLICY])}),
        Done("Remove rdmaSharedDevicePlugin from gpu", {"cp1/host/cluster": sites.running()}),
    ),
    (
        "network-manager",
        "NetworkManager takes the interfaces of pods for its own",
        Done("unmanaged-devices=interface-name:cali*", {"w1/host/obstacles/network_manager": False}),
    ),
    (
        "rdma-resource",
        "the kubelet keeps its data elsewhere, and the resource counts 0",
        Done("Start the kubelet without --root-dir", {"w1/host/obstacles/kubelet_directory": "/var/lib/kubelet"}),
    ),
    ("link-layer", "the master is InfiniBand", Done("Set the port to Ethernet", {f"{LINK}/link_layer": "Ethernet"})),
    ("link-layer", "the fabric NIC speaks iWARP", Done("Switch it to RoCE", {f"{LINK}/link_layer": "Ethernet"})),
    (
        "link-layer",
        "RDMA without a network device: EFA, InfiniBand without IPoIB",
        Done(
            "Set the port to Ethernet",
            {f"{LINK}/{key}": GOOD_LINK[key] for key in ("rdma_netdevs", "device")} | {"w1/rdma/lone_devices": []},
        ),
    ),
    (
        "locked-memory",
        "the host is a container that may not raise its limit of locked memory",
        Done("Raise the limit where the host is started", {"w1/host/locked_memory": "unlimited"}),
    ),
    (
        "master-name",
        Fault(settings=network(master="eno1")),
        Done("set the network's key master to another name", settings=network(master="fab0")),
    ),
    (
        "locked-memory",
        Fault(settings={"memlock_limit": "8GB"}),
        Done("Set memlock_limit to infinity, or to bytes", settings={"memlock_limit": "8G"}),
    ),
    ("memory", host("host/memory_mb", 512), Done("Add memory", {"w1/host/memory_mb": 32000})),
    (
        "networks",
        Fault(settings={"networks": ["rdma-net"]}),
        Done("{name: rdma-net}", settings={"networks": [{"name": "rdma-net"}]}),
    ),
    (
        "networks",
        Fault(settings=network(gatway="10.5.0.1")),
        Done("Did you mean gateway", settings=network(gateway="10.5.0.1")),
    ),
    (
        "networks",
        Fault(settings=network(select={"nmae": "ens*"})),
        Done("Did you mean name", settings=network(select={"name": "ens1*"})),
    ),
    ("networks", Fault(settings=network(mtu="big")), Done("Write 0 for the NIC's own", settings=network(mtu=0))),
    ("networks", Fault(settings=network(mode="l2")), Done("Use one of bridge", settings=network(mode="bridge"))),
    (
        "networks",
        Fault(settings=network(families=["ipv5"])),
        Done("Write [ipv4]", settings=network(families=["ipv4"])),
    ),
    (
        "networks",
        Fault(settings=network(hosts="kube_node")),
        Done("Write a list: [kube_node]", settings=network(hosts=["kube_node"])),
    ),
    (
        "networks",
        Fault(settings=network(reserved="10.5.0.250")),
        Done("Write a list: [10.5.0.250]", settings=network(reserved=["10.5.0.250"])),
    ),
    ("networks", Fault(settings=network(families="ipv4")), Done("Write [ipv4]", settings=network(families=["ipv4"]))),
    (
        "networks",
        Fault(settings=network(gateway="10.5.0.1/24")),
        Done("Write 10.5.0.1, without a prefix length", settings=network(gateway="10.5.0.1")),
    ),
    (
        "networks",
        Fault(settings=network(subnet="10.5.0.0")),
        Done("a CIDR such as 10.5.0.0/24", settings=network(subnet="10.5.0.0/24")),
    ),
    (
        "networks",
        Fault(settings=network(select={"interface": "ens1f0"})),
        Done("Here it is name", settings=network(select={"name": "ens1f0"})),
    ),
    (
        "networks",
        Fault(settings=network(rdma_resource="rdma-shared-a")),
        Done("such as rdma/rdma_shared_a", settings=network(rdma_resource="rdma/rdma_shared_a")),
    ),
    ("networks", Fault(settings=network(hosts=["w*"])), Done("[w1, w2]", settings=network(hosts=["w1", "w2"]))),
    ("networks", Fault(settings=network(hosts=["all"])), Done("Leave `hosts` of rdma-net out", settings=network())),
    *(
        (
            "subnet",
            Fault(settings=network(**{key: wrong(text)})),
            Done(f"Write {meant}.", settings=network(**{key: wrong(meant)})),
        )
        for key, wrong in (("reserved", lambda text: [text]), ("share", str))
        for text, meant in (
            ("10.5.0.200-210", "10.5.0.200-10.5.0.210"),
            ("10.5.0.210-10.5.0.200", "10.5.0.200-10.5.0.210"),
        )
    ),
    (
        "networks",
        Fault(settings=network(hosts=["kube_nodes"])),
        Done("Did you mean kube_node", settings=network(hosts=["kube_node"])),
    ),
    (
        "networks",
        Fault(settings=network(hosts=["cp1"])),
        Done("Name hosts of kube_node", settings=network(hosts=["w1"])),
    ),
    (
        "endpoint",
        Fault(settings={"control_plane_endpoint": "k8s_api.site:6443"}),
        Done("without underscores", settings={"control_plane_endpoint": "k8s-api.site:6443"}),
    ),
    (
        "networks",
        Fault(settings=network(hosts=["rack9"])),
        Done("Correct `hosts` of rdma-net", settings=network(hosts=["w1", "w2"])),
    ),
    (
        "node-address",
        "a node has another address in the cluster than in the plan",
        Done(
            "Set ip of the host in the inventory to 10.77.0.12",
            {"w1/address": "10.77.0.12", "w1/rdma/links/0/addresses": [{"address": "10.77.0.12", "prefix": 16}]},
        ),
    ),
    (
        "node-address",
        Fault(hosts={"w1/address": "192.0.2.12"}),
        Done("Set ip to the address at which the other hosts reach it", {"w1/address": "10.88.0.12"}),
    ),
    (
        "cluster-networks",
        "a fabric network was renamed, and the cluster still has the former one",
        Done("Set fabric_prune_networks to true", settings={"prune_networks": True}),
    ),
    (
        "cluster-nodes",
        "the cluster has a node that is not in the inventory",
        Done("ipu.fabric.remove_node", {"cp1/host/cluster/nodes": []}),
    ),
    *(
        ("cluster-nodes", "a control plane takes pods, and is not in `kube_node`", done)
        for done in (
            Done("Add the host to kube_node", {"cp1/groups": ["kube_control_plane", "kube_node"]}),
            Done(
                "kubectl taint node node11 node-role.kubernetes.io/control-plane:NoSchedule",
                {"cp1/host/cluster": sites.running(nodes=[{"name": "node11", "machine_id": ""}])},
            ),
        )
    ),
    (
        "node-ready",
        "a node of the cluster is not Ready",
        Done("kubectl describe node node12", {"cp1/host/cluster": sites.running()}),
    ),
    (
        "node-ready",
        "a node of the cluster is cordoned",
        Done("kubectl uncordon node12", {"cp1/host/cluster": sites.running()}),
    ),
    (
        "api-packages",
        "the host that speaks to the API lacks Python packages",
        Done("apt-get install python3-kubernetes python3-jmespath", {"cp1/host/lacking_packages": []}),
    ),
    (
        "kubeconfig",
        "the API of a cluster that others manage does not answer the controller",
        Done("Check that this is the address of the API, that the controller reaches it", settings={"api_silence": ""}),
    ),
    (
        "kubeconfig",
        "the kubeconfig of a cluster that others manage may only look",
        Done("Take a kubeconfig with the rights of cluster-admin", settings={"rights": []}),
    ),
    (
        "kubeconfig",
        "a cluster is managed elsewhere, and there is no kubeconfig of it",
        Done("Copy one", settings={"kubeconfig": Kubeconfig("/srv/admin.conf", "https://10.88.0.11:6443")}),
    ),
    (
        "node-distribution",
        "nodes of one cluster are made by two distributions of Kubernetes",
        Done("Take the hosts of another cluster out", gone=["w1"]),
    ),
    (
        "node-removed",
        "others deleted the node of a host",
        Done("sudo kubeadm reset --force", {"w1/host/kubelet": sites.site()["w1"]["host"]["kubelet"]}),
    ),
    (
        "node-name",
        host("host/hostname", "node_12"),
        Done("hostnamectl set-hostname node-12", {"w1/host/hostname": "node-12"}),
    ),
    (
        "node-version",
        "a node runs another Kubernetes than its cluster",
        Done("Run ipu.fabric.upgrade", {"w1/host/kubelet/version": "v1.36.3"}),
    ),
    (
        "noexec",
        "the directory of CNI plugins is mounted with noexec",
        Done("Mount /opt/cni/bin without noexec", {"w1/host/noexec": []}),
    ),
    (
        "ntp",
        "no NTP server of the site answers a host",
        Done("Open UDP 123", {"w1/host/time/servers": {"ntp1.site": True}}),
    ),
    (
        "ntp-setup",
        "another service than chrony sets the clock",
        Done("`systemctl disable --now ntpsec`", {"w1/host/time/services": []}),
    ),
    (
        "ntp-setup",
        Fault(settings={"ntp": ["ntp1.site iburst"]}),
        Done("names or addresses alone", settings={"ntp": ["ntp1.site"]}),
    ),
    (
        "on-master",
        "V-IPU is on a node's own master",
        Done("10.88.0.12:8090 in fabric_vipu_hosts", settings={"vipu_hosts": ["10.88.0.12:8090"]}),
    ),
    (
        "on-master",
        "the gateway is on a node's own master",
        Done("remove the host from it (key hosts)", settings=network(gateway="10.5.0.12", hosts=["w2"])),
    ),
    (
        "other-cluster",
        "the kubeconfig on the controller is of another cluster",
        Done("Move the file away", settings={"kubeconfig": Kubeconfig("")}),
    ),
    (
        "pcie-link",
        "a NIC's PCIe link trained at half its width",
        Done("Reseat the NIC", undone("a NIC's PCIe link trained at half its width")),
    ),
    (
        "plan-file",
        "the approved plan is another site's",
        Done("Give the file of this inventory", settings={"plan_file": APPROVED}),
    ),
    (
        "plan-moved",
        "a NIC has got another name since the plan was approved",
        Done("without fabric_plan_file", settings={"plan_file": None}),
    ),
    (
        "policy-routes",
        Fault(settings={"stack": "spiderpool"}),
        Done("Set `gateway` in fabric_networks", settings=network(gateway="10.5.0.1")),
    ),
    (
        "pool-blocks",
        "a pool gets another block size while pods have addresses of it",
        Done("their size follows from fabric_pods_per_node", settings={"pods_per_node": 8}),
    ),
    (
        "ports",
        host("host/ports_busy", [{"port": 10250, "process": "nginx"}]),
        Done("Stop that service", {"w1/host/ports_busy": []}),
    ),
    (
        "pvrdma",
        Fault(hosts={f"{LINK}/driver": "vmw_pvrdma"}),
        Done("Plan a network of its own", settings=network(hosts=["w2"])),
    ),
    ("python-version", host("host/python", "3.6.9"), Done("ansible_python_interpreter", {"w1/host/python": "3.11.2"})),
    (
        "rail-nics",
        "a NIC has another firmware than the others of its rail",
        Done("one release of the firmware", {f"{LINK}/firmware": "20.35.1012"}),
    ),
    (
        "rdma-modules",
        "ib_umad or rdma_ucm is not loaded, the resource counts 0",
        Done("modprobe -a ib_umad rdma_ucm", {"w1/rdma/modules": ["ib_uverbs", "ib_core", "ib_umad", "rdma_ucm"]}),
    ),
    (
        "rdma-resource",
        "several network devices on one PCI function, the fabric NIC not the first",
        Done("Give ens1f0 a name that comes before ens0", {f"{LINK}/function_netdevs": ["ens1f0", "ens9"]}),
    ),
    (
        "sources",
        host("host/sources", [DEAD]),
        Done("let these hosts reach this one", {"w1/host/sources": []}),
    ),
    (
        "sources",
        host("host/sources", [{**DEAD, "variable": "fabric_mirror.registry", "instead": "flannel"}]),
        Done("Or set fabric_cni to flannel", {"w1/host/sources": []}, settings={"cni": "flannel"}),
    ),
    (
        "sources",
        "the mirror of registries of a finished cluster is dead",
        Done("Start the mirror", {"w1/host/sources": []}),
    ),
    (
        "source-digest",
        "what a source serves does not have the expected digest or fingerprint",
        Done("or correct fabric_mirror: {apt: {kubernetes: {key_fingerprint: FINGERPRINT}}}", {"w1/host/sources": []}),
    ),
    (
        "release-table",
        Fault(settings={"sources": {"helm": {"url": HELM.format("4.3.2")}}}),
        Done("to an archive of Helm 3", settings={"sources": {"helm": {"url": HELM.format("3.22.0")}}}),
    ),
    (
        "release-ended",
        Fault(settings={"network_operator_version": "26.1.2"}),
        Done(
            "Set fabric_network_operator_version to a release of 26.7", settings={"network_operator_version": "26.7.1"}
        ),
    ),
    (
        "resolver",
        host("host/resolver", {"path": "/etc/resolv.conf", "servers": ["127.0.0.1"]}),
        Done(
            "Write the real servers into a file",
            {"w1/host/resolver": {"path": "/etc/real.conf", "servers": ["192.0.2.53"]}},
        ),
    ),
    (
        "service-route",
        "a host has no route to the addresses of services",
        Done("ip route add 10.96.0.0/12 dev NIC", {"w1/host/service_routes": {"10.96.0.0/12": True}}),
    ),
    (
        "shadowed-packages",
        "a kubelet or a unit from elsewhere goes before that of the package, or is masked",
        Done("Move them away", {"w1/host/shadows": []}),
    ),
    (
        "shadowed-packages",
        host("host/shadows", [{"path": "/etc/systemd/system/containerd.service", "masks": True}]),
        Done("systemctl unmask containerd.service", {"w1/host/shadows": []}),
    ),
    (
        "source-credentials",
        "a URL of the mirror has a password in it",
        Done("take the password out of the URL", settings={"sources": {"registry": "https://mirror.site"}}),
    ),
    *(
        ("sources", Fault(settings={"sources": wrong}), Done(words, settings={"sources": right}))
        for wrong, words, right in (
            (
                {"charts": {"network-operator": "https://mirror.site"}},
                "Did you mean network_operator?",
                {"charts": {"network_operator": "https://mirror.site"}},
            ),
            (
                {"calico": {"operator": "https://mirror.site/o.yaml"}},
                "Did you mean operator_url?",
                {"calico": {"operator_url": "https://mirror.site/o.yaml"}},
            ),
            (
                {"apt": {"kubernetes": {"url": "https://mirror.site"}}},
                "Did you mean uri?",
                {"apt": {"kubernetes": {"uri": "https://mirror.site"}}},
            ),
            (
                {"apt": {"kubernetes": "https://mirror.site"}},
                "Write a dictionary of uri",
                {"apt": {"kubernetes": {"uri": "https://mirror.site"}}},
            ),
            (
                {"apt": {"kubernetes": {"uri": "deb https://mirror.site /"}}},
                "without spaces: https://mirror.site",
                {"apt": {"kubernetes": {"uri": "https://mirror.site"}}},
            ),
            (
                {"apt": {"kubernetes": {"uri": "https://mirror.site", "key_fingerprint": "DEADBEEF"}}},
                "Write all 40 digits",
                {"apt": {"kubernetes": {"uri": "https://mirror.site", "key_fingerprint": "DEADBEEF" * 5}}},
            ),
            (
                {"chart_sha256": {"network-operator-26.7.1": "abc123"}},
                "Write sha256: and the 64 digits",
                {"chart_sha256": {"network-operator-26.7.1": f"sha256:{'a' * 64}"}},
            ),
            (
                {"helm": {"url": "https://mirror.site/helm"}},
                ".tar.gz at its end",
                {"helm": {"url": "https://mirror.site/helm-v3.18.0-linux-amd64.tar.gz"}},
            ),
            ({"registry": "mirror.site:5000 "}, "without spaces: mirror.site:5000", {"registry": "mirror.site:5000"}),
        )
    ),
    (
        "subnet",
        host("rdma/links/1/addresses", [{"address": "10.6.0.12", "prefix": 24}]),
        Done(
            "Plan one network for each subnet",
            settings={
                "networks": [
                    {"name": "a", "select": {"subnet": "10.5.0.0/24"}, "hosts": ["w2"]},
                    {"name": "b", "select": {"subnet": "10.6.0.0/24"}, "hosts": ["w1"]},
                ]
            },
        ),
    ),
    *(
        (
            "subnet",
            Fault(hosts={f"{LINK}/addresses": [*GOOD_LINK["addresses"], ADVERTISED]}, settings=settings),
            done,
        )
        for settings, done in (
            ({}, Done("Turn router advertisements off", {f"{LINK}/addresses": GOOD_LINK["addresses"]})),
            (
                {"stack": "spiderpool", **network(gateway="10.5.0.1")},
                Done("set accept_ra to false", settings=network(gateway="10.5.0.1", accept_ra=False)),
            ),
        )
    ),
    (
        "subnet",
        Fault(hosts={f"{LINK}/addresses": [{"address": "10.6.0.12", "prefix": 24}, *GOOD_LINK["addresses"]]}),
        Done(
            "select.subnet of rdma-net in fabric_networks: 10.5.0.0/24",
            settings=network(select={"subnet": "10.5.0.0/24"}),
        ),
    ),
    (
        "subnet",
        "the subnet has too few addresses",
        Done("set fabric_pods_per_node to 32 or less", settings={"pods_per_node": 32}),
    ),
    ("subnet", Fault(settings=network(gateway="10.9.0.1")), Done("leave it empty", settings=network())),
    (
        "networks",
        Fault(hosts={"cp1/host/cluster": sites.running(fabric_networks=[], attachments=[OTHERS])}),
        Done("Give the planned network another name", settings=network(name="rail")),
    ),
    (
        "subnet",
        Fault(settings=network(subnet="10.55.0.0/30")),  # too small, and no NIC is in it
        Done("(NICs are in 10.5.0.0/24)", settings=network(subnet="10.5.0.0/24")),
    ),
    (
        "subnet",
        Fault(settings={"pod_cidr": "10.5.0.0/16"}),
        Done("Choose another fabric_pod_cidr", settings={"pod_cidr": "10.244.0.0/16"}),
    ),
    (
        "subnet",
        Fault(settings={"networks": RAILS}),
        Done(
            "its own share of this subnet (key share)",
            settings={
                "networks": [{"name": "one", "share": "10.5.0.128/26"}, {"name": "two", "share": "10.5.0.192/26"}]
            },
        ),
    ),
    (
        "swap",
        "an agent or a script turns swap on at each boot",
        Done("Set ResourceDisk.EnableSwap=n there", {"w1/host/swap_origins": []}),
    ),
    (
        "swap",
        host("host/swap_origins", [{"path": "/etc/rc.local", "seen": "swapon /swap"}]),
        Done("Take it out of /etc/rc.local", {"w1/host/swap_origins": []}),
    ),
    ("systemd", host("host/systemd", False), Done("Boot the host with systemd", {"w1/host/systemd": True})),
    (
        "time",
        "the clock of a host is wrong",
        Done("Name the site's NTP servers in fabric_ntp", settings={"ntp": ["ntp1.site"]}),
    ),
    ("time", "the clock of a host is wrong", Done("set the clock yourself", {"w1/host/time/offset": 0})),
    ("unique-hostname", host("host/hostname", "node13"), Done("hostnamectl", {"w1/host/hostname": "node12"})),
    (
        "unique-mac",
        host("host/macs", ["0c:42:a1:00:00:0d"]),
        Done("a new MAC", {"w1/host/macs": ["0c:42:a1:00:00:0c"]}),
    ),
    (
        "unique-machine-id",
        host("host/machine_id", f"{13:032x}"),
        Done("systemd-machine-id-setup", {"w1/host/machine_id": f"{12:032x}"}),
    ),
    (
        "limit",
        Fault(settings={"inventory_groups": {"kube_node": ["w1", "w2"]}, "limit": "w1,w3"}),
        Done("Correct --limit", settings={"inventory_groups": {"kube_node": ["w1", "w2"]}, "limit": "w1,w2"}),
    ),
    (
        "limit",
        Fault(settings={"limit": "w*", "run_hosts": ["w1", "w2"]}),
        Done("with cp1 in it", settings={"limit": "cp1,w*", "run_hosts": ["cp1", "w1", "w2"]}),
    ),
    (
        "unknown-group",
        Fault(settings={"inventory_groups": {"kube_nodes": ["w1"], "kube_node": ["w2"]}}),
        Done("Did you mean kube_node", settings={"inventory_groups": {"kube_node": ["w1", "w2"]}}),
    ),
    (
        "unknown-variable",
        Fault(
            hosts={"w1/variables": ["fabric_kubernetes_versoin"]},
            settings={"site_variables": ("fabric_kubernetes_version",)},
        ),
        Done("Did you mean fabric_kubernetes_version", {"w1/variables": ["fabric_kubernetes_version"]}),
    ),
    (
        "unknown-variable",
        Fault(
            hosts={"w1/variables": ["kubernetes_version"]},
            settings={"passed_variables": {"kubernetes_version": "fabric_kubernetes_version"}},
        ),
        Done("Set fabric_kubernetes_version instead", {"w1/variables": ["fabric_kubernetes_version"]}),
    ),
    (
        "unknown-variable",
        Fault(
            hosts={"w1/variables": ["kubernetes_node_ip"]}, settings={"passed_variables": {"kubernetes_node_ip": ""}}
        ),
        Done("Remove it", {"w1/variables": []}),
    ),
    (
        "unknown-variable",
        Fault(hosts={"w1/variables": ["fabric-pods-per-node"]}, settings={"site_variables": ("fabric_pods_per_node",)}),
        Done("Did you mean fabric_pods_per_node", {"w1/variables": ["fabric_pods_per_node"]}),
    ),
    (
        "unknown-variable",
        Fault(hosts={"w1/variables": ["fabric_networks:rdma-net"]}, settings={"site_variables": ("fabric_networks",)}),
        Done("Write fabric_networks: VALUE", {"w1/variables": ["fabric_networks"]}),
    ),
    ("unobserved", host("host", {}), Done("remove it from the inventory", gone=["w1"])),
    (
        "unpinned-source",
        "nobody knows the digest of a chart",
        Done(
            "Set its publisher's SHA-256, fabric_mirror: {chart_sha256: {network-operator-26.7.1: SHA256}}",
            settings={
                "sources": {
                    "charts": {"network_operator": "https://mirror.site/charts"},
                    "chart_sha256": {"network-operator-26.7.1": "0" * 64},
                }
            },
        ),
    ),
    ("vipu", "V-IPU cannot be reached", Done("Start it", {"w1/vipu": GOOD.hosts["w1"]["vipu"], "w1/errors": []})),
    (
        "vipu",
        Fault(settings={"vipu_hosts": [{"host": "10.5.0.20", "serves": ["w1", "w22"]}]}),
        Done(
            "Name IPU hosts of the inventory there: w1, w2",
            settings={"vipu_hosts": [{"host": "10.5.0.20", "serves": ["w1", "w2"]}]},
        ),
    ),
    (
        "vipu",
        Fault(
            settings={
                "vipu_hosts": [{"host": "10.5.0.20", "serves": ["w1", "w2"]}, {"host": "10.5.0.21", "serves": ["w2"]}]
            }
        ),
        Done(
            "Take it out of `serves` of all but one",
            settings={"vipu_hosts": [{"host": "10.5.0.20", "serves": ["w1"]}, {"host": "10.5.0.21", "serves": ["w2"]}]},
        ),
    ),
    (
        "vipu",
        Fault(settings={"vipu_hosts": ["10.5.0.20", "10.5.0.21"]}),
        Done(
            "with more than one {host: ..., port: ..., serves: [inventory names]}",
            settings={"vipu_hosts": [{"host": "10.5.0.20", "serves": ["w1"]}, {"host": "10.5.0.21", "serves": ["w2"]}]},
        ),
    ),
    (
        "vipu-address",
        Fault(settings={"vipu_hosts": ["localhost"]}),
        Done("host:port in fabric_vipu_hosts", settings={"vipu_hosts": ["10.5.0.20:8090"]}),
    ),
    (
        "virtual-address",
        "the virtual address of the API can't be held by the control planes",
        Done(
            "Set fabric_control_plane_vip to a free address", {"cp1/host/vip": VIP}, {"control_plane_vip": "10.88.0.51"}
        ),
    ),
    (
        "virtual-address-in-use",
        "the virtual address of the API is another host's",
        Done(
            "Set fabric_control_plane_vip to a free address", {"cp1/host/vip": VIP}, {"control_plane_vip": "10.88.0.51"}
        ),
    ),
]


@pytest.mark.parametrize(
    ("check", "fault", "done"), DONE, ids=[f"{number} {case[0]}" for number, case in enumerate(DONE)]
)
def test_what_a_person_does(check: str, fault: t.Union[str, Fault], done: Done) -> None:
    site = faulty(fault)
    found = [each for each in site.findings(check) if done.words in each["next"]]
    assert found, [each["next"] for each in site.findings(check)]
    after = site.changed(done.hosts, done.gone, **done.settings)
    for finding in found:
        assert cured(site, after, finding), (after.findings(), finding)


@pytest.mark.parametrize("case", [*PRINTED, *DONE], ids=lambda case: case[0])
def test_allowing_as_printed(case: t.Tuple[t.Any, ...]) -> None:
    """Where it is offered the error is a warning then, and what is not offered has no effect."""
    check, site = case[0], faulty(case[1])
    offered = [each for each in site.findings(check) if each["level"] == "error" and "fabric_allow" in each["next"]]
    if check not in ALLOWABLE or not offered:
        return
    assert all(f"fabric_allow: [{check}]" in each["next"] for each in offered)
    assert check not in errors_of(site.changed({}, allow=[check]))


# ---- an upgrade -----------------------------------------------------------------------------------------------------


def upgrade(wanted: str, server: str, ready: bool = True, **nodes: str) -> t.List[Data]:
    """Findings of an upgrade of these nodes, by the releases of their kubelets."""
    hosts = sites.finished()
    names = {name: seen["host"]["hostname"] for name, seen in hosts.items()}
    hosts["cp1"]["host"]["cluster"]["version"] = server
    hosts["w1"]["host"]["sources"] = [{**DEAD, "lacks": f"kubelet {wanted}", "offers": ["1.36.3", "1.35.4"]}]
    kubelets = {**dict.fromkeys(names, server), **nodes}
    seen = {"ready": ready, "components": {}, "own_labels": []}
    listed = [{**seen, "name": names.get(name, name), "version": version} for name, version in kubelets.items()]
    return plan_upgrade(hosts, {"version": server, "nodes": listed}, wanted, [])["findings"]


UPGRADES = [
    ("upgrade-step", ("1.34.0", "1.35.4"), {}),
    ("upgrade-step", ("1.35.1", "1.35.4"), {}),
    ("upgrade-step", ("1.37.0", "1.34.9"), {}),
    ("upgrade-skew", ("1.35.5", "1.35.4"), {"w1": "1.36.1"}),
    ("upgrade-nodes", ("1.36.3", "1.35.4"), {"w9": "1.35.4"}),
]


@pytest.mark.parametrize(("check", "releases", "nodes"), UPGRADES)
def test_an_upgrade_as_printed(check: str, releases: t.Tuple[str, str], nodes: t.Dict[str, str]) -> None:
    (finding,) = [each for each in upgrade(*releases, **nodes) if each["check"] == check]
    wanted, left = dict(printed(finding["next"])).get("fabric_kubernetes_version", releases[0]), dict(nodes)
    for name in re.findall(r"fabric_remove_nodes=(\w+)", finding["next"]):
        del left[name]
    assert (str(wanted), left) != (releases[0], nodes)
    assert [each for each in upgrade(str(wanted), releases[1], **left) if each["check"] == check] == []


def test_a_node_that_is_not_ready_before_an_upgrade() -> None:
    """What makes it Ready is on the host; the commands that the advice names show it."""
    (finding,) = [each for each in upgrade("1.35.5", "1.35.4", ready=False) if each["check"] == "upgrade-ready"]
    assert {"kubectl describe node", "journalctl -u kubelet"} <= set(
        re.split(r"Run |, | and |on its host ", finding["next"])
    )
    assert [each for each in upgrade("1.35.5", "1.35.4") if each["check"] == "upgrade-ready"] == []


def test_lines_of_the_network_operator_that_may_not_be_left_out() -> None:
    """Role and plan refuse the same; each release that they name is the next step."""
    installed, wanted = "25.7.0", "26.7.1"
    charts = [f"network-operator-{installed}"]
    fault = Fault(hosts={"cp1/host/cluster": sites.running(charts=charts, version="1.32.9")})
    (finding,) = faulty(fault).findings("network-operator-upgrade")

    def step(release: str) -> str:
        return check_upgrade(defaults("network_operator", version=release), installed)

    with pytest.raises(FabricError) as refused:
        step(wanted)
    releases = re.findall(r"\d+\.\d+(?:\.\d+)?", refused.value.next_step.partition(" (")[0])
    assert releases[-1] == wanted
    assert releases == re.findall(r"\d+\.\d+(?:\.\d+)?", finding["next"])
    for release in releases:
        assert step(release) == "upgrade"
        installed = release


# Each has a test of its own.
ALONE = {"upgrade-ready"}


def test_every_finding_is_followed() -> None:
    assert {case[0] for case in [*PRINTED, *DONE, *UPGRADES]} == set(CHECKS) - ALONE
