# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Look at a host's RDMA links.

What the kernel says in sysfs is the truth; `ip` adds addresses and routes, `rdma` the mode of network namespaces,
systemd the limits.
"""

from __future__ import annotations

import ipaddress
import json
import os
import re
import typing as t

from ansible_collections.ipu.fabric.plugins.module_utils._common.command import Done, run_program
from ansible_collections.ipu.fabric.plugins.module_utils._common.result import FabricError

Link = t.Dict[str, t.Any]
Runner = t.Callable[[t.Sequence[str]], Done]

RUNTIMES = ("containerd", "docker", "k3s", "k3s-agent", "rke2-server", "rke2-agent", "crio")
# Modules that RDMA, or a macvlan on top of it, may need.
MODULES = (
    "8021q",
    "bnxt_re",
    "bonding",
    "erdma",
    "ib_core",
    "ib_ipoib",
    "ib_umad",
    "ib_uverbs",
    "irdma",
    "macvlan",
    "mlx4_core",
    "mlx4_ib",
    "mlx5_core",
    "mlx5_ib",
    "nvidia_peermem",
    "qedr",
    "rdma_cm",
    "rdma_rxe",
    "rdma_ucm",
    "vmw_pvrdma",
)
PCI = re.compile(r"^[0-9a-f]{4,}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]$")
REPRESENTOR = re.compile(r"pf\d+(vf|sf)\d+")
NVIDIA = "0x10de"
GPU_CLASSES = ("0x0300", "0x0302")  # with a display, and without
GIDS = 32  # entries of a GID table to look at
INFINITY = str(2**64 - 1)  # as systemd before 229 writes it


# ---- sysfs ----------------------------------------------------------------------------------------------------------


def _read(*path: str) -> str:
    """A file's text. Many attributes cannot be read while a link is down; they count as empty."""
    try:
        with open(os.path.join(*path), encoding="utf-8", errors="replace") as stream:
            return stream.read().strip()
    except OSError:
        return ""


def _names(*path: str) -> t.List[str]:
    try:
        return sorted(os.listdir(os.path.join(*path)))
    except OSError:
        return []


def _number(text: str, default: int = 0) -> int:
    try:
        return int(text, 0)
    except ValueError:
        return default


def _pci_of(directory: str) -> str:
    """The PCI address of the device that `directory` belongs to; virtio and the like hang below theirs."""
    parts = os.path.realpath(directory).split(os.sep) if os.path.exists(directory) else []
    return next((part for part in reversed(parts) if PCI.match(part)), "")


def _path_of(directory: str) -> str:
    """Where the PCI function of `directory` hangs: host bridge, root port, switches, function."""
    parts = os.path.realpath(directory).split(os.sep) if os.path.exists(directory) else []
    on_bus = [number for number, part in enumerate(parts) if PCI.match(part)]
    return "/".join(parts[on_bus[0] - 1 : on_bus[-1] + 1]) if on_bus else ""


def _numa_of(sysfs: str, pci: str) -> int:
    """NUMA node of a PCI function; -1 where the machine has none or does not say."""
    return _number(_read(sysfs, "bus/pci/devices", pci, "numa_node"), -1) if pci else -1


def read_gpus(sysfs: str) -> t.List[t.Dict[str, t.Any]]:
    """NVIDIA's GPUs in PCI order, in which nvidia-smi counts them; without virtual functions."""
    found = []
    for address in _names(sysfs, "bus/pci/devices"):
        base = os.path.join(sysfs, "bus/pci/devices", address)
        is_gpu = _read(base, "vendor") == NVIDIA and _read(base, "class")[:6] in GPU_CLASSES
        if is_gpu and not os.path.exists(os.path.join(base, "physfn")):
            found.append({"pci": address, "numa_node": _numa_of(sysfs, address), "path": _path_of(base)})
    return sorted(found, key=lambda gpu: [int(part, 16) for part in re.split("[:.]", gpu["pci"])])


def _driver_of(directory: str) -> str:
    driver = os.path.join(directory, "driver")
    return os.path.basename(os.path.realpath(driver)) if os.path.exists(driver) else ""


class Port(t.NamedTuple):
    """One port of an RDMA device."""

    device: str
    number: int
    link_layer: str
    state: str
    driver: str


