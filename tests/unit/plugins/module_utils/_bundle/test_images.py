"""Images by their names: what manifests use, and under which name containerd has them."""

import pytest
from ansible_collections.ipu.fabric.plugins.module_utils._bundle import images

DIGEST = "sha256:" + "a" * 64


@pytest.mark.parametrize(
    ("image", "name"),
    [
        ("busybox", "docker.io/library/busybox:latest"),
        ("busybox:1", "docker.io/library/busybox:1"),
        ("mpioperator/mpi-operator:0.8.2", "docker.io/mpioperator/mpi-operator:0.8.2"),
        ("registry.k8s.io/pause:3.10.1", "registry.k8s.io/pause:3.10.1"),
        ("site:5000/tools", "site:5000/tools:latest"),
        ("localhost/tools:1", "localhost/tools:1"),
        (f"nvcr.io/nvidia/doca@{DIGEST}", f"nvcr.io/nvidia/doca@{DIGEST}"),
        (f"nvcr.io/nvidia/doca:3.3@{DIGEST}", f"nvcr.io/nvidia/doca@{DIGEST}"),
        (f"site:5000/doca:3.3@{DIGEST}", f"site:5000/doca@{DIGEST}"),
    ],
)
def test_normal_name(image, name):
    assert images.normal_name(image) == name
    assert images.normal_name(name) == name


POD = {"spec": {"containers": [{"name": "a", "image": "quay.io/a/b:1", "args": ["--image=quay.io/c/d:2", "--x=1"]}]}}
OPERATOR = {
    "containers": [{"name": "o", "image": "app:3", "env": [{"name": "WORKER_IMAGE", "value": f"ghcr.io/w/w@{DIGEST}"}]}]
}
POLICY = {
    "kind": "ClusterPolicy",
    "spec": {
        "toolkit": {"repository": "nvcr.io/nvidia/k8s", "image": "container-toolkit", "version": "v1.17"},
        "pinned": {"repository": "nvcr.io/nvidia", "image": "x", "version": DIGEST},
        "driver": {"repository": "nvcr.io/nvidia", "image": "driver", "version": "570.1"},
    },
}


@pytest.mark.parametrize(
    ("document", "found"),
    [
        ([POD], {"quay.io/a/b:1", "quay.io/c/d:2"}),
        (
            {"args": ["--launcher-image=graphcore/launcher", "--launcher-image-tag=1.2", "--image-pull-policy=Always"]},
            {"docker.io/graphcore/launcher:1.2"},
        ),
        ({"env": [{"name": "JOB_IMAGE", "value": "own/job:1"}]}, {"docker.io/own/job:1"}),
        ({"env": [{"name": "JOB_IMAGE", "value": ""}, {"name": "X", "value": "own/job:1"}]}, set()),
        ([OPERATOR], {"docker.io/library/app:3", f"ghcr.io/w/w@{DIGEST}"}),
        ([POLICY], {"nvcr.io/nvidia/k8s/container-toolkit:v1.17", f"nvcr.io/nvidia/x@{DIGEST}"}),
        ({"kind": "CustomResourceDefinition", "spec": {"image": "a.example/b:1"}}, set()),
        ({"metadata": {"labels": {"helm.sh/chart": "x-1"}, "annotations": {"a.example/b": "true"}}}, set()),
        ({"url": "https://a.example/b:1", "endpoint": "a.example:443"}, set()),
        ({"image": {"type": "string"}}, set()),
        ([], set()),
        (None, set()),
    ],
)
def test_find_images(document, found):
    assert images.find_images(document) == found


@pytest.mark.parametrize(
    ("container", "always"),
    [
        ({"name": "a", "image": "quay.io/a:1", "imagePullPolicy": "Always"}, {"quay.io/a:1"}),
        ({"name": "a", "image": "quay.io/a:1", "imagePullPolicy": "IfNotPresent"}, set()),
        ({"name": "a", "image": "quay.io/a:1"}, set()),
        ({"name": "a", "image": "quay.io/a"}, {"quay.io/a:latest"}),
        ({"name": "a", "image": "quay.io/a:latest", "imagePullPolicy": "IfNotPresent"}, set()),
    ],
)
def test_images_that_kubelets_would_always_pull(container, always):
    assert images.always_pulled({"spec": {"containers": [container]}}) == always


@pytest.mark.parametrize(
    ("image", "planes"),
    [
        ("registry.k8s.io/kube-apiserver:v1.35.4", True),
        ("registry.k8s.io/etcd:3.6.6-0", True),
        ("registry.k8s.io/kube-proxy:v1.35.4", False),
        ("registry.k8s.io/coredns/coredns:v1.13.1", False),
        ("registry.k8s.io/pause:3.10.1", False),
    ],
)
def test_what_only_control_planes_run(image, planes):
    assert images.for_control_planes(image) is planes


def test_archives_have_names_of_their_own():
    named = ["a.io/b:1", "a.io/b@sha256:1", "a.io:5000/b:1"]
    assert len({images.archive_of(name, "amd64") for name in named}) == 3
    assert images.archive_of("a.io/b/c:1", "arm64") == "images/arm64/a.io_b_c_1.tar"
