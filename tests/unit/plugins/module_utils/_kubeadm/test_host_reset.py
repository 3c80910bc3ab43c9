"""A host of files and programs that write down how they were called."""

import fnmatch
import hashlib
import json
import os
import re

import pytest
from ansible_collections.ipu.fabric.plugins.module_utils._common.command import Done
from ansible_collections.ipu.fabric.plugins.module_utils._common.result import FabricError
from ansible_collections.ipu.fabric.plugins.module_utils._common.toml import to_toml
from ansible_collections.ipu.fabric.plugins.module_utils._host import (
    apt,
    apt_lists,
    cri,
    kernel,
    memlock,
    package_record,
    package_removal,
    proxy,
    rdma_desired,
)
from ansible_collections.ipu.fabric.plugins.module_utils._host.facts import ca_digest
from ansible_collections.ipu.fabric.plugins.module_utils._kubeadm import host_reset, lock, network_reset, paths, program
from ansible_collections.ipu.fabric.tests.unit.fixtures.module import Module
from ansible_collections.ipu.fabric.tests.unit.fixtures.paths import ROOT

PEM = "-----BEGIN CERTIFICATE-----\nMIIC\n-----END CERTIFICATE-----\n"
CONFIG = """\
apiVersion: v1
clusters:
- cluster:
    certificate-authority-data: T1VSUw==
    server: https://10.88.0.11:6443
  name: {name}
contexts:
- context:
    cluster: kubernetes
  name: kubernetes-admin@kubernetes
"""


@pytest.mark.parametrize(
    ("text", "name"),
    [
        (CONFIG.format(name="kubernetes"), "10.88.0.11:6443"),
        (CONFIG.format(name="rack-7"), "rack-7"),
        (CONFIG.format(name="default-cluster"), "10.88.0.11:6443"),  # a kubelet's
        ("", ""),
    ],
)
def test_the_name_of_a_cluster(text, name):
    assert host_reset.cluster_name(text) == name


def test_what_apt_would_remove():
    text = "Reading package lists...\nRemv docker-ce [5:27]\nRemv containerd.io [2.2.1]\n"
    assert package_removal.would_remove(text) == {"docker-ce", "containerd.io"}


DEPENDENTS = {"containerd.io": {"docker-ce"}, "iptables": {"ufw"}, "kubelet": {"kubeadm"}}


def simulate(names):
    either = {"site-agent"} if {"conntrack", "nftables"} <= set(names) else set()
    return {*names, *(other for name in names for other in DEPENDENTS.get(name, ())), *either}


@pytest.mark.parametrize(
    ("ours", "pinned", "removed", "kept"),
    [
        ([], {}, [], []),
        (["kubeadm", "kubelet"], {}, ["kubeadm", "kubelet"], []),
        (["kubectl", "containerd.io"], {}, ["kubectl"], ["containerd.io (needed by docker-ce)"]),
        (["kubelet"], {}, [], ["kubelet (needed by kubeadm)"]),  # kubeadm is somebody else's
        (["containerd.io"], {"containerd.io": "containers in moby"}, [], ["containerd.io (containers in moby)"]),
        (["iptables", "kubectl"], {"containerd.io": "x"}, ["kubectl"], ["iptables (needed by ufw)"]),
        # Something of others needs one of two: alone neither takes it along.
        (["conntrack", "kubectl", "nftables"], {}, ["conntrack", "kubectl"], ["nftables (needed by site-agent)"]),
    ],
)
def test_packages_that_others_need_stay(ours, pinned, removed, kept):
    assert package_removal.choose_packages(ours, pinned, simulate) == (removed, kept)


