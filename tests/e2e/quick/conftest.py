"""These tests go on where molecule's scenario default has left its cluster, whose pod network is Calico."""

from __future__ import annotations

from typing import Any

import pytest


@pytest.fixture(scope="session")
def variables() -> dict[str, Any]:
    return {"fabric_cni": "calico"}
