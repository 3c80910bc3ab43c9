"""The audit of address pools against the real CRDs of three IPAMs; nobody but the test gives out addresses."""

from __future__ import annotations

import json
import typing as t
from pathlib import Path

import pytest
from ansible_collections.ipu.fabric.tests.integration.api_server import ApiServer, Modules, crds

Object = t.Dict[str, t.Any]
FILES = (
    "whereabouts/0.9.4/whereabouts.cni.cncf.io_ippools.yaml",
    "whereabouts/0.9.4/whereabouts.cni.cncf.io_overlappingrangeipreservations.yaml",
    "network-operator/26.4.1/005-nv-ipam.nvidia.com_ippools.yaml",
    "network-operator/26.4.1/k8s.cni.cncf.io_networkattachmentdefinitions_crd.yaml",
    "spiderpool/1.2.2/spiderpool.spidernet.io_spiderippools.yaml",
    "spiderpool/1.2.2/spiderpool.spidernet.io_spiderendpoints.yaml",
)


def create(api: ApiServer, *objects: Object) -> None:
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": objects})
    api.kubectl("create", "--validate=strict", "-f", "-", stdin=text)


def set_status(api: ApiServer, kind: str, name: str, status: Object, *namespace: str) -> None:
    body = json.dumps({"status": status})
    api.kubectl("patch", kind, name, *namespace, "--subresource=status", "--type=merge", "-p", body)


def obj(api_version: str, kind: str, name: str, namespace: str = "", **parts: t.Any) -> Object:
    metadata = {"name": name, **({"namespace": namespace} if namespace else {}), **parts.pop("metadata", {})}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **parts}


def make_pod(api: ApiServer, name: str, addresses: t.Sequence[str], phase: str = "Running") -> str:
    entries = [{"name": f"default/net-{n}", "interface": f"net{n}", "ips": [a]} for n, a in enumerate(addresses, 1)]
    note = {"k8s.v1.cni.cncf.io/network-status": json.dumps(entries)}
    spec = {"nodeName": "pool-node", "containers": [{"name": "c", "image": "none"}]}
    create(api, obj("v1", "Pod", name, "pools", metadata={"annotations": note}, spec=spec))
    set_status(api, "pod", name, {"phase": phase}, "-n", "pools")
    uid: str = api.get("pod", name, "-n", "pools")["metadata"]["uid"]
    return uid


