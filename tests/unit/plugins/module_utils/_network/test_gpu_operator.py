"""What of a cluster the removal of a GPU operator has to know."""

from __future__ import annotations

import typing as t

import pytest
from ansible_collections.ipu.fabric.plugins.module_utils._kube.client import Resource
from ansible_collections.ipu.fabric.plugins.module_utils._network import cluster_info, gpu_operator
from ansible_collections.ipu.fabric.tests.unit.fixtures.objects import Lists

Object = t.Dict[str, t.Any]
ANNOTATIONS = {"meta.helm.sh/release-name": "gpu-operator", "meta.helm.sh/release-namespace": "gpu-operator"}


def deployment(name: str, namespace: str, image: str) -> Object:
    template = {"spec": {"containers": [{"image": f"nvcr.io/nvidia/{image}:v26.7.0"}]}}
    metadata = {"name": name, "namespace": namespace, "annotations": ANNOTATIONS}
    return {"metadata": metadata, "spec": {"template": template}}


def pod(name: str, namespace: str, part: str = "containers", **limits: str) -> Object:
    spec = {part: [{"name": "a"}, {"name": "b", "resources": {"limits": limits}}]}
    return {"metadata": {"name": name, "namespace": namespace}, "spec": spec}


class Api(Lists):
    def resource(self, api_version: str, kind: str) -> t.Optional[Resource]:
        return Resource(f"/apis/{api_version}", "nvidiadrivers", False) if "nvidiadrivers" in self.lists else None


def read(monkeypatch: pytest.MonkeyPatch, **items: t.Sequence[Object]) -> Object:
    monkeypatch.setattr(cluster_info, "release_is_ours", lambda cluster, workload: True)
    return gpu_operator.read_gpu_operator(Api(**items))


def test_operators_and_their_users(monkeypatch: pytest.MonkeyPatch) -> None:
    found = read(
        monkeypatch,
        deployments=[
            deployment("gpu-operator", "gpu-operator", "gpu-operator"),
            deployment("web", "web", "gpu-operator-docs"),
        ],
        pods=[
            pod("train", "jobs", **{"nvidia.com/gpu": "1"}),
            pod("mig", "jobs", "initContainers", **{"nvidia.com/mig-1g.10gb": "1"}),
            pod("web", "jobs", cpu="1"),
            pod("nvidia-cuda-validator", "gpu-operator", **{"nvidia.com/gpu": "1"}),
        ],
        nvidiadrivers=[{"metadata": {"name": "a100"}}],
    )
    (operator,) = found["operators"]
    assert (operator["namespace"], operator["version"], operator["ours"]) == ("gpu-operator", "26.7.0", True)
    assert (found["pods"], found["drivers"]) == (["jobs/mig", "jobs/train"], ["a100"])


def test_only_labels_that_the_operator_sets_go(monkeypatch: pytest.MonkeyPatch) -> None:
    labels = {"nvidia.com/gpu.deploy.driver": "true", "nvidia.com/gpu.present": "true", "nvidia.com/mig.config": "all"}
    nodes = [{"metadata": {"name": "w1", "labels": labels}}, {"metadata": {"name": "w2"}}]
    assert read(monkeypatch, nodes=nodes)["labelled"] == [
        {"name": "w1", "labels": {"nvidia.com/gpu.deploy.driver": None, "nvidia.com/gpu.present": None}}
    ]


def test_a_cluster_without_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    nothing: Object = {"operators": [], "pods": [], "drivers": [], "labelled": []}
    assert read(monkeypatch) == nothing