class Host:
    """Files below a directory, and the programs of a node with kube-proxy and flannel."""

    def __init__(self, root):
        self.root, self.calls, self.inputs = root, [], []
        self.containers, self.others = ["c1", "c2"], []
        self.docker = []  # of Kubernetes, in Docker
        self.rules = "*nat\n:PREROUTING ACCEPT [0:0]\n:KUBE-SERVICES - [0:0]\n-A PREROUTING -j KUBE-SERVICES\nCOMMIT\n"
        self.links = [
            {"ifname": "eth0"},
            {"ifname": "cni0", "linkinfo": {"info_kind": "bridge"}},
            {"ifname": "br0", "linkinfo": {"info_kind": "bridge"}},
        ]
        self.packages = {"kubelet": "hold", "kubeadm": "hold", "vim": "install"}
        self.fails = ""
        self.lists = "", ""  # names and labels of all containers in Docker, and volumes that no container has

    def write(self, path, text=""):
        file = self.root / path.lstrip("/")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def run_etcd(self):
        """As a static pod of kubeadm."""
        data = self.root / "var/lib/etcd"
        self.write("/etc/kubernetes/manifests/etcd.yaml", f"  - command:\n    - etcd\n    - --data-dir={data}\n")

    def exists(self, path):
        return os.path.lexists(self.root / path.lstrip("/"))

    def run(self, argv, timeout=30, *, data="", **_options):
        words = " ".join(os.path.basename(word) if number == 0 else word for number, word in enumerate(argv))
        self.calls.append(words)
        if self.fails and words.startswith(self.fails):
            return Done(1, "", "it went wrong")
        answer = self.answer(words, data)
        return Done(0, "" if answer is None else answer, "")

    def answer(self, words, data):
        if words.startswith("kubeadm reset"):
            for path in filter(os.path.exists, host_reset.TRACES):
                os.remove(path)
        if words.startswith("ctr --namespace k8s.io containers delete"):
            self.containers = [name for name in self.containers if name != words.split()[-1]]
        if words.startswith("docker rm"):
            self.docker = []
        if words.startswith("iptables-nft-restore"):
            self.inputs.append(data)
            self.rules = "*nat\n:PREROUTING ACCEPT [0:0]\nCOMMIT\n"
        if words.startswith("apt-get") and "remove" in words.split():
            return self.remove(words.split("held-packages ")[1].split(), "--simulate" in words)
        return self.state().get(words)

    def state(self):
        """What programs print that only read."""
        layout = "dpkg-query --show --showformat ${Package}\\t${db:Status-Want}\\t${db:Status-Status}\\t${Version}\\n"
        lines = (f"{name}\t{selection}\tinstalled\t1.35.4\n" for name, selection in self.packages.items())
        return {
            "ctr --namespace k8s.io containers list --quiet": "\n".join(self.containers),
            "ctr --namespace moby containers list --quiet": "\n".join(self.others + self.docker),
            f"docker ps --all --quiet --no-trunc --filter label={host_reset.DOCKER_LABEL}": "\n".join(self.docker),
            "ctr namespaces list --quiet": "k8s.io\nmoby",
            f'docker ps --all --format {{{{.Names}}}}\t{{{{.Label "{host_reset.DOCKER_LABEL}"}}}}': self.lists[0],
            "docker volume ls --quiet --filter dangling=true": self.lists[1],
            "iptables-nft-save": self.rules,
            "ip -j -d link show": json.dumps(self.links),
            layout: "".join(lines),
        }

    def remove(self, names, simulated):
        if simulated:
            return "".join(f"Remv {name} [1]\n" for name in names)
        for name in names:
            del self.packages[name]
        return ""


@pytest.fixture
def host(tmp_path, monkeypatch):
    found = Host(tmp_path)

    def below(value):
        return tuple(map(below, value)) if isinstance(value, tuple) else str(tmp_path) + value

    for name in (
        "TRACES",
        "CONTENTS",
        "UNOWNED",
        "STATE",
        "OUR_FILES",
        "LOGINS",
        "KEEPALIVED",
        "CHRONY",
        "EMPTY",
        "OWN_DIRECTORY",
        "SOCKET",
        "CONTAINERD",
        "DOCKER",
        "DOCKER_SOCKET",
        "CRI_DOCKER",
        "CRI_DOCKER_STATE",
    ):
        monkeypatch.setattr(host_reset, name, below(getattr(host_reset, name)))
    monkeypatch.setattr(network_reset, "NETNS", below(network_reset.NETNS))
    for name in ("ADMIN", "KUBELET", "KUBERNETES", "MARKER", "LOCK", "ETCD", "ETCD_IS_OURS", "RESTORING"):
        monkeypatch.setattr(paths, name, below(getattr(paths, name)))
    monkeypatch.setattr(host_reset, "CRICTL", (below(host_reset.CRICTL[0]), host_reset.CRICTL[1]))
    monkeypatch.setattr(package_record, "PATH", below(package_record.PATH))
    for name in ("SOURCES", "KEYRINGS"):
        monkeypatch.setattr(host_reset, name, below(getattr(host_reset, name)))
        monkeypatch.setattr(apt, name, below(getattr(apt, name)))
    for module in (host_reset, network_reset, program, apt):
        monkeypatch.setattr(module, "run_program", found.run)
    monkeypatch.setattr(network_reset, "output_of", lambda *argv: found.run(argv).out)
    missing = ("iptables-legacy-save", "ip6tables-legacy-save", "ip6tables-nft-save", "nft", "ipset", "ipvsadm")
    for module in (host_reset, network_reset):
        monkeypatch.setattr(module, "find_program", lambda name: "" if name in missing else f"/sbin/{name}")
    monkeypatch.setattr(host_reset, "find_owners", lambda there: {})
    monkeypatch.setattr(network_reset, "remove_links", lambda names: found.calls.append(f"links {names}"))
    found.write("/run/containerd/containerd.sock")
    (tmp_path / "etc/systemd/system/site.service.d").mkdir(parents=True)
    found.write("/etc/systemd/system/containerd.service.d/50-memlock.conf", memlock.drop_in_text("infinity"))
    for path in host_reset.TRACES[:4]:
        found.write(path[len(str(tmp_path)) :], CONFIG.format(name="kubernetes"))
    found.write("/etc/kubernetes/pki/ca.crt", PEM)
    found.write("/etc/kubernetes/audit-policy.yaml", "a site's own")
    found.write("/var/lib/etcd/member/snap/db")
    found.write("/var/lib/etcd/default/member/snap/db", "of a package etcd-server")
    found.write("/var/lib/containerd/image")
    found.write("/var/lib/kubelet/config.yaml")
    found.write("/var/lib/kubelet/pods/data")
    found.write("/etc/cni/net.d/10-flannel.conflist")
    found.write("/etc/cni/net.d/99-site.conf")
    found.write("/etc/sysctl.d/99-z-kubernetes.conf", kernel.sysctl_text({"net.ipv4.ip_forward": "1"}))
    found.write("/etc/sysctl.d/99-site.conf")
    found.write(
        "/etc/apt/sources.list.d/kubernetes.sources",
        f"# Key: u sha256:0\nSigned-By: {tmp_path}/etc/apt/keyrings/kubernetes.asc\n",
    )
    found.write("/etc/apt/keyrings/kubernetes.asc")
    found.write("/etc/apt/sources.list.d/site.sources")
    found.write(
        "/var/lib/ipu-fabric/packages.json", json.dumps({"installed": ["kubelet"], "held": ["kubelet", "kubeadm"]})
    )
    return found


