"""A running testbed: two networks, the mirror, the fabric's gateway with V-IPU, and the hosts."""

from __future__ import annotations

import ipaddress
import json
import os
import shutil
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .build import Parts, Wanted, image_name
from .common import CACHE, ProblemError, lock, output, run, say, step

HOSTS = {"cp1": 11, "w1": 12}  # name: last part of the host's addresses
MORE_CONTROL_PLANES = {"cp2": 13, "cp3": 14}
WORKERS = {"roce1": 15, "roce2": 16}  # virtual machines, see workers.py
MIRROR, REGISTRY, BALANCER, VIRTUAL = 2, 3, 4, 5
GATEWAY, VIPU = 1, 20
VIPU_MODES = ("json", "text", "ipv6", "hostname", "localhost", "garbage", "hanging", "unreachable", "missing")
DEFAULT_FABRIC = "10.5.0.0/24"
RAILS = 8  # fabric networks that a host can have; the first one is the fabric with V-IPU on it
VOLUMES = ("/var/lib/containerd", "/var/lib/kubelet", "/var/lib/etcd")  # overlayfs does not work on an overlay
# Podman mounts the whole machine's systemd hierarchy over the host's own: with that, systemd and the kubelet of each
# host find the processes of all others in their slices, and try forever to end them.
INIT = "umount /sys/fs/cgroup/systemd/release_agent /sys/fs/cgroup/systemd; exec /sbin/init"
# A control plane is in service while its API server reports that it is ready.
BALANCER_CONFIG = """
defaults
  mode tcp
  timeout connect 2s
  timeout client 1h
  timeout server 1h
listen api
  bind :6443
  option httpchk GET /readyz
  default-server inter 1s fall 2 rise 1 on-marked-down shutdown-sessions check check-ssl verify none
"""
DEBIAN_SOURCE = "deb [signed-by=/etc/apt/keyrings/debian-mirror.asc] http://{}/apt/debian/ /\n"
LIMITS = ("--ulimit", "nofile=20000:20000", "--ulimit", "nproc=20000:20000")  # this machine may forbid more


def podman(*words: object, **options: Any) -> subprocess.CompletedProcess[str]:
    return run("podman", "--runtime", "runc", *words, **options)


