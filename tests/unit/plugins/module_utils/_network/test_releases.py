"""Releases that go together."""

import pytest
import yaml
from ansible_collections.ipu.fabric.plugins.module_utils._common.findings import Findings
from ansible_collections.ipu.fabric.plugins.module_utils._model.settings import Settings
from ansible_collections.ipu.fabric.plugins.module_utils._model.stacks import STACKS
from ansible_collections.ipu.fabric.plugins.module_utils._network import releases as release_table
from ansible_collections.ipu.fabric.tests.unit.fixtures.paths import ROOT
from ansible_collections.ipu.fabric.tests.unit.fixtures.site import SETTINGS


def resolve(
    kubernetes="1.35.4",
    operator="26.4.1",
    ipu="1.2.0",
    ipam="auto",
    cni="calico",
    managed=True,
    allow=(),
    offered=(),
    **settings,
):
    findings = Findings(allow)
    asked = {
        "kubernetes_version": kubernetes,
        "network_operator_version": operator,
        "ipu_operator_version": ipu,
        "ipam": ipam,
        "cni": cni,
        "manage_kubernetes": managed,
    }
    whole = Settings(**{**SETTINGS, **asked, **settings})
    return release_table.choose_releases(whole, findings, offered), findings.as_list()


def fabric_defaults():
    return yaml.safe_load((ROOT / "roles/fabric/defaults/main.yml").read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    ("kubernetes", "operator", "ipam"),
    [
        ("1.35.4", "26.4.1", "nv-ipam"),
        ("1.31.0", "26.1.2", "nv-ipam"),
        ("1.34.2", "25.10.0", "nv-ipam"),
        ("1.32.1", "25.7.0", "whereabouts"),
        ("1.31.9", "25.1.0", "whereabouts"),
        ("v1.35.4", "v26.4.1", "nv-ipam"),
    ],
)
def test_what_goes_together(kubernetes, operator, ipam):
    releases, findings = resolve(kubernetes, operator)
    assert findings == []
    assert releases["ipam"] == ipam
    assert releases["kubernetes"] == kubernetes.lstrip("v")


@pytest.mark.parametrize(
    ("change", "check", "next_step"),
    [
        ({"kubernetes": "one"}, "kubernetes-version", "three numbers"),
        ({"kubernetes": "1.28.3"}, "kubernetes-version", "release of 1.31"),
        ({"kubernetes": "1.40.0"}, "kubernetes-version", "release of 1.37"),
        (
            {"kubernetes": "1.36.3"},
            "kubernetes-range",
            "to 26.7.1, or set fabric_kubernetes_version to a release of 1.35",
        ),
        (
            {"operator": "25.7.0"},
            "kubernetes-range",
            "to 26.7.1, or set fabric_kubernetes_version to a release of 1.32",
        ),
        ({"operator": "1.4.0"}, "kubernetes-range", "Set fabric_network_operator_version to 26.7.1. Or allow it"),
        ({"operator": "24.2.0"}, "network-operator-version", "Set fabric_network_operator_version to 26.7.1."),
        ({"operator": "latest"}, "network-operator-version", "26.7.1"),
        ({"ipu": "2.0.0"}, "ipu-operator-version", "Set fabric_ipu_operator_version to 1.2.0"),
        ({"ipu": "1.0.3"}, "ipu-operator-version", "To keep an operator from a tarball"),
        ({"cni": "weave"}, "cni", "Set fabric_cni to calico, flannel or none."),
        ({"ipam": "dhcp"}, "ipam", "nv-ipam or whereabouts"),
    ],
)
def test_refused_with_the_nearest_that_works(change, check, next_step):
    findings = resolve(**change)[1]
    errors = {finding["check"]: finding["next"] for finding in findings if finding["level"] == "error"}
    assert next_step in errors[check]


MIRROR = ["1.30.9", "1.35.4", "1.35.10", "1.36.3", "1.38.0"]


