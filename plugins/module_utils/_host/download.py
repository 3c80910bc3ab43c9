# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Files by URL. A file gets its name only when it is complete and verified."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import tarfile
import tempfile
import typing as t

from ansible.module_utils.urls import open_url

from .._common.command import output_of
from .._common.digests import plain_digest
from .._common.proxy import use_proxy
from .._common.result import FabricError, outcome
from .._common.text import scheme_of
from .bundle import sha256_of
from .files import read_text, write_file

if t.TYPE_CHECKING:
    from ansible.module_utils.basic import AnsibleModule

AGAIN = (
    "Make it reachable from this machine, or take it from elsewhere (fabric_mirror), then run again:"
    " what is already installed is kept."
)
RELEASE = re.compile(r"v[0-9]+[.][0-9]+[.][0-9]+")


class Source(t.TypedDict):
    """A file by its URL. The checksum is a digest or the URL of a list of them, with or without sha256:, or empty."""

    url: str
    checksum: str


def _read(url: str, timeout: int, compared: bool) -> t.BinaryIO:
    try:
        answer: t.BinaryIO = open_url(url, timeout=timeout, follow_redirects="safe")
    except Exception as error:  # open_url raises whatever its transport does
        raise FabricError("A file could not be fetched.", url, str(error), AGAIN, code="download-failed") from error
    final = "" if compared else lost_tls(url, answer)
    if final:
        raise FabricError(
            "A file without a known digest has to be fetched over TLS.",
            url,
            f"it was redirected to {final}",
            "Give its digest, or another URL.",
            code="wrong-content",
        )
    return answer


def lost_tls(url: str, answer: object) -> str:
    """The URL without TLS to which a download over TLS was redirected; empty if it was not."""
    final = str(getattr(answer, "url", "an unknown place"))
    return final if scheme_of(url) == "https" and scheme_of(final) != "https" else ""


def digest_in(text: str, name: str) -> str:
    """The digest of a file in a checksum list, or the only one in it."""
    found = re.findall(r"^([0-9a-fA-F]{64})(?:\s+\*?(\S+))?\s*$", text, re.MULTILINE)
    named = [digest for digest, other in found if os.path.basename(other) == name]
    return (named or [digest for digest, _other in found[:1]] or [""])[0].lower()


def expected_digest(source: Source, timeout: int) -> str:
    """The digest that a file must have; empty accepts any."""
    rest = re.sub("^sha256:", "", source["checksum"])
    if "://" not in rest:
        return rest.lower()
    digest = digest_in(_read(rest, timeout, False).read().decode("utf-8", "replace"), os.path.basename(source["url"]))
    if not digest:
        raise FabricError(
            "A list of digests has no entry for the file.",
            rest,
            source["url"],
            "Give its digest in place of the list.",
            code="not-found",
        )
    return digest


def fetch_file(source: Source, path: str, timeout: int) -> None:
    """Download a file to a path."""
    expected, part = expected_digest(source, timeout), f"{path}.part"
    try:
        with _read(source["url"], timeout, bool(expected)) as answer, open(part, "wb") as file:
            shutil.copyfileobj(answer, file, 1 << 20)
        digest = sha256_of(part)
        if expected not in ("", digest):
            seen, next_step = (
                f"sha256 {digest} instead of {expected}",
                "Find out why it changed, or correct its digest.",
            )
            what = "A file is not the one that was expected."
            raise FabricError(what, source["url"], seen, next_step, code="wrong-content")
        os.replace(part, path)
    except OSError as error:
        what = "A file could not be fetched."
        raise FabricError(what, source["url"], str(error), AGAIN, code="download-failed") from error
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.remove(part)


def unpack(archive: str, member: str, path: str) -> None:
    """Extract the file of this name from a tar archive, in whatever directory it is."""
    try:
        with tarfile.open(archive) as packed:
            found = [each for each in packed if each.isfile() and os.path.basename(each.name) == member]
            content = packed.extractfile(found[0]) if found else None
            if content:
                with open(path, "wb") as file:
                    shutil.copyfileobj(content, file, 1 << 20)
                return
        seen = f"no file {member} in it"
    except (tarfile.TarError, OSError) as error:
        seen = str(error)
    what = "A program could not be unpacked."
    raise FabricError(what, archive, seen, "See what its URL serves, then run again.", code="wrong-content")


