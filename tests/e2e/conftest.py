# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whole runs on a testbed (TESTBED_ID, default 3): first on a finished cluster, then on bare hosts.

A cluster that is there already is used as it is: a run of site makes it a finished one.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import pytest
from ansible_collections.ipu.fabric.tests.e2e.bed import Bed


@pytest.fixture(scope="session")
def bed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bed]:
    bed = Bed(os.environ.get("TESTBED_ID", "3"), tmp_path_factory.mktemp("artifacts"))
    bed.testbed("up")
    yield bed
    if not os.environ.get("KEEP"):
        bed.testbed("down")


@pytest.fixture(scope="session")
def unbroken(bed: Bed) -> dict[str, Any]:
    """The state that site leaves behind when nothing breaks it."""
    assert bed.play("site").code == 0
    return bed.state()


@pytest.fixture
def finished(bed: Bed, unbroken: dict[str, Any]) -> Bed:
    """A cluster that site has built."""
    return bed


@pytest.fixture(scope="session")
def bare(bed: Bed) -> Bed:
    """Fresh hosts that nothing was done to. There is no way back to the finished cluster."""
    bed.testbed("reset")
    return bed
