# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which ports of other hosts this host can reach: a temporary listener on free ports, and connections to other hosts.

The listener is one process. It ends when somebody connects to its control socket, which is abstract and has no file,
or when its time is up. It accepts TCP connections, and returns this collection's packets to their senders: UDP, and
those of IP protocols without ports, such as VRRP.
"""

from __future__ import annotations

import contextlib
import errno
import os
import selectors
import socket
import time
import typing as t

from .._model.observation import Listener, PortProbe, PortTarget
from .files import read_text

PROCESS = "fabric-ports"  # name of the listening process
CONTROL = "\0ipu.fabric.port_probe"  # in the abstract namespace: nothing is left in the file system
MAGIC = b"ipu.fabric port probe "
ANSWER = b"ipu.fabric port answer "  # not MAGIC: raw sockets receive answers too, which must not be answered
BACKLOG = 1024
AT_ONCE = 256  # connections: the default limit is 1024 open files per user
RESEND = 0.5  # seconds until an unanswered packet is sent again
CONTROL_SECONDS = 2.0
IP_PKTINFO, IPV6_RECVPKTINFO = 8, 49  # not defined in every Python

_SEEN = {
    errno.ECONNREFUSED: "refused",
    errno.EPERM: "forbidden",
    errno.EACCES: "forbidden",
}


class _Question(t.NamedTuple):
    """A port of another host, or an IP protocol."""

    target: PortTarget
    protocol: str  # TCP, UDP or IP protocol
    port: int


def _bound(kind: socket.SocketKind, port: int) -> t.Optional[socket.socket]:
    """A socket on all addresses of both families, or of IPv4 only; None if the port is taken or not allowed."""
    for family, anywhere in ((socket.AF_INET6, "::"), (socket.AF_INET, "0.0.0.0")):
        with contextlib.ExitStack() as unless_bound:
            try:
                opened = unless_bound.enter_context(socket.socket(family, kind))
                if family == socket.AF_INET6:
                    opened.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
                if kind == socket.SOCK_STREAM:
                    opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                elif family == socket.AF_INET6:  # the answer must come from the address that was asked
                    opened.setsockopt(socket.IPPROTO_IPV6, IPV6_RECVPKTINFO, 1)
                else:
                    opened.setsockopt(socket.IPPROTO_IP, IP_PKTINFO, 1)
                opened.bind((anywhere, port))
                if kind == socket.SOCK_STREAM:
                    opened.listen(BACKLOG)
                opened.setblocking(False)
            except OSError:
                continue
            unless_bound.pop_all()
            return opened
    return None


def _bound_ports(kind: socket.SocketKind, ports: t.Iterable[int]) -> t.Dict[int, socket.socket]:
    opened = ((port, _bound(kind, port)) for port in sorted(set(ports)))
    return {port: bound for port, bound in opened if bound}


def _return_packet(udp: socket.socket) -> None:
    data, ancillary, _flags, sender = udp.recvmsg(512, 256)
    if data.startswith(MAGIC):
        udp.sendmsg([data], ancillary, 0, sender)


def used_protocols(table: str) -> t.Set[int]:
    """IP protocols that programs have opened, from /proc/net/raw or raw6: those programs must not be disturbed."""
    rows = (line.split() for line in table.splitlines()[1:])
    return {int(row[1].rsplit(":", 1)[1], 16) for row in rows if len(row) > 1}


def _bound_protocols(numbers: t.Iterable[int]) -> t.Dict[int, t.List[socket.socket]]:
    """Sockets of both families for IP protocols that nobody uses here; only root can open them."""
    used = used_protocols(read_text("/proc/net/raw")) | used_protocols(read_text("/proc/net/raw6"))
    found: t.Dict[int, t.List[socket.socket]] = {}
    for number in sorted(set(numbers) - used):
        for family in (socket.AF_INET, socket.AF_INET6):
            with contextlib.suppress(OSError):
                opened = socket.socket(family, socket.SOCK_RAW, number)
                opened.setblocking(False)
                found.setdefault(number, []).append(opened)
    return found


def _payload(one: socket.socket, data: bytes) -> bytes:
    """The payload that a raw socket received: with IPv4, the packet's header precedes it."""
    if one.type != socket.SOCK_RAW or one.family != socket.AF_INET or not data:
        return data
    return data[(data[0] & 15) * 4 :]


def _return_raw_packet(raw: socket.socket) -> None:
    data, sender = raw.recvfrom(512)
    question = _payload(raw, data)
    if question.startswith(MAGIC):
        raw.sendto(ANSWER + question[len(MAGIC) :], (sender[0], 0))


def serve(
    tcp: t.Iterable[socket.socket],
    udp: t.Iterable[socket.socket],
    control: socket.socket,
    name: str,
    seconds: float,
    raw: t.Iterable[socket.socket] = (),
) -> None:
    """Answer until somebody connects to `control` and is sent `name`, or until the time is up."""
    end = time.monotonic() + seconds
    with selectors.DefaultSelector() as waiting, contextlib.ExitStack() as opened:
        for kind, sockets in (("tcp", tcp), ("udp", udp), ("raw", raw), ("control", [control])):
            for one in sockets:
                waiting.register(opened.enter_context(one), selectors.EVENT_READ, kind)
        while time.monotonic() < end:
            for key, _events in waiting.select(max(0.0, end - time.monotonic())):
                one = t.cast("socket.socket", key.fileobj)
                with contextlib.suppress(OSError):  # the other side is gone, or a firewall rejects the answer
                    if key.data == "tcp":
                        one.accept()[0].close()
                    elif key.data == "udp":
                        _return_packet(one)
                    elif key.data == "raw":
                        _return_raw_packet(one)
                    else:
                        caller = one.accept()[0]
                        opened.close()  # first: whoever gets the name may use the ports
                        caller.sendall(name.encode())
                        caller.close()
                        return


