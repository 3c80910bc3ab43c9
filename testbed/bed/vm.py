"""Virtual machines with what a container lacks: a kernel with RDMA (rdma_rxe), cgroup v2, every capability.

Software emulation, because nested KVM hangs on some machines that run tests. The userland is Debian stable; only the
kernel is newer, from stable's backports, because rdma_rxe supports network namespaces only since Linux 7.2. Debian
keeps no old backports, so the kernel can't be pinned: a built machine stays as it is until its inputs change, and
reports its kernel.
"""

from __future__ import annotations

import base64
import json
import os
import re
import shutil
import signal
import socket
import time
from dataclasses import dataclass
from pathlib import Path

from .build import need
from .common import CACHE, ProblemError, digest, lock, output, run, say, step, stored
from .hosts import ssh_key, testbed
from .trees import KEYRING, SLIM, chroot_apt, debian_mirror

SUITE, KERNEL_SUITE = "trixie", "trixie-backports"
NEEDED = {
    "debootstrap": "debootstrap", "mkfs.ext4": "e2fsprogs", "ssh": "openssh-client",
    "qemu-system-x86_64": "qemu-system-x86 ipxe-qemu seabios",
}  # fmt: skip
# The packages of a Debian server.
SERVER = (
    "systemd systemd-sysv dbus udev kmod openssh-server python3 iproute2 iputils-ping ethtool procps pciutils netbase "
    "rdma-core initramfs-tools zstd"
)
# RDMA tools, MPI, a container runtime, and what the checks of verify need where they run there.
PACKAGES = (
    f"{SERVER} ibverbs-providers ibverbs-utils rdmacm-utils perftest openmpi-bin python3-mpi4py "
    "python3-jmespath python3-netaddr containerd"
)
MANAGEMENT_MAC, FABRIC_MAC = "52:54:00:5f:00:01", "52:54:00:5f:00:02"
FABRIC_ADDRESS = "10.5.0.11"
BASE_FILES = {
    # Most drivers are useless here, and each would take time to write, compress and index.
    "etc/dpkg/dpkg.cfg.d/slim": SLIM
    + "".join(
        f"path-exclude={top}/modules/*/kernel/{part}/*\n"
        for top in ("/lib", "/usr/lib")
        for part in ("sound", "drivers/gpu", "drivers/media", "drivers/net/wireless", "drivers/staging", "drivers/iio")
    )
    # Dependencies of UCX's module for AMD GPUs. If they are missing, UCX skips the module.
    + "".join(
        f"path-exclude=/usr/lib/*/{name}.so*\n" for name in ("libLLVM-*", "libamd_comgr", "libamdhip64", "libz3")
    ),
    "etc/apt/apt.conf.d/90small": 'APT::Install-Recommends "false";\nAcquire::Languages "none";\n',
    # Only the disk and its file system: everything else is loaded from the disk.
    "etc/initramfs-tools/initramfs.conf": "MODULES=list\nBUSYBOX=n\nCOMPRESS=zstd\n",
    "etc/initramfs-tools/modules": "virtio_pci\nvirtio_blk\next4\n",
    "etc/ssh/sshd_config.d/testbed.conf": "PermitRootLogin prohibit-password\nUseDNS no\n",
}
FILES = BASE_FILES | {
    "etc/systemd/network/20-management.network": f"[Match]\nMACAddress={MANAGEMENT_MAC}\n"
    "[Network]\nAddress=10.0.2.15/24\nGateway=10.0.2.2\nIPv6AcceptRA=no\n",
    "etc/systemd/network/20-fabric.network": f"[Match]\nMACAddress={FABRIC_MAC}\n"
    f"[Network]\nAddress={FABRIC_ADDRESS}/24\nIPv6AcceptRA=no\nLinkLocalAddressing=ipv6\n",
    "etc/hostname": "roce\n",
    "etc/hosts": "127.0.0.1 localhost\n10.0.2.15 roce\n",
}
ENABLED = "systemd-networkd.service ssh.service"
DISABLED = "apt-daily.timer apt-daily-upgrade.timer dpkg-db-backup.timer e2scrub_all.timer fstrim.timer"
MASKED = (
    "systemd-networkd-wait-online.service systemd-firstboot.service getty.target serial-getty@ttyS0.service "
    "modprobe@drm.service modprobe@efi_pstore.service systemd-pstore.service e2scrub_reap.service dev-hugepages.mount"
)
# Mitigations, auditing and memory statistics are slow under emulation, and useless here.
BOOT = (
    "root=/dev/vda rw console=ttyS0 quiet systemd.show_status=0 mitigations=off audit=0 selinux=0 apparmor=0 "
    "damon_stat.enabled=N "
    # On a busy machine everything takes many times as long, which is not a fault.
    "systemd.default_timeout_start_sec=900 systemd.default_device_timeout_sec=900 systemd.service_watchdogs=0"
)
MEMORY_MB = 1024
DISK = "16G"  # sparse: unused space is not allocated
BOOT_SECONDS = 900  # a quiet machine needs a minute


