"""Whole runs on a testbed (TESTBED_ID, default 3). `quick` can go on where molecule has left a finished cluster.

Each test asks for the hosts that it needs, so the order does not change a result. It does change the time: a cluster
takes minutes, so tests that begin with bare hosts come after all that use a cluster.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import pytest
from ansible_collections.ipu.fabric.tests.e2e.bed import Bed

BARE_HOSTS = {
    "bare",
    "broken",
    "bundle",
    "furnished",
    "handmade",
    "loaded",
    "three",
}  # fixtures that take the cluster away


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: not BARE_HOSTS.isdisjoint(getattr(item, "fixturenames", ())))


@pytest.fixture(scope="session")
def variables() -> dict[str, Any]:
    """What every playbook gets besides the inventory."""
    return {}


@pytest.fixture(scope="session")
def bed(tmp_path_factory: pytest.TempPathFactory, variables: dict[str, Any]) -> Iterator[Bed]:
    bed = Bed(os.environ.get("TESTBED_ID", "3"), tmp_path_factory.mktemp("artifacts"), variables)
    bed.testbed("up")
    yield bed
    if not os.environ.get("KEEP"):
        bed.testbed("down")


@pytest.fixture(scope="session")
def unbroken(bed: Bed) -> dict[str, Any]:
    """The state that site leaves behind when nothing breaks it, taken before the first test changes something."""
    bed.finish()
    return bed.state()


@pytest.fixture
def finished(bed: Bed, unbroken: dict[str, Any]) -> Bed:
    """A cluster that site has built; an existing one is used."""
    bed.finish()
    return bed


@pytest.fixture
def bare(bed: Bed) -> Bed:
    """Fresh hosts that nothing was done to."""
    bed.fresh()
    return bed
