"""What kubeadm is told, how control planes are hardened, and how kubelets are configured."""

from __future__ import annotations

import base64
import typing as t

import pytest
import yaml
from ansible_collections.ipu.fabric.plugins.module_utils._common.result import FabricError
from ansible_collections.ipu.fabric.plugins.module_utils._component import (
    kubernetes_documents,
    kubernetes_encryption,
    kubernetes_hardening,
    kubernetes_host,
    kubernetes_kubeconfig,
    kubernetes_kubelet,
    kubernetes_kubelets,
)
from ansible_collections.ipu.fabric.plugins.module_utils._kubeadm.encryption import IDENTITY
from ansible_collections.ipu.fabric.plugins.module_utils._model.wish import (
    DocumentsWish,
    HardeningWish,
    KubeletsWish,
    KubeletWish,
)
from ansible_collections.ipu.fabric.tests.unit.fixtures.components import defaults
from ansible_collections.ipu.fabric.tests.unit.fixtures.control_plane import CONFIGURATION

DIGEST = f"sha256:{'0' * 64}"
OWN = [f"registry.k8s.io/{name}" for name in ("kube-apiserver:v1", "kube-proxy:v1", "pause:3.10.1", "etcd:3.6.8")]
NODE = {"name": "n1", "address": "192.0.2.1", "images": OWN, "membership": "none"}
STEADY = {"order": ["key1", IDENTITY], "digests": {"key1": "ab"}, "used": True}
PLANES = {name: {"name": name, "address": f"192.0.2.{name[-1]}"} for name in ("cp1", "cp2", "cp3")}


def documents(
    first: bool = True,
    plane: bool = True,
    schedulable: bool = False,
    keys: t.Any = None,
    network: t.Sequence[str] = (),
    address: str = "192.0.2.1",
    **settings: t.Any,
) -> DocumentsWish:
    about = {"is_first": first, "schedulable": schedulable, "first_node": {**NODE, "address": address}}
    seen = kubernetes_documents.Seen("cp1", NODE, about, plane, network, keys or {})
    return kubernetes_documents.decide(defaults("kubernetes", "kubernetes_documents", **settings), seen)


@pytest.mark.parametrize(
    ("settings", "endpoint"),
    [
        ({}, "192.0.2.1:6443"),
        ({"address": "fd00::1"}, "[fd00::1]:6443"),
        ({"control_plane_vip": "192.0.2.9"}, "192.0.2.9:6443"),
        ({"control_plane_vip": "fd00::9"}, "[fd00::9]:6443"),
        ({"control_plane_vip": "192.0.2.9", "control_plane_endpoint": "lb.site:443"}, "lb.site:443"),
    ],
)
def test_the_endpoint(settings: t.Any, endpoint: str) -> None:
    assert documents(**settings).documents[1]["controlPlaneEndpoint"] == endpoint


@pytest.mark.parametrize(
    ("first", "plane", "schedulable", "own", "taints"),
    [
        (True, True, False, True, None),
        (True, True, True, True, []),  # the last node that takes pods stays open
        (False, False, False, False, None),
        (False, False, False, True, ["ipu.fabric/unproved"]),
        (False, True, True, True, ["ipu.fabric/unproved"]),
        (False, True, False, False, None),  # kubeadm sets its own
        (False, True, False, True, ["node-role.kubernetes.io/control-plane", "ipu.fabric/unproved"]),
    ],
)
def test_taints_that_a_host_joins_with(
    first: bool, plane: bool, schedulable: bool, own: bool, taints: t.Optional[t.List[str]]
) -> None:
    given = [{"key": "ipu.fabric/unproved", "effect": "NoSchedule"}] if own else []
    registered = documents(first, plane, schedulable, taints=given).documents[0]["nodeRegistration"]
    assert (registered.get("taints") if taints is None else [each["key"] for each in registered["taints"]]) == taints


def test_a_site_wins_in_every_document() -> None:
    decided = documents(
        version="v1.36.3",
        token_ttl="5m",
        image_repository="mirror.site/k8s",
        cluster_config={"networking": {"dnsDomain": "site"}},
        kube_proxy_config={"mode": "nftables"},
        kubelet_config={"failCgroupV1": False},
    ).documents
    init, cluster, kubelet, proxy = decided
    assert init["bootstrapTokens"] == [{"ttl": "5m"}]
    assert (cluster["imageRepository"], cluster["kubernetesVersion"]) == ("mirror.site/k8s", "v1.36.3")
    assert cluster["networking"] == {"podSubnet": "10.244.0.0/16", "serviceSubnet": "10.96.0.0/12", "dnsDomain": "site"}
    assert (kubelet["failCgroupV1"], kubelet["cgroupDriver"], proxy["mode"]) == (False, "systemd", "nftables")


