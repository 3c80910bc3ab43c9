#!/usr/bin/python
# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: port_probe
short_description: Find out which ports of other hosts a host can reach, and which images it can pull
version_added: 0.1.0
author: ipu.fabric contributors (@ipu-fabric)
description:
  - On bare hosts nothing listens yet, so each host first starts a temporary listener on the ports that are free. When
    all hosts have connected to the others, each stops its listener. The role P(ipu.fabric.fabric#role) does all of
    this.
  - The listener is one process called C(fabric-ports), which ends by itself when its time is up. It writes nothing to
    disk.
  - It accepts TCP connections and closes them. It returns only UDP packets and IP protocol packets of this module to
    their sender.
  - For each image, the module asks a mirror for the manifest, as containerd does. If the mirror does not have it, the
    module tries to reach the registry in the image's name. It pulls nothing.
  - An image is lacking if the mirror answers with 404 and its own registry does not answer at all. Other answers of a
    mirror prove nothing, and count as if the mirror had the image.
extends_documentation_fragment:
  - ipu.fabric.proxy
  - ipu.fabric.attributes
  - ipu.fabric.attributes.info
options:
  step:
    description:
      - V(listen) starts the listener, and stops one that an interrupted run has left behind.
      - V(connect) connects to O(targets).
      - V(stop) stops the listener.
      - V(images) asks O(mirror) for O(images).
    type: str
    choices: [listen, connect, stop, images]
    required: true
  tcp:
    description: TCP ports to listen on, with O(step=listen).
    type: list
    elements: int
    default: []
  udp:
    description: UDP ports to listen on, with O(step=listen).
    type: list
    elements: int
    default: []
  ip:
    description: Numbers of IP protocols to listen to, with O(step=listen), such as V(112) for VRRP. This needs root.
    type: list
    elements: int
    default: []
  lifetime:
    description: Seconds after which the listener ends in any case, with O(step=listen).
    type: int
    default: 300
  targets:
    description: What to connect to, with O(step=connect). M(ipu.fabric.fabric_plan) returns this.
    type: list
    elements: dict
    default: []
    suboptions:
      host:
        description: Name of the other host, used only in the result.
        type: str
        required: true
      address:
        description: Its address.
        type: str
        required: true
      source:
        description: Address of this host to connect from. Empty for that of the route.
        type: str
        default: ""
      tcp:
        description: TCP ports to connect to.
        type: list
        elements: int
        default: []
      udp:
        description: UDP ports, on which a listener of this module must run.
        type: list
        elements: int
        default: []
      ip:
        description: Numbers of IP protocols, for which a listener of this module must run.
        type: list
        elements: int
        default: []
  mirror:
    description: URL of the mirror, with V(http://) or V(https://).
    type: str
  images:
    description: Names of images. Those without a registry are Docker Hub's, as for containerd.
    type: list
    elements: str
    default: []
  login:
    description: The login for the mirror, sent with each request (Basic).
    type: dict
    default: {}
    suboptions:
      username:
        description: Name of the user.
        type: str
        default: ""
      password:
        description: Password of the user.
        type: str
        default: ""
  timeout:
    description: Seconds to wait for an answer, with O(step=connect) and O(step=images).
    type: int
    default: 3
"""

EXAMPLES = r"""
- name: Listen
  ipu.fabric.port_probe:
    step: listen
    tcp: [10250]
    udp: [4789]

- name: Connect to the next host
  ipu.fabric.port_probe:
    step: connect
    targets:
      - {host: w2, address: 10.88.0.13, tcp: [10250], udp: [4789]}
  register: result

- name: Stop the listener
  ipu.fabric.port_probe:
    step: stop

- name: Ask the mirror for the images of Calico
  ipu.fabric.port_probe:
    step: images
    mirror: https://registry.site:5000
    timeout: 10
    images:
      - quay.io/calico/node:v3.32.1
      - quay.io/calico/cni:v3.32.1
  register: images
  failed_when: images.lacking | length > 0
"""

RETURN = r"""
listener:
  description: The listener.
  returned: with O(step=listen)
  type: dict
  contains:
    name:
      description: Its name. Empty if another run has just started its own.
      type: str
    tcp:
      description: Those of O(tcp) that were free.
      type: list
      elements: int
    udp:
      description: Those of O(udp) that were free.
      type: list
      elements: int
    ip:
      description: Those of O(ip) that no program on the host uses.
      type: list
      elements: int
probes:
  description: The result of each connection.
  returned: with O(step=connect)
  type: list
  elements: dict
  contains:
    host:
      description: Name of the other host.
      type: str
    address:
      description: Its address.
      type: str
    protocol:
      description: V(TCP), V(UDP) or V(IP protocol).
      type: str
    port:
      description: The port, or the number of the IP protocol.
      type: int
    seen:
      description:
        - V(open), V(filtered) if nothing answered, V(refused), V(unreachable), V(forbidden) by this host's own
          firewall, or V(unresolved) for a name that this host can't look up.
      type: str
listened:
  description: Name of the listener that was stopped. Empty if its time was already up.
  returned: with O(step=stop)
  type: str
lacking:
  description: The images that this host can't get, in the order of O(images).
  returned: with O(step=images)
  type: list
  elements: dict
  contains:
    image:
      description: Its name.
      type: str
    seen:
      description: Why the registry in its name could not be reached.
      type: str
  sample:
    - image: quay.io/calico/node:v3.32.1
      seen: "quay.io: DNS: Name or service not known"
"""

import typing as t

from ansible.module_utils.basic import AnsibleModule

from ..module_utils._common.proxy import PROXY, use_proxy
from ..module_utils._common.result import run_module
from ..module_utils._host.port_probe import listen, probe, stop
from ..module_utils._host.registry import find_lacking

PORTS: t.Dict[str, t.Any] = {"type": "list", "elements": "int", "default": []}

LOGIN = {
    "username": {"type": "str", "default": ""},
    "password": {"type": "str", "default": "", "no_log": True},
}


def take_step(module: AnsibleModule) -> t.Dict[str, t.Any]:
    options = module.params
    if options["step"] == "listen":
        return {"listener": listen(options["tcp"], options["udp"], options["lifetime"], options["ip"])}
    if options["step"] == "connect":
        return {"probes": probe(options["targets"], options["timeout"])}
    if options["step"] == "images":
        use_proxy(options["download_proxy"])
        return {"lacking": find_lacking(options["mirror"], options["images"], options["login"], options["timeout"])}
    return {"listened": stop()}


def main() -> None:
    run_module(
        {
            "step": {"type": "str", "choices": ["listen", "connect", "stop", "images"], "required": True},
            "tcp": PORTS,
            "udp": PORTS,
            "ip": PORTS,
            "lifetime": {"type": "int", "default": 300},
            "targets": {
                "type": "list",
                "elements": "dict",
                "default": [],
                "options": {
                    "host": {"type": "str", "required": True},
                    "address": {"type": "str", "required": True},
                    "source": {"type": "str", "default": ""},
                    "tcp": PORTS,
                    "udp": PORTS,
                    "ip": PORTS,
                },
            },
            "mirror": {"type": "str"},
            "images": {"type": "list", "elements": "str", "default": []},
            "login": {"type": "dict", "default": {}, "options": LOGIN},
            "download_proxy": PROXY,
            "timeout": {"type": "int", "default": 3},
        },
        take_step,
        required_if=[("step", "images", ["mirror", "images"])],
        hidden=("login", "download_proxy"),
    )


if __name__ == "__main__":
    main()
