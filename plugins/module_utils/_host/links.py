# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A host's network devices with their RDMA devices, and whatever else RDMA depends on.

sysfs is authoritative; `ip` adds addresses and routes, `rdma` the network namespace mode of RDMA, and systemd the
limits.
"""

from __future__ import annotations

import ipaddress
import json
import os
import re
import typing as t

from .._common.command import Done, run_program
from .._common.result import FabricError
from .._model.observation import ADVERTISED, LEASE, Gpu, Link, LinkAddress, RdmaDevice, RdmaFacts, Route
from .acs import redirecting
from .nic_model import driver_version, firmware, gid_room, guid, model, pci_model
from .nic_speed import is_guest, pcie_link, port_rate
from .sysfs import driver_name, list_names, numa_node, pci_address, pci_path, read_attribute, to_number

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
REPRESENTOR = re.compile(r"pf\d+(vf|sf)\d+")
NVIDIA = "0x10de"
GPU_CLASSES = ("0x0300", "0x0302")  # with a display, without one
GIDS = 32  # entries of a GID table to read
# Virtual devices on top of others, or joining them.
STACKED = ("bond", "bridge", "ipvlan", "ipvtap", "macsec", "macvlan", "macvtap", "openvswitch", "team", "vlan", "vrf")
# If iproute2 does not report the kind: ovs-vswitchd always uses the first name, people mostly use the second.
BY_NAME = (("ovs-system", "openvswitch"), ("vrf", "vrf"))
INFINITY = str(2**64 - 1)  # as systemd before 229 writes it


class BareLink(t.TypedDict):
    """A network device without its RDMA device and its addresses; fields as in Link."""

    netdev: str
    pci: str
    path: str
    numa_node: int
    driver: str
    kind: str
    up: bool
    mtu: int
    mac: str
    lower: t.List[str]
    master: str
    master_kind: str


class IpAddress(t.TypedDict, total=False):
    """An address in the JSON of `ip addr`."""

    local: str
    prefixlen: int
    scope: str
    dynamic: bool
    mngtmpaddr: bool
    protocol: str
    temporary: bool
    deprecated: bool
    tentative: bool
    dadfailed: bool


class LinkInfo(t.TypedDict, total=False):
    """The kind of a virtual device, in the JSON of `ip -d addr`."""

    info_kind: str
    info_data: t.Dict[str, object]


class IpItem(t.TypedDict, total=False):
    """An object in iproute2's JSON: a device of `ip addr` or `ip link`, a route, or the RDMA subsystem."""

    ifname: str
    linkinfo: LinkInfo
    altnames: t.List[str]
    addr_info: t.List[IpAddress]
    dev: str
    prefsrc: str
    gateway: str
    via: t.Union[str, t.Dict[str, str]]
    netns: str


# ---- sysfs ----------------------------------------------------------------------------------------------------------


def read_gpus(sysfs: str) -> t.List[Gpu]:
    """NVIDIA's GPUs in PCI order, as nvidia-smi counts them; without virtual functions."""
    found: t.List[Gpu] = []
    for address in list_names(sysfs, "bus/pci/devices"):
        base = os.path.join(sysfs, "bus/pci/devices", address)
        is_gpu = read_attribute(base, "vendor") == NVIDIA and read_attribute(base, "class")[:6] in GPU_CLASSES
        if is_gpu and not os.path.exists(os.path.join(base, "physfn")):
            found.append(
                {
                    "pci": address,
                    "model": pci_model(base),
                    "numa_node": numa_node(sysfs, address),
                    "path": pci_path(base),
                }
            )
    return sorted(found, key=lambda gpu: [int(part, 16) for part in re.split("[:.]", gpu["pci"])])


class Port(t.NamedTuple):
    """One port of an RDMA device."""

    device: str
    number: int
    link_layer: str
    state: str
    driver: str


NO_PORT = Port("", 0, "", "", "")
# Node types whose ports report Ethernet as link layer but are not RoCE.
NOT_ROCE = {"RNIC": "iWARP", "usNIC": "usNIC", "usNIC UDP": "usNIC"}


