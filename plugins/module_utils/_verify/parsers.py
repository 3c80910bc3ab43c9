# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The output of tools in a probe pod (pod.sh) as data. Pure functions: no API, no clock."""

from __future__ import annotations

import ipaddress
import json
import re
import typing as t

from .._host.links import read_address
from .._model.probe import (
    DefaultRoute,
    Directions,
    DnsAnswer,
    Figure,
    GatewayAnswer,
    Gid,
    GpuFacts,
    Limits,
    Moved,
    NetworkFacts,
    NewerLink,
    Ping,
    Pings,
    PodLink,
    Port,
    RdmaFacts,
    Route,
    RoutingPolicy,
    Sent,
    UserFacts,
    VipuAnswer,
)
from .telling import telling_line

# pod.sh prints the output of every command between two of these, so that one exec returns many answers.
MARK = "@@"
MISSING_TOOL = 127


class Answer(t.NamedTuple):
    """The output of one command, including standard error."""

    rc: int
    text: str


def sections(text: str) -> t.Dict[str, Answer]:
    """The answers in the output of pod.sh by name; a truncated one is missing."""
    found: t.Dict[str, Answer] = {}
    name, lines = "", []  # type: str, t.List[str]
    for line in text.splitlines():
        if line.startswith(f"{MARK} rc "):
            found[name] = Answer(int(line.split()[2]), "\n".join(lines).strip())
        elif line.startswith(f"{MARK} "):
            name, lines = line[len(MARK) + 1 :], []
        else:
            lines.append(line)
    return found


NO_ANSWER = Answer(1, "")

# Facts of one pod


def read_limits(answers: t.Mapping[str, Answer]) -> Limits:
    """uid, and the soft and hard limits of locked memory: `unlimited` or bytes as a string; None if not seen."""
    uid = answers.get("uid", NO_ANSWER).text
    found = re.search(r"^Max locked memory\s+(\S+)\s+(\S+)", answers.get("limits", NO_ANSWER).text, re.MULTILINE)
    return {
        "uid": int(uid) if uid.isdigit() else None,
        "memlock": {"soft": found.group(1), "hard": found.group(2)} if found else None,
    }


def read_user(text: str, error: str = "") -> UserFacts:
    """The facts in the output of `pod.sh limits`."""
    return {**read_limits(sections(text)), "error": error}


def read_links(text: str) -> t.Optional[t.Dict[str, PodLink]]:
    """`ip -j -d address show` by interface; None if the text is not JSON."""
    try:
        links = json.loads(text)
    except ValueError:
        return None
    return {
        link["ifname"]: {
            "mtu": link.get("mtu"),
            "kind": link.get("linkinfo", {}).get("info_kind", ""),
            "mac": link.get("address", ""),
            "addresses": [
                read_address(a) for a in link.get("addr_info", []) if a.get("scope") == "global" and "local" in a
            ],
            **read_link_local(link.get("addr_info", [])),
        }
        for link in links
        if "ifname" in link
    }


def read_link_local(entries: t.Sequence[t.Mapping[str, str]]) -> NewerLink:
    for entry in entries:
        if (entry.get("family"), entry.get("scope")) == ("inet6", "link") and "local" in entry:
            return {"link_local": entry["local"]}
    return {}


def read_routes(text: str) -> t.Optional[t.List[str]]:
    """The interfaces of the default routes; None if nothing could be read."""
    devices = []
    for line in filter(str.strip, text.splitlines()):
        try:
            devices += [hop["dev"] for route in json.loads(line) for hop in route.get("nexthops", [route])]
        except (ValueError, KeyError, TypeError):
            return None
    return devices


def read_advertised(answer: t.Optional[Answer]) -> t.List[str]:
    """The interfaces of default routes that came from router advertisements."""
    routes = read_json_lines(answer) or []
    return sorted({str(route["dev"]) for route in routes if route.get("protocol") == "ra" and "dev" in route})


