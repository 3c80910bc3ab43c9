#!/usr/bin/python
# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: host_info
short_description: Return what decides whether a host can become a node
version_added: 0.1.0
author: ipu.fabric contributors (@ipu-fabric)
description:
  - Reads what decides whether a host can become a node, in one call, from files where it can be.
  - Only reads. M(ipu.fabric.fabric_plan) checks the results of all hosts.
extends_documentation_fragment:
  - ipu.fabric.attributes
  - ipu.fabric.attributes.info
options:
  ports:
    description: TCP ports that should be free.
    type: list
    elements: int
    default: [2379, 2380, 6443, 9345, 10250, 10256, 10257, 10259]
  modules:
    description: Kernel modules that should be available, loaded or not.
    type: list
    elements: str
    default: [overlay, br_netfilter, macvlan]
  paths:
    description: Directories whose free space is returned.
    type: list
    elements: path
    default: [/var/lib]
  names:
    description: Host names that should resolve.
    type: list
    elements: str
    default: []
  controller_time:
    description:
      - Seconds since 1970 on the controller, to compare clocks with.
      - With V(0) the clocks are not compared.
    type: float
    default: 0
  vip:
    description:
      - A virtual address for the API, to find out who has it. A TCP connection to its port 6443 is tried.
      - That takes about four seconds where nobody has it.
    type: str
    default: ""
  ntp:
    description:
      - Names or addresses of NTP servers that should answer. Each is asked for the time, for five seconds at most.
    type: list
    elements: str
    default: []
"""

EXAMPLES = r"""
- name: Read the facts of a host
  ipu.fabric.host_info:
    ports: [6443]
    names: [registry.example.com]
    controller_time: "{{ now().timestamp() }}"
  register: result
