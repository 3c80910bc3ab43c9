# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Everything that a plan must know about a host, in one call: a missing part says why, and the rest is there."""

from __future__ import annotations

import re
import typing as t

from .._common.result import FabricError
from .facts import Questions, program_folders, read_host
from .journal import read_journal
from .links import read_rdma
from .sources import Places, ask_sources
from .vipu import controller_addresses, find_controller, reachable

if t.TYPE_CHECKING:
    from ansible.module_utils.basic import AnsibleModule

ENDPOINT = re.compile(r"(?i)(?:https?://)?\[?([^/\]]*?)\]?(?::[0-9]+)?(?:/.*)?")


def host_names(endpoints: t.Sequence[str]) -> t.List[str]:
    """The hosts in URLs, in host:port, and in plain names."""
    matches = [ENDPOINT.fullmatch(text) for text in endpoints]
    return [match.group(1) for match in matches if match and match.group(1)]


def observe(module: AnsibleModule) -> t.Dict[str, object]:
    """The body of M(ipu.fabric.host_info)."""
    params = dict(module.params)
    links, routes_to, vipu, journal = (params.pop(name) for name in ("links", "routes_to", "vipu", "journal"))
    sources, proxy = params.pop("sources"), params.pop("download_proxy")
    params["names"] = host_names(params["names"])
    host = read_host(Questions(**params, run_from=program_folders(module)))
    found: t.Dict[str, object] = {"host": host}
    failures = {}
    addresses = controller_addresses(routes_to)
    if vipu is not None:
        try:
            controller = find_controller(**vipu, here=True)
            found["vipu"] = controller
            addresses = list(filter(None, [reachable([controller["address"]])]))  # a loopback needs no route
        except FabricError as error:
            failures["vipu"] = error.as_failure()
    if links:
        try:
            found["rdma"] = read_rdma(addresses)
        except FabricError as error:
            failures["rdma"] = error.as_failure()
    if journal is not None:
        found["logs"] = read_journal(**journal)
    # Last: the proxy is only for this step.
    places = Places(host["distribution"], host["release"], host["architecture"])
    host["sources"] = ask_sources(sources, proxy, places, host["kubelet"]["version"].lstrip("v"))
    return {"changed": False, **found, "failures": failures}
