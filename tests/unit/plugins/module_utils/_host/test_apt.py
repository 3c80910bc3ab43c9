import base64
import hashlib
import types

import pytest
from ansible_collections.ipu.fabric.plugins.module_utils._common.command import Done
from ansible_collections.ipu.fabric.plugins.module_utils._common.result import FabricError
from ansible_collections.ipu.fabric.plugins.module_utils._host import apt, openpgp
from ansible_collections.ipu.fabric.tests.unit.fixtures.module import Module

BODY = b"\x04" + bytes(range(199))
KEY = b"\x99\x00\xc8" + BODY
PACKED = openpgp.pack(openpgp.PUBLIC_KEY, BODY)
OTHER = b"\xc6\x05\x04evil"


def armor(key, newline=b"\n", headers=b""):
    body = newline.join(base64.b64encode(key)[start : start + 64] for start in range(0, len(base64.b64encode(key)), 64))
    begin, end = b"-----BEGIN PGP PUBLIC KEY BLOCK-----", b"-----END PGP PUBLIC KEY BLOCK-----"
    return begin + newline + headers + newline + body + newline + b"=Ab1z" + newline + end + newline


PLAIN = armor(KEY)
VERSION = b"Version: GnuPG v2.0.15 (GNU/Linux)\n"


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        (KEY, True),
        (b"\x98\x01", True),
        (b"\xc6\x01", True),
        (b"", False),
        (b"<html>", False),
        (PLAIN, True),
        (PLAIN[:-20], False),  # cut off
        (PLAIN.replace(b"PUBLIC", b"PRIVATE"), False),
    ],
)
def test_looks_like_key(key, expected):
    assert apt.looks_like_key(key) is expected


@pytest.mark.parametrize(
    ("version", "asked", "expected"),
    [
        ("1.35.4-1.1", "1.35.4", True),
        ("1.35.4-1.1", "1.35.4-1.1", True),
        ("1.35.4-1.1", "1.35", True),
        ("1.35.40-1.1", "1.35.4", False),
        ("1.35.4-1.1", "1.3", False),
        ("1.35.4-1.1", "", True),
        ("2.2.1-1~debian.12~bookworm", "2", True),
        ("2.2.1-1~debian.12~bookworm", "2.2.1", True),
        ("1.7.27-1", "2", False),
        ("5:28.0.1-1~debian.12~bookworm", "28.0", True),
        ("5:28.0.1-1~debian.12~bookworm", "5:28.0.1", True),
        ("1.35.4~rc1", "1.35.4", True),
    ],
)
def test_satisfies(version, asked, expected):
    assert apt.satisfies(version, asked) is expected


REPOSITORY = {
    "uri": "https://example.org/deb",
    "suite": "bookworm",
    "components": "stable",
    "key_url": "https://example.org/key",
    "key_sha256": "",
    "key_fingerprint": "none",
}
DIGEST = "ab" * 32


def test_sources_text_of_a_suite():
    assert apt.sources_text(REPOSITORY, ["/etc/apt/keyrings/x.asc", "/etc/apt/keyrings/x-2.asc"], DIGEST) == (
        f"# Key: https://example.org/key sha256:{DIGEST}\n"
        "Types: deb\nURIs: https://example.org/deb\nSuites: bookworm\nComponents: stable\n"
        "Signed-By: /etc/apt/keyrings/x.asc /etc/apt/keyrings/x-2.asc\n"
    )


def test_sources_text_of_a_flat_repository_that_the_host_trusts():
    flat = {**REPOSITORY, "suite": "/", "components": "", "key_url": ""}
    text = apt.sources_text(flat, [], "")
    assert text == "Types: deb\nURIs: https://example.org/deb\nSuites: /\n"


@pytest.mark.parametrize(
    ("sources", "url", "expected"),
    [
        (f"# Key: https://example.org/key sha256:{DIGEST}\nTypes: deb\n", "https://example.org/key", DIGEST),
        (f"# Key: https://example.org/key sha256:{DIGEST}\nTypes: deb\n", "https://example.org/other", ""),
        ("Types: deb\n", "https://example.org/key", ""),
        ("", "https://example.org/key", ""),
    ],
)
def test_key_digest(sources, url, expected):
    assert apt.key_digest(sources, url) == expected


