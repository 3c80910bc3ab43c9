"""Templates of the role metrics: which alerts, graphs and objects there are, and what they are made of."""

import itertools
import json
import re

import pytest
import yaml
from ansible_collections.ipu.fabric.plugins.module_utils._common.result import FabricError
from ansible_collections.ipu.fabric.tests.unit.fixtures.components import wished
from ansible_collections.ipu.fabric.tests.unit.fixtures.paths import ROOT
from ansible_collections.ipu.fabric.tests.unit.fixtures.templates import evaluate, render

NETWORK = {"name": "rdma-net", "resource": "rdma/a", "rdma": True, "hosts": ["w1", "w2"], "subnet": {"capacity": 20}}
ALL = ["apiserver", "kube_state_metrics", "ipujob_state", "json_exporter", "blackbox", "spiderpool"]
SITE = {
    "metrics_sources": ALL,
    "metrics_networks": [NETWORK],
    "metrics_prometheus_operator": "false",
    "metrics_labels": {"release": "prometheus"},
    "metrics_json_exporter": "json-exporter:7979",
    "metrics_blackbox": "blackbox:9115",
}
CHARTS = sorted((ROOT / "testbed/standins/charts").glob("ipu-operator-*"))
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


def site(api_groups=(), **settings):
    """Variables of the role, those in `settings` without its prefix, and what it decides by them."""
    given = {**SITE, **{f"metrics_{name}": value for name, value in settings.items()}}
    return wished("metrics", given, api_groups=api_groups)


def alerts(**settings):
    groups = render("metrics", "rules.yml", **site(**settings))["groups"]
    assert all(group["rules"] for group in groups)
    return {(rule["alert"], rule["labels"]["severity"]): rule for group in groups for rule in group["rules"]}


def names(**settings):
    return sorted({name for name, _labels in alerts(**settings)})


def panels(**settings):
    return render("metrics", "dashboard.json", **site(**settings))["panels"]


def ipu_objects(**settings):
    return list(evaluate("metrics", "_metrics_ipu_objects", **site(**settings)))


def objects(**settings):
    found = site(**settings)
    own = ipu_objects(**settings) if found["__metrics_wish"]["ipu_state"] == "present" else []
    return own + list(evaluate("metrics", "_metrics_objects", **found))


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
                "FabricUnproved",
                "IpuOperatorDown",
                "IpuOperatorReconcileErrors",
                "IpuPartitionsLeaked",
                "IpuWebhookCertificateEnds",
                "IpuWebhookCertificateEndsNow",
                "IpuWebhookUnreachable",
                "MultusTokenEnds",
                "RdmaNodesMissing",
                "RdmaResourceGone",
            ],
        ),
    ],
)
def test_alerts_by_source(sources, expected):
    assert names(sources=sources) == expected


@pytest.mark.parametrize("operator", ["true", "false"])
@pytest.mark.parametrize("sources", [ALL, [], ["apiserver", "kube_state_metrics"]])
def test_a_site_without_ipus_has_no_alerts_and_objects_of_their_operator(sources, operator):
    """IpuOperatorDown was always on, and the binding and the ServiceMonitor went into a namespace that is not there."""
    given = {"sources": sources, "ipu": False, "prometheus_operator": operator}
    assert not [each for each in names(**given) if each.startswith("Ipu")]
    assert not [panel["title"] for panel in panels(**given) if "IPU" in panel["title"] or "Webhook" in panel["title"]]
    rules = "PrometheusRule" if operator == "true" else "ConfigMap"
    found = objects(**given)
    assert [o["kind"] for o in found] == [rules, "ConfigMap"]
    assert {o["metadata"]["namespace"] for o in found} == {"monitoring"}
    if operator == "false":
        assert list(found[0]["data"]) == ["rules.yml"]
    else:
        assert isinstance(found[0]["spec"]["groups"], list)
    assert {each["metadata"]["name"] for each in objects(**given, state="absent")} == {
        each["metadata"]["name"] for each in found
    }


