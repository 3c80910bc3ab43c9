# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Packages for another host: addresses of its repositories, names of files, and the index that apt reads."""

from __future__ import annotations

import pytest
from ansible_collections.ipu.fabric.plugins.module_utils._bundle import packages
from ansible_collections.ipu.fabric.plugins.module_utils._common.result import FabricError

BOOKWORM = packages.Platform("debian", "bookworm", "amd64")
GIVEN = {
    "kubernetes": {"uri": "https://pkgs.example/v{minor}/deb/", "key_url": "https://pkgs.example/key"},
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
    )
    assert packages.parse_uris(text) == ["libx_1%3a2_amd64.deb", "kubelet_1.35.4-1.1_amd64.deb"]


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