def read_json_lines(answer: t.Optional[Answer]) -> t.Optional[t.List[t.Dict[str, object]]]:
    """The entries of JSON lists, one list per line; for a family that the kernel lacks there is only an error."""
    found: t.Optional[t.List[t.Dict[str, object]]] = None
    for line in (answer.text if answer else "").splitlines():
        try:
            entries = json.loads(line)
        except ValueError:
            continue
        found = (found or []) + [entry for entry in entries if isinstance(entry, dict)]
    return found


def read_main_routes(answer: t.Optional[Answer]) -> t.Optional[t.List[Route]]:
    """The routes of the main table except default routes, without duplicates; None if nothing could be read."""
    routes = read_json_lines(answer)
    if routes is None:
        return None
    found: t.List[Route] = []
    for route in routes:
        # `ip` does not name the main table.
        if "table" in route or route.get("dst") == "default" or "dev" not in route:
            continue
        entry: Route = {"dst": str(route.get("dst", "")), "dev": str(route["dev"])}
        found += [entry] if entry not in found else []
    return found


def read_policy(answers: t.Mapping[str, Answer]) -> t.Optional[RoutingPolicy]:
    """The table in which each source address is looked up first, and each table's default routes; None if not read."""
    rules, routes = read_json_lines(answers.get("rules")), read_json_lines(answers.get("tables"))
    if rules is None or routes is None:
        return None
    lookups: t.Dict[str, str] = {}
    for rule in sorted(rules, key=lambda rule: int(str(rule.get("priority", 0)))):
        if "srclen" not in rule:
            lookups.setdefault(str(rule.get("src", "all")), str(rule.get("table", "")))
    defaults: t.Dict[str, t.List[DefaultRoute]] = {}
    for route in routes:
        if route.get("dst") == "default" and "table" in route:
            entry: DefaultRoute = {"gateway": str(route.get("gateway", "")), "dev": str(route.get("dev", ""))}
            table = defaults.setdefault(str(route["table"]), [])
            table += [entry] if entry not in table else []
    return {"rules": lookups, "defaults": defaults}


def read_gpu(answers: t.Mapping[str, Answer]) -> GpuFacts:
    """What the node's kernel shows about GPUs."""
    kernel, driver, modules = (answers.get(name, NO_ANSWER) for name in ("kernel", "driver", "modules"))
    return {
        "kernel": kernel.text if kernel.rc == 0 else "",
        "driver": " ".join(driver.text.splitlines()[0].split()) if driver.rc == 0 and driver.text else "",
        "modules": [path.rsplit("/", 1)[-1] for path in modules.text.split()],
    }


def read_dns(answers: t.Mapping[str, Answer]) -> DnsAnswer:
    """The output of getent and nslookup for the name. getent prints nothing if it finds nothing."""
    answer = answers.get("dns", NO_ANSWER)
    name, _newline, text = answer.text.partition("\n")
    found = re.findall(r"^(?:Address(?: \d+)?: )?([\da-f.:]+)(?:\s|$)", text, re.MULTILINE) if answer.rc == 0 else []
    return {
        "servers": answers.get("servers", NO_ANSWER).text.split(),
        "name": name,
        "address": found[-1] if found else "",
        "rc": answer.rc,
        "seen": telling_line(text) if text.strip() else "no answer",
    }


def read_network(text: str, error: str = "") -> NetworkFacts:
    """The facts in the output of `pod.sh network`."""
    answers = sections(text)
    links, routes = answers.get("links", NO_ANSWER), answers.get("routes", NO_ANSWER)
    vipu: t.List[VipuAnswer] = [
        {
            "host": name.split()[1],
            "port": int(name.split()[2]),
            "rc": answer.rc,
            "seen": telling_line(answer.text) if answer.text else "",
        }
        for name, answer in answers.items()
        if name.startswith("vipu ")
    ]
    return {
        **read_limits(answers),
        "tool_missing": links.rc == MISSING_TOOL,
        "links": read_links(links.text),
        "default_routes": read_routes(routes.text),
        "advertised_routes": read_advertised(routes),
        "main_routes": read_main_routes(answers.get("tables")),
        "policy": read_policy(answers),
        "gpu": read_gpu(answers),
        "dns": read_dns(answers),
        "vipu": vipu,
        "error": error,
    }


