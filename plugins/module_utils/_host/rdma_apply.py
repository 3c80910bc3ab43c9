# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads the state of a host's fabric NICs, and applies what rdma_desired.py plans for them."""

from __future__ import annotations

import json
import os
import typing as t

from .._common.command import Done, find_program, run_program
from .._common.result import FabricError, outcome
from . import rdma_desired as plans
from .files import Files, file_diffs, read_file, read_text, write_file
from .kernel import has_module, load_module
from .kubelets import kubelet_kubectl, node_name
from .links import Port, read_netns_mode, read_ports
from .sysfs import driver_name, list_names, pci_address, read_attribute
from .systemd import systemctl

if t.TYPE_CHECKING:
    from ansible.module_utils.basic import AnsibleModule

SYSFS = "/sys"
CONFIGFS = "/sys/kernel/config/rdma_cm"
DEFAULT_LINK_FILES = ("/usr/lib/systemd/network/99-default.link", "/lib/systemd/network/99-default.link")
ENABLED = f"/etc/systemd/system/multi-user.target.wants/{plans.QOS_UNIT}.service"


class IpLink(t.TypedDict, total=False):
    """A device in the JSON of `ip link`."""

    ifname: str
    ifindex: int
    mtu: int
    altnames: t.List[str]
    permaddr: str
    address: str


def execute(*argv: str) -> Done:
    """Run a program that must succeed."""
    done = run_program(argv)
    if done.rc != 0:
        raise FabricError(
            "Could not change a fabric NIC.",
            " ".join(argv),
            (done.err or done.out).strip()[:300] or f"rc {done.rc}",
            "Fix what it reports, or leave this setting out, then run again: it continues from here.",
            code=done.code,
        )
    return done


# ---- reading --------------------------------------------------------------------------------------------------------


def list_links() -> t.List[IpLink]:
    found: t.List[IpLink] = json.loads(execute("ip", "-j", "link", "show").out or "[]")
    return found


def udev_link_file(index: int) -> str:
    """The .link file that udev applied to a NIC."""
    for line in read_text(f"/run/udev/data/n{index}").splitlines():
        if line.startswith("E:ID_NET_LINK_FILE="):
            return line.partition("=")[2]
    return ""


def link_file(netdev: str, index: int) -> t.Tuple[str, t.List[str]]:
    """The .link file that would apply to a NIC without ours, and its settings."""
    ours = plans.link_path(netdev)
    applied = udev_link_file(index)
    default = next((path for path in DEFAULT_LINK_FILES if os.path.exists(path)), DEFAULT_LINK_FILES[0])
    path = plans.based_on(read_text(ours)) or (applied if applied != ours else "") or default
    return path, plans.link_section(read_text(path)) or list(plans.DEFAULT_LINK)


def read_nic(link: IpLink, ports: t.Mapping[str, Port], settings: plans.Settings) -> plans.NicState:
    netdev = link["ifname"]
    base = os.path.join(SYSFS, "class/net", netdev)
    own = read_attribute(base, "addr_assign_type") == "0"  # the NIC's permanent address: neither set nor random
    path, link_settings = link_file(netdev, link["ifindex"])
    qos = settings["qos"] if settings["rdma"] else plans.QosSettings()
    tool = qos_tool(netdev) if qos.get("pfc") is not None or qos.get("trust") else ""
    return {
        "mtu": link["mtu"],
        "altnames": link.get("altnames", []),
        "permanent_mac": link.get("permaddr") or (link.get("address", "") if own else ""),
        "driver": driver_name(os.path.join(base, "device")),
        "link_file": path,
        "link_settings": link_settings,
        "roce_mode": access_roce_mode(ports[netdev]) if settings["rdma"] and netdev in ports else {},
        "qos_tool": tool,
        "qos": read_qos(tool, netdev),
        "ecn": read_ecn(base) if qos.get("ecn") is not None else None,
    }


def qos_tool(netdev: str) -> str:
    """mlnx_qos or dcb, whichever works with this NIC."""
    for argv in (["mlnx_qos", "-i", netdev], ["dcb", "pfc", "show", "dev", netdev]):
        if find_program(argv[0]) and run_program(argv).rc == 0:
            return find_program(argv[0])
    return ""


def read_qos(tool: str, netdev: str) -> plans.Qos:
    if not tool:
        return {"pfc": [], "trust": ""}
    if tool.endswith("mlnx_qos"):
        return plans.parse_mlnx_qos(run_program([tool, "-i", netdev]).out)
    pfc = run_program([tool, "pfc", "show", "dev", netdev, "prio-pfc"])
    return plans.parse_dcb(pfc.out, run_program([tool, "apptrust", "show", "dev", netdev]).out)


def read_ecn(base: str) -> t.Optional[t.List[int]]:
    """Priorities with ECN in both directions; None if the driver has no such settings."""
    ways = [os.path.join(base, "ecn", way, "enable") for way in ("roce_np", "roce_rp")]
    if not all(os.path.isdir(way) for way in ways):
        return None
    return [n for n in range(8) if all(read_attribute(way, str(n)) == "1" for way in ways)]


def access_roce_mode(port: Port, mode: str = "") -> t.Dict[str, str]:
    """Read or set the RoCE mode of new connections. The configfs entry lasts as long as its directory."""
    place = os.path.join(CONFIGFS, port.device)
    if port.link_layer != "Ethernet" or not os.path.isdir(CONFIGFS):
        return {}
    mine = not os.path.isdir(place)
    try:
        if mine:
            os.mkdir(place)
        file = os.path.join(place, "ports", str(port.number), "default_roce_mode")
        if mode:
            with open(file, "w", encoding="utf-8") as stream:
                stream.write(mode)
        return {f"{port.device}/{port.number}": read_attribute(file)}
    except OSError as error:
        if not mode:  # a device without this choice
            return {}
        raise FabricError(
            f"Could not set the RoCE mode of {port.device} to {mode}.",
            place,
            str(error),
            "See whether its firmware has RoCE v2.",
            code="command-failed",
        ) from error
    finally:
        if mine and os.path.isdir(place):
            os.rmdir(place)


