# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Examines the pods of a job while they run, and writes the verdict to the job."""

from __future__ import annotations

import dataclasses
import time
import typing as t
from concurrent.futures import Future, ThreadPoolExecutor, wait

from .._common.result import FabricError
from .._kube.client import ApiError, Cluster, TransportError, message_of
from .._kube.pod_exec import run_in_pod
from .._kube.pod_problems import running_containers
from .._kube.query import Object, query, quoted
from .._model.jobs import MOVED
from . import look
from .explain import is_rdma
from .look import Inside
from .pod_facts import TRIED, device_amounts, host_network_pods
from .record import JobRecord, Rank, verdict

INTERVAL = 2.0  # seconds between two looks into a pod
FOR_EACH = 0.1  # additional seconds per pod of a large job
REST = 3  # pause, in durations of a look: the job needs its processors, and a look goes on when nobody waits for it
AT_ONCE = 8
COUNTERS = ("counters",)
Place = t.Tuple[str, str]  # path of a pod, and one of its containers


def container_of(pod: Object) -> str:
    """The rank's container: the first that requests an RDMA resource, or else the first."""
    containers = pod["spec"]["containers"]
    with_rdma = [each["name"] for each in containers if any(map(is_rdma, device_amounts(each)))]
    return str((with_rdma or [each["name"] for each in containers])[0])


class Recorder:
    """The looks into the pods of one job. They run in parallel with the wait for the job, and never make it fail."""

    def __init__(self, cluster: Cluster, namespace: str, clock: t.Callable[[], float] = time.monotonic) -> None:
        self.cluster, self.namespace, self.clock = cluster, namespace, clock
        self.pool = ThreadPoolExecutor(AT_ONCE)
        self.ranks: t.Dict[str, Rank] = {}  # by uid
        self.begun: t.Dict[str, float] = {}  # time of the first look at a pod
        self.asked: t.Dict[str, float] = {}
        self.took: t.Dict[str, float] = {}  # duration of the last look in seconds
        self.places: t.Dict[str, Inside] = {}  # GIDs, addresses and routes, which do not change
        self.busy: t.Dict[str, Future[None]] = {}
        self.running: t.List[Object] = []
        self.tellers: t.Dict[str, t.Optional[Place]] = {}  # by node: a pod that shows the node's RDMA counters
        self.record: t.Optional[t.Dict[str, t.Any]] = None

    def look(self, pods: t.Sequence[Object], now: bool = False) -> None:
        """Look into running pods that are due; `now`: into all of them."""
        self.running = [pod for pod in pods if self.runs(pod)]
        for pod in self.running:
            uid = pod["metadata"]["uid"]
            interval = max(INTERVAL, FOR_EACH * len(self.running), REST * self.took.get(uid, 0))
            due = now or self.clock() - self.asked.get(uid, -interval) >= interval
            if due and (uid not in self.busy or self.busy[uid].done()):
                self.asked[uid] = self.clock()
                self.busy[uid] = self.pool.submit(self.look_into, pod)

    @staticmethod
    def runs(pod: Object) -> bool:
        return container_of(pod) in running_containers(pod)

    def look_into(self, pod: Object) -> None:
        """One look. If a pod ends meanwhile, the earlier result is kept."""
        uid = pod["metadata"]["uid"]
        place = (f"/api/v1/namespaces/{self.namespace}/pods/{pod['metadata']['name']}", container_of(pod))
        inside = self.inside(place, look.SAMPLE)
        self.keep(pod, self.with_places(inside, uid))
        known = self.places.get(uid)
        if not inside.error and (known is None or known.error):
            self.places[uid] = self.inside(place, look.PLACES)
        self.took[uid] = self.clock() - self.asked[uid]

    def inside(self, place: Place, parts: t.Sequence[str]) -> Inside:
        return look.read(*run_in_pod(self.cluster, *place, look.argv(parts), look.SECONDS))

    def keep(self, pod: Object, inside: Inside) -> None:
        uid, node = pod["metadata"]["uid"], pod["spec"].get("nodeName", "")
        seen, before = self.clock(), self.ranks.get(uid)
        if inside.error and before and not before.last.error:
            return
        if inside.held and not any(port and device in inside.held for device, port, _name in inside.counters):
            inside = dataclasses.replace(inside, counters={**self.node_counters(node), **inside.counters})
        if before is None or before.first.error:
            self.begun[uid] = seen
            host = bool(query("spec.hostNetwork", pod))
            self.ranks[uid] = Rank(pod["metadata"]["name"], node, inside, inside, host_network=host)
            return
        # A program's variables disappear if it ends before its pod.
        variables = {**before.last.environment, **inside.environment}
        last = dataclasses.replace(inside, environment=variables)
        self.ranks[uid] = dataclasses.replace(before, last=last, looks=before.looks + 1, seconds=seen - self.begun[uid])

    def with_places(self, inside: Inside, uid: str) -> Inside:
        places = self.places.get(uid)
        if places is None:
            return inside
        return dataclasses.replace(inside, gids=places.gids, addresses=places.addresses, routes=places.routes)

    def node_counters(self, node: str) -> t.Dict[t.Any, int]:
        """Counters of RDMA devices that pods share: only the host's network namespace shows them."""
        if node not in self.tellers:
            self.tellers[node] = None
            try:
                pods = self.cluster.items("/api/v1/pods", fieldSelector=f"spec.nodeName={node}")
            except (FabricError, TransportError):
                pods = []
            for pod, container in host_network_pods(pods)[:TRIED]:
                place = ("/api/v1/namespaces/{namespace}/pods/{name}".format(**pod["metadata"]), container)
                if self.counters_at(place):
                    self.tellers[node] = place
                    break
        place_of_node = self.tellers[node]
        return self.counters_at(place_of_node) if place_of_node else {}

    def counters_at(self, place: Place) -> t.Dict[t.Any, int]:
        seen = self.inside(place, COUNTERS)
        return {counter: value for counter, value in seen.counters.items() if counter[1]}

    def finish(self, job: Object, path: str) -> t.Dict[str, t.Any]:
        """The record, after a last look; annotates the job with the verdict. A second call returns the same."""
        if self.record is None:
            wait(self.busy.values(), look.SECONDS)
            self.look(self.running, now=True)
            wait(self.busy.values(), look.SECONDS)
            self.pool.shutdown(wait=False)
            known = query(f"metadata.annotations.{quoted(MOVED)}", job) or ""
            if known and not self.ranks:
                found = JobRecord("earlier", known)
            else:
                ranks = (
                    dataclasses.replace(rank, last=self.with_places(rank.last, uid)) for uid, rank in self.ranks.items()
                )
                found = verdict(sorted(ranks, key=lambda rank: rank.pod))
                found = self.annotated(found, path)
            self.record = dataclasses.asdict(found)
        return self.record

    def annotated(self, record: JobRecord, path: str) -> JobRecord:
        try:
            self.cluster.patch(path, {"metadata": {"annotations": {MOVED: record.text}}})
        except (ApiError, TransportError, FabricError) as error:
            note = f"the job could not be annotated with it: {message_of(error)}"
            return dataclasses.replace(record, note="; ".join(filter(None, (record.note, note))))
        return record
