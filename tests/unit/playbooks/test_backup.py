"""A backup: from a control plane that answers to the controller, with nothing left half-made."""

import hashlib
import os
import re

from ansible_collections.ipu.fabric.tests.unit.fixtures import site
from ansible_collections.ipu.fabric.tests.unit.fixtures.playbooks import play

GROUPS = {"kube_control_plane": ["cp1", "cp2"], "kube_node": ["w1"]}
CA = "0123456789abcdef"
ETCD = {"etcd_version": "3.6.6", "cluster_id": "1", "revision": 77, "members": [], "database_bytes": 9}
SAVED = {"objects": [], "digests": {"ConfigMap default/a": "1"}, "addresses": []}
SUM = hashlib.sha256(b"keys").hexdigest()


def answers(folder):
    archive = folder / "control-plane.tar.gz"
    folder.mkdir(parents=True, exist_ok=True)
    archive.write_bytes(b"keys")
    hosts = {"cp1": site.host(1, []), "cp2": site.host(2, []), "w1": site.host(3, [])}
    for seen in hosts.values():
        seen["host"]["kubelet"].update(server="10.88.0.2:6443", cluster=CA)
    hosts["cp2"]["host"]["cluster"].update(present=True, answered=True, version="1.36.3")
    return {
        "host_info": {name: {"host": seen["host"]} for name, seen in hosts.items()},
        "cluster_info": {
            "*": {"present": True, "ca": CA, "nodes": [{"name": "node1", "machine_id": ""}], "saved": SAVED}
        },
        "control_plane_backup": {
            "*": {"path": str(archive), "sha256": SUM, "files": ["etcd.db"], "etcd": ETCD, "changed": True},
            "localhost": {"path": "BACKUP", "pruned": [], "later": [], "changed": True},
        },
    }


def test_backup(tmp_path):
    done = play(tmp_path, "ipu.fabric.backup", GROUPS, answers(tmp_path))
    assert done.code == 0, done.text
    packed, begun, sealed = [call for call in done.calls if call.module == "control_plane_backup"]
    assert packed.host == "cp2"  # cp1 does not answer
    assert (begun.options["state"], begun.options["path"]) == ("begun", sealed.options["path"])
    assert (sealed.host, sealed.become) == ("localhost", False)
    directory, name = os.path.split(sealed.options["path"])
    assert directory == str(tmp_path / "artifacts/backups")
    assert re.fullmatch(r"\d{8}T\d{6}Z", name)
    assert sealed.options["expected"] == {"control-plane.tar.gz": SUM}
    assert sealed.options["cluster"]["ca"] == CA
    assert os.listdir(directory) == []  # the stand-in seals nothing, and nothing half-made stays
    assert os.stat(directory).st_mode & 0o777 == 0o700
    assert not (tmp_path / "control-plane.tar.gz").exists()
    assert "etcd of cp2 at revision 77, 1 files, 1 objects" in done.said


def test_check_mode(tmp_path):
    done = play(tmp_path, "ipu.fabric.backup", GROUPS, answers(tmp_path), "--check")
    assert done.code == 0, done.text
    assert "This would make the backup BACKUP" in done.said
    assert not (tmp_path / "artifacts").exists()
    assert (tmp_path / "control-plane.tar.gz").exists()


def test_a_failure_leaves_nothing(tmp_path):
    given = answers(tmp_path)
    given["control_plane_backup"]["localhost"] = {
        "failed": True,
        "msg": "control-plane.tar.gz did not arrive as sent",
    }
    done = play(tmp_path, "ipu.fabric.backup", GROUPS, given)
    assert done.code != 0
    assert "did not arrive as sent" in done.said
    assert os.listdir(tmp_path / "artifacts/backups") == []
    assert not (tmp_path / "control-plane.tar.gz").exists()


def test_one_that_began_in_the_same_second_keeps_what_it_has(tmp_path):
    given = answers(tmp_path)
    given["control_plane_backup"]["localhost"] = {"failed": True, "msg": "another backup began in the same second"}
    theirs = tmp_path / "artifacts/backups/20260101T000000Z.part"
    theirs.mkdir(parents=True)
    done = play(tmp_path, "ipu.fabric.backup", GROUPS, given, "-e", "_backup_name=20260101T000000Z")
    assert done.code != 0
    assert "began in the same second" in done.said
    assert theirs.exists()


def test_a_clock_that_was_ahead_is_named(tmp_path):
    given = answers(tmp_path)
    given["control_plane_backup"]["localhost"]["later"] = ["20310101T000000Z"]
    done = play(tmp_path, "ipu.fabric.backup", GROUPS, given)
    assert done.code == 0, done.text
    assert "with a later time than this one: 20310101T000000Z. The clock of the controller was ahead" in done.said
