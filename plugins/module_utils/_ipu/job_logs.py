# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Logs of a job's pods, followed while they run: the operator may delete a pod as soon as it has ended."""

from __future__ import annotations

import collections
import contextlib
import filecmp
import os
import re
import secrets
import threading
import time
import typing as t

from .._kube.client import ApiError, Cluster, TransportError, message_of
from .._kube.query import Object, query
from .._model.jobs import LogView

CONNECT_TIMEOUT = 10
# Seconds without a line after which the log is requested again, from its last line on.
SILENCE = 300
# Seconds between two requests for a log that is not there yet: a program may end, and its pod go, within a second.
# With many pods there are at most RATE requests a second in all.
PAUSE = 0.2
RATE = 100
# Seconds for the last lines of a container that has ended.
PATIENCE = 5
MAX_LINE = 4000


class ReadPosition:
    """Drops what was read already when a log is read again from a second on, as `sinceTime` has it."""

    def __init__(self) -> None:
        self.last, self.count = "", 0  # the newest stamp, and how many lines have it
        self.limit, self.skip = "", 0  # up to where lines are known, and how many of those at the limit

    def reopen(self) -> None:
        self.limit, self.skip = self.last, self.count

    def is_new(self, stamp: str) -> bool:
        if self.limit and stamp <= self.limit:
            known = stamp < self.limit or self.skip > 0
            self.skip -= stamp == self.limit
            if known:
                return False
        if stamp > self.limit:
            self.limit = ""  # two streams of one container may be a little out of order: that is no repetition
        self.count = self.count + 1 if stamp == self.last else 1
        self.last = max(self.last, stamp)
        return True


class ContainerLog:
    """What one container wrote: the last lines, and a file that gets its name when it is whole."""

    def __init__(self, name: str, folder: str, tail: int) -> None:
        self.name, self.error = name, ""
        self.lines: t.Deque[str] = collections.deque(maxlen=tail)
        self.position, self.lock, self.closed, self.count = ReadPosition(), threading.Lock(), False, 0
        self.path = os.path.join(folder, f"{name}.log") if folder else ""
        self.part = os.path.join(folder, f".{name}.log.{secrets.token_hex(8)}") if folder else ""

    def add(self, line: str) -> None:
        stamp, _space, text = line.partition(" ")
        with self.lock:
            if self.closed or not self.position.is_new(stamp):
                return
            self.lines.append(text[:MAX_LINE])
            self.count += 1
            if self.part:
                with open(self.part, "a" if self.count > 1 else "x", encoding="utf-8") as file:
                    file.write(text + "\n")

    def close(self) -> str:
        """The path of the file; empty when there is none: what wrote nothing has none, and replaces none."""
        with self.lock:
            self.closed = True
            if not (self.part and self.count):
                return ""
            if os.path.exists(self.path) and filecmp.cmp(self.part, self.path, shallow=False):
                os.unlink(self.part)
            else:
                os.replace(self.part, self.path)
            return self.path


class LogFollower(threading.Thread):
    """Follows the log of one container until the container ends, its pod is gone, or the log is closed."""

    pause = PAUSE

    def __init__(self, cluster: Cluster, path: str, container: str, log: ContainerLog) -> None:
        super().__init__(daemon=True)
        self.cluster, self.path, self.container, self.log = cluster, path, container, log
        self.ended = threading.Event()  # the container writes nothing more

    def run(self) -> None:
        while not self.log.closed:
            before, ended = self.log.count, self.ended.is_set()
            # Read once more after the container's end was seen, so that its last lines are in.
            gone = self.read(follow=not ended)
            if gone or ended:
                return
            if self.log.count == before:
                time.sleep(self.pause)

    def finish(self) -> None:
        """Wait for the end of the log, as long as lines still come."""
        count = -1
        while self.is_alive() and self.log.count != count:
            count = self.log.count
            self.join(PATIENCE)

    def read(self, follow: bool) -> bool:
        """Read until the stream ends. True when the pod is gone."""
        query = [("container", self.container), ("timestamps", "true"), ("follow", "true" if follow else "false")]
        if self.log.position.last:
            query.append(("sinceTime", whole_second(self.log.position.last)))
        self.log.position.reopen()
        try:
            answer = self.cluster.client.request(
                "get",
                f"{self.path}/log",
                query_params=query,
                serialize=False,
                _request_timeout=(CONNECT_TIMEOUT, SILENCE),
            )
            with contextlib.closing(answer):
                for line in lines_of(answer.stream(amt=65536, decode_content=True)):
                    self.log.add(line)
        except (ApiError, TransportError, OSError, ValueError) as error:
            status = getattr(error, "status", None)
            if status is None:
                time.sleep(self.pause)  # the API server restarts: continue from the last line
            elif status in (401, 403):
                self.log.error = message_of(error)
            return status in (401, 403, 404)
        return False


def whole_second(stamp: str) -> str:
    """The API takes no finer time here: 2026-11-21T10:00:00.123+01:00 as 2026-11-21T10:00:00+01:00."""
    return re.sub(r"\.\d+", "", stamp)


def lines_of(chunks: t.Iterable[bytes]) -> t.Iterator[str]:
    """Whole lines of a stream; what is left at its end is one too."""
    rest = b""
    for chunk in chunks:
        *lines, rest = (rest + chunk).split(b"\n")
        for line in lines:
            yield line.decode("utf-8", "replace")
    if rest:
        yield rest.decode("utf-8", "replace")


class JobLogs:
    """The logs of all containers that a job has had, across its restarts."""

    def __init__(self, cluster: Cluster, namespace: str, folder: str, tail: int) -> None:
        self.cluster, self.namespace, self.folder, self.tail = cluster, namespace, folder, tail
        self.followers: t.Dict[t.Tuple[str, str], LogFollower] = {}
        self.names: t.Dict[str, int] = {}
        self.closed: t.Optional[t.List[LogView]] = None

    def follow(self, pods: t.Sequence[Object]) -> None:
        """Start to follow what is new, and tell the followers of containers that have ended."""
        present = set()
        for pod in pods:
            if not query("spec.nodeName", pod):
                continue
            uid, name = query("metadata.[uid, name]", pod)
            for container in query("[spec.initContainers, spec.containers][].name", pod):
                key = (uid, container)
                present.add(key)
                if key not in self.followers:
                    self.followers[key] = self.start(name, container)
                if query("status.phase", pod) in ("Succeeded", "Failed"):
                    self.followers[key].ended.set()
        for key, follower in self.followers.items():
            follower.pause = max(PAUSE, len(self.followers) / RATE)
            if key not in present:
                follower.ended.set()

    def start(self, pod: str, container: str) -> LogFollower:
        """A pod that is created again after a restart gets a number, so that no log overwrites another."""
        name = f"{pod}.{container}"
        self.names[name] = self.names.get(name, 0) + 1
        number = f".{self.names[name]}" if self.names[name] > 1 else ""
        log = ContainerLog(f"{name}{number}", self.folder, self.tail)
        follower = LogFollower(self.cluster, f"/api/v1/namespaces/{self.namespace}/pods/{pod}", container, log)
        follower.start()
        return follower

    def close(self) -> t.List[LogView]:
        """Stop following. The logs of containers that have ended are read to their end."""
        if self.closed is None:
            for follower in self.followers.values():
                if follower.ended.is_set():
                    follower.finish()
            self.closed = [
                {"name": f.log.name, "file": f.log.close(), "tail": list(f.log.lines), "error": f.log.error}
                for f in self.followers.values()
            ]
        return self.closed
