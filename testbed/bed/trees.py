"""Debian trees: a small one for images that need a shell and iptables, a bare host grown from it, images of tools."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

from .common import SOURCE, ProblemError, digest, run, stored

SUITE = "bookworm"
TOOLS = "bash iproute2 iptables nftables iputils-ping netcat-openbsd python3 ethtool procps kmod haproxy"
# The packages of a freshly installed Debian server, without Kubernetes. Ansible's apt modules need python3-apt.
HOST = (
    "systemd systemd-sysv dbus sudo openssh-server ca-certificates curl gpg python3-apt conntrack socat netbase "
    "iptables systemd-timesyncd pciutils less"
)
# As in the MPI operator's own images: ssh that asks no questions, and one for the user with uid 1000.
MPI = "openmpi-bin python3-mpi4py ibverbs-providers openssh-server openssh-client libcap2-bin"
MPI_FILES = {
    "etc/ssh/ssh_config": "Port 2222\nStrictHostKeyChecking no\nUserKnownHostsFile /dev/null\nLogLevel ERROR\n",
    "etc/ssh/sshd_config": "Port 2222\nStrictModes no\n",
    "home/mpiuser/.sshd_config": """Port 2222
PidFile /home/mpiuser/sshd.pid
HostKey /home/mpiuser/.ssh/id_rsa
StrictModes no
""",
    # Every rank adds its part.
    "home/mpiuser/pi": """#!/usr/bin/python3
from mpi4py import MPI

ranks, steps = MPI.COMM_WORLD, 1_000_000
own = sum(4 / (1 + ((i + 0.5) / steps) ** 2) for i in range(ranks.Get_rank(), steps, ranks.Get_size()))
total, hosts = ranks.reduce(own / steps), ranks.gather(MPI.Get_processor_name())
if ranks.Get_rank() == 0:
    print(f"pi is {total:.10f}, by {ranks.Get_size()} ranks on {' '.join(sorted(hosts))}")
""",
}
MPI_COMMANDS = """
mkdir -p /run/sshd
setcap cap_net_bind_service=+ep /usr/sbin/sshd
useradd --uid 1000 mpiuser
chown -R mpiuser: /home/mpiuser
chmod 755 /home/mpiuser/pi
"""
# What roles install from the distribution's own repositories, which the mirror replaces.
DISTRIBUTION = "keepalived chrony"
# An image that sites may build themselves; no base image can be pulled here, so its packages go into a tree.
RDMA_TOOLS = SOURCE.parent / "docs/images/rdma-tools.Containerfile"
# The contents of the calico-node image besides its programs.
CALICO = "ipset conntrack runit"
KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")

# Smaller trees install faster: documentation is left out from the first package on.
SLIM = "".join(f"path-exclude=/usr/share/{name}/*\n" for name in ("doc", "man", "locale", "info"))

# Omitted from every tree's archive.
REST = ("var/cache/apt/*", "var/lib/apt/lists/*", "var/log/*", "usr/share/doc/*", "usr/share/locale/*")

HOST_FILES = {
    # Mounts in a pod must be visible on the host and vice versa, as on any host that systemd has booted.
    "etc/systemd/system/shared-mounts.service": """[Unit]
DefaultDependencies=no
Before=sysinit.target
[Service]
Type=oneshot
ExecStart=/bin/mount --make-rshared /
[Install]
WantedBy=sysinit.target
""",
    # The second NIC's address comes from a file, so that it can be changed and survives a restart.
    "etc/systemd/system/fabric-nic.service": """[Unit]
