# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Spiderpool: the values of its chart, and of each rail the address pool and the network. Pure."""

from __future__ import annotations

import contextlib
import typing as t

from ansible_collections.ipu.fabric.plugins.module_utils._common.findings import Findings
from ansible_collections.ipu.fabric.plugins.module_utils._common.result import FabricError
from ansible_collections.ipu.fabric.plugins.module_utils._common.text import fingerprint
from ansible_collections.ipu.fabric.plugins.module_utils._ipam.ranges import parse_range, parse_ranges
from ansible_collections.ipu.fabric.plugins.module_utils._kube.merge_values import merge_values
from ansible_collections.ipu.fabric.plugins.module_utils._kube.multus import Attachment
from ansible_collections.ipu.fabric.plugins.module_utils._kube.query import Object
from ansible_collections.ipu.fabric.plugins.module_utils._model.plan import Ipam, PlannedNetwork, RdmaResource
from ansible_collections.ipu.fabric.plugins.module_utils._network.macvlan_objects import namespaces
from ansible_collections.ipu.fabric.plugins.module_utils._network.nic_cluster_policy import UPDATE_INTERVAL

with contextlib.suppress(ImportError):  # run_module() says so, by the module's `libraries`
    import netaddr

API = "spiderpool.spidernet.io/v2beta1"
# Spiderpool keeps a list of every address of a pool: half of an IPv6 subnet would not fit into memory.
POOL_MAX = 1 << 16
# Neither device plugin, agent nor controller reads its ConfigMap again: this annotation rolls them when it changes.
CONFIG = "fabric.ipu/config"
# CNI plugins that the chart installs by default, and that no macvlan rail needs.
OTHER_PLUGINS = ("installRdmaCNI", "installOvsCNI", "installSriovCNI", "installibSriovCNI", "installIpoibCNI",
                 "installVlanCNI")  # fmt: skip


# Networks


class SpiderpoolNetwork(PlannedNetwork, total=False):
    """A planned network, and what a site may add to it for Spiderpool."""

    vlan: int  # on the master; 0: none


class SpiderpoolObjects(t.TypedDict):
    """The networks as API objects."""

    objects: t.List[Object]  # in the order in which they are applied
    attachments: t.List[Attachment]  # that come of them


class Pool(t.NamedTuple):
    """The addresses of a pool: its span, and what is excluded from it."""

    name: str
    span: netaddr.IPRange
    excluded: netaddr.IPSet

    @property
    def version(self) -> int:
        return self.span.version

    @property
    def capacity(self) -> int:
        return self.span.size - self.excluded.size


def pool_of(network: PlannedNetwork) -> Pool:
    """The pool of a planned network, no wider than Spiderpool can count."""
    where, subnet = f"network {network['name']}", network.get("subnet")
    if not subnet:
        raise FabricError(
            "A Spiderpool network needs its subnet.",
            where,
            "no subnet",
            "Take the network of a plan.",
            code="invalid-input",
        )
    bounds = parse_range(f"{subnet['range_start']}-{subnet['range_end']}", where)
    span = netaddr.IPRange(bounds[0], bounds[min(bounds.size, POOL_MAX) - 1])
    excluded = parse_ranges(subnet.get("exclude") or [], where) & netaddr.IPSet(span)
    return Pool(f"{network['name']}-v{span.version}", span, excluded)


def ranges(runs: t.Iterable[netaddr.IPRange]) -> t.List[str]:
    """Ranges as Spiderpool writes them: `a`, or `a-b`."""
    return [str(run) if run.size > 1 else str(run[0]) for run in runs]


def pool_object(network: PlannedNetwork) -> Object:
    """The SpiderIPPool; the gateway becomes the default route of the rail's own routing table."""
    pool, subnet = pool_of(network), network["subnet"]
    if not subnet or not pool.capacity:
        raise FabricError(
            "A Spiderpool network needs addresses for pods.",
            f"network {network['name']}",
            f"all of the first {POOL_MAX} of its range are excluded",
            "Plan another share of the subnet.",
            code="invalid-input",
        )
    spec = {
        "ipVersion": pool.version,
        "subnet": subnet["cidr"],
        "ips": ranges([pool.span]),
        "excludeIPs": ranges(pool.excluded.iter_ipranges()),
        **({"gateway": subnet["gateway"]} if subnet.get("gateway") else {}),
    }
    return {"apiVersion": API, "kind": "SpiderIPPool", "metadata": {"name": pool.name}, "spec": spec}


def network_object(network: SpiderpoolNetwork, coordinator: t.Mapping[str, t.Any], inject: str) -> Object:
    """The SpiderMultusConfig; its controller creates a NetworkAttachmentDefinition of the same name."""
    pool = pool_of(network)
    macvlan: Object = {
        "master": [network["master"]],
        "vlanID": network.get("vlan") or 0,
        "mtu": network.get("mtu") or 0,
        "ippools": {f"ipv{pool.version}": [pool.name]},
    }
    if network.get("rdma"):
        macvlan["rdmaResourceName"] = network["resource"]
    metadata: Object = {"name": network["name"], "namespace": network.get("namespace") or "default"}
    if inject:
        # A network without an RDMA resource is refused under the first of these names.
        kind = "rdma-resource-inject" if network.get("rdma") else "network-resource-inject"
        metadata["annotations"] = {f"cni.spidernet.io/{kind}": inject}
    spec = {"cniType": "macvlan", "enableCoordinator": True, "macvlan": macvlan, "coordinator": dict(coordinator)}
    return {"apiVersion": API, "kind": "SpiderMultusConfig", "metadata": metadata, "spec": spec}


