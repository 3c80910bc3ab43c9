# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Certificates of the existing cluster, and tokens of its CNI plugins: which expire soon, and which have expired."""

from __future__ import annotations

import datetime
import typing as t

from .._common.findings import Findings
from .._host.certificates import DAY, describe_end, ends_soon, has_expired, lifetime, needed_by_cluster, seconds_left
from .._model.observation import Certificate
from .._model.plan import CniTokens, HostCertificates, HostTokens, Releases
from .._model.stacks import STACKS, has_stack, stack_name
from .hosts import Hosts, PlacedHost

CHECK = "certificates"
TOKENS = "cni-tokens"
RENEW = "Run the playbook ipu.fabric.renew_certificates."
ELSEWHERE = "Renew them with the tool that manages this cluster."
AUTHORITY = (
    "kubeadm has no command that renews a CA: schedule its replacement, see"
    " https://kubernetes.io/docs/tasks/tls/manual-rotation-of-ca-certificates/."
)


def _observed(
    host: PlacedHost, part: t.Literal["certificates", "cni_token_ends"] = "certificates"
) -> t.Tuple[t.List[Certificate], float]:
    """The host's current certificates, and the time on its clock. An earlier run's observation proves nothing."""
    if not host.facts or host.observation.get("recalled"):
        return [], 0.0
    return host.facts[part], host.facts["time"]["read"]


def expired(host: PlacedHost) -> t.List[Certificate]:
    """Expired certificates without which the host can't take part in its cluster."""
    certificates, now = _observed(host)
    return [each for each in certificates if needed_by_cluster(each) and has_expired(each, now)]


def check_certificates(hosts: Hosts, days: int, managed: bool, findings: Findings) -> None:
    """Expired certificates are an error if the collection manages the cluster: no later step would work."""
    renew = RENEW if managed else ELSEWHERE
    for host in hosts.values():
        certificates, now = _observed(host)
        gone = expired(host)
        if gone:
            (findings.error if managed else findings.warning)(
                CHECK,
                [host.name],
                "Certificates of the cluster have expired. Nothing is lost, and no host has to be reset.",
                ", ".join(map(describe_end, gone)),
                renew,
            )
        soon = [each for each in certificates if each not in gone and ends_soon(each, now, days)]
        for authority, next_step in ((False, renew), (True, AUTHORITY)):
            named = [each for each in soon if each["ca"] == authority]
            if named:
                findings.warning(
                    CHECK,
                    [host.name],
                    f"{'A CA expires' if authority else 'Certificates of the cluster expire'} within {days} days.",
                    ", ".join(map(describe_end, named)),
                    next_step,
                )


def keeping_tokens(releases: Releases) -> t.List[str]:
    """CNI plugins of the plan that read their token only once: their pods have to restart before it ends."""
    if not has_stack(releases) or not STACKS[stack_name(releases)].keeps_token:
        return []
    shipped = releases["ipam"] == "whereabouts" and not releases["whereabouts_standalone"]
    return ["multus", "whereabouts"] if shipped else ["multus"]


def check_cni_tokens(
    hosts: Hosts, days: int, keeping: t.Sequence[str], short: t.Sequence[str], findings: Findings
) -> None:
    """short: control planes that issue tokens for an hour only, whatever the plan says."""
    if short and keeping:
        findings.error(
            TOKENS,
            short,
            f"Tokens expire after an hour, and {' and '.join(keeping)} of the network operator can't reload theirs: "
            "from then on no pod gets its network.",
            "the API server is given service-account-extend-token-expiration=false",
            "Take it out of kubernetes_cluster_config, or out of whatever else sets it. If it has to stay, run site "
            "with --tags network_operator every half hour: that restarts these pods before their tokens expire.",
        )
    for host in hosts.values():
        tokens, now = _observed(host, "cni_token_ends")
        named = [each for each in tokens if ends_soon(each, now, days)]
        if named:
            findings.warning(
                TOKENS,
                [host.name],
                f"Tokens of CNI plugins have expired, or expire within {days} days: then no pod gets its network.",
                ", ".join(map(describe_end, named)),
                "Run site, which restarts multus of the network operator. For other plugins, restart their pods.",
            )


def describe_cni_tokens(hosts: Hosts, days: int, keeping: t.Sequence[str], short: t.Sequence[str]) -> CniTokens:
    """Tokens to renew. A one-hour token is a leftover to replace, unless the cluster still issues such tokens."""
    described: t.List[HostTokens] = []
    due: t.Dict[str, t.List[str]] = {}
    for host in hosts.values():
        tokens, now = _observed(host, "cni_token_ends")
        seen = f"{datetime.datetime.fromtimestamp(now, datetime.timezone.utc):%Y-%m-%dT%H:%M:%SZ}"
        described += [{**each, "seen": seen} for each in _describe(host, tokens, now, days)]
        for each in tokens:
            if each["name"] in keeping and (ends_soon(each, now, days) or (not short and lifetime(each) < DAY)):
                due.setdefault(each["name"], []).append(each["not_after"])
    return {"hosts": described, "restart": {name: min(ends) for name, ends in due.items()}}


def describe_certificates(hosts: Hosts, days: int) -> t.List[HostCertificates]:
    """For each node, the certificate that ends first, and the names of those due for renewal."""
    return [each for host in hosts.values() for each in _describe(host, *_observed(host), days)]


def _describe(
    host: PlacedHost, certificates: t.Sequence[Certificate], now: float, days: int
) -> t.Iterator[HostCertificates]:
    if certificates:
        first = min(certificates, key=lambda each: seconds_left(each, now))
        gone = [each for each in certificates if has_expired(each, now)]
        soon = [each for each in certificates if each not in gone and ends_soon(each, now, days)]
        yield {
            "node": host.node,
            "first": first["name"],
            "ends": first["not_after"],
            "ending": [each["name"] for each in soon],
            "expired": [each["name"] for each in gone],
        }
