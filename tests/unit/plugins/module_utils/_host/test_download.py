# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import hashlib
import io
import os

import pytest
from ansible_collections.ipu.fabric.plugins.module_utils._common.result import FabricError
from ansible_collections.ipu.fabric.plugins.module_utils._host import download

CONTENT = b"what was expected"
DIGEST = hashlib.sha256(CONTENT).hexdigest()


class Module:
    def __init__(self, path, check_mode=False, **params):
        self.check_mode = check_mode
        self.params = {
            "url": f"file://{path}/archive.tar.gz", "checksum": f"sha256:{DIGEST}", "dest": str(path / "got"),
            "mode": "0600", "timeout": 30, "download_proxy": {}, **params,
        }  # fmt: skip

    def set_mode_if_different(self, path, mode, changed):
        if not self.check_mode:
            os.chmod(path, int(mode, 8))
        return changed


@pytest.fixture
def site(tmp_path):
    (tmp_path / "archive.tar.gz").write_bytes(CONTENT)
    (tmp_path / "sums").write_text(f"{'0' * 64}  other.tar.gz\n{DIGEST}  archive.tar.gz\n")
    return tmp_path


@pytest.mark.parametrize("checksum", [f"sha256:{DIGEST}", f"sha256:{DIGEST.upper()}", "sha256:file://{}/sums", ""])
def test_a_file_is_fetched_once(site, checksum):
    module = Module(site, checksum=checksum.format(site))
    first = download.download(module)
    assert (first["changed"], first["sha256"]) == (True, DIGEST)
    assert (site / "got").read_bytes() == CONTENT
    assert (site / "got").stat().st_mode & 0o777 == 0o600
    assert download.download(module)["changed"] is False


def test_what_is_there_is_not_fetched_again(site):
    download.download(Module(site))
    (site / "archive.tar.gz").unlink()
    assert download.download(Module(site))["changed"] is False


@pytest.mark.parametrize(
    ("checksum", "refused"), [("", True), ("sha256:https://x/sums", True), (f"sha256:{DIGEST}", False)]
)
def test_a_file_that_nothing_is_compared_of_comes_by_tls(site, monkeypatch, checksum, refused):
    class Answer(io.BytesIO):
        url = "http://elsewhere/archive.tar.gz"

    monkeypatch.setattr(download, "open_url", lambda url, timeout, follow_redirects: Answer(CONTENT))
    module = Module(site, url="https://x/archive.tar.gz", checksum=checksum)
    if refused:
        with pytest.raises(FabricError, match="sent on to http://elsewhere"):
            download.download(module)
        assert not (site / "got").exists()
    else:
        assert download.download(module)["sha256"] == DIGEST


def test_another_file_gets_no_name(site):
    (site / "archive.tar.gz").write_bytes(b"another")
    with pytest.raises(FabricError, match="not the one that was expected"):
        download.download(Module(site))
    assert sorted(path.name for path in site.iterdir()) == ["archive.tar.gz", "sums"]


def test_a_download_that_breaks_leaves_nothing(site, monkeypatch):
    def breaks(_answer, file, _size):
        file.write(CONTENT[:4])
        raise ConnectionResetError("reset by the server")

    monkeypatch.setattr(download.shutil, "copyfileobj", breaks)
    with pytest.raises(FabricError, match="could not be fetched"):
        download.download(Module(site))
    assert sorted(path.name for path in site.iterdir()) == ["archive.tar.gz", "sums"]


def test_check_mode_writes_nothing(site):
    result = download.download(Module(site, check_mode=True))
    assert (result["changed"], result["sha256"]) == (True, DIGEST)
    assert not (site / "got").exists()


@pytest.mark.parametrize(
    ("text", "name", "digest"),
    [
        ("A" * 64 + "  helm.tar.gz\n", "helm.tar.gz", "a" * 64),
        ("b" * 64, "helm.tar.gz", "b" * 64),
        ("c" * 64 + "  other\n" + "d" * 64 + " *dir/helm.tar.gz\n", "helm.tar.gz", "d" * 64),
        ("<html>", "helm.tar.gz", ""),
    ],
)
def test_digest_in_a_list(text, name, digest):
    assert download.digest_in(text, name) == digest
