"""What Prometheus is given of the cluster."""

from __future__ import annotations

import typing as t

import pytest
from ansible_collections.ipu.fabric.plugins.module_utils._common.result import FabricError
from ansible_collections.ipu.fabric.plugins.module_utils._component.metrics import Monitoring, Seen, decide
from ansible_collections.ipu.fabric.tests.unit.fixtures.components import defaults


def monitoring(groups: t.Sequence[str] = (), **settings: t.Any) -> Monitoring:
    return decide(defaults("metrics", **settings), Seen(api_groups=groups))


@pytest.mark.parametrize(
    ("asked", "groups", "operator"),
    [
        ("auto", ["apps", "monitoring.coreos.com"], True),
        ("auto", ["apps"], False),
        ("true", ["apps"], True),
        ("false", ["monitoring.coreos.com"], False),
    ],
)
def test_whether_the_cluster_has_prometheus_operator(asked: str, groups: t.List[str], operator: bool) -> None:
    assert monitoring(groups, prometheus_operator=asked).prometheus_operator is operator


def test_exporters_and_their_addresses() -> None:
    assert monitoring(sources=[]).probes == []
    [probe] = monitoring(sources=["blackbox"], blackbox="exporter.monitoring:9115").probes
    assert probe.exporter == "exporter.monitoring:9115"
    with pytest.raises(FabricError, match="address of each exporter") as raised:
        monitoring(sources=["json_exporter", "blackbox"], json_exporter="", blackbox="")
    assert raised.value.seen == "no address of json_exporter and blackbox"
    assert "metrics_json_exporter and metrics_blackbox" in raised.value.next_step


@pytest.mark.parametrize(
    ("settings", "verified", "token"),
    [
        ({}, False, "/etc/prometheus/secrets/ipu-operator-metrics-token/token"),
        ({"ca_file": "/etc/ca.crt"}, True, "/var/run/secrets/kubernetes.io/serviceaccount/token"),
        ({"ca_file": "/etc/ca.crt", "token_file": "/etc/token"}, True, "/etc/token"),
    ],
)
def test_who_reads_the_controller(settings: t.Dict[str, t.Any], verified: bool, token: str) -> None:
    found = monitoring(["apps"], **settings)
    assert (found.verified, found.token_file) == (verified, token)
    assert (found.reader == "ipu-operator-metrics") is not verified
