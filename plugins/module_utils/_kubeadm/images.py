# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Container images that a node is going to need."""

from __future__ import annotations

import subprocess
import typing as t

from ansible_collections.ipu.fabric.plugins.module_utils._common.result import outcome

if t.TYPE_CHECKING:
    from ansible.module_utils.basic import AnsibleModule


def pull_images(module: AnsibleModule) -> t.Dict[str, object]:
    """Pull images in parallel. What can't be pulled now the kubelet pulls later: only a warning."""
    ctr = module.get_bin_path("ctr")
    if not ctr:
        return {"changed": True}
    present = module.run_command([ctr, "--namespace", "k8s.io", "images", "list", "--quiet"])[1].split()
    wanted = [image for image in module.params["images"] if image not in present]
    if module.check_mode:
        return outcome({"images": sorted(present)}, {"images": sorted({*present, *wanted})})
    argv = [ctr, "--namespace", "k8s.io", "images", "pull", "--hosts-dir", "/etc/containerd/certs.d"]
    jobs = {
        image: subprocess.Popen(
            [*argv, image], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, universal_newlines=True
        )
        for image in wanted
    }
    pulled = []
    for image, job in jobs.items():
        message = job.communicate()[1]
        if job.returncode == 0:
            pulled.append(image)
        else:
            module.warn(f"Could not pull {image} yet: {message.strip()}")
    return outcome({"images": sorted(present)}, {"images": sorted({*present, *pulled})})
