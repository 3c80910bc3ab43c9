# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""apt repositories with their keys, and packages installed at a version and held."""

from __future__ import annotations

import contextlib
import glob
import hashlib
import os
import re
import tempfile
import time
import typing as t

from ansible.module_utils.urls import open_url

from .._common.command import run_program
from .._common.proxy import use_proxy
from .._common.result import FabricError, outcome
from . import apt_lists
from .download import lost_tls
from .files import Files, read_file, read_text, write_file
from .openpgp import ANY, ARMOR, KeyFormatError, Keyring, read_keys, split_fingerprints
from .package_record import add_to_record
from .proxy import set_apt_proxy

if t.TYPE_CHECKING:
    from ansible.module_utils.basic import AnsibleModule

SOURCES = "/etc/apt/sources.list.d"
KEYRINGS = "/etc/apt/keyrings"
BUSY = ("Could not get lock", "dpkg frontend lock", "is another process using it")
# What to do, by the error that apt prints.
STEPS = {
    **dict.fromkeys(BUSY, "Another program holds the lock: wait for it, or end it."),
    "Packages were downgraded": "The host has a newer version of a package than the one asked for. Ask for the"
    " installed version, or downgrade the package yourself with apt-get install --allow-downgrades.",
    "held broken packages": "Run apt-mark showhold to see which packages are held, and apt-cache policy to see which"
    " versions the repositories have. Run apt-mark unhold, or ask for another version, then run again.",
    "Conflicting values set": "Two source lists of apt name one repository with different settings. Remove one of them,"
    " then run again.",
    "no longer has a Release file": "Remove the list that names this repository, then run again.",
    "EXPKEYSIG": "A key has expired. Fetch the new one for the list that names the repository, or remove that list.",
}
# A file that ensure_repository has written.
OURS = re.compile(r"# Key: |Types: deb\nURIs: .*\nSuites: .*\n(?:Components: .*\n)?(?:Trusted: yes\n)?\Z")
UNFINISHED = ("unpacked", "half-configured", "half-installed", "triggers-awaited", "triggers-pending")
# Without its own terminal, dpkg ends together with apt.
APT = ["apt-get", "-q", "-y", "-o", "Dpkg::Use-Pty=0"]
OLD_CONFIGURATION = ["-o", "Dpkg::Options::=--force-confdef", "-o", "Dpkg::Options::=--force-confold"]
ENVIRONMENT = {"DEBIAN_FRONTEND": "noninteractive", "NEEDRESTART_SUSPEND": "1", "LC_ALL": "C"}


class Package(t.TypedDict):
    """A package as dpkg knows it."""

    selection: str  # what dpkg should do with it: install, hold, deinstall or purge
    state: str  # such as installed or half-configured
    version: str


class VersionAndHold(t.TypedDict):
    """The changeable part of a package's state."""

    version: str  # empty when it is not installed
    held: bool


class _Unsigned(t.TypedDict, total=False):
    trusted: bool  # no signature: files on this host whose digests were checked


class Repository(_Unsigned):
    """A repository as the option `repositories` describes it."""

    uri: str
    suite: str
    components: str  # separated by spaces
    key_url: str  # empty if the host's own keyrings contain the key
    key_sha256: str  # of the served key; if empty, any key with the fingerprint is accepted
    key_fingerprint: str  # of all keys in it, separated by commas; `none` accepts any key


class KeyCheck(t.NamedTuple):
    """What a repository key is checked against; required by `fetch_key`, so that no caller can skip the check."""

    sha256: str  # of the served key; empty: its fingerprints are compared
    fingerprints: t.List[str]  # of all keys in it; ANY if the site accepts any key


def looks_like_key(key: bytes) -> bool:
    """Whether this is armored, or its first byte starts an OpenPGP public key packet (tag 6, old or new format)."""
    return bool(ARMOR.search(key)) or (bool(key) and (key[0] & 0xFC == 0x98 or key[0] == 0xC6))


def keyring_path(name: str) -> str:
    """The keyring path of a repository: in binary form, which apt reads in only one way."""
    return f"{KEYRINGS}/{name}.gpg"


