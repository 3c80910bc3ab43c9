# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a host needs so that its fabric NICs carry RDMA for pods, from its settings and its state. Pure functions.

rdma_apply.py reads the `Seen` of a host, and applies its `HostPlan`.
"""

from __future__ import annotations

import re
import typing as t

from .._common.result import FabricError
from .files import Files
from .kernel import modules_text

MODULES_FILE = "/etc/modules-load.d/rdma-host.conf"
NETNS_FILE = "/etc/modprobe.d/zz-rdma-host.conf"  # modprobe uses the last of several values
QOS_UNIT = "rdma-host-qos"
QOS_FILE = f"/etc/systemd/system/{QOS_UNIT}.service"
ROCE_V2 = "RoCE v2"
# The RDMA driver that belongs to a NIC's driver; not every system loads it automatically.
RDMA_DRIVERS = {
    "bnxt_en": "bnxt_re",
    "i40e": "irdma",
    "ice": "irdma",
    "mlx4_core": "mlx4_ib",
    "mlx4_en": "mlx4_ib",
    "mlx5_core": "mlx5_ib",
    "qede": "qedr",
    "vmxnet3": "vmw_pvrdma",
}
LINK_TYPES = {"infiniband": ("IB", 1, "InfiniBand"), "ethernet": ("ETH", 2, "Ethernet")}
# systemd's default, for hosts that lack the file.
DEFAULT_LINK = (
    "NamePolicy=keep kernel database onboard slot path",
    "AlternativeNamesPolicy=database onboard slot path",
    "MACAddressPolicy=persistent",
)


class Nic(t.TypedDict, total=False):
    """A fabric NIC as in the plan, an item of the option `links`; other keys are ignored."""

    netdev: t.Optional[str]
    altname: t.Optional[str]  # an alternative name to give it
    pci: t.Optional[str]
    rdma_netdevs: t.Optional[t.List[str]]  # the lowest devices of a bond or VLAN


class QosSettings(t.TypedDict, total=False):
    """The option `qos`; what is omitted or None stays as it is."""

    pfc: t.Optional[t.List[int]]  # priorities, 0 to 7
    trust: t.Optional[str]  # dscp or pcp
    ecn: t.Optional[t.List[int]]  # priorities, 0 to 7


class Settings(t.TypedDict):
    """Options of rdma_host."""

    links: t.List[Nic]
    rdma: bool
    modules: t.List[str]
    mtu: int  # bytes; 0 leaves the MTU unchanged
    qos: QosSettings
    link_type: t.Optional[str]  # ethernet or infiniband


class Qos(t.TypedDict):
    """Priorities with PFC, and the source of a packet's priority; empty if the driver does not report it."""

    pfc: t.List[int]
    trust: str


class NicState(t.TypedDict):
    """The present or future state of a NIC."""

    mtu: int  # bytes
    altnames: t.List[str]
    permanent_mac: str  # empty if the NIC has none
    driver: str
    link_file: str  # the .link file that applies without ours
    link_settings: t.List[str]  # lines of its section [Link]
    roce_mode: t.Dict[str, str]  # by device/port
    qos_tool: str  # path of mlnx_qos or dcb; empty if neither works with this NIC
    qos: Qos
    ecn: t.Optional[t.List[int]]  # priorities with ECN; None if the driver has no such settings


class PortState(t.TypedDict):
    """The link type of a NIC's ports."""

    tool: str  # path of mlxconfig or mstconfig; empty if both are missing
    types: t.Dict[str, str]  # ETH or IB at the next boot, by P1, P2
    link_layer: str  # as running: Ethernet or InfiniBand


class HostState(t.TypedDict):
    """The changeable state of a host."""

    modules: t.List[str]
    netns_mode: str  # shared or exclusive; empty if the kernel has no RDMA
    links: t.Dict[str, NicState]  # by netdev
    ports: t.Dict[str, PortState]  # by PCI address


class Seen(HostState):
    """A host's state, and the netdev that owns each name."""

    owners: t.Dict[str, str]


Command = t.List[str]


class HostPlan(t.NamedTuple):
    """What to change on a host, and its state afterwards."""

    after: HostState
    files: Files
    commands: t.List[Command]  # commands for changes other than modules and files
    boot: t.List[Command]  # commands to repeat at each boot
    notes: t.List[str]  # requested settings that are not possible
    reboot: t.List[str]  # reasons why the host must be rebooted


