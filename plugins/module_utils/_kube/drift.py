# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What an API module would change, object by object, from its result in check mode."""

from __future__ import annotations

import typing as t

from .._common.differences import differences
from .._model.plan import Drift

Options = t.Mapping[str, t.Any]
WORDS = ("now", "planned")


def _named(prefix: str) -> t.Callable[[Options, Options], Options]:
    """For modules whose diff has a key for each object, without its kind."""
    return lambda side, _options: {f"{prefix}{key}": value for key, value in side.items()}


def _networks(side: Options, options: Options) -> Options:
    """A network is keyed by its name alone, an edited object by kind and name."""
    if options.get("state") == "pruned":
        return side
    return {key if " " in key else f"MacvlanNetwork {key}": value for key, value in side.items()}


def _release(side: Options, options: Options) -> Options:
    """A release with the other reasons to run helm, and its namespace."""
    more = {key: value for key, value in side.items() if key not in ("release", "namespace")}
    release = {**side["release"], **more} if side.get("release") else None
    place, name = options["namespace"], options["name"]
    return {f"Helm release {place}/{name}": release, f"Namespace {place}": side.get("namespace")}


# How to split one side of a module's diff into objects. Other modules only read, or work on hosts.
BY_OBJECT: t.Dict[str, t.Callable[[Options, Options], Options]] = {
    "helm_release": _release,
    "ipujob": lambda side, options: side if options.get("state") == "restored" else {},
    "kube_apply": _named(""),
    "macvlan_network": _networks,
    "network_operator": lambda side, options: side if options.get("state") == "rendered" else {},
    "node_labels": _named("Node "),
}


def drift_of(module: str, options: Options, result: Options) -> t.List[Drift]:
    """The objects that would change, be taken over from others, or be left."""
    if module not in BY_OBJECT or result.get("failed"):
        return []
    diff = result.get("diff") or {}
    before, after = (BY_OBJECT[module](diff.get(side) or {}, options) for side in ("before", "after"))
    pairs = {name: (before.get(name), after.get(name)) for name in {**before, **after}}
    found = [_drift(name, *pair) for name, pair in pairs.items() if pair[0] != pair[1]]
    others: t.Literal["leave", "take over"] = "leave" if options.get("state") == "pruned" else "take over"
    found += [Drift(object=name, change=others, ours=False, fields=[]) for name in result.get("others", ())]
    unplanned = [name for name in result.get("unplanned", ()) if name not in result.get("removed", ())]
    return found + [Drift(object=name, change="leave", ours=True, fields=[]) for name in unplanned]


def _drift(name: str, before: t.Any, after: t.Any) -> Drift:
    if before is None or after is None:
        return Drift(object=name, change="create" if before is None else "remove", ours=True, fields=[])
    return Drift(object=name, change="change", ours=True, fields=list(differences(before, after, WORDS)))
