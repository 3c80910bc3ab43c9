# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A new client certificate for a kubelet that can no longer renew its own, signed by the CA on a control plane."""

from __future__ import annotations

import base64
import os
import re
import time
import typing as t

from .._common.result import FabricError
from .._host.certificates import KUBELET_CONF, KUBELET_PEM
from .._host.files import read_text, write_file
from . import paths
from .lock import hold_lock
from .membership import host_name
from .program import API_VERSION, Document, Kubeadm, config_file

if t.TYPE_CHECKING:
    from ansible.module_utils.basic import AnsibleModule

NEXT_STEP = "Check that the key of the cluster's CA, /etc/kubernetes/pki/ca.key, is on this control plane."


def sign_client(kubeadm: Kubeadm, node: str) -> str:
    """A kubeconfig for a node's kubelet. Its server is not used. The result is secret."""
    version = kubeadm.run("version", "--output=short", next_step="Check that kubeadm works on this host.").strip()
    # Without the version, kubeadm would look it up on the internet.
    documents: t.List[Document] = [
        {"apiVersion": API_VERSION, "kind": "ClusterConfiguration", "kubernetesVersion": version}
    ]
    with config_file(documents) as config:
        return kubeadm.run(
            *("kubeconfig", "user", "--org=system:nodes", f"--client-name=system:node:{node}", f"--config={config}"),
            next_step=NEXT_STEP,
        )


def manage_client(module: AnsibleModule) -> t.Dict[str, object]:
    """The body of M(ipu.fabric.kubeadm) for its command client."""
    if module.check_mode:
        return {"changed": True, "client": ""}
    with hold_lock(module.params["lock_timeout"]) as lock:
        return {
            "changed": True,
            "client": sign_client(Kubeadm(module, lock), module.params["node_name"] or host_name()),
        }


def client_pem(kubeconfig: str) -> str:
    """Certificate and key of a kubeconfig, in the one-file format of the kubelet. The result is secret."""
    found = [re.search(rf"client-{part}-data: *(\S+)", kubeconfig) for part in ("certificate", "key")]
    parts = [base64.b64decode(each.group(1)).decode("ascii") for each in found if each]
    if len(parts) != 2:
        raise FabricError(
            "A kubelet needs a client certificate and its key.",
            host_name(),
            "the output of kubeadm kubeconfig user lacks one of them",
            "Use a release of kubeadm that this collection knows.",
            code="command-failed",
        )
    return "".join(parts)


def install_client(module: AnsibleModule, pem: str) -> None:
    """Install the certificate where the kubelet keeps and renews its own, and make kubelet.conf refer to that file."""
    current = os.path.join(paths.ROOT, KUBELET_PEM)
    folder = os.path.dirname(current)
    target = os.path.join(folder, time.strftime("kubelet-client-%Y-%m-%d-%H-%M-%S.pem"))
    write_file(module, target, pem, "0600")
    part = f"{current}.part"
    if os.path.lexists(part):  # left by a run that was killed
        os.remove(part)
    os.symlink(target, part)
    os.replace(part, current)
    path = os.path.join(paths.ROOT, KUBELET_CONF)
    before = read_text(path)
    named = re.sub(r"client-(certificate|key)(-data)?: *.*", rf"client-\1: /{KUBELET_PEM}", before)
    if named != before:
        write_file(module, path, named, "0600")
