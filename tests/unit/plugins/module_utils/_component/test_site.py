"""Where a site takes everything from, and what follows from where its API is spoken to."""

from __future__ import annotations

import json
import typing as t

import pytest
import yaml
from ansible_collections.ipu.fabric.plugins.filter.start_problem import settings_problems
from ansible_collections.ipu.fabric.plugins.module_utils._common.result import FabricError
from ansible_collections.ipu.fabric.plugins.module_utils._component.site import Seen, decide
from ansible_collections.ipu.fabric.plugins.module_utils._network.digests import known_digest
from ansible_collections.ipu.fabric.plugins.plugin_utils._role_settings import validated
from ansible_collections.ipu.fabric.tests.unit.fixtures.components import defaults
from ansible_collections.ipu.fabric.tests.unit.fixtures.paths import ROOT

DEFAULTS: t.Dict[str, t.Any] = {}
for path in sorted(ROOT.glob("roles/*/defaults/main.yml")):
    DEFAULTS.update(yaml.safe_load(path.read_text(encoding="utf-8")) or {})
HELM = DEFAULTS["helm_url"]
PATHS = {"artifacts_dir": "/site", "kubeconfig": "~/admin.conf", "api_kubeconfig": "a", "backup_dir": "b"}


def site(bundle: str = "", listed: str = "", **settings: t.Any) -> t.Dict[str, t.Any]:
    return decide(defaults("fabric", "site", **settings), Seen(PATHS, DEFAULTS, bundle, listed))


def test_upstream_is_where_the_roles_have_it() -> None:
    sources = site()["mirror"]
    assert sources["apt"] == DEFAULTS["kubernetes_apt"]
    assert sources["charts"]["gpu_operator"] == DEFAULTS["gpu_operator_chart_repo_url"]
    assert sources["helm"] == {"url": HELM, "checksum": f"sha256:{known_digest(HELM.rpartition('/')[2])}"}
    assert sources["mpi_operator"]["sha256"] == DEFAULTS["mpi_operator_manifest_sha256"]


@pytest.mark.parametrize(("given", "meant"), [("off", "off"), (False, "off"), ("warn", "warn"), ("enforce", "enforce")])
def test_admission_is_off_as_yaml_reads_it(given: t.Union[bool, str], meant: str) -> None:
    assert settings_problems({"fabric_admission": given}) == []
    assert validated("fabric", ["admission"], {"admission": given}) == {"admission": meant}


@pytest.mark.parametrize("given", [True, "no", "block"])
def test_what_is_no_mode_of_admission(given: t.Union[bool, str]) -> None:
    (problem,) = settings_problems({"fabric_admission": given})
    assert "off, warn, enforce" in problem


def test_what_is_no_budget_is_said_before_anything_is_done() -> None:
    with pytest.raises(FabricError, match="fabric_max_unproved"):
        site(max_unproved="some")


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ({}, {}),
        ({"http": None, "https": "", "no_proxy": ["10.0.0.0/8"]}, {}),
        ({"http": "http://proxy:3128"}, {"http": "http://proxy:3128", "https": "http://proxy:3128"}),
        ({"https": "http://proxy:3128"}, {"http": "", "https": "http://proxy:3128"}),
    ],
)
def test_one_proxy_is_enough(given: t.Dict[str, t.Any], meant: t.Dict[str, str]) -> None:
    assert site(proxy=given)["proxy"] == meant


def test_a_mirror_replaces_what_it_names() -> None:
    helm = {"url": "https://mirror/helm-v9.9.9-linux-amd64.tar.gz"}
    mirror = {"charts": {"spiderpool": "oci://mirror"}, "apt": {"kubernetes": {"uri": "u"}, "more": {}}, "helm": helm}
    sources = site(mirror=mirror)["mirror"]
    assert sources["charts"] == {**site()["mirror"]["charts"], "spiderpool": "oci://mirror"}
    assert sources["apt"]["kubernetes"] == {**DEFAULTS["kubernetes_apt"]["kubernetes"], "uri": "u"}
    assert list(sources["apt"]) == [*DEFAULTS["kubernetes_apt"], "more"]
    assert sources["helm"] == {**helm, "checksum": f"sha256:{helm['url']}.sha256sum"}