def _detach(work: t.Callable[[], None]) -> None:
    """Run the work in a separate process, with its own session and without this one's streams."""
    child = os.fork()
    if child:
        os.waitpid(child, 0)
        return
    try:
        os.setsid()
        if os.fork() == 0:
            os.chdir("/")
            null = os.open(os.devnull, os.O_RDWR)
            for stream in range(3):
                os.dup2(null, stream)
            with contextlib.suppress(OSError), open("/proc/self/comm", "w", encoding="ascii") as comm:
                comm.write(PROCESS)
            work()
    finally:
        os._exit(0)


def listen(tcp: t.Sequence[int], udp: t.Sequence[int], seconds: float, ip: t.Sequence[int] = ()) -> Listener:
    """Start the listener on those ports that are free; first end one left behind by an earlier run."""
    stop()
    name = os.urandom(8).hex()
    control = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        control.bind(CONTROL)
        control.listen()
    except OSError:  # another run has just started its own
        control.close()
        return {"name": "", "tcp": [], "udp": [], "ip": []}
    control.setblocking(False)
    streams, packets = _bound_ports(socket.SOCK_STREAM, tcp), _bound_ports(socket.SOCK_DGRAM, udp)
    protocols = _bound_protocols(ip)
    raw = [one for of_protocol in protocols.values() for one in of_protocol]
    _detach(lambda: serve(streams.values(), packets.values(), control, name, seconds, raw))
    for one in [control, *streams.values(), *packets.values(), *raw]:
        one.close()
    return {"name": name, "tcp": list(streams), "udp": list(packets), "ip": list(protocols)}


def stop() -> str:
    """End the listener of this host; returns its name, or nothing if there was none."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as control:
        control.settimeout(CONTROL_SECONDS)
        try:
            control.connect(CONTROL)
            return b"".join(iter(lambda: control.recv(64), b"")).decode("ascii", "replace")
        except OSError:
            return ""


def _seen(number: int) -> str:
    return "unresolved" if number < 0 else _SEEN.get(number, "unreachable")


def _questions(targets: t.Iterable[PortTarget]) -> t.Iterator[_Question]:
    for target in targets:
        for port in target["tcp"]:
            yield _Question(target, "TCP", port)
        for port in target["udp"]:
            yield _Question(target, "UDP", port)
        for number in target.get("ip") or ():
            yield _Question(target, "IP protocol", number)


def _start(opened: contextlib.ExitStack, question: _Question) -> t.Tuple[t.Optional[socket.socket], int]:
    """A socket on which the question is under way, or the number of the error."""
    target = question.target
    family = socket.AF_INET6 if ":" in target["address"] else socket.AF_INET
    kind = {"TCP": socket.SOCK_STREAM, "UDP": socket.SOCK_DGRAM}.get(question.protocol, socket.SOCK_RAW)
    raw = kind == socket.SOCK_RAW
    try:
        one = opened.enter_context(socket.socket(family, kind, question.port if raw else 0))
        one.setblocking(False)
        if target["source"]:
            one.bind((target["source"], 0))
        error = one.connect_ex((target["address"], 0 if raw else question.port))
    except OSError as failure:
        return None, failure.errno or 0  # negative: an error of the resolver
    return (one, 0) if error in (0, errno.EINPROGRESS) else (None, error)


def _answer(one: socket.socket, nonce: bytes, packets: bool) -> str:
    """The result of a question whose socket is ready; empty if there is none yet."""
    expected = ANSWER + nonce[len(MAGIC) :] if one.type == socket.SOCK_RAW else nonce
    try:
        error = one.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if packets and not error and _payload(one, one.recv(512)) != expected:
            return ""
    except BlockingIOError:
        return ""
    except OSError as failure:
        error = failure.errno or 0
    return _seen(error) if error else "open"


def _ask(questions: t.Sequence[_Question], seconds: float) -> t.List[str]:
    """The result of each question; all are asked at the same time."""
    answers = ["filtered"] * len(questions)
    nonce = MAGIC + os.urandom(8).hex().encode()
    end, again = time.monotonic() + seconds, 0.0
    with selectors.DefaultSelector() as waiting, contextlib.ExitStack() as opened:
        for number, question in enumerate(questions):
            one, error = _start(opened, question)
            packets = question.protocol != "TCP"
            if one:
                waiting.register(one, selectors.EVENT_READ if packets else selectors.EVENT_WRITE, (number, packets))
            else:
                answers[number] = _seen(error)
        while waiting.get_map() and time.monotonic() < end:
            if time.monotonic() >= again:
                again = time.monotonic() + RESEND
                for key in waiting.get_map().values():
                    if key.data[1]:
                        with contextlib.suppress(OSError):  # the pending error is read below
                            t.cast("socket.socket", key.fileobj).send(nonce)
            for key, _events in waiting.select(max(0.0, min(again, end) - time.monotonic())):
                number, packets = key.data
                answer = _answer(t.cast("socket.socket", key.fileobj), nonce, packets)
                if answer:
                    answers[number] = answer
                    waiting.unregister(key.fileobj)
    return answers


def probe(targets: t.Sequence[PortTarget], seconds: float) -> t.List[PortProbe]:
    """Connect to all ports, many at a time, each for at most `seconds`."""
    questions = list(_questions(targets))
    answers: t.List[str] = []
    for begin in range(0, len(questions), AT_ONCE):
        answers += _ask(questions[begin : begin + AT_ONCE], seconds)
    return [
        {
            "host": question.target["host"],
            "address": question.target["address"],
            "protocol": question.protocol,
            "port": question.port,
            "seen": seen,
        }
        for question, seen in zip(questions, answers)
    ]
