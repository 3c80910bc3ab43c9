# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs a command in a container, and returns its output."""

from __future__ import annotations

import contextlib
import json
import typing as t

from .client import ApiError, Cluster

WebSocketError: t.Any = OSError
with contextlib.suppress(ImportError):  # connect() reports a missing package
    from kubernetes.stream import ws_client
    from kubernetes.stream.ws_client import websocket_call
    from websocket import WebSocket, WebSocketException

    WebSocketError = WebSocketException

    class ImpatientWebSocket(WebSocket):
        """A WebSocket with time-outs: the API client limits neither a connect nor a message that stops halfway."""

        def connect(self, url: str, **options: t.Any) -> None:
            super().connect(url, timeout=CONNECT_SECONDS, **options)

    ws_client.WebSocket = ImpatientWebSocket

CONNECT_SECONDS = 60  # an exec on a busy node may take half of it


class Output(t.NamedTuple):
    """The output of an exec; `error` says why it may be incomplete."""

    text: str
    error: str


def run_in_pod(cluster: Cluster, path: str, container: str, argv: t.Sequence[str], timeout: float) -> Output:
    """Run a command, on its own connection: the library's exec call is not thread-safe.

    path: the pod's path in the API; timeout: seconds.
    """
    configuration = cluster.client.configuration
    token = configuration.auth_settings().get("BearerToken", {}).get("value")
    try:
        client = websocket_call(
            configuration,
            "get",
            f"{configuration.host}{path}/exec",
            query_params=[("container", container), ("stdout", "true"), ("stderr", "true"), ("command", list(argv))],
            headers={"authorization": token} if token else {},
            _preload_content=False,
            capture_all=False,
        )
        client.run_forever(timeout=timeout)
        text = client.read_channel(1) + client.read_channel(2)
        if client.is_open():
            client.close()
            return Output(text, f"timed out after {timeout} s")
    except (ApiError, WebSocketError, OSError, ValueError) as error:
        reason = " ".join(str(getattr(error, "reason", None) or error).split())
        return Output("", f"exec failed: {reason[:200]}")
    return Output(text, "" if text else refused(client.read_channel(3)))


def refused(status: str) -> str:
    """Why a command without output did not run, such as a program missing in the image; empty if it ran."""
    try:
        message = str(json.loads(status)["message"])
    except (ValueError, KeyError, TypeError):
        return ""
    return "" if "exit code" in message else f"exec failed: {message.rpartition('failed: ')[2]}"
