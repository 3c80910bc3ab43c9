# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Container images that a node will need."""

from __future__ import annotations

import typing as t
from concurrent.futures import ThreadPoolExecutor

from .._common.command import Done, output_of, run_program
from .._common.result import outcome
from .._host.cri import DOCKER

if t.TYPE_CHECKING:
    from ansible.module_utils.basic import AnsibleModule

CTR = ("ctr", "--namespace", "k8s.io")  # the namespace of the kubelet's containers and images
PULL_SECONDS = 600
INSPECT_SECONDS = 60


def stored_name(image: str) -> str:
    """The name that the kubelet uses to look up an image: without the tag if there is a digest."""
    path, slash, name = image.rpartition("/")
    name, at, digest = name.partition("@")
    return f"{path}{slash}{name.partition(':')[0]}@{digest}" if at else image


def docker_images(names: t.Iterable[str]) -> t.List[str]:
    """The names under which Docker finds an image. Docker lists them in short form, so each name is looked up."""
    command = ("docker", "image", "inspect", "--format", "{{.Id}}")
    return [name for name in names if run_program((*command, name), INSPECT_SECONDS).rc == 0]


def why_not_pulled(image: str, done: Done) -> str:
    """The last line of the output, which is the error, worded alike for images that fail alike."""
    if done.rc is None:
        return f"timed out after {PULL_SECONDS} s"
    return "".join(done.err.strip().splitlines()[-1:]).replace(image, "the image") or f"exit code {done.rc}"


def pull_images(module: AnsibleModule) -> t.Dict[str, object]:
    """Pull images in parallel. A failure is only a warning: the kubelet pulls the image later."""
    has_docker = module.params["runtime"] == DOCKER
    if not module.get_bin_path("docker" if has_docker else "ctr"):
        return {"changed": True}
    names = [stored_name(image) for image in module.params["images"]]
    present = docker_images(names) if has_docker else output_of(*CTR, "images", "list", "--quiet").split()
    wanted = [image for image in names if image not in present]
    if module.check_mode or not wanted:
        return outcome({"images": sorted(present)}, {"images": sorted({*present, *wanted})})
    pull = [*CTR, "images", "pull", "--hosts-dir", "/etc/containerd/certs.d"]
    pull = ["docker", "pull", "--quiet"] if has_docker else pull
    with ThreadPoolExecutor(len(wanted)) as pool:
        ends = list(pool.map(lambda image: run_program([*pull, image], PULL_SECONDS), wanted))
    left: t.Dict[str, t.List[str]] = {}
    for image, done in zip(wanted, ends):
        if done.rc != 0:
            left.setdefault(why_not_pulled(image, done), []).append(image)
    for seen, images in left.items():
        module.warn(f"Images not pulled yet; the kubelet will try again: {', '.join(images)}. Seen: {seen}")
    pulled = [image for image, done in zip(wanted, ends) if done.rc == 0]
    return outcome({"images": sorted(present)}, {"images": sorted({*present, *pulled})})
