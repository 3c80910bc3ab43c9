# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which addresses pods get on a network that others made, by its IPAM, and on which nodes. Pure."""

from __future__ import annotations

import contextlib
import dataclasses
import ipaddress
import typing as t

from .._common.addresses import Network
from .._ipam.excludes import exclude_list
from .._ipam.ranges import parse_ranges, union
from .._ipam.whereabouts import bounded_range
from .._kube.query import Object, query
from .._model.plan import PlannedPool
from .._model.stacks import OWN_IPAM, STACKS
from .._network.address_sets import MALFORMED, pool_addresses, pool_names, read_ranges

with contextlib.suppress(ImportError):  # the module says so, by its `libraries`
    import netaddr

HOSTNAME = "kubernetes.io/hostname"
AFFINITIES = ("podAffinity", "namespaceAffinity", "namespaceName")  # fields of a SpiderIPPool for some pods only


class LeftOutError(Exception):
    """Why a network is not proved; fault: pods can't join it either."""

    def __init__(self, why: str, step: str = "", fault: bool = False) -> None:
        super().__init__(why)
        self.why, self.next, self.fault = why, step, fault


class Pools(t.NamedTuple):
    """Pools of a cluster as its API returns them."""

    nv_ipam: t.Sequence[Object]  # each with its kind, IPPool or CIDRPool
    own: t.Sequence[Object]  # of the stack with its own IPAM


class Given(t.NamedTuple):
    """What pods get from one subnet."""

    cidr: Network
    allowed: netaddr.IPSet
    gateway: str  # empty: none

    @property
    def exclude(self) -> t.List[str]:
        return exclude_list(self.cidr, self.allowed)


@dataclasses.dataclass(frozen=True)
class Addresses:
    """What pods get on a network."""

    given: t.List[Given] = dataclasses.field(default_factory=list)  # at most one for each family
    pools: t.List[PlannedPool] = dataclasses.field(default_factory=list)  # of nv-ipam
    notes: t.List[t.Tuple[str, str]] = dataclasses.field(default_factory=list)  # what is not known, and what to do
    single: bool = False  # all pods get the same addresses
    nodes: t.Callable[[Object], bool] = lambda _node: True  # whether a node can provide them


# ---- which nodes ----------------------------------------------------------------------------------------------------


def meets(requirement: Object, labels: t.Mapping[str, str]) -> bool:
    """Whether labels meet a requirement of a selector. Pools do not support Gt and Lt."""
    key, values = requirement["key"], requirement.get("values") or ()
    rules = {
        "In": labels.get(key) in values,
        "NotIn": labels.get(key) not in values,
        "Exists": key in labels,
        "DoesNotExist": key not in labels,
    }
    return rules.get(requirement.get("operator", ""), False)


def labels_of(node: Object) -> t.Dict[str, str]:
    metadata = node["metadata"]
    return {HOSTNAME: metadata["name"], **(metadata.get("labels") or {})}


def selects(selector: t.Optional[Object], node: Object) -> bool:
    """Whether a selector selects a node.

    It has terms, of which one must match, or labels and expressions, which must all match. None: all nodes.
    """
    if not selector:
        return True
    labels = labels_of(node)
    terms = selector.get("nodeSelectorTerms")
    if terms is not None:
        return any(all(meets(each, labels) for each in term.get("matchExpressions") or ()) for term in terms)
    wanted = selector.get("matchLabels") or {}
    return wanted.items() <= labels.items() and all(meets(e, labels) for e in selector.get("matchExpressions") or ())


# ---- which addresses ------------------------------------------------------------------------------------------------


def one_of_each_family(parts: t.Sequence[Given]) -> t.Tuple[t.List[Given], t.List[t.Tuple[str, str]]]:
    """Merge several ranges of one subnet. With several subnets, a pod gets an address of one of them, unknown which."""
    found, notes = [], []
    for version in (4, 6):
        mine = [each for each in parts if each.cidr.version == version]
        cidrs = sorted({each.cidr for each in mine})
        if len(cidrs) > 1:
            notes.append((f"addresses are of {' or '.join(map(str, cidrs))}: only a pod shows which", ""))
        elif mine:
            gateway = next((each.gateway for each in mine if each.gateway), "")
            found.append(Given(cidrs[0], union(each.allowed for each in mine), gateway))
    if any(not each.allowed for each in found):
        raise LeftOutError("its range has no address for a pod", "Widen the range, or exclude less.", fault=True)
    return found, notes


def of_whereabouts(ipam: Object, _pools: Pools) -> Addresses:
    parts = [_given(each.cidr, each.allowed, ipam.get("gateway")) for each in read_ranges(ipam)]
    given, notes = one_of_each_family(parts)
    return Addresses(given, notes=notes)


def _given(cidr: Network, allowed: netaddr.IPSet, gateway: t.Optional[str]) -> Given:
    """One subnet's addresses. A gateway outside it belongs to another subnet."""
    with contextlib.suppress(ValueError):
        if gateway and ipaddress.ip_address(gateway) in cidr:
            return Given(cidr, allowed - netaddr.IPSet([gateway]), gateway)
    return Given(cidr, allowed, "")