def sources_text(repository: Repository, keyrings: t.Iterable[str], digest: str) -> str:
    """A deb822 source. Its first line records the fetched key: if URL or digest change, the key is fetched again."""
    fields = [
        ("Types", "deb"),
        ("URIs", repository["uri"]),
        ("Suites", repository["suite"]),
        ("Components", repository["components"]),
        ("Signed-By", " ".join(keyrings) if repository["key_url"] else ""),
        ("Trusted", "yes" if repository.get("trusted") else ""),
    ]
    head = f"# Key: {repository['key_url']} sha256:{digest}\n" if repository["key_url"] else ""
    return head + "".join(f"{name}: {value}\n" for name, value in fields if value)


def key_digest(sources: str, url: str) -> str:
    """The digest of the key that a sources file was written with, if the key came from the same URL."""
    match = re.match(r"# Key: (\S+) sha256:([0-9a-f]{64})$", sources.split("\n", 1)[0])
    return match.group(2) if match and match.group(1) == url else ""


def listed_keyrings(sources: str) -> t.List[str]:
    """The keyrings that one of our sources files names."""
    match = re.search(r"^Signed-By: (.*)$", sources, re.MULTILINE)
    return match.group(1).split() if match and sources.startswith("# Key: ") else []


def read_keyring(path: str) -> t.Optional[Keyring]:
    """A keyring in the form in which we write it; None if it is missing or has another form."""
    with contextlib.suppress(OSError, KeyFormatError), open(path, "rb") as file:
        content = file.read()
        keyring = read_keys(content)
        return keyring if keyring.data == content else None
    return None


def satisfies(version: str, asked: str) -> bool:
    """Whether a package version satisfies the requested one: the same, or followed by a Debian revision or more digits.

    1.35.4-1.1 satisfies 1.35.4 and 1.35; 1.35.40-1.1 does not satisfy 1.35.4. An epoch counts only if requested.
    """
    if ":" not in asked:
        version = version.split(":", 1)[-1]
    return version == asked or not asked or (version.startswith(asked) and version[len(asked)] in ".-~+")


def parse_status(text: str) -> t.Dict[str, Package]:
    """Packages by name from dpkg-query, with the selection, state and version of each."""
    packages: t.Dict[str, Package] = {}
    for line in text.splitlines():
        name, selection, state, version = line.split("\t")
        packages[name] = {"selection": selection, "state": state, "version": version}
    return packages


def parse_madison(text: str) -> t.Dict[str, t.List[str]]:
    """Available versions by package, newest first, from apt-cache madison."""
    offers: t.Dict[str, t.List[str]] = {}
    for line in text.splitlines():
        columns = [column.strip() for column in line.split("|")]
        if len(columns) == 3:
            offers.setdefault(columns[0], []).append(columns[1])
    return offers


def find_missing(packages: t.Dict[str, Package], asked: t.Dict[str, str]) -> t.Dict[str, str]:
    """The requested packages that are not installed at their version."""

    def installed(name: str, version: str) -> bool:
        package = packages.get(name)
        return bool(package and package["state"] == "installed" and satisfies(package["version"], version))

    return {name: version for name, version in asked.items() if not installed(name, version)}


def choose(offers: t.Dict[str, t.List[str]], wanted: t.Dict[str, str]) -> t.Dict[str, str]:
    """The newest available version that satisfies each requested one."""
    chosen = {}
    for name, asked in wanted.items():
        matching = [version for version in offers.get(name, []) if satisfies(version, asked)]
        if not matching:
            raise FabricError(
                f"No repository has {name} {asked}".rstrip() + ".",
                "apt-cache madison",
                "on offer: " + (", ".join(offers.get(name, [])) or "nothing of that name"),
                "Ask for an available version, or correct the repository's address and suite.",
                code="not-found",
            )
        chosen[name] = matching[0]
    return chosen


def new_packages(simulated: str) -> t.List[str]:
    """Packages to be installed of which no version is installed yet. Upgrades show the old version in brackets."""
    return re.findall(r"^Inst (\S+) \(", simulated, re.MULTILINE)


