# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Input that cannot work: site says what is wrong, what was seen and what to do, and changes nothing on any host."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from bed import Bed, vipu

NETWORK = {"name": "rdma-net", "select": {"name": "eth1"}}

VIPU = [
    ("missing", "vipu"),
    ("hanging", "vipu"),
    ("garbage", "vipu"),
    ("unreachable", "vipu"),
    ("localhost", "vipu-address"),
]

VARIABLES = [
    pytest.param({"fabric_require_rdma": True}, "fabric-nic", id="no RDMA NIC"),
    pytest.param(
        {"fabric_networks": [{"name": "rdma-net", "select": {"name": "ens9"}}]}, "fabric-nic", id="no such NIC"
    ),
    pytest.param({"fabric_pod_cidr": "10.244.0.0/33"}, "cidr", id="no CIDR"),
    pytest.param({"fabric_service_cidr": "10.244.128.0/20"}, "cidr", id="pods and services overlap"),
    pytest.param({"fabric_pod_cidr": "10.5.0.0/16"}, "subnet", id="pods and fabric overlap"),
    pytest.param({"fabric_networks": [{**NETWORK, "share": "10.9.0.0/25"}]}, "subnet", id="share outside the subnet"),
    pytest.param({"fabric_networks": [{**NETWORK, "reserved": ["10.5.0.0/24"]}]}, "subnet", id="everything reserved"),
    pytest.param({"fabric_pods_per_node": 500}, "subnet", id="too few addresses"),
    pytest.param({"fabric_networks": [{**NETWORK, "colour": "red"}]}, "networks", id="unknown key"),
    pytest.param({"fabric_kubernetes_version": "1.99.0"}, "kubernetes-version", id="unknown Kubernetes"),
    pytest.param(
        {"fabric_network_operator_version": "9.9.9"}, "network-operator-version", id="unknown network operator"
    ),
    pytest.param({"fabric_ipu_operator_version": "9.9.9"}, "ipu-operator-version", id="unknown IPU operator"),
    pytest.param({"fabric_cni": "weave"}, "cni", id="unknown pod network"),
]


def refused(bed: Bed, check: str, **options: Any) -> None:
    """Site ends with this error of the plan, told in full, and the hosts are as they were."""
    (bed.artifacts / "plan.json").unlink(missing_ok=True)
    before = bed.fingerprint()
    result = bed.play("site", **options)
    assert result.code != 0
    errors = bed.errors()
    assert check in [error["check"] for error in errors]
    for error in errors:
        assert error["what"]
        assert error["seen"]
        assert error["next"]
        assert f"ERROR {error['check']}" in result.text
    assert "next: " in result.text
    assert "Traceback" not in result.text
    assert bed.fingerprint() == before


@pytest.mark.parametrize(("mode", "check"), VIPU)
def test_vipu_does_not_answer(bare: Bed, mode: str, check: str) -> None:
    with vipu(bare, mode):
        refused(bare, check)


@pytest.mark.parametrize(("variables", "check"), VARIABLES)
def test_variables(bare: Bed, variables: dict[str, Any], check: str) -> None:
    refused(bare, check, **variables)


def test_everything_wrong_is_told_at_once(bare: Bed) -> None:
    refused(bare, "cni", fabric_cni="weave", fabric_pod_cidr="10.244.0.0/33", fabric_ipu_operator_version="9.9.9")
    assert {"cni", "cidr", "ipu-operator-version"} <= {error["check"] for error in bare.errors()}


def test_no_control_plane(bare: Bed) -> None:
    inventory = yaml.safe_load(bare.inventory.read_text())
    del inventory["all"]["children"]["kube_control_plane"]
    inventory["all"]["hosts"] = {"cp1": {"ansible_host": _address(bare, "cp1")}}
    path = bare.artifacts.parent / "no-control-plane.yml"
    path.write_text(yaml.safe_dump(inventory))
    refused(bare, "inventory", inventory=path)


def test_malformed_inventory(bare: Bed) -> None:
    path = bare.artifacts.parent / "malformed.yml"
    path.write_text("all:\n  children:\n    kube_control_plane:\n      hosts: [cp1\n")
    before = bare.fingerprint()
    result = bare.play("site", inventory=path)
    assert result.code != 0
    assert str(path) in result.text
    assert "kube_control_plane" in result.text
    assert bare.fingerprint() == before


def _address(bed: Bed, host: str) -> str:
    groups = yaml.safe_load(bed.inventory.read_text())["all"]["children"].values()
    return next(
        group["hosts"][host]["ansible_host"] for group in groups if (group["hosts"].get(host) or {}).get("ansible_host")
    )
