"""Somebody else's data: hosts that have more on them than this collection knows of, with checksums before and after.

tests/e2e/lifecycle/test_others_data.py has real hosts.
"""

import hashlib
import itertools
import json
import os
import shutil
import subprocess
import sys
import textwrap

import pytest
from ansible_collections.ipu.fabric.plugins.module_utils._common.result import FabricError
from ansible_collections.ipu.fabric.plugins.module_utils._host import backups, memlock
from ansible_collections.ipu.fabric.plugins.module_utils._plan.cluster_reset import Confirmation, Site, plan_reset
from ansible_collections.ipu.fabric.tests.unit.fixtures.module import Module
from ansible_collections.ipu.fabric.tests.unit.fixtures.paths import ROOT
from ansible_collections.ipu.fabric.tests.unit.plugins.module_utils._kubeadm.test_host_reset import (
    host as bare_host,
)
from ansible_collections.ipu.fabric.tests.unit.plugins.module_utils._kubeadm.test_host_reset import (
    reset,
    settings_of,
)

host = bare_host

# What a host of a site may have, by path: none of it is in the way, and all of it looks like Kubernetes or like us.
THEIRS = {
    "/var/lib/etcd/member/snap/db": "of the etcd of a registry",
    "/var/lib/etcd/member/wal/0.wal": "of the etcd of a registry",
    "/var/lib/etcd/default/member/snap/db": "of the package etcd-server",
    "/var/lib/docker/volumes/results/_data/model.bin": "a month of training",
    "/var/lib/docker/image/overlay2/repositories.json": "{}",
    f"/var/lib/docker/containers/{'2' * 64}/config.v2.json": settings_of("2" * 64, {"site": "web"}),
    "/var/lib/containerd/io.containerd.metadata.v1.bolt/meta.db": "with images of Docker",
    "/etc/docker/daemon.json": '{"data-root": "/var/lib/docker"}',
    "/etc/systemd/system/slurmd.service.d/50-memlock.conf": "[Service]\nLimitMEMLOCK=64G\nLimitNOFILE=1000000\n",
    "/etc/systemd/system/docker.service.d/20-proxy.conf": "[Service]\nEnvironment=HTTPS_PROXY=http://proxy:3128\n",
    "/etc/systemd/system/containerd.service.d/override.conf": "[Service]\nLimitNOFILE=1\n",
    "/etc/apt/sources.list.d/containerd.sources": "URIs: https://site\nSigned-By: /etc/apt/keyrings/k.asc\n",
    "/etc/apt/sources.list.d/docker.list": "deb [signed-by=/etc/apt/keyrings/docker.asc] https://site stable main\n",
    "/etc/apt/keyrings/k.asc": "of the site",
    "/etc/apt/keyrings/docker.asc": "of the site",
    "/etc/apt/keyrings/kubernetes-apt-keyring.gpg": "of a guide",
    "/etc/modules-load.d/kubernetes.conf": "# of the site\noverlay\n",
    "/etc/cni/net.d/87-podman-bridge.conflist": '{"plugins": [{"type": "bridge"}]}',
    "/var/lib/ipu-fabric/site/backups/20261123T004500Z/backup.json": "{}",
    "/srv/kubelet-disk/lost+found/x": "",
}
# Ours, which goes.
OURS = {
    "/etc/systemd/system/k3s.service.d/50-memlock.conf": memlock.drop_in_text("infinity"),
    "/etc/apt/keyrings/kubernetes.asc": "of the role",
    "/etc/cni/net.d/10-flannel.conflist": "{}",
    "/var/lib/ipu-fabric/snapshots/etcd.db": "all Secrets",
}


def digests(root, names):
    return {
        name: hashlib.sha256((root / name[1:]).read_bytes()).hexdigest() if (root / name[1:]).is_file() else ""
        for name in names
    }


@pytest.fixture
def furnished(host):
    """A worker, with docker-ce and containerd.io by us, whose kubelet has its data on another disk by a link."""
    for path, text in {**THEIRS, **OURS}.items():
        host.write(path, text)
    shutil.move(host.root / "var/lib/kubelet", host.root / "srv/kubelet-disk/kubelet")
    (host.root / "var/lib/kubelet").symlink_to(host.root / "srv/kubelet-disk/kubelet")
    names = ("docker-ce", "docker-ce-cli", "containerd.io", "kubelet")
    host.write("/var/lib/ipu-fabric/packages.json", json.dumps({"installed": names}))
    host.packages.update(dict.fromkeys(names, "hold"))
    host.lists = "web\t\n", "results\n"  # stopped, so that containerd knows nothing of it
    return host


