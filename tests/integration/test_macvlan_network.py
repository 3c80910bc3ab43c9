from __future__ import annotations

import contextlib
import json
import subprocess
import threading
import time
import typing as t
import zlib
from pathlib import Path

import pytest
from ansible_collections.ipu.fabric.tests.integration.api_server import ApiServer, ModuleFailedError, Modules, crds

IPAM = {"type": "whereabouts", "range": "10.5.0.0/24", "exclude": ["10.5.0.0/25"]}
REVISION = "nvidia.network-operator.revision"
NETWORK = {"master": "ens1f0", "mtu": 1500, "ipam": IPAM, "timeout": 60}


class Operator(threading.Thread):
    """Stands for the network operator and the garbage collector: one NAD for each MacvlanNetwork.

    As the real one, it leaves a NAD alone that has the note of what it would write.
    """

    def __init__(self, api: ApiServer) -> None:
        super().__init__(daemon=True)
        self.api, self.ended, self.broken = api, threading.Event(), False

    def run(self) -> None:
        while not self.ended.wait(0.2):
            with contextlib.suppress(subprocess.CalledProcessError):
                self.reconcile()

    def reconcile(self) -> None:
        networks = {item["metadata"]["name"]: item for item in self.api.get("macvlannetworks")["items"]}
        nads = self.api.get("network-attachment-definitions", "-A")["items"]
        for place in [nad["metadata"] for nad in nads if nad["metadata"]["name"] not in networks]:
            self.api.kubectl("delete", "network-attachment-definition", place["name"], "-n", place["namespace"])
        notes = {nad["metadata"]["name"]: nad["metadata"].get("annotations", {}).get(REVISION) for nad in nads}
        for name, network in networks.items():
            if notes.get(name) != self.nad(network)["metadata"]["annotations"][REVISION]:
                self.api.kubectl("apply", "-f", "-", stdin=json.dumps(self.nad(network)))

    def nad(self, network: t.Dict[str, t.Any]) -> t.Dict[str, t.Any]:
        spec, metadata = network["spec"], network["metadata"]
        owner = {"apiVersion": network["apiVersion"], "kind": network["kind"], "name": metadata["name"]}
        mtu = f'"mtu":{spec["mtu"]},' if spec.get("mtu") else ""
        ipam = "broken" if self.broken else spec["ipam"]
        config = f'{{"cniVersion":"0.3.1","name":"{metadata["name"]}","type":"macvlan","master":"{spec["master"]}",'
        config += f'"mode":"{spec["mode"]}",{mtu}"ipam":{ipam}}}'
        return {
            "apiVersion": "k8s.cni.cncf.io/v1",
            "kind": "NetworkAttachmentDefinition",
            "metadata": {
                "name": metadata["name"],
                "namespace": spec["networkNamespace"],
                "annotations": {REVISION: str(zlib.crc32(config.encode()))},
                "ownerReferences": [{**owner, "uid": metadata["uid"]}],
            },
            "spec": {"config": config},
        }


@pytest.fixture(scope="module")
def operator(api: ApiServer, schemas: Path) -> t.Iterator[Operator]:
    files = crds(*(schemas / "network-operator" / "26.4.1").glob("*crd.yaml"))
    files += crds(schemas / "network-operator" / "26.4.1" / "mellanox.com_macvlannetworks.yaml")
    Modules(api.kubeconfig)("kube_apply", objects=files, validation="Warn")
    thread = Operator(api)
    thread.start()
    yield thread
    thread.ended.set()
    thread.join()


@pytest.mark.usefixtures("operator")
def test_check_create_again_update_remove(run: Modules, api: ApiServer) -> None:
    assert run("macvlan_network", check=True, name="rdma-net", **NETWORK)["changed"]
    assert not api.get("macvlannetworks")["items"]
    created = run("macvlan_network", name="rdma-net", **NETWORK)
    assert created["networks"] == ["rdma-net"]
    assert created["diff"]["before"] == {"rdma-net": None}
    assert created["diff"]["after"]["rdma-net"]["ipam"] == IPAM
    assert not run("macvlan_network", name="rdma-net", **NETWORK)["changed"]
    assert not run("macvlan_network", check=True, name="rdma-net", **NETWORK)["changed"]
    update = {**NETWORK, "mtu": 9000}
    assert run("macvlan_network", check=True, name="rdma-net", **update)["changed"]
    assert run("macvlan_network", name="rdma-net", **update)["diff"]["before"]["rdma-net"]["mtu"] == 1500
    nad = api.get("network-attachment-definition", "rdma-net")
    assert json.loads(nad["spec"]["config"])["mtu"] == 9000
    assert run("macvlan_network", check=True, name="rdma-net", state="absent")["changed"]
    assert run("macvlan_network", name="rdma-net", state="absent")["changed"]
    assert not api.get("network-attachment-definitions")["items"]
    assert not run("macvlan_network", name="rdma-net", state="absent")["changed"]


