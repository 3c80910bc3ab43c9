# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Compares a cluster with its saved state: objects of the fabric in full, all others by a fingerprint."""

from __future__ import annotations

import json
import time
import typing as t

from .._common.text import fingerprint
from .._ipam.pool_audit import running_pods
from .._kube.client import Cluster, Resource, comparable
from .._kube.query import Object, query, quoted
from .._model.profiles import SRIOV
from .._model.stacks import STACKS

# API groups whose objects are saved in full: networks, pools, and who has which address.
FABRIC = (
    "k8s.cni.cncf.io",
    "nv-ipam.nvidia.com",
    "whereabouts.cni.cncf.io",
    SRIOV.partition("/")[0],
    *(stack.group.partition("/")[0] for stack in STACKS.values()),
)
# Kinds that change on their own. Objects with an owner are recreated by it.
VOLATILE = {
    "CertificateSigningRequest",
    "ComponentStatus",
    "Endpoints",
    "EndpointSlice",
    "Event",
    "Lease",
    "LeaseCandidate",
    "Node",
    "Pod",
    "VolumeAttachment",
}
# Groups in which pod networks keep state of each pod and node.
POD_NETWORKS = ("cilium.io", "crd.projectcalico.org", "projectcalico.org")
ADDRESSES = {"IPPool", "NodeSlicePool", "OverlappingRangeIPReservation", "SpiderEndpoint", "SpiderIPPool"}
# kubeadm's Secrets and ConfigMaps that hold a token or expire.
SHORT_LIVED = (
    "Secret kube-system/bootstrap-token-",
    "Secret kube-system/kubeadm-certs",
    "ConfigMap kube-public/cluster-info",
)
KUBEADM = "ConfigMap kube-system/kubeadm-config"
STATUS = "k8s.v1.cni.cncf.io/network-status"
PAGE = 500


class Address(t.TypedDict):
    """A pod's address on a secondary network."""

    address: str
    network: str  # namespace/name
    interface: str
    pod: str  # namespace/name
    node: str


class Saved(t.TypedDict):
    """What a backup contains about a cluster's objects."""

    objects: t.List[Object]  # objects of the fabric
    digests: t.Dict[str, str]  # of all lasting objects, by kind and name
    addresses: t.List[Address]


class Pods(t.NamedTuple):
    """Pods that have not ended."""

    names: t.Set[str]  # namespace/name
    addresses: t.List[Address]


class Differences(t.TypedDict):
    """Names of the objects that differ from the saved ones."""

    missing: t.List[str]
    different: t.List[str]


def key_of(group: str, obj: Object) -> str:
    """Kind, namespace and name, with the group: kinds of two groups may share a name."""
    metadata = obj["metadata"]
    place = "/".join(filter(None, (metadata.get("namespace"), metadata["name"])))
    return f"{obj['kind']}{'.' + group if '.' in group else ''} {place}"


def lasts(group: str, obj: Object) -> bool:
    """Whether an object stays the same until somebody changes it."""
    if group in FABRIC or group in POD_NETWORKS:
        return group in FABRIC
    owned = bool(query("metadata.ownerReferences", obj))
    return not owned and obj["kind"] not in VOLATILE and not key_of(group, obj).startswith(SHORT_LIVED)


def group_versions(cluster: Cluster) -> t.List[str]:
    """This API server's groups with their preferred versions. Aggregated servers are left out: they may not answer."""
    served = cluster.items("/apis/apiregistration.k8s.io/v1/apiservices")
    local = {query("spec.group", service) or "" for service in served if not query("spec.service", service)}
    groups = (cluster.get("/apis") or {}).get("groups") or []
    return ["v1", *(group["preferredVersion"]["groupVersion"] for group in groups if group["name"] in local)]


def listable(cluster: Cluster, version: str) -> t.Iterator[t.Tuple[str, Resource]]:
    """Kinds of a group and their paths."""
    prefix = ("/apis/" if "/" in version else "/api/") + version
    for known in (cluster.get(prefix) or {}).get("resources", []):
        if "list" in known["verbs"] and "/" not in known["name"] and known["kind"] not in VOLATILE:
            yield known["kind"], Resource(prefix, known["name"], known["namespaced"])


def pages(cluster: Cluster, path: str) -> t.Iterator[Object]:
    token = None
    while True:
        page = cluster.get(path, limit=PAGE, **{"continue": token}) or {}
        yield from page.get("items") or ()
        token = query("metadata.continue", page)
        if not token:
            return


