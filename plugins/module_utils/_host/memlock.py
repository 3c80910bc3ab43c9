# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The locked-memory limit of container runtimes, which containers inherit."""

from __future__ import annotations

import math
import os
import re
import typing as t

from .._common import memlock_limits
from .._common.result import FabricError, outcome
from . import docker
from .distributions import EMBEDDING_UNITS
from .files import File, Files, file_diffs, read_file, read_text, write_file
from .kubelets import node_name
from .runtime_restart import carries_api, restart_runtimes
from .systemd import Unit, keep_former, show_units, stale_units, systemctl, validate

if t.TYPE_CHECKING:
    from ansible.module_utils.basic import AnsibleModule


OWN = re.compile(r"\[Service\]\nLimitMEMLOCK=\S+\n")


class Settings(t.TypedDict):
    """Options of memlock."""

    limit: str
    units: t.List[str]
    restart: bool
    restart_docker: bool
    restart_kubernetes: bool
    node_name: str
    timeout: int  # seconds


def limit_bytes(limit: str) -> t.Optional[int]:
    """A limit in systemd's notation, in bytes; None means unlimited."""
    try:
        if limit in memlock_limits.UNLIMITED and limit != "infinity":
            raise ValueError(f"{limit!r} is not systemd's word")
        size = memlock_limits.limit_bytes(limit)
    except ValueError as error:
        raise FabricError(
            "The limit of locked memory is not valid.",
            "memlock_limit",
            limit,
            "Set infinity, or bytes such as 67108864 or 64M.",
            code="invalid-input",
        ) from error
    return None if size == math.inf else int(size)


def shown_limit(limit: t.Optional[int]) -> str:
    """The limit as systemctl show prints it."""
    return "infinity" if limit is None else str(limit)


def drop_in_path(unit: str) -> str:
    # Sorts after other drop-ins named 10-*, so that this value wins.
    return f"/etc/systemd/system/{unit}.service.d/50-memlock.conf"


def drop_in_text(limit: str) -> str:
    return f"[Service]\nLimitMEMLOCK={limit}\n"


def is_own_drop_in(text: str) -> bool:
    """Whether a drop-in contains only a limit, whoever wrote it."""
    return bool(OWN.fullmatch(text))


def check_own(path: str) -> None:
    """Refuse to replace a drop-in that contains more than a limit."""
    there = read_file(path)
    if there and not is_own_drop_in(there["content"]):
        raise FabricError(
            "A file that somebody else wrote is left as it is.",
            path,
            "it has more in it than LimitMEMLOCK",
            "Set LimitMEMLOCK there, or move its other settings to a file of another name. Then run again.",
            code="not-ours",
        )


def check_last(path: str, unit: Unit) -> None:
    """Refuse to write a drop-in that a later one overrides: systemd would keep using the limit of the later one."""
    for other in unit.get("DropInPaths", "").split():
        lines = [line.strip() for line in read_text(other).splitlines()]
        limits = [line for line in lines if line.startswith("LimitMEMLOCK=")]
        if limits and os.path.basename(other) > os.path.basename(path):
            raise FabricError(
                "Another drop-in of the container runtime sets its own limit of locked memory, and systemd reads it"
                " last.",
                other,
                limits[-1],
                "Delete that line, or set memlock_limit to its value. Then run again.",
                code="not-ours",
            )


def wanted_files(
    units: t.Dict[str, Unit], limit: str, flags: t.Sequence[docker.Flag]
) -> t.Tuple[t.Dict[str, File], t.Dict[str, t.List[str]]]:
    """Files to write, and which of them each unit reads. A unit that gets the limit elsewhere needs no drop-in."""
    size = limit_bytes(limit)
    files: t.Dict[str, File] = {}
    readers: t.Dict[str, t.List[str]] = {}
    for name, unit in units.items():
        path = drop_in_path(name)
        if unit.get("LimitMEMLOCK") != shown_limit(size):
            check_own(path)
            check_last(path, unit)
            files[path] = {"content": drop_in_text(limit), "mode": "0644"}
            readers[name] = [path]
    if "docker" in units:
        path = docker.daemon_path(flags)
        current = read_file(path) or File(content="", mode="0644")
        content = docker.merge_daemon(current["content"], size, flags, path)
        if content:
            files[path] = {"content": content, "mode": current["mode"]}
            readers.setdefault("docker", []).append(path)
    return files, readers


def may_restart(module: AnsibleModule, settings: Settings, unit: str) -> bool:
    """A restart may end Docker's containers, or the API server of k3s and RKE2: these wait until it is requested."""
    if unit == "docker":
        return settings["restart_docker"] or docker.keeps_containers(module)
    return settings["restart_kubernetes"] or unit not in EMBEDDING_UNITS


def set_memlock(module: AnsibleModule) -> t.Dict[str, object]:
    """The body of M(ipu.fabric.memlock)."""
    settings: Settings = module.params
    limit_bytes(settings["limit"])  # first, since it may be invalid
    units = {
        name: unit for name, unit in show_units(module, settings["units"]).items() if unit["LoadState"] == "loaded"
    }
    flags = docker.read_flags(module) if "docker" in units else []
    wanted, readers = wanted_files(units, settings["limit"], flags)
    files_before: Files = {path: read_file(path) for path in wanted}
    files_after: Files = {**wanted}
    changed = {path: file for path, file in wanted.items() if file != files_before[path]}
    daemon = docker.daemon_path(flags)
    if changed and not module.check_mode:
        if daemon in changed:
            validate(module, daemon, changed[daemon]["content"], docker.validation(module))
        for name, paths in readers.items():
            keep_former(module, name, {path: files_before[path] for path in paths if path in changed})
        for path, file in changed.items():
            write_file(module, path, file["content"], file["mode"], backup=path == daemon)
        systemctl(module, "daemon-reload")
        units = show_units(module, sorted(units))

    old = stale_units(units, readers)
    running = [name for name, unit in units.items() if unit["ActiveState"] == "active"]
    stale = [name for name in running if old[name] or any(path in changed for path in readers.get(name, []))]
    restartable = [name for name in stale if may_restart(module, settings, name)]
    waiting = [name for name in stale if name not in restartable]
    if "docker" in waiting:
        module.warn(
            "Docker still runs with its former limit of locked memory: a restart would end its containers. Restart it "
            "when its containers may end, or set memlock_restart_docker to true, or turn on Docker's live-restore."
        )
    embedding = [name for name in waiting if name in EMBEDDING_UNITS]
    if embedding:
        module.warn(
            f"{', '.join(embedding)} still runs with its former limit of locked memory, and so do the pods that it "
            "starts. Restart it when that is convenient, or set fabric_restart_kubernetes: true "
            "(for the role alone, memlock_restart_kubernetes)."
        )
    restart = restartable if settings["restart"] else []
    if restart and not module.check_mode:
        restart_runtimes(module, units, restart)
    left = [name for name in stale if name not in restart]
    result = outcome(
        {"files": files_before, "stale": stale},
        {"files": files_after, "stale": left},
        stale=stale,
        restartable=restartable,
        server=any(map(carries_api, restartable)),
        units=sorted(units),
        node=node_name(settings["node_name"]),
    )
    return {
        **result,
        "diff": [*file_diffs(files_before, files_after), {"before": {"stale": stale}, "after": {"stale": left}}],
    }
