"""What the role ipu_operator wants of each release, which operators it refuses, and what its removal leaves."""

import hashlib

import pytest
from ansible_collections.ipu.fabric.plugins.module_utils._common.result import FabricError
from ansible_collections.ipu.fabric.plugins.module_utils._component.ipu_operator import NOTHING, Seen, decide
from ansible_collections.ipu.fabric.tests.unit.fixtures.components import defaults

MANAGER = "ipu-operator-controller-manager"
OURS = {
    "namespace": "ipu-operator", "name": MANAGER, "version": "1.2.0", "release": "ipu-operator", "available": True,
}  # fmt: skip
TEAMS = {**OURS, "namespace": "team"}
OWN = [f"ipu-operator/{MANAGER}"]
CRD = "kind: CustomResourceDefinition\n---\n"
OLD = {"version": "1.1.0", "crd_url": "https://site/crd.yaml"}
SAFE = {"pod-security.kubernetes.io/enforce": "privileged"}


def wish(operators=(), own=(), seen=None, crd=CRD, tracker=False, **settings):
    ipu = {**NOTHING, "operators": list(operators), "own": list(own), "tracker": tracker}
    return decide(defaults("ipu_operator", **settings), Seen(**{"ipu": ipu, "crd": crd, **(seen or {})}))


def names(objects):
    return [f"{each['kind']} {each['metadata']['name']}" for each in objects]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"operators": [TEAMS]}, f"has an IPU operator already.*team/{MANAGER}"),
        ({"operators": [OURS, TEAMS], "own": OWN, "state": "absent"}, f"Seen: team/{MANAGER}"),
        (
            {"operators": [{**OURS, "release": "theirs"}]},
            "ipu_operator_release_name: theirs and",
        ),
        ({"operators": [OURS], "state": "absent"}, "was installed by somebody else"),
        ({"operators": [OURS], **OLD}, "IPU operator 1.2.0 is installed, and 1.1.0 is older"),
        ({"version": "1.1.0"}, "does not include the IPUJob definition.*ipu_operator_crd_url"),
        ({**OLD, "crd_sha256": "sha256:1F"}, "crd.yaml is not the file that was expected.* 1f"),
        ({**OLD, "crd_url": "http://site/crd.yaml"}, "a URL without TLS"),
        ({"operators": [OURS], "state": "absent", "seen": {"removed": True}, "own": OWN}, "still has it"),
        ({"vipu_controllers": [{"host": "localhost", "label": "k=1"}]}, "loopback"),
        ({"vipu_controllers": [{"host": f"a{n}", "label": f"k={n}", "nodes": ["w1"]} for n in (1, 2)]}, "node w1"),
    ],
)
def test_refused(settings, message):
    with pytest.raises(FabricError, match=message):
        wish(**settings)


@pytest.mark.parametrize(
    ("operators", "settings"),
    [
        ([OURS], {}),  # of whoever, if helm calls it so
        ([{**OURS, "version": "1.1.0"}], {}),
        ([{**OURS, "version": ""}], OLD),
        ([TEAMS], {"namespace": "team"}),
        ([{**OURS, "namespace": "default", "release": "gc"}], {"namespace": "default", "release_name": "gc"}),
        ([], {"state": "absent"}),
        ([TEAMS], {"state": "absent", "seen": {"removed": True}}),  # of another namespace
    ],
)
def test_taken(operators, settings):
    release = wish(operators, **settings).release
    assert release.name == settings.get("release_name", "ipu-operator")
    assert release.namespace == settings.get("namespace", "ipu-operator")


@pytest.mark.parametrize(
    ("settings", "objects", "renew"),
    [
        ({"renew_days": 9}, [], {"secret": "ipu-operator-admission", "days": 9}),
        (OLD, [{"kind": "CustomResourceDefinition"}], {}),
        ({**OLD, "crd_sha256": f"SHA256:{hashlib.sha256(CRD.encode()).hexdigest()}"}, None, {}),
        ({**OLD, "state": "absent"}, [], {}),
        ({"version": "1.1.0", "seen": {"bundle": True}}, [], {}),
        ({"version": "1.1.0", "seen": {"ipu": {**NOTHING, "definition": True}}}, [], {}),  # it stays as it is
    ],
)
def test_what_the_chart_does_not_bring(settings, objects, renew):
    decided = wish(**settings)
    assert decided.renew == renew
    assert objects is None or decided.objects == objects


@pytest.mark.parametrize(
    ("settings", "policy"),
    [
        ({}, None),
        ({"chart_repo_url": "/srv/charts"}, "IfNotPresent"),
        ({"seen": {"bundle": True}}, "IfNotPresent"),
        ({"chart_repo_url": "/srv/charts", "image_pull_policy": "Always"}, "Always"),
    ],
)
def test_images_of_a_site_without_registries_are_on_its_hosts(settings, policy):
    release = wish(**settings).release
    assert release.values.get("controller", {}).get("image", {}).get("pullPolicy") == policy
    assert release.images == {
        "gcr.io/kubebuilder/kube-rbac-proxy:v0.8.0": "registry.k8s.io/kubebuilder/kube-rbac-proxy:v0.8.0"
    }


def test_values_of_a_site_win():
    assert wish(values={"worker": {"hostNetwork": True}}).release.values["worker"] == {"hostNetwork": True}


@pytest.mark.parametrize(
    ("settings", "labels"),
    [
        (OLD, SAFE),  # its controller is on the host's network
        ({}, {}),
        ({"controller": {"host_network": True}}, SAFE),
        ({**OLD, "controller": {"host_network": False}}, {}),
    ],
)
def test_its_namespace_is_privileged_only_where_its_controller_is_on_the_hosts_network(settings, labels):
    assert wish(**settings).namespace_labels == labels


@pytest.mark.parametrize(("state", "value"), [("present", "1"), ("absent", None)])
def test_nodes_get_and_lose_the_label_of_their_controller(state, value):
    controllers = [{"host": "a", "label": "k=1", "nodes": ["ipu1"]}]
    seen = {"ipu": {**NOTHING, "labelled": [{"name": "ipu1", "labels": {"k": "1"}}]}}
    assert wish(seen=seen, state=state, vipu_controllers=controllers).nodes == [
        {"name": "ipu1", "labels": {"k": value}}
    ]


@pytest.mark.parametrize(
    ("tracker", "settings", "leftovers", "remnants"),
    [
        # An operator that is installed later continues from it.
        (True, {}, [], []),
        (True, {"keep_tracker": False}, ["ConfigMap ipu-partitions-tracker"], ["Namespace ipu-operator"]),
        (False, {}, ["ConfigMap ipu-partitions-tracker"], ["Namespace ipu-operator"]),
        (False, {"namespace": "default"}, ["ConfigMap ipu-partitions-tracker"], []),
    ],
)
def test_what_a_removal_takes(tracker, settings, leftovers, remnants):
    decided = wish(tracker=tracker, state="absent", **settings)
    assert names(decided.leftovers) == ["Secret ipu-operator-admission", *leftovers]
    assert ("-e ipu_operator_keep_tracker=false" in decided.stays) == (tracker and not leftovers)
    assert names(decided.remnants) == ["CustomResourceDefinition ipujobs.graphcore.ai", *remnants]
