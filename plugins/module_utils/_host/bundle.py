# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a host takes from a bundle: files copied to it, and images imported into its containerd.

The action first asks the host what it lacks, and sends only that.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import typing as t

from .._common.command import run_program
from .._common.result import FabricError, printed_by
from .._model.bundle import BundleFile, BundleImage

if t.TYPE_CHECKING:
    from ansible.module_utils.basic import AnsibleModule

CTR = ("ctr", "--namespace", "k8s.io", "images")
# The kubelet never removes an image with this label, which it could not pull again.
PIN = "io.cri-containerd.pinned=pinned"


def sha256_of(path: str) -> str:
    """The digest of a file that may be large."""
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        for block in iter(lambda: file.read(1 << 20), b""):
            digest.update(block)
    return digest.hexdigest()


def fault_of(path: str, wanted: BundleFile) -> str:
    """What is wrong with a file; empty if it is as expected."""
    try:
        size = os.stat(path).st_size
        if size != wanted["size"]:
            return f"{size} bytes instead of {wanted['size']}"
        digest = sha256_of(path)
    except FileNotFoundError:
        return "no such file"
    except OSError as error:
        return str(error)
    return "" if digest == wanted["sha256"] else f"sha256 {digest} instead of {wanted['sha256']}"


def missing_files(directory: str, files: t.Mapping[str, BundleFile]) -> t.List[str]:
    return [name for name, wanted in sorted(files.items()) if fault_of(os.path.join(directory, name), wanted)]


def strange_files(directory: str, files: t.Container[str]) -> t.List[str]:
    """Files in the directory that are not of this bundle: they belong to the previous one."""
    found = []
    for top, _directories, names in os.walk(directory):
        found += [os.path.relpath(os.path.join(top, name), directory) for name in names]
    return sorted(name for name in found if name not in files)


def take_file(source: str, directory: str, name: str, wanted: BundleFile) -> None:
    """Put a file that came with this task in its place, atomically."""
    fault = fault_of(source, wanted)
    if fault:
        raise FabricError(
            "A file of the bundle was damaged in transit.",
            f"{name} on this host",
            fault,
            "Run again.",
            code="wrong-content",
            transient=True,
        )
    path = os.path.join(directory, name)
    os.makedirs(os.path.dirname(path), mode=0o755, exist_ok=True)
    part = f"{path}.part"
    shutil.copyfile(source, part)
    os.chmod(part, 0o644)  # apt reads it as its own user
    os.replace(part, path)


def apply_files(module: AnsibleModule) -> t.Dict[str, object]:
    """Put files in place. `incoming` has the temporary paths, by name, of the files that the action sent."""
    directory, files, incoming = (module.params[name] for name in ("directory", "files", "incoming"))
    if not module.check_mode:
        for name, source in incoming.items():
            take_file(source, directory, name, files[name])
    missing, strange = missing_files(directory, files), strange_files(directory, files)
    if not missing and not module.check_mode:
        for name in strange:
            with contextlib.suppress(FileNotFoundError):
                os.remove(os.path.join(directory, name))
    return {"changed": bool(missing or strange or incoming), "missing": missing, "removed": strange}


class HeldImage(t.NamedTuple):
    """An image that containerd has."""

    digest: str
    pinned: bool


def parse_images(text: str) -> t.Dict[str, HeldImage]:
    """Images by name from `ctr images list`: REF, TYPE, DIGEST, SIZE with its unit, PLATFORMS, LABELS."""
    images = {}
    for line in text.splitlines():
        columns = line.split()
        if len(columns) > 3 and columns[2].startswith("sha256:"):
            images[columns[0]] = HeldImage(columns[2], PIN in columns[-1].split(","))
    return images


def images_due(images: t.Sequence[BundleImage], held: t.Mapping[str, HeldImage]) -> t.Tuple[t.List[str], t.List[str]]:
    """Names of images to import, and of those that only need a pin."""
    none = HeldImage("", False)
    absent = [image["name"] for image in images if held.get(image["name"], none).digest != image["digest"]]
    loose = [image["name"] for image in images if image["name"] not in absent and not held[image["name"]].pinned]
    return absent, loose


def _ctr(what: str, where: str, timeout: int, *words: str) -> str:
    done = run_program([*CTR, *words], timeout)
    return printed_by(done, timeout, what, where, "See journalctl -u containerd, then run again.")


def apply_images(module: AnsibleModule) -> t.Dict[str, object]:
    """Import the archive that the action sent, if any, and pin the images."""
    images: t.List[BundleImage] = module.params["images"]
    timeout: int = module.params["timeout"]
    imported, archive = next(iter(module.params["incoming"].items()), ("", ""))
    by_name = {image["name"]: image for image in images}
    if not module.get_bin_path("ctr"):
        if not module.check_mode:
            raise FabricError(
                "containerd is needed for the images of a bundle.",
                "ctr",
                "no such program",
                "Install containerd.io.",
                code="missing-requirement",
            )
        return {"changed": True, "missing": sorted(by_name), "pinned": []}
    if archive and not module.check_mode:
        fault = fault_of(archive, module.params["files"][imported])
        if fault:
            raise FabricError(
                "An image of the bundle was damaged in transit.",
                imported,
                fault,
                "Run again.",
                code="wrong-content",
                transient=True,
            )
        _ctr("An image could not be imported.", imported, timeout, "import", archive)
    listed = _ctr("Could not list images.", "containerd", timeout, "list")
    absent, loose = images_due(images, parse_images(listed))
    if archive and not module.check_mode and imported in absent:
        raise FabricError(
            "After an import, containerd does not have the image with its expected name and digest.",
            imported,
            f"{parse_images(listed).get(imported, HeldImage('no such image', False)).digest},"
            f" instead of {by_name[imported]['digest']}",
            "Recreate the bundle with ipu.fabric.bundle: its archive does not match its list.",
            code="wrong-content",
        )
    if not module.check_mode:
        for name in loose:
            _ctr("An image could not be pinned.", name, timeout, "label", name, PIN)
    return {"changed": bool(absent or loose or archive), "missing": absent, "pinned": loose}


def apply_bundle(module: AnsibleModule) -> t.Dict[str, object]:
    """The body of M(ipu.fabric.bundle_files)."""
    return apply_images(module) if module.params["architecture"] else apply_files(module)
