# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A control plane from a backup: its state is set aside, then keys and data are put where kubeadm finds them."""

from __future__ import annotations

import contextlib
import errno
import glob
import os
import secrets
import shutil
import tarfile
import tempfile
import time
import typing as t

from .._common.command import run_program
from .._common.result import FabricError, outcome, printed_by
from .._common.text import first_of
from .._host.cri import DOCKER, node_runtime
from .._host.files import file_digest, read_text, write_file
from . import backup, paths, snapshot
from .bootstrap import is_api_ready
from .etcd import is_listening
from .images import CTR
from .lock import hold_lock
from .membership import host_name

if t.TYPE_CHECKING:
    from ansible.module_utils.basic import AnsibleModule

ASIDE = "/var/lib/ipu-fabric/before-restore"  # prefix; the time is appended
# If ASIDE is on another file system: a directory beside the original, so that nothing must be copied.
ASIDE_NEARBY = "ipu-fabric-before-restore"
STAGING = "/var/lib/ipu-fabric/restore"  # the archive, and what is extracted from it
PART = ".restore"  # etcd's new data, next to the old data
IMAGE_ROOT = "/run/ipu-fabric/etcd-image"
# The files that make a host a control plane. Everything else in /etc/kubernetes is the site's, and stays.
TRACES = (
    *(f"{paths.KUBERNETES}/{name}.conf" for name in ("admin", "super-admin", "controller-manager", "scheduler")),
    *(paths.KUBELET, f"{paths.KUBERNETES}/bootstrap-kubelet.conf"),
    *(paths.MANIFESTS, backup.PKI, "/var/lib/kubelet/pki", paths.ETCD),
)
STATIC_PODS = {"etcd": 2379, "kube-apiserver": 6443, "kube-controller-manager": 10257, "kube-scheduler": 10259}
# Clients that outlive the restore have seen revisions newer than the snapshot: etcd continues far beyond them.
REVISIONS = 1_000_000_000
SECONDS = 600
# What etcd needs besides its database: the current log, and the next one, which it preallocates.
LOG_BYTES = 2 * (64 << 20)
SPARE_BYTES = 64 << 20  # keys, certificates, manifests


def run(where: str, *argv: str) -> str:
    return printed_by(
        run_program(argv, SECONDS),
        SECONDS,
        f"{where} failed.",
        f"{' '.join(argv[:6])} on {host_name()}",
        "Fix what it reports, then run ipu.fabric.restore again with the same backup: it starts over on this host.",
    )


def traces() -> t.List[str]:
    """The files of a control plane on this host. Packages create empty directories."""

    def is_something(path: str) -> bool:
        return os.path.lexists(path) and not (os.path.isdir(path) and not os.listdir(path))

    return [path for path in TRACES if is_something(path)]


def check_runtime() -> None:
    """Refuse hosts with Docker: containerd is needed to stop containers and to get etcd's program from its image."""
    if node_runtime() == DOCKER:
        raise FabricError(
            "A backup can only be restored on hosts with containerd.",
            host_name(),
            "its kubelet speaks to cri-dockerd",
            "Reset the hosts (ipu.fabric.reset), leave fabric_runtime out, then run ipu.fabric.restore again.",
            code="wrong-state",
        )


def stop_control_plane() -> None:
    """Stop the kubelet first: it would restart the others. Other containers keep running; a kubelet readopts them."""
    run("Stopping the kubelet", "systemctl", "stop", "kubelet")
    for name in STATIC_PODS:
        labels = f'labels."io.kubernetes.container.name"=={name},labels."io.kubernetes.pod.namespace"==kube-system'
        for container in run("Listing containers", *CTR, "containers", "list", "--quiet", labels).split():
            # A container that has ended has no task.
            run_program([*CTR, "tasks", "kill", "--signal", "SIGKILL", container], SECONDS)
    give_up = time.monotonic() + 60
    while True:
        busy = [name for name, port in STATIC_PODS.items() if is_listening("localhost", port)]
        if not busy:
            return
        if time.monotonic() > give_up:
            raise FabricError(
                "The old control plane must have stopped before a backup is restored.",
                host_name(),
                f"still listening: {', '.join(f'{name} on port {STATIC_PODS[name]}' for name in busy)}",
                "Stop these processes, then run ipu.fabric.restore again.",
                code="wrong-state",
            )
        time.sleep(1)