def test_a_site_that_allows_cgroup_v1_needs_no_other_setting() -> None:
    """Without it a kubelet of 1.35 or later does not start, and kubeadm refuses the host before."""
    init, _cluster, kubelet, _proxy = documents(cgroup_v1=True).documents
    assert kubelet["failCgroupV1"] is False
    assert init["nodeRegistration"]["ignorePreflightErrors"] == ["SystemVerification"]
    (join,) = documents(False, cgroup_v1=True, ignore_preflight_errors=["Swap", "SystemVerification"]).documents
    assert join["nodeRegistration"]["ignorePreflightErrors"] == ["Swap", "SystemVerification"]
    host = kubernetes_host.decide(defaults("kubernetes", "kubernetes_host", cgroup_v1=True), kubernetes_host.Seen())
    assert (host.kubelet, host.ignored_errors) == ({"failCgroupV1": False}, ["SystemVerification"])
    assert "failCgroupV1" not in documents().documents[2]


@pytest.mark.parametrize("first", [True, False])
def test_how_a_node_is_registered(first: bool) -> None:
    settings = {"node_ip": "192.0.2.1", "kubelet_extra_args": {"v": "2"}, "ignore_preflight_errors": ["Swap"]}
    registered = documents(first, backup={"name": "b"}, **settings).documents[0]["nodeRegistration"]
    assert registered["kubeletExtraArgs"] == [{"name": "node-ip", "value": "192.0.2.1"}, {"name": "v", "value": "2"}]
    assert registered["ignorePreflightErrors"] == ["Swap", "DirAvailable--var-lib-etcd"]
    assert "taints" not in registered
    assert documents(first, schedulable=True).documents[0]["nodeRegistration"]["taints"] == []
    assert "taints" not in documents(False, plane=False, schedulable=True).documents[0]["nodeRegistration"]


def test_who_joins_as_what() -> None:
    assert documents(False).documents[0]["controlPlane"] == {"localAPIEndpoint": {"advertiseAddress": "192.0.2.1"}}
    assert "controlPlane" not in documents(False, plane=False).documents[0]


def test_images_that_hosts_pull_meanwhile() -> None:
    flannel = "ghcr.io/flannel-io/flannel:v1"
    pinned = {"image_digests": {flannel: DIGEST, OWN[2]: DIGEST}}
    worker = documents(False, plane=False, network=[flannel], **pinned)
    # Those of kubeadm run under their tags.
    assert worker.images == [*OWN[1:3], f"{flannel}@{DIGEST}"]
    assert documents(False, network=[flannel]).images == [*OWN, flannel]
    assert documents().images == ()


def test_the_key_that_a_cluster_begins_with() -> None:
    assert documents().key_steps == []
    begun = documents(hardening="cis")
    assert begun.key_steps == [[IDENTITY, "key1"], ["key1", IDENTITY]]
    assert "encryption-provider-config" in str(begun.documents[1])
    # A backup that was put back has its own.
    assert documents(hardening="cis", keys=STEADY, backup={"name": "b"}).key_steps == [STEADY["order"]]
    # Its Secrets can't be read without, whatever the level is.
    assert documents(keys=STEADY, backup={"name": "b"}).key_steps == [STEADY["order"]]
    assert documents(keys=STEADY).key_steps == []


def harden(
    live: t.Sequence[str] = tuple(PLANES), signed: bool = False, configuration: str = CONFIGURATION, **more: t.Any
) -> HardeningWish:
    keys = more.pop("keys", [{"order": [], "digests": {}}] * len(live))
    nodes, hosts = [*PLANES, "w1"], more.pop("hosts", [*PLANES, "w1"])
    kubelets = [*PLANES, *["w1"] * signed]
    seen = kubernetes_hardening.Seen(configuration, list(PLANES), PLANES, live, keys, nodes, hosts, kubelets)
    return kubernetes_hardening.decide(defaults("kubernetes", "kubernetes_hardening", **more), seen)


def test_a_configuration_that_is_hardened_is_left_as_it_is() -> None:
    once = harden()
    assert once.uploads
    assert yaml.safe_load(once.text) == once.documents["cp2"][1]
    assert once.documents["cp2"][0]["localAPIEndpoint"] == {"advertiseAddress": "192.0.2.2"}
    assert once.rollout is None
    again = harden(configuration=once.text)
    assert (again.uploads, again.text) == (False, once.text)
    assert again.present
    assert again.present_files == once.files