@pytest.mark.parametrize(
    ("change", "check", "release"),
    [
        ({"kubernetes": "1.35"}, "kubernetes-version", "of a release, such as 1.36.3."),
        ({"kubernetes": "1.28.3"}, "kubernetes-version", "a release of 1.36, such as 1.36.3."),
        ({"kubernetes": "1.40.0"}, "kubernetes-version", "a release of 1.36, such as 1.36.3."),
        ({"kubernetes": "1.36.9"}, "kubernetes-range", "a release of 1.35, such as 1.35.10."),
    ],
)
def test_a_release_of_kubernetes_is_advised_only_where_the_site_gets_it(change, check, release):
    """1.37.0 was advised to a site whose mirror has 1.36.3 alone."""
    (finding,) = [each for each in resolve(**change, offered=MIRROR)[1] if each["check"] == check]
    assert finding["next"].partition(" Or allow")[0].endswith(release)
    for offered in ((), ["1.30.9", "1.38.0"]):
        (finding,) = [each for each in resolve(**change, offered=offered)[1] if each["check"] == check]
        assert "such as" not in finding["next"]


@pytest.mark.parametrize(
    ("operator", "kubernetes", "version"),
    [("25.7.0", "1.32.1", ""), ("25.10.0", "1.34.2", "0.9.4"), ("26.4.1", "1.35.4", "0.9.4")],
)
def test_whereabouts_of_the_operator_and_on_its_own(operator, kubernetes, version):
    releases, findings = resolve(kubernetes, operator, ipam="whereabouts")
    assert findings == []
    assert (releases["ipam"], releases["whereabouts"]) == ("whereabouts", version)
    assert releases["whereabouts_standalone"] == bool(version)
    assert ("ipamPlugin" in releases["components"]) == (not version)
    assert "nvIpam" not in releases["components"]


CALICO_3_32_1 = [
    "quay.io/tigera/operator:v1.42.3",
    "quay.io/calico/node:v3.32.1",
    "quay.io/calico/cni:v3.32.1",
    "quay.io/calico/typha:v3.32.1",
    "quay.io/calico/kube-controllers:v3.32.1",
    "quay.io/calico/pod2daemon-flexvol:v3.32.1",
    "quay.io/calico/csi:v3.32.1",
    "quay.io/calico/node-driver-registrar:v3.32.1",
]
FLANNEL = ["ghcr.io/flannel-io/flannel:v0.28.10", "ghcr.io/flannel-io/flannel-cni-plugin:v1.9.1-flannel3"]


@pytest.mark.parametrize(
    ("cni", "calico", "version", "images"),
    [
        ("calico", "3.32.1", "v3.32.1", CALICO_3_32_1),
        ("calico", "v3.32.1", "v3.32.1", CALICO_3_32_1),
        ("calico", "3.29.0", "", []),
        ("flannel", "3.29.0", "v0.28.10", FLANNEL),
        ("none", "3.32.1", "", []),
    ],
)
def test_images_of_the_pod_network(cni, calico, version, images):
    assert release_table.pod_network(cni, calico) == (version, images)


@pytest.mark.parametrize("cni", ["calico", "flannel"])
def test_the_documentation_lists_the_images_of_the_pod_network(cni):
    listed = (ROOT / "docs/mirror.md").read_text(encoding="utf-8").splitlines()
    version, images = release_table.pod_network(cni, fabric_defaults()["fabric_calico_version"])
    assert set(images) <= set(listed)
    assert [line for line in listed if version in line and " " not in line] == [i for i in images if version in i]


def test_the_documentation_has_the_table_of_network_operators():
    listed = (ROOT / "docs/releases.md").read_text(encoding="utf-8").splitlines()
    for line, operator in release_table.NETWORK_OPERATORS.items():
        low, high = map(release_table.show, operator.kubernetes)
        kernel = f"before {release_table.show(operator.kernel_before)}" if operator.kernel_before else "any"
        (row,) = (each for each in listed if each.startswith(f"| {release_table.show(line)} | {operator.newest} | "))
        assert f" | {low} to {high} | " in row
        assert row.endswith(f" | {kernel} |")


def test_the_documentation_lists_the_releases_of_calico():
    text = (ROOT / "docs/releases.md").read_text(encoding="utf-8")
    assert ", ".join(release_table.CALICOS) in text


def test_each_release_of_calico_has_its_own_operator():
    images = release_table.pod_network("calico", "3.31.0")[1]
    assert images[0] == "quay.io/tigera/operator:v1.40.0"
    assert {image.rpartition(":")[2] for image in images[1:]} == {"v3.31.0"}


