"""Ansible reads all filter files in each worker that uses one of them: they load what they need when it is needed."""

import os
import subprocess
import sys

from ansible_collections.ipu.fabric.tests.unit.fixtures.paths import ROOT

SCRIPT = """
import importlib, sys
for name in {names}:
    importlib.import_module("ansible_collections.ipu.fabric.plugins.filter." + name).FilterModule().filters()
ours = [name.partition(".fabric.plugins.")[2] for name in sys.modules if ".fabric.plugins." in name]
print(*(name for name in ours if "_utils._" in name))
"""
LOADED = {
    "module_utils._common",
    "module_utils._common.result",
    "module_utils._common.secrets",
    "module_utils._common.text",
    "module_utils._model",
    "module_utils._model.failure",
    "plugin_utils._filters",
}


def test_filters_load_no_other_code_of_the_collection():
    names = sorted(path.stem for path in (ROOT / "plugins/filter").glob("*.py"))
    command = [sys.executable, "-c", SCRIPT.format(names=names)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert set(done.stdout.split()) == LOADED
