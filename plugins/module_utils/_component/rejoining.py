# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a restored cluster wrongly knows of hosts that still have to rejoin it, for the playbook restore."""

from __future__ import annotations

import dataclasses
import typing as t

from .settings import NoSettings as Settings


@dataclasses.dataclass(frozen=True)
class Seen:
    """The hosts of the plan, and what the backup contains about them."""

    first: str  # the control plane that was restored
    aside: t.Sequence[str]  # control planes that were set aside for the restore
    planned: t.Mapping[str, t.Mapping[str, t.Any]]  # hosts of the plan
    hosts: t.Sequence[str]
    facts: t.Sequence[t.Mapping[str, t.Any]]  # what ipu.fabric.host_info returned, in this order
    addresses: t.Sequence[t.Mapping[str, str]]  # pods' addresses when the backup was made


@dataclasses.dataclass(frozen=True)
class Rejoining:
    """State that is no longer true."""

    ready: t.Sequence[str]  # lines that wrongly report nodes as ready
    pods: t.Sequence[t.Mapping[str, t.Any]]  # pods of reinstalled hosts, by namespace


def decide(settings: Settings, seen: Seen) -> Rejoining:
    """Find nodes whose hosts were set aside or reinstalled."""
    nodes = {name: host["node"] for name, host in seen.planned.items()}
    hosts = {name: answer["host"] for name, answer in zip(seen.hosts, seen.facts) if "host" in answer}
    bare = [name for name, facts in hosts.items() if not facts["kubelet"]["server"]]
    gone = [name for name in dict.fromkeys([*bare, *seen.aside]) if name != seen.first]
    reinstalled = {nodes[name] for name in bare}
    pods: t.Dict[str, t.List[str]] = {}
    for full_name in dict.fromkeys(each["pod"] for each in seen.addresses if each["node"] in reinstalled):
        namespace, _slash, name = full_name.partition("/")
        pods.setdefault(namespace, []).append(name)
    return Rejoining(
        ready=[f"{nodes[name]} True" for name in gone],
        pods=[{"namespace": namespace, "names": names} for namespace, names in pods.items()],
    )
