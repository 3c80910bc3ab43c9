"""The plan and the installed IPU operator: nothing is upgraded or taken over silently, nor refused late."""

import re

import pytest
import yaml
from ansible_collections.ipu.fabric.plugins.action.fabric_plan import ipu_release
from ansible_collections.ipu.fabric.plugins.module_utils._common.findings import ALLOWABLE, REQUIRED
from ansible_collections.ipu.fabric.plugins.module_utils._model.settings import IpuRelease
from ansible_collections.ipu.fabric.plugins.module_utils._plan.report import as_text
from ansible_collections.ipu.fabric.plugins.plugin_utils._render.pages import plan_page
from ansible_collections.ipu.fabric.tests.unit.fixtures.components import defaults
from ansible_collections.ipu.fabric.tests.unit.fixtures.paths import ROOT
from ansible_collections.ipu.fabric.tests.unit.fixtures.site import errors, finished, plan, running, site

PLANNED = "10.5.0.20:8090:ipunode=true"  # of the site of these tests
GC = {
    "namespace": "default",
    "name": "ipu-operator-controller-manager",
    "release": "gc",
    "version": "1.1.0",
    "ours": False,
    "values": {"global.vipuControllers": PLANNED},
    "defaults": {"worker.hostNetwork": "true", "global.vipuControllers": "pod005:8090:ipunode=true"},
    "controllers": [PLANNED],
}
OURS = {**GC, "namespace": "ipu-operator", "release": "ipu-operator", "ours": True}
JOBS = [{"name": "team/resnet", "networks": ""}, {"name": "team/bert", "networks": "rdma-net"}]
ADOPTED = IpuRelease("gc", "default", "", {"worker.hostNetwork": "false", "global.vipuControllers": ""})
KEPT = IpuRelease("gc", "default", "", {"worker.hostNetwork": "true", "global.vipuControllers": ""})
CHECKS = {"ipu-operator", "ipu-operator-crd", "ipu-operator-upgrade"}


def seen(*operators, jobs=()):
    hosts = finished()
    hosts["cp1"]["host"]["cluster"] = running(ipu={"operators": list(operators), "jobs": list(jobs)})
    return hosts


def test_an_upgrade_of_what_others_have_installed():
    planned = plan(seen(GC, jobs=JOBS), ipu_release=ADOPTED)
    finding = errors(planned)["ipu-operator-upgrade"]
    assert finding["hosts"] == ["cp1"]
    assert finding["seen"] == (
        "release gc in default, chart 1.1.0 becomes 1.2.0; worker.hostNetwork: true becomes false; IPUJobs that run: "
        "team/resnet, team/bert; without a fabric network: team/resnet"
    )
    assert "fabric_ipu_operator_version: 1.1.0" in finding["next"]
    assert "ipu_operator_worker_host_network: true" in finding["next"]
    assert "fabric_allow: [ipu-operator-upgrade]" in finding["next"]
    assert errors(plan(seen(GC, jobs=JOBS), ipu_release=ADOPTED, allow=["ipu-operator-upgrade"])) == {}
    assert "IPU operator 1.1.0 (gc in default)" in " ".join(as_text(planned).split())


def test_staying_as_it_is():
    assert plan(seen(GC, jobs=JOBS), ipu_release=KEPT, ipu_operator_version="1.1.0")["findings"] == []


@pytest.mark.parametrize(
    ("operator", "release", "said"),
    [
        ({"values": {"controller.develLogs": "false"}}, KEPT, "controller.develLogs: false is lost"),
        ({"values": {"worker.hostNetwork": "true"}, "defaults": {}}, ADOPTED, "worker.hostNetwork: true becomes false"),
        # kubectl edit configmap, as 6.3.2 of the V-IPU guide has it; jobs know the label, so it stays
        (
            {"controllers": ["pod2:8090:ipunode=pod2"]},
            KEPT,
            "pod2:8090:ipunode=pod2 becomes 10.5.0.20:8090:ipunode=pod2",
        ),
        (
            {"name": "gc-ipu-operator-controller-manager"},
            KEPT,
            "objects called gc-ipu-operator-* become ipu-operator-*",
        ),
        ({"values": {"fullnameOverride": ""}}, KEPT, None),
        ({"values": {"worker.hostNetwork": "true"}}, KEPT, None),
        # An upgrade by others to what a chart has anyway loses nothing.
        ({"values": {"a": "1"}, "defaults": {"a": "1"}}, KEPT, None),
    ],
)
def test_values_that_others_have_set(operator, release, said):
    hosts = seen({**GC, **operator})
    found = errors(plan(hosts, ipu_release=release, ipu_operator_version="1.1.0"))
    assert set(found) == ({"ipu-operator-upgrade"} if said else set())
    if said:
        assert said in found["ipu-operator-upgrade"]["seen"]
        assert "chart 1.1.0 stays" in found["ipu-operator-upgrade"]["seen"]