# ---- the disk -------------------------------------------------------------------------------------------------------


# Nothing of the machine that built a disk stays on it, and no identity that all its machines would share.
OWN = "etc/resolv.conf etc/apt/sources.list etc/hostname var/lib/dbus/machine-id"


def _write(tree: Path, files: dict[str, str]) -> None:
    for name, content in files.items():
        file = tree / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content)


@dataclass(frozen=True)
class Disk:
    """A Debian system with this kernel, under a name in the store."""

    name: str
    packages: str
    files: dict[str, str]
    enabled: str
    disabled: str

    @property
    def key(self) -> str:
        parts = (self.packages, self.files, self.enabled, self.disabled)
        return digest(SUITE, KERNEL_SUITE, *parts, MASKED, DISK, OWN)

    @property
    def stored_name(self) -> str:
        return f"{self.name}-{self.key}"

    def _make(self, target: Path) -> None:
        """Fill target with disk.img, vmlinuz, initrd.img, and a file `kernel` with the kernel's release."""
        tree, mirror = target / "tree", debian_mirror()
        first = ("etc/dpkg/dpkg.cfg.d/slim", "etc/apt/apt.conf.d/90small")  # they apply from the first package on
        _write(tree, {name: self.files[name] for name in first})
        run("debootstrap", "--variant=minbase", f"--keyring={KEYRING}", SUITE, tree, mirror)
        sources = "".join(f"deb {mirror} {suite} main\n" for suite in (SUITE, KERNEL_SUITE))
        _write(tree, {"etc/apt/sources.list": sources})
        _write(tree, {name: text for name, text in self.files.items() if name.startswith("etc/initramfs-tools")})
        chroot_apt(tree, *self.packages.split(), "--option=Dpkg::Options::=--force-confold")
        chroot_apt(tree, "linux-image-amd64", f"--target-release={KERNEL_SUITE}")
        _write(tree, self.files)
        run("systemctl", f"--root={tree}", "enable", *self.enabled.split())
        run("systemctl", f"--root={tree}", "disable", *self.disabled.split())
        run("systemctl", f"--root={tree}", "mask", *MASKED.split())
        for own in set(OWN.split()) - self.files.keys():
            (tree / own).unlink(missing_ok=True)
        shutil.rmtree(tree / "var/lib/apt/lists")
        kernel = next((tree / "boot").glob("vmlinuz-*"))
        release = kernel.name.removeprefix("vmlinuz-")
        shutil.copyfile(kernel, target / "vmlinuz")
        shutil.copyfile(tree / f"boot/initrd.img-{release}", target / "initrd.img")
        (target / "kernel").write_text(f"{release}\n")
        file_system(tree, target / "disk.img")
        shutil.rmtree(tree)

    def built(self) -> Path:
        """The disk's directory in the store."""
        need(NEEDED)
        with lock("store", shared=True):
            return stored(self.name, self.key, self._make)


