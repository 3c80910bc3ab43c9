#!/usr/bin/env python3
"""Write the tables of docs/troubleshooting.md: every finding of the plan and every check of the proof.

The expected state comes from the collection's own tables, what is seen in the field from tests/faults.md. With --check,
only report whether the page is out of date.
"""

from __future__ import annotations

import importlib
import re
import sys
from pathlib import Path

import generated
from generated import ROOT

UTILS = "ansible_collections.ipu.fabric.plugins.module_utils"
PAGE = ROOT / "docs/troubleshooting.md"
# General next steps for findings of the plan. The plan itself gives them for the hosts and values that it has seen.
STEPS = {
    "allow": "Correct or remove the name in `fabric_allow`.",
    "architecture": "Use x86-64 hosts.",
    "api-packages": "Install the named packages on `fabric_api_host`, or set it to `localhost`.",
    "artifacts-dir": "Keep `fabric_artifacts_dir` and `fabric_kubeconfig` beside the inventory, not in it.",
    "bundle": "Recreate the bundle with `ipu.fabric.bundle`, or copy damaged files again.",
    "calico-address": "Let Calico take the kubelet's address:"
    " [Calico beside a fabric](kubernetes.md#calico-beside-a-fabric).",
    "calico-version": "Set `fabric_calico_version` to a release in [releases](releases.md).",
    "certificates": "Run `ipu.fabric.renew_certificates`, even after they have expired."
    " For a CA, see [certificates](kubernetes.md#certificates).",
    "cgroup-v2": "Boot the host with cgroup v2 (`systemd.unified_cgroup_hierarchy=1`). To stay on v1, set"
    " `fabric_allow: [cgroup-v2]`: kubelet and kubeadm then accept it.",
    "cidr": "Choose other values for `fabric_pod_cidr` and `fabric_service_cidr`.",
    "cluster-builder": "Set `fabric_manage_kubernetes` to false, or allow it to take over a cluster of your own.",
    "cluster-cidr": "Set `fabric_pod_cidr` and `fabric_service_cidr` to those of the cluster.",
    "cluster-cni": "Set `fabric_cni` to the installed pod network, or to `none`.",
    "cluster-endpoint": "Set `fabric_control_plane_endpoint` to that of the cluster.",
    "cluster-nodes": "Add the nodes to the inventory, or keep the fabric off them with"
    " `network_operator_node_affinity`.",
    "cluster-runtime": "Set `fabric_runtime` to what the nodes run.",
    "cluster-stack": "Set `fabric_stack` to that of the cluster, or [change it](guides/day-2.md#change-the-stack)."
    " If the cluster has a multus, set `fabric_multus` to `false`.",
    "cluster-unread": "Get an API server running: see `crictl ps -a` and `journalctl -u kubelet` on a control plane.",
    "cluster-networks": "Set `fabric_prune_networks: true` to remove former networks.",
    "cluster-version": "Run `ipu.fabric.upgrade`, or set `fabric_kubernetes_version` to what the cluster runs.",
    "cni": "Set `fabric_cni` to `calico`, `flannel` or `none`.",
    "cni-directories": "Set `fabric_cni_bin_directory` and `fabric_cni_network_directory` to directories that all nodes"
    " have. Unusual ones need network operator 25.7 or later.",
    "cni-files": "Remove or rename the named file. With Cilium, set `cni.exclusive` to `false`.",
    "cni-tokens": "Run `ipu.fabric.site`, which restarts multus: [tokens](hardening.md#tokens-of-cni-plugins).",
    "control-plane-count": "Use 1, 3 or 5 control planes.",
    "cpus": "Give the host more processors, or set `fabric_host_sizes`.",
    "disk": "Free disk space below `/var/lib`, or set `fabric_host_sizes`. A kubelet evicts pods when less than 15% is"
    " free (`DiskPressure`): `kubernetes_kubelet_config: {evictionHard: ...}` changes that. Mount a local ext4 or XFS"
    " file system at `/var/lib/containerd`.",
    "distribution": "Install Debian 12 or 13, or Ubuntu 22.04 or 24.04.",
    "dns": "Add the names to DNS or `/etc/hosts`, or correct `/etc/resolv.conf`.",
    "endpoint": "Before the first run set `fabric_control_plane_vip` or `fabric_control_plane_endpoint` (`host:port`).",
    "etcd-group": "List the same hosts in `etcd` and `kube_control_plane`.",
    "existing-cluster": "Uninstall the other Kubernetes, take the host out of that cluster, or correct the endpoint.",
    "fabric-mtu": "Set one MTU on all NICs and switch ports, or a smaller `mtu` in `fabric_networks`.",
    "fabric-nic": "See [which NIC](networks.md#which-nic): `select` it, bring its link up, give it an address,"
    " take it out of a bond, a bridge or Open vSwitch, keep [DRA](decisions/dra.md) off it, or"
    " [name the subnet](networks.md#nics-without-an-address).",
    "gpu-hosts": "Set `fabric_gpu: false`, or check `lspci -d 10de:` on the hosts that should have GPUs.",
    "gpu-operator-version": "Set `fabric_gpu_operator_version` to a release in [releases](releases.md).",
    "host-ports": "Open the named port in the firewalls, and allow all traffic from `fabric_pod_cidr`:"
    " [ports](requirements.md#ports-between-hosts).",
    "host-identity": "Give each host its own name and address; correct `ip` in the inventory.",
    "host-sizes": "Write a role and its figures as in [sizes](requirements.md#sizes).",
    "http-source": "Set the named variable to the publisher's digest, or use https.",
    "image-digests": "Write the image's whole name with its tag, and `sha256:` with 64 hex digits.",
    "inventory": "Put hosts into `kube_control_plane` and `kube_node`.",
    "ipam": "Set `fabric_ipam` to `auto`.",
    "ipu-machines": "Put the addresses of IPU-Machines into `reserved`:"
    " [addresses that pods never get](networks.md#addresses-that-pods-never-get).",
    "ipu-operator": "Set `ipu_operator_release_name` and `ipu_operator_namespace` to those of the operator, or"
    " `fabric_ipu: false`: [an installed operator](ipu-operator.md#an-operator-that-is-already-installed).",
    "ipu-operator-crd": "Set `ipu_operator_crd_url` to the asset of the release, or apply the definition first.",
    "ipu-operator-upgrade": "Set the named variables, or allow it:"
    " [an installed operator](ipu-operator.md#an-operator-that-is-already-installed).",
    "ipu-operator-version": "Set `fabric_ipu_operator_version` to a release in [releases](releases.md).",
    "kernel-modules": "Install the full kernel package (`linux-image-amd64`, or `linux-modules-extra` on Ubuntu)."
    " Remove what disables modules or cgroup controllers from `/etc/modprobe.d` and the kernel's command line.",
    "kubeconfig": "Copy a kubeconfig with cluster-admin rights to `fabric_kubeconfig`.",
    "kubernetes-range": "Use the release of Kubernetes or of the network operator that the plan names.",
    "kubernetes-version": "Set `fabric_kubernetes_version` to a release that the role knows, with all three numbers.",
    "kubelet-config": "Correct the name or the value in `kubernetes_kubelet_config`: names are case-sensitive.",
    "limit": "Correct `--limit`, or run without it.",
    "link-layer": "Set the port to Ethernet (`rdma_host_link_type`, then a reboot), or from iWARP to RoCE, or select"
    " another NIC.",
    "master-name": "Give the network another `master`, or rename the other NIC that has this name.",
    "locked-memory": "Raise the limit where the host is started, or lower `verify_memlock`:"
    " [locked memory](requirements.md#locked-memory-and-cgroups).",
    "memory": "Check for a broken memory module, add memory, or set `fabric_host_sizes`.",
    "neighbours": "Raise `gc_thresh3` as the message says, in `kubernetes_sysctl` or `/etc/sysctl.d`.",
    "netns-mode": "Make `rdma system set netns shared` permanent: `rdma_host_reboot: true` lets the run do it.",
    "network-manager": "List the interfaces of pods in `unmanaged-devices` of NetworkManager's configuration.",
    "network-operator-upgrade": "Set `fabric_network_operator_version` to the installed release, or take the listed"
    " steps.",
    "network-operator-version": "Set `fabric_network_operator_version` to a release in [releases](releases.md).",
    "networks": "Correct the entry of `fabric_networks`: [keys](networks.md).",
    "node-distribution": "Take hosts of another cluster out of the inventory.",
    "node-removed": "Run `kubeadm reset --force` there, or give a renamed host its former name.",
    "node-version": "Run `ipu.fabric.upgrade`.",
    "noexec": "Mount the named directory without `noexec`.",
    "ntp": "Open UDP 123 to the servers in `fabric_ntp`, or set others.",
    "nic-policy": "See [groups of hosts](networks.md#groups-of-hosts).",
    "node-address": "Set `ip` for the host, or `fabric_node_address` to an interface or a subnet of all hosts.",
    "node-name": "Rename the host with `hostnamectl set-hostname`.",
    "node-ready": "See `kubectl describe node` and the journals of kubelet and containerd; `kubectl uncordon` it.",
    "ntp-setup": "Remove the other time service, or configure it and leave `fabric_ntp` empty.",
    "ofed": "Install the driver on the hosts and empty `fabric_ofed`, or use the network operator.",
    "on-master": "Set an address of V-IPU outside the fabric networks in `fabric_vipu_hosts`; move the gateway off"
    " the cluster's hosts, or take that host off the network (`hosts`).",
    "other-cluster": "Move the kubeconfig away, or set `fabric_kubeconfig` to this cluster's.",
    "pcie-link": "Reseat the NIC, or move it to another slot; `sudo lspci -vv` shows `LnkSta`.",
    "plan-file": "Pass the plan.json of this inventory, or [approve a plan](guides/day-2.md#approve-a-plan) again.",
    "plan-moved": "Look at the new plan, and [approve it](guides/day-2.md#approve-a-plan), or undo the change.",
    "pod-security": "Set the named variable to a namespace that does not exist yet, or label the existing one.",
    "pool-blocks": "Stop the pods of the network before `site`: [ranges](guides/day-2.md#change-a-networks-range).",
    "policy-routes": "Give the rail a `gateway` in `fabric_networks`.",
    "ports": "Stop the service that listens there, or move it.",
    "pvrdma": "Give hosts with PVRDMA a network of their own: [PVRDMA](networks.md#pvrdma).",
    "python-version": "Point `ansible_python_interpreter` at Python 3.8 or later.",
    "rail-nics": "Replace the NIC, or update its firmware.",
    "rdma-modules": "Load the modules and list them in `/etc/modules-load.d/rdma.conf`. With kernel 6.11 or later use"
    " network operator 24.10 or later.",
    "rdma-resource": "Give NICs the same names on all hosts, and each the name that sorts first on its PCI function, or"
    " plan fewer pods for each NIC. Keep the kubelet's data in `/var/lib/kubelet`.",
    "release-ended": "Plan an upgrade to a release that its makers support: [releases](releases.md).",
    "release-table": "Use a release from the table that breaks no other: [releases](releases.md).",
    "resolver": "Set a file with real DNS servers in `kubernetes_kubelet_config: {resolvConf: FILE}`.",
    "runtime": "Read what [Docker Engine](kubernetes.md#docker-engine) can't do, or leave `fabric_runtime` out.",
    "service-route": "Give the host a default route, or a permanent route to `fabric_service_cidr`.",
    "shadowed-packages": "Move the files away, or `systemctl unmask` the named units.",
    "source-credentials": "Move the password to `fabric_registry_auth`, or a file in `/etc/apt/auth.conf.d`.",
    "source-digest": "Find out from the publisher which one is right. Then correct the named variable, or the source:"
    " [digests](mirror.md#digests-and-signatures).",
    "spiderpool-version": "Set `fabric_spiderpool_version` to a release in [releases](releases.md).",
    "stack": "Set `fabric_stack` to `network_operator` or `spiderpool`.",
    "subnet": "Plan a larger subnet or `share`, fewer `reserved` addresses, or fewer pods. If a NIC has several"
    " subnets, set the fabric's in `select`: [subnets](networks.md#nics-without-an-address).",
    "sources": "Set the variable that the finding names to a source that answers, or let the hosts reach it:"
    " [mirrors](mirror.md). `fabric_probe_sources: false` skips the check.",
    "swap": "Nothing: `site` turns swap off. If an agent or a script turns it on at each boot, change the file"
    " that the plan names.",
    "systemd": "Boot the host with systemd.",
    "time": "Set `fabric_ntp`, or repair the host's time service.",
    "tunnel-offload": "Switch the named features of the NIC off with `ethtool -K`, at each boot too.",
    "unique-hostname": "Give each host its own name.",
    "unique-mac": "Give each machine its own MAC; clones keep that of the original.",
    "unique-machine-id": "Empty `/etc/machine-id` of the clone and reboot it.",
    "unknown-group": "Correct the name of the group.",
    "unknown-variable": "Correct the name of the variable: [variables](variables.md).",
    "unobserved": "Make the host reachable by SSH, or continue without it:"
    " [a host is down](kubernetes.md#a-host-is-down).",
    "unpinned-source": "Set the named variable to the publisher's digest.",
    "upgrade-nodes": "Add these nodes to the inventory, or remove them from the cluster.",
    "upgrade-ready": "Repair the node first: `kubectl describe node`, `journalctl -u kubelet`.",
    "upgrade-skew": "First upgrade the named node by hand; if its kubelet is newer, set `fabric_kubernetes_version` to"
    " its release.",
    "upgrade-step": "Upgrade to the next minor release first.",
    "vipu": "Give the host the `vipu` command, or set the controller in `fabric_vipu_hosts`.",
    "vipu-address": "Set an address of V-IPU that pods can reach in `fabric_vipu_hosts`.",
    "virtual-address": "Choose a free address in the network of all control planes.",
    "virtual-address-in-use": "Choose another address; allow it if a router's proxy ARP answers.",
}


