import contextlib
import errno
import hashlib
import os
import types
from unittest import mock

import pytest
from ansible_collections.ipu.fabric.plugins.module_utils._common.command import Done
from ansible_collections.ipu.fabric.plugins.module_utils._common.result import FabricError
from ansible_collections.ipu.fabric.plugins.module_utils._host.files import file_digest
from ansible_collections.ipu.fabric.plugins.module_utils._kubeadm import backup, paths, restore
from ansible_collections.ipu.fabric.tests.unit.fixtures.module import Module

DATABASE = bytes(512)
SNAPSHOT = DATABASE + hashlib.sha256(DATABASE).digest()
RESTORE = "20261123T004500Z begun 20261126T101500Z"
PEER = "https://10.88.0.11:2380"


@pytest.mark.parametrize(("address", "peer"), [("10.88.0.11", PEER), ("fd00:88::11", "https://[fd00:88::11]:2380")])
def test_restore_arguments(address, peer):
    arguments = restore.restore_arguments("cp1", address, "20261123T004500Z")
    assert arguments[:6] == ["--name", "cp1", "--initial-cluster", f"cp1={peer}", "--initial-advertise-peer-urls", peer]
    assert arguments[7].startswith("ipu-fabric-20261123T004500Z-")


def test_wanted_files():
    """Certificates of the host that was backed up are not wanted: another host may take its place."""
    own = ["etc/kubernetes/pki/apiserver.crt", "etc/kubernetes/pki/etcd/peer.key"]
    shared = ["etc/kubernetes/pki/ca.key", "etc/kubernetes/pki/etcd/ca.crt", "etc/kubernetes/enc/enc.yaml"]
    assert restore.wanted_files(["etcd.db", *own, *shared]) == shared


@pytest.fixture
def host(tmp_path, monkeypatch):
    """A control plane, whose programs write down what they are asked for, and an archive of another one."""
    kubernetes, etcd = tmp_path / "kubernetes", tmp_path / "etcd/member"
    pki, staging = kubernetes / "pki", tmp_path / "staging"
    for name in backup.KEYS:
        (pki / name).parent.mkdir(parents=True, exist_ok=True)
        (pki / name).write_text(f"saved {name}")
        (pki / name).chmod(0o600 if name.endswith(".key") else 0o644)
    (kubernetes / "enc.yaml").write_text("saved encryption")
    staging.mkdir()
    (tmp_path / "etcd.db").write_bytes(SNAPSHOT)
    monkeypatch.setattr(backup, "PKI", str(pki))
    files = {str(path).lstrip("/"): str(path) for path in (*pki.rglob("*"), kubernetes / "enc.yaml") if path.is_file()}
    backup.pack(str(staging / backup.NAME), {"etcd.db": str(tmp_path / "etcd.db"), **files})
    for path in files.values():
        with open(path, "w") as file:
            file.write("of the lost cluster")
    etcd.mkdir(parents=True)
    (etcd / "wal").write_text("of the lost cluster")
    (tmp_path / "marker").write_text("init")
    (kubernetes / "audit.yaml").write_text("of the site")
    called = []

    def run(_where, *argv):
        called.append(argv)
        if "restore" in argv:
            data = argv[argv.index("--data-dir") + 1]
            os.makedirs(f"{data}/member")
            with open(f"{data}/member/wal", "w") as file:
                file.write("restored")
        return ""

    monkeypatch.setattr(restore, "run", run)
    monkeypatch.setattr(restore, "run_program", lambda argv, *_: called.append(argv) or Done(0))
    monkeypatch.setattr(restore, "is_listening", lambda _host, _port: False)
    monkeypatch.setattr(restore, "hold_lock", lambda _timeout: contextlib.nullcontext())
    monkeypatch.setattr(restore, "STAGING", str(staging))
    monkeypatch.setattr(restore, "ASIDE", str(tmp_path / "aside"))
    monkeypatch.setattr(restore, "IMAGE_ROOT", str(tmp_path / "run/image"))
    monkeypatch.setattr(restore, "TRACES", (str(pki), str(etcd), str(kubernetes / "manifests")))
    monkeypatch.setattr(paths, "MARKER", str(tmp_path / "marker"))
    monkeypatch.setattr(paths, "RESTORING", str(tmp_path / "restoring"))
    monkeypatch.setattr(paths, "SET_ASIDE", str(tmp_path / "set-aside"))
    monkeypatch.setattr(paths, "ADMIN", str(kubernetes / "admin.conf"))
    monkeypatch.setattr(paths, "ETCD", str(etcd))
    monkeypatch.setattr(restore, "called", called, raising=False)
    (tmp_path / "free").write_bytes(b"")
    os.truncate(tmp_path / "free", 1 << 40)

    def free(_directory):
        size = (tmp_path / "free").stat().st_size
        return types.SimpleNamespace(f_bavail=size, f_frsize=1)

    monkeypatch.setattr(restore.os, "statvfs", free)
    return tmp_path


