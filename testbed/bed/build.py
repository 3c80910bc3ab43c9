"""Everything that a testbed is made of, built when its inputs changed."""

from __future__ import annotations

import hashlib
import os
import shutil
import tarfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from . import images, packages, programs, trees
from .common import ProblemError, digest, lock, run, say, step, stored

# What each command comes from on Debian; only the missing ones are installed.
NEEDED = {
    "podman": "podman", "runc": "runc", "netavark": "netavark", "debootstrap": "debootstrap", "dpkg-deb": "dpkg",
    "apt-ftparchive": "apt-utils", "gpg": "gnupg", "gpgconf": "gnupg", "gcc": "gcc libc6-dev", "ssh": "openssh-client",
    "iptables": "iptables", "ip": "iproute2",
}  # fmt: skip
COMMANDS = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/usr/lib/podman"


@dataclass(frozen=True)
class Parts:
    """Directories in the store."""

    bin: Path
    standins: Path
    debian: Path
    mpi: Path
    rdma: Path
    calico: Path
    calico_files: Path
    registry: Path
    www: Path
    distribution: Path


def need(commands: dict[str, str]) -> None:
    """Install the packages of the commands that this machine lacks."""
    missing = [package for command, package in commands.items() if not shutil.which(command, path=COMMANDS)]
    if missing:
        names = " ".join(sorted(set(missing)))
        say(f"this machine lacks {names}: installing with apt")
        run("apt-get", "update")
        quiet = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
        run("apt-get", "install", "--yes", "--no-install-recommends", *names.split(), env=quiet)


def requirements() -> None:
    """Have what the build needs."""
    if not shutil.which("go"):
        raise ProblemError(
            "no `go` in PATH: the testbed's programs are built from Go modules; install Go 1.21 or newer"
        )
    need(NEEDED)


def _www(
    target: Path, bin_dir: Path, debian: Path, distribution: Path, calico_files: Path, previous_dir: Path | None
) -> None:
    """What the mirror serves over HTTP: apt repositories, charts, manifests, helm."""
    packages.repositories(target / "apt", bin_dir, debian / "runc.deb", distribution, previous_dir)
    for chart in sorted((programs.STANDINS / "charts").glob("*")):
        repository = target / "charts" / chart.name.rpartition("-")[0]
        repository.mkdir(parents=True, exist_ok=True)
        run(bin_dir / "helm", "package", chart, "--destination", repository)
    for repository in (target / "charts").glob("*"):
        run(bin_dir / "helm", "repo", "index", repository)
    manifests = target / "mpi-operator"
    manifests.mkdir()
    shutil.copy(programs.STANDINS / "manifests/mpi-operator.yaml", manifests)
    shutil.copytree(calico_files / "manifests", target / "calico")
    archive = target / "helm" / f"helm-v{programs.HELM}-linux-amd64.tar.gz"
    archive.parent.mkdir()
    with tarfile.open(archive, "w:gz", compresslevel=1) as content:
        content.add(bin_dir / "helm", "linux-amd64/helm")
    checksum = hashlib.sha256(archive.read_bytes()).hexdigest()
    (archive.parent / f"{archive.name}.sha256sum").write_text(f"{checksum}  {archive.name}\n")


def _registry(
    target: Path,
    bin_dir: Path,
    groups: dict[str, Path],
    calico_files: Path,
    standins: Path,
    trees: dict[str, list[Path]],
    previous_dir: Path | None,
) -> None:
    """The images that the mirror serves."""
    wanted = [
        *images.kubernetes_images(bin_dir, groups["pause"]),
        *(images.previous_images(previous_dir, bin_dir, groups["pause"]) if previous_dir else []),
        *images.flannel_images(groups["flannel"], groups["flannel-cni"]),
        *images.calico_images(groups["calico"], calico_files, groups["cni"], standins),
        *images.standin_images(standins, groups["cni"], groups["rdma-shared-dp"], bin_dir),
    ]
    images.fill(target, bin_dir / "registry", wanted, trees)


def build(previous_release: bool = False) -> Parts:
    """Build what is missing, and on demand the previous release of Kubernetes. Safe to run side by side and to kill."""
    requirements()
    with ThreadPoolExecutor(3) as pool:
        # They wait for the network mostly, so they fit beside the compiler.
        debian_trees = pool.submit(
            lambda: (
                debian := trees.trees(),
                trees.mpi(debian),
                trees.calico(debian),
                trees.rdma(),
                trees.distribution(debian),
            )
        )
        # Two groups at a time: the linker uses one core only.
        groups = dict(zip(programs.GROUPS, pool.map(programs.group, programs.GROUPS), strict=True))
        standins, calico_files = programs.standins(), programs.calico_files()
        debian, mpi, calico, rdma, distribution = debian_trees.result()
    bin_dir = programs.binaries(groups)
    previous_dir = programs.group(programs.PREVIOUS) if previous_release else None
    more = [previous_dir.name] if previous_dir else []
    served = (programs.STANDINS / "charts", programs.STANDINS / "manifests")
    www = stored(
        "www",
        digest(
            Path(packages.__file__),
            Path(__file__),
            *(part.name for part in (bin_dir, debian, distribution, calico_files)),
            *served,
            *more,
        ),
        lambda target: _www(target, bin_dir, debian, distribution, calico_files, previous_dir),
    )
    contents = (groups[name] for name in ("pause", "cni", "flannel-cni", "calico", "rdma-shared-dp"))
    made_of = (bin_dir, *contents, standins, calico_files, debian, mpi, calico, rdma)
    tools = debian / "tools.tar"
    layers = {
        "tools": [tools],
        "mpi": [mpi / "mpi.tar"],
        "calico": [tools, calico / "calico.tar"],
        "rdma": [rdma / "rdma.tar"],
    }
    registry = stored(
        "registry",
        digest(Path(images.__file__), [part.name for part in made_of], programs.STANDINS / "images.json", *more),
        lambda target: _registry(target, bin_dir, groups, calico_files, standins, layers, previous_dir),
    )
    parts = Parts(bin_dir, standins, debian, mpi, rdma, calico, calico_files, registry, www, distribution)
    for name in ("tools", "host"):
        _podman_image(parts, name)
    return parts


def image_name(parts: Parts, name: str) -> str:
    return f"localhost/ipu-fabric/{name}:{parts.debian.name.rpartition('-')[2]}"


def _podman_image(parts: Parts, name: str) -> None:
    image = image_name(parts, name)
    with lock("podman-import"):
        if run("podman", "image", "exists", image, check=False).returncode:
            with step(f"import the {name} image"):
                run("podman", "import", "--quiet", parts.debian / f"{name}.tar", image)