def would_remove(simulated: str) -> t.Set[str]:
    """The packages that apt would remove."""
    return set(re.findall(r"^Remv (\S+)", simulated, re.MULTILINE))


def is_busy(message: str) -> bool:
    return any(sign in message for sign in BUSY)


def reported(out: str, err: str) -> t.List[str]:
    """The last errors and warnings of apt. Which packages they concern is in the rest of its output."""
    named = re.findall(r"^The following .*\n(?:[ ].*\n?)+", out, re.MULTILINE) if err.strip() else [out]
    return "".join([*named, err]).strip().splitlines()[-15:]


class Apt:
    """apt and dpkg on this host."""

    def __init__(self, lock_timeout: int, timeout: int, only: t.Sequence[str] = ()) -> None:
        self.lock_timeout = lock_timeout
        self.limit = lock_timeout + timeout  # apt itself waits for the locks of dpkg
        self.only = list(only)  # names of the only sources that apt may use; empty: all

    def run(self, argv: t.List[str], what: str, data: str = "") -> str:
        """Run a command; wait while another process holds the locks of apt or dpkg."""
        give_up = time.monotonic() + self.lock_timeout
        while True:
            done = run_program(argv, self.limit, env=ENVIRONMENT, data=data)
            if done.rc == 0:
                return done.out
            if done.rc is None or not is_busy(done.err) or time.monotonic() > give_up:
                break
            time.sleep(3)
        said = reported(done.out, done.err)
        if done.rc is None:
            said.insert(0, f"timed out after {self.limit} s")
        raise FabricError(
            what,
            " ".join(argv),
            "\n".join(said),
            next((step for sign, step in STEPS.items() if sign in done.err), "Fix what apt reports, then run again."),
            code="busy" if is_busy(done.err) else done.code,
        )

    def get(self, *arguments: str, what: str) -> str:
        lock = ["-o", f"DPkg::Lock::Timeout={self.lock_timeout}"]
        return self.run(APT + lock + OLD_CONFIGURATION + list(arguments), what)

    def status(self) -> t.Dict[str, Package]:
        layout = "${Package}\\t${db:Status-Want}\\t${db:Status-Status}\\t${Version}\\n"
        return parse_status(self.run(["dpkg-query", "--show", "--showformat", layout], "Could not list packages."))

    def finish_interrupted(self, packages: t.Dict[str, Package]) -> bool:
        """Finish what an interrupted dpkg left behind, if anything."""
        updates = "/var/lib/dpkg/updates"
        journal = os.listdir(updates) if os.path.isdir(updates) else []
        if not journal and not any(package["state"] in UNFINISHED for package in packages.values()):
            return False
        self.run(
            ["dpkg", "--force-confdef", "--force-confold", "--configure", "-a"], "Could not finish an interrupted dpkg."
        )
        self.get("install", "--fix-broken", "--no-install-recommends", what="Could not repair half-installed packages.")
        return True

    @contextlib.contextmanager
    def sources(self, names: t.Iterable[str]) -> t.Iterator[t.List[str]]:
        """Options that limit apt to the named sources; without names it uses all."""
        if not names:
            yield []
            return
        with tempfile.TemporaryDirectory() as parts:
            os.chmod(parts, 0o755)
            for name in names:
                os.symlink(f"{SOURCES}/{name}.sources", f"{parts}/{name}.sources")
            keep = ["-o", "APT::Get::List-Cleanup=0"]
            yield ["-o", "Dir::Etc::sourcelist=/dev/null", "-o", f"Dir::Etc::sourceparts={parts}", *keep]

    def update(self, names: t.Iterable[str] = ()) -> None:
        """Update the package lists: all of them, or only those of the named sources, which is quicker."""
        with self.sources(names) as only:
            error = ["-o", "APT::Update::Error-Mode=any"]
            self.get("update", *only, *error, what="Could not read the package lists.")

    def check_sources(self) -> None:
        """Fail if apt can't read the sources of this host together. Makes no network request."""
        self.run(["apt-get", "-q", "indextargets"], "apt can't read its lists of sources.")

    def resolve(self, command: t.Sequence[str], replaces: t.Container[str]) -> t.Tuple[t.List[str], t.List[str]]:
        """The packages that a command would add, and those that it would remove."""
        simulated = self.get(*command, "--simulate", what="Could not resolve the packages.")
        gone = sorted(would_remove(simulated))
        strangers = [name for name in gone if name not in replaces]
        if strangers:
            raise FabricError(
                "Packages of this host would be removed, so nothing was installed.",
                " ".join([*APT, *command]),
                f"apt would remove {', '.join(strangers)}",
                "Remove them yourself if nothing needs them, then run again.",
                code="unsafe",
            )
        return new_packages(simulated), gone

    def install(
        self,
        wanted: t.Dict[str, str],
        record: t.Callable[[t.List[str], t.List[str]], None],
        replaces: t.Collection[str] = (),
    ) -> None:
        """Install packages. `record` is told first which are new on this host, and which of `replaces` will go."""
        with self.sources(self.only) as only:
            offered = self.run(["apt-cache", *only, "madison", *sorted(wanted)], "Could not list versions.")
            chosen = [f"{name}={version}" for name, version in choose(parse_madison(offered), wanted).items()]
            # Nothing installed may be removed: the distribution's docker.io would be, for containerd.io.
            keep = [] if replaces else ["--no-remove"]
            options = ["--no-install-recommends", *keep, "--allow-change-held-packages", *only]
            command = ["install", *options, *chosen]
            try:
                record(*self.resolve(command, replaces))
            except FabricError:
                if self.only:
                    raise
                # Dependencies come from the distribution's own lists, which may be old or missing.
                self.update()
                record(*self.resolve(command, replaces))
            self.get(*command, what="Could not install packages.")

    def hold(self, names: t.Iterable[str]) -> None:
        self.select(names, "hold")

    def release(self, names: t.Iterable[str]) -> None:
        self.select(names, "install")

    def select(self, names: t.Iterable[str], selection: str) -> None:
        lines = "".join(f"{name} {selection}\n" for name in names)
        self.run(["dpkg", "--set-selections"], f"Could not mark packages as {selection}.", lines)


