# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Certificates of the cluster that is there: those that are about to end, and those that have."""

from __future__ import annotations

import typing as t

from ansible_collections.ipu.fabric.plugins.module_utils._common.findings import Findings
from ansible_collections.ipu.fabric.plugins.module_utils._host.certificates import (
    describe_end,
    ends_soon,
    has_expired,
    needed_by_cluster,
    seconds_left,
)
from ansible_collections.ipu.fabric.plugins.module_utils._model.observation import Certificate
from ansible_collections.ipu.fabric.plugins.module_utils._model.plan import HostCertificates
from ansible_collections.ipu.fabric.plugins.module_utils._plan.hosts import Hosts, PlacedHost

CHECK = "certificates"
RENEW = "Run the playbook ipu.fabric.renew_certificates."
ELSEWHERE = "Renew them with what manages this cluster."
AUTHORITY = (
    "kubeadm has no command for it: plan a day for a new CA, see"
    " https://kubernetes.io/docs/tasks/tls/manual-rotation-of-ca-certificates/."
)


def _observed(host: PlacedHost) -> t.Tuple[t.List[Certificate], float]:
    """The certificates of a host that answered in this run, and what its clock said."""
    if not host.facts or host.observation.get("recalled"):
        return [], 0.0
    return host.facts["certificates"], host.facts["time"]["read"]


def expired(host: PlacedHost) -> t.List[Certificate]:
    """Those without which the host is no part of its cluster."""
    certificates, now = _observed(host)
    return [each for each in certificates if needed_by_cluster(each) and has_expired(each, now)]


def check_certificates(hosts: Hosts, days: int, managed: bool, findings: Findings) -> None:
    """What has expired is an error where the cluster is managed here: nothing that follows would work."""
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
                    f"{'A CA ends' if authority else 'Certificates of the cluster end'} within {days} days.",
                    ", ".join(map(describe_end, named)),
                    next_step,
                )


def describe_certificates(hosts: Hosts, days: int) -> t.List[HostCertificates]:
    """For each node the certificate that ends first, and the names of those that are to be renewed."""
    described: t.List[HostCertificates] = []
    for host in hosts.values():
        certificates, now = _observed(host)
        if not certificates:
            continue
        first = min(certificates, key=lambda each: seconds_left(each, now))
        gone = [each for each in certificates if has_expired(each, now)]
        soon = [each for each in certificates if each not in gone and ends_soon(each, now, days)]
        described.append(
            {
                "node": host.node,
                "first": first["name"],
                "ends": first["not_after"],
                "ending": [each["name"] for each in soon],
                "expired": [each["name"] for each in gone],
            }
        )
    return described
