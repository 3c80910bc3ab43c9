# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""systemd units, and the files that they read.

A unit is stale if its main process started before one of its files was written. Nothing must be remembered between
tasks: if a run is killed between writing a file and restarting the unit, the next run restarts it.

After a restart, runtimes are asked whether they work. Their former files are kept until then, and restored if they do
not.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import time
import typing as t

from .._common.command import nameless_file, path_of, run_program
from .._common.result import FabricError, outcome
from .._common.secrets import hide_lines
from . import cri, docker, role_files
from .files import OWN_MARK, File, Files, file_diffs, read_file, read_text, write_file

if t.TYPE_CHECKING:
    from ansible.module_utils.basic import AnsibleModule

PROPERTIES = (
    "Id,LoadState,ActiveState,UnitFileState,NeedDaemonReload,ExecMainStartTimestampMonotonic,DropInPaths,LimitMEMLOCK,"
    "StateChangeTimestampMonotonic"
)
SYSTEMD_DIRECTORIES = ("/etc/systemd/", "/run/systemd/")
# A runtime's files as they were when it last worked, kept until it works with the new ones.
FORMER = "/var/lib/ipu-fabric/former-{}.json"
ANSWER_SECONDS, ANSWER_PAUSE = 180, 1  # with many containers, containerd takes a while
JOURNAL_SECONDS = 30
# What programs print about settings that they refuse
REFUSAL = re.compile(r"failed to load|level=(?:error|fatal)|unable to|cannot|invalid|unknown", re.IGNORECASE)

Unit = t.Dict[str, str]  # PROPERTIES by name, as systemctl prints them


class UnitState(t.TypedDict):
    """The changeable state of a unit. A stale one runs with old files."""

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
    validate: str  # command with %s for the file, which must succeed before the file is put in place; empty: none
    units: t.List[str]  # the units that read the file at start
    settings: t.Dict[str, object]  # settings of Docker, instead of content; empty: none


class UnitOption(t.TypedDict, total=False):
    """An item of the option `units`; omitted flags are true."""

    name: str
    enabled: bool
    started: bool
    restart: str  # stale, reload, never or always; default: stale


def parse_show(text: str) -> t.Dict[str, Unit]:
    """Units by name from the output of systemctl show: blocks of KEY=VALUE separated by empty lines."""
    blocks = [dict(line.split("=", 1) for line in block.splitlines() if "=" in line) for block in text.split("\n\n")]
    return {block["Id"].rsplit(".service", 1)[0]: block for block in blocks if "Id" in block}


def is_stale(unit: Unit, file_times: t.Iterable[float], now: float, monotonic: float, reloads: bool = False) -> bool:
    """Whether the running process of a unit can't have read the current contents of its files.

    If it can reload, it last read them when its state last changed."""
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
    """The wanted state: enabled and started where the options ask for that, and stale only where they allow it."""
    return {
        "enabled": seen["enabled"] or option.get("enabled", True),
        "started": seen["started"] or option.get("started", True),
        "stale": seen["stale"] and option.get("restart") == "never",
    }


def list_verbs(seen: UnitState, wanted: UnitState, freshen: str = "restart") -> t.List[str]:
    """The systemctl verbs that lead from one state to the other; `freshen` is the verb for a stale unit."""
    verbs = ["enable"] if wanted["enabled"] and not seen["enabled"] else []
    if seen["stale"] and not wanted["stale"]:
        return [*verbs, freshen]
    return verbs + (["start"] if wanted["started"] and not seen["started"] else [])


def show_units(module: AnsibleModule, names: t.Sequence[str]) -> t.Dict[str, Unit]:
    """Properties of units; a missing one has LoadState not-found. Empty if systemd does not run."""
    if not names or not os.path.isdir("/run/systemd/system"):
        return {}
    services = [f"{name}.service" for name in names]
    return parse_show(module.run_command(["systemctl", "show", "--property", PROPERTIES, *services])[1])


def stale_units(
    units: t.Dict[str, Unit], readers: t.Mapping[str, t.Sequence[str]], reloading: t.Container[str] = ()
) -> t.Dict[str, bool]:
    """Whether each unit runs with old files; `readers` has the files that a unit reads besides its drop-ins."""
    now, monotonic = time.time(), time.monotonic()
    result = {}
    for name, unit in units.items():
        paths = list(readers.get(name, [])) + unit.get("DropInPaths", "").split()
        written = [os.stat(path).st_mtime for path in paths if os.path.exists(path)]
        # A time in the future comes from a wrong clock, and would cause a restart in each run.
        written = [each for each in written if each <= now]
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
    """The lines of a file that are not comments."""
    return [line for line in text.splitlines() if line.strip() and not line.startswith("#")]


