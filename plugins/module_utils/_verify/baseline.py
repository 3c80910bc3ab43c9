# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Compares a proof with earlier ones of the same site: lost checks, moved nodes, worse figures. Pure functions."""

from __future__ import annotations

import json
import math
import statistics
import typing as t

from .._common.result import FabricError
from .._common.text import natural, shorten_list
from .._model.checks import Check, Head
from .._model.plan import Plan
from .._model.probe import Probe
from .catalog import ACCEPTED, CHECK_TYPES, FAILED, PASSED, SKIPPED, UNPROVEN, result, skip
from .checks import cleaned
from .history import KEPT
from .pods import devices_on

NONE, ACCEPT = "none", "accept"  # values of fabric_baseline that are not paths
# If nothing has changed, one proof in 5,000 reports a regression of a figure, whatever the number of figures.
FALSE_ALARMS = 0.0002
ENOUGH = 3  # figures of a pair for a spread of its own
FEW = 10  # names in a line
NO_PROOF = "no earlier proof of the whole site to compare with: this one is the first"
OTHER_CLUSTER = "the earlier proofs are of a cluster with another CA: this one is the first of this cluster"
SWITCHED_OFF = "fabric_baseline is none"
OF_WHOLE = "this check only compares the results of others: name those in verify_checks"
ACCEPTED_NOW = "fabric_baseline is accept: later proofs are compared with this one"


Groups = t.Mapping[str, t.Sequence[str]]  # roles and networks of each node


class Noise(t.NamedTuple):
    """How much a figure differs between proofs if nothing has changed."""

    more_is_better: bool
    least: float  # minimum standard deviation of its logarithm
    software: float  # the same for software RDMA, which a busy processor may slow down at any time
    step: float  # smaller changes, in the figure's unit, are insignificant


NOISE = {
    "write_bandwidth": Noise(True, 0.02, 0.35, 0),
    "read_latency": Noise(False, 0.1, 0.35, 1),
    "gpu_bandwidth": Noise(True, 0.02, 0.35, 0),
    "host_traffic": Noise(True, 0.02, 0.02, 0),
}


class Key(t.NamedTuple):
    """The subject of a check."""

    check: str
    network: str
    place: str  # `node` or `client>server`, then a space and the subject, if any

    @property
    def nodes(self) -> t.List[str]:
        return [name for name in self.place.partition(" ")[0].split(">") if name]


class Series(t.NamedTuple):
    """A figure in the kept proofs, newest first."""

    shown: t.List[t.Optional[float]]  # in each proof; None: not measured
    good: t.Optional[t.List[float]] = None  # the figures to compare with, after a regression; else all in `shown`

    @property
    def usual(self) -> t.List[float]:
        return [value for value in self.shown if value is not None] if self.good is None else self.good


class Baseline(t.NamedTuple):
    """The results of earlier proofs of the whole site."""

    times: t.List[str]  # UTC, ISO 8601; newest first
    groups: t.Dict[str, t.List[str]]  # roles and networks of each node
    passed: t.FrozenSet[Key]  # checks that passed, and whose later state was not accepted since
    figures: t.Dict[Key, Series]
    ca: str = ""  # digest of the cluster's CA; empty if unknown


EMPTY = Baseline([], {}, frozenset(), {})


def groups_of(plan: Plan) -> t.Dict[str, t.List[str]]:
    """Roles and networks by node."""
    return {host["node"]: sorted({*host["roles"], *host["links"]}) for host in plan.get("hosts", {}).values()}


def key_of(check: t.Mapping[str, t.Any]) -> Key:
    """The key of a check in a report."""
    place = ">".join(check.get("pair") or ()) or check.get("node") or ""
    subject = check.get("subject") or ""
    return Key(check["check"], check.get("network") or "", f"{place} {subject}" if subject else place)


# Files


def read_baseline(text: str) -> Baseline:
    """The baseline in a text; EMPTY if the text is invalid."""
    try:
        data = json.loads(text)
        passed = [Key(check, network, place) for check, network, place in unfolded(data["passed"])]
        figures = {Key(*key): Series(one["shown"], one.get("good")) for *key, one in unfolded(data["figures"], True)}
        return Baseline(data["times"], data["groups"], frozenset(passed), figures, str(data.get("ca", "")))
    except (AttributeError, KeyError, TypeError, ValueError):
        return EMPTY


