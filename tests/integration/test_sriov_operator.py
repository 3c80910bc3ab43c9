"""What the role renders for VFs, by the real SR-IOV operator on a real API server.

Its daemon on each node is played: it says which NICs there are, and later that the VFs have been made.
"""

from __future__ import annotations

import json
import os
import subprocess
import typing as t
from pathlib import Path

import pytest
from ansible_collections.ipu.fabric.plugins.module_utils._common.cni import split_chain
from ansible_collections.ipu.fabric.plugins.module_utils._component.network_operator import sriov_policy, with_vfs
from ansible_collections.ipu.fabric.plugins.module_utils._kube.multus import nad_faults
from ansible_collections.ipu.fabric.plugins.module_utils._model.profiles import OWN_ARP, SRIOV
from ansible_collections.ipu.fabric.tests.integration.api_server import (
    NAD_CRD,
    ApiServer,
    Modules,
    built,
    crds,
    eventually,
    free_port,
)
from ansible_collections.ipu.fabric.tests.unit.fixtures.components import defaults

HOME = "sriov-test"  # the operator's namespace
NODE = "sriov-w1"
PF = {"name": "ens1f0", "pciAddress": "0000:81:00.0", "vendor": "15b3", "deviceID": "101d", "driver": "mlx5_core",
      "linkType": "ETH", "totalvfs": 16, "mtu": 1500, "mac": "b8:3f:d2:00:00:01"}  # fmt: skip
IB = {**PF, "name": "ibs2", "pciAddress": "0000:a1:00.0", "linkType": "IB"}
POLICIES = [
    {"name": "rail-0", "resource": "sriov_a", "pci": ["0000:81:00.0"], "vfs": 8, "mtu": 9000, "link_layer": "Ethernet"},
    {"name": "rail-1", "resource": "sriov_b", "pci": ["0000:a1:00.0"], "vfs": 4, "mtu": 0, "link_layer": "InfiniBand"},
]
NETWORK = {"namespace": "default", "mtu": 0, "ipam": {"type": "nv-ipam", "poolName": "rail"}}
NETWORKS = [
    {**NETWORK, "name": "sriov-rail", "cni": "sriov", "resource": "nvidia.com/sriov_a"},
    {
        **NETWORK,
        "name": "sriov-table",
        "cni": "sriov",
        "resource": "nvidia.com/sriov_a",
        "meta_plugins": [{"type": "tuning", "sysctl": OWN_ARP}, {"type": "sbr"}],
    },
    {**NETWORK, "name": "sriov-ib-rail", "cni": "ib-sriov", "resource": "nvidia.com/sriov_b"},
]


def named(api_version: str, kind: str, name: str, **more: t.Any) -> t.Dict[str, t.Any]:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name, "namespace": HOME}, **more}


@pytest.fixture(scope="module")
def operator(api: ApiServer, schemas: Path, tmp_path_factory: pytest.TempPathFactory) -> t.Iterator[None]:
    """It runs with its definitions and its configuration, and with a node on which the network operator has a label."""
    home, log = built("sriov-operator"), tmp_path_factory.mktemp("sriov") / "log"
    run = Modules(api.kubeconfig)
    definitions = crds(*sorted((home / "config/crd/bases").glob("*.yaml")), schemas / NAD_CRD)
    run("kube_apply", objects=definitions, validation="Warn")
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": HOME}}
    labels = {"kubernetes.io/os": "linux", "feature.node.kubernetes.io/pci-15b3.present": "true"}
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": NODE, "labels": labels}}
    selector = {"configDaemonNodeSelector": {"kubernetes.io/os": "linux"}, "enableInjector": False}
    config = named(SRIOV, "SriovOperatorConfig", "default", spec={**selector, "enableOperatorWebhook": False})
    nics = named("v1", "ConfigMap", "supported-nic-ids", data={"Nvidia_mlx5_ConnectX-6_Dx": "15b3 101d 101e"})
    run("kube_apply", objects=[namespace, node])
    run("kube_apply", objects=[config, nics])
    environment = {
        **os.environ, "KUBECONFIG": str(api.kubeconfig), "NAMESPACE": HOME, "CLUSTER_TYPE": "kubernetes",
        "RESOURCE_PREFIX": "nvidia.com", "DEV_MODE": "FALSE",
    }  # fmt: skip
    ports = [f"--metrics-bind-address=127.0.0.1:{free_port()}", f"--health-probe-bind-address=127.0.0.1:{free_port()}"]
    with open(log, "wb") as output:
        program = subprocess.Popen(
            [home / "sriov-network-operator", *ports], cwd=home, env=environment, stdout=output, stderr=output
        )

    def knows_the_node() -> bool:
        assert program.poll() is None, log.read_text()[-2000:]
        return api.kubectl("-n", HOME, "get", "sriovnetworknodestate", NODE, check=False).returncode == 0

    try:
        assert eventually(knows_the_node, 60)
        yield
    finally:
        program.terminate()
        program.wait(20)
        run("kube_apply", objects=[node], state="absent")