def _netdev_of_port(sysfs: str, device: str, number: int) -> str:
    """The netdev of a port: a software device's parent, or by its GID table (RoCE), or by the shared PCI function."""
    base = os.path.join(sysfs, "class/infiniband", device)
    parent = read_attribute(base, "parent")
    # The parent may be in a pod: in shared mode, the host sees the RDMA devices of pods.
    if parent and os.path.exists(os.path.join(sysfs, "class/net", parent)):
        return parent
    siblings = list_names(base, "device/net")
    gids = os.path.join(base, "ports", str(number), "gid_attrs/ndevs")
    named = [read_attribute(gids, index) for index in sorted(list_names(gids), key=to_number)[:GIDS]]
    # The table also names VLANs and macvlans of pods, the latter by their names inside the pods.
    real = [name for name in named if name and os.path.exists(os.path.join(sysfs, "class/net", name))]
    if real:
        return next((name for name in real if name in siblings), real[0])
    if len(list_names(base, "ports")) > 1:
        siblings = [
            name for name in siblings if to_number(read_attribute(sysfs, "class/net", name, "dev_port")) == number - 1
        ]
    return next(
        (
            name
            for name in siblings
            if not REPRESENTOR.search(read_attribute(sysfs, "class/net", name, "phys_port_name"))
        ),
        "",
    )


def _read_port(sysfs: str, device: str, number: int) -> Port:
    base = os.path.join(sysfs, "class/infiniband", device)
    port = os.path.join(base, "ports", str(number))
    node_type, state = (
        read_attribute(path).partition(":")[2].strip()
        for path in (os.path.join(base, "node_type"), os.path.join(port, "state"))
    )
    layer = NOT_ROCE.get(node_type) or read_attribute(port, "link_layer")
    return Port(device, number, layer, state, driver_name(os.path.join(base, "device")))


def _numbers(sysfs: str, device: str) -> t.List[int]:
    """The port numbers of an RDMA device."""
    return sorted(to_number(name) for name in list_names(sysfs, "class/infiniband", device, "ports"))


def read_ports(sysfs: str) -> t.Dict[str, Port]:
    """The RDMA port of each netdev that has one: if there are several, one with RoCE, else the first."""
    ports: t.Dict[str, Port] = {}
    for device in list_names(sysfs, "class/infiniband"):
        for number in _numbers(sysfs, device):
            netdev = _netdev_of_port(sysfs, device, number)
            if not netdev:
                continue
            known, port = ports.get(netdev), _read_port(sysfs, device, number)
            if known is None or known.link_layer != "Ethernet" == port.link_layer:
                ports[netdev] = port
    return ports


def read_mad_files(sysfs: str) -> t.Dict[str, t.List[str]]:
    """The device files umad* and issm* of each RDMA device; from Linux 6.11 on, only InfiniBand has issm*."""
    found: t.Dict[str, t.List[str]] = {}
    for name in list_names(sysfs, "class/infiniband_mad"):
        device = read_attribute(sysfs, "class/infiniband_mad", name, "ibdev")
        if device:
            found.setdefault(device, []).append(name)
    return found


def read_lone_devices(sysfs: str) -> t.List[RdmaDevice]:
    """RDMA devices without a netdev here: InfiniBand without IPoIB, EFA, or one whose netdev is in a pod."""
    found: t.List[RdmaDevice] = []
    for device in list_names(sysfs, "class/infiniband"):
        numbers = _numbers(sysfs, device)
        if not any(_netdev_of_port(sysfs, device, number) for number in numbers):
            port = _read_port(sysfs, device, numbers[0] if numbers else 1)
            pci = pci_address(os.path.join(sysfs, "class/infiniband", device, "device"))
            found.append(
                {
                    "device": device,
                    "pci": pci,
                    "driver": port.driver,
                    "link_layer": port.link_layer,
                    "state": port.state,
                }
            )
    return found


def _master(sysfs: str, netdev: str) -> str:
    """The bond or bridge that a netdev is a member of."""
    master = os.path.join(sysfs, "class/net", netdev, "master")
    return os.path.basename(os.path.realpath(master)) if os.path.exists(master) else ""


