# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The releases of a plan: how long their makers support each, and where each comes from. Pure."""

from __future__ import annotations

import re
import typing as t

from ...module_utils._model.plan import Image, Plan, Source, Support
from ...module_utils._network.support import DEPRECATED, ENDED, SUPPORTED

# Where the defaults of the roles download from; any other host is a mirror of the site.
UPSTREAM = (
    "download.docker.com",
    "get.helm.sh",
    "github.com",
    "helm-charts.graphcore.ai",
    "helm.ngc.nvidia.com",
    "pkgs.k8s.io",
    "raw.githubusercontent.com",
    "spidernet-io.github.io",
)
LEVELS = {SUPPORTED: "ok", DEPRECATED: "warning", ENDED: "error"}


class Origin(t.NamedTuple):
    """Where one download comes from."""

    name: str
    kind: str  # upstream, mirror or bundle; apt: the plan names no address
    place: str  # without https://
    digest: str


class Version(t.NamedTuple):
    """A component and its release; both empty for downloads that belong to none."""

    component: str
    release: str
    level: str  # ok, warning, error or skipped
    support: str
    origins: t.List[Origin]


class PlannedImage(t.NamedTuple):
    name: str
    digest: str  # empty: only the tag identifies it


def origin(source: Source) -> Origin:
    url, key = source["url"], source["name"].startswith("key of")
    place = re.sub(r"^(https|file)://", "", url)
    kind = "bundle" if place.startswith("/") else "upstream" if host(url) in UPSTREAM else "mirror"
    digest = f"SHA-256 {source['sha256'][:12]}…" if source["sha256"] else "" if key else "no digest known"
    return Origin(source["name"], kind, place, digest)


def host(url: str) -> str:
    return re.sub(r"^[a-zA-Z+]+://", "", url).partition("/")[0].partition(":")[0]


def support_text(support: Support) -> str:
    if support["until"]:
        return f"{'supported until' if support['state'] == SUPPORTED else 'ended on'} {support['until']}"
    texts = {SUPPORTED: "supported", DEPRECATED: "deprecated: severe faults only", ENDED: "ended"}
    return texts.get(support["state"], "unknown")


def versions(plan: Plan) -> t.List[Version]:
    """Each component with the downloads that have its name in theirs; then a row of downloads that belong to none."""
    origins, found = [origin(source) for source in plan["sources"]], []
    for each in plan["support"]:
        word = each["component"].lower().replace(" ", "-")
        mine = [one for one in origins if word in one.name.lower()]
        origins = [one for one in origins if one not in mine]
        if each["component"] == "Kubernetes" and plan["hardening"]:  # this collection installs it
            mine.append(Origin("packages", "apt", "packages of the apt repositories that site sets up", "signed"))
        level = LEVELS.get(each["state"], "skipped")
        found.append(Version(each["component"], each["release"], level, support_text(each), mine))
    return found + [Version(one.name, "", "skipped", "", [one]) for one in origins]


def images(plan: Plan) -> t.List[PlannedImage]:
    releases = plan["releases"]
    names = [*releases["cni_images"], *(_name(image) for image in releases["components"].values())]
    return [
        PlannedImage(name.partition("@")[0], plan["image_digests"].get(name.partition("@")[0], "")) for name in names
    ]


def _name(image: Image) -> str:
    return f"{image['repository']}/{image['image']}:{image['version']}"
