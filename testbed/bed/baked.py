"""The disk with what a worker pulls and downloads: images, stored by containerd itself, and packages."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from . import images
from .build import Parts
from .common import ProblemError, digest, output, run, stored
from .vm import file_system

CONFIG = """version = 3
root = "{root}"
state = "{scratch}/state"
disabled_plugins = ["io.containerd.cri.v1.images", "io.containerd.cri.v1.runtime", "io.containerd.grpc.v1.cri"]
[grpc]
address = "{scratch}/socket"
[ttrpc]
address = "{scratch}/ttrpc"
"""
HOSTS = """[host."http://127.0.0.1:{port}"]
capabilities = ["pull", "resolve"]
"""


@contextmanager
def _containerd(program: Path, root: Path, scratch: Path) -> Iterator[list[str]]:
    """The start of a `ctr` command, valid while containerd runs."""
    config = scratch / "config.toml"
    config.write_text(CONFIG.format(root=root, scratch=scratch))
    with (scratch / "log").open("w") as log:
        # Its mounts disappear with it, however it ends.
        alone = ["unshare", "--mount", "setpriv", "--pdeathsig", "KILL"]
        words = [*alone, program / "containerd", "--config", config]
        process = subprocess.Popen([str(word) for word in words], stdout=log, stderr=log)
    ctr = [str(program / "ctr"), "--address", f"{scratch}/socket", "--namespace", "k8s.io"]
    try:
        deadline = time.monotonic() + 60
        while run(*ctr, "version", check=False).returncode:
            if process.poll() is not None or time.monotonic() > deadline:
                raise ProblemError(f"containerd does not start:\n{(scratch / 'log').read_text()[-2000:]}")
            time.sleep(0.2)
        yield ctr
    finally:
        process.terminate()
        process.wait()


def image_store(programs: Path, registry: Path, references: list[str], target: Path) -> None:
    """Fill target as if a node had pulled these images from the mirror's registry."""
    with tempfile.TemporaryDirectory(prefix="containerd-") as directory:
        scratch = Path(directory)
        (scratch / "hosts/_default").mkdir(parents=True)
        with (
            images.Registry(programs / "registry", registry / "storage", scratch / "registry.yml") as server,
            _containerd(programs, target, scratch) as ctr,
        ):
            (scratch / "hosts/_default/hosts.toml").write_text(HOSTS.format(port=server.port))
            for reference in references:
                run(*ctr, "images", "pull", "--hosts-dir", scratch / "hosts", "--local", reference)
    for left in ("io.containerd.grpc.v1.introspection", "tmpmounts"):
        shutil.rmtree(target / left, ignore_errors=True)


def _debs(www: Path, target: Path) -> None:
    """The mirror's packages for nodes, under the names that apt looks for in its cache."""
    (target / "partial").mkdir(parents=True)
    for package in (file for name in ("kubernetes", "containerd") for file in (www / "apt" / name).rglob("*.deb")):
        name, version = output("dpkg-deb", "--show", "--showformat=${Package} ${Version}", package).split()
        shutil.copyfile(package, target / f"{name}_{version.replace(':', '%3a')}_amd64.deb")


def _key(parts: Parts) -> str:
    built = [part.name for part in (parts.bin, parts.registry, parts.www, parts.standins)]
    return digest(built, Path(__file__))


def stored_name(parts: Parts) -> str:
    return f"worker-baked-{_key(parts)}"


def built(parts: Parts) -> Path:
    """The disk's directory in the store, with baked.img."""

    def make(target: Path) -> None:
        tree = target / "tree"
        _debs(parts.www, tree / "debs")
        (tree / "bin").mkdir()
        shutil.copy2(parts.standins / "vipu", tree / "bin")
        image_store(parts.bin, parts.registry, images.references(parts.bin), tree / "containerd")
        file_system(tree, target / "baked.img")
        shutil.rmtree(tree)

    return stored("worker-baked", _key(parts), make)
