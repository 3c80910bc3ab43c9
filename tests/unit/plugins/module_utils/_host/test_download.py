import hashlib
import io
import os
import tarfile

import pytest
from ansible_collections.ipu.fabric.plugins.module_utils._common.result import FabricError
from ansible_collections.ipu.fabric.plugins.module_utils._host import download

CONTENT = b"what was expected"
DIGEST = hashlib.sha256(CONTENT).hexdigest()


class Module:
    def __init__(self, folder, check_mode=False, **params):
        self.check_mode = check_mode
        self.params = {
            "url": f"file://{folder}/archive.tar.gz", "checksum": f"sha256:{DIGEST}", "path": str(folder / "got"),
            "mode": "0600", "timeout": 30, "download_proxy": {}, "member": "", "record": None, "sha256": "",
            "version": [], "setting": "", **params,
        }  # fmt: skip
        self.warnings = []

    def warn(self, text):
        self.warnings.append(text)

    def set_mode_if_different(self, path, mode, changed):
        if not self.check_mode:
            os.chmod(path, int(mode, 8))
        return changed


@pytest.fixture
def site(tmp_path):
    (tmp_path / "archive.tar.gz").write_bytes(CONTENT)
    (tmp_path / "sums").write_text(f"{'0' * 64}  other.tar.gz\n{DIGEST}  archive.tar.gz\n")
    return tmp_path


@pytest.mark.parametrize(
    "checksum", [f"sha256:{DIGEST}", f"sha256:{DIGEST.upper()}", DIGEST, "sha256:file://{}/sums", ""]
)
def test_a_file_is_fetched_once(site, checksum):
    module = Module(site, checksum=checksum.format(site))
    first = download.install(module)
    assert (first["changed"], first["sha256"]) == (True, DIGEST)
    assert (site / "got").read_bytes() == CONTENT
    assert (site / "got").stat().st_mode & 0o777 == 0o600
    assert download.install(module)["changed"] is False


def test_what_is_there_is_not_fetched_again(site):
    download.install(Module(site))
    (site / "archive.tar.gz").unlink()
    assert download.install(Module(site))["changed"] is False


@pytest.mark.parametrize(
    ("checksum", "refused"), [("", True), ("sha256:https://x/sums", True), (f"sha256:{DIGEST}", False)]
)
def test_a_file_that_nothing_is_compared_of_comes_by_tls(site, monkeypatch, checksum, refused):
    class Answer(io.BytesIO):
        url = "http://elsewhere/archive.tar.gz"

    monkeypatch.setattr(download, "open_url", lambda url, timeout, follow_redirects: Answer(CONTENT))
    module = Module(site, url="https://x/archive.tar.gz", checksum=checksum)
    if refused:
        with pytest.raises(FabricError, match="redirected to http://elsewhere"):
            download.install(module)
        assert not (site / "got").exists()
    else:
        assert download.install(module)["sha256"] == DIGEST


def test_another_file_gets_no_name(site):
    (site / "archive.tar.gz").write_bytes(b"another")
    with pytest.raises(FabricError, match="not the one that was expected"):
        download.install(Module(site))
    assert sorted(path.name for path in site.iterdir()) == ["archive.tar.gz", "sums"]


def test_a_download_that_breaks_leaves_nothing(site, monkeypatch):
    def breaks(_answer, file, _size):
        file.write(CONTENT[:4])
        raise ConnectionResetError("reset by the server")

    monkeypatch.setattr(download.shutil, "copyfileobj", breaks)
    with pytest.raises(FabricError, match="could not be fetched"):
        download.install(Module(site))
    assert sorted(path.name for path in site.iterdir()) == ["archive.tar.gz", "sums"]


def test_check_mode_writes_nothing(site):
    result = download.install(Module(site, check_mode=True))
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


# ---- a program in an archive


PROGRAM = b"#!/bin/sh\necho cri-dockerd\n"
PROGRAM_DIGEST = hashlib.sha256(PROGRAM).hexdigest()


@pytest.fixture
def packed(tmp_path):
    """An archive as publishers pack it, and the module for it."""
    path = tmp_path / "archive.tar.gz"
    with tarfile.open(path, "x:gz") as archive:
        about = tarfile.TarInfo("cri-dockerd/cri-dockerd")
        about.size, about.mode = len(PROGRAM), 0o644
        archive.addfile(about, io.BytesIO(PROGRAM))
    digest = hashlib.sha256(path.read_bytes()).hexdigest()

    def module(**params):
        given = {"checksum": f"sha256:{digest}", "mode": "0755", "member": "cri-dockerd", "path": str(tmp_path / "it")}
        return Module(tmp_path, **{**given, "record": str(tmp_path / "lib/record"), **params})

    module.digest = digest
    return module


def test_a_program_is_put_in_place_with_its_record(tmp_path, packed):
    checked = download.install(packed(check_mode=True))
    assert (checked["changed"], sorted(path.name for path in tmp_path.iterdir())) == (True, ["archive.tar.gz"])
    result = download.install(packed())
    assert (result["changed"], result["sha256"]) == (True, PROGRAM_DIGEST)
    assert (tmp_path / "it").read_bytes() == PROGRAM
    assert (tmp_path / "it").stat().st_mode & 0o777 == 0o755
    assert (tmp_path / "lib/record").read_text() == f"{PROGRAM_DIGEST} sha256:{packed.digest}\n"
    assert not download.install(packed())["changed"]


