"""Who uses a network that is to be removed, by names that a person can act on."""

from __future__ import annotations

import pytest
from ansible_collections.ipu.fabric.plugins.module_utils._network.removal import user_names


@pytest.mark.parametrize(
    ("metadata", "name"),
    [
        ({}, "default/p"),
        ({"ownerReferences": [{"kind": "Job", "name": "train", "controller": True}]}, "default/p of Job train"),
        ({"ownerReferences": [{"kind": "Node", "name": "w1"}]}, "default/p"),
        (
            {
                "labels": {"pod-template-hash": "5d8f"},
                "ownerReferences": [{"kind": "ReplicaSet", "name": "serve-5d8f", "controller": True}],
            },
            "default/p of Deployment serve",
        ),
        (
            {"ownerReferences": [{"kind": "ReplicaSet", "name": "serve-mine", "controller": True}]},
            "default/p of ReplicaSet serve-mine",
        ),
    ],
)
def test_what_creates_a_pod_is_named(metadata, name):
    assert user_names([{"metadata": {"namespace": "default", "name": "p", **metadata}}]) == [name]


def test_pods_that_are_being_deleted_end_by_themselves():
    assert user_names([{"metadata": {"namespace": "default", "name": "p", "deletionTimestamp": "now"}}]) == []
