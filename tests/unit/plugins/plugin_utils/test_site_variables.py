from __future__ import annotations

import re

from ansible_collections.ipu.fabric.plugins.plugin_utils._site_variables import (
    passed_variables,
    role_variables,
    site_variables,
)
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


def test_role_variables_that_site_sets_name_what_to_set_instead() -> None:
    passed = passed_variables()
    known = {name for name, instead in passed.items() if name in role_variables()}
    assert set(passed) == known
    assert {instead.partition(".")[0] for instead in passed.values() if instead} <= site_variables()
    expected = {
        "kubernetes_version": "fabric_kubernetes_version",
        "kubernetes_pod_cidr": "fabric_pod_cidr",
        "kubernetes_registry_mirror": "fabric_mirror.registry",
        "network_operator_chart_repo_url": "fabric_mirror.charts.network_operator",
        "network_operator_ofed_driver": "fabric_ofed",
        "kubernetes_taints": "",
    }
    assert {name: passed[name] for name in expected} == expected
    assert not {"kubernetes_kubelet_config", "verify_timeout", "ipu_operator_values"} & passed.keys()
