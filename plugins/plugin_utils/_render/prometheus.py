# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What Prometheus scrapes of a fabric, what it alerts on, and what Grafana shows.

Every expression stands on metrics that an exporter really has; `sources` says which exporters a site runs:
  apiserver              kube-apiserver's own
  kube_state_metrics     nodes and pods, by kube-state-metrics
  ipujob_state           IPUJobs, by kube-state-metrics with `ipujob_state_config`
  json_exporter          the V-IPU proxy's /stats, by json_exporter with `json_exporter_config`
  blackbox               the webhook's certificate, by blackbox_exporter
  spiderpool             Spiderpool's agent
"""

from __future__ import annotations

import json
import re
import typing as t

Object = t.Dict[str, t.Any]
Settings = t.Mapping[str, t.Any]

MONITORING = "monitoring.coreos.com/v1"
OPERATOR = "ipu-operator"
SERVICE = f"{OPERATOR}-controller-manager-metrics"
WEBHOOK_JOB = f"{OPERATOR}-webhook"
STATS_JOB = f"{OPERATOR}-stats"
STATS_MODULE = "ipu_stats"
TOKEN = "/var/run/secrets/kubernetes.io/serviceaccount/token"
DAY = 86400
# For how long something has to be wrong before somebody is called.
LASTING, PATIENT = "10m", "30m"


def label_of(resource: str) -> str:
    """How kube-state-metrics writes the name of a resource."""
    return re.sub(r"[^a-zA-Z0-9_]", "_", resource)


def alert(name: str, expr: str, lasts: str, severity: str, summary: str, next_step: str) -> Object:
    labels, annotations = {"severity": severity}, {"summary": summary, "description": next_step}
    return {"alert": name, "expr": expr, "for": lasts, "labels": labels, "annotations": annotations}


def operator_alerts() -> t.List[Object]:
    return [
        alert(
            "IpuOperatorDown",
            f'(up{{job="{SERVICE}"}} == 0) or absent(up{{job="{SERVICE}"}})',
            LASTING,
            "critical",
            "The IPU operator's controller gives no metrics.",
            "Look at its Deployment, and at the ClusterRoleBinding of Prometheus.",
        ),
        alert(
            "IpuOperatorReconcileErrors",
            f'sum(increase(controller_runtime_reconcile_errors_total{{job="{SERVICE}"}}[15m])) > 5',
            LASTING,
            "warning",
            "The IPU operator fails again and again to bring IPUJobs to their state.",
            "Read the log of its controller: V-IPU may not answer, or have no IPUs left.",
        ),
    ]


def webhook_alerts() -> t.List[Object]:
    """After its certificate has ended the webhook refuses every IPUJob: the API server counts that as a failed call."""
    rejected = 'apiserver_admission_webhook_rejection_count{name=~".*ipujob.*",error_type="calling_webhook_error"}'
    return [
        alert(
            "IpuWebhookUnreachable",
            f"sum(increase({rejected}[10m])) > 0",
            "0m",
            "critical",
            "IPUJobs are refused, because the API server can't call the IPU operator's webhook.",
            "Run the role ipu.fabric.ipu_operator: it renews the certificate. Then look at the controller.",
        )
    ]


def certificate_alerts(days: int) -> t.List[Object]:
    left = f'(min(probe_ssl_earliest_cert_expiry{{job="{WEBHOOK_JOB}"}}) - time()) / {DAY}'
    step = "Run the role ipu.fabric.ipu_operator: it renews the certificate and restarts the controller."
    text = "The certificate of the IPU operator's webhook ends in {{ $value | printf `%.0f` }} days."
    return [
        alert("IpuWebhookCertificateEnds", f"{left} < {days}", "1h", "warning", text, step),
        alert("IpuWebhookCertificateEndsNow", f"{left} < 7", "1h", "critical", text, step),
    ]


def on_network(resource: str) -> str:
    """Pods that hold an RDMA resource now. A pod that is done keeps its series until it is removed."""
    wanted = f'kube_pod_container_resource_requests{{resource="{label_of(resource)}"}}'
    living = 'max by (namespace, pod) (kube_pod_status_phase{phase=~"Pending|Running"})'
    return f"sum({wanted} * on (namespace, pod) group_left () ({living}))"


def seen_networks(settings: Settings) -> t.List[Settings]:
    """The networks, as a plan gives them, that can be seen: by the RDMA resource that their pods hold."""
    if "kube_state_metrics" not in (settings.get("sources") or []):
        return []
    return [
        network for network in settings.get("networks") or [] if network.get("resource") and network.get("rdma", True)
    ]


def capacity_of(network: Settings) -> int:
    """Addresses for pods; 0 when the plan does not say."""
    return int((network.get("subnet") or {}).get("capacity") or 0)


def network_alerts(network: Settings) -> t.List[Object]:
    """RDMA devices and addresses of one network."""
    name, resource, nodes = network["name"], network["resource"], len(network.get("hosts") or [])
    allocatable = f'kube_node_status_allocatable{{resource="{label_of(resource)}"}}'
    found = [
        alert(
            "RdmaResourceGone",
            f"{allocatable} == 0",
            LASTING,
            "critical",
            f"Node {{{{ $labels.node }}}} has no {resource} any more.",
            "Look at the RDMA device plugin on that node, at `rdma link`, and at the name of the NIC.",
        )
    ]
    if nodes:
        # A plugin that never registered leaves no series behind: so nodes are counted, if there is somebody to count.
        counted = f"(count({allocatable} > 0) or vector(0)) < {nodes} and on () count(kube_node_info) > 0"
        text = f"{{{{ $value }}}} of {nodes} nodes of {name} have {resource}."
        step = "Run ipu.fabric.verify: it says which node lacks it, and why."
        found.append(alert("RdmaNodesMissing", counted, LASTING, "warning", text, step))
    if capacity_of(network):
        used = f"{on_network(resource)} / {capacity_of(network)}"
        text = f"Pods that ask for {resource} hold {{{{ $value | humanizePercentage }}}} of the addresses of {name}."
        step = "Remove pods that are done, or give the network a larger share of its subnet."
        found.append(alert("FabricPoolNearlyFull", f"{used} > 0.9", LASTING, "warning", text, step))
    return found


def spiderpool_alerts() -> t.List[Object]:
    # Spiderpool's per-pool counts are only ever added to, and say nothing; its count of refusals is a true one.
    name = "spiderpool_ipam_allocation_err_ip_used_out_counts"
    return [
        alert(
            "FabricPoolExhausted",
            f'sum(increase({{__name__=~"{name}(_total)?"}}[10m])) > 0',
            "0m",
            "critical",
            "Pods don't start: a Spiderpool pool has no address left.",
            "List spiderippools, remove pods that are done, or give the pool more addresses.",
        )
    ]


def leak_alerts() -> t.List[Object]:
    """IPUs that are in use beyond what all IPUJobs together ask for. Jobs that are done may still hold theirs."""
    asked = "(sum(ipujob_job_instances * ipujob_ipus_per_job_instance) or vector(0))"
    return [
        alert(
            "IpuPartitionsLeaked",
            f"sum(ipu_stats_used_ipus) - {asked} > 0 and on () count(kube_node_info) > 0",
            PATIENT,
            "warning",
            "{{ $value }} IPUs are in partitions that no IPUJob asks for.",
            "Compare the ConfigMap ipu-partitions-tracker with the IPUJobs, and remove the partitions with vipu.",
        )
    ]


def rules(settings: Settings) -> Object:
    """Alerting rules, as a rule file holds them."""
    sources = set(settings.get("sources") or [])
    groups = {
        "ipu-operator": operator_alerts(),
        "ipu-operator-webhook": webhook_alerts() if "apiserver" in sources else [],
        "ipu-operator-certificate": certificate_alerts(settings["renew_days"]) if "blackbox" in sources else [],
        "fabric-networks": [found for network in seen_networks(settings) for found in network_alerts(network)],
        "fabric-pools": spiderpool_alerts() if "spiderpool" in sources else [],
        "ipu-partitions": leak_alerts() if {"json_exporter", "ipujob_state", "kube_state_metrics"} <= sources else [],
    }
    return {"groups": [{"name": name, "rules": found} for name, found in groups.items() if found]}


def probe(job: str, exporter: str, module: str, target: str) -> Object:
    """A scrape of something through an exporter, which is asked for it by name."""
    return {
        "job_name": job,
        "metrics_path": "/probe",
        "params": {"module": [module]},
        "static_configs": [{"targets": [target]}],
        "relabel_configs": [
            {"source_labels": ["__address__"], "target_label": "__param_target"},
            {"source_labels": ["__param_target"], "target_label": "instance"},
            {"target_label": "__address__", "replacement": exporter},
        ],
    }


def probes(settings: Settings) -> t.List[t.Tuple[str, str, str, str]]:
    """Job, exporter, module and target of what is asked through an exporter."""
    sources, where = set(settings.get("sources") or []), f"{settings['namespace']}.svc"
    stats, webhook = f"http://{OPERATOR}-vipu-proxy.{where}/stats", f"{OPERATOR}-webhook-svc.{where}:443"
    found = {
        "json_exporter": (STATS_JOB, settings.get("json_exporter", ""), STATS_MODULE, stats),
        "blackbox": (WEBHOOK_JOB, settings.get("blackbox", ""), settings.get("blackbox_module", ""), webhook),
    }
    return [entry for source, entry in found.items() if source in sources]


def scrape_configs(settings: Settings) -> t.List[Object]:
    """`scrape_configs` of a Prometheus without its operator."""
    controller = {
        "job_name": SERVICE,
        "scheme": "https",
        "authorization": {"credentials_file": settings.get("token_file") or TOKEN},
        "tls_config": {"insecure_skip_verify": True},  # kube-rbac-proxy signs its own certificate
        "static_configs": [{"targets": [settings.get("target") or f"{SERVICE}.{settings['namespace']}.svc:8443"]}],
    }
    return [controller, *(probe(*entry) for entry in probes(settings))]


def json_exporter_config() -> Object:
    metrics = [
        {"name": "ipu_stats_used_ipus", "help": "IPUs in partitions", "path": "{.total.used}"},
        {"name": "ipu_stats_available_ipus", "help": "IPUs in no partition", "path": "{.total.available}"},
    ]
    return {"modules": {STATS_MODULE: {"metrics": metrics}}}


def ipujob_state_config() -> Object:
    """Configuration of kube-state-metrics for custom resources."""

    def gauge(name: str, field: str, text: str) -> Object:
        return {"name": name, "help": text, "each": {"type": "Gauge", "gauge": {"path": ["spec", field]}}}

    resource = {
        "groupVersionKind": {"group": "graphcore.ai", "version": "v1alpha1", "kind": "IPUJob"},
        "metricNamePrefix": "ipujob",
        "labelsFromPath": {"namespace": ["metadata", "namespace"], "name": ["metadata", "name"]},
        "metrics": [
            gauge("job_instances", "jobInstances", "Instances that an IPUJob asks for"),
            gauge("ipus_per_job_instance", "ipusPerJobInstance", "IPUs that each of them asks for"),
        ],
    }
    return {"kind": "CustomResourceStateMetrics", "spec": {"resources": [resource]}}


def panel(number: int, title: str, unit: str, *queries: t.Tuple[str, str]) -> Object:
    """A graph of half the width; the datasource is the dashboard's variable."""
    source = {"type": "prometheus", "uid": "${datasource}"}
    letters = "ABCDEFGH"
    return {
        "id": number,
        "type": "timeseries",
        "title": title,
        "datasource": source,
        "gridPos": {"x": 12 * ((number - 1) % 2), "y": 8 * ((number - 1) // 2), "w": 12, "h": 8},
        "fieldConfig": {"defaults": {"unit": unit, "min": 0}, "overrides": []},
        "targets": [
            {"refId": letters[n], "datasource": source, "expr": expr, "legendFormat": legend}
            for n, (expr, legend) in enumerate(queries)
        ],
    }


def graphs(settings: Settings) -> t.Iterator[t.Tuple[str, str, t.List[t.Tuple[str, str]]]]:
    """Title, unit and queries of each graph."""
    sources = set(settings.get("sources") or [])
    if "json_exporter" in sources:
        yield "IPUs", "short", [("sum(ipu_stats_used_ipus)", "used"), ("sum(ipu_stats_available_ipus)", "available")]
    total = f'controller_runtime_reconcile_total{{job="{SERVICE}"}}'
    yield "Reconciliations of IPUJobs", "ops", [(f"sum by (result) (rate({total}[5m]))", "{{result}}")]
    for network in seen_networks(settings):
        allocatable = f'kube_node_status_allocatable{{resource="{label_of(network["resource"])}"}}'
        yield f"{network['name']}: RDMA devices of nodes", "short", [(allocatable, "{{node}}")]
        addresses = [(f"vector({capacity_of(network)})", "addresses")] if capacity_of(network) else []
        yield f"{network['name']}: pods", "short", [(on_network(network["resource"]), "pods"), *addresses]
    if "blackbox" in sources:
        left = f'(min(probe_ssl_earliest_cert_expiry{{job="{WEBHOOK_JOB}"}}) - time()) / {DAY}'
        yield "Webhook certificate", "d", [(left, "days left")]


def dashboard(settings: Settings) -> Object:
    """The dashboard of a fabric, for Grafana 9 and later."""
    return {
        "uid": "ipu-fabric",
        "title": "IPU fabric",
        "tags": ["ipu", "rdma"],
        "schemaVersion": 38,
        "refresh": "1m",
        "time": {"from": "now-6h", "to": "now"},
        "templating": {
            "list": [{"name": "datasource", "type": "datasource", "query": "prometheus", "label": "Source"}]
        },
        "panels": [panel(n, title, unit, *queries) for n, (title, unit, queries) in enumerate(graphs(settings), 1)],
    }


def files(settings: Settings) -> t.Dict[str, str]:
    """What a Prometheus without its operator, and the exporters, are configured with. JSON is YAML too."""
    sources = set(settings.get("sources") or [])
    found: t.Dict[str, Object] = {
        "scrape.yml": {"scrape_configs": scrape_configs(settings)},
        "rules.yml": rules(settings),
    }
    if "json_exporter" in sources:
        found["json-exporter.yml"] = json_exporter_config()
    if "ipujob_state" in sources:
        found["kube-state-metrics.yml"] = ipujob_state_config()
    return {name: json.dumps(content, indent=2) + "\n" for name, content in found.items()}


def config_map(name: str, settings: Settings, labels: t.Mapping[str, str], data: t.Mapping[str, str]) -> Object:
    metadata = {"name": name, "namespace": settings["monitoring_namespace"], "labels": dict(labels)}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": dict(data)}


def monitors(settings: Settings) -> t.List[Object]:
    """The same for the Prometheus operator."""
    labels = dict(settings.get("labels") or {})

    def custom(kind: str, name: str, namespace: str, spec: Object) -> Object:
        metadata = {"name": name, "namespace": namespace, "labels": labels}
        return {"apiVersion": MONITORING, "kind": kind, "metadata": metadata, "spec": spec}

    endpoint = {
        "port": "https",
        "scheme": "https",
        "bearerTokenFile": TOKEN,
        "tlsConfig": {"insecureSkipVerify": True},
    }
    selector = {"matchLabels": {"app.kubernetes.io/name": OPERATOR}}
    spec = {"selector": selector, "endpoints": [endpoint]}
    asked: t.List[Object] = [
        {
            "jobName": job,
            "prober": {"url": exporter},
            "module": module,
            "targets": {"staticConfig": {"static": [target]}},
        }
        for job, exporter, module, target in probes(settings)
    ]
    return [
        custom("ServiceMonitor", OPERATOR, settings["namespace"], spec),
        *(custom("Probe", one["jobName"], settings["namespace"], one) for one in asked),
        custom("PrometheusRule", "ipu-fabric", settings["monitoring_namespace"], rules(settings)),
    ]


def reader(settings: Settings) -> Object:
    """Lets the service account of Prometheus read the controller's metrics."""
    api = "rbac.authorization.k8s.io"
    name = f"{settings.get('release') or OPERATOR}-metrics-reader"
    subject = {
        "kind": "ServiceAccount",
        "name": settings["service_account"],
        "namespace": settings["monitoring_namespace"],
    }
    return {
        "apiVersion": f"{api}/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": f"{name}-prometheus"},
        "roleRef": {"apiGroup": api, "kind": "ClusterRole", "name": name},
        "subjects": [subject],
    }


def metrics_objects(settings: Settings) -> t.List[Object]:
    """All objects; the filter's documentation lists the settings."""
    found = [reader(settings)]
    if settings.get("prometheus_operator"):
        found += monitors(settings)
    else:
        found.append(config_map("ipu-fabric-prometheus", settings, {}, files(settings)))
    shown = json.dumps(dashboard(settings), indent=2) + "\n"
    found.append(
        config_map("ipu-fabric-dashboard", settings, settings.get("dashboard_labels") or {}, {"ipu-fabric.json": shown})
    )
    return found
