# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Facts of a host, read from files where possible: needs no packages, and changes nothing."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import importlib.util
import ipaddress
import os
import platform
import re
import shutil
import socket
import threading
import time
import typing as t

from .._common.command import output_of
from .._model.observation import BusyPort, Clock, HostFacts, Kubelet, Resolver
from .certificates import read_certificates, read_cni_tokens
from .clock import ask_servers, read_services
from .cluster import read_cluster
from .cni_files import read_cni_files, read_disabled
from .control_plane import read_control_plane
from .cri import DOCKER, node_runtime
from .distributions import KUBEADM, OTHER_KUBERNETES, Found, find_distribution, read_kubernetes
from .files import read_text
from .locked_memory import read_locked_memory
from .obstacles import read_obstacles
from .processes import host_processes
from .shadows import read_shadows
from .swap import swap_origins
from .vip import read_vip

if t.TYPE_CHECKING:
    from ansible.module_utils.basic import AnsibleModule

# Signs that a kernel has a module that /lib/modules does not show (in a container, or built in).
_MODULE_SIGNS = {
    "br_netfilter": "proc/sys/net/bridge",
    "nf_conntrack": "proc/sys/net/netfilter/nf_conntrack_max",
}
CNI_PLUGINS = "/opt/cni/bin"
SECONDS = 5.0  # for a program or a name server to answer
KUBELET_SECONDS = 60.0  # to load its 100 MB on a busy host


class Questions(t.NamedTuple):
    """Options of host_info: what is asked of a host."""

    ports: t.Sequence[int]  # that should be free
    modules: t.Sequence[str]  # of the kernel
    paths: t.Sequence[str]  # whose free space is measured
    names: t.Sequence[str]  # that should resolve
    controller_time: float  # seconds since 1970; 0 leaves clocks out
    vip: str = ""  # virtual address of the API to look for; empty: none
    run_from: t.Sequence[str] = ()  # folders that programs are run from
    ntp: t.Sequence[str] = ()  # NTP servers that should answer
    services: t.Sequence[str] = ()  # service CIDRs, to which there should be a route
    resolv_conf: str = ""  # that the kubelet gives to pods; empty: kubeadm's choice
    python_packages: t.Sequence[str] = ()  # needed by modules that will run here


def parse_os_release(text: str) -> t.Dict[str, str]:
    """The variables of /etc/os-release that are not empty."""
    pairs = (line.split("=", 1) for line in text.splitlines() if "=" in line and not line.startswith("#"))
    values = {key: value.strip().strip("\"'") for key, value in pairs}
    return {key: value for key, value in values.items() if value}


def parse_memory_mb(meminfo: str) -> int:
    match = re.search(r"^MemTotal:\s+(\d+) kB", meminfo, re.MULTILINE)
    return int(match.group(1)) // 1024 if match else 0


def parse_swaps(text: str) -> t.List[str]:
    """The devices and files of /proc/swaps, without its heading."""
    return [line.split()[0].replace("\\040", " ") for line in text.splitlines()[1:] if line.strip()]


def parse_listening(table: str) -> t.Dict[int, str]:
    """Port -> socket inode of all listening sockets in /proc/net/tcp or tcp6."""
    found = {}
    for line in table.splitlines()[1:]:
        fields = line.split()
        if len(fields) > 9 and fields[3] == "0A":
            found[int(fields[1].rsplit(":", 1)[1], 16)] = fields[9]
    return found


def parse_default_device(routes: str) -> str:
    """The device of the default route in /proc/net/route."""
    for line in routes.splitlines()[1:]:
        fields = line.split()
        if len(fields) > 7 and fields[1] == "00000000" and fields[7] == "00000000":
            return fields[0]
    return ""


def parse_server(kubeconfig: str) -> str:
    """host:port of the API server in a kubeconfig."""
    match = re.search(r"^\s*server:\s*[\"']?https?://([^\s\"'/]+)", kubeconfig, re.MULTILINE)
    return match.group(1) if match else ""


def ca_digest(pem: str) -> str:
    """A digest that identifies a cluster: of the first certificate in its CA file. Empty without one."""
    match = re.search(r"-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----", pem, re.DOTALL)
    return hashlib.sha256(f"{match.group()}\n".encode()).hexdigest()[:16] if match else ""


