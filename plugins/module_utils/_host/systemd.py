# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""systemd units, and the files that they read.

A unit is stale when its main process started before one of its files was written. Nothing has to be remembered between
tasks: when a run is killed between writing a file and restarting the unit, the next one restarts it.
"""

from __future__ import annotations

import os
import time
import typing as t

from ansible_collections.ipu.fabric.plugins.module_utils._common.command import nameless_file, path_of
from ansible_collections.ipu.fabric.plugins.module_utils._common.result import FabricError, outcome
from ansible_collections.ipu.fabric.plugins.module_utils._host.files import (
    File,
    Files,
    file_diffs,
    read_file,
    write_file,
)

if t.TYPE_CHECKING:
    from ansible.module_utils.basic import AnsibleModule

PROPERTIES = (
    "Id,LoadState,ActiveState,UnitFileState,NeedDaemonReload,ExecMainStartTimestampMonotonic,DropInPaths,LimitMEMLOCK,"
    "StateChangeTimestampMonotonic"
)
SYSTEMD_DIRECTORIES = ("/etc/systemd/", "/run/systemd/")

Unit = t.Dict[str, str]  # PROPERTIES by name, as systemctl prints them


class UnitState(t.TypedDict):
    """What of a unit can change. A stale one runs with old files."""

    enabled: bool
    started: bool
    stale: bool


class FileOption(t.TypedDict):
    """An item of the option `files`."""

    path: str
    content: t.Optional[str]
    mode: str
    state: str  # present or absent
    backup: bool
    validate: str  # command with %s for the file, which has to succeed before it is put there; empty: none
    units: t.List[str]  # that read the file when they start


class UnitOption(t.TypedDict, total=False):
    """An item of the option `units`; true where left out."""

    name: str
    enabled: bool
    started: bool
    restart: str  # stale, reload, never or always; stale where left out


def parse_show(text: str) -> t.Dict[str, Unit]:
    """Units by name from the output of systemctl show: blocks of KEY=VALUE with an empty line between."""
    blocks = [dict(line.split("=", 1) for line in block.splitlines() if "=" in line) for block in text.split("\n\n")]
    return {block["Id"].rsplit(".service", 1)[0]: block for block in blocks if "Id" in block}


def is_stale(unit: Unit, file_times: t.Iterable[float], now: float, monotonic: float, reloads: bool = False) -> bool:
    """Whether the running process of a unit can't have read what its files say now.

    One that reads them again when it is told to has done so when its state last changed."""
    if unit.get("ActiveState") not in ("active", "reloading"):
        return False
    moment = "StateChangeTimestampMonotonic" if reloads else "ExecMainStartTimestampMonotonic"
    started = now - monotonic + int(unit.get(moment) or 0) / 1e6
    return unit.get("NeedDaemonReload") == "yes" or any(written > started for written in file_times)


def unit_state(unit: Unit, stale: bool) -> UnitState:
    return {
        "enabled": unit.get("UnitFileState") in ("enabled", "enabled-runtime", "static", "indirect", "generated"),
        "started": unit.get("ActiveState") in ("active", "activating", "reloading"),
        "stale": stale,
    }


def wanted_state(seen: UnitState, option: UnitOption) -> UnitState:
    """What a unit becomes: enabled and started where that is asked for, and left stale only where that is."""
    return {
        "enabled": seen["enabled"] or option.get("enabled", True),
        "started": seen["started"] or option.get("started", True),
        "stale": seen["stale"] and option.get("restart") == "never",
    }


def list_verbs(seen: UnitState, wanted: UnitState, freshen: str = "restart") -> t.List[str]:
    """The systemctl verbs that lead from one state to the other; `freshen` is that for a stale unit."""
    verbs = ["enable"] if wanted["enabled"] and not seen["enabled"] else []
    if seen["stale"] and not wanted["stale"]:
        return [*verbs, freshen]
    return verbs + (["start"] if wanted["started"] and not seen["started"] else [])


def show_units(module: AnsibleModule, names: t.Sequence[str]) -> t.Dict[str, Unit]:
    """Properties of units; one that does not exist has LoadState not-found. Empty where systemd does not run."""
    if not names or not os.path.isdir("/run/systemd/system"):
        return {}
    services = [f"{name}.service" for name in names]
    return parse_show(module.run_command(["systemctl", "show", "--property", PROPERTIES, *services])[1])


def stale_units(
    units: t.Dict[str, Unit], readers: t.Mapping[str, t.Sequence[str]], reloading: t.Container[str] = ()
) -> t.Dict[str, bool]:
    """For each unit whether it runs on old files; `readers` names files that a unit reads beside its drop-ins."""
    now, monotonic = time.time(), time.monotonic()
    result = {}
    for name, unit in units.items():
        paths = list(readers.get(name, [])) + unit.get("DropInPaths", "").split()
        written = [os.stat(path).st_mtime for path in paths if os.path.exists(path)]
        result[name] = is_stale(unit, written, now, monotonic, name in reloading)
    return result


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
        "Fix what the journal reports, then run again.",
        code="command-failed",
    )


def settings_of(text: str) -> t.List[str]:
    """The lines of a file that are no comments."""
    return [line for line in text.splitlines() if line.strip() and not line.startswith("#")]


def plan_files(items: t.Sequence[FileOption]) -> t.Tuple[Files, Files]:
    """The files as they are, and as they are wanted."""
    before = {item["path"]: read_file(item["path"]) for item in items}

    def wanted(item: FileOption) -> t.Optional[File]:
        if item["state"] == "present":
            return {"content": item["content"] or "", "mode": item["mode"]}
        there = before[item["path"]]
        ours = not (there and item["content"]) or settings_of(there["content"]) == settings_of(item["content"])
        return None if ours else there

    return before, {item["path"]: wanted(item) for item in items}


def validate(module: AnsibleModule, item: FileOption) -> None:
    """Have the program that reads a file judge what it would be, before anything reads it."""
    if not item["validate"]:
        return
    with nameless_file(item["content"] or "") as draft:
        command = [word.replace("%s", path_of(draft)) for word in item["validate"].split()]
        code, out, err = module.run_command(command, pass_fds=[draft.fileno()])
        if code:
            raise FabricError(
                "A file would not be valid, so it was left as it is.",
                item["path"],
                (err.strip() or out.strip() or f"rc {code}").replace(path_of(draft), item["path"]),
                "Correct the settings that the message names, then run again.",
                code="invalid-input",
            )


def apply_files(module: AnsibleModule, items: t.Sequence[FileOption], before: Files, after: Files) -> None:
    changed = [item for item in items if before[item["path"]] != after[item["path"]]]
    for item in changed:
        wanted = after[item["path"]]
        if wanted is None:
            os.remove(item["path"])
        else:
            validate(module, item)
            write_file(module, item["path"], wanted["content"], wanted["mode"], item["backup"])
    if any(item["path"].startswith(SYSTEMD_DIRECTORIES) for item in changed):
        systemctl(module, "daemon-reload")


def map_readers(items: t.Sequence[FileOption]) -> t.Dict[str, t.List[str]]:
    """The files that each unit reads, by the unit's name."""
    readers: t.Dict[str, t.List[str]] = {}
    for item in items:
        for unit in item["units"]:
            readers.setdefault(unit, []).append(item["path"])
    return readers