def unfolded(tree: t.Mapping[str, t.Any], with_value: bool = False) -> t.Iterator[t.Tuple[t.Any, ...]]:
    for check, networks in tree.items():
        for network, places in networks.items():
            for place in places:
                yield (check, network, place, places[place]) if with_value else (check, network, place)


def to_json(base: Baseline) -> str:
    passed: t.Dict[str, t.Dict[str, t.List[str]]] = {}
    for key in sorted(base.passed):
        passed.setdefault(key.check, {}).setdefault(key.network, []).append(key.place)
    figures: t.Dict[str, t.Dict[str, t.Dict[str, t.Dict[str, object]]]] = {}
    for key, series in sorted(base.figures.items()):
        held = {} if series.good is None else {"good": series.good}
        figures.setdefault(key.check, {}).setdefault(key.network, {})[key.place] = {"shown": series.shown, **held}
    data = {
        "schema": 1,
        "ca": base.ca,
        "times": base.times,
        "groups": base.groups,
        "passed": passed,
        "figures": figures,
    }
    return json.dumps(data, separators=(",", ":")) + "\n"


def of_cluster(base: Baseline, ca: str) -> Baseline:
    """The baseline, or EMPTY if it belongs to a cluster with another CA: the cluster may have been reset."""
    return EMPTY._replace(ca=ca) if base.ca and ca and base.ca != ca else base._replace(ca=ca or base.ca)


def of_report(text: str, path: str) -> Baseline:
    """The baseline from a report.json that the site chose. FabricError unless it is of a whole site."""
    try:
        report = json.loads(text)
        checks, nodes = report["checks"], report["nodes"]
        figures = {
            key_of(check): Series([float(check["value"])])
            for check in checks
            if check["check"] in NOISE and check.get("value") is not None and check["status"] != FAILED
        }
        passed = frozenset(key_of(check) for check in checks if check["status"] == PASSED)
        found = Baseline([report["time"]], report.get("groups") or {}, passed, figures)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise FabricError(
            "The baseline must be the report of an earlier proof.",
            f"fabric_baseline, {path}",
            "no such file" if not text else f"not a report.json of ipu.fabric: {error}",
            "Set fabric_baseline to a report.json, or leave it out to compare with the last proofs.",
            code="unusable-file",
        ) from error
    if nodes:
        raise FabricError(
            "The baseline must be the report of a proof of the whole site.",
            f"fabric_baseline, {path}",
            f"it is a proof of {shorten_list(nodes, FEW)} only",
            "Set fabric_baseline to the report.json of a proof without verify_nodes.",
            code="unusable-file",
        )
    return found


# Figures


class Limit(t.NamedTuple):
    """The value beyond which a figure is a regression."""

    usual: float  # median of the earlier ones
    value: float


def deviations(values: t.Sequence[float]) -> t.List[float]:
    """Deviations of logarithms from their median. The least is that of the median itself, which shows no spread."""
    middle = math.log(statistics.median(values))
    return sorted(abs(math.log(value) - middle) for value in values)[1:]


def spread(found: t.Sequence[float]) -> float:
    """A robust estimate of the standard deviation, despite outliers."""
    return 1.4826 * statistics.median(found) if found else 0.0


def limits(earlier: t.Mapping[Key, Series], kept: t.Mapping[Key, Series], soft: t.Set[Key]) -> t.Dict[Key, Limit]:
    """The limit of each figure, from its variation, and that of figures of its kind, in the kept proofs.

    earlier: the figures to compare with, which may differ from those in `kept`.
    """
    usual = {key: [v for v in series.usual if v > 0] for key, series in earlier.items()}
    usual = {key: values for key, values in usual.items() if values}
    spreads = {key: [v for v in series.usual if v > 0] for key, series in kept.items() if key in usual}
    own = {key: deviations(values) for key, values in spreads.items() if len(values) >= ENOUGH}
    alike: t.Dict[t.Tuple[str, bool], t.List[float]] = {}
    for key, found in own.items():
        alike.setdefault((key.check, key in soft), []).extend(found)
    common = {kind: spread(found) for kind, found in alike.items()}
    factor = statistics.NormalDist().inv_cdf(1 - FALSE_ALARMS / max(1, len(usual)))
    found_limits = {}
    for key, values in usual.items():
        noise, middle = NOISE[key.check], statistics.median(values)
        least = noise.software if key in soft else noise.least
        if key not in own:
            if key in soft:
                continue  # too few to tell
            least *= 2
        deviation = max(spread(own.get(key, ())), common.get((key.check, key in soft), 0.0), least)
        # The median of a few figures is uncertain itself.
        far = math.exp(factor * deviation * math.sqrt(1 + (math.pi / 2 if len(values) >= ENOUGH else 1) / len(values)))
        if noise.more_is_better:
            value = min(middle / far, middle - noise.step, *values)
        else:
            value = max(middle * far, middle + noise.step, *values)
        found_limits[key] = Limit(middle, value)
    return found_limits


