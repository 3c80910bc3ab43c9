"""What the role spiderpool asks of the chart and of the cluster."""

from __future__ import annotations

import ipaddress
import json
import typing as t

import pytest
from ansible_collections.ipu.fabric.plugins.module_utils._common.findings import Findings
from ansible_collections.ipu.fabric.plugins.module_utils._common.result import FabricError
from ansible_collections.ipu.fabric.plugins.module_utils._component import spiderpool
from ansible_collections.ipu.fabric.plugins.module_utils._component.spiderpool import Seen, decide
from ansible_collections.ipu.fabric.plugins.module_utils._ipam.own_pools import check_networks, ipam
from ansible_collections.ipu.fabric.plugins.module_utils._ipam.ranges import parse_ranges, range_texts
from ansible_collections.ipu.fabric.plugins.module_utils._kube.multus import nad_faults
from ansible_collections.ipu.fabric.plugins.module_utils._model.wish import Wish
from ansible_collections.ipu.fabric.tests.unit.fixtures.components import defaults
from ansible_collections.ipu.fabric.tests.unit.fixtures.ipams import plan_subnet
from hypothesis import given
from hypothesis import strategies as st

SUBNET = {
    "cidr": "172.16.11.0/24",
    "gateway": "172.16.11.254",
    "range_start": "172.16.11.128",
    "range_end": "172.16.11.254",
    "exclude": ["172.16.11.254/32", "172.16.11.130/32", "172.16.11.131/32", "172.16.11.0/25"],
    "needed": 16,
}
NETWORK = {
    "name": "rail-0",
    "namespace": "jobs",
    "master": "enp11s0f0np0",
    "mode": "bridge",
    "mtu": 9000,
    "rdma": True,
    "resource": "rdma/rail_0",
    "subnet": SUBNET,
}
COORDINATOR = {"mode": "auto", "tunePodRoutes": True}


def network(**changes):
    subnet = {**SUBNET, **changes.pop("subnet", {})}
    return {**NETWORK, "subnet": subnet, **changes}


def wish(seen: t.Any = None, **settings: t.Any) -> Wish:
    return decide(defaults("spiderpool", **settings), Seen(**(seen or {})))


@pytest.mark.parametrize(
    ("subnet", "spec"),
    [
        (
            {},
            {
                "ipVersion": 4,
                "subnet": "172.16.11.0/24",
                "ips": ["172.16.11.128-172.16.11.254"],
                "excludeIPs": ["172.16.11.130-172.16.11.131", "172.16.11.254"],
                "gateway": "172.16.11.254",
            },
        ),
        (
            {"gateway": "", "exclude": []},
            {
                "ipVersion": 4,
                "subnet": "172.16.11.0/24",
                "ips": ["172.16.11.128-172.16.11.254"],
                "excludeIPs": [],
            },
        ),
        (
            {
                "cidr": "fd00:11::/64",
                "gateway": "fd00:11::1",
                "range_start": "fd00:11::8000:0:0:0",
                "range_end": "fd00:11::8fff:0:0:0",
                "exclude": ["fd00:11::8000:0:0:10/124"],
            },
            {
                "ipVersion": 6,
                "subnet": "fd00:11::/64",
                "ips": ["fd00:11:0:0:8000::-fd00:11::8000:0:0:ffff"],
                "excludeIPs": ["fd00:11::8000:0:0:10-fd00:11::8000:0:0:1f"],
                "gateway": "fd00:11::1",
            },
        ),
        (
            {"range_start": "172.16.11.7", "range_end": "172.16.11.7", "exclude": []},
            {
                "ipVersion": 4,
                "subnet": "172.16.11.0/24",
                "ips": ["172.16.11.7"],
                "excludeIPs": [],
                "gateway": "172.16.11.254",
            },
        ),
    ],
)
def test_pool(subnet, spec):
    found = spiderpool.pool_object(network(subnet=subnet))
    assert found["metadata"] == {"name": f"rail-0-v{spec['ipVersion']}"}
    assert found["spec"] == spec


@given(
    prefix=st.integers(16, 29),
    reserved=st.lists(st.integers(0, 2**13), max_size=8),
    share=st.sampled_from(["all", "upper_half"]),
)
def test_a_pool_holds_what_the_plan_counted(prefix, reserved, share):
    block = ipaddress.ip_network(f"10.16.0.0/{prefix}")
    taken = [str(block[offset % block.num_addresses]) for offset in reserved]
    node = {"name": "w1", "address": str(block[1]), "prefix": prefix}
    try:
        planned = plan_subnet(nodes=[node], gateway=str(block[-2]), reserved=taken, share=share)
    except FabricError:
        return  # nothing is left for pods
    spec = spiderpool.pool_object(network(subnet=planned))["spec"]
    listed, excluded = parse_ranges(spec["ips"], ""), parse_ranges(spec["excludeIPs"], "")
    assert len(spec["ips"]) == 1
    left = listed - excluded
    assert left.size == planned["capacity"]
    assert not any(address in left for address in (str(block[1]), str(block[-2]), *taken))
    fewest = [first if first == last else text for text in range_texts(excluded) for first, last in [text.split("-")]]
    assert spec["excludeIPs"] == fewest, "Spiderpool would write it differently"


