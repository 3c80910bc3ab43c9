"""Packages for another host: addresses of its repositories, names of files, and the index that apt reads."""

import hashlib
import types

import pytest
from ansible_collections.ipu.fabric.plugins.module_utils._bundle import packages
from ansible_collections.ipu.fabric.plugins.module_utils._common.result import FabricError
from ansible_collections.ipu.fabric.plugins.module_utils._host import apt

BOOKWORM = packages.Platform("debian", "bookworm", "amd64")
GIVEN = {
    "kubernetes": {
        "uri": "https://pkgs.example/v{minor}/deb/",
        "key_url": "https://pkgs.example/key",
        "key_fingerprint": "ab",
    },
    "containerd": {"uri": "https://docker.example/linux/{distribution}", "suite": "{release}", "components": "stable"},
}
OWN = [{"uri": "http://deb.example/debian", "suite": "{release} {release}-updates", "keyring": "/usr/share/k.gpg"}]


def test_repositories_of_a_platform():
    found = packages.repositories(BOOKWORM, "1.35", GIVEN, OWN)
    assert found["kubernetes"][0]["uri"] == "https://pkgs.example/v1.35/deb/"
    assert found["containerd"][0]["uri"] == "https://docker.example/linux/debian"
    assert found["containerd"][0]["suite"] == "bookworm"
    assert found["distribution-0"][0]["suite"] == "bookworm bookworm-updates"
    assert found["distribution-0"][1] == "/usr/share/k.gpg"
    assert "keyring" in OWN[0], "what was given is changed"


@pytest.mark.parametrize("text", ["debian", "debian-bookworm", "debian-bookworm-amd64-x", "debian-a b-amd64", "--"])
def test_what_is_no_platform(text):
    with pytest.raises(FabricError) as error:
        packages.parse_platform(text)
    assert error.value.seen == text


@pytest.mark.parametrize(
    ("archive", "name"),
    [
        ("/a/kubelet_1.35.4-1.1_amd64.deb", "kubelet_1.35.4-1.1_amd64.deb"),
        ("/a/iptables_1%3a1.8_amd64.deb", "iptables_1.8_amd64.deb"),
        ("libc6_2.36-9+deb12u9_amd64.deb", "libc6_2.36-9+deb12u9_amd64.deb"),
    ],
)
def test_a_file_has_no_epoch_in_its_name(archive, name):
    assert packages.pool_name(archive) == name


def test_uris():
    text = (
        "Reading package lists...\n"
        "'http://deb.example/pool/libx_1%3a2_amd64.deb' libx_1%3a2_amd64.deb 1234 SHA256:ab\n"
        "'http://pkgs.example/kubelet.deb' kubelet_1.35.4-1.1_amd64.deb 99 SHA512:cd\n"
        "'http://pkgs.example/a.deb' a_1_amd64.deb 9 \n"  # refused, not left out
    )
    assert packages.parse_uris(text) == [
        ("libx_1%3a2_amd64.deb", "SHA256", "ab"),
        ("kubelet_1.35.4-1.1_amd64.deb", "SHA512", "cd"),
        ("a_1_amd64.deb", "", ""),
    ]


def test_this_machine_has_no_part_in_what_is_resolved():
    dump = (
        'Acquire::http::Proxy "http://p:3128";\nAcquire::IndexTargets::deb::DEP-11 "x";\nAPT::Architecture "amd64";\n'
    )
    text = packages.configuration("/work", "arm64", dump)
    assert 'Dir::State::status "/work/status";' in text
    assert 'APT::Architecture "arm64";' in text
    assert "#clear APT::Architectures;" in text
    assert 'Acquire::http::Proxy "http://p:3128";' in text
    assert "DEP-11" not in text
    assert '"amd64"' not in text
    assert 'Dir::Etc::trusted "/work/none";' in text


def test_index_entry():
    entry = packages.index_entry("Package: a\nVersion: 1\n\n", "a_1_amd64.deb", 5, "ff")
    assert entry == "Package: a\nVersion: 1\nFilename: ./a_1_amd64.deb\nSize: 5\nSHA256: ff\n"


@pytest.fixture
def root(tmp_path, monkeypatch):
    monkeypatch.setattr(packages, "output_of", lambda *_words: "")
    return packages.AptRoot(str(tmp_path), BOOKWORM, 60)


def test_a_key_is_compared_before_hosts_trust_what_it_has_signed(root, tmp_path, monkeypatch):
    key = b"\xc6\x05\x04abcd"
    monkeypatch.setattr(apt, "open_url", lambda url, timeout: types.SimpleNamespace(read=lambda: key))
    repository, keyring = packages.repositories(BOOKWORM, "1.35", GIVEN, [])["kubernetes"]
    with pytest.raises(FabricError, match="not the expected one"):
        root.add("kubernetes", repository, keyring)
    assert not (tmp_path / "etc/apt/sources.list.d").exists()
    fingerprint = hashlib.sha1(b"\x99\x00\x05" + key[2:]).hexdigest()
    root.add("kubernetes", {**repository, "key_fingerprint": fingerprint}, keyring)
    assert f"Signed-By: {tmp_path}{apt.keyring_path('kubernetes')}\n" in (
        tmp_path / "etc/apt/sources.list.d/kubernetes.sources"
    ).read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("given", "seen"),
    [
        ({"uri": "https://x/", "key_url": "https://x/key"}, "neither key_fingerprint nor key_sha256"),
        ({"uri": "https://x/", "trusted": True}, "trusted: true, and https://x/ is not on this host"),
        ({"uri": "file:/srv/x/", "trusted": True}, "trusted: true"),
    ],
)
def test_nothing_unsigned_gets_into_a_bundle(root, given, seen):
    with pytest.raises(FabricError) as error:
        root.add("x", *packages.repositories(BOOKWORM, "1.35", {"x": given}, [])["x"])
    assert error.value.seen == seen


def test_an_archive_that_was_there_is_compared(root, monkeypatch):
    """apt takes one of the right size as fetched."""
    digest = hashlib.sha256(b"package").hexdigest()
    uris = f"'https://x/a.deb' a_1_amd64.deb 7 SHA256:{digest}\n"
    answers = {"madison": "a | 1 | https://x Packages", "--print-uris": uris}
    monkeypatch.setattr(
        packages.AptRoot, "run", lambda self, what, *words: next((answers[w] for w in words if w in answers), "")
    )
    archive = f"{root.archives}/a_1_amd64.deb"
    packages.write(archive, b"package")
    assert root.fetch({"a": "1"}) == [archive]
    packages.write(archive, b"another")
    with pytest.raises(FabricError, match="not the one in the lists"):
        root.fetch({"a": "1"})
    answers["--print-uris"] = "'https://x/a.deb' a_1_amd64.deb 7 MD5Sum:b32d73e56ec99bc5ec8f83871cde708a\n"
    with pytest.raises(FabricError, match="not the one in the lists"):
        root.fetch({"a": "1"})
