"""Docker Engine as the runtime: what the plan says of it, and what it refuses."""

import pytest
import yaml
from ansible_collections.ipu.fabric.plugins.module_utils._component.kubernetes_kubelet import kubelet_settings
from ansible_collections.ipu.fabric.plugins.module_utils._model.bundle import SeenBundle
from ansible_collections.ipu.fabric.plugins.module_utils._network.digests import CRI_DOCKERD_KNOWN, known_digest
from ansible_collections.ipu.fabric.plugins.module_utils._plan.report import as_text
from ansible_collections.ipu.fabric.tests.unit.fixtures import site as sites
from ansible_collections.ipu.fabric.tests.unit.fixtures.components import defaults
from ansible_collections.ipu.fabric.tests.unit.fixtures.paths import ROOT

DEFAULTS = yaml.safe_load((ROOT / "roles/kubernetes/defaults/main.yml").read_text(encoding="utf-8"))
SOURCE = DEFAULTS["kubernetes_cri_dockerd"]
DIGEST = "ab" * 32


def plan(hosts=None, runtime="docker", source=None, registry="", **settings):
    sources = {"cri_dockerd": {**SOURCE, **(source or {})}, "registry": registry}
    return sites.plan(hosts or sites.site(), runtime=runtime, sources=sources, **settings)


def test_docker_as_it_comes():
    """The release that is installed by default has a known digest."""
    planned = plan()
    assert planned["findings"] == []
    release = SOURCE["version"]
    assert planned["cluster"]["runtime"] == {
        "name": "docker",
        "cri_dockerd": release,
        "kubelet_feature_gates": {"ExtendWebSocketsToKubelet": False},
    }
    place = f"https://github.com/Mirantis/cri-dockerd/releases/download/v{release}/cri-dockerd-{release}.amd64.tgz"
    digest = known_digest(f"cri-dockerd-{release}.amd64.tgz")
    assert {"name": f"cri-dockerd {release} (amd64)", "url": place, "sha256": digest} in planned["sources"]
    text = " ".join(as_text(planned).split())
    assert f"container runtime docker, by cri-dockerd {release}, feature gate ExtendWebSocketsToKubelet of" in text


def test_nothing_is_said_of_containerd():
    planned = plan(runtime="containerd")
    assert planned["findings"] == []
    assert not [source for source in planned["sources"] if "dockerd" in source["name"]]
    assert "runtime" not in as_text(planned)


@pytest.mark.parametrize(("version", "gates"), [("1.35.4", 0), ("1.36.0", 1), ("1.37.0", 1)])
def test_the_feature_gate_is_that_of_the_role(version, gates):
    """An unknown gate stops a kubelet: it came with 1.36 as one that is on."""
    planned = plan(kubernetes_version=version)["cluster"]["runtime"]["kubelet_feature_gates"]
    assert len(planned) == gates
    docker, plain = (
        kubelet_settings(defaults("kubernetes", "kubernetes_kubelet", version=version, runtime=runtime))
        for runtime in ("docker", "containerd")
    )
    assert (docker, plain) == ({"featureGates": planned} if gates else {}, {})


@pytest.mark.parametrize(
    ("settings", "seen"),
    [
        ({"registry": "http://user:secret@mirror.site:5000"}, "fabric_mirror.registry is http://mirror.site:5000"),
        ({"bundle": SeenBundle("/bundle", "it is not there", (), None)}, "fabric_bundle is set"),
        ({"gpu": True}, "fabric_gpu is true"),
        ({"upgrade": True}, "fabric_runtime is docker"),
    ],
)
def test_what_docker_can_not_do_is_refused_by_name(settings, seen):
    found = sites.errors(plan(**settings))["runtime"]
    assert found["seen"] == seen
    assert "runtime" not in sites.errors(plan(runtime="containerd", **settings))
    # It can't be allowed: nothing would come of it.
    assert "runtime" in sites.errors(plan(allow=["runtime"], **settings))


def test_a_release_without_a_known_digest_is_asked_for():
    found = sites.errors(plan(source={"version": "0.4.3"}))["runtime"]
    assert "cri-dockerd 0.4.3 from https://github.com/" in found["seen"]
    assert (
        "`curl -fsSL https://github.com/Mirantis/cri-dockerd/releases/download/v0.4.3/cri-dockerd-0.4.3.amd64.tgz"
        in (found["next"])
    )
    assert all(release in found["next"] for release in CRI_DOCKERD_KNOWN)
    given = plan(source={"version": "0.4.3", "checksum": f"sha256:{DIGEST}"})
    assert given["findings"] == []
    assert given["sources"][-1]["sha256"] == DIGEST


def test_a_mirror_may_call_the_archive_by_another_name():
    planned = plan(source={"url": "http://mirror.site/{arch}/cri.tgz"})
    assert planned["findings"] == []
    assert planned["sources"][-1]["url"] == "http://mirror.site/amd64/cri.tgz"


def test_hosts_of_both_architectures():
    hosts = sites.site()
    hosts["w1"]["host"]["architecture"] = "aarch64"
    names = [source["name"] for source in plan(hosts, allow=["architecture"])["sources"]]
    assert [name.partition("(")[2] for name in names if "dockerd" in name] == ["amd64)", "arm64)"]


@pytest.mark.parametrize(
    ("runtime", "there", "step"),
    [
        ("docker", "containerd", "Set fabric_runtime to containerd."),
        ("containerd", "docker", "Set fabric_runtime to docker."),
        ("containerd", "/run/crio/crio.sock", "Take the host out of the inventory."),
    ],
)
def test_no_role_changes_the_runtime_of_a_node(runtime, there, step):
    hosts = sites.finished()
    for name, host in hosts.items():
        host["host"]["runtime"] = there if name != "cp1" else runtime
    found = sites.errors(plan(hosts, runtime=runtime))["cluster-runtime"]
    assert (found["hosts"], found["next"]) == (["w1", "w2"], step)
    for host in hosts.values():
        host["host"]["runtime"] = runtime
    assert "cluster-runtime" not in sites.errors(plan(hosts, runtime=runtime))


def test_a_cluster_of_others_has_its_own_runtime():
    planned = plan(sites.finished(), manage_kubernetes=False)
    assert planned["cluster"]["runtime"]["name"] == ""
    assert "fabric_manage_kubernetes is false" in sites.errors(planned, "warning")["runtime"]["seen"]
    assert not [source for source in planned["sources"] if "dockerd" in source["name"]]