def reset(check_mode=False, **options):
    params = {"ca": "", "installed": False, "lock_timeout": 0, "timeout": 60, **options}
    return host_reset.reset_host(Module(check_mode=check_mode, files=None, **params))


THEIRS = (
    "/etc/kubernetes/audit-policy.yaml",
    "/etc/cni/net.d/99-site.conf",
    "/etc/sysctl.d/99-site.conf",
    "/etc/apt/sources.list.d/site.sources",
    "/etc/systemd/system/site.service.d",  # empty
    "/var/lib/etcd/default/member/snap/db",
)
INSTALLED = (
    "/etc/sysctl.d/99-z-kubernetes.conf",
    "/etc/apt/sources.list.d/kubernetes.sources",
    "/etc/apt/keyrings/kubernetes.asc",
    "/etc/systemd/system/containerd.service.d",
)


def test_a_node_is_taken_out_of_its_cluster(host):
    host.run_etcd()
    result = reset(ca=ca_digest(PEM))
    assert (result["changed"], result["cluster"]["name"]) == (True, "10.88.0.11:6443")
    [kubeadm] = [call for call in host.calls if call.startswith("kubeadm")]
    socket = f"unix://{host_reset.SOCKET}"
    assert kubeadm == f"kubeadm reset --force --skip-phases=remove-etcd-member --cleanup-tmp-dir --cri-socket={socket}"
    assert host.containers == []
    assert host.inputs == ["*nat\n-D PREROUTING -j KUBE-SERVICES\n-F KUBE-SERVICES\n-X KUBE-SERVICES\nCOMMIT\n"]
    assert "links ['cni0']" in host.calls
    assert not host.exists("/var/lib/etcd/member")
    assert os.listdir(host.root / "var/lib/kubelet") == []
    assert host.exists("/var/lib/containerd/image")
    assert not host.exists("/etc/cni/net.d/10-flannel.conflist")
    for path in (*THEIRS, *INSTALLED, "/var/lib/ipu-fabric/packages.json"):
        assert host.exists(path), path
    assert not [call for call in host.calls if call.startswith("apt-get")]


def test_all_that_was_installed_goes_and_nothing_of_others(host):
    host.run_etcd()
    result = reset(installed=True)
    assert result["removed"]["packages"] == ["kubelet"]
    assert result["removed"]["holds"] == ["kubeadm"]
    assert result["kept"] == ["kubeadm (this collection has no record of installing it)"]
    assert set(host.packages) == {"kubeadm", "vim"}
    for path in THEIRS:
        assert host.exists(path), path
    for path in (*INSTALLED, "/var/lib/ipu-fabric"):
        assert not host.exists(path), path
    order = [call.split()[0] for call in host.calls if call.split()[0] in ("kubeadm", "iptables-nft-restore")]
    assert order == ["kubeadm", "iptables-nft-restore"]


