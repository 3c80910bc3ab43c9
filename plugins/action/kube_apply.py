# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The action of modules that only talk to the Kubernetes API: those of the other modules are links to this one."""

from __future__ import annotations

from ..plugin_utils._api_action import ApiAction as ActionModule

__all__ = ["ActionModule"]
