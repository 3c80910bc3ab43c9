# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""kubeadm init and join that can be run again after any interruption."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import re
import secrets
import subprocess
import time
import typing as t

from ansible_collections.ipu.fabric.plugins.module_utils._common.result import FabricError, outcome
from ansible_collections.ipu.fabric.plugins.module_utils._kubeadm.membership import (
    ADMIN,
    KUBELET,
    LOCK,
    MARKER,
    host_name,
    inspect,
)

if t.TYPE_CHECKING:
    from ansible.module_utils.basic import AnsibleModule

CONFIG = "/run/ipu-fabric-kubeadm.yaml"
# What the kubelet's kubeconfig names once kubeadm init has come to its last phases.
ROTATED = "kubelet-client-current.pem"
API_VERSION = "kubeadm.k8s.io/v1beta4"

Json = t.Dict[str, t.Any]


def to_documents(documents: t.Sequence[Json]) -> str:
    """Configuration documents in the form that kubeadm reads. JSON is YAML."""
    return "\n---\n".join(json.dumps(document, indent=2, sort_keys=True) for document in documents) + "\n"


def with_discovery(documents: t.Sequence[Json], discovery: t.Optional[Json]) -> t.List[Json]:
    """The documents with token, pinned CA and certificate key put into the JoinConfiguration."""
    if not discovery:
        return list(documents)
    bootstrap = {
        "token": discovery["token"],
        "apiServerEndpoint": discovery["endpoint"],
        "caCertHashes": discovery["ca_hashes"],
    }

    def joined(document: Json) -> Json:
        if document.get("kind") != "JoinConfiguration":
            return document
        result = {**document, "discovery": {"bootstrapToken": bootstrap}}
        if "controlPlane" in document:
            result["controlPlane"] = {**document["controlPlane"], "certificateKey": discovery["certificate_key"]}
        return result

    return [joined(document) for document in documents]


def parse_join_command(text: str) -> Json:
    """Endpoint, token and CA hashes from the line that kubeadm token create --print-join-command prints."""
    endpoint = re.search(r"kubeadm join (\S+)", text)
    token = re.search(r"--token (\S+)", text)
    hashes = re.findall(r"--discovery-token-ca-cert-hash (\S+)", text)
    if not endpoint or not token or not hashes:
        raise FabricError(
            "Could not read the join command.",
            "kubeadm token create",
            "another output than known",
            "Use a known release of kubeadm.",
        )
    return {"endpoint": endpoint.group(1), "token": token.group(1), "ca_hashes": hashes}


def important(text: str, lines: int = 25) -> str:
    """The end of what kubeadm printed, without its report of progress."""

    def progress(line: str) -> bool:
        return bool(re.match(r"\[[a-z-]+\] ", line)) and "not healthy" not in line

    return "\n".join([line for line in text.splitlines() if line.strip() and not progress(line)][-lines:])


def next_action(found: Json, action: str, api: bool) -> str:
    """What to do about a host: nothing, start, settle (all done but the marker), continue or restart.

    A first control plane whose API answers is finished phase by phase, as every phase but the preflight can be
    repeated. What never came that far was never a member: it is reset and made again.
    """
    if found["membership"] != "unfinished":
        return "nothing" if found["membership"] == "member" else "start"
    if action == "init":
        return "continue" if api else "restart"
    return "settle" if found["complete"] else "restart"


class Kubeadm:
    """kubeadm on this host. Commands that change the node keep the lock until they end, whoever started them."""

    def __init__(self, module: AnsibleModule, lock: t.IO[str]) -> None:
        self.module = module
        self.lock = lock
        self.path = module.get_bin_path("kubeadm", required=True)

    def run(self, *arguments: str, next_step: str) -> str:
        argv = [self.path, *list(arguments)]
        code, out, err = self.module.run_command(argv, pass_fds=[self.lock.fileno()])
        if code == 0:
            return str(out)
        name = " ".join(["kubeadm", *[argument for argument in arguments if not argument.startswith("--")][:2]])
        raise FabricError(f"{name} failed.", host_name(), important(f"{out}\n{err}"), next_step)

    def validate(self, config: str) -> None:
        self.run("config", "validate", f"--config={config}", next_step="Correct the variables that it comes from.")

    def preflight(self, action: str, config: str) -> None:
        self.run(
            action,
            "phase",
            "preflight",
            f"--config={config}",
            next_step="Nothing was changed. Mend what it names, or add it to kubernetes_ignore_preflight_errors.",
        )

    def make(self, action: str, config: str) -> None:
        self.run(
            action,
            f"--config={config}",
            "--skip-phases=preflight",
            next_step="Mend what kubeadm names (journalctl -u kubelet says more). Then run again: it starts over.",
        )

    def reset(self) -> None:
        self.run("reset", "--force", next_step="Reset the host by hand with kubeadm reset, then run again.")


