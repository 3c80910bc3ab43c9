# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Files and directories that no package owns, removed once nobody needs them."""

from __future__ import annotations

import contextlib
import os
import shutil
import typing as t

from ansible_collections.ipu.fabric.plugins.module_utils._common.command import Done, run_program
from ansible_collections.ipu.fabric.plugins.module_utils._common.result import FabricError, outcome

if t.TYPE_CHECKING:
    from ansible.module_utils.basic import AnsibleModule

# /etc/cni has two parts: nothing as high as that is ever removed.
PARTS = 3


def check_paths(paths: t.Sequence[str]) -> None:
    """Refuse what looks like the empty end of a template, before anything is removed."""
    for path in paths:
        if (
            not os.path.isabs(path)
            or os.path.normpath(path) != path
            or len(list(filter(None, path.split("/")))) < PARTS
        ):
            raise FabricError(
                "Only an absolute path deep in the file system is removed.",
                "paths",
                repr(path),
                "Write it in full, as in /etc/cni/net.d/multus.d.",
            )


def parse_owners(answer: Done, paths: t.Sequence[str]) -> t.Dict[str, str]:
    """The packages of the paths that have one, from `dpkg-query --search`, which fails if any path has none."""
    lines = (line.rpartition(": ") for line in answer.out.splitlines())
    return {path: packages for packages, _colon, path in lines if path in paths}


def remove_path(path: str) -> None:
    # A program that is just ending may remove it at the same time.
    with contextlib.suppress(FileNotFoundError):
        if os.path.isdir(path) and not os.path.islink(path):
            shutil.rmtree(path)
        else:
            os.unlink(path)


def remove_unowned_files(module: AnsibleModule) -> t.Dict[str, object]:
    """The body of M(ipu.fabric.unowned_files)."""
    paths: t.List[str] = module.params["paths"]
    check_paths(paths)
    present = [path for path in paths if os.path.lexists(path)]
    # A host without dpkg has no packages that own anything.
    owners = parse_owners(run_program(["dpkg-query", "--search", *present]), present) if present else {}
    removed = [path for path in present if path not in owners]
    if not module.check_mode:
        for path in removed:
            remove_path(path)
    kept = [f"{path} ({owners[path]})" for path in present if path in owners]
    return outcome(present, [path for path in present if path in owners], removed=removed, kept=kept)
