"""The plan of a cluster that others built: what its objects say, one table for each kind of them."""

from __future__ import annotations

import dataclasses
import json
import typing as t

import pytest
from ansible_collections.ipu.fabric.plugins.module_utils._common.result import FabricError
from ansible_collections.ipu.fabric.plugins.module_utils._model.plan import Plan
from ansible_collections.ipu.fabric.plugins.module_utils._plan.derived import ClusterObjects, derive_plan
from ansible_collections.ipu.fabric.plugins.module_utils._plan.derived_addresses import Pools, selects
from ansible_collections.ipu.fabric.plugins.module_utils._plan.report import as_text

Object = t.Dict[str, t.Any]
HOST_LOCAL = {"type": "host-local", "subnet": "10.5.0.0/24", "rangeStart": "10.5.0.100", "rangeEnd": "10.5.0.200"}
WHEREABOUTS = {"type": "whereabouts", "range": "10.6.0.0/24", "range_start": "10.6.0.128", "gateway": "10.6.0.1"}
STATIC = {"type": "static", "addresses": [{"address": "10.7.0.9/24"}]}
BLOCKS = {"type": "nv-ipam", "poolName": "rail"}
SPIDER = {"type": "spiderpool", "default_ipv4_ippool": ["rail-v4"]}
SHARED = {"configList": [{"resourceName": "rdma_a", "rdmaHcaMax": 63, "selectors": {"ifNames": ["ens1f0"]}}]}
LOOSE = {"configList": [{"resourceName": "rdma_a", "selectors": {"vendors": ["15b3"]}}]}
DEVICES = {"resourceList": [{"resourceName": "vfs", "selectors": {"isRdma": True, "drivers": ["mlx5_core"]}}]}


def node(name: str, *resources: str, **spec: t.Any) -> Object:
    status = {
        "allocatable": dict.fromkeys(resources, "63"),
        "addresses": [{"type": "InternalIP", "address": "192.168.0.9"}, {"type": "Hostname", "address": name}],
    }
    return {"metadata": {"name": name, "labels": {"rack": name[-1]}}, "spec": spec, "status": status}


def nad(name: str, ipam: object, place: str = "default", chain: t.Sequence[Object] = (), **config: t.Any) -> Object:
    plugin = {"type": "macvlan", "master": "ens1f0", "ipam": ipam, **config}
    text = json.dumps({"cniVersion": "0.3.1", "plugins": [plugin, *chain]} if chain else plugin)
    return {"metadata": {"name": name, "namespace": place}, "spec": {"config": text}}


def annotated(attachment: Object, resource: str) -> Object:
    attachment["metadata"]["annotations"] = {"k8s.v1.cni.cncf.io/resourceName": resource}
    return attachment


def owned(attachment: Object, kind: str) -> Object:
    attachment["metadata"]["ownerReferences"] = [{"kind": kind, "name": attachment["metadata"]["name"]}]
    return attachment


def policy(kind: str = "NicClusterPolicy", **spec: t.Any) -> Object:
    return {"kind": kind, "metadata": {"name": "any"}, "spec": spec}


def rdma_plugin(config: Object, kind: str = "NicClusterPolicy", **spec: t.Any) -> Object:
    return policy(kind, rdmaSharedDevicePlugin={"config": json.dumps(config)}, **spec)


def cluster(*attachments: Object, **more: t.Any) -> ClusterObjects:
    empty = ClusterObjects(
        version="1.35.4",
        endpoint="api:6443",
        nodes=[
            node("cp1", taints=[{"key": "node-role.kubernetes.io/control-plane", "effect": "NoSchedule"}]),
            node("w1", podCIDRs=["10.244.0.0/24", "fd00:244::/64"]),
            node("w2", podCIDRs=["10.244.1.0/24"]),
        ],
        attachments=attachments,
        networks=[],
        pools=Pools([], []),
        policies=[],
        config_maps=[],
        multus=[],
        pods=[],
    )
    return dataclasses.replace(empty, **more)


def told(plan: Plan) -> t.Dict[str, str]:
    return {each["network"]: each["why"] for each in plan["not_proved"]}


