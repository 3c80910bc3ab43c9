# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a host needs so that its fabric NICs carry RDMA for pods: a plan out of what was asked and what was seen. Pure.

`Seen` is what _rdma_host_apply.py reads from a host; `HostPlan` is what it then does.
"""

from __future__ import annotations

import re
import typing as t

from ansible_collections.ipu.fabric.plugins.module_utils._common.result import FabricError
from ansible_collections.ipu.fabric.plugins.module_utils._host.kernel import modules_text

Facts = t.Dict[str, t.Any]
Files = t.Dict[str, t.Optional[t.Dict[str, str]]]

MODULES_FILE = "/etc/modules-load.d/rdma-host.conf"
NETNS_FILE = "/etc/modprobe.d/zz-rdma-host.conf"  # modprobe takes the last of several values
QOS_UNIT = "rdma-host-qos"
QOS_FILE = f"/etc/systemd/system/{QOS_UNIT}.service"
ROCE_V2 = "RoCE v2"
# The RDMA driver that belongs to a NIC's driver; not every system loads it by itself.
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
# What systemd ships, for hosts that lack the file.
DEFAULT_LINK = (
    "NamePolicy=keep kernel database onboard slot path",
    "AlternativeNamesPolicy=database onboard slot path",
    "MACAddressPolicy=persistent",
)


class HostPlan(t.NamedTuple):
    """after: the state that is wanted; commands: what leads there, besides modules and files; boot: what each boot
    has to do again; notes: what was asked for and can't be had; reboot: why the host has to be started anew."""

    after: Facts
    files: Files
    commands: t.List[t.List[str]]
    boot: t.List[t.List[str]]
    notes: t.List[str]
    reboot: t.List[str]


# ---- what programs and files say ------------------------------------------------------------------------------------


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
    """The file that one of ours stands for; empty when the text is none of ours."""
    found = re.search(r"^# In place of (\S+)$", text, re.MULTILINE)
    return found.group(1) if found else ""


def parse_mlnx_qos(text: str) -> Facts:
    """Priorities with PFC, and what the NIC takes the priority from (dscp or pcp), from `mlnx_qos -i DEV`."""
    trust = re.search(r"^Priority trust state:\s*(\w+)", text, re.MULTILINE)
    enabled = re.search(r"^PFC configuration:\s*\n\s*priority[ \t\d]+\n\s*enabled([ \t01]+)$", text, re.MULTILINE)
    flags = enabled.group(1).split() if enabled else []
    return {"pfc": [index for index, flag in enumerate(flags) if flag == "1"], "trust": trust.group(1) if trust else ""}


def parse_dcb(pfc: str, trust: str) -> Facts:
    """The same from `dcb pfc show dev DEV prio-pfc` and `dcb apptrust show dev DEV`; the latter may know nothing."""
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


def netdevs(links: t.Sequence[Facts]) -> t.List[str]:
    """The netdevs of links, what lies below a bond or VLAN first."""
    names = [name for link in links for name in (*(link.get("rdma_netdevs") or ()), link.get("netdev") or "")]
    return list(dict.fromkeys(filter(None, names)))


def ports_of(links: t.Sequence[Facts]) -> t.List[str]:
    """The netdevs that are NICs: bonds and VLANs have no queues of their own."""
    return list(
        dict.fromkeys(name for link in links for name in link.get("rdma_netdevs") or [link.get("netdev")] if name)
    )


def altnames(links: t.Sequence[Facts]) -> t.Dict[str, str]:
    """The further name of each netdev that shall have one."""
    found = {link["netdev"]: link["altname"] for link in links if link.get("netdev") and link.get("altname")}
    return {netdev: name for netdev, name in found.items() if name != netdev}


def link_path(netdev: str) -> str:
    # The first that matches counts, and installers write 10-*.link.
    return f"/etc/systemd/network/00-fabric-{netdev}.link"


def link_text(netdev: str, seen: Facts, altname: str, mtu: int) -> str:
    """A .link file for one NIC. It replaces the one that applied so far, so it has all the settings of that one."""
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


def refuse_names(wanted: t.Mapping[str, str], owners: t.Mapping[str, str]) -> None:
    for netdev, name in wanted.items():
        owner = owners.get(name, netdev)
        if owner != netdev:
            raise FabricError(
                f"{netdev} shall get the further name {name}.",
                netdev,
                f"{owner} has it",
                f"ip link property del dev {owner} altname {name}, or choose another name.",
            )


