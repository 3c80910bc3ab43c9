"""Rules and scrape configuration, checked by promtool and by a real Prometheus that scrapes over TLS with a token."""

from __future__ import annotations

import http.server
import json
import os
import shutil
import subprocess
import typing as t
import urllib.parse
import urllib.request
from pathlib import Path

import pytest
import yaml
from ansible_collections.ipu.fabric.tests.integration.api_server import Modules, eventually, free_port
from ansible_collections.ipu.fabric.tests.unit.fixtures.certificates import server_files
from ansible_collections.ipu.fabric.tests.unit.fixtures.components import wished
from ansible_collections.ipu.fabric.tests.unit.fixtures.paths import ROOT
from ansible_collections.ipu.fabric.tests.unit.fixtures.templates import evaluate, render
from ansible_collections.ipu.fabric.tests.unit.fixtures.web_server import Quiet, serving

TOKEN = "scraper"
NETWORK = {"name": "rdma-net", "resource": "rdma/a", "rdma": True, "hosts": ["w1", "w2"], "subnet": {"capacity": 20}}
SETTINGS: t.Dict[str, t.Any] = {
    "metrics_namespace": "default",
    "metrics_prometheus_operator": "false",
    "metrics_sources": ["apiserver", "kube_state_metrics", "ipujob_state", "json_exporter", "blackbox", "spiderpool"],
    "metrics_networks": [NETWORK],
    "metrics_json_exporter": "json-exporter:7979",
    "metrics_blackbox": "blackbox:9115",
}
SITE = wished("metrics", SETTINGS)
JOB = "ipu-operator-controller-manager-metrics"
RDMA_PODS = "kube_pod_container_resource_requests"
STARTED = "kube_pod_container_state_started"
CONDITION = "kube_node_status_condition"


@pytest.fixture(scope="session")
def programs() -> Path:
    """Where prometheus and promtool are: in PATH, or out of Debian's package."""
    found = shutil.which("promtool")
    if found and shutil.which("prometheus"):
        return Path(found).parent
    fetched = subprocess.run([ROOT / "hack" / "prometheus.sh"], capture_output=True, text=True, check=False)
    if fetched.returncode:
        pytest.skip(f"no prometheus: {fetched.stderr.strip()[-300:]}")
    return Path(fetched.stdout.strip())


@pytest.fixture
def files(tmp_path: Path) -> Path:
    for name, text in evaluate("metrics", "_metrics_texts", **SITE).items():
        (tmp_path / name).write_text(text)
    return tmp_path