def read_rdma(text: str, error: str = "") -> RdmaFacts:
    """The facts in the output of `pod.sh rdma`."""
    answers = sections(text)
    files = answers.get("files", NO_ANSWER)
    return {
        "files": files.text.split() if files.rc == 0 else [],
        "classes": answers.get("classes", NO_ANSWER).text.split(),
        "ports": read_ports(answers.get("ports", NO_ANSWER).text),
        "gids": read_gids(answers.get("gids", NO_ANSWER).text),
        "tools": [path.rsplit("/", 1)[-1] for path in answers.get("tools", NO_ANSWER).text.split()],
        "error": error,
    }


def read_ports(text: str) -> t.Dict[str, Port]:
    """State and link layer by device and port, as `mlx5_0/1`."""
    ports: t.Dict[str, Port] = {}
    for device, number, kind, value in re.findall(
        r"^/sys/class/infiniband/([^/]+)/ports/(\d+)/(state|link_layer):(.+)$", text, re.MULTILINE
    ):
        port = ports.setdefault(f"{device}/{number}", {})
        # The state reads `4: ACTIVE`.
        word = value.split(":")[-1].strip()
        if kind == "state":
            port["state"] = word
        else:
            port["link_layer"] = word
    return ports


def read_gids(text: str) -> t.List[Gid]:
    """The GID table, in its order."""
    table: t.Dict[t.Tuple[str, int, int], t.Dict[str, str]] = {}
    for device, port, kind, index, value in re.findall(
        r"^/sys/class/infiniband/([^/]+)/ports/(\d+)/(gids|gid_attrs/types|gid_attrs/ndevs)/(\d+):(.+)$",
        text,
        re.MULTILINE,
    ):
        table.setdefault((device, int(port), int(index)), {})[kind] = value.strip()
    return [
        {
            "device": device,
            "port": port,
            "index": index,
            "gid": entry["gids"],
            "type": entry.get("gid_attrs/types", ""),
            "netdev": entry.get("gid_attrs/ndevs", ""),
        }
        for (device, port, index), entry in sorted(table.items())
        if "gids" in entry
    ]


def gid_of(address: str) -> str:
    """The GID that RoCE derives from an address, in sysfs notation."""
    ip = ipaddress.ip_address(address)
    # Not `exploded`: from Python 3.13 on, it prints a mapped address with dots.
    digits = f"{int(ip) | (0xFFFF << 32 if ip.version == 4 else 0):032x}"
    return ":".join(digits[at : at + 4] for at in range(0, 32, 4))


def port_gid(mac: str) -> str:
    """The GID in the hardware address of an InfiniBand interface, in sysfs notation; empty for others."""
    digits = mac.replace(":", "")
    return ":".join(digits[at : at + 4] for at in range(8, 40, 4)) if len(digits) == 40 else ""


# From pod to pod

PERFTEST_UNITS = {"Gb/sec": "Gb/s", "usec": "us"}
RPING_BYTES = 64  # rping's default message size

IP_HEADER = {4: 28, 6: 48}  # bytes of the IP and ICMP headers


def ping_payload(address: str, mtu: int) -> int:
    """The payload of a ping packet as large as the MTU; 0 if that is unknown."""
    return mtu - IP_HEADER[ipaddress.ip_address(address).version] if mtu else 0


def read_ping(answer: Answer) -> Ping:
    """The output of ping from iputils or BusyBox."""
    text = answer.text
    counts = re.search(r"(\d+) packets transmitted, (\d+) (?:packets )?received", text)
    trip = re.search(r"min/avg/max\S* = [\d.]+/([\d.]+)/", text)
    mtu = re.search(r"mtu ?= ?(\d+)", text)
    return {
        "sent": int(counts.group(1)) if counts else 0,
        "received": int(counts.group(2)) if counts else 0,
        "rtt_ms": float(trip.group(1)) if trip else None,
        "path_mtu": int(mtu.group(1)) if mtu else None,
        "supported": not re.search(r"(invalid|unrecognized|illegal) option", text) and answer.rc != MISSING_TOOL,
        "seen": telling_line(text),
    }


