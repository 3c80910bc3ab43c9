"""A finished cluster stays as it is: whole, in check mode, and one host at a time."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from ansible_collections.ipu.fabric.tests.e2e.bed import Bed


@pytest.mark.parametrize("arguments", [(), ("--check", "--diff"), ("--limit", "w1"), ("--limit", "cp1")], ids=" ".join)
def test_nothing_to_change(finished: Bed, arguments: tuple[str, ...]) -> None:
    result = finished.play("site", *arguments)
    assert result.code == 0
    assert result.changed() == {}


@pytest.mark.parametrize("host", ["w1", "cp1"])
def test_plan_of_one_host_is_of_the_whole_inventory(finished: Bed, host: str) -> None:
    assert finished.play("plan", "--limit", host).code == 0
    assert sorted(finished.plan()["hosts"]) == ["cp1", "w1"]


@pytest.mark.fault(
    "the site asks for another pod network than the cluster has",
    "the site asks for other addresses of pods or services than the cluster has",
    "the site asks for another Kubernetes than the cluster runs",
    "the site asks for another endpoint than the cluster has",
)
def test_what_no_role_can_change_is_refused(finished: Bed, tmp_path: Path) -> None:
    wrong = {
        "fabric_cni": "flannel",
        "fabric_pod_cidr": "10.250.0.0/16",
        "fabric_kubernetes_version": "1.35.99",
        "fabric_control_plane_endpoint": "192.0.2.1:6443",
    }
    before = finished.state()
    result = finished.play("site", fabric_artifacts_dir=str(tmp_path), **wrong)
    assert result.code != 0
    findings = json.loads((tmp_path / "plan.json").read_text())["findings"]
    checks = {finding["check"] for finding in findings if finding["level"] == "error"}
    assert checks == {"cluster-cidr", "cluster-cni", "cluster-endpoint", "cluster-version", "sources"}
    assert finished.state() == before


def test_check_mode_from_another_folder(finished: Bed, tmp_path: Path) -> None:
    """The folder has no kubeconfig, plan or helm. The cluster is still read, and nothing of it is kept."""
    result = finished.play("site", "--check", fabric_artifacts_dir=str(tmp_path))
    assert (result.code, result.changed()) == (0, {})
    assert "it is treated as empty" not in result.text
    assert not (tmp_path / "admin.conf").exists()


def test_the_webhook_gets_a_new_certificate_in_time(finished: Bed) -> None:
    def certificate() -> str:
        return finished.kubectl("-n ipu-operator get secret ipu-operator-admission")["data"]["cert"]

    before = certificate()
    result = finished.play("plan fabric", ipu_operator_renew_days=366)
    assert result.code == 0
    assert result.changed() == {"cp1": 1}
    assert certificate() != before
