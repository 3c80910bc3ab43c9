"""Packages of Docker Engine, which no mirror has: they are for a host on which somebody else has installed Docker."""

from __future__ import annotations

from pathlib import Path

from . import programs
from .build import need
from .common import digest, stored
from .packages import _package

SERVICE = """[Unit]
Description=Docker Application Container Engine
Documentation=https://docs.docker.com
After=network-online.target containerd.service docker.socket
Wants=network-online.target containerd.service
Requires=docker.socket

[Service]
Type=notify
ExecStart=/usr/bin/dockerd -H fd:// --containerd=/run/containerd/containerd.sock
ExecReload=/bin/kill -s HUP $MAINPID
TimeoutStartSec=0
RestartSec=2
Restart=always
LimitNPROC=infinity
LimitCORE=infinity
TasksMax=infinity
Delegate=yes
KillMode=process

[Install]
WantedBy=multi-user.target
"""
SOCKET = """[Unit]
Description=Docker Socket for the API

[Socket]
ListenStream=/run/docker.sock
SocketMode=0660
SocketUser=root
SocketGroup=docker

[Install]
WantedBy=sockets.target
"""
POSTINST = """#!/bin/sh
set -e
if [ "$1" = configure ]; then
  getent group docker >/dev/null || groupadd --system docker
  if [ -d /run/systemd/system ]; then
    systemctl daemon-reload
    systemctl enable docker.service docker.socket
    systemctl start docker.service
  fi
fi
"""
PRERM = """#!/bin/sh
set -e
if [ "$1" = remove ] && [ -d /run/systemd/system ]; then
  systemctl disable --now docker.service docker.socket
fi
"""


def fill(target: Path, built: Path) -> None:
    """Build both packages, with the names and files of the real ones."""
    release = f"5:{programs.DOCKER_VERSION}-1~debian.12~bookworm"
    units = "usr/lib/systemd/system"
    engine: dict[str, Path | str] = {f"usr/bin/{name}": built / name for name in ("dockerd", "docker-proxy")}
    engine |= {f"{units}/docker.service": SERVICE, f"{units}/docker.socket": SOCKET}
    control = {"postinst": POSTINST, "prerm": PRERM}
    _package(target, "docker-ce", release, engine, depends="containerd.io (>= 1.7.27), docker-ce-cli", **control)
    _package(target, "docker-ce-cli", release, {"usr/bin/docker": built / "docker"})


def directory() -> Path:
    """The directory of the packages. Their programs take minutes to build, so they are built on demand."""
    need({"dpkg-deb": "dpkg"})
    built = programs.group(programs.DOCKER)
    return stored("docker-packages", digest(Path(__file__), built.name), lambda target: fill(target, built))
