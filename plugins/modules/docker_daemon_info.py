#!/usr/bin/python
# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: docker_daemon_info
short_description: Say what Docker's daemon.json becomes with settings
version_added: 0.1.0
description:
  - Merges settings into what the C(daemon.json) of this host has, and keeps all else. It writes nothing.
  - Refuses a setting that a flag of Docker's unit has too, with which C(dockerd) would not start, and a file that is
    not valid JSON.
author:
  - ipu.fabric contributors (@ipu-fabric)
extends_documentation_fragment:
  - ipu.fabric.attributes
  - ipu.fabric.attributes.info
options:
  settings:
    description:
      - Settings of C(dockerd). Of an object only the named keys are set. Of a list of options as C(name=value) those
        of the same name are replaced.
      - C(log-opts) and C(storage-opts) of another driver than the one that is set here are left out, and a runtime is
        replaced as a whole.
    type: dict
    default: {}
  cri_dockerd:
    description:
      - Release of cri-dockerd that the node needs. One that somebody else has installed has to be that one, and has to
        answer. Empty asks nothing.
    type: str
    default: ""
"""

EXAMPLES = r"""
- name: Read what it becomes
  ipu.fabric.docker_daemon_info:
    settings:
      exec-opts: [native.cgroupdriver=systemd]
      live-restore: true
  register: __docker_daemon

- name: Write it, and restart Docker
  ipu.fabric.systemd_units:
    files:
      - path: "{{ __docker_daemon.path }}"
        content: "{{ __docker_daemon.content }}"
        mode: "{{ __docker_daemon.mode }}"
        validate: /usr/bin/dockerd --validate --config-file %s
        units: [docker]
    units:
      - name: docker
"""

RETURN = r"""
path:
  description: The file, C(/etc/docker/daemon.json) unless a flag of Docker's unit names another.
  type: str
  returned: success
content:
  description: What it becomes. It is the text that is there where that says so already.
  type: str
  returned: success
mode:
  description: Its permissions, in octal digits with a leading zero.
  type: str
  returned: success
differs:
  description: Whether that is another text than the one that is there.
  type: bool
  returned: success
keeps_containers:
  description: Whether containers go on while Docker restarts. The daemon that runs has C(live-restore) on.
  type: bool
  returned: success
others_cri_dockerd:
  description: Whether somebody else has installed cri-dockerd, which then stays as it is.
  type: bool
  returned: success
"""

from ansible_collections.ipu.fabric.plugins.module_utils._common.result import run_module
from ansible_collections.ipu.fabric.plugins.module_utils._host.docker import read_daemon


def main() -> None:
    run_module(
        {"settings": {"type": "dict", "default": {}}, "cri_dockerd": {"type": "str", "default": ""}}, read_daemon
    )


if __name__ == "__main__":
    main()
