"""Programs built from pinned Go modules: one directory with a go.mod for each group.

Programs of one group share compiled packages: Kubernetes, CoreDNS, flannel and Helm all use the API's client, nearly
all use gRPC. Only programs that can't work with the same releases of libraries have their own group."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from functools import cache
from pathlib import Path

from . import progress
from .common import SOURCE, ProblemError, digest, is_stored, output, run, stored

PROGRAMS = SOURCE / "programs"
STANDINS = SOURCE / "standins"
CLUSTER = "cluster"
SHORT = ("containerd", "rdma-shared-dp", "cni", "cri-tools", "flannel-cni", "whereabouts")
# Built on demand: the pod network that is the default for sites, but not in this testbed.
CALICO_GROUP = "calico"


def version(group: str, module: str) -> str:
    """The release of a module that the group's go.mod pins, directly or by a replacement, without the `v`."""
    text, name = (PROGRAMS / group / "go.mod").read_text(), re.escape(module)
    found = re.search(rf"=> {name} v(\S+)", text) or re.search(rf"^\s*(?:require )?{name} v(\S+)", text, re.MULTILINE)
    if not found:
        raise ProblemError(f"testbed/programs/{group}/go.mod does not require {module}")
    return found.group(1)


KUBERNETES = version(CLUSTER, "k8s.io/kubernetes")
# The next release, for upgrades. Built on demand.
NEXT = "kubernetes-next"
KUBERNETES_NEXT = version(NEXT, "k8s.io/kubernetes")
# Docker Engine, for one long test. Built on demand too.
DOCKER = "docker"
# The SR-IOV operator, for an integration test. At run time, it reads the manifests from its module.
SRIOV = "sriov-network-operator"
DOCKER_VERSION = version(DOCKER, "github.com/docker/docker").partition("+")[0]
CONTAINERD = version("containerd", "github.com/containerd/containerd/v2")
CNI = version("cni", "github.com/containernetworking/plugins")
CRI_TOOLS = version("cri-tools", "sigs.k8s.io/cri-tools")
ETCD = version(CLUSTER, "go.etcd.io/etcd/server/v3")
COREDNS = version(CLUSTER, "github.com/coredns/coredns")
FLANNEL = version(CLUSTER, "github.com/flannel-io/flannel")
HELM = version(CLUSTER, "helm.sh/helm/v3")
CALICO = "3.31.0"  # its module has no versions: go.mod pins the release's commit
# Files of images and manifests besides the programs; they are in the module.
CALICO_FILES = ("manifests/operator-crds.yaml", "manifests/tigera-operator.yaml", "node/filesystem")
WHEREABOUTS_FILES = ("script/install-cni.sh", "script/lib.sh", "script/token-watcher.sh")


# flannel's udp back end is in C, so its group needs the C compiler; a static program runs in any image.
STATIC = ["-extldflags=-static"]
TAGS = {
    CLUSTER: "netgo osusergo",
    "containerd": "no_btrfs no_devmapper no_zfs",
    DOCKER: "exclude_graphdriver_btrfs no_btrfs",
}


def _kubernetes_stamps(release: str) -> dict[str, str]:
    place = "k8s.io/component-base/version"
    major, minor, _patch = release.split(".")
    return {
        f"{place}.gitVersion": f"v{release}",
        f"{place}.gitMajor": major,
        f"{place}.gitMinor": minor,
        f"{place}.gitTreeState": "clean",
    }


def _link_flags(group: str) -> str:
    """The linker writes releases into the programs."""
    stamps = {
        CLUSTER: {
            **_kubernetes_stamps(KUBERNETES),
            "github.com/flannel-io/flannel/pkg/version.Version": f"v{FLANNEL}",
            "helm.sh/helm/v3/internal/version.version": f"v{HELM}",
        },
        "containerd": {"github.com/containerd/containerd/v2/version.Version": f"v{CONTAINERD}"},
        NEXT: _kubernetes_stamps(KUBERNETES_NEXT),
        DOCKER: {
            "github.com/docker/docker/dockerversion.Version": DOCKER_VERSION,
            "github.com/docker/cli/cli/version.Version": DOCKER_VERSION,
        },
        CALICO_GROUP: {"github.com/projectcalico/calico/pkg/buildinfo.Version": f"v{CALICO}"},
        "cni": {"github.com/containernetworking/plugins/pkg/utils/buildversion.BuildVersion": f"v{CNI}"},
        "cri-tools": {"sigs.k8s.io/cri-tools/pkg/version.Version": f"v{CRI_TOOLS}"},
    }.get(group, {})
    flags = ["-s", "-w", *(f"-X {name}={value}" for name, value in stamps.items())]
    return " ".join([*flags, *STATIC] if group == CLUSTER else flags)


# Since Go 1.26, json-iterator reads wrong memory if a struct has a zero-size field beside a map: typha panics.
TOOLCHAINS = {CALICO_GROUP: "go1.25.14"}


@cache
def _toolchain(name: str) -> str:
    """The Go release that builds a group: this machine's, unless the group needs another, which `go` then downloads."""
    return TOOLCHAINS.get(name) or output("go", "env", "GOVERSION")


