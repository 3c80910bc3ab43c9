"""The proof of networks whose pods get a device of their own, by the real CNI plugins and the probe's script.

Two network namespaces play a pod and the rack behind its NIC; a third one, the node, owns the NIC until the pod has it.
It is a veth, without RDMA and PCI: the plugin `host-device` gets its name where it would get a PCI address, and plays
the plugin `sriov` too, which moves a VF in the same way. `static` plays nv-ipam.
"""

from __future__ import annotations

import json
import os
import subprocess
import typing as t
from pathlib import Path

import pytest
from ansible_collections.ipu.fabric.plugins.module_utils._kube.multus import planned_config
from ansible_collections.ipu.fabric.plugins.module_utils._verify import parsers, pods
from ansible_collections.ipu.fabric.plugins.module_utils._verify.checks import pod_checks
from ansible_collections.ipu.fabric.tests.unit.fixtures.paths import ROOT
from ansible_collections.ipu.fabric.tests.unit.plugins.module_utils._plan.test_own_devices import nic, planned

Facts = t.Dict[str, t.Any]
NODE, POD, RACK = (f"own-{name}-{os.getpid()}" for name in ("node", "pod", "rack"))
NIC, INTERFACE, ADDRESS, GATEWAY = "ens1f0", "net1", "10.5.0.130/24", "10.5.0.1"
SCRIPT = (ROOT / "plugins/plugin_utils/_probe/pod.sh").read_text()


def ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True, capture_output=True, text=True, timeout=30)


def within(namespace: str, *command: str, **options: t.Any) -> str:
    argv = ["ip", "netns", "exec", namespace, *command]
    done = subprocess.run(argv, check=False, capture_output=True, text=True, timeout=60, **options)
    return done.stdout


@pytest.fixture
def namespaces() -> t.Iterator[None]:
    """The node has the NIC, the rack its gateway, and the pod the cluster's network with the default route."""
    if os.geteuid() != 0:
        pytest.skip("network namespaces need root")
    try:
        for name in (NODE, POD, RACK):
            ip("netns", "add", name)
        ip("-n", NODE, "link", "add", NIC, "mtu", "9000", "type", "veth", "peer", "name", "port", "netns", RACK)
        ip("-n", RACK, "link", "set", "port", "mtu", "9000")
        ip("-n", RACK, "address", "add", f"{GATEWAY}/24", "dev", "port")
        ip("-n", RACK, "link", "set", "port", "up")
        ip("-n", POD, "link", "add", "eth0", "type", "veth", "peer", "name", "cluster", "netns", RACK)
        ip("-n", RACK, "link", "set", "cluster", "up")
        ip("-n", POD, "address", "add", "10.244.1.7/24", "dev", "eth0")
        ip("-n", POD, "link", "set", "eth0", "up")
        ip("-n", POD, "route", "add", "default", "via", "10.244.1.1")
        yield
    finally:
        for name in (NODE, POD, RACK):
            subprocess.run(["ip", "netns", "delete", name], check=False, capture_output=True, timeout=30)