def named_lines(refusals: t.Sequence[str], files: Files) -> t.List[str]:
    """Where files contain what these lines quote. Only the places: the text may contain passwords."""
    words = {word for line in refusals for word in re.findall(r"[`'\"]([\w-]+)[`'\"]", line)}
    return [
        f"{path}:{number}"
        for path, file in files.items()
        for number, line in enumerate(file["content"].splitlines() if file else (), 1)
        if words & set(re.findall(r"[\w-]+", line.partition("=")[0].partition(":")[0]))
    ]


def refusals_of(unit: str, since: float) -> t.List[str]:
    """What a service logged against its settings; if nothing looks like that, its last lines."""
    argv = ["journalctl", "-u", f"{unit}.service", "--since", f"@{int(since)}", "--no-pager", "-o", "cat"]
    lines = hide_lines(run_program(argv, JOURNAL_SECONDS).out).strip().splitlines()
    # containerd also skips plugins that the host does not support. Its CRI is not one of them.
    told = [line for line in lines if REFUSAL.search(line)]
    return ([line for line in told if "cri" in line] or told or lines)[-5:]


def former_of(unit: str) -> Files:
    """The files kept for a unit; empty if there are none."""
    with contextlib.suppress(ValueError):
        kept: Files = json.loads(read_text(FORMER.format(unit)) or "{}")
        return kept
    return {}


def keep_former(module: AnsibleModule, unit: str, files: Files) -> None:
    """Keep a runtime's files before they are replaced. Files kept earlier win: the runtime worked with those.

    Unless it has been restarted since and works with the later ones."""
    if unit not in cri.INTERFACES:
        return
    path, kept = FORMER.format(unit), former_of(unit)
    if kept and not stale_units(show_units(module, [unit]), {unit: [path]}).get(unit) and not cri.silence(unit):
        kept = {}
    if {**files, **kept} != kept:
        write_file(module, path, json.dumps({**files, **kept}), "0600")


def forget_former(unit: str) -> None:
    with contextlib.suppress(FileNotFoundError):
        os.remove(FORMER.format(unit))


def start_interface(unit: str) -> None:
    """Start a cri-dockerd that somebody stopped: a kubelet can't use Docker without it."""
    if unit == cri.DOCKER and cri.kubelet_socket() == cri.INTERFACES[unit]:
        run_program(["systemctl", "start", "--no-block", "cri-docker.service"], JOURNAL_SECONDS)


def wait_for_answer(unit: str) -> None:
    give_up = time.monotonic() + ANSWER_SECONDS
    while True:
        silent = cri.silence(unit)
        if not silent:
            return
        if silent.final or time.monotonic() > give_up:
            raise FabricError(
                f"{unit} is active but does not work.",
                os.uname().nodename,
                silent.seen,
                f"See journalctl -u {unit}.",
                code="not-ready",
            )
        start_interface(unit)
        time.sleep(ANSWER_PAUSE)


def take_back(
    module: AnsibleModule, unit: str, restart: t.Callable[[], None], since: float, error: FabricError
) -> t.NoReturn:
    """Restore a runtime's former files, and report what it refused in the new ones."""
    former = former_of(unit)
    refusals = refusals_of(unit, since)
    refused = {path: read_file(path) for path in former}
    seen = "\n".join([error.seen, *(line for line in refusals if line not in error.seen)])
    if not former:
        raise FabricError(error.what, error.where, seen, error.next_step, code=error.code) from error
    # Somebody may have edited a file since it was written: keep a copy.
    copies = [str(module.backup_local(path)) for path, file in refused.items() if file and file != former[path]]
    for path, file in former.items():
        if file:
            write_file(module, path, file["content"], file["mode"])
        elif os.path.exists(path):
            os.remove(path)
    systemctl(module, "daemon-reload")
    try:
        restart()
        end = "Its former files are back, and it works with them"
    except FabricError as again:
        end = f"Its former files are back, but it does not work with them either: {again.seen}"
    forget_former(unit)
    places = named_lines(refusals, refused)
    raise FabricError(
        f"{unit} does not work with its new settings.",
        f"{os.uname().nodename}: {', '.join(places or sorted(refused))}",
        f"{seen}\n{end}. Copies of the refused files: {', '.join(copies) or 'none'}",
        "Correct the settings that the messages name. Then run again.",
        code="not-ready",
    ) from error


def run_runtime(
    module: AnsibleModule,
    unit: str,
    restart: t.Callable[[], None],
    start: t.Callable[[], None],
    needed: bool = True,
) -> None:
    """Have a runtime read its files by `start`, and check that it works. If it does not, restore its former files.

    One that need not work, such as a containerd that only Docker uses, must answer only if it did before."""
    asked = needed or cri.kubelet_socket() == cri.INTERFACES[unit] or not cri.silence(unit)
    since = time.time()

    def wait_after(step: t.Callable[[], None]) -> None:
        step()
        if asked:
            wait_for_answer(unit)

    try:
        wait_after(start)
    except FabricError as error:
        take_back(module, unit, lambda: wait_after(restart), since, error)
    forget_former(unit)