def nearby_of(path: str, place: str) -> str:
    return os.path.join(os.path.dirname(path), ASIDE_NEARBY + place[len(ASIDE) :])


def find_targets(found: t.Sequence[str], place: str) -> t.Dict[str, str]:
    """The target of each path for a rename, which needs no space: in `place`, or nearby if that is on another mount."""
    targets = {}
    for path in found:
        target = place + path
        os.makedirs(os.path.dirname(target), exist_ok=True)
        nearby = nearby_of(path, place)
        os.makedirs(nearby, mode=0o700, exist_ok=True)
        try:
            os.rename(nearby, target)
            os.rmdir(target)
        except OSError as error:
            if error.errno != errno.EXDEV:
                raise
            target = os.path.join(nearby, os.path.basename(path))
        targets[path] = target
    return targets


def no_room(path: str, seen: str) -> FabricError:
    return FabricError(
        "A restore needs free space on the control plane.",
        f"{path} on {host_name()}",
        seen,
        "Free space there, then run ipu.fabric.restore again. Nothing was stopped and nothing was moved.",
        code="unusable-file",
    )


def check_room(needs: t.Mapping[str, int]) -> None:
    """Check the space that is needed in bytes by directory; directories on one file system are added up."""
    wanted: t.Dict[int, int] = {}
    for directory, size in needs.items():
        device, free = os.stat(directory).st_dev, os.statvfs(directory)
        wanted[device] = wanted.get(device, 0) + size
        if free.f_bavail * free.f_frsize < wanted[device]:
            raise no_room(
                directory, f"{free.f_bavail * free.f_frsize} bytes are free there, and {wanted[device]} are needed"
            )


def check_movable(found: t.Sequence[str]) -> None:
    mounts = [path for path in found if os.path.ismount(path)]
    if mounts:
        raise FabricError(
            "A restore renames the former data of a control plane, but a mount point can't be renamed.",
            host_name(),
            f"mounted: {', '.join(mounts)}",
            "Mount it one directory higher, as /var/lib/etcd instead of /var/lib/etcd/member.",
            code="wrong-state",
        )


def is_initialised() -> bool:
    """Whether kubeadm init has finished since the restore of keys and data: none of its files comes from a backup."""
    return os.path.exists(paths.ADMIN) and not os.path.exists(paths.MARKER)


def forget(path: str) -> None:
    with contextlib.suppress(FileNotFoundError):
        os.remove(path)


def set_aside(found: t.Sequence[str]) -> str:
    """Move the present state to directories for root only, and forget an interrupted kubeadm."""
    check_movable(found)
    place = f"{ASIDE}-{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}-{secrets.token_hex(4)}"
    try:
        os.makedirs(os.path.dirname(ASIDE), exist_ok=True)
        os.mkdir(place, 0o700)  # for root only
        targets = find_targets(found, place)  # a full disk must show up while the control plane still runs
        stop_control_plane()
    except BaseException as error:
        for empty in (place, *(nearby_of(path, place) for path in found)):
            shutil.rmtree(empty, ignore_errors=True)
        if isinstance(error, OSError):
            raise no_room(str(error.filename or place), error.strerror or str(error)) from error
        raise
    for path, target in targets.items():
        os.rename(path, target)
    forget(paths.MARKER)
    return place


def wanted_files(names: t.Sequence[str]) -> t.List[str]:
    """The files in the archive that all control planes share. kubeadm creates this host's own certificates."""
    keys = {f"{backup.PKI}/{name}".lstrip("/") for name in backup.KEYS}
    pki = backup.PKI.lstrip("/") + "/"
    return [name for name in names if name in keys or not (name == backup.SNAPSHOT or name.startswith(pki))]


