# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Packages for another host's distribution: apt resolves and verifies them in a separate root, and the fetched files
become a repository."""

from __future__ import annotations

import hashlib
import os
import re
import typing as t

from .._common.command import output_of, run_program
from .._common.result import FabricError
from .._host.apt import (
    ENVIRONMENT,
    Repository,
    as_repository,
    choose,
    fetch_key,
    key_check,
    keyring_path,
    parse_madison,
    sources_text,
)
from .._host.bundle import sha256_of


class Platform(t.NamedTuple):
    """What packages are built for."""

    distribution: str
    release: str
    architecture: str

    @property
    def name(self) -> str:
        return "-".join(self)


def parse_platform(text: str) -> Platform:
    """The parts of a name such as debian-bookworm-amd64."""
    parts = text.split("-")
    if len(parts) != 3 or not all(re.fullmatch(r"[a-z0-9]+", part) for part in parts):
        raise FabricError(
            "A platform is distribution, release and architecture.",
            "platforms",
            text,
            "Write it like debian-bookworm-amd64 or ubuntu-noble-arm64.",
            code="invalid-input",
        )
    return Platform(*parts)


def fill_in(text: str, platform: Platform, minor: str) -> str:
    """The URL of a repository for a platform."""
    words = {"distribution": platform.distribution, "release": platform.release, "minor": minor}
    words["architecture"] = platform.architecture
    return re.sub(r"\{(\w+)\}", lambda found: words.get(found[1], found[0]), text)


def transport(dump: str) -> str:
    """The parts of apt-config dump that this machine needs for network access: proxies and certificates."""
    return "".join(f"{line}\n" for line in dump.splitlines() if re.match(r"Acquire::https?::", line))


def configuration(root: str, architecture: str, dump: str) -> str:
    """apt.conf for a root without installed packages, and mostly independent of this machine."""
    values = {
        "Dir": root,
        "Dir::Etc::parts": f"{root}/none.d",
        "Dir::Etc::trusted": f"{root}/none",
        "Dir::Etc::trustedparts": f"{root}/none.d",
        "Dir::State::status": f"{root}/status",
        "APT::Architecture": architecture,
        "APT::Sandbox::User": "root",
        "Acquire::Languages": "none",
        "Acquire::Retries": "3",
    }
    text = "".join(f'{key} "{value}";\n' for key, value in values.items())
    return f'{text}#clear APT::Architectures;\nAPT::Architectures {{ "{architecture}"; }};\n{transport(dump)}'


def write(path: str, content: bytes) -> None:
    os.makedirs(os.path.dirname(path), mode=0o755, exist_ok=True)
    with open(path, "wb") as file:
        file.write(content)


class AptRoot:
    """apt for a platform, in its own directory."""

    def __init__(self, root: str, platform: Platform, timeout: int) -> None:
        self.root, self.platform, self.timeout = root, platform, timeout
        self.archives = f"{root}/var/cache/apt/archives"
        for directory in (
            f"{self.archives}/partial",
            f"{root}/var/lib/apt/lists/partial",
            f"{root}/etc/apt",
            f"{root}/none.d",
        ):
            os.makedirs(directory, mode=0o755, exist_ok=True)
        write(f"{root}/status", b"")
        write(f"{root}/apt.conf", configuration(root, platform.architecture, output_of("apt-config", "dump")).encode())

    def run(self, what: str, *words: str) -> str:
        done = run_program(words, self.timeout, env={**ENVIRONMENT, "APT_CONFIG": f"{self.root}/apt.conf"})
        if done.rc == 0:
            return done.out
        said = (done.err.strip() or done.out.strip()).splitlines()[-15:]
        raise FabricError(
            what,
            f"{self.platform.name}: {' '.join(words)}",
            "\n".join(said) if done.rc is not None else f"timed out after {self.timeout} s",
            "If a keyring is missing, install debian-archive-keyring or ubuntu-keyring. Fix what apt reports, then run"
            " again: it continues where it stopped.",
            code=done.code,
        )

    def add(self, name: str, repository: Repository, keyring: str) -> None:
        """Add a repository: its key is served, or in a keyring of this machine. Hosts trust what is verified here."""
        if repository.get("trusted"):
            raise FabricError(
                f"Packages without a signature can't be put into a bundle: {name}.",
                repository["uri"],
                "trusted: true",
                "Give it key_url and key_fingerprint instead.",
                code="invalid-input",
            )
        keyrings, digest = [keyring] if keyring else [], ""
        if repository["key_url"]:
            served, digest = fetch_key(repository["key_url"], key_check(repository), name)
            keyrings = [f"{self.root}{keyring_path(name)}"]
            write(keyrings[0], served.data)
        text = sources_text(repository, keyrings, digest)
        if keyring and not repository["key_url"]:
            text += f"Signed-By: {keyring}\n"
        write(f"{self.root}/etc/apt/sources.list.d/{name}.sources", text.encode())

    def fetch(self, packages: t.Mapping[str, str]) -> t.List[str]:
        """Fetch packages at their versions with all dependencies; returns the paths of files that apt has verified."""
        self.run("Could not read the package lists.", "apt-get", "-q", "update", "-o", "APT::Update::Error-Mode=any")
        offers = parse_madison(self.run("Could not list versions.", "apt-cache", "madison", *sorted(packages)))
        chosen = [f"{name}={version}" for name, version in choose(offers, dict(packages)).items()]
        command = ("apt-get", "-q", "-y", "install", "--download-only", "--no-install-recommends", *chosen)
        self.run("Could not fetch packages.", *command)
        shown = ("--print-uris", "-o", f"Dir::Cache={self.root}/nothing", "-o", "Acquire::ForceHash=sha256")  # not MD5
        named = self.run("Could not list packages.", *command, *shown)
        return [self.checked(name, algorithm, digest) for name, algorithm, digest in parse_uris(named)]

    def checked(self, name: str, algorithm: str, digest: str) -> str:
        """A package file that matches the signed lists: for an older download, apt compares only the size."""
        path = f"{self.archives}/{name}"
        with open(path, "rb") as file:
            seen = hashlib.new(algorithm, file.read()).hexdigest() if algorithm in ("SHA256", "SHA512") else ""
        if seen != digest:
            raise FabricError(
                "A package is not the one in the lists of its repository.",
                path,
                f"{algorithm} {seen} instead of {digest}",
                "Remove the file, and run again.",
                code="wrong-content",
            )
        return path


def parse_uris(text: str) -> t.List[t.Tuple[str, str, str]]:
    """File names and digests from apt-get --print-uris: 'URI' name size ALGORITHM:digest."""
    return re.findall(r"^'[^']+' (\S+\.deb) \d+ *(?:(\w+):([0-9a-f]+))?$", text, re.MULTILINE)


def pool_name(archive: str) -> str:
    """The file name of a package without its epoch, as in repositories, where a URL is unambiguous."""
    name, _underscore, rest = os.path.basename(archive).partition("_")
    return f"{name}_{re.sub(r'^[0-9]+%3a', '', rest)}"


def repositories(
    platform: Platform,
    minor: str,
    given: t.Mapping[str, t.Mapping[str, str]],
    distribution: t.Sequence[t.Mapping[str, str]],
) -> t.Dict[str, t.Tuple[Repository, str]]:
    """All repositories that apt uses, by name, each with a keyring of this machine, if any."""
    filled = {
        name: {key: fill_in(str(value), platform, minor) for key, value in one.items()} for name, one in given.items()
    }
    for number, one in enumerate(distribution):
        filled[f"distribution-{number}"] = {key: fill_in(str(value), platform, minor) for key, value in one.items()}
    keyrings = {name: one.pop("keyring", "") for name, one in filled.items()}
    return {name: (as_repository(name, one), keyrings[name]) for name, one in filled.items()}


def index_entry(fields: str, name: str, size: int, sha256: str) -> str:
    """A package in a repository's index: its own fields, and its location."""
    return f"{fields.rstrip()}\nFilename: ./{name}\nSize: {size}\nSHA256: {sha256}\n"


def index(directory: str, names: t.Sequence[str]) -> t.Dict[str, str]:
    """The index files of a flat repository, by name."""
    entries = []
    for name in sorted(names):
        path = os.path.join(directory, name)
        done = run_program(["dpkg-deb", "--field", path], 60)
        if done.rc != 0:
            raise FabricError(
                "A package can't be read.",
                path,
                done.err.strip(),
                "Remove the file, and run again.",
                code="unusable-file",
            )
        entries.append(index_entry(done.out, name, os.stat(path).st_size, sha256_of(path)))
    packages = "\n".join(entries)
    digest = hashlib.sha256(packages.encode()).hexdigest()
    release = (
        "Origin: ipu.fabric\nLabel: bundle\nSuite: bundle\nCodename: bundle\n"
        f"Date: Thu, 01 Jan 1970 00:00:00 UTC\nSHA256:\n {digest} {len(packages.encode())} Packages\n"
    )
    return {"Packages": packages, "Release": release}
