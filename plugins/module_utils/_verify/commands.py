# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is run inside a probe pod, and how its output is read. Pure: no API, no clock."""

from __future__ import annotations

import ipaddress
import json
import re
import shlex
import typing as t

# Every command's output stands between two of these, so that one exec answers many questions.
MARK = "@@"
MISSING_TOOL = 127
RDMA_TOOLS = ("rping", "ib_write_bw", "ib_read_lat", "gc-hosttraffictest")
CLASSES = "infiniband/* infiniband_verbs/uverbs* infiniband_mad/umad* misc/rdma_cm"
SYSFS_PORTS = "/sys/class/infiniband/*/ports/*"
LISTEN_SECONDS = 6  # an exec on a busy node takes a while
IP_HEADER = {4: 28, 6: 48}  # IP and ICMP headers: what a ping's payload has to leave free


class Answer(t.NamedTuple):
    """What one command said, standard error included."""

    rc: int
    text: str


def section(name: str, command: str) -> str:
    return f"echo '{MARK} {name}'; ( {command} ) 2>&1; printf '\\n{MARK} rc %s\\n' $?"


def sections(text: str) -> t.Dict[str, Answer]:
    """The answers in the output of commands made by section(); one that was cut off has no answer."""
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


# Facts of one pod


def limits_script() -> str:
    return "\n".join([section("uid", "id -u"), section("limits", "cat /proc/self/limits")])


def network_script(controllers: t.Sequence[t.Tuple[str, int]]) -> str:
    """Addresses, routes and limits as uid 0, and whether each V-IPU controller's port opens."""
    parts = [
        limits_script(),
        section("links", "ip -j -d address show"),
        section("routes", "ip -j route show default; echo; ip -j -6 route show default"),
        policy_script(),
    ]
    parts += [section(f"vipu {host} {port}", tcp_command(host, port)) for host, port in controllers]
    return "\n".join(parts)


def tcp_command(host: str, port: int) -> str:
    """Open a TCP connection with whichever tool the image has."""
    where = f"{shlex.quote(host)} {int(port)}"
    return (
        f"if command -v nc >/dev/null; then nc -v -z -w 3 {where}; "
        f"elif command -v bash >/dev/null; then timeout 3 bash -c ': </dev/tcp/$0/$1' {where}; "
        f"else exit {MISSING_TOOL}; fi"
    )


def policy_script() -> str:
    """Routing rules, and the routes of every table."""
    asked = {"rules": "rule show", "tables": "route show table all"}
    return "\n".join(section(name, f"ip -j {what}; echo; ip -j -6 {what}") for name, what in asked.items())


def rdma_script() -> str:
    """Device files, ports and GIDs that the pod sees, and the tools that its image has."""
    zero = ":".join(["0000"] * 8)
    gids = f"{SYSFS_PORTS}/gids/* {SYSFS_PORTS}/gid_attrs/types/* {SYSFS_PORTS}/gid_attrs/ndevs/*"
    return "\n".join(
        [
            section("files", "ls /dev/infiniband"),
            # The node's, whatever the pod was given: where a resource is missing, they say why.
            section("classes", f"cd /sys/class && ls -d {CLASSES} 2>/dev/null; true"),
            section("ports", f"grep -H . {SYSFS_PORTS}/state {SYSFS_PORTS}/link_layer"),
            # Unset entries read as zero, or as an error that says nothing.
            section("gids", f"grep -H . {gids} 2>/dev/null | grep -v ':{zero}$'"),
            section("tools", f"for tool in {' '.join(RDMA_TOOLS)}; do command -v $tool; done; true"),
        ]
    )


def read_limits(answers: t.Mapping[str, Answer]) -> t.Dict[str, t.Any]:
    """uid and the soft and hard limit of locked memory: `unlimited` or bytes as a string; None where not seen."""
    uid = answers.get("uid", Answer(1, "")).text
    found = re.search(r"^Max locked memory\s+(\S+)\s+(\S+)", answers.get("limits", Answer(1, "")).text, re.MULTILINE)
    return {
        "uid": int(uid) if uid.isdigit() else None,
        "memlock": {"soft": found.group(1), "hard": found.group(2)} if found else None,
    }


def read_user(text: str) -> t.Dict[str, t.Any]:
    """The facts in the output of limits_script()."""
    return read_limits(sections(text))