def is_worse(check: Check, limit: Limit) -> bool:
    value = check.value or 0.0
    return value < limit.value if NOISE[check.check].more_is_better else value > limit.value


def software_figures(checks: t.Sequence[Check], probe: Probe) -> t.Set[Key]:
    """The figures of pairs with software RDMA."""
    figures = [check for check in checks if check.pair and check.check in NOISE]
    devices = {network: devices_on(probe["pods"], network) for network in {check.network for check in figures}}
    soft = {(network, node) for network, each in devices.items() for node, device in each.items() if device.software}
    return {key_of(c._asdict()) for c in figures if soft & {(c.network, node) for node in c.pair}}


# Comparing


class Verdict(t.NamedTuple):
    """The comparison of a proof with its baseline."""

    checks: t.List[Check]  # all of the proof: those with a worse figure fail, and `regression` has the rest
    worse: t.Set[Key]  # figures
    lost: t.Set[Key]  # checks that passed, and no longer do


def as_they_are(checks: t.Sequence[Check], reason: str = "") -> Verdict:
    """The checks without a comparison, and the reason, if the report should show it."""
    return Verdict([*checks, *([skip("regression", reason)] if reason else [])], set(), set())


def compare(
    checks: t.Sequence[Check],
    groups: Groups,
    base: Baseline,
    kept: Baseline,
    soft: t.Set[Key],
    whole: bool,
) -> Verdict:
    """Find the regressions.

    base: the proof to compare with; kept: earlier proofs, which show how much figures vary without a cause.
    whole: this is a proof of the whole site; a partial proof is compared only in its figures.
    """
    keyed = {key_of(check._asdict()): check for check in checks}
    measured = {key: keyed[key] for key in base.figures if key in keyed and keyed[key].value is not None}
    allowed = limits({key: base.figures[key] for key in measured}, kept.figures, soft)
    worse = {key for key, limit in allowed.items() if is_worse(measured[key], limit)}
    failed = {key for key, check in keyed.items() if check.status == FAILED}
    lost: t.Set[Key] = set()
    found: t.List[Check] = []
    if whole:
        moved = moved_nodes(base.groups, groups)
        lost = lost_checks(keyed, base, groups, moved)
        bad = {node for key in failed for node in key.nodes}  # a failure there explains what can't be tested
        silent = {key for key, check in keyed.items() if bad and not key.nodes and check.status == UNPROVEN}
        gone = gone_checks({key for key in lost - failed - silent if not bad & set(key.nodes)}, keyed)
        found = [*(moved_check(node, base, groups) for node in sorted(moved, key=natural)), *gone]

    def told(check: Check) -> Check:
        key = key_of(check._asdict())
        if check.status == FAILED and (key in worse or key in base.passed):
            return check._replace(seen=f"{check.seen.rstrip(' .')}; earlier it {was(key, base, allowed)}")
        return worse_figure(check, allowed[key], base.figures[key]) if key in worse else check

    if not (found or worse) and (whole or allowed):
        number, last = len(base.times), base.times[0]
        expected = f"no worse than in {number} proofs until {last}" if number > 1 else f"no worse than on {last}"
        passed = f"{len(base.passed):,} checks and " if whole else ""
        found = [result("regression", True, expected, f"{passed}{len(allowed):,} figures compared")]
    return Verdict([*map(told, checks), *map(cleaned, found)], worse, lost | (worse & base.passed))


