# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Removes a host from Kubernetes, with what kubeadm reset leaves and, on request, all that this collection installed.

Each step removes what it finds, so the next run finishes a killed one.
"""

from __future__ import annotations

import contextlib
import glob
import itertools
import os
import re
import typing as t

from .._common.command import find_program, run_program
from .._common.result import FabricError, outcome
from .._common.text import shorten_list
from .._host import cri, memlock, package_record, rdma_desired, role_files
from .._host.apt import KEYRINGS, SOURCES, Apt, disabled_by_us, give_lists_back, listed_keyrings
from .._host.distributions import OTHER_KUBERNETES
from .._host.facts import ca_digest, parse_server, trusted_ca
from .._host.files import OWN_MARK, file_digest, read_text, write_file
from .._host.package_removal import Packages, read_packages
from .._host.unowned_files import find_owners, mounted_below, remove_path, remove_unowned_files
from .._model.stacks import STACKS
from . import paths
from .images import CTR
from .lock import hold_lock
from .membership import host_name
from .network_reset import SECONDS, Found, execute, printed, read_network, read_rules, remove_network
from .program import Kubeadm
from .static_pods import processes

if t.TYPE_CHECKING:
    from ansible.module_utils.basic import AnsibleModule

MOUNTS = "/proc/self/mounts"
SOCKET = cri.SOCKETS[cri.CONTAINERD]
DOCKER_SOCKET = cri.SOCKETS[cri.DOCKER]
# Signs that kubeadm has something to undo.
TRACES = (
    *paths.TRACES,
    f"{paths.KUBERNETES}/pki/ca.crt",
    f"{paths.MANIFESTS}/etcd.yaml",
    "/var/lib/kubelet/config.yaml",
)
# Directories to empty but keep, since they may be mount points.
CONTENTS = ("/var/lib/kubelet",)
CONTAINERD = "/var/lib/containerd"
DOCKER = "/var/lib/docker"
# Files of pod networks and of CNI plugins that pods install on a host. Files of a package are removed with it.
UNOWNED = (
    "/etc/cni/net.d/00-multus.conf",
    "/etc/cni/net.d/10-calico.conflist",
    "/etc/cni/net.d/10-flannel.conflist",
    "/etc/cni/net.d/calico-kubeconfig",
    "/etc/cni/net.d/multus.d",
    "/etc/cni/net.d/nv-ipam.d",
    "/etc/cni/net.d/whereabouts.d",
    "/opt/cni/bin/calico",
    "/opt/cni/bin/calico-ipam",
    "/opt/cni/bin/flannel",
    "/opt/cni/bin/install",
    "/opt/cni/bin/multus",
    "/opt/cni/bin/nv-ipam",
    "/opt/cni/bin/passthru",
    "/opt/cni/bin/whereabouts",
    "/var/lib/cni/flannel",
    "/var/lib/cni/multus",
    "/var/lib/cni/nv-ipam",
    "/var/lib/cni/networks/cbr0",
    "/var/lib/cni/networks/k8s-pod-network",
    "/var/log/nv-ipam-cni.log",
    *(path for stack in STACKS.values() for path in stack.files),
)
STATE = (
    "/var/lib/calico",
    "/var/log/calico",
    "/var/log/containers",
    "/var/log/pods",
    "/run/calico",
    "/run/flannel",
    paths.HARDENING,  # contains the keys of Secrets
    paths.EARLIER,
)
CRICTL = (role_files.CRICTL, tuple(f"runtime-endpoint: unix://{path}\n" for path in cri.SOCKETS.values()))
# The login of the registry mirror, which no host may keep after it leaves.
LOGINS = tuple(path for path in role_files.TEXTS if path.startswith(role_files.MIRROR))
# Files of the roles kubernetes, memlock and rdma_host: by path, the whole text as we write it.
_TEXTS = {
    **role_files.TEXTS,
    "/etc/systemd/system/*.service.d/50-memlock.conf": memlock.OWN.pattern,
    "/etc/systemd/network/00-fabric-*.link": "",
    rdma_desired.MODULES_FILE: r"(?:[\w-]+\n)*",
    rdma_desired.NETNS_FILE: r"options ib_core netns_mode=1\n",
    rdma_desired.QOS_FILE: r"[\s\S]*\(ipu\.fabric\.rdma_host\)[\s\S]*",
}
OUR_FILES = tuple(_TEXTS)
# By file name: a file of that name with another text is somebody else's, and stays.
OUR_TEXTS = {os.path.basename(path): text for path, text in _TEXTS.items() if text}
# Files of the role chrony.
CHRONY = (
    "/etc/chrony/conf.d/ipu-fabric.conf",
    "/etc/chrony/sources.d/ipu-fabric.sources",
)
# Files of keepalived and cri-dockerd, if the first one is marked as ours. The record has the program's digest.
KEEPALIVED = (role_files.KEEPALIVED, role_files.API_CHECK, role_files.KEEPALIVED_UNIT)
CRI_DOCKER = (role_files.CRI_DOCKER_SERVICE, role_files.CRI_DOCKER_SOCKET, role_files.CRI_DOCKERD)
CRI_DOCKER_STATE = "/var/lib/cri-dockerd"
CRI_DOCKER_UNITS = ("cri-docker.service", "cri-docker.socket")
DOCKER_UNITS = ("docker.service", "docker.socket")
# The label of every container that cri-dockerd created.
DOCKER_LABEL = "io.kubernetes.docker.type"
REPOSITORIES = ("containerd", "kubernetes")
OWN_DIRECTORY = os.path.dirname(paths.MARKER)
# In our directory: keys and data of a cluster, and unfinished work on it. None of it stays on a host that leaves.
OF_CLUSTER = (
    *("backup", "before-restore-*", "restore", "snapshots"),
    *(
        f"{os.path.basename(path)}*"
        for path in vars(paths).values()
        if isinstance(path, str) and os.path.dirname(path) == OWN_DIRECTORY
    ),
)
OF_COLLECTION = (
    "bin",
    "bundle",
    os.path.basename(role_files.CRI_DOCKERD_RECORD),
    "former-*",
    os.path.basename(package_record.PATH),
)
SET_ASIDE = "ipu-fabric-before-restore-*"  # what a restore set aside on a separate disk
# Directories that packages and roles leave behind empty. Others are kept.
EMPTY = (
    "/etc/containerd/certs.d/_default",
    "/etc/containerd/certs.d",
    "/etc/containerd/conf.d",
    "/etc/kubernetes/manifests",
    "/etc/kubernetes/pki",
    "/etc/kubernetes/tmp",
    "/etc/kubernetes",
    "/etc/cni/net.d",
    "/etc/cni",
    "/opt/cni/bin",
    "/opt/cni",
)


class _MarkOptional(t.TypedDict, total=False):
    serves: bool  # its API server is running


class ClusterMark(_MarkOptional):
    """The cluster that this host is in, by its own files, and the host's identity. Empty means unknown or none."""

    name: str  # kubeadm's name for it, or its endpoint if that is kubeadm's default name
    server: str  # host:port of the API server
    ca: str  # digest
    hostname: str
    machine_id: str


