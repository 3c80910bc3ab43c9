# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Files, and the systemd units that read them.

A unit is stale when its main process started before one of its files was written. This needs no memory of an earlier
task, so that a run that was killed between writing a file and restarting the unit is made good by the next one.
"""

from __future__ import annotations

import os
import time
import typing as t

from ansible_collections.ipu.fabric.plugins.module_utils._common.result import FabricError, outcome

if t.TYPE_CHECKING:
    from ansible.module_utils.basic import AnsibleModule

PROPERTIES = (
    "Id,LoadState,ActiveState,UnitFileState,NeedDaemonReload,ExecMainStartTimestampMonotonic,DropInPaths,LimitMEMLOCK"
)
SYSTEMD_DIRECTORIES = ("/etc/systemd/", "/run/systemd/")

Unit = t.Dict[str, str]
Files = t.Dict[str, t.Optional[t.Dict[str, str]]]


def parse_show(text: str) -> t.Dict[str, Unit]:
    """Units by name from the output of systemctl show: blocks of KEY=VALUE with an empty line between."""
    blocks = [dict(line.split("=", 1) for line in block.splitlines() if "=" in line) for block in text.split("\n\n")]
    return {block["Id"].rsplit(".service", 1)[0]: block for block in blocks if "Id" in block}


def is_stale(unit: Unit, file_times: t.Iterable[float], now: float, monotonic: float) -> bool:
    """Whether the running process of a unit can't have read what its files say now."""
    if unit.get("ActiveState") not in ("active", "reloading"):
        return False
    started = now - monotonic + int(unit.get("ExecMainStartTimestampMonotonic") or 0) / 1e6
    return unit.get("NeedDaemonReload") == "yes" or any(written > started for written in file_times)


def unit_state(unit: Unit, stale: bool) -> t.Dict[str, bool]:
    return {
        "enabled": unit.get("UnitFileState") in ("enabled", "enabled-runtime", "static", "indirect", "generated"),
        "started": unit.get("ActiveState") in ("active", "activating", "reloading"),
        "stale": stale,
    }


def wanted_state(seen: t.Dict[str, bool], want: t.Dict[str, t.Any]) -> t.Dict[str, bool]:
    """What a unit becomes: it is enabled and started where that is asked, and never left stale."""
    return {
        "enabled": seen["enabled"] or bool(want.get("enabled", True)),
        "started": seen["started"] or bool(want.get("started", True)),
        "stale": False,
    }


def steps(seen: t.Dict[str, bool], wanted: t.Dict[str, bool]) -> t.List[str]:
    """The systemctl verbs that lead from one state to the other."""
    verbs = ["enable"] if wanted["enabled"] and not seen["enabled"] else []
    if seen["stale"]:
        return [*verbs, "restart"]
    return verbs + (["start"] if wanted["started"] and not seen["started"] else [])


def show(module: AnsibleModule, names: t.Sequence[str]) -> t.Dict[str, Unit]:
    """Properties of units; one that does not exist has LoadState not-found. Empty where systemd does not run."""
    if not names or not os.path.isdir("/run/systemd/system"):
        return {}
    services = [f"{name}.service" for name in names]
    return parse_show(module.run_command(["systemctl", "show", "--property", PROPERTIES, *services])[1])


def stale_units(units: t.Dict[str, Unit], readers: t.Mapping[str, t.Sequence[str]]) -> t.Dict[str, bool]:
    """For each unit whether it runs on old files; `readers` names files that a unit reads beside its drop-ins."""
    now, monotonic = time.time(), time.monotonic()
    result = {}
    for name, unit in units.items():
        paths = list(readers.get(name, [])) + unit.get("DropInPaths", "").split()
        written = [os.stat(path).st_mtime for path in paths if os.path.exists(path)]
        result[name] = is_stale(unit, written, now, monotonic)
    return result


def read_file(path: str) -> t.Optional[t.Dict[str, str]]:
    try:
        with open(path, encoding="utf-8", errors="surrogateescape", newline="") as handle:
            return {"content": handle.read(), "mode": format(os.fstat(handle.fileno()).st_mode & 0o7777, "04o")}
    except FileNotFoundError:
        return None
    except OSError as error:
        raise FabricError(
            "Could not read a file.", path, str(error), "Make it a readable file, or remove it."
        ) from error


