#!/usr/bin/python
# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: systemd_units
short_description: Write files, and enable, start or restart the systemd units that read them
version_added: 0.1.0
description:
  - Writes several small files in one call, reloads systemd where a unit file changed, and enables, starts or restarts
    units.
  - A unit is restarted only when it has been running since before one of its files was written. So nothing has to be
    remembered between tasks. When a run is interrupted before the restart, the next one restarts it.
  - A container runtime (containerd, docker, cri-docker, crio) is asked whether it works, as a kubelet asks it, or by
    C(docker info). Where it does not, its files get the content with which it last worked, it is restarted, and the
    module fails with what it has refused. C(/var/lib/ipu-fabric/former-NAME.json) keeps that content until then.
author:
  - ipu.fabric contributors (@ipu-fabric)
extends_documentation_fragment:
  - ipu.fabric.attributes
  - ipu.fabric.attributes.action
options:
  files:
    description: Files to write or remove.
    type: list
    elements: dict
    default: []
    suboptions:
      path:
        description: Absolute path. Directories above it are created with mode V(0755).
        type: path
        required: true
      content:
        description: The whole text of the file.
        type: str
      settings:
        description:
          - Settings of C(dockerd) for its C(daemon.json), in place of O(files[].content) and O(files[].mode). A flag of
            Docker's unit may name another O(files[].path).
          - All else in that file stays. Of an object only the named keys are set. Of a list of options as C(name=value)
            those of the same name are replaced. C(log-opts) and C(storage-opts) of another driver than the one that is
            set here are left out, and a runtime is replaced as a whole.
          - Refuses a setting that a flag of Docker's unit has too, with which C(dockerd) would not start, and a file
            that is not valid JSON.
        type: dict
        default: {}
      mode:
        description: Permissions in octal digits, with a leading zero.
        type: str
        default: "0644"
      state:
        description:
          - Whether the file is there. With O(files[].content), V(absent) removes only a file that has it, comments
            aside. One of the role P(ipu.fabric.kubernetes#role) is removed where it looks like that.
        type: str
        choices: [present, absent]
        default: present
      backup:
        description: Keep a copy of what the file was, with a time stamp in its name.
        type: bool
        default: false
      validate:
        description:
          - A command with C(%s) in place of the file. Where it fails, the file is left as it was.
          - In check mode it is not run.
        type: str
        default: ""
      units:
        description: Names of services, without C(.service), that read the file when they start.
        type: list
        elements: str
        default: []
  units:
    description: Services to enable, start, or restart.
    type: list
    elements: dict
    default: []
    suboptions:
      name:
        description: Name without C(.service).
        type: str
        required: true
      enabled:
        description: Start it at boot. V(false) leaves that as it is.
        type: bool
        default: true
      started:
        description: Start it now. V(false) leaves it as it is, but restarts a running one that is stale.
        type: bool
        default: true
      restart:
        description:
          - Whether one that runs is restarted, V(stale) if it has not read its files since they changed.
          - With V(reload) one that has not read its files is told to read them, and goes on. Of Docker with
            C(live-restore) in O(files[].settings) it then has to say that containers go on while it restarts.
          - With V(never) it is only named in RV(stale).
        type: str
        choices: [stale, reload, never, always]
        default: stale
"""

EXAMPLES = r"""
- name: Configure containerd
  ipu.fabric.systemd_units:
    files:
      - path: /etc/containerd/config.toml
        content: "{{ lookup('ansible.builtin.template', 'config.toml.j2') }}"
        units: [containerd]
      - path: /etc/systemd/system/containerd.service.d/10-limits.conf
        content: |
          [Service]
          LimitMEMLOCK=infinity
        units: [containerd]
    units:
      - name: containerd
"""

RETURN = r"""
restarted:
  description: Services that were restarted, or would be in check mode.
  type: list
  elements: str
  returned: success
  sample: [containerd]
stale:
  description: Services that were left running with old files.
  type: list
  elements: str
  returned: success
  sample: []
"""

from ..module_utils._common.result import run_module
from ..module_utils._host.systemd import apply_units

FILE_OPTIONS = {
    "path": {"type": "path", "required": True},
    "content": {"type": "str"},
    "mode": {"type": "str", "default": "0644"},
    "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
    "backup": {"type": "bool", "default": False},
    "validate": {"type": "str", "default": ""},
    "units": {"type": "list", "elements": "str", "default": []},
    "settings": {"type": "dict", "default": {}},
}
UNIT_OPTIONS = {
    "name": {"type": "str", "required": True},
    "enabled": {"type": "bool", "default": True},
    "started": {"type": "bool", "default": True},
    "restart": {"type": "str", "choices": ["stale", "reload", "never", "always"], "default": "stale"},
}


def main() -> None:
    run_module(
        {
            "files": {"type": "list", "elements": "dict", "default": [], "options": FILE_OPTIONS},
            "units": {"type": "list", "elements": "dict", "default": [], "options": UNIT_OPTIONS},
        },
        apply_units,
        hidden=("files",),
    )


if __name__ == "__main__":
    main()
