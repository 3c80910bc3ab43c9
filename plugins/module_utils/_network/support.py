# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""How long the makers of each release support it, as they publish it, and what a plan says of that."""

from __future__ import annotations

import datetime
import typing as t

from .._common.findings import Findings
from .._model.plan import Releases, Support
from .._model.stacks import STACKS
from .releases import CALICO_KUBERNETES, CALICOS, GPU_KUBERNETES, GPU_OPERATORS, NETWORK_OPERATORS, Version, parse, show

READ = "2026-11-27"  # when the pages below were read
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
    """The support policy of makers who publish no dates: it covers the newest release lines, whichever these are."""

    lines: t.Dict[Version, str]  # with the day of each line's first release
    supported: int  # how many of the newest lines
    deprecated: int  # how many of the lines after them: only severe faults are fixed
    source: str

    def states(self, today: str) -> t.Dict[Version, str]:
        """Newest first. A line older than all of these has ended."""
        out = sorted((line for line, day in self.lines.items() if day <= today), reverse=True)
        words = [SUPPORTED] * self.supported + [DEPRECATED] * self.deprecated
        return {line: words[place] if place < len(words) else ENDED for place, line in enumerate(out)}


_NVIDIA = "https://docs.nvidia.com"
MAKERS: t.Dict[str, Maker] = {
    "network operator": Maker(
        {
            (25, 10): "2025-11-30",
            (26, 1): "2026-02-22",
            (26, 4): "2026-06-04",
            (26, 7): "2026-08-31",  # exact day not published; chosen after its last release candidate
            (26, 10): "2026-11-22",
        },
        1,
        1,
        f"{_NVIDIA}/networking/display/kubernetes26100/platform-support.html",
    ),
    "GPU operator": Maker(
        {(25, 10): "2025-10-31", (26, 3): "2026-03-19", (26, 7): "2026-08-20"},
        1,
        1,
        f"{_NVIDIA}/datacenter/cloud-native/gpu-operator/latest/platform-support.html",
    ),
    "Calico": Maker(
        {(3, 31): "2025-10-31", (3, 32): "2026-04-30", (3, 33): "2026-10-01"},
        2,
        0,
        "https://github.com/projectcalico/calico/security/policy",
    ),
}
# The lines that this collection can install, and those whose range of Kubernetes it knows.
KNOWN: t.Dict[str, t.FrozenSet[Version]] = {
    "network operator": frozenset(NETWORK_OPERATORS),
    "GPU operator": frozenset(parse(release)[:2] for release in GPU_OPERATORS),
    "Calico": frozenset(parse(release)[:2] for release in CALICOS),
}
RANGES: t.Dict[str, t.Collection[Version]] = {
    "network operator": NETWORK_OPERATORS,
    "GPU operator": GPU_KUBERNETES,
    "Calico": CALICO_KUBERNETES,
}
STALE_DAYS = 150  # a line of the network operator comes out every three months


def support_of(releases: Releases, today: str) -> t.List[Support]:
    """The support state of each component that a plan installs, on this day (YYYY-MM-DD)."""
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
        _kubernetes(release, today) if component == "Kubernetes" else _by_line(component, release, today)
        for component, release in installed.items()
        if release
    ]


def _kubernetes(release: str, today: str) -> Support:
    ends = KUBERNETES_ENDS.get(parse(release)[:2], "")
    state = UNKNOWN if not ends else SUPPORTED if today <= ends else ENDED
    return Support(
        component="Kubernetes", release=release, state=state, until=ends, source="https://kubernetes.io/releases/"
    )


def _by_line(component: str, release: str, today: str) -> Support:
    maker, line = MAKERS.get(component), parse(release)[:2]
    state = line_state(component, line, today) if maker and line else UNKNOWN
    return Support(component=component, release=release, state=state, until="", source=maker.source if maker else "")


def line_state(component: str, line: Version, today: str) -> str:
    """The support state of a line of releases, by the policy of its makers."""
    states = MAKERS[component].states(today)
    state = states.get(line, ENDED if states and line < min(states) else UNKNOWN)
    # Ended lines stay ended. Other states are unknown without the line's range, or if newer lines may have come out.
    known = line in RANGES[component] and age(today) <= STALE_DAYS
    return state if known or state == ENDED else UNKNOWN


def check_support(support: t.Sequence[Support], managed: bool, findings: Findings, today: str) -> None:
    """A warning for each release that is no longer supported, and for tables that were read too long ago.

    managed: whether this collection manages Kubernetes.
    """
    days = age(today)
    if days > STALE_DAYS:
        findings.warning(
            "release-table",
            [],
            "This collection does not know the releases of the last months.",
            f"its tables are {days} days old, from {READ}",
            "Install a newer ipu.fabric. Until then it knows only when each Kubernetes release ends, and which other"
            " releases had ended on that day.",
        )
    for each in support:
        if each["state"] == ENDED:
            what = f"{each['component']} {each['release']} is no longer supported by its makers."
            findings.warning(
                "release-ended",
                [],
                what[0].upper() + what[1:],
                f"{_seen(each, today)} ({each['source']}, read {READ})",
                _next(each["component"], managed, today),
            )


def age(today: str) -> int:
    """Days since the tables were read."""
    return (datetime.date.fromisoformat(today) - datetime.date.fromisoformat(READ)).days


def _seen(each: Support, today: str) -> str:
    if each["until"]:
        return f"it ended on {each['until']}"
    said = [f"{show(line)} is {state}" for line, state in MAKERS[each["component"]].states(today).items()]
    return ", ".join([*(words for words in said if not words.endswith(ENDED)), "older ones have ended"])


def _next(component: str, managed: bool, today: str) -> str:
    if component == "Kubernetes" and not managed:
        return (
            "Upgrade it with what manages it, such as kubespray, k3s or RKE2, one minor release at a time; then"
            " run plan and site. ipu.fabric.upgrade is for clusters that site has built."
        )
    if component == "Kubernetes":
        return "Upgrade with ipu.fabric.upgrade, one minor release at a time."
    variable = f"fabric_{component.lower().replace(' ', '_')}_version"
    return f"Set {variable} to a release of {show(max(KNOWN[component]))} when you can upgrade."


def _state_of(each: Support) -> str:
    if each["until"]:
        return f"{'until' if each['state'] == SUPPORTED else 'ended'} {each['until']}"
    if each["state"] in (DEPRECATED, ENDED):
        newest, known = max(MAKERS[each["component"]].lines), max(KNOWN[each["component"]])
        later = "" if known >= newest else f"; ipu.fabric knows up to {show(known)}"
        return f"{each['state']} ({show(newest)} is out{later})"
    return each["state"]


def describe_support(support: t.Sequence[Support]) -> str:
    """One line for a person: what ends when, what is deprecated, what is unknown; and how old the tables are."""
    told = ", ".join(f"{each['component']} {_state_of(each)}" for each in support)
    return f"{told}; tables read on {READ}"