def options(host, state="restored", **more):
    digest = file_digest(str(host / "staging" / backup.NAME)) if state == "restored" else ""
    given = {"backup": "20261123T004500Z", "restore": RESTORE, "sha256": digest, "image": "etcd:3.6.6"}
    given.update(node_name="cp1", timeout=5)
    return Module(**{"state": state, "address": "10.88.0.11", **given, **more})


def test_restored(host):
    result = restore.restore(options(host))
    assert result["changed"]
    assert (host / "kubernetes/pki/ca.key").read_text() == "saved ca.key"
    assert (host / "kubernetes/pki/ca.key").stat().st_mode & 0o777 == 0o600
    assert (host / "kubernetes/enc.yaml").read_text() == "saved encryption"
    assert (host / "etcd/member/wal").read_text() == "restored"
    assert os.listdir(host / "etcd") == ["member"]
    assert (host / "restoring").read_text() == RESTORE
    assert not (host / "marker").exists()
    assert (host / "kubernetes/audit.yaml").read_text() == "of the site"
    aside = result["set_aside"]
    for name in ("kubernetes/pki/ca.key", "etcd/member/wal"):
        with open(f"{aside}{host}/{name}") as file:
            assert file.read() == "of the lost cluster"
    assert os.stat(aside).st_mode & 0o777 == 0o700
    # What needs room is made while the control plane still runs.
    [made] = [number for number, argv in enumerate(restore.called) if "restore" in argv]
    stopped = restore.called.index(("systemctl", "stop", "kubelet"))
    listed = [number for number, argv in enumerate(restore.called) if "containers" in argv]
    assert made < stopped < min(listed)
    assert not (host / "staging/etcd.db").exists()
    [mount] = [argv for argv in restore.called if "mount" in argv]
    assert mount[:-1] == (*restore.CTR, "images", "mount", "etcd:3.6.6")
    assert [*restore.CTR, "images", "unmount", "--rm", mount[-1]] in restore.called
    assert not os.path.exists(mount[-1])


def test_verified_touches_nothing(host):
    """What `restored` makes before it stops anything is made, and is gone again."""
    before = {path: path.read_bytes() for path in host.rglob("*") if path.is_file() and path.name != "free"}
    result = restore.restore(options(host, "verified", sha256=file_digest(str(host / "staging" / backup.NAME))))
    assert not result["changed"]
    assert before == {path: path.read_bytes() for path in host.rglob("*") if path.is_file() and path.name != "free"}
    assert os.listdir(host / "etcd") == ["member"]
    assert any("restore" in argv for argv in restore.called)
    assert not any("stop" in argv for argv in restore.called)


def test_one_that_was_killed_starts_over(host):
    restore.restore(options(host))
    (host / "etcd/.restore/member").mkdir(parents=True)
    (host / "marker").write_text("init")
    assert restore.restore(options(host))["changed"]
    assert (host / "etcd/member/wal").read_text() == "restored"
    assert not (host / "etcd/.restore").exists()


def test_check_mode(host):
    module = options(host)
    module.check_mode = True
    assert restore.restore(module)["changed"]
    assert restore.called == []
    assert not (host / "restoring").exists()


def with_file(*names):
    """An archive that has more files than a backup."""

    def spoil(host):
        key = f"{host}/kubernetes/pki/ca.key".lstrip("/")
        more = {name.format(host=str(host).lstrip("/")): str(host / "kubernetes/enc.yaml") for name in names}
        files = {"etcd.db": str(host / "etcd.db"), key: str(host / "kubernetes/enc.yaml"), **more}
        backup.pack(str(host / "staging/other"), files)

    return spoil


