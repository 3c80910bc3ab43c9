# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What happens to each host, in one word, and the outcome of the whole plan. Pure."""

from __future__ import annotations

import typing as t

from .._common.memlock_limits import limit_bytes
from .._common.text import shorten_list
from .._model.plan import Finding, Hardening, HostChange, HostWord, Mark, PlannedHost, Since, Summary
from .._network.releases import parse
from .cluster_identity import trusted_ca
from .distribution import made_by
from .host_checks import missing_rdma_modules
from .hosts import Hosts, PlacedHost
from .running_cluster import Running

# In the order of the closing line: its wording, and the mark in front of a host.
WORDS: t.Dict[HostWord, t.Tuple[str, str]] = {
    "install": ("to install", "+"),
    "join": ("to join", "+"),
    "rejoin": ("to rejoin", "~"),
    "finish": ("to finish", "~"),
    "upgrade": ("to upgrade", "~"),
    "change": ("to change", "~"),
    "unknown": ("not seen", "?"),
    "outside": ("not in the cluster", "?"),
    "untouched": ("in the cluster", " "),
}
EXIT_CODES = {"nothing": 0, "errors": 1, "changes": 2}
MARKS: t.Dict[Mark, str] = {"+": "added", "~": "changed", "-": "gone"}


def host_changes(
    hosts: Hosts,
    planned: t.Mapping[str, PlannedHost],
    running: t.Optional[Running],
    managed: bool,
    kubernetes: str,
    memlock: str,
    hardening: t.Optional[Hardening],
    rdma: bool,
) -> t.Dict[str, HostChange]:
    """Changes by inventory name. `kubernetes` is the planned release; rdma: whether fabric NICs need RDMA.

    memlock: the planned limit of locked memory for runtimes, in the form of memlock_limit; empty: it stays.
    """
    nodes = {node["name"] for node in running.facts.get("nodes", [])} if running else set()
    due = {each["host"]: each["changes"] for each in hardening["due"]} if hardening else {}
    members = {} if managed else made_by(hosts)
    found: t.Dict[str, HostChange] = {}
    for name, host in hosts.items():
        why = [*due.get(name, []), *_host_differences(host, planned[name], memlock, rdma)]
        word = _word(host, running is not None, host.node in nodes, managed, kubernetes)
        if word == "untouched" and members and name not in members:
            word = "outside"
        if word == "untouched" and why:
            word = "change"
        found[name] = {"word": word, "why": why if word == "change" else _why(host, word, kubernetes)}
    return found


def _word(host: PlacedHost, cluster: bool, known: bool, managed: bool, kubernetes: str) -> HostWord:
    facts = host.facts
    if not facts or host.observation.get("recalled"):
        return "unknown"
    if not managed:  # whatever manages the cluster installs its nodes
        return "untouched"
    if facts["cluster"]["unfinished"]:
        return "finish"
    if not trusted_ca(facts) and not facts["kubelet"]["server"]:
        return "install" if not cluster else "rejoin" if known else "join"
    version = facts["kubelet"]["version"].lstrip("v")
    return "upgrade" if version and parse(version) < parse(kubernetes) else "untouched"


def _why(host: PlacedHost, word: HostWord, kubernetes: str) -> t.List[str]:
    if word == "upgrade" and host.facts:
        return [f"Kubernetes {host.facts['kubelet']['version'].lstrip('v')} to {kubernetes}"]
    if word == "finish":
        return ["kubeadm was interrupted"]
    return []


def _host_differences(host: PlacedHost, planned: PlannedHost, memlock: str, rdma: bool) -> t.List[str]:
    """What the roles memlock and rdma_host would change, as far as the host was observed."""
    found = []
    seen = host.rdma
    if seen:
        other = sorted(name for name, limit in seen["memlock"].items() if memlock and not _is_limit(limit, memlock))
        found += [f"locked memory of {', '.join(other)}"] if other else []
        missing = missing_rdma_modules(host) if rdma and planned["links"] else []
        found += [f"kernel modules {', '.join(missing)}"] if missing else []
        names = {link["netdev"]: link["altnames"] for link in seen["links"]}
        found += [
            f"{link['altname']} as an alternative name of {link['netdev']}"
            for link in planned["links"].values()
            if link["altname"] and link["altname"] not in names.get(link["netdev"], [])
        ]
    return found