def is_expected(name: str) -> bool:
    """Whether a backup may contain this file: etcd's data, the PKI, and the keys of Secrets.

    The site may keep those keys anywhere in /etc/kubernetes, but not where the kubelet starts what it finds."""
    path, others = "/" + name, [f"{trace}/" for trace in TRACES if trace != backup.PKI]
    inside = f"{path}/".startswith(f"{os.path.dirname(backup.PKI)}/") and not f"{path}/".startswith(tuple(others))
    return os.path.normpath(path) == path and (name == backup.SNAPSHOT or inside)


def check_names(members: t.Sequence[tarfile.TarInfo]) -> None:
    names = [each.name for each in members]
    pki = backup.PKI.lstrip("/") + "/"
    keys_of_secrets = [name for name in names if name != backup.SNAPSHOT and not name.startswith(pki)]
    strange = [each.name for each in members if not each.isfile() or not is_expected(each.name)]
    strange += [name for name in sorted(set(names)) if names.count(name) > 1] or keys_of_secrets[1:]
    missing = [name for name in (backup.SNAPSHOT, f"{backup.PKI}/ca.key".lstrip("/")) if name not in names]
    if strange or missing:
        raise FabricError(
            "The archive is not a backup of a control plane.",
            f"{STAGING} on {host_name()}",
            f"no {', '.join(missing)}" if missing else f"it has {', '.join(dict.fromkeys(strange))}",
            "Restore a directory that ipu.fabric.backup has written.",
            code="wrong-content",
        )


def put_keys(module: AnsibleModule, archive: tarfile.TarFile) -> None:
    for name in wanted_files(archive.getnames()):
        file = t.cast(t.IO[bytes], archive.extractfile(name))
        mode = format(archive.getmember(name).mode & 0o777, "04o")
        path = "/" + name
        content = file.read().decode("utf-8", "surrogateescape")
        write_file(module, path, content, mode, backup=os.path.exists(path) and read_text(path) != content)


def unmount_image(place: str) -> None:
    """Unmount an image. A mount that containerd forgot ends by itself, after an hour or at the next boot."""
    run_program([*CTR, "images", "unmount", "--rm", place], SECONDS)
    with contextlib.suppress(OSError):
        os.rmdir(place)


@contextlib.contextmanager
def etcdutl(image: str) -> t.Iterator[str]:
    """The program from etcd's own image, which every control plane has. It is static, so it needs no container."""
    for left in glob.glob(f"{IMAGE_ROOT}-*"):  # left by a run that was killed
        unmount_image(left)
    os.makedirs(os.path.dirname(IMAGE_ROOT), mode=0o700, exist_ok=True)
    place = tempfile.mkdtemp(prefix=f"{IMAGE_ROOT}-")
    try:
        run("Mounting etcd's image", *CTR, "images", "mount", image, place)
        yield f"{place}/usr/local/bin/etcdutl"
    finally:
        unmount_image(place)


def restore_arguments(node: str, address: str, backup_name: str) -> t.List[str]:
    """Arguments for a cluster of only this member, with a new ID, so that members of the old cluster can't rejoin."""
    peer = f"https://{f'[{address}]' if ':' in address else address}:2380"
    return [
        *("--name", node, "--initial-cluster", f"{node}={peer}", "--initial-advertise-peer-urls", peer),
        *("--initial-cluster-token", f"ipu-fabric-{backup_name}-{int(time.time())}"),
        *("--bump-revision", str(REVISIONS), "--mark-compacted"),
    ]


