# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Members of a cluster's etcd, and removal of those whose hosts were reinstalled or leave the cluster."""

from __future__ import annotations

import json
import socket
import typing as t
from urllib.parse import urlsplit

from .._common.result import FabricError, outcome, printed_by
from .._host.kubectl import run_kubectl
from . import paths
from .membership import host_name

if t.TYPE_CHECKING:
    from ansible.module_utils.basic import AnsibleModule

PKI = "/etc/kubernetes/pki/etcd"
PORT = 2379
SECONDS = 30


class Member(t.TypedDict, total=False):
    """A member as etcdctl prints it."""

    ID: int
    peerURLs: t.List[str]
    name: str  # missing or empty until the member has started


class MemberFacts(t.TypedDict):
    """A member, as returned in the result."""

    name: str  # empty until it has started
    id: str  # in the format that etcdctl accepts
    addresses: t.List[str]
    alive: bool  # whether etcd accepts connections there


class MemberList(t.TypedDict):
    """The output of etcdctl member list."""

    members: t.List[Member]


def peer_addresses(member: Member) -> t.Set[str]:
    """The addresses at which peers reach a member. IPv6 addresses have no brackets."""
    hosts = (urlsplit(url).hostname for url in member.get("peerURLs") or ())
    return {host for host in hosts if host}


def describe(member: Member) -> str:
    """Name (empty until the member has started), ID in the format that etcdctl accepts, and addresses."""
    return f"{member.get('name') or 'not started'} {member['ID']:x} {','.join(sorted(peer_addresses(member)))}"


def member_facts(member: Member) -> MemberFacts:
    addresses = sorted(peer_addresses(member))
    return {
        "name": member.get("name") or "",
        "id": f"{member['ID']:x}",
        "addresses": addresses,
        "alive": any(is_listening(address) for address in addresses),
    }


def members_at(members: t.Sequence[Member], hosts: t.Collection[str]) -> t.List[Member]:
    return [member for member in members if peer_addresses(member) & set(hosts)]


def is_listening(address: str, port: int = PORT) -> bool:
    """Whether something accepts connections there: etcd, unless another port is given."""
    try:
        socket.create_connection((address, port), 2).close()
        return True
    except OSError:
        return False


def etcdctl(node: str, *arguments: str) -> str:
    """The output of etcdctl in the etcd pod of this control plane."""
    keys = ["--cacert", f"{PKI}/ca.crt", "--cert", f"{PKI}/server.crt", "--key", f"{PKI}/server.key"]
    pod = ["--namespace", "kube-system", "exec", f"etcd-{node}", "--"]
    return printed_by(
        run_kubectl(paths.ADMIN, *pod, "etcdctl", *keys, *arguments, request_timeout="0", timeout=SECONDS),
        SECONDS,
        "etcdctl failed.",
        f"pod etcd-{node} on {host_name()}",
        "Check that a majority of the control planes is up: without it etcd refuses changes.",
    )


def remove_members(module: AnsibleModule) -> t.Dict[str, object]:
    """The body of M(ipu.fabric.etcd_member)."""
    node = module.params["node_name"] or host_name()
    answer: MemberList = json.loads(etcdctl(node, "member", "list", "--write-out=json"))
    members = answer["members"]
    stale = members_at(members, module.params["addresses"])
    for member in [] if module.params["alive"] else stale:
        alive = sorted(address for address in peer_addresses(member) if is_listening(address))
        if alive:
            raise FabricError(
                "Only etcd members of hosts that were reinstalled are removed.",
                describe(member),
                f"an etcd answers at {', '.join(alive)}, port {PORT}",
                "Find out which host runs that etcd. If it is not the reinstalled one, correct the host's address (ip)"
                " in the inventory. Stop that etcd only if nothing needs it.",
                code="unsafe",
            )
    facts = [member_facts(member) for member in members if member not in stale]
    if not module.check_mode:
        for member in stale:
            etcdctl(node, "member", "remove", f"{member['ID']:x}")
    return outcome(
        {"members": [describe(member) for member in members]},
        {"members": [describe(member) for member in members if member not in stale]},
        members=facts,
    )
