"""Properties try the same examples in each run, so that a run fails for what was changed, and not by chance or load.

HYPOTHESIS_PROFILE=search tries new ones. FIRST_CASES=1, as `make test` sets it, runs of each test that starts
ansible-playbook the first case only: a case takes seconds.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import settings

settings.register_profile("same", derandomize=True, deadline=None)
settings.register_profile("search", deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "same"))

PLAYS = [Path(__file__).parent / name for name in ("playbooks", "roles")]


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if "FIRST_CASES" not in os.environ:
        return
    seen, left = set[tuple[Path, str]](), list[pytest.Item]()
    for item in [item for item in items if item.path.parent in PLAYS]:
        test = (item.path, getattr(item, "originalname", item.name))
        left += [item] if test in seen else []
        seen.add(test)
    items[:] = [item for item in items if item not in left]
    config.hook.pytest_deselected(items=left)
