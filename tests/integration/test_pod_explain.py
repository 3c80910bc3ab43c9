"""Pods that lack something else each, on a real API server. There is no kubelet: what an exec gives is made up."""

from __future__ import annotations

import json
import typing as t
from pathlib import Path

import pytest
from ansible_collections.ipu.fabric.plugins.module_utils._kube.pod_exec import Output
from ansible_collections.ipu.fabric.plugins.module_utils._verify import pod_facts
from ansible_collections.ipu.fabric.plugins.module_utils._verify.parsers import gid_of
from ansible_collections.ipu.fabric.tests.integration.api_server import (
    NAD_CRD,
    ApiServer,
    ModuleFailedError,
    Modules,
    crds,
)

Object = t.Dict[str, t.Any]
NAMESPACE, NODE, RESOURCE = "explained", "explain-1", "rdma/shared"
RAIL = "10.5.0.131"
PORT = "/sys/class/infiniband/mlx5_0/ports/1"
RUNS = {"phase": "Running", "podIPs": [{"ip": "10.244.1.7"}], "podIP": "10.244.1.7"}
ROUTE = "net1\t0000050A\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0\n"
DEFAULT = "eth0\t00000000\t0101F40A\t0003\t0\t0\t0\t00000000\t0\t0\t0\n"
PARTS = {
    "status": "Uid:\t1000\t1000\t1000\t1000\nCapEff:\t0000000000000000",
    "limits": "Max locked memory  unlimited  unlimited  bytes",
    "files": "rdma_cm\nuverbs0",
    "verbs": "/sys/class/infiniband_verbs/uverbs0/ibdev:mlx5_0",
    "ports": f"{PORT}/state:4: ACTIVE\n{PORT}/link_layer:Ethernet",
    "gids": f"{PORT}/gids/3:{gid_of(RAIL)}\n{PORT}/gid_attrs/types/3:RoCE v2\n{PORT}/gid_attrs/ndevs/3:net1",
    "links": "/sys/class/net/eth0/mtu:1450\n/sys/class/net/net1/mtu:9000",
    "routes": "head\n" + DEFAULT + ROUTE,
    "tries": f"|-- 10.244.1.7\n/32 host LOCAL\n|-- {RAIL}\n/32 host LOCAL",
}
WHAT = "k8s.v1.cni.cncf.io/networks"
STATUS = json.dumps([{"name": "default/explained", "interface": "net1", "ips": [RAIL]}])


def printed(**changes: str) -> str:
    return "".join(f"\n@@ {name}\n{text}\n@@ rc 0\n" for name, text in {**PARTS, **changes}.items())


class Case(t.NamedTuple):
    """A pod, and the beginnings of what it lacks."""

    lacks: t.Sequence[str]
    network: str = "default/explained"
    status: t.Mapping[str, t.Any] = RUNS
    resource: str = RESOURCE
    text: str = printed()
    more: t.Mapping[str, t.Any] = {}
    node: str = NODE


def unscheduled(message: str) -> Object:
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message}
    return {"phase": "Pending", "conditions": [condition]}


HOST = {"hostNetwork": True}
CASES = {
    "good": Case([]),
    "no-annotation": Case(["no network but the cluster's"], network=""),
    "no-such-network": Case(["no network default/nothing"], network="default/nothing", status={"phase": "Pending"}),
    "other-namespace": Case(["no network explained/explained"], network="explained", status={"phase": "Pending"}),
    "no-resource": Case(["no RDMA resource"], resource="", text=printed(files="")),
    "no-files": Case(["no /dev/infiniband"], text=printed(files="")),
    "memlock": Case(
        ["too little locked memory: 64 KiB"], text=printed(limits="Max locked memory  65536  65536  bytes")
    ),
    "no-gid": Case([f"no RoCE v2 GID for {RAIL}"], text=printed(gids="")),
    "no-route": Case(["no route to the subnet"], text=printed(routes="head\n" + DEFAULT)),
    "default-route": Case(
        ["the default route is"], text=printed(routes="head\n" + DEFAULT.replace("eth0", "net1") + ROUTE)
    ),
    "mtu": Case(["MTU 1500 of net1"], text=printed(links="/sys/class/net/net1/mtu:1500")),
    "host-network": Case(["none of the networks"], more=HOST, text=printed(tries=f"|-- {RAIL}\n/32 host LOCAL")),
    "pending": Case(
        ["it does not run"], status=unscheduled("0/1 nodes are available: 1 Insufficient rdma/shared."), node=""
    ),
    "unknown-resource": Case(["it does not run"], status=unscheduled("none"), resource="rdma/other", node=""),
}


