"""Admission by proof: who is closed to new pods, by what, and for how long. In this order on one cluster."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.ipu.fabric.tests.e2e import prover
from ansible_collections.ipu.fabric.tests.e2e.bed import KUBECTL, Bed, wait_for
from ansible_collections.ipu.fabric.tests.e2e.fabric.test_any_cluster import apply, everything
from ansible_collections.ipu.fabric.tests.e2e.fabric.test_faults import PULL, machine, switch_port

ENFORCE = {"fabric_admission": "enforce", "fabric_probe_ports": False}
KEY = "ipu.fabric/unproved"
BOTH = {"cp1": ("True", "Proved", False), "w1": ("True", "Proved", False)}
Shown = tuple[str, str, bool]


def marks(bed: Bed) -> dict[str, Shown]:
    """By node the status and reason of its condition, and whether it has the taint."""
    found = {}
    for node in bed.kubectl("get nodes")["items"]:
        mine = [each for each in node["status"]["conditions"] if each["type"] == "FabricProved"]
        tainted = any(taint["key"] == KEY for taint in node["spec"].get("taints", []))
        found[node["metadata"]["name"]] = (*((mine[0]["status"], mine[0]["reason"]) if mine else ("", "")), tainted)
    return found


def message(bed: Bed, node: str) -> str:
    conditions = bed.kubectl(f"get node {node}")["status"]["conditions"]
    return next(each["message"] for each in conditions if each["type"] == "FabricProved")


def left(bed: Bed) -> list[str]:
    """What nodes have of ours, but for who wrote it, which kubectl leaves out."""
    nodes = bed.kubectl("get nodes")["items"]
    words = ("FabricProved", KEY, "ipu.fabric/proof")
    return [f"{word} on {node['metadata']['name']}" for node in nodes for word in words if word in json.dumps(node)]


def prove(bed: Bed, **variables: Any) -> int:
    """The proof alone, of the plan that is there. It ends as it should, or says why."""
    result = bed.prove(bed.plan(), fabric_admission="enforce", **variables)
    assert "Traceback" not in result.text
    return result.code


@pytest.fixture(scope="module")
def closing(bed: Bed) -> Bed:
    """A cluster whose nodes are proved, with fabric_admission: enforce."""
    result = bed.play("site", fabric_admission="enforce")
    assert result.code == 0
    assert "Admission" in result.shown
    assert marks(bed) == BOTH
    bed.hosts = "used"
    return bed


def test_a_second_run_and_a_check_change_nothing(closing: Bed) -> None:
    for arguments in (["--check"], []):
        result = closing.play("site", *arguments, **ENFORCE)
        assert (result.code, result.changed()) == (0, {})
    assert marks(closing) == BOTH


def test_a_new_node_takes_no_job_until_it_is_proved(closing: Bed) -> None:
    assert closing.play("remove_node", fabric_remove_nodes="w1").code == 0
    assert marks(closing) == {"cp1": BOTH["cp1"]}
    assert closing.play("kubernetes", **ENFORCE).code == 0
    assert marks(closing)["w1"] == ("", "", True)  # it has joined with the taint
    assert closing.play("fabric", **ENFORCE).code == 0
    assert marks(closing) == {"cp1": BOTH["cp1"], "w1": ("Unknown", "New", True)}
    job = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "waits"},
        "spec": {
            "template": {
                "spec": {
                    "nodeSelector": {"kubernetes.io/hostname": "w1"},
                    "restartPolicy": "Never",
                    "containers": [{"name": "true", "image": PULL, "command": ["true"]}],
                }
            }
        },
    }
    closing.on("cp1", f"{KUBECTL} apply -f - <<'EOF'\n{json.dumps(job)}\nEOF")

    def pod() -> dict[str, Any]:
        items = closing.kubectl("get pods -l job-name=waits")["items"]
        return items[0]["status"] if items else {}

    wait_for("the scheduler has looked at the job", lambda: pod().get("conditions"), 60)
    assert pod()["phase"] == "Pending"
    assert "untolerated taint" in pod()["conditions"][0]["message"]
    assert prove(closing) == 0
    assert marks(closing) == BOTH
    wait_for("the job has run", lambda: pod().get("phase") == "Succeeded", 180)
    closing.on("cp1", f"{KUBECTL} delete job waits")


def test_a_broken_path_closes_the_node_at_fault(closing: Bed) -> None:
    port = switch_port(closing, "w1")
    machine("ip", "link", "set", port, "down")
    try:
        assert prove(closing) != 0
        assert marks(closing) == {"cp1": BOTH["cp1"], "w1": ("False", "CheckFailed", True)}
        assert "Next: " in message(closing, "w1")
        assert KEY in closing.on("cp1", f"{KUBECTL} describe node w1")
    finally:
        machine("ip", "link", "set", port, "up")
    assert prove(closing) == 0
    assert marks(closing) == BOTH


def test_a_reboot_reopens_the_question(closing: Bed) -> None:
    """The containers that hosts are here share the machine's boot ID: this one gets another."""
    boot = "/proc/sys/kernel/random/boot_id"
    closing.on("w1", f"cat /proc/sys/kernel/random/uuid > /run/boot_id && mount --bind /run/boot_id {boot}")
    try:
        before = closing.kubectl("get node w1")["status"]["nodeInfo"]["bootID"]
        closing.on("w1", "systemctl restart kubelet")
        wait_for(
            "the kubelet tells it", lambda: closing.kubectl("get node w1")["status"]["nodeInfo"]["bootID"] != before
        )
        arguments = ["--tags", "verify"]
        assert closing.play("fabric", *arguments, **ENFORCE).code == 0
        assert marks(closing) == {"cp1": BOTH["cp1"], "w1": ("Unknown", "Rebooted", True)}
        assert message(closing, "w1").startswith("Rebooted since the proof of 20")
        assert prove(closing, verify_checks=["ping"]) == 0  # some checks open nothing
        assert marks(closing)["w1"] == ("Unknown", "Rebooted", True)
        assert prove(closing, verify_nodes=["w1"]) == 0
        assert marks(closing) == BOTH
    finally:
        closing.on("w1", f"umount {boot} && systemctl restart kubelet")
    assert prove(closing) == 0


