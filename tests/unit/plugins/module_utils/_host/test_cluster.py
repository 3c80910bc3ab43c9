"""What a control plane says of its cluster, by the kubectl of a host that answers from files."""

import json

import pytest
from ansible_collections.ipu.fabric.plugins.module_utils._common.command import Done
from ansible_collections.ipu.fabric.plugins.module_utils._host import cluster, kubectl
from ansible_collections.ipu.fabric.plugins.module_utils._host.distributions import KUBEADM, Found
from ansible_collections.ipu.fabric.plugins.module_utils._kubeadm import paths

# As kubeadm 1.35 stores it.
CONFIGURATION = """\
apiServer: {}
apiVersion: kubeadm.k8s.io/v1beta4
clusterName: kubernetes
controlPlaneEndpoint: %s
kind: ClusterConfiguration
kubernetesVersion: v1.35.4
networking:
  dnsDomain: cluster.local
  podSubnet: 10.244.0.0/16,fd00:10:244::/56
  serviceSubnet: 10.96.0.0/12
proxy: {}
"""
KUBECTL = """#!/bin/sh
[ "$1 $3 $5 $6" = "--kubeconfig --request-timeout get --raw" ] || exit 64
[ -f "$2" ] || exit 65
[ -e %(folder)s/down ] && echo "The connection to the server was refused" >&2 && exit 1
file=%(folder)s/$(echo "$7" | tr / _)
[ -f "$file" ] && exec cat "$file"
echo "Error from server (NotFound): the server could not find the requested resource" >&2
exit 1
"""


def objects(*names):
    items = [{"metadata": dict(zip(("namespace", "name"), name.split("/")))} for name in names]
    return {"items": items}


@pytest.fixture
def host(tmp_path, monkeypatch):
    """A control plane whose API has what a test writes into files."""
    api = tmp_path / "api"
    api.mkdir()
    (tmp_path / "kubectl").write_text(KUBECTL % {"folder": api})
    (tmp_path / "kubectl").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    admin = tmp_path / paths.ADMIN[1:]
    admin.parent.mkdir(parents=True)
    admin.touch()

    def answer(path, value):
        (api / path.replace("/", "_")).write_text(json.dumps(value))

    answer("/version", {"gitVersion": "v1.35.4"})
    configuration = {"data": {"ClusterConfiguration": CONFIGURATION % "10.88.0.11:6443"}}
    answer("/api/v1/namespaces/kube-system/configmaps/kubeadm-config", configuration)
    addresses = [{"type": "InternalIP", "address": "10.88.0.11"}, {"type": "Hostname", "address": "cp1"}]
    node = {"metadata": {"name": "cp1"}, "status": {"addresses": addresses, "nodeInfo": {"machineID": "id-cp1"}}}
    answer("/api/v1/nodes", {"items": [node]})
    answer("/apis/apps/v1/daemonsets", objects("kube-system/kube-proxy", "kube-flannel/kube-flannel-ds"))
    charts = [{"helm.sh/chart": "gpu-operator-26.7.0"}, {"helm.sh/chart": "gpu-operator-26.7.0"}, {"app": "own"}]
    image = [{"image": "nvcr.io/nvidia/cloud-native/network-operator:v26.7.0"}]
    operator = {"namespace": "nets", "name": "o", "annotations": {"meta.helm.sh/release-name": "mine"}}
    deployments = [
        {"metadata": {"name": "own"}},
        {"metadata": operator, "spec": {"template": {"spec": {"containers": image}}}},
        *({"metadata": {"name": "a", "labels": one}} for one in charts),
    ]
    answer("/apis/apps/v1/deployments", {"items": deployments})
    return tmp_path, answer


def test_a_cluster(host):
    root, _answer = host
    seen = cluster.read_cluster(str(root))
    assert seen == {
        "present": True,
        "answered": True,
        "unfinished": False,
        "error": "",
        "version": "1.35.4",
        "endpoint": "10.88.0.11:6443",
        "pod_cidr": "10.244.0.0/16,fd00:10:244::/56",
        "service_cidr": "10.96.0.0/12",
        "pod_networks": [{"name": "flannel", "seen": "DaemonSet kube-flannel/kube-flannel-ds"}],
        "nv_ipam_pools": [],
        "nodes": [{"name": "cp1", "machine_id": "id-cp1", "addresses": ["10.88.0.11"]}],
        "ipu": None,
        "fabric_networks": [],
        "charts": ["gpu-operator-26.7.0"],
        "network_operators": ["nets/mine"],
        "built_here": False,
        "built_elsewhere": True,
        "multus": [],
    }
    assert sorted(path.name for path in root.iterdir()) == ["api", "etc", "kubectl"]