@pytest.mark.usefixtures("operator")
def test_eight_rails_in_one_call(run: Modules) -> None:
    rails = [{"name": f"rail-{n}", "master": f"ens{n}f0", "ipam": IPAM} for n in range(8)]
    assert len(run("macvlan_network", networks=rails)["networks"]) == 8
    rails[3] = {**rails[3], "mode": "private"}
    assert run("macvlan_network", networks=rails)["networks"] == ["rail-3"]
    assert len(run("macvlan_network", networks=rails, state="absent")["networks"]) == 8


@pytest.mark.usefixtures("operator")
def test_a_nad_that_was_edited_is_created_again(run: Modules, api: ApiServer) -> None:
    run("macvlan_network", name="rdma-net", **NETWORK)
    nad = api.get("network-attachment-definition", "rdma-net")
    config = json.dumps({**json.loads(nad["spec"]["config"]), "mtu": 1400})
    patch = json.dumps({"spec": {"config": config}})
    api.kubectl("patch", "network-attachment-definition", "rdma-net", "--type", "merge", "--patch", patch)
    assert run("macvlan_network", check=True, name="rdma-net", **NETWORK)["networks"] == ["rdma-net"]
    edited = api.get("network-attachment-definition", "rdma-net")
    assert (edited["metadata"]["uid"], edited["spec"]["config"]) == (nad["metadata"]["uid"], config)
    found = run("macvlan_network", name="rdma-net", **NETWORK)["diff"]["before"]
    assert found["NetworkAttachmentDefinition default/rdma-net"]["mtu"] == 1400
    assert api.get("network-attachment-definition", "rdma-net")["spec"] == nad["spec"]
    assert not run("macvlan_network", name="rdma-net", **NETWORK)["changed"]
    run("macvlan_network", name="rdma-net", state="absent")


def test_ready_is_no_proof(run: Modules, api: ApiServer, operator: Operator) -> None:
    operator.broken = True
    with pytest.raises(ModuleFailedError, match="is not valid JSON"):
        run("macvlan_network", name="broken", **{**NETWORK, "timeout": 2})
    operator.broken = False
    end = time.monotonic() + 30
    while "broken}" in api.get("network-attachment-definition", "broken")["spec"]["config"]:
        assert time.monotonic() < end
        time.sleep(0.1)
    assert not run("macvlan_network", name="broken", **NETWORK)["changed"]
    run("macvlan_network", name="broken", state="absent")


@pytest.mark.usefixtures("operator")
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"namespace": "nowhere"}, "no such namespace"),
        ({"master": ""}, "needs its master"),
        ({"mode": "routed"}, "value of mode must be one of"),
        ({"mtu": -1}, "should be greater than or equal to 0"),
        ({"vlan": 5}, "Unsupported parameters"),
    ],
)
def test_refusals(run: Modules, api: ApiServer, options: t.Dict[str, t.Any], message: str) -> None:
    with pytest.raises(ModuleFailedError, match=message):
        run("macvlan_network", name="refused", **{**NETWORK, **options})
    assert not api.get("macvlannetworks")["items"]


def test_absent_without_the_kind(run: Modules, api: ApiServer, operator: Operator) -> None:
    operator.ended.set()
    operator.join()
    names = ("macvlannetworks.mellanox.com", "network-attachment-definitions.k8s.cni.cncf.io")
    api.kubectl("delete", "crd", *names)
    assert not run("macvlan_network", name="rdma-net", state="absent")["changed"]
    assert run("macvlan_network", check=True, name="rdma-net", **NETWORK)["changed"]
    with pytest.raises(ModuleFailedError, match="Install the operator that defines it"):
        run("macvlan_network", name="rdma-net", **NETWORK)
