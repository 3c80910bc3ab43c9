import json
import os
import subprocess

import pytest
from ansible_collections.ipu.fabric.plugins.module_utils._common.result import FabricError
from ansible_collections.ipu.fabric.plugins.module_utils._host import backups
from ansible_collections.ipu.fabric.plugins.module_utils._host.files import file_digest
from ansible_collections.ipu.fabric.tests.unit.fixtures.module import Module

DAYS = [f"2026112{day}T004500Z" for day in range(5)]
NEW = "20261125T004500Z"
OWN, OTHER = ({"ca": ca, "name": f"{ca}:6443"} for ca in ("own", "other"))


@pytest.mark.parametrize(
    ("names", "keep", "pruned"),
    [
        ([], 7, []),
        (DAYS, 6, []),
        (DAYS, 5, DAYS[:1]),
        (DAYS, 1, DAYS),
        (DAYS, 0, DAYS),  # the new one always stays
        ([*DAYS, "notes.txt", "20261101", "latest"], 5, DAYS[:1]),
        ([f"{DAYS[0]}.part", f"{NEW}.part", "20261125T004400Z.part", "old.part"], 1, [f"{DAYS[0]}.part"]),
        (["20261124T235959Z.part"], 1, []),  # it may still be at work
        (["20269945T004500Z", *DAYS], 5, DAYS[:1]),  # no time
        # A clock that was ahead: the new one stays, and those of that time are not counted.
        (["20310101T000000Z", "20310102T000000Z", "20310101T000000Z.part", *DAYS], 4, DAYS[:2]),
    ],
)
def test_to_prune(names, keep, pruned):
    assert backups.to_prune(names, NEW, keep) == pruned


@pytest.mark.parametrize(
    ("said", "found", "wrong"),
    [
        ({"a": "1"}, {"a": "1"}, []),
        ({"a": "1", "b": "2"}, {"a": "1"}, ["b is missing"]),
        ({"a": "1"}, {"a": "2"}, ["a has changed"]),
        ({"a": "1"}, {"a": "1", "b": "2"}, ["b is not in the list"]),
    ],
)
def test_faults(said, found, wrong):
    assert backups.faults(said, found) == wrong


def test_sums_are_read_as_they_are_written():
    sums = {"a b": "0" * 64, "c": "1" * 64}
    assert backups.parse_sums(backups.format_sums(sums)) == sums


@pytest.fixture
def part(tmp_path):
    """A backup that is not sealed yet, among older ones."""
    for name in DAYS:
        (tmp_path / name).mkdir()
        (tmp_path / name / "backup.json").write_text(json.dumps({"cluster": OWN}))
    part = tmp_path / f"{NEW}.part"
    part.mkdir()
    (part / "backup.json").write_text(json.dumps({"name": NEW}))
    (part / "control-plane.tar.gz").write_bytes(b"keys")
    return part


def seal(part, check_mode=False, name=NEW, **options):
    given = {"state": "present", "keep": 3, "expected": {}, "cluster": OWN, **options}
    return backups.look_after(Module(path=str(part.parent / name), check_mode=check_mode, **given))


def verify(path):
    return backups.look_after(Module(path=str(path), state="verified"))


def test_sealed(part):
    result = seal(part, expected={"control-plane.tar.gz": file_digest(str(part / "control-plane.tar.gz"))})
    path = part.parent / NEW
    assert result["changed"]
    assert result["pruned"] == DAYS[:3]
    assert sorted(os.listdir(part.parent)) == [*DAYS[3:], NEW]
    assert path.stat().st_mode & 0o777 == 0o700
    assert {file.stat().st_mode & 0o777 for file in path.iterdir()} == {0o600}
    subprocess.run(["sha256sum", "--check", "--strict", "SHA256SUMS"], cwd=path, check=True)
    verified = verify(path)
    assert verified["about"] == {"name": NEW}
    assert set(verified["sums"]) == {"backup.json", "control-plane.tar.gz"}


@pytest.mark.parametrize("keep", [1, 7])
def test_a_clock_that_was_ahead_costs_no_backup(part, keep):
    """A week with an empty BIOS battery, and then the right time again."""
    ahead = [f"203101{day:02}T000000Z" for day in range(1, 8)]
    for name in ahead:
        (part.parent / name).mkdir()
        (part.parent / name / "backup.json").write_text(json.dumps({"cluster": OWN}))
    result = seal(part, keep=keep)
    assert verify(part.parent / NEW)["about"] == {"name": NEW}
    assert result["later"] == ahead
    assert result["pruned"] == (DAYS if keep == 1 else [])
    assert set(ahead) <= set(os.listdir(part.parent))


