# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Objects that go together with what depends on them."""

from __future__ import annotations

import typing as t

from ansible_collections.ipu.fabric.plugins.module_utils._kube.client import Cluster, describe, wait_until
from ansible_collections.ipu.fabric.plugins.module_utils._kube.multus import Name
from ansible_collections.ipu.fabric.plugins.module_utils._kube.query import Object


def name_of(obj: Object) -> Name:
    return obj["metadata"].get("namespace", ""), obj["metadata"]["name"]


class Removal:
    """Deletes objects, and waits until they and what depends on them are gone."""

    def __init__(self, cluster: Cluster, timeout: float) -> None:
        self.cluster, self.timeout = cluster, timeout

    def remove(self, objects: t.Sequence[Object], left: t.Callable[[], t.Sequence[Object]], next_step: str) -> None:
        for obj in objects:
            self.cluster.delete(t.cast(str, self.cluster.path_of(obj)))
        wait_until(
            lambda: [f"{describe(obj)} still exists" for obj in left()],
            self.timeout,
            "Deleted objects are still there.",
            next_step,
        )
