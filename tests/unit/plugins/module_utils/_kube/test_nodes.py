import pytest
from ansible_collections.ipu.fabric.plugins.module_utils._kube import nodes


def node(name, *conditions):
    return {"metadata": {"name": name}, "status": {"conditions": list(conditions)}}


READY = {"type": "Ready", "status": "True"}
NO_CNI = {"type": "Ready", "status": "False", "reason": "KubeletNotReady", "message": "cni plugin not initialized"}
LOST = {"type": "Ready", "status": "Unknown", "reason": "NodeStatusUnknown"}


@pytest.mark.parametrize(
    ("conditions", "reason"),
    [
        ([READY], ""),
        ([{"type": "MemoryPressure", "status": "False"}, READY], ""),
        ([NO_CNI], "KubeletNotReady: cni plugin not initialized"),
        ([LOST], "NodeStatusUnknown"),
        ([], "its kubelet has not reported yet"),
    ],
)
def test_why_not_ready(conditions, reason):
    assert nodes.why_not_ready(node("a", *conditions)) == reason


def test_pressures():
    full = {"type": "DiskPressure", "status": "True", "message": "kubelet has disk pressure"}
    none = {"type": "PIDPressure", "status": "False", "message": "kubelet has sufficient PID available"}
    assert nodes.pressures(node("a", none, full, READY)) == ["DiskPressure: kubelet has disk pressure"]
    assert nodes.pressures(node("a", none, READY)) == nodes.pressures(node("a")) == []


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        ([], {"b": "NodeStatusUnknown"}),
        (["a"], {}),
        (["a", "c"], {"c": "the cluster has no such node"}),
        (["b"], {"b": "NodeStatusUnknown"}),
    ],
)
def test_not_ready(names, expected):
    assert nodes.not_ready([node("a", READY), node("b", LOST)], names) == expected
