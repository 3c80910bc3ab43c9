#!/usr/bin/python
# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: rdma_info
short_description: Return the RDMA links of a host
version_added: 0.1.0
description:
  - Returns the network devices that a fabric may use, with RDMA, addresses, and what lies below bonds and VLANs.
  - Also returns GPUs, routes, the RDMA network namespace mode, limits of locked memory, and kernel modules.
  - Reads sysfs and asks C(ip), C(rdma) and C(systemctl). The last two may be missing. Changes nothing.
author:
  - ipu.fabric contributors (@ipu-fabric)
requirements:
  - iproute2 4.14 or later on the host.
extends_documentation_fragment:
  - ipu.fabric.attributes
  - ipu.fabric.attributes.info
options:
  routes_to:
    description: IP addresses to look up the route to, such as that of the V-IPU controller.
    type: list
    elements: str
    default: []
seealso:
  - module: ipu.fabric.vipu_info
  - module: ipu.fabric.rdma_subnet
"""

EXAMPLES = r"""
- name: Read the RDMA links and the route to V-IPU
  ipu.fabric.rdma_info:
    routes_to: ["{{ vipu.address }}"]
  register: host
"""

RETURN = r"""
rdma:
  description: The RDMA facts of the host.
  returned: success
  type: dict
  contains:
    links:
      description:
        - Network devices that have RDMA, are or stand on hardware, or have a global address. Never the loopback.
        - RDMA fields of a bond or VLAN are those of the best port below it.
      type: list
      elements: dict
      contains:
        netdev:
          description: Name of the network device.
          type: str
          sample: ens1f0np0
        altnames:
          description: Further names of the network device.
          type: list
          elements: str
          sample: [enp129s0f0np0]
        device:
          description: Name of the RDMA device; empty when there is none.
          type: str
          sample: mlx5_0
        port:
          description: Port of the RDMA device; V(0) when there is none.
          type: int
          sample: 1
        pci:
          description: PCI address; empty for devices without one.
          type: str
          sample: "0000:81:00.0"
        path:
          description: Path of the PCI function in sysfs, from the host bridge on; empty for devices without one.
          type: str
          sample: pci0000:80/0000:80:01.0/0000:81:00.0
        numa_node:
          description: NUMA node of the PCI function; V(-1) when there is none.
          type: int
          sample: 1
        driver:
          description: Driver of the RDMA device, so V(vmw_pvrdma) for PVRDMA; without one that of the network device.
          type: str
          sample: mlx5_core
        kind:
          description: V(physical), V(vf), V(bond), V(vlan) or V(other).
          type: str
          sample: physical
        link_layer:
          description: V(Ethernet) or V(InfiniBand); empty without RDMA.
          type: str
          sample: Ethernet
        state:
          description: State of the RDMA port, such as V(ACTIVE) or V(DOWN); empty without RDMA.
          type: str
          sample: ACTIVE
        up:
          description: Whether the network device can carry traffic.
          type: bool
          sample: true
        mtu:
          description: MTU in bytes.
          type: int
          sample: 9000
        rate_gbps:
          description: Gb/s of the port; V(null) where it is not known, as of software RDMA.
          type: float
          sample: 100.0
        pcie:
          description:
            - The narrowest PCIe link between the NIC and its processor, with what both of its ends can.
            - V(null) without PCIe, and in a guest of a hypervisor, which invents it.
          type: dict
          contains:
            pci:
              description: PCI address of the function at its lower end.
              type: str
              sample: "0000:81:00.0"
            speed_gtps:
              description: Its speed in GT/s.
              type: float
              sample: 16.0
            width:
              description: Its lanes.
              type: int
              sample: 16
            max_speed_gtps:
              description: The speed in GT/s that both ends can.
              type: float
              sample: 16.0
            max_width:
              description: The lanes that both ends have.
              type: int
              sample: 16
            gbps:
              description: What speed and width carry in Gb/s, their encoding taken off.
              type: float
              sample: 252.1
        model:
          description: Board of the NIC, else vendor and device of its PCI function; empty where it is not known.
          type: str
          sample: MT_0000000359
        firmware:
          description: Release of the firmware of the RDMA device; empty where there is none.
          type: str
          sample: 20.35.1012
        mac:
          description: Hardware address.
          type: str
          sample: 0c:42:a1:00:00:01
        lower:
          description: The members of a bond or bridge, or the device below a VLAN.
          type: list
          elements: str
          sample: []
        rdma_netdevs:
          description: The devices at the bottom whose hardware carries RDMA. These are what a device plugin selects.
          type: list
          elements: str
          sample: [ens1f0np0]
        addresses:
          description: Lasting global addresses with their prefix lengths.
          type: list
          elements: dict
          sample:
            - {address: 10.5.0.11, prefix: 24}
    gpus:
      description:
        - NVIDIA GPUs in PCI order, each with C(pci), C(path) and C(numa_node) as those of links.
        - C(model) is vendor and device of its PCI function; empty where they are not known.
      type: list
      elements: dict
      sample:
        - {pci: "0000:82:00.0", path: "pci0000:80/0000:80:03.0/0000:82:00.0", numa_node: 1, model: "10de:2330"}
    netns_mode:
      description: V(shared) or V(exclusive); empty when the kernel has no RDMA.
      type: str
      sample: shared
    routes:
      description: C(dev), C(source) address and C(gateway) for each address of O(routes_to); empty where there is none.
      type: dict
      sample:
        10.5.0.20: {dev: ens1f0np0, source: 10.5.0.11, gateway: ""}
    memlock:
      description: Limit of locked memory of each container runtime that is installed, V(infinity) or bytes as a string.
      type: dict
      sample: {containerd: infinity}
    modules:
      description: Kernel modules around RDMA that are loaded or built in.
      type: list
      elements: str
      sample: [ib_core, ib_uverbs, mlx5_core, mlx5_ib]
    rdma_subsystem:
      description: Whether the kernel's RDMA core is there at all.
      type: bool
      sample: true
"""

from ansible_collections.ipu.fabric.plugins.module_utils._common.result import run_module
from ansible_collections.ipu.fabric.plugins.module_utils._host.links import read_rdma


def main() -> None:
    run_module(
        {"routes_to": {"type": "list", "elements": "str", "default": []}},
        lambda module: {"rdma": read_rdma(module.params["routes_to"])},
    )


if __name__ == "__main__":
    main()
