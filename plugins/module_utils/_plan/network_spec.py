# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""fabric_networks as the site wrote it: keys, defaults, and mistakes."""

from __future__ import annotations

import dataclasses
import ipaddress
import itertools
import re
import string
import typing as t

from .._common.findings import Findings
from .._ipam.ranges import without_host_bits
from .._model.plan import HOST
from .._model.profiles import META_PLUGINS, SHARED, TYPES
from .._model.profiles import PREFIX as OF_DEVICES
from .endpoints import parse_address
from .names import ALIKE_KEYS, nearest

MASTER_LENGTH = 15  # the kernel finds no device by a longer name, not even by an alternative one
FAMILIES = {"ipv4": 4, "ipv6": 6}
PREFIX = "rdma"  # for resources without a prefix
MODES = ("bridge", "private", "vepa", "passthru")
SELECT = ("name", "pci", "driver", "subnet", "gpu")
DEFAULTS: t.Dict[str, object] = {
    "name": "",
    "namespace": "default",
    "type": "macvlan",
    "hosts": [],
    "select": {},
    "master": "",
    "mode": "bridge",
    "mtu": 0,
    "families": [],
    "subnet": "",
    "gateway": "",
    "reserved": [],
    "share": "upper_half",
    "accept_ra": True,
    "meta_plugins": [],
    "pool": "",
    "rdma_resource": "",
    "rdma_hca_max": 0,
    "vfs": 0,
}
# Other names for our keys: in the stacks' custom resources, l8k, CNI configurations and the device plugin's.
KEYS_ELSEWHERE = {
    "cniType": "type",
    "exclude": "reserved",
    "exclusions": "reserved",
    "gateway_ip": "gateway",
    "hcaMax": "rdma_hca_max",
    "ifNames": "select: {name: ...}",
    "metaPlugins": "meta_plugins",
    "interface": "select: {name: ...}",
    "ipam": "fabric_ipam, with its addresses in subnet, share, reserved and gateway",
    "ippools": "pool",
    "networkInterface": "select: {name: ...}",
    "networkName": "name",
    "networkNamespace": "namespace",
    "nodeSelector": "hosts",
    "numVfs": "vfs",
    "pciAddress": "select: {pci: ...}",
    "perNodeBlockSize": "fabric_pods_per_node, from which it follows",
    "poolName": "pool",
    "range": "subnet, and share for the part that pods get",
    "rdmaHcaMax": "rdma_hca_max",
    "rdmaResourceName": "rdma_resource",
    "resourceName": "rdma_resource",
    "startingSubnet": "subnet",
    "workerNodes": "hosts",
}
# The same for keys of `select`.
SELECT_ELSEWHERE = {
    **dict.fromkeys(("dev", "device", "ifNames", "ifname", "interface", "netdev", "nic"), "name"),
    **dict.fromkeys(("address", "bdf", "pciAddress", "rootDevices"), "pci"),
    **dict.fromkeys(("cidr", "network"), "subnet"),
    "drivers": "driver",
    "gpus": "gpu",
}
# Keys that do not apply to networks of a type.
NOT_OF_TYPE = {
    "macvlan": ("meta_plugins", "vfs"),
    "ipoib": ("meta_plugins", "mode", "mtu", "vfs"),
    "host_device": ("meta_plugins", "mode", "mtu", "master", "rdma_hca_max", "vfs"),
    "sriov": ("mode", "master", "rdma_hca_max"),
}
Problem = t.Tuple[str, str]  # what is wrong, and what to write instead


@dataclasses.dataclass(frozen=True)
class Select:
    """Which NIC of a host: one that matches a pattern of each non-empty list; with gpu, the one nearest to it."""

    name: t.Sequence[str] = ()
    pci: t.Sequence[str] = ()
    driver: t.Sequence[str] = ()
    subnet: t.Sequence[str] = ()  # CIDRs
    gpu: t.Optional[int] = None  # number in PCI order

    def rules(self) -> t.Dict[str, t.Sequence[str]]:
        """The patterns of each rule that is set."""
        rules = {"name": self.name, "pci": self.pci, "driver": self.driver, "subnet": self.subnet}
        return {key: patterns for key, patterns in rules.items() if patterns}

    def as_text(self) -> str:
        """As the site wrote it; without rules, the directory that links are read from."""
        parts = [f"{key}={' or '.join(patterns)}" for key, patterns in self.rules().items()]
        parts += [f"gpu={self.gpu}"] if self.gpu is not None else []
        return f"select {', '.join(parts)}" if parts else "/sys/class/net"


