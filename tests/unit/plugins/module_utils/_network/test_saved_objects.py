import json

import pytest
from ansible_collections.ipu.fabric.plugins.module_utils._network import saved_objects
from ansible_collections.ipu.fabric.plugins.module_utils._network.saved_objects import STATUS, Pods, compare, moved

SAVED = {
    "objects": [],
    "digests": {"ConfigMap default/a": "1", "MacvlanNetwork.mellanox.com rdma-net": "2"},
    "addresses": [
        {"address": "10.5.0.130", "network": "default/rdma-net", "interface": "net1", "pod": "default/p", "node": "w1"}
    ],
}


def after(**changes):
    return {**SAVED, **changes}


@pytest.mark.parametrize(
    ("digests", "missing", "different"),
    [
        (SAVED["digests"], [], []),
        ({**SAVED["digests"], "ConfigMap default/new": "3"}, [], []),
        ({"ConfigMap default/a": "9"}, ["MacvlanNetwork.mellanox.com rdma-net"], ["ConfigMap default/a"]),
    ],
)
def test_compare(digests, missing, different):
    assert compare(SAVED, after(digests=digests)) == {"missing": missing, "different": different}


ADDRESS = SAVED["addresses"][0]


@pytest.mark.parametrize(
    ("names", "addresses", "elsewhere"),
    [
        ({"default/p"}, [ADDRESS], []),
        ({"default/p"}, [{**ADDRESS, "node": "w2"}], []),
        ({"default/p", "default/q"}, [ADDRESS, {**ADDRESS, "pod": "default/q", "address": "10.5.0.131"}], []),
        (set(), [], []),  # it has ended
        ({"default/p"}, [], ["default/p net1: 10.5.0.130 became none"]),
        ({"default/p"}, [{**ADDRESS, "address": "10.5.0.131"}], ["default/p net1: 10.5.0.130 became 10.5.0.131"]),
    ],
)
def test_moved(names, addresses, elsewhere):
    assert moved([ADDRESS], Pods(names, addresses)) == elsewhere


def obj(kind, name, namespace="", **more):
    return {"kind": kind, "metadata": {"name": name, "namespace": namespace, **more}}


OWNED = {"ownerReferences": [{"kind": "MacvlanNetwork", "name": "rdma-net"}]}


@pytest.mark.parametrize(
    ("group", "seen", "stays"),
    [
        ("", obj("ConfigMap", "a", "default"), True),
        ("", obj("Pod", "a", "default"), False),
        ("apps", obj("ReplicaSet", "a", "default", **OWNED), False),
        ("k8s.cni.cncf.io", obj("NetworkAttachmentDefinition", "rdma-net", "default", **OWNED), True),
        ("crd.projectcalico.org", obj("IPAMHandle", "k8s-pod-network.1"), False),
        ("", obj("Secret", "bootstrap-token-abcdef", "kube-system"), False),
        ("", obj("Secret", "bootstrap-token-abcdef", "default"), True),
        ("", obj("ConfigMap", "cluster-info", "kube-public"), False),
    ],
)
def test_lasts(group, seen, stays):
    assert saved_objects.lasts(group, seen) is stays


POOL = {
    "metadata": {"name": "10.5.0.0-24", "namespace": "nvidia-network-operator", "resourceVersion": "7"},
    "spec": {"range": "10.5.0.0/24", "allocations": {"130": {"podref": "default/p"}}},
}
KINDS = {
    "/api/v1": [("configmaps", "ConfigMap"), ("secrets", "Secret"), ("pods", "Pod"), ("events", "Event")],
    "/apis/whereabouts.cni.cncf.io/v1alpha1": [("ippools", "IPPool")],
}


class Api:
    """A cluster of a few objects, two to a page."""

    def __init__(self, pool=None):
        status = [
            {"name": "cbr0", "ips": ["10.244.0.9"], "default": True},
            {"name": "default/rdma-net", "interface": "net1", "ips": ["10.5.0.130"]},
        ]
        pod = {
            "metadata": {"name": "p", "namespace": "default", "annotations": {STATUS: json.dumps(status)}},
            "spec": {"nodeName": "w1"},
        }
        names = ("a", "b", "c")
        self.lists = {
            "/api/v1/configmaps": [{"metadata": {"name": name, "namespace": "default"}, "data": {}} for name in names],
            "/api/v1/secrets": [{"metadata": {"name": "s", "namespace": "default"}, "data": {"key": "c2VjcmV0"}}],
            "/api/v1/pods": [pod, {"metadata": {"name": "q", "namespace": "default"}, "spec": {}}],
            "/apis/whereabouts.cni.cncf.io/v1alpha1/ippools": [pool or POOL],
        }

    def items(self, path):
        assert path == "/apis/apiregistration.k8s.io/v1/apiservices"
        local = [{"spec": {"group": "whereabouts.cni.cncf.io"}}, {"spec": {}}]
        return [*local, {"spec": {"group": "metrics.k8s.io", "service": {"name": "metrics-server"}}}]

    def get(self, path, **query):
        if path == "/apis":
            names = ("whereabouts.cni.cncf.io", "metrics.k8s.io")
            groups = [{"name": name, "preferredVersion": {"groupVersion": f"{name}/v1alpha1"}} for name in names]
            return {"groups": groups}
        if path in KINDS:
            verbs = ["get", "list"]
            known = [{"name": name, "kind": kind, "namespaced": True, "verbs": verbs} for name, kind in KINDS[path]]
            return {"resources": [*known, {**known[0], "name": f"{known[0]['name']}/status"}]}
        begin, found = int(query["continue"] or 0), self.lists[path]
        end = begin + 2
        return {"items": found[begin:end], "metadata": {"continue": str(end) if end < len(found) else ""}}


def test_read_saved():
    saved = saved_objects.read_saved(Api())
    pool = "IPPool.whereabouts.cni.cncf.io nvidia-network-operator/10.5.0.0-24"
    configs = [f"ConfigMap default/{name}" for name in "abc"]
    assert list(saved["digests"]) == [*configs, pool, "Secret default/s"]
    assert [each["spec"] for each in saved["objects"]] == [POOL["spec"]]
    assert saved["addresses"] == SAVED["addresses"]
    assert "c2VjcmV0" not in json.dumps(saved)


def test_a_pool_is_the_same_whatever_it_gave_out():
    other = {**POOL, "spec": {**POOL["spec"], "allocations": {}}}
    smaller = {**POOL, "spec": {**POOL["spec"], "range": "10.5.0.0/25"}}
    before, same, changed = (saved_objects.read_saved(Api(pool)) for pool in (POOL, other, smaller))
    assert compare(before, same)["different"] == []
    assert compare(before, changed)["different"] == [
        "IPPool.whereabouts.cni.cncf.io nvidia-network-operator/10.5.0.0-24"
    ]
