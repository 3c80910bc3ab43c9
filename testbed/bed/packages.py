"""The mirror's packages: .debs under the names of the real repositories, signed and laid out like them."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path

from . import programs
from .common import output, run

MAINTAINER = "ipu.fabric testbed <testbed@example.com>"

KUBELET_UNIT = """[Unit]
Description=kubelet: The Kubernetes Node Agent
Documentation=https://kubernetes.io/docs/
Wants=network-online.target
After=network-online.target

[Service]
ExecStart=/usr/bin/kubelet
Restart=always
StartLimitInterval=0
RestartSec=10

[Install]
WantedBy=multi-user.target
"""
_KUBECONFIGS = "--bootstrap-kubeconfig=/etc/kubernetes/bootstrap-kubelet.conf --kubeconfig=/etc/kubernetes/kubelet.conf"
KUBEADM_DROP_IN = f"""[Service]
Environment="KUBELET_KUBECONFIG_ARGS={_KUBECONFIGS}"
Environment="KUBELET_CONFIG_ARGS=--config=/var/lib/kubelet/config.yaml"
EnvironmentFile=-/var/lib/kubelet/kubeadm-flags.env
EnvironmentFile=-/etc/default/kubelet
ExecStart=
ExecStart=/usr/bin/kubelet $KUBELET_KUBECONFIG_ARGS $KUBELET_CONFIG_ARGS $KUBELET_KUBEADM_ARGS $KUBELET_EXTRA_ARGS
"""
CONTAINERD_UNIT = """[Unit]
Description=containerd container runtime
Documentation=https://containerd.io
After=network.target local-fs.target dbus.service

[Service]
ExecStartPre=-/sbin/modprobe overlay
ExecStart=/usr/bin/containerd
Type=notify
Delegate=yes
KillMode=process
Restart=always
RestartSec=5
LimitNPROC=infinity
LimitCORE=infinity
TasksMax=infinity
OOMScoreAdjust=-999

[Install]
WantedBy=multi-user.target
"""
# As shipped in the real package: without the CRI, so a role must enable it.
CONTAINERD_CONFIG = 'disabled_plugins = ["cri"]\n'
CONTAINERD_POSTINST = """#!/bin/sh
set -e
if [ "$1" = configure ] && [ -d /run/systemd/system ]; then
  systemctl daemon-reload
  systemctl enable containerd.service
  systemctl start containerd.service