# ---- addresses ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ipam", "subnets", "notes"),
    [
        (HOST_LOCAL, ["10.5.0.0/24 10.5.0.100 10.5.0.200 101"], ["host-local allocates on each node"]),
        (
            {"type": "host-local", "subnet": "10.5.0.0/29"},
            ["10.5.0.0/29 10.5.0.2 10.5.0.6 5"],
            ["host-local allocates"],
        ),
        (
            {"type": "host-local", "ranges": [[{"subnet": "10.5.0.0/29"}], [{"subnet": "fd00:5::/126"}]]},
            ["10.5.0.0/29 10.5.0.2 10.5.0.6 5", "fd00:5::/126 fd00:5::2 fd00:5::2 1"],
            ["host-local allocates"],
        ),
        (
            {"type": "host-local", "ranges": [[{"subnet": "10.5.0.0/29"}, {"subnet": "10.9.0.0/29"}]]},
            [],
            ["10.5.0.0/29 or 10.9.0.0/29", "host-local allocates"],
        ),
        (WHEREABOUTS, ["10.6.0.0/24 10.6.0.128 10.6.0.254 127 via 10.6.0.1"], []),
        (
            {"type": "whereabouts", "range": "10.6.0.9-10.6.0.12/24", "exclude": ["10.6.0.10/31"]},
            ["10.6.0.0/24 10.6.0.9 10.6.0.12 2"],
            [],
        ),
        (
            {"type": "whereabouts", "ipRanges": [{"range": "fd00:6::/120"}, {"range": "10.6.0.0/29"}]},
            ["10.6.0.0/29 10.6.0.1 10.6.0.6 6", "fd00:6::/120 fd00:6::1 fd00:6::fe 254"],
            [],
        ),
        (STATIC, ["10.7.0.0/24 10.7.0.9 10.7.0.9 1"], []),
        (BLOCKS, ["10.8.0.0/24 10.8.0.2 10.8.0.199 198 via 10.8.0.1"], []),
        ({"type": "nv-ipam", "poolName": "racks", "poolType": "cidrpool"}, [], ["each node has a subnet of its own"]),
        (SPIDER, ["172.16.11.0/24 172.16.11.128 172.16.11.253 126 via 172.16.11.1"], []),
        ({"type": "spiderpool"}, ["172.16.12.0/24 172.16.12.5 172.16.12.5 1"], []),
        ({"type": "dhcp"}, [], ["the API shows no range of dhcp"]),
    ],
)
def test_addresses_by_ipam(ipam: Object, subnets: t.List[str], notes: t.List[str]) -> None:
    plan = derive_plan(cluster(nad("net", ipam), pools=POOLS))
    (network,) = plan["networks"]
    seen = [
        "{cidr} {range_start} {range_end} {capacity}".format(**each) + f" via {each['gateway']}" * bool(each["gateway"])
        for each in network["subnets"]
    ]
    assert seen == subnets
    assert network["subnet"] == (network["subnets"] or [None])[0]
    assert network["ipam"] == ipam
    why = [each["why"] for each in plan["not_proved"]]
    assert [text[: len(part)] if part[0] != "1" else part for text, part in zip(why, notes)] == notes
    assert len(why) == len(notes)
    assert not any(each["whole"] for each in plan["not_proved"])


POOLS = Pools(
    [
        {
            "kind": "IPPool",
            "metadata": {"name": "rail", "namespace": "nvidia-network-operator"},
            "spec": {
                "subnet": "10.8.0.0/24",
                "perNodeBlockSize": 32,
                "gateway": "10.8.0.1",
                "exclusions": [{"startIP": "10.8.0.200", "endIP": "10.8.0.255"}],
            },
        },
        {
            "kind": "CIDRPool",
            "metadata": {"name": "racks", "namespace": "nvidia-network-operator"},
            "spec": {"cidr": "10.9.0.0/16", "perNodeNetworkPrefix": 31},
        },
    ],
    [
        {
            "metadata": {"name": "rail-v4"},
            "spec": {
                "subnet": "172.16.11.0/24",
                "ips": ["172.16.11.128-172.16.11.254"],
                "excludeIPs": ["172.16.11.254"],
                "gateway": "172.16.11.1",
            },
        },
        {"metadata": {"name": "any"}, "spec": {"subnet": "172.16.12.0/24", "ips": ["172.16.12.5"], "default": True}},
    ],
)


