"""Estimates how long `make demo` takes, before it starts."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence

from . import programs
from .common import STORE, ProblemError

DEMO = 3  # minutes, with everything built
DEBIAN = 1  # minutes for the parts from Debian, in parallel with the compiler
COMPILE = {programs.CLUSTER: 12}  # minutes of one core
COMPILE_OTHER = 1


def here() -> str:
    """The estimate for this machine and what it has built."""
    if not shutil.which("go"):
        raise ProblemError("no `go` in PATH: the testbed's programs are built from Go modules; install Go 1.26")
    missing = [name for name in (programs.CLUSTER, *programs.SHORT) if not programs.is_built(name)]
    return estimate(missing, len(os.sched_getaffinity(0)), str(STORE))


def estimate(missing: Sequence[str], cores: int, store: str) -> str:
    """The estimate if these groups of programs must be compiled."""
    if not missing:
        return f"about {DEMO} minutes: all programs are compiled, in {store}"
    compiling = sum(COMPILE.get(name, COMPILE_OTHER) for name in missing) / cores
    minutes = round(DEMO + DEBIAN + compiling)
    named = "Kubernetes and more" if programs.CLUSTER in missing else ", ".join(missing)
    return (
        f"about {minutes} minutes on {cores} core{'s' * (cores > 1)}: {named} is compiled first, which takes"
        f" {round(compiling)} of them. It is kept in {store}; from then on the demo takes {DEMO} minutes"
    )
