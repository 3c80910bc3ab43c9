"""The tarball works where no checkout is, with each ansible-core on each Python that both support.

Only hosts are made up: a table answers for their modules.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from ansible_collections.ipu.fabric.tests.matrix.cell import Cells, ended_well, play_in
from ansible_collections.ipu.fabric.tests.unit.fixtures.paths import ROOT

PYTHONS = {
    "core-2.18": ("3.11", "3.12", "3.13"),
    "core-2.19": ("3.11", "3.12", "3.13"),
    "core-2.20": ("3.12", "3.13"),
    "core-2.21": ("3.12", "3.13"),
}
every_cell = pytest.mark.parametrize(
    ("core", "python"), [(core, python) for core, pythons in PYTHONS.items() for python in pythons]
)
# What takes long runs once for each ansible-core.
every_core = pytest.mark.parametrize(("core", "python"), [(core, pythons[-1]) for core, pythons in PYTHONS.items()])
IMPORT_ALL = """
import importlib, pathlib, sys
from ansible.plugins.loader import init_plugin_loader
init_plugin_loader([sys.argv[1]])
for path in sorted(pathlib.Path(sys.argv[1]).glob("ansible_collections/ipu/fabric/plugins/**/*.py")):
    importlib.import_module(".".join(path.relative_to(sys.argv[1]).with_suffix("").parts))
"""
# What a host has named, such as a V-IPU controller, is an option of a module that other hosts run.
NO_TEMPLATE = """
import sys
from ansible.parsing.dataloader import DataLoader
from ansible.plugins.loader import init_plugin_loader
from ansible.template import Templar
init_plugin_loader([sys.argv[1]])
from ansible_collections.ipu.fabric.plugins.plugin_utils._delegation import untemplated
said = {"connect": [{"host": "{{ 6 * 7 }}"}]}
assert Templar(loader=DataLoader(), variables={}).template(untemplated(said)) == said
"""


def names(pattern: str) -> list[str]:
    return sorted({f"ipu.fabric.{path.stem}" for path in ROOT.glob(pattern) if path.stem != "__init__"})


@every_cell
def test_code_is_imported(cells: Cells, core: str, python: str) -> None:
    cell = cells(core, python)
    cell.run("python", "-c", IMPORT_ALL, str(cell.collections))


@every_core
def test_what_a_host_says_is_no_template(cells: Cells, core: str, python: str) -> None:
    cell = cells(core, python)
    cell.run("python", "-c", NO_TEMPLATE, str(cell.collections))


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


@every_cell
def test_plan(cells: Cells, core: str, python: str, tmp_path: Path) -> None:
    run = ended_well(play_in(cells(core, python), tmp_path, "ipu.fabric.plan"))
    assert sorted(run.read("artifacts/plan.json")["hosts"]) == ["cp1", "w1", "w2"]
    assert (tmp_path / "artifacts/plan.html").exists()


@every_core
def test_site_in_check_mode(cells: Cells, core: str, python: str, tmp_path: Path) -> None:
    run = ended_well(play_in(cells(core, python), tmp_path, "ipu.fabric.site", "--check", "--diff"))
    assert "can be applied" in run.text
    assert {"helm_release", "kube_apply", "macvlan_network", "fabric_probe"} <= {call.module for call in run.calls}
    assert [path.name for path in (tmp_path / "artifacts").iterdir()] == ["admin.conf"]  # the site's own