def ipam(network: PlannedNetwork) -> Ipam:
    """The IPAM part of the CNI configuration that Spiderpool writes for the network."""
    pool = pool_of(network)
    if pool.version == 6:
        return {"type": "spiderpool", "default_ipv6_ippool": [pool.name]}
    return {"type": "spiderpool", "default_ipv4_ippool": [pool.name]}


def attachment(network: SpiderpoolNetwork) -> Attachment:
    """What the network's NetworkAttachmentDefinition has to say; Spiderpool creates VLAN interfaces of this name."""
    vlan = network.get("vlan")
    return {
        "name": network["name"],
        "namespace": network.get("namespace") or "default",
        "master": f"{network['master']}.{vlan}" if vlan else network["master"],
        "mode": "bridge",
        "mtu": network.get("mtu") or 0,
        "ipam": {**ipam(network)},
    }


def networks(
    planned: t.Sequence[SpiderpoolNetwork], coordinator: t.Mapping[str, t.Any], inject: str, labels: t.Mapping[str, str]
) -> SpiderpoolObjects:
    """The objects of the networks in the order in which they are applied, and the attachments that come of them."""
    for network in planned:
        for seen, step in network_problems(network):
            raise FabricError(
                "Spiderpool can't create a network.", f"network {network['name']}", seen, step, code="invalid-input"
            )
    objects = namespaces(planned, (), labels)
    objects += [pool_object(network) for network in planned]
    objects += [network_object(network, coordinator, inject) for network in planned]
    return {"objects": objects, "attachments": [attachment(network) for network in planned]}


def network_problems(network: PlannedNetwork) -> t.Iterator[t.Tuple[str, str]]:
    """Pairs of what Spiderpool can't do for a network, and what it could."""
    if network.get("mode", "bridge") != "bridge":
        yield f"mode is {network['mode']}", "Spiderpool's macvlan networks are bridges: set mode to bridge."
    if not network["master"]:
        yield "no master", "Name the NIC that the pods of this network join."


def check_networks(planned: t.Sequence[PlannedNetwork], found: Findings) -> None:
    """Findings of planned networks that Spiderpool can't create as planned."""
    for network in planned:
        name, subnet = network["name"], network["subnet"]
        if not subnet:
            continue  # a finding already
        pool = pool_of(network)
        for seen, step in network_problems(network):
            found.error("networks", [], f"{name}: Spiderpool can't create this network.", seen, step)
        if len(network.get("subnets") or []) > 1:
            found.error(
                "networks",
                [],
                f"{name}: on Spiderpool a network has one family.",
                ", ".join(entry["cidr"] for entry in network["subnets"]),
                "Name one family (key families), or take the network operator (fabric_stack).",
            )
        if not subnet["gateway"]:
            found.warning(
                "policy-routes",
                [],
                f"{name}: without a gateway, pods have no route of their own out of this rail.",
                "gateway is empty",
                "Name the gateway, unless all hosts of the rail are in its subnet.",
            )
        if pool.capacity < max(subnet["needed"], 1):
            found.error(
                "subnet",
                [],
                f"{name}: Spiderpool uses the first {POOL_MAX} addresses of a range only.",
                f"{pool.capacity} of them are left for {subnet['needed']} pods",
                "Set share to another part of the subnet.",
            )


# The chart


def device_plugin(resources: t.Sequence[RdmaResource]) -> Object:
    config = {"periodicUpdateInterval": UPDATE_INTERVAL, "configList": list(resources)}
    return {"install": bool(resources), "deviceConfig": config, "podAnnotations": {CONFIG: fingerprint(config)}}


def values(settings: t.Mapping[str, t.Any]) -> Object:
    """The chart's values; the filter's documentation lists the settings."""
    monitor = {"install": bool(settings.get("metrics") and settings.get("service_monitors"))}
    metrics: Object = {"enabled": bool(settings.get("metrics")), "serviceMonitor": monitor}
    inject = {
        "enabled": bool(settings.get("inject")),
        "namespacesInclude": list(settings.get("inject_namespaces") or []),
        "namespacesExclude": list(settings.get("inject_namespaces_exclude") or []),
    }
    ipam_options = {
        "enableIPv6": bool(settings.get("ipv6", True)),
        "enableGatewayDetection": bool(settings.get("detect_gateway")),
        "enableIPConflictDetection": bool(settings.get("detect_ip_conflict")),
    }
    secrets = [{"name": name} for name in settings.get("pull_secrets") or []]
    image = {"image": {"imagePullSecrets": secrets}} if secrets else {}
    own: Object = {
        "rdma": {"rdmaSharedDevicePlugin": device_plugin(settings.get("rdma_resources") or [])},
        "multus": {"multusCNI": {"install": bool(settings["multus"])}},
        "plugins": {"installCNI": bool(settings["cni_plugins"]), **dict.fromkeys(OTHER_PLUGINS, False)},
        "ipam": ipam_options,
        "spiderpoolAgent": {
            "prometheus": {**metrics, "enabledRdmaMetric": metrics["enabled"]},
            "podAnnotations": {CONFIG: fingerprint(ipam_options)},
            **image,
        },
        "spiderpoolController": {
            "prometheus": metrics,
            "podResourceInject": inject,
            "podAnnotations": {CONFIG: fingerprint([inject, ipam_options["enableIPv6"]])},
            **image,
        },
        "grafanaDashboard": {"install": bool(settings.get("dashboards"))},
    }
    places = {
        "imageRegistryOverride": settings.get("registry"),
        "cniBinHostPath": settings.get("cni_bin_directory"),
        "cniConfHostPath": settings.get("cni_network_directory"),
    }
    chosen = {name: place for name, place in places.items() if place}
    return merge_values({**own, **({"global": chosen} if chosen else {})}, settings.get("values") or {})
