# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Look at a host's fabric NICs, and make of them what _rdma_host.py planned."""

from __future__ import annotations

import json
import os
import typing as t

from ansible_collections.ipu.fabric.plugins.module_utils._common.command import Done, find_program, run_program
from ansible_collections.ipu.fabric.plugins.module_utils._common.result import FabricError, outcome
from ansible_collections.ipu.fabric.plugins.module_utils._host import rdma_desired as plans
from ansible_collections.ipu.fabric.plugins.module_utils._host.kernel import is_there, load
from ansible_collections.ipu.fabric.plugins.module_utils._host.links import (
    Port,
    _driver_of,
    _names,
    _netns_mode,
    _pci_of,
    _read,
    read_ports,
)
from ansible_collections.ipu.fabric.plugins.module_utils._host.systemd import (
    file_diffs,
    read_file,
    systemctl,
    write_file,
)

if t.TYPE_CHECKING:
    from ansible.module_utils.basic import AnsibleModule

Facts = t.Dict[str, t.Any]

SYSFS = "/sys"
CONFIGFS = "/sys/kernel/config/rdma_cm"
DEFAULT_LINK_FILES = ("/usr/lib/systemd/network/99-default.link", "/lib/systemd/network/99-default.link")
ENABLED = f"/etc/systemd/system/multi-user.target.wants/{plans.QOS_UNIT}.service"
STATE = ("altnames", "mtu", "roce_mode", "qos", "ecn")  # what of a link can change


def execute(*argv: str) -> Done:
    """Run a program that has to succeed."""
    done = run_program(argv)
    if done.rc != 0:
        raise FabricError(
            "A setting of a fabric NIC could not be made.",
            " ".join(argv),
            (done.err or done.out).strip()[:300] or f"rc {done.rc}",
            "Mend what it says, or leave this setting out; a host that runs anew starts where this ended.",
        )
    return done


# ---- looking --------------------------------------------------------------------------------------------------------


def all_links() -> t.List[Facts]:
    found: t.List[Facts] = json.loads(execute("ip", "-j", "link", "show").out or "[]")
    return found


def udev_link_file(index: int) -> str:
    """The .link file that udev took for a NIC."""
    for line in _read("/run/udev/data", f"n{index}").splitlines():
        if line.startswith("E:ID_NET_LINK_FILE="):
            return line.partition("=")[2]
    return ""


def link_file(netdev: str, index: int) -> t.Tuple[str, t.List[str]]:
    """The .link file that would apply to a NIC without ours, and its settings."""
    ours = plans.link_path(netdev)
    applied = udev_link_file(index)
    default = next((path for path in DEFAULT_LINK_FILES if os.path.exists(path)), DEFAULT_LINK_FILES[0])
    path = plans.based_on((read_file(ours) or {}).get("content", "")) or (applied if applied != ours else "") or default
    return path, plans.link_section(_read(path)) or list(plans.DEFAULT_LINK)


def look_at_link(link: Facts, ports: t.Mapping[str, Port], params: Facts) -> Facts:
    netdev = link["ifname"]
    base = os.path.join(SYSFS, "class/net", netdev)
    own = _read(base, "addr_assign_type") == "0"  # the address is the NIC's own; nobody set or made it up
    path, settings = link_file(netdev, link["ifindex"])
    qos = params["qos"] if params["rdma"] else {}
    tool = qos_tool(netdev) if qos.get("pfc") is not None or qos.get("trust") else ""
    return {
        "mtu": link["mtu"],
        "altnames": link.get("altnames", []),
        "permanent_mac": link.get("permaddr") or (link.get("address", "") if own else ""),
        "driver": _driver_of(os.path.join(base, "device")),
        "link_file": path,
        "link_settings": settings,
        "roce_mode": roce_mode(ports[netdev]) if params["rdma"] and netdev in ports else {},
        "qos_tool": tool,
        "qos": read_qos(tool, netdev),
        "ecn": read_ecn(base) if qos.get("ecn") is not None else None,
    }


def qos_tool(netdev: str) -> str:
    """mlnx_qos or dcb, whichever answers for this NIC."""
    for argv in (["mlnx_qos", "-i", netdev], ["dcb", "pfc", "show", "dev", netdev]):
        if find_program(argv[0]) and run_program(argv).rc == 0:
            return find_program(argv[0])
    return ""


def read_qos(tool: str, netdev: str) -> Facts:
    if not tool:
        return {"pfc": [], "trust": ""}
    if tool.endswith("mlnx_qos"):
        return plans.parse_mlnx_qos(run_program([tool, "-i", netdev]).out)
    pfc = run_program([tool, "pfc", "show", "dev", netdev, "prio-pfc"])
    return plans.parse_dcb(pfc.out, run_program([tool, "apptrust", "show", "dev", netdev]).out)


def read_ecn(base: str) -> t.Optional[t.List[int]]:
    """Priorities with ECN both ways; None where the driver has no such settings."""
    ways = [os.path.join(base, "ecn", way, "enable") for way in ("roce_np", "roce_rp")]
    if not all(os.path.isdir(way) for way in ways):
        return None
    return [n for n in range(8) if all(_read(way, str(n)) == "1" for way in ways)]