def test_a_list_of_apt_that_was_disabled_for_ours_is_given_back(host):
    line = "deb [signed-by=/k] https://pkgs.k8s.io/core:/stable:/v1.36/deb/ /\n"
    host.write("/etc/apt/sources.list.d/theirs.list", f"{apt_lists.MARK}{line}")
    theirs = host.root / "etc/apt/sources.list.d/theirs.list"
    reset()
    assert theirs.read_text() != line
    reset(installed=True)
    assert theirs.read_text() == line
    # The only thing that is left, as where the former run was ended before that.
    host.links = host.links[:1] + host.links[2:]
    host.packages["kubeadm"] = "install"
    theirs.write_text(f"{apt_lists.MARK}{line}")
    again = reset(installed=True)
    assert again["removed"] == {"lists": [str(theirs)]}
    assert theirs.read_text() == line


@pytest.mark.parametrize("ours", [True, False])
@pytest.mark.parametrize("packaged", [True, False])
def test_keepalived_gives_up_the_virtual_address(host, ours, packaged):
    """Its package goes where we have installed it, and takes the service along; elsewhere the service is stopped."""
    for path in host_reset.KEEPALIVED:
        host.write(path[len(str(host.root)) :], host_reset.OWN_MARK if ours else "vrrp_instance site {}")
    if packaged:
        host.packages["keepalived"] = "hold"
        host.write("/var/lib/ipu-fabric/packages.json", json.dumps({"installed": ["keepalived"], "held": []}))
    reset(installed=True)
    assert [os.path.exists(path) for path in host_reset.KEEPALIVED] == [not ours] * 3
    assert ("systemctl disable --now keepalived.service" in host.calls) == (ours and not packaged)


@pytest.mark.parametrize(
    ("record", "stays"),
    [
        ({"installed": []}, True),  # it was there before
        ({"installed": ["chrony"]}, False),
        # Without chrony the host would have no time service any more.
        ({"installed": ["chrony"], "replaced": {"chrony": ["systemd-timesyncd"]}}, True),
    ],
)
def test_the_sites_time_servers_go_and_the_host_keeps_a_time_service(host, record, stays):
    for path in (*host_reset.CHRONY, "/etc/chrony/conf.d/site.conf"):
        host.write(path.replace(str(host.root), ""))
    host.packages["chrony"] = "install"
    host.write("/var/lib/ipu-fabric/packages.json", json.dumps(record))
    result = reset(installed=True)
    assert [os.path.exists(path) for path in host_reset.CHRONY] == [False, False]
    assert host.exists("/etc/chrony/conf.d/site.conf")
    assert ("chrony" in host.packages) == ("systemctl try-restart chrony.service" in host.calls) == stays
    assert ("chrony (it took the place of systemd-timesyncd)" in result["kept"]) == ("replaced" in record)


def test_a_second_reset_finds_nothing(host):
    reset(installed=True)
    host.links = host.links[:1] + host.links[2:]
    host.packages["kubeadm"] = "install"
    again = reset(installed=True)
    assert (again["changed"], again["removed"]) == (False, {})


def test_check_mode(host):
    result = reset(installed=True, check_mode=True)
    assert result["changed"]
    assert set(result["removed"]) >= {"kubernetes", "containers", "rules", "links", "data", "files", "packages", "own"}
    assert not [call for call in host.calls if call.startswith(("kubeadm", "systemctl", "iptables-nft-restore"))]
    for path in (*THEIRS, *INSTALLED, "/var/lib/etcd/member"):
        assert host.exists(path), path


@pytest.mark.parametrize("check_mode", [True, False])
def test_a_reset_that_is_still_at_work_is_waited_for(host, check_mode):
    with lock.hold_lock(0), pytest.raises(FabricError, match="Another kubeadm has been running"):
        reset(check_mode=check_mode)


def test_check_mode_makes_no_lock(host):
    reset(check_mode=True)
    assert not os.path.exists(paths.LOCK)


def test_an_interrupted_reset_goes_on(host):
    """kubeadm has done its part; what failed after it is done by the next run."""
    host.fails = "iptables-nft-restore"
    with pytest.raises(FabricError, match="it went wrong"):
        reset(installed=True)
    assert host.packages["kubelet"]
    host.fails = ""
    assert reset(installed=True)["changed"]
    assert len([call for call in host.calls if call.startswith("kubeadm reset")]) == 1
    assert "kubelet" not in host.packages


def test_containerd_stays_while_others_have_containers(host):
    host.write("/var/lib/ipu-fabric/packages.json", json.dumps({"installed": ["containerd.io"]}))
    host.packages["containerd.io"] = "hold"
    host.others = ["web"]
    result = reset(installed=True)
    assert "containerd.io (containers in moby)" in result["kept"]
    assert "containerd.io" in host.packages
    assert host.exists("/var/lib/containerd/image")
    assert host.exists("/var/lib/ipu-fabric/packages.json")  # still ours, once moby's containers are gone


def test_the_images_of_our_containerd_go_with_it(host):
    """Also when a run was killed between the two."""
    host.write("/var/lib/ipu-fabric/packages.json", json.dumps({"installed": ["containerd.io"]}))
    assert reset(installed=True, check_mode=True)["removed"]["data"][1:] == [host_reset.CONTAINERD]
    reset(installed=True)
    assert not host.exists("/var/lib/containerd/image")


