"""Input that cannot work: site says what is wrong, what was seen and what to do, and changes nothing on any host."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
import yaml
from ansible_collections.ipu.fabric.tests.e2e.bed import Bed, vipu

NETWORK = {"name": "rdma-net", "select": {"name": "eth1"}}

VIPU = (
    "missing",
    "hanging",
    "garbage",
    pytest.param("unreachable", marks=pytest.mark.fault("V-IPU cannot be reached")),
    "localhost",
)
NOWHERE = {"name": "nowhere", "select": {"name": "ens9"}}
OUTSIDE = {**NETWORK, "name": "outside", "share": "10.9.0.0/25"}
RESERVED = {**NETWORK, "name": "reserved", "reserved": ["10.5.0.0/24"]}

# Everything that is wrong is told at once: what was written, and how often each check speaks up.
VARIABLES = [
    pytest.param(
        {"fabric_require_rdma": True, "fabric_networks": [NETWORK, NOWHERE]},
        {"fabric-nic": 4},
        id="NICs",
        marks=pytest.mark.fault("the RDMA NIC has no RDMA device"),
    ),
    pytest.param(
        {"fabric_pod_cidr": "10.5.0.0/16", "fabric_service_cidr": "10.5.128.0/20"},
        {"cidr": 1, "subnet": 1},
        id="networks that overlap",
    ),
    pytest.param(
        {"fabric_networks": [NETWORK, OUTSIDE, RESERVED], "fabric_pods_per_node": 500},
        {"subnet": 3},
        id="addresses",
        marks=pytest.mark.fault("the subnet has too few addresses"),
    ),
    pytest.param(
        {"verify_memlock": "unlimited"},
        {"locked-memory": 1},
        id="locked memory",
        marks=pytest.mark.fault("the host is a container that may not raise its limit of locked memory"),
    ),
    pytest.param(
        {
            "fabric_pod_cidr": "10.244.0.0/33",
            "fabric_networks": [{**NETWORK, "colour": "red"}],
            "fabric_kubernetes_version": "1.99.0",
            "fabric_network_operator_version": "9.9.9",
            "fabric_ipu_operator_version": "9.9.9",
            "fabric_cni": "weave",
        },
        {
            "cidr": 1,
            "networks": 1,
            "kubernetes-version": 1,
            "network-operator-version": 1,
            "ipu-operator-version": 1,
            "cni": 1,
        },
        id="words that nobody knows",
    ),
]


def refused(bed: Bed, checks: dict[str, int], **options: Any) -> None:
    """Site ends with these errors of the plan, told in full, and the hosts are as they were."""
    (bed.artifacts / "plan.json").unlink(missing_ok=True)
    before = bed.fingerprint()
    result = bed.play("site", **options)
    assert result.code != 0
    errors = bed.errors()
    assert Counter(error["check"] for error in errors) >= Counter(checks)
    for error in errors:
        assert error["what"]
        assert error["seen"]
        assert error["next"]
        assert f"ERROR {error['check']}" in result.text
    assert "next: " in result.text
    assert "Traceback" not in result.text
    assert bed.fingerprint() == before


@pytest.mark.parametrize("mode", VIPU)
def test_vipu_has_no_answer_that_can_be_used(bare: Bed, mode: str) -> None:
    with vipu(bare, mode):
        refused(bare, {"vipu": 1})


@pytest.mark.parametrize(("wrong", "checks"), VARIABLES)
def test_variables(bare: Bed, wrong: dict[str, Any], checks: dict[str, int]) -> None:
    refused(bare, checks, **wrong)


@pytest.mark.fault("a firewall blocks a port between two hosts")
@pytest.mark.parametrize(
    ("rule", "seen"),
    [
        ("INPUT -p tcp --dport 6443 -j DROP", "no answer: w1 to cp1"),
        ("INPUT -p udp --dport 4789 -j REJECT", "refused: w1 to cp1"),
    ],
)
def test_a_firewall_on_the_control_plane(bare: Bed, rule: str, seen: str) -> None:
    bare.on("cp1", f"iptables -I {rule}")
    try:
        refused(bare, {"host-ports": 1})
    finally:
        bare.on("cp1", f"iptables -D {rule}")
    [error] = [error for error in bare.errors() if error["check"] == "host-ports"]
    assert error["hosts"] == ["cp1"]
    assert error["seen"].startswith(seen)


def test_no_control_plane(bare: Bed) -> None:
    inventory = yaml.safe_load(bare.inventory.read_text())
    del inventory["all"]["children"]["kube_control_plane"]
    inventory["all"]["hosts"] = {"cp1": {"ansible_host": _address(bare, "cp1")}}
    path = bare.artifacts.parent / "no-control-plane.yml"
    path.write_text(yaml.safe_dump(inventory))
    refused(bare, {"inventory": 1}, inventory=path)


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
