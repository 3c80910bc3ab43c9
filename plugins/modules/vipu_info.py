#!/usr/bin/python
# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: vipu_info
short_description: Find the V-IPU controller of a Poplar host
version_added: 0.1.0
description:
  - Runs C(vipu --server-version) and returns where the V-IPU controller is, with its address resolved.
  - Asks for JSON first and reads the text form of releases without it.
  - A controller that is only known as V(localhost) is refused, because the IPU operator connects to it from the pod
    network.
  - If the module is root through sudo, C(vipu) first runs as the user who connected, in that user's login environment.
  - API access keys never appear in a message.
author:
  - ipu.fabric contributors (@ipu-fabric)
requirements:
  - The V-IPU command line tools on the host.
extends_documentation_fragment:
  - ipu.fabric.attributes
  - ipu.fabric.attributes.info
options:
  executable:
    description: The vipu command, as a name on the search path or as a path.
    type: str
    default: vipu
  api_host:
    description:
      - Host name or address of the V-IPU controller.
      - Without it vipu uses E(VIPU_CLI_API_HOST) or its configuration file.
    type: str
    default: ""
  api_port:
    description:
      - TCP port of the V-IPU controller.
      - Without it vipu uses its configuration file, or V(8090).
    type: int
  config:
    description:
      - Configuration file for vipu, on the host.
      - Without it vipu reads C(/etc/vipu/vipu-cli.hcl).
    type: str
    default: ""
  timeout:
    description: Seconds after which vipu and everything it started are killed.
    type: int
    default: 30
seealso:
  - module: ipu.fabric.rdma_info
"""

EXAMPLES = r"""
- name: Find the V-IPU controller
  ipu.fabric.vipu_info:
  register: vipu

- name: Ask a certain controller, for 10 seconds at most
  ipu.fabric.vipu_info:
    api_host: vipu.example.com
    timeout: 10
"""

RETURN = r"""
host:
  description: The controller as vipu names it, a host name or an address without brackets.
  returned: success
  type: str
  sample: vipu.example.com
port:
  description: TCP port of the controller.
  returned: success
  type: int
  sample: 8090
address:
  description: IP address of the controller, never a loopback address.
  returned: success
  type: str
  sample: 10.5.212.116
version:
  description: Version of the controller; empty when vipu does not say.
  returned: success
  type: str
  sample: 1.18.0
source:
  description: The form in which vipu answered, V(json) or V(text).
  returned: success
  type: str
  sample: json
"""

from ..module_utils._common.result import run_module
from ..module_utils._host.vipu import OPTIONS, find_controller


def main() -> None:
    run_module(dict(OPTIONS), lambda module: {**find_controller(**module.params)})


if __name__ == "__main__":
    main()
