"""What the pod network is: its manifests, its images, and when it is ready."""

from __future__ import annotations

import dataclasses
import typing as t

import pytest
import yaml
from ansible_collections.ipu.fabric.plugins.module_utils._common.result import FabricError
from ansible_collections.ipu.fabric.plugins.module_utils._component.kubernetes_pod_network import Seen, decide
from ansible_collections.ipu.fabric.plugins.module_utils._host.cluster import POD_NETWORKS
from ansible_collections.ipu.fabric.plugins.module_utils._model.wish import PodNetworkWish
from ansible_collections.ipu.fabric.plugins.module_utils._network.digests import DIGESTS
from ansible_collections.ipu.fabric.plugins.module_utils._network.releases import pod_network
from ansible_collections.ipu.fabric.plugins.module_utils._plan.host_checks import AGENT_PORTS
from ansible_collections.ipu.fabric.plugins.module_utils._plan.running_cluster import OURS
from ansible_collections.ipu.fabric.tests.unit.fixtures.components import defaults
from ansible_collections.ipu.fabric.tests.unit.fixtures.templates import evaluate

CALICO = evaluate("kubernetes", "kubernetes_calico_version")
DIGEST = f"sha256:{'0' * 64}"


def wish(cni: str, seen: t.Optional[Seen] = None, **settings: t.Any) -> PodNetworkWish:
    given = {"cni": cni, "kubeconfig": "/site/admin.conf", **settings}
    return decide(defaults("kubernetes", "kubernetes_pod_network", **given), seen or Seen())


def flannel(**settings: t.Any) -> t.Dict[str, t.Any]:
    """The objects of flannel by their kind."""
    decided = {"__kubernetes_pod_network": dataclasses.asdict(wish("flannel", **settings))}
    text = evaluate("kubernetes", "lookup('template', 'flannel.yaml.j2')", **decided)
    return {document["kind"]: document for document in yaml.safe_load_all(text)}


@pytest.mark.parametrize(
    ("settings", "interface"),
    [
        ({}, "--iface=$(NODE_IP)"),
        ({"pod_cidr": "fd00:10:244::/56"}, "--iface=$(NODE_IP)"),
        ({"pod_cidr": "10.244.0.0/16,fd00:10:244::/56"}, "--iface=$(NODE_IP)"),
        # With both families it takes no IPv6 address.
        ({"pod_cidr": "fd00:10:244::/56,10.244.0.0/16"}, ""),
        ({"flannel_interface": "ens3"}, "--iface=ens3"),
    ],
)
def test_flannel_runs_between_the_addresses_of_the_nodes(settings: t.Any, interface: str) -> None:
    (container,) = flannel(**settings)["DaemonSet"]["spec"]["template"]["spec"]["containers"]
    assert [one for one in container["args"] if one.startswith("--iface")] == [interface] * bool(interface)
    assert {"name": "NODE_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.hostIP"}}} in container["env"]


def test_flannel_is_ready_when_it_says_so() -> None:
    pod = flannel()["DaemonSet"]["spec"]["template"]["spec"]
    asked = {kind: pod["containers"][0][kind]["httpGet"] for kind in ("livenessProbe", "readinessProbe")}
    assert {(each["host"], each["port"]) for each in asked.values()} == {("127.0.0.1", AGENT_PORTS["flannel"][0])}
    assert {"--healthz-ip=127.0.0.1", "--healthz-port=8081"} <= set(pod["containers"][0]["args"])


@pytest.mark.parametrize(
    ("settings", "network"),
    [
        ({}, {"Network": "10.244.0.0/16", "EnableNFTables": False}),
        (
            {"pod_cidr": "fd00::/56", "kube_proxy_config": {"mode": "nftables"}},
            {"EnableIPv4": False, "EnableIPv6": True, "IPv6Network": "fd00::/56", "EnableNFTables": True},
        ),
    ],
)
def test_families_of_flannel(settings: t.Any, network: t.Any) -> None:
    assert wish("flannel", **settings).flannel_network == {"Backend": {"Type": "vxlan"}, **network}


@pytest.mark.parametrize("cni", ["calico", "flannel", "none"])
def test_hosts_pull_what_the_plan_names(cni: str) -> None:
    planned = pod_network(cni, CALICO)[1]
    elsewhere = ("/operator:", "/typha:", "/kube-controllers:")
    named = sorted(image for image in planned if not any(part in image for part in elsewhere))
    assert sorted(wish(cni).images) == named