def read_link_types(settings: plans.Settings) -> t.Dict[str, plans.PortState]:
    """Link types of the NICs at each PCI address, in the firmware and as running."""
    if not settings["link_type"] or not settings["rdma"]:
        return {}
    tool = find_program("mlxconfig") or find_program("mstconfig")
    layers = {}
    for device in list_names(SYSFS, "class/infiniband"):
        base = os.path.join(SYSFS, "class/infiniband", device)
        layers[pci_address(os.path.join(base, "device"))] = read_attribute(base, "ports/1/link_layer")
    found: t.Dict[str, plans.PortState] = {}
    for pci in dict.fromkeys(filter(None, (link.get("pci") for link in settings["links"]))):
        text = run_program([tool, "-d", pci, "query"], timeout=60).out if tool else ""
        found[pci] = {"tool": tool, "types": plans.parse_link_types(text), "link_layer": layers.get(pci, "")}
    return found


def read_state(settings: plans.Settings) -> plans.Seen:
    """All of this host's state that the plan needs."""
    links = list_links()
    wanted = plans.netdevs(settings["links"])
    ports = read_ports(SYSFS) if settings["rdma"] else {}
    nics = {link["ifname"]: read_nic(link, ports, settings) for link in links if link["ifname"] in wanted}
    return {
        "owners": {name: link["ifname"] for link in links for name in (link["ifname"], *link.get("altnames", ()))},
        "links": nics,
        "ports": read_link_types(settings),
        "netns_mode": read_netns_mode(run_program, "/") if settings["rdma"] else "",
        "modules": [name for name in plans.wanted_modules(settings, nics) if has_module(name)],
    }


# ---- changing -----------------------------------------------------------------------------------------------------


def compared(state: plans.HostState, qos_at_boot: bool) -> t.Dict[str, object]:
    """The changeable state of a host, as shown in the diff."""
    links = {
        name: {
            "altnames": nic["altnames"],
            "mtu": nic["mtu"],
            "roce_mode": nic["roce_mode"],
            "qos": nic["qos"],
            "ecn": nic["ecn"],
        }
        for name, nic in state["links"].items()
    }
    ports = {pci: port["types"] for pci, port in state["ports"].items()}
    modules, netns_mode = state["modules"], state["netns_mode"]
    return {"modules": modules, "netns_mode": netns_mode, "links": links, "ports": ports, "qos_at_boot": qos_at_boot}


def write_files(module: AnsibleModule, plan: plans.HostPlan, before: Files) -> None:
    changed = {path: file for path, file in plan.files.items() if file and file != before[path]}
    for path, file in changed.items():
        write_file(module, path, file["content"], file["mode"])
    if plans.QOS_FILE in changed:
        systemctl(module, "daemon-reload")
    if plan.boot and not os.path.exists(ENABLED):
        systemctl(module, "enable", plans.QOS_UNIT)


def change_host(module: AnsibleModule, plan: plans.HostPlan, seen: plans.Seen) -> t.List[str]:
    """Carry out the plan; returns reasons for a reboot that the plan could not foresee."""
    reboot = []
    for name in plan.after["modules"]:
        if name not in seen["modules"]:
            load_module(module, name)
    for argv in plan.commands:
        if argv[:3] != ["rdma", "system", "set"]:
            execute(*argv)
        elif run_program(argv).rc != 0:
            # The kernel refuses once a network namespace exists.
            plan.after["netns_mode"] = seen["netns_mode"]
            reboot.append("RDMA devices are exclusive to network namespaces until the host is rebooted.")
    ports = read_ports(SYSFS)
    after = plan.after["links"]
    for name, nic in after.items():
        if nic["roce_mode"] != seen["links"][name]["roce_mode"]:
            access_roce_mode(ports[name], plans.ROCE_V2)
    if any(after[name]["qos"] != nic["qos"] or after[name]["ecn"] != nic["ecn"] for name, nic in seen["links"].items()):
        for argv in plan.boot:
            execute(*argv)
    return reboot


def prepare_host(module: AnsibleModule) -> t.Dict[str, object]:
    """The body of M(ipu.fabric.rdma_host)."""
    settings: plans.Settings = module.params
    seen = read_state(settings)
    plan = plans.plan_host(settings, seen)
    files_before: Files = {path: read_file(path) for path in plan.files}
    qos_at_boot = os.path.exists(ENABLED)
    before = compared(seen, qos_at_boot)
    reboot = list(plan.reboot)
    if not module.check_mode:
        write_files(module, plan, files_before)
        reboot += change_host(module, plan, seen)
    after = compared(plan.after, bool(plan.boot) or qos_at_boot)
    for text in [*plan.notes, *(f"A reboot is needed: {reason}" for reason in reboot)]:
        module.warn(text)
    result = outcome(
        {"files": files_before, "host": before},
        {"files": plan.files, "host": after},
        reboot=reboot,
        notes=plan.notes,
        node=node_name(module.params["node_name"]) if kubelet_kubectl() else "",
        machine_id=read_text("/etc/machine-id").strip(),
    )
    return {**result, "diff": [*file_diffs(files_before, plan.files), {"before": before, "after": after}]}