@pytest.mark.parametrize("operator", ["true", "false"])
@pytest.mark.parametrize("now", [{"ipu": False}, {"state": "absent"}, {"ipu": False, "sources": []}])
def test_what_read_the_ipu_operator_goes_with_it(operator, now):
    """With fabric_ipu: false its token, binding, ServiceMonitor and Probes stayed in the cluster."""
    given = {"prometheus_operator": operator}
    after = {**given, "json_exporter": "", "blackbox": "", **now}

    def names_of(**settings):
        return [(each["kind"], each["metadata"]["name"]) for each in ipu_objects(**settings)]

    assert [site(**each)["__metrics_wish"]["ipu_state"] for each in (given, after)] == ["present", "absent"]
    assert names_of(**after) == names_of(**given)
    assert len(names_of(**after)) == (6 if operator == "true" else 3)


@pytest.mark.parametrize("count", range(len(ALL) + 1))
def test_no_expression_stands_on_an_exporter_that_is_not_there(count):
    for sources in map(list, itertools.combinations(ALL, count)):
        shown = [target["expr"] for panel in panels(sources=sources) for target in panel["targets"]]
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
    assert found - {"FabricUnproved", "IpuOperatorDown", "IpuOperatorReconcileErrors", "MultusTokenEnds"} == expected


@pytest.mark.parametrize(("life", "age"), [(31536000, 335 * 86400), (3607, 2404)])
def test_multus_starts_again_before_its_token_ends(life, age):
    expr = alerts(token_seconds=life)["MultusTokenEnds", "critical"]["expr"]
    assert 'kube_pod_container_state_started{container="kube-multus"}' in expr
    assert expr.endswith(f"> {age}")


@pytest.mark.parametrize(
    ("resource", "label"), [("rdma/rdma_shared_device_a", "rdma_rdma_shared_device_a"), ("a.b/c-d", "a_b_c_d")]
)
def test_resources_are_written_as_kube_state_metrics_writes_them(resource, label):
    network = {**NETWORK, "resource": resource}
    found = alerts(networks=[network], sources=["kube_state_metrics"]).values()
    shown = [target["expr"] for panel in panels(networks=[network]) for target in panel["targets"]]
    asked = [re.findall(r'resource="([^"]*)"', expr) for expr in [rule["expr"] for rule in found] + shown]
    assert [labels for labels in asked if labels] == [[label]] * 5


@pytest.mark.parametrize("nodes", [1, 2])
@pytest.mark.parametrize("capacity", [20, 200])
def test_numbers_of_the_plan_are_in_the_alerts(nodes, capacity):
    network = {**NETWORK, "hosts": ["w1", "w2"][:nodes], "subnet": {"capacity": capacity}}
    found = {name: rule for (name, _severity), rule in alerts(networks=[network], renew_days=30).items()}
    assert f"< {nodes} and" in found["RdmaNodesMissing"]["expr"]
    assert f"/ {capacity} > 0.9" in found["FabricPoolNearlyFull"]["expr"]
    assert found["IpuWebhookCertificateEnds"]["expr"].endswith("/ 86400 < 30")


def test_every_alert_says_what_to_do():
    for rule in alerts().values():
        assert len(rule["annotations"]["description"]) > 20
        assert rule["annotations"]["summary"].endswith(".")


def test_objects_with_the_prometheus_operator():
    found = objects(prometheus_operator="true", ca_secret="metrics-ca")
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
    # Prometheus' own braces survive Ansible.
    assert found[4]["spec"] == render("metrics", "rules.yml", **site())
    assert "Node {{ $labels.node }} no longer has rdma/a." in json.dumps(found[4])


def endpoint(**settings):
    found = objects(prometheus_operator="true", **settings)
    return next(o for o in found if o["kind"] == "ServiceMonitor")["spec"]["endpoints"][0]


def test_prometheus_sends_its_own_token_only_to_a_verified_server():
    verified = endpoint(ca_secret="metrics-ca")
    assert "bearerTokenFile" in verified
    assert verified["tlsConfig"] == {
        "ca": {"secret": {"name": "metrics-ca", "key": "ca.crt"}},
        "serverName": "ipu-operator-controller-manager-metrics.ipu-operator.svc",
    }
    unverified = endpoint()
    assert "bearerTokenFile" not in unverified
    assert unverified["authorization"] == {"credentials": {"name": "ipu-operator-metrics-token", "key": "token"}}


