"""Virtual machines that are worker nodes of a testbed's cluster, on the same two networks as its containers.

All start from the same two disks: Debian with the kernel of vm.py, and a store with what a node pulls and downloads,
because both take minutes under emulation. The emulator gives a machine its identity, as systemd credentials.
"""

from __future__ import annotations

import json
import uuid
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from . import baked, soft_roce
from .build import Parts
from .common import lock, output, run, step
from .hosts import VIPU, WORKERS, Testbed
from .vm import BASE_FILES, DISABLED, ENABLED, SERVER, Disk, Machine, drive

# What the testbed's other hosts have too. Everything else comes from the mirror, by the roles.
PACKAGES = (
    f"{SERVER} ibverbs-providers sudo ca-certificates curl gpg python3-apt conntrack socat iptables nftables less "
    "libseccomp2 nfs-common nfs-kernel-server"
)
# A test that needs the NFS server starts it: the containers' kernel has neither the server nor its client.
IDLE = "nfs-server.service rpcbind.service rpcbind.socket"
MANAGEMENT, FABRIC = "ens3", "ens8"  # by the slots of the NICs
BAKED = "/srv/baked"  # the second disk, see baked.py
FILES = (
    BASE_FILES
    | soft_roce.FILES
    | {
        # An empty file: each machine gets its own ID, and does not treat this as its first boot.
        "etc/machine-id": "",
        # While others use this machine too, udev takes minutes to find the disk.
        "etc/fstab": f"""/dev/vdb {BAKED} ext4 x-systemd.device-timeout=10min 0 0
{BAKED}/containerd /var/lib/containerd none bind,x-systemd.requires-mounts-for={BAKED} 0 0
""",
        "etc/apt/apt.conf.d/90baked": f'Dir::Cache::archives "{BAKED}/debs/";\n',
        "etc/tmpfiles.d/vipu.conf": f"L+ /usr/local/bin/vipu - - - - {BAKED}/bin/vipu\n"
        "f+ /etc/vipu-standin/mode - - - - json\n",
    }
)
MEMORY_MB = 2048
NEWLINE = "\\n"  # as tmpfiles.d escapes it
ROOT_DISK = Disk("worker", PACKAGES, FILES, f"{ENABLED} {soft_roce.SERVICE}", f"{DISABLED} {IDLE}")


# ---- running --------------------------------------------------------------------------------------------------------


def machine(testbed: Testbed, host: str) -> Machine:
    return Machine(testbed.state / "workers" / host, testbed.key, testbed.management(WORKERS[host]))


def tap(testbed: Testbed, host: str, network: str) -> str:
    return f"ipu{testbed.number}-{host}-{network[:1]}"  # at most 15 characters


def _plug_in(testbed: Testbed, host: str, network: str) -> None:
    """Create a port for the machine on the bridge of a network."""
    bridge = json.loads(output("podman", "network", "inspect", f"{testbed.name}-{network}"))[0]["network_interface"]
    port = tap(testbed, host, network)
    if not Path("/sys/class/net", port).exists():
        run("ip", "tuntap", "add", "dev", port, "mode", "tap")
    run("ip", "link", "set", "dev", port, "master", bridge, "up")


def _devices(testbed: Testbed, host: str, store: Path) -> str:
    """The store's disk and two NICs. The device plugin finds a NIC's RDMA device only by its PCI function, and virtio's
    NICs are one level below that."""
    words = f"-uuid {uuid.uuid5(uuid.NAMESPACE_OID, testbed.container(host))} {drive(store / 'baked.img')}"
    nics = (("management", "virtio-net-pci", 0x3), ("fabric", "e1000e", 0x8))
    for number, (network, model, slot) in enumerate(nics):
        mac = testbed.mac(number, WORKERS[host])
        words += (
            f" -netdev tap,id={network},ifname={tap(testbed, host, network)},script=no,downscript=no"
            f" -device {model},netdev={network},mac={mac},addr={slot:#x},romfile="
        )
    return words


def credentials(testbed: Testbed, host: str) -> dict[str, str]:
    number = WORKERS[host]
    networks = {
        "management": (MANAGEMENT, f"{testbed.management(number)}/24", f"Gateway={testbed.management(1)}\n"),
        "fabric": (FABRIC, f"{testbed.on_fabric(number)}/{testbed.fabric.prefixlen}", ""),
    }
    names = ("127.0.0.1 localhost", f"{testbed.management(number)} {host}", f"{testbed.on_fabric(VIPU)} vipu-server")
    files = {
        "/etc/hosts": names,
        # Nobody answers there, as on air-gapped hosts; without the file, no pod starts.
        "/etc/resolv.conf": (f"nameserver {testbed.management(1)}",),
        "/etc/vipu-standin/address": (testbed.on_fabric(VIPU),),
    }
    return {
        "system.hostname": host,
        # networkd does not wait for files from tmpfiles.
        **{
            f"network.network.20-{network}": f"[Match]\nName={nic}\n"
            f"[Network]\nAddress={address}\n{more}IPv6AcceptRA=no\n"
            for network, (nic, address, more) in networks.items()
        },
        "tmpfiles.extra": "".join(
            f"f+ {name} 0644 root root - {''.join(f'{line}{NEWLINE}' for line in lines)}\n"
            for name, lines in files.items()
        ),
    }


def up(testbed: Testbed, parts: Parts) -> None:
    """Boot the workers that are not running."""
    missing = [host for host in testbed.workers if not machine(testbed, host).pid()]
    if not missing:
        return
    places = [ROOT_DISK.built(), baked.built(parts)]
    kernel = (places[0] / "kernel").read_text().strip()
    with lock(f"testbed-{testbed.number}"), step(f"boot {' and '.join(missing)} with Linux {kernel}"):
        for host in missing:
            for network in ("management", "fabric"):
                _plug_in(testbed, host, network)
            machine(testbed, host).start(
                places, MEMORY_MB, _devices(testbed, host, places[1]), credentials(testbed, host)
            )
        with ThreadPoolExecutor() as pool:
            for job in [pool.submit(machine(testbed, host).wait) for host in missing]:
                job.result()


def down(testbed: Testbed, *hosts: str) -> None:
    """Stop them, and discard what they wrote."""
    with lock(f"testbed-{testbed.number}"):
        for host in hosts:
            machine(testbed, host).stop()
            for network in ("management", "fabric"):
                run("ip", "link", "delete", "dev", tap(testbed, host, network), check=False)


def status(testbed: Testbed) -> list[str]:
    rows = []
    for host in testbed.workers:
        state = "running" if machine(testbed, host).pid() else "missing"
        number = WORKERS[host]
        rows.append(f"  {host:9} {state:9} {testbed.management(number)}, {testbed.on_fabric(number)}")
    return rows