def read_links(text: str) -> t.Optional[t.Dict[str, t.Any]]:
    """`ip -j -d address show` by interface; None when the text is not its JSON."""
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
                {"address": a["local"], "prefix": a["prefixlen"]}
                for a in link.get("addr_info", [])
                if a.get("scope") == "global" and "local" in a
            ],
        }
        for link in links
        if "ifname" in link
    }


def read_routes(text: str) -> t.Optional[t.List[str]]:
    """The interfaces of the default routes; None when nothing could be read."""
    devices = []
    for line in filter(str.strip, text.splitlines()):
        try:
            devices += [hop["dev"] for route in json.loads(line) for hop in route.get("nexthops", [route])]
        except (ValueError, KeyError, TypeError):
            return None
    return devices


def read_json_lines(answer: t.Optional[Answer]) -> t.Optional[t.List[t.Dict[str, t.Any]]]:
    """All entries of lists in JSON, one list a line; a family that the kernel does not have only gives an error."""
    found: t.Optional[t.List[t.Dict[str, t.Any]]] = None
    for line in (answer.text if answer else "").splitlines():
        try:
            entries = json.loads(line)
        except ValueError:
            continue
        found = (found or []) + [entry for entry in entries if isinstance(entry, dict)]
    return found


def read_policy(answers: t.Mapping[str, Answer]) -> t.Optional[t.Dict[str, t.Any]]:
    """The table that each source address looks up first, and the default routes of each table; None if not read."""
    rules, routes = read_json_lines(answers.get("rules")), read_json_lines(answers.get("tables"))
    if rules is None or routes is None:
        return None
    lookups: t.Dict[str, str] = {}
    for rule in sorted(rules, key=lambda rule: rule.get("priority", 0)):
        if "srclen" not in rule:
            lookups.setdefault(rule.get("src", "all"), str(rule.get("table", "")))
    defaults: t.Dict[str, t.List[t.Dict[str, str]]] = {}
    for route in routes:
        if route.get("dst") == "default" and "table" in route:
            entry = {"gateway": route.get("gateway", ""), "dev": route.get("dev", "")}
            table = defaults.setdefault(str(route["table"]), [])
            table += [entry] if entry not in table else []
    return {"rules": lookups, "defaults": defaults}


def read_network(text: str) -> t.Dict[str, t.Any]:
    """The facts in the output of network_script()."""
    answers = sections(text)
    links, routes = answers.get("links", Answer(1, "")), answers.get("routes", Answer(1, ""))
    vipu = [
        {
            "host": name.split()[1],
            "port": int(name.split()[2]),
            "rc": answer.rc,
            "seen": last_line(answer.text) if answer.text else "",
        }
        for name, answer in answers.items()
        if name.startswith("vipu ")
    ]
    return {
        **read_limits(answers),
        "tool_missing": links.rc == MISSING_TOOL,
        "links": read_links(links.text),
        "default_routes": read_routes(routes.text),
        "policy": read_policy(answers),
        "vipu": vipu,
    }


def read_rdma(text: str) -> t.Dict[str, t.Any]:
    """The facts in the output of rdma_script()."""
    answers = sections(text)
    files, tools = answers.get("files", Answer(1, "")), answers.get("tools", Answer(1, ""))
    return {
        "files": files.text.split() if files.rc == 0 else [],
        "classes": answers.get("classes", Answer(1, "")).text.split(),
        "ports": read_ports(answers.get("ports", Answer(1, "")).text),
        "gids": read_gids(answers.get("gids", Answer(1, "")).text),
        "tools": [path.rsplit("/", 1)[-1] for path in tools.text.split()],
    }


def read_ports(text: str) -> t.Dict[str, t.Dict[str, str]]:
    """State and link layer by device and port, as `mlx5_0/1`."""
    ports: t.Dict[str, t.Dict[str, str]] = {}
    for device, port, kind, value in re.findall(
        r"^/sys/class/infiniband/([^/]+)/ports/(\d+)/(state|link_layer):(.+)$", text, re.MULTILINE
    ):
        # The state reads `4: ACTIVE`.
        ports.setdefault(f"{device}/{port}", {})[kind] = value.split(":")[-1].strip()
    return ports


