# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""As whom this collection writes to the API server, which notes it in metadata.managedFields."""

from __future__ import annotations

MANAGER = "ipu.fabric"
