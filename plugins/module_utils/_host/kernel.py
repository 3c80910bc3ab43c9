# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Kernel modules, sysctls and swap: what runs now, and what the next boot brings."""

from __future__ import annotations

import os
import re
import typing as t

from ansible_collections.ipu.fabric.plugins.module_utils._common.result import FabricError, outcome
from ansible_collections.ipu.fabric.plugins.module_utils._host.systemd import file_diffs, read_file, write_file

if t.TYPE_CHECKING:
    from ansible.module_utils.basic import AnsibleModule

FSTAB = "/etc/fstab"
# A module that is built in, or was loaded by the host of a container, shows by what it brings.
EVIDENCE = {
    "overlay": ("/proc/filesystems", r"\boverlay$"),
    "br_netfilter": ("/proc/sys/net/bridge", None),
    "ip_tables": ("/proc/net/ip_tables_names", None),
    "nf_conntrack": ("/proc/sys/net/netfilter/nf_conntrack_max", None),
}


def modules_text(names: t.Sequence[str]) -> str:
    return "".join(f"{name}\n" for name in names)


def sysctl_text(values: t.Dict[str, str]) -> str:
    return "".join(f"{key} = {value}\n" for key, value in sorted(values.items()))


def fstab_without_swap(text: str) -> str:
    """The table with every swap line turned into a comment."""

    def line_without(line: str) -> str:
        fields = line.split()
        swap = len(fields) >= 3 and not fields[0].startswith("#") and fields[2] == "swap"
        return f"# {line}" if swap else line

    return "\n".join(line_without(line) for line in text.split("\n"))


def parse_swaps(text: str) -> t.List[str]:
    """Active swap devices from /proc/swaps."""
    return [line.split()[0].replace("\\040", " ") for line in text.splitlines()[1:] if line.strip()]


def sysctl_path(key: str) -> str:
    """Where a key lives. In keys dots part names, and a slash stands for a dot inside of one (an interface eth0.5)."""
    return "/proc/sys/" + key.translate(str.maketrans("./", "/."))


def normal(value: str) -> str:
    return " ".join(value.split())


def is_there(name: str, root: str = "") -> bool:
    """Whether the kernel has what a module brings, loaded or built in."""
    if os.path.isdir(f"{root}/sys/module/{name.replace('-', '_')}"):
        return True
    path, pattern = EVIDENCE.get(name, ("", None))
    if not path or not os.path.exists(root + path):
        return False
    if pattern is None:
        return True
    with open(root + path, encoding="utf-8") as handle:
        return bool(re.search(pattern, handle.read(), re.M))


def load(module: AnsibleModule, name: str) -> None:
    modprobe = module.get_bin_path("modprobe")
    if modprobe:
        code, out, err = module.run_command([modprobe, name])
        seen = (err or out).strip()
        if code == 0 or is_there(name):
            return
    else:
        seen = "no modprobe on this host (package kmod)"
    raise FabricError(
        f"The kernel has no {name}, and it could not be loaded.",
        f"modprobe {name}",
        seen,
        "Install the kernel's modules package and reboot into that kernel, or leave the module out of the list.",
    )


def read_sysctl(key: str) -> t.Optional[str]:
    try:
        with open(sysctl_path(key), encoding="utf-8") as handle:
            return normal(handle.read())
    except OSError:
        return None


def set_sysctl(key: str, value: str) -> None:
    try:
        with open(sysctl_path(key), "w", encoding="utf-8") as handle:
            handle.write(value)
    except OSError as error:
        raise FabricError(
            f"Could not set the sysctl {key} to {value}.",
            sysctl_path(key),
            str(error),
            "Load the kernel module that brings this key, or allow the host to write it.",
        ) from error


def active_swaps() -> t.List[str]:
    if not os.path.exists("/proc/swaps"):
        return []
    with open("/proc/swaps", encoding="utf-8") as handle:
        return parse_swaps(handle.read())


def wanted_files(
    params: t.Dict[str, t.Any], fstab: t.Optional[t.Dict[str, str]]
) -> t.Dict[str, t.Optional[t.Dict[str, str]]]:
    name = params["name"]
    files: t.Dict[str, t.Optional[t.Dict[str, str]]] = {}
    if params["modules"]:
        files[f"/etc/modules-load.d/{name}.conf"] = {"content": modules_text(params["modules"]), "mode": "0644"}
    if params["sysctl"]:
        # 99-z sorts behind what distributions ship under 99-.
        files[f"/etc/sysctl.d/99-z-{name}.conf"] = {"content": sysctl_text(params["sysctl"]), "mode": "0644"}
    if params["disable_swap"] and fstab:
        files[FSTAB] = {"content": fstab_without_swap(fstab["content"]), "mode": fstab["mode"]}
    return files


def apply(
    module: AnsibleModule, files: t.Dict[str, t.Any], now: t.Dict[str, t.Any], wanted: t.Dict[str, t.Any]
) -> None:
    for path, file in files.items():
        write_file(module, path, file["content"], file["mode"], backup=path == FSTAB)
    for name in wanted["modules"]:
        if name not in now["modules"]:
            load(module, name)
    for key, value in wanted["sysctl"].items():
        if read_sysctl(key) != value:
            set_sysctl(key, value)
    for device in now["swap"]:
        if device not in wanted["swap"]:
            module.run_command(["swapoff", device], check_rc=True)


def run(module: AnsibleModule) -> t.Dict[str, t.Any]:
    """The body of M(ipu.fabric.kernel_settings)."""
    params = module.params
    params["sysctl"] = {key: normal(str(value)) for key, value in params["sysctl"].items()}
    after_files = wanted_files(params, read_file(FSTAB))
    before_files = {path: read_file(path) for path in after_files}
    before = {
        "modules": [name for name in params["modules"] if is_there(name)],
        "sysctl": {key: read_sysctl(key) for key in params["sysctl"]},
        "swap": active_swaps(),
    }
    after = {
        "modules": params["modules"],
        "sysctl": params["sysctl"],
        "swap": [] if params["disable_swap"] else before["swap"],
    }
    changed_files = {path: file for path, file in after_files.items() if before_files[path] != file}
    if not module.check_mode:
        apply(module, changed_files, before, after)
    result = outcome({"files": before_files, "now": before}, {"files": after_files, "now": after})
    return {**result, "diff": [*file_diffs(before_files, after_files), {"before": before, "after": after}]}