def with_link(host):
    (host / "link").symlink_to("/etc/shadow")
    key = f"{host}/kubernetes/pki/ca.key".lstrip("/")
    link = f"{host}/kubernetes/link".lstrip("/")
    files = {"etcd.db": str(host / "etcd.db"), key: str(host / "kubernetes/enc.yaml"), link: str(host / "link")}
    backup.pack(str(host / "staging/other"), files)


@pytest.mark.parametrize(
    ("spoil", "seen"),
    [
        (lambda host: {"sha256": "0" * 64}, "the backup says 0000"),
        (lambda host: backup.pack(str(host / "staging/other"), {"etcd.db": str(host / "etcd.db")}), "no .*ca.key"),
        (
            lambda host: backup.pack(
                str(host / "staging/other"),
                {
                    "etcd.db": str(host / "kubernetes/enc.yaml"),
                    f"{host}/kubernetes/pki/ca.key".lstrip("/"): str(host / "kubernetes/enc.yaml"),
                },
            ),
            "is not the size of a database",
        ),
        (
            lambda host: backup.pack(
                str(host / "staging/other"),
                {
                    "etcd.db": str(host / "etcd.db"),
                    "../../etc/shadow": str(host / "kubernetes/enc.yaml"),
                    f"{host}/kubernetes/pki/ca.key".lstrip("/"): str(host / "kubernetes/enc.yaml"),
                },
            ),
            "it has ../../etc/shadow",
        ),
        (with_file("etc/cron.d/x"), "it has etc/cron.d/x"),
        (with_file("root/.ssh/authorized_keys"), "it has root/.ssh/authorized_keys"),
        (with_file("{host}/kubernetes/manifests/x.yaml"), "it has .*/manifests/x.yaml"),
        (with_file("{host}/kubernetes/a.yaml", "{host}/kubernetes/b.yaml"), "it has .*/b.yaml"),
        (with_link, "it has .*/kubernetes/link"),
        (lambda host: os.truncate(host / "free", 100), "100 bytes are free there, and [0-9]+ are needed"),
    ],
)
def test_nothing_is_touched_for_an_archive_that_is_not_right(host, spoil, seen):
    more = spoil(host) or {}
    if (host / "staging/other").exists():
        os.replace(host / "staging/other", host / "staging" / backup.NAME)
    with pytest.raises(FabricError, match=seen):
        restore.restore(options(host, **more))
    assert restore.called == []
    assert (host / "etcd/member/wal").read_text() == "of the lost cluster"


def test_aside(host):
    result = restore.restore(options(host, "aside"))
    assert result["changed"]
    assert not (host / "etcd/member").exists()
    assert not (host / "restoring").exists()
    assert (host / "set-aside").read_text() == RESTORE
    again = restore.restore(options(host, "aside"))
    assert not again["changed"]
    assert restore.called.count(("systemctl", "stop", "kubelet")) == 1


def test_once_for_each_restore(host):
    """After that it has joined the restored cluster. For another restore that is one more old cluster."""
    restore.restore(options(host, "aside"))
    (host / "etcd/member").mkdir()
    (host / "etcd/member/wal").write_text("of the restored cluster")
    assert not restore.restore(options(host, "aside"))["changed"]
    assert (host / "etcd/member/wal").exists()
    other = RESTORE.replace("1015", "1100")
    (host / "restoring").write_text(RESTORE)
    assert restore.restore(options(host, "aside", restore=other))["changed"]
    assert not (host / "etcd/member").exists()
    assert (host / "set-aside").read_text() == other
    assert not (host / "restoring").exists()  # what it names is no longer here


def test_a_host_that_does_not_stop_was_not_set_aside(host, monkeypatch):
    stop = mock.Mock(side_effect=FabricError("a", "b", "c", "d"))
    monkeypatch.setattr(restore, "stop_control_plane", stop)
    with pytest.raises(FabricError):
        restore.restore(options(host, "aside"))
    assert not (host / "set-aside").exists()


