# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which NICs and which single addresses the NetworkAttachmentDefinitions of a cluster use."""

from __future__ import annotations

import contextlib
import ipaddress
import typing as t

from .._common.cni import plugins_of
from .._model.observation import SeenAttachment

ATTACHMENTS = "/apis/k8s.cni.cncf.io/v1/network-attachment-definitions"

WITH_RANGES = ("host-local", "whereabouts")  # IPAM plugins whose own settings contain the addresses


def _addresses(ipam: object) -> t.List[str]:
    """The addresses of the IPAM plugin `static`, without prefixes and without invalid entries."""
    found = []
    if isinstance(ipam, dict) and ipam.get("type") == "static":
        for entry in ipam.get("addresses") or ():
            with contextlib.suppress(ValueError, AttributeError, TypeError):
                found.append(str(ipaddress.ip_interface(entry.get("address", "")).ip))
    return found


def read_attachments(configs: t.Iterable[t.Tuple[str, str, str]]) -> t.List[SeenAttachment]:
    """An entry for each plugin that names a NIC or addresses; `configs` has namespace, name and configuration."""
    found: t.List[SeenAttachment] = []
    for namespace, name, config in configs:
        for plugin in plugins_of(config):
            entry: SeenAttachment = {
                "namespace": namespace,
                "name": name,
                "plugin": str(plugin.get("type", "")),
                "nic": str(plugin.get("master") or plugin.get("device") or plugin.get("pciBusID") or ""),
                "mode": str(plugin.get("mode", "")),
                "addresses": _addresses(plugin.get("ipam")),
            }
            ipam = plugin.get("ipam")
            if isinstance(ipam, dict) and ipam.get("type") in WITH_RANGES:
                entry["ipam"] = dict(ipam)
            if entry["nic"] or entry["addresses"] or "ipam" in entry:
                found.append(entry)
    return found
