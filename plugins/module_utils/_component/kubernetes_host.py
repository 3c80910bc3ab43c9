# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a host needs to become a Kubernetes node: packages, and its container runtime's files and services.

The texts are in containerd.py, keepalived.py and _host/proxy.py, the paths of files that a reset removes in
_host/role_files.py.
"""

from __future__ import annotations

import base64
import dataclasses
import hashlib
import json
import re
import typing as t

from .._common.result import FabricError
from .._common.text import first_of
from .._common.toml import to_toml
from .._host import cri, docker, proxy, role_files
from .._host.distributions import CNI_BIN, CNI_NETWORK
from .._host.files import OWN_MARK
from .._host.obstacles import NEIGHBOURS
from .._host.proxy import Proxy
from .._kube.merge_values import merge_values
from .._kubeadm.node_info import NodeInfo
from .._model.wish import HostFile, HostWish, Package, Program, Unit
from .._network.digests import known_digest
from .._plan.runtime import ARCHITECTURES
from . import keepalived
from .containerd import DROP_IN, MAIN, CniDirectories, containerd_config
from .kubernetes_kubelet import Settings as KubeletSettings
from .kubernetes_kubelet import ignored_errors, kubelet_settings

Data = t.Mapping[str, t.Any]  # settings of the site, with the keys of the program that reads them

BUNDLE = "/var/lib/ipu-fabric/bundle/apt"
# The bundle's list has their digests, so they need no signature.
BUNDLE_REPOSITORIES = {"ipu-fabric-bundle": {"uri": f"file:{BUNDLE}/", "suite": "/", "trusted": True}}
# The kubelet sets these itself, or, with protectKernelDefaults, runs only with exactly these values.
KUBELET_SYSCTL = {
    # Log watchers of a node with many pods use up the kernel's default of 128.
    "fs.inotify.max_user_instances": 8192,
    "fs.inotify.max_user_watches": 524288,
    # The kernel's 1024 are for all network namespaces together: pods of a job on many hosts have more neighbours.
    **{
        f"net.{family}.neigh.default.gc_thresh{number}": NEIGHBOURS >> shift
        for family in ("ipv4", "ipv6")
        for number, shift in ((1, 3), (2, 1), (3, 0))
    },
    "vm.overcommit_memory": 1,
    "vm.panic_on_oom": 0,
    "kernel.panic": 10,
    "kernel.panic_on_oops": 1,
    "kernel.keys.root_maxkeys": 1000000,
    "kernel.keys.root_maxbytes": 25000000,
}
# kubeadm's preflight needs the second one, and CNI plugins set the first for IPv6 pods.
IPV6_SYSCTL = {"net.ipv6.conf.all.forwarding": 1, "net.ipv6.conf.default.forwarding": 1}
# The first Docker Engine with ip-forward-no-drop, and the log drivers with max-size and max-file.
DOCKER_KEEPS_FORWARDING = 28
SIZED_LOGS = ("json-file", "local")
LOGIN = re.compile(r"^ *(auth|authorization|identitytoken|password) *=", re.IGNORECASE | re.MULTILINE)
CRI_DOCKER_SERVICE = """\
{mark}
# cri-dockerd {release} {checksum}
[Unit]
Description=CRI interface for Docker Engine
After=network-online.target firewalld.service docker.service
Wants=network-online.target docker.service
Requires=cri-docker.socket
# While Docker starts, it is tried again for as long as it takes.
StartLimitIntervalSec=0

[Service]
Type=notify
ExecStart={command}
ExecReload=/bin/kill -s HUP $MAINPID
TimeoutSec=0
RestartSec=2
Restart=always
LimitNOFILE=infinity
LimitNPROC=infinity
LimitCORE=infinity
TasksMax=infinity
Delegate=yes
KillMode=process

[Install]
WantedBy=multi-user.target
Also=cri-docker.socket
"""
CRI_DOCKER_SOCKET = f"""\
{OWN_MARK}
[Unit]
Description=Socket of the CRI interface for Docker Engine
PartOf=cri-docker.service

