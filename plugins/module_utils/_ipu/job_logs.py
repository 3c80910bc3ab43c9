# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Logs of a job's pods, followed while the pods run: the operator may delete a pod as soon as it has ended."""

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
# Seconds without a line after which the log is requested again, starting from its last line.
SILENCE = 300
# Seconds between requests for a log that does not exist yet: a program may end, and its pod go, within a second.
# With many pods, the limit is RATE requests per second in total.
PAUSE = 0.2
RATE = 100
# Seconds to wait for the last lines of a container that has ended.
PATIENCE = 5
MAX_LINE = 4000


class ReadPosition:
    """Drops lines that were read already when a log is read again from a whole second on, as `sinceTime` requires."""

    def __init__(self) -> None:
        self.last, self.count = "", 0  # the newest time stamp, and how many lines have it
        self.limit, self.skip = "", 0  # the time stamp up to which lines are known, and how many of those have it

    def reopen(self) -> None:
        self.limit, self.skip = self.last, self.count

    def is_new(self, stamp: str) -> bool:
        if self.limit and stamp <= self.limit:
            known = stamp < self.limit or self.skip > 0
            self.skip -= stamp == self.limit
            if known:
                return False
        if stamp > self.limit:
            self.limit = ""  # two streams of a container may be slightly out of order: that is not a repetition
        self.count = self.count + 1 if stamp == self.last else 1
        self.last = max(self.last, stamp)
        return True


class ContainerLog:
    """A container's log: the last lines, and a file that gets its name when it is complete."""

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
        """The path of the file; empty if there is none. Without any output, no file is created or replaced."""
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
    """Follows a container's log until the container ends, its pod is deleted, or the log is closed."""

    pause = PAUSE

    def __init__(self, cluster: Cluster, path: str, container: str, log: ContainerLog) -> None:
        super().__init__(daemon=True)
        self.cluster, self.path, self.container, self.log = cluster, path, container, log
        self.ended = threading.Event()  # the container will write nothing more

    def run(self) -> None:
        while not self.log.closed:
            before, ended = self.log.count, self.ended.is_set()
            # After the container's end was seen, read once more to get its last lines.
            gone = self.read(follow=not ended)
            if gone or ended:
                return
            if self.log.count == before:
                time.sleep(self.pause)

    def finish(self) -> None:
        """Wait for the end of the log, as long as lines keep coming."""
        count = -1
        while self.is_alive() and self.log.count != count:
            count = self.log.count
            self.join(PATIENCE)

    def read(self, follow: bool) -> bool:
        """Read until the stream ends. True if the pod is gone."""
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
    """The API accepts only whole seconds here: 2026-11-21T10:00:00.123+01:00 as 2026-11-21T10:00:00+01:00."""
    return re.sub(r"\.\d+", "", stamp)


def lines_of(chunks: t.Iterable[bytes]) -> t.Iterator[str]:
    """Whole lines of a stream; the rest at its end is a line too."""
    rest = b""
    for chunk in chunks:
        *lines, rest = (rest + chunk).split(b"\n")
        for line in lines:
            yield line.decode("utf-8", "replace")
    if rest:
        yield rest.decode("utf-8", "replace")


class JobLogs:
    """The logs of all containers of a job, across restarts."""

    def __init__(self, cluster: Cluster, namespace: str, folder: str, tail: int) -> None:
        self.cluster, self.namespace, self.folder, self.tail = cluster, namespace, folder, tail
        self.followers: t.Dict[t.Tuple[str, str], LogFollower] = {}
        self.names: t.Dict[str, int] = {}
        self.closed: t.Optional[t.List[LogView]] = None

    def follow(self, pods: t.Sequence[Object]) -> None:
        """Start to follow new containers, and notify the followers of those that have ended."""
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
        """Follow a container. If its pod was recreated, the log gets a number, so that it overwrites no other."""
        name = f"{pod}.{container}"
        self.names[name] = self.names.get(name, 0) + 1
        number = f".{self.names[name]}" if self.names[name] > 1 else ""
        log = ContainerLog(f"{name}{number}", self.folder, self.tail)
        follower = LogFollower(self.cluster, f"/api/v1/namespaces/{self.namespace}/pods/{pod}", container, log)
        follower.start()
        return follower

    def close(self) -> t.List[LogView]:
        """Stop following. Logs of containers that have ended are read to the end."""
        if self.closed is None:
            for follower in self.followers.values():
                if follower.ended.is_set():
                    follower.finish()
            self.closed = [
                {"name": f.log.name, "file": f.log.close(), "tail": list(f.log.lines), "error": f.log.error}
                for f in self.followers.values()
            ]
        return self.closed
