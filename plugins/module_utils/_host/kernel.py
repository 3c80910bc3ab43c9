# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Kernel modules, sysctls and swap: the running state, and that of the next boot.

Why not ansible.posix and community.general: here one call per host is enough, check mode is accurate on a bare host,
and the standard library suffices.
"""

from __future__ import annotations

import os
import re
import typing as t

from .._common.command import run_program
from .._common.result import FabricError, outcome, printed_by
from .facts import parse_swaps
from .files import MARK, File, Files, file_diffs, read_file, read_text, write_file
from .swap import mask_units, read_swap_units

if t.TYPE_CHECKING:
    from ansible.module_utils.basic import AnsibleModule

FSTAB = "/etc/fstab"
SWAPOFF_SECONDS = 600  # everything swapped out is read back into memory
# The effect that shows a module that is built in, or that the host of a container loaded.
EVIDENCE = {
    "overlay": ("/proc/filesystems", r"\boverlay$"),
    "br_netfilter": ("/proc/sys/net/bridge", None),
    "ip_tables": ("/proc/net/ip_tables_names", None),
    "nf_conntrack": ("/proc/sys/net/netfilter/nf_conntrack_max", None),
}


class Settings(t.TypedDict):
    """Options of kernel_settings."""

    name: str
    modules: t.List[str]
    sysctl: t.Dict[str, str]
    disable_swap: bool


class KernelState(t.TypedDict):
    """The changeable state of a running kernel."""

    modules: t.List[str]
    sysctl: t.Dict[str, t.Optional[str]]  # None where the kernel has no such key
    swap: t.List[str]  # active swap
    swap_units: t.List[str]  # units that turn swap on at the next boot


# Keys with a minimum. A container with its own network namespace has no neighbour limits.
AT_LEAST = ("fs.inotify.", "net.ipv4.neigh.default.", "net.ipv6.neigh.default.")


def modules_text(names: t.Sequence[str]) -> str:
    return "".join(f"{name}\n" for name in names)


def sysctl_text(values: t.Dict[str, str]) -> str:
    return f"{MARK}\n" + "".join(f"{key} = {value}\n" for key, value in sorted(values.items()))


def fstab_without_swap(text: str) -> str:
    """fstab with every swap line commented out."""

    def line_without(line: str) -> str:
        fields = line.split()
        swap = len(fields) >= 3 and not fields[0].startswith("#") and fields[2] == "swap"
        return f"# {line}" if swap else line

    return "\n".join(line_without(line) for line in text.split("\n"))


def sysctl_path(key: str) -> str:
    """The path of a key. Dots in keys separate parts, and a slash replaces a dot within one (an interface eth0.5)."""
    return "/proc/sys/" + key.translate(str.maketrans("./", "/."))


def normal_value(value: str) -> str:
    return " ".join(value.split())


def has_module(name: str, root: str = "") -> bool:
    """Whether the kernel has what a module provides, loaded or built in."""
    if os.path.isdir(f"{root}/sys/module/{name.replace('-', '_')}"):
        return True
    path, pattern = EVIDENCE.get(name, ("", None))
    if not path or not os.path.exists(root + path):
        return False
    return pattern is None or bool(re.search(pattern, read_text(root + path), re.MULTILINE))


def load_module(module: AnsibleModule, name: str) -> None:
    modprobe = module.get_bin_path("modprobe")
    if modprobe:
        code, out, err = module.run_command([modprobe, name])
        seen = (err or out).strip()
        if code == 0 or has_module(name):
            return
    else:
        seen = "no modprobe on this host (package kmod)"
    raise FabricError(
        f"The kernel has no module {name}, and it could not be loaded.",
        f"modprobe {name}",
        seen,
        "Install the kernel's modules package and reboot into that kernel, or leave the module out of the list.",
        code="missing-requirement",
    )


def read_sysctl(key: str) -> t.Optional[str]:
    try:
        with open(sysctl_path(key), encoding="utf-8") as handle:
            return normal_value(handle.read())
    except OSError:
        return None


def raised(key: str, value: str) -> str:
    """The value for a key; for a minimum, the host's own value if that is higher."""
    current = read_sysctl(key) or ""
    is_higher = key.startswith(AT_LEAST) and current.isdecimal() and value.isdecimal() and int(current) > int(value)
    return current if is_higher else value


