# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Manifests of Kubernetes objects that are downloaded or provided as files."""

from __future__ import annotations

import contextlib
import hashlib
import typing as t

from .._common.result import FabricError
from .._kube.query import Object

with contextlib.suppress(ImportError):  # Ansible itself needs it
    import yaml


def check_manifest(text: str, url: str, sha256: str, variable: str) -> None:
    """Raise FabricError unless the digest matches. Without a digest, TLS or a local path is enough."""
    digest, wanted = hashlib.sha256(text.encode()).hexdigest(), sha256.lower().replace("sha256:", "")
    if digest != wanted and (wanted or url.startswith("http://")):
        raise FabricError(
            f"{url} is not the file that was expected.",
            variable,
            f"its SHA-256 is {digest}, that of {variable} is {wanted or 'empty, but a URL without TLS needs one'}",
            f"Check the file, then set {variable}.",
            code="wrong-content",
        )


def parse_manifest(text: str) -> t.List[Object]:
    return [document for document in yaml.safe_load_all(text) if document]
