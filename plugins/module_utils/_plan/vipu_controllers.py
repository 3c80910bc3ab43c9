# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which V-IPU controller serves which host, and how the IPU operator is told."""

from __future__ import annotations

import ipaddress
import re
import typing as t

from ansible_collections.ipu.fabric.plugins.module_utils._common.findings import Findings
from ansible_collections.ipu.fabric.plugins.module_utils._host.vipu import DEFAULT_PORT, split_endpoint
from ansible_collections.ipu.fabric.plugins.module_utils._plan.host_checks import Hosts

LABEL = "ipunode"
# A label as the chart takes it: a colon or comma would end it.
FORM = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/-]*=[A-Za-z0-9._-]{0,63}")
Controller = t.Dict[str, t.Any]


def join_endpoint(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def as_address(text: str) -> t.Union[ipaddress.IPv4Address, ipaddress.IPv6Address, None]:
    try:
        return ipaddress.ip_address(text)
    except ValueError:
        return None


def _fixed(entries: t.Sequence[t.Any], names: t.List[str], found: Findings) -> t.List[Controller]:
    """The site's own list in place of asking: `host:port`, or {host, port, serves, label} where there are several."""
    controllers: t.List[Controller] = []
    for entry in entries:
        given = dict(entry) if isinstance(entry, dict) else {"host": str(entry)}
        try:
            host, port = split_endpoint(str(given.get("host", "")), int(given.get("port") or DEFAULT_PORT))
            serves = [name for name in names if name in given.get("serves", names)]
            if (len(entries) > 1 and "serves" not in given) or set(given) - {"host", "port", "serves", "label"}:
                raise ValueError(entry)
            if not FORM.fullmatch(str(given.get("label", f"{LABEL}=true"))):
                raise ValueError(entry)
        except (TypeError, ValueError):
            found.error(
                "vipu",
                [],
                "An entry of fabric_vipu_hosts can't be used.",
                repr(entry),
                "Write host:port; with more than one, {host: ..., port: ..., serves: [inventory names]}; more: "
                "label: key=value.",
            )
            continue
        label = {"label": given["label"]} if "label" in given else {}
        controllers.append({"host": host, "port": port, "address": host, "serves": serves, **label})
    return controllers


def _asked(hosts: Hosts, names: t.List[str], found: Findings) -> t.List[Controller]:
    """What the hosts' own `vipu` said."""
    controllers: t.Dict[t.Tuple[str, int], Controller] = {}
    for name in names:
        seen = hosts[name].get("vipu") or {}
        errors = [error for error in hosts[name].get("errors", ()) if error["source"] == "vipu"]
        for error in errors:
            found.error("vipu", [name], error["what"], f"{error['seen']} (at {error['where']})", error["next_step"])
        if not seen:
            continue
        address = seen["address"] or seen["host"]
        new = {"host": seen["host"], "port": int(seen["port"]), "address": address, "serves": []}
        controllers.setdefault((address, new["port"]), new)["serves"].append(name)
    return [controllers[key] for key in sorted(controllers)]


def _check_address(controller: Controller, ipv6_pods: bool, found: Findings) -> None:
    address = as_address(controller["address"])
    loopback = address.is_loopback if address else controller["address"].split(".")[0] == "localhost"
    if loopback:
        found.error(
            "vipu-address",
            controller["serves"],
            "The IPU operator's proxy runs on the pod network and can't reach a loopback address.",
            f"V-IPU is at {controller['host']} ({controller['address']})",
            "Set an address that the fabric knows: VIPU_CLI_API_HOST or fabric_vipu.api_host, or fabric_vipu_hosts.",
        )
    elif address is not None and address.version == 6 and not ipv6_pods:
        found.error(
            "vipu-address",
            controller["serves"],
            "Pods have IPv4 only and can't reach an IPv6 V-IPU.",
            f"V-IPU is at {join_endpoint(str(address), controller['port'])}",
            "Add an IPv6 range to fabric_pod_cidr and fabric_service_cidr, or give V-IPU an IPv4 address.",
        )


def _label_value(controller: Controller, alone: bool) -> str:
    """The usual `ipunode=true` for one controller; with several, a value that stays when others come and go."""
    if alone:
        return "true"
    port = "" if controller["port"] == DEFAULT_PORT else f"-{controller['port']}"
    return re.sub(r"[^A-Za-z0-9._-]", "-", f"{controller['address']}{port}").strip("-._")[:63]


def plan_vipu(settings: t.Mapping[str, t.Any], hosts: Hosts, ipv6_pods: bool, found: Findings) -> t.Dict[str, t.Any]:
    """controllers, the value of the chart's `global.vipuControllers`, and the label of each host."""
    names = [name for name, host in hosts.items() if "ipu" in host["roles"]]
    if not settings["ipu"]:
        return {"controllers": [], "value": "", "node_labels": {}}
    if settings["vipu_hosts"]:
        controllers = _fixed(settings["vipu_hosts"], names, found)
    else:
        controllers = _asked(hosts, names, found)
    for controller in controllers:
        controller["address"] = settings["resolved"].get(controller["address"], controller["address"])
        controller.setdefault("label", f"{LABEL}={_label_value(controller, len(controllers) == 1)}")
        _check_address(controller, ipv6_pods, found)
    if len(controllers) == 1:  # a host that could not be asked (allowed, or there would be no plan) has no other choice
        controllers[0]["serves"] = names
    served = {name: controller["label"] for controller in controllers for name in controller["serves"]}
    if settings["vipu_hosts"] and controllers and set(names) - set(served):
        found.error(
            "vipu",
            [name for name in names if name not in served],
            "No V-IPU controller serves this IPU host.",
            "fabric_vipu_hosts names it nowhere",
            "Add it to `serves` of its controller, or take it out of ipu_node.",
        )
    value = ",".join(f"{join_endpoint(item['address'], item['port'])}:{item['label']}" for item in controllers)
    labels = {name: dict([served[name].split("=", 1)]) for name in names if name in served}
    return {"controllers": controllers, "value": value, "node_labels": labels}
