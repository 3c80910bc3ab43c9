"""Lock and configuration of kubeadm: where no other user can put, hold or read them."""

import os

import pytest
from ansible_collections.ipu.fabric.plugins.module_utils._common.result import FabricError
from ansible_collections.ipu.fabric.plugins.module_utils._kubeadm import lock, paths, program

PLACES = {"LOCK": lambda: lock.hold_lock(0), "CONFIG": lambda: program.config_file([{"kind": "JoinConfiguration"}])}


@pytest.mark.parametrize("name", PLACES)
def test_no_file_of_ours_is_where_every_user_may_write(name):
    assert os.path.dirname(getattr(paths, name)) not in ("/run/lock", "/var/lock", "/tmp", "/var/tmp", "/dev/shm")


@pytest.mark.parametrize("name", PLACES)
def test_the_directory_is_made_for_its_owner_alone(tmp_path, monkeypatch, name):
    monkeypatch.setattr(paths, name, str(tmp_path / "new" / "file"))
    with PLACES[name]():
        assert (tmp_path / "new").stat().st_mode & 0o777 == 0o700
        assert (tmp_path / "new" / "file").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("mode", [0o755, 0o1777])
@pytest.mark.parametrize("name", PLACES)
def test_a_directory_that_others_may_enter_is_not_used(tmp_path, monkeypatch, name, mode):
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(mode)
    monkeypatch.setattr(paths, name, str(tmp_path / "open" / "file"))
    with pytest.raises(FabricError, match="for root alone"), PLACES[name]():
        pass
    assert not list((tmp_path / "open").iterdir())


@pytest.mark.parametrize("name", PLACES)
def test_a_link_is_not_followed(tmp_path, monkeypatch, name):
    (tmp_path / "private").mkdir(mode=0o700)
    (tmp_path / "victim").write_text("precious")
    (tmp_path / "private" / "file").symlink_to(tmp_path / "victim")
    monkeypatch.setattr(paths, name, str(tmp_path / "private" / "file"))
    with pytest.raises(OSError, match="symbolic links"), PLACES[name]():
        pass
    assert (tmp_path / "victim").read_text() == "precious"


def test_a_link_in_place_of_the_directory_is_not_followed(tmp_path, monkeypatch):
    (tmp_path / "elsewhere").mkdir(mode=0o700)
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    monkeypatch.setattr(paths, "LOCK", str(tmp_path / "link" / "file"))
    with pytest.raises(FabricError, match="a link"), lock.hold_lock(0):
        pass