def test_a_host_of_another_cluster_is_refused(host):
    with pytest.raises(FabricError, match="Only hosts of the named cluster are reset"):
        reset(ca="fedcba9876543210")
    assert host.exists("/var/lib/etcd/member")


def test_a_volume_that_is_still_mounted_keeps_its_data(host, monkeypatch, tmp_path):
    place = tmp_path / "var/lib/kubelet/pods/data"
    host.write("/mounts", f"overlay / overlay rw 0 0\nnas:/results {place} nfs rw 0 0\ntmpfs {tmp_path} tmpfs rw 0 0\n")
    monkeypatch.setattr(host_reset, "MOUNTS", str(tmp_path / "mounts"))
    with pytest.raises(FabricError, match=f"still mounted: {place}"):
        reset()
    assert place.exists()


def test_a_linked_directory_with_a_mounted_volume_keeps_its_data(host, monkeypatch, tmp_path):
    """/var/lib/kubelet leads to a large disk, and the kernel names mounts by where they really are."""
    (tmp_path / "data").mkdir()
    (tmp_path / "var/lib/kubelet").rename(tmp_path / "data/kubelet")
    (tmp_path / "var/lib/kubelet").symlink_to(tmp_path / "data/kubelet")
    volume = tmp_path / "data/kubelet/pods/u1/my volume"
    os.remove(tmp_path / "data/kubelet/pods/data")
    volume.mkdir(parents=True)
    (volume / "model.bin").write_text("a month of training")
    host.write("/mounts", f"nas:/results {str(volume).replace(' ', chr(92) + '040')} nfs4 rw 0 0\n")
    monkeypatch.setattr(host_reset, "MOUNTS", str(tmp_path / "mounts"))
    with pytest.raises(FabricError, match=f"still mounted: {volume}"):
        reset()
    assert (volume / "model.bin").exists()
    os.remove(volume / "model.bin")
    host.write("/mounts")
    reset()
    assert os.listdir(tmp_path / "data/kubelet") == []
    assert (tmp_path / "var/lib/kubelet").is_symlink()


OWN_ETCD = "/var/lib/etcd/member/wal/0.wal"


@pytest.mark.parametrize("manifest", ["", "    - --data-dir=/data/etcd\n"])
def test_an_etcd_that_is_not_of_kubeadm_keeps_its_data(host, manifest):
    """A worker with one of Patroni, or a control plane whose own one is elsewhere."""
    host.write(OWN_ETCD, "of Patroni's etcd")
    if manifest:
        host.write("/etc/kubernetes/manifests/etcd.yaml", manifest)
    result = reset(installed=True)
    assert host.exists(OWN_ETCD)
    assert f"{paths.ETCD} (nothing shows that kubeadm's etcd wrote it)" in result["kept"]
    assert not host.exists("/var/lib/ipu-fabric/etcd-to-remove")


def test_etcd_of_a_cluster_goes_with_the_next_run(host):
    """kubeadm has removed the manifest when the first one ends."""
    host.run_etcd()
    host.fails = "iptables-nft-restore"
    with pytest.raises(FabricError, match="it went wrong"):
        reset()
    assert host.exists("/var/lib/etcd/member")
    assert not host.exists("/etc/kubernetes/manifests/etcd.yaml")
    host.fails = ""
    reset()
    assert not host.exists("/var/lib/etcd/member")
    assert not host.exists("/var/lib/ipu-fabric/etcd-to-remove")


def test_etcd_that_a_restore_has_put_there_goes(host):
    host.write("/var/lib/ipu-fabric/restore-unfinished", "20261123T004500Z")
    reset()
    assert not host.exists("/var/lib/etcd/member")


KEYS = (
    "/var/lib/ipu-fabric/before-restore-20261123T004500Z-x/etc/kubernetes/pki/ca.key",
    "/var/lib/ipu-fabric/snapshots/etcd-before-1.36.3-20261123T004500Z.db",
    "/var/lib/ipu-fabric/restore/control-plane.tar.gz",
    "/var/lib/ipu-fabric/backup/0a1b2c3d-control-plane.tar.gz",
    "/var/lib/ipu-fabric/renewal-unfinished",
    "/var/lib/ipu-fabric/kubelet-config-before.yaml",
    "/var/lib/ipu-fabric/kubeadm-unfinished.part",
    "/etc/kubernetes/ipu-fabric-before-restore-20261123T004500Z-x/pki/ca.key",
    "/var/lib/etcd/ipu-fabric-before-restore-20261123T004500Z-x/member/wal",
)