def _lower(sysfs: str, proc: str, netdev: str, kind: str) -> t.List[str]:
    """The netdevs directly below a bond, VLAN or bridge. A tunnel has one too, but does not reach its RDMA device."""
    base = os.path.join(sysfs, "class/net", netdev)
    lower = {name[len("lower_") :] for name in list_names(base) if name.startswith("lower_")}
    if kind == "vlan":
        return sorted(
            lower | set(re.findall(r"^Device:\s*(\S+)", read_attribute(proc, "net/vlan", netdev), re.MULTILINE))
        )
    return sorted(
        {name for name in lower if _master(sysfs, name) == netdev} | set(read_attribute(base, "bonding/slaves").split())
    )


def _kind(sysfs: str, proc: str, netdev: str, told: str) -> str:
    """The kind of a netdev; `told` is what `ip` reports, since sysfs does not know all kinds."""
    base = os.path.join(sysfs, "class/net", netdev)
    if os.path.isdir(os.path.join(base, "bonding")):
        return "bond"
    if os.path.exists(os.path.join(proc, "net/vlan", netdev)):
        return "vlan"
    if os.path.exists(os.path.join(base, "device/physfn")):
        return "vf"
    if os.path.exists(os.path.join(base, "device")):
        return "physical"
    own = [line[len("DEVTYPE=") :] for line in read_attribute(base, "uevent").split() if line.startswith("DEVTYPE=")]
    signs = [*own, told, "bridge" if os.path.isdir(os.path.join(base, "bridge")) else ""]
    signs += [kind for start, kind in BY_NAME if netdev.startswith(start)]
    return next((sign for sign in signs if sign in STACKED), "other")


def _is_up(sysfs: str, netdev: str) -> bool:
    base = os.path.join(sysfs, "class/net", netdev)
    state = read_attribute(base, "operstate")
    # Drivers that do not report a state count as up if the administrative state and the carrier are up.
    return state == "up" or (
        state == "unknown"
        and bool(to_number(read_attribute(base, "flags")) & 1)
        and read_attribute(base, "carrier") != "0"
    )


def _function_netdevs(sysfs: str, pci: str) -> t.List[str]:
    """The network devices of a PCI function with an RDMA device, except those of subfunctions."""
    base = os.path.join(sysfs, "bus/pci/devices", pci)
    return list_names(base, "net") if pci and list_names(base, "infiniband") else []


class Vfs(t.TypedDict):
    """The VFs of a PCI function; fields as in Link."""

    vfs: int
    max_vfs: int


def _vfs(sysfs: str, link: BareLink) -> Vfs:
    """The attribute is missing if the NIC lacks the capability, or the firmware has no VFs configured."""
    if link["kind"] != "physical" or not link["pci"]:
        return {"vfs": 0, "max_vfs": 0}
    base = os.path.join(sysfs, "bus/pci/devices", link["pci"])
    vfs, most = (to_number(read_attribute(base, f"sriov_{name}")) for name in ("numvfs", "totalvfs"))
    return {"vfs": vfs, "max_vfs": most}


def _read_link(sysfs: str, proc: str, netdev: str, kinds: t.Mapping[str, str]) -> BareLink:
    base = os.path.join(sysfs, "class/net", netdev)
    device, kind = os.path.join(base, "device"), _kind(sysfs, proc, netdev, kinds.get(netdev, ""))
    master = _master(sysfs, netdev)
    return {
        "netdev": netdev,
        "pci": pci_address(device),
        "path": pci_path(device),
        "numa_node": numa_node(sysfs, pci_address(device)),
        "driver": driver_name(device),
        "kind": kind,
        "up": _is_up(sysfs, netdev),
        "mtu": to_number(read_attribute(base, "mtu")),
        "mac": read_attribute(base, "address"),
        "lower": _lower(sysfs, proc, netdev, kind),
        "master": master,
        "master_kind": _kind(sysfs, proc, master, kinds.get(master, "")) if master else "",
    }