[Socket]
ListenStream=%t/cri-dockerd.sock
SocketMode=0660
SocketUser=root
SocketGroup=docker

[Install]
WantedBy=sockets.target
"""


@dataclasses.dataclass(frozen=True)
class Settings(KubeletSettings):
    """More variables of the role, in addition to the inherited ones."""

    ignore_preflight_errors: t.Sequence[str]
    containerd_version: str
    docker_version: str
    cri_dockerd: t.Mapping[str, str]
    cni_plugins_version: str
    extra_packages: t.Sequence[t.Mapping[str, t.Any]]
    apt: Data
    bundle: str
    registry_mirror: str
    registry_auth: t.Mapping[str, str]
    proxy: Proxy
    sysctl: Data
    containerd_config: Data
    containerd_unit: Data
    containerd_restrict_oom_score_adj: bool
    docker_config: Data
    cni: str
    calico_installation: Data
    pod_cidr: str
    control_plane_vip: str
    control_plane_vip_router_id: int
    control_plane_addresses: t.Mapping[str, str]


class Plane(t.TypedDict):
    """A control plane of the inventory, as far as it has answered."""

    membership: str
    address: str


@dataclasses.dataclass(frozen=True)
class Seen:
    """The host. Without a node, for a bundle, only packages are decided."""

    host: str = ""  # inventory name
    node: t.Optional[NodeInfo] = None
    versions: t.Mapping[str, str] = dataclasses.field(default_factory=dict)  # of packages, once they are installed
    texts: t.Sequence[t.Mapping[str, str]] = ()  # containerd's files as slurp returns them
    cni_directories: t.Mapping[str, str] = dataclasses.field(default_factory=dict)  # plugins and networks of the fabric
    planes: t.Mapping[str, Plane] = dataclasses.field(default_factory=dict)  # in their order; empty in an upgrade
    run: t.Sequence[str] = ()  # hosts of this run


def decide(settings: Settings, seen: Seen) -> HostWish:
    """Files and services are decided once packages are known: after their installation, and on nodes with containerd.

    Raises FabricError for something on the host that is incompatible.
    """
    node, runtime = seen.node, settings.runtime
    machine = node["architecture"] if node else ""
    architecture = ARCHITECTURES.get(machine, machine)
    platform = f"{node['distribution']}-{node['release']}-{architecture}" if node else ""
    packages = [Package(**package) for package in (*kubernetes_packages(settings), *settings.extra_packages)]
    holds_vip = bool(settings.control_plane_vip) and (not node or seen.host in seen.planes)
    wish = HostWish(
        repositories=BUNDLE_REPOSITORIES if settings.bundle else repositories(settings, node),
        # python3 runs the API server check.
        packages=[*packages, *(Package(name, hold=False) for name in ("keepalived", "python3") if holds_vip)],
        kubeadm=[package for package in packages if package.name == "kubeadm"],
        # A new runtime would restart on all hosts at once. The playbook upgrade drains one node at a time for it.
        keep=runtime_packages(settings) if node and node["membership"] == "member" else [],
        sysctl={**KUBELET_SYSCTL, **(IPV6_SYSCTL if ":" in settings.pod_cidr else {}), **settings.sysctl},
        architecture=architecture,
        bundle_part=f"apt/{platform}",
        kubelet=kubelet_settings(settings),
        ignored_errors=ignored_errors(settings.cgroup_v1, settings.ignore_preflight_errors),
    )
    if node and holds_vip:
        check_keepalived(settings, seen, node)
    if not node or not (seen.versions or (node["membership"] == "member" and runtime == cri.CONTAINERD)):
        return wish
    proxied = proxy.has_proxy(settings.proxy)
    program = None
    # A bare host has no pods yet: its runtime restarts at once. Nodes of the cluster restart it in turns.
    units = [Unit(runtime, restart="never" if node["membership"] == "member" else "stale")]
    if runtime == cri.DOCKER:
        files = docker_files(settings, seen, proxied)
        units.append(Unit("cri-docker"))  # may restart at any time: containers are not its children
        if not uses_cri_dockerd_of_others(settings, node):
            program = cri_dockerd(settings, architecture)
            files += cri_docker_files(settings, program, pause_image(node))
    else:
        files = containerd_files(settings, seen, node, proxied)
    units.append(Unit("kubelet", started=False))
    if holds_vip:
        files += keepalived_files(settings, seen, node)
        units.append(Unit("keepalived", restart="reload"))
    return dataclasses.replace(wish, program=program, files=files, units=units)


# ---- packages -------------------------------------------------------------------------------------------------------


def runtime_packages(settings: Settings) -> t.List[str]:
    return ["containerd.io", *(("docker-ce", "docker-ce-cli") if settings.runtime == cri.DOCKER else ())]


def kubernetes_packages(settings: Settings) -> t.List[t.Dict[str, str]]:
    versions = {
        **dict.fromkeys(("kubelet", "kubeadm", "kubectl"), settings.version.lstrip("v")),
        "kubernetes-cni": settings.cni_plugins_version,
        **dict.fromkeys(runtime_packages(settings), settings.docker_version),
        "containerd.io": settings.containerd_version,
    }
    return [{"name": name, "version": version} for name, version in versions.items()]


def repositories(settings: Settings, node: t.Optional[NodeInfo]) -> Data:
    """Repositories with Kubernetes' minor release and the host's system in their URLs; without a node, as templates."""
    text = json.dumps(settings.apt)
    if node:
        minor = ".".join(settings.version.lstrip("v").split(".")[:2])
        places = {"minor": minor, "distribution": node["distribution"], "release": node["release"]}
        for name, value in places.items():
            text = text.replace(f"{{{name}}}", value)
    found: Data = json.loads(text)
    return found


# ---- files of the runtime -------------------------------------------------------------------------------------------


def pause_image(node: NodeInfo) -> str:
    images = [image for image in node["images"] if "/pause:" in image]
    return images[0] if images else "(the pause image that kubeadm names)"  # no kubeadm yet, in check mode


def runtime_files(settings: Settings, drop_in: str, proxied: bool) -> t.List[HostFile]:
    """Files of every runtime: its proxy, and the socket for crictl.

    The variables are in a file that only root can read. The mark changes with them, and so makes the runtime restart.
    """
    state = "present" if proxied else "absent"
    given = settings.proxy
    mark = hashlib.sha256(json.dumps(given).encode()).hexdigest()[:8]
    unit = f"# {mark}\n[Service]\nEnvironmentFile=-{proxy.CONTAINERD}\n"
    text = proxy.environment_text(given.get("http") or "", given.get("https") or "", given.get("no_proxy") or [])
    socket = cri.SOCKETS[settings.runtime]
    return [
        HostFile(proxy.CONTAINERD, text if proxied else "", mode="0600", state=state),
        HostFile(drop_in, unit, state=state, units=[settings.runtime]),
        HostFile(role_files.CRICTL, f"runtime-endpoint: unix://{socket}\n"),
    ]


def containerd_files(settings: Settings, seen: Seen, node: NodeInfo, proxied: bool) -> t.List[HostFile]:
    """Our drop-in, the main file that imports it, limits of the service, and the registry mirror."""
    texts = {text["item"]: base64.b64decode(text["content"]).decode() for text in seen.texts if "content" in text}
    config = containerd_config(
        texts.pop(MAIN, ""),
        seen.versions.get("containerd.io") or node["containerd"] or "2",
        pause_image(node),
        settings.containerd_restrict_oom_score_adj,
        dict(settings.containerd_config),
        texts,
        bool(settings.registry_mirror),
        cni_directories(settings, seen),
    )
    drop_in = to_toml(config["drop_in"])
    limits = sorted(f"{name}={value}" for name, value in settings.containerd_unit.items())
    unit = "\n".join([OWN_MARK, "[Service]", *limits])
    read = [
        HostFile(DROP_IN, f"{OWN_MARK}\n{drop_in}", mode="0600" if LOGIN.search(drop_in) else "0644"),
        HostFile(MAIN, config["main"]),
        HostFile(role_files.CONTAINERD_UNIT, f"{unit}\n"),
    ]
    return [
        *(dataclasses.replace(file, backup=True, units=[cri.CONTAINERD]) for file in read),
        *runtime_files(settings, role_files.CONTAINERD_PROXY, proxied),
        mirror_file(settings),
    ]


def mirror_file(settings: Settings) -> HostFile:
    """The registry mirror. containerd reads this file at every pull, so it needs no restart."""
    mirror, login = settings.registry_mirror, settings.registry_auth
    host: t.Dict[str, object] = {"capabilities": ["pull", "resolve"]}
    if login:
        user = base64.b64encode(f"{login['username']}:{login['password']}".encode()).decode()
        host["header"] = {"authorization": f"Basic {user}"}
    text = to_toml({"host": {mirror if "://" in mirror else f"https://{mirror}": host}}) if mirror else ""
    return HostFile(
        role_files.MIRROR,
        f"{OWN_MARK}\n{text}",
        mode="0600" if login else "0644",
        state="present" if mirror else "absent",
        backup=True,
    )


def cni_directories(settings: Settings, seen: Seen) -> CniDirectories:
    """Where plugins go: kubernetes-cni and flannel to the usual directory, Calico and multus to the configured one."""
    calico = (settings.calico_installation.get("cni") or {}) if settings.cni == "calico" else {}
    fabric = seen.cni_directories
    plugins = [CNI_BIN, calico.get("binDir") or "", fabric.get("plugins") or ""]
    own = [] if settings.cni == "none" else [calico.get("confDir") or CNI_NETWORK]
    networks = [*own, fabric.get("networks") or CNI_NETWORK]
    return {"plugins": list(dict.fromkeys(filter(None, plugins))), "networks": list(dict.fromkeys(networks))}


# ---- Docker Engine --------------------------------------------------------------------------------------------------


def docker_settings(settings: Settings, release: str) -> t.Dict[str, object]:
    """Settings of ours in Docker's configuration. Everything else in it stays."""
    given = dict(settings.docker_config)
    found: t.Dict[str, t.Any] = {"exec-opts": ["native.cgroupdriver=systemd"], "live-restore": True}
    if given.get("log-driver", docker.LOG_DRIVER) in SIZED_LOGS:
        found.update({"log-driver": docker.LOG_DRIVER, "log-opts": {"max-size": "100m", "max-file": "3"}})
    major = release.rpartition(":")[2].partition(".")[0]
    if major.isdigit() and int(major) >= DOCKER_KEEPS_FORWARDING:
        found["ip-forward-no-drop"] = True
    return merge_values(found, given)


