# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Files of a plan in the artifacts folder: written whole, only where they differ, never in check mode."""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
import typing as t
from pathlib import Path

from ansible_collections.ipu.fabric.plugins.module_utils._common.result import FabricError, outcome
from ansible_collections.ipu.fabric.plugins.module_utils._model.plan import Plan
from ansible_collections.ipu.fabric.plugins.module_utils._plan.observation_cache import Cache
from ansible_collections.ipu.fabric.plugins.plugin_utils._render.pages import plan_page

OBSERVATIONS = "observations.json"


def read_file(path: str) -> str:
    """The text of a file, or nothing."""
    with contextlib.suppress(OSError):
        return Path(path).read_text(encoding="utf-8", errors="replace")
    return ""


def write_file(path: str, text: str) -> None:
    """A whole file or none; the plan holds no secrets, so everyone may read it."""
    handle, temporary = tempfile.mkstemp(dir=os.path.dirname(path), prefix=f".{os.path.basename(path)}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


def decisions(text: str) -> t.Optional[t.Dict[str, t.Any]]:
    """A plan without its findings, which come and go with the state of the hosts; None if the text is no plan."""
    try:
        return {key: value for key, value in json.loads(text).items() if key != "findings"}
    except (AttributeError, ValueError):
        return None


def keep_plan(folder: str, plan: Plan, cache: Cache, check_mode: bool) -> t.Dict[str, t.Any]:
    """Write the plan, and what hosts reported for it; the outcome compares it with the plan of the last run."""
    files = {
        "plan.json": json.dumps(plan, indent=2) + "\n",
        "plan.html": plan_page(plan),
        OBSERVATIONS: json.dumps(cache) + "\n",
    }
    before = {name: read_file(os.path.join(folder, name)) for name in files}
    if not check_mode:
        try:
            os.makedirs(folder, mode=0o755, exist_ok=True)
            for name, text in files.items():
                if before[name] != text:
                    write_file(os.path.join(folder, name), text)
        except OSError as error:
            raise FabricError(
                "The files of the plan can't be written.",
                folder,
                str(error),
                "Set fabric_artifacts_dir to a folder that you may write to.",
            ) from error
    return outcome(decisions(before["plan.json"]), decisions(files["plan.json"]))
