# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import itertools
import json
import re

import pytest
from ansible_collections.ipu.fabric.plugins.plugin_utils._render import prometheus

NETWORK = {"name": "rdma-net", "resource": "rdma/a", "rdma": True, "hosts": ["w1", "w2"], "subnet": {"capacity": 20}}
ALL = ["apiserver", "kube_state_metrics", "ipujob_state", "json_exporter", "blackbox", "spiderpool"]
SETTINGS = {
    "namespace": "ipu-operator",
    "monitoring_namespace": "monitoring",
    "service_account": "prometheus",
    "sources": ALL,
    "networks": [NETWORK],
    "renew_days": 21,
    "labels": {"release": "prometheus"},
    "dashboard_labels": {"grafana_dashboard": "1"},
    "json_exporter": "json-exporter:7979",
    "blackbox": "blackbox:9115",
    "blackbox_module": "tcp_tls",
}
# What a metric's name starts with, by the exporter that has it. The controller's own are always there.
ORIGIN = {
    "up": "",
    "controller_runtime_": "",
    "apiserver_": "apiserver",
    "kube_": "kube_state_metrics",
    "ipujob_": "ipujob_state",
    "ipu_stats_": "json_exporter",
    "probe_": "blackbox",
    "spiderpool_": "spiderpool",
}


def alerts(**settings):
    groups = prometheus.rules({**SETTINGS, **settings})["groups"]
    return {(rule["alert"], rule["labels"]["severity"]): rule for group in groups for rule in group["rules"]}


def names(**settings):
    return sorted({name for name, _labels in alerts(**settings)})


@pytest.mark.parametrize(
    ("sources", "expected"),
    [
        ([], ["IpuOperatorDown", "IpuOperatorReconcileErrors"]),
        (["apiserver"], ["IpuOperatorDown", "IpuOperatorReconcileErrors", "IpuWebhookUnreachable"]),
        (["json_exporter", "ipujob_state"], ["IpuOperatorDown", "IpuOperatorReconcileErrors"]),
        (
            ALL,
            [
                "FabricPoolExhausted",
                "FabricPoolNearlyFull",
                "IpuOperatorDown",
                "IpuOperatorReconcileErrors",
                "IpuPartitionsLeaked",
                "IpuWebhookCertificateEnds",
                "IpuWebhookCertificateEndsNow",
                "IpuWebhookUnreachable",
                "RdmaNodesMissing",
                "RdmaResourceGone",
            ],
        ),
    ],
)
def test_alerts_by_source(sources, expected):
    assert names(sources=sources) == expected


@pytest.mark.parametrize("count", range(len(ALL) + 1))
def test_no_expression_stands_on_an_exporter_that_is_not_there(count):
    for sources in itertools.combinations(ALL, count):
        settings = {**SETTINGS, "sources": sources}
        shown = [t["expr"] for p in prometheus.dashboard(settings)["panels"] for t in p["targets"]]
        for expr in [rule["expr"] for rule in alerts(sources=sources).values()] + shown:
            used = re.findall(rf"\b(?:{'|'.join(ORIGIN)})\w*", expr)
            assert used or expr.startswith("vector("), expr
            for name in used:
                origin = next(source for start, source in ORIGIN.items() if name.startswith(start))
                assert origin in ("", *sources), expr


@pytest.mark.parametrize(
    ("network", "expected"),
    [
        ({}, {"FabricPoolNearlyFull", "RdmaNodesMissing", "RdmaResourceGone"}),
        ({"subnet": {}}, {"RdmaNodesMissing", "RdmaResourceGone"}),
        ({"hosts": []}, {"FabricPoolNearlyFull", "RdmaResourceGone"}),
        ({"rdma": False}, set()),
        ({"resource": ""}, set()),
    ],
)
def test_alerts_of_a_network(network, expected):
    found = set(names(networks=[{**NETWORK, **network}], sources=["kube_state_metrics"]))
    assert found - {"IpuOperatorDown", "IpuOperatorReconcileErrors"} == expected


@pytest.mark.parametrize(
    ("resource", "label"), [("rdma/rdma_shared_device_a", "rdma_rdma_shared_device_a"), ("a.b/c-d", "a_b_c_d")]
)
def test_label_of(resource, label):
    assert prometheus.label_of(resource) == label


def test_every_alert_says_what_to_do():
    for rule in alerts().values():
        assert len(rule["annotations"]["description"]) > 20
        assert rule["annotations"]["summary"].endswith(".")


def test_objects_with_the_prometheus_operator():
    found = prometheus.metrics_objects({**SETTINGS, "prometheus_operator": True})
    assert [(o["kind"], o["metadata"].get("namespace"), o["metadata"]["name"]) for o in found] == [
        ("ClusterRoleBinding", None, "ipu-operator-metrics-reader-prometheus"),
        ("ServiceMonitor", "ipu-operator", "ipu-operator"),
        ("Probe", "ipu-operator", "ipu-operator-stats"),
        ("Probe", "ipu-operator", "ipu-operator-webhook"),
        ("PrometheusRule", "monitoring", "ipu-fabric"),
        ("ConfigMap", "monitoring", "ipu-fabric-dashboard"),
    ]
    assert {json.dumps(o["metadata"]["labels"]) for o in found[1:5]} == {'{"release": "prometheus"}'}
    assert found[5]["metadata"]["labels"] == {"grafana_dashboard": "1"}
    assert found[0]["subjects"] == [{"kind": "ServiceAccount", "name": "prometheus", "namespace": "monitoring"}]


def test_objects_without_it():
    found = prometheus.metrics_objects({**SETTINGS, "release": "gc"})
    assert [o["kind"] for o in found] == ["ClusterRoleBinding", "ConfigMap", "ConfigMap"]
    assert found[0]["roleRef"]["name"] == "gc-metrics-reader"
    assert sorted(found[1]["data"]) == ["json-exporter.yml", "kube-state-metrics.yml", "rules.yml", "scrape.yml"]
    assert sorted(prometheus.files({**SETTINGS, "sources": []})) == ["rules.yml", "scrape.yml"]


def test_scrape_configs():
    controller, stats, webhook = prometheus.scrape_configs(SETTINGS)
    assert controller["static_configs"][0]["targets"] == [
        "ipu-operator-controller-manager-metrics.ipu-operator.svc:8443"
    ]
    assert stats["static_configs"][0]["targets"] == ["http://ipu-operator-vipu-proxy.ipu-operator.svc/stats"]
    assert webhook["relabel_configs"][-1] == {"target_label": "__address__", "replacement": "blackbox:9115"}
    outside = prometheus.scrape_configs({**SETTINGS, "sources": [], "target": "10.0.0.1:8443", "token_file": "/t"})
    assert [(c["static_configs"], c["authorization"]) for c in outside] == [
        ([{"targets": ["10.0.0.1:8443"]}], {"credentials_file": "/t"})
    ]


def test_the_dashboard_is_a_grid():
    shown = prometheus.dashboard(SETTINGS)
    places = [(p["gridPos"]["x"], p["gridPos"]["y"]) for p in shown["panels"]]
    assert places == [(0, 0), (12, 0), (0, 8), (12, 8), (0, 16)]
    assert [p["title"] for p in shown["panels"]] == [
        "IPUs",
        "Reconciliations of IPUJobs",
        "rdma-net: RDMA devices of nodes",
        "rdma-net: pods",
        "Webhook certificate",
    ]
    assert len(json.dumps(shown)) < 10000
