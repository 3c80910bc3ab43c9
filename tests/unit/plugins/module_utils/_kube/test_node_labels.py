import pytest
from ansible_collections.ipu.fabric.plugins.module_utils._kube import node_labels

NODE = {
    "metadata": {"name": "w1", "resourceVersion": "7", "labels": {"a": "1"}, "annotations": {"n": "x"}},
    "spec": {"taints": [{"key": "t", "effect": "NoSchedule"}, {"key": "u", "effect": "NoExecute", "value": "v"}]},
}


@pytest.mark.parametrize(
    ("current", "wanted", "changed"),
    [
        ({}, {}, {}),
        ({"a": "1"}, {"a": "1"}, {}),
        ({"a": "1"}, {"a": 1}, {}),
        ({"a": "true"}, {"a": True}, {}),
        ({"a": "1"}, {"a": "2"}, {"a": "2"}),
        ({"a": "1"}, {"a": None}, {"a": None}),
        ({}, {"a": None}, {}),
        ({}, {"a": ""}, {"a": ""}),
        ({"a": ""}, {"a": ""}, {}),
    ],
)
def test_changed_keys(current, wanted, changed):
    assert node_labels.changed_keys(current, wanted) == changed


@pytest.mark.parametrize(
    ("wanted", "taints"),
    [
        ([], None),
        ([{"key": "t", "effect": "NoSchedule", "value": "", "state": "present"}], None),
        ([{"key": "x", "effect": "NoSchedule", "state": "absent"}], None),
        (
            [{"key": "t", "effect": "NoSchedule", "state": "absent"}],
            [{"key": "u", "effect": "NoExecute", "value": "v"}],
        ),
        (
            [{"key": "t", "effect": "NoSchedule", "value": "on"}],
            [{"key": "t", "effect": "NoSchedule", "value": "on"}, {"key": "u", "effect": "NoExecute", "value": "v"}],
        ),
        (
            [{"key": "t", "effect": "NoExecute"}],
            [*NODE["spec"]["taints"], {"key": "t", "effect": "NoExecute"}],
        ),
    ],
)
def test_taints(wanted, taints):
    patch = node_labels.node_patch(NODE, {"taints": wanted})
    if taints is None:
        assert patch == {}
    else:
        assert patch == {"spec": {"taints": taints}, "metadata": {"resourceVersion": "7"}}


def test_patch_of_labels_names_no_version():
    patch = node_labels.node_patch(NODE, {"labels": {"a": None, "b": 2}, "annotations": {"n": "x"}})
    assert patch == {"metadata": {"labels": {"a": None, "b": "2"}}}
    after = node_labels.patched(NODE, patch)
    assert after["metadata"]["labels"] == {"b": "2"}
    assert node_labels.view(after, {"labels": {"a": None, "b": 2}}) == {"labels": {"b": "2"}}


def test_a_node_named_twice_gets_both():
    merged = node_labels.merged_by_name(
        [{"name": "w1", "labels": {"a": 1, "b": 1}}, {"name": "w1", "labels": {"b": 2}}]
    )
    assert merged["w1"]["labels"] == {"a": 1, "b": 2}
