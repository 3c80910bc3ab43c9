# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which distribution set up a host's Kubernetes node, and where it keeps its parts: one table for all callers.

k3s and RKE2 bring their own containerd and write its configuration at every start, so that file says where containerd
looks for CNI plugins. Without flannel, k3s leaves that to containerd's defaults.
"""

from __future__ import annotations

import glob
import itertools
import os
import re
import typing as t

from .._model.observation import KubernetesFacts
from .files import read_text

CNI_BIN, CNI_NETWORK = "/opt/cni/bin", "/etc/cni/net.d"  # containerd's defaults
# Drop-ins of containerd, which 2.2 and later read even without a main file, and the drop-in of the role kubernetes.
CONTAINERD_DROP_INS = "/etc/containerd/conf.d/*.toml"
CONTAINERD_DROP_IN = "/etc/containerd/conf.d/10-kubernetes.toml"
CNI_TABLE = re.compile(r"\[plugins\.(['\"])io\.containerd\.(?:grpc\.v1\.cri|cri\.v1\.runtime)\1\.cni\]")
UNIT_FOLDERS = ("etc/systemd/system", "usr/local/lib/systemd/system", "usr/lib/systemd/system", "lib/systemd/system")
# Environment files that the installers' units read.
ENVIRONMENTS = (
    "etc/default/{unit}",
    "etc/systemd/system/{unit}.service.env",
    "usr/local/lib/systemd/system/{unit}.env",
)
BUNDLE = re.compile(r"/data/[0-9a-f]{64}/bin$")


class Distribution(t.NamedTuple):
    """A way to set up a node. Paths are absolute; {data} is replaced by the data directory."""

    name: str
    data: str  # data directory, unless its configuration names another one
    config: str  # configuration file, which may have a NAME.d directory beside it; empty: none
    units: t.Tuple[str, ...]  # services that run its kubelet, and containerd if it brings its own
    server_units: t.Tuple[str, ...]  # those of the units that only servers have, and that contain the API server
    kubelet: str  # kubeconfig of the kubelet
    server: str  # exists only on hosts with an API server
    admins: t.Tuple[str, ...]  # kubeconfigs of the administrator: the first that exists is used
    kubectl: t.Tuple[str, ...]
    program: str  # prints its version
    ca: t.Tuple[str, ...]  # of the API server: the first that exists is used
    containerd_socket: str
    containerd_config: str  # the file that containerd reads
    registries: str  # mirrors and credentials of registries; empty: it has no such file
    cni_bin: t.Tuple[str, ...]  # where containerd looks for CNI plugins: the first that exists, else the first
    cni_network: str  # where containerd looks for CNI configurations

    @property
    def embeds_containerd(self) -> bool:
        """Whether it brings its own containerd and writes its configuration."""
        return bool(self.registries)


KUBEADM = Distribution(
    name="kubeadm",
    data="/etc/kubernetes",
    config="",
    units=("kubelet",),
    server_units=(),
    kubelet="{data}/kubelet.conf",
    server="{data}/admin.conf",
    admins=("{data}/admin.conf",),
    kubectl=("kubectl",),
    program="kubelet",
    ca=("{data}/pki/ca.crt",),
    containerd_socket="/run/containerd/containerd.sock",
    containerd_config="/etc/containerd/config.toml",
    registries="",
    cni_bin=(CNI_BIN,),
    cni_network=CNI_NETWORK,
)
K3S = Distribution(
    name="k3s",
    data="/var/lib/rancher/k3s",
    config="/etc/rancher/k3s/config.yaml",
    units=("k3s", "k3s-agent"),
    server_units=("k3s",),
    kubelet="{data}/agent/kubelet.kubeconfig",
    server="{data}/server/tls",
    admins=("/etc/rancher/k3s/k3s.yaml", "{data}/server/cred/admin.kubeconfig"),
    kubectl=("k3s", "kubectl"),
    program="k3s",
    ca=("{data}/agent/server-ca.crt", "{data}/server/tls/server-ca.crt"),
    containerd_socket="/run/k3s/containerd/containerd.sock",
    containerd_config="{data}/agent/etc/containerd/config.toml",
    registries="/etc/rancher/k3s/registries.yaml",
    # Releases before October 2024 have the second one, which resolves to the directory of the release.
    cni_bin=("{data}/data/cni", "{data}/data/current/bin"),
    cni_network="{data}/agent/etc/cni/net.d",
)
RKE2 = K3S._replace(
    name="rke2",
    data="/var/lib/rancher/rke2",
    config="/etc/rancher/rke2/config.yaml",
    units=("rke2-server", "rke2-agent"),
    server_units=("rke2-server",),
    admins=("/etc/rancher/rke2/rke2.yaml", "{data}/server/cred/admin.kubeconfig"),
    kubectl=("{data}/bin/kubectl",),
    program="rke2",
    registries="/etc/rancher/rke2/registries.yaml",
    cni_bin=(CNI_BIN,),
    cni_network=CNI_NETWORK,
)
DISTRIBUTIONS = {each.name: each for each in (KUBEADM, K3S, RKE2)}
# All services that contain containerd and the kubelet; those of servers also contain the API server.
EMBEDDING_UNITS = (*K3S.units, *RKE2.units)
# Distributions other than kubeadm, by a directory that only they have, without the leading slash.
OTHER_KUBERNETES = {
    "k3s": K3S.data[1:],
    "rke2": RKE2.data[1:],
    "microk8s": "var/snap/microk8s",
    "k0s": "var/lib/k0s",
}


class Found(t.NamedTuple):
    """The distribution found on a host."""

    distribution: Distribution
    data: str  # its data directory
    root: str  # root of the host's file system

    def path(self, pattern: str) -> str:
        """A path from the table, as programs on the host see it."""
        return pattern.replace("{data}", self.data)

    def there(self, pattern: str) -> bool:
        return os.path.exists(on_host(self.root, self.path(pattern)))

    def first(self, patterns: t.Sequence[str]) -> str:
        """The first path that exists; empty if none does."""
        return next((self.path(pattern) for pattern in patterns if self.there(pattern)), "")

    def text(self, pattern: str) -> str:
        return read_text(on_host(self.root, self.path(pattern)))

    @property
    def is_server(self) -> bool:
        return self.there(self.distribution.server)

    @property
    def admin(self) -> str:
        """The administrator's kubeconfig; empty if there is none, or if it is a copy on a host without API server."""
        return self.first(self.distribution.admins) if self.is_server else ""

    @property
    def units(self) -> t.List[str]:
        """Services of the kubelet on this host: k3s and RKE2 use different ones for servers and for other nodes."""
        servers = self.distribution.server_units
        return [unit for unit in self.distribution.units if not servers or self.is_server == (unit in servers)]

    @property
    def kubectl(self) -> t.List[str]:
        """The kubectl command; a program in the data directory gets its full path."""
        words = [self.path(word) for word in self.distribution.kubectl]
        return [on_host(self.root, word) if word.startswith("/") else word for word in words]