def trusted_ca(kubeconfig: str, root: str = "/") -> str:
    """Digest of the CA that a kubeconfig trusts, which it embeds or names; empty if it does neither."""
    match = re.search(r"^ *certificate-authority(-data)?: *[\"']?([^\s\"']+)", kubeconfig, re.MULTILINE)
    if not match:
        return ""
    if not match.group(1):
        return ca_digest(read_text(os.path.join(root, match.group(2).lstrip("/"))))
    try:
        return ca_digest(base64.b64decode(match.group(2)).decode("ascii"))
    except ValueError:
        return ""


def _socket_owners(root: str, inodes: t.Dict[str, int]) -> t.Dict[int, str]:
    """Port -> name of the process that listens on it, as far as this user can see."""
    owners: t.Dict[int, str] = {}
    for pid in filter(str.isdigit, os.listdir(os.path.join(root, "proc"))):
        folder = os.path.join(root, "proc", pid, "fd")
        try:
            numbers = os.listdir(folder)
        except OSError:  # ended in the meantime, or another user's
            continue
        for number in numbers:
            with contextlib.suppress(OSError):  # closed in the meantime; the others remain
                link = os.readlink(os.path.join(folder, number))
                if link.startswith("socket:[") and link[8:-1] in inodes:
                    owners[inodes[link[8:-1]]] = read_text(os.path.join(root, "proc", pid, "comm")).strip()
    return owners


def busy_ports(root: str, wanted: t.Iterable[int]) -> t.List[BusyPort]:
    listening = parse_listening(read_text(os.path.join(root, "proc/net/tcp6")))
    listening.update(parse_listening(read_text(os.path.join(root, "proc/net/tcp"))))
    busy = sorted(set(wanted) & set(listening))
    owners = _socket_owners(root, {listening[port]: port for port in busy}) if busy else {}
    return [{"port": port, "process": owners.get(port, "")} for port in busy]


def is_on_board(netdev: str) -> bool:
    """Whether a network device in sysfs is hardware, but not USB: such devices are called enx and their MAC address."""
    device = os.path.join(netdev, "device")
    usb = os.path.basename(netdev).startswith("enx") or "/usb" in os.path.realpath(device)
    return os.path.exists(device) and not usb


def list_macs(root: str) -> t.List[str]:
    """MACs of hardware NICs and of the device with the default route; those of bridges, tunnels and pods may repeat.

    A USB NIC may have the same MAC on every board, as the link to a BMC has.
    """
    folder = os.path.join(root, "sys/class/net")
    default = parse_default_device(read_text(os.path.join(root, "proc/net/route")))
    names = os.listdir(folder) if os.path.isdir(folder) else []
    real = [name for name in names if name == default or is_on_board(os.path.join(folder, name))]
    found = {read_text(os.path.join(folder, name, "address")).strip() for name in real}
    return sorted(mac for mac in found if mac.strip("0:"))


def cgroup_version(root: str) -> str:
    base = os.path.join(root, "sys/fs/cgroup")
    if os.path.exists(os.path.join(base, "cgroup.controllers")):
        return "v2"
    return "hybrid" if os.path.isdir(os.path.join(base, "unified")) else "v1"


def module_available(root: str, release: str, name: str) -> t.Optional[bool]:
    """Whether the kernel has this module: loaded, built in or loadable; None if nothing shows it."""
    signs = [os.path.join("sys/module", name), _MODULE_SIGNS.get(name, "")]
    if any(sign and os.path.exists(os.path.join(root, sign)) for sign in signs):
        return True
    if re.search(rf"^(nodev)?\t{re.escape(name)}$", read_text(os.path.join(root, "proc/filesystems")), re.MULTILINE):
        return True
    if any(line.split(" ", 1)[0] == name for line in read_text(os.path.join(root, "proc/modules")).splitlines()):
        return True
    folder = os.path.join(root, "lib/modules", release)
    if not os.path.isdir(folder):
        return None
    pattern = re.compile(rf"/{re.escape(name).replace('_', '[-_]')}\.ko")
    return any(pattern.search(read_text(os.path.join(folder, file))) for file in ("modules.dep", "modules.builtin"))


