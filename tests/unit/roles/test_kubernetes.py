# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Variables of the role kubernetes: pod networks."""

from __future__ import annotations

import pytest
import yaml
from ansible_collections.ipu.fabric.plugins.module_utils._host.cluster import POD_NETWORKS
from ansible_collections.ipu.fabric.plugins.module_utils._network.digests import DIGESTS
from ansible_collections.ipu.fabric.plugins.module_utils._network.releases import pod_network
from ansible_collections.ipu.fabric.plugins.module_utils._plan.running_cluster import OURS
from ansible_collections.ipu.fabric.tests.unit.fixtures.templates import evaluate


def flannel(**settings):
    """The objects of flannel by their kind."""
    text = evaluate("kubernetes", "lookup('template', 'flannel.yaml.j2')", **settings)
    return {document["kind"]: document for document in yaml.safe_load_all(text)}


@pytest.mark.parametrize(
    ("settings", "interface"),
    [
        ({}, "--iface=$(NODE_IP)"),
        ({"kubernetes_pod_cidr": "fd00:10:244::/56"}, "--iface=$(NODE_IP)"),
        ({"kubernetes_pod_cidr": "10.244.0.0/16,fd00:10:244::/56"}, "--iface=$(NODE_IP)"),
        # With both families it takes no IPv6 address.
        ({"kubernetes_pod_cidr": "fd00:10:244::/56,10.244.0.0/16"}, ""),
        ({"kubernetes_flannel_interface": "ens3"}, "--iface=ens3"),
    ],
)
def test_flannel_runs_between_the_addresses_of_the_nodes(settings, interface):
    (container,) = flannel(**settings)["DaemonSet"]["spec"]["template"]["spec"]["containers"]
    assert [one for one in container["args"] if one.startswith("--iface")] == [interface] * bool(interface)
    assert {"name": "NODE_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.hostIP"}}} in container["env"]


def pulled(cni, **settings):
    """What a worker pulls before it joins."""
    node = {"images": ["registry.k8s.io/pause:3.10.1", "registry.k8s.io/etcd:3.6.8"]}
    more = {
        "__kubernetes_node": {"node": node},
        "_kubernetes_is_control_plane": False,
        "kubernetes_cni": cni,
        **settings,
    }
    images = evaluate("kubernetes", "_kubernetes_pulled_images", **more)
    assert images[0] == "registry.k8s.io/pause:3.10.1"
    return images[1:]


@pytest.mark.parametrize("cni", ["calico", "flannel", "none"])
def test_hosts_pull_what_the_plan_names(cni):
    version = evaluate("kubernetes", "kubernetes_calico_version")
    planned = pod_network(cni, version)[1]
    elsewhere = ("/operator:", "/typha:", "/kube-controllers:")
    assert sorted(pulled(cni)) == sorted(image for image in planned if not any(part in image for part in elsewhere))


def test_images_of_calico_from_a_registry_of_the_site():
    settings = {"registry": "registry.site:5000/", "imagePath": "mirror", "imagePrefix": "calico-"}
    images = pulled("calico", kubernetes_calico_installation=settings, kubernetes_calico_version="v3.31.0")
    assert images[0] == "registry.site:5000/mirror/calico-node:v3.31.0"


def urls(**settings):
    settings["kubernetes_kubeconfig"] = "/site/admin.conf"
    return [one["url"] for one in evaluate("kubernetes", "_kubernetes_calico_manifests", **settings)]


def test_manifests_of_calico_are_those_of_the_release():
    assert all("/v3.31.0/manifests/" in url for url in urls(kubernetes_calico_version="v3.31.0"))
    mirror = {"crds_url": "http://mirror.site/a", "crds_checksum": "", "operator_url": "http://mirror.site/{version}/b"}
    mine = {**mirror, "operator_checksum": ""}
    assert urls(kubernetes_calico=mine) == ["http://mirror.site/a", "http://mirror.site/3.32.1/b"]


def test_what_is_waited_for_is_what_is_installed():
    awaited = evaluate("kubernetes", "_kubernetes_awaited_workloads", kubernetes_cni="flannel")
    metadata = flannel()["DaemonSet"]["metadata"]
    assert awaited == [{"kind": "DaemonSet", "name": metadata["name"], "namespace": metadata["namespace"]}]


@pytest.mark.parametrize("cni", ["calico", "flannel"])
def test_the_plan_knows_what_the_role_installs(cni):
    awaited = evaluate("kubernetes", "_kubernetes_awaited_workloads", kubernetes_cni=cni)
    (shown,) = [f"DaemonSet {one['namespace']}/{one['name']}" for one in awaited if one["kind"] == "DaemonSet"]
    assert shown in OURS[cni]
    assert POD_NETWORKS[shown.rpartition("/")[2]] == cni


def test_workloads_of_another_pod_network():
    cilium = {"kind": "DaemonSet", "name": "cilium", "namespace": "kube-system"}
    named = {"kubernetes_cni": "none", "kubernetes_cni_workloads": [cilium]}
    assert evaluate("kubernetes", "_kubernetes_awaited_workloads", **named) == [cilium]
    assert evaluate("kubernetes", "_kubernetes_awaited_workloads", kubernetes_cni="none") == []


def test_manifests_of_calico_have_the_digests_of_the_table():
    def checksums(**settings):
        return [
            each["checksum"]
            for each in evaluate("kubernetes", "_kubernetes_calico_manifests", kubernetes_kubeconfig="/a", **settings)
        ]

    known = [f"sha256:{DIGESTS[f'calico-3.32.1/{name}.yaml']}" for name in ("operator-crds", "tigera-operator")]
    assert checksums() == known
    assert checksums(kubernetes_calico_version="v3.32.1") == known
    assert checksums(kubernetes_calico_version="3.99.0") == ["", ""]


def test_pinned_images_of_the_pod_network():
    digest = f"sha256:{'0' * 64}"
    image = evaluate("kubernetes", "kubernetes_flannel_image")
    assert f"{image}@{digest}" in pulled(
        "flannel", kubernetes_image_digests={image: digest, "registry.k8s.io/pause:3.10.1": digest}
    )
    objects = evaluate(
        "kubernetes", "_kubernetes_calico_objects", kubernetes_image_digests={"quay.io/calico/cni:v3.32.1": digest}
    )
    assert [each["kind"] for each in objects] == ["ImageSet", "Installation"]
    assert objects[0]["metadata"] == {"name": "calico-v3.32.1"}
    assert objects[0]["spec"] == {"images": [{"image": "calico/cni", "digest": digest}]}
    assert [each["kind"] for each in evaluate("kubernetes", "_kubernetes_calico_objects")] == ["Installation"]
