# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Container images by name: those that manifests use, and how a bundle stores them."""

from __future__ import annotations

import re
import typing as t

Object = t.Dict[str, t.Any]

# A registry with a dot or a port, a path, and a tag or a digest: nothing else in a manifest looks like that.
_FULL = re.compile(
    r"(?:[\w-]+\.[\w.-]+(?::\d+)?|[\w.-]+:\d+)(?:/[\w.-]+)+(?::[\w.-]+(?:@sha256:[0-9a-f]{64})?|@sha256:[0-9a-f]{64})"
)
_ANY = re.compile(r"[a-z0-9][\w./:@-]*")
# Images that kubeadm lists and that only control planes run.
CONTROL_PLANE = ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "etcd")


def normal_name(image: str) -> str:
    """An image as containerd names it: with its registry, and with a tag or a digest."""
    first, _slash, rest = image.partition("/")
    if not rest:
        image = f"docker.io/library/{image}"
    elif not ("." in first or ":" in first or first == "localhost"):
        image = f"docker.io/{image}"
    path, at, digest = image.partition("@")
    if at:  # a tag beside a digest has no effect
        head, _slash, last = path.rpartition("/")
        return f"{head}/{last.partition(':')[0]}@{digest}"
    return image if ":" in path.rpartition("/")[2] else f"{image}:latest"


def registry_of(image: str) -> str:
    return normal_name(image).partition("/")[0]


def archive_of(image: str, architecture: str) -> str:
    """The path of an image's archive in a bundle."""
    return f"images/{architecture}/{re.sub(r'[^A-Za-z0-9._-]', '_', image)}.tar"


def for_control_planes(image: str) -> bool:
    """Whether only control planes run this image, one that kubeadm lists."""
    return image.rpartition("/")[2].partition(":")[0] in CONTROL_PLANE


def _in_parts(item: Object) -> str:
    """An image split as operators expect it: repository, image, and version or tag."""
    version = item.get("version") or item.get("tag")
    parts = (item.get("repository"), item.get("image"), version)
    if not all(isinstance(part, str) and part for part in parts):
        return ""
    repository, image, version = map(str, parts)
    return f"{repository.rstrip('/')}/{image}{'@' if version.startswith('sha256:') else ':'}{version}"


def _in_arguments(words: t.Sequence[t.Any]) -> t.Set[str]:
    """Images in program options, recognized by the option names: --launcher-image=a/b --launcher-image-tag=1."""
    options = dict(
        word.lstrip("-").split("=", 1) for word in words if isinstance(word, str) and re.match("--?[^=]+=", word)
    )
    found = set()
    for name, value in options.items():
        if name.endswith("image") and _ANY.fullmatch(value):
            tag = options.get(f"{name}-tag", "")
            found.add(normal_name(f"{value}:{tag}" if tag else value))
    return found


def find_images(document: t.Any) -> t.Set[str]:
    """The images in a rendered object: in a pod, or in an operator's resource, environment or arguments."""
    if isinstance(document, str):
        words = [document, document.partition("=")[2] if document.startswith("-") else ""]
        return {normal_name(word) for word in words if _FULL.fullmatch(word)}
    if isinstance(document, list):
        return _in_arguments(document).union(*map(find_images, document))
    if not isinstance(document, dict):
        return set()
    value = document.get("value")
    if str(document.get("name", "")).endswith("IMAGE") and isinstance(value, str) and _ANY.fullmatch(value):
        return {normal_name(value)}
    if document.get("kind") == "CustomResourceDefinition":  # images in its examples are not used
        return set()
    whole = _in_parts(document)
    if whole:
        return {normal_name(whole)}
    found = set()
    for key, value in document.items():
        if key == "image" and isinstance(value, str) and _ANY.fullmatch(value):
            found.add(normal_name(value))
        # Each host completes the driver's tag with its distribution and kernel.
        elif not (key in ("driver", "ofedDriver") and isinstance(value, dict) and _in_parts(value)):
            found |= find_images(value)
    return found


def always_pulled(document: t.Any) -> t.Set[str]:
    """Images that a kubelet always checks with a registry: offline, such a container does not start."""
    if isinstance(document, list):
        return set().union(*map(always_pulled, document)) if document else set()
    if not isinstance(document, dict):
        return set()
    found = set().union(*(always_pulled(value) for value in document.values())) if document else set()
    image, policy = document.get("image"), document.get("imagePullPolicy")
    if isinstance(image, str) and ("name" in document or policy):
        latest = _ANY.fullmatch(image) and normal_name(image).endswith(":latest")
        if policy == "Always" or (latest and not policy):
            found.add(normal_name(image))
    return found
