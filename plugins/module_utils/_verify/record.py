# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which path a job's data took, from what its pods showed at the first and the last look. Pure functions."""

from __future__ import annotations

import re
import typing as t
from dataclasses import dataclass, field

from .counter_checks import LARGEST_MTU
from .explain import own_gids
from .look import Inside
from .parsers import RDMA_COUNTERS, amount_text

SENT = ("port_xmit_data", "tx_bytes", "hw_tx_bytes_cnt", "sent_pkts", "rx_write_requests", "rx_read_requests")
WRAPS = 2**32  # where mlx5's counters of requests wrap around
LARGEST_PACKET = LARGEST_MTU + 100  # bytes of a software RoCE packet on its interface
LARGEST_REQUEST = 1 << 20  # maximum number of bytes per request, since NCCL and UCX split their messages
LITTLE = 1_000_000  # bytes of all ranks together that only starting a job may take
SIDE = 0.1  # share of all bytes below which a path is negligible
RDMA_TRANSPORTS = re.compile(r"\b(rc|ud|dc|ib|all)(_\w+)?\b")


@dataclass(frozen=True)
class Rank:
    """A pod of a job, at its first and last look. After a single look, both are the same."""

    pod: str
    node: str
    first: Inside
    last: Inside
    looks: int = 1  # how often it was seen
    seconds: float = 0.0  # between the first look and the last
    host_network: bool = False


class Way(t.NamedTuple):
    """What went out over one RDMA device or interface."""

    node: str
    name: str
    kind: str  # bytes, packets or requests
    amount: int

    @property
    def largest(self) -> int:
        """The maximum in bytes."""
        return self.amount * {"bytes": 1, "packets": LARGEST_MTU, "requests": LARGEST_REQUEST}[self.kind]


@dataclass(frozen=True)
class JobRecord:
    """The verdict, and what it is based on."""

    verdict: str  # rdma, tcp, both, nothing or unseen
    text: str  # as in the job's annotation
    why: str = ""  # why it was not RDMA
    next: str = ""
    note: str = ""  # what the counters do not show
    ranks: t.Sequence[t.Mapping[str, t.Any]] = field(default_factory=list)  # each pod with its paths


def grown(rank: Rank, rdma: bool) -> t.Dict[str, t.Dict[str, int]]:
    """What went out, by device or interface and by kind. Other RDMA devices of the node do not belong to the pod."""
    found: t.Dict[str, t.Dict[str, int]] = {}
    for (device, port, name), value in rank.last.counters.items():
        before = rank.first.counters.get((device, port, name))
        if before is None or bool(port) != rdma or name not in SENT or device == "lo":
            continue
        if rdma and device not in rank.last.held:
            continue
        kind, size = RDMA_COUNTERS[name] if rdma else ("bytes", 1)
        delta = value - before + (WRAPS if value < before and kind == "requests" else 0)
        kinds = found.setdefault(device, {})
        kinds[kind] = kinds.get(kind, 0) + max(0, delta) * size
    return found


def rdma_ways(ranks: t.Sequence[Rank]) -> t.List[Way]:
    """A device shared by pods of one node counts once: each of them sees all of its traffic."""
    found: t.Dict[t.Tuple[str, str], Way] = {}
    for rank in ranks:
        for device, kinds in grown(rank, rdma=True).items():
            kind = next(kind for kind in ("bytes", "packets", "requests") if kind in kinds)
            way = Way(rank.node, device, kind, kinds[kind])
            key = (rank.node, device)
            found[key] = max(found.get(key, way), way, key=lambda each: each.amount)
    return list(found.values())


def socket_ways(ranks: t.Sequence[Rank]) -> t.List[Way]:
    """What went over interfaces, without what software RDMA sent through them."""
    found: t.Dict[t.Tuple[str, str], Way] = {}
    for rank in ranks:
        packets = {device: kinds.get("packets", 0) for device, kinds in grown(rank, rdma=True).items()}
        owners = {gid["device"]: gid["netdev"] for _address, gid in own_gids(rank.last)}
        for name, kinds in grown(rank, rdma=False).items():
            carried = sum(count for device, count in packets.items() if owners.get(device, name) == name)
            sent = max(0, kinds["bytes"] - carried * LARGEST_PACKET)
            # All pods on a host's network see the same interfaces.
            found[rank.node if rank.host_network else rank.pod, name] = Way(rank.node, name, "bytes", sent)
    return list(found.values())


def way_text(ways: t.Sequence[Way], what: str) -> str:
    """`41 GB over RDMA on mlx5_0, mlx5_1`: the amount of one kind, and the names that carried a relevant part."""
    kind = max(ways, key=lambda way: way.largest).kind
    total = sum(way.amount for way in ways if way.kind == kind)
    names = sorted({way.name for way in ways if way.largest >= SIDE * max(each.largest for each in ways)})
    return f"{amount_text(total, kind)} over {what} on {', '.join(names)}"


def verdict(ranks: t.Sequence[Rank]) -> JobRecord:
    """The joint result of a job's pods. Amounts are of sent data only, so nothing counts twice."""
    seen = [rank for rank in ranks if rank.looks > 1 and rank.last.counters]
    details = [details_of(rank) for rank in ranks]
    if not seen:
        why = unseen(ranks)
        return JobRecord("unseen", f"what it moved was not seen: {why}", why, UNSEEN_STEP, ranks=details)
    rdma, sockets = rdma_ways(seen), socket_ways(seen)
    by_rdma, by_tcp = (sum(way.largest for way in ways) for ways in (rdma, sockets))
    whole, note = by_rdma + by_tcp, notes(ranks, seen)
    if whole < LITTLE:
        text = f"moved less than {amount_text(LITTLE, 'bytes')} over any network"
        return JobRecord("nothing", text, "", NOTHING_STEP, note, details)
    if by_tcp < SIDE * whole:
        return JobRecord("rdma", f"moved {way_text(rdma, 'RDMA')}", note=note, ranks=details)
    why, step = causes(seen)
    if by_rdma < SIDE * whole:
        moved, kind = f"moved {way_text(sockets, 'TCP')}", "tcp"
    else:
        moved, kind = f"moved {way_text(rdma, 'RDMA')}, and {way_text(sockets, 'TCP')}", "both"
    return JobRecord(kind, f"{moved}: {why}", why, step, note, details)


