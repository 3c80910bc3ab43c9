# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""How a control plane runs: arguments from its static pod manifests, and files whose permissions are too open."""

from __future__ import annotations

import glob
import json
import os
import re
import stat
import typing as t

from .._model.observation import ControlPlaneFacts
from .files import read_text

COMPONENTS = ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "etcd")
MANIFESTS = "etc/kubernetes/manifests"
SUPER_ADMIN = "etc/kubernetes/super-admin.conf"
# Files and directories for root only, and the widest mode that each may have.
PRIVATE = (
    ("etc/kubernetes/manifests/*.yaml", 0o600),
    ("etc/kubernetes/*.conf", 0o600),
    ("etc/kubernetes/pki/*.key", 0o600),
    ("etc/kubernetes/pki/etcd/*.key", 0o600),
    ("etc/kubernetes/hardening/*", 0o600),
    ("var/lib/etcd", 0o700),
)


def unquote(value: str) -> str:
    """A one-line YAML scalar, as kubeadm writes it."""
    if value.startswith('"') and value.endswith('"') and len(value) > 1:
        try:
            text: str = json.loads(value)
            return text
        except ValueError:
            return value
    if value.startswith("'") and value.endswith("'") and len(value) > 1:
        return value[1:-1].replace("''", "'")
    return value


def manifest_arguments(manifest: str) -> t.Dict[str, str]:
    """The arguments in a manifest, without their dashes. One without a value is true, as with Go's flags."""
    found = {}
    for line in manifest.splitlines():
        item = re.match(r"^\s*- (.*\S)\s*$", line)
        argument = re.match(r"^--([A-Za-z0-9-]+)(?:=(.*))?$", unquote(item.group(1)), re.DOTALL) if item else None
        if argument:
            found[argument.group(1)] = "true" if argument.group(2) is None else argument.group(2)
    return found


def too_open(root: str) -> t.Dict[str, int]:
    """Files that others than root can read or change, with the mode that they should have. Links are skipped."""
    found = {}
    for pattern, allowed in PRIVATE:
        for path in sorted(glob.glob(os.path.join(root, pattern))):
            seen = os.lstat(path)
            if not stat.S_ISLNK(seen.st_mode) and stat.S_IMODE(seen.st_mode) & ~allowed:
                found[path] = stat.S_IMODE(seen.st_mode) & allowed
    return found


def read_arguments(root: str) -> t.Dict[str, t.Dict[str, str]]:
    """Arguments by static pod. Empty if there is no manifest."""
    texts = {name: read_text(os.path.join(root, MANIFESTS, f"{name}.yaml")) for name in COMPONENTS}
    return {name: manifest_arguments(text) for name, text in texts.items() if text}


def read_control_plane(root: str) -> t.Optional[ControlPlaneFacts]:
    """Facts of this control plane; None if this host is not one."""
    arguments = read_arguments(root)
    if "kube-apiserver" not in arguments:
        return None
    return {
        "arguments": arguments,
        "open_files": sorted(f"/{os.path.relpath(path, root)}" for path in too_open(root)),
        "super_admin": os.path.exists(os.path.join(root, SUPER_ADMIN)),
    }