def apply_units(module: AnsibleModule) -> t.Dict[str, object]:
    """The body of M(ipu.fabric.systemd_units)."""
    items: t.List[FileOption] = module.params["files"]
    options: t.Dict[str, UnitOption] = {unit["name"]: unit for unit in module.params["units"]}
    readers = map_readers(items)
    files_before, files_after = plan_files(items)
    touched = {
        unit for unit, paths in readers.items() if any(files_before[path] != files_after[path] for path in paths)
    }
    if not module.check_mode:
        apply_files(module, items, files_before, files_after)

    shown = show_units(module, sorted(options))
    reloading = [name for name, option in options.items() if option.get("restart") == "reload"]
    stale = stale_units(shown, readers, reloading)
    before, after, restarted = {}, {}, []
    for name, option in options.items():
        seen = unit_state(shown.get(name, {}), stale.get(name, False))
        # In check mode the file was not written: the unit is as stale as it would be.
        due = name in touched or option.get("restart") == "always"
        seen["stale"] = seen["stale"] or (due and seen["started"])
        before[name], after[name] = seen, wanted_state(seen, option)
        verbs = list_verbs(seen, after[name], "reload" if name in reloading else "restart")
        if "restart" in verbs:
            restarted.append(name)
        if not module.check_mode:
            if shown.get(name, {}).get("NeedDaemonReload") == "yes":
                systemctl(module, "daemon-reload")
            for verb in verbs:
                systemctl(module, verb, name)
    left = [name for name, unit in after.items() if unit["stale"]]
    result = outcome(
        {"files": files_before, "units": before},
        {"files": files_after, "units": after},
        restarted=restarted,
        stale=left,
    )
    return {**result, "diff": [*file_diffs(files_before, files_after), {"before": before, "after": after}]}
