# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The end of containers' logs, and what it says about a crash."""

from __future__ import annotations

import typing as t

from .._common.dns import LOOP, LOOPED_STEP
from .._common.text import printable
from .client import ApiError, Cluster, TransportError, message_of, persist
from .pod_problems import Problem, crashing
from .query import Object

SECONDS = 60
LONGEST = 300  # characters of the last line to show


def read_log(cluster: Cluster, namespace: str, pod: str, container: str, lines: int) -> str:
    """The log of the running container, or of the one that ended last. ApiError or TransportError if there is none."""
    path = f"/api/v1/namespaces/{namespace}/pods/{pod}/log"
    query = [("container", container), ("tailLines", lines)]

    def send() -> str:
        answer = cluster.client.request("get", path, query_params=query, serialize=False, _request_timeout=SECONDS)
        return t.cast(str, answer.data.decode(errors="replace"))

    return persist(send, path)


def crash_reasons(cluster: Cluster, namespace: str, pods: t.Sequence[Object]) -> t.List[Problem]:
    """The last log line of each container that crashes without a termination message."""
    found = []
    for pod in pods:
        name = pod["metadata"]["name"]
        for container in crashing(pod):
            try:
                said = printable(read_log(cluster, namespace, name, container, 5)).strip().splitlines()
            except (ApiError, TransportError) as error:
                said = [f"no log: {message_of(error)}"]
            text = said[-1].strip()[-LONGEST:] if said else "it printed nothing"
            step = LOOPED_STEP if LOOP.search(text) else ""
            found.append(Problem(f"log of {name}, container {container}: {text}", True, step))
    return found
