"""Latency and bandwidth between two ranks, in the form of OSU's benchmarks, for images that have mpi4py only.

pingpong.py [LARGEST [FACTOR [ITERATIONS]]]: message sizes from 1 byte to LARGEST, each FACTOR times the one before.
"""

from __future__ import annotations

import sys

from mpi4py import MPI

LARGE = 1 << 16  # bytes; from here on a tenth of the messages is enough
WINDOW = 16  # messages under way at once
WORLD = MPI.COMM_WORLD
PEER = 1 - WORLD.rank


def latency(size: int, count: int) -> float:
    """Half of a round trip in us."""
    data, got = bytearray(size), bytearray(size)
    start = 0.0
    for at in range(-max(1, count // 10), count):
        if at == 0:
            WORLD.Barrier()
            start = MPI.Wtime()
        if WORLD.rank == 0:
            WORLD.Send(data, PEER)
            WORLD.Recv(got, PEER)
        else:
            WORLD.Recv(got, PEER)
            WORLD.Send(data, PEER)
    return (MPI.Wtime() - start) * 1e6 / 2 / count


def bandwidth(size: int, count: int) -> float:
    """What rank 0 sends in MB/s."""
    data, got = [bytearray(size) for _number in range(WINDOW)], bytearray(1)
    start = 0.0
    for at in range(-max(1, count // 10), count):
        if at == 0:
            WORLD.Barrier()
            start = MPI.Wtime()
        move = WORLD.Isend if WORLD.rank == 0 else WORLD.Irecv
        MPI.Request.Waitall([move(part, PEER) for part in data])
        if WORLD.rank == 0:
            WORLD.Recv(got, PEER)
        else:
            WORLD.Send(got, PEER)
    return size * WINDOW * count / (MPI.Wtime() - start) / 1e6


def main() -> None:
    given = [int(word) for word in sys.argv[1:]]
    largest, factor, iterations = [*given, *(4 << 20, 2, 1000)[len(given) :]]
    if WORLD.size != 2:
        sys.exit(f"pingpong.py needs two ranks, and has {WORLD.size}")
    for title, column, measure in (
        ("Latency", "Latency (us)", latency),
        ("Bandwidth", "Bandwidth (MB/s)", bandwidth),
    ):
        if WORLD.rank == 0:
            print(f"# MPI {title} Test of pingpong.py\n# Size {column:>22}", flush=True)
        size = 1
        while size <= largest:
            figure = measure(size, max(1, iterations if size < LARGE else iterations // 10))
            if WORLD.rank == 0:
                print(f"{size:<10} {figure:>18.6f}", flush=True)
            size *= factor


main()
