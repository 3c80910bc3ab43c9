"""Networks that were made by hand, proved without an inventory and with the rights of docs/any-cluster.md alone.

The cluster has the same objects before and after.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible_collections.ipu.fabric.tests.e2e.bed import KUBECTL, Bed, Result, wait_for
from ansible_collections.ipu.fabric.tests.integration.test_any_cluster import documented

PLACE = "others"
IPAMS = {
    "ranges": {"type": "host-local", "ranges": [[{"subnet": "10.41.0.0/24", "rangeStart": "10.41.0.64"}]]},
    "fixed": {"type": "static", "addresses": [{"address": "10.42.0.9/24"}]},
    "where": {"type": "whereabouts", "range": "10.43.0.0/24", "exclude": ["10.43.0.0/26"]},
}
OWN = "default/rdma-net"  # what site made of the first network
# They change by themselves.
RESTLESS = ("events", "leases", "componentstatuses", "nodes")


def apply(bed: Bed, *objects: dict[str, Any]) -> None:
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": objects})
    bed.on("cp1", f"{KUBECTL} apply -f - <<'EOF'\n{text}\nEOF")


def everything(bed: Bed) -> dict[str, Any]:
    """Every object of the cluster as it is meant to be, once the namespaces of earlier proofs are gone."""
    ending = f"{KUBECTL} get namespaces --field-selector status.phase=Terminating -o name"
    wait_for("the end of namespaces", lambda: not bed.on("cp1", ending).strip(), 120)
    kinds = [
        kind
        for kind in bed.on("cp1", f"{KUBECTL} api-resources --verbs=list -o name").split()
        if kind.partition(".")[0] not in RESTLESS
    ]
    found = {}
    for item in bed.kubectl("get", ",".join(kinds), "-A")["items"]:
        metadata = item["metadata"]
        kept = {key: value for key, value in item.items() if key not in ("metadata", "status")}
        name = f"{item['apiVersion']} {item['kind']} {metadata.get('namespace', '')}/{metadata['name']}"
        found[name] = {**kept, "labels": metadata.get("labels"), "annotations": metadata.get("annotations")}
    return found


@pytest.fixture(scope="module")
def handmade(bed: Bed) -> Bed:
    """multus and whereabouts are there, and on them what somebody made by hand, with a pod that uses it."""
    bed.fresh()
    assert bed.play("site", fabric_ipam="whereabouts", fabric_ipu=False).code == 0
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": "user",
            "namespace": PLACE,
            "annotations": {"k8s.v1.cni.cncf.io/networks": "where"},
        },
        "spec": {
            "nodeName": "w1",
            "terminationGracePeriodSeconds": 0,
            "containers": [{"name": "a", "image": "docker.io/library/busybox:1.37", "command": ["sleep", "86400"]}],
        },
    }
    networks = [
        {
            "apiVersion": "k8s.cni.cncf.io/v1",
            "kind": "NetworkAttachmentDefinition",
            "metadata": {"name": name, "namespace": PLACE},
            "spec": {"config": json.dumps({"cniVersion": "0.3.1", "type": "macvlan", "master": "eth1", "ipam": ipam})},
        }
        for name, ipam in IPAMS.items()
    ]
    apply(bed, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": PLACE}}, *networks)
    wait_for("its account", lambda: bed.kubectl("get serviceaccounts", f"-n{PLACE}")["items"])
    apply(bed, pod, documented(), *account())
    wait_for("the user's pod", lambda: bed.kubectl("get pod user", f"-n{PLACE}")["status"]["phase"] == "Running", 120)
    return bed


def account() -> list[dict[str, Any]]:
    """Who proves: an account with the role of the page, and no other right."""
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": documented()["metadata"]["name"]}
    return [
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "prover", "namespace": PLACE}},
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": "prover"},
            "roleRef": role,
            "subjects": [{"kind": "ServiceAccount", "name": "prover", "namespace": PLACE}],
        },
    ]


def kubeconfig(bed: Bed, folder: Path) -> Path:
    config = yaml.safe_load((bed.artifacts / "admin.conf").read_text())
    token = bed.on("cp1", f"{KUBECTL} create token prover -n {PLACE}").strip()
    config["users"] = [{"name": each["name"], "user": {"token": token}} for each in config["users"]]
    path = folder / "kubeconfig"
    path.write_text(json.dumps(config))
    return path


def prove(bed: Bed, folder: Path, *networks: str) -> tuple[Result, dict[str, Any]]:
    extra = {
        "fabric_kubeconfig": str(kubeconfig(bed, folder)),
        "fabric_prove_networks": list(networks),
        "fabric_artifacts_dir": str(folder),
    }
    command = ["ansible-playbook", "ipu.fabric.prove_cluster", "-e", json.dumps(extra)]
    done = bed.run(f"prove_cluster {' '.join(networks)}", command)
    return done, json.loads((folder / "report.json").read_text())


def same_as(bed: Bed, before: dict[str, Any]) -> None:
    """The namespace of a proof is deleted at its end, and gone a little later."""
    wait_for("the objects from before", lambda: everything(bed).keys() <= before.keys(), 60)
    assert everything(bed) == before


def test_networks_made_by_hand(handmade: Bed, tmp_path: Path) -> None:
    before = everything(handmade)
    done, report = prove(handmade, tmp_path, f"{PLACE}/where", f"{PLACE}/fixed", OWN)
    assert (done.code, report["outcome"], done.changed()) == (0, "proved", {}), done.tail()
    plan = json.loads((tmp_path / "plan.json").read_text())
    assert {network["name"]: network["made_by"] for network in plan["networks"]} == {
        "fixed": "",
        "rdma-net": "network_operator",
        "where": "",
    }
    passed = {(check["check"], check["network"]) for check in report["checks"] if check["status"] == "passed"}
    assert {("ping", "where"), ("full_size", "where"), ("address", "fixed"), ("network", "rdma-net")} <= passed
    same_as(handmade, before)


def test_a_network_whose_addresses_are_not_unique(handmade: Bed, tmp_path: Path) -> None:
    """host-local gives pods of two nodes the same address; nothing else of the cluster fails for it."""
    before = everything(handmade)
    done, report = prove(handmade, tmp_path)
    assert (done.code, report["outcome"]) == (2, "failed"), done.tail()
    failed = {(check["check"], check["network"]) for check in report["checks"] if check["status"] == "failed"}
    assert failed == {(check, "ranges") for check in ("unique", "ping", "full_size")}
    assert "host-local allocates on each node independently" in " ".join(done.shown.split())
    same_as(handmade, before)