@pytest.mark.parametrize(("live", "comes"), [(tuple(PLANES), True), (("cp1", "cp2"), False)])
def test_keys_come_when_all_control_planes_are_there(live: t.Sequence[str], comes: bool) -> None:
    decided = harden(live, hardening="cis")
    assert (decided.rollout is not None) is comes
    assert ("encryption-provider-config" in decided.text) is comes
    assert decided.live == live
    assert decided.super_admin is False
    assert harden().super_admin is True


def test_kubelets_are_believed_once_all_have_a_certificate_of_the_cluster() -> None:
    name = "kubelet-certificate-authority"
    assert (name in harden(hardening="cis").text, name in harden(hardening="cis", signed=True).text) == (False, True)
    # One that is not in this run, or has failed, is not known to have one.
    assert name not in harden(hardening="cis", signed=True, hosts=list(PLANES)).text


@pytest.mark.parametrize(
    ("members", "live", "read", "said"),
    [
        (["cp1", "cp2"], list(PLANES), STEADY, "All control planes need the new key .* in this run: cp3"),
        (list(PLANES), ["cp1", "cp3"], STEADY, "All control planes need the new key .* in this run: cp2"),
        (list(PLANES), list(PLANES), {**STEADY, "used": False}, "are not encrypted with keys of this collection"),
        (list(PLANES), list(PLANES), STEADY, ""),
    ],
)
def test_a_rotation(members: t.List[str], live: t.List[str], read: t.Any, said: str) -> None:
    settings = defaults("kubernetes", "kubernetes_encryption", rotate_encryption_key=True)
    seen = kubernetes_encryption.Seen(list(PLANES), members, live, [read] * len(live))
    if said:
        with pytest.raises(FabricError, match=said):
            kubernetes_encryption.decide(settings, seen)
        return
    decided = kubernetes_encryption.decide(settings, seen)
    assert decided.steps == [["key1", "key2", IDENTITY], ["key2", "key1", IDENTITY], ["key2", IDENTITY]]
    assert (decided.new, decided.source, decided.generate) == ("key2", "cp1", True)


CONFIGURATION = "kind: KubeletConfiguration\n"


def kubelet(hardening: str, text: str = "", needed: bool = False, serves: bool = False, **config: t.Any) -> KubeletWish:
    settings = defaults("kubernetes", "kubernetes_kubelet", hardening=hardening, kubelet_config=config)
    return kubernetes_kubelet.decide(settings, kubernetes_kubelet.Seen(text, needed, serves))


def test_the_default_changes_nothing() -> None:
    text = "# ours\nkind: KubeletConfiguration\n"
    assert (kubelet("baseline", text).settings, kubelet("baseline", text).content) == ({}, text)
    assert kubelet("cis").content == ""


def test_a_site_wins_over_the_benchmark() -> None:
    decided = kubelet(
        "cis",
        "kind: KubeletConfiguration\nmine: 1\n",
        podPidsLimit=100,
        authentication={"webhook": {"cacheTTL": "1m0s"}},
    )
    assert decided.settings["podPidsLimit"] == 100
    assert decided.settings["authentication"] == {
        "anonymous": {"enabled": False},
        "webhook": {"enabled": True, "cacheTTL": "1m0s"},
    }
    assert yaml.safe_load(decided.content) == {"kind": "KubeletConfiguration", "mine": 1, **decided.settings}


@pytest.mark.parametrize(
    ("text", "serves", "awaits"),
    [
        ("serverTLSBootstrap: true\n", False, True),
        ("serverTLSBootstrap: true\n", True, False),
        ('{"serverTLSBootstrap": true}', False, True),
        ("serverTLSBootstrap: false\n", False, False),
        ("# serverTLSBootstrap: true\n", False, False),
        ("", False, False),
    ],
)
def test_whether_a_kubelet_waits_for_a_certificate(text: str, serves: bool, awaits: bool) -> None:
    assert kubelet("baseline", text, serves=serves).awaits == awaits


def test_when_a_kubelet_is_changed() -> None:
    assert not kubelet("baseline", CONFIGURATION).due
    assert kubelet("baseline", CONFIGURATION, needed=True).due
    assert kubelet("cis", CONFIGURATION).due
    assert kubelet("cis", CONFIGURATION).awaits
    assert not kubelet("cis").due  # kubeadm writes it


