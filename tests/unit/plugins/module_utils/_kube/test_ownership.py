"""Whose an object is, and that the removal of objects by name takes only ours."""

import pytest
from ansible_collections.ipu.fabric.plugins.module_utils._common.manager import is_ours
from ansible_collections.ipu.fabric.plugins.module_utils._kube import apply, ownership
from ansible_collections.ipu.fabric.plugins.module_utils._kube.client import Cluster, Resource
from ansible_collections.ipu.fabric.tests.unit.fixtures.module import Module

OURS = {"manager": "ipu.fabric", "operation": "Apply"}
STATUS = {"manager": "kube-apiserver", "operation": "Update", "subresource": "status"}
KUBECTL = {"manager": "kubectl-create", "operation": "Update"}


@pytest.mark.parametrize(
    ("managers", "ours", "only"),
    [
        ([OURS], True, True),
        ([OURS, STATUS], True, True),
        ([{"manager": "kubectl", "operation": "Apply"}, OURS], True, False),
        ([OURS, KUBECTL], True, False),
        ([{"manager": "ipu.fabric", "operation": "Update"}], False, False),
        ([KUBECTL], False, False),
        (None, False, False),
    ],
)
def test_who_made_it(managers, ours, only):
    obj = {"metadata": {"name": "a", "managedFields": managers}}
    assert (is_ours(obj), ownership.is_only_ours(obj)) == (ours, only)


def test_what_is_not_there_is_nobodys():
    assert not is_ours(None)
    assert not ownership.is_only_ours(None)


def test_own_labels():
    mine = {"f:metadata": {"f:labels": {".": {}, "f:fabric/rdma": {}, "f:rail": {}}}}
    entries = [
        {"manager": "ipu.fabric", "operation": "Update", "fieldsV1": mine},
        {"manager": "kubelet", "operation": "Update", "fieldsV1": {"f:metadata": {"f:labels": {"f:zone": {}}}}},
        {"manager": "ipu.fabric", "operation": "Update", "fieldsV1": {"f:spec": {"f:taints": {}}}},
    ]
    assert ownership.own_labels({"metadata": {"managedFields": entries}}) == ["fabric/rdma", "rail"]
    assert ownership.own_labels({"metadata": {}}) == []


class Memory(Cluster):
    """Objects by path."""

    def __init__(self, *objects):
        super().__init__(None)
        self.objects = {self.path_of(obj): obj for obj in objects}

    def resource(self, api_version, kind):
        prefix = ("/apis/" if "/" in api_version else "/api/") + api_version
        return Resource(prefix, f"{kind.lower()}s", kind not in ("Namespace", "CustomResourceDefinition"))

    def get(self, path, **query):
        if path in self.objects:
            return self.objects[path]
        return {"items": [obj for place, obj in self.objects.items() if place.startswith(f"{path}/")]}

    def read(self, obj):
        return self.objects.get(self.path_of(obj))

    def apply(self, obj, dry_run=False, validation="Strict"):
        found = self.read(obj)
        bare = {key: value for key, value in found["metadata"].items() if key not in ("managedFields", "labels")}
        if not dry_run:
            self.objects[self.path_of(obj)] = {**found, "metadata": bare}
        return {**found, "metadata": bare}

    def delete(self, path):
        return bool(self.objects.pop(path))


def obj(kind, name, *managers, namespace="", api="v1", **more):
    metadata = {"name": name, "managedFields": list(managers), **more.pop("metadata", {})}
    return {
        "apiVersion": api,
        "kind": kind,
        "metadata": metadata | ({"namespace": namespace} if namespace else {}),
        **more,
    }


def remove(monkeypatch, cluster, *objects, **options):
    monkeypatch.setattr(apply, "connect", lambda module: cluster)
    wanted = [
        {**each, "metadata": {k: each["metadata"][k] for k in ("name", "namespace") if k in each["metadata"]}}
        for each in objects
    ]
    params = {"state": "absent", "only_ours": True, "timeout": 1, "validation": "Strict", **options}
    module = Module(objects=wanted, **params)
    return apply.apply_objects(module), module.warnings


CRD = obj("CustomResourceDefinition", "jobs.example.org", OURS, api="apiextensions.k8s.io/v1")


