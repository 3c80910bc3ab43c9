# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Configures keepalived, which keeps the API's address on a control plane whose API server is ready."""

from __future__ import annotations

import dataclasses
import string
import typing as t

from .._host.files import OWN_MARK
from .._host.role_files import API_CHECK

BEGIN, BEGIN_SECONDS = "/run/ipu-fabric-new-cluster", 1800  # exists while a cluster is being created on this host
RESTARTS = "[Service]\nRestart=always\nRestartSec=2\n"
# VRRPv3 has no authentication, and version 2 sends its password in clear text.
CONFIGURATION = string.Template("""\
$mark
# Only a control plane whose API server is ready holds the address. While it does, nobody takes it away, whoever comes \
back:
# priorities only say who of several that are ready is next.
global_defs {
    router_id $name
    enable_script_security
    # With another user keepalived 2.2.7 of Debian 12 ends its own test of this file.
    script_user root
    vrrp_version 3
    # Nobody but the control planes below may say that the address is taken.
    vrrp_check_unicast_src
    # Heals the ARP cache of whoever has missed a move.
    vrrp_garp_master_refresh 60
}

vrrp_script api_server {
    script "$check $address"
    interval 3
    # A host that is busy takes seconds for an answer, and is not down.
    timeout 10
    fall 3
    rise 2
    init_fail
}

vrrp_instance control_plane {
    state BACKUP
    nopreempt
    interface $interface
    virtual_router_id $router_id
    priority $priority
    advert_int 1
    unicast_src_ip $address
    # They are in this network: what came through a router has a lower TTL, and is not theirs. Over IPv6 keepalived \
sends 64.
    unicast_peer {
$peers    }
    virtual_ipaddress {
        $vip dev $interface
    }
    track_script {
        api_server
    }
}
""")
# Run by keepalived: does this host's API server report that it is ready?
CHECK = (
    f"""\
#!/usr/bin/python3 -IS
{OWN_MARK} keepalived runs it: does the API server of this host say that it is ready?
import os
import socket
import ssl
import sys
import time

BEGIN, BEGIN_SECONDS = "{BEGIN}", {BEGIN_SECONDS}
"""
    + r"""
try:  # a cluster begins here, and needs the address before there is an API server
    if 0 <= time.time() - os.stat(BEGIN).st_mtime < BEGIN_SECONDS:
        sys.exit(0)
except FileNotFoundError:
    pass
# It asks this host itself, and tells it nothing.
context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
context.check_hostname = False
context.verify_mode = ssl.CERT_NONE
try:
    with socket.create_connection((sys.argv[1], 6443), 8) as connection, context.wrap_socket(connection) as tls:
        tls.sendall(b"GET /readyz HTTP/1.0\r\nHost: localhost\r\n\r\n")
        status = tls.recv(64).split(None, 2)[1:2]
except OSError as error:
    sys.exit(str(error))
sys.exit(None if status == [b"200"] else f"/readyz: {status}")
"""
)


@dataclasses.dataclass(frozen=True)
class Holder:
    """A control plane that may hold the address."""

    name: str
    address: str
    interface: str
    rank: int  # position among the control planes
    peers: t.Sequence[str]  # addresses of the other control planes


def configuration(vip: str, router_id: int, holder: Holder) -> str:
    return CONFIGURATION.substitute(
        dataclasses.asdict(holder),
        mark=OWN_MARK,
        check=API_CHECK,
        router_id=router_id,
        priority=200 - holder.rank,
        peers="".join(f"        {peer}{'' if ':' in peer else ' min_ttl 255'}\n" for peer in holder.peers),
        vip=f"{vip}/{128 if ':' in vip else 32}",
    )