def cluster_name(kubeconfig: str) -> str:
    """The cluster's name in a kubeconfig of kubeadm, or its endpoint if that is the default name, which all share."""
    match = re.search(r"^- cluster:\n(?: {4}.*\n)* {2}name: *[\"']?([^\s\"']+)", kubeconfig, re.MULTILINE)
    name = match.group(1) if match else ""
    return name if name not in ("", "kubernetes", "default-cluster") else parse_server(kubeconfig)


def without_empty(found: Found) -> Found:
    return {kind: names for kind, names in found.items() if names}


def read_mark() -> ClusterMark:
    config = read_text(paths.ADMIN) or read_text(paths.KUBELET)
    return {
        "name": cluster_name(config),
        "server": parse_server(config),
        # kubeadm may be configured to keep its CA elsewhere.
        "ca": ca_digest(read_text(f"{paths.KUBERNETES}/pki/ca.crt")) or trusted_ca(config),
        "hostname": host_name(),
        "machine_id": read_text("/etc/machine-id").strip(),
        "serves": bool(processes("kube-apiserver")),
    }


def containerd_answers() -> bool:
    return os.path.exists(SOCKET) and run_program(["ctr", "version"], SECONDS).rc == 0


def list_containers(namespace: str) -> t.List[str]:
    return printed("ctr", "--namespace", namespace, "containers", "list", "--quiet").split()