def test_the_ways_of_the_guide():
    """docs/guides/ipu-pod.md: left alone, kept as it is with the values that it has, or moved to the fabric."""
    text = (ROOT / "docs/guides/ipu-pod.md").read_text(encoding="utf-8")
    blocks = [yaml.safe_load(block) for block in re.findall(r"```yaml\n(.*?)```", text, re.DOTALL)]
    _inventory, left, kept, values, moved = blocks
    assert plan(seen(GC, jobs=JOBS), ipu=left["fabric_ipu"])["findings"] == []
    images = {"controller.image.repository": "registry.site:5000/controller"}
    images["vipuProxy.image.repository"] = "registry.site:5000/vipu-proxy"
    hosts = seen({**GC, "values": {**GC["values"], **images}}, jobs=JOBS)

    def planned(given, **settings):
        own = {name[len("ipu_operator_") :]: value for name, value in given.items() if name.startswith("ipu_operator_")}
        version = given.get("fabric_ipu_operator_version", "1.2.0")
        release = ipu_release(defaults("ipu_operator", **own), version, {})
        return plan(hosts, ipu_release=release, ipu_operator_version=version, **settings)

    assert planned({**kept, **values})["findings"] == []
    missing = errors(planned(kept))["ipu-operator-upgrade"]["seen"]
    assert "controller.image.repository: registry.site:5000/controller is lost" in missing
    named = {name: kept[name] for name in ("ipu_operator_release_name", "ipu_operator_namespace")}
    assert [*errors(planned({**named, **values}))] == ["ipu-operator-upgrade"]
    assert errors(planned({**named, **values}, allow=moved["fabric_allow"])) == {}


def test_an_upgrade_of_our_own_release_is_told():
    planned = plan(seen(OURS, jobs=JOBS), ipu_release=IpuRelease(values=ADOPTED.values))
    assert errors(planned) == {}
    assert "1.1.0 becomes 1.2.0" in errors(planned, "warning")["ipu-operator-upgrade"]["seen"]
    # Values of a site are its own affair.
    same = plan(seen({**OURS, "version": "1.2.0"}), ipu_release=IpuRelease(values=ADOPTED.values))
    assert same["findings"] == []


HEAD = "10.5.0.20:8090:ipunode=head1"


@pytest.mark.parametrize(
    ("controllers", "vipu_hosts", "label"),
    [
        ([HEAD], [], "ipunode=head1"),
        (["head1:8090:ipunode=head1"], [], "ipunode=head1"),  # the only one, by another address
        ([HEAD], [{"host": "10.5.0.20", "label": "ipunode=b"}], "ipunode=b"),
        ([HEAD, "10.5.0.21:8090:ipunode=b"], [], "ipunode=head1"),
        (["10.5.0.21:8090:ipunode=a", "10.5.0.22:8090:ipunode=b"], [], "ipunode=true"),
        (["10.5.0.20:8090:-bad=1"], [], "ipunode=true"),
        ([], [], "ipunode=true"),
    ],
)
def test_a_label_that_jobs_know_stays(controllers, vipu_hosts, label):
    planned = plan(seen({**GC, "controllers": controllers}), ipu_release=KEPT, vipu_hosts=vipu_hosts)
    assert planned["vipu"]["value"] == f"10.5.0.20:8090:{label}"
    assert {"=".join(*each.items()) for each in planned["vipu"]["node_labels"].values()} == {label}
    # Of somebody else's release nothing is taken over.
    other = plan(seen({**GC, "controllers": controllers}), vipu_hosts=vipu_hosts)
    assert other["vipu"]["value"].endswith(":ipunode=b" if vipu_hosts else ":ipunode=true")


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"fullnameOverride": ""}, "fullnameOverride is ''"),
        ({"nameOverride": "gc"}, "nameOverride is 'gc'"),
        ({"fullnameOverride": "ipu-operator"}, ""),
        ({"global.vipuControllers": HEAD}, f"global.vipuControllers is {HEAD}, the plan has {PLANNED}"),
        ({"global.vipuControllers": "pod005:8090:ipunode=true"}, ""),
    ],
)
def test_values_that_the_role_cannot_follow(values, said):
    found = errors(plan(site(), ipu_release=IpuRelease(values=values)))
    assert set(found) == ({"ipu-operator"} if said else set())
    assert not said or said in found["ipu-operator"]["seen"]


