# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""kubeadm token: what hosts need to join a cluster."""

from __future__ import annotations

import re
import secrets
import typing as t

from .._common.result import FabricError
from . import paths
from .bootstrap import is_api_ready
from .lock import hold_lock
from .membership import host_name
from .program import API_VERSION, Document, Kubeadm, config_file

if t.TYPE_CHECKING:
    from ansible.module_utils.basic import AnsibleModule

NEXT_STEP = "Check that the control plane is healthy."


class Discovery(t.TypedDict):
    """How a host finds and trusts the cluster. The content is secret."""

    endpoint: str  # host:port of the API server
    token: str
    ca_hashes: t.List[str]  # pins of the certificate authority
    certificate_key: str  # of the uploaded certificates, for control planes; otherwise empty


def parse_join_command(text: str, certificate_key: str = "") -> Discovery:
    """Endpoint, token and CA hashes from the output of kubeadm token create --print-join-command."""
    endpoint = re.search(r"kubeadm join (\S+)", text)
    token = re.search(r"--token (\S+)", text)
    hashes = re.findall(r"--discovery-token-ca-cert-hash (\S+)", text)
    if not endpoint or not token or not hashes:
        raise FabricError(
            "Could not read the join command.",
            "kubeadm token create",
            "output in an unknown form",
            "Use a release of kubeadm that this collection knows.",
            code="command-failed",
        )
    return {
        "endpoint": endpoint.group(1),
        "token": token.group(1),
        "ca_hashes": hashes,
        "certificate_key": certificate_key,
    }


def upload_certificates(kubeadm: Kubeadm, version: str) -> str:
    """Upload the control plane's certificates, encrypted with a new key that only joining hosts get."""
    key = secrets.token_hex(32)
    documents: t.List[Document] = [
        {"apiVersion": API_VERSION, "kind": "InitConfiguration", "certificateKey": key},
        {"apiVersion": API_VERSION, "kind": "ClusterConfiguration", "kubernetesVersion": f"v{version}"},
    ]
    with config_file(documents) as config:
        kubeadm.run("init", "phase", "upload-certs", "--upload-certs", f"--config={config}", next_step=NEXT_STEP)
    return key


def create_token(module: AnsibleModule) -> t.Dict[str, object]:
    params = module.params
    if module.check_mode:
        discovery = Discovery(endpoint="", token="", ca_hashes=[], certificate_key="")
        return {"changed": True, "discovery": discovery}
    with hold_lock(params["lock_timeout"]) as lock:
        if not is_api_ready():
            raise FabricError(
                "Could not create a token for the hosts that join.",
                host_name(),
                f"no API server that answers with {paths.ADMIN}",
                "Set up the first control plane first: run without --limit, or with this host in it.",
                code="api-unreachable",
            )
        kubeadm = Kubeadm(module, lock)
        output = kubeadm.run("token", "create", f"--ttl={params['ttl']}", "--print-join-command", next_step=NEXT_STEP)
        key = upload_certificates(kubeadm, params["version"]) if params["certificates"] else ""
    return {"changed": True, "discovery": parse_join_command(output, key)}


def delete_token(module: AnsibleModule) -> t.Dict[str, object]:
    """Delete a token before it expires. Its first part, which identifies it, is not secret."""
    name = module.params["discovery"]["token"].partition(".")[0]
    if module.check_mode:
        return {"changed": True}
    next_step = f"{NEXT_STEP} Then delete the token there: kubeadm token delete {name}. It also expires by itself."
    with hold_lock(module.params["lock_timeout"]) as lock:
        try:
            Kubeadm(module, lock).run("token", "delete", name, next_step=next_step)
        except FabricError as error:
            if "not found" not in error.seen:
                raise
            return {"changed": False}
    return {"changed": True}


def manage_token(module: AnsibleModule) -> t.Dict[str, object]:
    return create_token(module) if module.params["state"] == "present" else delete_token(module)
