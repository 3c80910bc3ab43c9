"""Who asks which source for what, and what the plan says of those that do not answer."""

from __future__ import annotations

import dataclasses
import typing as t

import pytest
from ansible_collections.ipu.fabric.plugins.module_utils._network.digests import known_digest
from ansible_collections.ipu.fabric.plugins.module_utils._plan import source_questions
from ansible_collections.ipu.fabric.plugins.module_utils._plan.source_questions import Wanted
from ansible_collections.ipu.fabric.tests.unit.fixtures import site as sites

DIGEST = "d1" * 32
CHARTS = {"network_operator": "26.7.1", "ipu_operator": "1.2.0"}
CALICO_SOURCES = {"crds_url": "https://c/v{version}/crds.yaml", "operator_url": "https://c/operator.yaml"}
SOURCES: t.Dict[str, t.Any] = {
    "apt": {
        "kubernetes": {
            "uri": "https://k8s/v{minor}/deb/",
            "suite": "/",
            "components": "",
            "key_url": "https://k8s/key",
            "key_fingerprint": "AB12",
        },
        "containerd": {"uri": "https://d/{distribution}", "suite": "{release}", "components": "stable", "key_url": ""},
    },
    "registry": "mirror.site:5000",
    "charts": dict.fromkeys(CHARTS, "https://charts"),
    "chart_sha256": {"network-operator-26.7.1": DIGEST},
    "helm": {"url": "https://get/helm-v3.22.0-linux-amd64.tar.gz", "checksum": f"sha256:{DIGEST}"},
    "cri_dockerd": {"url": "https://m/{version}.{arch}.tgz", "version": "0.3.26"},
    "calico": CALICO_SOURCES,
    "mpi_operator": {"url": "https://m/mpi.yaml", "sha256": DIGEST},
}
WANTED = Wanted(
    sources=SOURCES,
    managed=True,
    runtime="containerd",
    kubernetes="v1.36.3",
    cni="calico",
    calico="v3.32.1",
    charts=CHARTS,
    names={"network_operator": "network-operator", "ipu_operator": "site-ipu"},
    upstream={"network_operator": "network-operator", "ipu_operator": "ipu-operator"},
    login=False,
    repository="",
    installation={},
    helm="/site/bin/helm-v3.22.0-linux-amd64",
    manifests={"crds": "/site/calico-crds.yaml"},
    crd_url="",
)
DEAD = {
    "variable": "fabric_mirror.apt.kubernetes.uri", "url": "http://mirror.site/apt", "seen": "connection refused",
    "lacks": "", "release": "fabric_kubernetes_version", "chart": "", "playbook": "",
}  # fmt: skip


def asked(who: str, **changes: t.Any) -> t.Dict[str, t.Any]:
    """The questions of some, by their variables."""
    found = source_questions.source_questions(dataclasses.replace(WANTED, **changes))
    return {each["variable"]: each for each in found[who]}  # type: ignore[literal-required]


def test_each_host_asks_for_what_it_takes() -> None:
    found = asked("hosts")
    assert {variable.partition(".")[2]: each["url"] for variable, each in found.items()} == {
        "apt.kubernetes.key_url": "https://k8s/key",
        "apt.kubernetes.uri": "https://k8s/v1.36/deb/",
        "apt.containerd.uri": "https://d/{distribution}",
        "registry": "https://mirror.site:5000",
    }
    assert found["fabric_mirror.registry"]["images"] == ["registry.k8s.io/kube-apiserver:v1.36.3"]
    package = found["fabric_mirror.apt.kubernetes.uri"]
    assert (package["name"], package["version"]) == ("kubelet", "1.36.3")
    assert {each["kubelet"] for each in found.values()} == {"1.36.3"}
    assert asked("hosts", runtime="docker")["fabric_mirror.cri_dockerd.url"]["url"] == "https://m/0.3.26.{arch}.tgz"


