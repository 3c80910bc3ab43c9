"""What a host says about itself, from its files."""

from __future__ import annotations

import base64
import os
import pathlib
import types

import pytest
from ansible_collections.ipu.fabric.plugins.module_utils._host import facts as host_facts

ROUTES = (
    "Iface\tDestination\tGateway\tFlags\tRefCnt\tUse\tMetric\tMask\tMTU\tWindow\tIRTT\n"
    "eno1\t00000000\t0100580A\t0003\t0\t0\t0\t00000000\t0\t0\t0\n"
    "ens1f0\t0000050A\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0\n"
)
TCP = (
    "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
    "   0: 00000000:192B 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 4242 1 0 100 0 0 10 0\n"
    "   1: 0100007F:2379 0100007F:1234 01 00000000:00000000 00:00000000 00000000     0        0 4243 1 0 100 0 0 10 0\n"
)

CA = "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n"

QUESTIONS = host_facts.Questions([6443, 2379], ["overlay", "macvlan"], ["/var/lib/none"], ["localhost"], 0, "")


@pytest.fixture
def root(tmp_path: pathlib.Path) -> pathlib.Path:
    files = {
        "etc/os-release": 'PRETTY_NAME="Debian"\nID=debian\nVERSION_ID="12"\nVERSION_CODENAME=bookworm\n# x=y\n',
        "etc/machine-id": "3d1219c7\n",
        "etc/kubernetes/kubelet.conf": "clusters:\n- cluster:\n    server: https://10.88.0.11:6443\n",
        "etc/kubernetes/pki/ca.crt": CA,
        "proc/meminfo": "MemTotal:        8167848 kB\nMemFree: 1 kB\n",
        "proc/1/limits": "Max locked memory         8388608              unlimited            bytes     \n",
        "proc/swaps": "Filename\tType\tSize\tUsed\tPriority\n/swapfile file 1 0 -2\n",
        "proc/net/route": ROUTES,
        "proc/net/tcp": TCP,
        "proc/net/tcp6": "",
        "proc/filesystems": "nodev\tproc\nnodev\toverlay\n\text4\n",
        "proc/modules": "bridge 1 0 - Live 0x0\n",
        "sys/class/net/eno1/address": "0c:42:a1:00:00:01\n",
        "sys/class/net/ens1f0/address": "0c:42:a1:00:00:02\n",
        "sys/class/net/ens1f0/device/vendor": "0x15b3",
        "sys/class/net/cali1/address": "ee:ee:ee:ee:ee:ee\n",
        "sys/class/net/lo/address": "00:00:00:00:00:00\n",
        "sys/fs/cgroup/cgroup.controllers": "cpu memory",
        "lib/modules/6.1/modules.dep": "kernel/drivers/net/macvlan.ko.xz: \nkernel/net/8021q/8021q.ko:\n",
        "lib/modules/6.1/modules.builtin": "kernel/net/bridge/br-netfilter.ko\n",
    }
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (tmp_path / "var/lib/rancher/k3s").mkdir(parents=True)
    return tmp_path


def test_read_host(root):
    seen = host_facts.read_host(QUESTIONS, root=str(root))
    assert (seen["distribution"], seen["version"], seen["release"]) == ("debian", "12", "bookworm")
    assert seen["machine_id"] == "3d1219c7"
    assert seen["memory_mb"] == 7976
    assert seen["swap"] == ["/swapfile"]
    assert seen["ports_busy"] == [{"port": 6443, "process": ""}]
    assert seen["macs"] == ["0c:42:a1:00:00:01", "0c:42:a1:00:00:02"]
    assert seen["cgroup"] == "v2"
    assert seen["locked_memory"] == "unlimited"
    assert seen["kubelet"]["server"] == "10.88.0.11:6443"
    assert seen["kubelet"]["cluster"] == host_facts.ca_digest(CA)
    assert seen["other_kubernetes"] == ["k3s"]
    assert seen["disk_mb"]["/var/lib/none"] > 0
    assert seen["dns"] == {"localhost": True}
    assert seen["time"]["asked"] == 0
    assert not seen["systemd"]


