# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""kubectl on a host: it connects to the API server directly, whatever proxy the host's environment sets, and leaves no
cache behind."""

from __future__ import annotations

import os
import typing as t

from .._common.command import Done, run_program
from .._common.helm_record import Object

# Go treats an empty value as unset.
DIRECT = {name: "" for word in ("http_proxy", "https_proxy", "all_proxy") for name in (word, word.upper())}
# By default it caches API discovery in ~/.kube/cache. It ignores that it can't write here.
NO_CACHE = {"KUBECACHEDIR": os.devnull}

Ask = t.Callable[[str], Object]  # returns an object of the API, empty if it does not exist


def run_kubectl(
    kubeconfig: str,
    *arguments: str,
    program: t.Sequence[str] = ("kubectl",),
    request_timeout: str = "30s",  # 0 for none
    timeout: float = 30,
    data: str = "",
) -> Done:
    """Run it with a kubeconfig. `timeout` is in seconds; `data` is its standard input."""
    argv = [*program, "--kubeconfig", kubeconfig, "--request-timeout", request_timeout, *arguments]
    return run_program(argv, timeout, data=data, env={**DIRECT, **NO_CACHE})
