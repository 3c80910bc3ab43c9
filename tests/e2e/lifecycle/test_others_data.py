"""Somebody else's data on hosts: site, remove_node and reset leave it as it was, by checksums.

The short form, with what a stand-in for Docker says, is test_others_data.py of the unit tests of _kubeadm.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from ansible_collections.ipu.fabric.tests.e2e.bed import Bed

# A worker with an etcd of its own, a kubelet whose data are on another disk by a link, and files with names like ours.
MAKE = """
set -e
mkdir -p /srv/disk/kubelet /srv/results /var/lib/etcd/member/wal /etc/systemd/system/slurmd.service.d
mkdir -p /var/lib/ipu-fabric/site /etc/apt/keyrings
umount /var/lib/kubelet  # a volume of the testbed
rmdir /var/lib/kubelet
ln -s /srv/disk/kubelet /var/lib/kubelet
echo model >/srv/results/model.bin
echo wal >/var/lib/etcd/member/wal/0.wal
printf '[Service]\\nLimitMEMLOCK=64G\\nLimitNOFILE=1000000\\n' >/etc/systemd/system/slurmd.service.d/50-memlock.conf
echo '# deb [signed-by=/etc/apt/keyrings/site.asc] https://site.invalid stable main' >/etc/apt/sources.list.d/site.list
echo key >/etc/apt/keyrings/site.asc
echo backup >/var/lib/ipu-fabric/site/notes
"""
THEIRS = """
/srv/results/model.bin /var/lib/etcd/member/wal/0.wal /etc/systemd/system/slurmd.service.d/50-memlock.conf
/etc/apt/sources.list.d/site.list /etc/apt/keyrings/site.asc /var/lib/ipu-fabric/site/notes
"""
MOUNT = "mkdir -p /srv/disk/kubelet/site-results && mount --bind /srv/results /srv/disk/kubelet/site-results"
SUMS = f"sha256sum {' '.join(THEIRS.split())} && readlink /var/lib/kubelet"
SNAPSHOT = "mkdir -p /var/lib/ipu-fabric/snapshots && echo secrets >/var/lib/ipu-fabric/snapshots/etcd.db"


@pytest.fixture(scope="module")
def furnished(bed: Bed) -> Iterator[tuple[Bed, str]]:
    """A cluster on fresh hosts, of which the worker had all that before; with its checksums."""
    bed.testbed("reset")
    bed.on("w1", MAKE)
    yield bed, bed.on("w1", SUMS)
    bed.testbed("reset")


def test_site(furnished: tuple[Bed, str]) -> None:
    bed, sums = furnished
    assert bed.play("site").code == 0
    assert bed.on("w1", SUMS) == sums


def test_a_node_is_removed(furnished: tuple[Bed, str]) -> None:
    bed, sums = furnished
    bed.on("w1", f"{MOUNT} && {SNAPSHOT}")
    result = bed.play("remove_node", fabric_remove_nodes="w1", drain_force=True)
    assert result.code == 0, result.tail()
    assert bed.on("w1", SUMS) == sums
    assert bed.on("w1", "ls /var/lib/ipu-fabric/snapshots /var/lib/kubelet/pki 2>/dev/null", check=False) == ""


def test_the_cluster_is_taken_away(furnished: tuple[Bed, str]) -> None:
    """After a backup whose clock was five years ahead: the next one is there, and both stay with the reset."""
    bed, sums = furnished
    assert bed.play("site").code == 0
    name = bed.on("cp1", "grep -o 'https://.*' /etc/kubernetes/admin.conf").strip()[len("https://") :]
    folder = bed.artifacts / "backups"
    (folder / "20311126T000000Z").mkdir(parents=True)
    (folder / "20311126T000000Z/backup.json").write_text(json.dumps({"cluster": {"name": name}}))
    backup = bed.play("backup", fabric_backup_dir=str(folder), fabric_backup_keep=1)
    assert backup.code == 0, backup.tail()
    assert "with a later time than this one: 20311126T000000Z" in " ".join(backup.shown.split())
    kept = sorted(path.name for path in folder.iterdir())
    assert len(kept) == 2

    bed.on("w1", MOUNT)
    listing = bed.play("reset", fabric_reset="cluster")
    assert "50-memlock.conf (it is not as this collection writes it)" in " ".join(listing.shown.split())
    result = bed.play("reset", fabric_reset="cluster", fabric_reset_name=name)
    assert result.code == 0, result.tail()
    assert bed.on("w1", SUMS) == sums
    assert sorted(path.name for path in folder.iterdir()) == kept
    assert bed.on("w1", "ls /var/lib/ipu-fabric") == "site\n"