# ---- output of programs and files -----------------------------------------------------------------------------------


def link_section(text: str) -> t.List[str]:
    """The settings in the section [Link] of a systemd .link file."""
    section, found = "", []
    for line in (line.strip() for line in text.splitlines()):
        if line.startswith("["):
            section = line
        elif section == "[Link]" and line and line[0] not in "#;":
            found.append(line)
    return found


def based_on(text: str) -> str:
    """The file that one of our files replaces; empty if the text is not ours."""
    found = re.search(r"^# In place of (\S+)$", text, re.MULTILINE)
    return found.group(1) if found else ""


def parse_mlnx_qos(text: str) -> Qos:
    """Priorities with PFC, and the source of the priority (dscp or pcp), from `mlnx_qos -i DEV`."""
    trust = re.search(r"^Priority trust state:\s*(\w+)", text, re.MULTILINE)
    enabled = re.search(r"^PFC configuration:\s*\n\s*priority[ \t\d]+\n\s*enabled([ \t01]+)$", text, re.MULTILINE)
    flags = enabled.group(1).split() if enabled else []
    return {"pfc": [index for index, flag in enumerate(flags) if flag == "1"], "trust": trust.group(1) if trust else ""}


def parse_dcb(pfc: str, trust: str) -> Qos:
    """The same from `dcb pfc show dev DEV prio-pfc` and `dcb apptrust show dev DEV`; the latter may be unsupported."""
    found = re.search(r"^order:?\s+(.*)$", trust, re.MULTILINE)
    order = (found.group(1) if found else "").split()
    return {"pfc": [int(priority) for priority in re.findall(r"\b([0-7]):on\b", pfc)], "trust": (order or [""])[0]}


def parse_link_types(text: str) -> t.Dict[str, str]:
    """Link type of each port at the next boot, ETH or IB, by `P1`, from `mlxconfig query`."""
    found = re.findall(r"^[*\s]*LINK_TYPE_(P\d)\s+(.*)$", text, re.MULTILINE)
    return {port: re.sub(r"\(\d+\)", "", values.split()[-1]) for port, values in found if values.split()}


def port_of(pci: str, types: t.Mapping[str, str]) -> str:
    """The port of a PCI function: the second function of a NIC is its second port."""
    port = f"P{int(pci[-1]) + 1}" if pci[-1:].isdigit() else "P1"
    return port if port in types else "P1"


# ---- links ----------------------------------------------------------------------------------------------------------


def netdevs(links: t.Sequence[Nic]) -> t.List[str]:
    """The netdevs of links, those below a bond or VLAN first."""
    names = [name for link in links for name in (*(link.get("rdma_netdevs") or ()), link.get("netdev") or "")]
    return list(dict.fromkeys(filter(None, names)))


def ports_of(links: t.Sequence[Nic]) -> t.List[str]:
    """The netdevs that are NICs: bonds and VLANs have no queues."""
    names = [name for link in links for name in link.get("rdma_netdevs") or [link.get("netdev") or ""]]
    return list(dict.fromkeys(filter(None, names)))


def altnames(links: t.Sequence[Nic]) -> t.Dict[str, str]:
    """The alternative name to give to each netdev."""
    pairs = ((link.get("netdev"), link.get("altname")) for link in links)
    return {netdev: name for netdev, name in pairs if netdev and name and name != netdev}


def link_path(netdev: str) -> str:
    # The first match wins, and installers write 10-*.link.
    return f"/etc/systemd/network/00-fabric-{netdev}.link"


def link_text(netdev: str, seen: NicState, altname: str, mtu: int) -> str:
    """A .link file for one NIC. It replaces the one that applied before, so it contains all settings of that one."""
    permanent = seen["permanent_mac"]
    match = f"PermanentMACAddress={permanent}" if permanent else f"OriginalName={netdev}"
    lines = [
        "# Written by ipu.fabric.rdma_host: one file applies to a NIC, so this has the settings of the other too.",
        f"# In place of {seen['link_file']}",
        "[Match]",
        match,
        "",
        "[Link]",
        *seen["link_settings"],
    ]
    lines += [f"AlternativeName={altname}"] if altname else []
    lines += [f"MTUBytes={mtu}"] if mtu else []
    return "\n".join(lines) + "\n"


