# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Settings of a running control plane: manifests as kubeadm renders them, the files they refer to, and file modes.

kubeadm renders the manifests in a dry run into a separate directory; they are compared before they are put in place.
"""

from __future__ import annotations

import json
import os
import shutil
import stat
import typing as t

from .._common.result import FabricError, outcome, printed_by
from .._host.control_plane import read_arguments, too_open
from .._host.files import Files, read_file, read_text, write_file
from .._host.kubectl import run_kubectl
from . import paths
from .bootstrap import kubectl
from .encryption import Encryption
from .hardening import AUDIT_LOGS, STATIC_POD, ClusterConfiguration, Component, HardenedFile, differences, own_values
from .live_change import API_SERVER, LiveChange, kept, manifest, newer_files
from .lock import hold_lock
from .membership import host_name
from .program import Document, Kubeadm, config_file

if t.TYPE_CHECKING:
    from ansible.module_utils.basic import AnsibleModule

SUPER_ADMIN = f"{paths.KUBERNETES}/super-admin.conf"
CA_KEY = f"{paths.KUBERNETES}/pki/ca.key"
CONFIG_MAP = "/api/v1/namespaces/kube-system/configmaps/kubeadm-config"
SECONDS = 60
DRY_RUN = "KUBEADM_INIT_DRYRUN_DIR"


class ConfigMapMetadata(t.TypedDict, total=False):
    """The version of the ConfigMap."""

    resourceVersion: str


class ConfigMap(t.TypedDict, total=False):
    """The parts of kubeadm-config that are read here."""

    metadata: ConfigMapMetadata
    data: t.Dict[str, str]


class State(t.TypedDict):
    """The state that is compared before and after."""

    arguments: t.Dict[str, t.Dict[str, str]]  # arguments in the hardening table, by static pod
    files: t.Dict[str, str]  # content by path
    open_files: t.List[str]
    super_admin: bool
    restart: t.List[str]  # static pods that started before their files were written


def cluster_document(documents: t.Sequence[Document]) -> ClusterConfiguration:
    for document in documents:
        if document.get("kind") == "ClusterConfiguration":
            return t.cast("ClusterConfiguration", document)
    raise FabricError(
        "There is no ClusterConfiguration to apply.", "documents", "none", "Give one.", code="invalid-input"
    )


def lost_lines(before: str, after: str, own: t.Iterable[str]) -> t.List[str]:
    """Lines of a manifest that the rendered one would lose, except those that contain one of our marks."""
    kept_lines = {line.strip() for line in after.splitlines()}
    marks = list(own)
    return [
        line.strip()
        for line in before.splitlines()
        if line.strip() and line.strip() not in kept_lines and not any(mark in line for mark in marks)
    ]


def own_marks(component: Component) -> t.List[str]:
    """What marks a line as ours. A kubeadm argument may be replaced by one in the table."""
    arguments = [f"--{name}=" for name in own_values(component)]
    # The failure threshold depends on kubeadm's time-out when it wrote the manifest.
    return [*arguments, paths.HARDENING, AUDIT_LOGS, "hardening", "audit-logs", "failureThreshold:"]


def read_config_map(module: AnsibleModule) -> ConfigMap:
    """kubeadm's configuration of the cluster, read as this control plane's administrator."""
    printed = printed_by(
        run_kubectl(paths.ADMIN, "get", "--raw", CONFIG_MAP, timeout=SECONDS),
        SECONDS,
        "kubeadm's configuration of the cluster can't be read.",
        f"{host_name()}: ConfigMap kube-system/kubeadm-config",
        "Start the API server, or put the ConfigMap back: kubeadm init phase upload-config kubeadm.",
    )
    found: ConfigMap = json.loads(printed)
    return found


class ControlPlane:
    """The settings of one control plane."""

    def __init__(self, module: AnsibleModule) -> None:
        self.module = module
        self.documents: t.List[Document] = module.params["documents"]
        self.files: t.List[HardenedFile] = module.params["files"]

    def wanted_files(self) -> Files:
        return {file["path"]: {"content": file["content"], "mode": "0600"} for file in self.files}

    def write_files(self) -> t.Dict[str, object]:
        """Only write the files, on a host that is about to become a control plane: kubeadm does the rest."""
        wanted = self.wanted_files()
        before = {path: read_file(path) for path in wanted}
        if before != wanted and not self.module.check_mode:
            os.makedirs(paths.HARDENING, mode=0o700, exist_ok=True)
            for path, file in wanted.items():
                if file is not None and before[path] != file:
                    write_file(self.module, path, file["content"], file["mode"])
        return outcome(before, wanted)

    def read(self) -> t.Dict[str, object]:
        data = read_config_map(self.module).get("data", {})
        configuration = data.get("ClusterConfiguration", "")
        return {"changed": False, "configuration": configuration, "encryption": Encryption(self.module).read()}

    def upload(self) -> t.Dict[str, object]:
        """Upload kubeadm's configuration, which later joins and upgrades of control planes use."""
        found = read_config_map(self.module)
        before = found.get("data", {}).get("ClusterConfiguration", "")
        text: str = self.module.params["configuration"]
        if before != text and not self.module.check_mode:
            version = found.get("metadata", {}).get("resourceVersion", "")
            patch = json.dumps({"metadata": {"resourceVersion": version}, "data": {"ClusterConfiguration": text}})
            argv = ["patch", "configmap", "kubeadm-config", "--type", "merge", "-p", patch]
            printed_by(
                run_kubectl(paths.ADMIN, "--namespace", "kube-system", *argv, timeout=SECONDS),
                SECONDS,
                "kubeadm's configuration of the cluster can't be written.",
                f"{host_name()}: ConfigMap kube-system/kubeadm-config",
                "Run again: the control planes have their settings already.",
            )
        return outcome({"ClusterConfiguration": before}, {"ClusterConfiguration": text})

    def settle(self) -> t.Dict[str, object]:
        unfinished = kept() is not None
        action = "nothing"
        if unfinished and not self.module.check_mode:
            with hold_lock(self.module.params["lock_timeout"]):
                action = LiveChange(self.module).settle()
        return {"changed": unfinished, "action": action}

    def look(self) -> t.Tuple[State, State]:
        """The control plane's present and wanted state."""
        configuration = cluster_document(self.documents)
        running = read_arguments(paths.ROOT)
        differing = differences(configuration, running)
        wanted = self.wanted_files()
        found = {path: read_file(path) for path in wanted}
        has_super_admin = os.path.exists(SUPER_ADMIN)
        before: State = {
            "arguments": {},
            "files": {path: file["content"] if file else "" for path, file in found.items()},
            "open_files": sorted(too_open(paths.ROOT)) if self.module.params["private"] else [],
            "super_admin": has_super_admin,
            "restart": [API_SERVER] if newer_files(API_SERVER, wanted) else [],
        }
        after: State = {
            "arguments": {},
            "files": {path: file["content"] if file else "" for path, file in wanted.items()},
            "open_files": [],
            "super_admin": has_super_admin and (self.module.params["super_admin"] or not os.path.exists(CA_KEY)),
            "restart": [],
        }
        for component, names in differing.items():
            pod = STATIC_POD[component]
            section = configuration.get(component) or {}
            extra = {each["name"]: each["value"] for each in section.get("extraArgs") or []}
            before["arguments"][pod] = {name: running[pod][name] for name in names if name in running.get(pod, {})}
            after["arguments"][pod] = {name: extra[name] for name in names if name in extra}
        return before, after

    def apply(self) -> t.Dict[str, object]:
        if self.module.check_mode:
            before, after = self.look()
            return outcome(before, after)
        with hold_lock(self.module.params["lock_timeout"]) as lock:
            LiveChange(self.module).settle()
            before, after = self.look()
            if before != after:
                self.carry_out(Kubeadm(self.module, lock), before, after)
        return outcome(before, after)

    def carry_out(self, kubeadm: Kubeadm, before: State, after: State) -> None:
        for path, mode in (too_open(paths.ROOT) if self.module.params["private"] else {}).items():
            os.chmod(path, mode)
        changed: Files = {
            path: file for path, file in self.wanted_files().items() if before["files"][path] != after["files"][path]
        }
        pods = list(after["arguments"])
        if pods:
            changed.update(self.render(kubeadm, pods))
        if (changed and any(not path.startswith(paths.MANIFESTS) for path in changed)) or before["restart"]:
            pods = [API_SERVER, *(pod for pod in pods if pod != API_SERVER)]
        if pods:
            LiveChange(self.module).apply(changed, pods)
        if before["super_admin"] and not after["super_admin"]:
            self.remove_super_admin()

    def render(self, kubeadm: Kubeadm, pods: t.Sequence[str]) -> Files:
        """Manifests that kubeadm renders from its new configuration."""
        shutil.rmtree(paths.RENDERED, ignore_errors=True)
        os.makedirs(paths.RENDERED, mode=0o700)
        os.environ[DRY_RUN] = paths.RENDERED
        next_step = "Correct the configuration that it names, or see kubernetes_cluster_config."
        try:
            with config_file(self.documents) as config:
                arguments = ("init", "phase", "control-plane", "all", "--dry-run", f"--config={config}")
                kubeadm.run(*arguments, next_step=next_step)
            texts = {pod: read_text(os.path.join(paths.RENDERED, f"{pod}.yaml")) for pod in pods}
        finally:
            del os.environ[DRY_RUN]
            shutil.rmtree(paths.RENDERED, ignore_errors=True)
        names: t.Dict[str, Component] = {pod: component for component, pod in STATIC_POD.items()}
        files: Files = {}
        for pod, text in texts.items():
            lost = lost_lines(read_text(manifest(pod)), text, own_marks(names[pod]))
            if lost or not text:
                raise FabricError(
                    "The manifest of a static pod has something that kubeadm's configuration lacks.",
                    f"{host_name()}: {manifest(pod)}",
                    "; ".join(lost[:10]) or "kubeadm has rendered none",
                    "Put it into the ConfigMap kube-system/kubeadm-config (extraArgs, extraVolumes, extraEnvs), as an"
                    " upgrade would lose it too. Or set fabric_hardening to none.",
                    code="wrong-state",
                )
            files[manifest(pod)] = {"content": text, "mode": format(self.mode_of(manifest(pod)), "04o")}
        return files

    def mode_of(self, path: str) -> int:
        return stat.S_IMODE(os.stat(path).st_mode) & 0o600

    def remove_super_admin(self) -> None:
        """Remove super-admin.conf, which bypasses RBAC. kubeadm init phase kubeconfig super-admin can recreate it."""
        if not kubectl("auth", "can-i", "*", "*", "--all-namespaces"):
            raise FabricError(
                "super-admin.conf stays, since admin.conf does not work as administrator.",
                f"{host_name()}: {paths.ADMIN}",
                "kubectl auth can-i '*' '*' does not answer yes",
                "Give the group kubeadm:cluster-admins its ClusterRoleBinding back, with"
                f" kubectl --kubeconfig {SUPER_ADMIN}. Then run again.",
                code="wrong-state",
            )
        os.remove(SUPER_ADMIN)


def run(module: AnsibleModule) -> t.Dict[str, object]:
    """The body of M(ipu.fabric.control_plane)."""
    control_plane = ControlPlane(module)
    bodies = {
        "files": control_plane.write_files,
        "present": control_plane.apply,
        "settled": control_plane.settle,
        "uploaded": control_plane.upload,
        "read": control_plane.read,
    }
    return bodies[module.params["state"]]()
