# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether kubeconfigs point to the same cluster, by their CAs: the one on the controller, and the API host's."""

from __future__ import annotations

import base64
import dataclasses
import re
import typing as t

from .._common.result import FabricError
from .._model.wish import KubeconfigWish

CA = re.compile(r"certificate-authority-data: *(\S+)")


@dataclasses.dataclass(frozen=True)
class Settings:
    """Variables of the role, without its name as a prefix."""

    api_host: str
    api_kubeconfig: str


@dataclasses.dataclass(frozen=True)
class Seen:
    """Kubeconfigs. Those of hosts are in the form of ansible.builtin.slurp."""

    first: str  # the first control plane
    here: str  # on the controller; empty: there is none
    admin: t.Optional[str] = None  # of the first control plane; None: the same as the one on the controller
    there: t.Optional[str] = None  # of the API host


def authorities(text: str) -> t.List[str]:
    """CAs in a kubeconfig, without duplicates. A file may contain several clusters."""
    return list(dict.fromkeys(CA.findall(text)))


def decode(content: str) -> str:
    return base64.b64decode(content).decode("utf-8", errors="replace")


def decide(settings: Settings, seen: Seen) -> KubeconfigWish:
    """Raise FabricError if the API host talks to another cluster."""
    own = authorities(seen.here if seen.admin is None else decode(seen.admin))
    if seen.there is not None and authorities(decode(seen.there)) != own:
        raise FabricError(
            f"The kubeconfig on {settings.api_host} leads to another cluster than the one of {seen.first}.",
            settings.api_kubeconfig,
            f"another CA than in admin.conf of {seen.first}",
            "Name a control plane of this cluster, or localhost, in fabric_api_host.",
            code="other-cluster",
        )
    return KubeconfigWish(of_others=bool(seen.here) and authorities(seen.here) != own)
