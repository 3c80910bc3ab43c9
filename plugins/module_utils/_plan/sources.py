# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where downloads come from, and how they are proved to be what their makers published."""

from __future__ import annotations

import re
import typing as t

from .._common.digests import image_tag, pinned_image, plain_digest
from .._common.findings import Findings
from .._common.text import scheme_of
from .._host.openpgp import ANY, split_fingerprints
from .._model.plan import Image, Releases, Source
from .._model.settings import Settings
from .._model.stacks import STACKS
from .._network.digests import CALICO_FILES, PUBLISHERS, chart_key, known_digest
from .._network.releases import calico_images
from .names import ALIKE_KEYS, nearest

LOCAL = ("", "file")
TLS = ("https", "oci")  # helm uses https for OCI registries
DIGEST = "SHA256"  # placeholder for 64 digits, in advice to users
# Keys of fabric_mirror's dictionaries. A site may give package repositories names of its own.
KEYS: t.Mapping[str, t.Tuple[str, ...]] = {
    "charts": (*STACKS, "whereabouts", "gpu_operator", "ipu_operator"),
    "helm": ("url", "checksum"),
    "cri_dockerd": ("version", "url", "checksum"),
    "calico": ("crds_url", "crds_checksum", "operator_url", "operator_checksum"),
    "mpi_operator": ("url", "sha256"),
}
REPOSITORY = ("uri", "suite", "components", "key_url", "key_sha256", "key_fingerprint", "trusted")
ARCHIVES = {"helm": (".tar.gz",), "cri_dockerd": (".tgz", ".tar.gz")}
FINGERPRINT = re.compile("[0-9A-F]{40}|[0-9A-F]{64}")
CREDENTIALS = re.compile(r"(?<=://)[^/@\s]+@")


class Download(t.NamedTuple):
    """A file that is downloaded, or for which a site may set a digest."""

    name: str
    url: str
    sha256: str  # digits; empty: not known
    setting: str  # how a site sets the digest
    signed: bool = False  # whether its origin is proved in another way
    decided: bool = True  # whether the site has chosen a check, or none, explicitly


def text_of(tree: object, *path: str) -> str:
    """A text from the site's settings; empty if there is none."""
    for key in path:
        tree = tree.get(key) if isinstance(tree, dict) else None
    return tree if isinstance(tree, str) else ""


def as_written(name: str, *keys: str, value: str) -> str:
    """A variable with its keys in the inventory's notation; a key may contain dots."""
    return f"{name}: {''.join(f'{{{key}: ' for key in keys)}{value}{'}' * len(keys)}"


def without_credentials(url: str) -> str:
    return CREDENTIALS.sub("", url)


def _keys(sources: t.Mapping[str, object]) -> t.Iterator[Download]:
    """Keys of package repositories. apt verifies packages with them, whatever their transport."""
    repositories = sources.get("apt")
    for name in repositories if isinstance(repositories, dict) else ():
        url = text_of(repositories, name, "key_url")
        given = plain_digest(text_of(repositories, name, "key_sha256"))
        fingerprints = split_fingerprints(text_of(repositories, name, "key_fingerprint"))
        setting = as_written("fabric_mirror", "apt", name, "key_fingerprint", value="FINGERPRINT")
        if url:
            yield Download(
                f"key of the package repository {name}",
                url,
                given,
                setting,
                signed=bool(fingerprints) and fingerprints != ANY,
                decided=bool(given or fingerprints),
            )


def _calico(sources: t.Mapping[str, object], release: str) -> t.Iterator[Download]:
    for part, file in CALICO_FILES.items():
        url = text_of(sources, "calico", f"{part}_url").replace("{version}", release)
        given = plain_digest(text_of(sources, "calico", f"{part}_checksum"))
        digest = given or known_digest(f"calico-{release}/{file}")
        setting = as_written("fabric_mirror", "calico", f"{part}_checksum", value=DIGEST)
        yield Download(f"manifest {file} of Calico {release}", url, digest, setting)


def _charts(settings: Settings, releases: Releases, findings: Findings) -> t.Iterator[Download]:
    planned = {
        **{stack.release: releases[name] for name, stack in STACKS.items()},
        "whereabouts-chart": releases["whereabouts"],
        "gpu-operator": releases["gpu_operator"],
        "ipu-operator": releases["ipu_operator"] if settings.ipu else "",
    }
    # What the plan checked is what gets installed, even if only a bundle's list has the digest.
    bundled = settings.bundle.content["files"] if settings.bundle and settings.bundle.content else {}
    for chart, release in planned.items():
        key = chart_key(chart, release)
        url = text_of(settings.sources, "charts", chart.replace("-chart", "").replace("-", "_"))
        digest = plain_digest(text_of(settings.sources, "chart_sha256", key)) or known_digest(key)
        if not digest and f"charts/{key}.tgz" in bundled:
            digest = bundled[f"charts/{key}.tgz"]["sha256"]
        if release and url and not findings.has_error(f"{chart}-version"):  # nobody has a chart of such a release
            # TLS proves that it is from its publisher, as with an image that has only a tag.
            signed = url.rstrip("/") in PUBLISHERS
            setting = as_written("fabric_mirror", "chart_sha256", key, value=DIGEST)
            yield Download(f"chart {chart} {release}", url, digest, setting, signed)


