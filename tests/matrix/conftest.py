"""The tarball, and a place for each set of packages that it is installed beside."""

from __future__ import annotations

import functools
import subprocess
import sys
from pathlib import Path

import pytest
from ansible_collections.ipu.fabric.tests.matrix.cell import Cells, make_cell
from ansible_collections.ipu.fabric.tests.unit.fixtures.paths import ROOT


@pytest.fixture(scope="session")
def cells(tmp_path_factory: pytest.TempPathFactory) -> Cells:
    """Each cell is made when the first test asks for it."""
    place = tmp_path_factory.mktemp("dist")
    galaxy = Path(sys.executable).parent / "ansible-galaxy"
    subprocess.run([galaxy, "collection", "build", "--output-path", place, ROOT], check=True)
    [tarball] = place.glob("*.tar.gz")
    return functools.cache(
        lambda core, python, *more: make_cell(core, python, tarball, tmp_path_factory.mktemp("home"), *more)
    )