@dataclass(frozen=True)
class Testbed:
    """Names, addresses and actions of one of ten testbeds on this machine."""

    number: int

    @property
    def name(self) -> str:
        return f"ipu-fabric-{self.number}"

    @property
    def state(self) -> Path:
        return CACHE / "testbed" / str(self.number)

    @property
    def key(self) -> Path:
        return self.state / "id_ed25519"

    def management(self, number: int) -> str:
        # Outside the ranges that podman uses for networks: 10.88.0.0/16 is its default, 10.89.0.0/16 the next one.
        return f"10.{70 + self.number}.0.{number}"

    @property
    def fabric(self) -> ipaddress.IPv4Network | ipaddress.IPv6Network:
        """The second network. It has no route out and no addresses from podman, so all testbeds can use the same."""
        kept = self.state / "fabric"
        return ipaddress.ip_network(kept.read_text().strip() if kept.exists() else DEFAULT_FABRIC)

    def on_fabric(self, number: int) -> str:
        """An address by its number: for 20, it is 10.5.0.20 or fd00:5::20."""
        return str(self.fabric[int(str(number), 16) if self.fabric.version == 6 else number])

    @property
    def hosts(self) -> dict[str, int]:
        """Each host's name, and the last part of its addresses."""
        return HOSTS | (MORE_CONTROL_PLANES if (self.state / "control-planes").exists() else {})

    @property
    def control_planes(self) -> list[str]:
        return [host for host in self.hosts if host.startswith("cp")]

    @property
    def workers(self) -> list[str]:
        """Virtual machines with RDMA, as many as requested by `testbed workers`."""
        kept = self.state / "worker-count"
        return list(WORKERS)[: int(kept.read_text())] if kept.exists() else []

    @property
    def virtual_address(self) -> str:
        """The address that the control planes share if there is no load balancer."""
        kept = self.state / "control-planes"
        return self.management(VIRTUAL) if kept.exists() and "virtual" in kept.read_text() else ""

    @property
    def endpoint(self) -> str:
        """The API's endpoint: the load balancer, if there is one; otherwise empty."""
        return f"{self.management(BALANCER)}:6443" if len(self.control_planes) > 1 and not self.virtual_address else ""

    @property
    def wanted(self) -> Wanted:
        """What the mirror offers beyond what every testbed needs."""
        more, calico = ((self.state / name).exists() for name in ("kubernetes-next", "calico"))
        return Wanted(more, calico)

    @property
    def rails(self) -> int:
        kept = self.state / "rails"
        return int(kept.read_text()) if kept.exists() else 1

    @staticmethod
    def on_rail(rail: int, number: int) -> str:
        """An address on one of the additional rails: 10.6.0.11/24 is cp1's on the second one."""
        return f"10.{4 + rail}.0.{number}/24"

    def mac(self, network: int, number: int) -> str:
        """A MAC that stays the same when a host is reset, so that ARP entries stay valid. Network 0 is management."""
        return f"02:1f:ab:{self.number:02x}:{network:02x}:{number:02x}"

    def container(self, role: str) -> str:
        return f"{self.name}-{role}"

    # -- state

    def _containers(self) -> dict[str, dict[str, Any]]:
        """podman's data about this testbed's containers, by role."""
        ours = f"label=ipu-fabric={self.number}"
        listed = json.loads(output("podman", "ps", "--all", "--format", "json", "--filter", ours) or "[]")
        return {entry["Names"][0].removeprefix(f"{self.name}-"): with_true_state(entry) for entry in listed}

    def running(self, host: str) -> bool:
        return self._containers().get(host, {}).get("State") == "running"

    def status(self) -> str:
        rows = [f"{self.name}: management {self.management(0)}/24, fabric {self.fabric}"]
        found = self._containers()
        where = {"mirror": self.management(MIRROR), "registry": self.management(REGISTRY)}
        where["fabric"] = f"gateway {self.on_fabric(GATEWAY)}, V-IPU {self.on_fabric(VIPU)}"
        rails = f", {self.rails - 1} more rails" if self.rails > 1 else ""
        where |= {
            host: f"{self.management(number)}, {self.on_fabric(number)}{rails}" for host, number in self.hosts.items()
        }
        rows += [f"  {role:9} {found.get(role, {}).get('State', 'missing'):9} {text}" for role, text in where.items()]
        return "\n".join(rows)

    # -- networks and side containers

    def _networks(self) -> None:
        wanted = {
            f"{self.name}-management": ["--subnet", f"{self.management(0)}/24", "--gateway", self.management(1)],
            f"{self.name}-fabric": ["--ipam-driver=none"],
            **{f"{self.name}-rail{rail}": ["--ipam-driver=none"] for rail in range(2, self.rails + 1)},
        }
        present = output("podman", "network", "ls", "--format", "{{.Name}}").split()
        for name, options in wanted.items():
            if name not in present:
                podman("network", "create", "--disable-dns", *options, name)

    def _side_container(self, role: str, parts: Parts, key: str, options: list[str], command: list[str]) -> None:
        """A container beside the hosts, replaced if it does not match these parts."""
        image = image_name(parts, "tools")
        found = self._containers().get(role)
        if found and found["State"] == "running" and found["Labels"].get("ipu-fabric-parts") == key:
            return
        remove(self.container(role))
        labels = ["--label", f"ipu-fabric={self.number}", "--label", f"ipu-fabric-parts={key}"]
        podman("run", "--detach", "--name", self.container(role), *LIMITS, *labels, *options, image, *command)

    def _mirror(self, parts: Parts) -> None:
        network = f"{self.name}-management"
        files = ["--network", f"{network}:ip={self.management(MIRROR)}", f"--volume={parts.www}:/srv:ro"]
        serve = ["python3", "-m", "http.server", "80", "--directory", "/srv"]
        self._side_container("mirror", parts, parts.www.name, files, serve)
        images = ["--network", f"{network}:ip={self.management(REGISTRY)}", f"--volume={parts.registry}:/srv:ro"]
        images.append(f"--volume={parts.bin}/registry:/usr/local/bin/registry:ro")
        self._side_container("registry", parts, parts.registry.name, images, ["registry", "serve", "/srv/registry.yml"])

    def _fabric(self, parts: Parts) -> None:
        options = ["--cap-add=NET_ADMIN", "--network", f"{self.name}-fabric"]
        options.append(f"--volume={parts.standins}/vipu-server:/usr/local/bin/vipu-server:ro")
        self._side_container("fabric", parts, parts.standins.name, options, ["vipu-server"])
        self._address_fabric_container()

    def _balancer(self, parts: Parts) -> None:
        """The load balancer in front of several control planes, as a site has one."""
        if not self.endpoint:
            return
        servers = [f"  server {host} {self.management(self.hosts[host])}:6443" for host in self.control_planes]
        config = self.state / "haproxy.cfg"
        config.write_text("\n".join([BALANCER_CONFIG.strip(), *servers, ""]))
        options = [
            "--network",
            f"{self.name}-management:ip={self.management(BALANCER)}",
            f"--volume={config}:/haproxy.cfg:ro",
        ]
        self._side_container("balancer", parts, parts.debian.name, options, ["haproxy", "-f", "/haproxy.cfg"])

    def _address_fabric_container(self) -> None:
        lines = ["ip address flush dev eth0 scope global"]
        for number in (GATEWAY, VIPU):
            lines.append(f"ip address add {self.on_fabric(number)}/{self.fabric.prefixlen} dev eth0 nodad")
        self._shell("fabric", *lines)

    # -- hosts

    def _shell(self, role: str, *lines: str) -> None:
        podman("exec", self.container(role), "sh", "-ec", "\n".join(lines))

    def _host_files(self, host: str, parts: Parts) -> Path:
        """The files of a host before it starts: the operator's ssh key, the fabric address, the `vipu` stand-in."""
        tree = self.state / "hosts" / host
        shutil.rmtree(tree, ignore_errors=True)
        files = {
            "etc/testbed/fabric": f"{self.on_fabric(self.hosts[host])}/{self.fabric.prefixlen}\n",
            "etc/vipu-standin/mode": "json\n",
            "etc/vipu-standin/address": f"{self.on_fabric(VIPU)}\n",
            "root/.ssh/authorized_keys": self.key.with_suffix(".pub").read_text(),
            # The distribution's own packages, if roles install any.
            "etc/apt/keyrings/debian-mirror.asc": (parts.www / "apt/debian/Release.key").read_text(),
            "etc/apt/sources.list.d/debian.list": DEBIAN_SOURCE.format(self.management(MIRROR)),
        }
        for name, content in files.items():
            file = tree / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(content)
        (tree / "root").chmod(0o700)
        (tree / "root/.ssh").chmod(0o700)
        command = tree / "usr/local/bin/vipu"
        command.parent.mkdir(parents=True)
        shutil.copy2(parts.standins / "vipu", command)
        return tree

    def _start_host(self, host: str, parts: Parts) -> None:
        remove(self.container(host))
        number = self.hosts[host]
        names = [f"--add-host={name}:{self.management(other)}" for name, other in self.hosts.items()]
        names.append(f"--add-host=vipu-server:{self.on_fabric(VIPU)}")
        eth0 = f"interface_name=eth0,mac={self.mac(0, number)},ip={self.management(number)}"
        eth1 = f"interface_name=eth1,mac={self.mac(1, number)}"
        podman(
            "create", "--name", self.container(host), "--hostname", host, "--label", f"ipu-fabric={self.number}",
            "--privileged", "--cgroupns=private", "--systemd=always", *LIMITS, "--tmpfs", "/tmp:exec,mode=1777",
            *(f"--volume={path}" for path in VOLUMES), *names,
            "--network", f"{self.name}-management:{eth0}", "--network", f"{self.name}-fabric:{eth1}",
            image_name(parts, "host"), "sh", "-c", INIT,
        )  # fmt: skip
        podman("cp", f"{self._host_files(host, parts)}/.", f"{self.container(host)}:/")
        podman("start", self.container(host))
        self._connect_rails(host)

    def _connect_rails(self, host: str) -> None:
        """Connect the additional rails: the second rail is eth2, and so on."""
        present = output("podman", "inspect", "--format", "{{json .NetworkSettings.Networks}}", self.container(host))
        for rail in range(2, RAILS + 1):
            network = f"{self.name}-rail{rail}"
            if rail > self.rails:
                if network in json.loads(present):
                    podman("network", "disconnect", "--force", network, self.container(host))
                continue
            if network not in json.loads(present):
                mac = f"--mac-address={self.mac(rail, self.hosts[host])}"
                podman("network", "connect", mac, network, self.container(host))
            self._shell(
                host,
                f"ip address replace {self.on_rail(rail, self.hosts[host])} dev eth{rail}",
                f"ip link set eth{rail} up",
            )

    def _wait_for(self, host: str) -> None:
        """Wait until systemd has finished starting and ssh answers."""
        deadline = time.monotonic() + 180
        state = ""
        while time.monotonic() < deadline:
            state = podman("exec", self.container(host), "systemctl", "is-system-running", check=False).stdout.strip()
            if state in ("running", "degraded"):
                return
            time.sleep(0.3)
        raise ProblemError(f"{host} is `{state}` after 180 s: see `testbed exec {host} systemctl list-jobs`")

    # -- commands

    def up(self, parts: Parts) -> None:
        """Start everything that is not running."""
        with lock(f"testbed-{self.number}"), step(f"start {self.name}"):
            _raise_inotify_limits()
            self.state.mkdir(parents=True, exist_ok=True)
            ssh_key(self.key, self.name)
            (self.state / "parts").write_text("\n".join(str(part) for part in vars(parts).values()))
            self._networks()
            missing = [host for host in self.hosts if not self.running(host)]
            with ThreadPoolExecutor() as pool:
                jobs = [pool.submit(self._start_host, host, parts) for host in missing]
                jobs += [pool.submit(side, parts) for side in (self._mirror, self._fabric, self._balancer)]
            for job in jobs:
                job.result()
            for host in self.hosts:
                self._wait_for(host)

    def reset(self, parts: Parts, *hosts: str) -> None:
        """Replace hosts by fresh ones, all of them if none is named; the mirror stays."""
        with lock(f"testbed-{self.number}"):
            self._remove(*(hosts or self.hosts))
        self.up(parts)

    def down(self) -> None:
        """Remove everything of this testbed; built parts stay in the store."""
        with lock(f"testbed-{self.number}"):
            self._remove(*self._containers())
            for network in output("podman", "network", "ls", "--format", "{{.Name}}").split():
                if network.startswith(f"{self.name}-"):
                    podman("network", "rm", "--force", network, check=False)
            shutil.rmtree(self.state, ignore_errors=True)

    def _remove(self, *roles: str) -> None:
        if roles:
            remove(*(self.container(role) for role in roles))

    def set_fabric(self, text: str) -> None:
        """Give the second network another subnet, for hosts, gateway and V-IPU."""
        try:
            network = ipaddress.ip_network(text)
        except ValueError as error:
            raise ProblemError(f"`{text}` is no network: {error}") from error
        if network.num_addresses <= VIPU + 1:
            raise ProblemError(f"{network} is too small: V-IPU has the address with number {VIPU}; take /27 or larger")
        (self.state / "fabric").write_text(f"{network}\n")
        self._address_fabric_container()
        for host, number in self.hosts.items():
            self._shell(
                host,
                f"echo {self.on_fabric(number)}/{network.prefixlen} > /etc/testbed/fabric",
                f"echo {self.on_fabric(VIPU)} > /etc/vipu-standin/address",
                # /etc/hosts is a mount: it can be written, but not replaced.
                "names=$(grep -v vipu-server /etc/hosts)",
                f"printf '%s\\n' \"$names\" '{self.on_fabric(VIPU)} vipu-server' > /etc/hosts",
                "systemctl restart fabric-nic.service",
            )

    def set_rails(self, count: int) -> None:
        """Set the number of fabric NICs per host, each on its own network."""
        (self.state / "rails").write_text(f"{count}\n")
        self._networks()
        for host in self.hosts:
            self._connect_rails(host)

    def set_control_planes(self, count: int, virtual: bool = False) -> None:
        """Use one, or three behind a load balancer or with a virtual address; the next start creates what is needed."""
        with lock(f"testbed-{self.number}"):
            self._remove("balancer", *MORE_CONTROL_PLANES)
            self.state.mkdir(parents=True, exist_ok=True)
            kept = self.state / "control-planes"
            more = f"{count} virtual\n" if virtual else f"{count}\n"
            kept.write_text(more) if count > 1 else kept.unlink(missing_ok=True)

    def want(self, part: str, there: bool) -> None:
        """Include `kubernetes-next` or `calico` in the mirror, or not."""
        with lock(f"testbed-{self.number}"):
            self.state.mkdir(parents=True, exist_ok=True)
            kept = self.state / part
            kept.touch() if there else kept.unlink(missing_ok=True)

    def set_workers(self, count: int) -> None:
        self.state.mkdir(parents=True, exist_ok=True)
        (self.state / "worker-count").write_text(f"{count}\n")

    def set_vipu(self, mode: str) -> None:
        """Select how the `vipu` command answers; `missing` removes the command."""
        command, aside = "/usr/local/bin/vipu", "/etc/vipu-standin/vipu"
        move = f"mv {command} {aside}" if mode == "missing" else f"mv {aside} {command}"
        source = command if mode == "missing" else aside
        for host in self.hosts:
            self._shell(host, f"echo {mode} > /etc/vipu-standin/mode", f"if [ -e {source} ]; then {move}; fi")

    def execute(self, host: str, command: list[str]) -> int:
        """Run a command on a host in this terminal."""
        return podman("exec", "--interactive", self.container(host), *command, check=False, stdout=None).returncode


