# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""apt repositories with their keys, and packages at a version, held."""

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
# What to do, by what apt says.
STEPS = {
    **dict.fromkeys(BUSY, "Another program holds the lock: wait for it, or end it."),
    "Packages were downgraded": "The host has a newer version of what is named. Ask for that version, or downgrade it"
    " yourself with apt-get install --allow-downgrades.",
    "held broken packages": "See with apt-mark showhold which packages may not change, and with apt-cache policy what"
    " is on offer. Then run again.",
    "Conflicting values set": "Two lists of apt name one repository. Remove one of them, then run again.",
    "no longer has a Release file": "Remove the list that names this repository, then run again.",
    "EXPKEYSIG": "A key has expired. Fetch the new one for the list that names the repository, or remove that list.",
}
# A file that ensure_repository has written.
OURS = re.compile(r"# Key: |Types: deb\nURIs: .*\nSuites: .*\n(?:Components: .*\n)?(?:Trusted: yes\n)?\Z")
UNFINISHED = ("unpacked", "half-configured", "half-installed", "triggers-awaited", "triggers-pending")
# Without a terminal of its own dpkg ends together with apt.
APT = ["apt-get", "-q", "-y", "-o", "Dpkg::Use-Pty=0"]
OLD_CONFIGURATION = ["-o", "Dpkg::Options::=--force-confdef", "-o", "Dpkg::Options::=--force-confold"]
ENVIRONMENT = {"DEBIAN_FRONTEND": "noninteractive", "NEEDRESTART_SUSPEND": "1", "LC_ALL": "C"}


class Package(t.TypedDict):
    """A package as dpkg knows it."""

    selection: str  # what dpkg is to do with it: install, hold, deinstall or purge
    state: str  # such as installed or half-configured
    version: str


class VersionAndHold(t.TypedDict):
    """What of a package can change."""

    version: str  # empty when it is not installed
    held: bool


class _Unsigned(t.TypedDict, total=False):
    trusted: bool  # without a signature: files on this host whose digests were checked


class Repository(_Unsigned):
    """A repository as the option `repositories` describes it."""

    uri: str
    suite: str
    components: str  # with spaces between
    key_url: str  # empty when the host's own keyrings have the key
    key_sha256: str  # of the served key; empty takes any that has the fingerprint
    key_fingerprint: str  # of all keys in it, with commas between; `none` takes any


class KeyCheck(t.NamedTuple):
    """What a repository key is compared with: `fetch_key` has no other way to be called."""

    sha256: str  # of the served key; empty: its fingerprints are compared
    fingerprints: t.List[str]  # of all keys in it; ANY where the site has said so


def looks_like_key(key: bytes) -> bool:
    """Whether this is armored, or the first byte starts an OpenPGP public key packet (tag 6, old or new format)."""
    return bool(ARMOR.search(key)) or (bool(key) and (key[0] & 0xFC == 0x98 or key[0] == 0xC6))


def keyring_path(name: str) -> str:
    """The keyring of a repository: binary, which leaves apt nothing to read differently."""
    return f"{KEYRINGS}/{name}.gpg"


def sources_text(repository: Repository, keyrings: t.Iterable[str], digest: str) -> str:
    """A deb822 source. Its first line remembers which key was taken: another URL or digest brings another key."""
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
    """The digest of the key that a sources file was written with, if that came from the same URL."""
    match = re.match(r"# Key: (\S+) sha256:([0-9a-f]{64})$", sources.split("\n", 1)[0])
    return match.group(2) if match and match.group(1) == url else ""


def listed_keyrings(sources: str) -> t.List[str]:
    """The keyrings that a sources file of ours names."""
    match = re.search(r"^Signed-By: (.*)$", sources, re.MULTILINE)
    return match.group(1).split() if match and sources.startswith("# Key: ") else []


def read_keyring(path: str) -> t.Optional[Keyring]:
    """A keyring as we write it; None where there is none, or one in another form."""
    with contextlib.suppress(OSError, KeyFormatError), open(path, "rb") as file:
        content = file.read()
        keyring = read_keys(content)
        return keyring if keyring.data == content else None
    return None


def satisfies(version: str, asked: str) -> bool:
    """Whether a package version is the asked one: the same, or the asked one with a Debian part or later digits behind.

    1.35.4-1.1 is 1.35.4 and 1.35; 1.35.40-1.1 is not 1.35.4. An epoch counts only when it was asked for.
    """
    if ":" not in asked:
        version = version.split(":", 1)[-1]
    return version == asked or not asked or (version.startswith(asked) and version[len(asked)] in ".-~+")


def parse_status(text: str) -> t.Dict[str, Package]:
    """Packages by name from dpkg-query, with what dpkg wants of each, its state and its version."""
    packages: t.Dict[str, Package] = {}
    for line in text.splitlines():
        name, selection, state, version = line.split("\t")
        packages[name] = {"selection": selection, "state": state, "version": version}
    return packages


