# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""kubeadm init: the first control plane."""

from __future__ import annotations

import typing as t

from ansible_collections.ipu.fabric.plugins.module_utils._common.result import FabricError
from ansible_collections.ipu.fabric.plugins.module_utils._host.files import read_text
from ansible_collections.ipu.fabric.plugins.module_utils._kubeadm import paths
from ansible_collections.ipu.fabric.plugins.module_utils._kubeadm.bootstrap import Bootstrap, HostState
from ansible_collections.ipu.fabric.plugins.module_utils._kubeadm.membership import host_name
from ansible_collections.ipu.fabric.plugins.module_utils._kubeadm.program import Document

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
            return "continue" if api else "restart"
        return "nothing" if state["membership"] == "member" else "start"

    def may_come_up(self) -> bool:
        """Whether it came to its last phases. Such a cluster may be in use by now, and is never reset."""
        return ROTATED in read_text(paths.KUBELET)

    def documents(self) -> t.List[Document]:
        documents: t.List[Document] = self.module.params["documents"]
        return documents

    def check_reset(self) -> None:
        if self.may_come_up():
            raise FabricError(
                "An interrupted kubeadm init had come to its last phases, but its API server does not answer.",
                host_name(),
                f"no answer with {paths.ADMIN}",
                "See why with journalctl -u kubelet; or, if nothing on it matters, run kubeadm reset. Then run again.",
            )
