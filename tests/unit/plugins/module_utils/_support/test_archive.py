"""An archive from a stranger: it is read in memory, or refused with a reason."""

from __future__ import annotations

import gzip
import io
import tarfile
import typing as t

import pytest
from ansible_collections.ipu.fabric.plugins.module_utils._common.result import FabricError
from ansible_collections.ipu.fabric.plugins.module_utils._support import archive
from hypothesis import given
from hypothesis import strategies as st

FILES = {"about.json": "{}\n", "hosts/w1/kubelet.log": "grüße\n", "cluster/logs/kube-system/a/b.log": ""}


def entry(name: str, kind: bytes = tarfile.REGTYPE, link: str = "") -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as file:
        info = tarfile.TarInfo(name)
        info.type, info.linkname = kind, link
        file.addfile(info)
    return packed.getvalue()


def test_what_was_packed_comes_back() -> None:
    packed = archive.pack("support-1", FILES, 0)
    assert archive.unpack(io.BytesIO(packed), "here") == FILES
    with tarfile.open(fileobj=io.BytesIO(packed)) as file:
        assert {info.mode for info in file} == {0o600}


@pytest.mark.parametrize(
    "packed",
    [
        entry("support-1/../../etc/passwd"), entry("/etc/passwd"), entry("support-1/.."), entry("../a/b"), entry("a"),
        entry("support-1/a", tarfile.SYMTYPE, "/etc/passwd"), entry("support-1/a", tarfile.LNKTYPE, "support-1/b"),
        entry("support-1/a", tarfile.CHRTYPE), entry("support-1/a", tarfile.DIRTYPE),
        entry("support-1/" + "a/" * 9 + "b"),
        b"", b"PK\x03\x04", gzip.compress(b"x" * 2000), archive.pack("support-1", FILES, 0)[:-20],
    ],
    ids=range(14),
)  # fmt: skip
def test_what_is_none_is_refused(packed: bytes) -> None:
    with pytest.raises(FabricError, match="Where: here"):
        archive.unpack(io.BytesIO(packed), "here")


def test_one_that_grows_without_end_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive, "MOST_BYTES", 2**20)
    with pytest.raises(FabricError, match="more than 1 MiB"):
        archive.unpack(io.BytesIO(gzip.compress(b"\0" * 2**24)), "here")


def test_too_many_files_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive, "MOST_FILES", 2)
    with pytest.raises(FabricError, match="more than 2 files"):
        archive.unpack(io.BytesIO(archive.pack("support-1", FILES, 0)), "here")


@given(st.lists(st.text(max_size=12), min_size=1, max_size=5))
def test_any_name_is_one_that_is_read(parts: t.List[str]) -> None:
    name = archive.file_name(*parts)
    assert archive.unpack(io.BytesIO(archive.pack("support-1", {name: "x"}, 0)), "here") == {name: "x"}