def parse_madison(text: str) -> t.Dict[str, t.List[str]]:
    """Versions on offer by package, newest first, from apt-cache madison."""
    offers: t.Dict[str, t.List[str]] = {}
    for line in text.splitlines():
        columns = [column.strip() for column in line.split("|")]
        if len(columns) == 3:
            offers.setdefault(columns[0], []).append(columns[1])
    return offers


def find_missing(packages: t.Dict[str, Package], asked: t.Dict[str, str]) -> t.Dict[str, str]:
    """Of the asked packages those that are not there at their version."""

    def installed(name: str, version: str) -> bool:
        package = packages.get(name)
        return bool(package and package["state"] == "installed" and satisfies(package["version"], version))

    return {name: version for name, version in asked.items() if not installed(name, version)}


def choose(offers: t.Dict[str, t.List[str]], wanted: t.Dict[str, str]) -> t.Dict[str, str]:
    """The newest version on offer that satisfies each wish."""
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
    """What apt would install that is not there in any version. A line of an upgrade has the old one in brackets."""
    return re.findall(r"^Inst (\S+) \(", simulated, re.MULTILINE)


def would_remove(simulated: str) -> t.Set[str]:
    """The packages that apt would remove."""
    return set(re.findall(r"^Remv (\S+)", simulated, re.MULTILINE))


def is_busy(message: str) -> bool:
    return any(sign in message for sign in BUSY)


def reported(out: str, err: str) -> t.List[str]:
    """The last lines of what apt says is wrong. Which packages it is about stands among its other output."""
    named = re.findall(r"^The following .*\n(?:[ ].*\n?)+", out, re.MULTILINE) if err.strip() else [out]
    return "".join([*named, err]).strip().splitlines()[-15:]


class Apt:
    """apt and dpkg on this host."""

    def __init__(self, lock_timeout: int, timeout: int, only: t.Sequence[str] = ()) -> None:
        self.lock_timeout = lock_timeout
        self.limit = lock_timeout + timeout  # apt itself waits for the locks of dpkg
        self.only = list(only)  # names of sources, where no other may be asked

    def run(self, argv: t.List[str], what: str, data: str = "") -> str:
        """Run a command; wait for whoever else holds the locks of apt or dpkg."""
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
            said.insert(0, f"no end within {self.limit} s")
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
        """Options with which apt knows of the named sources alone; without names it knows of all."""
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
        """Read package lists again, all of them, or only the named sources', which is quicker."""
        with self.sources(names) as only:
            error = ["-o", "APT::Update::Error-Mode=any"]
            self.get("update", *only, *error, what="Could not read the package lists.")

    def check_sources(self) -> None:
        """Fail where the sources of this host can't be read together. Asks nobody."""
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
        """Install packages. `record` is told beforehand which are new on this host, and which of `replaces` go."""
        with self.sources(self.only) as only:
            offered = self.run(["apt-cache", *only, "madison", *sorted(wanted)], "Could not list versions.")
            chosen = [f"{name}={version}" for name, version in choose(parse_madison(offered), wanted).items()]
            # Nothing installed may go: a docker.io of the distribution would, for containerd.io.
            keep = [] if replaces else ["--no-remove"]
            options = ["--no-install-recommends", *keep, "--allow-change-held-packages", *only]
            command = ["install", *options, *chosen]
            try:
                record(*self.resolve(command, replaces))
            except FabricError:
                if self.only:
                    raise
                # Dependencies come from the distribution's own lists, which may be old or not there yet.
                self.update()
                record(*self.resolve(command, replaces))
            self.get(*command, what="Could not install packages.")

    def hold(self, names: t.Iterable[str]) -> None:
        self.select(names, "hold")

    def release(self, names: t.Iterable[str]) -> None:
        self.select(names, "install")

    def select(self, names: t.Iterable[str], selection: str) -> None:
        lines = "".join(f"{name} {selection}\n" for name in names)
        self.run(["dpkg", "--set-selections"], f"Could not put packages on {selection}.", lines)


def key_check(repository: Repository) -> KeyCheck:
    """What the site compares a key with. Whoever takes any key has to say so."""
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
    """Why these are not the keys that were asked for; empty when they are. A digest is compared where it is served."""
    if check.sha256 or check.fingerprints == ANY:
        return ""
    strange = [each for each in keyring.fingerprints if each not in check.fingerprints]
    return "" if keyring.fingerprints and not strange else f"fingerprint {', '.join(strange) or 'of no key at all'}"


