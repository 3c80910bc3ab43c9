# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a bundle contains what the plan installs."""

from __future__ import annotations

import types
import typing as t

from .._common.findings import Findings
from .._model.bundle import RELEASES, Bundle, SeenBundle, platform_of
from .._model.plan import Releases
from .hosts import Hosts, PlacedHost

CHECK = "bundle"
NEW = "Make a bundle for this plan: copy plan.json to a machine with the internet, and run ipu.fabric.bundle there."
SHOWN = 5  # file names in a finding


def host_platform(host: PlacedHost) -> str:
    """The platform of packages for a host; empty if it was not observed."""
    facts = host.facts
    return platform_of(facts["distribution"], facts["release"], facts["architecture"]) if facts else ""


def check_bundle(
    seen: t.Optional[SeenBundle],
    releases: Releases,
    hosts: Hosts,
    managed: bool,
    findings: Findings,
    packages: t.Mapping[str, str] = types.MappingProxyType({}),
) -> None:
    """packages: additional ones besides Kubernetes, each with the variable that requests it."""
    if seen is None:
        return
    if seen.content is None:
        step = "Make it with ipu.fabric.bundle; a run that was interrupted goes on where it stopped."
        findings.error(CHECK, [], "fabric_bundle is not a finished bundle.", seen.problem, step)
        return
    if seen.wrong:
        more = f" and {len(seen.wrong) - SHOWN} more" if len(seen.wrong) > SHOWN else ""
        findings.error(
            CHECK,
            [],
            "Files of the bundle are not what its list says.",
            f"{seen.path}: {', '.join(seen.wrong[:SHOWN])}{more}",
            "Copy them again from where the bundle was made, or run ipu.fabric.bundle, which fetches these files.",
        )
    _check_releases(seen.content, releases, managed, findings)
    _check_packages(seen.content, packages, findings)
    if managed:
        _check_platforms(seen.content, hosts, findings)
    else:
        findings.warning(
            CHECK,
            [],
            "Images of a bundle are only imported where this collection manages Kubernetes.",
            "fabric_manage_kubernetes is false",
            "Import the archives under images/ yourself, or push them to the cluster's registry.",
        )


def _check_releases(bundle: Bundle, releases: Releases, managed: bool, findings: Findings) -> None:
    wanted = {name: str(t.cast(t.Mapping[str, object], releases)[name]) for name in RELEASES}
    if not managed:
        wanted = {name: wanted[name] for name in wanted if name not in ("kubernetes", "cni", "cni_version")}
    differing = [
        f"{name} {bundle['releases'].get(name) or '(none)'} instead of {version or '(none)'}"
        for name, version in wanted.items()
        if bundle["releases"].get(name, "") != version
    ]
    if differing:
        findings.error(
            CHECK,
            [],
            "The bundle's releases are not those of the plan.",
            f"it has {', '.join(differing)}",
            f"{NEW} Or set the site's variables to the bundle's releases.",
        )


def _check_packages(bundle: Bundle, packages: t.Mapping[str, str], findings: Findings) -> None:
    for package, variable in packages.items():
        lacking = [
            platform
            for platform in bundle["platforms"]
            if not any(name.startswith(f"apt/{platform}/{package}_") for name in bundle["files"])
        ]
        if lacking:
            findings.error(
                CHECK,
                [],
                f"The bundle has no {package}, which {variable} needs.",
                f"no such package for {', '.join(lacking)}",
                f"{NEW} Or leave {variable} empty.",
            )


def _check_platforms(bundle: Bundle, hosts: Hosts, findings: Findings) -> None:
    platforms = {name: host_platform(host) for name, host in hosts.items()}
    for platform in sorted({one for one in platforms.values() if one and one not in bundle["platforms"]}):
        findings.error(
            CHECK,
            [name for name, one in platforms.items() if one == platform],
            "The bundle has no packages for this host.",
            f"the host is {platform}, the bundle has {', '.join(bundle['platforms'])}",
            NEW,
        )
