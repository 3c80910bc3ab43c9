# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Programs and units that would take precedence over those of the packages that the role kubernetes installs."""

from __future__ import annotations

import glob
import os
import re
import typing as t

from .._model.observation import Shadow
from .files import read_text

FOLDERS = ("/usr/local/sbin", "/usr/local/bin")  # precede those of packages in PATH
PROGRAMS = ("containerd", "containerd-shim-runc-v2", "crictl", "kubeadm", "kubelet", "runc")
# They precede those of packages. The documentation of containerd suggests the second one.
UNITS, UNIT_NAMES = ("/etc/systemd/system", "/usr/local/lib/systemd/system"), ("containerd.service", "kubelet.service")
# A drop-in may start the package's program with other arguments, but not another program.
OTHER_PROGRAM = re.compile(r"^ExecStart\s*=\s*[-@:+!]*(?!/usr/bin/)/", re.MULTILINE)


def read_shadows(root: str) -> t.List[Shadow]:
    """Programs, then units, each in the order of their names."""

    def at(path: str) -> str:
        return os.path.join(root, path[1:])

    programs = [f"{folder}/{name}" for folder in FOLDERS for name in PROGRAMS]
    found: t.List[Shadow] = [{"path": path, "masks": False} for path in programs if os.path.exists(at(path))]
    for path in (f"{folder}/{name}" for folder in UNITS for name in UNIT_NAMES):
        if os.path.islink(at(path)):
            masks = os.readlink(at(path)) == os.devnull
            found += [{"path": path, "masks": masks}] if masks else []
        elif os.path.exists(at(path)):
            found.append({"path": path, "masks": False})
        for drop_in in sorted(glob.glob(f"{glob.escape(at(path))}.d/*.conf")):
            if OTHER_PROGRAM.search(read_text(drop_in)):
                found.append({"path": f"{path}.d/{os.path.basename(drop_in)}", "masks": False})
    return found
