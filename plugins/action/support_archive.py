# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Redact what was collected, pack it, search it for secrets, and only then write it; or judge such an archive."""

from __future__ import annotations

import datetime
import importlib.metadata
import io
import json
import os
import platform
import typing as t

from ansible.release import __version__ as ansible_version

from ..module_utils._common.result import FabricError
from ..module_utils._support.archive import NEXT_STEP, pack, unpack
from ..module_utils._support.contents import ABOUT, ARTIFACTS, Collected, contents
from ..module_utils._support.judge import as_text, judge
from ..module_utils._support.scan import leaks
from ..modules import support_archive
from ..plugin_utils._artifacts import read_file, write_file
from ..plugin_utils._collection import collection_version
from ..plugin_utils._controller_action import ControllerAction, Result, argument_spec, lacking

LIBRARIES = ("jmespath", "netaddr")  # for the checks of a proof


def versions() -> t.Dict[str, str]:
    found = {"ipu.fabric": collection_version(), "ansible-core": ansible_version, "Python": platform.python_version()}
    for package in ("kubernetes", "netaddr", "jmespath"):
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            found[package] = "not installed"
    return found


def checked(packed: bytes, path: str) -> bytes:
    """The archive, if nothing in it looks like a secret."""
    found = leaks(unpack(io.BytesIO(packed), path))
    if found:
        raise FabricError(
            "The archive must have no secrets in it.",
            path,
            "; ".join(found[:10]),
            "Nothing was written. Report this as a bug of ipu.fabric, without the secret.",
            code="unsafe",
        )
    return packed


def judgement(path: str) -> Result:
    """What an archive shows to be wrong."""
    try:
        with open(path, "rb") as packed:
            files = unpack(packed, path)
    except OSError as error:
        raise FabricError("An archive is needed.", path, str(error), NEXT_STEP, code="unusable-file") from error
    if ABOUT not in files:
        raise FabricError(
            "The archive must say what it is.", path, f"it has no {ABOUT}", NEXT_STEP, code="unusable-file"
        )
    problems = judge(files)
    return {"changed": False, "problems": [each._asdict() for each in problems], "text": as_text(files, problems)}


class ActionModule(ControllerAction):
    """See the module of the same name."""

    spec = argument_spec(support_archive)

    def act(self, options: Result) -> Result:
        if options["path"]:
            path = os.path.join(self._loader.get_basedir(), os.path.expanduser(options["path"]))
            return lacking(LIBRARIES) or judgement(path)
        folder = os.path.join(self._loader.get_basedir(), os.path.expanduser(options["artifacts_dir"]))
        now = datetime.datetime.now(datetime.timezone.utc)
        name = f"support-{now.strftime('%Y%m%dT%H%M%SZ')}"
        path = os.path.join(folder, f"{name}.tar.gz")
        artifacts = {file: read_file(os.path.join(folder, file)) for file in ARTIFACTS}
        collected = Collected(artifacts, folder, options["cluster"], options["journals"])
        files = contents(collected, now.strftime("%Y-%m-%dT%H:%M:%SZ"), versions())
        packed = checked(pack(name, files, int(now.timestamp())), path)
        if not self._task.check_mode:
            try:
                os.makedirs(folder, mode=0o755, exist_ok=True)
                write_file(path, packed, 0o600)
            except OSError as error:
                raise FabricError(
                    "The archive could not be written.",
                    path,
                    str(error),
                    "Set fabric_artifacts_dir to a folder that you may write to.",
                    code="unusable-file",
                ) from error
        return {
            "changed": True,
            "path": path,
            "gaps": json.loads(files[ABOUT])["gaps"],
            "diff": {"before": "", "after": "".join(f"{file}\n" for file in files), "after_header": path},
        }
