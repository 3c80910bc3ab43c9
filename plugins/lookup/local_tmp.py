# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A place for what must not outlive a run."""

from __future__ import annotations

DOCUMENTATION = r"""
name: local_tmp
short_description: Return the directory on the controller that Ansible removes when the run ends
version_added: 0.1.0
author: ipu.fabric contributors (@ipu-fabric)
description:
  - Returns the directory below C(local_tmp) that C(ansible-playbook) has made for this run, for its user alone.
  - It is removed when the run ends, also when that fails.
  - P(ansible.builtin.config#lookup) is no way to it, as it makes another directory, which stays.
options:
  _terms:
    description: None.
"""

EXAMPLES = r"""
- name: Keep a kubeconfig for the rest of the run
  ansible.builtin.copy:
    content: "{{ result.content | b64decode }}"
    dest: "{{ lookup('ipu.fabric.local_tmp') }}/admin.conf"
    mode: "0600"
  delegate_to: localhost
  no_log: true
"""

RETURN = r"""
_raw:
  description: Path of the directory.
  type: list
  elements: str
"""

import typing as t

from ansible import constants
from ansible.plugins.lookup import LookupBase


class LookupModule(LookupBase):
    """See the documentation above."""

    def run(self, terms: t.Sequence[str], variables: t.Any = None, **options: t.Any) -> t.List[str]:
        return [constants.DEFAULT_LOCAL_TMP]