def present(patterns: t.Iterable[str]) -> t.List[str]:
    return [path for pattern in patterns for path in sorted(glob.glob(pattern)) or [pattern] if os.path.lexists(path)]


def unowned(candidates: t.Sequence[str]) -> t.List[str]:
    there = present(candidates)
    owners = find_owners(there) if there else {}
    return [path for path in there if path not in owners]


def own_sources() -> t.List[str]:
    """apt sources that we wrote, with their keyrings."""
    found: t.List[str] = []
    for name in REPOSITORIES:
        path = f"{SOURCES}/{name}.sources"
        text = read_text(path)
        keyrings = [keyring for keyring in listed_keyrings(text) if keyring.startswith(f"{KEYRINGS}/{name}")]
        found += [path, *keyrings] if keyrings else []
    return present(found)


def has_own_cri_docker() -> bool:
    """Whether the role kubernetes has installed cri-dockerd."""
    return OWN_MARK in read_text(CRI_DOCKER[0])


def uses_docker() -> bool:
    """Whether this host's kubelet uses cri-dockerd, or did before kubeadm removed its configuration."""
    return cri.node_runtime() == cri.DOCKER or has_own_cri_docker()


def cri_docker_files() -> t.List[str]:
    if not has_own_cri_docker():
        return []
    record = read_text(f"{OWN_DIRECTORY}/{os.path.basename(role_files.CRI_DOCKERD_RECORD)}").split()
    *units, program = CRI_DOCKER
    ours = [path for path in units if OWN_MARK in read_text(path)]
    return present([*ours, *([program] if file_digest(program) in record[:1] else []), CRI_DOCKER_STATE])


def is_ours(path: str) -> bool:
    """Whether a file has the text that we write, if its name alone is not enough."""
    text = OUR_TEXTS.get(re.sub(r"\.\d+\.[\d@:-]+~$", "", os.path.basename(path)))
    return not text or bool(re.fullmatch(text, read_text(path)))


def foreign_files() -> t.List[str]:
    """Files of others with names that we use."""
    ours = cri_docker_files()
    return [
        *(path for path in present(OUR_FILES) if not is_ours(path)),
        *(path for path in present(CRI_DOCKER) if path not in ours),
    ]


def logins() -> t.List[str]:
    return [path for path in present(LOGINS) if is_ours(path) and "authorization" in read_text(path)]


def own_files() -> t.List[str]:
    crictl = [CRICTL[0]] if read_text(CRICTL[0]) in CRICTL[1] else []
    keepalived = present(KEEPALIVED) if OWN_MARK in read_text(KEEPALIVED[0]) else []
    ours = [path for path in present(OUR_FILES) if is_ours(path)]
    return [*ours, *present(CHRONY), *keepalived, *crictl, *cri_docker_files(), *own_sources()]


def runs_etcd() -> bool:
    """Whether the data here is that of kubeadm's etcd. Any other etcd may use the same directory."""
    manifest = read_text(f"{paths.KUBERNETES}/manifests/etcd.yaml")
    told = os.path.dirname(paths.ETCD) in re.findall(r"--data-dir=([^\s\"']+)", manifest)
    return told or os.path.exists(paths.ETCD_IS_OURS) or os.path.exists(paths.RESTORING)


def set_aside() -> t.List[str]:
    """What restores set aside on disks other than that of our directory."""
    return present(f"{place}/{SET_ASIDE}" for place in (paths.KUBERNETES, os.path.dirname(paths.ETCD)))


def docker_containers() -> t.List[str]:
    """IDs of Kubernetes' containers in Docker. Other containers do not have their label."""
    if not (uses_docker() and find_program("docker")):
        return []
    return printed("docker", "ps", "--all", "--quiet", "--no-trunc", "--filter", f"label={DOCKER_LABEL}").split()