@pytest.mark.parametrize("installed", [True, False])
def test_a_host_that_leaves_keeps_no_keys_of_the_cluster(host, installed):
    others = ("/var/lib/ipu-fabric/site/backups/20261123T004500Z/backup.json", "/var/lib/ipu-fabric/notes.txt")
    for path in (*KEYS, *others):
        host.write(path, "CA KEY")
    result = reset(installed=installed)
    assert [path for path in KEYS if host.exists(path)] == []
    assert str(host.root) + "/var/lib/ipu-fabric/snapshots" in result["removed"]["own"]
    # The folder of a controller, as docs/guides/awx.md has it, may be beside these.
    assert [path for path in others if host.exists(path)] == list(others)
    assert host.exists("/var/lib/ipu-fabric/packages.json") != installed


def test_all_that_is_kept_in_our_directory_is_known():
    written = "".join(
        path.read_text()
        for folder in ("plugins/module_utils", "roles", "playbooks")
        for path in (ROOT / folder).rglob("*")
        if path.suffix in (".py", ".yml")
    )
    found = re.findall(r"/var/lib/ipu-fabric/([\w.-]+)", written)
    names = (*host_reset.OF_CLUSTER, *host_reset.OF_COLLECTION)
    unknown = {name for name in found if not any(fnmatch.fnmatch(name, each) for each in names)}
    assert unknown - {"before-restore", "former-"} == set()  # and what tells them apart


FOREIGN = {
    "/etc/systemd/system/slurmd.service.d/50-memlock.conf": "[Service]\nLimitMEMLOCK=64G\nLimitNOFILE=1000000\n",
    "/etc/systemd/system/docker.service.d/20-proxy.conf": "[Service]\nEnvironment=HTTP_PROXY=http://proxy:3128\n",
    "/etc/containerd/proxy.env": "# of the site\nHTTP_PROXY=http://proxy:3128\n",
    "/etc/containerd/conf.d/10-kubernetes.toml": "version = 3\n",
    "/etc/containerd/certs.d/_default/hosts.toml": """server = 'https://mirror'\n[host.'https://mirror']\nca = 'a'\n""",
    "/etc/modules-load.d/kubernetes.conf": "overlay\nbr_netfilter\n",
    "/etc/modules-load.d/rdma-host.conf": "# ib\nib_uverbs\n",
    "/etc/modprobe.d/zz-rdma-host.conf": "options ib_core netns_mode=0\n",
    "/etc/sysctl.d/99-z-kubernetes.conf": "net.ipv4.ip_forward = 1\n",
    "/etc/systemd/system/containerd.service.d/10-kubernetes.conf": "[Service]\nLimitNOFILE=1\n",
    "/etc/systemd/system/rdma-host-qos.service": "[Service]\nExecStart=/opt/site/qos\n",
    "/etc/crictl.yaml": "runtime-endpoint: unix:///run/containerd/containerd.sock\ntimeout: 30\n",
    "/etc/apt/sources.list.d/containerd.sources": "Signed-By: /etc/apt/keyrings/containerd.asc\n",
    "/etc/apt/keyrings/containerd.asc": "of the site",
}


def test_files_of_others_with_names_of_ours_stay(host):
    for path, text in FOREIGN.items():
        host.write(path, text)
    result = reset(installed=True)
    for path, text in FOREIGN.items():
        assert (host.root / path[1:]).read_text() == text, path
    assert f"{host.root}/etc/sysctl.d/99-z-kubernetes.conf (it is not as this collection writes it)" in result["kept"]


def test_files_that_this_collection_writes_are_known_as_such(monkeypatch):
    texts = {
        "50-memlock.conf": memlock.drop_in_text("64M"),
        "proxy.env": proxy.environment_text("http://p:1", "", ["10.0.0.0/8", "site"]),
        "90-ipu-fabric-proxy": proxy.apt_text("http://p:1", "", ["site"]),
        "kubernetes.conf": f"{kernel.MARK}\n" + kernel.modules_text(["overlay", "br_netfilter"]),
        "99-z-kubernetes.conf": kernel.sysctl_text({"net.ipv4.ip_forward": "1", "vm.panic_on_oom": "0"}),
        "rdma-host-qos.service": rdma_desired.qos_unit([["/sbin/dcb", "pfc"]]),
        "zz-rdma-host.conf": "options ib_core netns_mode=1\n",
        "10-kubernetes.toml": f"{host_reset.OWN_MARK}\n"
        + to_toml({"version": 3, "plugins": {"a.b": {"x": [1], "y": {"#z": "#"}}}}),
        "hosts.toml": to_toml(
            {
                "host": {
                    "https://mirror:5000": {
                        "capabilities": ["pull", "resolve"],
                        "header": {"authorization": "Basic a="},
                    }
                }
            }
        ),
        "10-kubernetes.conf": f"{host_reset.OWN_MARK}\n[Service]\nLimitNOFILE=1048576\n",
        "20-proxy.conf": "# 0a1b2c3d\n[Service]\nEnvironmentFile=-/etc/containerd/proxy.env\n",
        "rdma-host.conf": kernel.modules_text(["mlx5_ib"]),
    }
    monkeypatch.setattr(host_reset, "read_text", lambda path: texts[os.path.basename(path)])
    assert set(texts) == set(host_reset.OUR_TEXTS)
    assert [name for name in texts if not host_reset.is_ours(name)] == []


