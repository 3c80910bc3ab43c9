"""Releases of a plan: how long they are supported, and where each comes from."""

import re

import pytest
from ansible_collections.ipu.fabric.plugins.plugin_utils._render.versions import (
    UPSTREAM,
    host,
    images,
    origin,
    versions,
)
from ansible_collections.ipu.fabric.tests.unit.fixtures import pages, site
from ansible_collections.ipu.fabric.tests.unit.fixtures.paths import ROOT


def test_upstream_is_where_the_defaults_of_the_roles_are():
    texts = [path.read_text(encoding="utf-8") for path in ROOT.glob("roles/*/defaults/main.yml")]
    urls = [url for text in texts for url in re.findall(r"^[\w ]*(?:url|uri): (https://\S+)", text, re.MULTILINE)]
    assert urls
    assert {host(url) for url in urls} - {"localhost"} == set(UPSTREAM)


@pytest.mark.parametrize(
    ("url", "kind", "place"),
    [
        ("https://pkgs.k8s.io/core/", "upstream", "pkgs.k8s.io/core/"),
        ("https://mirror.site:8443/helm.tgz", "mirror", "mirror.site:8443/helm.tgz"),
        ("http://mirror.site/helm.tgz", "mirror", "http://mirror.site/helm.tgz"),
        ("oci://registry.site/charts", "mirror", "oci://registry.site/charts"),
        ("file:///srv/bundle/helm.tgz", "bundle", "/srv/bundle/helm.tgz"),
        ("/srv/bundle/charts", "bundle", "/srv/bundle/charts"),
    ],
)
def test_where_a_download_comes_from(url, kind, place):
    assert origin({"name": "Helm", "url": url, "sha256": "ab" * 32}) == ("Helm", kind, place, "SHA-256 abababababab…")


def test_each_download_is_told_once_beside_its_component():
    plan = pages.one_host()
    found = {each.component: each for each in versions(plan)}
    names = [one.name for each in found.values() for one in each.origins if one.kind != "apt"]
    assert sorted(names) == sorted(source["name"] for source in plan["sources"])
    assert [one.kind for one in found["Calico"].origins] == ["upstream", "mirror"]
    assert [one.kind for one in found["IPU operator"].origins] == ["mirror"]
    assert [one.kind for one in found["Helm"].origins] == ["bundle"]
    assert found["network operator"].origins[0].digest == "no digest known"


def test_support_is_said_as_the_plan_has_it():
    found = {
        day: {each.component: (each.level, each.support) for each in versions(site.plan(site.site(), today=day))}
        for day in ("2026-12-01", "2027-07-01")
    }
    assert found["2026-12-01"]["Calico"] == ("ok", "supported")
    found = found["2027-07-01"]
    assert found["Kubernetes"] == ("error", "ended on 2027-06-28")
    assert found["Calico"] == ("skipped", "unknown")  # its rule is about newest lines, and the tables are old by then
    assert found["IPU operator"] == ("skipped", "unknown")


def test_images_have_the_digest_that_pins_them():
    digest = f"sha256:{'1' * 64}"
    image = "nvcr.io/nvidia/mellanox/multus-cni:network-operator-v26.7.1"
    found = dict(images(site.plan(site.site(), image_digests={image: digest})))
    assert found[image] == digest
    assert set(found.values()) == {"", digest}
