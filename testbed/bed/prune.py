"""Removes what nothing uses any more."""

from __future__ import annotations

import shutil

from . import baked, vm, workers
from .build import Parts
from .common import CACHE, STORE, lock, output, run, say
from .programs import CALICO_GROUP, CLUSTER, DOCKER, NEXT, SHORT, SRIOV, group


def prune(current: Parts) -> None:
    """Keep what this checkout needs and what any testbed was started from; remove the rest unless a build runs."""
    with lock("store"):
        keep = (
            {path.name for path in vars(current).values()}
            | {group(name).name for name in (CLUSTER, *SHORT)}
            | vm.used()
        )
        keep |= {vm.ROCE.stored_name, workers.ROOT_DISK.stored_name, baked.stored_name(current)}
        for used in (CACHE / "testbed").glob("*/parts"):
            keep |= {line.rpartition("/")[2] for line in used.read_text().splitlines()}
        for entry in STORE.iterdir():
            # Only built on demand; finding out whether they are still the pinned ones is not worth a build.
            groups = tuple(f"go-{name}-" for name in (CALICO_GROUP, NEXT, DOCKER, SRIOV))
            on_demand = entry.name.startswith((*groups, "calico-", "docker-packages-", "sriov-operator-"))
            if entry.name not in keep and not on_demand:
                say(f"drop {entry.name}")
                shutil.rmtree(entry)
        tags = {name.rpartition("-")[2] for name in keep if name.startswith("debian-")}
        for image in output("podman", "images", "--format", "{{.Repository}}:{{.Tag}}").split():
            if image.startswith("localhost/ipu-fabric/") and image.rpartition(":")[2] not in tags:
                say(f"drop {image}")
                run("podman", "rmi", image)