def package(version, state="installed", selection="install"):
    return {"version": version, "state": state, "selection": selection}


def test_parse_status():
    text = "kubelet\thold\tinstalled\t1.35.4-1.1\nlibfoo\tdeinstall\tconfig-files\t1.0\n"
    assert apt.parse_status(text) == {
        "kubelet": package("1.35.4-1.1", selection="hold"),
        "libfoo": package("1.0", "config-files", "deinstall"),
    }


@pytest.mark.parametrize(
    ("packages", "expected"),
    [
        ({}, {"kubelet": "1.35.4"}),
        ({"kubelet": package("1.35.4-1.1")}, {}),
        ({"kubelet": package("1.34.9-1.1")}, {"kubelet": "1.35.4"}),
        ({"kubelet": package("1.35.4-1.1", "half-configured")}, {"kubelet": "1.35.4"}),
        ({"kubelet": package("1.35.4-1.1", "config-files")}, {"kubelet": "1.35.4"}),
    ],
)
def test_missing(packages, expected):
    assert apt.find_missing(packages, {"kubelet": "1.35.4"}) == expected


@pytest.mark.parametrize(
    ("packages", "keep", "refused"),
    [
        ({"containerd.io": package("1.7.28-1")}, ["containerd.io"], True),
        ({"containerd.io": package("1.7.28-1")}, [], False),
        ({"containerd.io": package("2.2.1-1")}, ["containerd.io"], False),
        ({"containerd.io": package("1.7.28-1", "config-files")}, ["containerd.io"], False),
        ({"kubelet": package("1.35.4-1.1")}, ["containerd.io"], False),
    ],
)
def test_a_runtime_of_a_node_is_not_changed(packages, keep, refused):
    """Its package restarts it, on all hosts at the same time."""
    wanted = apt.find_missing(packages, {"containerd.io": "2"})
    if not refused:
        apt.check_kept(packages, wanted, keep)
        return
    with pytest.raises(FabricError, match="container runtime are not changed") as caught:
        apt.check_kept(packages, wanted, keep)
    assert caught.value.seen == "containerd.io 1.7.28-1, and 2 is asked for"


def test_a_package_that_stays_is_refused_before_anything_is_changed(monkeypatch, host):
    module = Module(
        download_proxy={}, sets_proxy=False, only=False, replaces=[],
        packages=[{"name": "containerd.io", "version": "2", "hold": True}],
        repositories={"x": REPOSITORY}, lock_timeout=-1, timeout=60, keep=["containerd.io"],
    )  # fmt: skip
    answer = Done(0, "containerd.io\thold\tinstalled\t1.7.28-1\n")
    monkeypatch.setattr(apt, "run_program", lambda argv, *_timeout, **_options: answer)
    with pytest.raises(FabricError, match="container runtime are not changed"):
        apt.apply_packages(module)
    assert not host.sources.exists()


MADISON = """\
   kubelet | 1.35.5-1.1 | https://pkgs.k8s.io/core:/stable:/v1.35/deb  Packages
   kubelet | 1.35.4-1.1 | https://pkgs.k8s.io/core:/stable:/v1.35/deb  Packages
containerd.io | 2.2.1-1~debian.12~bookworm | https://download.docker.com/linux/debian bookworm/stable amd64 Packages
"""


def test_choose_takes_the_newest_that_fits():
    offers = apt.parse_madison(MADISON)
    wanted = {"kubelet": "1.35.4", "containerd.io": "2"}
    assert apt.choose(offers, wanted) == {"kubelet": "1.35.4-1.1", "containerd.io": "2.2.1-1~debian.12~bookworm"}
    assert apt.choose(offers, {"kubelet": ""}) == {"kubelet": "1.35.5-1.1"}


@pytest.mark.parametrize(
    ("wanted", "seen"),
    [({"kubelet": "1.36"}, "on offer: 1.35.5-1.1, 1.35.4-1.1"), ({"kubeadm": ""}, "nothing of that name")],
)
def test_choose_says_what_is_on_offer(wanted, seen):
    with pytest.raises(FabricError, match="No repository has") as caught:
        apt.choose(apt.parse_madison(MADISON), wanted)
    assert seen in caught.value.seen


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("E: Could not get lock /var/lib/apt/lists/lock. It is held by process 123 (apt-get)", True),
        ("dpkg: error: dpkg frontend lock was locked by another process with pid 42", True),
        ("E: Unable to lock the administration directory (/var/lib/dpkg/), is another process using it?", True),
        ("E: Unable to locate package kubelet", False),
    ],
)
def test_is_busy(message, expected):
    assert apt.is_busy(message) is expected


