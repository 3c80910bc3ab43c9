# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A directory of backups on the controller: each is a directory named after its start time, complete or absent."""

from __future__ import annotations

import datetime
import json
import os
import re
import shutil
import typing as t

from .._common.result import FabricError, outcome
from .files import file_digest

if t.TYPE_CHECKING:
    from ansible.module_utils.basic import AnsibleModule

NAME = re.compile(r"\d{8}T\d{6}Z")
PART = ".part"  # suffix of a backup that is being written
SUMS = "SHA256SUMS"
ABOUT = "backup.json"
# The files that ipu.fabric.backup writes into a backup.
FILES = {ABOUT, SUMS, "control-plane.tar.gz", "objects.json"}


def time_of(name: str) -> t.Optional[datetime.datetime]:
    """The time in the name of a backup, finished or unfinished; None for any other name."""
    stem = name[: -len(PART)] if name.endswith(PART) else name
    if not NAME.fullmatch(stem):
        return None
    try:
        return datetime.datetime.strptime(stem, "%Y%m%dT%H%M%SZ")
    except ValueError:
        return None


def complete(names: t.Iterable[str]) -> t.List[str]:
    """Names of complete backups, oldest first. Anything else in the directory is not ours."""
    return sorted(name for name in names if time_of(name) and not name.endswith(PART))


def later(names: t.Iterable[str], new: str) -> t.List[str]:
    """Backups whose names are later than the new one's: a clock was wrong. They are kept, whatever their number."""
    return [name for name in complete(names) if name > new]


def to_prune(names: t.Iterable[str], new: str, keep: int) -> t.List[str]:
    """What to delete once the new one exists: the oldest ones, and unfinished ones that began a day or more ago."""
    listed, now = list(names), time_of(new)
    backups = [name for name in complete({*listed, new}) if name <= new]
    begun = [(name, time_of(name)) for name in listed if name.endswith(PART)]
    unfinished = [name for name, time in begun if time and now and now - time >= datetime.timedelta(days=1)]
    return backups[: max(len(backups) - max(keep, 1), 0)] + sorted(unfinished)


def recorded_cluster(path: str) -> t.Dict[str, str]:
    """The cluster that a backup says it is of; empty if it does not say."""
    try:
        with open(os.path.join(path, ABOUT), encoding="utf-8") as file:
            found = json.load(file)["cluster"]
    except (OSError, ValueError, TypeError, KeyError):
        return {}
    return found if isinstance(found, dict) else {}


def is_of(path: str, cluster: t.Mapping[str, str]) -> bool:
    """Whether a directory is a backup of this cluster: its name alone proves nothing, and sites may share a directory.

    The CA decides, or the endpoint if a CA is not known. An unfinished backup may not have a record yet.
    """
    if os.path.islink(path) or not os.path.isdir(path):
        return False
    there = set(os.listdir(path))
    if path.endswith(PART) and not there <= FILES:
        return False
    if path.endswith(PART) and ABOUT not in there:
        return True
    said = recorded_cluster(path)
    key = "ca" if said.get("ca") and cluster.get("ca") else "name"
    return bool(said.get(key)) and said.get(key) == cluster.get(key)


def sums_of(directory: str) -> t.Dict[str, str]:
    return {name: file_digest(os.path.join(directory, name)) for name in sorted(os.listdir(directory)) if name != SUMS}


def format_sums(sums: t.Mapping[str, str]) -> str:
    """Sums in the format of sha256sum --check."""
    return "".join(f"{digest}  {name}\n" for name, digest in sums.items())


def parse_sums(text: str) -> t.Dict[str, str]:
    lines = (line.partition("  ") for line in text.splitlines() if line.strip())
    return {name: digest for digest, _two, name in lines}


def faults(said: t.Mapping[str, str], found: t.Mapping[str, str]) -> t.List[str]:
    """Files that differ from the list of sums."""
    return [
        f"{name} {'is missing' if name not in found else 'is not in the list' if name not in said else 'has changed'}"
        for name in sorted({*said, *found})
        if said.get(name) != found.get(name)
    ]


def not_whole(path: str, seen: str) -> FabricError:
    return FabricError(
        "The backup is incomplete.",
        path,
        seen,
        "Use another backup: each is a directory named after its time.",
        code="wrong-content",
    )


class Verified(t.TypedDict):
    """A backup whose files are all as they were written."""

    about: t.Dict[str, object]  # the contents of its backup.json
    sums: t.Dict[str, str]  # SHA-256 by file


def verify(path: str) -> Verified:
    if not os.path.isfile(os.path.join(path, SUMS)):
        raise not_whole(path, f"no file {SUMS}" if os.path.isdir(path) else "no such directory")
    with open(os.path.join(path, SUMS), encoding="utf-8") as file:
        said = parse_sums(file.read())
    wrong = faults(said, sums_of(path))
    if wrong or ABOUT not in said:
        raise not_whole(path, ", ".join(wrong) or f"no file {ABOUT}")
    with open(os.path.join(path, ABOUT), encoding="utf-8") as file:
        return {"about": json.load(file), "sums": said}


def seal(part: str, path: str, expected: t.Mapping[str, str]) -> None:
    """Write the list of sums, and give the backup its final name. `expected` has the sums computed at the source."""
    sums = sums_of(part)
    wrong = [name for name, digest in expected.items() if sums.get(name) != digest]
    if wrong:
        raise not_whole(part, f"{', '.join(wrong)} did not arrive as sent")
    for name in sums:
        os.chmod(os.path.join(part, name), 0o600)
    descriptor = os.open(os.path.join(part, SUMS), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with open(descriptor, "w", encoding="utf-8") as file:
        file.write(format_sums(sums))
        file.flush()
        os.fsync(file.fileno())
    os.chmod(part, 0o700)
    os.rename(part, path)


def begin(path: str) -> None:
    """Create the directory for a backup, which only this run uses."""
    try:
        os.mkdir(path + PART, 0o700)
    except FileExistsError:
        raise FabricError(
            "Each backup has a directory of its own.",
            path + PART,
            "another backup began in the same second",
            "Run again: the next one gets another name.",
            code="busy",
        ) from None


def look_after(module: AnsibleModule) -> t.Dict[str, object]:
    """The body of M(ipu.fabric.control_plane_backup) with a path."""
    params = module.params
    path = os.path.abspath(params["path"])
    if params["state"] == "verified":
        return {"changed": False, "path": path, **verify(path)}
    directory, name = os.path.split(path)
    if not complete([name]):
        raise FabricError(
            "A backup must be named after its time.",
            path,
            name,
            "Use a name such as 20261123T004500Z, in UTC.",
            code="invalid-input",
        )
    if params["state"] == "begun":
        if not module.check_mode:
            begin(path)
        return {"changed": True, "path": path}
    there = os.listdir(directory) if os.path.isdir(directory) else []
    there = [each for each in there if is_of(os.path.join(directory, each), params["cluster"])]
    pruned = to_prune(there, name, params["keep"])
    if not module.check_mode:
        seal(path + PART, path, params["expected"])
        for old in pruned:
            shutil.rmtree(os.path.join(directory, old))
    before = {"backups": complete(there)}
    after = {"backups": [each for each in complete({*there, name}) if each not in pruned]}
    return outcome(before, after, path=path, pruned=pruned, later=later(there, name))
