# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a control plane has that no other host can restore: etcd's data, the PKI, and the keys of Secrets."""

from __future__ import annotations

import os
import re
import secrets
import tarfile
import time
import typing as t

from .._common.result import FabricError, outcome
from .._host.backups import look_after
from .._host.files import file_digest, read_text
from . import paths, snapshot
from .lock import hold_lock
from .membership import host_name

if t.TYPE_CHECKING:
    from ansible.module_utils.basic import AnsibleModule

DIRECTORY = "/var/lib/ipu-fabric/backup"  # for root only
NAME = "control-plane.tar.gz"
OLD = 86400  # seconds after which nobody will fetch an archive any more
SNAPSHOT = "etcd.db"
PKI = f"{paths.KUBERNETES}/pki"
API_SERVER = f"{paths.MANIFESTS}/kube-apiserver.yaml"
# Without these, a restored cluster would not trust its hosts and service accounts.
KEYS = (
    "ca.crt",
    "ca.key",
    "etcd/ca.crt",
    "etcd/ca.key",
    "front-proxy-ca.crt",
    "front-proxy-ca.key",
    "sa.key",
    "sa.pub",
)


def encryption_config(manifest: str) -> str:
    """The file with the encryption keys of Secrets, from the API server's manifest; empty without encryption."""
    match = re.search(r"--encryption-provider-config[= ]([^\s\"',]+)", manifest)
    return match.group(1) if match else ""


def find_files() -> t.List[str]:
    """Every file to save, without its parent directories. Links are not followed."""
    missing = [f"{PKI}/{name}" for name in KEYS if not os.path.isfile(f"{PKI}/{name}")]
    found = [os.path.join(top, name) for top, _directories, names in os.walk(PKI) for name in names]
    keys = encryption_config(read_text(API_SERVER))
    if keys and not os.path.isfile(keys):
        missing.append(keys)
    if keys and not keys.startswith(f"{os.path.dirname(PKI)}/"):
        missing.append(
            f"{os.path.basename(keys)} below {os.path.dirname(PKI)}, the only place a restore writes to: it is {keys}"
        )
    if missing:
        raise FabricError(
            "A backup must contain all keys of the cluster.",
            host_name(),
            f"no {', '.join(missing)}",
            "Back up from a control plane that was made by kubeadm and has the keys of the cluster's CAs.",
            code="wrong-state",
        )
    return sorted({*(path for path in found if os.path.isfile(path)), *([keys] if keys else [])})


def make_directory() -> None:
    """Create the directory, without leftovers of killed runs. Another backup may be about to fetch today's archives."""
    os.makedirs(DIRECTORY, mode=0o700, exist_ok=True)
    os.chmod(DIRECTORY, 0o700)
    for name in os.listdir(DIRECTORY):
        path = os.path.join(DIRECTORY, name)
        if not name.endswith(NAME) or abs(time.time() - os.lstat(path).st_mtime) > OLD:
            os.remove(path)


def pack(path: str, files: t.Mapping[str, str]) -> None:
    """Pack files under their names into an archive that only root can read."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with open(descriptor, "wb") as out:
        with tarfile.open(fileobj=out, mode="w:gz", compresslevel=1) as archive:
            for name, source in files.items():
                archive.add(source, name, recursive=False)
        out.flush()
        os.fsync(out.fileno())


def write(path: str, files: t.Sequence[str], etcd: snapshot.EtcdFacts, timeout: int) -> str:
    """Write the archive, and return its digest."""
    make_directory()
    data = os.path.join(DIRECTORY, SNAPSHOT)
    snapshot.check_destination(data, 2 * etcd["database_bytes"])
    try:
        snapshot.save(data, timeout)
        pack(f"{path}.part", {SNAPSHOT: data, **{name.lstrip("/"): name for name in files}})
        os.rename(f"{path}.part", path)
    finally:
        for left in (data, f"{path}.part"):
            if os.path.lexists(left):
                os.remove(left)
    return file_digest(path)


def back_up(module: AnsibleModule) -> t.Dict[str, object]:
    """Create an archive of this control plane."""
    # A name for this run only: another run may be about to fetch its own archive.
    path = os.path.join(DIRECTORY, f"{secrets.token_hex(4)}-{NAME}")
    timeout: int = module.params["timeout"]
    if module.check_mode:
        files, etcd, sha256 = find_files(), snapshot.read_etcd(), ""
    else:
        with hold_lock(timeout, "backup or kubeadm"):
            files, etcd = find_files(), snapshot.read_etcd()
            sha256 = write(path, files, etcd, timeout)
    saved = [SNAPSHOT, *files]
    return outcome({}, {"path": path, "files": saved}, path=path, sha256=sha256, files=saved, etcd=etcd)


def run(module: AnsibleModule) -> t.Dict[str, object]:
    """The body of M(ipu.fabric.control_plane_backup)."""
    if module.params["path"]:
        return look_after(module)
    return snapshot.take_snapshot(module) if module.params["snapshot"] else back_up(module)
