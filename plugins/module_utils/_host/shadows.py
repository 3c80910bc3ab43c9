# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Programs and units that would run in place of those of the packages that the role kubernetes installs."""

from __future__ import annotations

import os
import typing as t

from .._model.observation import Shadow

FOLDERS = ("/usr/local/sbin", "/usr/local/bin")  # before those of packages in PATH
PROGRAMS = ("containerd", "containerd-shim-runc-v2", "crictl", "kubeadm", "kubelet", "runc")
UNITS, UNIT_NAMES = "/etc/systemd/system", ("containerd.service", "kubelet.service")


def read_shadows(root: str) -> t.List[Shadow]:
    """Programs, then units, each in the order of their names."""

    def at(path: str) -> str:
        return os.path.join(root, path[1:])

    programs = [f"{folder}/{name}" for folder in FOLDERS for name in PROGRAMS]
    found: t.List[Shadow] = [{"path": path, "masks": False} for path in programs if os.path.exists(at(path))]
    for path in (f"{UNITS}/{name}" for name in UNIT_NAMES):
        if os.path.islink(at(path)):
            masks = os.readlink(at(path)) == os.devnull
            found += [{"path": path, "masks": masks}] if masks else []
        elif os.path.exists(at(path)):
            found.append({"path": path, "masks": False})
    return found