def file_system(tree: Path, image: Path) -> None:
    """A disk with this content. A journal would only take time: a machine's writes are discarded."""
    run("mkfs.ext4", "-q", "-F", "-O", "^has_journal", "-d", tree, image, DISK)


ROCE = Disk("vm", PACKAGES, FILES, ENABLED, f"{DISABLED} containerd.service")


# ---- running --------------------------------------------------------------------------------------------------------


def command(state: Path, place: Path, memory: int, devices: str, credentials: dict[str, str]) -> list[str]:
    """The emulator's command line. What the machine writes to its disks is lost when it ends.

    One thread and an old processor: with several, or with all features, Linux 7 panics on QEMU 7.2."""
    words = f"""
        qemu-system-x86_64 -accel tcg,thread=single -cpu Nehalem -smp 1 -m {memory}
        -kernel {place}/vmlinuz -initrd {place}/initrd.img {drive(place / "disk.img")} {devices}
        -device virtio-rng-pci -nodefaults -display none -serial file:{state}/console
        -daemonize -pidfile {state}/pid
    """.split()
    for name, value in credentials.items():
        encoded = base64.b64encode(value.encode()).decode()
        words += ["-smbios", f"type=11,value=io.systemd.credential.binary:{name}={encoded}"]
    return [*words, "-append", BOOT]


def drive(image: Path) -> str:
    return f"-drive file={image},format=raw,if=virtio,snapshot=on,cache=unsafe"


def boot_fault(console: str) -> str:
    """Why the kernel gave up, from the serial console; empty if it did not."""
    found = re.search(r"Kernel panic - not syncing: .*|Gave up waiting for root.*|.*Out of memory: .*", console)
    return found.group(0).strip() if found else ""


@dataclass(frozen=True)
class Machine:
    """A machine whose files are all in `state`, and which answers ssh at address and port."""

    state: Path
    key: Path
    address: str
    port: int = 22

    def pid(self) -> int:
        """The emulator's process; 0 if it is not running."""
        file = self.state / "pid"
        number = int(file.read_text()) if file.exists() else 0
        words = Path(f"/proc/{number}/cmdline")
        return number if number and words.exists() and str(file).encode() in words.read_bytes() else 0

    def ssh(self, *words: str) -> list[str]:
        quiet = ("StrictHostKeyChecking=no", "UserKnownHostsFile=/dev/null", "LogLevel=ERROR")
        options = [part for option in quiet for part in ("-o", option)]
        return ["ssh", "-i", str(self.key), "-p", str(self.port), *options, f"root@{self.address}", *words]

    def kernel(self) -> str:
        return (Path((self.state / "parts").read_text().split()[0]) / "kernel").read_text().strip()

    def _console(self) -> str:
        file = self.state / "console"
        return file.read_text(errors="replace") if file.exists() else ""

    def _greets(self) -> bool:
        """Whether ssh answers. The emulator accepts connections before anything listens inside."""
        try:
            with socket.create_connection((self.address, self.port), timeout=5) as connection:
                return connection.recv(4) == b"SSH-"
        except OSError:
            return False

    def wait(self) -> None:
        """Wait until it has booted."""
        deadline = time.monotonic() + BOOT_SECONDS
        while not self._greets():
            fault = boot_fault(self._console()) or ("" if self.pid() else "the emulator ended")
            if not fault and time.monotonic() > deadline:
                fault = f"no ssh after {BOOT_SECONDS} s"
            if fault:
                tail = "\n".join(self._console().splitlines()[-15:])
                raise ProblemError(
                    f"Linux {self.kernel()} does not boot: {fault}. The end of {self.state}/console:\n{tail}\n"
                    f"If it is the kernel's fault, choose another suite for it: KERNEL_SUITE in {__file__}"
                )
            time.sleep(1)
        output(*self.ssh("systemctl", "is-system-running", "--wait"), check=False)

    def start(self, places: list[Path], memory: int, devices: str, credentials: dict[str, str]) -> None:
        """Start it from scratch; the first place has kernel and root disk, and all places are in use from now on."""
        self.state.mkdir(parents=True, exist_ok=True)
        (self.state / "parts").write_text("".join(f"{place}\n" for place in places))
        (self.state / "console").unlink(missing_ok=True)
        public_key = self.key.with_suffix(".pub").read_text()
        run(*command(self.state, places[0], memory, devices, {"ssh.authorized_keys.root": public_key, **credentials}))

    def stop(self) -> None:
        """Stop it, and discard what it wrote."""
        number = self.pid()
        if number:
            os.kill(number, signal.SIGTERM)
            while self.pid():
                time.sleep(0.1)
        shutil.rmtree(self.state, ignore_errors=True)

    def execute(self, words: list[str]) -> int:
        if not self.pid():
            raise ProblemError(f"the machine of {self.state} does not run: `testbed vm up` or `testbed workers` first")
        return run(*self.ssh(*words), check=False, stdout=None).returncode