def set_sysctl(key: str, value: str) -> None:
    try:
        with open(sysctl_path(key), "w", encoding="utf-8") as handle:
            handle.write(value)
    except OSError as error:
        raise FabricError(
            f"Could not set the sysctl {key} to {value}.",
            sysctl_path(key),
            str(error),
            "Load the kernel module that provides this key, or make the key writable on this host.",
            code="command-failed",
        ) from error


def active_swaps() -> t.List[str]:
    return parse_swaps(read_text("/proc/swaps"))


def turn_off(device: str) -> None:
    printed_by(
        run_program(["swapoff", device], SWAPOFF_SECONDS),
        SWAPOFF_SECONDS,
        "Swap could not be turned off.",
        f"swapoff {device}",
        "Stop programs that use much memory, or add memory to the host. Then run again.",
    )


def wanted_files(settings: Settings, fstab: t.Optional[File]) -> t.Dict[str, File]:
    name = settings["name"]
    files: t.Dict[str, File] = {}
    if settings["modules"]:
        content = f"{MARK}\n{modules_text(settings['modules'])}"
        files[f"/etc/modules-load.d/{name}.conf"] = {"content": content, "mode": "0644"}
    if settings["sysctl"]:
        # 99-z sorts after the 99- files that distributions ship.
        files[f"/etc/sysctl.d/99-z-{name}.conf"] = {"content": sysctl_text(settings["sysctl"]), "mode": "0644"}
    if settings["disable_swap"] and fstab:
        files[FSTAB] = {"content": fstab_without_swap(fstab["content"]), "mode": fstab["mode"]}
    return files


def change_kernel(module: AnsibleModule, files: t.Mapping[str, File], before: KernelState, settings: Settings) -> None:
    for path, file in files.items():
        write_file(module, path, file["content"], file["mode"], backup=MARK not in read_text(path))
    for name in settings["modules"]:
        if name not in before["modules"]:
            load_module(module, name)
    for key, value in settings["sysctl"].items():
        if read_sysctl(key) != value:
            set_sysctl(key, value)
    if settings["disable_swap"]:
        if before["swap_units"] or FSTAB in files:
            mask_units(module, before["swap_units"])
        for device in active_swaps():
            turn_off(device)


def apply_kernel_settings(module: AnsibleModule) -> t.Dict[str, object]:
    """The body of M(ipu.fabric.kernel_settings)."""
    sysctl = {
        key: raised(key, normal_value(str(value)))
        for key, value in module.params["sysctl"].items()
        if not key.startswith(AT_LEAST) or read_sysctl(key) is not None
    }
    given: Settings = module.params
    settings: Settings = {**given, "sysctl": sysctl}
    wanted = wanted_files(settings, read_file(FSTAB))
    files_before: Files = {path: read_file(path) for path in wanted}
    files_after: Files = {**wanted}
    before: KernelState = {
        "modules": [name for name in settings["modules"] if has_module(name)],
        "sysctl": {key: read_sysctl(key) for key in sysctl},
        "swap": active_swaps(),
        "swap_units": read_swap_units(),
    }
    after: KernelState = {
        "modules": settings["modules"],
        "sysctl": {**sysctl},
        "swap": [] if settings["disable_swap"] else before["swap"],
        "swap_units": [] if settings["disable_swap"] else before["swap_units"],
    }
    changed = {path: file for path, file in wanted.items() if files_before[path] != file}
    if not module.check_mode:
        change_kernel(module, changed, before, settings)
    result = outcome({"files": files_before, "kernel": before}, {"files": files_after, "kernel": after})
    return {**result, "diff": [*file_diffs(files_before, files_after), {"before": before, "after": after}]}