def other_users(ours: t.Collection[str] = ()) -> t.List[str]:
    """Containerd namespaces with containers that are not ours, such as Docker's. Docker may also have some of ours."""
    names = printed("ctr", "namespaces", "list", "--quiet").split()
    return [name for name in names if name != "k8s.io" and set(list_containers(name)) - set(ours)]


def docker_data() -> t.List[str]:
    """Containers and volumes of others in a Docker that we installed. Stopped ones are in no containerd namespace.

    This asks Docker and looks at its directory: Docker may be down, or gone since a reset that was killed."""
    shown = run_program(
        ["docker", "ps", "--all", "--format", f'{{{{.Names}}}}\t{{{{.Label "{DOCKER_LABEL}"}}}}'], SECONDS
    )
    listed = (line.partition("\t") for line in shown.out.splitlines())
    containers = {name for name, _tab, label in listed if name and not label}
    volumes = set(run_program(["docker", "volume", "ls", "--quiet", "--filter", "dangling=true"], SECONDS).out.split())
    ours = ""  # settings of our containers, which contain the names of their volumes
    for path in glob.glob(f"{DOCKER}/containers/*"):
        settings = read_text(f"{path}/config.v2.json")
        if f'"{DOCKER_LABEL}"' in settings:
            ours += settings
        elif shown.rc != 0:
            containers.add(os.path.basename(path)[:12])
    there = (os.path.basename(os.path.dirname(path)) for path in glob.glob(f"{DOCKER}/volumes/*/_data"))
    volumes |= {name for name in there if name not in ours}
    return [
        f"{kind} {shorten_list(sorted(names), 3)} in Docker"
        for kind, names in (("containers", containers), ("volumes", volumes))
        if names
    ]


def clear(path: str) -> None:
    """Empty a directory, but keep it and whatever is mounted in it, which may be anybody's data."""
    what = "Could not remove data of Kubernetes."
    real = os.path.realpath(path)  # the kernel only lists this one
    mounted = [place for place in mounted_below(read_text(MOUNTS), real) if place != real]
    if mounted:
        next_step = "Stop what uses them, unmount them, then run again."
        raise FabricError(what, path, f"still mounted: {shorten_list(mounted, 4)}", next_step, code="busy")
    try:
        for name in os.listdir(path):
            remove_path(os.path.join(path, name))
    except OSError as error:
        next_step = "Run fuser to see which processes hold it, end these, then run again."
        raise FabricError(
            what, str(error.filename or path), str(error.strerror or error), next_step, code="unusable-file"
        ) from error


def remove_containers() -> None:
    """Remove containers that kubeadm reset could not, as with a CNI plugin whose API is gone."""
    ways = (("tasks", "kill", "--all", "--signal", "SIGKILL"), ("tasks", "delete", "--force"), ("containers", "delete"))
    for name, words in itertools.product(list_containers("k8s.io"), ways):
        run_program([*CTR, *words, name], SECONDS)  # it may have no task, or be gone by now: see below what is left
    for name in list_containers("k8s.io"):
        execute(*CTR, "containers", "delete", name)


def remove_docker_containers() -> None:
    """The same for containers that Docker runs for Kubernetes."""
    names = docker_containers()
    if names:
        execute("docker", "rm", "--force", "--volumes", *names)


