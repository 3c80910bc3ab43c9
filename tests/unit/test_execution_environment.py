"""The image with the collection: its build context, what a build finds in the collection, and settings of navigator."""

import importlib.resources
import json
import re
import subprocess
import sys
from pathlib import Path

import jsonschema
import yaml
from ansible_collections.ipu.fabric.plugins.filter.start_problem import API_PACKAGES, PACKAGES
from ansible_collections.ipu.fabric.tests.unit.fixtures.paths import ROOT

EXAMPLE = ROOT / "docs/examples/execution-environment"
OF_ANSIBLE = {"cryptography"}  # a package that ansible-core itself needs


def load(path):
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def builder(*arguments):
    program = Path(sys.executable).parent / "ansible-builder"
    done = subprocess.run([program, *arguments], capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode()


def from_collection():
    """Python and system packages that a build finds in the collection."""
    found = yaml.safe_load(builder("introspect", str(ROOT / ".cache/collections")))
    python, system = ([line.partition("  # from ")[0] for line in found[kind]] for kind in ("python", "system"))
    return python, system


def test_build_context(tmp_path):
    definition = EXAMPLE / "execution-environment.yml"
    builder("create", "--file", str(definition), "--context", str(tmp_path), "--output-filename", "Containerfile")
    [collection] = load(tmp_path / "_build/requirements.yml")["collections"]
    assert collection == {"name": "ipu.fabric", "version": load(ROOT / "galaxy.yml")["version"]}
    steps = (tmp_path / "Containerfile").read_text(encoding="utf-8")
    base = load(definition)["images"]["base_image"]["name"]
    assert f'ARG EE_BASE_IMAGE="{base}"' in steps  # which --build-arg replaces
    for step in (
        "ansible-galaxy collection install",
        "introspect.py introspect",
        "ansible-core~=2.",
        "ansible-runner~=",
    ):
        assert step in steps


def test_a_build_installs_what_the_plan_asks_for():
    packages = {re.split("[<>=]", line)[0] for line in from_collection()[0]}
    assert packages | OF_ANSIBLE == {*PACKAGES, *API_PACKAGES}
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert set(re.search(r"^pip install (.+)$", readme, re.MULTILINE)[1].split()) == packages | {"ansible-core"}


def test_a_build_installs_ssh():
    assert from_collection()[1] == ["openssh-client [platform:dpkg]", "openssh-clients [platform:rpm]"]


def test_settings_of_navigator():
    """ansible-lint has a copy of the schema of ansible-navigator."""
    schema = importlib.resources.files("ansiblelint.schemas") / "ansible-navigator-config.json"
    jsonschema.validate(load(EXAMPLE / "ansible-navigator.yml"), json.loads(schema.read_text(encoding="utf-8")))