def key_check(repository: Repository) -> KeyCheck:
    """What the site compares a key with. A site that accepts any key must say so."""
    check = KeyCheck(repository["key_sha256"].lower(), split_fingerprints(repository["key_fingerprint"]))
    if not any(check):
        raise FabricError(
            "A repository key needs a fingerprint or a digest.",
            repository["key_url"],
            "neither key_fingerprint nor key_sha256",
            "Set one of them to what the publisher says. With `key_fingerprint: none` any key is taken.",
            code="invalid-input",
        )
    return check


def why_not(keyring: Keyring, check: KeyCheck) -> str:
    """Why these are not the requested keys; empty if they are. A digest is compared where the key is served."""
    if check.sha256 or check.fingerprints == ANY:
        return ""
    strange = [each for each in keyring.fingerprints if each not in check.fingerprints]
    return "" if keyring.fingerprints and not strange else f"fingerprint {', '.join(strange) or 'none: no key in it'}"


def key_setting(repository: str) -> str:
    return f"key_url of the repository {repository} (fabric_mirror.apt.{repository}.key_url)"


def fetch_key(url: str, check: KeyCheck, repository: str = "NAME") -> t.Tuple[Keyring, str]:
    """The served keys, and the digest of the data as served."""
    try:
        answer = open_url(url, timeout=30)
        key: bytes = answer.read()
    except Exception as error:  # open_url raises whatever its transport does
        raise FabricError(
            "Could not fetch a repository key.",
            url,
            str(error),
            f"Make the URL reachable from this machine, or set another {key_setting(repository)}.",
            code="download-failed",
        ) from error
    return check_key(key, lost_tls(url, answer), url, check, repository)


