# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A bundle on the controller: its list, compared with its files."""

from __future__ import annotations

import json
import os
import typing as t

from ..module_utils._common.result import FabricError
from ..module_utils._host.bundle import fault_of
from ..module_utils._model.bundle import LIST, SCHEMA, Bundle, BundleFile, SeenBundle

KEPT_HERE = ("charts/", "helm/", "manifests/")  # no host gets these, so they are compared before anything is changed
UNFINISHED = "Make it with ipu.fabric.bundle, which goes on where it stopped."


def read_bundle(path: str) -> Bundle:
    """The list of a bundle, or the error that says why there is none."""
    place = os.path.join(path, LIST)
    try:
        with open(place, encoding="utf-8") as file:
            content: Bundle = json.load(file)
        if content["schema"] != SCHEMA:
            raise ValueError(f"its schema is {content['schema']}, this release of the collection reads {SCHEMA}")
        return content
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise FabricError(
            "The list of the bundle can't be read.", place, str(error), UNFINISHED, code="unusable-file"
        ) from error


def see_bundle(path: str) -> t.Optional[SeenBundle]:
    """A bundle for the plan. Large files are compared by their size, and by their digest when they get to a host."""
    if not path:
        return None
    try:
        content = read_bundle(path)
    except FabricError as error:
        return SeenBundle(path, f"{error.where}: {error.seen}", [], None)
    faults = {name: _fault(os.path.join(path, name), name, wanted) for name, wanted in content["files"].items()}
    return SeenBundle(path, "", [f"{name} ({fault})" for name, fault in faults.items() if fault], content)


def _fault(path: str, name: str, wanted: BundleFile) -> str:
    if name.startswith(KEPT_HERE) or not os.path.isfile(path):
        return fault_of(path, wanted)
    size = os.path.getsize(path)
    return "" if size == wanted["size"] else f"{size} bytes instead of {wanted['size']}"
