"""Where things come from: what is accepted without TLS, what is known by its digest, and what is pinned."""

import re

import pytest
from ansible_collections.ipu.fabric.plugins.module_utils._model.stacks import STACKS
from ansible_collections.ipu.fabric.plugins.module_utils._network import releases
from ansible_collections.ipu.fabric.plugins.module_utils._network.digests import (
    CRI_DOCKERD_KNOWN,
    DIGESTS,
    PUBLISHERS,
    chart_key,
)
from ansible_collections.ipu.fabric.tests.unit.fixtures import site as sites
from ansible_collections.ipu.fabric.tests.unit.fixtures.paths import ROOT

DIGEST = "ab" * 32
CALICO = {
    "crds_url": "http://mirror.site/calico/{version}/crds.yaml",
    "operator_url": "http://mirror.site/calico/{version}/operator.yaml",
}
KEY = {"uri": "http://mirror.site/apt", "key_url": "http://mirror.site/key"}
CHARTS = {"network_operator": "http://mirror.site/charts", "ipu_operator": "http://mirror.site/charts"}
# Releases of the table whose digests nobody has read from their publisher.
UNKNOWN = {
    *(chart_key("network-operator", operator.newest) for operator in releases.NETWORK_OPERATORS.values()),
    *(chart_key("gpu-operator", release) for release in releases.GPU_OPERATORS if release != "26.3.3"),
    chart_key("whereabouts-chart", releases.WHEREABOUTS),
}


def planned(sources, **settings):
    return sites.plan(sites.site(), sources=sources, **settings)


def findings(sources, *checks, **settings):
    wanted = checks or ("http-source", "unpinned-source", "source-credentials")
    found = planned(sources, **settings)["findings"]
    return [(each["level"], each["check"]) for each in found if each["check"] in wanted]


@pytest.mark.parametrize(
    ("sources", "expected"),
    [
        ({}, []),
        ({"calico": CALICO}, []),  # in the table, wherever it comes from
        ({"calico": {"crds_url": "http://mirror.site/crds.yaml", "crds_checksum": f"sha256:{DIGEST}"}}, []),
        ({"apt": {"kubernetes": KEY}}, [("error", "http-source")]),
        ({"apt": {"kubernetes": {**KEY, "key_sha256": DIGEST}}}, []),
        ({"apt": {"kubernetes": {**KEY, "key_fingerprint": "DE15 B144"}}}, []),
        ({"apt": {"debian": {"uri": "http://mirror.site/debian"}}}, []),  # the host's own keys
        ({"apt": {"kubernetes": {**KEY, "key_fingerprint": "none"}}}, [("error", "http-source")]),
        # The host would refuse a key of which nobody says that any will do.
        ({"apt": {"kubernetes": {**KEY, "key_url": "https://mirror.site/key"}}}, [("error", "unpinned-source")]),
        (
            {"apt": {"kubernetes": {**KEY, "key_url": "HTTPS://mirror.site/key", "key_fingerprint": "none"}}},
            [("warning", "unpinned-source")],
        ),
        ({"charts": CHARTS}, [("error", "http-source")]),  # of the network operator; the other is known
        ({"charts": {"network_operator": "oci://mirror.site/charts"}}, [("warning", "unpinned-source")]),
        ({"charts": {"network_operator": "https://helm.ngc.nvidia.com/nvidia/"}}, []),  # its publisher's own
        ({"charts": {"network_operator": "http://helm.ngc.nvidia.com/nvidia"}}, [("error", "http-source")]),
        ({"charts": {"network_operator": "https://helm.ngc.nvidia.com.site/nvidia"}}, [("warning", "unpinned-source")]),
        ({"charts": CHARTS, "chart_sha256": {"network-operator-26.7.1": DIGEST}}, []),
        ({"charts": CHARTS, "chart_sha256": {"network-operator-26.1.2": DIGEST}}, [("error", "http-source")]),
        ({"helm": {"url": "http://mirror.site/helm-v3.22.0-linux-amd64.tar.gz"}}, []),
        (
            {"helm": {"url": "http://mirror.site/a.tgz", "checksum": "sha256:http://mirror.site/a.tgz.sha256sum"}},
            [("error", "http-source")],
        ),
        ({"mpi_operator": {"url": "http://mirror.site/mpi.yaml", "sha256": DIGEST}}, []),
        ({"mpi_operator": {"url": "http://mirror.site/mpi.yaml", "sha256": ""}}, [("error", "http-source")]),
        ({"mpi_operator": {"url": "/srv/mpi.yaml"}}, []),
        ({"mpi_operator": {"url": "HTTP://mirror.site/mpi.yaml", "sha256": ""}}, [("error", "http-source")]),
        ({"mpi_operator": {"url": "ftp://mirror.site/mpi.yaml", "sha256": ""}}, [("error", "http-source")]),
        ({"charts": {"network_operator": "httpx://mirror.site/charts"}}, [("error", "http-source")]),
        ({"registry": "http://mirror.site:5000"}, [("warning", "http-source")]),
        ({"registry": "Http://mirror.site:5000"}, [("warning", "http-source")]),
        ({"registry": "HTTPS://mirror.site:5000"}, []),
        ({"registry": "mirror.site:5000"}, []),
        ({"registry": "https://me:word@mirror.site"}, [("error", "source-credentials")]),
    ],
)
def test_what_nobody_could_tell_from_a_forgery(sources, expected):
    assert findings(sources) == expected