def test_one_control_plane_asks_for_the_images_of_the_pod_network() -> None:
    (images,) = asked("planes").values()
    assert "quay.io/calico/node:v3.32.1" in images["images"]
    assert asked("planes", installation={"registry": "other.site"}) == {}
    assert asked("planes", cni="none") == {}


def test_who_speaks_to_the_api_asks_for_charts_and_helm() -> None:
    found = asked("api")
    assert {
        variable: (each["name"], each["version"]) for variable, each in found.items() if each["kind"] == "charts"
    } == {
        "fabric_mirror.charts.network_operator": ("network-operator", "26.7.1"),
        "fabric_mirror.charts.ipu_operator": ("site-ipu", "1.2.0"),  # under its own name in the mirror of a site
    }
    assert found["fabric_mirror.helm.url"]["path"] == "/site/bin/helm-v3.22.0-linux-amd64"
    assert asked("api", charts={}) == {}
    assert asked("api", crd_url="https://crd")["ipu_operator_crd_url"]["url"] == "https://crd"


def test_the_controller_asks_for_manifests() -> None:
    found = asked("controller")
    assert found["fabric_mirror.calico.crds_url"]["url"] == "https://c/v3.32.1/crds.yaml"
    assert found["fabric_mirror.calico.crds_url"]["path"] == "/site/calico-crds.yaml"
    assert found["fabric_mirror.mpi_operator.url"]["playbook"] == "workloads"
    assert list(asked("controller", cni="flannel")) == ["fabric_mirror.mpi_operator.url"]


def stated(who: str, **changes: t.Any) -> t.Dict[str, t.Tuple[str, str]]:
    """What some compare an answer with, and how a site sets that, by the variable of the source."""
    return {
        variable.partition(".")[2]: (each["checksum"] or each.get("fingerprint", ""), each["setting"])
        for variable, each in asked(who, **changes).items()
        if "checksum" in each
    }


def test_what_the_answers_are_compared_with() -> None:
    """A wrong digest passed the plan, and site failed at the first one, then at the second one."""
    apt, mirror = SOURCES["apt"], "fabric_mirror: {{{}}}"
    assert stated("hosts") == {
        "apt.kubernetes.key_url": ("AB12", mirror.format("apt: {kubernetes: {key_fingerprint: FINGERPRINT}}"))
    }
    kubernetes = {**apt["kubernetes"], "key_sha256": DIGEST}
    assert stated("hosts", sources={**SOURCES, "apt": {"kubernetes": kubernetes}}) == {
        "apt.kubernetes.key_url": (DIGEST, mirror.format("apt: {kubernetes: {key_sha256: SHA256}}"))
    }
    assert stated("api") == {
        "charts.network_operator": (DIGEST, mirror.format("chart_sha256: {network-operator-26.7.1: SHA256}")),
        # Upstream's, under its own name, as site compares it.
        "charts.ipu_operator": (
            known_digest("ipu-operator-1.2.0"),
            mirror.format("chart_sha256: {ipu-operator-1.2.0: SHA256}"),
        ),
        "helm.url": (f"sha256:{DIGEST}", mirror.format("helm: {checksum: sha256:SHA256}")),
    }
    assert stated("controller", sources={**SOURCES, "calico": {**CALICO_SOURCES, "crds_checksum": DIGEST}}) == {
        "calico.crds_url": (DIGEST, mirror.format("calico: {crds_checksum: sha256:SHA256}")),
        "calico.operator_url": (
            known_digest("calico-3.32.1/tigera-operator.yaml"),
            mirror.format("calico: {operator_checksum: sha256:SHA256}"),
        ),
        "mpi_operator.url": (DIGEST, mirror.format("mpi_operator: {sha256: SHA256}")),
    }
    cri_dockerd = {**SOURCES["cri_dockerd"], "checksum": f"sha256:{DIGEST}"}
    found = stated("hosts", runtime="docker", sources={**SOURCES, "cri_dockerd": cri_dockerd})
    assert found["cri_dockerd.url"] == (f"sha256:{DIGEST}", mirror.format("cri_dockerd: {checksum: sha256:SHA256}"))


