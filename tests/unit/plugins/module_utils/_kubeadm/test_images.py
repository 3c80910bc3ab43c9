# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Images that are pulled ahead."""

from __future__ import annotations

from ansible_collections.ipu.fabric.plugins.module_utils._kubeadm import images


class Job:
    def __init__(self, argv, **_options):
        self.returncode = 1 if "missing" in argv[-1] else 0

    def communicate(self):
        return "", "not found"


def test_images_that_are_there_are_not_pulled(monkeypatch, make_module):
    monkeypatch.setattr(images.subprocess, "Popen", Job)

    answers = {"--namespace": "pause:3.10.1\n"}
    module = make_module("images", printed=answers, images=["pause:3.10.1", "kube-proxy:v1", "missing:v1"])
    result = module.apply()
    assert result["changed"]
    assert result["diff"]["after"] == {"images": ["kube-proxy:v1", "pause:3.10.1"]}
    assert module.warnings == ["Could not pull missing:v1 yet: not found"]
    assert not make_module("images", printed=answers, images=["pause:3.10.1"]).apply()["changed"]
