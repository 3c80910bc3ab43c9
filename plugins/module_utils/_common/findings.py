# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Findings of a plan or a preflight, collected over all hosts, each under the name of its check."""

from __future__ import annotations

import difflib
import re
import typing as t

from .._model.plan import Finding, Level
from .._model.stacks import STACKS
from .text import printable, shorten_list

# Checks that a site may allow by name: their errors then count as warnings.
ALLOWABLE: t.Dict[str, str] = {
    "architecture": "the processor is x86-64",
    "calico-address": "Calico sends the pod network's traffic over no fabric NIC",
    "certificates": "certificates of the cluster have not expired",
    "cgroup-v2": "the host runs cgroup v2, which Kubernetes 1.35 and later require",
    "cluster-endpoint": "the endpoint matches the existing cluster",
    "cluster-unread": "the API server of the existing cluster answers",
    "cni-directories": "all nodes have the same CNI directories",
    "cni-files": "no configuration of another pod network comes first on a host",
    "cluster-builder": "this collection built the cluster that it is to manage",
    "cni-tokens": "tokens of CNI plugins do not expire soon",
    "control-plane-count": "the number of control planes is odd",
    "cpus": "a host has the processors that its role needs",
    "disk": "there is free disk for images and etcd, on a file system that can hold images",
    "distribution": "the distribution and its release are supported",
    "dns": "names that the host needs resolve",
    "etcd-group": "etcd runs on the control planes",
    "existing-cluster": "the host is not part of another cluster",
    "fabric-mtu": "the fabric has one MTU",
    "fabric-nic": "each host has one NIC on the fabric",
    "gpu-hosts": "a host has a GPU where the GPU operator is asked for",
    "http-source": "downloads without TLS have a digest or a signature",
    "host-ports": "hosts reach the ports that they need of each other, and pods their host",
    "ipam": "the IPAM works with the network operator",
    "ipu-machines": "pods get no addresses that IPU-Machines may have",
    "ipu-operator-upgrade": "an IPU operator that others installed keeps its release and values",
    "kernel-modules": "the kernel has the modules and cgroup controllers that nodes need",
    "kubernetes-range": "the network operator's vendor supports this Kubernetes",
    "kubernetes-version": "the Kubernetes version is known",
    "memory": "a host has the memory that its role needs",
    "neighbours": "the kernel keeps as many neighbours as pods of the fabric networks have",
    "netns-mode": "RDMA devices are shared between network namespaces",
    "network-manager": "NetworkManager leaves the interfaces of pods alone",
    "network-operator-upgrade": "the network operator stays, or is upgraded by one minor release",
    "nic-policy": "one policy of the network operator has a node's RDMA device plugin, and keeps it",
    "node-distribution": "all nodes are of one distribution of Kubernetes",
    "node-version": "nodes run the Kubernetes of their cluster",
    "noexec": "directories of programs are not mounted with noexec",
    "ntp": "the NTP servers of the site answer every host",
    "ofed": "the stack supports the driver container",
    "on-master": "V-IPU and the gateway are not only on a node's own fabric NIC, which its pods can't reach",
    "other-cluster": "the kubeconfig leads to the hosts' cluster",
    "pcie-link": "a NIC's PCIe link is as fast and wide as both ends support, and carries the port's rate",
    "policy-routes": "a rail has a gateway",
    "ports": "the ports that Kubernetes uses are free",
    "pvrdma": "hosts with PVRDMA have a network of their own",
    "python-version": "the host's Python runs the modules",
    "rail-nics": "NICs of a rail are alike: model, firmware, port rate, PCIe slot",
    "rdma-modules": "RDMA devices have the device files that the RDMA device plugin demands, by modules and kernel",
    "rdma-resource": "an RDMA resource reaches the kubelet, selects NICs of its networks, and serves all pods",
    "release-ended": "the makers still support the release",
    "release-table": "the exact release is in the table, which is not old, and breaks nothing else of the plan",
    "service-route": "hosts have a route to the addresses of services",
    "shadowed-packages": "no other files take precedence over those of our packages",
    "source-credentials": "URLs of sources have no password in them",
    "sources": "what is installed can be fetched from where the site says",
    "resolver": "pods can use the DNS servers of their host",
    "swap": "swap is off",
    "systemd": "systemd runs the host",
    "time": "clocks agree, and are synchronized",
    "tunnel-offload": "NICs do not spoil what pods send by VXLAN",
    "unique-hostname": "no two hosts have the same name",
    "unique-mac": "no two hosts have the same MAC",
    "unique-machine-id": "no two hosts have the same machine-id",
    "unknown-group": "names of groups are not misspelt",
    "unknown-variable": "names of variables are not misspelt",
    "unobserved": "every host could be observed",
    "unpinned-source": "downloads have a known digest",
    "upgrade-nodes": "every node of the cluster is in the inventory",
    "upgrade-ready": "every node is Ready before an upgrade",
    "virtual-address-in-use": "the virtual address of the API is free",
    "vipu": "every IPU host knows its V-IPU controller",
}
# Without these, there is no plan, or it can't be applied: allowing them would not help.
REQUIRED: t.Dict[str, str] = {
    "allow": "the names of allowed checks exist",
    "api-packages": "the host that speaks to the API has the Python packages for that",
    "artifacts-dir": "files of the plan, and the kubeconfig, are outside the inventory directory",
    "bundle": "the bundle is whole, and has what the plan installs",
    "calico-version": "Calico's release is known",
    "cidr": "CIDRs are valid and do not overlap",
    "cluster-cidr": "`fabric_pod_cidr` and `fabric_service_cidr` match the existing cluster",
    "cluster-cni": "`fabric_cni` matches the installed pod network",
    "cluster-networks": "all fabric networks of the existing cluster are planned",
    "cluster-nodes": "every node of the cluster that takes pods is in the inventory",
    "cluster-runtime": "`fabric_runtime` matches the container runtime of the nodes",
    "cluster-stack": "`fabric_stack` matches the existing networks and `fabric_multus` their multus; one operator runs",
    "cluster-version": "`fabric_kubernetes_version` matches the existing cluster",
    "cni": "the pod network is known",
    "endpoint": "the control plane has an address",
    "gpu-operator-version": "the GPU operator's release is known",
    "host-identity": "no host has the name or the address of another",
    "host-sizes": "the entries of fabric_host_sizes are valid",
    "image-digests": "the entries of fabric_image_digests are valid",
    "inventory": "the groups have a control plane and a worker",
    "ipu-operator": "the installed IPU operator is the named Helm release, and not newer than asked for",
    "ipu-operator-crd": "the IPUJob definition is installed, or its source is named",
    "ipu-operator-version": "the IPU operator's release is known",
    "kubeconfig": "there is a kubeconfig of a cluster that is managed elsewhere, with the rights that site needs",
    "kubelet-config": "a kubelet can read kubernetes_kubelet_config, and knows its fields and signals",
    "limit": "names in --limit exist, and a new cluster begins with its first control plane",
    "link-layer": "macvlan is for RoCE, ipoib for InfiniBand; RDMA of pods does not work over iWARP",
    "locked-memory": "the host's limit of locked memory is what the proof expects",
    "master-name": "the master's name belongs to one NIC on each host",
    "network-operator-version": "the network operator's release is known, and not older than the installed one",
    "networks": "the entries of fabric_networks are valid",
    "node-address": "each node has an address of each family of the cluster, on one of its interfaces",
    "node-name": "names of nodes are ones that Kubernetes accepts",
    "node-ready": "every node of the inventory is Ready, and none is cordoned",
    "node-removed": "a host that has joined the cluster is one of its nodes",
    "ntp-setup": "the entries of fabric_ntp are valid, and no other service sets the clock",
    "plan-file": "fabric_plan_file is a readable plan of these hosts",
    "plan-moved": "every decision is that of the approved plan",
    "pod-security": "Pod Security lets the stack's pods start in a namespace that exists",
    "pool-blocks": "nodes keep their blocks of nv-ipam",
    "runtime": "the container runtime works with the other settings of the site, and its digest is known",
    "source-digest": "what sources serve has the expected digest or fingerprint",
    **{f"{stack.release}-version": f"{stack.title}'s release is known" for stack in STACKS.values() if stack.charts},
    "stack": "the stack is known",
    "subnet": "the network has addresses for its pods",
    "upgrade-skew": "kubelets are not newer than the API server, nor more than three minor releases older",
    "upgrade-step": "an upgrade goes one minor release up",
    "virtual-address": "the control planes can hold the virtual address of the API",
    "vipu-address": "pods can reach the V-IPU controller's address",
}
CHECKS: t.Dict[str, str] = {**ALLOWABLE, **REQUIRED}