@dataclasses.dataclass(frozen=True)
class NetworkSpec:
    """A valid entry of fabric_networks, with defaults filled in."""

    name: str
    namespace: str
    type: str  # as in TYPES
    hosts: t.List[str]  # hosts and groups; empty: all that run pods
    select: Select
    master: str  # empty: the plan chooses it
    mode: str
    mtu: int  # bytes; 0: the NICs' MTU
    families: t.List[str]  # ipv4, ipv6; empty: IPv4 if the NIC has it, otherwise IPv6
    subnets: t.Dict[int, str]  # CIDRs that the site states, by IP version; otherwise those of the NICs' addresses
    gateways: t.Dict[int, str]  # by IP version
    reserved: t.List[str]  # addresses, CIDRs and ranges
    share: str
    accept_ra: bool  # whether pods accept router advertisements
    meta_plugins: t.List[str]  # chained plugins, from META_PLUGINS
    pool: str  # name of the IPAM's pool; empty: derived from the network's name
    rdma_resource: str  # PREFIX/NAME
    rdma_hca_max: int  # pods on a host that can use it; 0: as many as fit into the GID table
    vfs: int  # VFs of each NIC; 0: fabric_pods_per_node


def read_networks(entries: t.Sequence[object], findings: Findings) -> t.List[NetworkSpec]:
    """The valid entries; mistakes in the others become findings."""
    networks = [network for network in (_read(*entry, findings) for entry in enumerate(entries)) if network]
    names = [network.name for network in networks]
    for name in sorted(set(names)):
        if names.count(name) > 1:
            findings.error(
                "networks",
                [],
                "Networks need different names.",
                f"two are called {name}",
                "Give one of them a different `name` in fabric_networks.",
            )
    resources = sorted({network.rdma_resource for network in networks})
    for one, other in itertools.combinations(resources, 2):
        if one.partition("/")[2] == other.partition("/")[2]:
            findings.error(
                "networks",
                [],
                "RDMA resources need different names, whatever their prefixes.",
                f"{one} and {other}",
                "Give one of them a different `rdma_resource`, or both the same: the device plugin ignores prefixes.",
            )
    return networks


def host_device() -> NetworkSpec:
    """A stand-in for each host's RDMA NIC if there is no fabric network: pods use the NIC directly."""
    return t.cast(NetworkSpec, _read(0, {"name": HOST}, Findings()))


def read_select(given: t.Mapping[object, object]) -> Select:
    """The rules that are not empty; each pattern may be a text or a list."""
    rules: t.Dict[object, t.List[str]] = {
        key: [str(pattern) for pattern in _as_list(value)] for key, value in given.items() if value not in ("", None)
    }
    gpu = rules.get("gpu")
    return Select(
        name=rules.get("name", ()),
        pci=rules.get("pci", ()),
        driver=rules.get("driver", ()),
        subnet=rules.get("subnet", ()),
        gpu=int(gpu[0]) if gpu else None,
    )


def _read(number: int, entry: object, findings: Findings) -> t.Optional[NetworkSpec]:
    where = f"fabric_networks[{number}]"
    if not isinstance(entry, dict) or not entry:
        findings.error(
            "networks",
            [],
            f"{where} is not a network.",
            repr(entry),
            "Write at least {name: NAME}, such as {name: rdma-net}, or fabric_networks: [] for no network.",
        )
        return None
    where += f" ({entry['name']})" if isinstance(entry.get("name"), str) else ""
    _check_keys(where, entry, DEFAULTS, findings)
    given = {**DEFAULTS, **{key: value for key, value in entry.items() if key in DEFAULTS and value is not None}}
    text = {key: str(given[key]) for key, default in DEFAULTS.items() if isinstance(default, str)}
    own = text["type"] in TYPES and text["type"] not in SHARED
    prefix, stem = (OF_DEVICES, text["type"]) if own else (PREFIX, "rdma_shared_device")
    resource = text["rdma_resource"] or f"{stem}_{_letters(number)}"
    text["rdma_resource"] = resource if "/" in resource else f"{prefix}/{resource}"
    select, lists = given["select"], {key: given[key] for key in ("hosts", "reserved", "families", "meta_plugins")}
    mtu, hca_max, vfs = str(given["mtu"]), str(given["rdma_hca_max"]), str(given["vfs"])
    if isinstance(select, dict):
        _check_keys(f"select of {where}", select, SELECT, findings)
    problems = [*_select_problems(select), *_text_problems(text), *_mtu_problems(mtu), *_list_problems(lists)]
    problems += _subnet_problems(text["subnet"], lists["families"])
    if not re.fullmatch("[0-9]{1,9}", hca_max):
        problems.append(
            (f"rdma_hca_max is '{hca_max}'", "Write a number of pods, or 0 for as many as the GID table serves.")
        )
    problems += _type_problems(text, vfs, {key for key in DEFAULTS if given[key] != DEFAULTS[key]})
    if not isinstance(given["accept_ra"], bool):
        problems.append((f"accept_ra is '{given['accept_ra']}'", "Write true or false."))
    for seen, step in problems:
        findings.error("networks", [], f"{where} is not valid.", seen, step)
    if problems or not isinstance(select, dict):
        return None
    subnets = _read_subnets(text["subnet"])
    return NetworkSpec(
        name=text["name"],
        namespace=text["namespace"],
        type=text["type"],
        hosts=_texts(lists["hosts"]),
        select=read_select(select),
        master=text["master"],
        mode=text["mode"] if text["type"] == "macvlan" else "",
        mtu=int(mtu),
        families=_texts(lists["families"]) or (["ipv4", "ipv6"] if len(subnets) > 1 else []),
        subnets=subnets,
        gateways=_read_gateways(text["gateway"]),
        reserved=_texts(lists["reserved"]),
        share=text["share"],
        accept_ra=given["accept_ra"] is not False,
        meta_plugins=_texts(lists["meta_plugins"]),
        pool=text["pool"],
        rdma_resource=text["rdma_resource"],
        rdma_hca_max=int(hca_max),
        vfs=int(vfs),
    )


