# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""observations.json: what hosts reported in the last run, for plans while one of them is down."""

from __future__ import annotations

import json
import typing as t

from .._model.observation import CachedObservation, Observation, Observations, ObservedParts

Cache = t.Dict[str, CachedObservation]  # by inventory name


def parse_cache(text: str) -> Cache:
    """The entries of the file; empty if it is missing or something else."""
    try:
        entries = json.loads(text)
        return {name: entry for name, entry in entries.items() if entry["when"] and entry["host"]}
    except (AttributeError, KeyError, TypeError, ValueError):
        return {}


def update_cache(observations: Observations, cache: Cache, now: str) -> Cache:
    """What each host of the inventory reports now, or else what it reported last."""
    updated: Cache = {}
    for name, observation in observations.items():
        if observation.get("host"):
            updated[name] = {"when": now, **observed_parts(observation)}
        elif name in cache:
            updated[name] = cache[name]
    return updated


def recall_hosts(observations: Observations, cache: Cache) -> t.Dict[str, Observation]:
    """The observations, with the last known ones for hosts that did not answer; their errors stay.

    A plan without these hosts would remove them from the pools and give their addresses to pods. What was seen when the
    inventory had another address may be another host.
    """
    recalled: t.Dict[str, Observation] = {}
    for name, observation in observations.items():
        last = cache.get(name)
        then, now = last.get("reached") if last else None, observation.get("reached")
        if observation.get("host") or last is None or (then and now and then != now):
            recalled[name] = observation
        else:
            recalled[name] = {**observation, **observed_parts(last), "recalled": last["when"]}
    return recalled


def observed_parts(observation: ObservedParts) -> ObservedParts:
    """The parts of an observation that are kept."""
    parts: ObservedParts = {}
    if "host" in observation:
        parts["host"] = observation["host"]
    if "rdma" in observation:
        parts["rdma"] = observation["rdma"]
    if "vipu" in observation:
        parts["vipu"] = observation["vipu"]
    if "reached" in observation:
        parts["reached"] = observation["reached"]
    return parts
