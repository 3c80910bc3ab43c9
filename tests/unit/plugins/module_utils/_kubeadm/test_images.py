"""Images that are pulled ahead."""

import pytest
from ansible_collections.ipu.fabric.plugins.module_utils._common.command import Done
from ansible_collections.ipu.fabric.plugins.module_utils._kubeadm import images


def test_images_that_are_there_are_not_pulled(monkeypatch, make_module):
    pulled = []

    def pull(argv, _timeout):
        pulled.append(argv[-1])
        said = f"level=warning msg=deprecated\nctr: failed to resolve image: {argv[-1]}: not found\n"
        return Done(1 if "missing" in argv[-1] else 0, "", said)

    monkeypatch.setattr(images, "output_of", lambda *_: "pause:3.10.1\n")
    monkeypatch.setattr(images, "run_program", pull)
    module = make_module("images", images=["pause:3.10.1", "kube-proxy:v1", "missing:v1", "missing:v2"])
    result = module.apply()
    assert result["changed"]
    assert result["diff"]["after"] == {"images": ["kube-proxy:v1", "pause:3.10.1"]}
    assert module.warnings == [
        "Images not pulled yet; the kubelet will try again: missing:v1, missing:v2. "
        "Seen: ctr: failed to resolve image: the image: not found"
    ]
    assert sorted(pulled) == ["kube-proxy:v1", "missing:v1", "missing:v2"]
    assert not make_module("images", images=["pause:3.10.1"]).apply()["changed"]


@pytest.mark.parametrize("check_mode", [True, False])
def test_docker_pulls_what_it_does_not_have(monkeypatch, make_module, check_mode):
    """It lists images of Docker Hub under shorter names, so that it is asked for each."""
    digest = f"registry.k8s.io/kube-proxy:v1.36.3@sha256:{'ab' * 32}"
    there, calls = ["docker.io/library/pause:3.10"], []

    def docker(argv, _timeout):
        calls.append(" ".join(argv[:-1]))
        missing = argv[1] == "image" and argv[-1] not in there
        return Done(1 if missing or "missing" in argv[-1] else 0, "", "manifest unknown\n")

    monkeypatch.setattr(images, "run_program", docker)
    module = make_module("images", images=[*there, digest, "missing:v1"], runtime="docker", check_mode=check_mode)
    result = module.apply()
    plain = digest.replace(":v1.36.3", "")
    assert result["diff"]["after"] == {"images": sorted([*there, plain, *(["missing:v1"] if check_mode else [])])}
    assert ("docker pull --quiet" in calls) == (not check_mode)
    assert not any(call.startswith("ctr") for call in calls)
    assert bool(module.warnings) == (not check_mode)
    assert not make_module("images", images=there, runtime="docker").apply()["changed"]