@pytest.mark.parametrize("installed", [True, False])
@pytest.mark.parametrize("killed", ["", "iptables-nft-restore", "apt-get"])
def test_what_others_have_is_as_it_was(furnished, installed, killed):
    """remove_node and reset, and both again after they were ended early."""
    before = digests(furnished.root, THEIRS)
    assert "" not in before.values()
    reset(installed=installed, check_mode=True)
    assert digests(furnished.root, {**THEIRS, **OURS}) == {**before, **digests(furnished.root, OURS)}
    if killed:
        furnished.fails = killed
        if installed or killed != "apt-get":
            with pytest.raises(FabricError):
                reset(installed=installed)
        furnished.fails = ""
    result = reset(installed=installed)
    assert digests(furnished.root, THEIRS) == before
    assert os.listdir(furnished.root / "srv/kubelet-disk/kubelet") == []
    assert (furnished.root / "var/lib/kubelet").is_symlink()
    left = [name for name in OURS if furnished.exists(name)]
    assert left == ([] if installed else list(OURS)[:2])
    if installed:
        assert {"docker-ce", "docker-ce-cli", "containerd.io"} <= set(furnished.packages)
        assert "kubelet" not in furnished.packages
        kept = " ".join(result["kept"])
        for name in (*list(THEIRS)[:1], "/var/lib/docker", "slurmd.service.d", "docker.service.d", "kubernetes.conf"):
            assert name.replace("/snap/db", "") in kept, name


def test_a_reset_with_another_order_of_hosts():
    """The inventory was sorted after a reset was killed: one host has nothing of the cluster any more, one half."""

    def found(name, ca, cluster, **removed):
        mark = {"name": cluster, "server": cluster, "ca": ca, "hostname": name, "machine_id": f"id-{name}"}
        return {"cluster": mark, "removed": removed, "kept": []}

    hosts = {
        "cp1": found("cp1", "0123", "10.88.0.11:6443", kubernetes=["/etc/kubernetes/admin.conf"]),
        "w1": found("w1", "", ""),
        "w2": found("w2", "", "", packages=["kubelet"]),
    }
    dead = {"present": False, "ca": "", "nodes": []}
    for name in ("", "10.88.0.11:6443"):
        plans = [
            plan_reset(dict(order), dead, [], Site("", []), Confirmation(name, False))
            for order in itertools.permutations(hosts.items())
        ]
        assert {(plan["name"], plan["ca"], plan["refusal"]) for plan in plans} == {
            (plans[0]["name"], plans[0]["ca"], plans[0]["refusal"])
        }
        assert (plans[0]["name"], plans[0]["ca"]) == ("10.88.0.11:6443", "0123")


def test_backups_of_five_years_ahead_and_of_today(tmp_path):
    """Whichever is taken last is there, and so is what was taken while the clock was right."""
    cluster = {"ca": "0123", "name": "10.88.0.11:6443"}

    def back_up(name):
        (tmp_path / f"{name}.part").mkdir()
        (tmp_path / f"{name}.part/backup.json").write_text(json.dumps({"cluster": cluster}))
        given = {"keep": 2, "expected": {}, "cluster": cluster}
        return backups.look_after(Module(state="present", path=str(tmp_path / name), **given))

    (tmp_path / "20250101T000000Z").mkdir()
    (tmp_path / "20250101T000000Z/thesis.tex").write_text("somebody's")
    for name in ("20261126T000000Z", "20311126T000000Z", "20261127T000000Z", "20261128T000000Z"):
        result = back_up(name)
        assert backups.verify(str(tmp_path / name))
    assert result["later"] == ["20311126T000000Z"]
    assert sorted(os.listdir(tmp_path)) == [
        "20250101T000000Z",
        "20261127T000000Z",
        "20261128T000000Z",
        "20311126T000000Z",
    ]