"""

RETURN = r"""
host:
  description: The facts of the host.
  returned: success
  type: dict
  contains:
    hostname:
      description: Its name.
      type: str
    machine_id:
      description: Content of /etc/machine-id.
      type: str
    macs:
      description: MACs of its real NICs, sorted.
      type: list
      elements: str
    distribution:
      description: ID of os-release.
      type: str
      sample: debian
    release:
      description: Code name of the distribution's release.
      type: str
      sample: bookworm
    version:
      description: VERSION_ID of os-release.
      type: str
      sample: "12"
    architecture:
      description: Processor.
      type: str
      sample: x86_64
    kernel:
      description: Release of the kernel.
      type: str
    cpus:
      description: Number of processors.
      type: int
    memory_mb:
      description: Memory in MiB.
      type: int
    disk_mb:
      description: Free space in MiB of each of O(paths).
      type: dict
    swap:
      description: Swap devices and files in use.
      type: list
      elements: str
    ports_busy:
      description: Those of O(ports) that are listened on.
      type: list
      elements: dict
      contains:
        port:
          description: The port.
          type: int
        process:
          description: Name of the process, empty if this user can't see it.
          type: str
    cgroup:
      description: V(v1), V(v2) or V(hybrid).
      type: str
    modules:
      description: Whether the kernel has each of O(modules); null where nothing shows it.
      type: dict
    time:
      description:
        - V(synchronized) is null where nothing shows it.
        - V(asked) is O(controller_time), V(read) the host's clock, both in seconds since 1970.
        - V(services) are the services that run and set the clock, such as V(chrony), V(servers) whether each of O(ntp)
          answers.
      type: dict
    dns:
      description: Whether each of O(names) resolves.
      type: dict
    kubelet:
      description:
        - V(present) and V(version) of the program.
        - V(server) is host and port of its API server, V(cluster) a digest of its CA. Both may be empty; with k3s and
          RKE2 V(server) is.
      type: dict
    kubernetes:
      description:
        - What made the node of this host, and where its parts are.
        - V(distribution) is V(kubeadm), V(k3s), V(rke2) or V(none), V(server) whether the host is a control plane.
        - V(units) are the services of its kubelet, which with k3s and RKE2 carry containerd too, V(kubeconfig) is that
          of the administrator.
        - V(containerd_socket), V(containerd_config) and V(registries) are paths of files, V(cni_bin_directory) and
          V(cni_network_directory) where containerd looks for CNI plugins and for their configurations.
      type: dict
    runtime:
      description:
        - What runs the containers of a node that kubeadm has made, V(containerd) or V(docker), by the socket that its
          kubelet uses; another one's socket as it is. Empty where the host is no such node.
      type: str
    cni_files:
      description:
        - Configurations of pod networks in V(cni_network_directory), in the order in which runtimes look at them.
      type: list
      elements: dict
      contains:
        name:
          description: Name of the file.
          type: str
          sample: 10-calico.conflist
        plugin:
          description: The plugin that it starts first. Empty where the file can't be read.
          type: str
          sample: calico
    cluster:
      description:
        - What a control plane says of its cluster, as its administrator. V(present) is whether the host is one.
        - V(answered) is whether its API server did, V(error) why not, V(unfinished) whether kubeadm is setting up the
          host or was interrupted.
        - V(version) is that of the API server, V(endpoint), V(pod_cidr) and V(service_cidr) are those of kubeadm's
          ClusterConfiguration, or of the arguments of a server of k3s or RKE2.
        - V(pod_networks) has a V(name) such as C(calico) and the object that was V(seen).
        - V(nv_ipam_pools) has V(name), V(subnet) and V(block_size) of each IPPool, and the V(blocks) by node.
      type: dict
    certificates:
      description:
        - Certificates of a cluster that kubeadm has made, as far as they are on the host. No private key is returned.
        - V(not_before) and V(not_after) are UTC in ISO 8601. Where they could not be read they are empty.
        - V(renewed_by) is V(kubeadm), V(kubelet), or V(nobody) for a CA, of which V(ca) is true.
      type: list
      elements: dict
      contains:
        name:
          description: As kubeadm calls it. V(kubelet-client) and V(kubelet-serving) are the kubelet's.
          type: str
          sample: apiserver
        path:
          description: The file that it is in.
          type: str
        not_before:
          description: From when on it is valid.
          type: str
          sample: "2026-03-01T12:30:05Z"
        not_after:
          description: When it ends.
          type: str
        ca:
          description: Whether it is the certificate of a CA.
          type: bool
        renewed_by:
          description: What renews it.
          type: str
        error:
          description: Why its times are not known.
          type: str
    cni_token_ends:
      description:
        - Tokens that pods have left on the host for V(multus), V(whereabouts) and V(calico), like V(certificates). Only
          when they begin and end is read, and no token is returned. One that never ends is left out.
      type: list
      elements: dict
    vip:
      description:
        - What the host knows of O(vip), null without one. V(held) is whether the host has it.
        - If not, V(answered) is V(open), V(refused) or empty, and V(mac) that of whoever has it on the local network.
        - V(gateways) are those of the host's routes. V(foreign_keepalived) is whether the host has a configuration of
          keepalived that the role P(ipu.fabric.kubernetes#role) has not written.
      type: dict
    control_plane:
      description:
        - How a control plane runs, null on other hosts. V(arguments) are those of its static pods by name.
        - V(open_files) can be read or changed by others than root and should not. V(super_admin) is whether the host
          has a super-admin.conf.
      type: dict
    locked_memory:
      description:
        - The most memory that systemd can allow a service to lock, V(unlimited) or bytes. In a container that may be
          less than a unit asks for.
        - Empty where it is not known, as to other users than root.
      type: str
      sample: unlimited
    noexec:
      description: Directories on mounts with C(noexec), out of that of CNI plugins and the one Ansible has for modules.
      type: list
      elements: str
    other_kubernetes:
      description: Other distributions of Kubernetes on this host, such as k3s.
      type: list
      elements: str
    default_address:
      description: The address with which the host leaves by its default route.
      type: str
    python:
      description: Version of the Python that ran this module.
      type: str
    systemd:
      description: Whether systemd runs the host.
      type: bool
"""

from ansible_collections.ipu.fabric.plugins.module_utils._common.result import run_module
from ansible_collections.ipu.fabric.plugins.module_utils._host.facts import Questions, program_folders, read_host


def main() -> None:
    run_module(
        {
            "ports": {
                "type": "list",
                "elements": "int",
                "default": [2379, 2380, 6443, 9345, 10250, 10256, 10257, 10259],
            },
            "modules": {"type": "list", "elements": "str", "default": ["overlay", "br_netfilter", "macvlan"]},
            "paths": {"type": "list", "elements": "path", "default": ["/var/lib"]},
            "names": {"type": "list", "elements": "str", "default": []},
            "controller_time": {"type": "float", "default": 0},
            "vip": {"type": "str", "default": ""},
            "ntp": {"type": "list", "elements": "str", "default": []},
        },
        lambda module: {"host": read_host(Questions(**module.params, run_from=program_folders(module)))},
    )


if __name__ == "__main__":
    main()