def check_key(
    key: bytes, redirected: str, url: str, check: KeyCheck, repository: str = "NAME"
) -> t.Tuple[Keyring, str]:
    """The keys in what a URL served, and its digest. redirected: where to, if TLS was lost on the way."""
    settings = key_setting(repository)
    digest = hashlib.sha256(key).hexdigest()
    if check.sha256 not in ("", digest):
        raise FabricError(
            "A repository key is not the expected one.",
            url,
            f"sha256 {digest}",
            f"Expected {check.sha256}. Find out why it changed, then correct key_sha256 beside {settings}.",
            code="wrong-content",
        )
    if not looks_like_key(key):
        raise FabricError(
            "What was served is not an OpenPGP key.",
            url,
            repr(key[:60]),
            f"Correct {settings}.",
            code="wrong-content",
        )
    try:
        keyring = read_keys(key)
        strange = why_not(keyring, check)
        if check.fingerprints == ANY and not check.sha256 and redirected:
            strange = f"it was redirected to {redirected}, without TLS"
    except KeyFormatError as error:
        strange = str(error)
    if strange:
        raise FabricError(
            "A repository key is not the expected one.",
            url,
            strange,
            f"Expected {', '.join(check.fingerprints)}. Find out why the key differs. A mirror that signs with a key of"
            f" its own needs key_fingerprint or key_sha256 beside {settings}.",
            code="wrong-content",
        )
    return keyring, digest


def as_repository(name: str, given: object) -> Repository:
    """A repository with its defaults, or an error that names the wrong key."""
    defaults: Repository = {
        "uri": "",
        "suite": "/",
        "components": "",
        "key_url": "",
        "key_sha256": "",
        "trusted": False,
        "key_fingerprint": "",
    }
    values = {key: str(value) for key, value in given.items()} if isinstance(given, dict) else {}
    wrong = sorted(set(values) - set(defaults)) if isinstance(given, dict) else ["the entry is not a mapping"]
    if wrong or not values.get("uri"):
        raise FabricError(
            f"The repository {name} is not described correctly.",
            "repositories",
            "unknown: " + ", ".join(wrong) if wrong else "no uri",
            "Give it uri and, as needed, " + ", ".join(list(defaults)[1:]) + ".",
            code="invalid-input",
        )
    repository: Repository = {
        "uri": values["uri"],
        "suite": values.get("suite", defaults["suite"]),
        "components": values.get("components", ""),
        "key_url": values.get("key_url", ""),
        "key_sha256": values.get("key_sha256", ""),
        "key_fingerprint": values.get("key_fingerprint", ""),
    }
    if repository["key_url"]:
        key_check(repository)
    if values.get("trusted", "").lower() in ("true", "yes"):
        if not repository["uri"].startswith("file:/"):
            raise FabricError(
                f"The repository {name} can't be used without a signature.",
                "repositories",
                f"trusted: true, and {repository['uri']} is not on this host",
                "Give it key_url and key_fingerprint instead of trusted.",
                code="invalid-input",
            )
        repository["trusted"] = True
    return repository


def kept_keys(name: str, url: str, check: KeyCheck) -> t.Optional[Keyring]:
    """The keys of a repository on this host; None if they have to be fetched, since none or others are there."""
    sources, keyring = read_text(f"{SOURCES}/{name}.sources"), keyring_path(name)
    digest = key_digest(sources, url)
    there = read_keyring(keyring) if digest and listed_keyrings(sources) == [keyring] else None
    return there if there and not why_not(there, check) and check.sha256 in ("", digest) else None


def ensure_repository(module: AnsibleModule, name: str, repository: Repository) -> t.Tuple[str, str]:
    """The sources file before and after. The key is fetched if it is missing, if a different one is requested, or if it
    has expired: vendors renew theirs under the same fingerprint."""
    path, keyring, url = f"{SOURCES}/{name}.sources", keyring_path(name), repository["key_url"]
    before = read_text(path)
    old = listed_keyrings(before)
    digest = key_digest(before, url)
    fetched: t.Optional[Keyring] = None
    if url:
        check = key_check(repository)
        there = kept_keys(name, url, check)
        if there is None:
            if module.check_mode:
                return before, sources_text(repository, [keyring], check.sha256 or "of the key that is fetched")
            fetched, digest = fetch_key(url, check, name)
        elif there.end < time.time():
            fetched, digest = renewed_key(module, name, url, check, there) or (None, digest)
    after = sources_text(repository, [keyring], digest)
    if not module.check_mode:
        if fetched:
            content = fetched.data.decode("utf-8", "surrogateescape")
            write_file(module, keyring, content, backup=keyring not in old)
        if after != before:
            write_file(module, path, after, backup=not OURS.match(before))
        for other in set(old) - set(listed_keyrings(after)):
            if other.startswith(f"{KEYRINGS}/{name}."):  # an edited list may name a keyring that is not ours
                with contextlib.suppress(FileNotFoundError):
                    os.remove(other)
    return before, after