@pytest.mark.parametrize(
    ("change", "inject", "macvlan", "annotations"),
    [
        (
            {},
            "",
            {"master": ["enp11s0f0np0"], "vlanID": 0, "mtu": 9000, "rdmaResourceName": "rdma/rail_0"},
            None,
        ),
        (
            {"rdma": False, "mtu": 0, "vlan": 7},
            "",
            {"master": ["enp11s0f0np0"], "vlanID": 7, "mtu": 0},
            None,
        ),
        (
            {},
            "training",
            {"master": ["enp11s0f0np0"], "vlanID": 0, "mtu": 9000, "rdmaResourceName": "rdma/rail_0"},
            {"cni.spidernet.io/rdma-resource-inject": "training"},
        ),
        (
            {"rdma": False},
            "training",
            {"master": ["enp11s0f0np0"], "vlanID": 0, "mtu": 9000},
            {"cni.spidernet.io/network-resource-inject": "training"},
        ),
    ],
)
def test_network(change, inject, macvlan, annotations):
    settings = defaults("spiderpool", inject=bool(inject), inject_value=inject, coordinator=COORDINATOR)
    found = spiderpool.network_object(network(**change), settings)
    assert found["metadata"].get("annotations") == annotations
    assert (found["metadata"]["name"], found["metadata"]["namespace"]) == ("rail-0", "jobs")
    assert found["spec"] == {
        "cniType": "macvlan",
        "enableCoordinator": True,
        "macvlan": {**macvlan, "ippools": {"ipv4": ["rail-0-v4"]}},
        "coordinator": COORDINATOR,
    }


def test_pods_that_ignore_router_advertisements():
    settings = defaults("spiderpool", inject=False, coordinator=COORDINATOR)
    (chained,) = spiderpool.network_object(network(accept_ra=False), settings)["spec"]["chainCNIJsonData"]
    assert json.loads(chained) == {"type": "tuning", "sysctl": {"net.ipv6.conf.IFNAME.accept_ra": "0"}}


# As Spiderpool 1.2.2 writes it for the network above.
CHAIN = (
    '{"cniVersion":"0.3.1","name":"rail-0","plugins":[{"type":"macvlan","master":"enp11s0f0np0","mode":"bridge",'
    '"mtu":9000,"ipam":{"type":"spiderpool","default_ipv4_ippool":["rail-0-v4"]}},'
    '{"type":"coordinator","mode":"auto","tunePodRoutes":true}]}'
)
VLAN = CHAIN.replace('"plugins":[', '"plugins":[{"type":"ifacer","interfaces":["enp11s0f0np0"],"vlanID":7},').replace(
    '"master":"enp11s0f0np0"', '"master":"enp11s0f0np0.7"'
)


@pytest.mark.parametrize(
    ("config", "change", "fault"),
    [
        (CHAIN, {}, ""),
        (VLAN, {"vlan": 7}, ""),
        (CHAIN.replace("9000", "0"), {"mtu": 0}, ""),
        (CHAIN.replace("rail-0-v4", "rail-1-v4"), {}, "ipam="),
        (CHAIN, {"vlan": 7}, "but 'enp11s0f0np0.7' is planned"),
        (CHAIN.replace('"macvlan"', '"ipvlan"'), {}, "type=None"),
        ('{"plugins":[]}', {}, "is not a CNI configuration"),
    ],
)
def test_attachment(config, change, fault):
    faults = nad_faults({"spec": {"config": config}}, spiderpool.attachment(network(**change)))
    assert fault in " ".join(faults)
    assert bool(faults) == bool(fault)


def test_order_of_objects():
    rails = [network(name=f"rail-{number}") for number in range(8)]
    found = wish(networks=rails, namespace_labels={"team": "a"})
    kinds = [obj["kind"] for obj in found.objects]
    assert kinds == ["Namespace"] + ["SpiderIPPool"] * 8 + ["SpiderMultusConfig"] * 8
    assert found.objects[0]["metadata"] == {"name": "jobs", "labels": {"team": "a"}}
    assert [entry["name"] for entry in found.networks] == [f"rail-{number}" for number in range(8)]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"mode": "private"}, "mode is private"),
        ({"master": ""}, "no master"),
        ({"subnet": {"exclude": ["172.16.11.0/24"]}}, "excluded"),
    ],
)
def test_refused(change, message):
    with pytest.raises(FabricError, match=message):
        wish(networks=[network(**change)])