ALIKE = 3  # findings with the same words that are reported one by one
TOGETHER = ("unobserved",)  # folded from two hosts on, if the cause is the same
SIDE_BY_SIDE = ("fabric-nic",)  # folded from two hosts on, with what was seen on each of a few
ONE_BY_ONE = ("plan-moved",)  # each is a decision, and they have their own limit


def _folded(group: t.Sequence[Finding]) -> t.List[Finding]:
    """Fold findings that differ only in what was seen on their hosts: into one if they are many, or SIDE_BY_SIDE."""
    first = group[0]
    apart = 1 if first["check"] in TOGETHER else ALIKE
    few = len(group) <= apart
    alone = len(group) == 1 or (few and first["check"] not in SIDE_BY_SIDE) or first["check"] in ONE_BY_ONE
    if alone or not all(finding["hosts"] for finding in group):
        return list(group)
    hosts = list(dict.fromkeys(host for finding in group for host in finding["hosts"]))
    if few:
        seen = "; ".join(f"{shorten_list(finding['hosts'], ALIKE)}: {finding['seen']}" for finding in group)
        return [{**first, "hosts": hosts, "seen": seen}]
    rest = len(hosts) - len(first["hosts"])
    more = f"{rest} more {'host' if rest == 1 else 'hosts'}"
    seen = f"{shorten_list(first['hosts'], ALIKE)}: {first['seen']}; and similar on {more}"
    return [{**first, "hosts": hosts, "seen": seen}]