def remove(*containers: str) -> None:
    """Remove containers, in two attempts: podman notices that one was killed only when it fails to stop it."""
    command = ("rm", "--force", "--ignore", "--volumes", "--time", 0, *containers)
    if podman(*command, check=False).returncode:
        podman(*command)


def with_true_state(entry: dict[str, Any]) -> dict[str, Any]:
    """Correct podman's state: it stays `running` if a container was killed together with its monitor process."""
    if entry["State"] != "running":
        return entry
    process = Path(f"/proc/{entry['Pid']}")
    try:
        alive = entry["Id"] in (process / "cgroup").read_text()
        alive = alive and "State:\tZ" not in (process / "status").read_text()
    except OSError:
        alive = False
    return entry if alive else {**entry, "State": "killed"}


def ssh_key(key: Path, name: str) -> None:
    """Create a key pair unless it exists."""
    if not key.with_suffix(".pub").exists():
        key.unlink(missing_ok=True)
        run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", name, "-f", key)


def _raise_inotify_limits() -> None:
    """Raise limits of this machine, which all share: two hosts full of daemons need more watchers than the default."""
    for name, least in (("max_user_instances", 8192), ("max_user_watches", 1048576)):
        setting = Path("/proc/sys/fs/inotify") / name
        if int(setting.read_text()) < least:
            try:
                setting.write_text(str(least))
            except OSError as error:
                say(f"fs.inotify.{name} stays below {least} ({error}): daemons may fail with `too many open files`")


def testbed() -> Testbed:
    """The testbed selected by TESTBED_ID."""
    text = os.environ.get("TESTBED_ID", "0")
    if not (text.isdigit() and 0 <= int(text) <= 9):
        raise ProblemError(f"TESTBED_ID is `{text}`: it has to be a digit, 0 to 9")
    return Testbed(int(text))