def fetch_key(url: str, check: KeyCheck, repository: str = "NAME") -> t.Tuple[Keyring, str]:
    """The keys that were served, and the digest of how they were."""
    settings = f"key_url of the repository {repository} (fabric_mirror.apt.{repository}.key_url)"
    try:
        answer = open_url(url, timeout=30)
        key: bytes = answer.read()
    except Exception as error:  # open_url raises whatever its transport does
        raise FabricError(
            "Could not fetch a repository key.",
            url,
            str(error),
            f"Make the URL reachable from this machine, or set another {settings}.",
            code="download-failed",
        ) from error
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
        if check.fingerprints == ANY and not check.sha256 and lost_tls(url, answer):
            strange = f"it was redirected to {lost_tls(url, answer)}, without TLS"
    except KeyFormatError as error:
        strange = str(error)
    if strange:
        raise FabricError(
            "A repository key is not the expected one.",
            url,
            strange,
            f"Expected {', '.join(check.fingerprints)}: find out why. A mirror that signs with a key of its own needs"
            f" key_fingerprint or key_sha256 beside {settings}.",
            code="wrong-content",
        )
    return keyring, digest


def as_repository(name: str, given: object) -> Repository:
    """A repository with its defaults, or the error that says which key is wrong."""
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
    wrong = sorted(set(values) - set(defaults)) if isinstance(given, dict) else ["it is no mapping"]
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


def ensure_repository(module: AnsibleModule, name: str, repository: Repository) -> t.Tuple[str, str]:
    """The sources file before and after. The key is fetched when it is missing, when another one is asked for, and
    when it has expired: vendors renew theirs under the same fingerprint."""
    path, keyring, url = f"{SOURCES}/{name}.sources", keyring_path(name), repository["key_url"]
    before = read_text(path)
    old = listed_keyrings(before)
    digest = key_digest(before, url)
    fetched: t.Optional[Keyring] = None
    if url:
        check = key_check(repository)
        there = read_keyring(keyring) if digest and old == [keyring] else None
        if there is None or why_not(there, check) or check.sha256 not in ("", digest):
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
            if other.startswith(f"{KEYRINGS}/{name}."):  # an edited list may name a keyring of others
                with contextlib.suppress(FileNotFoundError):
                    os.remove(other)
    return before, after


def renewed_key(
    module: AnsibleModule, name: str, url: str, check: KeyCheck, there: Keyring
) -> t.Optional[t.Tuple[Keyring, str]]:
    """What is served in place of keys that have expired, also in check mode, which could not tell otherwise."""
    ended = time.strftime("%Y-%m-%d", time.gmtime(there.end))
    try:
        keyring, digest = fetch_key(url, check, name)
        if keyring.end >= time.time():
            return keyring, digest
        seen = "the same is still served there"
    except FabricError as error:
        seen = error.seen
    module.warn(f"The key of the repository {name} has expired on {ended}, and {url} has no other: {seen}.")
    return None


def as_source(name: str, repository: Repository) -> apt_lists.Source:
    """A repository as it is compared with the lists of others."""
    keyring, trusted = keyring_path(name) if repository["key_url"] else "", "yes" if repository.get("trusted") else ""
    suites, components = repository["suite"].split(), repository["components"].split()
    return apt_lists.make_source([repository["uri"]], suites, components, keyring, trusted)


def list_paths() -> t.List[str]:
    """The lists of apt."""
    main = f"{os.path.dirname(SOURCES)}/sources.list"
    found = [path for end in ("list", "sources") for path in sorted(glob.glob(f"{SOURCES}/*.{end}"))]
    return [*([main] if os.path.exists(main) else []), *found]


def disabled_lists(repositories: t.Mapping[str, Repository]) -> t.Tuple[Files, t.List[str]]:
    """Lists without their entries of these repositories that have other keys, and what is said about each entry.

    One that offers more than we do is not ours to decide on.
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
                        f"The repository {name} is in another list too, with another key, and apt reads neither then.",
                        where,
                        f"it names more than {what}",
                        f"Take this repository out of it, or give it signed-by={keyring_path(name)}. Then run again.",
                        code="not-ours",
                    )
                found.append(entry)
                said.append(f"{where} names the repository {name} with another key: it is commented out")
        if found:
            changed[path] = {**file, "content": apt_lists.disable(file["content"], found)}
    return changed, said


def disabled_by_us() -> t.List[str]:
    """Lists in which `disabled_lists` has disabled entries."""
    return [path for path in list_paths() if apt_lists.MARK in read_text(path)]


def give_lists_back(module: AnsibleModule) -> None:
    """Undo what `disabled_lists` has done on this host."""
    for path in disabled_by_us():
        file = read_file(path)
        if file:
            write_file(module, os.path.realpath(path), apt_lists.enable(file["content"]), file["mode"])


@contextlib.contextmanager
def former_files_on_failure(module: AnsibleModule, paths: t.Iterable[str]) -> t.Iterator[None]:
    """Files get their former content, whatever ends this early."""
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
    """Refuse to change packages that have to stay as they are: theirs restart the runtimes of all hosts at once."""
    kept = [name for name in wanted if name in keep and name in packages and packages[name]["state"] == "installed"]
    if kept:
        raise FabricError(
            "A package of the container runtime is not changed on a node of the cluster: that restarts the runtime.",
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