@contextlib.contextmanager
def locked(timeout: int) -> t.Iterator[t.IO[str]]:
    """Have kubeadm to ourselves. One that an earlier, killed run left at work is waited for."""
    give_up = time.monotonic() + timeout
    with open(LOCK, "a", encoding="utf-8") as lock:
        while True:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > give_up:
                    raise FabricError(
                        f"Another kubeadm has been running for more than {timeout} s.",
                        host_name(),
                        f"{LOCK} is held",
                        "Wait for it or end it, then run again.",
                    ) from None
                time.sleep(1)
        yield lock


@contextlib.contextmanager
def config_file(documents: t.Sequence[Json]) -> t.Iterator[str]:
    """A configuration file that only root reads, and that is gone afterwards: it may carry a token.

    Its name is fixed, so that what a killed run left is overwritten and removed by the next.
    """
    try:
        with open(os.open(CONFIG, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as handle:
            handle.write(to_documents(documents))
        yield CONFIG
    finally:
        os.remove(CONFIG)


def set_marker(there: bool) -> None:
    if there:
        os.makedirs(os.path.dirname(MARKER), exist_ok=True)
        with open(MARKER, "w", encoding="utf-8"):
            pass
    elif os.path.exists(MARKER):
        os.remove(MARKER)


def api_ready(module: AnsibleModule) -> bool:
    """Whether this host's API server answers its administrator."""
    if not os.path.exists(ADMIN):
        return False
    argv = ["kubectl", "--kubeconfig", ADMIN, "--request-timeout", "10s", "get", "--raw", "/readyz"]
    return module.run_command(argv)[0] == 0


def forget_node(module: AnsibleModule, name: str) -> None:
    """Take a half-joined control plane's node out of the cluster, which would refuse a second one of that name."""
    if os.path.exists(ADMIN):
        module.run_command(["kubectl", "--kubeconfig", ADMIN, "--request-timeout", "10s", "delete", "node", name])


def reached_the_end() -> bool:
    """Whether an init came to its last phases. Such a cluster may be in use by now, and is never reset."""
    if not os.path.exists(KUBELET):
        return False
    with open(KUBELET, encoding="utf-8") as handle:
        return ROTATED in handle.read()


def look(module: AnsibleModule, name: str, control_plane: bool) -> Json:
    """What kubernetes_node_info says, with the lock held. Complete is a member that may have kept its marker."""
    unfinished = os.path.exists(MARKER)
    found = inspect(module, name, control_plane, unfinished)
    if found["membership"] == "broken":
        raise FabricError(
            "The host has parts of a Kubernetes node, but is no member of the cluster.",
            host_name(),
            found["seen"],
            "Start its cluster if that is down, or run kubeadm reset if it is in none that matters. Then run again.",
        )
    return {**found, "complete": found["registered"] and (found["is_control_plane"] or not control_plane)}


def decide(module: AnsibleModule, name: str) -> t.Tuple[Json, str]:
    """What was found, and what to do about it. A node or API that may be on its way up gets a minute."""
    action, control_plane = module.params["state"], module.params["control_plane"]
    give_up = time.monotonic() + (0 if module.check_mode else 60)
    while True:
        found, api = look(module, name, control_plane), api_ready(module)
        todo = next_action(found, action, api)
        hopeful = os.path.exists(KUBELET) if action == "join" else reached_the_end()
        if todo != "restart" or not hopeful or time.monotonic() > give_up:
            break
        time.sleep(3)
    if todo == "restart" and action == "init" and reached_the_end():
        raise FabricError(
            "An interrupted kubeadm init had come to its last phases, but its API server does not answer.",
            host_name(),
            f"no answer with {ADMIN}",
            "See why with journalctl -u kubelet; or, if nothing on it matters, run kubeadm reset. Then run again.",
        )
    return found, todo


def carry_out(module: AnsibleModule, kubeadm: Kubeadm, todo: str, name: str) -> None:
    action = module.params["state"]
    discovery = module.params["discovery"]
    with config_file(with_discovery(module.params["documents"], discovery)) as config:
        kubeadm.validate(config)
        if todo == "restart":
            if action == "join":
                forget_node(module, name)
            kubeadm.reset()
        if todo in ("start", "restart"):
            kubeadm.preflight(action, config)
        set_marker(True)
        kubeadm.make(action, config)
    set_marker(False)


def pull(module: AnsibleModule) -> Json:
    """Pull images side by side. What can't be pulled now the kubelet pulls later: only a warning."""
    ctr = module.get_bin_path("ctr")
    if not ctr:
        return {"changed": True}
    there = module.run_command([ctr, "--namespace", "k8s.io", "images", "list", "--quiet"])[1].split()
    wanted = [image for image in module.params["images"] if image not in there]
    if module.check_mode:
        return outcome({"images": sorted(there)}, {"images": sorted(set(there + wanted))})
    argv = [ctr, "--namespace", "k8s.io", "images", "pull", "--hosts-dir", "/etc/containerd/certs.d"]
    jobs = {
        image: subprocess.Popen(
            [*argv, image], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, universal_newlines=True
        )
        for image in wanted
    }
    pulled = []
    for image, job in jobs.items():
        message = job.communicate()[1]
        if job.returncode == 0:
            pulled.append(image)
        else:
            module.warn(f"Could not pull {image} yet: {message.strip()}")
    return outcome({"images": sorted(there)}, {"images": sorted(set(there + pulled))})


def run(module: AnsibleModule) -> Json:
    """The body of M(ipu.fabric.kubeadm)."""
    params = module.params
    if params["state"] == "images":
        return pull(module)
    name = params["node_name"] or host_name()
    if module.check_mode:
        found, todo = decide(module, name)
    else:
        with locked(params["lock_timeout"]) as lock:
            found, todo = decide(module, name)
            if todo == "settle":
                set_marker(False)
            elif todo != "nothing":
                carry_out(module, Kubeadm(module, lock), todo, name)
    return outcome({"membership": found["membership"]}, {"membership": "member"}, action=todo)


def certificate_key(kubeadm: Kubeadm, version: str) -> str:
    """Upload the control plane's certificates, sealed with a new key that only joining hosts get."""
    key = secrets.token_hex(32)
    documents = [
        {"apiVersion": API_VERSION, "kind": "InitConfiguration", "certificateKey": key},
        {"apiVersion": API_VERSION, "kind": "ClusterConfiguration", "kubernetesVersion": f"v{version}"},
    ]
    with config_file(documents) as config:
        kubeadm.run(
            "init",
            "phase",
            "upload-certs",
            "--upload-certs",
            f"--config={config}",
            next_step="See that the control plane is healthy.",
        )
    return key


def make_discovery(module: AnsibleModule) -> Json:
    """The body of M(ipu.fabric.kubeadm_token)."""
    params = module.params
    empty = {"endpoint": "", "token": "", "ca_hashes": [], "certificate_key": ""}
    if module.check_mode:
        return {"changed": True, "discovery": empty}
    with locked(params["lock_timeout"]) as lock:
        if not api_ready(module):
            raise FabricError(
                "No token can be made for the hosts that join.",
                host_name(),
                f"no API server that answers with {ADMIN}",
                "Set up the first control plane first: run without --limit, or with this host in it.",
            )
        kubeadm = Kubeadm(module, lock)
        output = kubeadm.run(
            "token",
            "create",
            f"--ttl={params['ttl']}",
            "--print-join-command",
            next_step="See that the control plane is healthy.",
        )
        key = certificate_key(kubeadm, params["version"]) if params["certificates"] else ""
    return {"changed": True, "discovery": {**empty, **parse_join_command(output), "certificate_key": key}}