LOGIN = """\
[host."https://mirror:5000"]
capabilities = ["pull", "resolve"]

[host."https://mirror:5000".header]
authorization = "Basic dTpw"
"""


@pytest.mark.parametrize("installed", [True, False])
def test_no_login_stays_on_a_host_that_leaves(host, installed):
    """Also none in the copies that former releases have made. One of the site's own stays."""
    directory = "/etc/containerd/certs.d/_default"
    ours = [f"{directory}/hosts.toml", f"{directory}/hosts.toml.4711.2026-11-26@10:11:12~"]
    host.write(ours[0], f"{host_reset.OWN_MARK}\n{LOGIN}")
    host.write(ours[1], LOGIN)
    theirs = f"{directory}/hosts.toml.4712.2026-11-26@10:11:12~"
    host.write(theirs, f"server = 'https://site'\n{LOGIN}")
    result = reset(installed=installed)
    assert [host.exists(path) for path in (*ours, theirs)] == [False, False, True]
    assert {f"{host.root}{path}" for path in ours} <= set(result["removed"]["files"])


def test_a_host_of_k3s_is_refused(host, monkeypatch, tmp_path):
    monkeypatch.setattr(host_reset, "OTHER_KUBERNETES", {"k3s": str(tmp_path)[1:]})
    with pytest.raises(FabricError, match="the host has k3s"):
        reset()
    assert host.inputs == []


def test_a_container_that_stays_is_an_error(host):
    host.fails = "ctr --namespace k8s.io containers delete c2"
    with pytest.raises(FabricError, match="containers delete c2"):
        reset()


def test_without_kubeadm(host, monkeypatch):
    monkeypatch.setattr(host_reset, "find_program", lambda name: "" if name == "kubeadm" else f"/sbin/{name}")
    with pytest.raises(FabricError, match="kubeadm is needed to reset the host"):
        reset()


def with_docker(host, mark=host_reset.OWN_MARK, record=("docker-ce", "docker-ce-cli", "containerd.io"), shown=True):
    """The host as one whose kubelet speaks to cri-dockerd."""
    host.containers, host.docker = [], ["d1", "d2"]
    for path in (*host_reset.CRI_DOCKER, f"{host_reset.CRI_DOCKER_STATE}/sandbox", f"{host_reset.DOCKER}/overlay2"):
        host.write(path[len(str(host.root)) :], mark)
    host.write("/var/lib/ipu-fabric/cri-dockerd.sha256", f"{hashlib.sha256(mark.encode()).hexdigest()} sha256:0\n")
    proxy = "# 0a1b2c3d\n[Service]\nEnvironmentFile=-/etc/containerd/proxy.env\n"
    host.write("/etc/systemd/system/docker.service.d/20-proxy.conf", proxy)
    host.write(host_reset.CRICTL[0][len(str(host.root)) :], "runtime-endpoint: unix:///run/cri-dockerd.sock\n")
    if shown:
        host.write("/run/cri-dockerd.sock")
    host.write("/var/lib/ipu-fabric/packages.json", json.dumps({"installed": list(record)}))
    host.packages.update(dict.fromkeys(("docker-ce", "docker-ce-cli", "containerd.io"), "hold"))


def test_a_node_with_docker_is_taken_out_of_its_cluster(host):
    """Docker stays, and so does cri-dockerd: only what is of the cluster goes."""
    with_docker(host)
    result = reset()
    [kubeadm] = [call for call in host.calls if call.startswith("kubeadm")]
    assert kubeadm.endswith(f"--cri-socket=unix://{host_reset.DOCKER_SOCKET}")
    assert result["removed"]["containers"] == ["2 containers"]
    assert "docker rm --force --volumes d1 d2" in host.calls
    for path in (*host_reset.CRI_DOCKER, f"{host_reset.DOCKER}/overlay2"):
        assert os.path.exists(path), path
    assert "docker-ce" in host.packages


def test_all_of_docker_that_was_installed_goes(host):
    with_docker(host)
    result = reset(installed=True)
    assert result["removed"]["packages"] == ["containerd.io", "docker-ce", "docker-ce-cli"]
    assert "systemctl disable --now cri-docker.service cri-docker.socket" in host.calls
    for path in (
        *host_reset.CRI_DOCKER,
        host_reset.CRI_DOCKER_STATE,
        f"{host_reset.DOCKER}/overlay2",
        host_reset.CRICTL[0],
    ):
        assert not os.path.exists(path), path
    assert not host.exists("/etc/systemd/system/docker.service.d")
    # Nothing is left of it that a second run would look for.
    host.links = host.links[:1] + host.links[2:]
    assert not reset(installed=True)["changed"]


