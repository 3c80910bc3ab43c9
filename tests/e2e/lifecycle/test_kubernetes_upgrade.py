"""Kubernetes is upgraded by a minor release, under load: interrupted, blocked, and taken up again.

A service with two replicas is asked ten times a second by a client on a host, and each node has a pod on the fabric.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from ansible_collections.ipu.fabric.tests.e2e.bed import HOSTS, KUBECTL, Bed, Result
from ansible_collections.ipu.fabric.tests.unit.fixtures.paths import ROOT


def release(group: str) -> str:
    text = (ROOT / "testbed/programs" / group / "go.mod").read_text()
    return re.findall(r"k8s\.io/kubernetes v(\S+)", text)[0]


OLD, NEW = release("cluster"), release("kubernetes-next")
# Pods of the Deployment are taken out of the service before they end.
WORKLOAD = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      terminationGracePeriodSeconds: 20
      containers:
      - name: web
        image: docker.io/nicolaka/netshoot:v0.14
        command: [python3, -m, http.server, "8080", --directory, /etc/kubernetes-none]
        readinessProbe: {tcpSocket: {port: 8080}, periodSeconds: 1}
        lifecycle: {preStop: {sleep: {seconds: 10}}}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: web}
spec: {minAvailable: 1, selector: {matchLabels: {app: web}}}
---
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {selector: {app: web}, ports: [{port: 80, targetPort: 8080}]}
---
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: fabric}
spec:
  selector: {matchLabels: {app: fabric}}
  template:
    metadata: {labels: {app: fabric}, annotations: {k8s.v1.cni.cncf.io/networks: rdma-net}}
    spec:
      tolerations: [{operator: Exists}]
      containers: [{name: net, image: "docker.io/nicolaka/netshoot:v0.14", command: [sleep, infinity]}]
"""
# One pod on w1 that must not go.
BLOCKER = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: train}
spec:
  selector: {matchLabels: {app: train}}
  template:
    metadata: {labels: {app: train}}
    spec:
      nodeSelector: {kubernetes.io/hostname: w1}
      containers: [{name: wait, image: "docker.io/nicolaka/netshoot:v0.14", command: [sleep, infinity]}]
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: train-budget}
spec: {minAvailable: 1, selector: {matchLabels: {app: train}}}
"""
CLIENT = """
import sys, time, urllib.error, urllib.request
with open("/tmp/client.log", "w", buffering=1) as log:
    while True:
        try:
            urllib.request.urlopen("http://%s/" % sys.argv[1], timeout=5).read()
            said = "ok"
        except urllib.error.HTTPError:
            said = "ok"
        except OSError as error:
            said = "FAILED %s" % error
        log.write("%s %s\\n" % (time.strftime("%H:%M:%S"), said))
        time.sleep(0.1)
"""


def apply(bed: Bed, manifest: str) -> None:
    bed.on("cp1", f"{KUBECTL} apply -f - <<'END'{manifest}END")


WANTED: dict[str, Any] = {"fabric_kubernetes_version": NEW}


def upgrade(bed: Bed, *arguments: str, **given: Any) -> Result:
    return bed.play("upgrade", *arguments, **{**WANTED, **given})


def kill(bed: Bed, host: str, program: str, moment: Callable[[str], bool]) -> None:
    """Kill an upgrade at a moment of its output, and wait until a program of the host has ended and the API answers."""
    kept = dict(bed.variables)
    bed.variables.update(WANTED)
    try:
        bed.play_until("upgrade", moment, 1800)
    finally:
        bed.variables.clear()
        bed.variables.update(kept)
    deadline = time.monotonic() + 900
    ready = f"{KUBECTL} get --raw /readyz"
    while bed.on(host, f"pgrep -f '{program}'", check=False) or bed.on("cp1", ready, check=False).strip() != "ok":
        assert time.monotonic() < deadline, "kubeadm does not end, or no API server answers"
        time.sleep(2)


def nodes(bed: Bed) -> dict[str, str]:
    """Each node's release, with a mark at those that are out of service."""
    found = bed.kubectl("get nodes")["items"]
    return {
        node["metadata"]["name"]: node["status"]["nodeInfo"]["kubeletVersion"].lstrip("v")
        + (" cordoned" if node["spec"].get("unschedulable") else "")
        for node in found
    }


def on_the_fabric(bed: Bed) -> dict[str, tuple[str, list[str]]]:
    """Of the pod on each node its identity, and the addresses that it has on the fabric, seen from inside."""
    found = {}
    for pod in bed.kubectl("get pods -l app=fabric")["items"]:
        seen = bed.on("cp1", f"{KUBECTL} exec {pod['metadata']['name']} -- ip -o -4 address show dev net1")
        restarts = pod["status"]["containerStatuses"][0]["restartCount"]
        addresses = re.findall(r"inet (\S+)", seen)
        found[pod["spec"]["nodeName"]] = (f"{pod['metadata']['uid']}, {restarts} restarts", addresses)
    return found


def requests(bed: Bed) -> tuple[int, list[str]]:
    lines = bed.on("cp1", "cat /tmp/client.log").splitlines()
    return len(lines), [line for line in lines if "FAILED" in line]


