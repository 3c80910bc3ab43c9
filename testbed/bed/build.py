"""Everything that a testbed consists of, built when its inputs have changed."""

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

# The Debian package of each command; only missing ones are installed.
NEEDED = {
    "podman": "podman", "runc": "runc", "netavark": "netavark", "debootstrap": "debootstrap", "dpkg-deb": "dpkg",
    "apt-ftparchive": "apt-utils", "gpg": "gnupg", "gpgconf": "gnupg", "gcc": "gcc libc6-dev", "ssh": "openssh-client",
    "iptables": "iptables", "ip": "iproute2",
}  # fmt: skip
COMMANDS = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/usr/lib/podman"


@dataclass(frozen=True)
class Wanted:
    """What the mirror offers beyond what every testbed needs. It takes minutes to build, so it is built on demand."""

    next_release: bool = False  # of Kubernetes, for upgrades
    calico: bool = False


@dataclass(frozen=True)
class Parts:
    """Directories in the store."""

    bin: Path
    standins: Path
    debian: Path
    mpi: Path
    rdma: Path
    calico_files: Path
    registry: Path
    www: Path
    distribution: Path


def _missing(commands: dict[str, str]) -> list[str]:
    """Packages of commands that are not here; a command can need several."""
    lacking = [packages for command, packages in commands.items() if not shutil.which(command, path=COMMANDS)]
    return sorted({package for packages in lacking for package in packages.split()})


def need(commands: dict[str, str]) -> None:
    """Install the packages of commands that this machine lacks. Builds that start together take turns."""
    if not _missing(commands):
        return
    with lock("apt"):
        names = _missing(commands)
        if names:
            say(f"this machine lacks {' '.join(names)}: installing with apt")
            run("apt-get", "update")
            quiet = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
            run("apt-get", "install", "--yes", "--no-install-recommends", *names, env=quiet)


def requirements() -> None:
    """Install what the build needs."""
    if not shutil.which("go"):
        raise ProblemError("no `go` in PATH: the testbed's programs are built from Go modules; install Go 1.26")
    need(NEEDED)


def _www(
    target: Path, bin_dir: Path, debian: Path, distribution: Path, calico_files: Path, next_dir: Path | None
) -> None:
    """What the mirror serves over HTTP: apt repositories, charts, manifests, helm."""
    packages.repositories(target / "apt", bin_dir, debian / "runc.deb", distribution, next_dir)
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


def build(wanted: Wanted = Wanted()) -> Parts:
    """Build what is missing. May run in parallel, and be killed."""
    requirements()
    long = [programs.CALICO_GROUP] * wanted.calico + [programs.NEXT] * wanted.next_release
    names = [programs.CLUSTER, *long, *programs.SHORT]
    with ThreadPoolExecutor(3) as pool:
        # They mostly wait for the network, so they can run in parallel with the compiler.
        debian_trees = pool.submit(_trees, wanted)
        # Two groups at a time: the linker uses only one core.
        groups = dict(zip(names, pool.map(programs.group, names), strict=True))
        standins, calico_files = programs.standins(), programs.calico_files()
        scripts = programs.whereabouts_files()
        made = debian_trees.result()
    bin_dir = programs.binaries(groups[programs.CLUSTER], groups["containerd"], groups["cni"])
    next_dir = groups.get(programs.NEXT)
    debian, distribution = made["debian"], made["distribution"]
    more = [next_dir.name] if next_dir else []
    served = (programs.STANDINS / "charts", programs.STANDINS / "manifests")
    www = stored(
        "www",
        digest(
            Path(packages.__file__),
            Path(__file__),
            *(part.name for part in (bin_dir, groups["cri-tools"], debian, distribution, calico_files)),
            *served,
            *more,
        ),
        lambda target: _www(target, bin_dir, debian, distribution, calico_files, next_dir),
    )
    layers = {name: [made[name] / f"{name}.tar"] for name in ("mpi", "rdma")} | {"tools": [debian / "tools.tar"]}
    if wanted.calico:
        layers["calico"] = [debian / "tools.tar", made["calico"] / "calico.tar"]

    def fill(target: Path) -> None:
        served = images.kubernetes_images(bin_dir) + images.flannel_images(bin_dir, groups["flannel-cni"])
        if next_dir:
            served += images.next_images(next_dir, bin_dir)
        if wanted.calico:
            programs_of = groups[programs.CALICO_GROUP]
            served += images.calico_images(programs_of, calico_files, groups["cni"], standins)
        whereabouts = images.whereabouts_content(groups["whereabouts"], scripts)
        served += images.standin_images(standins, groups["cni"], groups["rdma-shared-dp"], bin_dir, whereabouts)
        images.fill(target, bin_dir / "registry", served, layers)

    made_of = sorted(part.name for part in (bin_dir, standins, calico_files, scripts, *groups.values(), *made.values()))
    listed = programs.STANDINS / "images.json"
    registry = stored("registry", digest(Path(images.__file__), made_of, listed), fill)
    parts = Parts(bin_dir, standins, debian, made["mpi"], made["rdma"], calico_files, registry, www, distribution)
    for name in ("tools", "host"):
        _podman_image(parts, name)
    return parts


def _trees(wanted: Wanted) -> dict[str, Path]:
    """Build the parts that come from Debian."""
    debian = trees.trees()
    made = {
        "debian": debian,
        "mpi": trees.mpi(debian),
        "rdma": trees.rdma(),
        "distribution": trees.distribution(debian),
    }
    return made | ({"calico": trees.calico(debian)} if wanted.calico else {})


def image_name(parts: Parts, name: str) -> str:
    return f"localhost/ipu-fabric/{name}:{parts.debian.name.rpartition('-')[2]}"


def _podman_image(parts: Parts, name: str) -> None:
    image = image_name(parts, name)
    with lock("podman-import"):
        if run("podman", "image", "exists", image, check=False).returncode:
            with step(f"import the {name} image"):
                run("podman", "import", "--quiet", parts.debian / f"{name}.tar", image)
