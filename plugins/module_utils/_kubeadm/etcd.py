# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Members of a cluster's etcd whose hosts were made anew."""

from __future__ import annotations

import json
import socket
import typing as t
from urllib.parse import urlsplit

from ansible_collections.ipu.fabric.plugins.module_utils._common.command import run_program
from ansible_collections.ipu.fabric.plugins.module_utils._common.result import FabricError, outcome
from ansible_collections.ipu.fabric.plugins.module_utils._kubeadm.membership import ADMIN, host_name

if t.TYPE_CHECKING:
    from ansible.module_utils.basic import AnsibleModule

PKI = "/etc/kubernetes/pki/etcd"
PORT = 2379
SECONDS = 30

Json = t.Dict[str, t.Any]


def addresses(member: Json) -> t.Set[str]:
    """Where a member's peers reach it. IPv6 addresses come without brackets."""
    hosts = (urlsplit(url).hostname for url in member.get("peerURLs") or ())
    return {host for host in hosts if host}


def title(member: Json) -> str:
    """Name (empty while a member has not started), ID as etcdctl takes it, and addresses."""
    return f"{member.get('name') or 'not started'} {member['ID']:x} {','.join(sorted(addresses(member)))}"


def leftovers(members: t.Sequence[Json], hosts: t.Collection[str]) -> t.List[Json]:
    return [member for member in members if addresses(member) & set(hosts)]


def answers(address: str) -> bool:
    try:
        socket.create_connection((address, PORT), 2).close()
        return True
    except OSError:
        return False


def etcdctl(node: str, *arguments: str) -> str:
    """What etcdctl says in the etcd pod of this control plane."""
    keys = ["--cacert", f"{PKI}/ca.crt", "--cert", f"{PKI}/server.crt", "--key", f"{PKI}/server.key"]
    pod = ["kubectl", "--kubeconfig", ADMIN, "--namespace", "kube-system", "exec", f"etcd-{node}", "--"]
    done = run_program([*pod, "etcdctl", *keys, *arguments], SECONDS)
    if done.rc == 0:
        return done.out
    raise FabricError(
        "The cluster's etcd was asked for its members.",
        f"pod etcd-{node} on {host_name()}",
        (done.err or done.out).strip()[-500:] or f"no answer within {SECONDS} s",
        "See that most control planes run: without them etcd changes nothing. Nothing was changed.",
    )


def run(module: AnsibleModule) -> Json:
    """The body of M(ipu.fabric.etcd_member_absent)."""
    node, hosts = module.params["node_name"] or host_name(), module.params["addresses"]
    members = json.loads(etcdctl(node, "member", "list", "--write-out=json"))["members"]
    gone = leftovers(members, hosts)
    for member in gone:
        alive = sorted(address for address in addresses(member) if answers(address))
        if alive:
            raise FabricError(
                "Only etcd members of hosts that were made anew are removed.",
                title(member),
                f"an etcd answers at {', '.join(alive)}, port {PORT}",
                "See what runs there. If the host is to join anew, stop it with kubeadm reset. Nothing was changed.",
            )
    if not module.check_mode:
        for member in gone:
            etcdctl(node, "member", "remove", f"{member['ID']:x}")
    before = [title(member) for member in members]
    return outcome({"members": before}, {"members": [title(member) for member in members if member not in gone]})
