# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which V-IPU controller serves which host, and the values for the IPU operator's chart."""

from __future__ import annotations

import dataclasses
import re
import typing as t
from types import MappingProxyType

from .._common.findings import Findings
from .._common.text import join_endpoint, shorten_list
from .._host.vipu import DEFAULT_PORT, split_endpoint
from .._model.plan import Controller, Vipu
from .._model.settings import Settings
from .endpoints import is_loopback, parse_address
from .host_links import HostLink, NetworkLinks
from .hosts import Hosts, PlacedHost, with_role
from .names import with_meant

LABEL = "ipunode"
NAMES = 4  # host names in a finding
# The chart's format for labels: a colon or comma would end one.
FORM = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/-]*=[A-Za-z0-9._-]{0,63}")


@dataclasses.dataclass(frozen=True)
class NamedController:
    """A controller, as the site or its hosts give it."""

    host: str
    port: int
    address: str  # what the host name resolves to, if known
    serves: t.List[str]
    label: str = ""  # empty: the plan chooses it
    runs_on: str = ""  # inventory name; empty: on a machine outside the inventory


def name_controllers(settings: Settings, hosts: Hosts, findings: Findings) -> t.List[NamedController]:
    """The controllers with the hosts that they serve, at the addresses that the site or its hosts know."""
    names = with_role(hosts, "ipu")
    if not settings.ipu:
        return []
    owners = _owners(hosts)
    if settings.vipu_hosts:
        named = _read_controllers(settings, names, owners, findings)
    else:
        named = _observed_controllers(hosts, names, owners, findings)
    if len(named) == 1:  # also for a host that did not answer (if allowed): there is no other controller
        named = [dataclasses.replace(named[0], serves=names)]
    served = {name for controller in named for name in controller.serves}
    for name in sorted(served):
        several = [controller.host for controller in named if name in controller.serves]
        if len(several) > 1:
            findings.error(
                "vipu",
                [name],
                "An IPU host has one V-IPU controller: its node has one label.",
                f"`serves` of {' and '.join(several)} in fabric_vipu_hosts name it",
                "Take it out of `serves` of all but one.",
            )
    if settings.vipu_hosts and named and set(names) - served:
        findings.error(
            "vipu",
            [name for name in names if name not in served],
            "No V-IPU controller serves this IPU host.",
            "no entry of fabric_vipu_hosts names it",
            "Add it to `serves` of its controller, or remove it from ipu_node.",
        )
    return named


def plan_vipu(
    settings: Settings,
    hosts: Hosts,
    named: t.Sequence[NamedController],
    chosen: t.Sequence[NetworkLinks],
    ipv6_pods: bool,
    findings: Findings,
    in_use: t.Mapping[str, str] = MappingProxyType({}),
) -> Vipu:
    """The controllers, at addresses that all their hosts' pods can reach. Labels that jobs know (in_use) stay."""
    controllers: t.List[Controller] = []
    for one in named:
        address = _reached(one, hosts, chosen, settings, ipv6_pods, findings)
        label = one.label or _label_in_use(one, address, in_use, len(named) == 1)
        label = label or f"{LABEL}={_label_value(address, one.port, len(named) == 1)}"
        controller: Controller = {
            "host": one.host,
            "port": one.port,
            "address": address,
            "serves": one.serves,
            "label": label,
        }
        _check_address(controller, ipv6_pods, settings.manage_kubernetes, findings)
        controllers.append(controller)
    labels = {name: controller["label"] for controller in controllers for name in controller["serves"]}
    return {
        "controllers": controllers,
        "value": ",".join(f"{join_endpoint(one['address'], one['port'])}:{one['label']}" for one in controllers),
        "node_labels": {name: dict([labels[name].split("=", 1)]) for name in with_role(hosts, "ipu") if name in labels},
    }


def controller_addresses(named: t.Iterable[NamedController]) -> t.Dict[str, str]:
    """V-IPU's address for each host with a controller. An unresolved name does not count."""
    return {
        name: controller.address
        for controller in named
        if parse_address(controller.address)
        for name in controller.serves
    }