def all_objects(cluster: Cluster) -> t.Iterator[t.Tuple[str, Object]]:
    """Every lasting object, with its group. Items of a list lack their kind, so it is added."""
    for version in group_versions(cluster):
        group = version.rpartition("/")[0]
        for kind, resource in listable(cluster, version):
            for item in pages(cluster, resource.path()):
                obj = {"apiVersion": version, "kind": kind, **item}
                if lasts(group, obj):
                    yield group, obj


def addresses_of(pod: Object) -> t.List[Address]:
    """A pod's addresses on secondary networks, from the annotation that multus wrote."""
    metadata = pod["metadata"]
    try:
        networks: t.List[Object] = json.loads(query(f"annotations.{quoted(STATUS)}", metadata) or "[]")
    except ValueError:
        return []
    return [
        {
            "address": address,
            "network": network.get("name", ""),
            "interface": network.get("interface", ""),
            "pod": f"{metadata['namespace']}/{metadata['name']}",
            "node": query("spec.nodeName", pod) or "",
        }
        for network in networks
        if not network.get("default")
        for address in network.get("ips") or ()
    ]


def digest(obj: Object) -> str:
    """The digest of an object. For a pool, it leaves out allocated addresses: they come and go."""
    kept = comparable(obj) or {}
    if obj["kind"] in ADDRESSES:
        kept = {**kept, "spec": {k: v for k, v in (kept.get("spec") or {}).items() if k != "allocations"}}
    return fingerprint(kept)


def read_saved(cluster: Cluster) -> Saved:
    objects, digests = [], {}
    for group, obj in all_objects(cluster):
        key = key_of(group, obj)
        # Reservations and endpoints consist only of addresses; a pool outlives them.
        if obj["kind"] not in ADDRESSES or obj["kind"].endswith("Pool"):
            digests[key] = digest(obj)
        if group in FABRIC or key == KUBEADM:
            metadata = {k: v for k, v in obj["metadata"].items() if k != "managedFields"}
            objects.append({**obj, "metadata": metadata})
    return {"objects": objects, "digests": dict(sorted(digests.items())), "addresses": read_pods(cluster).addresses}


def read_pods(cluster: Cluster) -> Pods:
    names: t.Set[str] = set()
    addresses: t.List[Address] = []
    for pod in running_pods(cluster):
        names.add("{namespace}/{name}".format(**pod["metadata"]))
        addresses += addresses_of(pod)
    return Pods(names, sorted(addresses, key=lambda each: (each["pod"], each["interface"], each["address"])))


def held(addresses: t.Iterable[Address]) -> t.Dict[t.Tuple[str, str], t.Set[str]]:
    """Addresses by pod and interface."""
    found: t.Dict[t.Tuple[str, str], t.Set[str]] = {}
    for each in addresses:
        found.setdefault((each["pod"], each["interface"]), set()).add(each["address"])
    return found


def compare(before: Saved, after: Saved) -> Differences:
    """What is gone, and what has changed. New objects are not a difference."""
    return {
        "missing": [key for key in before["digests"] if key not in after["digests"]],
        "different": [key for key, value in before["digests"].items() if after["digests"].get(key, value) != value],
    }


def moved(before: t.Iterable[Address], pods: Pods) -> t.List[str]:
    """Pods that have other addresses than before, or none. Ended pods do not count."""
    has = held(pods.addresses)
    return [
        f"{pod} {interface}: {', '.join(sorted(had))} became {', '.join(sorted(now)) or 'none'}"
        for (pod, interface), had, now in ((key, had, has.get(key, set())) for key, had in sorted(held(before).items()))
        if pod in pods.names and now != had
    ]


def report_objects(cluster: Cluster, expected: t.Optional[Saved], wait: int) -> t.Dict[str, t.Any]:
    """The objects, or how they differ from these. Waits until pods have their addresses, at most `wait` seconds."""
    if expected is None:
        return {"saved": read_saved(cluster)}
    give_up = time.monotonic() + wait
    elsewhere = moved(expected["addresses"], read_pods(cluster))
    while elsewhere and time.monotonic() < give_up:
        time.sleep(5)
        elsewhere = moved(expected["addresses"], read_pods(cluster))
    saved = read_saved(cluster)
    return {"count": len(saved["digests"]), **compare(expected, saved), "moved": elsewhere}