def test_only_what_the_plan_takes_counts():
    sources = {"apt": {"kubernetes": KEY}, "calico": CALICO, "charts": {**CHARTS, "spiderpool": "http://mirror.site"}}
    assert findings(sources, calico_version="3.32.9") == [("error", "http-source")] * 2  # no such release: no images
    assert findings(sources, manage_kubernetes=False) == [("error", "http-source")]
    assert findings(sources, stack="spiderpool", ipu=False) == [("error", "http-source")]
    assert findings({"registry": "http://m:5000"}, manage_kubernetes=False) == [("warning", "http-source")]  # k3s too


def test_a_site_may_accept_them():
    assert findings({"charts": CHARTS}, allow=["http-source"]) == [("warning", "http-source")]


def test_a_finding_names_source_and_variable_but_no_password():
    plan = planned({"charts": {"network_operator": "http://me:word@mirror.site/charts"}})
    http = next(each for each in plan["findings"] if each["check"] == "http-source")
    assert "chart network-operator 26.7.1 from http://mirror.site/charts" in http["seen"]
    assert "fabric_mirror: {chart_sha256: {network-operator-26.7.1: SHA256}}" in http["next"]
    assert "word@" not in str(plan)


def test_the_plan_says_what_it_downloads():
    plan = planned({"charts": CHARTS, "calico": CALICO, "helm": {"url": "https://x/helm-v3.22.0-linux-arm64.tar.gz"}})
    assert {each["name"]: each["sha256"] for each in plan["sources"]} == {
        "manifest operator-crds.yaml of Calico 3.32.1": DIGESTS["calico-3.32.1/operator-crds.yaml"],
        "manifest tigera-operator.yaml of Calico 3.32.1": DIGESTS["calico-3.32.1/tigera-operator.yaml"],
        "chart network-operator 26.7.1": "",
        "chart ipu-operator 1.2.0": DIGESTS["ipu-operator-1.2.0"],
        "Helm": DIGESTS["helm-v3.22.0-linux-arm64.tar.gz"],
    }
    assert plan["sources"][0]["url"] == "http://mirror.site/calico/3.32.1/crds.yaml"


def test_the_defaults_of_a_site_are_no_finding():
    """Whatever the plan says of them on every site, nobody reads."""
    defaults = "".join(path.read_text("utf-8") for path in sorted(ROOT.glob("roles/*/defaults/main.yml")))
    charts = dict(re.findall(r"^(\w+)_chart_repo_url: (\S+)$", defaults, re.MULTILINE))
    assert {url.rstrip("/") for url in charts.values()} == set(PUBLISHERS)
    assert findings({"charts": charts}) == findings({"charts": charts}, gpu=True, ipam="whereabouts") == []
    assert findings({"charts": charts}, stack="spiderpool") == []


def test_every_release_of_the_table_has_digests_or_is_known_to_lack_them():
    charts = {
        *(chart_key("ipu-operator", release) for release in releases.IPU_OPERATORS),
        *(chart_key("spiderpool", release) for release in STACKS["spiderpool"].charts),
        *(chart_key("gpu-operator", release) for release in releases.GPU_OPERATORS),
        *UNKNOWN,
    }
    files = {
        f"calico-{release}/{file}.yaml" for release in releases.CALICOS for file in ("operator-crds", "tigera-operator")
    }
    helm = {name for name in DIGESTS if name.startswith("helm-")}
    dockerd = {f"cri-dockerd-{release}.{name}.tgz" for release in CRI_DOCKERD_KNOWN for name in ("amd64", "arm64")}
    assert set(DIGESTS) == (charts - UNKNOWN) | files | helm | dockerd
    assert all(re.fullmatch("[0-9a-f]{64}", digest) for digest in DIGESTS.values())


@pytest.mark.parametrize(
    ("image", "digest", "seen"),
    [
        ("mirror.site/a", f"sha256:{DIGEST}", "it is not a name with a tag"),
        ("mirror.site:5000/a", f"sha256:{DIGEST}", "it is not a name with a tag"),
        (f"mirror.site/a:v1@sha256:{DIGEST}", f"sha256:{DIGEST}", "it is not a name with a tag"),
        ("mirror.site/a:v1", "sha256:abc", "'sha256:abc' is not a SHA-256"),
        ("mirror.site/a:v1", 5, "'5' is not a SHA-256"),
    ],
)
def test_a_digest_that_pins_nothing(image, digest, seen):
    plan = planned({}, image_digests={image: digest})
    [finding] = [each for each in plan["findings"] if each["check"] == "image-digests"]
    assert (finding["level"], finding["seen"]) == ("error", f"{image}: {seen}")
    assert plan["image_digests"] == {}


def test_pinned_images_of_the_network_operator():
    multus = "nvcr.io/nvidia/mellanox/multus-cni:network-operator-v26.7.1"
    plan = planned({}, image_digests={multus: DIGEST.upper()})
    assert plan["image_digests"] == {multus: f"sha256:{DIGEST}"}
    versions = {name: image["version"] for name, image in plan["releases"]["components"].items()}
    assert versions["multus"] == f"network-operator-v26.7.1@sha256:{DIGEST}"
    assert versions["cniPlugins"] == "network-operator-v26.7.1"


def test_calico_is_pinned_as_a_whole():
    images = releases.calico_images("v3.32.1")
    some = findings({}, "image-digests", image_digests={images[0]: DIGEST})
    assert some == [("error", "image-digests")]
    assert findings({}, "image-digests", image_digests=dict.fromkeys(images, DIGEST)) == []