def _read_subnets(text: str) -> t.Dict[int, str]:
    """The stated subnet of each IP version.

    :raises ValueError: a part is not a CIDR, or two have the same version.
    """
    parts = [part.strip() for part in text.split(",")] if text else []
    bare = [part for part in parts if parse_address(part)]
    if bare:
        raise ValueError(f"{bare[0]} has no prefix length")
    parsed = [ipaddress.ip_network(part) for part in parts]
    found: t.Dict[int, str] = {cidr.version: str(cidr) for cidr in parsed}
    if len(found) < len(parsed):
        raise ValueError("two are of one family")
    return found


def _subnet_problems(text: str, families: object) -> t.Iterator[Problem]:
    step = "Write a CIDR such as 10.5.0.0/24, one of each family with a comma between, or nothing."
    try:
        subnets = _read_subnets(text)
    except ValueError as error:
        yield f"subnet is '{text}' ({error})", without_host_bits(text).strip() or step
        return
    named = {FAMILIES[item] for item in families if item in FAMILIES} if isinstance(families, list) else set()
    for version in sorted(set(subnets) - named) if named else ():
        yield (
            f"subnet has {subnets[version]}, families are {' and '.join(map(str, t.cast(t.List[object], families)))}",
            "Name that family too (key families), or leave its subnet out.",
        )


def _read_gateways(text: str) -> t.Dict[int, str]:
    """The gateway of each IP version; empty if the text is invalid, or has two of one version."""
    parts = [parse_address(part.strip()) for part in text.split(",")]
    gateways: t.Dict[int, str] = {address.version: str(address) for address in parts if address is not None}
    return gateways if len(gateways) == len(parts) else {}


def _as_list(value: object) -> t.List[object]:
    return value if isinstance(value, list) else [value]


def _texts(value: object) -> t.List[str]:
    return [str(item) for item in _as_list(value)]


def _letters(number: int) -> str:
    """a to z, aa to az, and so on."""
    more, letter = divmod(number, 26)
    return (_letters(more - 1) if more else "") + string.ascii_lowercase[letter]


def _check_keys(where: str, given: t.Iterable[object], known: t.Iterable[str], findings: Findings) -> None:
    for key in sorted(set(map(str, given)) - set(known)):
        meant = nearest(key, known, ALIKE_KEYS)
        hint = f"Did you mean {meant}? " if meant else ""
        elsewhere = KEYS_ELSEWHERE if known is DEFAULTS else SELECT_ELSEWHERE
        if key in elsewhere:
            hint = f"Here it is {elsewhere[key]}. "
        step = f"{hint}Known keys are {', '.join(known)}."
        findings.error("networks", [], f"{where} has an unknown key.", f"'{key}'", step)