@pytest.mark.parametrize(
    ("files", "given", "path", "servers"),
    [
        ({"etc": "# nameserver 10.0.0.9\nnameserver 10.0.0.1\nsearch a\n"}, "", "/etc/resolv.conf", ["10.0.0.1"]),
        ({"etc": "nameserver 127.0.0.53\n", "run/systemd/resolve": "nameserver 10.0.0.1\nnameserver fd00::1\n"}, "",
         "/run/systemd/resolve/resolv.conf", ["10.0.0.1", "fd00::1"]),
        ({"etc": "nameserver 127.0.0.1\n", "srv": "nameserver 10.0.0.1\n"}, "/srv/resolv.conf", "/srv/resolv.conf",
         ["10.0.0.1"]),
        ({}, "", "/etc/resolv.conf", []),
    ],
)  # fmt: skip
def test_the_resolver_of_pods(tmp_path, files, given, path, servers):
    for folder, text in files.items():
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "resolv.conf").write_text(text)
    if "run/systemd/resolve" in files:
        (tmp_path / "proc/17").mkdir(parents=True)
        (tmp_path / "proc/17/comm").write_text("systemd-resolve\n")
    assert host_facts.read_resolver(str(tmp_path), given) == {"path": path, "servers": servers}


def test_a_resolver_that_was_stopped_has_left_its_file(tmp_path):
    for folder, server in (("run/systemd/resolve", "10.0.0.53"), ("etc", "127.0.0.53")):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "resolv.conf").write_text(f"nameserver {server}\n")
    found = host_facts.read_resolver(str(tmp_path), "")
    assert found == {"path": "/etc/resolv.conf", "servers": ["127.0.0.53"]}


def test_the_usb_nic_of_a_bmc_is_no_sign_of_a_clone(tmp_path):
    """Boards of one maker have the same MAC on it."""
    at = {
        "eno1": "pci0000:00/0000:00:1c.0/net",
        "enxb03af2b6059f": "pci0000:00/usb1/1-14",
        "usb0": "pci0000:00/usb1/1-2",
    }
    for number, (name, path) in enumerate(at.items()):
        device, netdev = tmp_path / "sys/devices" / path, tmp_path / "sys/class/net" / name
        device.mkdir(parents=True)
        netdev.mkdir(parents=True)
        (netdev / "device").symlink_to(device)
        (netdev / "address").write_text(f"0c:42:a1:00:00:0{number}\n")
    assert host_facts.list_macs(str(tmp_path)) == ["0c:42:a1:00:00:00"]


def test_a_process_that_closes_files_still_owns_its_port(root):
    folder = root / "proc/17/fd"
    folder.mkdir(parents=True)
    (root / "proc/17/comm").write_text("kube-apiserver\n")
    inode = host_facts.parse_listening((root / "proc/net/tcp").read_text())[6443]
    for number in range(9):  # no links: reading them fails as it does when a file was closed after the listing
        (folder / str(number)).touch()
    (folder / "4").unlink()
    (folder / "4").symlink_to(f"socket:[{inode}]")
    assert host_facts.busy_ports(str(root), [6443]) == [{"port": 6443, "process": "kube-apiserver"}]


@pytest.mark.parametrize(
    ("asked", "read", "arrived", "offset"),
    [
        (0.0, 5000.0, 1000.0, 0),  # nobody asked
        (1000.0, 1043.0, 1050.0, 0),  # a connection that took 43 s
        (1000.0, 1400.0, 1050.0, 350),
        (1000.0, 600.0, 1050.0, -400),
    ],
)
def test_a_slow_connection_is_not_a_wrong_clock(asked, read, arrived, offset):
    assert host_facts.clock_offset(asked, read, arrived) == offset


@pytest.mark.parametrize(
    ("release", "name", "there"),
    [
        ("6.1", "overlay", True),
        ("6.1", "bridge", True),
        ("6.1", "macvlan", True),
        ("6.1", "br_netfilter", True),
        ("6.1", "8021q", True),
        ("6.1", "bonding", False),
        ("6.2", "bonding", None),
        ("6.2", "overlay", True),
    ],
)
def test_module_available(root, release, name, there):
    assert host_facts.module_available(str(root), release, name) is there