def write_file(module: AnsibleModule, path: str, content: str, mode: str = "0644", backup: bool = False) -> None:
    """Put a file in place at once, so that nobody ever reads a half of it."""
    os.makedirs(os.path.dirname(path), mode=0o755, exist_ok=True)
    if backup and os.path.exists(path):
        module.backup_local(path)
    part = f"{path}.part"
    # The mode holds from the first byte on: some of these files carry credentials.
    descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, int(mode, 8))
    with open(descriptor, "w", encoding="utf-8", errors="surrogateescape", newline="") as out:
        os.fchmod(out.fileno(), int(mode, 8))
        out.write(content)
        out.flush()
        os.fsync(out.fileno())
    os.replace(part, path)


def systemctl(module: AnsibleModule, verb: str, *units: str) -> None:
    code, out, err = module.run_command(["systemctl", verb] + [f"{unit}.service" for unit in units])
    if code == 0:
        return
    journal = [
        module.run_command(["journalctl", "-u", unit, "-n", "15", "--no-pager", "-o", "cat"])[1] for unit in units
    ]
    raise FabricError(
        f"systemctl {verb} failed.",
        " ".join(units) or "systemd",
        "\n".join(filter(None, [err.strip() or out.strip()] + [text.strip() for text in journal])),
        "Mend what the journal names, then run again.",
    )


def present_files(params: t.Dict[str, t.Any]) -> t.Tuple[Files, Files]:
    """The files as they are, and as they are wanted."""
    before = {item["path"]: read_file(item["path"]) for item in params["files"]}
    after: Files = {}
    for item in params["files"]:
        absent = item["state"] == "absent"
        after[item["path"]] = None if absent else {"content": item["content"] or "", "mode": item["mode"]}
    return before, after


def file_diffs(before: Files, after: Files) -> t.List[t.Dict[str, str]]:
    """One diff a changed file, as a person reads it."""
    return [
        {
            "before_header": path,
            "after_header": path,
            "before": (before[path] or {}).get("content", ""),
            "after": (after[path] or {}).get("content", ""),
        }
        for path in after
        if before[path] != after[path]
    ]


def apply_files(module: AnsibleModule, items: t.Sequence[t.Dict[str, t.Any]], before: Files, after: Files) -> None:
    changed = [item for item in items if before[item["path"]] != after[item["path"]]]
    for item in changed:
        wanted = after[item["path"]]
        if wanted is None:
            os.remove(item["path"])
        else:
            write_file(module, item["path"], wanted["content"], wanted["mode"], item["backup"])
    if any(item["path"].startswith(SYSTEMD_DIRECTORIES) for item in changed):
        systemctl(module, "daemon-reload")


def run(module: AnsibleModule) -> t.Dict[str, t.Any]:
    """The body of M(ipu.fabric.unit_files)."""
    params = module.params
    readers: t.Dict[str, t.List[str]] = {}
    for item in params["files"]:
        for unit in item["units"]:
            readers.setdefault(unit, []).append(item["path"])
    wants = {unit["name"]: unit for unit in params["units"]}
    files_before, files_after = present_files(params)
    touched = {
        unit for unit, paths in readers.items() if any(files_before[path] != files_after[path] for path in paths)
    }
    if not module.check_mode:
        apply_files(module, params["files"], files_before, files_after)

    shown = show(module, sorted(wants))
    stale = stale_units(shown, readers)
    before, after, restarted = {}, {}, []
    for name, want in wants.items():
        seen = unit_state(shown.get(name, {}), stale.get(name, False))
        # In check mode the file was not written: the unit is as stale as it would be.
        seen["stale"] = seen["stale"] or (name in touched and seen["started"])
        before[name], after[name] = seen, wanted_state(seen, want)
        verbs = steps(seen, after[name])
        if "restart" in verbs:
            restarted.append(name)
        if not module.check_mode:
            if shown.get(name, {}).get("NeedDaemonReload") == "yes":
                systemctl(module, "daemon-reload")
            for verb in verbs:
                systemctl(module, verb, name)
    result = outcome(
        {"files": files_before, "units": before}, {"files": files_after, "units": after}, restarted=restarted
    )
    return {**result, "diff": [*file_diffs(files_before, files_after), {"before": before, "after": after}]}
