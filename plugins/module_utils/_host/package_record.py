# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Records which packages this collection installed or put on hold: it removes or releases only those.

apt can't tell: a package from our repository may have been there before. The record is written before apt installs, so
that it also covers a run that was killed during the installation.
"""

from __future__ import annotations

import json
import typing as t

from .._common.result import FabricError
from .files import read_file, write_file

if t.TYPE_CHECKING:
    from ansible.module_utils.basic import AnsibleModule

PATH = "/var/lib/ipu-fabric/packages.json"


class PackageRecord(t.TypedDict):
    """Names of packages."""

    installed: t.List[str]  # packages that were not there before, with their dependencies
    held: t.List[str]  # packages that were not on hold before
    replaced: t.Dict[str, t.List[str]]  # the host's own packages that were removed, by the package that replaced them


def parse_record(text: str) -> PackageRecord:
    try:
        record = json.loads(text or "{}")
        return {
            "installed": list(record.get("installed", [])),
            "held": list(record.get("held", [])),
            "replaced": {name: list(gone) for name, gone in record.get("replaced", {}).items()},
        }
    except (AttributeError, ValueError) as error:
        raise FabricError(
            "The record of installed packages can't be read.",
            PATH,
            str(error),
            "Remove the file: the packages then count as installed by somebody else, and stay.",
            code="unusable-file",
        ) from error


def read_record() -> PackageRecord:
    """The record; empty if there is none, as on hosts that an earlier release of this collection set up."""
    file = read_file(PATH)
    return parse_record(file["content"] if file else "")


def add_to_record(
    module: AnsibleModule,
    installed: t.Iterable[str] = (),
    held: t.Iterable[str] = (),
    replaced: t.Optional[t.Mapping[str, t.Sequence[str]]] = None,
) -> None:
    before = read_record()
    gone = {name: {*before["replaced"].get(name, ()), *others} for name, others in (replaced or {}).items()}
    after: PackageRecord = {
        "installed": sorted({*before["installed"], *installed}),
        "held": sorted({*before["held"], *held}),
        "replaced": {**before["replaced"], **{name: sorted(others) for name, others in gone.items() if others}},
    }
    if after != before:
        write_file(module, PATH, json.dumps(after, indent=2) + "\n")