def test_a_list_of_digests_is_a_source_too() -> None:
    helm = {"url": "https://get/helm.tar.gz", "checksum": "sha256:https://get/helm.tar.gz.sha256sum"}
    calico = {**CALICO_SOURCES, "operator_checksum": "sha256:https://c/sums"}
    sources = {**SOURCES, "helm": helm, "calico": calico}
    found = asked("api", sources=sources)["fabric_mirror.helm.checksum"]
    assert (found["url"], found["path"]) == ("https://get/helm.tar.gz.sha256sum", WANTED.helm)
    assert asked("controller", sources=sources)["fabric_mirror.calico.operator_checksum"]["url"] == "https://c/sums"
    problem = {**DEAD, "variable": "fabric_mirror.helm.checksum", "url": found["url"]}
    finding = sites.errors(sites.plan(sites.site(), source_problems=[problem]))["sources"]
    assert finding["next"].startswith("Name a source that answers, fabric_mirror: {helm: {checksum: sha256:URL}}")


def test_hosts_of_others_take_only_images() -> None:
    assert list(asked("hosts", managed=False)) == ["fabric_mirror.registry"]
    assert asked("hosts", managed=False, sources={**SOURCES, "registry": ""}) == {}
    assert asked("planes", managed=False) == {}
    assert list(asked("controller", managed=False)) == ["fabric_mirror.mpi_operator.url"]


def test_one_finding_for_a_source_with_the_hosts_that_see_it_so() -> None:
    hosts = sites.site()
    for name in ("w1", "w2"):
        hosts[name]["host"]["sources"] = [DEAD]
    finding = sites.errors(sites.plan(hosts))["sources"]
    assert finding["hosts"] == ["w1", "w2"]
    assert finding["seen"] == "http://mirror.site/apt (fabric_mirror.apt.kubernetes.uri): connection refused"
    assert finding["next"].startswith(
        "Name a source that answers, fabric_mirror: {apt: {kubernetes: {uri: URL}}}, or let these hosts"
    )
    hosts["w1"]["recalled"] = "2026-11-20T00:00:00+00:00"
    assert sites.errors(sites.plan(hosts))["sources"]["hosts"] == ["w2"]


@pytest.mark.parametrize(("number", "told"), [(3, 3), (4, 1), (9, 1)])
def test_a_site_without_internet_gets_one_finding(number: int, told: int) -> None:
    """It was an error for each of twelve sources, and none named the way of a site without internet."""
    hosts, lacking = sites.site(), {**DEAD, "lacks": "kubelet 1.36.9"}
    for name in ("w1", "w2"):
        dead = [{**DEAD, "variable": f"fabric_mirror.charts.c{place}"} for place in range(number)]
        hosts[name]["host"]["sources"] = [*dead, lacking]
    found = [each for each in sites.plan(hosts)["findings"] if each["check"] == "sources"]
    assert len(found) == told + 1
    assert {tuple(each["hosts"]) for each in found} == {("w1", "w2")}
    assert (f"{number} sources of this site" in found[0]["what"], "fabric_bundle" in found[0]["next"]) == (
        told == 1,
    ) * 2
    assert all(f"fabric_mirror.charts.c{place}" in str(found) for place in range(number))


def test_what_only_another_playbook_needs_is_a_warning() -> None:
    problem = {**DEAD, "variable": "fabric_mirror.mpi_operator.url", "playbook": "workloads"}
    found = sites.plan(sites.site(), source_problems=[problem])
    assert "sources" not in sites.errors(found)
    assert sites.errors(found, "warning")["sources"]["next"].startswith("Only the playbook workloads needs it.")


OTHER = {
    **DEAD, "variable": "fabric_mirror.calico.crds_url", "url": "https://c/crds.yaml", "seen": f"sha256 {'e2' * 32}",
    "release": "", "expected": DIGEST, "setting": "fabric_mirror: {calico: {crds_checksum: sha256:SHA256}}",
}  # fmt: skip


