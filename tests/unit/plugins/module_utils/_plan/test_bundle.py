"""A bundle that does not have what the plan installs is an error before anything is changed."""

import copy

import pytest
from ansible_collections.ipu.fabric.plugins.module_utils._model.bundle import RELEASES, SeenBundle
from ansible_collections.ipu.fabric.tests.unit.fixtures.site import errors, plan, site

PLANNED = plan(site())["releases"]
BUNDLE = {
    "schema": 2,
    "request": "",
    "releases": {name: str(PLANNED[name]) for name in RELEASES},
    "platforms": ["debian-bookworm-amd64"],
    "helm": "helm/helm.tar.gz",
    "manifests": {},
    "images": [],
    "files": {},
}


def seen(problem="", wrong=(), **changes):
    content = None if problem else {**copy.deepcopy(BUNDLE), **changes}
    return SeenBundle("/media/bundle", problem, list(wrong), content)


def found(bundle, hosts=None, level="error", **settings):
    return errors(plan(hosts or site(), bundle=bundle, **settings), level).get("bundle")


def test_a_bundle_of_this_plan_is_right():
    assert found(seen()) is None
    assert found(None) is None


def test_a_chart_that_only_the_list_knows_is_compared_when_it_is_installed():
    key = f"network-operator-{PLANNED['network_operator']}"
    files = {f"charts/{key}.tgz": {"size": 1, "sha256": "ab" * 32}}
    charts = {"network_operator": "/media/bundle/charts"}
    sources = plan(site(), bundle=seen(files=files), sources={"charts": charts})["sources"]
    assert [each["sha256"] for each in sources if each["name"].startswith("chart network-operator")] == ["ab" * 32]
    own = {"charts": charts, "chart_sha256": {key: "cd" * 32}}
    assert plan(site(), bundle=seen(files=files), sources=own)["sources"][0]["sha256"] == "cd" * 32


def test_other_releases_are_named():
    error = found(seen(releases={**BUNDLE["releases"], "network_operator": "26.1.2", "kubernetes": "1.34.1"}))
    assert "kubernetes 1.34.1 instead of 1.36.3" in error["seen"]
    assert f"network_operator 26.1.2 instead of {PLANNED['network_operator']}" in error["seen"]
    assert "ipu.fabric.bundle" in error["next"]


@pytest.mark.parametrize(
    ("facts", "platform"),
    [
        ({"distribution": "ubuntu", "release": "noble"}, "ubuntu-noble-amd64"),
        ({"architecture": "aarch64"}, "debian-bookworm-arm64"),
    ],
)
def test_a_host_without_packages_is_named(facts, platform):
    hosts = site()
    hosts["w2"]["host"].update(facts)
    error = found(seen(), hosts, allow=["architecture", "distribution"])
    assert error["hosts"] == ["w2"]
    assert platform in error["seen"]


def test_a_host_that_was_not_observed_is_another_check():
    hosts = site()
    hosts["w2"]["host"] = None
    assert found(seen(), hosts) is None


def test_a_bundle_that_is_not_finished():
    assert "no such file" in found(seen("/media/bundle/bundle.json: no such file"))["seen"]


def test_damaged_files_are_named():
    error = found(seen(wrong=[f"charts/{name}.tgz (no such file)" for name in "abcdefg"]))
    assert "charts/a.tgz" in error["seen"]
    assert "and 2 more" in error["seen"]


def test_a_bundle_without_chrony_is_named_when_it_is_asked_for():
    files = {"apt/debian-bookworm-amd64/chrony_4.3-2_amd64.deb": {"size": 1, "sha256": ""}}
    assert found(seen(files=files), ntp=["ntp1.site"]) is None
    assert found(seen()) is None
    error = found(seen(files={name.replace("chrony", "chronyx"): file for name, file in files.items()}), ntp=["ntp1"])
    assert error["what"] == "The bundle has no chrony, which fabric_ntp needs."
    assert error["seen"] == "no such package for debian-bookworm-amd64"


def test_a_cluster_of_others_needs_no_packages():
    bundle = seen(platforms=[], releases={**BUNDLE["releases"], "kubernetes": "1.30.0", "cni": "", "cni_version": ""})
    assert found(bundle, manage_kubernetes=False) is None
    assert "imported" in found(bundle, level="warning", manage_kubernetes=False)["what"]