def bottom(netdev: str, lower: t.Mapping[str, t.Sequence[str]], seen: t.FrozenSet[str] = frozenset()) -> t.List[str]:
    """A netdev and all netdevs below it."""
    found = [netdev]
    for name in lower.get(netdev, ()):
        if name not in seen:
            found += [below for below in bottom(name, lower, seen | {netdev}) if below not in found]
    return found


def _find_port(
    link: BareLink, ports: t.Mapping[str, Port], lower: t.Mapping[str, t.Sequence[str]]
) -> t.Tuple[Port, t.List[str]]:
    """The RDMA port of a link, its own or the best one below it, and the lowest devices that carry RDMA."""
    below = [name for name in bottom(link["netdev"], lower) if name in ports]
    # A bond of one NIC's two ports may own the RDMA device; then its members' PCI function carries it.
    carriers = [name for name in below if not lower.get(name)] or below
    best = min(below, key=lambda name: (name != link["netdev"], ports[name].state != "ACTIVE"), default="")
    port = ports.get(best, NO_PORT)
    own_driver = best == link["netdev"] and port.driver and link["kind"] in ("physical", "vf")
    return port if own_driver else port._replace(driver=link["driver"]), carriers


def _carriers_of_bonds(sysfs: str, links: t.Iterable[BareLink]) -> t.Dict[str, t.List[str]]:
    """For bonds that own an RDMA device (RoCE LAG): the members whose PCI function has that device."""
    return {
        link["netdev"]: [name for name in link["lower"] if list_names(sysfs, "class/net", name, "device/infiniband")]
        for link in links
        if link["kind"] == "bond"
    }


def _takers(sysfs: str, links: t.Iterable[BareLink], alone: t.Collection[str]) -> t.Dict[str, t.List[str]]:
    """The devices on top of each netdev that prevent macvlans. Those of pods are in other namespaces, and not seen."""
    found: t.Dict[str, t.List[str]] = {}
    for link in links:
        if link["kind"] in ("ipvlan", "ipvtap", "macsec") or link["netdev"] in alone:
            for name in list_names(sysfs, "class/net", link["netdev"]):
                if name.startswith("lower_"):
                    mode = " (passthru)" if link["netdev"] in alone else ""
                    found.setdefault(name[len("lower_") :], []).append(f"{link['kind']} {link['netdev']}{mode}")
    return found


def read_links(
    root: str,
    addresses: t.Mapping[str, t.Sequence[LinkAddress]],
    altnames: t.Mapping[str, t.Sequence[str]],
    kinds: t.Optional[t.Mapping[str, str]] = None,
    alone: t.Collection[str] = (),
) -> t.List[Link]:
    """All links that a fabric may use: those with RDMA, hardware, on top of hardware, or with an address.

    kinds: the kinds of virtual devices, from `ip`; alone: macvlans and macvtaps in passthru mode.
    """
    sysfs, proc = os.path.join(root, "sys"), os.path.join(root, "proc")
    ports = read_ports(sysfs)
    netdevs = [
        name
        for name in list_names(sysfs, "class/net")
        if name != "lo" and os.path.isdir(os.path.join(sysfs, "class/net", name))
    ]
    bare = [_read_link(sysfs, proc, name, kinds or {}) for name in netdevs]
    lower = {link["netdev"]: link["lower"] for link in bare}
    members = _carriers_of_bonds(sysfs, bare)
    guest = is_guest(proc)
    takers = _takers(sysfs, bare, alone)
    links: t.List[Link] = []
    for link in bare:
        port, carriers = _find_port(link, ports, lower)
        if any(members.get(name) for name in carriers):
            carriers = sorted({member for name in carriers for member in members.get(name) or [name]})
        found: Link = {
            **link,
            "device": port.device,
            "port": port.number,
            "link_layer": port.link_layer,
            "state": port.state,
            "driver": port.driver,
            "rate_gbps": port_rate(sysfs, port.device, port.number, carriers or [link["netdev"]]),
            "pcie": None if guest else pcie_link(sysfs, carriers or [link["netdev"]]),
            "model": model(sysfs, port.device, (carriers or [link["netdev"]])[0]),
            "firmware": firmware(sysfs, port.device),
            "guid": guid(sysfs, port.device),
            "driver_version": driver_version(sysfs, port.driver),
            "gid_room": gid_room(sysfs, port.device, port.number),
            "rdma_netdevs": carriers,
            "taken_by": takers.get(link["netdev"], []),
            "function_netdevs": _function_netdevs(sysfs, link["pci"]),
            "rdma_devices": sorted(
                {device for name in carriers for device in list_names(sysfs, "class/net", name, "device/infiniband")}
            ),
            **_vfs(sysfs, link),
            "addresses": list(addresses.get(link["netdev"], ())),
            "altnames": list(altnames.get(link["netdev"], ())),
        }
        if found["rdma_netdevs"] or found["kind"] in ("physical", "vf", "bond", "vlan") or found["addresses"]:
            links.append(found)
    return links


