"""What the plan says of the control plane's hardening, and of control planes that differ."""

import pytest
from ansible_collections.ipu.fabric.plugins.module_utils._model.settings import IpuRelease
from ansible_collections.ipu.fabric.plugins.module_utils._plan.hardening import read_site
from ansible_collections.ipu.fabric.plugins.module_utils._plan.report import as_text
from ansible_collections.ipu.fabric.tests.unit.fixtures.site import certificate, errors, finished, plan, site


def running(level, **changes):
    """A cluster whose control plane runs at a level."""
    arguments = {pod: {} for pod in ("kube-apiserver", "kube-controller-manager", "kube-scheduler")}
    for setting in plan(site(), hardening=level)["hardening"]["settings"]:
        arguments[setting["component"]].update(setting["arguments"])
    hosts = finished()
    hosts["cp1"]["host"]["control_plane"] = {
        "arguments": arguments,
        "open_files": [],
        "super_admin": level != "cis",
        **changes,
    }
    return hosts


def test_a_new_cluster_has_nothing_to_change():
    planned = plan(site())["hardening"]
    assert planned["level"] == "baseline"
    assert planned["due"] == []
    assert {setting["name"] for setting in planned["settings"]} == {"profiling", "tls", "audit"}


@pytest.mark.parametrize(
    ("namespace", "ipu", "exempt"), [("ipus", True, ["ipus"]), ("default", True, []), ("ipus", False, [])]
)
def test_the_namespace_of_the_ipu_operator_is_exempt(namespace, ipu, exempt):
    planned = plan(site(), hardening="cis", ipu=ipu, ipu_release=IpuRelease(namespace=namespace))
    assert planned["hardening"]["exempt"] == exempt


def test_a_cluster_of_others_is_left_alone():
    assert plan(site(), manage_kubernetes=False)["hardening"] is None


@pytest.mark.parametrize("level", ["none", "baseline", "cis"])
def test_a_control_plane_that_runs_so_is_not_due(level):
    assert plan(running(level), hardening=level)["hardening"]["due"] == []


def test_what_changes_is_said_by_control_plane():
    planned = plan(running("baseline", open_files=["/etc/kubernetes/admin.conf"]), hardening="cis")
    (due,) = planned["hardening"]["due"]
    assert due["host"] == "cp1"
    assert "kube-controller-manager: terminated-pod-gc-threshold" in due["changes"]
    assert "super-admin.conf" in due["changes"]
    assert "files: /etc/kubernetes/admin.conf" in due["changes"]
    text = " ".join(as_text(planned).split())
    assert "Hardening cis:" in text
    assert "changes on cp1: kube-apiserver:" in text


def test_what_the_site_has_set_is_said_too():
    hosts = running("baseline")
    hosts["cp1"]["host"]["control_plane"]["arguments"]["kube-apiserver"]["profiling"] = "true"
    planned = plan(hosts)
    assert planned["hardening"]["due"][0]["changes"] == []
    assert "stays on cp1, set in kubernetes_cluster_config or by hand: profiling" in " ".join(as_text(planned).split())


SHORT = {"name": "service-account-extend-token-expiration", "value": "false"}


def test_tokens_last_where_multus_never_reads_its_own_again():
    """With one-hour tokens no pod got its network an hour after the installation."""
    planned = plan(site(), hardening="cis")
    assert [each["name"] for each in planned["hardening"]["left_out"]] == ["token-expiration"]
    assert "token-expiration" not in {setting["name"] for setting in planned["hardening"]["settings"]}
    assert "without token-expiration: multus would keep a token that has expired" in " ".join(as_text(planned).split())
    assert "cni-tokens" not in {finding["check"] for finding in planned["findings"]}


@pytest.mark.parametrize(("stack", "level"), [("spiderpool", "cis"), ("network_operator", "baseline")])
def test_nothing_is_left_out_where_nothing_is_lost(stack, level):
    planned = plan(site(), hardening=level, stack=stack)["hardening"]
    assert planned["left_out"] == []
    assert ("token-expiration" in {setting["name"] for setting in planned["settings"]}) == (level == "cis")


