# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""These tests go on where molecule's scenario default has left its cluster, whose pod network is Calico."""

from __future__ import annotations

from typing import Any

import pytest


@pytest.fixture(scope="session")
def variables() -> dict[str, Any]:
    return {"fabric_cni": "calico"}