def read_modules(root: str) -> t.List[str]:
    """Those of MODULES that are loaded or built in."""
    release = read_attribute(root, "proc/sys/kernel/osrelease")
    loaded = {line.split()[0] for line in read_attribute(root, "proc/modules").splitlines()}
    built_in = {
        os.path.basename(line).partition(".")[0].replace("-", "_")
        for line in read_attribute(root, "lib/modules", release, "modules.builtin").splitlines()
    }
    return [
        name for name in MODULES if name in loaded | built_in or os.path.isdir(os.path.join(root, "sys/module", name))
    ]


# ---- output of programs ----------------------------------------------------------------------------------------------


def _json(text: str) -> t.List[IpItem]:
    """The objects in iproute2's JSON: a list, or a single one. Older releases print no JSON."""
    try:
        found = json.loads(text or "[]")
    except ValueError:
        return []
    items: t.List[IpItem] = found if isinstance(found, list) else [found]
    return [item for item in items if isinstance(item, dict)]


def read_address(entry: IpAddress) -> LinkAddress:
    """One entry of `addr_info` in the JSON of `ip addr`.

    Older kernels and iproute2 do not report the protocol. A daemon that handles router advertisements itself does not
    set `mngtmpaddr` either, but a DHCPv6 lease is for a single address.
    """
    address, prefix = entry["local"], int(entry["prefixlen"])
    dynamic = bool(entry.get("dynamic"))
    advertised = ":" in address and (
        entry.get("protocol") == "kernel_ra"
        or any(entry.get(flag) for flag in ("mngtmpaddr", "temporary"))
        or (dynamic and prefix < 128)
    )
    found: LinkAddress = {"address": address, "prefix": prefix}
    if advertised or dynamic:
        found["origin"] = ADVERTISED if advertised else LEASE
    return found


def parse_addresses(text: str) -> t.Dict[str, t.List[LinkAddress]]:
    """The permanent global addresses of each netdev, with their real prefixes, from `ip -j addr`."""
    found: t.Dict[str, t.List[LinkAddress]] = {}
    for link in _json(text):
        for entry in link.get("addr_info", ()):
            fleeting = any(entry.get(flag) for flag in ("temporary", "deprecated", "tentative", "dadfailed"))
            if entry.get("scope") == "global" and "local" in entry and not fleeting:
                found.setdefault(str(link.get("ifname")), []).append(read_address(entry))
    return found


def parse_altnames(text: str) -> t.Dict[str, t.List[str]]:
    """Alternative names of each netdev, such as the one that it had before its driver was loaded."""
    return {
        str(link.get("ifname")): [str(name) for name in link["altnames"]] for link in _json(text) if "altnames" in link
    }


def parse_kinds(text: str) -> t.Dict[str, str]:
    """The kind of each virtual device, such as vrf, from `ip -j -d addr`."""
    found = {str(link.get("ifname")): link.get("linkinfo", {}).get("info_kind", "") for link in _json(text)}
    return {name: str(kind) for name, kind in found.items() if kind}


def parse_passthru(text: str) -> t.Set[str]:
    """The macvlans and macvtaps in passthru mode, from `ip -j -d addr`."""
    modes = {str(link.get("ifname")): link.get("linkinfo", {}).get("info_data", {}).get("mode") for link in _json(text)}
    return {name for name, mode in modes.items() if mode == "passthru"}


