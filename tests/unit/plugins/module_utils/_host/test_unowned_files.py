import os
import types

import pytest
from ansible_collections.ipu.fabric.plugins.module_utils._common.command import Done
from ansible_collections.ipu.fabric.plugins.module_utils._common.result import FabricError
from ansible_collections.ipu.fabric.plugins.module_utils._host import unowned_files

UNKNOWN = "dpkg-query: no path found matching pattern "


def absent(paths, check=False):
    return unowned_files.remove_unowned_files(
        types.SimpleNamespace(params={"files": [str(path) for path in paths]}, check_mode=check)
    )


@pytest.fixture
def left(tmp_path, monkeypatch):
    """Files as multus leaves them, of which dpkg says that it owns the one called bridge."""
    folder = tmp_path / "multus.d"
    folder.mkdir()
    (folder / "multus.kubeconfig").write_text("secret")
    for name in ("00-multus.conf", "multus", "bridge"):
        (tmp_path / name).write_text("x")
    (tmp_path / "link").symlink_to(folder)
    (tmp_path / "broken").symlink_to(tmp_path / "nothing")

    def dpkg(argv):
        said = [f"kubernetes-cni: {path}" for path in argv[2:] if path.endswith("bridge")]
        unknown = [UNKNOWN + path for path in argv[2:] if not path.endswith("bridge")]
        return Done(1, "\n".join(said), "\n".join(unknown))

    monkeypatch.setattr(unowned_files, "run_program", dpkg)
    return tmp_path


def test_what_no_package_owns_goes(left):
    paths = [left / name for name in ("00-multus.conf", "multus.d", "multus", "bridge", "never-there")]
    checked = absent(paths, check=True)
    assert sorted(path.name for path in left.iterdir())[:2] == ["00-multus.conf", "bridge"]
    done = absent(paths)
    assert (done["removed"], done["diff"]) == (checked["removed"], checked["diff"])
    assert done["kept"] == [f"{left / 'bridge'} (kubernetes-cni)"]
    assert sorted(path.name for path in left.iterdir()) == ["bridge", "broken", "link"]
    assert not absent(paths)["changed"]


def test_of_a_link_only_the_link_goes(left):
    assert absent([left / "link", left / "broken"])["changed"]
    assert (left / "multus.d" / "multus.kubeconfig").exists()
    assert not (left / "link").is_symlink()
    assert not (left / "broken").is_symlink()


@pytest.mark.parametrize(
    ("answer", "seen"),
    [
        (Done(127, "", "dpkg-query: not found"), "not found"),
        (Done(None, "", ""), "timed out"),
        (Done(2, "", "dpkg-query: error: failed to open package info file"), "failed to open"),
        # It says nothing about the second path.
        (Done(1, "", "dpkg-query: no path found matching pattern FIRST"), "nothing about SECOND"),
        (Done(0, "", ""), "nothing about FIRST"),
    ],
)
def test_nothing_goes_where_dpkg_does_not_say_whose_it_is(left, monkeypatch, answer, seen):
    first, second = str(left / "multus"), str(left / "multus.d")
    told = answer._replace(err=answer.err.replace("FIRST", first))
    monkeypatch.setattr(unowned_files, "run_program", lambda _argv: told)
    before = sorted(path.name for path in left.iterdir())
    for check in (True, False):
        with pytest.raises(FabricError, match="Nothing was removed") as caught:
            absent([first, second], check)
        assert seen.replace("FIRST", first).replace("SECOND", second) in caught.value.seen
    assert sorted(path.name for path in left.iterdir()) == before


def test_a_file_is_asked_for_where_it_really_is(left):
    """/opt/cni/bin is a link to /usr/lib/cni on some hosts, and dpkg knows the files there alone."""
    (left / "real").mkdir()
    (left / "real" / "bridge").write_text("x")
    (left / "bin").symlink_to(left / "real")
    real = str(left / "real" / "bridge")

    def dpkg(argv):
        owned = [f"containernetworking-plugins: {path}" for path in argv[2:] if path == real]
        return Done(1, "\n".join(owned), "\n".join(UNKNOWN + path for path in argv[2:] if path != real))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(unowned_files, "run_program", dpkg)
        done = absent([left / "bin" / "bridge"])
    assert done["kept"] == [f"{left / 'bin' / 'bridge'} (containernetworking-plugins)"]
    assert (left / "real" / "bridge").exists()


def test_several_packages_and_diversions():
    answer = Done(1, "kubernetes-cni, cni-plugins: /opt/cni/bin/bridge\ndiversion by x from: /opt/cni/bin/y", "")
    assert unowned_files.parse_owners(answer) == {
        "/opt/cni/bin/bridge": "kubernetes-cni, cni-plugins",
        "/opt/cni/bin/y": "diversion by x from",
    }


@pytest.mark.parametrize(
    "path", ["", "/", "/etc", "/etc/cni", "etc/cni/net.d", "/etc/cni/", "/etc/cni/../x", "//etc/a"]
)
def test_nothing_high_up_is_removed(path):
    with pytest.raises(FabricError, match="of at least three parts"):
        unowned_files.check_paths([path])


@pytest.mark.parametrize("directory", ["multus.d", "other"])
def test_what_is_mounted_stays(left, monkeypatch, directory):
    """Whatever has a mount in it is left whole: the directory itself, or one that a link of its path leads to."""
    (left / "real/multus.d").mkdir(parents=True)
    (left / "other").symlink_to(left / "real")
    path = left / directory / "volume" if directory == "multus.d" else left / "other/multus.d"
    path.mkdir(exist_ok=True)
    (path / "model.bin").write_text("a month of training")
    place = str(path.resolve()).replace("multus.d", r"multus\056d")
    (left / "mounts").write_text(f"overlay / overlay rw 0 0\nnas:/results {place} nfs4 rw 0 0\n")
    monkeypatch.setattr(unowned_files, "MOUNTS", str(left / "mounts"))
    removed = left / "multus.d" if directory == "multus.d" else path
    with pytest.raises(FabricError, match=f"still mounted: {path.resolve()}") as failed:
        absent([removed])
    assert failed.value.code == "busy"
    assert (path / "model.bin").exists()


def test_another_file_system_is_seen_without_proc(left, monkeypatch):
    volume = left / "multus.d/pods/volume"
    volume.mkdir(parents=True)
    lstat = os.lstat

    def on_a_disk(path, **options):
        seen = lstat(path, **options)
        device = 99 if str(path) == str(volume) else 7
        return types.SimpleNamespace(st_dev=device, st_mode=seen.st_mode)

    monkeypatch.setattr(unowned_files.os, "lstat", on_a_disk)
    with pytest.raises(FabricError, match=f"still mounted: {volume}"):
        unowned_files.check_mounts(str(left / "multus.d"))
