"""Lists as vendors' guides have people write them: which of their entries name a repository of ours."""

import pytest
from ansible_collections.ipu.fabric.plugins.module_utils._host import apt_lists

DOCKER = "https://download.docker.com/linux/debian"
OURS = apt_lists.make_source([DOCKER], ["bookworm"], ["stable"], "/etc/apt/keyrings/containerd.gpg", "")
FLAT = apt_lists.make_source(["https://pkgs.k8s.io/core:/stable:/v1.36/deb/"], ["/"], [], "/k/kubernetes.gpg", "")
GUIDE = "deb [arch=amd64 signed-by=/etc/apt/keyrings/docker.asc] "
STANZA = f"Types: deb\nURIs: {DOCKER}\nSuites: bookworm\nComponents: stable\n"


def rivals(path, text, ours=OURS):
    found = apt_lists.find_rivals(apt_lists.read_entries(path, text), ours)
    return [(entry.first, entry.last, apt_lists.offers_more(entry.source, ours)) for entry in found]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        (f"{GUIDE}{DOCKER} bookworm stable\n", [(0, 0, False)]),
        (f"# of Docker\n{GUIDE}{DOCKER}/ bookworm stable # theirs\n", [(1, 1, False)]),
        (f"deb {DOCKER} bookworm stable", [(0, 0, False)]),  # its key is in trusted.gpg.d
        (f"deb-src {DOCKER} bookworm stable", [(0, 0, False)]),
        (f"deb [ trusted=yes ] {DOCKER} bookworm stable", [(0, 0, False)]),
        (f"{GUIDE}{DOCKER.replace('https', 'HTTP')}// bookworm stable", [(0, 0, False)]),
        (f"{GUIDE}https://me:word@Download.Docker.com/linux/debian bookworm stable", [(0, 0, False)]),
        (f"{GUIDE}{DOCKER} bookworm stable test", [(0, 0, True)]),
        (f"{GUIDE}{DOCKER} bullseye stable", []),
        (f"{GUIDE}https://download.docker.com/linux/ubuntu bookworm stable", []),
        (f"#{GUIDE}{DOCKER} bookworm stable", []),
        (f"deb [signed-by=/etc/apt/keyrings/containerd.gpg] {DOCKER} bookworm stable", []),
        ("deb http://debian.site/debian bookworm main\n", []),
        ("words", []),
    ],
)
def test_lines(text, expected):
    assert rivals("/etc/apt/sources.list.d/docker.list", text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (STANZA, [(0, 3, False)]),
        (f"# theirs\n{STANZA}Signed-By: /etc/apt/keyrings/docker.asc\n", [(0, 5, False)]),
        (f"{STANZA}Signed-By: /etc/apt/keyrings/containerd.gpg\n", []),
        (f"{STANZA}Signed-By:\n -----BEGIN PGP PUBLIC KEY BLOCK-----\n .\n mQ\n", [(0, 7, False)]),
        (f"{STANZA}Enabled: no\n", []),
        (f"Types: deb\nURIs: http://x/\nSuites: /\n\n\n{STANZA}", [(5, 8, False)]),
        (STANZA.replace("bookworm", "bookworm bookworm-test"), [(0, 3, True)]),
        (STANZA.replace(f"URIs: {DOCKER}", f"uris:\n http://other/\n {DOCKER}"), [(0, 5, True)]),
        (STANZA.replace("URIs", "# URIs"), []),
    ],
)
def test_stanzas(text, expected):
    assert rivals("/etc/apt/sources.list.d/docker.sources", text) == expected


def test_a_flat_repository():
    line = "deb [signed-by=/etc/apt/keyrings/kubernetes-apt-keyring.gpg] https://pkgs.k8s.io/core:/stable:/v1.{}/deb/ /"
    assert rivals("kubernetes.list", line.format(36), FLAT) == [(0, 0, False)]
    assert rivals("kubernetes.list", line.format(35), FLAT) == []


@pytest.mark.parametrize("path", ["docker.list", "docker.sources"])
def test_an_entry_that_is_commented_out_counts_no_more_and_can_be_given_back(path):
    text = f"# first\n{GUIDE}{DOCKER} bookworm stable\n"
    if path.endswith(".sources"):
        text = f"Types: deb\nURIs: http://x/\nSuites: /\n\n{STANZA}# with a word\nSigned-By: /k\n"
    entries = apt_lists.read_entries(path, text)
    disabled = apt_lists.disable(text, apt_lists.find_rivals(entries, OURS))
    assert rivals(path, disabled) == []
    assert len(apt_lists.read_entries(path, disabled)) == len(entries) - 1
    assert disabled != text
    assert apt_lists.enable(disabled) == text
