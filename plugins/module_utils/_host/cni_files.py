# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""CNI configurations on a host. Runtimes use the one whose name sorts first, no matter who put it there."""

from __future__ import annotations

import os
import typing as t

from .._common.cilium import BACKUP
from .._common.cni import plugins_of
from .._model.observation import CniFile
from .files import read_text

ENDINGS = (".conf", ".conflist", ".json")  # that runtimes read


def plugin_of(text: str) -> str:
    """The first plugin in a configuration; empty if it can't be read."""
    first = next((plugin.get("type") for plugin in plugins_of(text)), "")
    return first if isinstance(first, str) else ""


def read_disabled(directory: str, root: str = "/") -> t.List[CniFile]:
    """CNI configurations that Cilium renamed, so that no runtime reads them."""
    return read_cni_files(directory, root, (BACKUP,))


def read_cni_files(directory: str, root: str = "/", endings: t.Tuple[str, ...] = ENDINGS) -> t.List[CniFile]:
    """CNI configurations in the order in which runtimes consider them."""
    folder = os.path.join(root, directory.lstrip("/"))
    try:
        names = sorted(name for name in os.listdir(folder) if name.endswith(endings))
    except OSError:  # the directory does not exist yet
        return []
    return [
        {"name": name, "plugin": plugin_of(read_text(os.path.join(folder, name)))}
        for name in names
        if os.path.isfile(os.path.join(folder, name))
    ]