def test_a_docker_that_was_there_before_stays(host):
    with_docker(host, record=["containerd.io"])
    host.docker.append("d3")
    reset(installed=True)
    assert {"docker-ce", "docker-ce-cli"} <= set(host.packages)
    assert os.path.exists(f"{host_reset.DOCKER}/overlay2")
    assert not os.path.exists(host_reset.CRI_DOCKER[0])


def test_docker_stays_while_others_have_containers(host):
    with_docker(host)
    host.others = ["web"]
    result = reset(installed=True)
    for name in ("containerd.io", "docker-ce", "docker-ce-cli"):
        assert f"{name} (containers in moby)" in result["kept"]
        assert name in host.packages
    assert os.path.exists(f"{host_reset.DOCKER}/overlay2")
    assert host.docker == []


RESULTS = "/var/lib/docker/volumes/results/_data/model.bin"


def settings_of(container, labels, volume=""):
    return json.dumps({"ID": container, "Config": {"Labels": labels}, "MountPoints": {"/x": {"Name": volume}}})


@pytest.mark.parametrize("answers", [True, False])
def test_docker_stays_with_volumes_and_stopped_containers_of_others(host, answers):
    """containerd knows neither. A Docker that is down is no reason to take them for nobody's."""
    with_docker(host)
    host.write(RESULTS, "a month of training")
    host.write("/var/lib/docker/volumes/0f/_data/cache")
    theirs, ours = "2" * 64, "1" * 64
    host.write(f"/var/lib/docker/containers/{theirs}/config.v2.json", settings_of(theirs, {}))
    host.write(
        f"/var/lib/docker/containers/{ours}/config.v2.json", settings_of(ours, {host_reset.DOCKER_LABEL: "x"}, "0f")
    )
    if answers:
        host.lists = "web\t\nk8s_pause\tpodsandbox\n", "results\n"
    else:
        host.fails = "docker ps --all --format"
    result = reset(installed=True)
    assert host.exists(RESULTS)
    assert {"docker-ce", "docker-ce-cli", "containerd.io"} <= set(host.packages)
    said = f"containers {'web' if answers else theirs[:12]} in Docker, volumes results in Docker"
    assert f"docker-ce ({said})" in result["kept"]
    assert f"{host_reset.DOCKER} ({said})" in result["kept"]


def test_volumes_of_a_docker_that_is_gone_stay(host):
    """Somebody has removed the package, or a reset that was killed."""
    host.write("/var/lib/ipu-fabric/packages.json", json.dumps({"installed": ["docker-ce"]}))
    host.write(RESULTS, "a month of training")
    result = reset(installed=True)
    assert host.exists(RESULTS)
    assert f"{host_reset.DOCKER} (volumes results in Docker)" in result["kept"]


def test_a_containerd_that_does_not_answer_keeps_its_data(host):
    host.write("/var/lib/ipu-fabric/packages.json", json.dumps({"installed": ["containerd.io"]}))
    host.packages["containerd.io"] = "hold"
    host.fails = "ctr version"
    result = reset(installed=True)
    assert "systemctl start containerd" in host.calls
    assert host.exists("/var/lib/containerd/image")
    assert "containerd.io (containerd does not answer: it may have containers of others)" in result["kept"]


def test_a_cri_dockerd_of_others_stays(host, monkeypatch):
    """As its own guide installs it. The kubelet says that the containers are in Docker."""
    with_docker(host, mark="[Unit]")
    monkeypatch.setattr(cri, "node_runtime", lambda: "docker")
    reset(installed=True)
    assert [os.path.exists(path) for path in host_reset.CRI_DOCKER] == [True] * 3
    assert host.docker == []


@pytest.mark.parametrize("theirs", host_reset.CRI_DOCKER[1:])
def test_parts_of_cri_dockerd_that_are_of_others_stay(host, theirs):
    """Somebody has put a program or a socket of their own beside our unit."""
    with_docker(host)
    host.write(theirs, "theirs")
    result = reset(installed=True)
    assert [path for path in host_reset.CRI_DOCKER if os.path.exists(path)] == [f"{host.root}{theirs}"]
    assert f"{host.root}{theirs} (it is not as this collection writes it)" in result["kept"]


def test_docker_is_started_for_kubeadm(host):
    with_docker(host, shown=False)
    reset()
    assert "systemctl start docker cri-docker" in host.calls


def test_containers_of_docker_are_no_matter_of_a_node_with_containerd(host):
    host.docker = ["theirs"]
    reset(installed=True)
    assert not [call for call in host.calls if call.startswith("docker")]
