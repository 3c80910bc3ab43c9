# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A plan in a file on the controller, with which the plan of a run is compared."""

from __future__ import annotations

import json
import typing as t
from pathlib import Path

from ..module_utils._model.settings import PlanFile


def see_plan(path: str) -> t.Optional[PlanFile]:
    """What the file has, or why it is not a plan; None if no file is given."""
    if not path:
        return None
    try:
        content = json.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        return PlanFile(path, error.strerror or str(error), None)
    except ValueError as error:
        return PlanFile(path, f"it is not JSON: {error}", None)
    if not isinstance(content, dict) or not isinstance(content.get("hosts"), dict):
        return PlanFile(path, "it is JSON, but not a plan", None)
    return PlanFile(path, "", content)
