# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The address of each node, one of each family of the cluster, at which all others reach it."""

from __future__ import annotations

import dataclasses
import fnmatch
import typing as t

from .._common.addresses import Network, read_address, read_interface, read_network
from .._common.findings import Findings
from .._model.observation import ADVERTISED, Link, Observation
from .._model.settings import Settings
from .endpoints import parse_address, static_first

VARIABLE = "fabric_node_address"
KEYS = ("interface", "subnet")


@dataclasses.dataclass(frozen=True)
class AddressRules:
    """How a node's address is chosen if the inventory has no `ip`."""

    families: t.Sequence[int] = ()  # 4 and 6, the first service CIDR's family first; empty: whatever the host has
    interface: str = ""  # its name, with * as wildcard; empty: the one with the default route
    subnets: t.Sequence[Network] = ()


AS_THE_HOST = AddressRules()


def families_of(*texts: str) -> t.List[int]:
    """IP versions of CIDRs separated by commas, without duplicates; invalid ones are reported elsewhere."""
    found = []
    for part in ",".join(texts).split(","):
        try:
            found.append(read_network(part.strip()).version)
        except ValueError:
            continue
    return list(dict.fromkeys(found))


def read_rules(settings: Settings, findings: Findings) -> AddressRules:
    """The site's rules. Nodes of a cluster that others manage already have their addresses."""
    given = settings.node_address
    unknown = sorted(set(given) - set(KEYS))
    texts = given.get("subnet") or []
    try:
        subnets = [read_network(str(each)) for each in (texts if isinstance(texts, list) else [texts])]
    except ValueError as error:
        unknown, subnets = [str(error)], []
    if unknown:
        findings.error(
            "node-address",
            [],
            f"{VARIABLE} is not valid.",
            ", ".join(unknown),
            "Give it an interface (eno1, or a pattern such as eno*), a subnet (10.1.0.0/24, or a list of one of each"
            " family), or both.",
        )
    if not settings.manage_kubernetes:
        return AddressRules()
    families = families_of(settings.service_cidr, settings.pod_cidr)
    return AddressRules(families, str(given.get("interface") or ""), subnets)


def links_of(observation: Observation) -> t.Sequence[Link]:
    rdma = observation.get("rdma")
    return rdma["links"] if rdma else ()


def _fits(address: str, subnets: t.Sequence[Network]) -> bool:
    parsed = parse_address(address)
    return parsed is not None and (not subnets or any(parsed in subnet for subnet in subnets))


def _is_advertised(observation: Observation, address: str) -> bool:
    return any(
        one["address"] == address and one.get("origin") == ADVERTISED
        for link in links_of(observation)
        for one in link["addresses"]
    )


def _named(observation: Observation, rules: AddressRules) -> t.List[Link]:
    """Links that match the rules' interface."""
    return [
        link
        for link in links_of(observation)
        if any(fnmatch.fnmatchcase(name, rules.interface or "*") for name in (link["netdev"], *link["altnames"]))
    ]


def possible_subnets(observation: Observation, rules: AddressRules) -> t.List[Network]:
    """Subnets of the chosen interface's static addresses, in the cluster's families, if the rules name no subnet."""
    if observation.get("address") or not rules.interface or rules.subnets:
        return []
    entries = [entry for link in _named(observation, rules) for entry in link["addresses"] if not entry.get("origin")]
    found = [read_interface(entry["address"], entry["prefix"]).network for entry in entries]
    wanted = [each for each in found if each.num_addresses > 1 and each.version in (rules.families or (4, 6))]
    return sorted(set(wanted), key=str)


def choose_address(observation: Observation, rules: AddressRules) -> str:
    """The inventory's address; otherwise one of each family separated by commas, as far as the host has them."""
    given, facts = observation.get("address", ""), observation.get("host")
    if given or not facts:
        return given
    default = facts["default_address"]
    if rules.interface or rules.subnets:
        found = [one["address"] for link in _named(observation, rules) for one in static_first(link["addresses"])]
    else:
        own = [[one["address"] for one in static_first(link["addresses"])] for link in links_of(observation)]
        mine = [text for texts in own if default in texts for text in texts]
        # The kernel's choice, unless it was advertised by a router and there are others.
        found = mine if _is_advertised(observation, default) else [default, *mine]
    found = [text for text in found if _fits(text, rules.subnets)]
    versions = {text: read_address(text).version for text in found}
    chosen = [next((text for text in found if versions[text] == family), "") for family in rules.families]
    return ",".join(filter(None, chosen)) or next(iter(found), "")
