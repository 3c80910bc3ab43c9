# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which cluster a kubeconfig on the controller points to. Its credentials are not read."""

from __future__ import annotations

import base64
import os
import typing as t

import yaml

from ..module_utils._common.result import FabricError
from ..module_utils._host.facts import ca_digest
from ..module_utils._model.settings import Kubeconfig
from ._artifacts import read_file

# What kubeadm, k3s and RKE2 write. Anything else names a program, a file or a proxy.
PLAIN = {
    "cluster": ("certificate-authority-data", "server", "tls-server-name"),
    "user": ("client-certificate-data", "client-key-data", "token"),
}


def _named(entries: t.Sequence[t.Mapping[str, t.Any]], name: str, kind: str) -> t.Mapping[str, t.Any]:
    return next(entry[kind] for entry in entries if entry["name"] == name)


def _strange(config: t.Any) -> t.List[str]:
    """What a kubeconfig has besides server, keys and certificates. Raises an error if the text is not a kubeconfig."""
    return [
        f"{kind} {key}"
        for kind, known in PLAIN.items()
        for entry in config[f"{kind}s"]
        for key in entry[kind] or {}
        if key not in known
    ]


def kubeconfig_without_programs(text: str) -> str:
    """The kubeconfig of a host; an error if using it would run, read or trust anything that it names."""
    try:
        strange = _strange(yaml.safe_load(text))
    except (AttributeError, KeyError, TypeError, yaml.YAMLError):
        strange = ["it is not a kubeconfig"]
    if strange:
        raise FabricError(
            "The kubeconfig of a control plane is used on the controller, so it may only have a server, keys and"
            " certificates.",
            "admin.conf of the control plane",
            ", ".join(strange),
            "Find out who changed it. For a new one, move it away and run kubeadm init phase kubeconfig admin.",
            code="unsafe",
        )
    return text


def read_kubeconfig(path: str) -> Kubeconfig:
    """The cluster of its current context; without a server if there is none, or if the file is not a kubeconfig.

    The fault tells these two apart.
    """
    try:
        config = yaml.safe_load(read_file(path))
        context = _named(config["contexts"], config["current-context"], "context")
        cluster = _named(config["clusters"], context["cluster"], "cluster")
        data, file = cluster.get("certificate-authority-data"), cluster.get("certificate-authority")
        if data:
            authority = base64.b64decode(data).decode("ascii", "replace")
        else:
            authority = read_file(os.path.join(os.path.dirname(path), file)) if file else ""
        return Kubeconfig(path, str(cluster["server"] or ""), ca_digest(authority))
    except (AttributeError, KeyError, StopIteration, TypeError, ValueError, yaml.YAMLError):
        return Kubeconfig(path, fault=_fault(path))


def _fault(path: str) -> str:
    """Why an existing file points to no cluster, as text to follow its path; empty without a file."""
    if not os.path.exists(path):
        return ""
    if os.path.isdir(path):
        return "is a folder"
    if not os.access(path, os.R_OK):
        return "may not be read by the user that runs this"
    if not read_file(path).strip():
        return "is empty"
    return "is not a kubeconfig, or its current-context leads to none of its clusters"