def in_mount_namespace(tmp_path, script):
    """What a program prints that has mounts of its own, and the collection."""
    if os.geteuid() != 0 or subprocess.run(["unshare", "--mount", "true"], check=False).returncode != 0:
        pytest.skip("mounts need root")
    collections = ROOT / ".cache/collections"
    (tmp_path / "script.py").write_text(textwrap.dedent(script))
    done = subprocess.run(
        ["unshare", "--mount", "--propagation", "private", sys.executable, str(tmp_path / "script.py"), str(tmp_path)],
        env=os.environ | {"PYTHONPATH": str(collections)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


HEAD = """
    import os, subprocess, sys
    from ansible_collections.ipu.fabric.plugins.module_utils._common.result import FabricError
    from ansible_collections.ipu.fabric.plugins.module_utils._host import files, unowned_files
    from ansible_collections.ipu.fabric.plugins.module_utils._kubeadm import host_reset, paths, restore
    base = sys.argv[1]

    def mount(*words):
        subprocess.run(["mount", *words], check=True)

    def said(action, *given):
        try:
            action(*given)
            return "done"
        except FabricError as error:
            return error.code
"""


def test_real_mounts(tmp_path):
    """A volume by NFS, and a directory that is mounted a second time: the same file system, and not the same place."""
    out = in_mount_namespace(
        tmp_path,
        HEAD
        + """
    for name in ("nas", "data/kubelet/pods/u/nfs", "data/kubelet/pods/u/bind", "srv/home"):
        os.makedirs(f"{base}/{name}")
    mount("-t", "tmpfs", "none", f"{base}/nas")
    for name in ("nas/model.bin", "srv/home/thesis.tex"):
        open(f"{base}/{name}", "w").write("of a month")
    os.symlink(f"{base}/data/kubelet", f"{base}/kubelet")
    for source, target in (("nas", "nfs"), ("srv/home", "bind")):
        place = f"{base}/data/kubelet/pods/u/{target}"
        mount("--bind", f"{base}/{source}", place)
        for path in ("kubelet", "data/kubelet"):
            print(said(host_reset.clear, f"{base}/{path}"), said(unowned_files.remove_path, f"{base}/kubelet/pods"))
        unowned_files.MOUNTS = host_reset.MOUNTS = os.devnull
        print(said(host_reset.clear, f"{base}/kubelet") if target == "nfs" else "busy")
        unowned_files.MOUNTS = host_reset.MOUNTS = "/proc/self/mounts"
        subprocess.run(["umount", place], check=True)
    print(said(host_reset.clear, f"{base}/kubelet"), os.listdir(f"{base}/data/kubelet"))
    print(sorted(os.listdir(f"{base}/nas") + os.listdir(f"{base}/srv/home")))
    """,
    )
    refused = ["busy busy", "busy busy", "busy"]
    assert out.splitlines() == [*refused, *refused, "done []", "['model.bin', 'thesis.tex']"]


def test_var_is_full(tmp_path):
    """A restore is refused before anything stops, and no existing file is lost."""
    out = in_mount_namespace(
        tmp_path,
        HEAD
        + """
    for name in ("var", "kubernetes/pki"):
        os.makedirs(f"{base}/{name}")
    mount("-t", "tmpfs", "-o", "size=256k", "none", f"{base}/var")
    os.makedirs(f"{base}/var/etcd/member")
    for name in ("var/etcd/member/wal", "var/file", "kubernetes/pki/ca.key"):
        open(f"{base}/{name}", "w").write("of the cluster")
    try:
        open(f"{base}/var/full", "wb").write(bytes(1 << 20))
    except OSError as error:
        print(error.strerror)
    stopped = []
    restore.stop_control_plane = lambda: stopped.append(1)
    restore.TRACES = (f"{base}/kubernetes/pki", f"{base}/var/etcd/member")
    restore.ASIDE, paths.MARKER = f"{base}/var/aside", f"{base}/var/marker"
    print(said(restore.check_room, {f"{base}/var": 1000, f"{base}/var/etcd": 1000}), stopped)
    print(said(files.write_file, None, f"{base}/var/file", "x" * 100000), open(f"{base}/var/file").read())
    print(sorted(os.listdir(f"{base}/var")))
    place = restore.set_aside(restore.traces())
    print(stopped, restore.traces(), open(f"{place}{base}/var/etcd/member/wal").read())
    print(len(os.listdir(f"{base}/kubernetes")), os.listdir(place) == [base.split("/")[1]])
    """,
    )
    assert out.splitlines() == [
        "No space left on device",
        "unusable-file []",
        "unusable-file of the cluster",
        "['etcd', 'file', 'full']",
        "[1] [] of the cluster",
        "1 True",
    ]
