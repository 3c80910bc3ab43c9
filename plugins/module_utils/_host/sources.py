# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Ask sources whether they have what will be installed: read-only, all at once, with a short time limit."""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import http.client
import json
import os
import re
import threading
import time
import typing as t
import urllib.error
import urllib.parse

from ansible.module_utils.urls import open_url

from .._common.command import output_of
from .._common.digests import plain_digest
from .._common.proxy import proxy_variables
from .._common.result import FabricError
from .._common.text import scheme_of, shorten_list
from .._model.sources import SourceProblem, SourceQuestion
from . import download, openpgp
from .apt import KeyCheck, check_key, kept_keys, satisfies
from .registry import DOCKER_HUB, DOCKER_HUB_API, KINDS, describe, find_lacking, manifest_url, split_name

SECONDS = 5  # for an answer
LIMIT = 12  # seconds for all of them: name resolution has no time-out
ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}  # as the kernel names them, and as apt does
WEB = ("http", "https", "oci")
CREDENTIALS = re.compile(r"(?<=://)[^/@\s]+@")
LARGEST = 64 << 20  # bytes of an index to read at most
SMALL = 4 << 20  # bytes of a file that is read in order to compare it
CHART = "application/vnd.cncf.helm.chart.content.v1.tar+gzip"  # media type of a packed chart in a registry
NOT_ALLOWED = (403, 405, 501)  # answers to HEAD from servers that support only GET
AUTH = (401, 403)
RELEASE = re.compile(r"(?:\d+:)?(\d+\.\d+\.\d+)")  # in a package's version


class Lack(t.NamedTuple):
    """What a source that answers lacks, or serves in place of what is expected."""

    seen: str
    what: str = ""
    offers: t.Sequence[str] = ()  # releases of a package that are available instead
    expected: str = ""  # digest or fingerprints


Answered = t.Optional[Lack]  # None: nothing is missing


class Places(t.NamedTuple):
    """The host's values to fill into URLs."""

    distribution: str = ""
    release: str = ""
    arch: str = ""  # as the kernel names it

    def fill(self, question: SourceQuestion) -> SourceQuestion:
        arch = ARCHITECTURES.get(self.arch, self.arch)

        def filled(text: str) -> str:
            for name, value in (("distribution", self.distribution), ("release", self.release), ("arch", arch)):
                text = text.replace(f"{{{name}}}", value)
            return text

        whole: SourceQuestion = {**question, "url": filled(question["url"]), "arch": arch}
        return {**whole, "suite": filled(question.get("suite", ""))}


class SilentError(Exception):
    """A source did not answer as expected. Has what was seen, and the HTTP status, if any."""

    def __init__(self, seen: str, status: int = 0) -> None:
        super().__init__(seen)
        self.status = status


def fetch(url: str, method: str = "GET", kinds: str = "*/*") -> http.client.HTTPResponse:
    """The answer to a request. SilentError if there is none, or no success."""
    try:
        answer: http.client.HTTPResponse = open_url(
            url,
            method=method,
            headers={"Accept": kinds},
            timeout=SECONDS,
            follow_redirects="safe",
            http_agent="ipu.fabric",
        )
    except urllib.error.HTTPError as error:
        raise SilentError(f"HTTP {error.code} {error.reason}".strip(), error.code) from error
    except Exception as error:  # open_url raises whatever its transport does
        raise SilentError(describe(error, SECONDS)) from error
    return answer


def read(url: str) -> str:
    """The text of a file, decompressed."""
    try:
        with fetch(url) as answer:
            content: bytes = answer.read(LARGEST)
        return (gzip.decompress(content) if content[:2] == b"\x1f\x8b" else content).decode("utf-8", "replace")
    except (OSError, EOFError, http.client.HTTPException) as error:
        raise SilentError(describe(error, SECONDS)) from error


def read_small(answer: http.client.HTTPResponse) -> t.Optional[bytes]:
    """The content; None if it is large, or comes slowly: then it is compared only when it is installed."""
    content, end = b"", time.monotonic() + SECONDS
    try:
        while max(len(content), answer.length or 0) <= SMALL and time.monotonic() < end:
            part = answer.read(1 << 16)
            if not part:
                return content
            content += part
    except (OSError, EOFError, http.client.HTTPException) as error:
        raise SilentError(describe(error, SECONDS)) from error
    return None


