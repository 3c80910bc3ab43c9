#!/bin/sh
# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
# rank_env.sh WHOSE RAILS FLAGS [NAME=VALUE]... -- PROGRAM...: starts one rank of a program, with the variables of NCCL, UCX and
# Horovod. Only the pod knows its GIDs, and only at run time: an index differs from pod to pod, and many kernels show all
# GIDs of a node to each of its pods. The right one is RoCE v2, belongs to an interface in RAILS, and
#   WHOSE=pod   it holds an address of this pod's own network namespace
#   WHOSE=node  the interface is the node's: a privileged pod that is not on the fabric network
#   WHOSE=none  there is no RDMA to look for
# FLAGS, with commas around each: show prints the variables of each rank, count by how much counters grew.
# Plain POSIX with no program but env, sort, uname and `rdma`: images may have little more than a shell.
whose=$1 rails=$2 flags=$3
shift 3
sysfs=/sys/class
prefix=0000:0000:0000:0000:0000:ffff:
rank=${OMPI_COMM_WORLD_RANK:-${PMIX_RANK:-?}}
newline='
'

# A variable that the job or its image has set stays as it is.
default() {
  # shellcheck disable=SC2163 # NAME=VALUE
  eval "[ -n \"\${${1%%=*}+set}\" ]" || export "$1"
}

fail() {
  echo "$1 Next: $2" >&2
  exit 1
}

# The addresses of this network namespace: IPv4 with dots, IPv6 as 32 digits. Only lasting ones, so none that it derived
# from router advertisements.
own_addresses() {
  while read -r sign word rest; do
    case "$sign $word $rest" in
    "|-- "*) address=$word ;;
    "/32 host LOCAL"*) echo "$address" ;;
    esac
  done </proc/net/fib_trie
  while read -r address _index _prefix scope flags _interface; do
    case $scope$flags in 00[89a-f]?) echo "$address" ;; esac
  done 2>/dev/null </proc/net/if_inet6
}

# DEVICE PORT INDEX ADDRESS INTERFACE of each RoCE v2 GID with an address, except link-local ones.
table() {
  for gid in "$sysfs"/infiniband/*/ports/*/gids/*; do
    { read -r value <"$gid"; } 2>/dev/null || continue
    case $value in fe80:* | 0000:0000:0000:0000:0000:0000:*) continue ;; esac
    port=${gid%/gids/*} index=${gid##*/}
    { read -r type <"$port/gid_attrs/types/$index"; } 2>/dev/null || continue
    [ "$type" = "RoCE v2" ] || continue
    { read -r interface <"$port/gid_attrs/ndevs/$index"; } 2>/dev/null || interface=
    case $value in
    $prefix*)
      hex=${value#"$prefix"} low=${value##*:}
      high=${hex%:*}
      address=$((0x$high >> 8)).$((0x$high & 255)).$((0x$low >> 8)).$((0x$low & 255))
      ;;
    *)
      rest=$value: address=
      while [ -n "$rest" ]; do address=$address${rest%%:*} rest=${rest#*:}; done
      ;;
    esac
    device=${port#"$sysfs/infiniband/"}
    echo "${device%%/*} ${port##*/} $index $address $interface"
  done
}

# rail INTERFACE: family, DEVICE:PORT and INDEX of its GID; that of IPv4 if it has both.
rail() {
  found='' six=''
  while read -r device port index address interface; do
    [ "${interface:-$rails}" = "$1" ] || continue
    case $whose$own in node*) ;; *"$newline$address$newline"*) ;; *) continue ;; esac
    case $address in
    *.*) [ -n "$found" ] && [ "$index" -ge "${found##* }" ] || found="AF_INET $device:$port $index" ;;
    *) [ -n "$six" ] && [ "$index" -ge "${six##* }" ] || six="AF_INET6 $device:$port $index" ;;
    esac
  done
  echo "${found:-$six}"
}

# first FAMILY DEVICE:PORT: the index that NCCL, and with IPv4 UCX, choose there by themselves.
first() {
  lowest=
  while read -r device port index address _interface; do
    [ "$device:$port" = "$2" ] || continue
    case $1:$address in
    AF_INET6:*.*) continue ;;
    AF_INET:*.* | AF_INET6:*) ;;
    *) continue ;;
    esac
    [ -z "$lowest" ] || [ "$index" -lt "$lowest" ] || continue
    lowest=$index
  done
  echo "$lowest"
}