def check_names(wanted: t.Mapping[str, str], owners: t.Mapping[str, str]) -> None:
    for netdev, name in wanted.items():
        owner = owners.get(name, netdev)
        if owner != netdev:
            raise FabricError(
                f"{netdev} can't get the alternative name {name}.",
                netdev,
                f"{owner} has it",
                f"Run ip link property del dev {owner} altname {name}, or choose another name.",
                code="not-ours",
            )


def check_present(names: t.Sequence[str], owners: t.Mapping[str, str]) -> None:
    present = sorted(set(owners.values()))
    missing = [name for name in names if name not in present]
    if missing:
        raise FabricError(
            "Fabric NICs of this host are missing.",
            ", ".join(missing),
            f"the host has {', '.join(present) or 'no NIC'}",
            "Run the plan again, so that it sees the current NICs.",
            code="not-found",
        )


# ---- QoS ------------------------------------------------------------------------------------------------------------


def qos_commands(netdev: str, want: QosSettings, seen: NicState) -> t.Tuple[t.List[Command], t.List[str]]:
    """Commands that set PFC and trust with this NIC's tool, and notes on what can't be set."""
    tool = seen["qos_tool"]
    notes: t.List[str] = []
    commands: t.List[Command] = []
    pfc, trust = want.get("pfc"), want.get("trust")
    if not tool:
        return [], [f"{netdev}: PFC and trust stay as they are: neither mlnx_qos nor dcb can set them."]
    if tool.endswith("mlnx_qos"):
        words = ["--pfc", ",".join(str(int(n in pfc)) for n in range(8))] if pfc is not None else []
        words += ["--trust", trust] if trust else []
        return ([[tool, "-i", netdev, *words]] if words else []), []
    if pfc is not None:
        commands.append([tool, "pfc", "set", "dev", netdev, "prio-pfc", "all:off", *(f"{n}:on" for n in pfc)])
    if trust and not seen["qos"]["trust"]:
        notes.append(f"{netdev}: trust stays as it is: its driver does not let dcb set it. Try mlnx_qos.")
    elif trust:
        commands.append([tool, "apptrust", "set", "dev", netdev, "order", trust])
    return commands, notes


def ecn_commands(netdev: str, priorities: t.Sequence[int]) -> t.List[Command]:
    """Commands for both directions: a NIC detects congestion (np), and reacts to it (rp)."""
    commands = []
    for value in (1, 0):
        chosen = [n for n in range(8) if (n in priorities) == bool(value)]
        files = [f"/sys/class/net/{netdev}/ecn/{way}/enable/{n}" for n in chosen for way in ("roce_np", "roce_rp")]
        commands += [["/bin/sh", "-c", f"echo {value} | tee {' '.join(files)}"]] if files else []
    return commands


def plan_qos(
    names: t.Sequence[str], want: QosSettings, links: t.Dict[str, NicState], after: t.Dict[str, NicState]
) -> t.Tuple[t.List[Command], t.List[str]]:
    """Commands for all NICs, whether needed now or at the next boot; `after` is updated with their effect."""
    boot: t.List[Command] = []
    notes: t.List[str] = []
    pfc, trust, ecn = want.get("pfc"), want.get("trust"), want.get("ecn")
    for name in names:
        if pfc is not None or trust:
            commands, missing = qos_commands(name, want, links[name])
            boot += commands
            notes += missing
            if links[name]["qos_tool"]:
                qos = after[name]["qos"]
                qos["pfc"] = pfc if pfc is not None else qos["pfc"]
                qos["trust"] = trust if trust and not missing else qos["trust"]
        if ecn is not None and links[name]["ecn"] is None:
            notes.append(f"{name}: ECN stays as it is: its driver has no settings for it.")
        elif ecn is not None:
            boot += ecn_commands(name, ecn)
            after[name]["ecn"] = ecn
    return boot, notes


def quote_word(word: str) -> str:
    return f'"{word}"' if " " in word else word


def qos_unit(commands: t.Sequence[t.Sequence[str]]) -> str:
    """A service that repeats the commands at each boot: neither tool makes its settings persistent."""
    lines = ["[Unit]", "Description=PFC, trust and ECN of fabric NICs (ipu.fabric.rdma_host)"]
    lines += ["After=network.target openibd.service", "", "[Service]", "Type=oneshot", "RemainAfterExit=yes"]
    lines += ["ExecStart=" + " ".join(quote_word(word) for word in command) for command in commands]
    return "\n".join([*lines, "", "[Install]", "WantedBy=multi-user.target", ""])


