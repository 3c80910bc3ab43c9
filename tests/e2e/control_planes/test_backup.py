"""A cluster that is backed up, destroyed and restored: on reinstalled hosts, and with one of three control planes."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.ipu.fabric.tests.e2e.bed import KUBECTL, Bed

# Its pools are in the API: with nv-ipam a host keeps which pod has which address.
WHEREABOUTS = {"fabric_ipam": "whereabouts"}
SETTINGS = {"colour": "blue", "empty": ""}
POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "user", "annotations": {"k8s.v1.cni.cncf.io/networks": "rdma-net"}},
    "spec": {
        "nodeName": "w1",
        "terminationGracePeriodSeconds": 0,
        "containers": [{"name": "pause", "image": "registry.k8s.io/pause:3.10.2"}],
    },
}
OBJECTS = [
    {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings"}, "data": SETTINGS},
    {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "password"}, "stringData": {"key": "value"}},
]


def apply(bed: Bed, *objects: dict[str, Any]) -> None:
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": objects})
    bed.on("cp1", f"{KUBECTL} apply -f - <<'EOF'\n{text}\nEOF")


def start_pod(bed: Bed) -> None:
    apply(bed, POD)
    bed.on("cp1", f"{KUBECTL} wait --for condition=Ready --timeout 180s pod user")


def fabric_address(bed: Bed) -> list[str]:
    """Of the pod on the fabric network, from inside: what multus wrote on it may be from another life."""
    sandbox = 'labels."io.kubernetes.pod.name"==user,labels."io.cri-containerd.kind"==sandbox'
    names = bed.on("w1", f"ctr --namespace k8s.io containers list --quiet '{sandbox}'").split()
    tasks = [line.split() for line in bed.on("w1", "ctr --namespace k8s.io tasks list").splitlines()]
    running = [pid for name, pid, status in tasks if name in names and status == "RUNNING"]
    show = "nsenter --net --target {} ip -o -4 address show net1"
    text = "".join(bed.on("w1", show.format(pid), check=False) for pid in running)
    return re.findall(r"inet (\S+)", text)


def saved_objects(bed: Bed) -> dict[str, Any]:
    found: dict[str, Any] = {
        "settings": bed.kubectl("get configmap settings")["data"],
        "password": bed.kubectl("get secret password")["data"],
    }
    for kind in ("macvlannetworks.mellanox.com", "network-attachment-definitions", "nicclusterpolicies.mellanox.com"):
        for item in bed.kubectl(f"get {kind} -A")["items"]:
            found[f"{kind} {item['metadata']['name']}"] = item["spec"]
    return found


def backups(bed: Bed) -> list[Path]:
    return sorted((bed.artifacts / "backups").iterdir())


def back_up(bed: Bed, **variables: Any) -> Path:
    """A new backup, whole and for its owner alone."""
    assert bed.play("backup", **variables).code == 0
    newest = backups(bed)[-1]
    assert newest.stat().st_mode & 0o777 == 0o700
    names = ["SHA256SUMS", "backup.json", "control-plane.tar.gz", "objects.json"]
    assert sorted(path.name for path in newest.iterdir()) == names
    assert {path.stat().st_mode & 0o777 for path in newest.iterdir()} == {0o600}
    subprocess.run(["sha256sum", "--check", "--strict", "--quiet", "SHA256SUMS"], cwd=newest, check=True)
    return newest


def test_destroyed(bare: Bed) -> None:
    assert bare.play("site", **WHEREABOUTS).code == 0
    apply(bare, *OBJECTS)
    start_pod(bare)
    address, objects = fabric_address(bare), saved_objects(bare)
    assert len(address) == 1

    first = back_up(bare, **WHEREABOUTS)
    assert bare.play("backup", "--check", **WHEREABOUTS).code == 0
    assert backups(bare) == [first]
    newest = back_up(bare, fabric_backup_keep=1, **WHEREABOUTS)
    assert backups(bare) == [newest] != [first]
    [held] = json.loads((newest / "objects.json").read_text())["addresses"]
    assert (held["pod"], held["node"], f"{held['address']}/24") == ("default/user", "w1", address[0])
    left = bare.on("cp1", "ls /var/lib/ipu-fabric/backup")
    assert left == ""

    refused = bare.play("restore", fabric_backup=str(newest), **WHEREABOUTS)
    assert refused.code != 0
    assert "A cluster is running: the API server of cp1 answers" in " ".join(refused.shown.split())

    bare.testbed("reset")
    checked = bare.play("restore", "--check", fabric_backup=str(newest), **WHEREABOUTS)
    assert checked.code == 0
    assert bare.on("cp1", "ls -A /etc/kubernetes /var/lib/etcd 2>/dev/null | grep -v :", check=False).strip() == ""
    restored = bare.play("restore", fabric_backup=str(newest), **WHEREABOUTS)
    assert restored.code == 0
    assert bare.play("site", **WHEREABOUTS).code == 0
    assert saved_objects(bare) == objects

    if not fabric_address(bare):  # it started before multus did; its name keeps its address in the pool
        bare.on("cp1", f"{KUBECTL} delete pod user --timeout 120s")
        start_pod(bare)
    assert fabric_address(bare) == address
    again = bare.play("site", **WHEREABOUTS)
    assert (again.code, again.changed()) == (0, {})


@pytest.fixture(scope="module")
def three(bed: Bed) -> Iterator[Bed]:
    bed.testbed("control-planes", "3")
    yield bed
    bed.testbed("control-planes", "1")


def test_lost_quorum(three: Bed) -> None:
    """The pod on the worker goes on all the time: neither its containers nor its address are touched."""
    assert three.play("site", **WHEREABOUTS).code == 0
    apply(three, *OBJECTS)
    start_pod(three)
    started = three.kubectl("get pod user")["status"]["containerStatuses"][0]["containerID"]
    address, objects = fabric_address(three), saved_objects(three)
    saved = back_up(three, **WHEREABOUTS)
    apply(three, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "later"}})

    three.testbed("reset", "cp2", "cp3")
    restored = three.play("restore", fabric_backup=str(saved), **WHEREABOUTS)
    assert restored.code == 0
    assert "Pods whose addresses have changed: none." in " ".join(restored.shown.split())
    assert three.play("site", **WHEREABOUTS).code == 0
    assert saved_objects(three) == objects
    assert "NotFound" in three.on("cp1", f"{KUBECTL} get configmap later 2>&1", check=False)
    assert three.kubectl("get pod user")["status"]["containerStatuses"][0]["containerID"] == started
    assert fabric_address(three) == address
    pki = "/etc/kubernetes/pki/etcd"
    keys = f"--cacert {pki}/ca.crt --cert {pki}/server.crt --key {pki}/server.key"
    members = three.on("cp1", f"{KUBECTL} -n kube-system exec etcd-cp1 -- etcdctl {keys} member list --write-out=json")
    assert sorted(member["name"] for member in json.loads(members)["members"]) == ["cp1", "cp2", "cp3"]
    assert three.on("cp1", "find /var/lib/ipu-fabric -maxdepth 1 -name 'before-restore-*' -perm 0700") != ""
    again = three.play("site", **WHEREABOUTS)
    assert (again.code, again.changed()) == (0, {})