def _netdev_of_port(sysfs: str, device: str, number: int) -> str:
    """The netdev of a port: a software device's parent, or by its GID table (RoCE), or by the PCI function of both."""
    base = os.path.join(sysfs, "class/infiniband", device)
    parent = _read(base, "parent")
    # The parent may be a pod's, whose devices the host sees in shared mode.
    if parent and os.path.exists(os.path.join(sysfs, "class/net", parent)):
        return parent
    siblings = _names(base, "device/net")
    gids = os.path.join(base, "ports", str(number), "gid_attrs/ndevs")
    named = [_read(gids, index) for index in sorted(_names(gids), key=_number)[:GIDS]]
    # The table also names VLANs and, by the names they have there, macvlans of pods.
    real = [name for name in named if name and os.path.exists(os.path.join(sysfs, "class/net", name))]
    if real:
        return next((name for name in real if name in siblings), real[0])
    if len(_names(base, "ports")) > 1:
        siblings = [name for name in siblings if _number(_read(sysfs, "class/net", name, "dev_port")) == number - 1]
    return next(
        (name for name in siblings if not REPRESENTOR.search(_read(sysfs, "class/net", name, "phys_port_name"))), ""
    )


def read_ports(sysfs: str) -> t.Dict[str, Port]:
    """The RDMA port of each netdev that has one."""
    ports: t.Dict[str, Port] = {}
    for device in _names(sysfs, "class/infiniband"):
        base = os.path.join(sysfs, "class/infiniband", device)
        for number in sorted(_number(name) for name in _names(base, "ports")):
            port = os.path.join(base, "ports", str(number))
            netdev = _netdev_of_port(sysfs, device, number)
            if netdev and netdev not in ports:
                state = _read(port, "state").partition(":")[2].strip()
                ports[netdev] = Port(
                    device, number, _read(port, "link_layer"), state, _driver_of(os.path.join(base, "device"))
                )
    return ports


def _master(sysfs: str, netdev: str) -> str:
    """The bond or bridge that a netdev is a member of."""
    master = os.path.join(sysfs, "class/net", netdev, "master")
    return os.path.basename(os.path.realpath(master)) if os.path.exists(master) else ""


def _lower(sysfs: str, proc: str, netdev: str, kind: str) -> t.List[str]:
    """The netdevs right below a bond, VLAN or bridge. A tunnel has a lower one too, but is no way to its RDMA."""
    base = os.path.join(sysfs, "class/net", netdev)
    lower = {name[len("lower_") :] for name in _names(base) if name.startswith("lower_")}
    if kind == "vlan":
        return sorted(lower | set(re.findall(r"^Device:\s*(\S+)", _read(proc, "net/vlan", netdev), re.MULTILINE)))
    return sorted(
        {name for name in lower if _master(sysfs, name) == netdev} | set(_read(base, "bonding/slaves").split())
    )


def _kind(sysfs: str, proc: str, netdev: str) -> str:
    base = os.path.join(sysfs, "class/net", netdev)
    if os.path.isdir(os.path.join(base, "bonding")):
        return "bond"
    if "DEVTYPE=vlan" in _read(base, "uevent").split() or os.path.exists(os.path.join(proc, "net/vlan", netdev)):
        return "vlan"
    if os.path.exists(os.path.join(base, "device/physfn")):
        return "vf"
    return "physical" if os.path.exists(os.path.join(base, "device")) else "other"


def _is_up(sysfs: str, netdev: str) -> bool:
    base = os.path.join(sysfs, "class/net", netdev)
    state = _read(base, "operstate")
    # Drivers that do not report a state are up when the administrator and the carrier say so.
    return state == "up" or (
        state == "unknown" and bool(_number(_read(base, "flags")) & 1) and _read(base, "carrier") != "0"
    )


def _read_link(sysfs: str, proc: str, netdev: str) -> Link:
    base = os.path.join(sysfs, "class/net", netdev)
    device, kind = os.path.join(base, "device"), _kind(sysfs, proc, netdev)
    return {
        "netdev": netdev,
        "pci": _pci_of(device),
        "path": _path_of(device),
        "numa_node": _numa_of(sysfs, _pci_of(device)),
        "driver": _driver_of(device),
        "kind": kind,
        "up": _is_up(sysfs, netdev),
        "mtu": _number(_read(base, "mtu")),
        "mac": _read(base, "address"),
        "lower": _lower(sysfs, proc, netdev, kind),
    }