class Pod:
    """A pod on one network: what its runtime and multus do for it."""

    def __init__(self, network: Facts, plugins: Path) -> None:
        self.network, self.plugins = network, plugins
        main = {**planned_config(t.cast(t.Any, network)), "type": "host-device", "device": NIC}
        main["ipam"] = {"type": "static", "addresses": [{"address": ADDRESS, "gateway": GATEWAY}]}
        self.chain = [main, *network.get("meta_plugins", [])]

    def call(self, command: str, plugin: Facts, previous: t.Optional[Facts]) -> t.Optional[Facts]:
        config = {"cniVersion": "1.0.0", "name": "rail", **plugin, **({"prevResult": previous} if previous else {})}
        environment = {
            **os.environ,
            "CNI_COMMAND": command,
            "CNI_CONTAINERID": "probe",
            "CNI_NETNS": f"/var/run/netns/{POD}",
            "CNI_IFNAME": INTERFACE,
            "CNI_PATH": str(self.plugins),
        }
        text = within(NODE, str(self.plugins / plugin["type"]), input=json.dumps(config), env=environment)
        answer: Facts = json.loads(text) if text.strip() else {}
        assert "code" not in answer, answer
        return answer or previous

    def begin(self) -> None:
        result: t.Optional[Facts] = None
        for plugin in self.chain:
            result = self.call("ADD", plugin, result)
        self.result = result

    def end(self) -> None:
        for plugin in reversed(self.chain):
            self.call("DEL", plugin, self.result)

    def failed(self, plan: Facts) -> t.Tuple[t.Set[str], t.Set[str]]:
        """The checks that fail, and all that were made, of what the probe sees in the pod."""
        seen: t.Any = {"host": "w1", "networks": ["rail"], "network_status": [{"name": "default/rail"}]}
        seen["root"] = parsers.read_network(within(POD, "sh", "-c", SCRIPT, "pod.sh", "network"), "")
        wanted = pods.gateways_of(t.cast(t.Any, plan), seen)
        asked = [part for pair in wanted for part in pair]
        answer = within(POD, "sh", "-c", SCRIPT, "pod.sh", "gateways", *asked)
        seen["gateways"], seen["gateways_error"] = parsers.read_gateways(answer, wanted), ""
        where: t.Any = {"node": "w1", "network": "rail"}
        checks = list(pod_checks(t.cast(t.Any, plan), t.cast(t.Any, self.network), seen, where))
        return {each.check for each in checks if each.status == "failed"}, {each.check for each in checks}


def of(network: Facts) -> t.Tuple[Facts, Facts]:
    """The plan of one network on Ethernet, and the network in it."""
    changes = [nic(vfs=0)] if network.get("type") == "host_device" else []
    plan = planned({"type": "sriov", "gateway": GATEWAY, **network}, *changes)
    assert [each for each in plan["findings"] if each["level"] == "error"] == []
    return plan, plan["networks"][0]


@pytest.mark.parametrize(
    ("network", "more"),
    [
        ({"type": "host_device"}, set()),
        ({"type": "sriov"}, set()),
        ({"type": "sriov", "accept_ra": False}, set()),
        ({"type": "sriov", "accept_ra": False, "meta_plugins": ["tuning", "sbr"]}, {"policy_routes"}),
    ],
)
@pytest.mark.usefixtures("namespaces")
def test_a_device_in_the_pod_is_proved(network: Facts, more: t.Set[str], binaries: Path) -> None:
    plan, wanted = of(network)
    pod = Pod(wanted, binaries)
    pod.begin()
    failed, made = pod.failed(plan)
    assert failed == set()
    assert made == {"multus", "interface", "address", "default_route", "main_routes", "gateway", "mtu", *more}
    assert NIC not in within(NODE, "ip", "link")
    pod.end()
    assert NIC in within(NODE, "ip", "link")
    assert pod.failed(plan)[0] >= {"interface", "address", "mtu"}


@pytest.mark.parametrize(
    ("wrong", "expected"),
    [
        (("link", "set", INTERFACE, "mtu", "1400"), {"mtu"}),
        (("link", "set", INTERFACE, "down"), {"policy_routes"}),
        (("rule", "flush"), {"policy_routes"}),
        (("address", "add", "10.5.0.9/24", "dev", INTERFACE), {"address", "policy_routes"}),
        (("route", "replace", "default", "dev", INTERFACE), {"default_route"}),
        (("route", "add", "10.244.9.0/24", "dev", INTERFACE), {"main_routes"}),
    ],
)
@pytest.mark.usefixtures("namespaces")
def test_a_fault_in_the_pod_is_found(wrong: t.Sequence[str], expected: t.Set[str], binaries: Path) -> None:
    plan, wanted = of({"meta_plugins": ["tuning", "sbr"]})
    pod = Pod(wanted, binaries)
    pod.begin()
    ip("-n", POD, *wrong)
    assert pod.failed(plan)[0] == expected
