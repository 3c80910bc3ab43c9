# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The attributes that every module states."""

from __future__ import annotations


class ModuleDocFragment:
    DOCUMENTATION = r"""
options: {}
notes:
  - A failure has the part C(error) for machines, with C(code), C(what), C(where), C(seen), C(next_step) and
    C(transient). U(https://github.com/ipu-fabric/ipu.fabric/blob/main/docs/errors.md) lists the codes.
attributes:
  check_mode:
    description: Can run in check mode and say what it would do, without doing it.
  diff_mode:
    description: Returns what changed, or would change, when diff mode is on.
  idempotent:
    description: A second run with the same options changes nothing.
  action_group:
    description: Takes the defaults that C(module_defaults) sets for the group C(ipu.fabric.all).
    support: full
    membership: [ipu.fabric.all]
"""

    # For modules that only look.
    INFO = r"""
options: {}
attributes:
  check_mode:
    support: full
    details: Changes nothing.
  diff_mode:
    support: N/A
    details: Changes nothing.
  idempotent:
    support: full
    details: Changes nothing.
"""

    # For modules that change something.
    ACTION = r"""
options: {}
attributes:
  check_mode:
    support: full
  diff_mode:
    support: full
  idempotent:
    support: full
"""
