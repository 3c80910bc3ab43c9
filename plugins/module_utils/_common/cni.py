# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""CNI configurations: one plugin, or a chain of them."""

from __future__ import annotations

import json
import typing as t


def plugins_of(text: object) -> t.List[t.Dict[str, t.Any]]:
    """The plugins of a configuration, in their order; none if it can't be read."""
    try:
        config = json.loads(str(text or "{}"))
    except ValueError:
        return []
    chain = config.get("plugins") if isinstance(config, dict) else None
    return [plugin for plugin in (chain if isinstance(chain, list) else [config]) if isinstance(plugin, dict)]