def with_roce_mode(port: Port, mode: str = "") -> t.Dict[str, str]:
    """Read, or set, the RoCE mode that connections get. The entry is there only for as long as somebody keeps it."""
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
        return {f"{port.device}/{port.number}": _read(file)}
    except OSError as error:
        if not mode:  # a device without a choice
            return {}
        raise FabricError(
            f"The RoCE mode of {port.device} shall be {mode}.", place, str(error), "Does its firmware have RoCE v2?"
        ) from error
    finally:
        if mine and os.path.isdir(place):
            os.rmdir(place)


def roce_mode(port: Port) -> t.Dict[str, str]:
    return with_roce_mode(port)


def look_at_ports(params: Facts) -> t.Dict[str, Facts]:
    """Link types of the NICs at each PCI address, as their firmware has them and as they run."""
    if not params["link_type"] or not params["rdma"]:
        return {}
    tool = find_program("mlxconfig") or find_program("mstconfig")
    layers = {}
    for device in _names(SYSFS, "class/infiniband"):
        base = os.path.join(SYSFS, "class/infiniband", device)
        layers[_pci_of(os.path.join(base, "device"))] = _read(base, "ports/1/link_layer")
    found = {}
    for pci in dict.fromkeys(link["pci"] for link in params["links"] if link.get("pci")):
        text = run_program([tool, "-d", pci, "query"], timeout=60).out if tool else ""
        found[pci] = {"tool": tool, "types": plans.parse_link_types(text), "link_layer": layers.get(pci, "")}
    return found


def look(params: Facts) -> Facts:
    """All that the plan needs to know of this host."""
    links = all_links()
    wanted = plans.netdevs(params["links"])
    ports = read_ports(SYSFS) if params["rdma"] else {}
    seen: Facts = {
        "owners": {name: link["ifname"] for link in links for name in (link["ifname"], *link.get("altnames", ()))},
        "links": {link["ifname"]: look_at_link(link, ports, params) for link in links if link["ifname"] in wanted},
        "ports": look_at_ports(params),
        "netns_mode": _netns_mode(run_program, "/") if params["rdma"] else "",
        "modules": [],
    }
    seen["modules"] = [name for name in plans.wanted_modules(params, seen) if is_there(name)]
    return seen


# ---- making it so ---------------------------------------------------------------------------------------------------


def state(facts: Facts, enabled: bool) -> Facts:
    """What is compared, and shown as the difference."""
    return {
        "modules": facts["modules"],
        "netns_mode": facts["netns_mode"],
        "links": {name: {key: link[key] for key in STATE} for name, link in facts["links"].items()},
        "ports": {pci: port["types"] for pci, port in facts["ports"].items()},
        "qos_at_boot": enabled,
    }


def write(module: AnsibleModule, plan: plans.HostPlan, before: plans.Files) -> None:
    changed = {path: file for path, file in plan.files.items() if file and file != before[path]}
    for path, file in changed.items():
        write_file(module, path, file["content"], file["mode"])
    if plans.QOS_FILE in changed:
        systemctl(module, "daemon-reload")
    if plan.boot and not os.path.exists(ENABLED):
        systemctl(module, "enable", plans.QOS_UNIT)


def apply(module: AnsibleModule, plan: plans.HostPlan, seen: Facts) -> t.List[str]:
    """Do what was planned; returns why a reboot is needed beyond what the plan knew."""
    reboot = []
    for name in plan.after["modules"]:
        if name not in seen["modules"]:
            load(module, name)
    for argv in plan.commands:
        if argv[:3] != ["rdma", "system", "set"]:
            execute(*argv)
        elif run_program(argv).rc != 0:
            # The kernel refuses as soon as a network namespace exists.
            plan.after["netns_mode"] = seen["netns_mode"]
            reboot.append("RDMA devices are exclusive to network namespaces until the host is started anew.")
    ports = read_ports(SYSFS)
    for name, link in plan.after["links"].items():
        if link["roce_mode"] != seen["links"][name]["roce_mode"]:
            with_roce_mode(ports[name], plans.ROCE_V2)
    if any(
        plan.after["links"][name][key] != link[key] for name, link in seen["links"].items() for key in ("qos", "ecn")
    ):
        for argv in plan.boot:
            execute(*argv)
    return reboot


def run(module: AnsibleModule) -> Facts:
    """The body of M(ipu.fabric.rdma_host)."""
    params = module.params
    seen = look(params)
    plan = plans.plan_host(params, seen)
    files_before = {path: read_file(path) for path in plan.files}
    before = state(seen, os.path.exists(ENABLED))
    reboot = list(plan.reboot)
    if not module.check_mode:
        write(module, plan, files_before)
        reboot += apply(module, plan, seen)
    after = state(plan.after, bool(plan.boot) or before["qos_at_boot"])
    for text in [*plan.notes, *(f"A reboot is needed: {reason}" for reason in reboot)]:
        module.warn(text)
    result = outcome(
        {"files": files_before, "host": before}, {"files": plan.files, "host": after}, reboot=reboot, notes=plan.notes
    )
    return {**result, "diff": [*file_diffs(files_before, plan.files), {"before": before, "after": after}]}
