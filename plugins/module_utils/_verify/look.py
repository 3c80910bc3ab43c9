# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What any pod shows of its RDMA and networks, read with only `sh` from files below /proc, /sys and /dev."""

from __future__ import annotations

import ipaddress
import re
import socket
import struct
import typing as t
from dataclasses import dataclass, field

from .._common.addresses import Network
from .._model.probe import Gid, Port
from .parsers import NO_ANSWER, Counter, read_counters, read_gids, read_limits, read_ports, sections

SECONDS = 60  # for one look: a job may keep all of a node's processors busy

# Passed in the URL of an exec; prints what parsers.py reads. ROOT, for tests, is the root of all paths.
SCRIPT = r"""
root=${ROOT-}
sys=$root/sys/class
show() {
  for file; do
    { while IFS= read -r line || [ "$line" ]; do printf '%s:%s\n' "${file#"$cut"}" "$line"; done <"$file"; } 2>/dev/null
  done
}
whole() {
  { while IFS= read -r line || [ "$line" ]; do printf '%s\n' "$line"; done <"$1"; } 2>/dev/null
}
part() {
  printf '\n@@ %s\n' "$1"
  shift
  "$@"
  printf '\n@@ rc %s\n' $?
}
names() {
  for file; do [ ! -e "$file" ] || printf '%s\n' "${file##*/}"; done
}
gids() {
  for file in "$sys"/infiniband/*/ports/*/gids/*; do
    { read -r gid <"$file"; } 2>/dev/null || continue
    [ "$gid" != 0000:0000:0000:0000:0000:0000:0000:0000 ] || continue
    port=${file%/gids/*}
    show "$file" "$port/gid_attrs/types/${file##*/}" "$port/gid_attrs/ndevs/${file##*/}"
  done
}
ports() {
  show "$sys"/infiniband/*/ports/*/state "$sys"/infiniband/*/ports/*/link_layer
}
links() {
  show "$sys"/net/*/mtu
}
verbs() {
  show "$sys"/infiniband_verbs/*/ibdev
}
counters() {
  cut=$sys/
  show "$sys"/infiniband/*/ports/*/*counters/* "$sys"/net/*/statistics/[rt]x_bytes
  command rdma -j statistic 2>/dev/null
  cut=$root
}
environment() {
  command -v tr >/dev/null || return 127
  for file in "$root"/proc/[0-9]*/environ; do
    { tr '\0' '\n' <"$file"; } 2>/dev/null
  done | while IFS= read -r line; do
    case $line in NCCL_* | UCX_* | OMPI_MCA_pml=* | OMPI_MCA_btl=*) printf '%s\n' "$line" ;; esac
  done
}
cut=$root
for name; do
  case $name in
  limits) part limits whole "$root/proc/self/limits" ;;
  status) part status whole "$root/proc/self/status" ;;
  files) part files names "$root"/dev/infiniband/* ;;
  routes) part routes whole "$root/proc/net/route" ;;
  routes6) part routes6 whole "$root/proc/net/ipv6_route" ;;
  tries) part tries whole "$root/proc/net/fib_trie" ;;
  addresses6) part addresses6 whole "$root/proc/net/if_inet6" ;;
  *) part "$name" "$name" ;;
  esac
done
""".strip()
# Parts that show what a pod has; for a record, those that change between looks, and those that are read only once,
# since a port has hundreds of GIDs.
FACTS = ("status", "limits", "files", "verbs", "ports", "gids", "links", "routes", "routes6", "tries", "addresses6")
SAMPLE = ("files", "verbs", "counters", "environment")
PLACES = ("gids", "tries", "addresses6", "routes")
IPC_LOCK = 14  # bit number of the capability
GATEWAY_FLAG = 2  # of a route
NO_ROUTE = 0x0200  # flag of a route that rejects packets
EVERYWHERE = ("0.0.0.0/0", "::/0")
TITLES = {
    "limits": "limits (/proc/self/limits)",
    "status": "capabilities (/proc/self/status)",
    "routes": "routes of IPv4 (/proc/net/route)",
    "links": "interfaces (/sys/class/net)",
    "tries": "addresses (/proc/net/fib_trie)",
    "environment": "variables of the ranks: the image has no `tr`",
}


class Route(t.NamedTuple):
    """A route of the main table."""

    dst: str  # CIDR
    dev: str
    gateway: str  # empty if there is none
    metric: int = 0

    @property
    def network(self) -> Network:
        return ipaddress.ip_network(self.dst)

    @property
    def text(self) -> str:
        dst = "default" if self.dst in EVERYWHERE else self.dst
        return f"{dst}{f' via {self.gateway}' if self.gateway else ''} dev {self.dev}"


