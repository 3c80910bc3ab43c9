# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Processors, memory and free disk that a host needs for its roles: one table, which a site may override.

docs/requirements.md shows it. Memory and disk are in GB as vendors count them, 10^9 bytes: a machine sold with 16 GB or
16 GiB passes, although its kernel keeps some of it.
"""

from __future__ import annotations

import math
import typing as t

from .._common.findings import Findings
from .._model.observation import HostFacts
from .._model.plan import Level
from .hosts import PlacedHost

VARIABLE = "fabric_host_sizes"
MIB_IN_GB = 2**20 / 10**9
KUBEADM = "kubeadm refuses less"
KUBEADM_GUIDE = "kubeadm's guide: 2 GB on each machine"
IMAGES = "images, logs and etcd"
UPSTREAM = "Kubernetes' own masters on GCE: n1 machines, 3.75 GB for each processor"
REFERENCE = "NVIDIA's reference design for Kubernetes with RoCE"

ROLES = {"control_plane": "control plane", "worker": "worker", "ipu": "IPU host", "gpu": "GPU host"}


class Size(t.NamedTuple):
    """The minimum of one kind that a host with a role needs."""

    role: str  # key of ROLES
    kind: str  # cpus, memory_gb, or disk_gb: free space for images and data, before the host is a node
    least: float
    level: Level  # of the finding if there is less
    source: str
    most_nodes: int = 0  # nodes in the cluster up to which this applies; 0: any number


# Among lines with the same role, kind and level, the first one applies whose most_nodes the cluster does not exceed.
SIZES: t.Tuple[Size, ...] = (
    Size("control_plane", "cpus", 2, "error", KUBEADM),
    Size("control_plane", "memory_gb", 1.78, "error", KUBEADM),
    Size("control_plane", "disk_gb", 10, "error", IMAGES),
    Size("control_plane", "memory_gb", 3.75, "warning", UPSTREAM, 5),
    Size("control_plane", "memory_gb", 7.5, "warning", UPSTREAM, 10),
    Size("control_plane", "cpus", 2, "warning", UPSTREAM, 10),
    Size("control_plane", "memory_gb", 15, "warning", UPSTREAM, 100),
    Size("control_plane", "cpus", 4, "warning", UPSTREAM, 100),
    Size("control_plane", "disk_gb", 10, "warning", IMAGES, 10),
    Size("control_plane", "disk_gb", 50, "warning", REFERENCE),
    Size("control_plane", "memory_gb", 30, "warning", UPSTREAM, 250),
    Size("control_plane", "cpus", 8, "warning", UPSTREAM, 250),
    Size("control_plane", "memory_gb", 60, "warning", UPSTREAM, 500),
    Size("control_plane", "cpus", 16, "warning", UPSTREAM, 500),
    Size("control_plane", "memory_gb", 120, "warning", UPSTREAM),
    Size("control_plane", "cpus", 32, "warning", UPSTREAM),
    Size("worker", "memory_gb", 1.07, "error", "kubelet, containerd and the pod network"),
    Size("worker", "disk_gb", 10, "error", IMAGES),
    Size("worker", "memory_gb", 1.9, "warning", KUBEADM_GUIDE),
    Size("ipu", "cpus", 4, "warning", REFERENCE),
    Size("ipu", "memory_gb", 24, "warning", REFERENCE),
    Size("ipu", "disk_gb", 50, "warning", REFERENCE),
    Size("gpu", "cpus", 4, "warning", REFERENCE),
    Size("gpu", "memory_gb", 24, "warning", REFERENCE),
    Size("gpu", "disk_gb", 50, "warning", REFERENCE),
)


class _Kind(t.NamedTuple):
    """How to read one kind of size from a host, and how to describe it."""

    check: str
    seen: t.Callable[[HostFacts], t.Dict[str, float]]  # by location; empty: not known, or not needed
    unit: str
    next_step: str
    round_down: t.Callable[[float], float]  # to a figure that a person would write


def _free_disk(facts: HostFacts) -> t.Dict[str, float]:
    """Free space by path. A member of the cluster already has its images."""
    if facts["kubelet"]["server"]:
        return {}
    return {path: free * MIB_IN_GB for path, free in facts["disk_mb"].items()}


KINDS = {
    "cpus": _Kind(
        "cpus",
        lambda facts: {"it": float(facts["cpus"])} if facts["cpus"] else {},
        "processors",
        "Add processors",
        math.floor,
    ),
    "memory_gb": _Kind(
        "memory",
        lambda facts: {"it": facts["memory_mb"] * MIB_IN_GB},
        "GB of memory",
        "Add memory",
        lambda has: math.floor(has * 100) / 100,
    ),
    "disk_gb": _Kind(
        "disk",
        _free_disk,
        "GB of free disk",
        "Free space, or mount a larger disk there",
        lambda has: math.floor(has * 0.9),
    ),
}


def read_sizes(given: t.Mapping[str, object], findings: Findings) -> t.Tuple[Size, ...]:
    """The table; a site's own figures replace all lines of the same role and kind."""
    own: t.Dict[t.Tuple[str, str], Size] = {}
    wrong: t.List[str] = []
    for role, values in given.items():
        if role not in ROLES or not isinstance(values, dict):
            wrong.append(f"{role}: {values!r}")
            continue
        for kind, value in values.items():
            least = _number(value)
            if kind not in KINDS or least is None:
                wrong.append(f"{role}.{kind}: {value!r}")
            else:
                own[role, kind] = Size(role, kind, least, "error", VARIABLE)
    if wrong:
        findings.error(
            "host-sizes",
            [],
            f"An entry of {VARIABLE} is not valid.",
            ", ".join(wrong),
            f"Write a role ({', '.join(ROLES)}), and for it {', '.join(KINDS)}, each a number of 0 or more.",
        )
    return (*own.values(), *(size for size in SIZES if (size.role, size.kind) not in own))


