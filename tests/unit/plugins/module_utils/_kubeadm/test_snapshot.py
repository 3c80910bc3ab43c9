import base64
import hashlib
import os

import pytest
from ansible_collections.ipu.fabric.plugins.module_utils._common.result import FabricError
from ansible_collections.ipu.fabric.plugins.module_utils._kubeadm import etcd_api, snapshot
from ansible_collections.ipu.fabric.tests.unit.fixtures.module import Module

DATABASE = bytes(range(256)) * 2 * 3
WHOLE = DATABASE + hashlib.sha256(DATABASE).digest()
STATUS = {
    "header": {"cluster_id": "4096", "revision": "77"},
    "version": "3.6.6",
    "dbSize": str(len(DATABASE)),
}
MEMBERS = {
    "members": [
        {"ID": "10276657743932975437", "name": "cp2", "peerURLs": ["https://10.88.0.13:2380"]},
        {"ID": "3", "peerURLs": ["https://10.88.0.14:2380"]},
    ]
}


@pytest.fixture
def etcd(monkeypatch):
    """What etcd answers: parts of a snapshot, which a test may change."""
    parts = [WHOLE[:700], b"", WHOLE[700:]]

    def ask(path, body=None):
        assert body == ({"linearizable": False} if path.endswith("/list") else None)
        return {"/v3/maintenance/status": STATUS, "/v3/cluster/member/list": MEMBERS}[path]

    def stream(path):
        assert path == "/v3/maintenance/snapshot"
        for part in parts:
            if isinstance(part, Exception):
                raise part
            yield {"blob": base64.b64encode(part).decode()} if part else {}

    monkeypatch.setattr(etcd_api, "ask", ask)
    monkeypatch.setattr(etcd_api, "stream", stream)
    return parts


def take(path, **options):
    return snapshot.take_snapshot(Module(snapshot=str(path), timeout=60, **options))


def test_taken(etcd, tmp_path):
    path = tmp_path / "etcd.db"
    (tmp_path / "etcd.db.part").write_text("of a killed run")
    result = take(path)
    assert path.read_bytes() == WHOLE
    assert path.stat().st_mode & 0o777 == 0o600
    assert os.listdir(tmp_path) == ["etcd.db"]
    assert result["changed"]
    assert {name: result[name] for name in ("path", "bytes", "sha256", "revision", "cluster_id", "etcd_version")} == {
        "path": str(path),
        "bytes": len(WHOLE),
        "sha256": hashlib.sha256(WHOLE).hexdigest(),
        "revision": 77,
        "cluster_id": "1000",
        "etcd_version": "3.6.6",
    }
    assert result["members"] == [
        {"name": "", "id": "3", "peer_urls": ["https://10.88.0.14:2380"]},
        {"name": "cp2", "id": "8e9e05c52164694d", "peer_urls": ["https://10.88.0.13:2380"]},
    ]


def test_check_mode_writes_nothing(etcd, tmp_path):
    result = take(tmp_path / "etcd.db", check_mode=True)
    assert result["changed"]
    assert (result["bytes"], result["sha256"]) == (len(WHOLE), "")
    assert not os.listdir(tmp_path)


@pytest.mark.parametrize(
    ("parts", "seen"),
    [
        ([], "0 bytes"),
        ([DATABASE], "1536 bytes"),
        ([WHOLE[:-1]], "1567 bytes"),
        ([b"x" + WHOLE[1:]], "its digest is"),
        ([WHOLE[:700], etcd_api.failed("connection reset")], "connection reset"),
    ],
)
def test_a_part_of_one_is_not_kept(etcd, tmp_path, parts, seen):
    etcd[:] = parts
    with pytest.raises(FabricError, match=seen):
        take(tmp_path / "etcd.db")
    assert not os.listdir(tmp_path)


def test_it_has_to_end(etcd, tmp_path):
    with pytest.raises(FabricError, match="within -1 s"):
        snapshot.take_snapshot(Module(snapshot=str(tmp_path / "etcd.db"), timeout=-1))
    assert not os.listdir(tmp_path)


@pytest.mark.parametrize(
    ("name", "seen"),
    [
        ("there", "there is a file of that name"),
        ("link", "there is a file of that name"),
        ("no/etcd.db", "there is no directory"),
        ("../etcd.db", "shortest form"),
    ],
)
@pytest.mark.parametrize("check", [True, False])
def test_destination(etcd, tmp_path, name, seen, check):
    (tmp_path / "there").write_text("mine")
    (tmp_path / "link").symlink_to("nowhere")
    with pytest.raises(FabricError, match=seen):
        take(f"{tmp_path}/{name}", check_mode=check)
    assert (tmp_path / "there").read_text() == "mine"


def test_room(tmp_path):
    with pytest.raises(FabricError, match="bytes are free there"):
        snapshot.check_destination(str(tmp_path / "etcd.db"), 1 << 60)