def read_gids(text: str) -> t.List[t.Dict[str, t.Any]]:
    """The GID table: device, port, index, gid, type (`RoCE v2`) and netdev."""
    table: t.Dict[t.Tuple[str, int, int], t.Dict[str, str]] = {}
    names = {"gids": "gid", "gid_attrs/types": "type", "gid_attrs/ndevs": "netdev"}
    for device, port, kind, index, value in re.findall(
        r"^/sys/class/infiniband/([^/]+)/ports/(\d+)/(gids|gid_attrs/types|gid_attrs/ndevs)/(\d+):(.+)$",
        text,
        re.MULTILINE,
    ):
        table.setdefault((device, int(port), int(index)), {})[names[kind]] = value.strip()
    return [
        {"device": device, "port": port, "index": index, "type": "", "netdev": "", **entry}
        for (device, port, index), entry in sorted(table.items())
        if "gid" in entry
    ]


def gid_of(address: str) -> str:
    """The GID that RoCE makes of an address, as sysfs writes it."""
    ip = ipaddress.ip_address(address)
    # Not `exploded`: from Python 3.13 on it writes a mapped address with dots.
    digits = f"{int(ip) | (0xFFFF << 32 if ip.version == 4 else 0):032x}"
    return ":".join(digits[at : at + 4] for at in range(0, 32, 4))


# From pod to pod


def ping_script(address: str, interface: str, mtu: int) -> str:
    """A packet of full size that must not be fragmented; a small one when that fails, to tell the two faults apart."""
    ping = f"ping -c 2 -i 0.2 -w 3 -I {shlex.quote(interface)}"
    where = shlex.quote(address)
    parts = []
    if mtu:
        size = mtu - IP_HEADER[ipaddress.ip_address(address).version]
        parts.append(section("full", f"{ping} -M do -s {size} {where}"))
    parts.append(section("small", f"{ping} {where}"))
    return "\n".join(parts)


def read_ping(answer: t.Optional[Answer]) -> t.Dict[str, t.Any]:
    """sent, received, average round trip in ms, an MTU that a router or the kernel named, whether ping knows -M."""
    text = answer.text if answer else ""
    counts = re.search(r"(\d+) packets transmitted, (\d+) (?:packets )?received", text)
    trip = re.search(r"min/avg/max\S* = [\d.]+/([\d.]+)/", text)
    mtu = re.search(r"mtu ?= ?(\d+)", text)
    return {
        "sent": int(counts.group(1)) if counts else 0,
        "received": int(counts.group(2)) if counts else 0,
        "rtt_ms": float(trip.group(1)) if trip else None,
        "path_mtu": int(mtu.group(1)) if mtu else None,
        "supported": not re.search(r"(invalid|unrecognized|illegal) option", text)
        and not (answer and answer.rc == MISSING_TOOL),
        "seen": last_line(text),
    }


def last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else "no output"


def read_pings(text: str) -> t.Dict[str, t.Any]:
    answers = sections(text)
    return {name: read_ping(answers.get(name)) for name in ("full", "small") if name in answers}


class Traffic(t.NamedTuple):
    """An RDMA test between two pods: a server that waits, and a client that tries until it is there."""

    check: str
    tool: str
    server: str
    client: str


def traffic_tests(server: str, client: str, port: int = 18515) -> t.List[Traffic]:
    """The tests, over rdma_cm: it picks the device and the GID from the addresses, so no index is hard-coded."""
    version = ipaddress.ip_address(server).version
    perf = f"-R -F -p {port}" + (" --ipv6-addr" if version == 6 else "")
    # A fixed time: the tool's fixed number of writes takes milliseconds on a fast NIC, and minutes on a slow one.
    bandwidth, latency = f"ib_write_bw {perf} -D 4 --report_gbits", f"ib_read_lat {perf}"
    return [
        Traffic("rping", "rping", f"rping -s -a {server} -C 10", f"rping -c -a {server} -I {client} -C 10 -v -V"),
        Traffic("write_bandwidth", "ib_write_bw", bandwidth, f"{bandwidth} {server}"),
        Traffic("read_latency", "ib_read_lat", latency, f"{latency} {server}"),
    ]


def server_script(command: str, seconds: int) -> str:
    return section("server", f"timeout {seconds} {command}")


