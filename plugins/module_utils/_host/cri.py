# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which container runtime a kubeadm node uses, by its kubelet's settings, and whether runtimes work.

A service may be active without a CRI: containerd keeps running without the plugins whose settings it refuses. So this
module asks what a kubelet asks, over gRPC. Hosts may lack crictl, and have no gRPC library.
"""

from __future__ import annotations

import os
import re
import socket
import struct
import typing as t

from .._common.command import run_program
from .distributions import EMBEDDING_UNITS, K3S
from .files import read_text

CONTAINERD, DOCKER = "containerd", "docker"
SOCKETS = {CONTAINERD: "/run/containerd/containerd.sock", DOCKER: "/run/cri-dockerd.sock"}
# Services of runtimes, and the CRI socket of each. Docker's is that of cri-dockerd; Docker's own socket is another one.
INTERFACES = {
    "containerd": SOCKETS[CONTAINERD],
    "docker": SOCKETS[DOCKER],
    "cri-docker": SOCKETS[DOCKER],
    "crio": "/run/crio/crio.sock",
    **dict.fromkeys(EMBEDDING_UNITS, K3S.containerd_socket),
}
# A flag overrides the kubelet's configuration. kubeadm 1.34 and later write the endpoint to a file for this instance.
FLAGS = "var/lib/kubelet/kubeadm-flags.env"
CONFIGURATIONS = ("var/lib/kubelet/instance-config.yaml", "var/lib/kubelet/config.yaml")


def parse_flags(text: str) -> str:
    """The endpoint in the flags that kubeadm wrote for the kubelet; empty if there is none."""
    match = re.search(r"--container-runtime-endpoint[= ][\"']?([^\s\"']+)", text)
    return match.group(1) if match else ""


def parse_configuration(text: str) -> str:
    """The endpoint in a KubeletConfiguration; empty if there is none."""
    match = re.search(r"^containerRuntimeEndpoint:[ \t]*[\"']?([^\s\"'#]+)", text, re.MULTILINE)
    return match.group(1) if match else ""


def kubelet_socket(root: str = "/") -> str:
    """The path of the socket over which the kubelet reaches its runtime; empty if nothing configures one."""
    found = [parse_flags(read_text(os.path.join(root, FLAGS)))]
    found += [parse_configuration(read_text(os.path.join(root, path))) for path in CONFIGURATIONS]
    path = next(filter(None, found), "")
    path = path[len("unix://") :] if path.startswith("unix://") else path
    return "/run/" + path[len("/var/run/") :] if path.startswith("/var/run/") else path


def runtime_of(socket: str) -> str:
    """containerd or docker, or the socket itself if it belongs to neither; empty without a socket."""
    return next((name for name, path in SOCKETS.items() if path == socket), socket)


def node_runtime(root: str = "/") -> str:
    """The runtime of this host's node; empty if nothing configures one."""
    return runtime_of(kubelet_socket(root))


# ---- whether it answers ---------------------------------------------------------------------------------------------


class Silence(t.NamedTuple):
    """Why there is no answer."""

    seen: str
    final: bool  # it will not answer later either


ASK_SECONDS = 10
DOCKER_INFO = ("docker", "info", "--format", "{{.ServerVersion}}")
# Methods with their requests in protobuf: any image name will do, even one of a missing image.
QUESTIONS = {
    "/runtime.v1.RuntimeService/Version": b"",
    "/runtime.v1.ImageService/ImageStatus": b"\x0a\x07\x0a\x05pause",
}
# Frames of HTTP/2 and their flags
DATA, HEADERS, RST_STREAM, SETTINGS, PING, GOAWAY, CONTINUATION = 0, 1, 3, 4, 6, 7, 9
ACK = END_STREAM = 1
END_HEADERS = 4
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
# The header grpc-status, plain and in HPACK's Huffman code. Its values have one form: two digits get no shorter.
STATUS = (b"grpc-status", b"\x9a\xca\xc8\xb2\x12\x34\xda\x8f")
OK, UNIMPLEMENTED = "0", "12"


def frame(kind: int, flags: int, stream: int, payload: bytes = b"") -> bytes:
    return struct.pack(">I", len(payload))[1:] + struct.pack(">BBI", kind, flags, stream) + payload


