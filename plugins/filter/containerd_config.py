# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import typing as t

from ansible_collections.ipu.fabric.plugins.plugin_utils._filters import on_first_use

DOCUMENTATION = r"""
name: containerd_config
short_description: The configuration of containerd for Kubernetes, beside what others have set
version_added: 0.1.0
description:
  - Puts what Kubernetes needs into a drop-in, C(/etc/containerd/conf.d/10-kubernetes.toml), and has the main file
    import it.
  - Of the main file only C(imports) is changed, C(disabled_plugins) where it turns off the CRI, and C(version) where it
    has none. Comments and all else stay.
  - A drop-in whose name comes after C(10-kubernetes) wins over this one.
  - C(config_path) of registries is left to the site where it has set it, or has tables that C(containerd) does not take
    beside it. It fails, and shows the C(hosts.toml) for them, if there is a O(mirror).
  - The directories of CNI files are set where C(containerd) would look for them elsewhere.
author: ipu.fabric contributors (@ipu-fabric)
positional: release, pause_image, restrict_oom_score_adj, settings, others, mirror, cni
options:
  _input:
    description: The text of C(/etc/containerd/config.toml). Empty when there is none.
    type: str
    required: true
  release:
    description: Release of containerd.
    type: str
    required: true
  pause_image:
    description: The pause image.
    type: str
    required: true
  restrict_oom_score_adj:
    description: Keep containers' OOM score at containerd's own or above.
    type: bool
    default: false
  settings:
    description: More settings for the drop-in, with the table names of the main file's version. They win.
    type: dict
    default: {}
  others:
    description: Texts of drop-ins that others have made, by their paths.
    type: dict
    default: {}
  mirror:
    description: Whether there is a registry mirror, whose C(hosts.toml) is in C(/etc/containerd/certs.d).
    type: bool
    default: false
  cni:
    description:
      - C(plugins) and C(networks), the directories in which pod networks put their plugins and configurations. Empty is
        C(/opt/cni/bin) and C(/etc/cni/net.d).
    type: dict
    default: {}
"""

EXAMPLES = r"""
- name: Show what the main file becomes
  ansible.builtin.debug:
    msg: "{{ ('version = 3' | ipu.fabric.containerd_config('2.2.1', 'registry.k8s.io/pause:3.10.1')).main }}"
"""

RETURN = r"""
_value:
  description: C(main), the text of the main file, and C(drop_in), the settings of the drop-in as a mapping.
  type: dict
"""


class FilterModule:
    """The filter of this file."""

    def filters(self) -> t.Dict[str, t.Any]:
        return {"containerd_config": on_first_use("plugin_utils._render.containerd", "containerd_config")}