@pytest.mark.parametrize(
    ("attachment", "more", "why", "fault"),
    [
        (nad("net", {}), {}, "no IPAM", False),
        (nad("net", {"type": "static"}), {}, "brings its address in its annotation", False),
        (nad("net", STATIC), {"pods": [("default", "job")]}, "default/job has its only address", False),
        (nad("net", {"type": "nv-ipam", "poolName": "gone"}), {}, "no IPPool gone", True),
        (nad("net", {"type": "nv-ipam"}), {}, "no pool for it", True),
        (nad("net", {"type": "spiderpool", "default_ipv4_ippool": ["gone"]}), {}, "no pool gone", True),
        (nad("net", {"type": "whereabouts", "range": "10.6.0.0/33"}), {}, "whereabouts is wrong", True),
        (nad("net", {**WHEREABOUTS, "exclude": ["10.6.0.0/24"]}), {}, "no address for a pod", True),
        (nad("net", HOST_LOCAL, type="bridge"), {}, "CNI plugin is bridge", False),
        (nad("net", HOST_LOCAL, linkInContainer=True), {}, "interface inside its own pods", False),
        ({"metadata": {"name": "net", "namespace": "default"}}, {}, "a file on the nodes", False),
        (
            {"metadata": {"name": "net", "namespace": "default"}, "spec": {"config": "{"}},
            {},
            "its CNI configuration can't be read",
            True,
        ),
        (nad("net", HOST_LOCAL, type="sriov"), {}, "no annotation that names its resource", False),
        (annotated(nad("net", HOST_LOCAL, type="sriov"), "a.b/eth"), {}, "nothing says that a.b/eth has RDMA", False),
        (annotated(nad("net", HOST_LOCAL), "rdma/gone"), {}, "no uncordoned node has rdma/gone", True),
    ],
)
def test_left_out(attachment: Object, more: Object, why: str, fault: bool) -> None:
    """Beside one that can be proved, so that there is a plan."""
    attachment["metadata"]["name"] = "net"
    pods = [
        {
            "metadata": {"namespace": place, "name": name, "annotations": {"k8s.v1.cni.cncf.io/networks": "net@net7"}},
            "spec": {},
        }
        for place, name in more.get("pods", ())
    ]
    plan = derive_plan(cluster(attachment, nad("good", WHEREABOUTS), pods=pods, pools=POOLS))
    assert [network["name"] for network in plan["networks"]] == ["good"]
    (found,) = plan["not_proved"]
    assert (found["network"], found["whole"], found["fault"]) == ("default/net", True, fault)
    assert why in found["why"]
    assert found["next"] or not fault


def test_pods_may_name_their_pools_themselves() -> None:
    plan = derive_plan(cluster(nad("a", {"type": "spiderpool"}), nad("b", WHEREABOUTS), pools=Pools([], [])))
    (found,) = plan["not_proved"]
    assert (found["network"], found["fault"]) == ("default/a", False)
    assert "names no SpiderIPPool" in found["why"]


def test_a_pool_for_some_pods_is_not_for_those_of_the_proof() -> None:
    pools = [{"metadata": {"name": "rail-v4"}, "spec": {**POOLS.own[0]["spec"], "namespaceName": ["jobs"]}}]
    plan = derive_plan(cluster(nad("a", SPIDER), nad("b", WHEREABOUTS), pools=Pools([], pools)))
    assert "for some pods only (namespaceName)" in told(plan)["default/a"]


# ---- RDMA -----------------------------------------------------------------------------------------------------------


RDMA_NODES = [node("w1", "rdma/rdma_a", "nvidia.com/vfs"), node("w2", "rdma/rdma_a"), node("w3")]