def test_each_digest_that_differs_is_one_finding() -> None:
    hosts = sites.site()
    key = {
        "variable": "fabric_mirror.apt.kubernetes.key_url", "seen": "fingerprint CD34", "expected": "AB12",
        "setting": "fabric_mirror: {apt: {kubernetes: {key_fingerprint: FINGERPRINT}}}",
    }  # fmt: skip
    for name in ("w1", "w2"):
        hosts[name]["host"]["sources"] = [{**OTHER, **key}]
    more = [{**OTHER, "variable": f"fabric_mirror.charts.c{place}", "chart": f"c{place}-1"} for place in range(4)]
    plan = sites.plan(hosts, source_problems=[OTHER, *more], allow=["sources"])
    found = [each for each in plan["findings"] if each["check"] == "source-digest"]
    assert [(each["level"], each["hosts"]) for each in found] == [("error", [])] * 5 + [("error", ["w1", "w2"])]
    assert found[0]["seen"] == (
        f"https://c/crds.yaml (fabric_mirror.calico.crds_url): sha256 {'e2' * 32}, expected {DIGEST}"
    )
    assert found[0]["next"].endswith("or correct fabric_mirror: {calico: {crds_checksum: sha256:SHA256}}.")
    assert found[-1]["seen"].endswith("(fabric_mirror.apt.kubernetes.key_url): fingerprint CD34, expected AB12")
    assert "fabric_allow" not in str(found)  # site would still refuse it
    assert "sources" not in sites.errors(plan)


def test_a_digest_that_only_another_playbook_compares_is_a_warning() -> None:
    plan = sites.plan(sites.site(), source_problems=[{**OTHER, "playbook": "workloads"}])
    assert "source-digest" not in sites.errors(plan)
    assert "Only the playbook workloads" in sites.errors(plan, "warning")["source-digest"]["next"]


def test_a_dead_mirror_of_finished_hosts_is_one_warning() -> None:
    hosts = sites.finished()
    dead = {**DEAD, "variable": "fabric_mirror.registry", "url": "https://mirror.site:5000", "later": True}
    for name, seen in (("cp1", "connection refused"), ("w1", "no answer within 5 s"), ("w2", "connection refused")):
        hosts[name]["host"]["sources"] = [{**dead, "seen": seen}]
    hosts["cp1"]["host"]["sources"] *= 2  # asked for the images of the pod network too
    plan = sites.plan(hosts)
    (found,) = [each for each in plan["findings"] if each["check"] == "sources"]
    assert (found["level"], found["hosts"]) == ("warning", ["cp1", "w1", "w2"])
    place = "https://mirror.site:5000 (fabric_mirror.registry)"
    assert found["seen"] == f"{place}: connection refused; {place}: no answer within 5 s"
    assert found["next"].startswith("Pods whose images are not on their node yet will not start")
    assert "`curl -IL https://mirror.site:5000/v2/`" in found["next"]


def test_a_release_that_does_not_exist_names_its_variable() -> None:
    problem = {**DEAD, "lacks": "kubelet 1.36.9", "seen": "on offer: 1.36.3-1.1"}
    finding = sites.errors(sites.plan(sites.site(), source_problems=[problem]))["sources"]
    assert finding["what"] == "A source does not have kubelet 1.36.9."
    assert "or set fabric_kubernetes_version to a release that it has." in finding["next"]


def test_a_release_that_a_mirror_has_is_named_as_it_is() -> None:
    """It was 1.37.0, the newest of the table, which the mirror did not have either."""
    hosts = sites.site()
    for name, offers in (("w1", ["1.36.3", "1.36.2", "1.38.0"]), ("w2", ["1.36.2"])):
        lacks = {"lacks": "kubelet 1.41.0", "seen": f"on offer: {offers}", "offers": offers}
        hosts[name]["host"]["sources"] = [{**DEAD, **lacks}]
    found = sites.plan(hosts, kubernetes_version="1.41.0")["findings"]
    advised = {each["hosts"][0]: each["next"] for each in found if each["check"] == "sources"}
    assert "or set fabric_kubernetes_version to 1.36.3, which it has." in advised["w1"]
    assert "or set fabric_kubernetes_version to 1.36.2, which it has." in advised["w2"]
    (unknown,) = [each["next"] for each in found if each["check"] == "kubernetes-version"]
    assert unknown.startswith("Set fabric_kubernetes_version to a release of 1.36, such as 1.36.2.")