def header(name: str, value: str) -> bytes:
    """A header in HPACK, as a literal."""
    words = [text.encode() for text in (name, value)]
    return b"\0" + b"".join(bytes([len(word)]) + word for word in words)


def read_integer(block: bytes, at: int, bits: int) -> t.Tuple[int, int]:
    """A number in HPACK, and where the next part begins."""
    most = (1 << bits) - 1
    value, at = block[at] & most, at + 1
    if value < most:
        return value, at
    for shift in range(0, 35, 7):
        value += (block[at] & 0x7F) << shift
        at += 1
        if not block[at - 1] & 0x80:
            break
    return value, at


def read_string(block: bytes, at: int) -> t.Tuple[bytes, int]:
    length, at = read_integer(block, at, 7)
    return block[at : at + length], at + length


def status_in(block: bytes) -> str:
    """The value of grpc-status in an HPACK header block; empty if it is missing."""
    at = 0
    while at < len(block):
        first = block[at]
        if first & 0x80:  # an indexed header; the tables do not contain grpc-status
            at = read_integer(block, at, 7)[1]
        elif first & 0xE0 == 0x20:  # an update of the table size
            at = read_integer(block, at, 5)[1]
        else:
            index, at = read_integer(block, at, 6 if first & 0x40 else 4)
            name, at = (b"", at) if index else read_string(block, at)
            value, at = read_string(block, at)
            if name in STATUS:
                return value.decode("ascii", "replace")
    return ""


def read_exactly(peer: socket.socket, length: int) -> bytes:
    data = b""
    while len(data) < length:
        more = peer.recv(length - len(data))
        if not more:
            raise OSError("it closed the connection")
        data += more
    return data


def call(path: str, method: str, message: bytes) -> str:
    """The final gRPC status of a call."""
    headers = {":method": "POST", ":scheme": "http", ":path": method, ":authority": "localhost", "te": "trailers"}
    headers["content-type"] = "application/grpc"
    body = b"\0" + struct.pack(">I", len(message)) + message
    with socket.socket(socket.AF_UNIX) as peer:
        peer.settimeout(ASK_SECONDS)
        peer.connect(path)
        block = b"".join(header(*each) for each in headers.items())
        peer.sendall(PREFACE + frame(SETTINGS, 0, 0))
        peer.sendall(frame(HEADERS, END_HEADERS, 1, block) + frame(DATA, END_STREAM, 1, body))
        while True:
            head = read_exactly(peer, 9)
            kind, flags, stream = struct.unpack(">BBI", head[3:])
            payload = read_exactly(peer, struct.unpack(">I", b"\0" + head[:3])[0])
            if kind in (SETTINGS, PING) and not flags & ACK:
                peer.sendall(frame(kind, ACK, 0, payload if kind == PING else b""))
            elif kind in (RST_STREAM, GOAWAY):
                raise OSError("it refused the call")
            elif kind in (HEADERS, CONTINUATION) and stream == 1:
                status = status_in(payload)
                if status:
                    return status


def ask(path: str) -> t.Optional[Silence]:
    """Ask the runtime behind a socket what a kubelet asks; None if it answers."""
    for method, message in QUESTIONS.items():
        try:
            status = call(path, method, message)
        except (OSError, IndexError) as error:
            return Silence(f"{path} does not answer {method}: {error}", False)
        if status == UNIMPLEMENTED:
            return Silence(f"{path} answers but has no CRI: it does not know {method}", True)
        if status != OK:
            return Silence(f"{path} answers {method} with an error (gRPC status {status})", False)
    return None


def silence(unit: str) -> t.Optional[Silence]:
    """Why the runtime of a unit does not work; None where it does."""
    if unit == DOCKER:
        done = run_program(DOCKER_INFO, ASK_SECONDS)
        if done.rc not in (0, 127):  # without its client, only the service itself can tell whether it runs
            return Silence(f"docker info: {done.err.strip() or f'rc {done.rc}'}", False)
        if kubelet_socket() != INTERFACES[unit]:
            return None
    return ask(INTERFACES[unit])