OURS = hashlib.sha256(b"ours").hexdigest()


@pytest.mark.parametrize(
    ("there", "recorded", "installs"),
    [
        (b"ours", f"{OURS} sha256:{{digest}}\n", False),
        (b"theirs", f"{OURS} sha256:{{digest}}\n", True),  # somebody has put another program in its place
        (b"ours", f"{OURS} sha256:{'0' * 64}\n", True),  # another archive is asked for
    ],
)
def test_the_program_is_installed_when_it_is_another_one(tmp_path, packed, there, recorded, installs):
    (tmp_path / "it").write_bytes(there)
    (tmp_path / "record").write_text(recorded.format(digest=packed.digest))
    assert download.install(packed(record=str(tmp_path / "record")))["changed"] == installs
    assert ((tmp_path / "it").read_bytes() != there) == installs


@pytest.mark.parametrize(
    ("params", "seen"),
    [
        ({"checksum": f"sha256:{'0' * 64}"}, "not the one that was expected"),
        ({"checksum": "0" * 64}, "not the one that was expected"),  # it was taken for none
        ({"member": "other"}, "no file other in it"),
        ({"sha256": f"sha256:{'0' * 64}"}, f"sha256 {PROGRAM_DIGEST} instead of {'0' * 64}"),
    ],
)
def test_what_is_not_the_program_is_left_where_it_is(tmp_path, packed, params, seen):
    with pytest.raises(FabricError, match=seen):
        download.install(packed(**params))
    assert sorted(path.name for path in tmp_path.iterdir() if path.is_file()) == ["archive.tar.gz"]
    assert not (tmp_path / "lib/record").exists()


# ---- a tool of the run, which stays as it is


TOOL = b"#!/bin/sh\necho v3.22.0 $*\n"
TOOL_DIGEST = hashlib.sha256(TOOL).hexdigest()


@pytest.fixture
def tool(tmp_path, packed):
    """The module for an installed program; with nothing at its URL."""
    (tmp_path / "archive.tar.gz").unlink()

    def module(recorded="", release="v3.22.0", **params):
        (tmp_path / "it").write_bytes(TOOL)
        (tmp_path / "it").chmod(0o755)
        (tmp_path / "record").write_text(recorded)
        url = f"file://{tmp_path}/helm-{release}-linux-amd64.tar.gz"
        return packed(url=url, **{"record": str(tmp_path / "record"), "version": ["-s"], **params})

    return module


@pytest.mark.parametrize("check_mode", [False, True])
@pytest.mark.parametrize(
    "known",
    [
        {"recorded": f"{TOOL_DIGEST} sha256:{'0' * 64}\n"},
        {"recorded": f"{TOOL_DIGEST}  helm\n"},  # as sha256sum writes it
        {"sha256": TOOL_DIGEST.upper()},
        {"sha256": f"sha256:{TOOL_DIGEST}", "recorded": f"{'0' * 64}\n"},
    ],
)
def test_a_tool_that_is_known_stays(tool, known, check_mode):
    module = tool(check_mode=check_mode, **known)
    assert (download.install(module)["changed"], module.warnings) == (False, [])


@pytest.mark.parametrize(
    ("known", "seen"),
    [
        ({"recorded": f"{'0' * 64}\n"}, f"SHA-256 {TOOL_DIGEST}, expected {'0' * 64} .*record"),
        ({"sha256": "0" * 64, "recorded": f"{TOOL_DIGEST}\n"}, "[(]sha256[)]"),
        ({"release": "v3.21.0", "version": [""]}, "v3.22.0, expected v3.21.0"),
        ({"release": "v3.22.0", "version": ["-s"]}, "v3.22.0 -s, expected v3.22.0"),
    ],
)
def test_a_tool_that_is_another_one_is_refused(tool, known, seen):
    with pytest.raises(FabricError, match=seen):
        download.install(tool(**known))


def test_a_tool_that_nobody_knows_is_asked_for_its_release(tool):
    module = tool(version=[""])
    assert download.install(module)["changed"] is False
    assert (
        f"reports the release v3.22.0, but no digest of the program is known. Next: give its sha256, {TOOL_DIGEST}"
        in (module.warnings[0])
    )


def test_check_mode_does_without_a_tool(tmp_path, packed):
    (tmp_path / "archive.tar.gz").unlink()
    result = download.install(packed(check_mode=True, checksum="sha256:file:///nowhere", version=["-s"]))
    assert (result["changed"], list(tmp_path.iterdir())) == (False, [])


def test_a_url_that_does_not_answer_names_its_variable(site):
    with pytest.raises(FabricError) as error:
        download.install(Module(site, url=f"file://{site}/none", setting="fabric_mirror.helm"))
    assert error.value.next_step.endswith("URL and digest: fabric_mirror.helm.")