def _text_problems(text: t.Mapping[str, str]) -> t.Iterator[Problem]:
    for key, step in (
        ("name", "Give it a name of lower-case letters, digits and hyphens."),
        ("namespace", "Write the name of a namespace."),
        ("pool", "Write a name of lower-case letters, digits and hyphens, or nothing."),
    ):
        if (text[key] or key != "pool") and not re.fullmatch(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?", text[key]):
            yield f"{key} is '{text[key]}'", step
    if text["master"].startswith("["):
        yield (
            f"master is {text['master']}",
            "Write the name alone. An RDMA NIC of that name is the one of this network, unless select names another.",
        )
    elif text["master"] and not re.fullmatch(rf"[A-Za-z0-9_.@-]{{1,{MASTER_LENGTH}}}", text["master"]):
        yield f"master is '{text['master']}'", f"Write a name of at most {MASTER_LENGTH} characters, or nothing."
    if text["mode"] not in MODES:
        yield f"mode is '{text['mode']}'", f"Use one of {', '.join(MODES)}."
    if text["gateway"] and not _read_gateways(text["gateway"]):
        address = text["gateway"].partition("/")[0]
        yield (
            f"gateway is '{text['gateway']}'",
            f"Write {address}, without a prefix length."
            if _read_gateways(address)
            else "Write an IP address, one of each family with a comma, or nothing.",
        )
    prefix, _slash, resource = text["rdma_resource"].partition("/")
    seen = f"rdma_resource is '{text['rdma_resource']}'"
    if not re.fullmatch("[A-Za-z0-9_]+", resource):
        yield seen, f"Use letters, digits and underscores after the prefix{_such_as(prefix, resource)}."
    if not re.fullmatch(r"[a-z0-9]([-.a-z0-9]*[a-z0-9])?", prefix):
        yield (
            seen,
            "Write the prefix as a domain: lower-case letters, digits, hyphens and dots, such as spidernet.io/NAME.",
        )
    elif prefix.endswith("kubernetes.io") or prefix.startswith("requests."):
        yield seen, f"Take a prefix other than {prefix}, which Kubernetes keeps for its own resources."


def _such_as(prefix: str, resource: str) -> str:
    return f", such as {prefix}/{resource.replace('-', '_')}" if re.fullmatch("[A-Za-z0-9_-]+", resource) else ""


def _type_problems(text: t.Mapping[str, str], vfs: str, given: t.Container[str]) -> t.Iterator[Problem]:
    kind, (prefix, _slash, resource) = text["type"], text["rdma_resource"].partition("/")
    if kind not in TYPES:
        yield f"type is '{kind}'", f"Use one of {', '.join(TYPES)}."
        return
    for key in NOT_OF_TYPE[kind]:
        if key in given:
            yield f"{key} is set, type is {kind}", f"Leave {key} out: it does not apply to this type."
    if kind not in SHARED and prefix != OF_DEVICES:
        yield f"rdma_resource is '{text['rdma_resource']}'", f"Write {OF_DEVICES}/{resource}: {kind} has no other."
    if not re.fullmatch("[0-9]{1,3}", vfs):
        yield f"vfs is '{vfs}'", "Write how many VFs each NIC gets, or 0 for fabric_pods_per_node."


def _mtu_problems(mtu: str) -> t.Iterator[Problem]:
    if not re.fullmatch("[0-9]{1,9}", mtu) or 0 < int(mtu) < 1280:
        yield f"mtu is '{mtu}'", "Write 0 for the NIC's own, or a number of at least 1280."


def _list_problems(lists: t.Mapping[str, object]) -> t.Iterator[Problem]:
    for key in ("reserved", "hosts"):
        value = lists[key]
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            one = f"Write a list: [{value}]." if isinstance(value, str) else "Write a list of strings."
            yield f"{key} is '{value}'", one
    families = lists["families"]
    if not isinstance(families, list) or not all(
        families.count(item) == 1 and item in [*FAMILIES] for item in families
    ):
        yield f"families is '{_shown(families)}'", "Write [ipv4], [ipv6] or [ipv4, ipv6]."
    chained = lists["meta_plugins"]
    if not isinstance(chained, list) or any(chained.count(item) > 1 or item not in META_PLUGINS for item in chained):
        one, other = META_PLUGINS
        yield f"meta_plugins is '{_shown(chained)}'", f"Write [{one}], [{other}] or [{one}, {other}]."


def _shown(value: object) -> str:
    return f"[{', '.join(map(str, value))}]" if isinstance(value, list) else str(value)


def _select_problems(select: object) -> t.Iterator[Problem]:
    if not isinstance(select, dict):
        yield f"select is '{select}'", f"Write a dictionary of {', '.join(SELECT)}."
        return
    for key, value in select.items():
        if key == "gpu":
            if not re.fullmatch("[0-9]{1,3}", str(value)):
                yield f"select.gpu is {value!r}", "Write the number of a GPU; the first is 0."
        elif not all(isinstance(item, str) for item in _as_list(value)):
            yield f"select.{key} is {value!r}", "Write a string, or a list of strings."
    try:
        for subnet in _as_list(select.get("subnet") or []):
            ipaddress.ip_network(str(subnet))
    except ValueError as error:
        given = [without_host_bits(str(subnet)) for subnet in _as_list(select.get("subnet") or [])]
        yield f"select.subnet: {error}", "".join(given).strip() or "Write a CIDR such as 10.5.0.0/24."