def refuse_missing(names: t.Sequence[str], owners: t.Mapping[str, str]) -> None:
    there = sorted(set(owners.values()))
    missing = [name for name in names if name not in there]
    if missing:
        raise FabricError(
            "The fabric NICs of this host were looked for.",
            ", ".join(missing),
            f"the host has {', '.join(there) or 'no NIC'}",
            "Run the plan again: it finds the NICs anew.",
        )


# ---- QoS ------------------------------------------------------------------------------------------------------------


def qos_commands(netdev: str, want: Facts, seen: Facts) -> t.Tuple[t.List[t.List[str]], t.List[str]]:
    """Commands that set PFC and trust with the tool that this NIC has, and what can't be set."""
    tool, notes, commands = seen["qos_tool"], [], []
    pfc, trust = want.get("pfc"), want.get("trust")
    if not tool:
        return [], [f"{netdev}: PFC and trust stay as they are, neither mlnx_qos nor dcb can set them."]
    if tool.endswith("mlnx_qos"):
        words = ["--pfc", ",".join(str(int(n in pfc)) for n in range(8))] if pfc is not None else []
        words += ["--trust", trust] if trust else []
        return ([[tool, "-i", netdev, *words]] if words else []), []
    if pfc is not None:
        commands.append([tool, "pfc", "set", "dev", netdev, "prio-pfc", "all:off", *(f"{n}:on" for n in pfc)])
    if trust and not seen["qos"]["trust"]:
        notes.append(f"{netdev}: trust stays as it is, its driver lets dcb not set it; mlnx_qos may.")
    elif trust:
        commands.append([tool, "apptrust", "set", "dev", netdev, "order", trust])
    return commands, notes


def ecn_commands(netdev: str, priorities: t.Sequence[int]) -> t.List[t.List[str]]:
    """Both ways: a NIC notices congestion (np), and reacts to it (rp)."""
    commands = []
    for value in (1, 0):
        chosen = [n for n in range(8) if (n in priorities) == bool(value)]
        files = [f"/sys/class/net/{netdev}/ecn/{way}/enable/{n}" for n in chosen for way in ("roce_np", "roce_rp")]
        commands += [["/bin/sh", "-c", f"echo {value} | tee {' '.join(files)}"]] if files else []
    return commands


def plan_qos(
    names: t.Sequence[str], want: Facts, links: Facts, after: Facts
) -> t.Tuple[t.List[t.List[str]], t.List[str]]:
    """Commands of all NICs, whether needed now or at the next boot; `after` gets what they bring."""
    boot: t.List[t.List[str]] = []
    notes: t.List[str] = []
    for name in names:
        if want.get("pfc") is not None or want.get("trust"):
            commands, missing = qos_commands(name, want, links[name])
            boot += commands
            notes += missing
            can = bool(links[name]["qos_tool"])
            qos = after[name]["qos"]
            qos["pfc"] = want["pfc"] if can and want.get("pfc") is not None else qos["pfc"]
            qos["trust"] = want["trust"] if can and want.get("trust") and not missing else qos["trust"]
        if want.get("ecn") is not None and links[name]["ecn"] is None:
            notes.append(f"{name}: ECN stays as it is, its driver has no settings for it.")
        elif want.get("ecn") is not None:
            boot += ecn_commands(name, want["ecn"])
            after[name]["ecn"] = want["ecn"]
    return boot, notes


def unit_word(word: str) -> str:
    return f'"{word}"' if " " in word else word


def qos_unit(commands: t.Sequence[t.Sequence[str]]) -> str:
    """A service that does it again at each boot: neither tool keeps anything."""
    lines = ["[Unit]", "Description=PFC, trust and ECN of fabric NICs (ipu.fabric.rdma_host)"]
    lines += ["After=network.target openibd.service", "", "[Service]", "Type=oneshot", "RemainAfterExit=yes"]
    lines += ["ExecStart=" + " ".join(unit_word(word) for word in command) for command in commands]
    return "\n".join([*lines, "", "[Install]", "WantedBy=multi-user.target", ""])


# ---- the plan -------------------------------------------------------------------------------------------------------