@dataclass(frozen=True)
class Inside:
    """What was seen in one container. Collections are empty if nothing was read; `unread` lists those parts."""

    error: str = ""  # why nothing, or not everything, was read
    unread: t.Sequence[str] = ()
    uid: t.Optional[int] = None
    memlock: str = ""  # soft limit, `unlimited` or bytes; empty if unread
    ipc_lock: t.Optional[bool] = None  # whether the process may exceed the limit; None if unread
    files: t.Sequence[str] = ()  # names below /dev/infiniband
    verbs: t.Mapping[str, str] = field(default_factory=dict)  # device by uverbs file
    ports: t.Mapping[str, Port] = field(default_factory=dict)  # by device and port: mlx5_0/1
    gids: t.Sequence[Gid] = ()
    mtus: t.Mapping[str, int] = field(default_factory=dict)  # by interface
    addresses: t.FrozenSet[str] = frozenset()  # of this network namespace, without loopback and link-local ones
    routes: t.Sequence[Route] = ()
    counters: t.Mapping[Counter, int] = field(default_factory=dict)
    environment: t.Mapping[str, str] = field(default_factory=dict)  # variables of NCCL, UCX and MPI, from any process

    @property
    def held(self) -> t.Set[str]:
        """RDMA devices that the container may open; all visible ones if the kernel does not tell."""
        visible = {port.partition("/")[0] for port in self.ports} | {gid["device"] for gid in self.gids}
        mine = {device for file, device in self.verbs.items() if file in self.files}
        return mine or (visible if any(name.startswith("uverbs") for name in self.files) else set())

    def interface_of(self, address: str) -> str:
        """The interface of an address, by the most specific route of its own subnet; empty if there is none."""
        ip = ipaddress.ip_address(address)
        mine = [
            route
            for route in self.routes
            if not route.gateway and route.network.version == ip.version and ip in route.network
        ]
        return max(mine, key=lambda route: route.network.prefixlen).dev if mine else ""


def argv(parts: t.Iterable[str]) -> t.List[str]:
    """The command of an exec that reads these parts."""
    return ["sh", "-c", SCRIPT, "look", *parts]


def read(text: str, error: str = "") -> Inside:
    """Parse the script's output, whichever parts were requested."""
    answers = sections(text)
    if not answers:
        why = error or next((line.strip() for line in text.splitlines() if line.strip()), "no output")
        return Inside(error=why)
    texts = {name: answer.text for name, answer in answers.items()}
    limits = read_limits(answers)["memlock"]
    status = texts.get("status", "")
    uid = re.search(r"^Uid:\s+\d+\s+(\d+)", status, re.MULTILINE)
    effective = re.search(r"^CapEff:\s+([\da-f]+)", status, re.MULTILINE)
    unread = [name for name in TITLES if name in answers and name != "environment" and not texts[name]]
    unread += ["environment"] if answers.get("environment", NO_ANSWER).rc == 127 else []
    verbs = re.findall(r"^/sys/class/infiniband_verbs/([^/]+)/ibdev:(\S+)$", texts.get("verbs", ""), re.MULTILINE)
    mtus = re.findall(r"^/sys/class/net/([^/]+)/mtu:(\d+)$", texts.get("links", ""), re.MULTILINE)
    variables = (line.partition("=") for line in texts.get("environment", "").splitlines())
    return Inside(
        error=error,
        unread=[TITLES[name] for name in unread],
        uid=int(uid[1]) if uid else None,
        memlock=limits["soft"] if limits else "",
        ipc_lock=bool(int(effective[1], 16) >> IPC_LOCK & 1) if effective else None,
        files=texts.get("files", "").split(),
        verbs=dict(verbs),
        ports=read_ports(texts.get("ports", "")),
        gids=read_gids(texts.get("gids", "")),
        mtus={name: int(mtu) for name, mtu in mtus},
        addresses=frozenset(own_addresses(texts.get("tries", ""), texts.get("addresses6", ""))),
        routes=[*read_routes(texts.get("routes", "")), *read_routes6(texts.get("routes6", ""))],
        counters=read_counters(texts.get("counters", "")),
        environment={name: value for name, _equal, value in variables if name},
    )


def own_addresses(tries: str, addresses6: str) -> t.Iterator[str]:
    """Addresses in /proc/net/fib_trie and if_inet6 at which others can reach a pod."""
    address = ""
    for line in tries.splitlines():
        words = line.split()
        if words[:1] == ["|--"]:
            address = words[1]
        elif words[:3] == ["/32", "host", "LOCAL"] and not address.startswith("127."):
            yield address
    for line in addresses6.splitlines():
        digits, _index, _prefix, scope, *_rest = line.split()
        if scope == "00":  # global
            yield str(ipaddress.IPv6Address(int(digits, 16)))


def read_routes(text: str) -> t.Iterator[Route]:
    """/proc/net/route: addresses are hexadecimal, in the processor's byte order."""

    def dotted(digits: str) -> str:
        return socket.inet_ntoa(struct.pack("=I", int(digits, 16)))

    for line in text.splitlines()[1:]:
        dev, dst, gateway, flags, _ref, _use, metric, mask, *_rest = line.split()
        if not int(flags, 16) & NO_ROUTE:
            via = dotted(gateway) if int(flags, 16) & GATEWAY_FLAG else ""
            yield Route(str(ipaddress.ip_network(f"{dotted(dst)}/{dotted(mask)}")), dev, via, int(metric))


def read_routes6(text: str) -> t.Iterator[Route]:
    """/proc/net/ipv6_route, without routes to single addresses, link-local ones and multicast."""
    for line in text.splitlines():
        digits, length, _source, _from, gateway, metric, _ref, _use, flags, dev = line.split()
        network = ipaddress.IPv6Network((int(digits, 16), int(length, 16)))
        alone = network.prefixlen == 128 or network.is_link_local or network.is_multicast
        if dev != "lo" and not alone and not int(flags, 16) & NO_ROUTE:
            via = str(ipaddress.IPv6Address(int(gateway, 16))) if int(flags, 16) & GATEWAY_FLAG else ""
            yield Route(str(network), dev, via, int(metric, 16))