def test_directories_of_others_stay(part):
    """A name like that of a backup is no evidence."""
    others = ["20250101T000000Z", "20250102T000000Z.part", "20250103T000000Z"]
    for name in others[:2]:
        (part.parent / name).mkdir()
        (part.parent / name / "thesis.tex").write_text("somebody's")
    (part.parent / others[2]).symlink_to(part.parent / others[0])
    assert seal(part, keep=1)["pruned"] == DAYS
    assert sorted(os.listdir(part.parent)) == sorted([*others, NEW])


def test_backups_of_other_clusters_stay(part):
    """Sites may share a directory. The CA tells clusters apart, or the endpoint where one has none on record."""
    later, unfinished = "20310101T000000Z", "20261120T004501Z.part"
    kept = {
        DAYS[0]: {"cluster": OTHER},
        DAYS[1]: {"cluster": {**OTHER, "name": OWN["name"]}},
        DAYS[2]: {"cluster": {"ca": "", "name": "other:6443"}},
        DAYS[3]: {},
        later: {"cluster": OTHER},
        unfinished: {"cluster": OTHER},
    }
    for name, about in kept.items():
        (part.parent / name).mkdir(exist_ok=True)
        (part.parent / name / "backup.json").write_text(json.dumps(about))
    result = seal(part, keep=1)
    assert (result["pruned"], result["later"]) == ([DAYS[4]], [])
    assert sorted(os.listdir(part.parent)) == sorted([*kept, NEW])


@pytest.mark.parametrize("text", ["", "[]", '{"cluster": 1}'])
def test_a_record_that_is_damaged_is_no_evidence(part, text):
    (part.parent / DAYS[0] / "backup.json").write_text(text)
    assert seal(part, keep=1)["pruned"] == DAYS[1:]


def test_a_cluster_without_a_ca_on_record_is_known_by_its_endpoint(part):
    assert seal(part, keep=1, cluster={"ca": "", "name": OWN["name"]})["pruned"] == DAYS


def test_two_that_begin_in_the_same_second(tmp_path):
    given = {"path": str(tmp_path / NEW), "state": "begun"}
    assert backups.look_after(Module(**given, check_mode=True))["changed"]
    assert os.listdir(tmp_path) == []
    backups.look_after(Module(**given))
    assert (tmp_path / f"{NEW}.part").stat().st_mode & 0o777 == 0o700
    with pytest.raises(FabricError, match="another backup began in the same second") as failed:
        backups.look_after(Module(**given))
    assert failed.value.code == "busy"


def test_check_mode(part):
    before = sorted(os.listdir(part.parent))
    result = seal(part, check_mode=True)
    assert result["changed"]
    assert result["diff"]["after"] == {"backups": [*DAYS[3:], NEW]}
    assert sorted(os.listdir(part.parent)) == before


def test_what_did_not_arrive_is_not_sealed(part):
    with pytest.raises(FabricError, match=r"control-plane\.tar\.gz did not arrive as sent"):
        seal(part, expected={"control-plane.tar.gz": "0" * 64})
    assert sorted(os.listdir(part.parent)) == [*DAYS, f"{NEW}.part"]


def test_another_name(part):
    with pytest.raises(FabricError, match="must be named after its time"):
        seal(part, name="latest")


@pytest.mark.parametrize(
    ("spoil", "seen"),
    [
        (lambda path: (path / "control-plane.tar.gz").write_bytes(b"Keys"), "control-plane.tar.gz has changed"),
        (lambda path: (path / "backup.json").unlink(), "backup.json is missing"),
        (lambda path: (path / "more").touch(), "more is not in the list"),
        (lambda path: (path / "SHA256SUMS").unlink(), "no file SHA256SUMS"),
        (lambda path: path.rename(path.with_name("gone")), "no such directory"),
    ],
)
def test_one_that_is_not_whole(part, spoil, seen):
    seal(part)
    spoil(part.parent / NEW)
    with pytest.raises(FabricError, match=seen):
        verify(part.parent / NEW)