def digest_of(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def check_of(question: SourceQuestion) -> KeyCheck:
    fingerprints = openpgp.split_fingerprints(question.get("fingerprint", ""))
    return KeyCheck(question.get("checksum", "").lower(), fingerprints)


def ask_key(question: SourceQuestion) -> Answered:
    """Whether apt_packages would take the keys."""
    url, check = question["url"], check_of(question)
    with fetch(url) as answer:
        key = read_small(answer)
    if key is not None and any(check):
        try:
            check_key(key, download.lost_tls(url, answer), url, check)
        except FabricError as error:
            stated = check.fingerprints if check.fingerprints != openpgp.ANY else ["an OpenPGP key"]
            return Lack(error.seen, expected=check.sha256 or ", ".join(stated))
    return None


def ask_file(question: SourceQuestion) -> Answered:
    if question.get("checksum"):
        return compare_file(question)
    try:
        fetch(question["url"], "HEAD").close()
    except SilentError as error:
        if error.status not in NOT_ALLOWED:
            raise
        fetch(question["url"]).close()
    return None


def offered(packages: str, name: str) -> t.List[str]:
    """The versions of a package in the Packages file of a repository."""
    return re.findall(rf"^Package: {re.escape(name)}\n(?:[^\n]+\n)*?Version: (\S+)", packages, re.MULTILINE)


def numbers(version: str) -> t.List[int]:
    return [int(part) for part in re.findall(r"\d+", version)]


def ask_repository(question: SourceQuestion) -> Answered:
    """Whether apt would find the release there, and the package in it. What can't be read proves nothing."""
    uri, suite = question["url"].rstrip("/"), question.get("suite", "")
    flat = suite.endswith("/")
    base = f"{uri}/{suite.strip('/')}".rstrip("/") if flat else f"{uri}/dists/{suite}"
    try:
        fetch(f"{base}/InRelease").close()
    except SilentError as error:
        if error.status in AUTH and question.get("login"):
            return None
        if error.status != 404:
            raise
        fetch(f"{base}/Release").close()
    if not question["name"] or not question["version"]:
        return None
    place = base if flat else f"{base}/{question.get('component', 'main')}/binary-{question.get('arch') or 'amd64'}"
    for packed in ("Packages.gz", "Packages"):
        with contextlib.suppress(SilentError):
            found = offered(read(f"{place}/{packed}"), question["name"])
            # Two numbers are not a full release: the plan needs to know which ones are available.
            whole = RELEASE.match(question["version"])
            if whole and any(satisfies(version, question["version"]) for version in found):
                return None
            newest = sorted(set(found), key=numbers, reverse=True)
            seen = f"on offer: {shorten_list(newest, 4) or 'nothing of that name'}"
            releases = [match[1] for match in map(RELEASE.match, newest) if match]
            return Lack(seen, f"{question['name']} {question['version']}", list(dict.fromkeys(releases)))
    return None


def compare_file(question: SourceQuestion) -> Answered:
    with fetch(question["url"]) as answer:
        content = read_small(answer)
    if content is not None:
        with contextlib.suppress(FabricError):  # a list of digests is asked for on its own
            source = download.Source(url=question["url"], checksum=question["checksum"])
            expected, digest = download.expected_digest(source, SECONDS), digest_of(content)
            return Lack(f"sha256 {digest}", expected=expected) if expected not in ("", digest) else None
    return None


class Chart(t.NamedTuple):
    """A version of a chart in a repository's index."""

    digest: str  # empty: the index has none
    url: str  # absolute, or below the repository


def chart_versions(index: str, name: str) -> t.Optional[t.Dict[str, Chart]]:
    """The versions of a chart in a repository's index; None if it is not in helm's format."""
    entries = re.search(r"^entries:[ ]*(\{\})?[ ]*$", index, re.MULTILINE)
    if not entries:
        return None
    start = re.search(rf"^( *)[\"']?{re.escape(name)}[\"']?:[ ]*$", index[entries.end() :], re.MULTILINE)
    if not start:
        return {}
    block = index[entries.end() + start.end() :]
    end = re.search(rf"^ {{0,{len(start[1])}}}[^\s\-#]", block, re.MULTILINE)
    block = block[: end.start() if end else None]
    dash = (re.findall(r"^ *- +", block, re.MULTILINE) or ["- "])[0]
    found: t.Dict[str, Chart] = {}
    for each in re.split(rf"^{dash}(?=\S)", block, flags=re.MULTILINE)[1:]:
        # Keys of a version begin in the column of its first one, those of its dependencies further right.
        text = each.replace(f"\n{' ' * len(dash)}", "\n")
        chart = Chart(plain_digest(_value(text, "digest:")), _value(text, r"urls:\s+-"))
        found[_value(text, "version:").lstrip("v")] = chart
    return found


def _value(text: str, key: str) -> str:
    match = re.search(rf"^{key} *[\"']?([^\s\"']+)", text, re.MULTILINE)
    return match[1] if match else ""


def ask_charts(question: SourceQuestion) -> Answered:
    url, name, version = question["url"].rstrip("/"), question["name"], question["version"]
    wanted, expected = f"chart {name} {version}", plain_digest(question.get("checksum", ""))
    if scheme_of(url) == "oci":
        host, _slash, path = url.partition("://")[2].partition("/")
        manifest = f"https://{host}/v2/{path}/{name}/manifests/{version}"
        try:
            with fetch(manifest, "GET" if expected else "HEAD", KINDS) as answer:
                digest = packed_chart(read_small(answer) or b"") if expected else ""
        except SilentError as error:
            if error.status == 404:
                return Lack(str(error), wanted)
            if error.status not in AUTH:  # a registry issues tokens first
                raise
            return None
    else:
        found = chart_versions(read(f"{url}/index.yaml"), name)
        if found is None:
            return None
        if version not in found:
            newest = shorten_list(sorted(found, key=numbers, reverse=True), 4)
            return Lack(f"on offer: {newest or 'no chart of that name'}", wanted)
        digest, place = found[version]
        if expected not in ("", digest) and place:
            # Helm does not compare it with the index, which may be older than a chart that the site has packed.
            with contextlib.suppress(SilentError), fetch(urllib.parse.urljoin(f"{url}/", place)) as answer:
                content = read_small(answer)
                digest = digest_of(content) if content is not None else digest
    if expected and digest not in ("", expected):
        return Lack(f"{wanted} has sha256 {digest}", expected=expected)
    return None


def packed_chart(manifest: bytes) -> str:
    """The digest of the packed chart in an OCI manifest; empty if it has none."""
    with contextlib.suppress(ValueError, TypeError, KeyError):
        layers = json.loads(manifest)["layers"]
        return next((plain_digest(each["digest"]) for each in layers if each["mediaType"] == CHART), "")
    return ""


def is_refused(status: int) -> bool:
    """Whether this status means that a registry serves no image; others may need a token, or may have other images."""
    return status not in (401, 403, 404, 405, 429)


def ask_images(question: SourceQuestion) -> Answered:
    """A mirror must answer, and have what hosts can't get elsewhere; without one, each registry must answer."""
    mirror, images = question["url"], question["images"]
    if mirror:
        first = manifest_url(mirror, images[0]) if images else f"{mirror.rstrip('/')}/v2/"
        with _refusal():
            fetch(first, "HEAD", KINDS).close()
        if question.get("login"):  # a mirror with a login answers this for every image
            return None
        lacking = find_lacking(mirror, images, {}, SECONDS)
        seen = "; ".join(sorted({each["seen"] for each in lacking}))
        return Lack(f"HTTP 404, and {seen}", ", ".join(each["image"] for each in lacking)) if lacking else None
    for registry, image in {split_name(image).registry: image for image in reversed(images)}.items():
        host = DOCKER_HUB_API if registry == DOCKER_HUB else registry
        name = split_name(image)
        try:
            with _refusal():
                fetch(f"https://{host}/v2/{name.repository}/manifests/{name.reference}", "HEAD", KINDS).close()
        except SilentError as error:
            raise SilentError(f"{host}: {error}", error.status) from error
    return None


@contextlib.contextmanager
def _refusal() -> t.Iterator[None]:
    try:
        yield
    except SilentError as error:
        if not error.status or is_refused(error.status):
            raise


ASKS: t.Mapping[str, t.Callable[[SourceQuestion], Answered]] = {
    "file": ask_file,
    "key": ask_key,
    "repository": ask_repository,
    "charts": ask_charts,
    "images": ask_images,
}


def shown(question: SourceQuestion) -> str:
    registries = sorted({split_name(image).registry for image in question["images"]})
    return CREDENTIALS.sub("", question["url"]) or ", ".join(registries)


def apt_has_proxy() -> bool:
    """Whether apt here uses another proxy than this collection, whose answers then prove nothing about apt."""
    configured = output_of("apt-config", "dump", timeout=5)
    return bool(re.search(r'^Acquire::https?::Proxy\S* "(?!DIRECT")[^"]', configured, re.MULTILINE | re.IGNORECASE))


def problem_of(
    question: SourceQuestion, seen: str, lacks: str = "", offers: t.Sequence[str] = (), expected: str = ""
) -> SourceProblem:
    return {
        "variable": question["variable"],
        "url": shown(question),
        "seen": seen,
        "lacks": lacks,
        "release": question["release"],
        "chart": f"{question['name']}-{question['version']}" if question["kind"] == "charts" else "",
        "playbook": question.get("playbook", ""),
        "offers": [*offers],
        "expected": expected,
        "setting": question.get("setting", "") if expected else "",
        "later": question.get("later", False),
    }


def ask(question: SourceQuestion) -> t.Optional[SourceProblem]:
    problem, other = _ask(question), question.get("instead")
    if problem and not problem["expected"] and other and not _ask(other):
        problem["instead"] = other["name"]
    return problem


def _ask(question: SourceQuestion) -> t.Optional[SourceProblem]:
    try:
        found = ASKS[question["kind"]](question)
    except SilentError as error:
        if question["kind"] == "repository" and apt_has_proxy():
            return None
        return problem_of(question, str(error))
    return problem_of(question, *found) if found else None


def due(question: SourceQuestion, kubelet: str) -> t.Optional[SourceQuestion]:
    """What is asked of a source; None if nothing is downloaded from there. Local files are checked elsewhere."""
    kept, images, is_web = question.get("path", ""), question["kind"] == "images", scheme_of(question["url"]) in WEB
    if kept and os.path.exists(os.path.expanduser(kept)):
        return None
    if question["kind"] == "key" and kept_keys(question["name"], question["url"], check_of(question)):
        return None
    if kubelet and question.get("kubelet") == kubelet:
        # A finished host has its own images. Pods to come need theirs, so a mirror has to answer.
        later: SourceQuestion = {**question, "images": [], "release": "", "later": True}
        return later if images and is_web else None
    return question if is_web or (images and not question["url"]) else None


@contextlib.contextmanager
def with_proxy(proxy: t.Mapping[str, object]) -> t.Iterator[None]:
    """Set the proxy for everything that this process downloads in the block."""
    before = dict(os.environ)
    os.environ.update(proxy_variables(proxy))
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def ask_sources(
    questions: t.Sequence[SourceQuestion],
    proxy: t.Mapping[str, object],
    places: t.Optional[Places] = None,
    kubelet: str = "",
) -> t.List[SourceProblem]:
    """Problems of the sources, in the order of the questions. kubelet: the version on this host."""
    own = places or Places()
    asked = [each for each in (due(own.fill(each), kubelet) for each in questions) if each]
    problems: t.Dict[int, t.Optional[SourceProblem]] = {
        number: problem_of(each, f"no answer within {LIMIT} s") for number, each in enumerate(asked)
    }

    def answer(number: int) -> None:
        problems[number] = ask(asked[number])

    with with_proxy(proxy):
        asking = [threading.Thread(target=answer, args=(number,), daemon=True) for number in range(len(asked))]
        for each in asking:
            each.start()
        end = time.monotonic() + LIMIT
        for each in asking:
            each.join(max(0.0, end - time.monotonic()))
    return [problem for _number, problem in sorted(problems.items()) if problem]
