# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A plan from recorded observations, of an earlier run or from another machine. Pure."""

from __future__ import annotations

import functools
import json
import typing as t

from .._common.result import FabricError
from .._common.text import shorten_list
from .._model.observation import CachedObservation, Observation, ObservationError, Observations
from .observation_cache import Cache, observed_parts

NAMES = 8  # host names in one sentence
LONGEST = 40  # characters of a value in one sentence
# For each type of JSON, its name and its Python types.
WORDS: t.Dict[object, t.Tuple[str, t.Tuple[type, ...]]] = {
    bool: ("true or false", (bool,)),
    dict: ("an object", (dict,)),
    float: ("a number", (int, float)),
    int: ("a whole number", (int,)),
    list: ("a list", (list,)),
    str: ("a string", (str,)),
    type(None): ("null", (type(None),)),
}
REQUIRED = "__required_keys__"  # attribute of a TypedDict
NEXT = "Give the observations.json of a plan that this release has made, or an archive of ipu.fabric.support."


class Recording(t.NamedTuple):
    """What hosts reported, and the path of the recording."""

    path: str
    hosts: Cache

    @property
    def time(self) -> str:
        """When it was recorded, in ISO 8601."""
        return max(entry["when"] for entry in self.hosts.values())


def parse_recording(text: str, path: str) -> Recording:
    """The recording in the text of an observations.json.

    Raises FabricError if it is something else, or lacks what this release needs to know of a host.
    """
    try:
        entries = json.loads(text)
    except ValueError as error:
        raise _refused(path, f"it is not JSON: {error}") from error
    if not isinstance(entries, dict) or not entries:
        raise _refused(path, "it is JSON, but has no hosts")
    for name, entry in entries.items():
        fault = next(faults(entry, CachedObservation), "") or ("" if entry.get("host") else "it has no host")
        if fault:
            raise _refused(path, f"{name}: {fault}")
    return Recording(path, entries)


def recorded(observations: Observations, recording: Recording) -> t.Dict[str, Observation]:
    """The hosts of the inventory as recorded. A host that is not in the recording gets an error instead."""
    if not set(observations) & set(recording.hosts):
        raise FabricError(
            "The recording and the inventory must be of the same hosts.",
            f"fabric_observations: {recording.path}",
            f"the recording is of {shorten_list(sorted(recording.hosts), NAMES)}",
            "Give the inventory of that site with -i.",
            code="wrong-content",
        )
    found: t.Dict[str, Observation] = {}
    for name, observation in observations.items():
        entry = recording.hosts.get(name)
        if entry is None:
            error = _missing(recording, "it has no entry for this host")
            found[name] = {**observation, "errors": [error]}
        elif entry["when"] != recording.time:
            error = _missing(recording, "the host did not answer when the others were recorded")
            found[name] = {**observation, **observed_parts(entry), "errors": [error], "recalled": entry["when"]}
        else:
            found[name] = {**observation, **observed_parts(entry)}
    return found


def _refused(path: str, seen: str) -> FabricError:
    return FabricError(
        "A recording of hosts must have all that this release needs for a plan.",
        f"fabric_observations: {path}",
        seen,
        NEXT,
        code="wrong-content",
    )


def _missing(recording: Recording, seen: str) -> ObservationError:
    return {
        "source": "host",
        "what": "Every host must be in the recording.",
        "where": recording.path,
        "seen": seen,
        "next_step": "Run ipu.fabric.plan while all hosts can be reached and use its observations.json,"
        " or remove the host from the inventory.",
    }


@functools.lru_cache(maxsize=None)
def _fields(kind: t.Hashable) -> t.Tuple[t.FrozenSet[str], t.Dict[str, t.Hashable]]:
    """The required fields of a TypedDict, and the types of all its fields."""
    return getattr(kind, REQUIRED), t.get_type_hints(kind)


def faults(value: object, kind: t.Hashable, path: str = "") -> t.Iterator[str]:
    """What is missing from a JSON value, or has another type than a TypedDict, a list and so on requires."""
    origin, arguments = t.get_origin(kind), t.get_args(kind)
    if hasattr(kind, REQUIRED):
        yield from _faults_of_fields(value, kind, path)
    elif origin is t.Union:
        found = [next(faults(value, one, path), "") for one in arguments]
        yield from found[:1] if all(found) else []
    elif origin is list and isinstance(value, list):
        for number, each in enumerate(value):
            yield from faults(each, arguments[0], f"{path}.{number}")
    elif origin is dict and isinstance(value, dict):
        for key, each in value.items():
            yield from faults(each, arguments[1], f"{path}.{key}")
    else:
        word, kinds = WORDS.get(origin or kind, ("", (object,)))
        if not isinstance(value, kinds):
            yield f"{path} is {json.dumps(value)[:LONGEST]}, not {word}"


def _faults_of_fields(value: object, kind: t.Hashable, path: str) -> t.Iterator[str]:
    if not isinstance(value, dict):
        yield f"{path or 'the entry'} is {json.dumps(value)[:LONGEST]}, not {WORDS[dict][0]}"
        return
    needed, types = _fields(kind)
    yield from (f"{path}.{key} is missing".lstrip(".") for key in sorted(needed - value.keys()))
    for key in sorted(types.keys() & value.keys()):
        yield from faults(value[key], types[key], f"{path}.{key}".lstrip("."))
