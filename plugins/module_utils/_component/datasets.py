# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""PersistentVolumes for directories of NFS servers, with their claims."""

from __future__ import annotations

import dataclasses
import re
import typing as t

from .._common.result import FabricError
from .._model.wish import Objects

Object = t.Dict[str, t.Any]

LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
VOLUME_NAME = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?")
SERVER = re.compile(r"[A-Za-z0-9_.:%-]+")
SIZE = re.compile(r"[1-9]\d*([EPTGMk]|[EPTGMK]i)?")
OPTION = re.compile(r"[^\s,]+")
MODES = ("ReadWriteMany", "ReadOnlyMany", "ReadWriteOnce", "ReadWriteOncePod")
MOUNT_OPTIONS = ("hard", "nfsvers=4.1")
SIZE_DEFAULT = "1Ti"


class _Directory(t.TypedDict):
    name: str  # of the claim
    server: str
    path: str


class NfsVolume(_Directory, total=False):
    """A directory of an NFS server. An empty or missing key means the default."""

    namespace: str
    volume: str  # name of the PersistentVolume
    size: str
    access_modes: t.Sequence[str]
    mount_options: t.Sequence[str]
    read_only: bool


@dataclasses.dataclass(frozen=True)
class Settings:
    """Variables of the role, without its name as a prefix."""

    volumes: t.Sequence[NfsVolume]


@dataclasses.dataclass(frozen=True)
class Seen:
    """Nothing: the settings alone decide."""


def names_of(wanted: NfsVolume) -> t.Tuple[str, str, str]:
    """Namespace and name of the claim, and name of its volume: volumes have no namespace."""
    namespace = wanted.get("namespace") or "default"
    return namespace, wanted["name"], wanted.get("volume") or f"{namespace}-{wanted['name']}"


def modes_of(wanted: NfsVolume) -> t.List[str]:
    return list(wanted.get("access_modes") or ["ReadOnlyMany" if wanted.get("read_only") else "ReadWriteMany"])


def problems(wanted: NfsVolume) -> t.List[str]:
    """Everything that is wrong with one entry."""
    missing = [f"no {key}" for key in ("name", "server", "path") if not wanted.get(key)]
    if missing:
        return missing
    namespace, name, volume = names_of(wanted)
    size, options = wanted.get("size") or SIZE_DEFAULT, wanted.get("mount_options") or ()
    rules = (
        (LABEL.fullmatch(name), f"name {name!r} is not a DNS-1123 label"),
        (LABEL.fullmatch(namespace), f"namespace {namespace!r} is not a DNS-1123 label"),
        (VOLUME_NAME.fullmatch(volume), f"volume {volume!r} is not a DNS-1123 subdomain"),
        (SERVER.fullmatch(wanted["server"]), f"server {wanted['server']!r} is neither a name nor an address"),
        (wanted["path"].startswith("/"), f"path {wanted['path']!r} is not absolute"),
        (SIZE.fullmatch(size), f"size {size!r} is not like 500Gi"),
        (set(modes_of(wanted)) <= set(MODES), f"access_modes are not among {', '.join(MODES)}"),
        (all(map(OPTION.fullmatch, options)), "each of mount_options must be one word"),
    )
    found = [text for right, text in rules if not right]
    if wanted.get("read_only") and set(modes_of(wanted)) - {"ReadOnlyMany"}:
        found.append("read_only and access_modes other than ReadOnlyMany exclude each other")
    return found


def check(volumes: t.Sequence[NfsVolume]) -> None:
    """Raise FabricError with everything that is wrong, before anything reaches the cluster."""
    found = [
        f"{wanted.get('name') or f'entry {number}'}: {text}"
        for number, wanted in enumerate(volumes, 1)
        for text in problems(wanted)
    ]
    named: t.Dict[t.Tuple[str, str], int] = {}
    for wanted in [] if found else volumes:
        namespace, name, volume = names_of(wanted)
        for key in (("claim", f"{namespace}/{name}"), ("volume", volume)):
            named[key] = named.get(key, 0) + 1
    found += [f"the {kind} {name} is named {count} times" for (kind, name), count in named.items() if count > 1]
    if found:
        step = "Correct the entries that are named."
        raise FabricError(
            "Volumes for datasets are invalid.", "datasets_volumes", "; ".join(found), step, code="invalid-input"
        )


def persistent_volume(wanted: NfsVolume) -> Object:
    """A volume for one claim only. Retain: nobody may delete the data on the server."""
    namespace, name, volume = names_of(wanted)
    source: Object = {"server": wanted["server"], "path": wanted["path"]}
    options = list(wanted.get("mount_options") or MOUNT_OPTIONS)
    if wanted.get("read_only"):
        source["readOnly"] = True
        # The kubelet honours readOnly only in a pod's own NFS volume, and would mount this volume read-write.
        options += [] if "ro" in options else ["ro"]
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": volume},
        "spec": {
            "capacity": {"storage": wanted.get("size") or SIZE_DEFAULT},
            "accessModes": modes_of(wanted),
            "persistentVolumeReclaimPolicy": "Retain",
            "storageClassName": "",
            "volumeMode": "Filesystem",
            "mountOptions": options,
            "claimRef": {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "namespace": namespace, "name": name},
            "nfs": source,
        },
    }


def claim(wanted: NfsVolume) -> Object:
    """The claim. With an empty class, the cluster's default class does not create another volume for it."""
    namespace, name, volume = names_of(wanted)
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "accessModes": modes_of(wanted),
            "resources": {"requests": {"storage": wanted.get("size") or SIZE_DEFAULT}},
            "storageClassName": "",
            "volumeMode": "Filesystem",
            "volumeName": volume,
        },
    }


def to_be_bound(obj: Object) -> Object:
    """A volume or claim in the form in which kube_wait waits until it is bound."""
    wanted = {"api_version": "v1", "kind": obj["kind"], "field": "status.phase", "value": "Bound"}
    return {**wanted, "name": obj["metadata"]["name"], "namespace": obj["metadata"].get("namespace", "")}


def decide(settings: Settings, _seen: Seen) -> Objects:
    """The objects of all directories, each volume before its claim. FabricError with everything that is wrong."""
    check(settings.volumes)
    objects = [made for wanted in settings.volumes for made in (persistent_volume(wanted), claim(wanted))]
    return Objects(objects, ready=[to_be_bound(obj) for obj in objects])