def of_host_local(ipam: Object, _pools: Pools) -> Addresses:
    """host-local never allocates the gateway, which is the first address if not stated."""
    parts = []
    entries = query(
        "[@, ranges[]][].{range: subnet, range_start: rangeStart, range_end: rangeEnd, gateway: gateway}", ipam
    )
    for entry in query("[?range]", entries):
        each = bounded_range(entry)
        first = netaddr.IPSet([str(entry["gateway"] or each.cidr[1])])
        parts.append(Given(each.cidr, each.allowed - first, entry["gateway"] or ""))
    given, notes = one_of_each_family(parts)
    why = "host-local allocates on each node independently: pods of two nodes get one address"
    return Addresses(given, notes=[*notes, (why, "Use whereabouts or nv-ipam where one subnet is on several nodes.")])


def of_static(ipam: Object, _pools: Pools) -> Addresses:
    entries = query("addresses[?address]", ipam) or []
    if not entries:
        raise LeftOutError("each pod brings its address in its annotation (static), and nothing says which are free")
    parts = []
    for entry in entries:
        interface = ipaddress.ip_interface(entry["address"])
        own = netaddr.IPSet([str(interface.ip)])
        parts.append(Given(interface.network, own, str(entry.get("gateway") or "")))
    given, notes = one_of_each_family(parts)
    return Addresses(given, notes=notes, single=True)


def of_nv_ipam(ipam: Object, pools: Pools) -> Addresses:
    known = {(pool["kind"], pool["metadata"]["name"]): pool["spec"] for pool in pools.nv_ipam}
    names = sorted(pool_names(ipam))
    absent = [" ".join(name) for name in names if name not in known]
    if absent or not names:
        raise LeftOutError(f"nv-ipam has no {', '.join(absent) or 'pool for it'}", "Create the pool.", fault=True)
    specs = [(name, known[kind, name]) for kind, name in names]

    def gives(node: Object) -> bool:
        return all(selects(spec.get("nodeSelector"), node) for _name, spec in specs)

    if any(kind == "CIDRPool" for kind, _name in names):
        why = "each node has a subnet of its own (CIDRPool), so addresses are not compared with a range"
        return Addresses(notes=[(why, "")], nodes=gives)
    parts = [
        _given(ipaddress.ip_network(spec["subnet"], strict=False), pool_addresses(spec), spec.get("gateway"))
        for _name, spec in specs
    ]
    given, notes = one_of_each_family(parts)
    planned = [
        t.cast(PlannedPool, {**spec, "name": name, "exclusions": spec.get("exclusions") or []}) for name, spec in specs
    ]
    return Addresses(given, planned if given else [], notes, nodes=gives)


def of_own_ipam(ipam: Object, pools: Pools) -> Addresses:
    """Among several pools of a family, a pod gets an address from the first one that is for its node."""
    known = {pool["metadata"]["name"]: pool["spec"] for pool in pools.own if not pool["spec"].get("disable")}
    named = [*(ipam.get("default_ipv4_ippool") or ()), *(ipam.get("default_ipv6_ippool") or ())]
    named = named or [name for name, spec in known.items() if spec.get("default")]
    specs = [known[name] for name in named if name in known]
    if not named:
        raise LeftOutError("it names no SpiderIPPool, and none is the default: pods or namespaces name theirs")
    if not specs:
        raise LeftOutError(
            f"{STACKS[OWN_IPAM].title} has no pool {', '.join(named)}", "Create the SpiderIPPool.", fault=True
        )
    kept = sorted({key for spec in specs for key in AFFINITIES if spec.get(key)})
    if kept:
        raise LeftOutError(f"its SpiderIPPools are for some pods only ({', '.join(kept)}), not for those of the proof")

    def gives(node: Object) -> bool:
        return any(
            node["metadata"]["name"] in (spec.get("nodeName") or [node["metadata"]["name"]])
            and selects(spec.get("nodeAffinity"), node)
            for spec in specs
        )

    parts = []
    for spec in specs:
        cidr = ipaddress.ip_network(spec["subnet"], strict=False)
        usable, taken = (parse_ranges(spec.get(key) or (), f"SpiderIPPool of {cidr}") for key in ("ips", "excludeIPs"))
        parts.append(Given(cidr, usable - taken, str(spec.get("gateway") or "")))
    given, notes = one_of_each_family(parts)
    return Addresses(given, notes=notes, nodes=gives)


IPAMS: t.Dict[str, t.Callable[[Object, Pools], Addresses]] = {
    "whereabouts": of_whereabouts,
    "host-local": of_host_local,
    "static": of_static,
    "nv-ipam": of_nv_ipam,
    STACKS[OWN_IPAM].ipam: of_own_ipam,
}


def addresses_of(ipam: object, pools: Pools) -> Addresses:
    """Addresses by IPAM. LeftOutError if pods get none, or if the proof's pods would take those of others."""
    kind = str(ipam.get("type") or "") if isinstance(ipam, dict) else ""
    if not isinstance(ipam, dict) or not kind:
        raise LeftOutError("its pods get no address (no IPAM), and the proof tests from address to address")
    if kind not in IPAMS:
        why = f"the API shows no range of {kind}: addresses are tested between pods, but not compared with a range"
        return Addresses(notes=[(why, "")])
    try:
        return IPAMS[kind](ipam, pools)
    except MALFORMED as error:
        raise LeftOutError(f"the configuration of {kind} is wrong: {error}", "Correct it.", fault=True) from None
