"""Objects that the operator has rendered from its policy, and that it leaves alone as long as its note is there."""

import copy
import types

import pytest
from ansible_collections.ipu.fabric.plugins.module_utils._common.result import FabricError
from ansible_collections.ipu.fabric.plugins.module_utils._component.network_operator import (
    nic_cluster_policy,
    nic_node_policy,
)
from ansible_collections.ipu.fabric.plugins.module_utils._kube.drift import drift_of
from ansible_collections.ipu.fabric.plugins.module_utils._network import rendered
from ansible_collections.ipu.fabric.tests.unit.fixtures.components import defaults

NAMESPACE = "nvidia-network-operator"
APPS = f"/apis/apps/v1/namespaces/{NAMESPACE}"
MULTUS = f"{APPS}/daemonsets/kube-multus-ds"
CONFIG = f"/api/v1/namespaces/{NAMESPACE}/configmaps/rdma-devices"
RESOURCES = [{"resourceName": "rdma-net", "rdmaHcaMax": 8, "selectors": {"ifNames": ["ens1f0"]}}]
OWNER = [{"kind": "NicClusterPolicy", "uid": "p1"}]


class Operator:
    """A cluster with the operator of a release."""

    def __init__(self, managers=("ipu.fabric",), works=True, groups=()):
        settings = defaults("network_operator", rdma_resources=RESOURCES, nic_groups=groups)
        policy, node_policies = nic_cluster_policy(settings), [nic_node_policy(settings, group) for group in groups]
        managed = [{"manager": name, "operation": "Apply"} for name in managers]
        for each in (policy, *node_policies):
            each["metadata"].update(uid="p1", managedFields=managed)
        self.works, self.patched, self.wanted, self.started = True, [], {}, []
        self.node_policy = next(iter(node_policies), None)
        found = rendered.rendered_objects(policy["spec"], NAMESPACE)
        if self.node_policy:
            found += rendered.rendered_objects(self.node_policy["spec"], NAMESPACE, "-fabric-0")
        for each in found:
            container = {"name": "main", "image": each.wanted}
            spec = {"template": {"spec": {"containers": [container]}}}
            body = {"data": {"config.json": each.wanted}} if each.kind == "ConfigMap" else {"spec": spec}
            metadata = {"name": each.path.rpartition("/")[2], "namespace": NAMESPACE, "ownerReferences": OWNER}
            self.wanted[each.path] = {"metadata": metadata, **body}
        self.objects = {rendered.POLICY: policy}
        self.render()
        self.works = works

    def render(self):
        for path, wanted in self.wanted.items():
            now = self.objects.get(path)
            if self.works and (now is None or rendered.REVISION not in now["metadata"]["annotations"]):
                note = {"resourceVersion": "1", "annotations": {rendered.REVISION: "7"}}
                self.objects[path] = {**copy.deepcopy(wanted), "metadata": {**wanted["metadata"], **note}}

    def get(self, path):
        return copy.deepcopy(self.objects.get(path))

    def items(self, path, **query):
        if path == rendered.NODE_POLICIES:
            return [self.node_policy] if self.node_policy else []
        assert (path, query) == (f"/api/v1/namespaces/{NAMESPACE}/pods", {"labelSelector": "app=rdma-shared-dp"})
        return [{"status": {"startTime": time} if time else {}} for time in self.started]

    def patch(self, path, body):
        assert body == {"metadata": {"resourceVersion": "1", "annotations": {rendered.REVISION: None}}}
        self.patched.append(path)
        del self.objects[path]["metadata"]["annotations"][rendered.REVISION]
        self.render()

    def edit(self):
        container = self.objects[MULTUS]["spec"]["template"]["spec"]["containers"][0]
        container["image"] = "ghcr.io/other/multus-cni:v1"
        self.objects[CONFIG]["data"]["config.json"] = "{}"


def run(monkeypatch, cluster, check=False):
    monkeypatch.setattr(rendered, "connect", lambda _module: cluster)
    params = {"state": "rendered", "namespace": NAMESPACE, "timeout": 5}
    return rendered.render_again(types.SimpleNamespace(params=params, check_mode=check))


