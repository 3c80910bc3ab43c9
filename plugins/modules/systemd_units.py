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
  - Writes several small files in one call, reloads systemd if a unit file changed, and enables, starts or restarts
    units.
  - Restarts a unit only if it has been running since before one of its files was written, so tasks need not pass on
    anything. If a run is interrupted before the restart, the next one restarts the unit.
  - Asks a container runtime (containerd, docker, cri-docker, crio) whether it works, as a kubelet does, or with
    C(docker info). If it does not, the module restores the content of its files with which it last worked, restarts it,
    and fails with what the runtime refused. C(/var/lib/ipu-fabric/former-NAME.json) keeps the former content until
    then.
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
          - Settings of C(dockerd) for its C(daemon.json), instead of O(files[].content) and O(files[].mode). A flag of
            Docker's unit may name another O(files[].path).
          - Everything else in that file stays. In an object, only the named keys are set. In a list of C(name=value)
            options, those of the same name are replaced. C(log-opts) and C(storage-opts) of a driver other than the one
            set here are removed, and a runtime is replaced as a whole.
          - Refuses a setting that a flag of Docker's unit also sets, since C(dockerd) would not start, and a file that
            is not valid JSON.
        type: dict
        default: {}
      mode:
        description: Permissions in octal digits, with a leading zero.
        type: str
        default: "0644"
      state:
        description:
          - Whether the file should exist. With O(files[].content), V(absent) removes only a file with that content,
            comments aside. A file of the role P(ipu.fabric.kubernetes#role) is removed if it looks as that role writes
            it.
        type: str
        choices: [present, absent]
        default: present
      backup:
        description: Keep a copy of the earlier file, with a time stamp in its name.
        type: bool
        default: false
      validate:
        description:
          - A command with C(%s) in place of the file. If it fails, the file is left as it was.
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
        description: Start the service at boot. V(false) leaves this as it is.
        type: bool
        default: true
      started:
        description: Start the service now. V(false) does not start it, but a running one that is stale is restarted.
        type: bool
        default: true
      restart:
        description:
          - Whether a running service is restarted, with V(stale) if it has not read its files since they changed.
          - With V(reload), a service that has not read its files is told to read them, and keeps running. Docker with
            C(live-restore) in O(files[].settings) must then report that containers keep running while it restarts.
          - With V(never), RV(stale) only names it.
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