def says(api: ApiServer, **status: t.Any) -> None:
    """What the daemon of the node writes."""
    patch = json.dumps({"status": {"interfaces": [PF, IB], **status}})
    place = ("-n", HOME, "patch", "sriovnetworknodestate", NODE, "--subresource=status")
    api.kubectl(*place, "--type=merge", "-p", patch)


@pytest.mark.usefixtures("operator")
def test_policies_become_vfs_and_a_resource(api: ApiServer, run: Modules) -> None:
    says(api)
    settings = defaults("network_operator", namespace=HOME)
    assert run("kube_apply", objects=[sriov_policy(settings, policy) for policy in POLICIES])["changed"]

    def wanted() -> t.Dict[str, t.Any]:
        spec = api.get("-n", HOME, "sriovnetworknodestate", NODE)["spec"]
        return {each["pciAddress"]: each for each in spec.get("interfaces", [])}

    assert eventually(lambda: len(wanted()) == len(POLICIES), 60)
    one, other = (wanted()[policy["pci"][0]] for policy in POLICIES)
    assert (one["numVfs"], one["mtu"], one["linkType"]) == (8, 9000, "eth")
    assert (other["numVfs"], other["linkType"]) == (4, "ib")
    assert one["vfGroups"][0]["resourceName"] == "sriov_a"

    def plugin() -> t.Dict[str, t.Any]:
        data = api.get("-n", HOME, "configmap", "device-plugin-config")["data"]
        return {each["resourceName"]: each["selectors"] for each in json.loads(data[NODE])["resourceList"] or ()}

    assert eventually(lambda: set(plugin()) == {"sriov_a", "sriov_b"}, 60)
    assert plugin()["sriov_a"]["IsRdma"]
    state = with_vfs(NODE, HOME)
    says(api, syncStatus="InProgress")
    assert run("kube_wait", objects=[state], timeout=1, check=True)["pending"]
    says(api, syncStatus="Succeeded")
    assert not run("kube_wait", objects=[state], timeout=10)["pending"]
    assert not run("kube_apply", objects=[sriov_policy(settings, policy) for policy in POLICIES])["changed"]


@pytest.mark.usefixtures("operator")
def test_networks_become_attachments(api: ApiServer, run: Modules) -> None:
    made = {"networks": NETWORKS, "pool_namespace": HOME}
    assert run("macvlan_network", **made)["changed"]

    def attachments() -> t.Dict[str, t.Any]:
        found = api.get("-n", "default", "network-attachment-definitions")["items"]
        ours = {network["name"] for network in NETWORKS}
        return {each["metadata"]["name"]: each for each in found if each["metadata"]["name"] in ours}

    assert len(attachments()) == len(NETWORKS)
    for network in NETWORKS:
        nad = attachments()[network["name"]]
        assert nad["metadata"]["annotations"]["k8s.v1.cni.cncf.io/resourceName"] == network["resource"]
        assert nad_faults(nad, network) == []
        config, _following = split_chain(json.loads(nad["spec"]["config"]), network["cni"])
        assert (config["type"], config["ipam"]) == (network["cni"], network["ipam"])
    assert not run("macvlan_network", **made)["changed"]
    without = [{key: value for key, value in network.items() if key != "meta_plugins"} for network in NETWORKS]
    assert run("macvlan_network", networks=without, pool_namespace=HOME)["changed"]
    assert all("plugins" not in json.loads(nad["spec"]["config"]) for nad in attachments().values())
    run("macvlan_network", **made, state="absent")
    assert not attachments()
