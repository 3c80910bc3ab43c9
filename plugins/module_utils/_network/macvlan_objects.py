# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Networks of the network operator and their namespaces as Kubernetes objects. Pure."""

from __future__ import annotations

import json
import typing as t

from .._kube.multus import Attachment
from .._kube.query import Object, query, quoted
from .._model.plan import PlannedNetwork
from .._model.profiles import BY_KIND, PROFILES, profile_of
from .._model.stacks import STACKS

OWNER = "sriovnetwork.openshift.io/owner-ref"  # annotation of a NAD whose owner is in another namespace
Known = t.Tuple[str, str]  # kind and name of a network


def network_object(network: Attachment, namespace: str = STACKS["network_operator"].namespace) -> Object:
    """The object that creates a network. It sets every field, so that none keeps an old value.

    namespace: the operator's, which the SR-IOV operator's networks have to be in.
    """
    profile = profile_of(network)
    spec: Object = {"networkNamespace": network["namespace"]}
    if profile.shared:
        spec["master"] = network["master"]
    else:
        spec["resourceName"] = network.get("resource", "").rpartition("/")[2]
    if profile.cni == "macvlan":
        spec.update(mode=network["mode"], mtu=network["mtu"])
    if profile.namespaced:
        chained = network.get("meta_plugins", [])
        spec["metaPlugins"] = ",".join(json.dumps(plugin, sort_keys=True) for plugin in chained)
    spec["ipam"] = json.dumps(network["ipam"], sort_keys=True)
    place = {"namespace": namespace} if profile.namespaced else {}
    return {
        "apiVersion": profile.api,
        "kind": profile.kind,
        "metadata": {"name": network["name"], **place},
        "spec": spec,
    }


def known(networks: t.Iterable[Object]) -> t.Set[Known]:
    return {(network["kind"], network["metadata"]["name"]) for network in networks}


def owners(attachment: Object) -> t.Set[Known]:
    """The networks that an attachment was created for."""
    references = query("metadata.ownerReferences[].[kind, name]", attachment) or ()
    found = {(kind, name) for kind, name in references if kind in BY_KIND}
    # Kind.group/namespace/name. The SR-IOV operator writes unknown if it does not know the kind.
    kind, _slash, place = (query(f"metadata.annotations.{quoted(OWNER)}", attachment) or "").partition("/")
    name, short = place.rpartition("/")[2], kind.partition(".")[0]
    kinds = [row.kind for row in PROFILES if row.namespaced and short in (row.kind, "unknown")]
    return found | {(each, name) for each in kinds}


def readable_spec(spec: t.Optional[Object], kind: str = "MacvlanNetwork") -> t.Optional[Object]:
    """A spec with its IPAM as data, so that texts with the same meaning compare as equal.

    Further VF options, which the API fills with defaults, are left out.
    """
    if spec is None:
        return None
    shown = {"mtu": 0, "mode": "bridge", **spec} if kind == "MacvlanNetwork" else spec
    if BY_KIND[kind].namespaced:
        shown = {key: spec[key] for key in ("networkNamespace", "resourceName", "metaPlugins", "ipam") if spec.get(key)}
    try:
        return {**shown, "ipam": json.loads(spec["ipam"])}
    except (KeyError, ValueError):
        return shown


def namespaces(
    networks: t.Sequence[PlannedNetwork], known: t.Sequence[str], labels: t.Mapping[str, str]
) -> t.List[Object]:
    """The namespaces of networks, except those of every cluster and those in `known`."""
    names = dict.fromkeys(network.get("namespace") or "default" for network in networks)
    return [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, **({"labels": labels} if labels else {})}}
        for name in names
        if name not in ("default", "kube-system", *known)
    ]
