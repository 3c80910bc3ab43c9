# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The kubeadm program of this host, and the configuration documents that it reads."""

from __future__ import annotations

import contextlib
import json
import os
import re
import time
import typing as t

from .._common.command import run_program
from .._common.result import FabricError
from .._host.files import open_private
from .._host.journal import complaints
from . import paths
from .membership import host_name

if t.TYPE_CHECKING:
    from ansible.module_utils.basic import AnsibleModule

API_VERSION = "kubeadm.k8s.io/v1beta4"


class BootstrapToken(t.TypedDict):
    """How a joining host finds the cluster and trusts it."""

    token: str
    apiServerEndpoint: str
    caCertHashes: t.List[str]


class DocumentDiscovery(t.TypedDict):
    """The field `discovery` of a JoinConfiguration."""

    bootstrapToken: BootstrapToken


class ControlPlane(t.TypedDict, total=False):
    """The field `controlPlane` of a JoinConfiguration."""

    localAPIEndpoint: t.Dict[str, t.Union[str, int]]
    certificateKey: str


class Document(t.TypedDict, total=False):
    """A configuration document: the fields that are set here. The site's own fields are kept as they are."""

    apiVersion: str
    kind: str
    discovery: DocumentDiscovery
    controlPlane: ControlPlane
    certificateKey: str
    kubernetesVersion: str


def to_yaml(documents: t.Sequence[Document]) -> str:
    """Configuration documents in a format that kubeadm reads: JSON is YAML."""
    return "\n---\n".join(json.dumps(document, indent=2, sort_keys=True) for document in documents) + "\n"


# What runc prints if it may not lower OOM scores, as in a container.
NO_CONTAINER_STARTS = ("unable to start container process", "final child's PID from pipe")
IN_A_CONTAINER = (
    "If this host is itself a container, set kubernetes_containerd_restrict_oom_score_adj to true; where its kernel"
    " settings are read-only, also do what https://github.com/ipu-fabric/ipu.fabric/blob/main/docs/requirements.md"
    "#locked-memory-and-cgroups says. Otherwise:"
)


@contextlib.contextmanager
def config_file(documents: t.Sequence[Document]) -> t.Iterator[str]:
    """A configuration file that only root can read, removed afterwards: it may contain a token.

    Its name is fixed, so that the next run overwrites and removes a file left by a killed one.
    """
    with open_private(paths.CONFIG) as file:
        file.truncate()
        file.write(to_yaml(documents))
    try:
        yield paths.CONFIG
    finally:
        os.remove(paths.CONFIG)


def error_lines(text: str, limit: int = 25) -> str:
    """The end of kubeadm's output, without its progress messages."""

    def is_progress(line: str) -> bool:
        return bool(re.match(r"\[[a-z-]+\] ", line)) and "not healthy" not in line

    return "\n".join([line for line in text.splitlines() if line.strip() and not is_progress(line)][-limit:])


class Kubeadm:
    """kubeadm on this host. Every command holds the lock until it ends, even if the run that started it was killed."""

    def __init__(self, module: AnsibleModule, lock: t.IO[str]) -> None:
        self.timeout: int = module.params["timeout"]
        self.lock = lock
        self.path = module.get_bin_path("kubeadm", required=True)

    def run(self, *arguments: str, next_step: str) -> str:
        # It only contacts the API and containerd, and would copy proxy variables into the control plane's pods.
        no_proxy = {name: "" for name in os.environ if name.lower().endswith("_proxy")}
        done = run_program([self.path, *arguments], self.timeout, env=no_proxy, pass_fds=[self.lock.fileno()])
        if done.rc == 0:
            return done.out
        name = " ".join(["kubeadm", *[argument for argument in arguments if not argument.startswith("--")][:2]])
        end = "failed" if done.rc is not None else f"did not end within {self.timeout} s"
        raise FabricError(
            f"{name} {end}.", host_name(), error_lines(f"{done.out}\n{done.err}"), next_step, code=done.code
        )

    def run_with_services(self, *arguments: str, next_step: str) -> str:
        """The same for a command that starts services: if it fails, their logs are added."""
        begun = time.time()
        try:
            return self.run(*arguments, next_step=next_step)
        except FabricError as error:
            found = complaints(begun)
            seen = "\n".join(filter(None, [error.seen, *(f"{unit}: {text}" for unit, text in found.items())]))
            cure = f"{IN_A_CONTAINER} " if any(words in seen for words in NO_CONTAINER_STARTS) else ""
            step = f"{cure}{next_step} journalctl {' '.join(f'-u {unit}' for unit in found or ['kubelet'])} says more."
            raise FabricError(error.what, error.where, seen, step, code=error.code) from error

    def validate(self, config: str) -> None:
        self.run(
            "config", "validate", f"--config={config}", next_step="Correct the variables behind this configuration."
        )

    def preflight(self, command: str, config: str) -> None:
        next_step = (
            "Fix what it reports, or add it to kubernetes_ignore_preflight_errors. For cgroup v1, set"
            " fabric_allow: [cgroup-v2] instead (for the role alone, kubernetes_cgroup_v1: true)."
        )
        self.run(command, "phase", "preflight", f"--config={config}", next_step=next_step)

    def bootstrap(self, command: str, config: str) -> None:
        """Run kubeadm init or kubeadm join."""
        arguments = (command, f"--config={config}", "--skip-phases=preflight")
        self.run_with_services(*arguments, next_step="Fix what is reported, then run again: it starts over.")

    def reset(self) -> None:
        self.run("reset", "--force", next_step="Reset the host by hand with kubeadm reset, then run again.")