@pytest.mark.parametrize(
    ("release", "names", "on_hosts"),
    [
        ("3.32.2", 7, ["node", "cni", "pod2daemon-flexvol", "csi", "node-driver-registrar"]),
        # Neither cni nor typha nor csi exist any more.
        ("v3.33.1", 3, ["node", "calico", "third-party-cni-plugins"]),
        ("3.40.0", 3, ["node", "calico", "third-party-cni-plugins"]),
        ("3.29.0", 7, ["node", "cni", "pod2daemon-flexvol", "csi", "node-driver-registrar"]),
        ("latest", 7, ["node", "cni", "pod2daemon-flexvol", "csi", "node-driver-registrar"]),
    ],
)
def test_each_line_of_calico_has_images_that_exist(release, names, on_hosts):
    parts = release_table.calico_parts(release)
    assert (len(parts.names), parts.on_hosts) == (names, on_hosts)


@pytest.mark.parametrize(
    ("settings", "check", "seen"),
    [
        (
            {"calico_version": "3.33.1"},
            "calico-version",
            "3.33.1 has come out, but this collection does not know digests",
        ),
        ({"operator": "v26.10.0"}, "network-operator-version", "does not know which Kubernetes its vendor supports"),
        ({"gpu": True, "gpu_operator_version": "26.7.1"}, "gpu-operator-version", "26.7.1 has come out"),
        ({"stack": "spiderpool", "spiderpool_version": "1.2.3"}, "spiderpool-version", "1.2.3 has come out"),
    ],
)
def test_a_release_of_which_too_little_is_known_is_refused_by_name(settings, check, seen):
    [finding] = [each for each in resolve(**settings)[1] if each["check"] == check]
    assert (finding["level"], seen in finding["seen"]) == ("error", True)


def test_what_is_not_known_is_in_no_table():
    known = {
        "Calico": release_table.CALICOS,
        "GPU operator": release_table.GPU_OPERATORS,
        "network operator": [operator.newest for operator in release_table.NETWORK_OPERATORS.values()],
        "Spiderpool": STACKS["spiderpool"].charts,
    }
    assert set(release_table.NOT_KNOWN) == set(known)
    assert not [each for name, releases in release_table.NOT_KNOWN.items() for each in releases if each in known[name]]


@pytest.mark.parametrize(
    ("kubernetes", "gpu_operator", "step"),
    [
        ("1.36.5", "26.7.0", None),
        ("1.33.1", "26.7.0", None),
        ("1.36.5", "25.10.1", "Set fabric_gpu_operator_version to 26.7.0."),
        ("1.32.1", "26.7.0", "Set fabric_gpu_operator_version to 26.3.3."),
        (
            "1.37.2",
            "26.7.0",
            "Nothing, if you have tested it: no release of the table is supported with this Kubernetes.",
        ),
    ],
)
def test_a_kubernetes_that_the_gpu_operator_is_not_supported_with(kubernetes, gpu_operator, step):
    findings = resolve(kubernetes, "26.7.1", gpu=True, gpu_operator_version=gpu_operator)[1]
    found = [each for each in findings if each["check"] == "gpu-operator-version"]
    assert [(each["level"], each["next"]) for each in found] == ([("warning", step)] if step else [])


def test_the_default_kubernetes_is_the_newest_that_every_default_goes_with():
    fabric = fabric_defaults()
    newest = {
        "calico": release_table.CALICO_KUBERNETES,
        "gpu_operator": {line: high for line, (_low, high) in release_table.GPU_KUBERNETES.items()},
        "network_operator": {line: row.kubernetes[1] for line, row in release_table.NETWORK_OPERATORS.items()},
    }
    highest = [table[release_table.parse(fabric[f"fabric_{name}_version"])[:2]] for name, table in newest.items()]
    assert release_table.parse(fabric["fabric_kubernetes_version"])[:2] == min(highest)


@pytest.mark.parametrize(
    ("gpu_operator", "settings", "found"),
    [
        ("26.3.2", {}, [("error", "gets the device files of all RDMA NICs")]),
        ("v26.3.0", {"networks": []}, []),
        ("26.3.3", {}, []),
        ("26.3.2", {"gpu": False}, []),
        ("26.7.0", {"ofed": {"version": "doca"}}, [("warning", "nvidia-peermem")]),
        ("25.10.1", {"ofed": {"version": "doca"}}, []),
    ],
)
def test_releases_that_break_each_other(gpu_operator, settings, found):
    asked = {"gpu": True, "gpu_operator_version": gpu_operator, **settings}
    findings = resolve("1.35.4", "26.4.1", **asked)[1]
    pairs = [each for each in findings if each["check"] == "release-table"]
    assert [(each["level"], words in each["what"]) for each, (_level, words) in zip(pairs, found)] == [
        (level, True) for level, _words in found
    ]
    assert len(pairs) == len(found)