def given_digest(params: t.Mapping[str, str]) -> str:
    """The digest that the options give for the program; empty accepts any."""
    return params["sha256"].lower().replace("sha256:", "")


def install_member(module: AnsibleModule, source: Source, path: str) -> str:
    """Install a program from an archive atomically, so that a killed run leaves no half of it; returns its digest."""
    params = module.params
    part, wanted = f"{path}.part", given_digest(params)
    os.makedirs(os.path.dirname(path), mode=0o755, exist_ok=True)
    try:
        with tempfile.TemporaryDirectory(prefix="ipu-fabric-") as folder:
            fetch_file(source, f"{folder}/archive", params["timeout"])
            archive = sha256_of(f"{folder}/archive")
            unpack(f"{folder}/archive", params["member"], part)
        digest = sha256_of(part)
        if wanted not in ("", digest):
            seen, step = f"sha256 {digest} instead of {wanted}", "Correct its digest or its URL."
            what = "A program in an archive is not the one that was expected."
            raise FabricError(what, source["url"], seen, step, code="wrong-content")
        os.chmod(part, int(params["mode"], 8))
        # Written before the program: a program without a record counts as somebody else's.
        write_file(module, params["record"], f"{digest} sha256:{archive}\n")
        os.replace(part, path)
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.remove(part)
    return digest


def check_kept(module: AnsibleModule, digest: str) -> None:
    """Check an installed program that is kept: its digest must be the recorded one or the one given in the options.

    Otherwise FabricError. Without a known digest, the program must report the release in the URL."""
    params = module.params
    path, given = params["path"], given_digest(params)
    recorded = "".join(read_text(params["record"]).split()[:1])
    expected = given or plain_digest(recorded)
    if expected not in ("", digest):
        raise FabricError(
            "An installed program is not the expected one.",
            path,
            f"SHA-256 {digest}, expected {expected} ({'sha256' if given else params['record']})",
            "Find out who changed it, then remove the file: the next run installs it again.",
            code="wrong-content",
        )
    if expected:
        return
    said, release = output_of(path, *params["version"]), RELEASE.search(os.path.basename(params["url"]))
    if not said or (release and said != release[0]):
        raise FabricError(
            "An installed program is not of the release that was asked for.",
            path,
            f"{said or 'nothing'}, expected {release[0] if release else 'a release'}",
            f"Remove the file, choose another path, or give its sha256, {digest}, if you trust it.",
            code="wrong-content",
        )
    module.warn(
        f"{path} was not installed by this collection. It reports the release {said}, but no digest of the program is"
        f" known. Next: give its sha256, {digest}, if you trust it, or remove the file: the next run installs it from"
        " the archive, whose digest is checked."
    )


def install(module: AnsibleModule) -> t.Dict[str, object]:
    """The body of M(ipu.fabric.program)."""
    params = module.params
    path = params["path"]
    before = sha256_of(path) if os.path.exists(path) else ""
    if params["version"] and (before or module.check_mode):
        if before:
            check_kept(module, before)
        return outcome({"sha256": before}, {"sha256": before}, sha256=before)
    use_proxy(params["download_proxy"])
    try:
        changed, after = download(module, path, before)
    except FabricError as error:
        step = " ".join(filter(None, [error.next_step, params["setting"] and f"URL and digest: {params['setting']}."]))
        raise FabricError(error.what, error.where, error.seen, step, code=error.code) from error
    result = outcome({"sha256": before}, {"sha256": after}, sha256=after)
    return {**result, "changed": module.set_mode_if_different(path, params["mode"], changed)}


def download(module: AnsibleModule, path: str, before: str) -> t.Tuple[bool, str]:
    """Whether the file changes, and its digest."""
    params = module.params
    expected = expected_digest(Source(url=params["url"], checksum=params["checksum"]), params["timeout"])
    source = Source(url=params["url"], checksum=f"sha256:{expected}")
    if params["member"]:
        due = read_text(params["record"]).split() != [before, f"sha256:{expected}"]
        after = params["sha256"] if due else before
        if due and not module.check_mode:
            after = install_member(module, source, path)
        return due, after
    after = expected
    if not module.check_mode and (not after or after != before):
        fetch_file(source, path, params["timeout"])
        after = sha256_of(path)
    return before != after, after