def on_host(root: str, path: str) -> str:
    return os.path.join(root, path.lstrip("/"))


def parse_data_directory(config: str) -> str:
    """data-dir in a configuration of k3s or RKE2. Hosts have no YAML parser."""
    match = re.search(r"^[\"']?data-dir[\"']?\s*:\s*[\"']?(/[^\s\"'#]+)", config, re.MULTILINE)
    return match.group(1).rstrip("/") if match else ""


def parse_data_flag(unit: str) -> str:
    """--data-dir or -d in the ExecStart of a unit, as the installer writes it: over several lines, quoted."""
    match = re.search(r"(?:--data-dir|(?<!\S)['\"]?-d)['\"]?(?:=|[\s\\]+)['\"]?(/[^\s'\"\\]+)", unit)
    return match.group(1).rstrip("/") if match else ""


def parse_data_variable(environment: str) -> str:
    """K3S_DATA_DIR or RKE2_DATA_DIR in the environment file of a unit."""
    match = re.search(r"^(?:K3S|RKE2)_DATA_DIR=['\"]?(/[^\s'\"]+)", environment, re.MULTILINE)
    return match.group(1).rstrip("/") if match else ""


def data_directory(distribution: Distribution, root: str) -> str:
    """Its data directory, from the flags of its unit, else its environment, else its configuration."""
    if not distribution.embeds_containerd:
        return distribution.data

    def texts(*patterns: str) -> t.Iterator[str]:
        for pattern, unit in itertools.product(patterns, distribution.units):
            yield read_text(on_host(root, pattern.format(unit=unit)))

    drop_ins = sorted(glob.glob(f"{on_host(root, distribution.config)}.d/*.yaml"), reverse=True)  # the last one counts
    said = [
        *map(parse_data_flag, texts(*(f"{folder}/{{unit}}.service" for folder in UNIT_FOLDERS))),
        *map(parse_data_variable, texts(*ENVIRONMENTS)),
        *(parse_data_directory(read_text(path)) for path in [*drop_ins, on_host(root, distribution.config)]),
    ]
    return next(filter(None, said), distribution.data)


