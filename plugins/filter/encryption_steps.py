# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import typing as t

from ansible_collections.ipu.fabric.plugins.plugin_utils._filters import readable

if t.TYPE_CHECKING:
    from ansible_collections.ipu.fabric.plugins.module_utils._kubeadm.encryption import Rollout

DOCUMENTATION = r"""
name: encryption_steps
short_description: In which steps the key of Secrets in etcd comes or is replaced
version_added: 0.1.0
description:
  - Completes what an interrupted run has begun, before it begins anything else.
author: ipu.fabric contributors (@ipu-fabric)
options:
  _input:
    description: Of each control plane by name, what M(ipu.fabric.secrets_encryption) read.
    type: dict
    required: true
  wanted:
    description: Whether Secrets are to be encrypted. Where they are already, they stay so.
    type: bool
    required: true
  rotate:
    description: Whether a new key replaces the one that is there.
    type: bool
    default: false
"""

EXAMPLES = r"""
- name: Show with which key Secrets are written
  ansible.builtin.debug:
    msg: "{{ (read | ipu.fabric.encryption_steps(true)).new }}"
"""

RETURN = r"""
_value:
  description:
    - Orders of keys for M(ipu.fabric.secrets_encryption), C(before) and C(after) all Secrets are written again, and
      the name of the C(new) key.
    - The C(source) is a control plane that has every key. C(generate) is whether none has the new one.
  type: dict
"""


@readable
def encryption_steps(planes: t.Mapping[str, t.Mapping[str, t.Any]], wanted: bool, rotate: bool = False) -> Rollout:
    """The steps, or the error that says why there are none."""
    from ansible_collections.ipu.fabric.plugins.module_utils._kubeadm.encryption import (
        check_same,
        find_source,
        plan_steps,
        refuse_foreign,
    )

    digests = {name: seen["digests"] for name, seen in planes.items()}
    check_same(digests)
    steps = plan_steps({name: list(seen["order"]) for name, seen in planes.items()}, wanted, rotate)
    if steps["before"]:
        refuse_foreign({name: seen.get("foreign", ()) for name, seen in planes.items()})
    generate = not any(steps["new"] in names for names in digests.values())
    return {**steps, "source": find_source(digests), "generate": generate}


class FilterModule:
    """The filter of this file."""

    def filters(self) -> t.Dict[str, t.Any]:
        return {"encryption_steps": encryption_steps}