def act(module: AnsibleModule, unit: str, verbs: t.Sequence[str], answers: bool) -> None:
    """Do what a unit needs. If `answers` (it runs with its current files), a runtime is checked, whatever was done."""

    def do(*names: str) -> None:
        for verb in names:
            systemctl(module, verb, unit)

    if answers and unit in cri.INTERFACES:
        run_runtime(module, unit, lambda: do("restart"), lambda: do(*verbs))
    else:
        do(*verbs)


def with_daemon(module: AnsibleModule, item: FileOption) -> FileOption:
    """The item; if it has settings of Docker, with the file that contains them."""
    if not item["settings"]:
        return item
    path, file = docker.with_settings(module, item["settings"])
    return {**item, "path": path, "content": file["content"], "mode": file["mode"]}


def plan_files(items: t.Sequence[FileOption]) -> t.Tuple[Files, Files]:
    """The present and the wanted files."""
    before = {item["path"]: read_file(item["path"]) for item in items}

    def wanted(item: FileOption) -> t.Optional[File]:
        if item["state"] == "present":
            return {"content": item["content"] or "", "mode": item["mode"]}
        there = before[item["path"]]
        if there and item["content"] and OWN_MARK not in there["content"]:
            return None if settings_of(there["content"]) == settings_of(item["content"]) else there
        text = role_files.TEXTS.get(item["path"])
        return there if there and text and not re.fullmatch(text, there["content"]) else None

    return before, {item["path"]: wanted(item) for item in items}


def validate(module: AnsibleModule, path: str, content: str, judge: str) -> None:
    """Have the program that reads a file validate the new content before it is written."""
    if not judge:
        return
    with nameless_file(content) as draft:
        command = [word.replace("%s", path_of(draft)) for word in judge.split()]
        code, out, err = module.run_command(command, pass_fds=[draft.fileno()])
        if code and "unknown flag: --validate" not in out + err:  # Docker before 23 has no such flag
            raise FabricError(
                "A file would not be valid, so it was left as it is.",
                path,
                (err.strip() or out.strip() or f"rc {code}").replace(path_of(draft), path),
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
            validate(module, item["path"], wanted["content"], item["validate"])
            there = before[item["path"]]
            # A backup of our own file would keep a login that has been replaced.
            backup = item["backup"] and not (there and OWN_MARK in there["content"])
            write_file(module, item["path"], wanted["content"], wanted["mode"], backup)
    if any(item["path"].startswith(SYSTEMD_DIRECTORIES) for item in changed):
        systemctl(module, "daemon-reload")


def map_readers(items: t.Sequence[FileOption]) -> t.Dict[str, t.List[str]]:
    """The files that each unit reads, by unit name."""
    readers: t.Dict[str, t.List[str]] = {}
    for item in items:
        for unit in item["units"]:
            readers.setdefault(unit, []).append(item["path"])
    return readers


def apply_units(module: AnsibleModule) -> t.Dict[str, object]:
    """The body of M(ipu.fabric.systemd_units)."""
    items = [with_daemon(module, item) for item in t.cast("t.List[FileOption]", module.params["files"])]
    options: t.Dict[str, UnitOption] = {unit["name"]: unit for unit in module.params["units"]}
    readers = map_readers(items)
    files_before, files_after = plan_files(items)
    touched = {
        unit for unit, paths in readers.items() if any(files_before[path] != files_after[path] for path in paths)
    }
    if not module.check_mode:
        for name in sorted(touched):
            changed = [path for path in readers[name] if files_before[path] != files_after[path]]
            keep_former(module, name, {path: files_before[path] for path in changed})
        apply_files(module, items, files_before, files_after)

    shown = show_units(module, sorted(options))
    reloading = [name for name, option in options.items() if option.get("restart") == "reload"]
    stale = stale_units(shown, readers, reloading)
    before, after, restarted = {}, {}, []
    for name, option in options.items():
        seen = unit_state(shown.get(name, {}), stale.get(name, False))
        # In check mode the file was not written, but a run would leave the unit stale.
        due = name in touched or option.get("restart") == "always"
        seen["stale"] = seen["stale"] or (due and seen["started"])
        before[name], after[name] = seen, wanted_state(seen, option)
        verbs = list_verbs(seen, after[name], "reload" if name in reloading else "restart")
        if "restart" in verbs:
            restarted.append(name)
        if not module.check_mode:
            if shown.get(name, {}).get("NeedDaemonReload") == "yes":
                systemctl(module, "daemon-reload")
            act(module, name, verbs, after[name]["started"] and not after[name]["stale"] and "reload" not in verbs)
            for item in items if name in reloading else ():
                if item["settings"].get("live-restore"):
                    docker.check_keeps(module, item["path"])
    left = [name for name, unit in after.items() if unit["stale"]]
    result = outcome(
        {"files": files_before, "units": before},
        {"files": files_after, "units": after},
        restarted=restarted,
        stale=left,
    )
    return {**result, "diff": [*file_diffs(files_before, files_after), {"before": before, "after": after}]}