class HostReset:
    """One host: what to remove, and the removal."""

    def __init__(self, module: AnsibleModule) -> None:
        self.module = module
        self.all: bool = module.params["installed"]
        self.apt = Apt(module.params["lock_timeout"], module.params["timeout"])
        if self.all and not module.check_mode:
            self.apt.finish_interrupted(self.apt.status())
        self.mark = read_mark()
        self.rules = read_rules()
        self.packages = Packages([], [], [], [])
        self.found = self.read()

    def read(self) -> Found:
        containers, self.others = [], []
        in_docker = docker_containers()
        installed = package_record.read_record()["installed"] if self.all else []
        if "containerd.io" in installed and not containerd_answers() and not self.module.check_mode:
            run_program(["systemctl", "start", "containerd"], SECONDS)  # it knows whether others have containers in it
        if containerd_answers():
            names = [*list_containers("k8s.io"), *in_docker]
            containers = [f"{len(names)} containers"] if names else []
            self.others = [f"containers in {name}" for name in other_users(in_docker)]
        elif "containerd.io" in installed and find_program("ctr"):
            self.others = ["containerd does not answer: it may have containers of others"]
        if "docker-ce" in installed:
            self.others += docker_data()
        if self.all:
            self.packages = read_packages(self.apt, self.others)
        data = [*CONTENTS, *([CONTAINERD] if self.goes("containerd.io") else [])]
        data += [DOCKER] if self.goes("docker-ce") else []
        self.kept = self.read_kept()
        return {
            "kubernetes": [path for path in TRACES if os.path.exists(path)],
            "containers": containers,
            **read_network(self.rules),
            "data": [path for path in data if os.path.isdir(path) and os.listdir(path)],
            "etcd": present([paths.ETCD]) if runs_etcd() else [],
            "files": [*unowned(UNOWNED), *present(STATE), *(own_files() if self.all else logins())],
            "packages": self.packages.removed,
            "holds": self.packages.released,
            "lists": disabled_by_us() if self.all else [],
            "own": self.own_state(),
        }

    def goes(self, package: str) -> bool:
        """Whether to remove a runtime's images too: we installed it, and nobody else uses it."""
        kept = any(why.startswith(f"{package} ") for why in self.packages.kept)
        return self.all and not (kept or self.others) and package in package_record.read_record()["installed"]

    def read_kept(self) -> t.List[str]:
        """What is kept, and why."""
        kept = [*self.packages.kept, *self.packages.unrecorded]
        if os.path.lexists(paths.ETCD) and not runs_etcd():
            kept.append(f"{paths.ETCD} (nothing shows that kubeadm's etcd wrote it)")
        if self.all:
            kept += [f"{path} (it is not as this collection writes it)" for path in foreign_files()]
            kept += [f"{path} ({', '.join(self.others)})" for path in (DOCKER,) if self.others and os.path.isdir(path)]
        return kept

    def own_state(self) -> t.List[str]:
        """Our own files about this host. The record of packages stays as long as one of the packages does."""
        names = (*OF_CLUSTER, *(OF_COLLECTION if self.all else ()))
        there = [*present(f"{OWN_DIRECTORY}/{name}" for name in dict.fromkeys(names)), *set_aside()]
        return [path for path in there if not (path == package_record.PATH and self.packages.kept)]

    def check_cluster(self) -> None:
        """Refuse a host with another Kubernetes, whose rules and links have the same names, or of another cluster."""
        others = sorted(name for name, path in OTHER_KUBERNETES.items() if os.path.isdir(f"/{path}"))
        if others:
            raise FabricError(
                "Only hosts of a kubeadm cluster are reset.",
                host_name(),
                f"the host has {', '.join(others)}",
                "Remove that with its own uninstaller, or take the host out of the inventory.",
                code="not-ours",
            )
        wanted = self.module.params["ca"]
        if wanted and self.mark["ca"] and wanted != self.mark["ca"]:
            raise FabricError(
                "Only hosts of the named cluster are reset.",
                host_name(),
                f"it trusts the CA {self.mark['ca']} of {self.mark['server'] or 'another cluster'}, not {wanted}",
                "Correct the address of this host in the inventory.",
                code="other-cluster",
            )

    def leave(self, lock: t.IO[str]) -> None:
        """Run kubeadm reset. Members of etcd are removed on other hosts, or all together."""
        if not self.found["kubernetes"]:
            return
        if not find_program("kubeadm"):
            raise FabricError(
                "kubeadm is needed to reset the host.",
                host_name(),
                f"no kubeadm, but {', '.join(self.found['kubernetes'])}",
                "Install the package kubeadm of this cluster's version, then run again.",
                code="missing-requirement",
            )
        path, units = (DOCKER_SOCKET, ("docker", "cri-docker")) if uses_docker() else (SOCKET, ("containerd",))
        if not os.path.exists(path):
            run_program(["systemctl", "start", *units], SECONDS)  # if it fails, kubeadm says what is missing
        socket = [f"--cri-socket=unix://{path}"] if os.path.exists(path) else []
        Kubeadm(self.module, lock).run(
            "reset",
            "--force",
            "--skip-phases=remove-etcd-member",
            "--cleanup-tmp-dir",
            *socket,
            next_step="Fix what kubeadm reports, then run again: it continues from here.",
        )

    def remove_packages(self) -> None:
        if not self.packages.removed:
            return
        going = {"kubelet": "kubelet", "containerd": "containerd.io"}
        units = [unit for unit, package in going.items() if package in self.packages.removed]
        units += DOCKER_UNITS if "docker-ce" in self.packages.removed else ()
        if units and os.path.isdir("/run/systemd/system"):
            execute("systemctl", "disable", "--now", *units)
        # Not purged: the settings may be somebody else's.
        command = ("remove", "--allow-change-held-packages", *self.packages.removed)
        self.apt.get(*command, what="Could not remove packages.")

    def remove_files(self) -> None:
        if self.all:
            give_lists_back(self.module)
        if rdma_desired.QOS_FILE in self.found["files"]:
            execute("systemctl", "disable", f"{rdma_desired.QOS_UNIT}.service")
        if KEEPALIVED[0] in self.found["files"] and "keepalived" not in self.packages.removed:
            execute("systemctl", "disable", "--now", "keepalived.service")
        if CRI_DOCKER[0] in self.found["files"]:
            execute("systemctl", "disable", "--now", *CRI_DOCKER_UNITS)
        time_servers = any(path in CHRONY for path in self.found["files"])
        # The file that marks the others as ours goes last, so that the run after a killed one finds them.
        for path in sorted(self.found["files"], key=lambda path: path in (KEEPALIVED[0], CRI_DOCKER[0])):
            remove_path(path)
        drop_ins = {os.path.dirname(path) for path in self.found["files"] if ".service.d/" in path}
        for path in (*EMPTY, *sorted(drop_ins)):
            if os.path.isdir(path) and not os.listdir(path) and not os.path.ismount(path):
                os.rmdir(path)
        if any(path.startswith("/etc/systemd/system/") for path in self.found["files"]):
            execute("systemctl", "daemon-reload")
        if time_servers and "chrony" not in self.packages.removed:
            run_program(["systemctl", "try-restart", "chrony.service"], SECONDS)  # it may have been removed before

    def apply(self, lock: t.IO[str]) -> None:
        if self.found["etcd"]:  # kubeadm removes what shows whose data this is
            write_file(self.module, paths.ETCD_IS_OURS, "")
        self.leave(lock)
        remove_docker_containers()
        if containerd_answers():
            remove_containers()
        # Links and rules of pods went with their containers.
        self.rules = read_rules()
        remove_network(read_network(self.rules), self.rules)
        self.remove_packages()
        if self.packages.released:
            self.apt.release(self.packages.released)
        for path in self.found["data"]:
            clear(path)
        for path in self.found["etcd"]:
            remove_path(path)
        self.remove_files()
        # The record of packages goes last.
        for path in sorted(self.own_state(), key=lambda path: path == package_record.PATH):
            remove_path(path)
        if os.path.isdir(OWN_DIRECTORY) and not os.listdir(OWN_DIRECTORY):
            os.rmdir(OWN_DIRECTORY)


@contextlib.contextmanager
def alone(module: AnsibleModule) -> t.Iterator[t.Optional[t.IO[str]]]:
    """Hold the lock, and wait for a reset that a killed run left running. Check mode does not create a lock."""
    if module.check_mode and not os.path.exists(paths.LOCK):
        yield None
        return
    with hold_lock(module.params["lock_timeout"]) as lock:
        yield lock


def reset_host(module: AnsibleModule) -> t.Dict[str, object]:
    """The body of M(ipu.fabric.host_reset)."""
    if module.params["files"] is not None:
        return remove_unowned_files(module)
    with alone(module) as lock:
        host = HostReset(module)
        host.check_cluster()
        before = without_empty(host.found)
        if before and lock and not module.check_mode:
            host.apply(lock)
    return outcome(before, {}, cluster=host.mark, removed=before, kept=host.kept)