def _owners(hosts: Hosts) -> t.Dict[str, str]:
    """Inventory hosts by all of their addresses."""
    owners = {host.address: name for name, host in hosts.items() if host.address}
    for name, host in hosts.items():
        for link in host.rdma["links"] if host.rdma else ():
            for entry in link["addresses"]:
                owners.setdefault(entry["address"], name)
    return owners


def _read_controllers(
    settings: Settings, names: t.List[str], owners: t.Mapping[str, str], findings: Findings
) -> t.List[NamedController]:
    """The site's own list: `host:port`, or {host, port, serves, label} if there are several."""
    controllers: t.List[NamedController] = []
    entries = settings.vipu_hosts
    for entry in entries:
        given = dict(entry) if isinstance(entry, dict) else {"host": str(entry)}
        try:
            host, port = split_endpoint(str(given.get("host", "")), int(given.get("port") or DEFAULT_PORT))
            serves = [name for name in names if name in given.get("serves", names)]
            unknown = [str(name) for name in given.get("serves", ()) if name not in names]
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
                "Write host:port, or with more than one {host: ..., port: ..., serves: [inventory names]}; optional: "
                "label: key=value.",
            )
            continue
        if unknown:
            # The only controller serves all, whatever it says.
            (findings.error if len(entries) > 1 else findings.warning)(
                "vipu",
                [],
                f"`serves` of V-IPU {host} in fabric_vipu_hosts names what is no IPU host.",
                with_meant(unknown, names),
                f"Name IPU hosts of the inventory there: {shorten_list(names, NAMES)}.",
            )
        address = settings.resolved.get(host, host)
        controllers.append(NamedController(host, port, address, serves, label, owners.get(address, "")))
    return controllers


def _observed_controllers(
    hosts: Hosts, names: t.List[str], owners: t.Mapping[str, str], findings: Findings
) -> t.List[NamedController]:
    """What `vipu` reports on each host. A controller on an inventory host is one, whatever address it is asked at."""
    controllers: t.Dict[t.Tuple[str, int], NamedController] = {}
    nowhere = not any(hosts[name].observation.get("vipu") for name in names)
    without = " If this site has no IPUs, set fabric_ipu: false." if nowhere else ""
    for name in names:
        host = hosts[name]
        for error in host.observation["errors"]:
            if error["source"] == "vipu":
                seen = f"{error['seen']} (at {error['where']})"
                findings.error("vipu", [name], error["what"], seen, error["next_step"] + without)
        facts = host.observation.get("vipu")
        if facts:
            address, port, runs_on = facts["address"] or facts["host"], facts["port"], ""
            if is_loopback(address):
                address, runs_on = host.address or address, name
            runs_on = runs_on or owners.get(address, "")
            controller = NamedController(facts["host"], port, address, [], runs_on=runs_on)
            controllers.setdefault((runs_on or address, port), controller).serves.append(name)
    return sorted(controllers.values(), key=lambda one: (one.address, one.port))


