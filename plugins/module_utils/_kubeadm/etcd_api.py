# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The etcd of this control plane, through its HTTP gateway, which needs neither a client program nor the API server."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import ssl
import typing as t

from .._common.result import FabricError
from .membership import host_name

PKI = "/etc/kubernetes/pki/etcd"
HOST = "localhost"  # kubeadm's certificate contains this name, and its etcd listens there
PORT = 2379
SILENCE = 60  # seconds without a byte until etcd counts as hanging


class Header(t.TypedDict, total=False):
    """etcd's header in every answer. Its integers are sent as strings."""

    cluster_id: str
    revision: str


class Member(t.TypedDict, total=False):
    """A member of the cluster. Empty fields are omitted."""

    ID: str
    name: str
    peerURLs: t.List[str]


class Error(t.TypedDict, total=False):
    """The reason why a stream ended early."""

    message: str


class KeyValue(t.TypedDict, total=False):
    """A key and its value, both in base64."""

    key: str
    value: str


class Answer(t.TypedDict, total=False):
    """The parts of answers that are read here."""

    header: Header
    version: str
    dbSize: str
    members: t.List[Member]
    blob: str  # base64
    kvs: t.List[KeyValue]
    more: bool  # there are more keys than the limit
    error: Error
    result: Answer


def failed(seen: str) -> FabricError:
    return FabricError(
        "The etcd of this control plane did not answer as it should.",
        f"https://{HOST}:{PORT} on {host_name()}",
        seen,
        "See why with crictl ps -a and journalctl -u kubelet on the host, or ask another control plane.",
        code="not-ready",
    )


def tls_context() -> ssl.SSLContext:
    """A TLS context of a client that etcd accepts. Its files exist on every control plane with kubeadm's etcd."""
    names = ("ca.crt", "server.crt", "server.key")
    missing = [name for name in names if not os.path.exists(os.path.join(PKI, name))]
    if missing:
        raise FabricError(
            "Only the etcd that kubeadm runs on a control plane can be asked.",
            f"{PKI} on {host_name()}",
            f"no {', '.join(missing)}",
            "Name a control plane of the cluster. An etcd outside of it is saved with its own tools.",
            code="wrong-state",
        )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_verify_locations(os.path.join(PKI, "ca.crt"))
    context.load_cert_chain(os.path.join(PKI, "server.crt"), os.path.join(PKI, "server.key"))
    return context


@contextlib.contextmanager
def post(path: str, body: t.Mapping[str, t.Union[bool, int, str]]) -> t.Iterator[http.client.HTTPResponse]:
    """The answer to a request, to be read within the block. Every failure in the block raises the same error."""
    try:
        context = tls_context()
        with contextlib.closing(
            http.client.HTTPSConnection(HOST, PORT, timeout=SILENCE, context=context)
        ) as connection:
            connection.request("POST", path, json.dumps(body), {"Content-Type": "application/json"})
            response = connection.getresponse()
            if response.status != http.client.OK:
                said = response.read(2000).decode("utf-8", "replace").strip()
                raise failed(f"{path}: HTTP {response.status} {said}")
            yield response
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise failed(f"{path}: {error or type(error).__name__}") from error


def ask(path: str, body: t.Optional[t.Mapping[str, t.Union[bool, int, str]]] = None) -> Answer:
    with post(path, body or {}) as response:
        answer: Answer = json.loads(response.read())
        return answer


def stream(path: str) -> t.Iterator[Answer]:
    """The answers to a streaming request, one per line. A cut connection looks like the end of the stream."""
    with post(path, {}) as response:
        for line in response:
            answer: Answer = json.loads(line)
            if "error" in answer:
                raise failed(f"{path}: {answer['error'].get('message', '')}")
            yield answer["result"]
