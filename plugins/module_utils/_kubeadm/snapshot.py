# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Takes snapshots of etcd, and verifies that they are complete."""

from __future__ import annotations

import base64
import hashlib
import os
import time
import typing as t

from .._common.result import FabricError, outcome
from . import etcd_api
from .membership import host_name

if t.TYPE_CHECKING:
    from ansible.module_utils.basic import AnsibleModule

DIGEST = hashlib.sha256().digest_size  # etcd appends the SHA-256 of everything before it to a snapshot
PAGE = 512  # a database is a multiple of this: one with a digest appended is not
BLOCK = 1 << 20


class Snapshot(t.TypedDict):
    """A complete snapshot."""

    path: str
    bytes: int
    sha256: str  # of the whole file, as sha256sum prints it


class Member(t.TypedDict):
    """A member of the cluster that the snapshot was taken of."""

    name: str  # empty until it has started
    id: str  # as etcdctl prints it
    peer_urls: t.List[str]


class EtcdFacts(t.TypedDict):
    """What an etcd reports about itself and its cluster."""

    etcd_version: str
    cluster_id: str  # as etcdctl prints it
    revision: int
    members: t.List[Member]
    database_bytes: int


def describe_member(member: etcd_api.Member) -> Member:
    return {
        "name": member.get("name", ""),
        "id": f"{int(member['ID']):x}",
        "peer_urls": sorted(member.get("peerURLs") or []),
    }


def broken(path: str, seen: str) -> FabricError:
    return FabricError(
        "The snapshot of etcd is incomplete.",
        f"{path} on {host_name()}",
        seen,
        "Take another snapshot, from another control plane if it happens again. For a restore, use another backup.",
        code="wrong-content",
    )


def check_snapshot(path: str) -> Snapshot:
    """Verify by a snapshot's own digest that it is complete."""
    size = os.path.getsize(path)
    if size <= DIGEST or size % PAGE != DIGEST:
        raise broken(path, f"it has {size} bytes, which is not the size of a database and a digest of {DIGEST} bytes")
    body, whole, left = hashlib.sha256(), hashlib.sha256(), size - DIGEST
    with open(path, "rb") as file:
        while left:
            block = file.read(min(BLOCK, left))
            if not block:
                raise broken(path, "it became shorter while it was read")
            body.update(block)
            whole.update(block)
            left -= len(block)
        digest = file.read(DIGEST)
        whole.update(digest)
    if digest != body.digest():
        raise broken(path, f"its digest is {digest.hex()}, that of its data is {body.hexdigest()}")
    return {"path": path, "bytes": size, "sha256": whole.hexdigest()}


def check_destination(path: str, size: int) -> None:
    """Refuse a bad destination before anything is written."""
    directory = os.path.dirname(path)
    seen = ""
    if not os.path.isabs(path) or os.path.normpath(path) != path:
        seen = "not an absolute path in its shortest form"
    elif os.path.lexists(path):
        seen = "there is a file of that name"
    elif not os.path.isdir(directory):
        seen = f"there is no directory {directory}"
    else:
        free = os.statvfs(directory)
        if free.f_bavail * free.f_frsize < size:
            seen = f"{free.f_bavail * free.f_frsize} bytes are free there, and etcd needs {size}"
    if seen:
        raise FabricError(
            "The snapshot of etcd needs a new file, and room for it.",
            f"{path} on {host_name()}",
            seen,
            "Name another path.",
            code="unusable-file",
        )


def receive(path: str, timeout: int) -> None:
    """Write a snapshot as it arrives, for root only: it contains all Secrets of the cluster."""
    give_up = time.monotonic() + timeout
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with open(descriptor, "wb") as file:
        for part in etcd_api.stream("/v3/maintenance/snapshot"):
            if time.monotonic() > give_up:
                raise etcd_api.failed(f"the snapshot did not end within {timeout} s")
            file.write(base64.b64decode(part.get("blob", "")))
        file.flush()
        os.fsync(file.fileno())


def read_etcd() -> EtcdFacts:
    """Facts about what is to be saved. Works without a quorum: a snapshot can then be all that is left."""
    status = etcd_api.ask("/v3/maintenance/status")
    members = etcd_api.ask("/v3/cluster/member/list", {"linearizable": False})["members"]
    return {
        "etcd_version": status["version"],
        "cluster_id": f"{int(status['header']['cluster_id']):x}",
        "revision": int(status["header"]["revision"]),
        "members": sorted((describe_member(member) for member in members), key=lambda member: member["name"]),
        "database_bytes": int(status["dbSize"]),
    }


def save(path: str, timeout: int) -> Snapshot:
    """Save a complete snapshot, or none."""
    part = f"{path}.part"
    try:
        if os.path.lexists(part):  # left by a run that was killed
            os.remove(part)
        receive(part, timeout)
        snapshot = check_snapshot(part)
        os.rename(part, path)
    finally:
        if os.path.lexists(part):
            os.remove(part)
    return {**snapshot, "path": path}


def take_snapshot(module: AnsibleModule) -> t.Dict[str, object]:
    """The body of M(ipu.fabric.control_plane_backup) with O(snapshot)."""
    path: str = module.params["snapshot"]
    facts = read_etcd()
    check_destination(path, facts["database_bytes"])
    snapshot: Snapshot = {"path": path, "bytes": facts["database_bytes"] + DIGEST, "sha256": ""}
    if not module.check_mode:
        snapshot = save(path, module.params["timeout"])
    return outcome({}, snapshot, **snapshot, **facts)
