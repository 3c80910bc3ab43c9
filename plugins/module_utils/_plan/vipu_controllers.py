# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which V-IPU controller serves which host, and what the IPU operator's chart takes for it."""

from __future__ import annotations

import dataclasses
import re
import typing as t

from .._common.findings import Findings
from .._common.text import join_endpoint
from .._host.vipu import DEFAULT_PORT, split_endpoint
from .._model.plan import Controller, Vipu
from .._model.settings import Settings
from .endpoints import parse_address
from .hosts import Hosts, with_role

LABEL = "ipunode"
# A label as the chart takes it: a colon or comma would end it.
FORM = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/-]*=[A-Za-z0-9._-]{0,63}")


@dataclasses.dataclass(frozen=True)
class _Named:
    """A controller as the site or its hosts name it."""

    host: str
    port: int
    address: str  # what the host name resolves to, as far as it is known
    serves: t.List[str]
    label: str = ""  # empty: the site leaves it to the plan


def plan_vipu(settings: Settings, hosts: Hosts, ipv6_pods: bool, findings: Findings) -> Vipu:
    names = with_role(hosts, "ipu")
    if not settings.ipu:
        return {"controllers": [], "value": "", "node_labels": {}}
    if settings.vipu_hosts:
        named = _read_controllers(settings.vipu_hosts, names, findings)
    else:
        named = _observed_controllers(hosts, names, findings)
    controllers = [_plan_controller(one, len(named) == 1, settings.resolved) for one in named]
    for controller in controllers:
        _check_address(controller, ipv6_pods, findings)
    if len(controllers) == 1:  # also of a host that did not answer (allowed, else there is no plan): it has no other
        controllers[0]["serves"] = names
    labels = {name: controller["label"] for controller in controllers for name in controller["serves"]}
    if settings.vipu_hosts and controllers and set(names) - set(labels):
        findings.error(
            "vipu",
            [name for name in names if name not in labels],
            "No V-IPU controller serves this IPU host.",
            "no entry of fabric_vipu_hosts names it",
            "Add it to `serves` of its controller, or remove it from ipu_node.",
        )
    return {
        "controllers": controllers,
        "value": ",".join(f"{join_endpoint(one['address'], one['port'])}:{one['label']}" for one in controllers),
        "node_labels": {name: dict([labels[name].split("=", 1)]) for name in names if name in labels},
    }


def controller_addresses(vipu: Vipu) -> t.Dict[str, str]:
    """V-IPU's address for each host that has a controller. A name that does not resolve is no address."""
    return {
        name: controller["address"]
        for controller in vipu["controllers"]
        if parse_address(controller["address"])
        for name in controller["serves"]
    }


def _read_controllers(entries: t.Sequence[object], names: t.List[str], findings: Findings) -> t.List[_Named]:
    """The site's own list: `host:port`, or {host, port, serves, label} where there are several."""
    controllers: t.List[_Named] = []
    for entry in entries:
        given = dict(entry) if isinstance(entry, dict) else {"host": str(entry)}
        try:
            host, port = split_endpoint(str(given.get("host", "")), int(given.get("port") or DEFAULT_PORT))
            serves = [name for name in names if name in given.get("serves", names)]
            if (len(entries) > 1 and "serves" not in given) or set(given) - {"host", "port", "serves", "label"}:
                raise ValueError(entry)
            label = str(given["label"]) if "label" in given else ""
            if "label" in given and not FORM.fullmatch(label):
                raise ValueError(entry)
        except (TypeError, ValueError):
            findings.error(
                "vipu",
                [],
                "An entry of fabric_vipu_hosts is not valid.",
                repr(entry),
                "Write host:port; with more than one, {host: ..., port: ..., serves: [inventory names]}; optional: "
                "label: key=value.",
            )
            continue
        controllers.append(_Named(host, port, host, serves, label))
    return controllers


def _observed_controllers(hosts: Hosts, names: t.List[str], findings: Findings) -> t.List[_Named]:
    """What `vipu` says on each host."""
    controllers: t.Dict[t.Tuple[str, int], _Named] = {}
    for name in names:
        observation = hosts[name].observation
        for error in observation["errors"]:
            if error["source"] == "vipu":
                seen = f"{error['seen']} (at {error['where']})"
                findings.error("vipu", [name], error["what"], seen, error["next_step"])
        facts = observation.get("vipu")
        if facts:
            address, port = facts["address"] or facts["host"], facts["port"]
            controller = _Named(facts["host"], port, address, [])
            controllers.setdefault((address, port), controller).serves.append(name)
    return [controllers[key] for key in sorted(controllers)]


def _plan_controller(named: _Named, only: bool, resolved: t.Mapping[str, str]) -> Controller:
    address = resolved.get(named.address, named.address)
    return {
        "host": named.host,
        "port": named.port,
        "address": address,
        "serves": named.serves,
        "label": named.label or f"{LABEL}={_label_value(address, named.port, only)}",
    }


def _label_value(address: str, port: int, only: bool) -> str:
    """The usual `ipunode=true` for one controller; with several, a value that stays when others come and go."""
    if only:
        return "true"
    suffix = "" if port == DEFAULT_PORT else f"-{port}"
    return re.sub(r"[^A-Za-z0-9._-]", "-", f"{address}{suffix}").strip("-._")[:63]


def _check_address(controller: Controller, ipv6_pods: bool, findings: Findings) -> None:
    address = parse_address(controller["address"])
    loopback = address.is_loopback if address else controller["address"].split(".")[0] == "localhost"
    if loopback:
        findings.error(
            "vipu-address",
            controller["serves"],
            "The IPU operator's proxy runs on the pod network and can't reach a loopback address.",
            f"V-IPU is at {controller['host']} ({controller['address']})",
            "Set an address that the fabric can reach: VIPU_CLI_API_HOST, fabric_vipu.api_host or fabric_vipu_hosts.",
        )
    elif address is not None and address.version == 6 and not ipv6_pods:
        findings.error(
            "vipu-address",
            controller["serves"],
            "Pods have IPv4 only and can't reach an IPv6 V-IPU.",
            f"V-IPU is at {join_endpoint(str(address), controller['port'])}",
            "Add an IPv6 range to fabric_pod_cidr and fabric_service_cidr, or give V-IPU an IPv4 address.",
        )