# ---- the plan -------------------------------------------------------------------------------------------------------


def wanted_modules(settings: Settings, links: t.Mapping[str, NicState]) -> t.List[str]:
    """The requested modules, and the RDMA driver of each fabric NIC."""
    if not settings["rdma"]:
        return []
    drivers = {links[name]["driver"] for name in netdevs(settings["links"]) if name in links}
    return list(
        dict.fromkeys([*settings["modules"], *sorted(RDMA_DRIVERS[name] for name in drivers & set(RDMA_DRIVERS))])
    )


def plan_links(settings: Settings, seen: Seen, after: HostState) -> t.Tuple[Files, t.List[Command]]:
    """Alternative names and MTU: the files that make them persistent, and the commands that set them now."""
    names, wanted = netdevs(settings["links"]), altnames(settings["links"])
    check_present(names, seen["owners"])
    check_names(wanted, seen["owners"])
    files: Files = {}
    commands: t.List[Command] = []
    for name in names:
        link, altname, mtu = seen["links"][name], wanted.get(name, ""), settings["mtu"]
        if altname or mtu:
            files[link_path(name)] = {"content": link_text(name, link, altname, mtu), "mode": "0644"}
        if altname and altname not in link["altnames"]:
            commands.append(["ip", "link", "property", "add", "dev", name, "altname", altname])
            after["links"][name]["altnames"] = [*link["altnames"], altname]
        if mtu and link["mtu"] != mtu:
            commands.append(["ip", "link", "set", "dev", name, "mtu", str(mtu)])
            after["links"][name]["mtu"] = mtu
    return files, commands


def plan_link_type(link_type: str, seen: Seen, after: HostState) -> t.Tuple[t.List[Command], t.List[str], t.List[str]]:
    """Commands that give the ports their link type, notes, and reasons to reboot."""
    commands, notes, reboot = [], [], []
    name, number, layer = LINK_TYPES[link_type]
    for pci, port in seen["ports"].items():
        if not port["tool"]:
            notes.append(f"{pci}: LINK_TYPE is unknown: the host has neither mlxconfig nor mstconfig.")
            continue
        if not port["types"]:
            notes.append(f"{pci}: {port['tool']} shows no LINK_TYPE, so the port can't change it.")
            continue
        which = port_of(pci, port["types"])
        if port["types"][which] != name:
            commands.append([port["tool"], "-d", pci, "-y", "set", f"LINK_TYPE_{which}={number}"])
            after["ports"][pci]["types"] = {**port["types"], which: name}
        if port["link_layer"] and port["link_layer"] != layer:
            reboot.append(f"{pci} runs as {port['link_layer']} until the host is rebooted.")
    return commands, notes, reboot


def plan_host(settings: Settings, seen: Seen) -> HostPlan:
    after: HostState = {
        "modules": list(seen["modules"]),
        "netns_mode": seen["netns_mode"],
        "links": {name: {**link, "qos": {**link["qos"]}} for name, link in seen["links"].items()},
        "ports": {pci: {**port} for pci, port in seen["ports"].items()},
    }
    files, commands = plan_links(settings, seen, after)
    if not settings["rdma"]:
        return HostPlan(after, files, commands, [], [], [])
    after["modules"] = wanted_modules(settings, seen["links"])
    if after["modules"]:
        files[MODULES_FILE] = {"content": modules_text(after["modules"]), "mode": "0644"}
    files[NETNS_FILE] = {"content": "options ib_core netns_mode=1\n", "mode": "0644"}
    if seen["netns_mode"] == "exclusive":
        commands.append(["rdma", "system", "set", "netns", "shared"])
        after["netns_mode"] = "shared"
    for name in netdevs(settings["links"]):
        after["links"][name]["roce_mode"] = dict.fromkeys(seen["links"][name]["roce_mode"], ROCE_V2)
    boot, notes = plan_qos(ports_of(settings["links"]), settings["qos"], seen["links"], after["links"])
    if boot:
        files[QOS_FILE] = {"content": qos_unit(boot), "mode": "0644"}
    reboot: t.List[str] = []
    if settings["link_type"]:
        changes, missing, reboot = plan_link_type(settings["link_type"], seen, after)
        commands, notes = commands + changes, notes + missing
    return HostPlan(after, files, commands, boot, notes, reboot)
