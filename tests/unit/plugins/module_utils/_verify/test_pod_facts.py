"""What is read of a pod that asks for a network, in clusters with and without the kind of networks."""

from __future__ import annotations

import typing as t

import pytest
from ansible_collections.ipu.fabric.plugins.module_utils._kube.client import Cluster
from ansible_collections.ipu.fabric.plugins.module_utils._kube.multus import NAD_API
from ansible_collections.ipu.fabric.plugins.module_utils._verify.explain import explain
from ansible_collections.ipu.fabric.plugins.module_utils._verify.pod_facts import PodReader

POD = {
    "metadata": {"name": "a", "namespace": "vision", "annotations": {"k8s.v1.cni.cncf.io/networks": "rail"}},
    "spec": {"containers": [{"name": "main"}]},
    "status": {"phase": "Pending"},
}
KIND = {"kind": "NetworkAttachmentDefinition", "name": "network-attachment-definitions", "namespaced": True}


class OnePod(Cluster):
    """Has the pod, and serves the kind of networks or does not."""

    def __init__(self, served: bool) -> None:
        super().__init__(client=None)
        self.answers = {"/api/v1/namespaces/vision/pods/a": POD}
        if served:
            self.answers[f"/apis/{NAD_API}"] = {"resources": [KIND]}

    def get(self, path: str, **query: t.Any) -> t.Any:
        return self.answers.get(path)


@pytest.mark.parametrize(
    ("served", "why"), [(True, "there is no NetworkAttachmentDefinition of this name"), (False, "it has no multus")]
)
def test_a_cluster_without_the_kind_has_no_multus(served: bool, why: str) -> None:
    [lack] = [
        each for each in explain(PodReader(OnePod(served), "vision", "a").seen("", {})).lacks if "rail" in each.what
    ]
    assert why in lack.why
    assert ("Install multus" in lack.next) is not served