@pytest.mark.parametrize(("operator", "namespace"), [("true", "ipu-operator"), ("false", "monitoring")])
def test_the_token_for_an_unverified_server_is_good_for_its_metrics_alone(operator, namespace):
    account, secret, binding = objects(prometheus_operator=operator)[:3]
    assert [account["kind"], secret["kind"], binding["kind"]] == ["ServiceAccount", "Secret", "ClusterRoleBinding"]
    assert secret["type"] == "kubernetes.io/service-account-token"
    assert secret["metadata"]["annotations"] == {"kubernetes.io/service-account.name": account["metadata"]["name"]}
    assert account["metadata"]["namespace"] == secret["metadata"]["namespace"] == namespace
    reader = {"kind": "ServiceAccount", "name": "ipu-operator-metrics", "namespace": namespace}
    assert binding["subjects"] == [reader]


def test_scraping_with_a_ca_and_without():
    def controller(**settings):
        found = render("metrics", "scrape.yml", **site(sources=[], **settings))["scrape_configs"][0]
        return found["authorization"]["credentials_file"], found["tls_config"]

    own, name = "/var/run/secrets/kubernetes.io/serviceaccount/token", "ipu-operator-controller-manager-metrics"
    alone = "/etc/prometheus/secrets/ipu-operator-metrics-token/token"
    assert controller() == (alone, {"insecure_skip_verify": True})
    verified = {"ca_file": "/ca.crt", "server_name": f"{name}.ipu-operator.svc"}
    assert controller(ca_file="/ca.crt") == (own, verified)
    assert controller(ca_file="/ca.crt", server_name="x", token_file="/t") == ("/t", {**verified, "server_name": "x"})


@pytest.mark.parametrize(
    ("given", "expected"), [({}, "ipu-operator"), ({"release_name": "gc", "namespace": "gc"}, "gc")]
)
@pytest.mark.parametrize("name", ["namespace", "release"])
def test_the_operator_that_is_read_is_the_one_of_its_role(name, given, expected):
    variables = {f"ipu_operator_{key}": value for key, value in given.items()}
    assert evaluate("metrics", f"metrics_ipu_operator_{name}", **variables) == expected


@pytest.mark.parametrize(
    ("settings", "target"),
    [
        ({"ipu_operator_namespace": "default"}, "ipu-operator-controller-manager-metrics.default.svc:8443"),
        ({"target": "node:8443"}, "node:8443"),
    ],
)
def test_where_the_controller_is_scraped(settings, target):
    found = render("metrics", "scrape.yml", **site(sources=[], **settings))["scrape_configs"][0]
    assert found["static_configs"] == [{"targets": [target]}]


def test_objects_without_it():
    found = objects(ipu_operator_release="gc", ca_file="/ca.crt")
    assert [o["kind"] for o in found] == ["ClusterRoleBinding", "ConfigMap", "ConfigMap"]
    assert found[0]["roleRef"]["name"] == "gc-metrics-reader"
    assert sorted(found[1]["data"]) == ["json-exporter.yml", "kube-state-metrics.yml", "rules.yml", "scrape.yml"]
    assert all(yaml.safe_load(text) for text in found[1]["data"].values())
    assert sorted(objects(sources=[], ca_file="/ca.crt")[1]["data"]) == ["rules.yml", "scrape.yml"]


@pytest.mark.parametrize(("known", "kind"), [(["apps", "monitoring.coreos.com"], "PrometheusRule"), (["apps"], "")])
def test_the_cluster_decides(known, kind):
    found = evaluate(
        "metrics",
        "_metrics_objects",
        **site(known, prometheus_operator="auto"),
    )
    assert [o["kind"] for o in found if o["kind"] == "PrometheusRule"] == [kind] * bool(kind)


