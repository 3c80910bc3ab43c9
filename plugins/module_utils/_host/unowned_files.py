# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Removes files and directories that no package owns, once nobody needs them."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import typing as t

from .._common.command import Done, run_program
from .._common.result import FabricError, outcome
from .._common.text import shorten_list
from .files import read_text

if t.TYPE_CHECKING:
    from ansible.module_utils.basic import AnsibleModule

# /etc/cni has two parts: paths this short are never removed.
PARTS = 3
MOUNTS = "/proc/self/mounts"
UNOWNED = "no path found matching pattern "  # dpkg-query prints this for a path without a package


def check_paths(paths: t.Sequence[str]) -> None:
    """Refuse paths that look like a template with an empty variable, before anything is removed."""
    for path in paths:
        if (
            not os.path.isabs(path)
            or os.path.normpath(path) != path
            or len(list(filter(None, path.split("/")))) < PARTS
        ):
            raise FabricError(
                "Only absolute paths of at least three parts are removed.",
                "paths",
                repr(path),
                "Write it in full, as in /etc/cni/net.d/multus.d.",
                code="invalid-input",
            )


def parse_owners(answer: Done) -> t.Dict[str, str]:
    """Packages by path, from `dpkg-query --search`. A diverted path has an owner too."""
    lines = (line.rpartition(": ") for line in answer.out.splitlines())
    return {path: packages for packages, _colon, path in lines}


def real_path(path: str) -> str:
    """The path with links in its directory resolved: dpkg knows only this one."""
    directory, name = os.path.split(path)
    return os.path.join(os.path.realpath(directory), name)


def find_owners(paths: t.Sequence[str]) -> t.Dict[str, str]:
    """The packages of the paths that have one. A path about which dpkg says nothing may be anybody's: an error."""
    asked = sorted({*paths, *map(real_path, paths)})
    answer = run_program(["dpkg-query", "--search", *asked])
    owners = parse_owners(answer)
    unowned = {line.partition(UNOWNED)[2] for line in answer.err.splitlines()}
    unknown = [path for path in asked if path not in owners and path not in unowned]
    if answer.rc not in (0, 1) or unknown:
        said = answer.err.strip() if answer.rc not in (0, 1) else f"it says nothing about {', '.join(unknown)}"
        raise FabricError(
            "dpkg has to say which files no package owns, before they are removed.",
            "dpkg-query --search",
            said or "timed out",
            "Nothing was removed. Repair dpkg, or on a host without it remove by hand: " + ", ".join(paths),
            code="command-failed",
        )
    found = {path: owners.get(path) or owners.get(real_path(path)) for path in paths}
    return {path: packages for path, packages in found.items() if packages}


def mounted_below(mounts: str, path: str) -> t.List[str]:
    """Mount points at or below a path, from /proc/self/mounts. The path must not contain links."""
    fields = (line.split() for line in mounts.splitlines())
    places = (re.sub(r"\\([0-7]{3})", lambda found: chr(int(found.group(1), 8)), words[1]) for words in fields if words)
    return [place for place in places if f"{place}/".startswith(f"{path}/")]


def other_devices(path: str) -> t.List[str]:
    """Directories below a path that are on another file system, whatever /proc reports."""
    device = os.lstat(path).st_dev
    below = (os.path.join(top, name) for top, names, _files in os.walk(path) for name in names)
    return [place for place in below if os.lstat(place).st_dev != device]


def check_mounts(path: str) -> None:
    """Refuse to remove a directory that contains a mount, which may hold anybody's data."""
    real = os.path.realpath(path)
    found = mounted_below(read_text(MOUNTS), real) or other_devices(real)
    if found:
        raise FabricError(
            "Mounted file systems are not removed.",
            path,
            f"still mounted: {shorten_list(found, 4)}",
            "Stop what uses them, unmount them, then run again.",
            code="busy",
        )


def remove_path(path: str) -> None:
    """Remove a link without its target, and a directory only if nothing is mounted in it."""
    # A program that is ending may remove it at the same time.
    with contextlib.suppress(FileNotFoundError):
        if os.path.isdir(path) and not os.path.islink(path):
            check_mounts(path)
            shutil.rmtree(path)
        else:
            os.unlink(path)


def remove_unowned_files(module: AnsibleModule) -> t.Dict[str, object]:
    """What M(ipu.fabric.host_reset) does with O(files)."""
    paths: t.List[str] = module.params["files"]
    check_paths(paths)
    present = [path for path in paths if os.path.lexists(path)]
    owners = find_owners(present) if present else {}
    removed = [path for path in present if path not in owners]
    if not module.check_mode:
        for path in removed:
            remove_path(path)
    kept = [f"{path} ({owners[path]})" for path in present if path in owners]
    return outcome(
        present, [path for path in present if path in owners], removed={"files": removed} if removed else {}, kept=kept
    )