@pytest.mark.parametrize(
    ("attachment", "more", "resource", "hosts", "note"),
    [
        (nad("net", WHEREABOUTS), {"policies": [rdma_plugin(SHARED)]}, "rdma/rdma_a", ["w1", "w2"], ""),
        (nad("net", WHEREABOUTS, master="ens1f0.100"), {"policies": [rdma_plugin(SHARED)]}, "rdma/rdma_a",
         ["w1", "w2"], ""),
        (nad("net", WHEREABOUTS, master="eth7"), {"policies": [rdma_plugin(SHARED)]}, "", ["w1", "w2", "w3"], ""),
        (nad("net", WHEREABOUTS), {"policies": [rdma_plugin(LOOSE)]}, "rdma/rdma_a", ["w1", "w2"],
         "rdma_a is assumed to be its resource"),
        (
            nad("net", WHEREABOUTS),
            {"policies": [rdma_plugin({"configList": [*LOOSE["configList"], {"resourceName": "rdma_b"}]})]},
            "",
            ["w1", "w2", "w3"],
            "any of rdma_a, rdma_b",
        ),
        (nad("net", WHEREABOUTS), {"config_maps": [{"data": {"config.json": json.dumps(SHARED)}}]}, "rdma/rdma_a",
         ["w1", "w2"], ""),
        # It selects by the labels of nodes: one that lacks what it promises is proved, and fails.
        (nad("net", WHEREABOUTS), {"policies": [rdma_plugin(SHARED, "NicNodePolicy", nodeSelector={"rack": "3"})]},
         "rdma/rdma_a", ["w1", "w2", "w3"], ""),
        (annotated(nad("net", WHEREABOUTS), "rdma/rdma_a"), {}, "rdma/rdma_a", ["w1", "w2"], ""),
        (
            annotated(nad("net", WHEREABOUTS, type="sriov"), "nvidia.com/vfs"),
            {"policies": [policy(sriovDevicePlugin={"config": json.dumps(DEVICES)})]},
            "nvidia.com/vfs",
            ["w1"],
            "",
        ),
        (
            annotated(nad("net", WHEREABOUTS, type="host-device"), "nvidia.com/vfs"),
            {"policies": [policy("SriovNetworkNodePolicy", resourceName="vfs", isRdma=True)]},
            "nvidia.com/vfs",
            ["w1"],
            "",
        ),
        (annotated(nad("net", WHEREABOUTS, type="sriov", chain=[{"type": "rdma"}]), "nvidia.com/vfs"), {},
         "nvidia.com/vfs", ["w1"], ""),
    ],
)  # fmt: skip
def test_resources_and_their_nodes(
    attachment: Object, more: Object, resource: str, hosts: t.List[str], note: str
) -> None:
    plan = derive_plan(cluster(attachment, nodes=RDMA_NODES, **more))
    (network,) = plan["networks"]
    assert (network["resource"], network["rdma"], network["hosts"]) == (resource, bool(resource), hosts)
    assert list(plan["hosts"]) == hosts
    assert all(list(host["links"]) == ["net"] for host in plan["hosts"].values())
    assert note in "".join(each["why"] for each in plan["not_proved"])
    assert len(plan["not_proved"]) == bool(note)


@pytest.mark.parametrize(
    ("cni", "layer"),
    [("macvlan", None), ("ipoib", "InfiniBand"), ("ib-sriov", "InfiniBand"), ("sriov", None), ("host-device", None)],
)
def test_link_layers(cni: str, layer: t.Optional[str]) -> None:
    """A host-device may be of either: its pods show which."""
    attachment = annotated(nad("net", WHEREABOUTS, type=cni), "nvidia.com/vfs")
    known = policy("SriovNetworkNodePolicy", resourceName="vfs", isRdma=True)
    (network,) = derive_plan(cluster(attachment, nodes=RDMA_NODES, policies=[known]))["networks"]
    assert (network.get("cni", "macvlan"), network.get("link_layer")) == (cni, layer)


@pytest.mark.parametrize(
    ("nodes", "hosts"),
    [
        ([node("w1"), node("w2", unschedulable=True)], ["w1"]),
        ([node("w1"), node("w2", taints=[{"key": "nvidia.com/gpu", "effect": "NoSchedule"}])], ["w1", "w2"]),
        ([node("w1", taints=[{"key": "node-role.kubernetes.io/master", "effect": "PreferNoSchedule"}])], ["w1"]),
    ],
)
def test_nodes_that_may_run_pods(nodes: t.List[Object], hosts: t.List[str]) -> None:
    assert derive_plan(cluster(nad("net", WHEREABOUTS), nodes=nodes))["networks"][0]["hosts"] == hosts


