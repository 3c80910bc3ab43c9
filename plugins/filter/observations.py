# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import typing as t

from ..plugin_utils._filters import on_first_use

PLACE = "plugin_utils._observations"


class FilterModule:
    """Filters of this file."""

    def filters(self) -> t.Dict[str, t.Callable[..., t.Any]]:
        return {name: on_first_use(PLACE, name) for name in ("known_nodes", "observations")}
