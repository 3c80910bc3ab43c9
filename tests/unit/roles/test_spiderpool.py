# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the role spiderpool asks of the chart and of the cluster."""

from __future__ import annotations

import typing as t

import pytest
import yaml
from ansible_collections.ipu.fabric.tests.unit.fixtures.paths import ROOT
from ansible_collections.ipu.fabric.tests.unit.fixtures.templates import evaluate

Data = t.Dict[str, t.Any]
V4, V6 = {"subnet": {"cidr": "172.16.11.0/24"}}, {"subnet": {"cidr": "fd00:11::/64"}}


def value(expression: str, **variables: t.Any) -> t.Any:
    return evaluate("spiderpool", expression, __spiderpool_cluster={"api_groups": [], "nodes": []}, **variables)


@pytest.mark.parametrize(
    ("values", "name"), [({}, "default"), ({"ipam": {}}, "default"), ({"coordinator": {"name": "site"}}, "site")]
)
def test_no_pod_starts_before_the_coordinator_is_synced(values: Data, name: str) -> None:
    found = value("_spiderpool_objects", spiderpool_values=values)
    (coordinator,) = [each for each in found if each["kind"] == "SpiderCoordinator"]
    assert coordinator["api_version"] == "spiderpool.spidernet.io/v2beta1"
    assert (coordinator["name"], coordinator["field"], coordinator["value"]) == (name, "status.phase", "Synced")


def test_the_webhook_leaves_its_own_controller_and_the_pod_network_alone() -> None:
    variables = {"spiderpool_namespace": "netops", "spiderpool_inject_namespaces_exclude": ["monitoring"]}
    excluded = value("_spiderpool_settings", **variables)["inject_namespaces_exclude"]
    assert excluded == sorted(  # the same in each run, or the release would be upgraded
        ["monitoring", "netops", "kube-system", "kube-flannel", "tigera-operator", "calico-system", "calico-apiserver"]
    )


@pytest.mark.parametrize(
    ("networks", "ipv6"), [([], False), ([V4], False), ([V4, V6], True), ([V4, {"subnet": {}}], False)]
)
def test_hosts_forward_ipv6_only_for_networks_that_have_it(networks: t.List[Data], ipv6: bool) -> None:
    assert value("_spiderpool_settings", spiderpool_networks=networks)["ipv6"] is ipv6


@pytest.mark.parametrize(("prune", "unplanned"), [(False, "check"), (True, "remove")])
def test_networks_that_left_the_plan(prune: bool, unplanned: str) -> None:
    assert value("_spiderpool_unplanned", spiderpool_prune=prune) == unplanned


def test_they_go_while_the_controller_runs_and_before_a_planned_pool_is_to_have_their_addresses() -> None:
    tasks = yaml.safe_load((ROOT / "roles/spiderpool/tasks/present.yml").read_text(encoding="utf-8"))
    modules = [key for task in tasks for key in task if key.startswith("ipu.fabric.")]
    waited, pruned, applied = (
        modules.index(f"ipu.fabric.{name}") for name in ("kube_wait", "spiderpool", "kube_apply")
    )
    assert waited < pruned < applied


RAIL: Data = {"name": "rail", "namespace": "jobs", "hosts": ["w1"]}


def test_the_role_ends_with_pods_that_start() -> None:
    tasks = yaml.safe_load((ROOT / "roles/spiderpool/tasks/present.yml").read_text(encoding="utf-8"))
    assert tasks[-1]["ipu.fabric.kube_wait"]["pods"] == "{{ _spiderpool_pods }}"
    assert tasks[-1]["when"] == "spiderpool_start_pod | bool"
    assert value("_spiderpool_pods", spiderpool_networks=[{**RAIL, "mtu": 9000}]) == [RAIL]
    assert value("_spiderpool_pods", spiderpool_namespace="netops") == [{"namespace": "netops"}]


@pytest.mark.parametrize("elsewhere", ["", "/srv/cni"])
def test_what_the_chart_writes_to_a_host(elsewhere: str) -> None:
    """To the usual directories, whatever its values say; the multus of Spiderpool alone heeds them."""
    variables = {"spiderpool_cni_bin_directory": elsewhere, "spiderpool_cni_network_directory": elsewhere}
    own, multus = (value(name, **variables) for name in ("_spiderpool_own_paths", "_spiderpool_multus_paths"))
    programs = [f"/opt/cni/bin/{name}" for name in ("spiderpool", "coordinator", "ifacer")]
    rest = ["/var/run/spidernet", "/var/log/spidernet"]
    assert sorted(own) == sorted([*programs, *(f"{path}.old" for path in programs), *rest])
    assert {"/etc/cni/net.d/00-multus.conf", "/etc/cni/net.d/multus.d", "/var/log/multus.log"} <= set(multus)
    assert f"{elsewhere or '/opt/cni/bin'}/multus" in multus