ASKS = "serverTLSBootstrap: true\n"
DUE = {"content": "", "needed": True, "serves": False}


def kubelets(found: t.Mapping[str, t.Mapping[str, t.Any]], check_mode: bool = False, **settings: t.Any) -> KubeletsWish:
    seen = kubernetes_kubelets.Seen(
        control_planes=list(PLANES),
        hosts=list(found),
        nodes=[{"name": f"node-{host}", "address": "192.0.2.1,fd00::1"} for host in found],
        settings=[{"podPidsLimit": 1} if "kind" in kubelet["content"] else {} for kubelet in found.values()],
        kubelets=[{"changed": False, **kubelet} for kubelet in found.values()],
        check_mode=check_mode,
    )
    return kubernetes_kubelets.decide(defaults("kubernetes", "kubernetes_kubelets", **settings), seen)


def test_control_planes_and_then_the_workers_that_are_due() -> None:
    quiet = {**DUE, "needed": False}
    other = {**quiet, "content": CONFIGURATION}
    decided = kubelets({"w9": other, "cp3": DUE, "cp1": DUE, "cp2": quiet, "w1": quiet})
    assert (decided.planes, decided.workers, decided.refused) == (["cp1", "cp3"], ["w9"], [])
    assert decided.contents == {"w9": f"{CONFIGURATION}podPidsLimit: 1\n", "cp3": "", "cp1": ""}


def test_a_file_that_is_no_configuration_only_ends_its_own_host() -> None:
    decided = kubelets({"cp1": DUE, "w1": {**DUE, "content": "kind: ["}, "w9": DUE})
    assert (decided.planes, decided.workers, decided.refused) == (["cp1"], ["w9"], ["w1"])
    assert list(decided.addresses) == ["node-cp1", "node-w9"]
    with pytest.raises(FabricError):
        kubelet("cis", "kind: [")


def test_whose_certificates_are_approved() -> None:
    asks = {**DUE, "content": ASKS}
    found = {"cp1": asks, "w1": DUE, "w9": asks, "cp2": {**asks, "serves": True}}
    decided = kubelets(found, node_addresses={"cp1": ["192.0.2.1"]})
    assert (decided.awaited, decided.addresses) == (["node-cp1", "node-w9"], {"cp1": ["192.0.2.1"]})
    assert decided.signed == ["cp1", "w9", "cp2"]
    assert kubelets(found, check_mode=True).signed == ["cp2"]  # a check waits for none
    # Without a plan those of the hosts in the run.
    assert kubelets(found).addresses == {f"node-{host}": ["192.0.2.1", "fd00::1"] for host in found}


def kubeconfig(*authorities: str, key: str = "a") -> str:
    clusters = [{"cluster": {"certificate-authority-data": data}, "name": data} for data in authorities]
    return yaml.safe_dump({"kind": "Config", "clusters": clusters, "users": [{"user": {"client-key-data": key}}]})


def encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


@pytest.mark.parametrize(
    ("here", "kept"),
    [
        ("", False),
        (kubeconfig("OURS", key="b"), False),  # its certificate was renewed
        (kubeconfig("OTHER"), True),
        (kubeconfig("OURS", "OTHER"), True),  # somebody's ~/.kube/config
        ("{", True),
    ],
)
def test_the_kubeconfig_of_another_cluster_is_kept(here: str, kept: bool) -> None:
    seen = kubernetes_kubeconfig.Seen("cp1", here, encoded(kubeconfig("OURS")))
    decided = kubernetes_kubeconfig.decide(defaults("kubernetes", "kubernetes_kubeconfig", api_kubeconfig=""), seen)
    assert decided.of_others is kept


@pytest.mark.parametrize("fetched", [True, False])
def test_the_api_host_speaks_to_this_cluster(fetched: bool) -> None:
    settings = defaults("kubernetes", "kubernetes_kubeconfig", api_host="cp1", api_kubeconfig="/a")
    ours = ("old", encoded(kubeconfig("OURS"))) if fetched else (kubeconfig("OURS"), None)
    there = kubernetes_kubeconfig.Seen("cp1", *ours, encoded(kubeconfig("OURS", key="b")))
    kubernetes_kubeconfig.decide(settings, there)
    for text in (kubeconfig("OTHER"), kubeconfig("OURS", "OTHER"), ""):
        with pytest.raises(FabricError, match="leads to another cluster than the one of cp1"):
            kubernetes_kubeconfig.decide(settings, kubernetes_kubeconfig.Seen("cp1", *ours, encoded(text)))