@pytest.mark.parametrize(
    ("given", "seen"),
    [({"url": "x"}, "unknown: url"), ({}, "no uri"), ("https://example.org", "unknown: the entry is not a mapping")],
)
def test_repository_that_is_not_described_well(given, seen):
    with pytest.raises(FabricError) as caught:
        apt.as_repository("kubernetes", given)
    assert caught.value.seen == seen


def test_repository_gets_its_defaults():
    assert apt.as_repository("x", {"uri": "u"}) == {
        "uri": "u",
        "suite": "/",
        "components": "",
        "key_url": "",
        "key_sha256": "",
        "key_fingerprint": "",
    }


@pytest.mark.parametrize(
    ("given", "seen"),
    [
        ({"uri": "https://x/", "key_url": "https://x/key"}, "neither key_fingerprint nor key_sha256"),
        ({"uri": "https://x/", "key_url": "https://x/key", "key_fingerprint": " "}, "neither key_fingerprint nor"),
        ({"uri": "http://x/", "trusted": True}, "trusted: true, and http://x/ is not on this host"),
    ],
)
def test_nobody_takes_any_key_without_saying_so(given, seen):
    with pytest.raises(FabricError) as caught:
        apt.as_repository("x", given)
    assert seen in caught.value.seen
    assert caught.value.code == "invalid-input"


class Served:
    def __init__(self, body, url="https://example.org/key"):
        self.body, self.url = body, url

    def read(self):
        return self.body

    def geturl(self):
        return self.url


ANY = apt.KeyCheck("", openpgp.ANY)


def test_fetch_key(monkeypatch):
    served = armor(KEY)
    digest = hashlib.sha256(served).hexdigest()
    monkeypatch.setattr(apt, "open_url", lambda url, timeout: Served(served))
    check = apt.key_check({**REPOSITORY, "key_sha256": digest.upper()})
    keyring, seen = apt.fetch_key("https://example.org/key", check)
    assert (keyring.data, seen) == (PACKED, digest)
    assert apt.fetch_key("https://example.org/key", ANY) == (keyring, digest)


@pytest.mark.parametrize(
    ("body", "sha256", "what"),
    [(armor(KEY), "0" * 64, "not the expected one"), (b"<html>moved</html>", "", "not an OpenPGP key")],
)
def test_fetch_key_refuses(monkeypatch, body, sha256, what):
    monkeypatch.setattr(apt, "open_url", lambda url, timeout: Served(body))
    with pytest.raises(FabricError, match=what):
        apt.fetch_key("https://example.org/key", ANY._replace(sha256=sha256))


def test_a_key_that_nothing_is_compared_of_comes_by_tls(monkeypatch):
    monkeypatch.setattr(apt, "open_url", lambda url, timeout: Served(KEY, "http://example.org/key"))
    with pytest.raises(FabricError, match=r"redirected to http://example\.org/key, without TLS"):
        apt.fetch_key("https://example.org/key", ANY)


ONE_KEY = b"\xc6\x05\x04abcd"
FINGERPRINT = hashlib.sha1(b"\x99\x00\x05" + ONE_KEY[2:]).hexdigest()


@pytest.mark.parametrize("fingerprint", ["none", FINGERPRINT, f"{FINGERPRINT[:4]} {FINGERPRINT[4:]}, {'0' * 40}"])
def test_a_key_with_its_fingerprint(monkeypatch, fingerprint):
    monkeypatch.setattr(apt, "open_url", lambda url, timeout: Served(ONE_KEY))
    check = apt.key_check({**REPOSITORY, "key_fingerprint": fingerprint})
    assert apt.fetch_key("http://example.org/key", check)[0].data == ONE_KEY