CONTROL_PLANE = {"labels": {"node-role.kubernetes.io/control-plane": ""}}
TAINT = {"key": "node-role.kubernetes.io/control-plane", "effect": "NoSchedule"}
STOPPED = {"type": "Ready", "status": "Unknown", "reason": "NodeStatusUnknown", "message": "Kubelet stopped."}


@pytest.mark.parametrize(
    ("metadata", "spec", "status", "found"),
    [
        ({}, {}, {}, {}),
        ({}, {}, {"conditions": [{"type": "Ready", "status": "True"}]}, {}),
        ({}, {}, {"conditions": [STOPPED]}, {"not_ready": "NodeStatusUnknown: Kubelet stopped."}),
        ({}, {"unschedulable": True}, {}, {"cordoned": True}),
        (CONTROL_PLANE, {"taints": [TAINT]}, {}, {}),
        (CONTROL_PLANE, {"taints": [{**TAINT, "effect": "PreferNoSchedule"}]}, {}, {"untainted": True}),
        (CONTROL_PLANE, {}, {}, {"untainted": True}),
    ],
)
def test_what_keeps_pods_away_from_a_node(metadata, spec, status, found):
    node = {"metadata": {"name": "w1", **metadata}, "spec": spec, "status": status}
    assert cluster.node_identity(node) == {"name": "w1", "machine_id": "", "addresses": [], **found}


def test_namespaces_whose_pods_may_not_do_everything(host):
    root, answer = host
    key = "pod-security.kubernetes.io/enforce"
    labels = {"default": {"a": "b"}, "jobs": {key: "baseline"}, "own": {key: "privileged"}}
    items = [{"metadata": {"name": name, "labels": given}} for name, given in labels.items()]
    answer("/api/v1/namespaces", {"items": [*items, {"metadata": {"name": "bare"}}]})
    assert cluster.read_cluster(str(root))["pod_security"] == {"jobs": "baseline"}


def test_each_multus(host):
    """By its images, as some have another name, and the thick one a plain container of another image before it."""
    root, answer = host
    images = {
        "kube-system/kube-multus-ds": {"containers": ["ghcr.io/k8snetworkplumbingwg/multus-cni:v4.2.2-thick"]},
        "kube-system/rke2-multus": {
            "initContainers": ["rancher/hardened-cni-plugins:v1.7"],
            "containers": ["rancher/hardened-multus-cni@sha256:00"],
        },
        "own/network": {"containers": ["registry:5000/x/multus"]},
        "own/multus": {"containers": ["registry:5000/own/multus-proxy:1"]},
    }
    items = [
        {
            "metadata": dict(zip(("namespace", "name"), place.split("/"))),
            "spec": {
                "template": {"spec": {part: [{"image": image} for image in found] for part, found in spec.items()}}
            },
        }
        for place, spec in images.items()
    ]
    answer("/apis/apps/v1/daemonsets", {"items": items})
    found = cluster.read_cluster(str(root))["multus"]
    assert found == ["kube-system/kube-multus-ds", "kube-system/rke2-multus", "own/network"]


def test_attachments_that_take_a_nic_or_an_address(host):
    root, answer = host
    addresses = [{"address": "10.5.0.200/24"}, {"address": "fd00::9"}, {"address": "x"}, {}]
    static = {"type": "static", "addresses": addresses}
    configs = {
        "ipvlan": {"type": "ipvlan", "master": "ens1f0", "mode": "l3"},
        "chain": {"plugins": [{"type": "tuning"}, {"type": "host-device", "pciBusID": "0000:81:00.0"}]},
        "static": {"type": "bridge", "ipam": static},
        "pool": {"type": "bridge", "ipam": {"type": "whereabouts", "range": "10.5.0.0/24"}},
        "empty": [],
    }
    items = [
        {"metadata": {"name": name, "namespace": "jobs"}, "spec": {"config": json.dumps(config)}}
        for name, config in configs.items()
    ]
    items += [{"metadata": {"name": "own"}}, {"metadata": {"name": "bad"}, "spec": {"config": "{"}}]
    answer("/apis/k8s.cni.cncf.io/v1/network-attachment-definitions", {"items": items})
    seen = [tuple(each.values()) for each in cluster.read_cluster(str(root))["attachments"]]
    assert seen == [
        ("jobs", "ipvlan", "ipvlan", "ens1f0", "l3", []),
        ("jobs", "chain", "host-device", "0000:81:00.0", "", []),
        ("jobs", "static", "bridge", "", "", ["10.5.0.200", "fd00::9"]),
        ("jobs", "pool", "bridge", "", "", [], {"type": "whereabouts", "range": "10.5.0.0/24"}),
    ]


