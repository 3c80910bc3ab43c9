# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The fabric networks as the site wrote them: defaults, and what is wrong with them."""

from __future__ import annotations

import difflib
import ipaddress
import re
import string
import typing as t

from ansible_collections.ipu.fabric.plugins.module_utils._common.findings import Findings
from ansible_collections.ipu.fabric.plugins.module_utils._plan.vipu_controllers import as_address

Network = t.Dict[str, t.Any]

DEFAULTS: t.Dict[str, t.Any] = {
    "name": "",
    "namespace": "default",
    "hosts": [],
    "select": {},
    "master": "",
    "mode": "bridge",
    "mtu": 0,
    "families": [],
    "gateway": "",
    "reserved": [],
    "share": "upper_half",
    "rdma_resource": "",
}
SELECT = ("name", "pci", "driver", "subnet", "gpu")
MASTER_LENGTH = 15  # the kernel finds a device by a name that is no longer, be it an alternative one
FAMILIES = {"ipv4": 4, "ipv6": 6}
MODES = ("bridge", "private", "vepa", "passthru")


def as_list(value: t.Any) -> t.List[t.Any]:
    return value if isinstance(value, list) else [value]


def read_gateways(text: str) -> t.Dict[int, str]:
    """The gateway of each IP version; empty when the text is none, or has two of one version."""
    parts = [as_address(part.strip()) for part in text.split(",")]
    gateways: t.Dict[int, str] = {address.version: str(address) for address in parts if address is not None}
    return gateways if len(gateways) == len(parts) else {}


def _letters(number: int) -> str:
    """a to z, aa to az, and so on."""
    more, letter = divmod(number, 26)
    return (_letters(more - 1) if more else "") + string.ascii_lowercase[letter]


def _unknown_keys(where: str, given: t.Iterable[str], known: t.Iterable[str], found: Findings) -> None:
    for key in sorted(set(map(str, given)) - set(known)):
        near = difflib.get_close_matches(key, list(known), 1)
        meant = f"Did you mean {near[0]}? " if near else ""
        found.error("networks", [], f"{where} has an unknown key.", f"'{key}'", f"{meant}Known are {', '.join(known)}.")


def _value_problems(network: Network) -> t.Iterator[t.Tuple[str, str]]:
    """Pairs of what is wrong and what would be right."""
    yield from _select_problems(network["select"])
    yield from _address_problems(network)
    if not re.fullmatch(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?", network["name"]):
        yield f"name is '{network['name']}'", "Give it a name of lower-case letters, digits and hyphens."
    if not re.fullmatch(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?", network["namespace"]):
        yield f"namespace is '{network['namespace']}'", "Write the name of a namespace."
    if network["master"] and not re.fullmatch(rf"[A-Za-z0-9_.@-]{{1,{MASTER_LENGTH}}}", network["master"]):
        yield f"master is '{network['master']}'", f"Write a name of at most {MASTER_LENGTH} characters, or nothing."
    if network["mode"] not in MODES:
        yield f"mode is '{network['mode']}'", f"Take one of {', '.join(MODES)}."
    if not str(network["mtu"]).isdigit() or 0 < int(network["mtu"]) < 1280:
        yield f"mtu is '{network['mtu']}'", "Write 0 for the NIC's own, or a number from 1280 on."
    if not re.fullmatch(r"[A-Za-z0-9_]+", network["rdma_resource"]):
        yield f"rdma_resource is '{network['rdma_resource']}'", "Use letters, digits and underscores."
    for key in ("reserved", "hosts"):
        if not isinstance(network[key], list) or not all(isinstance(item, str) for item in network[key]):
            yield f"{key} is '{network[key]}'", "Write a list of text."


def _address_problems(network: Network) -> t.Iterator[t.Tuple[str, str]]:
    if network["gateway"] and not read_gateways(network["gateway"]):
        yield f"gateway is '{network['gateway']}'", "Write an IP address, one of each family with a comma, or nothing."
    families = network["families"]
    if not isinstance(families, list) or not all(
        families.count(item) == 1 and item in [*FAMILIES] for item in families
    ):
        yield f"families is '{families}'", f"Write a list of {' and '.join(FAMILIES)}, each once."


def _select_problems(select: t.Any) -> t.Iterator[t.Tuple[str, str]]:
    if not isinstance(select, dict):
        yield f"select is '{select}'", f"Write a dictionary of {', '.join(SELECT)}."
        return
    for key, value in select.items():
        if key == "gpu":
            if not re.fullmatch("[0-9]{1,3}", str(value)):
                yield f"select.gpu is {value!r}", "Write the number of a GPU; the first is 0."
        elif not all(isinstance(item, str) for item in as_list(value)):
            yield f"select.{key} is {value!r}", "Write text, or a list of it."
    try:
        for subnet in as_list(select.get("subnet") or []):
            ipaddress.ip_network(str(subnet))
    except ValueError as error:
        yield f"select.subnet: {error}", "Write a CIDR such as 10.5.0.0/24."


def read_networks(given: t.Sequence[t.Any], found: Findings) -> t.List[Network]:
    """The networks with their defaults; those that can't be used become findings and are left out."""
    networks: t.List[Network] = []
    for number, entry in enumerate(given):
        where = f"fabric_networks[{number}]"
        if not isinstance(entry, dict):
            found.error("networks", [], f"{where} is not a network.", repr(entry), "Write at least {name: rdma-net}.")
            continue
        _unknown_keys(where, entry, DEFAULTS, found)
        network = {**DEFAULTS, **{key: value for key, value in entry.items() if key in DEFAULTS and value is not None}}
        network.update({key: str(network[key]) for key, usual in DEFAULTS.items() if isinstance(usual, str)})
        network["rdma_resource"] = network["rdma_resource"] or f"rdma_shared_device_{_letters(number)}"
        if isinstance(network["select"], dict):
            _unknown_keys(f"{where}.select", network["select"], SELECT, found)
        problems = list(_value_problems(network))
        for seen, step in problems:
            found.error("networks", [], f"{where} can't be used.", seen, step)
        if not problems:
            networks.append({**network, "mtu": int(network["mtu"])})
    for name in sorted({network["name"] for network in networks}):
        if [network["name"] for network in networks].count(name) > 1:
            found.error("networks", [], "Networks need different names.", f"two are called {name}", "Rename one.")
    if not given:
        found.error("networks", [], "There is no fabric network.", "fabric_networks is empty", "Add {name: rdma-net}.")
    return networks