def _is_limit(seen: str, wanted: str) -> bool:
    """Whether a limit shown by systemd equals the wanted one. The role memlock refuses an invalid one."""
    try:
        return limit_bytes(seen) == limit_bytes(wanted)
    except ValueError:
        return True


class Drifted(t.NamedTuple):
    """Drift that the playbook drift saw."""

    objects: t.Sequence[str]  # that site would create, change or remove
    time: str


def summarize(
    hosts: t.Mapping[str, HostChange],
    findings: t.Sequence[Finding],
    since: t.Optional[Since],
    drifted: t.Optional[Drifted],
    lacking: t.Sequence[str] = (),
) -> Summary:
    """The outcome of the plan.

    drifted: None if the playbook drift has not compared since. lacking: networks that the cluster does not have.
    Nothing is left to do only if site has applied a plan with the same decisions: hosts do not show whether a cluster
    is complete.
    """
    words = [change["word"] for change in hosts.values()]
    counts = {word: words.count(word) for word in WORDS if word in words}
    errors = sum(finding["level"] == "error" for finding in findings)
    left = _beside_hosts(since, drifted, lacking, set(counts) <= {"untouched"})
    state: t.Literal["nothing", "changes", "errors"] = "changes" if left or set(counts) - {"untouched"} else "nothing"
    if errors:
        what = "the error is" if errors == 1 else f"{errors} errors are"
        state, left = "errors", f"site changes nothing until {what} fixed."
    elif state == "nothing":
        objects = "objects (ipu.fabric.drift) or " if drifted is None else ""
        left = f"Nothing to do, unless {objects}files of hosts (ipu.fabric.site --check) have drifted."
    told = [f"{number} {WORDS[word][0]}" for word, number in counts.items()]
    if told:
        first = next(iter(counts.values()))
        told[0] = told[0].replace(" ", " host " if first == 1 else " hosts ", 1)
    return {
        "hosts": dict(hosts),
        "counts": {str(word): number for word, number in counts.items()},
        "bare": set(counts) == {"install"},
        "line": f"Plan: {', '.join(told) or 'no hosts'}. {left}".strip(),
        "state": state,
        "exit_code": EXIT_CODES[state],
    }


def _beside_hosts(since: t.Optional[Since], drifted: t.Optional[Drifted], lacking: t.Sequence[str], quiet: bool) -> str:
    """What there is to do besides the hosts; quiet: nothing changes on the hosts.

    A difference from a plan that was never applied is not a change of the cluster.
    """
    found = []
    if since and since["applied"] and since["moved"]:
        number = len(since["moved"])
        said = "1 decision differs" if number == 1 else f"{number} decisions differ"
        found.append(f"{said} from the plan that was applied.")
    if drifted and drifted.objects:
        named = shorten_list(drifted.objects, 2)
        found.append(f"Drift at {drifted.time}, which ipu.fabric.fabric corrects: {named}.")
    if quiet and lacking:
        found.append(f"{', '.join(lacking)} {'is' if len(lacking) == 1 else 'are'} not in the cluster.")
    if quiet and not found and not (since and since["applied"]):
        found.append(
            "Whether the fabric is applied isn't known: ipu.fabric.site has not run from this folder for all hosts."
        )
    return " ".join(found)


def show_change(change: HostChange) -> str:
    """A host's cell in a table: mark and word."""
    return f"{mark_of(change)} {change['word']}" if mark_of(change).strip() else WORDS[change["word"]][0]


def mark_of(change: HostChange) -> str:
    return WORDS[change["word"]][1]


def change_lines(hosts: t.Mapping[str, HostChange], most: int) -> t.List[str]:
    """A line for all hosts with the same change, with its reasons; none for hosts that stay unchanged."""
    alike: t.Dict[t.Tuple[HostWord, str], t.List[str]] = {}
    for name, change in hosts.items():
        if change["word"] != "untouched":
            alike.setdefault((change["word"], "; ".join(change["why"])), []).append(name)
    lines = []
    for word, (_words, mark) in WORDS.items():
        for (mine, why), names in alike.items():
            if mine == word:
                lines.append(f"{mark} {word}: {shorten_list(names, most)}{f' ({why})' if why else ''}")
    return lines
