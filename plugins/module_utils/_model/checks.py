# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Checks of the fabric: what each kind is about, what one found and where, and what a site asks for beyond its plan."""

from __future__ import annotations

import typing as t


class CheckType(t.NamedTuple):
    """What all checks of a name have in common."""

    title: str
    area: str  # one of AREAS of the catalog
    next_step: str  # what to do when it fails


class Place(t.TypedDict, total=False):
    """What a check is about."""

    node: str
    pair: t.Tuple[str, str]  # nodes: client and server
    network: str
    subject: str  # anything else, such as a Helm release or host:port


class Check(t.NamedTuple):
    """One result."""

    check: str  # key of CHECK_TYPES
    status: str  # passed, failed, unproven, accepted or skipped
    expected: str
    seen: str  # of a check that was not made: why
    next: str = ""  # what to do about a failure, or what is missing to prove it
    node: str = ""
    pair: t.Tuple[str, ...] = ()
    network: str = ""
    subject: str = ""
    value: t.Optional[float] = None  # the figure that was measured, in `unit`
    unit: str = ""


class Missing(t.NamedTuple):
    """What it takes to prove some checks."""

    missing: str
    seen: str  # by the first of them
    checks: t.List[str]


class Expect(t.NamedTuple):
    """What the site asks for beyond the plan."""

    memlock: str = "unlimited"  # or bytes
    rdma_bandwidth: str = "auto"  # by ports, PCIe and other pairs; or Gb/s at least, 0: only measured
    rdma_latency: str = "auto"  # by other pairs; or microseconds at most, 0: only measured
    host_traffic: float = 0  # Gb/s at least
    ipu: bool = True
    ipu_partition: str = ""
    gpu: bool = False
    gpu_rdma: str = "dma-buf"  # or peermem: how GPUDirect RDMA is planned
    gpu_bandwidth: str = "auto"  # as rdma_bandwidth, between the memory of GPUs
    gdrcopy: bool = False
    rail_isolation: str = ""  # expect: networks don't reach each other; forbid: they do; empty: not judged
    allow_unproven: t.Sequence[str] = ()  # checks that need not be proved


class Head(t.NamedTuple):
    """What a report says about the run of the probe."""

    time: str  # UTC, ISO 8601
    seconds: float  # how long it took
    cluster: str  # host:port of the API server
    version: str  # of Kubernetes
    expect: t.Optional[t.Dict[str, object]] = None  # the Expect that it was compared with
    nodes: t.Sequence[str] = ()  # that were probed, if not all
    groups: t.Optional[t.Dict[str, t.List[str]]] = None  # roles and networks of each node
    digests: t.Optional[t.Dict[str, str]] = None  # SHA-256 of the plan, the probe and the inventory's groups