@pytest.mark.parametrize(("folder", "kind"), [("unified", "hybrid"), ("memory", "v1"), ("cgroup.controllers", "v2")])
def test_cgroup(tmp_path, folder, kind):
    (tmp_path / "sys/fs/cgroup" / folder).mkdir(parents=True)
    assert host_facts.cgroup_version(str(tmp_path)) == kind


@pytest.mark.parametrize(
    ("text", "server"),
    [
        ("    server: https://10.0.0.1:6443\n", "10.0.0.1:6443"),
        ('  server: "https://[fd00::1]:6443/"\n', "[fd00::1]:6443"),
        ("nothing", ""),
    ],
)
def test_parse_server(text, server):
    assert host_facts.parse_server(text) == server


def test_the_ca_that_a_kubeconfig_trusts(tmp_path):
    pem = "-----BEGIN CERTIFICATE-----\nabc\n-----END CERTIFICATE-----\n"
    digest = host_facts.ca_digest(pem)
    data = base64.b64encode(pem.encode()).decode()
    assert host_facts.trusted_ca(f"clusters:\n- cluster:\n    certificate-authority-data: {data}\n") == digest
    (tmp_path / "ca.crt").write_text(pem)
    assert host_facts.trusted_ca("    certificate-authority: /ca.crt\n", str(tmp_path)) == digest
    assert host_facts.trusted_ca("    certificate-authority: /none\n", str(tmp_path)) == ""
    assert host_facts.trusted_ca("    certificate-authority-data: '@@'\n") == ""
    assert host_facts.trusted_ca("nothing") == ""


def test_a_name_server_that_does_not_answer_is_not_waited_for(monkeypatch):
    monkeypatch.setattr(host_facts, "SECONDS", 0.05)
    monkeypatch.setattr(host_facts.socket, "getaddrinfo", lambda name, port: host_facts.time.sleep(2))
    assert host_facts.resolve_names(["slow.example", ""]) == {"slow.example": False}


def test_the_first_certificate_names_a_cluster():
    """While a CA is being replaced, the file has both."""
    other = CA.replace("MIIB", "MIIC")
    assert host_facts.ca_digest(CA) == host_facts.ca_digest(f"# old\n{CA}{other}")
    assert host_facts.ca_digest(other) not in (host_facts.ca_digest(CA), "")
    assert host_facts.ca_digest("") == host_facts.ca_digest("certificate") == ""


@pytest.mark.parametrize(("flags", "found"), [(0, []), (os.ST_NOEXEC, ["/opt/cni/bin", "/root/.ansible/tmp"])])
def test_directories_that_programs_can_not_be_run_from(tmp_path, monkeypatch, flags, found):
    """Of those that are not there yet, the directory above decides."""
    (tmp_path / "opt").mkdir()
    asked = []

    def statvfs(path):
        asked.append(path)
        return types.SimpleNamespace(f_flag=flags | os.ST_NOSUID)

    monkeypatch.setattr(host_facts.os, "statvfs", statvfs)
    questions = QUESTIONS._replace(run_from=["/opt/cni/bin", "/root/.ansible/tmp"])
    wanted = [path for path in questions.run_from if host_facts.forbids_programs(str(tmp_path), path)]
    assert wanted == found
    assert asked == [str(tmp_path / "opt"), str(tmp_path)]


@pytest.mark.parametrize(
    ("refused", "cidr", "address", "there"),
    [
        (False, "10.96.0.0/12", "10.96.0.1", True),
        (True, "10.96.0.0/12", "10.96.0.1", False),
        (True, " fd00:10:96::/112", "fd00:10:96::1", False),
        (True, "10.96.0.0/x", "", True),  # the plan says what is wrong with it
    ],
)
def test_whether_there_is_a_route_to_services(monkeypatch, refused, cidr, address, there):
    asked = []

    class Socket:
        def __init__(self, family, _kind):
            self.family = family

        def __enter__(self):
            return self

        def __exit__(self, *_):
            return None

        def connect(self, address):
            asked.append((self.family, address[0]))
            if refused:
                raise OSError(101, "Network is unreachable")

    monkeypatch.setattr(host_facts.socket, "socket", Socket)
    assert host_facts.has_route(cidr) == there
    family = host_facts.socket.AF_INET6 if ":" in cidr else host_facts.socket.AF_INET
    assert asked == [(family, address)] * bool(address)
