# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Checks of the fabric: what each kind covers, what was found and where, and what a site expects beyond its plan."""

from __future__ import annotations

import typing as t


class CheckType(t.NamedTuple):
    """What all checks of one name have in common."""

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
    seen: str  # what was seen, or why the check was not made
    next: str = ""  # what to do about a failure, or what is missing to prove it
    node: str = ""
    pair: t.Tuple[str, ...] = ()
    network: str = ""
    subject: str = ""
    value: t.Optional[float] = None  # the figure that was measured, in `unit`
    unit: str = ""


class Missing(t.NamedTuple):
    """Something that is missing, and the checks that need it."""

    missing: str
    seen: str  # by the first of these checks
    checks: t.List[str]


class Expect(t.NamedTuple):
    """What the site expects beyond the plan."""

    memlock: str = "unlimited"  # or bytes
    rdma_bandwidth: str = "auto"  # derived from ports, PCIe and other pairs; or a minimum in Gb/s; 0: only measured
    rdma_latency: str = "auto"  # derived from other pairs; or a maximum in microseconds; 0: only measured
    host_traffic: float = 0  # minimum in Gb/s
    ipu: bool = True
    ipu_partition: str = ""
    gpu: bool = False
    gpu_rdma: str = "dma-buf"  # or peermem: how GPUDirect RDMA is set up
    gpu_bandwidth: str = "auto"  # as rdma_bandwidth, between the memory of GPUs
    gdrcopy: bool = False
    rail_isolation: str = ""  # expect: networks can't reach each other; forbid: they can; empty: not judged
    allow_unproven: t.Sequence[str] = ()  # checks that may stay unproven


class Head(t.NamedTuple):
    """What a report says about the run of the probe."""

    time: str  # UTC, ISO 8601
    seconds: float  # how long it took
    cluster: str  # host:port of the API server
    version: str  # of Kubernetes
    expect: t.Optional[t.Dict[str, object]] = None  # the Expect that the results were compared with
    nodes: t.Sequence[str] = ()  # nodes that were probed; empty: all
    groups: t.Optional[t.Dict[str, t.List[str]]] = None  # roles and networks of each node
    digests: t.Optional[t.Dict[str, str]] = None  # SHA-256 of the plan, the probe and the inventory's groups