def test_removal_takes_only_ours(monkeypatch):
    mine, theirs = obj("ConfigMap", "mine", OURS, namespace="n"), obj("ConfigMap", "theirs", KUBECTL, namespace="n")
    cluster = Memory(mine, theirs, CRD)
    result, warnings = remove(monkeypatch, cluster, mine, theirs, CRD)
    assert result["objects"] == ["CustomResourceDefinition jobs.example.org", "ConfigMap n/mine"]
    assert list(cluster.objects.values()) == [theirs]
    assert result["kept"] == ["ConfigMap n/theirs: this collection did not apply it"]
    assert "ConfigMap n/theirs" in warnings[0]
    again, _more = remove(monkeypatch, cluster, mine, theirs, CRD)
    assert not again["changed"]


@pytest.mark.parametrize(("check", "kept"), [(True, 0), (False, 1)])
def test_check_mode_does_not_say_that_what_goes_with_its_owner_stays(monkeypatch, check, kept):
    owned = obj("ConfigMap", "pools", KUBECTL, namespace="n", metadata={"ownerReferences": [{"kind": "Policy"}]})
    result, warnings = remove(monkeypatch, Memory(owned), owned, check_mode=check)
    assert (len(result["kept"]), len(warnings), result["objects"]) == (kept, kept, [])


def test_removal_by_name_takes_what_it_is_told(monkeypatch):
    theirs = obj("ConfigMap", "theirs", KUBECTL, namespace="n")
    cluster = Memory(theirs)
    result, warnings = remove(monkeypatch, cluster, theirs, only_ours=False)
    assert (result["objects"], result["kept"], warnings) == (["ConfigMap n/theirs"], [], [])


@pytest.mark.parametrize("check", [True, False])
def test_a_namespace_of_others_loses_only_our_labels(monkeypatch, check):
    home = obj("Namespace", "home", OURS, KUBECTL, metadata={"labels": {"a": "b"}})
    cluster = Memory(home)
    result, _warnings = remove(monkeypatch, cluster, home, check_mode=check, timeout=0)
    assert (result["objects"], len(result["kept"])) == (["Namespace home"], 1)
    (left,) = cluster.objects.values()
    assert left["metadata"].get("labels") == ({"a": "b"} if check else None)


HOME = obj("Namespace", "home", OURS)
HELM = {"annotations": {"meta.helm.sh/release-name": "x"}}


@pytest.mark.parametrize(
    "left",
    [
        obj("ConfigMap", "kube-root-ca.crt", KUBECTL, namespace="home"),
        obj("Secret", "token", KUBECTL, namespace="home", type="kubernetes.io/service-account-token"),
        obj("Secret", "release", KUBECTL, namespace="home", metadata={"labels": {"ipu.fabric/render": "none"}}),
        obj("Deployment", "x", KUBECTL, namespace="home", api="apps/v1", metadata=HELM),
        obj("Job", "hook", KUBECTL, namespace="home", api="batch/v1", metadata={"annotations": {"helm.sh/hook": "x"}}),
        obj("Pod", "p", KUBECTL, namespace="home", metadata={"ownerReferences": [{"kind": "ReplicaSet"}]}),
        obj("Pod", "p", KUBECTL, namespace="home", metadata={"deletionTimestamp": "now"}),
        obj("ConfigMap", "mine", OURS, namespace="home"),
    ],
)
def test_a_namespace_goes_with_what_belongs_to_it(monkeypatch, left):
    cluster = Memory(HOME, left)
    result, _warnings = remove(monkeypatch, cluster, HOME)
    assert result["objects"] == ["Namespace home"]


@pytest.mark.parametrize(
    ("home", "left", "why"),
    [
        (obj("Namespace", "home", OURS, KUBECTL), None, "somebody else has written to it as well"),
        (HOME, obj("Secret", "pull", KUBECTL, namespace="home"), "it contains somebody else's Secret home/pull"),
        (HOME, obj("Pod", "p", KUBECTL, namespace="home"), "it contains somebody else's Pod home/p"),
        (
            HOME,
            obj("Secret", "sh.helm.release.v1.other.v1", KUBECTL, namespace="home"),
            "it contains somebody else's Secret home/sh.helm.release.v1.other.v1",
        ),
    ],
)
def test_a_namespace_that_others_use_stays(monkeypatch, home, left, why):
    cluster = Memory(*filter(None, (home, left)))
    result, _warnings = remove(monkeypatch, cluster, home)
    assert (result["changed"], result["kept"]) == (False, [f"Namespace home: {why}"])
    assert cluster.read(home)
