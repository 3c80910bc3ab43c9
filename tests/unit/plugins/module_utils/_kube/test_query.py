import pytest
from ansible_collections.ipu.fabric.plugins.module_utils._kube.query import query, quoted

NODE = {
    "metadata": {"name": "w1", "labels": {"feature.node.kubernetes.io/pci-15b3.present": "true"}},
    "status": {"conditions": [{"type": "Ready", "status": "True"}]},
}


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("metadata.name", "w1"),
        (f"metadata.labels.{quoted('feature.node.kubernetes.io/pci-15b3.present')}", "true"),
        ("status.conditions[?type=='Ready'].status | [0]", "True"),
        ("status.conditions[?type=='MemoryPressure'].status | [0]", None),
        ("spec.taints[].key", None),
        ("metadata.name.deeper", None),
        ("status.none", None),
        ("x.y", None),
    ],
)
def test_query(expression, expected):
    assert query(expression, NODE) == expected


def test_nothing_is_found_in_nothing():
    assert query("status.state", None) is None