@pytest.mark.parametrize(
    ("kubernetes", "calico", "step"),
    [
        ("1.35.4", "3.31.0", None),
        ("1.36.3", "3.32.1", None),
        ("1.36.3", "3.31.7", "Set fabric_calico_version to 3.32.2."),
        ("1.37.0", "3.32.1", "Nothing, if you have tested it: no release of the table is tested with this Kubernetes."),
    ],
)
def test_a_kubernetes_that_calico_is_not_tested_with(kubernetes, calico, step):
    findings = resolve(kubernetes, allow=["kubernetes-range"], calico_version=calico)[1]
    found = [each for each in findings if each["check"] == "calico-version"]
    assert [(each["level"], each["next"]) for each in found] == ([("warning", step)] if step else [])


def test_other_ipams_need_no_whereabouts():
    releases = resolve()[0]
    assert (releases["whereabouts"], releases["whereabouts_standalone"]) == ("", False)


def test_nv_ipam_needs_exclusions():
    errors = resolve("1.27.9", "24.1.1", ipam="nv-ipam", managed=False)[1]
    assert [(finding["check"], "25.1.0" in finding["next"]) for finding in errors] == [("ipam", True)]


def test_a_foreign_cluster_may_be_old():
    assert resolve("1.25.9", "1.4.0", managed=False)[1] == []


def test_allowed_is_a_warning():
    findings = resolve("1.36.3", allow=["kubernetes-range"])[1]
    assert [(finding["level"], finding["check"]) for finding in findings] == [("warning", "kubernetes-range")]


def test_a_release_that_is_in_no_table():
    findings = resolve(operator="26.4.9")[1]
    assert [(finding["level"], finding["check"]) for finding in findings] == [("warning", "release-table")]


@pytest.mark.parametrize(
    ("line", "able", "unable"),
    [
        ((1, 3), {"deploy_cr", "whereabouts"}, {"tolerations", "nv_ipam", "policy_updates"}),
        ((23, 7), {"tolerations", "nv_ipam", "nfd_rules"}, {"cni_bin_directory", "nv_ipam_exclusions"}),
        ((24, 1), {"cni_bin_directory", "container_resources", "deploy_cr"}, {"cni_network_directory"}),
        ((24, 10), {"nv_ipam_exclusions", "whereabouts"}, {"deploy_cr"}),
        ((25, 7), {"cni_network_directory", "whereabouts"}, {"restarts_plugins"}),
        ((25, 10), {"nv_ipam"}, {"whereabouts", "global"}),
        ((26, 4), {"global", "restarts_plugins"}, {"whereabouts", "deploy_cr"}),
    ],
)
def test_features(line, able, unable):
    can = {name for name, has in release_table.features(line).items() if has}
    assert able <= can
    assert not unable & can


def test_images_before_and_since_they_share_a_tag():
    old = release_table.components("1.4.0", "whereabouts")
    assert old["multus"] == {
        "repository": "ghcr.io/k8snetworkplumbingwg",
        "image": "multus-cni",
        "version": "v3.8",
    }
    assert old["rdmaSharedDevicePlugin"]["repository"] == "nvcr.io/nvidia/cloud-native"
    new = release_table.components("26.4.1", "nv-ipam")
    assert {image["version"] for image in new.values()} == {"network-operator-v26.4.1"}
    assert "ipamPlugin" not in new
    assert "nvIpam" in new


def test_every_line_has_images_for_its_ipam():
    for operator in release_table.NETWORK_OPERATORS.values():
        low, high = operator.kubernetes
        assert low <= high
        line = release_table.parse(operator.newest)[:2]
        ipam = "whereabouts" if release_table.features(line)["whereabouts"] else "nv-ipam"
        names = set(release_table.components(operator.newest, ipam))
        assert names == {"rdmaSharedDevicePlugin", "cniPlugins", "multus"} | (
            {"ipamPlugin"} if ipam == "whereabouts" else {"nvIpam"}
        )