# Variables of all rails. NCCL and UCX take one index for all devices, or choose the first RoCE v2 GID of
# IPv4 on each. With IPv6 only NCCL does so: UCX takes link-local ones too, which come first.
rdma() {
  own=$newline$(own_addresses)$newline
  gids=$(table)
  hcas='' indexes='' same=yes chosen=yes one='' af=''
  # shellcheck disable=SC2086 # a word for each
  for name in $(IFS=,; echo $rails); do
    hca=$(echo "$gids" | rail "$name")
    case $whose:$hca in
    node:) fail "no RoCE v2 GID belongs to $name of the node." "check the name, its address and ibv_devices." ;;
    pod:) fail "no RoCE v2 GID holds an address of this pod on $name." "check $name and the RDMA resource of the pod." ;;
    esac
    family=${hca%% *} index=${hca##* } hca=${hca#* }
    hca=${hca% *}
    case ,$hcas, in *",$hca,"*) fail "two rails are on $hca: $rails." "leave one of them in interfaces." ;; esac
    hcas=${hcas:+$hcas,}$hca indexes=${indexes:+$indexes, }$name:$index
    [ "$index" = "${one:=$index}" ] || same=no
    [ "$index" = "$(echo "$gids" | first "$family" "$hca")" ] || chosen=no
    [ "$family" = "${af:=$family}" ] || chosen=no
  done
  default "NCCL_IB_HCA==$hcas"
  default "UCX_NET_DEVICES=$hcas"
  if [ $same = yes ]; then
    default "NCCL_IB_GID_INDEX=$one"
    default "UCX_IB_GID_INDEX=$one"
  elif [ $chosen = yes ] && [ "$af${UCX_IB_GID_INDEX+set}" != AF_INET6 ]; then
    default "NCCL_IB_ADDR_FAMILY=$af"
    default NCCL_IB_ROCE_VERSION_NUM=2
    default UCX_IB_GID_INDEX=auto
  else
    fail "the rails have different GID indexes ($indexes): NCCL and UCX take one for all." "start the job again, or leave one rail in interfaces; with IPv6, where only NCCL uses them, set UCX_IB_GID_INDEX to one of them in env."
  fi
}

# DEVICE PORT NAME VALUE of traffic counters. While namespaces share devices, sysfs has those of RDMA only on the host.
counters() {
  counters_of_sysfs
  command rdma -j statistic 2>/dev/null | counters_of_json
}

# From [{"ifname":"mlx5_0","port":1,NAME:VALUE,...},...].
counters_of_json() (
  set -f
  IFS="{}[],$newline"
  while read -r line; do
    for word in $line; do
      name=${word%%:*} value=${word#*:}
      name=${name#*\"} value=${value#*\"}
      name=${name%\"*} value=${value%\"*}
      case $name in
      ifname) device=$value ;;
      port) port=$value ;;
      *) counted "$device $port $name" "${value##* }" ;;
      esac
    done
  done
)

# Few and short lines: mpirun cuts the output of ranks into parts of 4 KiB.
counted() {
  case ${1##* } in
  port_*_data | [rt]x_bytes | hw_?x_bytes_cnt | sent_pkts | rcvd_pkts | rx_write_requests | rx_read_requests) echo "$1 $2" ;;
  esac
}

counters_of_sysfs() {
  for file in "$sysfs"/infiniband/*/ports/*/*counters/* "$sysfs"/net/*/statistics/[rt]x_bytes; do
    { read -r value <"$file"; } 2>/dev/null || continue
    device=${file#"$sysfs"/*/} port=-
    case $file in */ports/*) port=${file#*/ports/} port=${port%%/*} ;; esac
    counted "${device%%/*} $port ${file##*/}" "$value"
  done
}

# Counters that grew since $1, a line for each.
grown() {
  counters | sort -u | while read -r device port name value; do
    before=${1#*"$newline$device $port $name "}
    [ "$before" = "$1" ] && continue
    before=${before%%"$newline"*}
    [ "$value" = "$before" ] || echo "@@ rank $rank on $(uname -n): $device $port $name $((value - before))"
  done
}

while [ "$1" != -- ]; do
  default "$1"
  shift
done
shift
[ "$whose" = none ] || rdma
case $flags in
*,show,*) env | sort | while read -r line; do
  case $line in NCCL_* | UCX_* | HOROVOD_* | IPUOF_*) echo "@@ rank $rank on $(uname -n): $line" ;; esac
done >&2 ;;
esac
case $flags in
*,count,*) ;;
*) exec "$@" ;;
esac
before=$newline$(counters)$newline
"$@"
code=$?
grown "$before"
exit $code