LISTED = json.dumps(
    {
        "helm": "helm/helm.tar.gz",
        "manifests": {"calico_crds": "m/crds.yaml", "calico_operator": "m/op.yaml", "mpi_operator": "m/mpi.yaml"},
        "files": {
            "helm/helm.tar.gz": {"sha256": "1f"},
            "m/crds.yaml": {"sha256": "2e"},
            "m/mpi.yaml": {"sha256": "3d"},
        },
    }
)


@pytest.mark.parametrize(
    ("host", "place"), [("localhost", "/media"), ("127.0.0.1", "/media"), ("cp1", "/var/lib/ipu-fabric/bundle")]
)
def test_a_bundle_replaces_all(host: str, place: str) -> None:
    mirror = {"registry": "mirror:5000", "chart_sha256": {"a-1": "4c"}}
    sources = site("/media", LISTED, api_host=host, mirror=mirror)["mirror"]
    assert sources["registry"] == ""
    assert set(sources["charts"].values()) == {f"{place}/charts"}
    assert sources["chart_sha256"] == {"a-1": "4c"}
    assert sources["helm"] == {"url": f"file://{place}/helm/helm.tar.gz", "checksum": "sha256:1f"}
    assert sources["calico"] == {
        "crds_url": "file:///media/m/crds.yaml", "crds_checksum": "sha256:2e",
        "operator_url": "file:///media/m/op.yaml", "operator_checksum": "sha256:",
    }  # fmt: skip
    assert sources["mpi_operator"] == {"url": "/media/m/mpi.yaml", "sha256": "3d"}


@pytest.mark.parametrize("listed", ["", "no JSON"])
def test_what_is_wrong_with_a_bundle_the_plan_says(listed: str) -> None:
    assert site("/media", listed)["mirror"]["helm"] == {"url": "file:///media/", "checksum": "sha256:"}


def test_another_host_speaks_to_the_api_as_root() -> None:
    here, there = site(), site(api_host="cp1")
    assert (here["api_become"], here["helm_directory"]) == (False, "/site/bin")
    assert (there["api_become"], there["helm_directory"]) == (True, "/var/lib/ipu-fabric/bin")
    assert there["kubeconfig"] == "~/admin.conf", "it may be that of another host"
    assert (there["manage_kubernetes"], there["bundle"]) == (True, "")


@pytest.mark.parametrize(
    ("changes", "charts"),
    [
        ({}, {"network_operator": "26.7.1", "ipu_operator": "1.2.0"}),
        ({"ipam": "whereabouts"}, {"network_operator": "26.7.1", "whereabouts": "0.9.4", "ipu_operator": "1.2.0"}),
        ({"networks": None, "ipu": False, "gpu": True}, {"gpu_operator": "26.7.0"}),
        ({"stack": "spiderpool", "ipu": False}, {"spiderpool": "1.2.2"}),
        ({"stack": "other", "ipu": False, "network_operator_version": "x"}, {}),
    ],
)
def test_the_charts_that_a_site_may_install_are_asked_for(
    changes: t.Dict[str, t.Any], charts: t.Dict[str, str]
) -> None:
    asked = site(**{"network_operator_version": "v26.7.1", **changes})["questions"]["api"]
    assert {each["variable"][21:]: each["version"] for each in asked if each["kind"] == "charts"} == charts
    assert [each["path"] for each in asked if each["kind"] == "file"] == ["/site/bin/helm-v3.22.0-linux-amd64"][
        : len(asked)
    ]


def test_a_chart_that_has_another_name_in_the_mirror_of_a_site_is_asked_for_by_that() -> None:
    """The plan was an error, as the mirror did not have upstream's name, until sources was allowed."""
    seen = Seen(PATHS, DEFAULTS, "", "", charts={"network_operator": "site-network", "ipu_operator": ""})
    asked = decide(defaults("fabric", "site"), seen)["questions"]["api"]
    assert {each["variable"][21:]: each["name"] for each in asked if each["kind"] == "charts"} == {
        "network_operator": "site-network",
        "ipu_operator": "ipu-operator",
    }


def test_of_a_bundle_nothing_is_asked() -> None:
    assert site("/media", LISTED)["questions"] == {"hosts": [], "planes": [], "api": [], "controller": []}


def test_a_mirror_is_reached_without_the_proxy() -> None:
    assert site(mirror={"registry": "mirror.site:5000"})["no_proxy"][-1] == "mirror.site"