def docker_files(settings: Settings, seen: Seen, proxied: bool) -> t.List[HostFile]:
    daemon = HostFile(
        docker.DAEMON,
        backup=True,
        validate=docker.VALIDATE.format("/usr/bin/dockerd"),
        units=[cri.DOCKER],
        settings=docker_settings(settings, seen.versions.get("docker-ce", "")),
    )
    return [daemon, *runtime_files(settings, role_files.DOCKER_PROXY, proxied)]


def uses_cri_dockerd_of_others(settings: Settings, node: NodeInfo) -> bool:
    """Whether somebody else's cri-dockerd is used. It is used unchanged or refused, but never replaced."""
    there, release = node["cri_dockerd"], settings.cri_dockerd["version"]
    if there["others"] and (there["release"] != release or there["silence"]):
        seen = there["release"] or f"{there['program']}, whose release is not known"
        raise FabricError(
            "cri-dockerd is on this host already, and this collection has not installed it.",
            f"{there['program']} and {docker.CRI_UNIT} on {node['name']}",
            "; ".join(filter(None, [seen, there["silence"]])),
            f"Have cri-dockerd {release} answer at {cri.SOCKETS[cri.DOCKER]}, or set fabric_mirror.cri_dockerd to the"
            " installed release, or remove the program and its units. Then run again.",
            code="not-ours",
        )
    return there["others"]


