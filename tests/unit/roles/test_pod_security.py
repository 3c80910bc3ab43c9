"""Namespaces of pods that Pod Security's baseline refuses are labelled by the role that makes them, and no others."""

import pytest
import yaml
from ansible_collections.ipu.fabric.tests.unit.fixtures.paths import ROOT

LABELS = {"pod-security.kubernetes.io/enforce": "privileged"}


@pytest.mark.parametrize(
    "tasks", ["gpu_operator/tasks/present.yml", "network_operator/tasks/present.yml", "spiderpool/tasks/present.yml"]
)
def test_operators_that_run_privileged_pods(tasks):
    found = yaml.safe_load((ROOT / "roles" / tasks).read_text(encoding="utf-8"))
    releases = [task["ipu.fabric.helm_release"] for task in found if "ipu.fabric.helm_release" in task]
    assert [release.get("namespace_labels") for release in releases] == [LABELS]


def test_flannel():
    text = (ROOT / "roles/kubernetes/templates/flannel.yaml.j2").read_text(encoding="utf-8")
    namespace = yaml.safe_load(text.split("---")[1])
    assert namespace["kind"] == "Namespace"
    assert LABELS.items() <= namespace["metadata"]["labels"].items()