def test_a_network_without_subnet_is_refused():
    with pytest.raises(FabricError, match="no subnet"):
        ipam({**NETWORK, "subnet": {}})


@pytest.mark.parametrize(
    ("change", "level", "check"),
    [
        ({}, None, None),
        ({"mode": "vepa"}, "error", "networks"),
        ({"subnet": {"gateway": ""}}, "warning", "policy-routes"),
        ({"subnet": {"needed": 500}}, "error", "subnet"),
    ],
)
def test_judge(change, level, check):
    found = Findings([])
    check_networks([network(**change)], found)
    assert [(item["level"], item["check"]) for item in found.as_list()] == ([(level, check)] if level else [])


V4, V6 = {"subnet": {"cidr": "172.16.11.0/24"}}, {"subnet": {"cidr": "fd00:11::/64"}}
MONITORING = ["monitoring.coreos.com"]


def values(groups: t.Sequence[str] = (), **settings: t.Any) -> t.Any:
    return spiderpool.chart_values(defaults("spiderpool", **settings), "monitoring.coreos.com" in groups)


@pytest.mark.parametrize(
    ("settings", "path", "value"),
    [
        ({}, "rdma.rdmaSharedDevicePlugin.install", False),
        ({"rdma_resources": [{"resourceName": "a"}]}, "rdma.rdmaSharedDevicePlugin.install", True),
        (
            {"rdma_resources": [{"resourceName": "a"}]},
            "rdma.rdmaSharedDevicePlugin.deviceConfig",
            {"periodicUpdateInterval": 300, "configList": [{"resourceName": "a"}]},
        ),
        ({}, "multus.multusCNI.install", True),
        ({"multus": False}, "multus.multusCNI.install", False),
        ({}, "plugins.installOvsCNI", False),
        ({"cni_plugins": False}, "plugins.installCNI", False),
        ({"detect_gateway": True}, "ipam.enableGatewayDetection", True),
        ({"detect_gateway": False}, "ipam.enableGatewayDetection", False),
        ({}, "ipam.enableIPConflictDetection", False),
        ({"detect_ip_conflict": True}, "ipam.enableIPConflictDetection", True),
        ({}, "ipam.enableIPv6", False),
        ({"networks": [V4]}, "ipam.enableIPv6", False),
        ({"networks": [V4, V6]}, "ipam.enableIPv6", True),
        ({"networks": [V4, {"subnet": {}}]}, "ipam.enableIPv6", False),
        ({}, "spiderpoolController.podResourceInject.enabled", False),
        ({"inject": True}, "spiderpoolController.podResourceInject.enabled", True),
        ({"inject_namespaces": ["a"]}, "spiderpoolController.podResourceInject.namespacesInclude", ["a"]),
        (
            # The webhook leaves its own controller and the pod network alone. In another order, the release would be
            # upgraded.
            {"namespace": "netops", "inject_namespaces_exclude": ["monitoring"]},
            "spiderpoolController.podResourceInject.namespacesExclude",
            [
                "calico-apiserver",
                "calico-system",
                "kube-flannel",
                "kube-system",
                "monitoring",
                "netops",
                "tigera-operator",
            ],
        ),
        ({"metrics": True}, "spiderpoolAgent.prometheus.enabledRdmaMetric", True),
        ({"metrics": True}, "spiderpoolAgent.prometheus.serviceMonitor.install", False),
        ({"groups": MONITORING}, "spiderpoolAgent.prometheus.serviceMonitor.install", False),
        ({"metrics": True, "groups": MONITORING}, "spiderpoolController.prometheus.serviceMonitor.install", True),
        ({"dashboards": True}, "grafanaDashboard.install", True),
        ({}, "global", None),
        ({"registry": "r:5000"}, "global", {"imageRegistryOverride": "r:5000"}),
        ({"cni_bin_directory": "/x"}, "global", {"cniBinHostPath": "/x"}),
        ({"image_pull_secrets": ["s"]}, "spiderpoolAgent.image.imagePullSecrets", [{"name": "s"}]),
        ({"values": {"multus": {"multusCNI": {"uninstall": True}}}}, "multus.multusCNI.install", True),
        ({"values": {"multus": {"multusCNI": {"install": False}}}}, "multus.multusCNI.install", False),
    ],
)
def test_values(settings, path, value):
    found = values(**settings)
    for part in path.split("."):
        found = found.get(part)
    assert found == value


