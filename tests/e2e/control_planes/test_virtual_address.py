"""Three control planes that keep the address of the API themselves: it survives the loss of any of them.

While a client writes through that address and `site` runs, the control plane that holds it is killed. No write that was
acknowledged is lost. It comes back; another one is replaced by a fresh host.
"""

from __future__ import annotations

import json
import subprocess
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import kubernetes
import pytest
import urllib3
from ansible_collections.ipu.fabric.tests.e2e.bed import KUBECTL, Bed, wait_for

PLANES = ["cp1", "cp2", "cp3"]
SPACE = "virtual-address"
BETWEEN = 0.2  # seconds from one write to the next
LONGEST_GAP = 90  # seconds without a write; 4 s are keepalived's, the rest is for a machine that is busy


def address_of(bed: Bed) -> str:
    virtual: dict[str, Any] = bed.plan()["cluster"]["virtual_address"]
    return str(virtual["address"])


def up(bed: Bed) -> list[str]:
    """The control planes that run."""
    command = ["podman", "ps", "--format", "{{.Names}}"]
    running = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
    return [plane for plane in PLANES if f"ipu-fabric-{bed.number}-{plane}" in running]


def holders(bed: Bed) -> list[str]:
    shown = f"ip -o address show to {address_of(bed)}"
    return [plane for plane in up(bed) if bed.on(plane, shown, check=False).strip()]


def ready(bed: Bed, through: str) -> list[str]:
    """The nodes that are Ready, as one of the control planes says; none while the API does not answer."""
    text = bed.on(through, f"{KUBECTL} --request-timeout=10s get nodes -o json", check=False)
    nodes: list[dict[str, Any]] = json.loads(text)["items"] if text else []
    return sorted(
        node["metadata"]["name"]
        for node in nodes
        if any(c["type"] == "Ready" and c["status"] == "True" for c in node["status"]["conditions"])
    )


def members(bed: Bed, through: str) -> list[str]:
    pki = "/etc/kubernetes/pki/etcd"
    command = (
        f"{KUBECTL} -n kube-system exec etcd-{through} -- etcdctl --cacert {pki}/ca.crt --cert {pki}/server.crt "
        f"--key {pki}/server.key member list --write-out=json"
    )
    return sorted(member["name"] for member in json.loads(bed.on(through, command))["members"])


class Writer:
    """A client that makes one ConfigMap after another, and remembers which of them the API has acknowledged."""

    def __init__(self, kubeconfig: Path) -> None:
        self.api = kubernetes.client.CoreV1Api(kubernetes.config.new_client_from_config(str(kubeconfig)))
        self.acknowledged: list[str] = []
        self.failed = 0
        self.gap = 0.0  # the longest time without a write
        self.last = 0.0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> Writer:
        space = kubernetes.client.V1Namespace(metadata=kubernetes.client.V1ObjectMeta(name=SPACE))
        self.api.create_namespace(space)
        self.last = time.monotonic()
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _write(self, name: str) -> bool:
        body = kubernetes.client.V1ConfigMap(metadata=kubernetes.client.V1ObjectMeta(name=name), data={"name": name})
        try:
            self.api.create_namespaced_config_map(SPACE, body, _request_timeout=5)
        except kubernetes.client.ApiException as error:
            return bool(error.status == 409)  # urllib3 has tried it again: the first one had arrived
        except (urllib3.exceptions.HTTPError, OSError):
            return False
        return True

    def _run(self) -> None:
        number = 0
        while not self._stop.wait(BETWEEN):
            number += 1
            name = f"write-{number}"
            if self._write(name):
                now = time.monotonic()
                self.acknowledged.append(name)
                self.gap, self.last = max(self.gap, now - self.last), now
            else:
                self.failed += 1

    def lost(self) -> list[str]:
        kept = {item.metadata.name for item in self.api.list_namespaced_config_map(SPACE).items}
        return [name for name in self.acknowledged if name not in kept]


@pytest.fixture(scope="module")
def three(bed: Bed) -> Iterator[Bed]:
    bed.testbed("control-planes", "3", "--virtual-address")
    yield bed
    bed.testbed("control-planes", "1")


