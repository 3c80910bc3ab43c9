from __future__ import annotations

import re

from ansible_collections.ipu.fabric.plugins.plugin_utils._site_variables import site_variables
from ansible_collections.ipu.fabric.tests.unit.fixtures.paths import ROOT

# Modules, and groups that plays make.
OTHERS = {path.stem for path in (ROOT / "plugins/modules").glob("fabric_*.py")} | {
    "fabric_upgrade_control_planes",
    "fabric_upgrade_workers",
}


def test_they_are_all_that_roles_and_playbooks_read() -> None:
    files = [path for folder in ("roles", "playbooks") for path in (ROOT / folder).rglob("*.yml")]
    used = {name for path in files for name in re.findall(r"\bfabric_[a-z0-9_]+", path.read_text(encoding="utf-8"))}
    assert used - OTHERS == set(site_variables()) - OTHERS