def faults() -> dict[str, list[str]]:
    """The faults in tests/faults.md, by the name of each check of the proof that reports them."""
    found: dict[str, list[str]] = {}
    for line in (ROOT / "tests/faults.md").read_text().splitlines():
        cells = line.strip("| ").split(" | ")
        for names in re.findall(r"proof: ((?:`\w+`(?:, )?)+)", cells[1]) if len(cells) == 3 else ():
            for name in re.findall(r"`(\w+)`", names):
                found.setdefault(name, []).append(cells[0])
    return found


def table(heading: list[str], rows: list[list[str]]) -> str:
    lines = [heading, ["---"] * len(heading), *([cell.replace("|", "\\|") for cell in row] for row in rows)]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def plan_table() -> str:
    findings = importlib.import_module(f"{UTILS}._common.findings")
    rows = [[f"`{name}`", findings.CHECKS[name], STEPS[name]] for name in sorted(findings.CHECKS)]
    return table(["finding", "what should be", "what to do"], rows)


def proof_table() -> str:
    catalog = importlib.import_module(f"{UTILS}._verify.catalog")
    seen = faults()  # a single one would only repeat the title
    rows = [
        [f"`{name}`", kind.title + (f". Causes: {'; '.join(causes)}" if len(causes) > 1 else ""), kind.next_step]
        for area in catalog.AREAS
        for name, kind in catalog.CHECK_TYPES.items()
        if kind.area == area
        for causes in [seen.get(name, [])]
    ]
    return table(["check", "what it checks", "what to do"], rows)


def main() -> int:
    sys.path.insert(0, str(ROOT / ".cache/collections"))
    checks = set(importlib.import_module(f"{UTILS}._common.findings").CHECKS)
    if checks != set(STEPS):
        names = ", ".join(sorted(checks ^ set(STEPS)))
        print(f"error: STEPS and the findings of the plan differ: {names}\n  next: edit STEPS in {Path(__file__).name}")
        return 1
    text = PAGE.read_text()
    for name, content in (("plan", plan_table()), ("proof", proof_table())):
        begin, end = f"<!-- {name}: written by hack/troubleshooting.py (make docs) -->\n", f"\n<!-- end of {name} -->"
        text = text[: text.index(begin) + len(begin)] + content + text[text.index(end) :]
    return generated.write({PAGE: text})


if __name__ == "__main__":
    sys.exit(main())