def test_whereabouts_of_the_operator_keeps_its_token_too():
    older = plan(site(), hardening="cis", network_operator_version="25.7.0", kubernetes_version="1.32.1")
    (left_out,) = older["hardening"]["left_out"]
    assert left_out["why"].startswith("multus and whereabouts would")
    newer = plan(site(), hardening="cis", ipam="whereabouts")["hardening"]["left_out"]
    assert newer[0]["why"].startswith("multus would")


def test_a_cluster_of_cis_gets_long_tokens_back():
    hosts = running("cis")
    hosts["cp1"]["host"]["control_plane"]["arguments"]["kube-apiserver"][SHORT["name"]] = "false"
    (due,) = plan(hosts, hardening="cis")["hardening"]["due"]
    assert due["changes"] == [f"kube-apiserver: {SHORT['name']}"]


@pytest.mark.parametrize("level", ["baseline", "cis"])
def test_the_sites_own_short_tokens_stay_and_are_refused(level):
    hosts, config = running(level), {"apiServer": {"extraArgs": [SHORT]}}
    hosts["cp1"]["host"]["control_plane"]["arguments"]["kube-apiserver"][SHORT["name"]] = "false"
    planned = plan(hosts, hardening=level, cluster_config=config)
    assert planned["hardening"]["due"] == []
    assert errors(planned)["cni-tokens"]["hosts"] == ["cp1"]
    assert "kubernetes_cluster_config" in errors(planned)["cni-tokens"]["next"]
    assert "cni-tokens" not in errors(plan(hosts, hardening=level, cluster_config=config, stack="spiderpool"))
    assert "cni-tokens" in errors(plan(hosts, manage_kubernetes=False))  # whoever else has set it


@pytest.mark.parametrize(
    "config", [{"apiServer": None}, {"apiServer": {"extraArgs": {"a": "b"}}}, {"apiServer": {"extraArgs": ["a", {}]}}]
)
def test_what_the_site_writes_otherwise_is_kubeadms_to_refuse(config):
    assert read_site(config) == {}
    assert plan(site(), cluster_config=config)["hardening"]["level"] == "baseline"


DAY = 86400


def tokens(**hosts):
    """A site whose hosts have tokens of multus: seconds that are left, and that they live."""
    found = finished()
    for name, (left, lifetime) in hosts.items():
        found[name]["host"]["cni_token_ends"] = [
            certificate(left / DAY, "multus", lifetime=lifetime / DAY, renewed_by="nobody")
        ]
    return found


@pytest.mark.parametrize(
    ("left", "lifetime", "site_config", "due"),
    [
        (200 * DAY, 365 * DAY, {}, False),
        (29 * DAY, 365 * DAY, {}, True),
        (-DAY, 365 * DAY, {}, True),
        (3000, 3600, {}, True),  # from the time of short tokens: the next one is long
        (3000, 3600, {"apiServer": {"extraArgs": [SHORT]}}, False),
        (1000, 3600, {"apiServer": {"extraArgs": [SHORT]}}, True),
    ],
)
def test_when_multus_has_to_start_again(left, lifetime, site_config, due):
    planned = plan(tokens(w1=(left, lifetime), w2=(300 * DAY, 365 * DAY)), cluster_config=site_config)
    ends = {each["node"]: each["ends"] for each in planned["cni_token_ends"]["hosts"]}
    assert planned["cni_token_ends"]["restart"] == ({"multus": min(ends.values())} if due else {})
    assert plan(tokens(w1=(left, lifetime)), stack="spiderpool")["cni_token_ends"]["restart"] == {}


def test_a_token_that_ends_is_a_warning():
    planned = plan(tokens(w1=(29 * DAY, 365 * DAY), w2=(300 * DAY, 365 * DAY)))
    assert errors(planned, "warning")["cni-tokens"]["hosts"] == ["w1"]
    assert "multus (1970-01-30)" in errors(planned, "warning")["cni-tokens"]["seen"]
    recalled = tokens(w1=(-1, 365 * DAY))
    recalled["w1"]["recalled"] = "2026-11-22T00:00:00+00:00"
    assert plan(recalled)["cni_token_ends"] == {"hosts": [], "restart": {}}
