# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What kubeadm init and kubeadm join have in common: both can be repeated after any interruption.

kubeadm itself can't tell a member from a half-made node or from a node of another cluster.
"""

from __future__ import annotations

import abc
import os
import time
import typing as t

from .._common.result import FabricError, outcome
from .._host.files import read_text, write_file
from .._host.kubectl import run_kubectl
from . import paths
from .lock import hold_lock
from .membership import Membership, host_name, inspect_host
from .program import Document, Kubeadm, config_file

if t.TYPE_CHECKING:
    from ansible.module_utils.basic import AnsibleModule

PATIENCE = 60  # seconds that a node or an API server may take to come up


class HostState(Membership):
    """A host's membership, and how far an interrupted kubeadm got on it."""

    complete: bool  # everything is done: only the marker may be left
    may_be_member: bool  # it got so far that only the API can tell whether it is a member


def write_marker(module: AnsibleModule, command: str) -> None:
    write_file(module, paths.MARKER, command)


def remove_marker() -> None:
    if os.path.exists(paths.MARKER):
        os.remove(paths.MARKER)


def kubectl(*arguments: str, timeout: float = 30) -> bool:
    """Whether kubectl succeeds as this host's administrator, within a timeout in seconds."""
    if not os.path.exists(paths.ADMIN):
        return False
    return run_kubectl(paths.ADMIN, *arguments, request_timeout="10s", timeout=timeout).rc == 0


def is_api_ready() -> bool:
    """Whether this host's API server answers its administrator."""
    return kubectl("get", "--raw", "/readyz")


class Bootstrap(abc.ABC):
    """A way to make a host a node; init.py and join.py define what differs."""

    command: t.ClassVar[str]  # the kubeadm command

    def __init__(self, module: AnsibleModule) -> None:
        self.module = module
        self.control_plane: bool = module.params["control_plane"]
        self.node_name: str = module.params["node_name"] or host_name()

    @staticmethod
    @abc.abstractmethod
    def next_action(state: HostState, api: bool) -> str:
        """nothing, start, settle (all done but the marker), continue, restart, or refuse (it may be a member)."""

    @abc.abstractmethod
    def may_be_member(self) -> bool:
        """Whether the interrupted host may be, or still become, a member by itself."""

    @abc.abstractmethod
    def documents(self) -> t.List[Document]:
        """The configuration for kubeadm."""

    def before_reset(self) -> None:
        """Steps that need the host's files, before they are removed."""
        return

    def check_marker(self) -> None:
        """Allow only the command that was interrupted: another one would misread what it left behind."""
        interrupted = read_text(paths.MARKER).strip()
        if interrupted not in ("", self.command):
            raise FabricError(
                f"kubeadm {interrupted} was interrupted on this host, so kubeadm {self.command} can't run.",
                host_name(),
                f"{paths.MARKER} says {interrupted}",
                "Restore the former order of kube_control_plane, and run again: that command is then finished."
                " To take the host out of a cluster that you do not want, see"
                " https://github.com/ipu-fabric/ipu.fabric/blob/main/docs/kubernetes.md#add-and-remove-hosts",
                code="wrong-state",
            )

    def read_state(self) -> HostState:
        """The host's state. Hold the lock when calling: then an unfinished host is one that was interrupted."""
        state = inspect_host(self.node_name, self.control_plane, os.path.exists(paths.MARKER))
        if state["membership"] == "expired":
            raise FabricError(
                "Certificates of the cluster have expired.",
                host_name(),
                state["seen"],
                state["next_step"],
                code="expired",
            )
        if state["membership"] == "broken":
            raise FabricError(
                "The host has parts of a Kubernetes node, but its cluster does not confirm that it is one.",
                host_name(),
                state["seen"],
                state["next_step"],
                code="wrong-state",
            )
        complete = state["registered"] and (state["is_control_plane"] or not self.control_plane)
        return {**state, "complete": complete, "may_be_member": self.may_be_member()}

    def decide(self) -> t.Tuple[HostState, str]:
        """The host's state and the next action, after waiting for anything that still comes up by itself."""
        self.check_marker()
        give_up = time.monotonic() + (0 if self.module.check_mode else PATIENCE)
        while True:
            state = self.read_state()
            action = self.next_action(state, is_api_ready())
            may_change = action in ("restart", "refuse") and state["may_be_member"]
            if not may_change or time.monotonic() > give_up:
                break
            time.sleep(3)
        if action == "restart" and os.path.exists(paths.RESTORING):
            raise FabricError(
                "A restore was interrupted on this host: a reset would begin a new cluster, without the backup.",
                host_name(),
                f"{paths.RESTORING} names the backup {read_text(paths.RESTORING).strip()}",
                "Run ipu.fabric.restore again with that backup.",
                code="wrong-state",
            )
        if action == "refuse":
            raise FabricError(
                f"kubeadm {self.command} was interrupted so late that the host may already be a member of the cluster.",
                host_name(),
                f"no API server says whether it is one (asked with {paths.KUBELET} and {paths.ADMIN})",
                "See why with journalctl -u kubelet and crictl ps, and run again when the API answers. A member is"
                " never reset. Take the host out only if its cluster is gone for good:"
                " https://github.com/ipu-fabric/ipu.fabric/blob/main/docs/kubernetes.md#add-and-remove-hosts",
                code="api-unreachable",
            )
        return state, action

    def carry_out(self, kubeadm: Kubeadm, action: str) -> None:
        with config_file(self.documents()) as config:
            kubeadm.validate(config)
            if action == "restart":
                self.before_reset()
                kubeadm.reset()
            if action in ("start", "restart"):
                kubeadm.preflight(self.command, config)
            write_marker(self.module, self.command)
            kubeadm.bootstrap(self.command, config)
        remove_marker()

    def apply(self) -> t.Dict[str, object]:
        if self.module.check_mode:
            state, action = self.decide()
        else:
            with hold_lock(self.module.params["lock_timeout"]) as lock:
                state, action = self.decide()
                if action == "settle":
                    remove_marker()
                elif action != "nothing":
                    self.carry_out(Kubeadm(self.module, lock), action)
        return outcome({"membership": state["membership"]}, {"membership": "member"}, action=action)
