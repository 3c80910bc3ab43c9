# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""kubeadm init: the first control plane."""

from __future__ import annotations

import typing as t

from .._host.files import read_text
from . import paths
from .bootstrap import Bootstrap, HostState
from .program import Document

# What the kubelet's kubeconfig names once kubeadm init has come to its last phases.
ROTATED = "kubelet-client-current.pem"


class Init(Bootstrap):
    """A first control plane whose API answers is finished phase by phase, as every phase but preflight can be repeated.

    One that never came that far was never a cluster: it is reset, and initialised again.
    """

    command = "init"

    @staticmethod
    def next_action(state: HostState, api: bool) -> str:
        if state["membership"] == "unfinished":
            if api:
                return "continue"
            return "refuse" if state["may_be_member"] else "restart"
        return "nothing" if state["membership"] == "member" else "start"

    def may_be_member(self) -> bool:
        """Whether it came to its last phases: such a cluster may be in use by now."""
        return ROTATED in read_text(paths.KUBELET)

    def documents(self) -> t.List[Document]:
        documents: t.List[Document] = self.module.params["documents"]
        return documents