def was(key: Key, base: Baseline, allowed: t.Mapping[Key, Limit]) -> str:
    """The earlier result of a check that fails now."""
    return " with ".join(
        ["passed" if key in base.passed else "was made", *([f"{allowed[key].usual:.3g}"] if key in allowed else [])]
    )


def worse_figure(check: Check, limit: Limit, earlier: Series) -> Check:
    """Make the check fail although its figure is otherwise good enough, so that all summaries count it as failed."""
    sign, number = ">=" if NOISE[check.check].more_is_better else "<=", len(earlier.usual)
    expected = f"{sign} {limit.value:.3g} {check.unit}, usually {limit.usual:.3g} (earlier proofs: {number})"
    return check._replace(status=FAILED, expected=expected, next=CHECK_TYPES["regression"].next_step)


def moved_nodes(then: Groups, now: Groups) -> t.Set[str]:
    """Nodes that changed groups, among groups that existed then and now: a rail that all nodes lost is not a move."""
    common = {name for names in then.values() for name in names} & {name for names in now.values() for name in names}
    return {node for node in then if node in now and common & set(then[node]) != common & set(now[node])}


def moved_check(node: str, base: Baseline, groups: Groups) -> Check:
    seen = ", ".join(groups[node])
    return result("regression", False, ", ".join(base.groups[node]), seen, node=node, subject="groups")


def lost_checks(keyed: t.Mapping[Key, Check], base: Baseline, groups: Groups, moved: t.Set[str]) -> t.Set[Key]:
    """Checks that passed and no longer do. The tested pairs differ between proofs, but each node is always tested.

    Nodes and networks that are no longer in the plan lose nothing, nor do nodes that moved: the move is reported
    instead.
    """
    gone = {name for names in base.groups.values() for name in names} - {n for names in groups.values() for n in names}
    away = {node for node in base.groups if node not in groups} | moved
    made = {
        (key.check, key.network, node)
        for key, check in keyed.items()
        for node in key.nodes or [""]
        if check.status != SKIPPED
    }

    def is_lost(key: Key) -> bool:
        if key.network in gone or away & set(key.nodes):
            return False
        if key in keyed:
            return keyed[key].status not in (PASSED, ACCEPTED)
        return any((key.check, key.network, node) not in made for node in key.nodes or [""])

    return {key for key in base.passed if is_lost(key)}


def gone_checks(lost: t.Set[Key], keyed: t.Mapping[Key, Check]) -> t.List[Check]:
    """One regression for each check, network and state."""
    groups: t.Dict[t.Tuple[str, str, str], t.List[Key]] = {}
    for key in sorted(lost):
        check = keyed.get(key)
        seen = f"{check.status}: {check.seen}" if check else "not run"
        groups.setdefault((key.check, key.network, seen), []).append(key)
    found = []
    for (name, network, seen), keys in groups.items():
        places = shorten_list([key.place.strip().replace(">", " -> ") for key in keys if key.place], FEW)
        text = f"{seen} ({places})" if places else seen
        found.append(result("regression", False, "passed, as in earlier proofs", text, network=network, subject=name))
    return found


def remember(base: Baseline, head: Head, checks: t.Sequence[Check], verdict: Verdict, accepted: bool) -> Baseline:
    """The baseline for the next proof. A regression stays one until it is repaired or accepted."""
    keyed = {key_of(check._asdict()): check for check in checks if check.check != "regression"}
    passed = {key for key, check in keyed.items() if check.status == PASSED}
    now = {key: check for key, check in keyed.items() if key.check in NOISE and check.value is not None}
    figures = {}
    for key in {*base.figures, *now}:
        series, check = base.figures.get(key, Series([None] * len(base.times))), now.get(key)
        value, good = check.value if check else None, series.good
        if value is not None and key in verdict.worse and accepted:
            good = [value]
        elif check and (key in verdict.worse or check.status == FAILED):
            good = series.usual
        elif value is not None and good is not None:
            good = [value, *good][:KEPT]
        shown = [value, *series.shown][:KEPT]
        if any(one is not None for one in shown):
            figures[key] = Series(shown, good)
    lost = set() if accepted else verdict.lost
    return Baseline([head.time, *base.times][:KEPT], head.groups or {}, frozenset(passed | lost), figures, base.ca)
