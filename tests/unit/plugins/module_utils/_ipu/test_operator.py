import pytest
from ansible_collections.ipu.fabric.plugins.module_utils._common.result import FabricError
from ansible_collections.ipu.fabric.plugins.module_utils._ipu import operator as ipu

REFUSED = FabricError("The API server refused to read an object.", "x", "forbidden", "y")


@pytest.mark.parametrize(
    ("labels", "image", "version"),
    [
        ({"helm.sh/chart": "ipu-operator-1.1.0", "app.kubernetes.io/version": "1.1.0-p000032"}, "c:9", "1.1.0"),
        ({"app.kubernetes.io/version": "1.1.0-p000032"}, "c:9", "1.1.0"),
        ({"helm.sh/chart": "gc-ipu-operator-helm-chart-v1.0.0"}, "c:9", "1.0.0"),
        ({}, "registry:5000/c:1.2.0", "1.2.0"),
    ],
)
def test_version(labels, image, version):
    spec = {"template": {"spec": {"containers": [{"image": image}]}}}
    metadata = {"name": "x", "namespace": "y", "labels": labels}
    assert ipu.chart_version({"metadata": metadata, "spec": spec}) == version


class Cluster:
    """Lists what the test sets, or fails."""

    def __init__(self, found):
        self.found = found

    def items(self, path, **query):
        if isinstance(self.found, Exception):
            raise self.found
        if path == "/api/v1/pods":
            assert query == {"labelSelector": ipu.MANAGER_LABELS}
        return self.found


def pod(ready="True", name="manager"):
    conditions = [{"type": "Ready", "status": ready}]
    return {"metadata": {"name": name, "namespace": "o"}, "status": {"conditions": conditions}}


@pytest.mark.parametrize(
    ("pods", "fault"),
    [
        ([pod()], ""),
        ([pod("False", "old"), pod()], ""),
        ([], "does not run"),
        ([pod("False")], "no ready pod (o/manager)"),
    ],
)
def test_operator_fault(pods, fault):
    found = ipu.operator_fault(Cluster(pods))
    assert fault in found
    assert bool(found) == bool(fault)


def test_a_user_who_may_not_list_pods_learns_nothing_about_the_pod():
    assert ipu.operator_fault(Cluster(REFUSED)) == ""


def test_operators_are_known_by_the_end_of_their_name():
    def deployment(name, available):
        metadata = {"name": name, "namespace": "n", "labels": {"helm.sh/chart": "ipu-operator-1.2.0"}}
        return {"metadata": metadata, "status": {"availableReplicas": available} if available else {}}

    names = [("ipu-operator-controller-manager", 1), ("old-ipu-operator-controller-manager", 0), ("gpu-operator", 1)]
    found = ipu.installed_operators(ipu.managers(Cluster([deployment(*each) for each in names])))
    assert [(each["name"], each["available"]) for each in found] == [names[0], (names[1][0], False)]
    assert {each["version"] for each in found} == {"1.2.0"}


def test_nodes_with_a_label_of_a_controller():
    nodes = [{"metadata": {"name": f"w{n}", "labels": {"k": str(n), "other": "x"}}} for n in (1, 2, 3)]
    nodes.append({"metadata": {"name": "bare"}})
    assert ipu.labelled_nodes(Cluster(nodes), {("k", "1"), ("k", "3")}) == [
        {"name": "w1", "labels": {"k": "1"}},
        {"name": "w3", "labels": {"k": "3"}},
    ]
    assert ipu.labelled_nodes(Cluster(REFUSED), set()) == []
