"""A plan of what others made, from their real CRDs: by a user who may do no more than the documentation says."""

from __future__ import annotations

import json
import re
import typing as t
from pathlib import Path

import pytest
import yaml
from ansible_collections.ipu.fabric.plugins.module_utils._kube.rights import TO_PROVE
from ansible_collections.ipu.fabric.tests.integration.api_server import (
    ApiServer,
    ModuleFailedError,
    Modules,
    crds,
    run_playbook,
)
from ansible_collections.ipu.fabric.tests.unit.fixtures.paths import ROOT

Object = t.Dict[str, t.Any]
FILES = (
    "network-operator/26.4.1/005-nv-ipam.nvidia.com_ippools.yaml",
    "network-operator/26.4.1/005-nv-ipam.nvidia.com_cidrpools.yaml",
    "network-operator/26.4.1/k8s.cni.cncf.io_networkattachmentdefinitions_crd.yaml",
    "network-operator/26.4.1/mellanox.com_macvlannetworks.yaml",
    "network-operator/26.4.1/mellanox.com_hostdevicenetworks.yaml",
    "network-operator/26.4.1/mellanox.com_nicclusterpolicies.yaml",
    "network-operator/26.4.1/mellanox.com_nicnodepolicies.yaml",
    "spiderpool/1.2.2/spiderpool.spidernet.io_spiderippools.yaml",
    "spiderpool/1.2.2/spiderpool.spidernet.io_spidermultusconfigs.yaml",
    "spiderpool/1.2.2/spiderpool.spidernet.io_spiderendpoints.yaml",
    "whereabouts/0.9.4/whereabouts.cni.cncf.io_ippools.yaml",
    "whereabouts/0.9.4/whereabouts.cni.cncf.io_overlappingrangeipreservations.yaml",
)
PLACE = "any-cluster"
NAD = {"apiVersion": "k8s.cni.cncf.io/v1", "kind": "NetworkAttachmentDefinition"}
MACVLAN = {"cniVersion": "0.3.1", "type": "macvlan", "master": "ens1f0", "mode": "bridge"}
DEVICES = {"configList": [{"resourceName": "rdma_any", "rdmaHcaMax": 63, "selectors": {"ifNames": ["ens1f0"]}}]}
IPAMS = {
    "ranges": {"type": "host-local", "ranges": [[{"subnet": "10.31.0.0/24", "rangeStart": "10.31.0.64"}]]},
    "fixed": {"type": "static", "addresses": [{"address": "10.32.0.9/24"}]},
    "where": {"type": "whereabouts", "range": "10.33.0.0/24", "exclude": ["10.33.0.0/26"]},
    "blocks": {"type": "nv-ipam", "poolName": "any-blocks"},
    "lease": {"type": "dhcp"},
}


def attachment(name: str, config: Object, *owner: str) -> Object:
    metadata: Object = {"name": name, "namespace": PLACE}
    if owner:
        group = {"MacvlanNetwork": "mellanox.com/v1alpha1"}.get(owner[0], "spiderpool.spidernet.io/v2beta1")
        metadata["ownerReferences"] = [{"apiVersion": group, "kind": owner[0], "name": name, "uid": owner[1]}]
    return {**NAD, "metadata": metadata, "spec": {"config": json.dumps(config)}}


def uid(api: ApiServer, kind: str, *where: str) -> str:
    return str(api.get(kind, *where)["metadata"]["uid"])