@pytest.mark.parametrize("served", [ONE_KEY, ONE_KEY + OTHER, ONE_KEY + b"\x00", b"\xc6\x05\x04ab"])
def test_a_key_with_another_fingerprint_or_one_more(monkeypatch, served):
    monkeypatch.setattr(apt, "open_url", lambda url, timeout: Served(served))
    wanted = "0" * 40 if served == ONE_KEY else FINGERPRINT
    check = apt.key_check({**REPOSITORY, "key_fingerprint": wanted})
    with pytest.raises(FabricError, match="not the expected one"):
        apt.fetch_key("http://example.org/key", check)
    # A site that names the digest has looked at the key, but what can't be read can't be written for apt.
    check = check._replace(sha256=hashlib.sha256(served).hexdigest())
    if served in (ONE_KEY, ONE_KEY + OTHER):
        assert apt.fetch_key("http://example.org/key", check)[0].data == served
    else:
        with pytest.raises(FabricError, match="not the expected one"):
            apt.fetch_key("http://example.org/key", check)


def test_fetch_key_unreachable(monkeypatch):
    def refuse(url, timeout):
        raise OSError("connection refused")

    monkeypatch.setattr(apt, "open_url", refuse)
    with pytest.raises(FabricError, match="connection refused") as error:
        apt.fetch_key("https://example.org/key", ANY, "kubernetes")
    assert "(fabric_mirror.apt.kubernetes.key_url)" in error.value.next_step


@pytest.fixture
def host(tmp_path, monkeypatch):
    """Directories of apt, and a server that has one key; `fetched` counts how often it was asked."""
    monkeypatch.setattr(apt, "SOURCES", str(tmp_path / "sources"))
    monkeypatch.setattr(apt, "KEYRINGS", str(tmp_path / "keyrings"))
    server = types.SimpleNamespace(key=PLAIN, fetched=0, keyrings=tmp_path / "keyrings", sources=tmp_path / "sources")

    def open_url(url, timeout):
        server.fetched += 1
        return Served(server.key)

    monkeypatch.setattr(apt, "open_url", open_url)
    return server


def install_as_before(host, served, keyring="x.gpg"):
    """What earlier releases wrote: the key as it was served, or made binary."""
    host.keyrings.mkdir()
    host.sources.mkdir()
    (host.keyrings / keyring).write_bytes(served if keyring == "x.asc" else KEY)
    digest = hashlib.sha256(served).hexdigest()
    (host.sources / "x.sources").write_text(apt.sources_text(REPOSITORY, [f"{apt.KEYRINGS}/{keyring}"], digest))


def keyrings(host):
    return sorted(path.name for path in host.keyrings.iterdir())


@pytest.mark.parametrize("served", [PLAIN, KEY, b"some words before\n" + PLAIN.replace(b"\n", b"\r\n")])
def test_a_key_is_fetched_once(host, served):
    host.key = served
    before, after = apt.ensure_repository(Module(), "x", REPOSITORY)
    assert before == ""
    assert after == (host.sources / "x.sources").read_text()
    assert f"Signed-By: {apt.KEYRINGS}/x.gpg\n" in after
    assert (keyrings(host), (host.keyrings / "x.gpg").read_bytes()) == (["x.gpg"], PACKED)
    assert apt.ensure_repository(Module(), "x", REPOSITORY) == (after, after)
    assert host.fetched == 1


def seen_by_apt(path):
    """The keys that apt takes from a keyring. In an armored one, only an empty line ends the headers (apt-key)."""
    content = path.read_bytes()
    if path.suffix == ".gpg":
        return openpgp.read_keys(content).fingerprints
    lines = content.split(b"\n")
    body = lines[lines.index(b"") + 1 :]
    return openpgp.read_keys(base64.b64decode(b"".join(line for line in body if line[:1] not in b"=-"))).fingerprints


def test_apt_reads_the_key_that_was_compared(host):
    """Headers that end with a blank line for us, and further down for apt: there the attacker's key begins."""
    first = ONE_KEY + b"\xfc\x07" + bytes(7) + b"\xc2\x07"  # private, up to a multiple of three; then a signature
    parts = [b" ", base64.b64encode(first), b"", base64.b64encode(OTHER)]
    begin, end = b"-----BEGIN PGP PUBLIC KEY BLOCK-----", b"-----END PGP PUBLIC KEY BLOCK-----"
    host.key = b"\n".join([begin, *parts, end, b""])
    apt.ensure_repository(Module(), "x", {**REPOSITORY, "key_fingerprint": FINGERPRINT})
    [keyring] = host.keyrings.iterdir()
    assert [each.lower() for each in seen_by_apt(keyring)] == [FINGERPRINT]