def _others(sources: t.Mapping[str, object]) -> t.Iterator[Download]:
    url, checksum = text_of(sources, "helm", "url"), text_of(sources, "helm", "checksum")
    digest = plain_digest(checksum) or known_digest(url.rpartition("/")[2])
    yield Download("Helm", url, digest, as_written("fabric_mirror", "helm", "checksum", value=DIGEST))
    manifest, digest = text_of(sources, "mpi_operator", "url"), text_of(sources, "mpi_operator", "sha256")
    setting = as_written("fabric_mirror", "mpi_operator", "sha256", value=DIGEST)
    yield Download("manifest of the MPI operator", manifest, plain_digest(digest), setting)


def plan_sources(settings: Settings, releases: Releases, findings: Findings) -> t.List[Source]:
    """The downloads of this plan. Any that could be forged without notice is a finding."""
    sources = settings.sources
    managed = settings.manage_kubernetes
    keys = list(_keys(sources)) if managed else []
    calico = list(_calico(sources, releases["cni_version"].lstrip("v"))) if managed and releases["cni_images"] else []
    files = [
        *(calico if releases["cni"] == "calico" else []),
        *_charts(settings, releases, findings),
        *_others(sources),
    ]
    for download in [*keys, *files]:
        _check_download(download, findings)
    _check_form(sources, findings)
    _check_registry(text_of(sources, "registry"), findings)  # k3s and RKE2 get it too
    _check_credentials(sources, findings)
    _check_helm(text_of(sources, "helm", "url"), findings)
    return [
        {"name": each.name, "url": without_credentials(each.url), "sha256": each.sha256} for each in files if each.url
    ]


def _check_download(download: Download, findings: Findings) -> None:
    scheme = scheme_of(download.url)
    if download.sha256 or download.signed or scheme in LOCAL:
        return
    seen = f"{download.name} from {without_credentials(download.url)}, and no digest is known for it"
    if not download.decided:
        findings.error(
            "unpinned-source" if scheme in TLS else "http-source",
            [],
            "A repository key needs a fingerprint or a digest.",
            seen,
            f"Set its publisher's fingerprint, {download.setting}, or a digest of its file as key_sha256 there."
            " `key_fingerprint: none` takes any key; fabric_allow does not.",
        )
        return
    if scheme not in TLS:
        findings.error(
            "http-source",
            [],
            "A download without TLS may be replaced on its way: it needs a digest.",
            seen,
            f"Set its publisher's SHA-256, {download.setting}, or use https.",
        )
        return
    findings.warning(
        "unpinned-source",
        [],
        "Only TLS protects this download: its digest is not known.",
        seen,
        f"Set its publisher's SHA-256, {download.setting}.",
    )


def _check_form(sources: t.Mapping[str, object], findings: Findings) -> None:
    """Report what nothing reads, or what a role refuses only once others have run."""
    for where, seen, step in _malformed(sources):
        findings.error("sources", [], f"fabric_mirror.{where} is not valid.", seen, step)


def _malformed(sources: t.Mapping[str, object]) -> t.Iterator[t.Tuple[str, str, str]]:
    for name, keys in KEYS.items():
        given = sources.get(name)
        yield from _unknown_keys(name, given, keys)
    repositories = sources.get("apt")
    for name, given in repositories.items() if isinstance(repositories, dict) else ():
        yield from _unknown_keys(f"apt.{name}", given, REPOSITORY)
        fingerprints = split_fingerprints(text_of(given, "key_fingerprint"))
        short = [each for each in fingerprints if not FINGERPRINT.fullmatch(each)] if fingerprints != ANY else []
        if short:
            step = "Write all 40 digits, as `gpg --show-keys` prints them."
            yield f"apt.{name}.key_fingerprint", ", ".join(short), step
    for place, text in _texts(sources, ""):
        where, key = place[1:], place.rpartition(".")[2]
        if key.endswith(("sha256", "checksum")) or where.startswith("chart_sha256."):
            # Helm's checksum may be the URL of a file that has it.
            if text.strip() and not plain_digest(text) and "://" not in text:
                yield where, f"'{text}'", "Write sha256: and the 64 digits of the file's SHA-256."
        elif key not in ("suite", "components", "key_fingerprint") and re.search(r"\s", text):
            yield where, f"'{text}'", f"Write the URL alone, without spaces{_such_as_url(text)}."
    for name, endings in ARCHIVES.items():
        url = text_of(sources, name, "url")
        if url and scheme_of(url) not in LOCAL and not url.endswith(endings):
            yield f"{name}.url", without_credentials(url), f"Give the URL of an archive, with {endings[0]} at its end."