def parse_route(text: str) -> Route:
    """Device, source address and gateway from `ip -j route get`; empty if there is no route."""
    route = next(iter(_json(text)), IpItem())
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
    """LimitMEMLOCK of each installed unit, from `systemctl show`."""
    found = {}
    for block in re.split(r"\n\s*\n", text.strip()):
        unit = dict(line.partition("=")[::2] for line in block.splitlines())
        if unit.get("LoadState") == "loaded" and unit.get("LimitMEMLOCK"):
            limit = unit["LimitMEMLOCK"].strip()
            found[unit.get("Id", "").replace(".service", "")] = "infinity" if limit == INFINITY else limit
    return found


# ---- the whole host -------------------------------------------------------------------------------------------------


def _ip_addr(run: Runner) -> str:
    done = run(["ip", "-j", "-d", "addr"])
    if done.rc != 0 or not _json(done.out):
        done = run(["ip", "-j", "addr"])  # iproute2 of 2018 prints some details as plain text
    if done.rc != 0 or not _json(done.out):
        raise FabricError(
            "Could not read the addresses of the network devices.",
            "ip -j addr",
            (done.err or done.out).strip()[:200] or f"rc {done.rc} and no output",
            "Install iproute2 4.14 or later on this host.",
            code=done.code,
        )
    return done.out


def _route(run: Runner, address: str, vrfs: t.Sequence[str]) -> Route:
    """The route to an address in the main table or in a VRF's, preferring one without a gateway."""
    try:
        version = ipaddress.ip_address(address).version
    except ValueError as error:
        raise FabricError(
            "A route is looked up for an IP address only.",
            "routes_to",
            f"{address!r}",
            "Resolve host names first.",
            code="invalid-input",
        ) from error
    ask = ["ip", "-j", f"-{version}", "route", "get", address]
    answers = [run([*ask, *table]) for table in ([], *(["vrf", name] for name in vrfs))]
    routes = [parse_route(done.out if done.rc == 0 else "") for done in answers]
    return min((route for route in routes if route["dev"]), key=lambda route: route["gateway"] != "", default=routes[0])


def read_netns_mode(run: Runner, root: str) -> str:
    done = run(["rdma", "-j", "system"])
    mode = parse_netns_mode(done.out) if done.rc == 0 else ""
    # On some systems iproute2's rdma is a separate package: read the kernel module's parameter.
    return mode or {"Y": "shared", "N": "exclusive"}.get(
        read_attribute(root, "sys/module/ib_core/parameters/netns_mode"), ""
    )


def _memlock(run: Runner) -> t.Dict[str, str]:
    units = [f"{name}.service" for name in RUNTIMES]
    return parse_memlock(run(["systemctl", "show", "-p", "Id", "-p", "LoadState", "-p", "LimitMEMLOCK", *units]).out)


def read_rdma(routes_to: t.Sequence[str] = (), *, root: str = "/", run: Runner = run_program) -> RdmaFacts:
    """Everything about RDMA on this host. See the module host_info."""
    addr = _ip_addr(run)
    addresses = parse_addresses(addr)
    links = read_links(root, addresses, parse_altnames(addr), parse_kinds(addr), parse_passthru(addr))
    sysfs, proc = os.path.join(root, "sys"), os.path.join(root, "proc")
    gpus = read_gpus(sysfs)
    ways = [*(gpu["path"] for gpu in gpus), *(link["path"] for link in links if link["rdma_netdevs"])]
    vrfs = sorted({link["master"] for link in links if link["master_kind"] == "vrf"})
    return {
        "links": links,
        "lone_devices": read_lone_devices(sysfs),
        "mad_files": read_mad_files(sysfs),
        "loopback": addresses.get("lo", []),
        "gpus": gpus,
        "redirects": redirecting(sysfs, ways) if gpus and not is_guest(proc) else [],
        "netns_mode": read_netns_mode(run, root),
        "routes": {address: _route(run, address, vrfs) for address in routes_to},
        "memlock": _memlock(run),
        "modules": read_modules(root),
        "rdma_subsystem": os.path.isdir(os.path.join(root, "sys/class/infiniband")),
    }