def _go_build(name: str, source: Path, target: Path, *words: str) -> None:
    environment = os.environ | {
        "CGO_ENABLED": "1" if name == CLUSTER else "0",
        "GOFLAGS": "-mod=readonly -buildvcs=false",
        "GOTOOLCHAIN": TOOLCHAINS.get(name, os.environ.get("GOTOOLCHAIN", "auto")),
    }
    work = progress.current()
    listed = run("go", "list", "-deps", *words, cwd=source, env=environment, check=False, stderr=subprocess.DEVNULL)
    work.packages = len(listed.stdout.split())
    # -v is not part of a build's key: it changes the output, not the result.
    command = ["go", "build", "-v", "-trimpath", "-o", f"{target}/", *words]
    said = []
    with subprocess.Popen(
        command, cwd=source, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    ) as build:
        for line in build.stdout or ():
            work.read(line)
            said.append(line)
    if build.returncode:
        raise ProblemError(f"`{' '.join(command)}` ended with {build.returncode}:\n{''.join(said[-25:])}")


def _group_words(name: str) -> list[str]:
    """The arguments of `go build`."""
    own = ["./..."] if name == CLUSTER else []
    return [f"-tags={TAGS.get(name, '')}", f"-ldflags={_link_flags(name)}", "tool", *own]


def _group_key(name: str) -> str:
    return digest(PROGRAMS / name, _toolchain(name), _group_words(name))


def is_built(name: str) -> bool:
    """Whether the store has a group as in this checkout."""
    return is_stored(f"go-{name}", _group_key(name))


def group(name: str) -> Path:
    """The directory of a group's programs."""

    def make(target: Path) -> None:
        _go_build(name, PROGRAMS / name, target, *_group_words(name))

    return stored(f"go-{name}", _group_key(name), make)


def _copy_of_module(group: str, name: str, wanted: tuple[str, ...], target: Path) -> Path:
    """Copy files and directories of a Go module; returns the module's path."""
    module = Path(json.loads(output("go", "mod", "download", "-json", name, cwd=PROGRAMS / group))["Dir"])
    for path in (module / part for part in wanted):
        for file in [path] if path.is_file() else (file for file in path.rglob("*") if file.is_file()):
            copy = target / file.relative_to(module)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, copy)
            copy.chmod(0o755)  # module files have no modes, and most of these are scripts
    return module


def calico_files() -> Path:
    """The files in Calico's module that are not programs, if it is the release in the images' names."""

    def make(target: Path) -> None:
        module = _copy_of_module("calico", "github.com/projectcalico/calico", CALICO_FILES, target)
        if f"image: quay.io/calico/node:v{CALICO}\n" not in (module / "manifests/calico.yaml").read_text():
            raise ProblemError(f"testbed/programs/calico/go.mod pins another Calico than {CALICO}: change both")

    return stored("calico-files", digest(PROGRAMS / "calico/go.mod", CALICO_FILES, CALICO), make)


def sriov_operator() -> Path:
    """The directory in which the SR-IOV operator runs: its program, manifests and CRDs."""

    def make(target: Path) -> None:
        wanted = ("bindata/manifests", "config/crd/bases")
        _copy_of_module(SRIOV, "github.com/k8snetworkplumbingwg/sriov-network-operator", wanted, target)
        (target / SRIOV).hardlink_to(group(SRIOV) / SRIOV)

    return stored("sriov-operator", digest(_group_key(SRIOV)), make)


def whereabouts_files() -> Path:
    """The scripts that start whereabouts."""

    def make(target: Path) -> None:
        _copy_of_module("whereabouts", "github.com/k8snetworkplumbingwg/whereabouts", WHEREABOUTS_FILES, target)

    return stored("whereabouts-files", digest(PROGRAMS / "whereabouts/go.mod", WHEREABOUTS_FILES), make)


def standins() -> Path:
    """The stand-ins' programs: every main package of their module."""

    def make(target: Path) -> None:
        _go_build("standins", STANDINS, target, "-ldflags=-s -w", "./...")

    sources = sorted(file for file in STANDINS.rglob("*") if file.is_file() and _is_built(file))
    names = [str(file.relative_to(STANDINS)) for file in sources]
    return stored("go-standins", digest(names, *sources, _toolchain("standins")), make)


def _is_built(file: Path) -> bool:
    """Whether a file is part of a program: manifests are embedded, but tests, charts and texts are not."""
    outside = any(file.is_relative_to(STANDINS / part) for part in ("charts", "manifests", "images.json"))
    return not outside and not file.name.endswith(("_test.go", ".md"))


def binaries(*groups: Path) -> Path:
    """One directory with every program of these groups, under its usual name."""
    known_as = {"server": "etcd", "flannel": "flanneld", "install_conf": "install-conf"}

    def make(target: Path) -> None:
        for program in (program for group in groups for program in group.iterdir()):
            (target / known_as.get(program.name, program.name)).hardlink_to(program)

    return stored("bin", digest([group.name for group in groups], known_as), make)