def _such_as_url(text: str) -> str:
    found = [word for word in text.split() if "://" in word or ":" in word]
    return f": {found[0]}" if len(found) == 1 else ""


def _unknown_keys(name: str, given: object, known: t.Sequence[str]) -> t.Iterator[t.Tuple[str, str, str]]:
    if given and not isinstance(given, dict):
        yield name, repr(given), f"Write a dictionary of {', '.join(known)}."
        return
    unknown = sorted(set(given or {}) - {*known}) if isinstance(given, dict) else []
    for key in unknown:
        meant = nearest(key, known, ALIKE_KEYS)
        hint = f"Did you mean {meant}? " if meant else ""
        yield name, f"'{key}', which nothing reads", f"{hint}Known keys are {', '.join(known)}."


def _check_registry(registry: str, findings: Findings) -> None:
    if scheme_of(registry) not in ("", "https"):
        findings.warning(
            "http-source",
            [],
            "Images come over plain HTTP: anyone on the way can change them.",
            f"fabric_mirror.registry is {without_credentials(registry)}",
            "Give the registry a certificate, or pin the images in fabric_image_digests.",
        )


def _check_helm(url: str, findings: Findings) -> None:
    """The archive's name contains the release."""
    found = re.search(r"/helm-v(\d+)[.][^/]*$", url)
    if found and found[1] != "3":
        findings.error(
            "release-table",
            [],
            "Helm 3 is needed.",
            f"fabric_mirror.helm.url is {without_credentials(url)}; from 4 on, only plugins can be post-renderers",
            "Set fabric_mirror.helm.url to an archive of Helm 3.",
        )


def _texts(tree: object, place: str) -> t.Iterator[t.Tuple[str, str]]:
    """Every text in the site's settings, with its variable."""
    if isinstance(tree, str):
        yield place, tree
    elif isinstance(tree, dict):
        for key, value in tree.items():
            yield from _texts(value, f"{place}.{key}")


def _check_credentials(sources: t.Mapping[str, object], findings: Findings) -> None:
    """Refuse credentials: they would be in plan.json, in world-readable files on hosts, and in the log of every run."""
    places = [place for place, text in _texts(dict(sources), "fabric_mirror") if CREDENTIALS.search(text)]
    if places:
        findings.error(
            "source-credentials",
            [],
            "A URL with a password in it ends up in logs and in files that others can read.",
            ", ".join(places),
            "For a registry set fabric_registry_auth, for packages write a file in /etc/apt/auth.conf.d on the hosts;"
            " then take the password out of the URL.",
        )


def plan_images(settings: Settings, releases: Releases, findings: Findings) -> t.Dict[str, str]:
    """The digests of images that a site pins, by full name with tag."""
    good: t.Dict[str, str] = {}
    for image, digest in settings.image_digests.items():
        digits = plain_digest(digest) if isinstance(digest, str) else ""
        wrong = "" if digits else f"'{digest}' is not a SHA-256"
        if "@" in image or not image_tag(image):
            wrong = "it is not a name with a tag"
        if wrong:
            findings.error(
                "image-digests",
                [],
                "An entry of fabric_image_digests is not valid.",
                f"{image}: {wrong}",
                "Write it as registry/name:tag: sha256: and 64 digits, as `skopeo inspect` prints it.",
            )
        else:
            good[image] = f"sha256:{digits}"
    _check_calico_images(settings, releases, good, findings)
    return good


def _check_calico_images(
    settings: Settings, releases: Releases, digests: t.Mapping[str, str], findings: Findings
) -> None:
    """Calico's operator takes the digests of all images or of none."""
    wanted = calico_images(releases["cni_version"]) if releases["cni"] == "calico" and releases["cni_images"] else []
    missing = [image for image in wanted if image not in digests]
    if settings.manage_kubernetes and missing and len(missing) < len(wanted):
        findings.error(
            "image-digests",
            [],
            "Calico's operator takes the digests of all its images, or of none.",
            f"fabric_image_digests lacks {', '.join(missing)}",
            "Add them, or leave out the others of quay.io/calico.",
        )


def pin_components(releases: Releases, digests: t.Mapping[str, str]) -> Releases:
    """The releases with digests for the network operator's images: the operator joins name and version with a colon."""

    def pinned(image: Image) -> Image:
        name = f"{image['repository']}/{image['image']}:"
        return {**image, "version": pinned_image(name + image["version"], digests)[len(name) :]}

    return {**releases, "components": {name: pinned(image) for name, image in releases["components"].items()}}