def test_what_was_edited_is_named_and_rendered_again(monkeypatch):
    monkeypatch.setattr("time.sleep", lambda _seconds: None)
    cluster = Operator()
    assert run(monkeypatch, cluster) == {**run(monkeypatch, cluster, check=True), "changed": False}
    cluster.edit()
    found = run(monkeypatch, cluster, check=True)
    assert cluster.patched == []
    drift = {one["object"]: one["fields"] for one in drift_of("network_operator", {"state": "rendered"}, found)}
    assert sorted(drift) == [f"ConfigMap {NAMESPACE}/rdma-devices", f"DaemonSet {NAMESPACE}/kube-multus-ds"]
    now, planned = "ghcr.io/other/multus-cni:v1", "nvcr.io/nvidia/mellanox/multus-cni:network-operator-v26.7.1"
    assert f"{now} now, {planned} planned" in drift[f"DaemonSet {NAMESPACE}/kube-multus-ds"][0]
    assert run(monkeypatch, cluster) == found
    assert cluster.patched == [MULTUS, CONFIG]
    assert not run(monkeypatch, cluster)["changed"]


def test_what_a_node_policy_has_rendered(monkeypatch):
    monkeypatch.setattr("time.sleep", lambda _seconds: None)
    cluster = Operator(groups=[{"name": "fabric-0", "nodes": ["w1"], "resources": RESOURCES}])
    assert CONFIG not in cluster.objects
    assert not run(monkeypatch, cluster)["configs"]
    cluster.objects[f"{CONFIG}-fabric-0"]["data"]["config.json"] = "{}"
    found = run(monkeypatch, cluster)
    assert (found["objects"], found["configs"]) == ([f"ConfigMap {NAMESPACE}/rdma-devices-fabric-0"], True)
    assert cluster.patched == [f"{CONFIG}-fabric-0"]


@pytest.mark.parametrize("case", ["no policy of ours", "not the policy's", "no note"])
def test_what_is_somebody_elses_or_repaired_anyway_is_left(monkeypatch, case):
    cluster = Operator(("kubectl",) if case == "no policy of ours" else ("ipu.fabric",))
    cluster.edit()
    for path in (MULTUS, CONFIG):
        metadata = cluster.objects[path]["metadata"]
        if case == "not the policy's":
            metadata["ownerReferences"] = []
        if case == "no note":
            metadata["annotations"] = {}
    assert not run(monkeypatch, cluster)["changed"]
    assert cluster.patched == []


def wrote(manager, *fields):
    return {"manager": manager, "fieldsV1": {"f:x": {field: {} for field in fields}}}


@pytest.mark.parametrize(("by", "changed"), [("manager", False), ("kubectl-edit", True)])
def test_what_a_webhook_rewrites_is_no_edit(monkeypatch, by, changed):
    """It writes into the operator's own request, which nobody else has changed since."""
    monkeypatch.setattr("time.sleep", lambda _seconds: None)
    cluster = Operator()
    cluster.edit()
    for path in (MULTUS, CONFIG):
        note = wrote("manager", f"f:{rendered.REVISION}")
        cluster.objects[path]["metadata"]["managedFields"] = [note, wrote(by, "f:image", "f:config.json")]
    assert run(monkeypatch, cluster)["changed"] is changed


@pytest.mark.parametrize(
    ("started", "behind"),
    [
        ([], False),
        (["2026-11-26T10:00:01Z"], False),
        (["2026-11-26T10:00:01Z", "2026-11-26T09:59:59Z"], True),
        ([""], False),  # it has not started yet
    ],
)
def test_a_plugin_that_a_killed_run_has_not_restarted(monkeypatch, started, behind):
    cluster = Operator()
    cluster.started = started
    assert not run(monkeypatch, cluster, check=True)["behind"]  # nobody says when it was written
    earlier, later = wrote("manager", "f:config.json"), wrote("kubectl-edit", "f:config.json")
    earlier["time"], later["time"] = "2026-11-25T10:00:00Z", "2026-11-26T10:00:00Z"
    cluster.objects[CONFIG]["metadata"]["managedFields"] = [later, earlier, wrote("manager", "f:labels")]
    assert run(monkeypatch, cluster, check=True)["behind"] is behind


def test_an_operator_that_does_not_render_it_is_what_to_look_at(monkeypatch):
    monkeypatch.setattr("time.sleep", lambda _seconds: None)
    cluster = Operator(works=False)
    cluster.edit()
    monkeypatch.setattr(rendered, "wait_until", lambda pending, timeout, *texts: refuse(pending(), *texts))
    with pytest.raises(FabricError, match=r"kube-multus-ds says 'ghcr.io/other/multus-cni:v1', but 'nvcr.io"):
        run(monkeypatch, cluster)


def refuse(missing, what, next_step):
    raise FabricError(what, "after 5 s", "; ".join(missing), next_step)
