# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Deletes objects together with what depends on them."""

from __future__ import annotations

import typing as t

from .._common.manager import is_ours
from .._common.result import FabricError
from .._common.text import shorten_list
from .._kube.client import Cluster, describe, wait_until
from .._kube.multus import Name
from .._kube.query import Object
from .._model.profiles import BY_KIND
from .._model.stacks import STACKS

SHOWN = 20
FORCE = " or ".join(f"{name}_force" for name in STACKS)  # of the roles
RUNNING = "status.phase!=Succeeded,status.phase!=Failed"


def name_of(obj: Object) -> Name:
    return obj["metadata"].get("namespace", ""), obj["metadata"]["name"]


def staying(pods: t.Sequence[Object]) -> t.List[Object]:
    """Without pods that are already being deleted: they end by themselves, and are only waited for."""
    return [pod for pod in pods if not pod["metadata"].get("deletionTimestamp")]


def user_names(pods: t.Sequence[Object]) -> t.List[str]:
    """namespace/name of each pod that stays, with what creates it again: default/train-x7k2p of Job train."""
    return [f"{'/'.join(name_of(pod))}{_creator(pod)}" for pod in staying(pods)]


def _creator(pod: Object) -> str:
    owner = next((each for each in pod["metadata"].get("ownerReferences", ()) if each.get("controller")), None)
    if not owner:
        return ""
    template = pod["metadata"].get("labels", {}).get("pod-template-hash")
    if owner["kind"] == "ReplicaSet" and template:
        return f" of Deployment {owner['name'][: -len(template) - 1]}"
    return f" of {owner['kind']} {owner['name']}"


def divide(objects: t.Sequence[Object]) -> t.Tuple[t.List[Object], t.List[Object]]:
    """Objects that this collection made, and those of others."""
    return [obj for obj in objects if is_ours(obj)], [obj for obj in objects if not is_ours(obj)]


def listed_networks(cluster: Cluster) -> t.List[Object]:
    """Networks of both operators, of all types."""
    return [
        {**item, "apiVersion": profile.api, "kind": kind}
        for kind, profile in BY_KIND.items()
        for item in cluster.items(profile.path)
    ]


class Removal:
    """Deletes objects, and waits until they and what depends on them are gone."""

    def __init__(self, cluster: Cluster, timeout: float) -> None:
        self.cluster, self.timeout = cluster, timeout

    def listed(self, api_version: str, *kinds: str) -> t.List[Object]:
        """Objects of some kinds in all namespaces; empty for a kind that the cluster does not know."""
        found = []
        for kind in kinds:
            resource = self.cluster.resource(api_version, kind)
            items = self.cluster.items(resource.path()) if resource else []
            found += [{**item, "apiVersion": api_version, "kind": kind} for item in items]
        return found

    def left_of(self, objects: t.Sequence[Object], api_version: str, *kinds: str) -> t.List[Object]:
        names = {(obj["kind"], *name_of(obj)) for obj in objects}
        return [obj for obj in self.listed(api_version, *kinds) if (obj["kind"], *name_of(obj)) in names]

    def pods(self) -> t.List[Object]:
        items = self.cluster.items("/api/v1/pods", fieldSelector=RUNNING)
        return [{"apiVersion": "v1", "kind": "Pod", "metadata": item["metadata"]} for item in items]

    def remove(self, objects: t.Sequence[Object], left: t.Callable[[], t.Sequence[Object]], next_step: str) -> None:
        for obj in objects:
            self.cluster.delete(t.cast(str, self.cluster.path_of(obj)))
        wait_until(
            lambda: [f"{describe(obj)} still exists" for obj in left()],
            self.timeout,
            "Deleted objects are still there.",
            next_step,
        )

    def remove_users(self, pods: t.Sequence[Object]) -> None:
        users = {pod["metadata"]["uid"] for pod in pods}
        self.remove(
            staying(pods),
            lambda: [pod for pod in self.pods() if pod["metadata"]["uid"] in users],
            "Run again when these pods have ended. If they don't, their nodes may be down.",
        )

    @staticmethod
    def refuse_users(
        pods: t.Sequence[Object],
        otherwise: str = f"or set force to true ({FORCE}) to delete them.",
    ) -> None:
        users = user_names(pods)
        if users:
            raise FabricError(
                "The networks are in use.",
                "pods of the cluster",
                f"{len(users)} pods have an address on them: {shorten_list(users, SHOWN)}",
                f"Delete or stop what creates these pods, {otherwise}",
                code="unsafe",
            )