def renewed_key(
    module: AnsibleModule, name: str, url: str, check: KeyCheck, there: Keyring
) -> t.Optional[t.Tuple[Keyring, str]]:
    """The keys served in place of expired ones; check mode fetches them too, since it could not tell otherwise."""
    ended = time.strftime("%Y-%m-%d", time.gmtime(there.end))
    try:
        keyring, digest = fetch_key(url, check, name)
        if keyring.end >= time.time():
            return keyring, digest
        seen = "it still serves the same key"
    except FabricError as error:
        seen = error.seen
    module.warn(f"The key of the repository {name} expired on {ended}, and {url} has no newer one: {seen}.")
    return None


def as_source(name: str, repository: Repository) -> apt_lists.Source:
    """A repository in the form that is compared with the entries of other lists."""
    keyring, trusted = keyring_path(name) if repository["key_url"] else "", "yes" if repository.get("trusted") else ""
    suites, components = repository["suite"].split(), repository["components"].split()
    return apt_lists.make_source([repository["uri"]], suites, components, keyring, trusted)


def list_paths() -> t.List[str]:
    """Paths of all apt source lists."""
    main = f"{os.path.dirname(SOURCES)}/sources.list"
    found = [path for end in ("list", "sources") for path in sorted(glob.glob(f"{SOURCES}/*.{end}"))]
    return [*([main] if os.path.exists(main) else []), *found]


def disabled_lists(repositories: t.Mapping[str, Repository]) -> t.Tuple[Files, t.List[str]]:
    """Lists without entries that name these repositories with other keys, and a message about each such entry.

    Fails on an entry that offers more than our repository does: disabling it is not our decision.
    """
    changed: Files = {}
    said: t.List[str] = []
    for path in list_paths():
        file = read_file(path)
        if not file or path in {f"{SOURCES}/{name}.sources" for name in repositories}:
            continue
        entries = apt_lists.read_entries(path, file["content"])
        found = []
        for name, repository in repositories.items():
            ours = as_source(name, repository)
            for entry in apt_lists.find_rivals(entries, ours):
                where = f"{path}:{entry.first + 1}"
                what = " ".join((repository["uri"], repository["suite"], repository["components"])).rstrip()
                if apt_lists.offers_more(entry.source, ours):
                    raise FabricError(
                        f"Another source list has the repository {name} with another key, so apt can read neither.",
                        where,
                        f"it names more than {what}",
                        f"Remove this repository from the file, or add signed-by={keyring_path(name)}. Then run again.",
                        code="not-ours",
                    )
                found.append(entry)
                said.append(f"{where} names the repository {name} with another key: it is commented out")
        if found:
            changed[path] = {**file, "content": apt_lists.disable(file["content"], found)}
    return changed, said


def disabled_by_us() -> t.List[str]:
    """Lists in which `disabled_lists` disabled entries."""
    return [path for path in list_paths() if apt_lists.MARK in read_text(path)]


def give_lists_back(module: AnsibleModule) -> None:
    """Restore the entries that `disabled_lists` disabled on this host."""
    for path in disabled_by_us():
        file = read_file(path)
        if file:
            write_file(module, os.path.realpath(path), apt_lists.enable(file["content"]), file["mode"])


@contextlib.contextmanager
def former_files_on_failure(module: AnsibleModule, paths: t.Iterable[str]) -> t.Iterator[None]:
    """Restore the former content of files if the block fails for any reason."""
    former = {path: read_file(path) for path in paths}
    try:
        yield
    except BaseException:
        for path, file in former.items():
            if file:
                write_file(module, path, file["content"], file["mode"])
            else:
                with contextlib.suppress(FileNotFoundError):
                    os.remove(path)
        raise