@pytest.mark.parametrize(
    ("selector", "chosen"),
    [
        (None, ["w1", "w2"]),
        ({"nodeSelectorTerms": [{"matchExpressions": [{"key": "rack", "operator": "In", "values": ["1"]}]}]}, ["w1"]),
        ({"nodeSelectorTerms": [{"matchExpressions": [{"key": "rack", "operator": "NotIn", "values": ["1"]}]}]},
         ["w2"]),
        ({"nodeSelectorTerms": [{"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In",
                                                       "values": ["w2"]}]}]}, ["w2"]),
        ({"matchLabels": {"rack": "2"}}, ["w2"]),
        ({"matchExpressions": [{"key": "gone", "operator": "DoesNotExist"}]}, ["w1", "w2"]),
        ({"matchExpressions": [{"key": "gone", "operator": "Exists"}]}, []),
    ],
)  # fmt: skip
def test_selectors(selector: t.Optional[Object], chosen: t.List[str]) -> None:
    assert [each["metadata"]["name"] for each in (node("w1"), node("w2")) if selects(selector, each)] == chosen


def test_pools_choose_nodes() -> None:
    spec = {**POOLS.nv_ipam[0]["spec"], "nodeSelector": {"nodeSelectorTerms": [{"matchExpressions": [
        {"key": "rack", "operator": "In", "values": ["2"]}]}]}}  # fmt: skip
    blocks = {"kind": "IPPool", "metadata": {"name": "rail"}, "spec": spec}
    spider = {"metadata": {"name": "rail-v4"}, "spec": {**POOLS.own[0]["spec"], "nodeName": ["w1"]}}
    plan = derive_plan(cluster(nad("a", BLOCKS), nad("b", SPIDER), pools=Pools([blocks], [spider])))
    assert {network["name"]: network["hosts"] for network in plan["networks"]} == {"a": ["w2"], "b": ["w1"]}
    assert {name: list(host["links"]) for name, host in plan["hosts"].items()} == {"w1": ["b"], "w2": ["a"]}


# ---- several networks -----------------------------------------------------------------------------------------------


def test_one_address_is_proved_on_one_node() -> None:
    assert derive_plan(cluster(nad("net", STATIC)))["networks"][0]["hosts"] == ["w1"]


@pytest.mark.parametrize(
    ("attachments", "why"),
    [
        (
            [nad("net", WHEREABOUTS, "a"), nad("net", WHEREABOUTS, "b")],
            "a/net has the same name and the same configuration",
        ),
        ([nad("net", WHEREABOUTS, "a"), nad("net", HOST_LOCAL, "b")], "a/net has the same name"),
        ([nad("net", WHEREABOUTS, "a"), nad("other", HOST_LOCAL, "b", type="ipvlan")], "macvlans or ipvlans"),
    ],
)
def test_networks_that_one_pod_cannot_have(attachments: t.List[Object], why: str) -> None:
    plan = derive_plan(cluster(*attachments))
    assert len(plan["networks"]) == 1
    (found,) = [each for each in plan["not_proved"] if each["whole"]]
    assert why in found["why"]
    assert found["network"] in found["next"]
    alone = derive_plan(cluster(*attachments), [found["network"]])
    assert [f"{each['namespace']}/{each['name']}" for each in alone["networks"]] == [found["network"]]


def test_only_some() -> None:
    seen = cluster(nad("a", WHEREABOUTS), nad("b", HOST_LOCAL, "jobs"))
    assert [network["name"] for network in derive_plan(seen, ["a"])["networks"]] == ["a"]
    assert [network["name"] for network in derive_plan(seen, ["jobs/b"])["networks"]] == ["b"]
    with pytest.raises(FabricError, match=r"no NetworkAttachmentDefinition default/b\..*default/a, jobs/b"):
        derive_plan(seen, ["b"])


@pytest.mark.parametrize(
    ("more", "proved"),
    [
        ({}, ["default", "jobs"]),
        ({"config_maps": [{"data": {"daemon-config.json": '{"namespaceIsolation": true}'}}]}, ["default"]),
        (
            {"config_maps": [{"data": {"x": '{"namespaceIsolation": true, "globalNamespaces": "jobs,default"}'}}]},
            ["default", "jobs"],
        ),
        ({"multus": [["--namespace-isolation=true"]]}, ["default"]),
        ({"multus": [["--namespace-isolation=false"]]}, ["default", "jobs"]),
        ({"multus": [["--namespace-isolation=true", "--global-namespaces=jobs"]]}, ["jobs"]),
    ],
)
def test_namespace_isolation(more: Object, proved: t.List[str]) -> None:
    words = [
        {"spec": {"template": {"spec": {"containers": [{"command": ["/entrypoint.sh"], "args": args}]}}}}
        for args in more.get("multus", ())
    ]
    plan = derive_plan(cluster(nad("a", WHEREABOUTS), nad("b", HOST_LOCAL, "jobs"), **{**more, "multus": words}))
    assert [network["namespace"] for network in plan["networks"]] == proved
    left = [each["why"] for each in plan["not_proved"] if each["whole"]]
    assert len(left) == 2 - len(proved)
    assert all("namespaceIsolation" in why for why in left)


