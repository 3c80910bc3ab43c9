"""Two workers with Soft-RoCE. Everything on them takes long, so all tests use the cluster that the first one builds."""

from __future__ import annotations

import json
import os
from typing import Any

import pytest
from ansible_collections.ipu.fabric.tests.e2e.bed import Bed, Result

WORKERS = ("roce1", "roce2")


class Fabric:
    """The testbed with its workers, the plan that site has applied, and what the last proof said."""

    def __init__(self, bed: Bed) -> None:
        self.bed = bed
        self.plan: dict[str, Any] = {}

    def checks(self) -> list[dict[str, Any]]:
        checks: list[dict[str, Any]] = json.loads((self.bed.artifacts / "report.json").read_text())["checks"]
        return checks

    def failed(self) -> set[tuple[str, str]]:
        """Checks that failed, with their nodes."""
        return {
            (check["check"], node)
            for check in self.checks()
            if check["status"] == "failed"
            for node in [check.get("node") or "-".join(check.get("pair", ()))]
        }

    def why(self) -> str:
        """What was expected and what was seen, of checks that failed."""
        return json.dumps([check for check in self.checks() if check["status"] == "failed"], indent=1)

    def prove(self, **variables: Any) -> Result:
        """Observing the hosts as well would take as long again."""
        return self.bed.prove(self.plan, **variables)


@pytest.fixture(scope="session")
def fabric(bed: Bed) -> Fabric:
    bed.testbed("workers", os.environ.get("WORKERS", "2"))
    return Fabric(bed)


@pytest.fixture(scope="session")
def site(fabric: Fabric) -> Result:
    return fabric.bed.play("site")


@pytest.fixture
def proved(fabric: Fabric, site: Result) -> Fabric:
    """A cluster whose fabric was proved when it was built."""
    assert site.code == 0
    fabric.plan = fabric.plan or fabric.bed.plan()
    return fabric