def repository_files(name: str) -> t.List[str]:
    """Files that `ensure_repository` may change."""
    path = f"{SOURCES}/{name}.sources"
    return [path, keyring_path(name), *listed_keyrings(read_text(path))]


def versions_and_hold(package: t.Optional[Package]) -> VersionAndHold:
    if not package or package["state"] in ("not-installed", "config-files"):
        return {"version": "", "held": False}
    return {"version": package["version"], "held": package["selection"] == "hold"}


def check_kept(packages: t.Mapping[str, Package], wanted: t.Mapping[str, str], keep: t.Container[str]) -> None:
    """Refuse to change packages that must stay as they are: it would restart the runtimes of all hosts at once."""
    kept = [name for name in wanted if name in keep and name in packages and packages[name]["state"] == "installed"]
    if kept:
        raise FabricError(
            "On a node of the cluster, packages of the container runtime are not changed: that would restart it.",
            os.uname().nodename,
            ", ".join(f"{name} {packages[name]['version']}, and {wanted[name]} is asked for" for name in kept),
            "Ask for the installed version. ipu.fabric.upgrade installs another one together with a release of"
            " Kubernetes, on one drained node after another. Or do so yourself: drain the node, install it with"
            " apt-get install --allow-change-held-packages, uncordon the node. Then run again.",
            code="unsafe",
        )


def apply_packages(module: AnsibleModule) -> t.Dict[str, object]:
    """The body of M(ipu.fabric.apt_packages)."""
    params = module.params
    use_proxy(params["download_proxy"])
    proxied = params["sets_proxy"] and set_apt_proxy(module, params["download_proxy"])
    asked: t.Dict[str, str] = {item["name"]: item["version"] for item in params["packages"]}
    held = [item["name"] for item in params["packages"] if item["hold"]]
    repositories = {name: as_repository(name, given) for name, given in params["repositories"].items()}
    apt = Apt(params["lock_timeout"], params["timeout"], list(repositories) if params["only"] else ())
    packages = apt.status()
    repaired = not module.check_mode and apt.finish_interrupted(packages)
    if repaired:
        packages = apt.status()

    wanted = find_missing(packages, asked)
    check_kept(packages, wanted, params["keep"])
    lists, said = disabled_lists(repositories)
    touched = [*map(os.path.realpath, lists), *(path for name in repositories for path in repository_files(name))]
    with former_files_on_failure(module, touched if not module.check_mode else ()):
        for path, file in lists.items() if not module.check_mode else ():
            if file:
                write_file(module, os.path.realpath(path), file["content"], file["mode"])
        sources = {name: ensure_repository(module, name, repository) for name, repository in repositories.items()}
        new = bool(lists) or any(first != then for first, then in sources.values())
        if not module.check_mode and (new or wanted):
            apt.update(apt.only or sources)
        if not module.check_mode and new and not apt.only:
            apt.check_sources()
    for line in said:
        module.warn(f"{line}.")
    loose = [name for name in held if name not in packages or packages[name]["selection"] != "hold"]
    before = {name: versions_and_hold(packages.get(name)) for name in asked}
    if module.check_mode:
        after = {
            name: VersionAndHold(
                version=wanted.get(name, before[name]["version"]), held=name in held or before[name]["held"]
            )
            for name in asked
        }
    else:
        if wanted:
            apt.install(
                wanted,
                lambda new, gone: add_to_record(module, installed=new, replaced=dict.fromkeys(wanted, gone)),
                params["replaces"],
            )
        if loose or wanted:
            add_to_record(module, held=loose)
            apt.hold(held)
        packages = apt.status() if wanted or loose else packages
        after = {name: versions_and_hold(packages.get(name)) for name in asked}
    result = outcome(
        {"sources": {name: pair[0] for name, pair in sources.items()}, "disabled": [], "packages": before},
        {"sources": {name: pair[1] for name, pair in sources.items()}, "disabled": said, "packages": after},
        versions={name: state["version"] for name, state in after.items()},
    )
    return {**result, "changed": result["changed"] or proxied or repaired or bool(wanted)}