# ---- the separate machine -------------------------------------------------------------------------------------------


def _state(number: int) -> Path:
    return CACHE / "vm" / str(number)  # not below testbed/, which `testbed down` removes


def alone(number: int) -> Machine:
    """The separate machine of a TESTBED_ID."""
    state = _state(number)
    return Machine(state, state / "id_ed25519", "127.0.0.1", 22220 + number)


def devices(port: int) -> str:
    """Its NICs: only this machine may connect to it, and nothing gets out."""
    return (
        f"-netdev user,id=management,restrict=on,hostfwd=tcp:127.0.0.1:{port}-:22 "
        f"-device virtio-net-pci,netdev=management,mac={MANAGEMENT_MAC} "
        f"-netdev user,id=fabric,restrict=on,net=10.5.0.0/24 -device virtio-net-pci,netdev=fabric,mac={FABRIC_MAC}"
    )


def _inventory(machine: Machine) -> Path:
    host = {
        "ansible_host": machine.address,
        "ansible_port": machine.port,
        "ansible_user": "root",
        "ansible_ssh_private_key_file": str(machine.key),
        "ansible_ssh_common_args": "-o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null "
        "-o LogLevel=ERROR -o ControlPersist=600",
        "ansible_ssh_pipelining": True,
        "ansible_python_interpreter": "/usr/bin/python3",
        "ansible_timeout": 60,
    }
    groups: dict[str, object] = {name: {"hosts": {"roce": {}}} for name in ("kube_control_plane", "kube_node")}
    place = machine.state / "inventory" / "hosts.json"
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(json.dumps({"all": {"hosts": {"roce": host}, "children": groups}}, indent=2))
    return place


def _up(number: int) -> None:
    """Boot it from scratch, unless it is running."""
    place, machine = ROCE.built(), alone(number)
    with lock(f"vm-{number}"):
        if machine.pid():
            return
        machine.state.mkdir(parents=True, exist_ok=True)
        ssh_key(machine.key, f"ipu-fabric-vm-{number}")
        with step(f"boot Linux {(place / 'kernel').read_text().strip()} under software emulation"):
            machine.start([place], MEMORY_MB, devices(machine.port), {})
            machine.wait()
        say(f"inventory: {_inventory(machine)}")


def status(number: int) -> str:
    machine = alone(number)
    process = machine.pid()
    if not process:
        return "does not run"
    return f"Linux {machine.kernel()}, process {process}, ssh on {machine.address}:{machine.port}"


def act(action: str, words: list[str]) -> int | None:
    """Run a command of `testbed vm`."""
    number = testbed().number
    if action == "ssh":
        return alone(number).execute(words)
    if action == "status":
        print(status(number))
    elif action == "up":
        _up(number)
    else:
        with lock(f"vm-{number}"):
            alone(number).stop()
    return None


def used() -> set[str]:
    """Names in the store that are used by running machines."""
    kept = [*(CACHE / "vm").glob("*/parts"), *(CACHE / "testbed").glob("*/workers/*/parts")]
    return {Path(line).name for file in kept for line in file.read_text().splitlines()}