def bottom(netdev: str, lower: t.Mapping[str, t.Sequence[str]], seen: t.FrozenSet[str] = frozenset()) -> t.List[str]:
    """A netdev and all below it."""
    found = [netdev]
    for name in lower.get(netdev, ()):
        if name not in seen:
            found += [below for below in bottom(name, lower, seen | {netdev}) if below not in found]
    return found


def _with_port(link: Link, ports: t.Mapping[str, Port], lower: t.Mapping[str, t.Sequence[str]]) -> Link:
    """Add the RDMA port: the link's own, or the best one below it."""
    below = [name for name in bottom(link["netdev"], lower) if name in ports]
    # A bond of one NIC's two ports may have the RDMA device itself; its members' PCI function carries it then.
    carriers = [name for name in below if not lower.get(name)] or below
    best = min(below, key=lambda name: (name != link["netdev"], ports[name].state != "ACTIVE"), default="")
    port = ports.get(best, Port("", 0, "", "", ""))
    driver = (
        port.driver if best == link["netdev"] and port.driver and link["kind"] in ("physical", "vf") else link["driver"]
    )
    shared = {
        "device": port.device,
        "port": port.number,
        "link_layer": port.link_layer,
        "state": port.state,
        "driver": driver,
    }
    return {**link, **shared, "rdma_netdevs": carriers}


def _carriers_of_bonds(sysfs: str, links: t.Iterable[Link]) -> t.Dict[str, t.List[str]]:
    """For bonds that are an RDMA device themselves (RoCE LAG): the members whose PCI function has that device."""
    return {
        link["netdev"]: [name for name in link["lower"] if _names(sysfs, "class/net", name, "device/infiniband")]
        for link in links
        if link["kind"] == "bond"
    }


def read_links(
    root: str,
    addresses: t.Mapping[str, t.Sequence[t.Mapping[str, t.Any]]],
    altnames: t.Mapping[str, t.Sequence[str]],
) -> t.List[Link]:
    """All links that a fabric may use: those with RDMA, of hardware, on top of hardware, or with an address."""
    sysfs, proc = os.path.join(root, "sys"), os.path.join(root, "proc")
    ports = read_ports(sysfs)
    netdevs = [
        name
        for name in _names(sysfs, "class/net")
        if name != "lo" and os.path.isdir(os.path.join(sysfs, "class/net", name))
    ]
    bare = [_read_link(sysfs, proc, name) for name in netdevs]
    lower = {link["netdev"]: link["lower"] for link in bare}
    members = _carriers_of_bonds(sysfs, bare)
    links = []
    for link in (_with_port(link, ports, lower) for link in bare):
        if any(members.get(name) for name in link["rdma_netdevs"]):
            link["rdma_netdevs"] = sorted(
                {member for name in link["rdma_netdevs"] for member in members.get(name) or [name]}
            )
        link["addresses"] = [dict(address) for address in addresses.get(link["netdev"], ())]
        link["altnames"] = list(altnames.get(link["netdev"], ()))
        if link["rdma_netdevs"] or link["kind"] != "other" or link["addresses"]:
            links.append(link)
    return links


def read_modules(root: str) -> t.List[str]:
    """Those of MODULES that are loaded or built in."""
    release = _read(root, "proc/sys/kernel/osrelease")
    loaded = {line.split()[0] for line in _read(root, "proc/modules").splitlines()}
    built_in = {
        os.path.basename(line).partition(".")[0].replace("-", "_")
        for line in _read(root, "lib/modules", release, "modules.builtin").splitlines()
    }
    return [
        name for name in MODULES if name in loaded | built_in or os.path.isdir(os.path.join(root, "sys/module", name))
    ]


# ---- what programs say ----------------------------------------------------------------------------------------------


def _json(text: str) -> t.List[t.Dict[str, t.Any]]:
    """The objects in iproute2's JSON: a list, or a single one. Older releases print neither."""
    try:
        found = json.loads(text or "[]")
    except ValueError:
        return []
    return [item for item in (found if isinstance(found, list) else [found]) if isinstance(item, dict)]