def test_a_check_that_fails_everywhere_leaves_a_node_open(closing: Bed) -> None:
    assert prove(closing, verify_memlock="unlimited") != 0
    assert sorted(marks(closing).values()) == [("False", "CheckFailed", False), ("False", "CheckFailed", True)]
    (opened,) = [name for name, (_status, _reason, tainted) in marks(closing).items() if not tainted]
    assert "Left open: fabric_max_unproved (10%) allows no more closed nodes than 1." in message(closing, opened)
    assert prove(closing) == 0
    assert marks(closing) == BOTH


PROOFS = "ipu-fabric-proof"
REPORTS = "/srv/reports"  # on whichever host the prover runs
SCHEDULE = {
    "verify_schedule": "0 0 29 2 *",  # tests start it
    "verify_schedule_slice": "1",
    "verify_schedule_claim": "reports",
}


def volume() -> list[dict[str, Any]]:
    """A claim, and the directory of a host that is its volume."""
    spec = {"accessModes": ["ReadWriteOnce"], "storageClassName": "", "volumeName": "reports"}
    size = {"storage": "1Gi"}
    place = {"name": "reports", "namespace": PROOFS}
    return [
        {
            "apiVersion": "v1",
            "kind": "PersistentVolume",
            "metadata": {"name": "reports"},
            "spec": {"accessModes": ["ReadWriteOnce"], "capacity": size, "hostPath": {"path": REPORTS}},
        },
        {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": place,
            "spec": {**spec, "resources": {"requests": size}},
        },
    ]