def test_nics_of_dra(host):
    root, answer = host
    assert "dra_nics" not in cluster.read_cluster(str(root))
    rail = {
        "name": "0000-81-00-0",
        "attributes": {"dra.net/ifName": {"string": "ens1f0"}, "pciAddress": {"string": "0000:81:00.0"}},
    }
    bare = {"name": "ib", "attributes": {"dra.net/rdma": {"bool": True}}}
    slices = [
        {"driver": "gpu.nvidia.com", "pool": {"name": "w1"}, "nodeName": "w1", "devices": [{"name": "gpu-0"}]},
        {"driver": "dra.net", "pool": {"name": "w1"}, "nodeName": "w1", "devices": [rail, bare]},
        {"driver": "dra.net", "pool": {"name": "w2"}, "nodeName": "w2"},
    ]
    answer("/apis/resource.k8s.io/v1/resourceslices", {"items": [{"spec": each} for each in slices]})
    result = {"driver": "dra.net", "pool": "w1", "device": "0000-81-00-0", "request": "nic"}
    allocation = {"devices": {"results": [result, {**result, "pool": "w2"}]}}
    held = {"metadata": {"namespace": "jobs", "name": "rail"}, "status": {"allocation": allocation}}
    waiting = {"metadata": {"namespace": "jobs", "name": "waits"}}
    answer("/apis/resource.k8s.io/v1/resourceclaims", {"items": [held, waiting]})
    assert [tuple(each.values()) for each in cluster.read_cluster(str(root))["dra_nics"]] == [
        ("dra.net", "w1", "ens1f0", "0000:81:00.0", ["jobs/rail"]),
        ("dra.net", "w1", "", "", []),
    ]


def test_policies_of_the_network_operator(host):
    root, answer = host
    assert "nic_policies" not in cluster.read_cluster(str(root))
    ours = {"name": "nic-cluster-policy", "managedFields": [{"manager": "ipu.fabric", "operation": "Apply"}]}
    theirs = {"name": "gpu", "managedFields": [{"manager": "kubectl-create", "operation": "Update"}]}
    path = "/apis/mellanox.com/v1alpha1"
    answer(f"{path}/nicclusterpolicies", {"items": [{"metadata": ours, "spec": {"nvIpam": {"image": "a"}}}]})
    spec = {"nodeSelector": {"gpu": "yes"}, "rdmaSharedDevicePlugin": {"image": "a"}}
    answer(f"{path}/nicnodepolicies", {"items": [{"metadata": theirs, "spec": spec}]})
    assert [tuple(each.values()) for each in cluster.read_cluster(str(root))["nic_policies"]] == [
        ("NicClusterPolicy", "nic-cluster-policy", [], {}, True),
        ("NicNodePolicy", "gpu", ["rdmaSharedDevicePlugin"], {"gpu": "yes"}, False),
    ]


def test_the_blocks_of_nv_ipam(host):
    root, answer = host
    spec = {"subnet": "10.5.0.0/24", "perNodeBlockSize": 8}
    status = {"allocations": [{"nodeName": "w1", "startIP": "10.5.0.1", "endIP": "10.5.0.8"}]}
    items = [
        {"metadata": {"name": "rail"}, "spec": spec, "status": status},
        {"metadata": {"name": "new"}, "spec": spec},
    ]
    answer("/apis/nv-ipam.nvidia.com/v1alpha1/ippools", {"items": items})
    assert cluster.read_cluster(str(root))["nv_ipam_pools"] == [
        {"name": "rail", "subnet": "10.5.0.0/24", "block_size": 8, "blocks": {"w1": "10.5.0.1-10.5.0.8"}},
        {"name": "new", "subnet": "10.5.0.0/24", "block_size": 8, "blocks": {}},
    ]


def test_the_networks_of_both_stacks(host):
    root, answer = host
    answer("/apis/mellanox.com/v1alpha1/macvlannetworks", {"items": [{"metadata": {"name": "rail"}}]})
    several = [{"metadata": {"name": "rail", "namespace": each}} for each in ("default", "ml")]
    answer("/apis/spiderpool.spidernet.io/v2beta1/spidermultusconfigs", {"items": several})
    found = cluster.read_cluster(str(root))["fabric_networks"]
    assert [(each["stack"], each["name"]) for each in found] == [
        ("network_operator", "rail"), ("spiderpool", "rail"), ("spiderpool", "rail"),
    ]  # fmt: skip


