import json

import pytest
from ansible_collections.ipu.fabric.plugins.module_utils._kube import multus


def pod(name, namespace="default", **annotations):
    return {"metadata": {"name": name, "namespace": namespace, "annotations": annotations}}


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("", set()),
        ("rdma-net", {("default", "rdma-net")}),
        ("rdma-net@net7, jobs/other", {("default", "rdma-net"), ("jobs", "other")}),
        ('[{"name": "a"}, {"name": "b", "namespace": "jobs"}]', {("default", "a"), ("jobs", "b")}),
        ("[broken", set()),
        ("[1]", set()),
        (" , ", set()),
    ],
)
def test_requested(text, names):
    assert multus.networks_of(pod("p", **{multus.NETWORKS: text})) == names


@pytest.mark.parametrize("key", multus.REQUESTS)
def test_networks_of_a_pod(key):
    assert multus.networks_of(pod("p", "jobs", **{key: "a"})) == {("jobs", "a")}
    assert multus.networks_of({"metadata": {"namespace": "jobs", "name": "p"}}) == set()


@pytest.mark.parametrize("key", multus.REQUESTS)
@pytest.mark.parametrize(
    ("text", "pools"),
    [
        ("", set()),
        ("rail, jobs/old@net7", set()),
        ('[{"name": "a"}]', set()),
        ('[{"name": "a", "cni-args": {"poolNames": ["x", "y"]}}]', {("IPPool", "x"), ("IPPool", "y")}),
        ('[{"name": "a", "cni-args": {"poolNames": ["x"], "poolType": "cidrpool"}}]', {("CIDRPool", "x")}),
        ('[{"name": "a", "cni-args": null}, {"name": "b", "cni-args": {"poolNames": null}}]', set()),
        ("[broken", set()),
    ],
)
def test_named_pools_of_a_pod(key, text, pools):
    assert multus.named_pools(pod("p", **{key: text})) == pools


STATUS = ({"name": "cbr0", "default": True, "ips": ["10.244.1.5"]}, {"name": "default/rail", "ips": ["10.5.0.130"]})


def running(status=STATUS, ips=("10.244.1.5",), **more):
    annotations = {
        multus.NETWORKS: "rail",
        multus.NETWORK_STATUS: status if isinstance(status, str) else json.dumps(status),
    }
    attached = pod("p", **annotations)
    return {**attached, "status": {"phase": "Running", "podIPs": [{"ip": ip} for ip in ips]}, "spec": {}, **more}


@pytest.mark.parametrize(
    ("pod", "fault"),
    [
        (running(), ""),
        (running(ips=["10.244.1.5", "fd00::5"]), ""),
        (running(status=STATUS[:1]), "did not attach"),
        (running(status=""), "did not attach"),
        (running(status="{broken"), "did not attach"),
        (running(ips=["10.244.1.9"]), "recreated without multus: multus gave it 10.244.1.5, now it has 10.244.1.9"),
        (running(status="", ips=[]), ""),
        (running(status="", spec={"hostNetwork": True}), ""),
        ({**running(status=""), "status": {"phase": "Pending"}}, ""),
    ],
)
def test_a_running_pod_without_its_network(pod, fault):
    assert fault in multus.network_fault(pod, ("default", "rail"))
    assert bool(fault) == bool(multus.network_fault(pod, ("default", "rail")))
    assert multus.network_fault(pod, ("default", "other")) == ""


NETWORK = {
    "name": "rdma-net",
    "namespace": "default",
    "master": "ens1f0",
    "mode": "bridge",
    "mtu": 1500,
    "ipam": {"a": [1]},
}
CONFIG = {
    "cniVersion": "0.3.1",
    "type": "macvlan",
    "master": "ens1f0",
    "mode": "bridge",
    "mtu": 1500,
    "ipam": {"a": [1]},
}


def nad(**changes):
    return {"spec": {"config": json.dumps({**CONFIG, **changes})}}


def of_resource(resource, **changes):
    return {"metadata": {"annotations": {multus.RESOURCE: resource}}, **nad(mtu=None, **changes)}


def chain(*plugins):
    found = of_resource("nvidia.com/a", type="sriov")
    found["spec"]["config"] = json.dumps({"plugins": [json.loads(found["spec"]["config"]), *plugins]})
    return found


IPOIB = {**NETWORK, "cni": "ipoib"}
SRIOV = {**NETWORK, "cni": "sriov", "master": "", "resource": "nvidia.com/a", "mtu": 0}


@pytest.mark.parametrize(
    ("found", "network", "fault"),
    [
        (nad(), NETWORK, ""),
        (nad(mtu=None), {**NETWORK, "mtu": 0}, ""),
        (None, NETWORK, "does not exist"),
        ({"spec": {"config": '{"ipam":broken}'}}, NETWORK, "is not valid JSON"),
        ({"spec": {}}, NETWORK, "is not valid JSON"),
        (nad(master="ens2f0"), NETWORK, "master='ens2f0', but 'ens1f0' is planned"),
        (nad(mtu=9000), NETWORK, "mtu=9000, but 1500 is planned"),
        (nad(mtu=9000), {**NETWORK, "mtu": 0}, "mtu=9000, but the master's is planned"),
        (nad(ipam={}), NETWORK, "ipam={}"),
        (nad(type="ipvlan"), NETWORK, "type='ipvlan'"),
        ({"spec": {"config": "[]"}}, NETWORK, "is not a CNI configuration: []"),
        ({"spec": {"config": '{"plugins": [1]}'}}, NETWORK, "is not a CNI configuration"),
        (nad(type="ipoib"), IPOIB, ""),
        (nad(type="ipoib", master="ib1"), IPOIB, "master='ib1', but 'ens1f0' is planned"),
        (of_resource("nvidia.com/a", type="sriov", vlan=0), SRIOV, ""),
        (
            of_resource("nvidia.com/b", type="sriov"),
            SRIOV,
            "asks for the resource nvidia.com/b, but nvidia.com/a is planned",
        ),
        (nad(type="sriov"), SRIOV, "asks for the resource (none)"),
        (chain({"type": "sbr"}), {**SRIOV, "meta_plugins": [{"type": "sbr"}]}, ""),
        (chain({"type": "sbr"}), SRIOV, 'has the plugins [{"type": "sbr"}], but [] are planned'),
        (
            chain(),
            {**SRIOV, "meta_plugins": [{"type": "sbr"}]},
            'has the plugins [], but [{"type": "sbr"}] are planned',
        ),
    ],
)
def test_nad_faults(found, network, fault):
    faults = multus.nad_faults(found, network)
    assert fault in " ".join(faults)
    assert bool(faults) == bool(fault)
