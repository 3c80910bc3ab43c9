# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""How long the makers of each release go on with it, as they publish it, and what a plan says of that."""

from __future__ import annotations

import typing as t

from .._common.findings import Findings
from .._model.plan import Releases, Support
from .._model.stacks import STACKS
from .releases import Version, parse, show

READ = "2026-11-23"  # when the pages below were read
SUPPORTED, DEPRECATED, ENDED, UNKNOWN = "supported", "deprecated", "ended", "unknown"

# The last day of each minor release. https://kubernetes.io/releases/
KUBERNETES_ENDS: t.Dict[Version, str] = {
    (1, 31): "2025-11-11",
    (1, 32): "2026-02-28",
    (1, 33): "2026-06-28",
    (1, 34): "2026-10-27",
    (1, 35): "2027-02-28",
    (1, 36): "2027-06-28",
    (1, 37): "2027-10-28",
}


class Maker(t.NamedTuple):
    """Lines of releases in the words of their makers. A line that is older than all of these has ended."""

    supported: t.Tuple[Version, ...]  # newest first
    deprecated: t.Tuple[Version, ...]
    source: str


_NVIDIA = "https://docs.nvidia.com"
MAKERS: t.Dict[str, Maker] = {
    "network operator": Maker(
        ((26, 7),), ((26, 4),), f"{_NVIDIA}/networking/display/kubernetes2670/platform-support.html"
    ),
    "GPU operator": Maker(
        ((26, 7),), ((26, 3),), f"{_NVIDIA}/datacenter/cloud-native/gpu-operator/latest/platform-support.html"
    ),
    # The two most recent minor releases.
    "Calico": Maker(((3, 32), (3, 31)), (), "https://github.com/projectcalico/calico/security/policy"),
}


def support_of(releases: Releases, today: str) -> t.List[Support]:
    """The state of each component that a plan installs, on this day (YYYY-MM-DD)."""
    calico = releases["cni_version"] if releases["cni"] == "calico" else ""
    flannel = releases["cni_version"] if releases["cni"] == "flannel" else ""
    installed = {
        "Kubernetes": releases["kubernetes"],
        "Calico": calico,
        "flannel": flannel,
        **{stack.title: releases[name] for name, stack in STACKS.items()},
        "whereabouts": releases["whereabouts"],
        "GPU operator": releases["gpu_operator"],
        "IPU operator": releases["ipu_operator"],
    }
    return [
        _kubernetes(release, today) if component == "Kubernetes" else _by_line(component, release)
        for component, release in installed.items()
        if release
    ]


def _kubernetes(release: str, today: str) -> Support:
    ends = KUBERNETES_ENDS.get(parse(release)[:2], "")
    state = UNKNOWN if not ends else SUPPORTED if today <= ends else ENDED
    return Support(
        component="Kubernetes", release=release, state=state, until=ends, source="https://kubernetes.io/releases/"
    )


def _by_line(component: str, release: str) -> Support:
    maker, line = MAKERS.get(component), parse(release)[:2]
    state = UNKNOWN
    if maker and line:
        states = {**dict.fromkeys(maker.deprecated, DEPRECATED), **dict.fromkeys(maker.supported, SUPPORTED)}
        state = states.get(line, ENDED if line < min(states) else UNKNOWN)
    return Support(component=component, release=release, state=state, until="", source=maker.source if maker else "")


def check_support(support: t.Sequence[Support], managed: bool, findings: Findings) -> None:
    """A warning for each release that its makers have given up. `managed`: whether Kubernetes is site's to upgrade."""
    for each in support:
        if each["state"] == ENDED:
            what = f"{each['component']} {each['release']} is no longer supported by its makers."
            findings.warning(
                "release-ended",
                [],
                what[0].upper() + what[1:],
                f"{_seen(each)} ({each['source']}, read {READ})",
                _next(each["component"], managed),
            )


def _seen(each: Support) -> str:
    if each["until"]:
        return f"it ended on {each['until']}"
    maker = MAKERS[each["component"]]
    lines = [f"{show(line)} is supported" for line in maker.supported]
    return ", ".join([*lines, *(f"{show(line)} is deprecated" for line in maker.deprecated), "older ones have ended"])


def _next(component: str, managed: bool) -> str:
    if component == "Kubernetes" and not managed:
        return (
            "Upgrade it with what manages it, such as kubespray, k3s or RKE2, one minor release after the other; then"
            " run plan and site. ipu.fabric.upgrade is for clusters that site has built."
        )
    if component == "Kubernetes":
        return "Upgrade with ipu.fabric.upgrade, one minor release after the other."
    variable = f"fabric_{component.lower().replace(' ', '_')}_version"
    return f"Set {variable} to a release of {show(MAKERS[component].supported[0])} when you can upgrade."


def describe_support(support: t.Sequence[Support]) -> str:
    """One line for a person: what ends when, what is on its way out, and what nobody promises."""
    said = []
    for each in support:
        if each["until"]:
            said.append(f"{each['component']} {'until' if each['state'] == SUPPORTED else 'ended'} {each['until']}")
        elif each["state"] != UNKNOWN:
            said.append(f"{each['component']} {each['state']}")
    silent = [each["component"] for each in support if each["state"] == UNKNOWN]
    return ", ".join([*said, *([f"unknown for {' and '.join(silent)}"] if silent else [])])