OBJECTS: t.List[Object] = [
    {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": PLACE}},
    {
        "apiVersion": "mellanox.com/v1alpha1",
        "kind": "NicNodePolicy",
        "metadata": {"name": "any"},
        "spec": {
            "nodeSelector": {"any-cluster": "nics"},
            "rdmaSharedDevicePlugin": {
                "image": "k8s-rdma-shared-dev-plugin",
                "repository": "nvcr.io/nvidia/mellanox",
                "version": "v1.5.2",
                "config": json.dumps(DEVICES),
            },
        },
    },
    {
        "apiVersion": "mellanox.com/v1alpha1",
        "kind": "MacvlanNetwork",
        "metadata": {"name": "blocks"},
        "spec": {"networkNamespace": PLACE, "master": "ens1f0", "mode": "bridge", "ipam": json.dumps(IPAMS["blocks"])},
    },
    {
        "apiVersion": "nv-ipam.nvidia.com/v1alpha1",
        "kind": "IPPool",
        "metadata": {"name": "any-blocks", "namespace": PLACE},
        "spec": {"subnet": "10.34.0.0/24", "perNodeBlockSize": 16, "gateway": "10.34.0.1"},
    },
    {
        "apiVersion": "spiderpool.spidernet.io/v2beta1",
        "kind": "SpiderIPPool",
        "metadata": {"name": "any-v4"},
        "spec": {
            "subnet": "10.35.0.0/24",
            "ips": ["10.35.0.10-10.35.0.99"],
            "gateway": "10.35.0.1",
            "nodeName": ["any-w2"],
        },
    },
    {
        "apiVersion": "spiderpool.spidernet.io/v2beta1",
        "kind": "SpiderMultusConfig",
        "metadata": {"name": "spider", "namespace": PLACE},
        "spec": {"cniType": "macvlan", "macvlan": {"master": ["ens1f0"], "ippools": {"ipv4": ["any-v4"]}}},
    },
    *(
        {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": {"any-cluster": "nics"}}}
        for name in ("any-w1", "any-w2")
    ),
]


@pytest.fixture(scope="module")
def others(api: ApiServer, schemas: Path) -> t.Iterator[ApiServer]:
    """A cluster of others: every field is checked as its real CRD says."""
    known = {each["metadata"]["name"] for each in api.get("crds")["items"]}
    for definition in crds(*(schemas / name for name in FILES)):
        if definition["metadata"]["name"] not in known:
            api.kubectl("create", "-f", "-", stdin=json.dumps(definition))
    api.kubectl("wait", "--for=condition=Established", "crds", "--all", "--timeout=60s")
    made = [
        *OBJECTS,
        *(attachment(name, {**MACVLAN, "ipam": ipam}) for name, ipam in IPAMS.items() if name != "blocks"),
    ]
    for obj in made:
        api.kubectl("create", "--validate=strict", "-f", "-", stdin=json.dumps(obj))
    macvlan, spider = uid(api, "macvlannetwork", "blocks"), uid(api, "spidermultusconfig", "spider", f"-n{PLACE}")
    chain = [
        {**MACVLAN, "ipam": {"type": "spiderpool", "default_ipv4_ippool": ["any-v4"]}},
        {"type": "coordinator", "mode": "auto"},
    ]
    for obj in (
        attachment("blocks", {**MACVLAN, "ipam": IPAMS["blocks"]}, "MacvlanNetwork", macvlan),
        attachment("spider", {"cniVersion": "0.3.1", "plugins": chain}, "SpiderMultusConfig", spider),
    ):
        api.kubectl("create", "--validate=strict", "-f", "-", stdin=json.dumps(obj))
        made.append(obj)
    ready = {"status": {"conditions": [{"type": "Ready", "status": "True"}], "allocatable": {"rdma/rdma_any": "63"}}}
    for name in ("any-w1", "any-w2"):
        api.kubectl("patch", "node", name, "--subresource=status", "--type=merge", "-p", json.dumps(ready))
    yield api
    for obj in reversed(made):  # without controllers a namespace is never gone
        api.kubectl("delete", "--ignore-not-found", "--wait=false", "-f", "-", stdin=json.dumps(obj))


HOST = {"roles": ["worker"], "links": {}}


def documented() -> Object:
    """The ClusterRole that the page tells an administrator to create."""
    page = (ROOT / "docs" / "any-cluster.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```yaml\n(.*?)```", page, re.DOTALL)
    (role,) = [doc for text in blocks for doc in yaml.safe_load_all(text) if doc.get("kind") == "ClusterRole"]
    return t.cast(Object, role)


def test_the_documented_role_is_what_the_proof_asks_for() -> None:
    named = {
        f"{resource}{'.' * bool(group)}{group}": sorted(rule["verbs"])
        for rule in documented()["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
    }
    assert named == {name: sorted(verbs) for name, verbs in TO_PROVE.items()}


@pytest.fixture
def prover(others: ApiServer, tmp_path: Path) -> t.Iterator[Path]:
    """The kubeconfig of a user without rights, whom a test may give those of the page."""
    others.kubectl("create", "serviceaccount", "prover", f"-n{PLACE}")
    config = others.config()
    config["users"][0]["user"] = {"token": others.kubectl("create", "token", "prover", f"-n{PLACE}").stdout.strip()}
    path = tmp_path / "kubeconfig"
    path.write_text(json.dumps(config))
    yield path
    others.kubectl("delete", "serviceaccount", "prover", f"-n{PLACE}")


@pytest.fixture
def entitled(others: ApiServer, prover: Path) -> t.Iterator[Path]:
    role = documented()
    name = role["metadata"]["name"]
    others.kubectl("create", "-f", "-", stdin=json.dumps(role))
    others.kubectl("create", "clusterrolebinding", name, f"--clusterrole={name}", f"--serviceaccount={PLACE}:prover")
    yield prover
    others.kubectl("delete", "clusterrolebinding,clusterrole", name)


def test_what_the_user_lacks_is_told_at_once(prover: Path) -> None:
    with pytest.raises(ModuleFailedError) as caught:
        Modules(prover)("cluster_info", parts=["plan"])
    message = caught.value.result["msg"]
    assert caught.value.result["error"]["code"] == "api-denied"
    for right in ("list nodes", "create namespaces", "create pods/exec", "list ippools.nv-ipam.nvidia.com"):
        assert right in message
    assert "sriovnetwork.openshift.io" not in message  # there is no such API group here


def test_the_user_who_lacks_rights_is_named(prover: Path) -> None:
    found = Modules(prover)("cluster_info", parts=["rights"])
    assert "patch nodes" in found["rights"]
    assert found["user"] == f"system:serviceaccount:{PLACE}:prover"


def test_marks_need_a_right_that_a_proof_does_not(others: ApiServer, entitled: Path) -> None:
    """Named before any node is changed."""
    marks: t.Any = {"mode": "warn", "plan": {"hosts": {"w1": {**HOST, "node": "any-w1"}}, "networks": []}}
    with pytest.raises(ModuleFailedError) as caught:
        Modules(entitled)("node_admission", **marks)
    told = caught.value.result["error"]
    assert told["code"] == "api-denied"
    assert (told["where"], told["seen"]) == (
        f"the user system:serviceaccount:{PLACE}:prover",
        "without patch nodes, patch nodes/status",
    )
    assert "ClusterRole ipu-fabric-admission" in told["next_step"]
    others.kubectl("create", "clusterrole", "any-mark", "--verb=patch", "--resource=nodes,nodes/status")
    others.kubectl(
        "create", "clusterrolebinding", "any-mark", "--clusterrole=any-mark", f"--serviceaccount={PLACE}:prover"
    )
    assert Modules(entitled)("node_admission", **marks)["nodes"] == ["any-w1"]
    Modules(entitled)("node_admission", mode="off")
    others.kubectl("delete", "clusterrolebinding,clusterrole", "any-mark")


def test_the_plan_of_a_cluster_of_others(entitled: Path) -> None:
    plan = Modules(entitled)("cluster_info", parts=["plan"])["plan"]
    mine = {each["name"]: each for each in plan["networks"] if each["namespace"] == PLACE}
    seen = {
        name: (
            [
                f"{one['cidr']} {one['range_start']} {one['capacity']} {one['gateway']}".strip()
                for one in each["subnets"]
            ],
            each["hosts"],
            each["resource"],
            each["made_by"],
        )
        for name, each in mine.items()
    }
    both, resource = ["any-w1", "any-w2"], "rdma/rdma_any"
    assert seen == {
        "ranges": (["10.31.0.0/24 10.31.0.64 191"], both, resource, ""),
        "fixed": (["10.32.0.0/24 10.32.0.9 1"], both[:1], resource, ""),
        "where": (["10.33.0.0/24 10.33.0.64 191"], both, resource, ""),
        "blocks": (["10.34.0.0/24 10.34.0.2 253 10.34.0.1"], both, resource, "network_operator"),
        "spider": (["10.35.0.0/24 10.35.0.10 90 10.35.0.1"], both[1:], resource, "spiderpool"),
        "lease": ([], both, resource, ""),
    }
    notes = [each for each in plan["not_proved"] if each["network"].startswith(f"{PLACE}/")]
    assert {each["network"].rpartition("/")[2] for each in notes} == {"ranges", "lease"}
    assert not any(each["whole"] for each in notes)


def test_the_playbook_with_the_rights_of_the_page(others: ApiServer, entitled: Path, tmp_path: Path) -> None:
    """Without an inventory. No kubelet starts its pods here, and no controller empties its namespace."""

    def listed() -> t.Set[str]:
        kinds = others.kubectl("api-resources", "--verbs=list", "-o", "name").stdout.split()
        kinds = [kind for kind in kinds if not kind.startswith(("events", "componentstatuses"))]
        return set(others.kubectl("get", ",".join(kinds), "-A", "-o", "name").stdout.split())

    before = listed()
    done = run_playbook(
        ROOT / "playbooks" / "prove_cluster.yml",
        fabric_kubeconfig=str(entitled),
        fabric_prove_networks=[f"{PLACE}/where", f"{PLACE}/lease"],
        fabric_artifacts_dir=str(tmp_path),
        verify_timeout=1,
        verify_command_timeout=1,
    )
    plan, report = (json.loads((tmp_path / f"{name}.json").read_text()) for name in ("plan", "report"))
    assert [each["name"] for each in plan["networks"]] == ["lease", "where"]
    failed = {check["check"] for check in report["checks"] if check["status"] == "failed"}
    assert failed == {"pod"}, done.stdout[-6000:]
    assert "derived from the cluster, to be proved" in done.stdout
    assert "10.33.0.64-10.33.0.254, 191 addresses" in done.stdout
    (namespace,) = (each for each in listed() - before if each.startswith("namespace/"))
    left = others.get(namespace)
    assert left["metadata"]["deletionTimestamp"]
    assert "pod" not in " ".join(listed() - before)
