# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""kubeadm join: workers and additional control planes."""

from __future__ import annotations

import os
import typing as t

from . import paths
from .bootstrap import Bootstrap, HostState, kubectl
from .program import Document
from .tokens import Discovery


def with_discovery(documents: t.Sequence[Document], discovery: Discovery) -> t.List[Document]:
    """The documents, with token, pinned CA and certificate key added to the JoinConfiguration."""

    def with_secrets(document: Document) -> Document:
        if document.get("kind") != "JoinConfiguration":
            return document
        joined: Document = {
            **document,
            "discovery": {
                "bootstrapToken": {
                    "token": discovery["token"],
                    "apiServerEndpoint": discovery["endpoint"],
                    "caCertHashes": discovery["ca_hashes"],
                }
            },
        }
        if "controlPlane" in document:
            joined["controlPlane"] = {**document["controlPlane"], "certificateKey": discovery["certificate_key"]}
        return joined

    return [with_secrets(document) for document in documents]


class Join(Bootstrap):
    """Reset a host that never became a member, and join it again."""

    command = "join"

    @staticmethod
    def next_action(state: HostState, api: bool) -> str:
        if state["membership"] == "unfinished":
            if state["complete"]:
                return "settle"
            return "refuse" if state["may_be_member"] and not state["answered"] else "restart"
        return "nothing" if state["membership"] == "member" else "start"

    def may_be_member(self) -> bool:
        """Whether its kubelet was admitted, or it has an etcd, without which the others may lose their quorum."""
        return os.path.exists(paths.KUBELET) or (self.control_plane and os.path.exists(paths.ETCD))

    def documents(self) -> t.List[Document]:
        return with_discovery(self.module.params["documents"], self.module.params["discovery"])

    def before_reset(self) -> None:
        """Delete the node of a half-joined control plane: the cluster would refuse a second one of that name."""
        kubectl("delete", "--timeout=60s", "node", self.node_name, timeout=90)
