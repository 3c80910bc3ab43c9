# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the hosts said, out of the variables of a play."""

from __future__ import annotations

import ipaddress
import time
import typing as t

from ansible_collections.ipu.fabric.plugins.module_utils._host.facts import clock_offset
from ansible_collections.ipu.fabric.plugins.module_utils._host.vipu import split_endpoint

GROUPS = ("kube_control_plane", "kube_node", "ipu_node", "etcd")
MEMBERS = GROUPS[:3]
# Result of which task, under which of its keys, becomes which part of an observation.
PARTS = {
    "__preflight_host": ("host", "host_info"),
    "__preflight_rdma": ("rdma", "rdma_info"),
    "__fabric_vipu": ("vipu", "vipu_info"),
}
Seen = t.Dict[str, t.Any]


def members(groups: t.Mapping[str, t.Sequence[str]]) -> t.List[str]:
    """All hosts of the cluster to be, each once, control planes first."""
    return list(dict.fromkeys(name for group in MEMBERS for name in groups.get(group, ())))


def part(key: str, source: str, result: t.Mapping[str, t.Any]) -> Seen:
    """The observation in one module's result, or the error that it ended with; nothing if it did not run."""
    if key == "vipu" and "host" in result and "port" in result:
        names = ("host", "port", "address", "version", "source")
        return {"vipu": {name: result[name] for name in names if name in result}}
    if key != "vipu" and key in result:
        return {key: result[key]}
    if result.get("skipped") or "msg" not in result:
        return {}
    error = {
        "source": "vipu" if key == "vipu" and not result.get("unreachable") else "host",
        "what": result.get("what", "The host could not be looked at."),
        "where": result.get("where", source),
        "seen": result.get("seen", result["msg"]),
        "next_step": result.get(
            "next_step", "Make it reachable by SSH with Python 3 and privileges, or take it out of the inventory."
        ),
    }
    return {"errors": [error]}


def merge(seen: Seen, more: Seen) -> None:
    seen.setdefault("errors", []).extend(more.pop("errors", []))
    seen.update(more)


def observations(hostvars: t.Mapping[str, t.Any], groups: t.Mapping[str, t.Sequence[str]]) -> t.Dict[str, Seen]:
    """For each host of the cluster its groups, its address if the inventory names one, and what was observed."""
    names = members(groups)
    of_host: t.Dict[str, t.List[str]] = {name: [] for name in names}
    for group, listed in groups.items():
        for name in listed:
            if name in of_host and group not in ("all", "ungrouped"):
                of_host[name].append(group)
    found: t.Dict[str, Seen] = {}
    answers: t.List[t.Tuple[str, str, t.Mapping[str, t.Any]]] = []
    for name in names:
        variables = hostvars[name]
        found[name] = {"groups": sorted(of_host[name]), "address": variables.get("ip", ""), "errors": []}
        for variable in PARTS:
            answers.append((name, variable, variables.get(variable) or {}))
            # In a run with --limit each host of the play has looked at some of the others.
            others = (variables.get(f"{variable}_others") or {}).get("results", ())
            answers += [(looked_at(answer), variable, answer) for answer in others]
    for name, variable, answer in answers:
        if name in found:
            merge(found[name], part(*PARTS[variable], answer))
    arrived = time.time()
    for seen in found.values():
        clock = seen.get("host", {}).get("time")
        if clock:
            offset = clock_offset(clock["asked"], clock["read"], arrived)
            seen["host"] = {**seen["host"], "time": {**clock, "offset": offset}}
    return found


def looked_at(answer: t.Mapping[str, t.Any]) -> str:
    """The host of one round of a loop, which may go over the results of another loop."""
    item = answer["item"]
    return item["item"] if isinstance(item, dict) else item


def vipu_addresses(entries: t.Sequence[t.Any]) -> t.List[str]:
    """The IP addresses among fixed V-IPU controllers; names are resolved by the plan."""
    found = []
    for entry in entries:
        try:
            text = str(entry["host"] if isinstance(entry, dict) else entry)
            found.append(str(ipaddress.ip_address(split_endpoint(text)[0])))
        except (KeyError, ValueError):  # a name, or something that the plan refuses with its reason
            continue
    return found


class FilterModule:
    """Filters of this file."""

    def filters(self) -> t.Dict[str, t.Callable[..., t.Any]]:
        return {"observations": observations, "vipu_addresses": vipu_addresses}