def test_hosts_pull_what_a_release_of_calico_has() -> None:
    """3.33 has neither cni nor csi any more."""
    images = wish("calico", calico_version="v3.33.1").images
    names = ("node", "calico", "third-party-cni-plugins")
    assert images == [f"quay.io/calico/{name}:v3.33.1" for name in names]


def test_images_of_calico_from_a_registry_of_the_site() -> None:
    settings = {"registry": "registry.site:5000/", "imagePath": "mirror", "imagePrefix": "calico-"}
    images = wish("calico", calico_installation=settings, calico_version="v3.31.0").images
    assert images[0] == "registry.site:5000/mirror/calico-node:v3.31.0"


def test_manifests_of_calico_are_those_of_the_release() -> None:
    assert all("/v3.31.0/manifests/" in each.url for each in wish("calico", calico_version="v3.31.0").manifests)
    mirror = {"crds_url": "http://mirror.site/a", "crds_checksum": "", "operator_url": "http://mirror.site/{version}/b"}
    decided = wish("calico", calico={**mirror, "operator_checksum": ""})
    assert [each.url for each in decided.manifests] == ["http://mirror.site/a", f"http://mirror.site/{CALICO}/b"]
    assert [each["url"] for each in decided.bundled.values()] == [each.url for each in decided.manifests]
    # Another source is another file, beside the kubeconfig.
    paths = [each.path for each in [*decided.manifests, *wish("calico").manifests]]
    assert len(set(paths)) == 4
    assert all(path.startswith("/site/calico-") for path in paths)


@pytest.mark.parametrize("cni", ["calico", "flannel"])
def test_the_plan_knows_what_the_role_installs(cni: str) -> None:
    (shown,) = [f"{one['namespace']}/{one['name']}" for one in wish(cni).ready if one["kind"] == "DaemonSet"]
    assert f"DaemonSet {shown}" in OURS[cni]
    assert POD_NETWORKS[shown.rpartition("/")[2]] == cni
    if cni == "flannel":
        metadata = flannel()["DaemonSet"]["metadata"]
        assert shown == f"{metadata['namespace']}/{metadata['name']}"


def test_workloads_of_another_pod_network() -> None:
    cilium = {"kind": "DaemonSet", "name": "cilium", "namespace": "kube-system"}
    dns = {"kind": "Deployment", "name": "coredns", "namespace": "kube-system", "required": False}
    assert wish("none", cni_workloads=[cilium]).ready == [cilium, dns]
    assert all(wish(cni).ready[-1] == dns for cni in ("calico", "flannel"))
    assert wish("none").ready == []


def test_manifests_of_calico_have_the_digests_of_the_table() -> None:
    def checksums(**settings: t.Any) -> t.List[str]:
        return [each.checksum for each in wish("calico", **settings).manifests]

    known = [f"sha256:{DIGESTS[f'calico-3.32.2/{name}.yaml']}" for name in ("operator-crds", "tigera-operator")]
    assert checksums(calico_version="3.32.2") == known
    assert checksums(calico_version="v3.32.2") == known
    assert checksums(calico_version="3.99.0") == ["", ""]
    assert [each["checksum"] for each in wish("calico", calico_version="3.32.2").bundled.values()] == known


def test_pinned_images_of_calico() -> None:
    objects = wish("calico", image_digests={"quay.io/calico/cni:v3.32.2": DIGEST, "quay.io/calico/cni:v3": DIGEST})
    pinned, installation = objects.objects
    assert (pinned["kind"], installation["kind"]) == ("ImageSet", "Installation")
    assert pinned["metadata"] == {"name": "calico-v3.32.2"}
    assert pinned["spec"] == {"images": [{"image": "calico/cni", "digest": DIGEST}]}
    assert [each["kind"] for each in wish("calico").objects] == ["Installation"]


@pytest.mark.parametrize(
    ("failed", "where", "seen"),
    [
        ({"msg": "Permission denied"}, "/site", "Permission denied"),
        (
            {
                "results": [
                    {"item": {"url": "http://a"}, "failed": False},
                    {"item": {"url": "http://b"}, "failed": True, "seen": "404", "msg": "long"},
                    {"item": {"url": "http://c"}, "failed": True, "msg": "no"},
                ]
            },
            "http://b, http://c",
            "404; no",
        ),
    ],
)
def test_manifests_that_can_not_be_had(failed: t.Any, where: str, seen: str) -> None:
    with pytest.raises(FabricError, match="could not be fetched by the machine that runs Ansible") as error:
        wish("calico", Seen(failed))
    assert (error.value.where, error.value.seen) == (where, seen)