@pytest.mark.parametrize(
    ("operator", "jobs", "said"),
    [
        ({"controllers": ["10.5.0.99:8090:ipunode=true"]}, JOBS, "10.5.0.99:8090:ipunode=true becomes"),
        ({"values": {"worker.hostNetwork": "true"}}, JOBS, "worker.hostNetwork: true becomes false"),
        ({"controllers": ["10.5.0.99:8090:ipunode=true"]}, [], ""),
        ({"values": {"worker.hostNetwork": "false", "a": "b"}}, JOBS, ""),
    ],
)
def test_what_jobs_would_notice_of_our_own_release(operator, jobs, said):
    hosts = seen({**OURS, "version": "1.2.0", "defaults": {}, **operator}, jobs=jobs)
    found = errors(plan(hosts, ipu_release=IpuRelease(values=ADOPTED.values)), "warning")
    assert set(found) == ({"ipu-operator-upgrade"} if said else set())
    assert not said or said in found["ipu-operator-upgrade"]["seen"]
    assert not said or found["ipu-operator-upgrade"]["what"] == "site changes the installed IPU operator."


@pytest.mark.parametrize(
    ("operators", "said"),
    [
        ([GC], "To keep it, set ipu_operator_release_name: gc and ipu_operator_namespace: default. Remove"),
        ([{**GC, "release": ""}], "Remove it, or leave IPUs to those who installed it (fabric_ipu: false)."),
        ([GC, OURS], "Remove it"),
        ([{**OURS, "version": "1.2.1"}], "Keep 1.2.1"),
    ],
)
def test_an_operator_that_would_be_refused(operators, said):
    found = errors(plan(seen(*operators)))
    assert set(found) == {"ipu-operator"}
    assert found["ipu-operator"]["next"].startswith(said)


@pytest.mark.parametrize(
    ("hosts", "settings", "refused"),
    [
        (site(), {}, True),  # a cluster that is still to be made
        (finished(), {}, False),  # seen by an earlier release of this collection
        (seen(), {}, False),
        ("no definition", {}, True),
        ("no definition", {"ipu_operator_version": "1.2.0"}, False),
        ("no definition", {"ipu_release": IpuRelease(crd_url="https://site/crd.yaml")}, False),
        ("no definition", {"ipu": False}, False),
        (site(), {"manage_kubernetes": False}, False),  # nothing is known of it
    ],
)
def test_the_definition_that_the_chart_of_1_1_0_lacks(hosts, settings, refused):
    if hosts == "no definition":
        hosts = finished()
        hosts["cp1"]["host"]["cluster"] = running(ipu=None)
    found = errors(plan(hosts, **{"ipu_operator_version": "1.1.0", **settings}))
    assert ("ipu-operator-crd" in found) == refused
    assert not CHECKS - {"ipu-operator-crd"} & set(found)


def test_a_site_without_ipus_says_nothing_of_them():
    planned = plan(seen(GC, jobs=JOBS), ipu=False, ipu_operator_version="none", vipu_hosts=["10.5.0.20"])
    for text in (as_text(planned), plan_page(planned).partition("</style>")[2]):
        assert not re.search(r"ipu(?!\.fabric)", text, re.IGNORECASE)
    assert planned["findings"] == []
    assert planned["cluster"]["running"]["ipu_operators"] == []


def test_what_can_be_allowed():
    assert CHECKS & set(ALLOWABLE) == {"ipu-operator-upgrade"}
    assert CHECKS & set(REQUIRED) == {"ipu-operator", "ipu-operator-crd"}