@pytest.mark.parametrize(
    ("settings", "part"),
    [
        ({"rdma_resources": [{"resourceName": "b"}]}, "rdma"),
        ({"inject": True}, "spiderpoolController"),
        ({"detect_gateway": False}, "spiderpoolAgent"),
        ({"networks": [V6]}, "spiderpoolAgent"),
        ({"networks": [V6]}, "spiderpoolController"),
    ],
)
def test_new_configuration_rolls_its_readers(settings, part):
    def annotation(of):
        found = values(**of)[part]
        return found.get("rdmaSharedDevicePlugin", found)["podAnnotations"]

    assert annotation({}) == annotation({})
    assert annotation(settings) != annotation({})


@pytest.mark.parametrize(
    ("values", "name"), [({}, "default"), ({"ipam": {}}, "default"), ({"coordinator": {"name": "site"}}, "site")]
)
def test_no_pod_starts_before_the_coordinator_is_synced(values, name):
    (coordinator,) = [each for each in wish(values=values).ready if each["kind"] == "SpiderCoordinator"]
    assert coordinator["api_version"] == "spiderpool.spidernet.io/v2beta1"
    assert (coordinator["name"], coordinator["field"], coordinator["value"]) == (name, "status.phase", "Synced")


def test_a_pod_on_each_network_starts_or_else_one_without():
    pod = {"name": "rail-0", "namespace": "jobs", "hosts": ["w1"]}
    assert wish(networks=[network(hosts=["w1"])]).pods == [pod]
    assert wish(namespace="netops").pods == [{"namespace": "netops"}]


INSTALLED = {"namespace": "spiderpool", "name": "spiderpool-controller", "ours": True}


@pytest.mark.parametrize("elsewhere", ["", "/srv/cni"])
def test_what_the_chart_writes_to_a_host(elsewhere):
    """To the usual directories, whatever its values say; the multus of Spiderpool alone heeds them."""
    places = {"cni_bin_directory": elsewhere, "cni_network_directory": elsewhere}
    own = wish(state="absent", **places).paths
    multus = set(wish({"installations": [INSTALLED]}, state="absent", **places).paths) - set(own)
    programs = [f"/opt/cni/bin/{name}" for name in ("spiderpool", "coordinator", "ifacer")]
    rest = ["/var/run/spidernet", "/var/log/spidernet"]
    assert sorted(own) == sorted([*programs, *(f"{path}.old" for path in programs), *rest])
    assert {"/etc/cni/net.d/00-multus.conf", "/etc/cni/net.d/multus.d", "/var/log/multus.log"} <= multus
    assert f"{elsewhere or '/opt/cni/bin'}/multus" in multus


def test_hosts_keep_the_multus_of_others():
    seen = {"installations": [INSTALLED], "multus": ["kube-system/rke2-multus"]}
    assert "/etc/cni/net.d/00-multus.conf" not in wish(seen, state="absent").paths


def test_a_spiderpool_of_others_is_not_removed():
    seen = {"installations": [INSTALLED, {**INSTALLED, "namespace": "team", "ours": False}]}
    with pytest.raises(FabricError, match="Seen: team/spiderpool-controller in the cluster"):
        wish(seen, state="absent")


@pytest.mark.parametrize(
    ("seen", "settings", "said"),
    [
        ({"multus": ["kube-system/rke2-multus"]}, {}, "has a multus already.*kube-system/rke2-multus"),
        ({"multus": ["spiderpool/spiderpool-agent"]}, {}, ""),
        ({"multus": ["spiderpool/spiderpool-agent"]}, {"multus": False}, "no multus"),
        ({"multus": ["kube-system/rke2-multus"]}, {"multus": False}, ""),
        ({}, {"dashboards": True}, "Grafana's operator"),
        ({"api_groups": ["grafana.integreatly.org"]}, {"dashboards": True}, ""),
        # A bundle is of no cluster yet.
        ({"present": False}, {"multus": False, "dashboards": True}, ""),
    ],
)
def test_what_the_cluster_has_to_fit(seen, settings, said):
    if not said:
        wish({"present": True, **seen}, **settings)
        return
    with pytest.raises(FabricError, match=said):
        wish({"present": True, **seen}, **settings)


@pytest.mark.parametrize(
    ("nodes", "waits"), [([], True), (["w1"], True), (["w1", "w2"], False)], ids=["bundle", "everywhere", "not-all"]
)
def test_the_device_plugin_is_waited_for_where_every_node_has_rdma(nodes, waits):
    given = {"rdma_resources": [{"resourceName": "a"}], "rdma_nodes": ["w1"]}
    ready = wish({"nodes": [{"name": name} for name in nodes]}, **given).ready
    assert ("spiderpool-rdma-shared-device-plugin" in [each["name"] for each in ready]) is waits