def _reached(
    controller: NamedController,
    hosts: Hosts,
    chosen: t.Sequence[NetworkLinks],
    settings: Settings,
    ipv6_pods: bool,
    findings: Findings,
) -> str:
    """An address that all its hosts' pods can reach: over macvlan, a pod never reaches its own node's NIC."""
    name, where = controller.runs_on, join_endpoint(controller.address, controller.port)
    own = {one.network.name: one.links[name] for one in chosen if name in one.links and name in controller.serves}
    own = {network: link for network, link in own.items() if _is_of(controller.address, link)}
    if not own:
        return controller.address
    other = _outside(hosts[name], chosen, ipv6_pods)
    for network, link in own.items():
        seen = f"V-IPU has the address {controller.address} of {link.nic['netdev']} on this host"
        what = f"{network}: a pod can't reach its own node over macvlan, so pods here won't reach V-IPU at {where}."
        better = join_endpoint(other, controller.port)
        if settings.ipu_release.workers_on_host_network and (settings.vipu_hosts or not other):
            findings.warning(
                "on-master",
                [name],
                f"{what} Workers of IPUJobs do, as they use the host's network.",
                seen,
                "Nothing to do if only IPUJobs use IPUs here.",
            )
        elif other and settings.vipu_hosts:  # the site's own choice: what a host says of its NICs does not replace it
            findings.error(
                "on-master",
                [name],
                what,
                f"{seen}, and fabric_vipu_hosts names it",
                f"If V-IPU runs on this host, put {better} in fabric_vipu_hosts. If not, remove its address there.",
            )
        elif other:
            findings.warning(
                "on-master",
                [name],
                f"{what} The plan takes {better}, which all pods reach.",
                seen,
                f"Nothing to do if V-IPU listens there. To end this warning, put {better} in fabric_vipu_hosts.",
            )
        else:
            findings.error(
                "on-master",
                [name],
                what,
                f"{seen}, which has no other for pods",
                "Give the host an address outside of its fabric networks and name it in fabric_vipu_hosts, move V-IPU "
                "to a machine that runs no pods of this network, or let workers use the host's network "
                "(ipu_operator_worker_host_network).",
            )
    return controller.address if settings.vipu_hosts else other or controller.address


def _is_of(address: str, link: HostLink) -> bool:
    """Whether the address is the NIC's, and pods of the network reach it directly."""
    mine = address in [entry["address"] for entry in link.nic["addresses"]]
    return mine and _in_subnets(address, link)


def _in_subnets(address: str, link: HostLink) -> bool:
    parsed = parse_address(address)
    return parsed is not None and any(parsed in subnet for subnet in link.subnets)


def _outside(host: PlacedHost, chosen: t.Sequence[NetworkLinks], ipv6_pods: bool) -> str:
    """The host's address in the cluster, or its default route's, which pods reach through the pod network."""
    for text in (*host.addresses, host.facts["default_address"] if host.facts else ""):
        address = parse_address(text)
        if (
            address
            and (address.version == 4 or ipv6_pods)
            and not any(_in_subnets(text, link) for one in chosen for link in list(one.links.values())[:1])
        ):
            return text
    return ""


def _label_in_use(one: NamedController, address: str, in_use: t.Mapping[str, str], only: bool) -> str:
    """The label this controller already has, even if the only one has moved; empty: none can be kept."""
    moved = [*in_use.values()] if only and len(in_use) == 1 else []
    known = [
        in_use[endpoint]
        for endpoint in (join_endpoint(host, one.port) for host in (address, one.host))
        if endpoint in in_use
    ]
    return next((label for label in [*known, *moved] if FORM.fullmatch(label)), "")


def _label_value(address: str, port: int, only: bool) -> str:
    """The usual `ipunode=true` for one controller; with several, a value that does not depend on the others."""
    if only:
        return "true"
    suffix = "" if port == DEFAULT_PORT else f"-{port}"
    return re.sub(r"[^A-Za-z0-9._-]", "-", f"{address}{suffix}").strip("-._")[:63]


def _check_address(controller: Controller, ipv6_pods: bool, managed: bool, findings: Findings) -> None:
    address = parse_address(controller["address"])
    if is_loopback(controller["address"]):
        findings.error(
            "vipu-address",
            controller["serves"],
            "The IPU operator's proxy runs on the pod network and can't reach a loopback address.",
            f"V-IPU is at {controller['host']} ({controller['address']})",
            "Set an address that pods can reach, as fabric_vipu: {api_host: ...} or as host:port in fabric_vipu_hosts.",
        )
    elif address is not None and address.version == 6 and not ipv6_pods:
        findings.error(
            "vipu-address",
            controller["serves"],
            "Pods have IPv4 only and can't reach an IPv6 V-IPU.",
            f"V-IPU is at {join_endpoint(str(address), controller['port'])}",
            "Add an IPv6 range to fabric_pod_cidr and fabric_service_cidr, or give V-IPU an IPv4 address."
            if managed
            else "Give V-IPU an IPv4 address.",
        )
