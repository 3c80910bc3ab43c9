"""Gives an ordinary NIC of a virtual machine RDMA: files for its disk, and the service to enable.

The NIC's RDMA device is on a macvlan of the same name in a separate network namespace. On the NIC itself, its GID table
would contain the addresses of all pods (as a real NIC's does, which serves them), and the kernel would look there
first: connections of pods fail with `rping` error 8. A pod has its own device, which standins/cni-plugins creates.
So the host's own address has no GID.
"""

from __future__ import annotations

DRIVER = "e1000e"  # its interface is directly below its PCI device, where the device plugin looks; virtio_net's is not
DEVICES = 16  # the NIC's and those of 15 pods; pods get all device files, some before the device exists
SERVICE = "soft-roce.service"

_SCRIPT = f"""\
set -eu
modprobe -a ib_umad rdma_ucm rdma_rxe macvlan
udevadm settle # names of NICs
[ -e /run/netns/soft-roce ] || ip netns add soft-roce
number=0
for driver in /sys/class/net/*/device/driver; do
    [ "$(basename "$(readlink "$driver")")" = {DRIVER} ] || continue
    nic=$(basename "${{driver%/device/driver}}")
    ip link set "$nic" up
    ip -n soft-roce link show "$nic" >/dev/null 2>&1 ||
        ip link add link "$nic" name "$nic" netns soft-roce type macvlan mode private
    ip -n soft-roce link set "$nic" addrgenmode none
    ip -n soft-roce link set "$nic" up
    [ -e "/sys/class/infiniband/rxe$number" ] ||
        ip netns exec soft-roce rdma link add "rxe$number" type rxe netdev "$nic"
    number=$((number + 1))
done
[ "$number" -gt 0 ]
"""
# On an overloaded machine, modprobe and udev time out.
_UNIT = """\
[Unit]
Description=RDMA devices of NICs (rdma_rxe)
After=systemd-udev-trigger.service
Before=network.target containerd.service kubelet.service
StartLimitIntervalSec=0
[Service]
Type=oneshot
RemainAfterExit=yes
Restart=on-failure
RestartSec=5
ExecStart=/bin/sh /usr/local/sbin/soft-roce
[Install]
WantedBy=multi-user.target
"""
_NODES = "".join(
    f"c /dev/infiniband/uverbs{number} 0666 root root - 231:{192 + number}\n"
    f"c /dev/infiniband/umad{number} 0600 root root - 231:{number}\n"
    for number in range(DEVICES)
)
FILES = {
    "etc/systemd/system/soft-roce.service": _UNIT,
    "etc/tmpfiles.d/soft-roce.conf": f"d /dev/infiniband 0755 root root -\n{_NODES}",
    "usr/local/sbin/soft-roce": _SCRIPT,
}
