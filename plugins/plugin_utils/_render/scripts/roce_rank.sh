#!/bin/sh
# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# roce_rank.sh PROGRAM...: starts one rank of an MPI program over RoCE. The index of a GID differs from pod to pod, and all
# pods of a node see all GIDs: the right one is RoCE v2 and holds an address of this pod's own network namespace.
# shellcheck disable=SC2093 # exec ends the search
prefix=0000:0000:0000:0000:0000:ffff:
for gid in /sys/class/infiniband/*/ports/*/gids/*; do
  read -r value 2>/dev/null < "$gid" || continue
  case $value in $prefix*) ;; *) continue ;; esac
  port=${gid%/gids/*} index=${gid##*/}
  read -r type 2>/dev/null < "$port/gid_attrs/types/$index" || continue
  [ "$type" = "RoCE v2" ] || continue
  hex=${value#"$prefix"} low=${value##*:}
  high=${hex%:*}
  address=$((0x$high >> 8)).$((0x$high & 255)).$((0x$low >> 8)).$((0x$low & 255))
  grep -qwF -e "-- $address" /proc/net/fib_trie || continue
  device=${port#/sys/class/infiniband/}
  export UCX_TLS=rc,sm,self UCX_NET_DEVICES="${device%%/*}:${port##*/}" UCX_IB_GID_INDEX="$index"
  exec "$@"
done
echo "no RoCE v2 GID holds an address of this pod. Next: check net1 and the RDMA resource of the pod." >&2
exit 1
