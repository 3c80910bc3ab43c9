# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The plan compared with an installed IPU operator: what would fail late, and what running jobs would notice."""

from __future__ import annotations

import typing as t

from .._common.findings import Findings
from .._common.text import shorten_list
from .._host.ipu_operator import MANAGER
from .._model.operators import SeenIpuJob, SeenIpuOperator
from .._model.plan import IpuOperatorRelease, Vipu
from .._model.settings import HOST_NETWORK, Settings
from .._network.ipu_release import downgrade, missing_definition, of_release, second_operator
from .._network.releases import IPU_OPERATORS
from .running_cluster import Running

CONTROLLERS = "global.vipuControllers"
USUAL_NAMES = "ipu-operator"  # the prefix of object names in the charts
NAMES = {"fullnameOverride": USUAL_NAMES, "nameOverride": ""}
SHOWN = 8


def check_ipu_operator(settings: Settings, running: t.Optional[Running], vipu: Vipu, findings: Findings) -> None:
    version = settings.ipu_operator_version.lstrip("v")
    if not settings.ipu or version not in IPU_OPERATORS:
        return
    _check_values(settings.ipu_release.values, vipu, findings)
    seen = running.facts.get("ipu") if running else None
    hosts, wanted = [running.host] if running else [], settings.ipu_release
    # Nothing is known of a cluster that others manage and that does not answer, or that an earlier release observed.
    if "ipu" in running.facts if running else settings.manage_kubernetes:
        missing = missing_definition(version, wanted.crd_url, seen is not None)
        if missing:
            findings.error("ipu-operator-crd", hosts, *missing)
    if not seen:
        return
    place = (wanted.namespace, wanted.name)
    refusal = second_operator(seen["operators"], *place) or downgrade(seen["operators"], *place, version)
    if refusal:
        findings.error("ipu-operator", hosts, *refusal)
        return
    for operator in of_release(seen["operators"], *place):
        _check_upgrade(operator, version, _planned_values(settings, vipu), seen["jobs"], hosts, findings)


def labels_in_use(settings: Settings, running: t.Optional[Running]) -> t.Dict[str, str]:
    """The labels by which the wanted release assigns nodes to V-IPU controllers, by host:port."""
    seen = running.facts.get("ipu") if running and settings.ipu else None
    release = settings.ipu_release
    there = of_release(seen["operators"], release.namespace, release.name) if seen else []
    found = [entry.rpartition(":") for operator in there for entry in operator["controllers"]]
    return {endpoint: label for endpoint, _colon, label in found}


def _check_values(values: t.Mapping[str, str], vipu: Vipu, findings: Findings) -> None:
    """Refuse values that the chart would accept, but that the role can't handle."""
    controllers = values.get(CONTROLLERS, "")
    renamed = [f"{key} is '{values[key]}'" for key, usual in NAMES.items() if values.get(key, usual) != usual]
    if renamed:
        findings.error(
            "ipu-operator",
            [],
            "The IPU operator's objects need the names that its charts give them since 1.1.0.",
            f"{' and '.join(renamed)} in ipu_operator_values",
            "Remove it: site then renames the objects. To keep an operator with other names, set fabric_ipu: false.",
        )
    if controllers and _labels(controllers) != _labels(vipu["value"]):
        findings.error(
            "ipu-operator",
            [],
            "Nodes get the labels of the plan, and IPUJobs would wait for those of ipu_operator_values.",
            f"{CONTROLLERS} is {controllers}, the plan has {vipu['value']}",
            f"Take {CONTROLLERS} out of ipu_operator_values. Set a label of your own by fabric_vipu_hosts: [{{host: A,"
            " serves: [HOST], label: KEY=VALUE}].",
        )


def _labels(controllers: str) -> t.Set[str]:
    return {entry.rpartition(":")[2] for entry in controllers.split(",")}


def describe_release(settings: Settings) -> t.Optional[IpuOperatorRelease]:
    release = settings.ipu_release
    return {"release": release.name, "namespace": release.namespace} if settings.ipu else None


def _planned_values(settings: Settings, vipu: Vipu) -> t.Dict[str, str]:
    planned = dict(settings.ipu_release.values)
    return {**planned, CONTROLLERS: planned.get(CONTROLLERS) or vipu["value"]}


def _check_upgrade(
    operator: SeenIpuOperator,
    version: str,
    planned: t.Mapping[str, str],
    jobs: t.Sequence[SeenIpuJob],
    hosts: t.Sequence[str],
    findings: Findings,
) -> None:
    """An error if others installed it: whoever adopts an operator should know what will change."""
    upgrades = operator["version"] != version
    changes = changed_values(operator, planned)
    if operator["ours"] and not upgrades:  # its values are up to the site, except for what jobs depend on
        changes = [change for change in changes if jobs and change.startswith((f"{CONTROLLERS}:", f"{HOST_NETWORK}:"))]
    if operator["name"] != MANAGER:
        changes.append(f"objects called {operator['name'][: -len(MANAGER)]}{USUAL_NAMES}-* become {USUAL_NAMES}-*")
    if not upgrades and not changes:
        return
    leave_host = any(change.startswith(f"{HOST_NETWORK}:") and change.endswith("becomes false") for change in changes)
    without = [job["name"] for job in jobs if leave_host and not job["networks"]]
    seen = [
        f"release {operator['release']} in {operator['namespace']}, chart {operator['version'] or 'unknown'}"
        + (f" becomes {version}" if upgrades else " stays"),
        *changes,
        f"IPUJobs that run: {shorten_list([job['name'] for job in jobs], SHOWN) or 'none'}",
        *([f"without a fabric network: {shorten_list(without, SHOWN)}"] if without else []),
    ]
    steps = []
    if upgrades and operator["version"] in IPU_OPERATORS:
        steps.append(f"To stay, set fabric_ipu_operator_version: {operator['version']}.")
    if changes:
        steps.append(
            "To keep its values, set them in ipu_operator_values or in the role's other variables"
            + (", here ipu_operator_worker_host_network: true." if leave_host else ".")
        )
    if without:
        steps.append(
            "Otherwise give the workers of these jobs the annotation k8s.v1.cni.cncf.io/networks before they start"
            " again: without it they would not reach IPUs."
        )
    report = findings.warning if operator["ours"] else findings.error
    report(
        "ipu-operator-upgrade",
        hosts,
        f"site {'upgrades' if upgrades else 'changes'} the installed IPU operator."
        if operator["ours"]
        else "site takes over an IPU operator that others have installed.",
        "; ".join(seen),
        " ".join(steps) or "Stop its jobs first, or go on: they keep running.",
    )


def changed_values(operator: SeenIpuOperator, planned: t.Mapping[str, str]) -> t.List[str]:
    """How values that others set will change, and those that jobs depend on, whoever set them."""
    now = {**operator["defaults"], **operator["values"]}
    if operator["controllers"]:  # the ConfigMap may have been edited
        now[CONTROLLERS] = ",".join(operator["controllers"])
    found = []
    for path in sorted(
        {*operator["values"], *(path for path in (CONTROLLERS, HOST_NETWORK) if path in now)} - {*NAMES}
    ):
        if path not in planned:
            if now[path] != operator["defaults"].get(path):
                found.append(f"{path}: {now[path]} is lost")
        elif not _same(path, now[path], planned[path]):
            found.append(f"{path}: {now[path]} becomes {planned[path]}")
    return found


def _same(path: str, one: str, other: str) -> bool:
    return sorted(one.split(",")) == sorted(other.split(",")) if path == CONTROLLERS else one == other
