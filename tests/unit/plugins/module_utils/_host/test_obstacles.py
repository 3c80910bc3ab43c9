"""What of a host's own setup keeps a node or its pods from working, as people have reported it."""

from __future__ import annotations

import pathlib
import typing as t

import pytest
from ansible_collections.ipu.fabric.plugins.module_utils._host import obstacles
from ansible_collections.ipu.fabric.plugins.module_utils._host.obstacles import filesystem_of, read_obstacles
from ansible_collections.ipu.fabric.tests.unit.fixtures.sysfs import Tree

DISKLESS = """\
rootfs / rootfs rw 0 0
10.0.0.2:/images/node / nfs4 rw,relatime 0 0
tmpfs /var tmpfs rw 0 0
/dev/nvme0n1p1 /var/lib/containerd\\040old ext4 rw 0 0
"""
POD_RULE = "### tuple ### allow any any 0.0.0.0/0 any 10.244.0.0/16 in\n-A ufw-user-input -s 10.244.0.0/16 -j ACCEPT\n"


def put(root: pathlib.Path, files: t.Mapping[str, str]) -> str:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return str(root)


def process(name: str, *arguments: str, pid: int = 700) -> t.Dict[str, str]:
    return {f"proc/{pid}/comm": f"{name}\n", f"proc/{pid}/cmdline": "\0".join([f"/usr/bin/{name}", *arguments, ""])}


@pytest.mark.parametrize(
    ("mounts", "found"),
    [
        ("overlay / overlay rw 0 0\n", "overlay"),  # containerd#2071
        ("overlay / overlay rw 0 0\n/dev/sda1 /var/lib/containerd xfs rw 0 0\n", "xfs"),
        (DISKLESS.replace("tmpfs /var tmpfs rw 0 0\n", ""), "nfs4"),  # containerd#5464
        (DISKLESS, "tmpfs"),
        ("/dev/sda1 /var/lib/containers ext4 rw 0 0\nproc /proc proc rw 0 0\n", ""),
    ],
)
def test_the_file_system_of_images(mounts: str, found: str) -> None:
    assert filesystem_of("/var/lib/containerd", mounts) == found


@pytest.mark.parametrize(
    ("arguments", "found"),
    [
        (["--config=/var/lib/kubelet/config.yaml"], "/var/lib/kubelet"),
        (["--root-dir=/data/kubelet"], "/data/kubelet"),  # k8s-rdma-shared-dev-plugin#96
        (["--root-dir", "/data/kubelet/", "--v=2"], "/data/kubelet"),
        (["--root-dir=/var/lib/kubelet/"], "/var/lib/kubelet"),
        (["--root-dir=/linked/kubelet"], "/var/lib/kubelet"),
    ],
)
def test_the_directory_of_the_kubelet(arguments: t.List[str], found: str, tmp_path: pathlib.Path) -> None:
    (tmp_path / "linked/kubelet").mkdir(parents=True)
    (tmp_path / "var/lib").mkdir(parents=True)
    (tmp_path / "var/lib/kubelet").symlink_to(tmp_path / "linked/kubelet")
    assert read_obstacles(put(tmp_path, process("kubelet", *arguments)), [])["kubelet_directory"] == found


def test_a_kubelet_in_a_container_is_not_the_hosts(tmp_path: pathlib.Path) -> None:
    root = put(tmp_path, process("kubelet", "--root-dir=/kind/kubelet"))
    for number, name in ((1, "pid:[4026531836]"), (700, "pid:[4026532999]")):
        (tmp_path / f"proc/{number}/ns").mkdir(parents=True, exist_ok=True)
        (tmp_path / f"proc/{number}/ns/pid").symlink_to(name)
    assert read_obstacles(root, [])["kubelet_directory"] == ""


def test_a_host_without_any(tmp_path: pathlib.Path) -> None:
    seen = read_obstacles(str(tmp_path), ["overlay"])
    assert not any(seen.values())


