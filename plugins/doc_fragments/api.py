# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What modules that speak to the API server need where they run."""

from __future__ import annotations


class ModuleDocFragment:
    # Those of kubernetes.core, whose options for logging in these modules take.
    DOCUMENTATION = r"""
options: {}
requirements:
  - kubernetes >= 24.2.0
  - PyYAML >= 3.11
  - jmespath
"""
