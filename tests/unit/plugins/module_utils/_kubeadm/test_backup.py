import os
import tarfile
import time

import pytest
from ansible_collections.ipu.fabric.plugins.module_utils._common.result import FabricError
from ansible_collections.ipu.fabric.plugins.module_utils._host.files import file_digest
from ansible_collections.ipu.fabric.plugins.module_utils._kubeadm import backup, lock, paths, snapshot
from ansible_collections.ipu.fabric.tests.unit.fixtures.module import Module

ETCD = {"etcd_version": "3.6.6", "cluster_id": "1000", "revision": 7, "members": [], "database_bytes": 1536}


@pytest.mark.parametrize(
    ("manifest", "path"),
    [
        ("", ""),
        ("    - --etcd-servers=https://127.0.0.1:2379\n", ""),
        (
            "    - --encryption-provider-config=/etc/kubernetes/enc/enc.yaml\n    - --x=y\n",
            "/etc/kubernetes/enc/enc.yaml",
        ),
        ('    - "--encryption-provider-config=/etc/enc.yaml"\n', "/etc/enc.yaml"),
    ],
)
def test_encryption_config(manifest, path):
    assert backup.encryption_config(manifest) == path


@pytest.fixture
def host(tmp_path, monkeypatch):
    pki, keys = tmp_path / "etc/pki", tmp_path / "etc/enc.yaml"
    for name in (*backup.KEYS, "apiserver.crt"):
        (pki / name).parent.mkdir(parents=True, exist_ok=True)
        (pki / name).write_text(name)
        (pki / name).chmod(0o600 if name.endswith(".key") else 0o644)
    keys.write_text("aescbc")
    (tmp_path / "manifest").write_text(f"- --encryption-provider-config={keys}")
    monkeypatch.setattr(backup, "PKI", str(pki))
    monkeypatch.setattr(backup, "API_SERVER", str(tmp_path / "manifest"))
    monkeypatch.setattr(backup, "DIRECTORY", str(tmp_path / "backup"))
    monkeypatch.setattr(paths, "LOCK", str(tmp_path / "run/lock"))
    monkeypatch.setattr(snapshot, "read_etcd", lambda: ETCD)
    monkeypatch.setattr(snapshot, "receive", lambda path, _timeout: open(path, "w").close())
    monkeypatch.setattr(snapshot, "check_snapshot", lambda path: {"path": path, "bytes": 1568, "sha256": "0"})
    return tmp_path


def test_packed(host):
    (host / "backup").mkdir()
    (host / "backup/etcd.db").write_text("of a killed run")
    result = backup.back_up(Module(timeout=60))
    [name] = os.listdir(host / "backup")
    assert name.endswith("-control-plane.tar.gz")
    assert (host / "backup").stat().st_mode & 0o777 == 0o700
    path = host / "backup" / name
    assert result["path"] == str(path)
    assert path.stat().st_mode & 0o777 == 0o600
    assert result["sha256"] == file_digest(str(path))
    with tarfile.open(path) as archive:
        names = archive.getnames()
        key = archive.getmember(f"{host}/etc/pki/etcd/ca.key".lstrip("/"))
    assert key.mode & 0o777 == 0o600
    assert names == [name.lstrip("/") for name in result["files"]]
    assert len(names) == 1 + len(backup.KEYS) + 1 + 1  # snapshot, keys, a certificate, encryption
    assert result["etcd"] == ETCD


def test_two_backups_at_once(host):
    """The archive of the first is still to be fetched when the second begins."""
    first, second = (backup.back_up(Module(timeout=60)) for _turn in range(2))
    assert first["path"] != second["path"]
    for each in (first, second):
        assert file_digest(each["path"]) == each["sha256"]
    # One that nobody has fetched goes with a backup on a later day, whatever the clock said then.
    for each, days in ((first, -2), (second, 2000)):
        when = time.time() + days * 86400
        os.utime(each["path"], (when, when))
    third = backup.back_up(Module(timeout=60))
    assert os.listdir(host / "backup") == [os.path.basename(third["path"])]


def test_a_backup_that_is_at_work_is_waited_for(host):
    (host / "backup").mkdir()
    (host / "backup/etcd.db").write_text("of the first")
    with lock.hold_lock(0), pytest.raises(FabricError, match="Another backup or kubeadm has been running"):
        backup.back_up(Module(timeout=0))
    assert (host / "backup/etcd.db").exists()


def test_keys_of_secrets_where_no_restore_writes(host):
    (host / "manifest").write_text(f"- --encryption-provider-config={host}/enc.yaml")
    (host / "enc.yaml").write_text("aescbc")
    with pytest.raises(FabricError, match=r"no enc\.yaml below .*/etc, the only place a restore writes to"):
        backup.back_up(Module(timeout=60))


def test_check_mode(host):
    result = backup.back_up(Module(timeout=60, check_mode=True))
    assert result["changed"]
    assert result["sha256"] == ""
    assert not (host / "backup").exists()


@pytest.mark.parametrize("name", ["etc/pki/ca.key", "etc/enc.yaml"])
def test_nothing_is_packed_without_all_keys(host, name):
    (host / name).unlink()
    with pytest.raises(FabricError, match=f"no {host}/{name}"):
        backup.back_up(Module(timeout=60))
    assert not (host / "backup").exists()


def test_a_failure_leaves_nothing(host, monkeypatch):
    def receive(path, _timeout):
        open(path, "w").close()
        raise FabricError("etcd", "here", "gone", "again")

    monkeypatch.setattr(snapshot, "receive", receive)
    with pytest.raises(FabricError, match="gone"):
        backup.back_up(Module(timeout=60))
    assert os.listdir(host / "backup") == []
