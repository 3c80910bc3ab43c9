"""The role mpi_operator takes the manifest that it knows, and deletes MPIJobs only when it is told to."""

import hashlib

import pytest
from ansible_collections.ipu.fabric.plugins.module_utils._common.result import FabricError
from ansible_collections.ipu.fabric.plugins.module_utils._component.mpi_operator import Seen, decide
from ansible_collections.ipu.fabric.tests.unit.fixtures.components import defaults

TEXT = """\
kind: CustomResourceDefinition
---
---
kind: Deployment
spec: {image: a}
x:
  image: mpioperator/mpi-operator:0.8.2
"""
DIGEST = hashlib.sha256(TEXT.encode()).hexdigest()


def wish(ours=True, jobs=(), **settings):
    given = {"manifest_sha256": DIGEST, **settings}
    return decide(defaults("mpi_operator", **given), Seen(TEXT, {"ours": ours, "jobs": list(jobs)}))


@pytest.mark.parametrize(
    ("url", "sha256", "taken"),
    [
        ("https://site/m.yaml", DIGEST, True),
        ("https://site/m.yaml", f"sha256:{DIGEST.upper()}", True),
        ("https://site/m.yaml", "", True),
        ("/m.yaml", "", True),
        ("/m.yaml", "0" * 64, False),
        ("http://site/m.yaml", DIGEST, True),
        ("http://site/m.yaml", "", False),
    ],
)
def test_only_the_file_that_was_expected(url, sha256, taken):
    settings = {"manifest_url": url, "manifest_sha256": sha256}
    if taken:
        assert [each["kind"] for each in wish(**settings).objects] == ["CustomResourceDefinition", "Deployment"]
    else:
        with pytest.raises(FabricError, match=f"{url} is not the file that was expected.*{DIGEST}"):
            wish(**settings)


@pytest.mark.parametrize(("image", "runs"), [("", "mpioperator/mpi-operator:0.8.2"), ("site/mpi:1", "site/mpi:1")])
def test_an_image_in_place_of_the_manifests(image, runs):
    assert wish(image=image).objects[1]["x"] == {"image": runs}


@pytest.mark.parametrize(
    ("state", "ours", "told", "removed"),
    [
        ("absent", True, True, [("jobs", "train")]),
        # Not ours: neither are its jobs.
        ("absent", False, False, []),
        ("present", True, False, []),
    ],
)
def test_jobs_go_with_a_definition_of_ours(state, ours, told, removed):
    jobs = wish(ours, ["jobs/train"], state=state, delete_jobs=told).jobs
    assert [(each["metadata"]["namespace"], each["metadata"]["name"]) for each in jobs] == removed


def test_jobs_that_nobody_asked_to_delete():
    with pytest.raises(FabricError, match="1 of them, jobs/train"):
        wish(jobs=["jobs/train"], state="absent")