@pytest.mark.parametrize(
    ("kind", "chain", "made_by"),
    [
        ("MacvlanNetwork", [], "network_operator"),
        ("SpiderMultusConfig", [{"type": "coordinator"}], "spiderpool"),
        ("SpiderMultusConfig", [], ""),
        ("SriovNetwork", [], ""),
    ],
)
def test_who_made_it(kind: str, chain: t.List[Object], made_by: str) -> None:
    plan = derive_plan(cluster(owned(nad("net", WHEREABOUTS, chain=chain), kind)))
    assert plan["networks"][0]["made_by"] == made_by


def test_networks_without_what_multus_reads() -> None:
    networks = [
        {"kind": "MacvlanNetwork", "metadata": {"name": "net"}, "spec": {"networkNamespace": "jobs"}},
        {
            "kind": "MacvlanNetwork",
            "metadata": {"name": "late"},
            "spec": {},
            "status": {"state": "error", "reason": "no namespace"},
        },
        {"kind": "SpiderMultusConfig", "metadata": {"name": "gone", "namespace": "jobs"}, "spec": {}},
    ]
    plan = derive_plan(cluster(nad("net", WHEREABOUTS, "jobs"), networks=networks))
    assert told(plan) == {
        "default/late": "MacvlanNetwork late has no NetworkAttachmentDefinition (error: no namespace)",
        "jobs/gone": "SpiderMultusConfig gone has no NetworkAttachmentDefinition (no state)",
    }
    assert all(each["fault"] for each in plan["not_proved"])


def test_nothing_to_prove() -> None:
    with pytest.raises(FabricError, match="there is none") as refused:
        derive_plan(cluster(multus=[{"metadata": {"name": "kube-multus-ds"}}]))
    assert refused.value.next_step.startswith("Create one (https://")
    with pytest.raises(FabricError, match="default/net: its CNI plugin is bridge"):
        derive_plan(cluster(nad("net", HOST_LOCAL, type="bridge")))


def test_a_cluster_without_multus_is_told_what_brings_it() -> None:
    with pytest.raises(FabricError, match="there is none, and no DaemonSet of multus") as refused:
        derive_plan(cluster())
    advice = "Install multus: ipu.fabric.site and NVIDIA's network operator can do that"
    assert refused.value.next_step.startswith(advice)
    assert "Then create a NetworkAttachmentDefinition (https://" in refused.value.next_step


def test_what_a_person_reads() -> None:
    networks = [nad("net", WHEREABOUTS, mtu=9000), nad("br", HOST_LOCAL, type="bridge"), nad("lease", {"type": "dhcp"})]
    plan = derive_plan(cluster(*networks, policies=[rdma_plugin(SHARED)], nodes=RDMA_NODES))
    text = as_text(plan)
    for part in (
        "Plan: 2 hosts, derived from the cluster, to be proved",
        "Kubernetes 1.35.4, API at api:6443",
        "default/net: bridge on ens1f0, MTU 9000, rdma/rdma_a",
        "10.6.0.0/24, gateway 10.6.0.1; pods 10.6.0.128-10.6.0.254, 127",
        "default/lease: bridge on ens1f0, the NIC's MTU, rdma/rdma_a",
        "the API shows no range of dhcp",
        "Left out  default/br: its CNI plugin is bridge",
        "To prove: 2 networks on 2 nodes; 1 can't be proved. Nothing is installed.",
    ):
        assert part in " ".join(text.split()).replace("Left out default", "Left out  default"), text


def test_addresses_of_pods_are_known_from_nodes() -> None:
    plan = derive_plan(cluster(nad("net", WHEREABOUTS)))
    assert plan["cluster"]["pod_cidr"] == "10.244.0.0/23,fd00:244::/64"
