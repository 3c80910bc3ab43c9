# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads what a maintainer must see of a cluster: objects of the fabric, and the logs of its components.

It never reads a Secret, and of an object only the fields in fields.py.
"""

from __future__ import annotations

import time
import typing as t

from ansible.module_utils.basic import AnsibleModule

from .._common.redaction import redact, redact_log
from .._common.result import FabricError
from .._common.text import printable
from .._kube.client import REQUEST_TIMEOUT, ApiError, Cluster, TransportError, connect, message_of
from .._kube.multus import NAD
from .._kube.pod_problems import container_statuses, pod_problems
from .._kube.query import Object, query
from .._model.stacks import STACKS
from .._model.support import ClusterPart, Gap
from .fields import harmless, is_component

OF_CLUSTER = (
    ("v1", "Node"),
    *((stack.group, kind) for stack in STACKS.values() for kind in sorted(stack.kinds - {NAD[1]})),
    NAD,
    ("whereabouts.cni.cncf.io/v1alpha1", "IPPool"),
    ("nv-ipam.nvidia.com/v1alpha1", "IPPool"),
    ("nv-ipam.nvidia.com/v1alpha1", "CIDRPool"),
    ("graphcore.ai/v1alpha1", "IPUJob"),
)
OF_NAMESPACES = (("v1", "Pod"), ("v1", "Event"), ("apps/v1", "DaemonSet"), ("apps/v1", "Deployment"))
MOST_OBJECTS = 5000  # of a kind
MOST_LOGS = 200
LOGS_OF_ONE_OWNER = 3  # pods of a DaemonSet log the same on most nodes
SECONDS = 300  # for all requests; with a hanging server, each would take a minute


class Reader:
    """Reads what it can, and records what it could not read."""

    def __init__(self, cluster: Cluster, seconds: float = SECONDS) -> None:
        self.cluster, self.gaps = cluster, t.cast(t.List[Gap], [])
        self.give_up = time.monotonic() + seconds

    def gap(self, what: str, where: str, seen: str) -> None:
        self.gaps.append(Gap(what=what, where=where, seen=seen))

    def is_late(self, what: str, where: str) -> bool:
        if time.monotonic() <= self.give_up:
            return False
        self.gap(what, where, "the time limit for the API was reached")
        return True

    def objects(self, version: str, kind: str, namespace: str = "", ours: bool = True) -> t.List[Object]:
        what, where = f"objects of the kind {kind} ({version})", namespace or "the cluster"
        if self.is_late(what, where):
            return []
        try:
            resource = self.cluster.resource(version, kind)
            items = self.cluster.items(resource.path(namespace=namespace), limit=MOST_OBJECTS + 1) if resource else []
        except (ApiError, TransportError, FabricError) as error:
            self.gap(what, where, reason(error))
            return []
        if len(items) > MOST_OBJECTS:
            self.gap(what, where, f"there are more than {MOST_OBJECTS}")
        return [{"apiVersion": version, "kind": kind, **harmless(item, kind, ours)} for item in items[:MOST_OBJECTS]]

    def log(self, pod: Object, container: str, lines: int, size: int, previous: bool = False) -> str:
        namespace, name = query("metadata.[namespace, name]", pod)
        if self.is_late("a log", f"{namespace}/{name} {container}"):
            return ""
        asked: t.Dict[str, t.Any] = {"container": container, "tailLines": lines, "timestamps": "true"}
        if previous:
            asked["previous"] = "true"
        try:
            answer = self.cluster.client.request(
                "get",
                f"/api/v1/namespaces/{namespace}/pods/{name}/log",
                query_params=list(asked.items()),
                serialize=False,
                _request_timeout=REQUEST_TIMEOUT,
            )
        except (ApiError, TransportError, OSError) as error:
            # A container that has not started has no log, and one that has not crashed has no earlier log.
            if getattr(error, "status", None) not in (400, 404):
                self.gap("a log", f"{namespace}/{name} {container}", reason(error))
            return ""
        return redact_log(printable(answer.data.decode("utf-8", "replace")), size)


def reason(error: BaseException) -> str:
    return error.seen if isinstance(error, FabricError) else message_of(error)


def has_trouble(pod: Object) -> bool:
    ready = query("status.conditions[?type=='Ready'].status | [0]", pod) == "True"
    restarts = sum(container.get("restartCount", 0) for container in container_statuses(pod))
    return bool(pod_problems(pod)) or not ready or restarts > 0


def pods_to_read(pods: t.Sequence[Object]) -> t.List[Object]:
    """Pods with problems first, then a few of each owner."""
    taken: t.Dict[t.Tuple[str, bool], int] = {}
    chosen = []
    for pod in sorted(pods, key=lambda pod: not has_trouble(pod)):
        metadata, trouble = pod["metadata"], has_trouble(pod)
        owner = query("ownerReferences[0].uid", metadata) or f"{metadata.get('namespace')}/{metadata['name']}"
        taken[owner, trouble] = taken.get((owner, trouble), 0) + 1
        if taken[owner, trouble] <= LOGS_OF_ONE_OWNER:
            chosen.append(pod)
    return chosen[:MOST_LOGS]


def read_logs(reader: Reader, pods: t.Sequence[Object], lines: int, size: int) -> t.Dict[str, str]:
    found = {}
    for pod in pods_to_read(pods):
        namespace, name = query("metadata.[namespace, name]", pod)
        restarted = {each["name"] for each in container_statuses(pod) if each.get("restartCount")}
        for container in query("spec.[initContainers, containers][].name", pod) or []:
            key = f"{namespace}/{name}/{container}"
            found[key] = reader.log(pod, container, lines, size)
            if container in restarted:
                found[f"{key}.previous"] = reader.log(pod, container, lines, size, previous=True)
    return {key: text for key, text in found.items() if text}


def collect(
    cluster: Cluster, namespaces: t.Sequence[str], lines: int, size: int, others: t.Sequence[str] = ()
) -> ClusterPart:
    """Collect objects and logs: components are in `namespaces`, workloads of the site in `others`."""
    reader = Reader(cluster)
    objects: t.Dict[str, t.List[Object]] = {}
    for version, kind in OF_CLUSTER:
        objects.setdefault(kind, []).extend(reader.objects(version, kind))
    for version, kind in OF_NAMESPACES:
        found = objects.setdefault(kind, [])
        for namespace in namespaces:
            found += reader.objects(version, kind, namespace)
        for namespace in [each for each in others if each not in namespaces]:
            found += reader.objects(version, kind, namespace, ours=False)
    # Events about nodes are in the namespace default, among events of workloads.
    if "default" not in {*namespaces, *others}:
        events = reader.objects("v1", "Event", "default", ours=False)
        objects["Event"] += [event for event in events if query("involvedObject.kind", event) in ("Node", "IPUJob")]
    pods = [pod for pod in objects["Pod"] if pod["metadata"]["namespace"] in namespaces and is_component(pod)]
    logs = read_logs(reader, pods, lines, size)
    return {"objects": objects, "logs": logs, "gaps": reader.gaps}


def read_cluster(module: AnsibleModule) -> t.Dict[str, t.Any]:
    """The body of the module. It also yields an archive of a cluster that does not answer, with that as its content."""
    params = module.params
    try:
        cluster = connect(module)
        part = collect(cluster, params["namespaces"], params["lines"], params["size"], params["other_namespaces"])
        if not cluster.present:
            part["gaps"].append(Gap(what="the cluster", where="its API", seen="it does not answer"))
    except FabricError as error:
        part = {"objects": {}, "logs": {}, "gaps": [Gap(what="the cluster", where=error.where, seen=error.seen)]}
    return {"changed": False, "cluster": redact(part)}
