#!/bin/sh
# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
#
# pod.sh COMMAND [ARGUMENT...]: runs inside a probe pod, as the text of `sh -c`. parsers.py reads what it prints.
# Short, and plain POSIX: all but comments travels in the URL of an exec, and images may have BusyBox only.

SYSFS=/sys/class
MODULES=/sys/module
NVIDIA=/proc/driver/nvidia/version
RESOLV=/etc/resolv.conf

# section NAME COMMAND...: the output of a command between two marks, so that one exec answers many questions.
section() {
    echo "@@ $1"
    shift
    ("$@") 2>&1
    printf '\n@@ rc %s\n' $?
}

both_families() {
    ip -j "$@"
    echo
    ip -j -6 "$@"
}

# limits: uid, and limits of this process.
limits() {
    section uid id -u
    section limits cat /proc/self/limits
}

# network [HOST PORT]...: addresses, routes and limits, and whether each V-IPU controller's port opens.
network() {
    limits
    section links ip -j -d address show
    section routes both_families route show default
    section rules both_families rule show
    section tables both_families route show table all
    section kernel cat /proc/sys/kernel/osrelease
    section driver cat "$NVIDIA"
    section modules modules
    section servers sed -n 's/^nameserver //p' "$RESOLV"
    section dns lookup
    while [ $# -ge 2 ]; do
        section "vipu $1 $2" tcp_open "$1" "$2"
        shift 2
    done
}

# The API's name in the domain of the cluster, which the kubelet writes into the search list; then what it resolves to.
lookup() {
    domain=$(sed -n 's/^search [^ ]*\.\(svc\.[^ ]*\).*/\1/p' "$RESOLV")
    set -- "kubernetes.default.${domain:-svc}"
    echo "$1"
    if command -v getent >/dev/null; then
        timeout 20 getent ahosts "$1"
    elif command -v nslookup >/dev/null; then
        timeout 20 nslookup "$1"
    else
        exit 127
    fi
}

# These are the node's: namespaces do not separate them.
modules() {
    ls -d "$MODULES/nvidia" "$MODULES/nvidia_peermem" "$MODULES/gdrdrv" 2>/dev/null
    true
}

# tcp_open HOST PORT: with whichever tool the image has.
tcp_open() {
    if command -v nc >/dev/null; then
        nc -v -z -w 3 "$1" "$2"
    elif command -v bash >/dev/null; then
        # shellcheck disable=SC2016 # bash expands it
        timeout 3 bash -c ': </dev/tcp/$0/$1' "$1" "$2"
    else
        exit 127
    fi
}

# rdma TOOL...: device files, ports and GIDs that the pod sees, and which of the tools its image has.
rdma() {
    ports="$SYSFS/infiniband/*/ports/*"
    section files ls /dev/infiniband
    section classes classes
    # shellcheck disable=SC2086 # a pattern
    section ports grep -H . $ports/state $ports/link_layer
    section gids gids
    section tools tools "$@"
}

# The node's, whatever the pod was given: if a resource is missing, they show why.
classes() {
    cd "$SYSFS" && ls -d infiniband/* infiniband/*/device infiniband_verbs/uverbs* infiniband_mad/umad* misc/rdma_cm 2>/dev/null
    true
}

# Unset entries read as zero, or as an error without meaning.
gids() {
    # shellcheck disable=SC2086 # a pattern
    grep -H . $ports/gids/* $ports/gid_attrs/types/* $ports/gid_attrs/ndevs/* 2>/dev/null |
        grep -v ':0000:0000:0000:0000:0000:0000:0000:0000$'
}

tools() {
    for tool; do command -v "$tool"; done
    true
}

# reach ADDRESS INTERFACE PAYLOAD: a ping of PAYLOAD bytes that must not be fragmented, and a small one to tell a fault
# of the MTU from a broken path. PAYLOAD 0: only the small one.
reach() {
    [ "$3" = 0 ] || section full ping -c 2 -i 0.2 -w 3 -I "$2" -M 'do' -s "$3" "$1"
    section small ping -c 2 -i 0.2 -w 3 -I "$2" "$1"
}

# cross LINK_LOCAL ADDRESS INTERFACE SOURCE: from one network to the addresses of a pod's interface on another. LINK_LOCAL
# may be -. With address and interface given, a ping takes the network's own routes.
cross() {
    [ "$1" = - ] || section near ping -c 2 -i 0.2 -w 3 -I "$3" "$1"
    section far ping -c 2 -i 0.2 -w 3 -I "$4" -I "$3" "$2"
    section neighbour ip neigh show to "$2" dev "$3"
}

# gateways ADDRESS INTERFACE...: a ping, and whether anybody holds the address, since some switches answer no pings.
gateways() {
    while [ $# -ge 2 ]; do
        section "gateway $1 $2" ping -c 2 -i 0.2 -w 3 -I "$2" "$1"
        section "neighbour $1 $2" ip neigh show to "$1" dev "$2"
        shift 2
    done
}

# serve and ask CHECK SERVER CLIENT PORT SECONDS DEVICE [OPTION...]: the two ends of an RDMA test, by the addresses of both
# pods. The options are ib_write_bw's for a GPU.
# rdma_cm picks the device and the GID from the addresses, so no index is hard-coded. Without a device's name perftest
# first looks at the node's first device, and fails if that one's port is down.
serve() {
    counted server measure serve "$@"
}

ask() {
    counted client measure ask "$@"
}

# counted NAME COMMAND...: a section, between the counters before and after it.
counted() {
    section before counters
    section "$@"
    section after counters
}

# While namespaces share devices, sysfs has the counters only in the host's; in a pod `rdma` shows them.
counters() {
    cd "$SYSFS" && grep -H . infiniband/*/ports/*/*counters/* net/*/statistics/[rt]x_bytes 2>/dev/null
    command rdma -j statistic 2>/dev/null # not the function
    true
}

# listening PORT SECONDS: wait until the server listens. Only iproute2's `rdma` shows that; without it, wait all of SECONDS.
listening() {
    end=$(($(date +%s) + $2))
    while [ "$(date +%s)" -lt "$end" ]; do
        command rdma resource show cm_id 2>/dev/null | grep -q "LISTEN.*:$1 " && break
        sleep 0.2
    done
}

# measure END CHECK SERVER CLIENT PORT SECONDS DEVICE [OPTION...]
measure() {
    end_is=$1 check=$2 server=$3 client=$4 port=$5 seconds=$6 device=$7
    shift 7
    case $check-$end_is in
    rping-serve) set -- rping -s -a "$server" -p "$port" -C 10 ;;
    rping-ask) set -- rping -c -a "$server" -p "$port" -I "$client" -C 10 -v -V ;;
    # A fixed time: the tool's fixed number of writes takes milliseconds on a fast NIC, and minutes on a slow one.
    write_bandwidth-* | gpu_bandwidth-*) set -- ib_write_bw -R -F -p "$port" -D 4 --report_gbits "$@" ;;
    read_latency-*) set -- ib_read_lat -R -F -p "$port" ;;
    esac
    if [ "$check" != rping ]; then
        [ -z "$device" ] || set -- "$@" -d "$device"
        case $server in *:*) set -- "$@" --ipv6-addr ;; esac
        [ "$end_is" = serve ] || set -- "$@" "$server"
    fi
    timeout "$seconds" "$@"
}

# stop PORT: end the server on this port.
stop() {
    for process in /proc/[0-9]*; do
        case $(tr '\0' ' ' <"$process/cmdline" 2>/dev/null) in
        *ib_*" -p $1 "* | *rping*" -p $1 "*) kill "${process#/proc/}" ;;
        esac
    done
}

# host_traffic DEVICE HOST PORT PARTITION: test against an existing partition.
host_traffic() {
    export IPUOF_VIPU_API_HOST="$2" IPUOF_VIPU_API_PORT="$3" IPUOF_VIPU_API_PARTITION_ID="$4"
    section host_traffic gc-hosttraffictest -d "$1" -j
}

"$@"