def times(bed: Bed) -> dict[str, str]:
    """When each node was last judged."""
    found = {}
    for node in bed.kubectl("get nodes")["items"]:
        mine = [each for each in node["status"]["conditions"] if each["type"] == "FabricProved"]
        found[node["metadata"]["name"]] = mine[0]["lastHeartbeatTime"]
    return found


def scheduled(bed: Bed, name: str) -> tuple[bool, str, dict[str, Any]]:
    """Whether a job of the CronJob succeeded, its log and its report. Afterwards the cluster has what it had before."""
    before, words = everything(bed), f"{KUBECTL} -n {PROOFS}"
    bed.on("cp1", f"{words} create job --from=cronjob/prover {name}")

    def ended() -> dict[str, Any]:
        status = bed.kubectl(f"-n {PROOFS} get job {name}")["status"]
        return {each["type"]: each for each in status.get("conditions", [])}

    wait_for("the scheduled proof", lambda: {"Complete", "Failed"} & ended().keys(), 400)
    log, done = bed.on("cp1", f"{words} logs job/{name}"), "Complete" in ended()
    print(log)
    node = bed.kubectl(f"-n {PROOFS} get pods -l job-name={name}")["items"][0]["spec"]["nodeName"]
    report = json.loads(bed.on(node, f"cat {REPORTS}/report.json && rm -r {REPORTS}/*"))
    bed.on("cp1", f"{words} delete job {name}")
    wait_for("the objects from before", lambda: everything(bed).keys() <= before.keys(), 60)
    assert everything(bed) == before
    return done, log, report


def test_a_scheduled_proof(closing: Bed, tmp_path: Path) -> None:
    before = everything(closing)
    schedule = {**SCHEDULE, "verify_schedule_image": prover.put_on_hosts(closing, tmp_path)}
    for host in ("cp1", "w1"):
        closing.on(host, f"mkdir -m 777 {REPORTS}")
    assert prove(closing, **schedule) == 0
    apply(closing, *volume())
    space = f"-n {PROOFS}"
    wait_for("the claim", lambda: closing.kubectl(f"get pvc reports {space}")["status"]["phase"] == "Bound")
    # What every namespace gets, a little later.
    wait_for("its account", lambda: "default" in closing.on("cp1", f"{KUBECTL} get serviceaccounts {space}"))
    wait_for("its CA", lambda: "kube-root-ca.crt" in closing.on("cp1", f"{KUBECTL} get configmaps {space}"))
    first = times(closing)
    done, log, report = scheduled(closing, "healthy")
    assert (done, report["outcome"]) == (True, "proved"), log
    assert "WARNING" not in log
    assert marks(closing) == BOTH
    second = times(closing)
    assert second["cp1"] > first["cp1"]  # as old as the other, and first by its name
    assert second["w1"] == first["w1"]
    port = switch_port(closing, "w1")
    machine("ip", "link", "set", port, "down")
    try:
        done, log, report = scheduled(closing, "broken")
    finally:
        machine("ip", "link", "set", port, "up")
    assert (done, report["outcome"]) == (False, "failed"), log
    assert marks(closing) == {"cp1": BOTH["cp1"], "w1": ("False", "CheckFailed", True)}
    assert times(closing)["cp1"] == second["cp1"]
    assert "FabricProvedFalse" in closing.on("cp1", f"{KUBECTL} describe node w1")
    closing.on("cp1", f"{KUBECTL} {space} delete pvc reports && {KUBECTL} delete pv reports")
    assert prove(closing, verify_schedule="none") == 0
    assert marks(closing) == BOTH
    wait_for("the objects from before", lambda: everything(closing).keys() <= before.keys(), 60)


def test_nothing_is_left(closing: Bed) -> None:
    assert closing.play("fabric", **{**ENFORCE, "fabric_admission": False}).code == 0  # a bare off in YAML
    assert left(closing) == []
    assert prove(closing) == 0
    assert len(left(closing)) == 4
    assert "nodes marked by the proof" in closing.play("reset").shown
    assert closing.play("reset", fabric_reset="fabric").code == 0
    assert left(closing) == []
