# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A command in a container, and what it printed."""

from __future__ import annotations

import contextlib
import json
import typing as t

from .client import ApiError, Cluster

WebSocketError: t.Any = OSError
with contextlib.suppress(ImportError):  # connect() says what is missing
    from kubernetes.stream import ws_client
    from kubernetes.stream.ws_client import websocket_call
    from websocket import WebSocket, WebSocketException

    WebSocketError = WebSocketException

    class ImpatientWebSocket(WebSocket):
        """The API client sets no limit for a connect, nor for a message that stops in the middle."""

        def connect(self, url: str, **options: t.Any) -> None:
            super().connect(url, timeout=CONNECT_SECONDS, **options)

    ws_client.WebSocket = ImpatientWebSocket

CONNECT_SECONDS = 60  # an exec on a busy node may take half of it


class Output(t.NamedTuple):
    """What an exec gave; `error` says why there may be less than asked for."""

    text: str
    error: str


def run_in_pod(cluster: Cluster, path: str, container: str, argv: t.Sequence[str], timeout: float) -> Output:
    """Run a command, on a connection of its own: the library's exec call is not thread-safe.

    path: that of the pod in the API; timeout: seconds.
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
            return Output(text, f"no end within {timeout} s")
    except (ApiError, WebSocketError, OSError, ValueError) as error:
        reason = " ".join(str(getattr(error, "reason", None) or error).split())
        return Output("", f"exec failed: {reason[:200]}")
    return Output(text, "" if text else refused(client.read_channel(3)))


def refused(status: str) -> str:
    """Why a command that printed nothing did not run, such as that the image has no such program; empty if it did."""
    try:
        message = str(json.loads(status)["message"])
    except (ValueError, KeyError, TypeError):
        return ""
    return "" if "exit code" in message else f"exec failed: {message.rpartition('failed: ')[2]}"