@pytest.fixture(scope="module")
def loaded(bed: Bed) -> Iterator[Bed]:
    """A finished site of the older release, with the workload and its client."""
    bed.testbed("kubernetes", "2")
    bed.testbed("reset")
    assert bed.play("site", fabric_kubernetes_version=OLD).code == 0
    apply(bed, WORKLOAD)
    bed.on("cp1", f"{KUBECTL} rollout status deployment/web --timeout=5m")
    bed.on("cp1", f"{KUBECTL} rollout status daemonset/fabric --timeout=5m")
    address = bed.kubectl("get service web")["spec"]["clusterIP"]
    bed.on("cp1", f"cat >/tmp/client.py <<'END'{CLIENT}END")
    bed.on("cp1", f"systemd-run --unit=client python3 /tmp/client.py {address}")
    yield bed
    bed.testbed("reset")
    bed.testbed("kubernetes", "1")


@pytest.fixture(scope="module")
def fabric_before(loaded: Bed) -> dict[str, tuple[str, list[str]]]:
    found = on_the_fabric(loaded)
    assert sorted(found) == sorted(HOSTS)
    assert all(addresses for _pod, addresses in found.values())
    return found


@pytest.mark.fault("an upgrade skips a minor release, or goes back")
def test_site_sends_to_the_upgrade(loaded: Bed, fabric_before: Any) -> None:
    refused = loaded.play("site", **WANTED)
    assert refused.code != 0
    assert "Run ipu.fabric.upgrade" in " ".join(refused.shown.split())
    two = OLD.split(".")
    beyond = f"{two[0]}.{int(two[1]) + 2}.0"  # which no table and no repository may have yet
    unknown = {"fabric_allow": ["kubernetes-version", "kubernetes-range", "cgroup-v2"], "fabric_probe_sources": False}
    skipped = upgrade(loaded, fabric_kubernetes_version=beyond, **unknown)
    assert skipped.code != 0
    first = f"fabric_kubernetes_version to a release of {two[0]}.{int(two[1]) + 1} first"
    assert first in " ".join(skipped.shown.split())


def test_check_mode_shows_the_turns(loaded: Bed) -> None:
    before = loaded.state()
    checked = upgrade(loaded, "--check")
    assert checked.code == 0
    for host in HOSTS:
        assert re.search(rf"^ *{host} +{re.escape(OLD)} +{re.escape(NEW)}", checked.shown, re.MULTILINE)
        assert checked.changed()[host] > 0
    assert loaded.state() == before


def test_killed_in_the_control_plane(loaded: Bed) -> None:
    program = "[k]ubeadm upgrade apply"
    kill(loaded, "cp1", program, lambda _output: bool(loaded.on("cp1", f"pgrep -f '{program}'", check=False)))
    assert nodes(loaded)["w1"] == OLD


def test_a_budget_blocks_a_drain(loaded: Bed) -> None:
    """The run goes on where the killed one was; the control plane is done, and the worker is left as it was."""
    apply(loaded, BLOCKER)
    loaded.on("cp1", f"{KUBECTL} rollout status deployment/train --timeout=5m")
    blocked = upgrade(loaded, upgrade_drain_timeout=60)
    assert blocked.code != 0
    said = " ".join(blocked.shown.split())
    assert "pod default/train-" in said
    assert "The disruption budget train-budget needs 1 healthy pods" in said
    assert nodes(loaded) == {"cp1": NEW, "w1": OLD}
    loaded.on("cp1", f"{KUBECTL} delete deployment/train pdb/train-budget")


def test_killed_on_the_worker(loaded: Bed) -> None:
    # kubeadm may take less than a second there: the kubelet is still the old one when it begins, and when it has ended.
    task = "TASK [ipu.fabric.kubernetes : Upgrade the control plane's pods and the kubelet's configuration]"
    kill(loaded, "w1", "[k]ubeadm upgrade node", lambda output: task in output)
    assert nodes(loaded)["w1"] == f"{OLD} cordoned"


def test_the_next_run_ends_it(loaded: Bed) -> None:
    assert upgrade(loaded).code == 0
    assert nodes(loaded) == dict.fromkeys(HOSTS, NEW)
    versions = "dpkg-query -W -f '${Version}\\n' kubelet kubeadm kubectl; apt-mark showhold"
    for host in HOSTS:
        lines = loaded.on(host, versions).split()
        assert lines[:3] == [f"{NEW}-1.1"] * 3
        assert {"kubelet", "kubeadm", "kubectl"} <= set(lines[3:])
    snapshots = loaded.on("cp1", "stat -c '%a %n' /var/lib/ipu-fabric/snapshots/*").splitlines()
    assert snapshots
    assert all(line.startswith("600 ") for line in snapshots)


def test_the_workload_did_not_notice(loaded: Bed, fabric_before: dict[str, tuple[str, list[str]]]) -> None:
    """The client's requests are new connections, all through two drains of each node."""
    count, failed = requests(loaded)
    print(f"{count} requests, {len(failed)} failed: {failed[:20]}")
    assert count > 1000
    assert failed == []
    assert on_the_fabric(loaded) == fabric_before


def test_a_second_run_changes_nothing(loaded: Bed) -> None:
    again = upgrade(loaded)
    assert (again.code, again.changed()) == (0, {})


def test_site_goes_on_with_the_new_release(loaded: Bed) -> None:
    # The control plane has renewed its administrator's certificate.
    first = loaded.play("site", **WANTED)
    assert first.code == 0
    again = loaded.play("site", **WANTED)
    assert (again.code, again.changed()) == (0, {})
