from __future__ import annotations

import re
import typing as t

from ansible_collections.ipu.fabric.plugins.plugin_utils._site_variables import (
    passed_variables,
    role_variables,
    site_variables,
    templates_in,
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


# Of operators: what does not change which charts and images they need.
APART = re.compile(
    "_(helm|kubeconfig|image_digests|start_pod|networks|prune|rdma_nodes|restart|nic_groups|vipu_controllers|allow_.*)$"
)


def test_a_bundle_has_what_site_installs() -> None:
    """A bundle for networks with VFs lacked the images of the SR-IOV operator."""
    in_bundle, in_site = templates_in("bundle.yml"), templates_in("plays/fabric.yml")
    parts = ("network_operator_", "spiderpool_", "whereabouts_", "gpu_operator_", "ipu_operator_")
    wanted = {name: text for name, text in in_site.items() if name.startswith(parts) and not APART.search(name)}
    other = {
        name: (text, in_bundle.get(name)) for name, text in wanted.items() if plain(in_bundle.get(name)) != plain(text)
    }
    assert other == {}


def plain(text: t.Optional[str]) -> str:
    """A template, whatever the playbook calls the digests of charts."""
    return str(text).replace("_fabric_nodes.chart_sha256", "_bundle_sha256")