def _cause(finding: Finding) -> str:
    """The end of an unreachable host's message, without its address, its port and the time."""
    if finding["check"] not in TOGETHER:
        return ""
    return re.sub(r"\S*\d\S*", "", finding["seen"].rpartition(": ")[2])


def fold_networks(findings: t.Sequence[Finding], names: t.Sequence[t.Sequence[str]]) -> t.List[Finding]:
    """Fold findings that differ only in a network into one that names all networks.

    names: the names that findings use for each network: its own, and that of its resource.
    """
    groups: t.Dict[t.Tuple[str, ...], t.List[t.Tuple[str, Finding]]] = {}
    for number, finding in enumerate(findings):
        name = next((each for mine in names for each in mine if _pattern(each).search(finding["what"])), "")
        alone = str(number) if not name or finding["check"] in ONE_BY_ONE else ""
        words = (_pattern(name).sub("\0", finding[part]) if name else finding[part] for part in ("what", "next"))
        key = (alone, finding["level"], finding["check"], *finding["hosts"], *words)
        groups.setdefault(key, []).append((name, finding))
    return [_of_networks(group) if len(group) > 1 else group[0][1] for group in groups.values()]


def _pattern(name: str) -> t.Pattern[str]:
    """A pattern of the name as a whole word: rail-1 does not match in rail-10."""
    return re.compile(rf"(?<![\w/-]){re.escape(name)}(?![\w/-])")


def _of_networks(group: t.Sequence[t.Tuple[str, Finding]]) -> Finding:
    first, finding = group[0]
    every, pattern = ", ".join(name for name, _finding in group), _pattern(first)
    seen = {_pattern(name).sub("\0", each["seen"]): f"{name}: {each['seen']}" for name, each in group}
    if len(seen) == 1:
        told = pattern.sub(every, finding["seen"])
    else:
        rest = len(seen) - ALIKE
        told = "; ".join([*list(seen.values())[:ALIKE], *([f"and the like for {rest} more"] if rest > 0 else [])])
    return {
        **finding,
        "what": pattern.sub(every, finding["what"]),
        "seen": told,
        "next": pattern.sub(every, finding["next"]),
    }


class Findings:
    """Collects findings; the same finding of several hosts is kept once, with all hosts."""

    def __init__(self, allow: t.Sequence[str] = ()) -> None:
        self._allow = set(allow) & set(ALLOWABLE)
        self._findings: t.Dict[t.Tuple[str, ...], Finding] = {}
        for name in sorted(set(allow) - set(ALLOWABLE)):
            seen = "this check can't be allowed" if name in REQUIRED else "there is no such check"
            meant = "" if name in REQUIRED else next(iter(difflib.get_close_matches(name, ALLOWABLE, 1)), "")
            step = f"name one of: {', '.join(sorted(ALLOWABLE))}."
            step = f"Did you mean {meant}? Otherwise remove it." if meant else f"Remove it, or {step}"
            self.warning("allow", [], f"Allowing {name} has no effect.", seen, step)

    def error(
        self, check: str, hosts: t.Iterable[str], what: str, seen: str, next_step: str, allowed: str = ""
    ) -> None:
        """allowed: how to allow it, if that takes more than skipping the check."""
        if check in self._allow:
            self._add("warning", check, hosts, what, seen, f"Allowed, so it does not stop the run. {next_step}")
            return
        offered = check in ALLOWABLE and "fabric_allow" not in next_step
        every = ", ".join(sorted({*self._allow, check}))  # the advice must not end what is allowed already
        hint = allowed or (f"Or allow it with fabric_allow: [{every}]." if offered else "")
        self._add("error", check, hosts, what, seen, f"{next_step} {hint}".rstrip())

    def warning(self, check: str, hosts: t.Iterable[str], what: str, seen: str, next_step: str) -> None:
        self._add("warning", check, hosts, what, seen, next_step)

    def _add(self, level: Level, check: str, hosts: t.Iterable[str], what: str, seen: str, next_step: str) -> None:
        if check not in CHECKS:
            raise ValueError(f"{check} is not a known check")
        what, seen, next_step = map(printable, (what, seen, next_step))
        finding: Finding = {"level": level, "check": check, "hosts": [], "what": what, "seen": seen, "next": next_step}
        known = self._findings.setdefault((level, check, what, seen, next_step), finding)
        known["hosts"].extend(host for host in hosts if host not in known["hosts"])

    @property
    def errors(self) -> t.List[Finding]:
        return [finding for finding in self._findings.values() if finding["level"] == "error"]

    def has_error(self, check: str) -> bool:
        return any(finding["check"] == check for finding in self.errors)

    def as_list(self) -> t.List[Finding]:
        """Errors before warnings, each in the order of reporting.

        Findings of several hosts that differ only in what was seen become one: a mistake in a setting is one mistake.
        """
        groups: t.Dict[t.Tuple[str, ...], t.List[Finding]] = {}
        for finding in sorted(self._findings.values(), key=lambda finding: finding["level"]):
            words = (finding["level"], finding["check"], finding["what"], finding["next"], _cause(finding))
            groups.setdefault(words, []).append(finding)
        return [each for group in groups.values() for each in _folded(group)]
