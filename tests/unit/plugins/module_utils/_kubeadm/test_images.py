# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Images that are pulled ahead."""

from __future__ import annotations

from ansible_collections.ipu.fabric.plugins.module_utils._common.command import Done
from ansible_collections.ipu.fabric.plugins.module_utils._kubeadm import images


def test_images_that_are_there_are_not_pulled(monkeypatch, make_module):
    pulled = []

    def pull(argv, _timeout):
        pulled.append(argv[-1])
        return Done(1 if "missing" in argv[-1] else 0, "", "not found\n")

    monkeypatch.setattr(images, "output_of", lambda *_: "pause:3.10.1\n")
    monkeypatch.setattr(images, "run_program", pull)
    module = make_module("images", images=["pause:3.10.1", "kube-proxy:v1", "missing:v1"])
    result = module.apply()
    assert result["changed"]
    assert result["diff"]["after"] == {"images": ["kube-proxy:v1", "pause:3.10.1"]}
    assert module.warnings == ["Could not pull missing:v1 yet: not found"]
    assert sorted(pulled) == ["kube-proxy:v1", "missing:v1"]
    assert not make_module("images", images=["pause:3.10.1"]).apply()["changed"]