def cri_dockerd(settings: Settings, architecture: str) -> Program:
    """cri-dockerd, which is in no package repository. It runs as root on every node, so its digest is required."""
    given = settings.cri_dockerd
    archive = f"cri-dockerd-{given['version']}.{architecture}.tgz"
    url = given["url"].replace("{version}", given["version"]).replace("{arch}", architecture)
    checksum = given.get("checksum") or f"sha256:{known_digest(archive)}"
    if not re.fullmatch(r"sha256:[0-9a-f]{64}", checksum):
        raise FabricError(
            "cri-dockerd runs as root on every node, so the digest of its archive has to be known.",
            url,
            f"'{given.get('checksum', '')}', and none is known for {archive}",
            "Set kubernetes_cri_dockerd.checksum (fabric_mirror.cri_dockerd.checksum) to sha256: and what"
            f" `curl -fsSL {url} | sha256sum` prints on a machine that you trust.",
            code="invalid-input",
        )
    return Program(url, checksum, role_files.CRI_DOCKERD, "cri-dockerd", role_files.CRI_DOCKERD_RECORD)


def cri_docker_files(settings: Settings, program: Program, pause: str) -> t.List[HostFile]:
    command = [
        *(program.path, "--container-runtime-endpoint", "fd://", "--network-plugin=cni", f"--cni-bin-dir={CNI_BIN}"),
        *(f"--cni-conf-dir={CNI_NETWORK}", f"--pod-infra-container-image={pause}"),
        *(["--ipv6-dual-stack"] if ":" in settings.pod_cidr else []),
    ]
    service = CRI_DOCKER_SERVICE.format(
        mark=OWN_MARK,
        release=settings.cri_dockerd["version"],
        checksum=program.checksum,
        command=" ".join(command),
    )
    return [
        HostFile(role_files.CRI_DOCKER_SERVICE, service, units=["cri-docker"]),
        HostFile(role_files.CRI_DOCKER_SOCKET, CRI_DOCKER_SOCKET),
    ]


