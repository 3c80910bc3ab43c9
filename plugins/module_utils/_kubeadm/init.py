# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""kubeadm init: the first control plane."""

from __future__ import annotations

import typing as t

from .._host.files import read_text
from . import paths
from .bootstrap import Bootstrap, HostState
from .program import Document

# The kubelet's kubeconfig refers to this once kubeadm init is in its last phases.
ROTATED = "kubelet-client-current.pem"


class Init(Bootstrap):
    """If its API answers, finish a first control plane phase by phase: all phases but preflight can be repeated.

    One whose API never came up was never a cluster: the host is reset and initialised again.
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
        """Whether kubeadm got to its last phases: such a cluster may be in use by now."""
        return ROTATED in read_text(paths.KUBELET)

    def documents(self) -> t.List[Document]:
        documents: t.List[Document] = self.module.params["documents"]
        return documents