def test_a_chart_that_is_installed_is_not_fetched() -> None:
    problem = {**DEAD, "variable": "fabric_mirror.charts.gpu_operator", "chart": "gpu-operator-26.7.0"}
    hosts = sites.finished()
    assert "sources" in sites.errors(sites.plan(hosts, source_problems=[problem]))
    hosts["cp1"]["host"]["cluster"]["charts"] = ["gpu-operator-26.7.0"]
    assert "sources" not in sites.errors(sites.plan(hosts, source_problems=[problem]))


@pytest.mark.parametrize(("release", "expected"), [("26.8.0", {"network-operator-version"}), ("26.7.1", {"sources"})])
def test_a_release_of_an_operator_that_does_not_exist_is_one_error(release: str, expected: t.Set[str]) -> None:
    chart = {"chart": f"network-operator-{release}", "release": "fabric_network_operator_version"}
    problem = {**DEAD, **chart, "variable": "fabric_mirror.charts.network_operator", "lacks": f"chart {release}"}
    hosts = sites.finished()
    hosts["cp1"]["host"]["cluster"]["charts"] = ["network-operator-26.4.2"]
    digests = {"network-operator-26.7.1": "0" * 64}
    sources = {"charts": {"network_operator": "http://mirror.site/charts"}, "chart_sha256": digests}
    settings = {"network_operator_version": release, "sources": sources, "source_problems": [problem]}
    assert set(sites.errors(sites.plan(hosts, **settings))) == expected


def test_flannel_is_asked_for_where_calico_is_wanted() -> None:
    for who, variable in (("planes", "fabric_mirror.registry"), ("controller", "fabric_mirror.calico.operator_url")):
        instead = asked(who)[variable]["instead"]
        assert (instead["kind"], instead["url"], instead["name"]) == ("images", "https://mirror.site:5000", "flannel")
        assert [image.rpartition(":")[0] for image in instead["images"]] == [
            "ghcr.io/flannel-io/flannel",
            "ghcr.io/flannel-io/flannel-cni-plugin",
        ]
        assert "instead" not in asked(who, login=True)[variable]  # what a registry says to nobody is no proof
    assert "instead" not in asked("planes", cni="flannel")["fabric_mirror.registry"]
    assert all("instead" not in each for each in asked("hosts").values())


CALICO = {**DEAD, "variable": "fabric_mirror.calico.operator_url", "instead": "flannel"}
IMAGES = {**DEAD, "variable": "fabric_mirror.registry"}


@pytest.mark.parametrize(
    ("hosts", "problem", "of_cp1", "told"),
    [
        (sites.site, CALICO, [], True),
        (sites.site, {**CALICO, "lacks": "quay.io/calico/node:v3.32.1"}, [], True),
        (sites.site, CALICO, [{**IMAGES, "instead": "flannel"}], True),
        (sites.site, CALICO, [IMAGES], False),  # hosts would not get them
        (sites.site, DEAD, [], False),
        (sites.finished, CALICO, [], False),  # no role replaces a pod network
    ],
)
def test_a_dead_source_of_calico_names_the_pod_network_that_is_there(
    hosts: t.Any, problem: t.Any, of_cp1: t.Any, told: bool
) -> None:
    seen = hosts()
    seen["cp1"]["host"]["sources"] = of_cp1
    found = [one for one in sites.plan(seen, source_problems=[problem])["findings"] if one["check"] == "sources"]
    steps = ["Or set fabric_cni to flannel, whose images are available." in one["next"] for one in found]
    assert steps == [told] * (1 + len(of_cp1))