@contextlib.contextmanager
def verified_archive(module: AnsibleModule) -> t.Iterator[t.Tuple[tarfile.TarFile, str]]:
    """The archive and the etcd data made from it: every step that needs much space or can find fault with a backup."""
    params = module.params
    path = os.path.join(STAGING, backup.NAME)
    digest = file_digest(path)
    if digest != params["sha256"]:
        raise FabricError(
            "The archive was damaged in transit.",
            f"{path} on {host_name()}",
            f"its SHA-256 is {digest}, the backup says {params['sha256']}",
            "Run again: it is copied again.",
            code="wrong-content",
            transient=True,
        )
    data = os.path.join(STAGING, backup.SNAPSHOT)
    with tarfile.open(path) as archive:
        check_names(archive.getmembers())
        directory, size = os.path.dirname(paths.ETCD), archive.getmember(backup.SNAPSHOT).size
        os.makedirs(directory, mode=0o700, exist_ok=True)
        part = os.path.join(directory, PART)
        shutil.rmtree(part, ignore_errors=True)  # left by a run that was killed
        check_movable(traces())
        check_room(
            {STAGING: size + SPARE_BYTES, directory: size + LOG_BYTES, os.path.dirname(paths.KUBERNETES): SPARE_BYTES}
        )
        try:
            with open(os.open(data, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as out:
                shutil.copyfileobj(t.cast(t.IO[bytes], archive.extractfile(backup.SNAPSHOT)), out)
            snapshot.check_snapshot(data)
            arguments = restore_arguments(params["node_name"], first_of(params["address"]), params["backup"])
            with etcdutl(params["image"]) as program:
                run("Restoring etcd's data", program, "snapshot", "restore", data, "--data-dir", part, *arguments)
            forget(data)
            yield archive, os.path.join(part, os.path.basename(paths.ETCD))
        finally:
            forget(data)
            shutil.rmtree(part, ignore_errors=True)


def put_back(module: AnsibleModule) -> str:
    """Restore keys and data; returns where the former state is. If killed, the next run sets the half aside too."""
    with verified_archive(module) as (archive, made):
        place = set_aside(traces())
        write_file(module, paths.RESTORING, module.params["restore"], "0600")
        forget(paths.SET_ASIDE)
        put_keys(module, archive)
        os.rename(made, paths.ETCD)
    return place


def stop(module: AnsibleModule, found: t.Sequence[str]) -> str:
    """Set the state aside; returns where it is. The host remembers for which restore it was stopped."""
    place = set_aside(found) if found else ""
    write_file(module, paths.SET_ASIDE, module.params["restore"], "0600")
    forget(paths.RESTORING)
    return place


def restore(module: AnsibleModule) -> t.Dict[str, object]:
    """The body of M(ipu.fabric.control_plane_restore)."""
    params = module.params
    if params["state"] != "read":
        check_runtime()
    state, found = params["state"], traces()
    restoring, aside = (read_text(path).strip() for path in (paths.RESTORING, paths.SET_ASIDE))
    before: t.Dict[str, object] = {"files": found, "restoring": restoring, "aside": aside}
    if state == "read":
        going_on = bool(restoring) and (is_initialised() or is_api_ready())
        return {
            "changed": False,
            "restoring": restoring,
            "going_on": going_on,
            "aside": aside,
            "files": bool(found),
        }
    if state == "done":
        if not module.check_mode and restoring:
            shutil.rmtree(STAGING, ignore_errors=True)  # it contains keys; the marker stays until they are gone
            forget(paths.RESTORING)
        return outcome(before, {**before, "restoring": ""}, set_aside="")
    if state == "verified":
        if not module.check_mode:
            with hold_lock(params["timeout"]), verified_archive(module):
                pass
        return outcome(before, before, set_aside="")
    # Its present state comes from the restored cluster.
    if state == "aside" and aside == params["restore"]:
        return outcome(before, before, set_aside="")
    place = ""
    if not module.check_mode:
        with hold_lock(params["timeout"]):
            place = put_back(module) if state == "restored" else stop(module, found)
    if state == "aside":
        return outcome(before, {"files": [], "restoring": "", "aside": params["restore"]}, set_aside=place)
    after = {"files": [backup.PKI, paths.ETCD], "restoring": params["restore"], "aside": ""}
    # The restore is repeated, whatever is there.
    return {**outcome(before, after, set_aside=place), "changed": True}
