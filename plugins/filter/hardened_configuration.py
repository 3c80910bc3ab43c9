# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import typing as t

import yaml
from ansible_collections.ipu.fabric.plugins.plugin_utils._filters import plain, readable

if t.TYPE_CHECKING:
    from ansible_collections.ipu.fabric.plugins.module_utils._kubeadm.hardening import ClusterConfiguration

DOCUMENTATION = r"""
name: hardened_configuration
short_description: kubeadm's configuration of a cluster at a level of hardening
version_added: 0.1.0
description:
  - Adds the arguments of a level to the configuration, and takes those of other levels away. What has another value
    than any level gives it is the site's, and stays.
author: ipu.fabric contributors (@ipu-fabric)
options:
  _input:
    description: A ClusterConfiguration, as YAML or as a dictionary.
    type: raw
    required: true
  level:
    description: V(none), V(baseline) or V(cis).
    type: str
    required: true
  version:
    description: Release of Kubernetes.
    type: str
    required: true
  met:
    description:
      - What is there of V(encryption), every control plane can have keys, and V(kubelet-ca), every kubelet has a
        certificate of the cluster.
      - V(encrypted) says that Secrets are encrypted already, as in a backup.
    type: list
    elements: str
    default: []
  site:
    description: A ClusterConfiguration of the site. Its values of arguments of the table come first.
    type: dict
    default: {}
  left_out:
    description: Names of settings that a level has, and that this cluster does not get.
    type: list
    elements: str
    default: []
  exempt:
    description: More namespaces whose pods may be privileged, where their labels say nothing.
    type: list
    elements: str
    default: []
"""

EXAMPLES = r"""
- name: Show which settings the site has made itself
  ansible.builtin.debug:
    msg: "{{ (result.configuration | ipu.fabric.hardened_configuration('cis', '1.35.4')).kept }}"
"""

RETURN = r"""
_value:
  description:
    - The C(configuration), its C(text) as YAML, and whether it C(changed).
    - C(files) that its arguments name, C(settings) by name, C(kept) with those that the site has made itself, and
      whether C(super-admin.conf) stays as C(super_admin).
    - C(present) and C(present_files) are those of the configuration that was given.
  type: dict
"""


@readable
def hardened_configuration(
    given: t.Union[str, ClusterConfiguration],
    level: str,
    version: str,
    met: t.Sequence[str] = (),
    site: t.Optional[ClusterConfiguration] = None,
    exempt: t.Sequence[str] = (),
    left_out: t.Sequence[str] = (),
) -> t.Dict[str, t.Any]:
    """The configuration, and what else follows from the level."""
    from ansible_collections.ipu.fabric.plugins.module_utils._kubeadm.hardening import (
        CIS,
        Wanted,
        files,
        harden,
        parse_release,
        present,
    )

    before: ClusterConfiguration = (yaml.safe_load(given) or {}) if isinstance(given, str) else plain(given)
    release = parse_release(version)
    hardened = harden(before, Wanted(level, release, frozenset(met), frozenset(left_out)), plain(site or {}))
    there = present(before)
    changed = hardened.configuration != before
    text = given if isinstance(given, str) and not changed else yaml.safe_dump(hardened.configuration, width=1 << 20)
    return {
        "configuration": hardened.configuration,
        "text": text,
        "changed": changed,
        "files": files(hardened.applied, release, exempt),
        "present": [setting.name for setting in there],
        "present_files": files(there, release, exempt),
        "settings": list(dict.fromkeys(setting.name for setting in hardened.applied)),
        "kept": hardened.kept,
        "super_admin": level != CIS,
    }


class FilterModule:
    """The filter of this file."""

    def filters(self) -> t.Dict[str, t.Any]:
        return {"hardened_configuration": hardened_configuration}
