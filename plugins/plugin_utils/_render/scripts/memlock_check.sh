#!/bin/sh
# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
# Fails unless this process can lock memory without a limit. RDMA registers memory up to the limit, unless the process has
# CAP_IPC_LOCK (bit 14), which only root keeps.
# shellcheck disable=SC3045 # dash, bash and busybox have it
limit=$(ulimit -l)
while read -r key value; do [ "$key" != CapEff: ] || caps=$value; done < /proc/self/status
if [ "$limit" = unlimited ]; then echo "locked memory: unlimited"; exit 0; fi
if [ $((0x${caps#????????} >> 14 & 1)) = 1 ]; then echo "locked memory: $limit KiB, lifted by IPC_LOCK"; exit 0; fi
echo "locked memory: $limit KiB for uid $(id -u), wanted is unlimited." >&2
echo "Next: run the role ipu.fabric.memlock on this node." >&2
exit 1
