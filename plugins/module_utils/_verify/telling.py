# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The line of a program's output that says why it failed. Pure functions."""

from __future__ import annotations

import re

HARMLESS = "Device not recognized to implement inline feature"  # perftest prints it for each rdma_rxe
# perftest and rping first name what went wrong, and then each step that could not continue because of it. Standard
# output may follow after all of that.
COMPLAINT = re.compile(
    r"RDMA_CM_EVENT_|\b(abort|bad|can(no|')t|can not|could(n't| not)|cannot|denied|died|error|fail|fault|illegal"
    r"|incompatib|invalid|mismatch|no such|not found|not supported|isn't|refused|state is|timed out|unable"
    r"|unexpected|unreachable|unrecognized|unsupported)",
    re.IGNORECASE,
)
NOISE = re.compile(rf"{HARMLESS}|warning|^ERRNO:|^Completion with error at", re.IGNORECASE)
ERRNO = re.compile(r"^\s*ERRNO: (.+?)\.?\s*$", re.MULTILINE)  # the kernel's answer to the first complaint
# Older releases of perftest print only the number.
STATUS = re.compile(r"(Failed status )(\d+)\b")
# For GPUs, perftest prints the reason on standard output, or after the step that failed because of it.
CUDA = re.compile(
    r"Unsupported memory type|DMA-BUF is not supported|does not support DMA-BUF|that support CUDA|No such device ID"
    r"|dlerror: libcuda|\bcu[A-Z]\w+(\(\d*\))? (returned |failed|error=)"
)
CUDA_ERROR = re.compile(r"(?:returned|error[=:]) ?(\d+)")
CUDA_ERRORS = {
    "2": "out of memory",
    "100": "there is no GPU",
    "101": "the pod has no such GPU",
    "801": "not supported",
    "802": "the system is not ready: does the fabric manager run?",
    "803": "the image's libcuda does not fit the driver",
}
STATUSES = {
    "4": "local protection error",
    "5": "flushed after another error",
    "9": "remote invalid request",
    "10": "remote access error",
    "11": "remote operation error",
    "12": "transport retry counter exceeded, nothing came back",
    "13": "RNR retry counter exceeded",
}


def telling_line(text: str) -> str:
    """The first complaint, with its errno or the meaning of its number; if there is none, the last line."""
    lines = [line.strip() for line in text.splitlines() if line.strip(" \t-*")]
    useful = [line for line in lines if not NOISE.search(line)]
    of_gpu = next((line for line in lines if CUDA.search(line)), "")
    if of_gpu:
        number = CUDA_ERROR.search(of_gpu)
        meaning = CUDA_ERRORS.get(number.group(1), "") if number else ""
        return f"{of_gpu} ({meaning})" if meaning else of_gpu
    found = next((number for number, line in enumerate(useful) if COMPLAINT.search(line)), None)
    if found is None:
        return (useful or lines or ["no output"])[-1]
    line = useful[found]
    if line.endswith(":"):
        return " ".join(useful[found : found + 2])
    errno = ERRNO.search(text)
    if errno:
        return f"{line.rstrip('.')}: {errno.group(1)}"
    return STATUS.sub(lambda status: f"{status.group()} ({STATUSES.get(status.group(2), 'unknown')})", line)
