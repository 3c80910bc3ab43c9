#!/usr/bin/python
# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: host_info
short_description: Return all that a plan needs to know about a host
version_added: 0.1.0
author: ipu.fabric contributors (@ipu-fabric)
description:
  - Reads in one call what decides whether a host can become a node of a fabric, from files if possible.
  - Only reads. M(ipu.fabric.fabric_plan) checks the results of all hosts.
requirements:
  - iproute2 4.14 or later on the host, for O(links).
  - The V-IPU command line tools on the host, for O(vipu).
extends_documentation_fragment:
  - ipu.fabric.attributes
  - ipu.fabric.attributes.info
  - ipu.fabric.proxy
options:
  ports:
    description: TCP ports that should be free.
    type: list
    elements: int
    default: [2379, 2380, 6443, 8081, 9099, 9345, 10250, 10256, 10257, 10259]
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
    description: Host names that should resolve, also with a port, a path or C(https://).
    type: list
    elements: str
    default: []
  controller_time:
    description:
      - Seconds since 1970 on the controller, for comparing clocks.
      - With V(0) the clocks are not compared.
    type: float
    default: 0
  vip:
    description:
      - A virtual address for the API, to find out who holds it. The module tries a TCP connection to its port 6443.
      - This takes about four seconds if nobody holds it.
    type: str
    default: ""
  services:
    description: CIDRs of the cluster's services, whose routes are looked up.
    type: list
    elements: str
    default: []
  resolv_conf:
    description: The resolv.conf that the kubelet is configured to give to pods. Empty for what kubeadm takes.
    type: str
    default: ''
  python_packages:
    description: Python packages that modules for the Kubernetes API need, on the host that connects to it.
    type: list
    elements: str
    default: []
  ntp:
    description:
      - Names or addresses of NTP servers that should answer. Each is queried for the time, for five seconds at most.
    type: list
    elements: str
    default: []
  sources:
    description:
      - Sources of packages, images, charts and programs, as C(ipu.fabric.wish) decides them for the role
        P(ipu.fabric.fabric#role). Each is asked whether it has what will be installed, and small files are compared
        with their digests, all at the same time, for twelve seconds at most, through O(download_proxy).
    type: list
    elements: dict
    default: []
  links:
    description: Whether RV(rdma) is read.
    type: bool
    default: true
  routes_to:
    description:
      - V-IPU controllers, as C(fabric_vipu_hosts) of the role P(ipu.fabric.fabric#role) names them. The routes to those
        that are addresses are looked up.
      - If O(vipu) finds a controller, only the route to that one is looked up.
    type: list
    elements: raw
    default: []
  vipu:
    description:
      - How to ask C(vipu) for its controller, with C(vipu --server-version). If not set, C(vipu) is not run.
      - If the module is root through sudo, C(vipu) first runs as the user who connected, in that user's login
        environment.
      - API access keys never appear in a message.
    type: dict
    suboptions:
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
  journal:
    description: The systemd units whose journals to read, with secrets removed. If not set, none are read.
    type: dict
    suboptions:
      units:
        description: Names of the units.
        type: list
        elements: str
        default: [kubelet, containerd]
      lines:
        description: How many lines of each unit.
        type: int
        default: 200
      size:
        description: The maximum number of characters of each unit, counted from the end.
        type: int
        default: 32768
"""

EXAMPLES = r"""
- name: Read the facts of a host
  ipu.fabric.host_info:
    ports: [6443]
    names: [registry.example.com]
    controller_time: "{{ now().timestamp() }}"
  register: result

- name: Find the V-IPU controller, and the route to it
  ipu.fabric.host_info:
    vipu: {api_host: vipu.example.com, timeout: 10}
  register: result
"""

RETURN = r"""
host:
  description: The facts of the host.
  returned: success
  type: dict
  contains:
    hostname:
      description: Name of the host.
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
    disk_total_mb:
      description: Size in MiB of the file system of each of O(paths).
      type: dict
    swap:
      description: Swap devices and files in use.
      type: list
      elements: str
    swap_origins:
      description:
        - Files that turn swap on at each boot, besides C(/etc/fstab) and swap units, each with its V(path) and the line
          that was V(seen).
      type: list
      elements: dict
    ports_busy:
      description: Those of O(ports) on which a process listens.
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
      description: Whether the kernel has each of O(modules); null if nothing shows it.
      type: dict
    time:
      description:
        - V(synchronized) is null if nothing shows it.
        - V(asked) is O(controller_time), V(read) the host's clock, both in seconds since 1970.
        - V(services) are the running services that set the clock, such as V(chrony). V(servers) is whether each of
          O(ntp) answers.
      type: dict
    dns:
      description: Whether each of O(names) resolves.
      type: dict
    kubelet:
      description:
        - V(present) and V(version) of the program.
        - V(server) is host and port of its API server, V(cluster) a digest of its CA. Both may be empty; V(server)
          always is with k3s and RKE2.
      type: dict
    kubernetes:
      description:
        - What made this host a node, and where its parts are.
        - V(distribution) is V(kubeadm), V(k3s), V(rke2) or V(none), V(server) whether the host is a control plane.
        - V(units) are the services of its kubelet, which with k3s and RKE2 include containerd. V(kubeconfig) is that of
          the administrator.
        - V(containerd_socket), V(containerd_config) and V(registries) are paths of files. V(cni_bin_directory) and
          V(cni_network_directory) are where containerd looks for CNI plugins and their configurations.
      type: dict
    runtime:
      description:
        - What runs the containers of a node that kubeadm has set up, V(containerd) or V(docker), judged by the socket
          that its kubelet uses. Of any other runtime, its socket. Empty if the host is no such node.
      type: str
    cni_files:
      description:
        - Configurations of pod networks in V(cni_network_directory), in the order in which runtimes read them.
      type: list
      elements: dict
      contains:
        name:
          description: Name of the file.
          type: str
          sample: 10-calico.conflist
        plugin:
          description: The plugin that it starts first. Empty if the file can't be read.
          type: str
          sample: calico
    cni_disabled:
      description:
        - Configurations of other pod networks that Cilium has renamed to V(.cilium_bak), also with V(name) and
          V(plugin).
      type: list
      elements: dict
    cluster:
      description:
        - What a control plane reports about its cluster, as administrator. V(present) is whether the host is a control
          plane.
        - V(answered) is whether its API server answered, V(error) why not, V(unfinished) whether kubeadm is setting up
          the host or was interrupted.
        - V(version) is that of the API server, V(endpoint), V(pod_cidr) and V(service_cidr) are those of kubeadm's
          ClusterConfiguration, or of the arguments of a server of k3s or RKE2.
        - V(pod_networks) has a V(name) such as C(calico) and the object that was V(seen); V(autodetection) is how
          calico-node detects the addresses of hosts.
        - V(charts) are the Helm charts of its Deployments, as in C(gpu-operator-26.7.0).
        - V(attachments), if there are any, are plugins of NetworkAttachmentDefinitions with a NIC or with
          addresses of their own.
        - V(dra_nics), if there are any, are NICs that drivers of Dynamic Resource Allocation offer to pods, and the
          ResourceClaims that hold them.
        - V(nic_policies), if there are any, are the NicClusterPolicy and the NicNodePolicies of the network operator,
          with the sections that only one kind of them may have.
        - V(nv_ipam_pools) has V(name), V(subnet) and V(block_size) of each IPPool, and the V(blocks) by node.
        - V(multus) are the DaemonSets of multus, as NAMESPACE/NAME.
        - V(pod_security), if there are any, are the namespaces where Pod Security enforces a level below C(privileged),
          and that level.
        - V(built_here) is whether the role P(ipu.fabric.kubernetes#role) has prepared the host, V(built_elsewhere)
          whether it has not, and the API server answers.
      type: dict
    certificates:
      description:
        - Certificates of a kubeadm cluster that are on the host. No private key is returned.
        - V(not_before) and V(not_after) are UTC in ISO 8601. They are empty if they could not be read.
        - V(renewed_by) is V(kubeadm), V(kubelet), or V(nobody) for a CA, for which V(ca) is true.
      type: list
      elements: dict
      contains:
        name:
          description: As kubeadm calls it. V(kubelet-client) and V(kubelet-serving) are the kubelet's.
          type: str
          sample: apiserver
        path:
          description: File that contains the certificate.
          type: str
        not_before:
          description: When it starts to be valid.
          type: str
          sample: "2026-03-01T12:30:05Z"
        not_after:
          description: When it expires.
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
        - Tokens that pods have left on the host for V(multus), V(whereabouts) and V(calico), with the keys of
          V(certificates). Only their times are read, and no token is returned. A token that never expires is left out.
      type: list
      elements: dict
    vip:
      description:
        - What the host knows about O(vip), null without one. V(held) is whether the host holds it.
        - If not, V(answered) is V(open), V(refused) or empty, and V(mac) that of whoever holds it on the local network.
        - V(gateways) are those of the host's routes. V(foreign_keepalived) is whether the host has a keepalived
          configuration that the role P(ipu.fabric.kubernetes#role) did not write.
      type: dict
    control_plane:
      description:
        - How a control plane runs, null on other hosts. V(arguments) are those of its static pods by name.
        - V(open_files) should be readable and writable by root only, but are not. V(super_admin) is whether the host
          has a super-admin.conf.
      type: dict
    locked_memory:
      description:
        - The maximum memory that systemd can allow a service to lock, V(unlimited) or bytes. In a container this may be
          less than a unit requests.
        - Empty if it is not known, for example if the user is not root.
      type: str
      sample: unlimited
    noexec:
      description:
        - Which of two directories, that of CNI plugins and that of Ansible's modules, are on mounts with C(noexec).
      type: list
      elements: str
    service_routes:
      description: Whether the host has a route to each of O(services).
      type: dict
      sample: {10.96.0.0/12: true}
    shadows:
      description:
        - Programs and units that take precedence over those of packages, by V(path); V(masks) if a unit is masked.
      type: list
      elements: dict
    obstacles:
      description:
        - Parts of the host's own setup that may keep a node or its pods from working.
        - V(filesystem) is the type of the file system below containerd's data, V(kubelet_directory) where a running
          kubelet keeps its data, V(unloadable) the modules that modprobe is told not to load, with the file that says
          so.
        - V(network_manager) is whether NetworkManager runs and may take interfaces of pods, V(firewall) is V(ufw) or
          V(firewalld) if it is active, V(firewall_sources) the CIDRs from which it accepts everything.
        - V(tunnel_offloads) are VMware's NICs that segment packets in VXLAN themselves.
        - V(controllers) are those of cgroup v2, V(neighbours) is how many neighbours the kernel keeps for all network
          namespaces together.
      type: dict
    resolver:
      description: V(path) of the file that the kubelet gives to pods that use their host's DNS, and its V(servers).
      type: dict
    sources:
      description:
        - Those of O(sources) that do not answer, refuse, do not have what this host needs of them, or serve something
          else.
        - V(variable) is where the source is set, V(seen) how it answered, V(lacks) what it does not have, V(offers) the
          releases of a package that it has instead, V(instead) a pod network whose source answers, V(expected) the
          digest or fingerprint that what it serves does not have, V(setting) how a site sets that. With V(later), this
          host needs nothing from there now, but the images of new pods.
      type: list
      elements: dict
    other_kubernetes:
      description: Other distributions of Kubernetes on this host, such as k3s.
      type: list
      elements: str
    default_address:
      description: The source address of the host's default route.
      type: str
    python:
      description: Version of the Python that ran this module.
      type: str
    lacking_packages:
      description: Those of O(python_packages) that the Python running this module lacks.
      type: list
      elements: str
    systemd:
      description: Whether the host runs systemd.
      type: bool
rdma:
  description:
    - The network devices that a fabric may use, with RDMA, addresses, and the devices below bonds and VLANs.
    - Also GPUs, routes, the RDMA network namespace mode, limits of locked memory, and kernel modules.
    - Read from sysfs and with C(ip), C(rdma) and C(systemctl). The last two may be missing.
  returned: with O(links)
  type: dict
  contains:
    links:
      description:
        - Network devices that have RDMA, are hardware or are based on it, or have a global address. Never the loopback.
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
          description: Driver of the RDMA device, so V(vmw_pvrdma) for PVRDMA; without one, that of the network device.
          type: str
          sample: mlx5_core
        kind:
          description:
            - V(physical), V(vf), V(other), or what a virtual device is, such as V(bond), V(vlan), V(bridge) or V(vrf).
          type: str
          sample: physical
        link_layer:
          description:
            - V(Ethernet), which is RoCE, V(InfiniBand), or V(iWARP) or V(usNIC), other protocols on Ethernet.
            - Empty without RDMA.
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
          description: Gb/s of the port; V(null) if it is not known, as with software RDMA.
          type: float
          sample: 100.0
        pcie:
          description:
            - The narrowest PCIe link between the NIC and its processor, with what both of its ends support.
            - V(null) without PCIe, and in a virtual machine, where the hypervisor makes it up.
          type: dict
          contains:
            pci:
              description: PCI address of the function at its lower end.
              type: str
              sample: "0000:81:00.0"
            speed_gtps:
              description: Speed of the link in GT/s.
              type: float
              sample: 16.0
            width:
              description: Number of lanes.
              type: int
              sample: 16
            max_speed_gtps:
              description: The speed in GT/s that both ends support.
              type: float
              sample: 16.0
            max_width:
              description: The number of lanes that both ends have.
              type: int
              sample: 16
            gbps:
              description: What speed and width carry in Gb/s, without the encoding overhead.
              type: float
              sample: 252.1
        model:
          description: Board of the NIC, else vendor and device of its PCI function; empty if not known.
          type: str
          sample: MT_0000000359
        firmware:
          description: Release of the firmware of the RDMA device; empty if there is none.
          type: str
          sample: 20.35.1012
        guid:
          description: GUID of the RDMA device; empty if there is none.
          type: str
          sample: 0c42:a103:0000:0001
        driver_version:
          description: Version of the module of C(driver), else a digest of its source; empty if not known.
          type: str
          sample: 26.04-0.8.5
        rdma_devices:
          description: RDMA devices of the PCI functions of V(rdma_netdevs). A bond without RoCE LAG has several.
          type: list
          elements: str
        gid_room:
          description: Addresses that the GID table of the RDMA port has room for; 0 if not known.
          type: int
          sample: 128
        vfs:
          description: How many VFs a physical NIC has; 0 for any other interface.
          type: int
          sample: 0
        max_vfs:
          description: How many VFs a physical NIC can have, V(0) if SR-IOV is off.
          type: int
          sample: 16
        mac:
          description: Hardware address.
          type: str
          sample: 0c:42:a1:00:00:01
        lower:
          description: The members of a bond, bridge or the like, or the device below a VLAN.
          type: list
          elements: str
          sample: []
        master:
          description: The device that it is a member of, such as a bond, a bridge or a VRF; empty if there is none.
          type: str
          sample: ""
        master_kind:
          description: C(kind) of that device.
          type: str
          sample: ""
        rdma_netdevs:
          description: The devices at the bottom whose hardware carries RDMA. These are what a device plugin selects.
          type: list
          elements: str
          sample: [ens1f0np0]
        taken_by:
          description: Devices on top of it that rule out macvlans, for example an ipvlan, each with its kind.
          type: list
          elements: str
          sample: []
        function_netdevs:
          description:
            - All network devices of its PCI function by name, if that has an RDMA device.
            - A device plugin knows the function only by the first of them.
          type: list
          elements: str
          sample: [ens1f0np0]
        addresses:
          description:
            - Lasting global addresses with their prefix lengths.
            - C(origin) is V(advertised) for one from router advertisements, V(lease) for one from DHCP, else missing.
          type: list
          elements: dict
          sample:
            - {address: 10.5.0.11, prefix: 24}
    mad_files:
      description: Device files C(umad*) and C(issm*) of each RDMA device that has some.
      type: dict
      sample: {mlx5_0: [umad0]}
    lone_devices:
      description: RDMA devices without a network device on the host, such as InfiniBand without IPoIB.
      type: list
      elements: dict
      sample:
        - {device: mlx5_1, pci: "0000:c1:00.0", driver: mlx5_core, link_layer: InfiniBand, state: ACTIVE}
    gpus:
      description:
        - NVIDIA GPUs in PCI order, each with C(pci), C(path) and C(numa_node) as in V(links).
        - C(model) is vendor and device of its PCI function; empty if not known.
      type: list
      elements: dict
      sample:
        - {pci: "0000:82:00.0", path: "pci0000:80/0000:80:03.0/0000:82:00.0", numa_node: 1, model: "10de:2330"}
    netns_mode:
      description: V(shared) or V(exclusive); empty when the kernel has no RDMA.
      type: str
      sample: shared
    routes:
      description:
        - C(dev), C(source) address and C(gateway) for each address that was looked up; empty if there is none.
        - From the main table, or from a VRF's if only that has a route, or a more specific one.
      type: dict
      sample:
        10.5.0.20: {dev: ens1f0np0, source: 10.5.0.11, gateway: ""}
    memlock:
      description: Limit of locked memory of each installed container runtime, V(infinity) or bytes as a string.
      type: dict
      sample: {containerd: infinity}
    modules:
      description: RDMA-related kernel modules that are loaded or built in.
      type: list
      elements: str
      sample: [ib_core, ib_uverbs, mlx5_core, mlx5_ib]
    rdma_subsystem:
      description: Whether the kernel has an RDMA core at all.
      type: bool
      sample: true
    redirects:
      description: PCI bridges above GPUs and RDMA NICs whose ACS redirects the traffic between these to the processor.
      type: list
      elements: str
      sample: ["0000:82:08.0"]
    loopback:
      description: Lasting global addresses of the loopback interface.
      type: list
      elements: dict
      sample: [{address: 192.0.2.1, prefix: 32}]
vipu:
  description: Where the V-IPU controller is.
  returned: with O(vipu), if it was found
  type: dict
  contains:
    host:
      description: The controller as vipu names it, a host name or an address without brackets.
      type: str
      sample: vipu.example.com
    port:
      description: TCP port of the controller.
      type: int
      sample: 8090
    address:
      description:
        - IP address of the controller; a loopback address if the controller is this host and C(vipu) knows no other.
      type: str
      sample: 10.5.212.116
    version:
      description: Version of the controller; empty when vipu does not say.
      type: str
      sample: 1.18.0
    source:
      description: The form in which vipu answered, V(json) or V(text).
      type: str
      sample: json
logs:
  description: What the units of O(journal) wrote, by name. Units that wrote nothing are left out.
  returned: with O(journal)
  type: dict
failures:
  description:
    - Why RV(rdma) or RV(vipu) is missing, by these names, in the form of failures that C(docs/errors.md) describes.
  returned: success
  type: dict
"""

from ..module_utils._common.proxy import PROXY
from ..module_utils._common.result import run_module
from ..module_utils._host.observe import observe
from ..module_utils._host.vipu import OPTIONS

PORTS = [2379, 2380, 6443, 8081, 9099, 9345, 10250, 10256, 10257, 10259]
JOURNAL = {
    "units": {"type": "list", "elements": "str", "default": ["kubelet", "containerd"]},
    "lines": {"type": "int", "default": 200},
    "size": {"type": "int", "default": 32768},
}


def main() -> None:
    run_module(
        {
            "ports": {"type": "list", "elements": "int", "default": PORTS},
            "modules": {"type": "list", "elements": "str", "default": ["overlay", "br_netfilter", "macvlan"]},
            "paths": {"type": "list", "elements": "path", "default": ["/var/lib"]},
            "names": {"type": "list", "elements": "str", "default": []},
            "controller_time": {"type": "float", "default": 0},
            "vip": {"type": "str", "default": ""},
            "ntp": {"type": "list", "elements": "str", "default": []},
            "services": {"type": "list", "elements": "str", "default": []},
            "resolv_conf": {"type": "str", "default": ""},
            "python_packages": {"type": "list", "elements": "str", "default": []},
            "sources": {"type": "list", "elements": "dict", "default": []},
            "download_proxy": PROXY,
            "links": {"type": "bool", "default": True},
            "routes_to": {"type": "list", "elements": "raw", "default": []},
            "vipu": {"type": "dict", "options": OPTIONS},
            "journal": {"type": "dict", "options": JOURNAL},
        },
        observe,
        hidden=("sources", "download_proxy"),
    )


if __name__ == "__main__":
    main()
