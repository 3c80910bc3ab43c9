"""The collection as a user has it: its tarball, installed into an empty place, under one ansible-core on one Python."""

from __future__ import annotations

import dataclasses
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.ipu.fabric.tests.unit.fixtures.paths import ROOT
from ansible_collections.ipu.fabric.tests.unit.fixtures.playbooks import Run, Stage, make_stage, play, stand_in
from ansible_collections.ipu.fabric.tests.unit.playbooks.test_api import GROUPS, answers

LIMIT = 600  # seconds for a command on a busy machine
# The collection that ours depends on, at the release that requirements.txt pins.
DEPENDENCY = "ansible_collections/kubernetes/core"
SETTINGS = {
    "fabric_probe_ports": False,
    "fabric_probe_sources": False,
    "fabric_manage_kubernetes": False,
    "fabric_metrics": False,
}
ANSWERS = {**answers(), "memlock": {"*": {"restartable": []}}}


@dataclasses.dataclass(frozen=True)
class Cell:
    """A virtual environment with ansible-core, and a home without anything else."""

    python: Path
    home: Path

    @property
    def collections(self) -> Path:
        """Where Ansible installs and looks for collections when nothing is configured."""
        return self.home / ".ansible/collections"

    @property
    def environment(self) -> dict[str, str]:
        path = f"{self.python.parent}:/usr/bin:/bin"
        return {"HOME": str(self.home), "PATH": path, "LANG": "C.UTF-8", "ANSIBLE_NOCOLOR": "true"}

    def run(self, *command: str) -> str:
        """What a command of the virtual environment says; it must end well."""
        done = subprocess.run(
            [self.python.parent / command[0], *command[1:]],
            cwd=self.home,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=LIMIT,
        )
        assert done.returncode == 0, f"{command}\n{done.stdout[-5000:]}{done.stderr[-5000:]}"
        return done.stdout


def make_cell(core: str, version: str, tarball: Path, home: Path, *more: str) -> Cell:
    """Install the tarball beside this ansible-core; skips where this Python is not on the machine."""
    packages = f"{core} ansible-core jmespath kubernetes netaddr {' '.join(more)}"
    script = f'. hack/lib.sh; python=$(python_of {version}); [[ -n $python ]] || exit 77; venv_for "$python" {packages}'
    command = ["bash", "-c", script, "hack/lib.sh"]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode == 77:
        pytest.skip(f"no Python {version} here")
    assert done.returncode == 0, f"no virtual environment for {core}; what was wrong is shown above"
    cell = Cell(Path(done.stdout.strip()) / "bin/python", home)
    major_minor = f"python{sys.version_info.major}.{sys.version_info.minor}"
    pinned = ROOT / f".cache/venv/lib/{major_minor}/site-packages" / DEPENDENCY
    shutil.copytree(pinned, cell.collections / DEPENDENCY)
    cell.run("ansible-galaxy", "collection", "install", "--offline", str(tarball))
    return cell


Cells = Callable[..., Cell]  # by release of ansible-core, Python, and more packages


def answered(cell: Cell, folder: Path) -> dict[str, Any]:
    """The options of a run with the cell's Ansible, in which a table answers for hosts and their modules."""
    shutil.copytree(cell.collections, folder / "collections")
    stand_in(folder / "collections/ansible_collections/ipu/fabric")
    alone = {**cell.environment, "PYTHONPATH": ""}  # that of the tests leads to the checkout
    return {"environment": alone, "python": str(cell.python)}


def stage_in(cell: Cell, folder: Path) -> Stage:
    return make_stage(folder, GROUPS, ANSWERS, SETTINGS, **answered(cell, folder))


def play_in(cell: Cell, folder: Path, playbook: str, *arguments: str) -> Run:
    return play(folder, playbook, GROUPS, ANSWERS, *arguments, **answered(cell, folder), **SETTINGS)


def ended_well(run: Run) -> Run:
    """The same run, which used nothing of the checkout."""
    assert run.code == 0, run.text
    assert str(ROOT) not in run.text
    assert "DEPRECATION" not in run.text, run.text
    return run