def disk_usage_mb(root: str, path: str) -> t.Tuple[int, int]:
    """Free and total space in MiB of the file system of `path`, or of the nearest existing folder above it."""
    usage = shutil.disk_usage(nearest_folder(os.path.join(root, path.lstrip("/"))))
    return usage.free // 2**20, usage.total // 2**20


def nearest_folder(path: str) -> str:
    """The folder itself, or its nearest existing parent."""
    while not os.path.isdir(path) and os.path.dirname(path) != path:
        path = os.path.dirname(path)
    return path


def forbids_programs(root: str, path: str) -> bool:
    """Whether a folder is, or would be, on a mount with noexec."""
    return bool(os.statvfs(nearest_folder(os.path.join(root, path.lstrip("/")))).f_flag & os.ST_NOEXEC)


def _resolves(name: str, answers: t.Dict[str, bool]) -> None:
    try:
        answers[name] = bool(socket.getaddrinfo(name, None))
    except OSError:
        answers[name] = False


def resolve_names(names: t.Iterable[str]) -> t.Dict[str, bool]:
    """Whether each name resolves; no answer in time counts as no, and is not waited for."""
    answers: t.Dict[str, bool] = {}
    asked = {name: threading.Thread(target=_resolves, args=(name, answers), daemon=True) for name in set(names) if name}
    for question in asked.values():
        question.start()
    end = time.monotonic() + SECONDS
    for question in asked.values():
        question.join(max(0.0, end - time.monotonic()))
    return {name: answers.get(name, False) for name in sorted(asked)}


def default_address() -> str:
    """The source address of the default route; nothing is sent."""
    for family, target in ((socket.AF_INET, "192.0.2.1"), (socket.AF_INET6, "2001:db8::1")):
        try:
            with socket.socket(family, socket.SOCK_DGRAM) as probe:
                probe.connect((target, 9))
                return str(probe.getsockname()[0])
        except OSError:
            continue
    return ""


def has_route(cidr: str) -> bool:
    """Whether the host has a route to a network; nothing is sent. An invalid CIDR is reported elsewhere."""
    try:
        network = ipaddress.ip_network(cidr.strip())
        family = socket.AF_INET if network.version == 4 else socket.AF_INET6
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.connect((str(network[min(1, network.num_addresses - 1)]), 9))  # the API's service address
    except ValueError:
        return True
    except OSError:
        return False
    return True


def kubelet_version(program: str) -> str:
    """The version in output such as `Kubernetes v1.35.4`, or `k3s version v1.35.4+k3s1 (hash)` and a line about Go."""
    match = re.search(r"\bv\d+\.\d+\.\d+\S*", output_of(program, "--version", timeout=KUBELET_SECONDS))
    return match.group() if match else ""


def program_folders(module: AnsibleModule) -> t.List[str]:
    """Folders that programs are run from. AnsibleModule's property for the temporary folder would create it."""
    temporary = str(getattr(module, "_remote_tmp", None) or "")
    return [CNI_PLUGINS, *([os.path.expanduser(os.path.expandvars(temporary))] if temporary else [])]


def read_kubelet(root: str) -> Kubelet:
    """Which cluster this host belongs to: the API server and a digest of the CA, both empty if it belongs to none.

    Kubelets of k3s and RKE2 reach the API through a local proxy, whose address says nothing about the server.
    """
    found = find_distribution(root) or Found(KUBEADM, KUBEADM.data, root)
    version = kubelet_version(found.distribution.program)
    authority = found.first(found.distribution.ca)
    proxied = found.distribution.embeds_containerd
    kubeconfig = "" if proxied else found.text(found.distribution.kubelet)
    return {
        "present": bool(version),
        "version": version,
        "server": parse_server(kubeconfig),
        # kubeadm may be configured to keep its CA elsewhere.
        "cluster": (ca_digest(found.text(authority)) if authority else "") or trusted_ca(kubeconfig, root),
    }


def read_resolver(root: str, given: str) -> Resolver:
    """The resolver of pods that use their host's DNS, as CoreDNS does: kubeadm prefers that of systemd-resolved."""
    # Its file remains until the next boot, even if it no longer runs.
    runs = host_processes(root, ("systemd-resolve",))
    path = given or ("/run/systemd/resolve/resolv.conf" if runs else "/etc/resolv.conf")
    lines = (line.split() for line in read_text(os.path.join(root, path.lstrip("/"))).splitlines())
    return {"path": path, "servers": [words[1] for words in lines if words[:1] == ["nameserver"] and len(words) > 1]}


