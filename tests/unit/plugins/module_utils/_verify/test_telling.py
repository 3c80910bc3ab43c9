"""Which line of a failed test's output is shown. What the tools print is theirs: perftest, rping, ping, nc."""

from __future__ import annotations

import typing as t

import pytest
from ansible_collections.ipu.fabric.plugins.module_utils._verify.telling import telling_line

NO_MEMORY = """Couldn't allocate MR
failed to create mr
Failed to create MR
Failed to initialize RDMA contexts.
ERRNO: Cannot allocate memory.
Failed to handle RDMA CM event.
ERRNO: Cannot allocate memory.
Failed to connect RDMA CM events.
ERRNO: Cannot allocate memory.
Segmentation fault (core dumped)
"""
# Standard output is kept back until the tool ends, and so comes last.
AFTER_ERRORS = """ Completion with error at client
 Failed status 12: wr_id 0 syndrom 0x81
scnt=128, ccnt=0
---------------------------------------------------------------------------------------
                    RDMA_Write BW Test
 remote address: LID 0000 QPN 0x0012 PSN 0xad38c2
---------------------------------------------------------------------------------------
"""
NO_CONTEXT = "Couldn't init GPU context: 1\nFailed to init memory\nFailed to create MR\n"


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (NO_MEMORY, "Couldn't allocate MR: Cannot allocate memory"),
        (
            AFTER_ERRORS,
            "Failed status 12 (transport retry counter exceeded, nothing came back): wr_id 0 syndrom 0x81",
        ),
        ("Failed status 77: wr_id 0 syndrom 0x0", "Failed status 77 (unknown): wr_id 0 syndrom 0x0"),
        (
            "Completion with error at client\n Failed status-RNR retry counter exceeded (13): wr_id 0 syndrom 0x0\nx=1",
            "Failed status-RNR retry counter exceeded (13): wr_id 0 syndrom 0x0",
        ),
        (
            "RDMA CM event error:\nEvent: RDMA_CM_EVENT_REJECTED; error: -111.\n\nERRNO: No such file or directory.\n"
            "Failed to handle RDMA CM event.\nERRNO: No such file or directory.\n",
            "RDMA CM event error: Event: RDMA_CM_EVENT_REJECTED; error: -111.",
        ),
        (
            " GID: 00:00\nFailed to modify QP 218 to RTR\n Unable to Connect the HCA's through the link",
            "Failed to modify QP 218 to RTR",
        ),
        (
            " Port number 1 state is Down\n Couldn't set the link layer\n Couldn't get context for the device",
            "Port number 1 state is Down",
        ),
        (
            "libibverbs: Warning: couldn't load driver 'libx.so': no such file\nrdma_resolve_addr failed\n"
            " Unable to perform rdma_client function\n Unable to init the socket connection",
            "rdma_resolve_addr failed",
        ),
        (
            "cma event RDMA_CM_EVENT_UNREACHABLE, error -110\nwait for CONNECTED state 4\nconnect error -1",
            "cma event RDMA_CM_EVENT_UNREACHABLE, error -110",
        ),
        (
            "ping: invalid option -- 'M'\nBusyBox v1.37.0 multi-call binary.\n\nUsage: ping [OPTIONS] HOST\n\t-p HEX",
            "ping: invalid option -- 'M'",
        ),
        ("nc: connect to 10.5.0.9 port 8090 (tcp) failed: Connection refused\n", None),
        ("Segmentation fault", "Segmentation fault"),
        # Of GPUs, by cuda_memory.c and perftest_resources.c of perftest.
        (" Parser function exited with Error\n Unsupported memory type\n", "Unsupported memory type"),
        (
            "ib_write_bw: unrecognized option '--use_cuda_bus_id=0000:81:00.0'\n Invalid Command or flag.\nUsage:",
            "ib_write_bw: unrecognized option '--use_cuda_bus_id=0000:81:00.0'",
        ),
        (f"{NO_CONTEXT}initializing CUDA\ncuInit(0) returned 100\n", "cuInit(0) returned 100 (there is no GPU)"),
        (f"{NO_CONTEXT}initializing CUDA\ncuInit(0) returned 7\n", "cuInit(0) returned 7"),
        (
            "cuDeviceGetByPCIBusId failed with error: 101; Failed to get PCI Bus ID (0:1:0)\nFailed to init memory",
            "cuDeviceGetByPCIBusId failed with error: 101; Failed to get PCI Bus ID (0:1:0) (the pod has no such GPU)",
        ),
        ("DMA-BUF is not supported on this GPU\nFailed to init memory\n", "DMA-BUF is not supported on this GPU"),
        (
            "Failed to create MR\nusing DMA-BUF for GPU buffer\ncuMemGetHandleForAddressRange error=801\n",
            "cuMemGetHandleForAddressRange error=801 (not supported)",
        ),
        (
            "Couldn't allocate MR with error=95\nOFED stack does not support DMA-BUF\nfailed to create mr\n",
            "OFED stack does not support DMA-BUF",
        ),
        (
            "dlerror: libcuda.so: cannot open shared object file: No such file or directory\n",
            "dlerror: libcuda.so: cannot open shared object file: No such file or directory",
        ),
        ("starting\ndone\n-----", "done"),
        ("Device not recognized to implement inline feature", "Device not recognized to implement inline feature"),
        ("", "no output"),
    ],
)
def test_the_first_complaint_is_shown_and_not_what_follows_from_it(text: str, line: t.Optional[str]) -> None:
    assert telling_line(text) == (line or text.strip())