def test_calico_by_its_operator_and_without(host):
    root, answer = host
    answer("/apis/apps/v1/daemonsets", objects("kube-system/calico-node", "calico-system/csi-node-driver"))
    answer("/apis/operator.tigera.io/v1/installations", {"items": [{"metadata": {"name": "default"}}]})
    assert cluster.read_cluster(str(root))["pod_networks"] == [
        {"name": "calico", "seen": "DaemonSet kube-system/calico-node"},
        {"name": "calico", "seen": "Installation default"},
    ]


@pytest.mark.parametrize(
    ("data", "exclusive"), [({"cni-exclusive": "true"}, True), ({"cni-exclusive": "false"}, None), ({}, None)]
)
def test_cilium_that_leaves_no_room_for_others(host, data, exclusive):
    root, answer = host
    answer("/apis/apps/v1/daemonsets", objects("cilium/cilium"))
    answer("/api/v1/namespaces/cilium/configmaps/cilium-config", {"data": data})
    (seen,) = cluster.read_cluster(str(root))["pod_networks"]
    assert (seen["name"], seen.get("exclusive")) == ("cilium", exclusive)


@pytest.mark.parametrize(
    ("env", "methods"),
    [
        ({"IP": "autodetect", "IP6": "none"}, {"IP_AUTODETECTION_METHOD": "first-found"}),
        ({"IP_AUTODETECTION_METHOD": "can-reach=$(NODEIP)"}, {"IP_AUTODETECTION_METHOD": "can-reach=$(NODEIP)"}),
        ({"IP": None}, {}),
        ({"IP": "none", "IP6": "autodetect", "IP6_AUTODETECTION_METHOD": "interface=eth.*"},
         {"IP6_AUTODETECTION_METHOD": "interface=eth.*"}),
    ],
)  # fmt: skip
def test_how_calico_finds_the_address_of_a_host(host, env, methods):
    root, answer = host
    values = [{"name": name, **({"value": value} if value else {"valueFrom": {}})} for name, value in env.items()]
    container = {"name": "calico-node", "env": values}
    listed = objects("kube-system/calico-node")
    listed["items"][0]["spec"] = {"template": {"spec": {"containers": [{"name": "other"}, container]}}}
    answer("/apis/apps/v1/daemonsets", listed)
    (seen,) = cluster.read_cluster(str(root))["pod_networks"]
    assert seen.get("autodetection", {}) == methods


def test_a_cluster_that_kubeadm_did_not_make(host):
    root, _answer = host
    (root / "api/_api_v1_namespaces_kube-system_configmaps_kubeadm-config").unlink()
    seen = cluster.read_cluster(str(root))
    assert (seen["answered"], seen["version"], seen["endpoint"], seen["pod_cidr"]) == (True, "1.35.4", "", "")


@pytest.mark.parametrize("unfinished", [False, True])
def test_an_api_server_that_is_down(host, unfinished):
    root, _answer = host
    (root / "api/down").touch()
    if unfinished:
        (root / cluster.UNFINISHED).parent.mkdir(parents=True)
        (root / cluster.UNFINISHED).touch()
    seen = cluster.read_cluster(str(root))
    assert (seen["answered"], seen["unfinished"]) == (False, unfinished)
    assert seen["error"] == "The connection to the server was refused"


def test_a_host_without_kubectl_is_no_silent_one(host, monkeypatch):
    root, _answer = host
    monkeypatch.setattr(kubectl, "run_program", lambda *_, **__: Done(127, "", "not found"))
    assert cluster.read_cluster(str(root))["error"] == "not found"


def test_a_host_that_is_no_control_plane(tmp_path):
    assert not any(cluster.read_cluster(str(tmp_path)).values())


@pytest.mark.parametrize(
    ("written", "endpoint"),
    [("10.88.0.11:6443", "10.88.0.11:6443"), ("'[fd00::1]:6443'", "[fd00::1]:6443"), ('""', ""), ("", "")],
)
def test_settings_of_kubeadm(written, endpoint):
    text = CONFIGURATION % written
    assert cluster.setting(text, "controlPlaneEndpoint") == endpoint
    assert cluster.setting(text, "serviceSubnet") == "10.96.0.0/12"
    assert cluster.setting(text, "podSubnets") == ""


def test_the_files_are_those_of_kubeadm_and_its_marker():
    kubeadm = Found(KUBEADM, KUBEADM.data, "/")
    assert [kubeadm.path(path) for path in (*KUBEADM.admins, KUBEADM.kubelet)] == [paths.ADMIN, paths.KUBELET]
    assert f"/{cluster.UNFINISHED}" == paths.MARKER