def wanted_modules(params: Facts, seen: Facts) -> t.List[str]:
    """What was asked for, and the RDMA driver of each fabric NIC."""
    if not params["rdma"]:
        return []
    drivers = {seen["links"][name]["driver"] for name in netdevs(params["links"]) if name in seen["links"]}
    return list(
        dict.fromkeys([*params["modules"], *sorted(RDMA_DRIVERS[name] for name in drivers & set(RDMA_DRIVERS))])
    )


def plan_links(params: Facts, seen: Facts, after: Facts) -> t.Tuple[Files, t.List[t.List[str]]]:
    """Further names and MTU: the files that keep them, and the commands that set them now."""
    names, wanted = netdevs(params["links"]), altnames(params["links"])
    refuse_missing(names, seen["owners"])
    refuse_names(wanted, seen["owners"])
    files: Files = {}
    commands: t.List[t.List[str]] = []
    for name in names:
        link, altname, mtu = seen["links"][name], wanted.get(name, ""), params["mtu"]
        if altname or mtu:
            files[link_path(name)] = {"content": link_text(name, link, altname, mtu), "mode": "0644"}
        if altname and altname not in link["altnames"]:
            commands.append(["ip", "link", "property", "add", "dev", name, "altname", altname])
            after["links"][name]["altnames"] = [*link["altnames"], altname]
        if mtu and link["mtu"] != mtu:
            commands.append(["ip", "link", "set", "dev", name, "mtu", str(mtu)])
            after["links"][name]["mtu"] = mtu
    return files, commands


def plan_link_type(params: Facts, seen: Facts, after: Facts) -> t.Tuple[t.List[t.List[str]], t.List[str], t.List[str]]:
    """Commands, notes and reasons to reboot that make the ports what they shall be."""
    commands, notes, reboot = [], [], []
    name, number, layer = LINK_TYPES[params["link_type"]]
    for pci, port in seen["ports"].items():
        if not port["tool"]:
            notes.append(f"{pci}: LINK_TYPE is not looked at, there is neither mlxconfig nor mstconfig.")
            continue
        if not port["types"]:
            notes.append(f"{pci}: {port['tool']} shows no LINK_TYPE, so the port can't change it.")
            continue
        which = port_of(pci, port["types"])
        if port["types"][which] != name:
            commands.append([port["tool"], "-d", pci, "-y", "set", f"LINK_TYPE_{which}={number}"])
            after["ports"][pci]["types"] = {**port["types"], which: name}
        if port["link_layer"] and port["link_layer"] != layer:
            reboot.append(f"{pci} runs as {port['link_layer']} until the host is started anew.")
    return commands, notes, reboot


def plan_host(params: Facts, seen: Facts) -> HostPlan:
    """params: options of the module rdma_host; seen: see _rdma_host_apply.look()."""
    after: Facts = {
        "modules": list(seen["modules"]),
        "netns_mode": seen["netns_mode"],
        "links": {name: {**link, "qos": dict(link["qos"])} for name, link in seen["links"].items()},
        "ports": {pci: dict(port) for pci, port in seen["ports"].items()},
    }
    files, commands = plan_links(params, seen, after)
    if not params["rdma"]:
        return HostPlan(after, files, commands, [], [], [])
    after["modules"] = wanted_modules(params, seen)
    if after["modules"]:
        files[MODULES_FILE] = {"content": modules_text(after["modules"]), "mode": "0644"}
    files[NETNS_FILE] = {"content": "options ib_core netns_mode=1\n", "mode": "0644"}
    if seen["netns_mode"] == "exclusive":
        commands.append(["rdma", "system", "set", "netns", "shared"])
        after["netns_mode"] = "shared"
    for name in netdevs(params["links"]):
        after["links"][name]["roce_mode"] = dict.fromkeys(seen["links"][name]["roce_mode"], ROCE_V2)
    boot, notes = plan_qos(ports_of(params["links"]), params["qos"], seen["links"], after["links"])
    if boot:
        files[QOS_FILE] = {"content": qos_unit(boot), "mode": "0644"}
    reboot: t.List[str] = []
    if params["link_type"]:
        changes, missing, reboot = plan_link_type(params, seen, after)
        commands, notes = commands + changes, notes + missing
    return HostPlan(after, files, commands, boot, notes, reboot)
