# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Digests as people write them, and images pinned by a digest."""

from __future__ import annotations

import re
import typing as t

from .result import FabricError

SHA256 = re.compile(r"(?:sha256:)?([0-9a-fA-F]{64})")


def plain_digest(text: str) -> str:
    """The 64 digits of a digest, in lower case, with or without the prefix sha256:; empty for anything else."""
    match = SHA256.fullmatch(text.strip())
    return match[1].lower() if match else ""


def require_digest(text: str, where: str) -> str:
    """The digits of a given digest; empty if none was given."""
    digits = plain_digest(text)
    if text.strip() and not digits:
        raise FabricError(
            "A digest is not valid.",
            where,
            f"'{text}'",
            "Write the 64 digits of a SHA-256, or leave it empty.",
            code="invalid-input",
        )
    return digits


def full_image(image: str) -> str:
    """An image with its registry, as containerd names it: nginx:1 is docker.io/library/nginx:1."""
    first, slash, _rest = image.partition("/")
    if not slash:
        return f"docker.io/library/{image}"
    return image if "." in first or ":" in first or first == "localhost" else f"docker.io/{image}"


def image_tag(image: str) -> str:
    """The tag of an image; empty without one."""
    return image.partition("@")[0].rpartition("/")[2].partition(":")[2]


def without_digest(image: str) -> str:
    """The name and tag of an image."""
    return image.partition("@")[0]


def pinned_image(image: str, digests: t.Mapping[str, str]) -> str:
    """An image with its tag and its digest in the table; unchanged if it has a digest, or the table has none."""
    digest = "" if "@" in image else digests.get(image) or digests.get(full_image(image), "")
    return f"{image}@{digest}" if digest else image


def pin_images(value: object, digests: t.Mapping[str, str]) -> object:
    """Pin an image, a list of images, or objects: in those, an `image` with a `name` beside it is a container's."""
    if isinstance(value, str):
        return pinned_image(value, digests)
    if isinstance(value, list):
        return [pin_images(item, digests) for item in value]
    return _pin_object(value, digests)


def _pin_object(value: object, digests: t.Mapping[str, str]) -> object:
    if isinstance(value, list):
        return [_pin_object(item, digests) for item in value]
    if not isinstance(value, dict):
        return value
    pinned = {key: _pin_object(item, digests) for key, item in value.items()}
    image = pinned.get("image")
    if isinstance(image, str) and "name" in pinned:
        pinned["image"] = pinned_image(image, digests)
    return pinned