def find_distribution(root: str = "/") -> t.Optional[Found]:
    """The distribution that left a kubeconfig of the kubelet, or files of an API server, on this host.

    If there are two, as after a change from one to the other, it is the one whose own containerd runs.
    """
    found = [Found(each, data_directory(each, root), root) for each in DISTRIBUTIONS.values()]
    found = [each for each in found if each.there(each.distribution.kubelet) or each.is_server]
    running = [
        each
        for each in found
        if each.distribution.embeds_containerd and each.there(each.distribution.containerd_socket)
    ]
    return next(iter([*running, *found]), None)


def cni_directories(config: str) -> t.Tuple[str, str]:
    """The directories of CNI plugins and CNI configurations in a containerd configuration; empty if it does not say."""
    match = CNI_TABLE.search(config)
    if not match:
        return "", ""
    table = re.split(r"^\s*\[", config[match.end() :], maxsplit=1, flags=re.MULTILINE)[0]
    # containerd 2 takes several directories, and uses the first one that has the plugin.
    plugins = re.search(r"^\s*bin_dirs?\s*=\s*\[?\s*['\"]([^'\"]+)", table, re.MULTILINE)
    network = re.search(r"^\s*conf_dir\s*=\s*['\"]([^'\"]+)", table, re.MULTILINE)
    return plugins.group(1) if plugins else "", network.group(1) if network else ""


def _configurations(found: Found) -> t.List[str]:
    """The texts of containerd's configuration files in order of precedence, each with its imports."""
    path = found.path(found.distribution.containerd_config)
    main = found.text(path)
    imports = re.search(r"^imports\s*=\s*\[([^\]]*)\]", main, re.MULTILINE)
    patterns = re.findall(r"['\"]([^'\"]+)['\"]", imports.group(1)) if imports else []
    if not main and not found.distribution.embeds_containerd:
        patterns = [CONTAINERD_DROP_INS]
    paths = (os.path.normpath(os.path.join(os.path.dirname(path), pattern)) for pattern in patterns)
    texts = [read_text(each) for pattern in paths for each in sorted(glob.glob(on_host(found.root, pattern)))]
    return list(filter(None, [main, *texts]))


def _cni(found: Found, docker: bool) -> t.Tuple[str, str]:
    """Where the runtime looks for CNI plugins and for CNI configurations. cri-dockerd uses the usual directories."""
    expected = found.first(found.distribution.cni_bin) or found.path(found.distribution.cni_bin[0])
    network = found.path(found.distribution.cni_network)
    configs = [] if docker else _configurations(found)
    if not configs:  # containerd has not been started yet
        return expected, network
    said = [cni_directories(config) for config in configs]
    plugins, network = (next(filter(None, reversed(each)), "") for each in zip(*said))
    if BUNDLE.search(plugins) and found.there("{data}/data/current/bin"):
        plugins = found.path("{data}/data/current/bin")  # the same directory, and stable across upgrades
    return plugins or CNI_BIN, network or CNI_NETWORK


def read_kubernetes(root: str = "/", docker: bool = False) -> KubernetesFacts:
    """What roles need to know about the node; `docker`: Docker runs its containers. Paths are as seen on the host."""
    found = find_distribution(root)
    if not found:
        return {
            "distribution": "none",
            "server": False,
            "units": [],
            "kubeconfig": "",
            "containerd_socket": KUBEADM.containerd_socket,
            "containerd_config": KUBEADM.containerd_config,
            "registries": "",
            "cni_bin_directory": CNI_BIN,
            "cni_network_directory": CNI_NETWORK,
        }
    distribution = found.distribution
    plugins, network = _cni(found, docker)
    return {
        "distribution": distribution.name,
        "server": found.is_server,
        "units": found.units,
        "kubeconfig": found.admin,
        "containerd_socket": distribution.containerd_socket,
        "containerd_config": found.path(distribution.containerd_config),
        "registries": distribution.registries,
        "cni_bin_directory": plugins.rstrip("/"),
        "cni_network_directory": network.rstrip("/"),
    }