@pytest.mark.parametrize(("served", "keyring"), [(PLAIN, "x.gpg"), (PLAIN, "x.asc"), (KEY, "x.gpg")])
def test_a_keyring_that_was_written_as_it_was_served_is_replaced(host, served, keyring):
    host.key = served
    install_as_before(host, served, keyring)
    _before, after = apt.ensure_repository(Module(), "x", REPOSITORY)
    assert f"Signed-By: {apt.KEYRINGS}/x.gpg\n" in after
    assert (keyrings(host), (host.keyrings / "x.gpg").read_bytes()) == (["x.gpg"], PACKED)
    assert apt.ensure_repository(Module(), "x", REPOSITORY) == (after, after)
    assert host.fetched == 1


def test_a_keyring_of_others_that_an_edited_list_names_stays(host, tmp_path):
    apt.ensure_repository(Module(), "x", REPOSITORY)
    others = tmp_path / "others.gpg"
    others.write_bytes(PACKED)
    sources = host.sources / "x.sources"
    sources.write_text(sources.read_text().replace(f"{apt.KEYRINGS}/x.gpg", str(others)))
    apt.ensure_repository(Module(), "x", REPOSITORY)
    assert (keyrings(host), others.exists()) == (["x.gpg"], True)


def test_a_keyring_in_check_mode(host):
    install_as_before(host, PLAIN)
    before, after = apt.ensure_repository(Module(check_mode=True), "x", REPOSITORY)
    assert before != after
    assert (keyrings(host), host.fetched) == (["x.gpg"], 0)
    assert (host.sources / "x.sources").read_text() == before


def test_a_keyring_that_is_missing_or_of_another_digest_is_fetched(host):
    apt.ensure_repository(Module(), "x", REPOSITORY)
    (host.keyrings / "x.gpg").unlink()
    apt.ensure_repository(Module(), "x", REPOSITORY)
    assert (keyrings(host), host.fetched) == (["x.gpg"], 2)
    with pytest.raises(FabricError, match="not the expected one"):
        apt.ensure_repository(Module(), "x", {**REPOSITORY, "key_sha256": "0" * 64, "key_fingerprint": ""})
    assert host.fetched == 3


def expiring(life):
    """A key of 1970 that lives this long."""
    area = b"\x05\x02" + life.to_bytes(4, "big") + b"\x05\x09" + life.to_bytes(4, "big")
    body = b"\x04" + bytes(4) + b"\x01"
    signature = b"\x04\x13\x01\x08" + len(area).to_bytes(2, "big") + area
    return openpgp.pack(openpgp.PUBLIC_KEY, body) + openpgp.pack(openpgp.SIGNATURE, signature)


def test_a_key_that_was_renewed_under_its_fingerprint_is_fetched_when_it_has_expired(host):
    host.key = expiring(1000)
    [fingerprint] = openpgp.read_keys(host.key).fingerprints
    repository = {**REPOSITORY, "key_fingerprint": fingerprint}
    _before, first = apt.ensure_repository(Module(), "x", repository)
    still = Module()
    assert apt.ensure_repository(still, "x", repository) == (first, first)
    assert "expired on 1970-01-01" in still.warnings[0]
    assert "it still serves the same key" in still.warnings[0]
    host.key = expiring(0xF0000000)
    before, after = apt.ensure_repository(Module(check_mode=True), "x", repository)
    assert before == first != after
    assert (host.keyrings / "x.gpg").read_bytes() == expiring(1000)
    assert apt.ensure_repository(Module(), "x", repository) == (before, after)
    assert (host.keyrings / "x.gpg").read_bytes() == host.key
    asked = host.fetched
    assert apt.ensure_repository(Module(), "x", repository) == (after, after)
    assert host.fetched == asked


def test_an_expired_key_stays_while_there_is_no_other(host):
    host.key = expiring(1000)
    apt.ensure_repository(Module(), "x", REPOSITORY)
    host.key = b"<html>"
    module = Module()
    before, after = apt.ensure_repository(module, "x", REPOSITORY)
    assert before == after
    assert "<html>" in module.warnings[0]


