# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which packages to remove with Kubernetes: those recorded as ours, unless packages of others need them."""

from __future__ import annotations

import typing as t

from .apt import Apt, Package, would_remove
from .package_record import read_record

PACKAGES = ("kubelet", "kubeadm", "kubectl", "kubernetes-cni", "containerd.io")
RUNTIMES = ("containerd.io", "docker-ce", "docker-ce-cli")


class Packages(t.NamedTuple):
    """Packages to remove, and why others of ours stay."""

    removed: t.List[str]
    released: t.List[str]  # to be taken off hold
    kept: t.List[str]
    unrecorded: t.List[str]  # installed by somebody else, as far as is known


def first_too_many(
    chosen: t.Sequence[str], simulate: t.Callable[[t.Sequence[str]], t.Set[str]]
) -> t.Dict[str, t.Set[str]]:
    """The first package whose removal, with those before it, removes foreign ones too, like the last one of `a | b`."""
    for count in range(1, len(chosen) + 1):
        others = simulate(chosen[:count]) - set(chosen)
        if others:
            return {chosen[count - 1]: others}
    return {}


def choose_packages(
    installed: t.Collection[str], pinned: t.Mapping[str, str], simulate: t.Callable[[t.Sequence[str]], t.Set[str]]
) -> t.Tuple[t.List[str], t.List[str]]:
    """Our packages to remove, and those that stay, with the reason. Removing them takes no foreign package along."""
    kept = [f"{name} ({reason})" for name, reason in sorted(pinned.items()) if name in installed]
    chosen = sorted(set(installed) - set(pinned))
    while chosen and simulate(chosen) - set(chosen):
        needed = {name: simulate([name]) - set(chosen) for name in chosen}
        blocked = {name: others for name, others in needed.items() if others} or first_too_many(chosen, simulate)
        kept += [f"{name} (needed by {', '.join(sorted(others))})" for name, others in sorted(blocked.items())]
        chosen = [name for name in chosen if name not in blocked]
    return chosen, kept


def read_packages(apt: Apt, others: t.Sequence[str]) -> Packages:
    """The packages of this host. others: containers or images in containerd or Docker that are not ours."""
    record, status = read_record(), apt.status()
    none = Package(selection="", state="", version="")
    installed = {name for name in (*record["installed"], *PACKAGES) if status.get(name, none)["state"] == "installed"}
    pinned = dict.fromkeys(RUNTIMES, ", ".join(others)) if others else {}
    # Otherwise the host would lack a package that it had before.
    pinned.update({name: f"it took the place of {', '.join(gone)}" for name, gone in record["replaced"].items()})

    def simulate(names: t.Sequence[str]) -> t.Set[str]:
        options = ("remove", "--simulate", "--allow-change-held-packages")
        return would_remove(apt.get(*options, *names, what="Could not resolve which packages to remove."))

    removed, kept = choose_packages([name for name in record["installed"] if name in installed], pinned, simulate)
    held = [name for name in record["held"] if status.get(name, none)["selection"] == "hold"]
    strangers = [
        f"{name} (this collection has no record of installing it)"
        for name in PACKAGES
        if name in installed and name not in record["installed"]
    ]
    return Packages(removed, [name for name in held if name not in removed], kept, strangers)
