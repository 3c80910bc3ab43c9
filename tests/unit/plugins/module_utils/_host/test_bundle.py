"""What a host takes from a bundle: only what it lacks, and nothing that is not what the list says."""

import hashlib

import pytest
from ansible_collections.ipu.fabric.plugins.module_utils._common.result import FabricError
from ansible_collections.ipu.fabric.plugins.module_utils._host import bundle

TYPE = "application/vnd.oci.image.manifest.v1+json"
PINNED = "io.cri-containerd.image=managed,io.cri-containerd.pinned=pinned"
LISTED = f"""REF                          TYPE   DIGEST    SIZE      PLATFORMS   LABELS
registry.k8s.io/pause:3.10.1 {TYPE} sha256:aa 311.6 KiB linux/amd64 {PINNED}
quay.io/calico/node:v3.32.1  {TYPE} sha256:bb 1.0 MiB   linux/amd64 io.cri-containerd.image=managed
quay.io/x@sha256:ff          {TYPE} sha256:cc 1.0 MiB   linux/amd64 -
"""


def entry(text):
    return {"size": len(text), "sha256": hashlib.sha256(text.encode()).hexdigest()}


class Module:
    """As much of an AnsibleModule as is used."""

    def __init__(self, check_mode=False, **params):
        self.check_mode, self.params = check_mode, {"incoming": {}, **params}


def test_parse_images():
    assert bundle.parse_images(LISTED) == {
        "registry.k8s.io/pause:3.10.1": bundle.HeldImage("sha256:aa", True),
        "quay.io/calico/node:v3.32.1": bundle.HeldImage("sha256:bb", False),
        "quay.io/x@sha256:ff": bundle.HeldImage("sha256:cc", False),
    }


@pytest.mark.parametrize(
    ("name", "digest", "due"),
    [
        ("registry.k8s.io/pause:3.10.1", "sha256:aa", ([], [])),
        ("quay.io/calico/node:v3.32.1", "sha256:bb", ([], ["quay.io/calico/node:v3.32.1"])),
        ("quay.io/calico/node:v3.32.1", "sha256:b2", (["quay.io/calico/node:v3.32.1"], [])),
        ("quay.io/new:1", "sha256:dd", (["quay.io/new:1"], [])),
    ],
)
def test_what_is_imported_and_what_is_pinned(name, digest, due):
    image = {"name": name, "digest": digest, "architecture": "amd64", "file": "x", "control_plane": False}
    assert bundle.images_due([image], bundle.parse_images(LISTED)) == due


@pytest.mark.parametrize("check", [True, False])
def test_files_that_are_missing_or_differ(tmp_path, check):
    files = {name: entry(name) for name in ("a.deb", "b.deb", "c.deb")}
    (tmp_path / "a.deb").write_text("a.deb", encoding="utf-8")
    (tmp_path / "b.deb").write_text("B.deb", encoding="utf-8")
    result = bundle.apply_files(Module(check, directory=str(tmp_path), files=files))
    assert (result["changed"], result["missing"]) == (True, ["b.deb", "c.deb"])


def test_files_arrive_and_old_ones_go(tmp_path):
    target, sent = tmp_path / "apt", tmp_path / "sent"
    target.mkdir()
    (target / "old.deb").write_text("old", encoding="utf-8")
    sent.write_text("new.deb", encoding="utf-8")
    arguments = {"directory": str(target), "files": {"new.deb": entry("new.deb")}}
    assert bundle.apply_files(Module(True, **arguments))["removed"] == ["old.deb"]
    assert (target / "old.deb").exists()
    result = bundle.apply_files(Module(incoming={"new.deb": str(sent)}, **arguments))
    assert (result["changed"], result["missing"]) == (True, [])
    assert [path.name for path in target.iterdir()] == ["new.deb"]
    assert not bundle.apply_files(Module(**arguments))["changed"]


def test_a_file_that_arrives_damaged_takes_no_place(tmp_path):
    sent = tmp_path / "sent"
    sent.write_text("half", encoding="utf-8")
    files = {"new.deb": entry("new.deb")}
    with pytest.raises(FabricError) as error:
        bundle.apply_files(Module(directory=str(tmp_path / "apt"), files=files, incoming={"new.deb": str(sent)}))
    assert "new.deb" in error.value.where
    assert "4 bytes instead of 7" in error.value.seen
    assert not (tmp_path / "apt" / "new.deb").exists()
