# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Files of others that would run in place of those of packages."""

from __future__ import annotations

import pytest
from ansible_collections.ipu.fabric.plugins.module_utils._host.shadows import read_shadows


@pytest.mark.parametrize(
    ("path", "target", "found"),
    [
        ("usr/local/bin/kubelet", "", [("/usr/local/bin/kubelet", False)]),
        ("usr/local/bin/kubectl", "", []),  # an administrator's tool
        ("usr/bin/kubelet", "", []),
        ("etc/systemd/system/kubelet.service", "", [("/etc/systemd/system/kubelet.service", False)]),
        ("etc/systemd/system/containerd.service", "/dev/null", [("/etc/systemd/system/containerd.service", True)]),
        ("etc/systemd/system/containerd.service", "/lib/systemd/system/containerd.service", []),  # enabled by alias
        ("etc/systemd/system/containerd.service.d/10-memlock.conf", "", []),
    ],
)
def test_what_goes_before_packages(tmp_path, path, target, found):
    file = tmp_path / path
    file.parent.mkdir(parents=True)
    if target:
        file.symlink_to(target)
    else:
        file.touch()
    assert [(each["path"], each["masks"]) for each in read_shadows(str(tmp_path))] == found