def test_a_full_disk_leaves_the_control_plane_as_it_is(host, monkeypatch):
    """Nothing is stopped before there is a place for what it has."""

    def full(path, *_options, **_more):
        raise OSError(errno.ENOSPC, "No space left on device", path)

    monkeypatch.setattr(restore.os, "makedirs", full)
    with pytest.raises(FabricError, match="Seen: No space left on device"):
        restore.set_aside(restore.traces())
    assert restore.called == []
    assert (host / "etcd/member/wal").exists()
    assert not list(host.glob("aside-*"))


def test_what_is_on_another_disk_is_set_aside_there(host, monkeypatch):
    """As etcd's data often are. Nothing is copied, so it needs no room."""
    rename = os.rename

    def one_disk(source, target):
        if source.startswith(str(host / "etcd")) != target.startswith(str(host / "etcd")):
            raise OSError(errno.EXDEV, "Invalid cross-device link", source)
        rename(source, target)

    monkeypatch.setattr(restore.os, "rename", one_disk)
    monkeypatch.setattr(restore.shutil, "move", None)
    restore.restore(options(host))
    [nearby] = host.glob("etcd/ipu-fabric-before-restore-*")
    assert nearby.stat().st_mode & 0o777 == 0o700
    assert (nearby / "member/wal").read_text() == "of the lost cluster"
    assert (host / "etcd/member/wal").read_text() == "restored"
    assert not list(host.glob("kubernetes/ipu-fabric-*"))


def test_a_mount_is_named_before_anything_is_stopped(host, monkeypatch):
    monkeypatch.setattr(restore.os.path, "ismount", lambda path: path == str(host / "etcd/member"))
    for state in ("aside", "restored"):
        with pytest.raises(FabricError, match=r"mounted: .*/etcd/member"):
            restore.restore(options(host, state))
    assert restore.called == []


def test_a_control_plane_that_does_not_stop(host, monkeypatch):
    clock = iter(range(0, 1000, 30))
    monkeypatch.setattr(restore.time, "monotonic", lambda: next(clock))
    monkeypatch.setattr(restore.time, "sleep", lambda _seconds: None)
    monkeypatch.setattr(restore, "is_listening", lambda _host, port: port == 2379)
    with pytest.raises(FabricError, match="still listening: etcd on port 2379"):
        restore.restore(options(host, "aside"))
    assert (host / "etcd/member/wal").exists()


@pytest.mark.parametrize(
    ("restoring", "ready", "files", "going_on"),
    [
        ("", True, ["admin"], False),
        (RESTORE, True, ["marker"], True),
        (RESTORE, False, ["marker"], False),
        (RESTORE, False, [], False),
        # kubeadm init has ended. That its API server is away now is no reason to take the cluster away.
        (RESTORE, False, ["admin"], True),
        (RESTORE, False, ["admin", "marker"], False),
    ],
)
def test_read(host, monkeypatch, restoring, ready, files, going_on):
    if restoring:
        (host / "restoring").write_text(restoring)
    (host / "set-aside").write_text("another")
    (host / "marker").unlink()
    for name in files:
        (host / {"admin": "kubernetes/admin.conf"}.get(name, name)).touch()
    monkeypatch.setattr(restore, "is_api_ready", lambda: ready)
    result = restore.restore(options(host, "read"))
    found = {"restoring": restoring, "going_on": going_on, "aside": "another", "files": True}
    assert result == {"changed": False, **found}


def test_done(host):
    (host / "restoring").write_text("20261123T004500Z")
    assert restore.restore(options(host, "done"))["changed"]
    assert not (host / "restoring").exists()
    assert not (host / "staging").exists()
    assert not restore.restore(options(host, "done"))["changed"]


@pytest.mark.parametrize("state", ["aside", "present"])
def test_a_host_with_docker_is_refused(monkeypatch, state):
    monkeypatch.setattr(restore, "node_runtime", lambda: "docker")
    monkeypatch.setattr(restore, "set_aside", lambda _found: pytest.fail("it was changed"))
    with pytest.raises(FabricError, match="only be restored on hosts with containerd"):
        restore.restore(Module(state=state))
    assert restore.restore(Module(state="read"))["going_on"] is False