def promtool(programs: Path, folder: Path, *command: str) -> str:
    done = subprocess.run(
        [programs / "promtool", *command], cwd=folder, capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_objects(run: Modules) -> None:
    objects = [*evaluate("metrics", "_metrics_ipu_objects", **SITE), *evaluate("metrics", "_metrics_objects", **SITE)]
    run("kube_apply", objects=objects)
    assert not run("kube_apply", objects=objects)["changed"]
    assert "monitoring.coreos.com" not in run("cluster_info")["api_groups"]
    run("kube_apply", objects=objects, state="absent")


def test_promtool_takes_the_files(programs: Path, files: Path) -> None:
    promtool(programs, files, "check", "rules", "rules.yml")
    promtool(programs, files, "check", "config", "--syntax-only", "scrape.yml")


def series(metric: str, points: str, /, **labels: str) -> t.Dict[str, str]:
    inside = ",".join(f'{key}="{value}"' for key, value in labels.items())
    return {"series": f"{metric}{{{inside}}}", "values": points}


UP = series("up", "1x600", job=JOB)
NODES = series("kube_node_info", "1x600", node="w1")
HEALTHY = [
    UP,
    NODES,
    series("controller_runtime_reconcile_errors_total", "3x600", job=JOB, controller="ipujob"),
    series(
        "apiserver_admission_webhook_rejection_count",
        "2x600",
        name="vipujob.graphcore.ai",
        error_type="calling_webhook_error",
    ),
    series(
        "apiserver_admission_webhook_rejection_count", "0+1x600", name="vipujob.graphcore.ai", error_type="no_error"
    ),
    series("probe_ssl_earliest_cert_expiry", f"{100 * 86400}x600", job="ipu-operator-webhook"),
    series(CONDITION, "1x600", node="w1", condition="FabricProved", status="true"),
    series(CONDITION, "0x600", node="w1", condition="FabricProved", status="unknown"),
    series("kube_node_status_allocatable", "63x600", node="w1", resource="rdma_a"),
    series("kube_node_status_allocatable", "63x600", node="w2", resource="rdma_a"),
    *(series(RDMA_PODS, "1x600", namespace="ml", pod=f"p{n}", container="c", resource="rdma_a") for n in range(20)),
    *(
        series("kube_pod_status_phase", f"{n // 18}x600", namespace="ml", pod=f"p{n}", phase="Succeeded")
        for n in range(20)
    ),
    *(
        series("kube_pod_status_phase", f"{1 - n // 18}x600", namespace="ml", pod=f"p{n}", phase="Running")
        for n in range(20)
    ),
    *(series("kube_pod_status_phase", "0x600", namespace="ml", pod=f"p{n}", phase="Pending") for n in range(20)),
    series("spiderpool_ipam_allocation_err_ip_used_out_counts_total", "4x600", pod="agent"),
    series(STARTED, "0x600", namespace="nvidia", pod="multus-a", container="kube-multus"),
    series("ipu_stats_used_ipus", "8x600", job="ipu-operator-stats"),
    series("ipujob_job_instances", "2x600", namespace="ml", name="j"),
    series("ipujob_ipus_per_job_instance", "4x600", namespace="ml", name="j"),
]
# What no alert is about.
DRAWN = [
    series("ipu_stats_available_ipus", "8x600", job="ipu-operator-stats"),
    series("controller_runtime_reconcile_total", "0+1x600", job=JOB, controller="ipujob", result="success"),
]
# What is other than healthy, by the series that it takes the place of, and who calls.
TROUBLES = {
    "nothing": ([], []),
    "controller down": ([series("up", "0x600", job=JOB)], ["IpuOperatorDown"]),
    "errors": (
        [series("controller_runtime_reconcile_errors_total", "0+1x600", job=JOB, controller="ipujob")],
        ["IpuOperatorReconcileErrors"],
    ),
    "webhook unreachable": (
        [
            series(
                "apiserver_admission_webhook_rejection_count",
                "0+1x600",
                name="vipujob.graphcore.ai",
                error_type="calling_webhook_error",
            )
        ],
        ["IpuWebhookUnreachable"],
    ),
    "certificate ends": (
        [series("probe_ssl_earliest_cert_expiry", f"{20 * 86400}x600", job="ipu-operator-webhook")],
        ["IpuWebhookCertificateEnds"],
    ),
    "certificate ends now": (
        [series("probe_ssl_earliest_cert_expiry", f"{5 * 86400}x600", job="ipu-operator-webhook")],
        ["IpuWebhookCertificateEnds", "IpuWebhookCertificateEndsNow"],
    ),
    "no device": (
        [series("kube_node_status_allocatable", "0x600", node="w2", resource="rdma_a")],
        ["RdmaNodesMissing", "RdmaResourceGone"],
    ),
    "never a device": (
        [series("kube_node_status_allocatable", "_x600", node="w2", resource="rdma_a")],
        ["RdmaNodesMissing"],
    ),
    "pool nearly full": (
        [series("kube_pod_status_phase", "1x600", namespace="ml", pod="p18", phase="Running")],
        ["FabricPoolNearlyFull"],
    ),
    "multus's token ends": (
        [
            series(
                STARTED,
                f"{-340 * 86400}x600",
                namespace="nvidia",
                pod="multus-a",
                container="kube-multus",
            )
        ],
        ["MultusTokenEnds"],
    ),
    "a node is not proved": (
        [
            series(CONDITION, "0x600", node="w1", condition="FabricProved", status="true"),
            series(CONDITION, "1x600", node="w1", condition="FabricProved", status="unknown"),
        ],
        ["FabricUnproved"],
    ),
    "pool exhausted": (
        [series("spiderpool_ipam_allocation_err_ip_used_out_counts_total", "0+1x600", pod="agent")],
        ["FabricPoolExhausted"],
    ),
    "partitions leaked": (
        [series("ipujob_job_instances", "1x600", namespace="ml", name="j")],
        ["IpuPartitionsLeaked"],
    ),
    "partitions of no job": (
        [
            series("ipujob_job_instances", "_x600", namespace="ml", name="j"),
            series("ipujob_ipus_per_job_instance", "_x600", namespace="ml", name="j"),
        ],
        ["IpuPartitionsLeaked"],
    ),
    # Without kube-state-metrics nobody knows how many there ought to be.
    "no kube-state-metrics": (
        [
            series("kube_node_info", "_x600", node="w1"),
            series("ipujob_job_instances", "_x600", namespace="ml", name="j"),
            series("kube_node_status_allocatable", "_x600", node="w1", resource="rdma_a"),
            series("kube_node_status_allocatable", "_x600", node="w2", resource="rdma_a"),
        ],
        [],
    ),
}


def test_rules_call_when_they_have_to(programs: Path, files: Path) -> None:
    """promtool runs the rules on made-up series; only names are compared."""
    everything = sorted(
        {rule["alert"] for g in render("metrics", "rules.yml", **SITE)["groups"] for rule in g["rules"]}
    )
    tests = []
    for name, (instead, expected) in TROUBLES.items():
        given = {one["series"]: one["values"] for one in HEALTHY + instead}
        firing = [
            {"expr": f'count(ALERTS{{alertname="{alert}",alertstate="firing"}}) or vector(0)', "eval_time": "3h"}
            for alert in everything
        ]
        for query, alert in zip(firing, everything):
            query["exp_samples"] = [{"labels": "{}", "value": int(alert in expected)}]  # type: ignore[assignment] # a list
        inputs = [{"series": s, "values": v} for s, v in given.items()]
        tests.append({"name": name, "interval": "1m", "input_series": inputs, "promql_expr_test": firing})
    content = {"rule_files": ["rules.yml"], "evaluation_interval": "1m", "tests": tests}
    (files / "test.yml").write_text(yaml.safe_dump(content))
    promtool(programs, files, "test", "rules", "test.yml")


def test_every_graph_shows_something(programs: Path, files: Path) -> None:
    """promtool evaluates the dashboard's queries on a fabric on which nothing is wrong."""
    panels = render("metrics", "dashboard.json", **SITE)["panels"]
    queries = [target["expr"] for panel in panels for target in panel["targets"]]
    assert len(queries) == 8
    given = {one["series"]: one["values"] for one in [*HEALTHY, *DRAWN]}
    seen = {"eval_time": "3h", "exp_samples": [{"labels": "{}", "value": 1}]}
    test = {
        "interval": "1m",
        "input_series": [{"series": s, "values": v} for s, v in given.items()],
        "promql_expr_test": [{**seen, "expr": f"count({query}) > bool 0"} for query in queries],
    }
    (files / "test.yml").write_text(yaml.safe_dump({"rule_files": ["rules.yml"], "tests": [test]}))
    promtool(programs, files, "test", "rules", "test.yml")


class Exporter(Quiet, http.server.BaseHTTPRequestHandler):
    """Metrics behind a token, as kube-rbac-proxy serves them."""

    def do_GET(self) -> None:
        allowed = self.headers["Authorization"] == f"Bearer {TOKEN}"
        self.send_response(200 if allowed else 401)
        self.send_header("Content-Type", "text/plain; version=0.0.4")
        self.end_headers()
        if allowed:
            self.wfile.write(b'controller_runtime_reconcile_errors_total{controller="ipujob"} 7\n')


@pytest.fixture
def exporter(tmp_path: Path) -> t.Iterator[str]:
    with serving(Exporter, server_files(tmp_path)) as port:
        yield f"127.0.0.1:{port}"


def ask(address: str, path: str, **query: str) -> t.Any:
    with urllib.request.urlopen(f"http://{address}/api/v1/{path}?{urllib.parse.urlencode(query)}", timeout=5) as answer:
        return json.load(answer)["data"]


@pytest.mark.parametrize(("token", "up"), [(TOKEN, "1"), ("stranger", "0")])
def test_a_real_prometheus(programs: Path, files: Path, exporter: str, token: str, up: str) -> None:
    (files / "token").write_text(token)
    changed = {"metrics_sources": [], "metrics_target": exporter, "metrics_token_file": str(files / "token")}
    site = wished("metrics", {**SETTINGS, **changed})
    config = {
        "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
        "rule_files": ["rules.yml"],
        "scrape_configs": render("metrics", "scrape.yml", **site)["scrape_configs"],
    }
    (files / "prometheus.yml").write_text(json.dumps(config))
    promtool(programs, files, "check", "config", "prometheus.yml")
    address = f"127.0.0.1:{free_port()}"
    # Debian's default for data is a folder of the system.
    options = (f"--web.listen-address={address}", "--config.file=prometheus.yml", "--storage.tsdb.path=data")
    with open(files / "prometheus.log", "wb") as log:
        process = subprocess.Popen(
            [programs / "prometheus", *options],
            cwd=files,
            stdout=log,
            stderr=log,
            env={**os.environ, "GOMAXPROCS": "1"},
        )
    try:
        found = eventually(lambda: ask(address, "query", query=f'up{{job="{JOB}"}}')["result"])
        assert found, (files / "prometheus.log").read_text()[-2000:]
        assert found[0]["value"][1] == up
        seen = ask(address, "query", query="controller_runtime_reconcile_errors_total")["result"]
        assert [one["value"][1] for one in seen] == ["7"] * int(up)
        groups = eventually(lambda: [g for g in ask(address, "rules")["groups"] if g["lastEvaluation"] > "0002"])
        broken = [rule["name"] for group in groups for rule in group["rules"] if rule["health"] == "err"]
        assert (len(groups), broken) == (8, [])
    finally:
        process.terminate()
        process.wait(20)