def read_pings(text: str) -> Pings:
    """The facts in the output of `pod.sh ping`."""
    answers, found = sections(text), Pings()
    if "small" in answers:
        found["small"] = read_ping(answers["small"])
    if "full" in answers:
        found["full"] = read_ping(answers["full"])
    return found


def read_crossing(text: str, link_local: str) -> t.Tuple[Ping, Ping, str]:
    """The facts in the output of `pod.sh cross`: pings of the link-local and of the other address, and its MAC."""
    answers = sections(text)
    nobody: Ping = {"sent": 0, "received": 0, "rtt_ms": None, "path_mtu": None, "supported": True, "seen": "not asked"}
    near = read_ping(answers.get("near", NO_ANSWER)) if link_local else nobody
    return near, read_ping(answers.get("far", NO_ANSWER)), read_neighbour(answers.get("neighbour", NO_ANSWER).text)


def read_gateways(text: str, networks: t.Mapping[t.Tuple[str, str], str]) -> t.List[GatewayAnswer]:
    """The facts in the output of `pod.sh gateways`.

    :arg networks: by address and interface.
    """
    answers = sections(text)
    return [
        {
            "network": network,
            "address": address,
            "ping": read_ping(answers[f"gateway {address} {interface}"]),
            "mac": read_neighbour(answers.get(f"neighbour {address} {interface}", NO_ANSWER).text),
        }
        for (address, interface), network in networks.items()
        if f"gateway {address} {interface}" in answers
    ]


def read_neighbour(text: str) -> str:
    """The MAC in `ip neigh show`; empty if nobody answered for the address."""
    found = re.search(r"\blladdr ((?:[0-9a-f]{2}:){5}[0-9a-f]{2})\b", text)
    return found.group(1) if found and "FAILED" not in text else ""


def read_rping(text: str) -> Figure:
    """The number of payloads that came back intact."""
    return {"value": float(len(re.findall(r"^ping data: rdma-ping-\d+", text, re.MULTILINE))), "unit": "pings"}


class Table(t.NamedTuple):
    """The last row of a perftest table, with its columns and their units."""

    row: t.Dict[str, str]
    units: t.Dict[str, str]


def read_table(text: str) -> Table:
    header: t.List[str] = []
    row: t.Dict[str, str] = {}
    for line in text.splitlines():
        if line.lstrip().startswith("#bytes"):
            header = re.findall(r"#\w+|[\w.%]+(?: [A-Za-z]+)?\[[^\]]+\]", line)
        elif header and re.match(r"^\s*\d+\s+\d+\s", line):
            row = dict(zip((name.split("[")[0] for name in header), line.split()))
    return Table(row, dict(name.rstrip("]").split("[") for name in header if "[" in name))


def read_perftest(text: str, column: str) -> Figure:
    """The figure in the named column of a perftest table's last row; value None without a table."""
    row, units = read_table(text)
    unit = units.get(column, "")
    return {"value": float(row[column]) if column in row else None, "unit": PERFTEST_UNITS.get(unit, unit)}


def read_traffic(check: str, text: str) -> Figure:
    if check == "rping":
        return read_rping(text)
    return read_perftest(text, "t_typical" if check == "read_latency" else "BW average")


def read_sent(check: str, text: str) -> Sent:
    """The minimum that a test sent: perftest's table omits what it sent before and after the measurement."""
    if check == "rping":
        return {"device": "", "transport": "", "messages": int(read_rping(text)["value"] or 0), "size": RPING_BYTES}
    row = read_table(text).row
    device, transport = (re.search(rf"\b{name}\s*: (\S+)", text) for name in ("Device", "Transport type"))
    return {
        "device": device.group(1) if device else "",
        "transport": transport.group(1) if transport else "",
        "messages": int(row.get("#iterations", 0)),
        "size": int(row.get("#bytes", 0)),
    }


