# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Files and directories that nobody needs any more, removed unless a package owns them."""

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


def owned(answer: Done, paths: t.Sequence[str]) -> t.Dict[str, str]:
    """The packages of the paths that have one, from `dpkg-query --search`, which fails if any path has none."""
    lines = (line.rpartition(": ") for line in answer.out.splitlines())
    return {path: packages for packages, _colon, path in lines if path in paths}


def remove(path: str) -> None:
    # What a program that is ending removes at the same time is as well gone.
    with contextlib.suppress(FileNotFoundError):
        if os.path.isdir(path) and not os.path.islink(path):
            shutil.rmtree(path)
        else:
            os.unlink(path)


def run(module: AnsibleModule) -> t.Dict[str, t.Any]:
    """Body of the module paths_absent."""
    paths = module.params["paths"]
    check_paths(paths)
    there = [path for path in paths if os.path.lexists(path)]
    # Without dpkg nothing is owned, as on a host that has none.
    packages = owned(run_program(["dpkg-query", "--search", *there]), there) if there else {}
    removed = [path for path in there if path not in packages]
    if not module.check_mode:
        for path in removed:
            remove(path)
    kept = [f"{path} ({packages[path]})" for path in there if path in packages]
    return outcome(there, [path for path in there if path in packages], removed=removed, kept=kept)