# ---- the address of the API -----------------------------------------------------------------------------------------


def check_keepalived(settings: Settings, seen: Seen, node: NodeInfo) -> None:
    if node["keepalived"] == "others":
        raise FabricError(
            f"keepalived on {seen.host} already serves another purpose, and is left alone.",
            role_files.KEEPALIVED,
            "a file that this role has not written",
            "Move it away, or leave fabric_control_plane_vip empty and set fabric_control_plane_endpoint to an address"
            " that you keep (for the role alone, kubernetes_control_plane_vip and kubernetes_control_plane_endpoint).",
            code="not-ours",
        )
    # Control planes outside this run would not tell a new one that the address is taken: it would take it too.
    members = [name for name, plane in seen.planes.items() if plane["membership"] == "member"]
    left_out = [name for name in members if name not in seen.run]
    if not node["keepalived"] and left_out:
        raise FabricError(
            f"{seen.host} is to share the address {settings.control_plane_vip}, and control planes that may hold it are"
            " not in this run.",
            "kube_control_plane",
            f"{', '.join(left_out)} outside --limit",
            "Run without --limit, or with all of kube_control_plane in it.",
            code="unsafe",
        )


def keepalived_files(settings: Settings, seen: Seen, node: NodeInfo) -> t.List[HostFile]:
    """keepalived's files. A file that is run or read comes before the file that names it."""
    names = list(seen.planes)
    known = settings.control_plane_addresses or {name: plane["address"] for name, plane in seen.planes.items()}
    address = first_of(node["address"])
    peers = [first_of(known[name]) for name in names if known.get(name) and first_of(known[name]) != address]
    holder = keepalived.Holder(node["name"], address, node["interface"], names.index(seen.host), peers)
    text = keepalived.configuration(settings.control_plane_vip, settings.control_plane_vip_router_id, holder)
    return [
        HostFile(role_files.API_CHECK, keepalived.CHECK, mode="0755"),
        HostFile(role_files.KEEPALIVED_UNIT, keepalived.RESTARTS),
        HostFile(
            role_files.KEEPALIVED,
            text,
            validate="/usr/sbin/keepalived --config-test --use-file %s",
            units=["keepalived"],
        ),
    ]
