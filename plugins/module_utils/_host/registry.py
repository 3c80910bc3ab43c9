# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a host can get images: from a mirror, or from the registry in their names.

Source of the requests: OCI Distribution Specification 1.1, "Checking if content exists in the registry". The path and
`ns` are those of containerd's mirrors.
"""

from __future__ import annotations

import http.client
import socket
import ssl
import typing as t
import urllib.error
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import urlsplit

from ansible.module_utils.urls import open_url

from .._common.digests import full_image, image_tag

if t.TYPE_CHECKING:
    pass

KINDS = ", ".join(
    (
        "application/vnd.oci.image.index.v1+json",
        "application/vnd.oci.image.manifest.v1+json",
        "application/vnd.docker.distribution.manifest.list.v2+json",
        "application/vnd.docker.distribution.manifest.v2+json",
    )
)
DOCKER_HUB = "docker.io"
DOCKER_HUB_API = "registry-1.docker.io"
NOT_FOUND = 404


class ImageName(t.NamedTuple):
    """The parts of an image's full name, such as quay.io/calico/node:v3.32.1."""

    registry: str
    repository: str
    reference: str  # a tag, or a digest with its algorithm


class Login(t.TypedDict, total=False):
    """Credentials for the mirror, sent with each request (Basic). Empty means none."""

    username: str
    password: str


class Lacking(t.TypedDict):
    """An image that a host can't get."""

    image: str
    seen: str  # how the registry in its name answered


def split_name(image: str) -> ImageName:
    registry, _slash, rest = full_image(image).partition("/")
    name, _at, digest = rest.partition("@")
    return ImageName(registry, name.partition(":")[0], digest or image_tag(image) or "latest")


def manifest_url(mirror: str, image: str) -> str:
    """The URL of an image's manifest at a mirror: containerd adds the registry that the mirror replaces."""
    name = split_name(image)
    return f"{mirror.rstrip('/')}/v2/{name.repository}/manifests/{name.reference}?ns={name.registry}"


def describe(error: BaseException, seconds: float) -> str:
    """Why there was no answer within that time, in plain words."""
    reason = getattr(error, "reason", None)
    cause = reason if isinstance(reason, BaseException) else error
    if isinstance(cause, socket.gaierror):
        return f"DNS: {cause.strerror or cause}"
    if isinstance(cause, ssl.SSLError):
        return f"TLS: {getattr(cause, 'verify_message', '') or cause.reason or cause}"
    if isinstance(cause, (socket.timeout, TimeoutError)):
        return f"no answer within {seconds:g} s"
    if isinstance(cause, http.client.HTTPException):
        return "what answers there does not speak HTTP"
    return (getattr(cause, "strerror", None) or str(reason or cause)).lower()


def ask(url: str, login: Login, timeout: float) -> t.Tuple[t.Optional[int], str]:
    """HTTP status of an answer, or None and the reason why there was none."""
    try:
        answer = open_url(
            url,
            method="HEAD",
            headers={"Accept": KINDS},
            timeout=timeout,
            follow_redirects="safe",
            url_username=login.get("username"),
            url_password=login.get("password"),
            force_basic_auth=bool(login.get("username")),
        )
        return int(answer.getcode()), ""
    except urllib.error.HTTPError as error:
        return error.code, ""
    except Exception as error:  # open_url raises whatever its transport does
        return None, describe(error, timeout)


def find_lacking(mirror: str, images: t.Sequence[str], login: Login, timeout: float) -> t.List[Lacking]:
    """Images that the mirror reports as missing, and whose own registry the host can't reach.

    Any other answer proves nothing: a mirror may want another login, or fetch images only when they are pulled.
    """

    def is_missing(image: str) -> bool:
        return ask(manifest_url(mirror, image), login, timeout)[0] == NOT_FOUND

    def why_unreachable(registry: str) -> str:
        host = DOCKER_HUB_API if registry == DOCKER_HUB else registry
        status, seen = ask(f"https://{host}/v2/", Login(), timeout)
        return f"{registry}: {seen}" if status is None else ""

    if not images:
        return []
    with ThreadPoolExecutor(len(images)) as pool:
        missing = [image for image, lacks in zip(images, pool.map(is_missing, images)) if lacks]
        registries = sorted({split_name(image).registry for image in missing} - {urlsplit(mirror).netloc})
        unreachable = dict(zip(registries, pool.map(why_unreachable, registries)))
    found = ((image, unreachable.get(split_name(image).registry, "it is the mirror itself")) for image in missing)
    return [Lacking(image=image, seen=seen) for image, seen in found if seen]