def read_clock(controller_time: float) -> Clock:
    """Whether the clock is synchronized, and the times of the controller (when it asked) and of this host.

    The host's time is read first: what follows takes time."""
    now = time.time()
    shown = output_of("timedatectl", "show", "--property=NTPSynchronized", "--value", timeout=SECONDS)
    return {
        "synchronized": {"yes": True, "no": False}.get(shown),
        "asked": controller_time,
        "read": now,
        "services": read_services(),
    }


def clock_offset(asked: float, read: float, arrived: float) -> int:
    """Seconds by which a host's clock is certainly ahead of the controller's; negative if it is behind.

    The host read its clock at some point between the question and the arrival of the answer, by the controller's clock,
    so a slow connection does not count as a wrong clock.
    """
    if not asked:
        return 0
    return round(max(read - arrived, 0) + min(read - asked, 0))


def lacking_packages(names: t.Sequence[str]) -> t.List[str]:
    """The packages that the running Python can't import."""
    return [name for name in names if importlib.util.find_spec(name) is None]


def read_host(questions: Questions, root: str = "/") -> HostFacts:
    """All facts, as the result of host_info."""
    clock = read_clock(questions.controller_time)  # first: whatever follows takes time
    system = parse_os_release(read_text(os.path.join(root, "etc/os-release")))
    kernel = platform.release()
    runtime = node_runtime(root)
    kubernetes = read_kubernetes(root, runtime == DOCKER)
    disks = {path: disk_usage_mb(root, path) for path in questions.paths}
    return {
        "hostname": socket.gethostname(),
        "machine_id": read_text(os.path.join(root, "etc/machine-id")).strip(),
        "macs": list_macs(root),
        "distribution": system.get("ID", ""),
        "release": system.get("VERSION_CODENAME", ""),
        "version": system.get("VERSION_ID", ""),
        "architecture": platform.machine(),
        "kernel": kernel,
        "cpus": os.cpu_count() or 0,
        "memory_mb": parse_memory_mb(read_text(os.path.join(root, "proc/meminfo"))),
        "disk_mb": {path: free for path, (free, _total) in disks.items()},
        "disk_total_mb": {path: total for path, (_free, total) in disks.items()},
        "swap": parse_swaps(read_text(os.path.join(root, "proc/swaps"))),
        "swap_origins": swap_origins(root),
        "ports_busy": busy_ports(root, questions.ports),
        "cgroup": cgroup_version(root),
        "locked_memory": read_locked_memory(root),
        "modules": {name: module_available(root, kernel, name) for name in questions.modules},
        "time": {**clock, "servers": ask_servers(questions.ntp)},
        "dns": resolve_names(questions.names),
        "shadows": read_shadows(root),
        "obstacles": read_obstacles(root, questions.modules),
        "service_routes": {cidr: has_route(cidr) for cidr in questions.services},
        "resolver": read_resolver(root, questions.resolv_conf),
        "kubernetes": kubernetes,
        "runtime": runtime if kubernetes["distribution"] == "kubeadm" else "",
        "cni_files": read_cni_files(kubernetes["cni_network_directory"], root),
        "cni_disabled": read_disabled(kubernetes["cni_network_directory"], root),
        "kubelet": read_kubelet(root),
        "cluster": read_cluster(root),
        "certificates": read_certificates(root),
        "cni_token_ends": read_cni_tokens(kubernetes["cni_network_directory"], root),
        "vip": read_vip(questions.vip, root=root),
        "control_plane": read_control_plane(root),
        "noexec": sorted(path for path in set(questions.run_from) if forbids_programs(root, path)),
        "other_kubernetes": sorted(
            name for name, path in OTHER_KUBERNETES.items() if os.path.isdir(os.path.join(root, path))
        ),
        "default_address": default_address(),
        "python": platform.python_version(),
        "lacking_packages": lacking_packages(questions.python_packages),
        "systemd": os.path.isdir(os.path.join(root, "run/systemd/system")),
    }