@pytest.fixture(scope="module")
def pools(api: ApiServer, schemas: Path) -> t.Iterator[None]:
    """Of each IPAM one pool, with a pod that lives, one that ended and one that never was."""
    definitions = crds(*(schemas / name for name in FILES))
    Modules(api.kubeconfig)("kube_apply", objects=definitions, validation="Warn")
    api.kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=30s")
    create(api, obj("v1", "Namespace", "pools"), obj("v1", "Node", "pool-node"))
    uid = make_pod(api, "alive", ["10.5.0.129", "10.6.0.1", "10.7.0.10"])
    make_pod(api, "ended", ["10.5.0.130"], phase="Succeeded")
    make_pod(api, "twin", ["10.6.0.1"])

    held = {"129": "pools/alive", "130": "pools/ended", "131": "pools/gone"}
    allocations = {offset: {"id": f"c{offset}", "podref": pod, "ifname": "net1"} for offset, pod in held.items()}
    ipam = {"type": "whereabouts", "range": "10.5.0.0/24", "range_start": "10.5.0.128", "range_end": "10.5.0.254"}
    config = json.dumps({"cniVersion": "0.3.1", "type": "macvlan", "ipam": {**ipam, "exclude": ["10.5.0.140/32"]}})
    group = "whereabouts.cni.cncf.io/v1alpha1"
    spec = {"range": "10.5.0.0/24", "allocations": allocations}
    create(
        api,
        obj(group, "IPPool", "10.5.0.0-24", "kube-system", spec=spec),
        obj(group, "OverlappingRangeIPReservation", "10.5.0.150", "kube-system", spec={"podref": "pools/gone"}),
        obj("k8s.cni.cncf.io/v1", "NetworkAttachmentDefinition", "net-1", "pools", spec={"config": config}),
    )

    spec = {"subnet": "10.6.0.0/24", "perNodeBlockSize": 8, "gateway": "10.6.0.8"}
    create(api, obj("nv-ipam.nvidia.com/v1alpha1", "IPPool", "rail", "pools", spec=spec))
    blocks = [{"nodeName": "pool-node", "startIP": "10.6.0.1", "endIP": "10.6.0.8"}]
    set_status(api, "ippools.nv-ipam.nvidia.com", "rail", {"allocations": blocks}, "-n", "pools")

    spec = {"subnet": "10.7.0.0/24", "ips": ["10.7.0.10-10.7.0.19"], "excludeIPs": ["10.7.0.19"], "ipVersion": 4}
    create(api, obj("spiderpool.spidernet.io/v2beta1", "SpiderIPPool", "spider", spec=spec))
    given = {"10.7.0.10": {"pod": "pools/alive", "podUid": uid}, "10.7.0.11": {"pod": "pools/alive", "podUid": "old"}}
    status = {"totalIPCount": 9, "allocatedIPCount": 2, "allocatedIPs": json.dumps(given)}
    set_status(api, "spiderippool", "spider", status)
    yield
    names = [definition["metadata"]["name"] for definition in definitions]
    api.kubectl("delete", "--ignore-not-found", "crd", *names)
    api.kubectl("delete", "namespace", "pools", "--wait=false")
    api.kubectl("delete", "node", "pool-node")


@pytest.mark.usefixtures("pools")
def test_every_pool_and_every_leak(run: Modules) -> None:
    result = run("ip_pool_info", settle=0)
    assert (result["changed"], result["leaks"]) == (False, 5)
    found = {pool["ipam"]: pool for pool in result["pools"]}
    keys = ("name", "cidr", "usable", "excluded", "capacity", "allocated", "free")
    assert [found["whereabouts"][key] for key in keys] == ["10.5.0.0-24", "10.5.0.0/24", 127, 1, 126, 4, 122]
    assert [found["nv-ipam"][key] for key in keys] == ["rail", "10.6.0.0/24", 8, 1, 7, 1, 6]
    assert [found["spiderpool"][key] for key in keys] == ["spider", "10.7.0.0/24", 10, 1, 9, 2, 7]
    assert [(entry["address"], entry["why"]) for entry in found["whereabouts"]["leaked"]] == [
        ("10.5.0.130", "no such pod runs"),
        ("10.5.0.131", "no such pod runs"),
        ("10.5.0.150", "no such pod runs"),
    ]
    twice = {"address": "10.6.0.1", "pod": "pools/alive, pools/twin", "why": "two pods have it"}
    assert found["nv-ipam"]["leaked"] == [twice]
    older = {"address": "10.7.0.11", "pod": "pools/alive", "why": "it belonged to an earlier pod of this name"}
    assert found["spiderpool"]["leaked"] == [older]


@pytest.mark.usefixtures("pools")
def test_only_the_pools_of_a_subnet(run: Modules) -> None:
    assert [pool["ipam"] for pool in run("ip_pool_info", settle=0, cidrs=["10.6.0.9/24"])["pools"]] == ["nv-ipam"]


@pytest.mark.usefixtures("pools")
def test_check_mode_reads_as_well(run: Modules) -> None:
    assert run("ip_pool_info", check=True, settle=0)["leaks"] == 5


@pytest.mark.usefixtures("pools")
def test_without_the_kinds_there_are_no_pools(run: Modules, api: ApiServer) -> None:
    names = [name.split("/")[1] for name in api.kubectl("get", "crd", "-o", "name").stdout.split() if "ippools" in name]
    api.kubectl("delete", "crd", *names)
    assert run("ip_pool_info", settle=0)["pools"] == []
