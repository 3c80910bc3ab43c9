# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The kubelet's configuration, changed only in the given keys. Pure functions.

Hosts have no YAML parser, so this runs on the controller, or where the API is accessed.
"""

from __future__ import annotations

import contextlib
import re
import typing as t

from .._common.result import FabricError
from .merge_values import merge_values

with contextlib.suppress(ImportError):  # run_module() reports a missing package, from the module's `libraries`
    import yaml

KIND = "KubeletConfiguration"
BOOTSTRAP = re.compile(r"(?:^|[{,])\s*[\"']?serverTLSBootstrap[\"']?\s*:\s*true\b", re.MULTILINE)


def asks_for_certificate(text: str) -> bool:
    """Whether a kubelet with this configuration requests its serving certificate from the cluster."""
    return BOOTSTRAP.search(text) is not None


def kubelet_config(text: str, settings: t.Mapping[str, t.Any]) -> str:
    """The text with these settings; unchanged if it has them all. An empty text stays empty."""
    if not text.strip() or not settings:
        return text
    try:
        config = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise unreadable(" ".join(str(error).split())) from error
    if not isinstance(config, dict) or config.get("kind") != KIND:
        raise unreadable(f"no {KIND}")
    merged = merge_values(config, settings)
    return text if merged == config else yaml.safe_dump(merged, default_flow_style=False, width=4096)


def unreadable(seen: str) -> FabricError:
    return FabricError(
        "The kubelet's configuration can't be changed.",
        "/var/lib/kubelet/config.yaml, or the ConfigMap kube-system/kubelet-config",
        seen,
        "Correct it by hand, then run again. It was not changed.",
        code="unusable-file",
    )