def _number(value: object) -> t.Optional[float]:
    """A number of 0 or more; None for anything else."""
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return None
    try:
        number = float(value)
    except ValueError:
        return None
    return number if 0 <= number < float("inf") else None


def host_roles(host: PlacedHost, ipu: bool) -> t.List[str]:
    """Roles in the sense of the table: those of the inventory, and gpu."""
    roles: t.List[str] = [role for role in host.roles if ipu or role != "ipu"]
    return [*roles, "gpu"] if host.rdma and host.rdma["gpus"] and "worker" in roles else roles


def due_sizes(sizes: t.Sequence[Size], roles: t.Container[str], nodes: int) -> t.List[Size]:
    """The lines that apply to a host: for each kind and level, the one that requires most."""
    first: t.Dict[t.Tuple[str, str, Level], Size] = {}
    for size in sizes:
        if size.role in roles and nodes <= (size.most_nodes or nodes):
            first.setdefault((size.role, size.kind, size.level), size)
    most: t.Dict[t.Tuple[str, Level], Size] = {}
    for size in first.values():
        known = most.get((size.kind, size.level))
        if known is None or size.least > known.least:
            most[size.kind, size.level] = size
    return list(most.values())


class _Short(t.NamedTuple):
    """A host with too little of one kind."""

    host: str
    size: Size
    where: str
    has: float


def check_sizes(
    observed: t.Sequence[t.Tuple[PlacedHost, HostFacts]],
    sizes: t.Sequence[Size],
    nodes: int,
    ipu: bool,
    findings: Findings,
) -> None:
    """For each host and each insufficient kind, report an error or a warning, but not both."""
    short = [
        one
        for host, facts in observed
        for one in _shortages(host.name, facts, due_sizes(sizes, host_roles(host, ipu), nodes))
    ]
    setting = as_typed([*(each for each in sizes if each.source == VARIABLE), *enough_for(short)])
    for one in short:
        _report(one, nodes, setting, findings)


def _shortages(host: str, facts: HostFacts, due: t.Sequence[Size]) -> t.Iterator[_Short]:
    for name, kind in KINDS.items():
        for where, has in kind.seen(facts).items():
            missing = [size for size in due if size.kind == name and has < size.least]
            if missing:
                yield _Short(host, min(missing, key=lambda size: size.level), where, has)


def enough_for(short: t.Sequence[_Short]) -> t.List[Size]:
    """Figures that all of these hosts meet, even in the next run: free disk shrinks as a host works."""
    least: t.Dict[t.Tuple[str, str], Size] = {}
    for one in short:
        figure = KINDS[one.size.kind].round_down(one.has)
        key = one.size.role, one.size.kind
        least[key] = one.size._replace(least=min(figure, least[key].least if key in least else figure))
    return list(least.values())


def as_typed(sizes: t.Sequence[Size]) -> str:
    """All figures of a site in the inventory's notation: setting the variable replaces all former figures."""
    roles: t.Dict[str, t.Dict[str, float]] = {}
    for size in sizes:
        roles.setdefault(size.role, {})[size.kind] = size.least
    figures = {role: ", ".join(f"{kind}: {least:g}" for kind, least in kinds.items()) for role, kinds in roles.items()}
    return f"{VARIABLE}: {{{', '.join(f'{role}: {{{text}}}' for role, text in figures.items())}}}"


def _report(short: _Short, nodes: int, setting: str, findings: Findings) -> None:
    """setting: one with which all these hosts pass."""
    size, kind = short.size, KINDS[short.size.kind]
    report = findings.error if size.level == "error" else findings.warning
    needs = "needs" if size.level == "error" else "should have"
    of_cluster = f" of a cluster of {nodes} hosts" if size.most_nodes else ""
    report(
        kind.check,
        [short.host],
        f"The role {ROLES[size.role]}{of_cluster} {needs} {size.least:g} {kind.unit} ({size.source}).",
        f"{short.where} has {round(short.has, 2):g}",
        f"{kind.next_step}, or set {setting} if that is enough.",
    )