def test_a_lock_is_waited_for(monkeypatch):
    monkeypatch.setattr(apt.time, "sleep", lambda seconds: None)
    module = Module((100, "", "E: Could not get lock /var/lib/apt/lists/lock"), (0, "done", ""))
    monkeypatch.setattr(apt, "run_program", module.run_program)
    assert apt.Apt(60, 60).run(["apt-get", "update"], "Could not read the package lists.") == "done"
    assert len(module.commands) == 2


@pytest.mark.parametrize(
    ("err", "next_step"), [("E: Could not get lock x", "holds the lock"), ("E: broken packages", "what apt reports")]
)
def test_a_failure_says_what_to_do(monkeypatch, err, next_step):
    monkeypatch.setattr(apt, "run_program", Module((100, "", err)).run_program)
    with pytest.raises(FabricError) as caught:
        apt.Apt(-1, 60).run(["apt-get", "install"], "Could not install packages.")
    assert next_step in caught.value.next_step
    assert caught.value.seen == err


def test_an_interrupted_dpkg_is_finished(monkeypatch):
    monkeypatch.setattr(apt.os.path, "isdir", lambda path: False)
    module = Module((0, "", ""), (0, "", ""))
    monkeypatch.setattr(apt, "run_program", module.run_program)
    manager = apt.Apt(60, 60)
    assert not manager.finish_interrupted({"kubelet": package("1")})
    assert manager.finish_interrupted({"kubelet": package("1", "half-configured")})
    assert [command[-2:] for command in module.commands] == [
        ["--configure", "-a"],
        ["--fix-broken", "--no-install-recommends"],
    ]


def test_a_repository_of_files_on_this_host_needs_no_signature():
    repository = apt.as_repository("bundle", {"uri": "file:/var/lib/bundle/", "trusted": True})
    assert apt.sources_text(repository, [], "").splitlines()[-1] == "Trusted: yes"
    unsigned = apt.as_repository("mirror", {"uri": "http://mirror.site/"})
    assert "Trusted" not in apt.sources_text(unsigned, [], "")


@pytest.mark.parametrize("only", [(), ("bundle",)])
def test_no_other_source_is_asked_where_only_one_may_be(monkeypatch, only):
    """Offline, apt would try the distribution's servers, and fail or take a package that it can't fetch."""
    ran = []

    def run(self, argv, what, data=""):
        ran.append(list(argv))
        return "kubelet | 1.35.4-1.1 | file:/var/lib/bundle Packages" if argv[0] == "apt-cache" else ""

    monkeypatch.setattr(apt.Apt, "run", run)
    manager = apt.Apt(0, 0, only)
    manager.update(manager.only or ["kubernetes"])
    manager.install({"kubelet": "1.35.4"}, lambda new, gone: None)
    alone = ["Dir::Etc::sourcelist=/dev/null" in argv for argv in ran]
    assert [argv[0] for argv in ran] == ["apt-get", "apt-cache", "apt-get", "apt-get"]
    assert alone == ([True] * 4 if only else [True, False, False, False])


DOCKER_LIST = "deb [signed-by=/etc/apt/keyrings/docker.asc] https://example.org/deb/ bookworm stable\n"


class FakeApt:
    """apt and dpkg: what was run, and how lists of sources were at each `update`."""

    def __init__(self, host):
        self.host, self.ran, self.lists, self.broken = host, [], [], ""

    def __call__(self, argv, timeout, env, data=""):
        words = " ".join(argv)
        self.ran.append(words)
        if self.broken and self.broken in words:
            return Done(100, "", "E: The repository is broken.")
        if " update " in words:
            self.lists.append({path.name: path.read_text() for path in self.host.sources.iterdir()})
        return Done(0, "", "")


@pytest.fixture
def fake(host, monkeypatch):
    apt_of_host = FakeApt(host)
    monkeypatch.setattr(apt, "run_program", apt_of_host)
    host.sources.mkdir()
    (host.sources / "docker.list").write_text(DOCKER_LIST)
    return apt_of_host


def run_module(check_mode=False, **repository):
    module = Module(
        check_mode=check_mode, download_proxy={}, sets_proxy=False, packages=[],
        repositories={"x": {**REPOSITORY, **repository}},
        lock_timeout=-1, timeout=60, only=False, replaces=[], keep=[],
    )  # fmt: skip
    return apt.apply_packages(module), module


