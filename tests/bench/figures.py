"""A measurement and its baseline in the same run: the ratio is the software's, the seconds are the machine's too."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import NamedTuple


class Figure(NamedTuple):
    """What was measured against what."""

    what: str
    seconds: float
    baseline: str
    baseline_seconds: float

    @property
    def ratio(self) -> float:
        return self.seconds / self.baseline_seconds


def best(work: Callable[[], object], runs: int = 3) -> float:
    """Seconds of the quickest run: the others had company."""
    times = []
    for _run in range(runs):
        start = time.monotonic()
        work()
        times.append(time.monotonic() - start)
    return min(times)


def table(figures: list[Figure]) -> str:
    lines = []
    for figure in figures:
        lines += [
            f"{figure.what}",
            f"  {figure.seconds:9.2f} s   ratio {figure.ratio:9.3f}",
            f"  {figure.baseline_seconds:9.2f} s   {figure.baseline}",
        ]
    return "\n".join(lines)