@pytest.mark.parametrize("chart", CHARTS, ids=lambda path: path.name)
def test_the_operator_has_what_is_scraped(chart):
    """Names of Services, of their ports and of the ClusterRole are the chart's."""
    text = "\n---\n".join(path.read_text(encoding="utf-8") for path in sorted(chart.glob("templates/*.yaml")))
    text = re.sub(r"{{ (\$fullname|\.Release\.Name) }}", "ipu-operator", text)
    made = {
        kind: re.findall(rf"^kind: {kind}\nmetadata:\n  name: (\S+)", text, re.M) for kind in ("Service", "ClusterRole")
    }
    targets = [
        job["static_configs"][0]["targets"][0] for job in render("metrics", "scrape.yml", **site())["scrape_configs"]
    ]
    assert len(targets) == 3
    for target in targets:
        assert target.split("//")[-1].split(".")[0] in made["Service"]
    binding, monitor = objects(prometheus_operator="true", ca_secret="metrics-ca")[:2]
    assert binding["roleRef"]["name"] in made["ClusterRole"]
    service = next(part for part in text.split("\n---\n") if "-controller-manager-metrics\n" in part)
    assert f"name: {monitor['spec']['endpoints'][0]['port']}, port:" in service


def test_scrape_configs():
    controller, stats, webhook = render("metrics", "scrape.yml", **site())["scrape_configs"]
    assert controller["static_configs"][0]["targets"] == [
        "ipu-operator-controller-manager-metrics.ipu-operator.svc:8443"
    ]
    assert stats["static_configs"][0]["targets"] == ["http://ipu-operator-vipu-proxy.ipu-operator.svc/stats"]
    assert webhook["relabel_configs"][-1] == {"target_label": "__address__", "replacement": "blackbox:9115"}
    outside = render("metrics", "scrape.yml", **site(sources=[], target="10.0.0.1:8443", token_file="/t"))
    assert [(c["static_configs"], c["authorization"]) for c in outside["scrape_configs"]] == [
        ([{"targets": ["10.0.0.1:8443"]}], {"credentials_file": "/t"})
    ]


@pytest.mark.parametrize(
    ("sources", "missing"), [(["json_exporter", "blackbox"], "json_exporter and blackbox"), (["blackbox"], "blackbox")]
)
def test_exporters_without_an_address(sources, missing):
    with pytest.raises(FabricError, match=f"no address of {missing}"):
        site(sources=sources, json_exporter="", blackbox="")
    assert site(sources=sources)
    assert site(sources=["apiserver"], json_exporter="", blackbox="")


def test_a_probe_is_asked_as_the_alerts_and_exporters_expect():
    """Job, module and metric names stand in several files."""
    scraped = {job["job_name"]: job for job in render("metrics", "scrape.yml", **site())["scrape_configs"]}
    asked = {job for rule in alerts().values() for job in re.findall(r'job="([^"]*)"', rule["expr"])}
    assert asked < set(scraped)
    exporter = yaml.safe_load((ROOT / "roles/metrics/files/json-exporter.yml").read_text(encoding="utf-8"))
    assert scraped["ipu-operator-stats"]["params"]["module"] == list(exporter["modules"])
    given = {metric["name"] for module in exporter["modules"].values() for metric in module["metrics"]}
    state = yaml.safe_load((ROOT / "roles/metrics/files/kube-state-metrics.yml").read_text(encoding="utf-8"))
    for resource in state["spec"]["resources"]:
        given |= {f"{resource['metricNamePrefix']}_{metric['name']}" for metric in resource["metrics"]}
    text = json.dumps([[rule["expr"] for rule in alerts().values()], panels()])
    assert set(re.findall(r"\b(?:ipu_stats|ipujob)_\w+", text)) == given


def test_the_dashboard_is_a_grid():
    shown = panels()
    places = [(p["gridPos"]["x"], p["gridPos"]["y"]) for p in shown]
    assert places == [(0, 0), (12, 0), (0, 8), (12, 8), (0, 16), (12, 16)]
    assert [p["title"] for p in shown] == [
        "IPUs",
        "Reconciliations of IPUJobs",
        "Nodes by their last proof",
        "rdma-net: RDMA devices of nodes",
        "rdma-net: pods",
        "Webhook certificate",
    ]
    assert shown[3]["targets"][0]["legendFormat"] == "{{node}}"
    assert len({p["id"] for p in shown}) == len(shown)
    assert len(evaluate("metrics", "lookup('template', 'dashboard.json.j2')", **site())) < 10000
