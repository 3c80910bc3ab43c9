# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Configurations of pod networks on a host. Runtimes take the first one by its name, whoever has put it there."""

from __future__ import annotations

import os
import typing as t

from .._common.cilium import BACKUP
from .._common.cni import plugins_of
from .._model.observation import CniFile
from .files import read_text

ENDINGS = (".conf", ".conflist", ".json")  # that runtimes read


def plugin_of(text: str) -> str:
    """The plugin that a configuration starts first; empty where it can't be read."""
    first = next((plugin.get("type") for plugin in plugins_of(text)), "")
    return first if isinstance(first, str) else ""


def read_disabled(directory: str, root: str = "/") -> t.List[CniFile]:
    """Those that Cilium has renamed, so that no runtime looks at them."""
    return read_cni_files(directory, root, (BACKUP,))


def read_cni_files(directory: str, root: str = "/", endings: t.Tuple[str, ...] = ENDINGS) -> t.List[CniFile]:
    """In the order in which runtimes look at them."""
    folder = os.path.join(root, directory.lstrip("/"))
    try:
        names = sorted(name for name in os.listdir(folder) if name.endswith(endings))
    except OSError:  # there is no such directory yet
        return []
    return [
        {"name": name, "plugin": plugin_of(read_text(os.path.join(folder, name)))}
        for name in names
        if os.path.isfile(os.path.join(folder, name))
    ]