After=systemd-sysctl.service
Before=network.target containerd.service kubelet.service
ConditionPathExists=/etc/testbed/fabric
[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/sbin/ip address flush dev eth1 scope global
ExecStart=/bin/sh -c 'ip address replace $(cat /etc/testbed/fabric) dev eth1 nodad && ip link set eth1 up'
[Install]
WantedBy=multi-user.target
""",
    "etc/ssh/sshd_config.d/testbed.conf": "PermitRootLogin prohibit-password\nUseDNS no\nMaxStartups 100\n",
    "etc/apt/sources.list": "",
}
# These have nothing to do in a container; systemd-networkd-wait-online would delay the kubelet for two minutes.
UNUSED_UNITS = (
    "systemd-firstboot.service systemd-udevd.service systemd-udevd-kernel.socket systemd-udevd-control.socket "
    "systemd-networkd.service systemd-networkd.socket systemd-networkd-wait-online.service systemd-timesyncd.service "
    "getty.target console-getty.service apt-daily.timer apt-daily-upgrade.timer"
)


def debian_mirror() -> str:
    """The Debian mirror that apt on this machine uses."""
    lists = [Path("/etc/apt/sources.list"), *Path("/etc/apt/sources.list.d").glob("*")]
    for file in (file for file in lists if file.is_file()):
        text = re.sub(r"^\s*#.*$", "", file.read_text(), flags=re.MULTILINE)
        for found in re.finditer(r"^(?:URIs:\s*|deb\s+(?:\[[^]]*\]\s+)?)(\S+)", text, re.MULTILINE):
            if re.search(r"/debian/?$", found.group(1)):
                return found.group(1)
    raise ProblemError("no Debian mirror in /etc/apt/sources.list or sources.list.d: add a source ending in /debian")


def _archive(tree: Path, target: Path, *leave_out: str, newer: Path | None = None) -> None:
    """Write a tree to an archive, or only the files that were added after another file was touched."""
    same = ("--sort=name", "--numeric-owner", "--mtime=@0", "--xattrs", "--xattrs-include=security.capability")
    left_out = (f"--exclude=./{path}" for path in leave_out)
    only = [f"--newer={newer}"] if newer else []
    run("tar", "--create", "--file", target, "--directory", tree, *same, *only, *left_out, ".")


def _write(tree: Path, files: dict[str, str]) -> None:
    for name, content in files.items():
        file = tree / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content)


def chroot_apt(tree: Path, *words: str) -> None:
    """Install packages in a tree, without starting their daemons."""
    quiet = os.environ | {"DEBIAN_FRONTEND": "noninteractive", "LC_ALL": "C"}
    policy = tree / "usr/sbin/policy-rc.d"
    policy.write_text("#!/bin/sh\nexit 101\n")
    policy.chmod(0o755)
    run("chroot", tree, "apt-get", "update", env=quiet)
    run("chroot", tree, "apt-get", "install", "--yes", "--no-install-recommends", *words, env=quiet)
    run("chroot", tree, "apt-get", "clean")
    policy.unlink()


def _grow_host(tree: Path) -> None:
    """Turn the tools tree into a host that systemd boots."""
    chroot_apt(tree, *HOST.split())
    run("chroot", tree, "sh", "-c", "cd /tmp && apt-get download runc")
    _write(tree, HOST_FILES)
    run("systemctl", f"--root={tree}", "enable", "shared-mounts.service", "fabric-nic.service", "ssh.service")
    run("systemctl", f"--root={tree}", "mask", *UNUSED_UNITS.split())
    for own in ("etc/machine-id", "var/lib/dbus/machine-id", "etc/hostname", "etc/resolv.conf"):
        (tree / own).unlink(missing_ok=True)  # each host gets its own


def trees() -> Path:
    """A directory with tools.tar, host.tar and Debian's runc package (containerd.io includes runc)."""
    if not KEYRING.exists():
        raise ProblemError(f"{KEYRING} is missing: install the package debian-archive-keyring")

    def make(target: Path) -> None:
        tree = target / "tree"
        (tree / "etc/dpkg/dpkg.cfg.d").mkdir(parents=True)
        (tree / "etc/dpkg/dpkg.cfg.d/slim").write_text(SLIM)
        options = ("--variant=minbase", f"--keyring={KEYRING}", f"--include={TOOLS.replace(' ', ',')}")
        run("debootstrap", *options, SUITE, tree, debian_mirror())
        _archive(tree, target / "tools.tar", *REST, "etc/machine-id")
        _grow_host(tree)
        next((tree / "tmp").glob("runc_*.deb")).rename(target / "runc.deb")
        _archive(tree, target / "host.tar", *REST, "tmp/*")
        shutil.rmtree(tree)

    return stored("debian", digest(SUITE, TOOLS, HOST, HOST_FILES, UNUSED_UNITS, SLIM), make)


def _tools(debian: Path, tree: Path) -> None:
    tree.mkdir()
    run("tar", "--extract", "--file", debian / "tools.tar", "--directory", tree, "--numeric-owner")


def calico(debian: Path) -> Path:
    """A directory with calico.tar, a layer on the tools tree for calico-node."""

    def make(target: Path) -> None:
        tree, before = target / "tree", target / "before"
        _tools(debian, tree)
        before.touch()
        chroot_apt(tree, *CALICO.split())
        _archive(tree, target / "calico.tar", *REST, newer=before)
        before.unlink()
        shutil.rmtree(tree)

    return stored("calico", digest(debian.name, CALICO), make)


def mpi(debian: Path) -> Path:
    """A directory with mpi.tar, the tools tree with Open MPI."""

    def make(target: Path) -> None:
        tree = target / "tree"
        _tools(debian, tree)
        chroot_apt(tree, *MPI.split())
        _write(tree, MPI_FILES)
        run("chroot", tree, "sh", "-ec", MPI_COMMANDS)
        _archive(tree, target / "mpi.tar", *REST)
        shutil.rmtree(tree)

    return stored("mpi", digest(debian.name, MPI, MPI_FILES, MPI_COMMANDS), make)


def distribution(debian: Path) -> Path:
    """A directory with Debian's packages in DISTRIBUTION, and with all dependencies that the tools tree lacks."""

    def make(target: Path) -> None:
        tree = target / "tree"
        _tools(debian, tree)
        names = DISTRIBUTION.split()
        run("chroot", tree, "apt-get", "update")
        run("chroot", tree, "apt-get", "install", "--yes", "--download-only", "--no-install-recommends", *names)
        for package in (tree / "var/cache/apt/archives").glob("*.deb"):
            package.rename(target / package.name.replace("%3a", "."))  # of an epoch: a URL is then unambiguous
        shutil.rmtree(tree)

    return stored("distribution", digest(debian.name, DISTRIBUTION), make)


def containerfile(text: str) -> tuple[str, list[str]]:
    """The Debian suite that a Containerfile starts from, and the packages that it installs."""
    suite = re.search(r"^FROM \S*/debian:(\w+)", text, re.MULTILINE)
    packages = re.search(r"apt-get install ((?:[^&]|\\\n)+)", text)
    if not suite or not packages:
        raise ProblemError(f"{RDMA_TOOLS} has no line FROM .../debian:SUITE, or no `apt-get install`")
    words = packages.group(1).replace("\\\n", " ").split()
    return suite.group(1), [word for word in words if not word.startswith("-")]


def rdma() -> Path:
    """A directory with rdma.tar, the image that docs/images/rdma-tools.Containerfile describes."""
    suite, packages = containerfile(RDMA_TOOLS.read_text())

    def make(target: Path) -> None:
        tree = target / "tree"
        _write(tree, {"etc/dpkg/dpkg.cfg.d/slim": SLIM})
        run("debootstrap", "--variant=minbase", f"--keyring={KEYRING}", suite, tree, debian_mirror())
        chroot_apt(tree, *packages)
        _archive(tree, target / "rdma.tar", *REST, "etc/machine-id")
        shutil.rmtree(tree)

    return stored("rdma", digest(suite, packages, SLIM), make)