def test_another_list_of_the_repository_is_disabled_and_can_be_given_back(host, fake):
    result, module = run_module(check_mode=True)
    assert (result["changed"], fake.lists) == (True, [])
    assert (host.sources / "docker.list").read_text() == DOCKER_LIST
    assert result["diff"]["after"]["disabled"] == [
        f"{host.sources}/docker.list:1 names the repository x with another key: it is commented out"
    ]
    result, module = run_module()
    disabled = f"# Disabled by ipu.fabric: {DOCKER_LIST}"
    assert fake.lists == [{"docker.list": disabled, "x.sources": (host.sources / "x.sources").read_text()}]
    assert "apt-get -q indextargets" in fake.ran
    assert f"{host.sources}/docker.list:1" in module.warnings[0]
    fake.ran.clear()
    result, module = run_module()
    assert (result["changed"], module.warnings, len(fake.ran)) == (False, [], 1)
    apt.give_lists_back(module)
    assert (host.sources / "docker.list").read_text() == DOCKER_LIST


@pytest.mark.parametrize("broken", [" update ", "indextargets"])
def test_everything_is_taken_back_where_apt_can_not_read_it(host, fake, broken):
    fake.broken = broken
    with pytest.raises(FabricError, match="The repository is broken"):
        run_module()
    assert {path.name: path.read_text() for path in host.sources.iterdir()} == {"docker.list": DOCKER_LIST}
    assert keyrings(host) == []


def test_a_list_that_offers_more_is_not_ours_to_disable(host, fake):
    (host.sources / "docker.list").write_text(DOCKER_LIST.replace("stable", "stable test"))
    for check_mode in (True, False):
        with pytest.raises(FabricError, match="Another source list has the repository") as caught:
            run_module(check_mode)
        assert caught.value.where == f"{host.sources}/docker.list:1"
        assert caught.value.code == "not-ours"
    assert [path.name for path in host.sources.iterdir()] == ["docker.list"]


def test_a_file_of_somebody_else_is_kept_under_another_name(host):
    host.sources.mkdir()
    host.keyrings.mkdir()
    (host.sources / "x.sources").write_text("# mine\nTypes: deb\nURIs: http://mine/\nSuites: /\n")
    (host.keyrings / "x.gpg").write_bytes(OTHER)
    module = Module()
    apt.ensure_repository(module, "x", REPOSITORY)
    assert sorted(module.backups) == [str(host.keyrings / "x.gpg"), str(host.sources / "x.sources")]
    again = Module()
    apt.ensure_repository(again, "x", {**REPOSITORY, "components": "test"})
    apt.ensure_repository(again, "x", {**REPOSITORY, "key_url": ""})
    apt.ensure_repository(again, "x", {**REPOSITORY, "key_url": "", "components": ""})
    assert again.backups == []


@pytest.mark.parametrize(
    ("out", "err", "seen", "step"),
    [
        (
            "Reading package lists...\nThe following packages will be DOWNGRADED:\n  containerd.io\n0 upgraded\n",
            "E: Packages were downgraded and -y was used without --allow-downgrades.",
            "The following packages will be DOWNGRADED:\n  containerd.io\nE: Packages were downgraded",
            "--allow-downgrades",
        ),
        (
            "Reading...\nThe following packages have unmet dependencies:\n docker-ce : Depends: containerd.io\n",
            "E: Unable to correct problems, you have held broken packages.",
            "unmet dependencies:\n docker-ce : Depends: containerd.io\nE: Unable",
            "apt-mark showhold",
        ),
        ("Reading...\n", "E: Conflicting values set for option Signed-By", "E: Conflicting", "Two source lists"),
        ("said on the wrong channel\n", "", "said on the wrong channel", "Fix what apt reports"),
    ],
)
def test_what_apt_says_names_the_packages(monkeypatch, out, err, seen, step):
    monkeypatch.setattr(apt, "run_program", Module((100, out, err)).run_program)
    with pytest.raises(FabricError) as caught:
        apt.Apt(-1, 60).run(["apt-get", "install"], "Could not install packages.")
    assert seen in caught.value.seen
    assert step in caught.value.next_step