@pytest.mark.parametrize(
    ("last", "check"),
    [
        pytest.param(
            "2",
            "virtual-address-in-use",
            marks=pytest.mark.fault("the virtual address of the API is another host's"),
        ),
        pytest.param(
            "1",
            "virtual-address",
            marks=pytest.mark.fault("the virtual address of the API can't be held by the control planes"),
        ),
    ],
)
def test_an_address_of_somebody_else_is_refused(three: Bed, last: str, check: str) -> None:
    """2 is the mirror, which is in no inventory; 1 is the gateway."""
    network = three.on("cp1", "ip -o -4 address show eth0").split()[3].rpartition(".")[0]
    refused = three.play("plan", fabric_control_plane_vip=f"{network}.{last}")
    assert refused.code != 0
    assert check in {finding["check"] for finding in three.errors()}


def test_from_bare_hosts(three: Bed) -> None:
    checked = three.play("site", "--check")
    assert checked.code == 0
    assert not three.on("cp1", "ls /etc/keepalived", check=False)
    assert three.play("site").code == 0
    assert ready(three, "cp1") == [*PLANES, "w1"]
    assert members(three, "cp1") == PLANES
    assert holders(three) == ["cp1"]
    assert f"https://{address_of(three)}:6443" in three.on("w1", "cat /etc/kubernetes/kubelet.conf")
    again = three.play("site")
    assert (again.code, again.changed()) == (0, {})
    checked = three.play("site", "--check")
    assert (checked.code, checked.changed()) == (0, {})


def test_its_holder_is_killed_while_site_runs(three: Bed) -> None:
    """`site` joins a fresh worker meanwhile. It may fail, as the killed one was in it; the next run completes it."""
    three.testbed("reset", "w1")
    (holder,) = holders(three)
    left = [plane for plane in PLANES if plane != holder]
    with Writer(three.artifacts / "admin.conf") as writer, ThreadPoolExecutor(1) as pool:
        site = pool.submit(three.play, "site")
        joining = "ls /etc/kubernetes/pki/ca.crt"  # kubeadm join begins with it, and it stays
        wait_for("kubeadm joins w1", lambda: three.on("w1", joining, check=False).strip() or site.done(), 1200)
        assert not site.done(), "site ended before the control plane was killed"
        before = len(writer.acknowledged)
        subprocess.run(["podman", "kill", f"ipu-fabric-{three.number}-{holder}"], check=True)
        wait_for("another one holds the address", lambda: holders(three), 60)
        wait_for("writes go on", lambda: len(writer.acknowledged) > before + 20)
        print(f"site ended with {site.result().code}")
    assert len(holders(three)) == 1
    assert holders(three)[0] in left
    print(f"writes: {len(writer.acknowledged)} acknowledged, {writer.failed} failed, {writer.gap:.1f} s without any")
    assert before > 0
    assert writer.lost() == []
    assert writer.gap < LONGEST_GAP


def test_it_comes_back(three: Bed) -> None:
    """The address stays where it is: nobody takes it from one that is ready."""
    (holder,) = holders(three)
    (gone,) = (plane for plane in PLANES if plane not in up(three))
    subprocess.run(["podman", "start", f"ipu-fabric-{three.number}-{gone}"], check=True)
    wait_for(f"{gone} is Ready", lambda: gone in ready(three, holder))
    ready_there = f"{KUBECTL} --server https://{gone}:6443 get --raw /readyz"
    wait_for(f"the API server of {gone} is ready", lambda: three.on(gone, ready_there, check=False).strip() == "ok")
    assert holders(three) == [holder]
    assert three.play("site").code == 0
    assert ready(three, holder) == [*PLANES, "w1"]
    again = three.play("site")
    assert (again.code, again.changed()) == (0, {})


def test_its_holder_is_replaced(three: Bed) -> None:
    (holder,) = holders(three)
    three.testbed("reset", holder)
    wait_for("another one holds the address", lambda: holders(three), 60)
    (now,) = holders(three)
    assert now != holder
    assert three.play("site").code == 0
    assert ready(three, now) == [*PLANES, "w1"]
    assert members(three, now) == PLANES
    assert holders(three) == [now]
    assert three.on(holder, "systemctl is-active keepalived").strip() == "active"
    again = three.play("site")
    assert (again.code, again.changed()) == (0, {})
