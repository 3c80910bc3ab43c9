# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What kube-proxy, the kubelet, Calico and flannel leave in a host's network, recognized by name. Pure functions.

Nothing is flushed, nor saved and restored: rules of others, and those that they add meanwhile, stay.
"""

from __future__ import annotations

import re
import shlex
import typing as t

CHAIN = re.compile(r"(KUBE-|cali-|FLANNEL-)")
CALICO_RULE = "cali:"  # Calico marks its rules in other programs' chains with a comment
TABLES = ("kube-proxy", "calico", "flannel-ipv4", "flannel-ipv6")
IP_SET = re.compile(r"(KUBE-|cali[46]0)")
# Names of links, each with its kind in `ip -d`. A link of that name and another kind is somebody else's.
LINKS = (
    (re.compile(r"cali[0-9a-f]{11}"), "veth"),
    (re.compile(r"vxlan(-v6)?\.calico"), "vxlan"),
    (re.compile(r"(wireguard|wg-v6)\.cali"), "wireguard"),
    (re.compile(r"flannel(-v6)?\.\d+"), "vxlan"),
    (re.compile(r"flannel-wg(-v6)?"), "wireguard"),
    (re.compile(r"cni0"), "bridge"),
    (re.compile(r"kube-ipvs0"), "dummy"),
)
FELIX = "80"  # the routing protocol of routes from Calico's felix
# Names that containerd's CRI gives to network namespaces. Other programs use other names.
NETWORK_NAMESPACE = re.compile(r"cni-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


class LinkInfo(t.TypedDict, total=False):
    """What `ip -j -d link` reports about the kind of a device."""

    info_kind: str


class Link(t.TypedDict, total=False):
    """A device in the JSON of `ip -j -d link`."""

    ifname: str
    linkinfo: LinkInfo


class Route(t.TypedDict, total=False):
    """A route in the JSON of `ip -j route`."""

    type: str
    dst: str
    table: str


class OwnRules(t.NamedTuple):
    """Our chains by table, our rules in foreign chains, and input for iptables-restore that removes both."""

    chains: t.List[str]
    rules: t.List[str]
    restore: str


def _target(words: t.Sequence[str]) -> str:
    """The chain that a rule jumps to; empty if it jumps to none."""
    return next((words[index + 1] for index, word in enumerate(words[:-1]) if word in ("-j", "-g")), "")


def _comments(words: t.Sequence[str]) -> t.List[str]:
    return [words[index + 1] for index, word in enumerate(words[:-1]) if word == "--comment"]


def is_own_rule(rule: str) -> bool:
    """Whether a rule in a foreign chain jumps to one of our chains, or is Calico's."""
    words = shlex.split(rule)
    return bool(CHAIN.match(_target(words))) or any(text.startswith(CALICO_RULE) for text in _comments(words))


def own_rules(saved: str) -> OwnRules:
    """What to remove, from the output of iptables-save."""
    chains: t.List[str] = []
    rules: t.List[str] = []
    restore: t.List[str] = []
    for table in re.split(r"^\*", saved, flags=re.MULTILINE)[1:]:
        name, *lines = table.splitlines()
        own = [line[1:].split()[0] for line in lines if line.startswith(":") and CHAIN.match(line[1:])]
        in_others = [
            line[3:] for line in lines if line.startswith("-A ") and not CHAIN.match(line[3:]) and is_own_rule(line[3:])
        ]
        if own or in_others:
            commands = [f"-D {rule}" for rule in in_others]
            # Chains refer to each other: all must be emptied before any can be deleted.
            commands += [f"{option} {chain}" for option in ("-F", "-X") for chain in own]
            restore += [f"*{name}", *commands, "COMMIT"]
        chains += [f"{name} {chain}" for chain in own]
        rules += [f"{name} {rule}" for rule in in_others]
    return OwnRules(chains, rules, "".join(f"{line}\n" for line in restore))


def own_tables(listing: str) -> t.List[str]:
    """Family and name of our tables, from `nft list tables`."""
    found = (line.split()[1:] for line in listing.splitlines() if line.startswith("table "))
    return [" ".join(words) for words in found if len(words) == 2 and words[1] in TABLES]


def own_ip_sets(listing: str) -> t.List[str]:
    """Our IP sets, from `ipset list -name`."""
    return [name for name in listing.split() if IP_SET.match(name)]


def own_links(links: t.Sequence[Link]) -> t.List[str]:
    def is_own(link: Link) -> bool:
        kind = link.get("linkinfo", {}).get("info_kind", "")
        return any(name.fullmatch(link.get("ifname", "")) and kind == of_kind for name, of_kind in LINKS)

    return [link["ifname"] for link in links if is_own(link)]


def own_routes(routes: t.Sequence[Route]) -> t.List[str]:
    """Routes of felix that no link takes along when it is removed: blackholes for the blocks of this host."""
    return [route["dst"] for route in routes if route.get("type") == "blackhole"]


def own_virtual_servers(saved: str, addresses: t.Collection[str]) -> t.List[t.List[str]]:
    """IPVS services at the addresses of kube-ipvs0, from `ipvsadm --save -n`: protocol option and address."""
    services = (line.split()[1:3] for line in saved.splitlines() if line.startswith("-A "))
    return [words for words in services if words[1].rpartition(":")[0].strip("[]") in addresses]


def own_namespaces(names: t.Iterable[str]) -> t.List[str]:
    return sorted(name for name in names if NETWORK_NAMESPACE.fullmatch(name))