fi
"""

# Path in the package: a program to copy, or a text.
Contents = Mapping[str, Path | str]


def _package(target: Path, name: str, version: str, files: Contents, depends: str = "", **control_files: str) -> None:
    """Write target/name_version_amd64.deb. A file given as a path is a program, one given as a string is data."""
    with tempfile.TemporaryDirectory(dir=target) as scratch:
        root = Path(scratch)
        root.chmod(0o755)
        for path, content in files.items():
            file = root / path
            file.parent.mkdir(parents=True, exist_ok=True)
            if isinstance(content, Path):
                shutil.copyfile(content, file)
            else:
                file.write_text(content)
            file.chmod(0o755 if isinstance(content, Path) or content.startswith("#!") else 0o644)
        control = root / "DEBIAN"
        control.mkdir()
        fields = {
            "Package": name,
            "Version": version,
            "Architecture": "amd64",
            "Maintainer": MAINTAINER,
            "Section": "admin",
            "Depends": depends,
            "Description": f"{name}, built for the ipu.fabric testbed",
        }
        (control / "control").write_text("".join(f"{field}: {value}\n" for field, value in fields.items() if value))
        for file_name, text in control_files.items():
            (control / file_name).write_text(text)
            (control / file_name).chmod(0o755 if text.startswith("#!") else 0o644)
        # Uncompressed: quick to build and quick to install.
        archive = target / f"{name}_{version.replace('~', '.')}_amd64.deb"
        run("dpkg-deb", "--root-owner-group", "-Znone", "--build", root, archive)


def _kubernetes(target: Path, bin_dir: Path, version: str) -> None:
    release, units = f"{version}-1.1", "usr/lib/systemd/system"
    kubelet: Contents = {"usr/bin/kubelet": bin_dir / "kubelet", f"{units}/kubelet.service": KUBELET_UNIT}
    needs = "iptables (>= 1.4.21), kubernetes-cni (>= 1.2.0), iproute2, mount, util-linux"
    _package(target, "kubelet", release, kubelet, depends=needs)
    kubeadm: Contents = {
        "usr/bin/kubeadm": bin_dir / "kubeadm",
        f"{units}/kubelet.service.d/10-kubeadm.conf": KUBEADM_DROP_IN,
    }
    _package(target, "kubeadm", release, kubeadm, depends="cri-tools (>= 1.30.0)")
    _package(target, "kubectl", release, {"usr/bin/kubectl": bin_dir / "kubectl"})
    crictl = programs.group("cri-tools") / "crictl"
    _package(target, "cri-tools", f"{programs.CRI_TOOLS}-1.1", {"usr/bin/crictl": crictl})


def _cni(target: Path) -> None:
    plugins = {f"opt/cni/bin/{plugin.name}": plugin for plugin in programs.group("cni").iterdir()}
    _package(target, "kubernetes-cni", f"{programs.CNI}-1.1", plugins)


def _containerd(target: Path, bin_dir: Path, runc: Path) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        run("dpkg-deb", "--extract", runc, scratch)
        names = ("containerd", "containerd-shim-runc-v2", "ctr")
        files: dict[str, Path | str] = {f"usr/bin/{name}": bin_dir / name for name in names}
        files["usr/bin/runc"] = next(Path(scratch).rglob("sbin/runc"))
        files["usr/lib/systemd/system/containerd.service"] = CONTAINERD_UNIT
        files["etc/containerd/config.toml"] = CONTAINERD_CONFIG
        release = f"{programs.CONTAINERD}-1~debian.12~bookworm"
        control = {"postinst": CONTAINERD_POSTINST, "conffiles": "/etc/containerd/config.toml\n"}
        _package(target, "containerd.io", release, files, depends="libc6, libseccomp2 (>= 2.5.0)", **control)


def _sign(directory: Path, home: str, *release_options: str) -> None:
    """Write Release, InRelease and Release.gpg for the contents of this directory."""
    release = output("apt-ftparchive", *release_options, "release", ".", cwd=directory)
    (directory / "Release").write_text(f"{release}\n")
    gpg = ("gpg", "--homedir", home, "--batch", "--yes")
    run(*gpg, "--output", directory / "InRelease", "--clearsign", directory / "Release")
    run(*gpg, "--output", directory / "Release.gpg", "--armor", "--detach-sign", directory / "Release")


def repositories(target: Path, bin_dir: Path, runc: Path, distribution: Path, next_dir: Path | None) -> None:
    """Fill target/kubernetes and target/debian (suite `/`) and target/containerd (dists/bookworm/stable), with their
    key files. Debian's own packages are taken as they are.

    `next_dir` has the programs of the next Kubernetes, for a repository with both. The signing key is discarded
    after the last signature."""
    flat, pool, debian = target / "kubernetes", target / "containerd", target / "debian"
    pooled = pool / "dists/bookworm/pool/stable/amd64"
    index = pool / "dists/bookworm/stable/binary-amd64"
    for directory in (flat, pooled, index):
        directory.mkdir(parents=True)
    _kubernetes(flat, bin_dir, programs.KUBERNETES)
    if next_dir:
        _kubernetes(flat, next_dir, programs.KUBERNETES_NEXT)
    _cni(flat)
    _containerd(pooled, bin_dir, runc)
    shutil.copytree(distribution, debian)
    for directory in (flat, debian):
        (directory / "Packages").write_text(output("apt-ftparchive", "packages", ".", cwd=directory) + "\n")
    (index / "Packages").write_text(output("apt-ftparchive", "packages", "dists/bookworm/pool", cwd=pool) + "\n")
    with tempfile.TemporaryDirectory(prefix="gpg-") as home:
        os.chmod(home, 0o700)
        gpg = ("gpg", "--homedir", home, "--batch", "--quiet")
        run(*gpg, "--passphrase", "", "--quick-generate-key", MAINTAINER, "rsa2048", "sign", "never")
        _sign(flat, home)
        _sign(debian, home)
        about = ["Origin=Docker", "Suite=bookworm", "Codename=bookworm", "Components=stable", "Architectures=amd64"]
        options = [f"--option=APT::FTPArchive::Release::{field}" for field in about]
        _sign(pool / "dists/bookworm", home, *options)
        run(*gpg, "--armor", "--output", flat / "Release.key", "--export")
        shutil.copyfile(flat / "Release.key", pool / "gpg")
        shutil.copyfile(flat / "Release.key", debian / "Release.key")
        run("gpgconf", "--homedir", home, "--kill", "all")
