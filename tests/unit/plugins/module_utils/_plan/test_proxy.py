"""What is reached without the proxy."""

import pytest
from ansible_collections.ipu.fabric.plugins.module_utils._model.settings import SiteProxy
from ansible_collections.ipu.fabric.plugins.module_utils._plan.proxy import host_of, sources
from ansible_collections.ipu.fabric.tests.unit.fixtures.site import host, plan, site

MIRROR = {
    "apt": {"kubernetes": {"uri": "http://mirror.site/apt", "suite": "/", "key_url": "https://keys.site/k"}},
    "registry": "registry.site:5000",
    "charts": {"network_operator": "oci://charts.site/x"},
    "helm": {"checksum": "sha256:ab"},
}


def test_without_a_proxy_there_is_nothing_to_say():
    assert plan(site())["no_proxy"] == {"everything": [], "downloads": []}


def no_proxy(hosts=None, **settings):
    return plan(hosts or site(), proxy=SiteProxy([".corp"], sources(MIRROR)), **settings)["no_proxy"]


def test_all_that_the_site_reaches_itself():
    found = set(no_proxy(control_plane_endpoint="k8s.site:6443")["everything"])
    assert {"localhost", "127.0.0.1", "::1", ".svc", ".cluster.local", "10.244.0.0/16", "10.96.0.0/12"} <= found
    assert {"cp1", "w1", "w2", "node11", "10.88.0.11", "10.88.0.13"} <= found, "hosts, nodes and their addresses"
    assert {"mirror.site", "keys.site", "registry.site", "charts.site", ".corp", "k8s.site"} <= found
    assert {"10.5.0.20", "10.5.0.0/24", "10.88.0.0/24"} <= found, "V-IPU, the fabric and the hosts' network"


def test_the_virtual_address_is_one_of_them():
    assert "10.88.0.50" in no_proxy(control_plane_vip="10.88.0.50")["everything"]


def test_a_new_host_changes_no_file_of_the_others():
    """containerd would be restarted on every node for it."""
    more = {**site(), "w3": host(14, ["kube_node"])}
    assert no_proxy(more)["downloads"] == no_proxy()["downloads"]
    assert no_proxy(more)["everything"] != no_proxy()["everything"]


def test_nothing_is_there_twice():
    found = no_proxy()["everything"]
    assert len(found) == len(set(found))


@pytest.mark.parametrize(
    ("source", "name"),
    [
        ("https://mirror.site/apt", "mirror.site"),
        ("http://user:pass@mirror.site:8080/x", "mirror.site"),
        ("registry.site:5000", "registry.site"),
        ("registry.site", "registry.site"),
        ("oci://charts.site/x", "charts.site"),
        ("http://[fd00::1]:5000/", "fd00::1"),
        ("file:/var/lib/x", ""),
        ("/media/bundle/charts", ""),
        ("", ""),
    ],
)
def test_host_of(source, name):
    assert host_of(source) == name