# The drivers' traffic counters: what each one counts, and the size of its unit.
RDMA_COUNTERS = {
    "port_xmit_data": ("bytes", 4),  # in words, with any driver
    "port_rcv_data": ("bytes", 4),
    "tx_bytes": ("bytes", 1),  # bnxt_re, efa
    "rx_bytes": ("bytes", 1),
    "hw_tx_bytes_cnt": ("bytes", 1),  # erdma
    "hw_rx_bytes_cnt": ("bytes", 1),
    "sent_pkts": ("packets", 1),  # rdma_rxe
    "rcvd_pkts": ("packets", 1),
    "rx_write_requests": ("requests", 1),  # mlx5, at the answering end
    "rx_read_requests": ("requests", 1),
}


def amount_text(amount: float, kind: str) -> str:
    """An amount of bytes, packets or requests: `41 GB`, `12,345 packets`."""
    if kind != "bytes":
        return f"{amount:,.0f} {kind}"
    for unit in ("B", "kB", "MB", "GB"):
        if amount < 1000 or unit == "GB":
            return f"{amount:,.3g} {unit}" if amount < 1000 else f"{amount:,.0f} {unit}"
        amount /= 1000
    return ""


Counter = t.Tuple[str, str, str]  # device, port and name; an interface has no port


def read_counters(text: str) -> t.Dict[Counter, int]:
    """Traffic counters, from sysfs and from `rdma -j statistic`, without duplicates."""
    found: t.Dict[Counter, int] = {}
    for device, port, name, value in re.findall(
        r"^infiniband/([^/]+)/ports/(\d+)/(?:hw_)?counters/(\w+):(\d+)$", text, re.MULTILINE
    ):
        if name in RDMA_COUNTERS:
            found[device, port, name] = int(value)
    for device, name, value in re.findall(r"^net/([^/]+)/statistics/(\w+):(\d+)$", text, re.MULTILINE):
        found[device, "", name] = int(value)
    start = text.find("[{")
    try:
        links = json.loads(text[start:]) if start >= 0 else []
    except ValueError:
        links = []
    for link in links:
        for name in RDMA_COUNTERS:
            if name in link and "ifname" in link:
                found[str(link["ifname"]), str(link.get("port", "")), name] = int(link[name])
    return found


def read_moved(answers: t.Mapping[str, Answer]) -> Moved:
    """The growth of the counters between two sections; a counter in only one of them does not count."""
    before, after = (read_counters(answers.get(name, NO_ANSWER).text) for name in ("before", "after"))
    moved: Moved = {"rdma": {}, "interfaces": {}}
    for (device, port, name), value in after.items():
        grown = value - before.get((device, port, name), value)
        if port:
            kind, size = RDMA_COUNTERS[name]
            if grown < 0 and kind == "requests":
                grown += 2**32  # mlx5's counter wraps around there
            kinds = moved["rdma"].setdefault(device, {})
            kinds[kind] = kinds.get(kind, 0) + max(0, grown) * size
        else:
            moved["interfaces"][device] = moved["interfaces"].get(device, 0) + max(0, grown)
    return moved


def read_host_traffic(text: str) -> Directions:
    """The slower direction between host and buffer, in Gb/s; value None if there is no valid JSON."""
    try:
        report = json.loads(text[text.index("{") : text.rindex("}") + 1])
        speeds = {
            part.get("description", name): float(part["host_transfer_speed_gbps"])
            for repeat in report.values()
            for name, part in repeat.items()
            if isinstance(part, dict) and "host_transfer_speed_gbps" in part
        }
    except (ValueError, AttributeError):
        speeds = {}
    return {"value": min(speeds.values()) if speeds else None, "unit": "Gb/s", "directions": speeds}