@pytest.mark.parametrize(
    ("file", "text", "found"),
    [
        ("etc/modprobe.d/cis.conf", "install rdma_ucm /bin/true\n", {"rdma_ucm": "/etc/modprobe.d/cis.conf"}),
        (
            "usr/lib/modprobe.d/a.conf",
            "install br-netfilter /bin/false\n",
            {"br_netfilter": "/usr/lib/modprobe.d/a.conf"},
        ),
        ("etc/modprobe.d/a.conf", "# install macvlan /bin/true\nblacklist macvlan\n", {}),  # only keeps aliases away
        ("etc/modprobe.d/a.conf", "install cramfs /bin/true\ninstall macvlan /sbin/modprobe -i macvlan\n", {}),
        (
            "proc/cmdline",
            "ro module_blacklist=nouveau,ib_umad\n",
            {"ib_umad": "module_blacklist of the kernel's command line"},
        ),
    ],
)
def test_modules_that_are_not_to_be_loaded(
    file: str, text: str, found: t.Dict[str, str], tmp_path: pathlib.Path
) -> None:
    assert read_obstacles(put(tmp_path, {file: text}), ["br_netfilter"])["unloadable"] == found


@pytest.mark.parametrize(
    ("files", "found"),
    [
        (process("NetworkManager"), True),  # rke2#786
        ({}, False),
        (
            {
                **process("NetworkManager"),
                "etc/NetworkManager/conf.d/rke2-canal.conf": "[keyfile]\n"
                "unmanaged-devices=interface-name:cali*;interface-name:flannel*\n",
            },
            False,
        ),
        (
            {
                **process("NetworkManager"),
                "etc/NetworkManager/conf.d/own.conf": "[keyfile]\nunmanaged-devices=interface-name:eno1\n",
            },
            True,
        ),
    ],
)
def test_network_manager_and_the_interfaces_of_pods(
    files: t.Mapping[str, str], found: bool, tmp_path: pathlib.Path
) -> None:
    assert read_obstacles(put(tmp_path, files), [])["network_manager"] is found


@pytest.mark.parametrize(
    ("files", "name", "sources"),
    [
        ({"etc/ufw/ufw.conf": "# ufw\nENABLED=no\n"}, "", []),
        ({"etc/ufw/ufw.conf": "ENABLED=yes\n"}, "ufw", []),
        ({"etc/ufw/ufw.conf": "ENABLED=yes\n", "etc/ufw/user.rules": POD_RULE}, "ufw", ["10.244.0.0/16"]),
        (
            {"etc/ufw/ufw.conf": "ENABLED=yes\n", "etc/ufw/user.rules": POD_RULE.replace("any any 0", "tcp 22 0")},
            "ufw",
            [],
        ),
        (
            {
                **process("firewalld"),
                "etc/firewalld/zones/trusted.xml": '<zone><source address="10.244.0.0/16"/></zone>',
            },
            "firewalld",
            ["10.244.0.0/16"],
        ),
    ],
)
def test_the_firewall(files: t.Mapping[str, str], name: str, sources: t.List[str], tmp_path: pathlib.Path) -> None:
    seen = read_obstacles(put(tmp_path, files), [])
    assert (seen["firewall"], seen["firewall_sources"]) == (name, sources)


@pytest.mark.parametrize(
    ("driver", "features", "found"),
    [
        ("vmxnet3", "tx-udp_tnl-segmentation: on\n", ["ens192"]),  # calico#4727, kubespray#12412, flannel#2152
        ("vmxnet3", "", ["ens192"]),  # no ethtool
        ("vmxnet3", "tx-tcp-segmentation: on\ntx-udp_tnl-segmentation: off\n", []),
        ("vmxnet3", "\ttx-udp_tnl-segmentation: off [fixed]\n", []),
        ("mlx5_core", "tx-udp_tnl-segmentation: on\n", []),
    ],
)
def test_virtual_nics_that_divide_packets_in_tunnels(
    driver: str, features: str, found: t.List[str], tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tree = Tree(tmp_path)
    tree.netdev("ens192", tree.pci("0000:0b:00.0", driver))
    monkeypatch.setattr(obstacles, "output_of", lambda *_argv, timeout: features)
    assert read_obstacles(str(tmp_path), [])["tunnel_offloads"] == found


def test_numbers_of_the_kernel(tmp_path: pathlib.Path) -> None:
    root = put(
        tmp_path,
        {
            "sys/fs/cgroup/cgroup.controllers": "cpuset cpu io\n",
            "proc/sys/net/ipv4/neigh/default/gc_thresh3": "1024\n",
        },
    )
    seen = read_obstacles(root, [])
    assert (seen["controllers"], seen["neighbours"]) == (["cpuset", "cpu", "io"], 1024)