NOTHING_STEP = (
    "Nothing, if the job ran on one node or exchanges no data. To measure the network, start two or more pods on"
    " different nodes."
)
UNSEEN_STEP = (
    "A pod is looked at every few seconds while it runs: give the job more to do, or run ipu.fabric.explain for one of"
    " its pods while it runs."
)


def unseen(ranks: t.Sequence[Rank]) -> str:
    errors = [rank.last.error for rank in ranks if rank.last.error]
    if errors:
        return errors[0]
    return "its pods ended before they were seen twice" if ranks else "none of its pods was seen while it ran"


def notes(ranks: t.Sequence[Rank], seen: t.Sequence[Rank]) -> str:
    """What to know about the amounts."""
    found = []
    if len(seen) < len(ranks):
        found.append(f"{len(ranks) - len(seen)} of {len(ranks)} pods were not seen twice")
    sharing: t.Dict[t.Tuple[str, str], int] = {}
    for rank in seen:
        for device in grown(rank, rdma=True):
            sharing[rank.node, device] = sharing.get((rank.node, device), 0) + 1
    shared = sorted({f"{device} of {node}" for (node, device), count in sharing.items() if count > 1})
    if shared:
        found.append(f"counters are the NIC's, and pods of the job share {', '.join(shared[:4])}")
    return "; ".join(found)


class Cause(t.NamedTuple):
    why: str
    step: str


def causes(ranks: t.Sequence[Rank]) -> t.Tuple[str, str]:
    """Why data did not go over RDMA, and what to do, from the pod that shows most: busy pods may show little."""
    found = max((list(causes_of(rank.last)) for rank in ranks), key=len, default=[])
    if found:
        return "; ".join(cause.why for cause in found[:2]), found[0].step
    return "no variable of NCCL, UCX or MPI says why", (
        f"Run ipu.fabric.explain for one of its pods while it runs ({ranks[0].pod}), and run the job with"
        " NCCL_DEBUG=INFO or UCX_LOG_LEVEL=info."
    )


def causes_of(inside: Inside) -> t.Iterator[Cause]:
    given, held = inside.environment, sorted(inside.held)
    if given.get("NCCL_IB_DISABLE", "0") not in ("0", ""):
        yield Cause(f"NCCL_IB_DISABLE is {given['NCCL_IB_DISABLE']}", "Remove NCCL_IB_DISABLE from the job's env.")
    if given.get("UCX_TLS") and not RDMA_TRANSPORTS.search(given["UCX_TLS"]):
        step = "Set UCX_TLS to rc,sm,self; with the filter mpi_job, set transport: roce."
        yield Cause(f"UCX_TLS is {given['UCX_TLS']}", step)
    if not held:
        step = (
            "Ask for the RDMA resource of the network, if it has one: rdma_resource of the job, or resources.limits of"
            " the container."
        )
        yield Cause("its pods have no RDMA device", step)
        return
    for name in ("NCCL_IB_HCA", "UCX_NET_DEVICES"):
        value = given.get(name, "")
        if value and value != "all" and not names_a_device(value, held):
            step = f"Set {name} to {','.join(held)}, or leave it out."
            yield Cause(f"{name} matches no device ({value}; the pod has {', '.join(held)})", step)
    good = {gid["index"] for _address, gid in own_gids(inside) if gid["type"] == "RoCE v2"}
    for name in ("NCCL_IB_GID_INDEX", "UCX_IB_GID_INDEX"):
        index = given.get(name, "")
        if index.isdigit() and good and int(index) not in good:
            there = ", ".join(map(str, sorted(good)))
            yield Cause(
                f"{name} is {index}, and the pod's RoCE v2 GIDs have index {there}",
                f"Leave {name} out: the index differs from pod to pod, and the filter mpi_job finds it in each.",
            )
    if given.get("OMPI_MCA_pml") == "ob1":
        yield Cause("MPI's own messages go over TCP (pml ob1)", "Use pml: ucx, or let NCCL carry the data.")


def names_a_device(value: str, held: t.Iterable[str]) -> bool:
    """As NCCL_IB_HCA and UCX_NET_DEVICES work: `=` exact names, `^` all but these, otherwise prefixes."""
    mark, names = (value[0], value[1:]) if value[0] in "=^" else ("", value)
    listed = [name.partition(":")[0] for name in names.lstrip("=").split(",")]

    def matches(device: str) -> bool:
        return any(device == name or (mark != "=" and device.startswith(name)) for name in listed)

    return any(matches(device) != (mark == "^") for device in held)


def details_of(rank: Rank) -> t.Dict[str, t.Any]:
    """What a record keeps of a pod."""
    last = rank.last
    return {
        "pod": rank.pod,
        "node": rank.node,
        "looks": rank.looks,
        "seconds": round(rank.seconds, 1),
        "error": last.error,
        "devices": grown(rank, rdma=True),
        "interfaces": {name: kinds["bytes"] for name, kinds in grown(rank, rdma=False).items()},
        "gids": [{"address": address, **gid} for address, gid in own_gids(last)],
        "routes": [route.text for route in last.routes],
        "environment": dict(last.environment),
    }
