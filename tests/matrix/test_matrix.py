"""The tarball works where no checkout is, with each ansible-core on each Python that both support.

Only hosts are made up: a table answers for their modules.
"""

from __future__ import annotations

import functools
import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from ansible_collections.ipu.fabric.tests.matrix.cell import Cell, make_cell
from ansible_collections.ipu.fabric.tests.unit.fixtures.paths import ROOT
from ansible_collections.ipu.fabric.tests.unit.fixtures.playbooks import Run, play, stand_in
from ansible_collections.ipu.fabric.tests.unit.playbooks.test_api import GROUPS, answers

PYTHONS = {
    "2.18": ("3.11", "3.12", "3.13"),
    "2.19": ("3.11", "3.12", "3.13"),
    "2.20": ("3.12", "3.13"),
    "2.21": ("3.12", "3.13"),
}
every_cell = pytest.mark.parametrize(
    ("core", "python"), [(core, python) for core, pythons in PYTHONS.items() for python in pythons]
)
# What takes long runs once for each ansible-core.
every_core = pytest.mark.parametrize(("core", "python"), [(core, pythons[-1]) for core, pythons in PYTHONS.items()])
Cells = Callable[[str, str], Cell]
SETTINGS = {"fabric_probe_ports": False, "fabric_manage_kubernetes": False, "fabric_metrics": False}
IMPORT_ALL = """
import importlib, pathlib, sys
from ansible.plugins.loader import init_plugin_loader
init_plugin_loader([sys.argv[1]])
for path in sorted(pathlib.Path(sys.argv[1]).glob("ansible_collections/ipu/fabric/plugins/**/*.py")):
    importlib.import_module(".".join(path.relative_to(sys.argv[1]).with_suffix("").parts))
"""


def names(pattern: str) -> list[str]:
    return sorted({f"ipu.fabric.{path.stem}" for path in ROOT.glob(pattern) if path.stem != "__init__"})


@pytest.fixture(scope="module")
def cells(tmp_path_factory: pytest.TempPathFactory) -> Cells:
    """Each cell is made when the first test asks for it."""
    place = tmp_path_factory.mktemp("dist")
    galaxy = Path(sys.executable).parent / "ansible-galaxy"
    subprocess.run([galaxy, "collection", "build", "--output-path", place, ROOT], check=True)
    [tarball] = place.glob("*.tar.gz")
    return functools.cache(lambda core, python: make_cell(core, python, tarball, tmp_path_factory.mktemp("home")))


@every_cell
def test_code_is_imported(cells: Cells, core: str, python: str) -> None:
    cell = cells(core, python)
    cell.run("python", "-c", IMPORT_ALL, str(cell.collections))


@every_cell
def test_a_module_runs_on_a_host(cells: Cells, core: str, python: str) -> None:
    """On this machine, which it only looks at."""
    said = cells(core, python).run("ansible", "localhost", "--one-line", "--module-name", "ipu.fabric.host_info")
    assert "SUCCESS" in said


@every_core
def test_documentation(cells: Cells, core: str, python: str) -> None:
    listed = json.loads(cells(core, python).run("ansible-doc", "--list", "--json", "ipu.fabric"))
    assert sorted(listed) == names("plugins/modules/*.py")
    for kind, pattern in (("module", "plugins/modules/*.py"), ("filter", "plugins/filter/*.*"), ("role", "roles/*")):
        documented = json.loads(cells(core, python).run("ansible-doc", "--json", "--type", kind, *names(pattern)))
        assert sorted(documented) == names(pattern)


def play_in(cell: Cell, folder: Path, playbook: str, *arguments: str) -> Run:
    """Run a playbook with the cell's Ansible on hosts that a table answers for."""
    shutil.copytree(cell.collections, folder / "collections")
    stand_in(folder / "collections/ansible_collections/ipu/fabric")
    alone = {**cell.environment, "PYTHONPATH": ""}  # that of the tests leads to the checkout
    found = {**answers(), "memlock": {"*": {"restartable": []}}}
    run = play(folder, playbook, GROUPS, found, *arguments, environment=alone, python=str(cell.python), **SETTINGS)
    assert run.code == 0, run.text
    assert str(ROOT) not in run.text
    assert "DEPRECATION" not in run.text
    return run


@every_cell
def test_plan(cells: Cells, core: str, python: str, tmp_path: Path) -> None:
    run = play_in(cells(core, python), tmp_path, "ipu.fabric.plan")
    assert sorted(run.read("artifacts/plan.json")["hosts"]) == ["cp1", "w1", "w2"]
    assert (tmp_path / "artifacts/plan.html").exists()


@every_core
def test_site_in_check_mode(cells: Cells, core: str, python: str, tmp_path: Path) -> None:
    run = play_in(cells(core, python), tmp_path, "ipu.fabric.site", "--check", "--diff")
    assert "can be applied" in run.text
    assert {"helm_release", "kube_apply", "macvlan_network", "fabric_probe"} <= {call.module for call in run.calls}
    assert not (tmp_path / "artifacts").exists()