@pytest.fixture(scope="module")
def cluster(api: ApiServer, schemas: Path) -> ApiServer:
    def create(*objects: Object) -> None:
        api.kubectl("create", "-f", "-", stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))

    create(*crds(schemas / NAD_CRD))
    api.kubectl("wait", "--for=condition=Established", "crd/network-attachment-definitions.k8s.cni.cncf.io")
    create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
    create({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default", "namespace": NAMESPACE}})
    config = json.dumps({"type": "macvlan", "master": "ens1f0"})
    metadata = {"name": "explained", "namespace": "default"}
    nad = {"apiVersion": "k8s.cni.cncf.io/v1", "kind": "NetworkAttachmentDefinition", "metadata": metadata}
    create({**nad, "spec": {"config": config}})
    amounts = {RESOURCE: "63", "cpu": "8"}
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": NODE}}
    create({**node, "status": {"capacity": amounts, "allocatable": amounts}})
    multus = Case([], network="", resource="", more=HOST)
    for name, case in {**CASES, "kube-multus": multus}.items():
        limits = {"resources": {"limits": {case.resource: "1"}, "requests": {}}} if case.resource else {}
        spec = {"containers": [{"name": "main", "image": "i", **limits}], "nodeName": case.node, **case.more}
        annotations = {WHAT: case.network, "k8s.v1.cni.cncf.io/network-status": STATUS} if case.network else {}
        place = {"name": name, "namespace": NAMESPACE, "annotations": annotations}
        create({"apiVersion": "v1", "kind": "Pod", "metadata": place, "spec": spec})
        entry = {"name": "main", "image": "i", "imageID": "", "ready": True, "restartCount": 0}
        runs = {"containerStatuses": [{**entry, "state": {"running": {}}}]} if case.status["phase"] == "Running" else {}
        body = json.dumps({"status": {**case.status, **runs}})
        api.kubectl("patch", "pod", "-n", NAMESPACE, name, "--subresource=status", "-p", body)
    return api


@pytest.fixture
def execs(monkeypatch: pytest.MonkeyPatch) -> t.List[str]:
    """Answers for the kubelet, and keeps the pods in which something ran."""
    ran: t.List[str] = []

    def answer(_cluster: t.Any, path: str, container: str, argv: t.Sequence[str], _seconds: float) -> Output:
        name = path.rpartition("/")[2]
        ran.append(name)
        assert (container, argv[:2]) == ("main", ["sh", "-c"])
        return Output(
            "\n@@ links\n/sys/class/net/ens1f0/mtu:9000\n@@ rc 0\n" if "multus" in name else CASES[name].text, ""
        )

    monkeypatch.setattr(pod_facts, "run_in_pod", answer)
    return ran


@pytest.mark.parametrize("name", CASES)
def test_each_pod_lacks_its_own(cluster: ApiServer, run: Modules, execs: t.List[str], name: str) -> None:
    before = cluster.get("pod,event,network-attachment-definitions", "-n", NAMESPACE)
    found = run("pod_explain", pod=f"{NAMESPACE}/{name}")
    assert not found["changed"]
    assert len(found["lacks"]) == len(CASES[name].lacks), found["lacks"]
    assert all(lack["what"].startswith(tuple(CASES[name].lacks)) for lack in found["lacks"])
    assert found["unread"] == []
    assert all(lack["why"] and lack["next"] for lack in found["lacks"])
    assert cluster.get("pod,event,network-attachment-definitions", "-n", NAMESPACE) == before
    if name == "good":
        used = sum(bool(case.node and case.resource) for case in CASES.values())
        assert f"resource {RESOURCE}: 1 (node: 63, {used} in use)" in found["has"]


def test_the_plan_knows_the_mtu_where_no_pod_does(
    cluster: ApiServer, run: Modules, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = {"mtu": Output(CASES["mtu"].text, "")}
    monkeypatch.setattr(
        pod_facts, "run_in_pod", lambda _c, path, *_more: answers.get(path.rpartition("/")[2], Output("", "no shell"))
    )
    assert "MTU of the node's NIC" in run("pod_explain", pod=f"{NAMESPACE}/mtu")["unread"][0]
    plan = {"hosts": {"host": {"node": NODE, "links": {"n": {"netdev": "ens1f0", "mtu": 4200}}}}}
    found = run("pod_explain", pod=f"{NAMESPACE}/mtu", plan=plan)
    assert [lack["what"] for lack in found["lacks"]] == ["MTU 1500 of net1 is below that of the NIC (ens1f0: 4200)"]


@pytest.mark.parametrize(
    ("options", "said"),
    [({"pod": "explained/none"}, "no pod none; it has default-route, good"), ({"container": "x"}, "it has main")],
)
def test_what_is_not_there(cluster: ApiServer, run: Modules, options: Object, said: str) -> None:
    with pytest.raises(ModuleFailedError) as failed:
        run("pod_explain", **{"pod": f"{NAMESPACE}/good", **options})
    assert said in str(failed.value)