def parse_addresses(text: str) -> t.Dict[str, t.List[t.Dict[str, t.Any]]]:
    """The lasting global addresses of each netdev, with their real prefixes, from `ip -j addr`."""
    found: t.Dict[str, t.List[t.Dict[str, t.Any]]] = {}
    for link in _json(text):
        for entry in link.get("addr_info", ()):
            fleeting = any(entry.get(flag) for flag in ("temporary", "deprecated", "tentative", "dadfailed"))
            if entry.get("scope") == "global" and "local" in entry and not fleeting:
                found.setdefault(str(link.get("ifname")), []).append(
                    {"address": entry["local"], "prefix": int(entry["prefixlen"])}
                )
    return found


def parse_altnames(text: str) -> t.Dict[str, t.List[str]]:
    """Further names of each netdev, such as the one that it had before its driver was loaded."""
    return {
        str(link.get("ifname")): [str(name) for name in link["altnames"]] for link in _json(text) if "altnames" in link
    }


def parse_route(text: str) -> t.Dict[str, str]:
    """Device, source address and gateway from `ip -j route get`; empty where there is no route."""
    route = next(iter(_json(text)), {})
    via = route.get("via") or {}
    gateway = route.get("gateway") or (via.get("host") if isinstance(via, dict) else via)
    return {
        "dev": str(route.get("dev") or ""),
        "source": str(route.get("prefsrc") or ""),
        "gateway": str(gateway or ""),
    }


def parse_netns_mode(text: str) -> str:
    """shared or exclusive from `rdma system`, with -j or without."""
    for item in _json(text):
        if item.get("netns"):
            return str(item["netns"])
    match = re.search(r"\bnetns\s+(shared|exclusive)\b", text)
    return match.group(1) if match else ""


def parse_memlock(text: str) -> t.Dict[str, str]:
    """LimitMEMLOCK of each unit that is installed, from `systemctl show`."""
    found = {}
    for block in re.split(r"\n\s*\n", text.strip()):
        unit = dict(line.partition("=")[::2] for line in block.splitlines())
        if unit.get("LoadState") == "loaded" and unit.get("LimitMEMLOCK"):
            limit = unit["LimitMEMLOCK"].strip()
            found[unit.get("Id", "").replace(".service", "")] = "infinity" if limit == INFINITY else limit
    return found


# ---- observing ------------------------------------------------------------------------------------------------------


def _ip_addr(run: Runner) -> str:
    done = run(["ip", "-j", "addr"])
    if done.rc != 0 or not _json(done.out):
        raise FabricError(
            "The addresses of the network devices were asked for.",
            "ip -j addr",
            (done.err or done.out).strip()[:200] or f"rc {done.rc} and no output",
            "Install iproute2 4.14 or later on this host.",
        )
    return done.out


def _route(run: Runner, address: str) -> t.Dict[str, str]:
    try:
        version = ipaddress.ip_address(address).version
    except ValueError as error:
        raise FabricError(
            "A route to an IP address was asked for.", "routes_to", f"{address!r}", "Resolve host names first."
        ) from error
    done = run(["ip", "-j", f"-{version}", "route", "get", address])
    return parse_route(done.out if done.rc == 0 else "")


def _netns_mode(run: Runner, root: str) -> str:
    done = run(["rdma", "-j", "system"])
    mode = parse_netns_mode(done.out) if done.rc == 0 else ""
    # iproute2's rdma is a package of its own on some systems: ask the module.
    return mode or {"Y": "shared", "N": "exclusive"}.get(_read(root, "sys/module/ib_core/parameters/netns_mode"), "")


def _memlock(run: Runner) -> t.Dict[str, str]:
    units = [f"{name}.service" for name in RUNTIMES]
    return parse_memlock(run(["systemctl", "show", "-p", "Id", "-p", "LoadState", "-p", "LimitMEMLOCK", *units]).out)


def observe(routes_to: t.Sequence[str] = (), *, root: str = "/", run: Runner = run_program) -> t.Dict[str, t.Any]:
    """Everything about RDMA on this host. See the module rdma_info."""
    addr = _ip_addr(run)
    return {
        "links": read_links(root, parse_addresses(addr), parse_altnames(addr)),
        "gpus": read_gpus(os.path.join(root, "sys")),
        "netns_mode": _netns_mode(run, root),
        "routes": {address: _route(run, address) for address in routes_to},
        "memlock": _memlock(run),
        "modules": read_modules(root),
        "rdma_subsystem": os.path.isdir(os.path.join(root, "sys/class/infiniband")),
    }