def client_script(command: str, seconds: int) -> str:
    """The server needs a moment to listen: whatever fails within some seconds is tried again."""
    clock = "$(date +%s)"
    again = f"until timeout {seconds} {command}; do [ {clock} -lt $end ] || exit 1; sleep 0.5; done"
    return section("client", f"end=$(({clock} + {LISTEN_SECONDS})); {again}")


def read_rping(text: str) -> t.Dict[str, t.Any]:
    """How many payloads came back whole."""
    return {"value": float(len(re.findall(r"^ping data: rdma-ping-\d+", text, re.MULTILINE))), "unit": "pings"}


def read_perftest(text: str, column: str) -> t.Dict[str, t.Any]:
    """The figure of a perftest table's last row, by the name of its column; value None without a table."""
    header: t.List[str] = []
    value: t.Optional[float] = None
    for line in text.splitlines():
        if line.lstrip().startswith("#bytes"):
            header = re.findall(r"#\w+|[\w.%]+(?: [A-Za-z]+)?\[[^\]]+\]", line)
        elif header and re.match(r"^\s*\d+\s+\d+\s", line):
            row = dict(zip((name.split("[")[0] for name in header), line.split()))
            value = float(row[column]) if column in row else None
    unit = next((name.split("[")[1].rstrip("]") for name in header if name.startswith(f"{column}[")), "")
    return {"value": value, "unit": {"Gb/sec": "Gb/s", "usec": "us"}.get(unit, unit)}


def read_traffic(check: str, text: str) -> t.Dict[str, t.Any]:
    if check == "rping":
        return read_rping(text)
    return read_perftest(text, "BW average" if check == "write_bandwidth" else "t_typical")


def host_traffic_script(device: int, api_host: str, api_port: int, partition: str) -> str:
    """gc-hosttraffictest against a partition that exists."""
    environment = {
        "IPUOF_VIPU_API_HOST": api_host,
        "IPUOF_VIPU_API_PORT": str(api_port),
        "IPUOF_VIPU_API_PARTITION_ID": partition,
    }
    setting = " ".join(f"{name}={shlex.quote(value)}" for name, value in environment.items())
    return section("host_traffic", f"{setting} gc-hosttraffictest -d {int(device)} -j")


def read_host_traffic(text: str) -> t.Dict[str, t.Any]:
    """The slowest direction between host and buffer, in Gb/s; value None when there is no JSON to read."""
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


# Who talks to whom


def choose_pairs(nodes: t.Sequence[str], most: int) -> t.List[t.Tuple[str, str]]:
    """Every pair, or, when those are too many, a ring with its diameters: each node is seen, near and far."""
    count = len(nodes)
    if count * (count - 1) // 2 <= most:
        return [(a, b) for i, a in enumerate(nodes) for b in nodes[i + 1 :]]
    ring = [(nodes[i], nodes[(i + 1) % count]) for i in range(count)]
    far = [(nodes[i], nodes[i + count // 2]) for i in range(count // 2)]
    return list(dict.fromkeys(ring + far))[: max(most, count)]


def choose_directed(nodes: t.Sequence[str], most: int) -> t.List[t.Tuple[str, str]]:
    """Client and server of each test: all, or a ring with its diameters. Every node is both once at least."""
    count = len(nodes)
    if count * (count - 1) <= most:
        return [(a, b) for a in nodes for b in nodes if a != b]
    ring = [(nodes[i], nodes[(i + 1) % count]) for i in range(count)]
    far = [(nodes[i], nodes[(i + count // 2) % count]) for i in range(count)]
    return list(dict.fromkeys(ring + far))[: max(most, count)]


Job = t.TypeVar("Job")


def rounds(jobs: t.Iterable[Job], uses: t.Callable[[Job], t.Iterable[t.Hashable]]) -> t.List[t.List[Job]]:
    """Jobs in rounds in which nothing is used twice, so that no measurement disturbs another."""
    result: t.List[t.List[Job]] = []
    busy: t.List[t.Set[t.Hashable]] = []
    for job in jobs:
        used = set(uses(job))
        index = next((i for i, taken in enumerate(busy) if taken.isdisjoint(used)), len(busy))
        if index == len(busy):
            busy.append(set())
            result.append([])
        busy[index] |= used
        result[index].append(job)
    return result
