"""Datasets on a real NFS server, which is one of the workers: only these have a kernel with NFS."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from ansible_collections.ipu.fabric.tests.e2e.bed import KUBECTL, Bed, Result
from ansible_collections.ipu.fabric.tests.e2e.rdma.conftest import Fabric
from ansible_collections.ipu.fabric.tests.unit.fixtures.paths import ROOT

SERVER, CLIENT = "roce1", "roce2"
FOLDER = "/srv/datasets"
EXPORT = f"{FOLDER} *(rw,sync,no_subtree_check)"
IMAGE = "docker.io/library/busybox:1.37"


def datasets(bed: Bed, volumes: list[dict[str, Any]], **variables: Any) -> Result:
    """Run the role."""
    given = {"datasets_kubeconfig": str(bed.artifacts / "admin.conf"), "datasets_volumes": volumes, **variables}
    play = {"hosts": "localhost", "connection": "local", "gather_facts": False, "roles": ["ipu.fabric.datasets"]}
    playbook = bed.artifacts / "datasets.yml"
    playbook.write_text(json.dumps([play]))
    return bed.play(str(playbook), **given)


def run(bed: Bed, claim: str, command: str) -> Result:
    """A job on the other worker that has the claim at /data, as a normal user; it is removed afterwards."""
    given = {
        "native_workload_kubeconfig": str(bed.artifacts / "admin.conf"),
        "native_workload_rdma_resource": "",
        "native_workload_network": "",
        "native_workload_check_memlock": False,
        "native_workload_node_selector": {"kubernetes.io/hostname": CLIENT},
        "native_workload_volumes": [{"name": "data", "path": "/data", "claim": claim}],
        "native_workload_timeout": 900,
        "plan_file": str(bed.artifacts / "plan.json"),
        "example_image": IMAGE,
        "example_folder": "",
        "example_training": command,
    }
    example = f"{ROOT}/docs/examples/native-training.yml"
    result = bed.play(example, **given)
    assert bed.play(example, **given, native_workload_state="absent").code == 0
    return result


@pytest.fixture(scope="module")
def volumes(fabric: Fabric, site: Result) -> Iterator[list[dict[str, Any]]]:
    """One directory, to write and to read."""
    assert site.code == 0
    bed = fabric.bed
    bed.on(SERVER, f"mkdir -p {FOLDER} && chmod 777 {FOLDER} && echo '{EXPORT}' > /etc/exports")
    bed.on(SERVER, "systemctl start nfs-server && exportfs -ra")
    address = bed.on(SERVER, "ip -4 -o addr show dev ens3").split()[3].partition("/")[0]
    directory = {"server": address, "path": FOLDER, "size": "5Gi"}
    found = [{"name": "sets", **directory}, {"name": "sets-ro", **directory, "read_only": True}]
    assert datasets(bed, found).code == 0
    yield found
    datasets(bed, found, datasets_state="absent")


def test_a_second_run_changes_nothing(fabric: Fabric, volumes: list[dict[str, Any]]) -> None:
    for arguments in ({}, {"datasets_timeout": 60}):
        again = datasets(fabric.bed, volumes, **arguments)
        assert (again.code, again.changed()) == (0, {})


def test_pods_write_to_the_server_and_read_from_it(fabric: Fabric, volumes: list[dict[str, Any]]) -> None:
    mounted = "grep ' /data nfs4 ' /proc/mounts"
    wrote = run(fabric.bed, "sets", f"{mounted} && echo weights of uid $(id -u) > /data/model")
    assert wrote.code == 0
    assert volumes[0]["server"] in wrote.shown
    assert fabric.bed.on(SERVER, f"cat {FOLDER}/model") == "weights of uid 1000\n"
    read = run(fabric.bed, "sets-ro", "cat /data/model; if touch /data/x; then exit 1; fi; echo it is read-only")
    assert read.code == 0
    assert "weights of uid 1000" in read.shown
    assert "it is read-only" in read.shown


def test_a_volume_of_the_site_is_respected(fabric: Fabric, volumes: list[dict[str, Any]]) -> None:
    spec = {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteMany"], "hostPath": {"path": "/srv"}}
    theirs = {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "default-theirs"}, "spec": spec}
    fabric.bed.on("cp1", f"{KUBECTL} create -f - <<'END'\n{json.dumps(theirs)}\nEND")
    wanted = [{**volumes[0], "name": "theirs"}]
    refused = datasets(fabric.bed, wanted)
    assert refused.code != 0
    assert "this collection did not apply them" in refused.text
    assert datasets(fabric.bed, wanted, datasets_state="absent").code == 0
    assert fabric.bed.kubectl("get pv default-theirs")["spec"]["hostPath"] == {"path": "/srv", "type": ""}
    fabric.bed.on("cp1", f"{KUBECTL} delete pv default-theirs")


def test_a_removal_keeps_the_files(fabric: Fabric, volumes: list[dict[str, Any]]) -> None:
    fabric.bed.on(SERVER, f"echo kept > {FOLDER}/kept")
    assert datasets(fabric.bed, volumes, datasets_state="absent").code == 0
    assert fabric.bed.kubectl("get pv,pvc -A")["items"] == []
    assert fabric.bed.on(SERVER, f"cat {FOLDER}/kept") == "kept\n"
    # Bound again, though volumes of these names were there before.
    assert datasets(fabric.bed, volumes).code == 0
