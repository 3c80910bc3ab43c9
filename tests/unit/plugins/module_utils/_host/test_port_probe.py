"""A real listener on this machine and real connections to it: what is open, refused, taken or not answered."""

from __future__ import annotations

import os
import socket
import time
import typing as t

import pytest
from ansible_collections.ipu.fabric.plugins.module_utils._host import port_probe

Ports = t.Tuple[int, int]


@pytest.fixture(autouse=True)
def control(monkeypatch) -> t.Iterator[None]:
    """A control socket of this test alone, and no listener after it."""
    monkeypatch.setattr(port_probe, "CONTROL", f"\0ipu.fabric.test.{os.getpid()}")
    yield
    port_probe.stop()


@pytest.fixture
def ports() -> Ports:
    """A TCP and a UDP port that are free."""
    with socket.create_server(("", 0)) as tcp, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp:
        udp.bind(("", 0))
        return tcp.getsockname()[1], udp.getsockname()[1]


def target(ports: Ports, address: str = "127.0.0.1", source: str = "") -> t.Any:
    return {"host": "w1", "address": address, "source": source, "tcp": [ports[0]], "udp": [ports[1]]}


def seen(ports: Ports, seconds: float = 1, **options: str) -> t.List[str]:
    return [probe["seen"] for probe in port_probe.probe([target(ports, **options)], seconds)]


def test_ports_are_open_while_the_listener_lives(ports):
    listener = port_probe.listen(ports[:1], ports[1:], 30)
    assert (listener["tcp"], listener["udp"]) == ([ports[0]], [ports[1]])
    assert seen(ports) == ["open", "open"]
    assert port_probe.stop() == listener["name"]
    assert seen(ports) == ["refused", "refused"]


def test_an_answer_comes_from_the_address_that_was_asked(ports):
    port_probe.listen([], ports[1:], 30)
    assert seen(ports, address="127.0.0.2", source="127.0.0.3")[1] == "open"


def test_ipv6(ports):
    if not os.path.exists("/proc/net/if_inet6"):
        pytest.skip("no IPv6 here")
    port_probe.listen(ports[:1], ports[1:], 30)
    assert seen(ports, address="::1") == ["open", "open"]


def test_a_port_in_use_is_left_alone(ports):
    with socket.create_server(("127.0.0.1", ports[0])):
        assert port_probe.listen(ports[:1], [], 30)["tcp"] == []


def test_a_new_listener_replaces_what_an_interrupted_run_has_left(ports):
    first = port_probe.listen(ports[:1], ports[1:], 30)
    second = port_probe.listen(ports[:1], ports[1:], 30)
    assert (second["tcp"], second["udp"]) == (first["tcp"], first["udp"])
    assert port_probe.stop() == second["name"] != first["name"]
    assert port_probe.stop() == ""


def test_the_listener_ends_when_its_time_is_up(ports):
    port_probe.listen(ports[:1], [], 0.3)
    end = time.monotonic() + 10
    while seen(ports)[0] == "open" and time.monotonic() < end:
        time.sleep(0.1)
    assert port_probe.stop() == ""


def test_other_packets_are_not_answered(ports):
    port_probe.listen([], ports[1:], 30)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stranger:
        stranger.settimeout(0.3)
        stranger.sendto(b"hello", ("127.0.0.1", ports[1]))
        with pytest.raises(socket.timeout):
            stranger.recv(10)


def test_no_answer_is_filtered(ports):
    """The backlog of these servers is full, and nobody reads the packets: neither answers."""
    with socket.socket() as full, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as silent:
        full.bind(("127.0.0.1", ports[0]))
        full.listen(0)
        silent.bind(("127.0.0.1", ports[1]))
        with socket.create_connection(("127.0.0.1", ports[0])):
            found = port_probe.probe([target(ports)] * 2, 0.7)
            assert [probe["seen"] for probe in found] == ["filtered"] * 4


def test_an_address_that_this_host_does_not_have_is_no_source(ports):
    assert seen(ports, source="192.0.2.1") == ["unreachable", "unreachable"]


def test_a_name_that_is_not_known_here(ports):
    assert seen(ports, address="no-such-host.invalid") == ["unresolved", "unresolved"]


def test_more_connections_than_a_process_may_have_files(ports, monkeypatch):
    monkeypatch.setattr(port_probe, "AT_ONCE", 3)
    port_probe.listen(ports[:1], ports[1:], 30)
    found = port_probe.probe([target(ports)] * 5, 2)
    assert [probe["protocol"] for probe in found] == ["TCP", "UDP"] * 5
    assert {probe["seen"] for probe in found} == {"open"}


PROTOCOL = 143 + os.getpid() % 100  # unassigned; another test run at the same time has another one


def packets_of(number: int, address: str = "127.0.0.1") -> t.List[str]:
    asked: t.Any = {"host": "cp2", "address": address, "source": "", "tcp": [], "udp": [], "ip": [number]}
    return [probe["seen"] for probe in port_probe.probe([asked], 0.7)]


@pytest.mark.parametrize("address", ["127.0.0.1", "::1"])
def test_ip_protocols(address):
    """Where listener and sender are on one host, each of them gets every packet: none of them is answered twice."""
    try:
        socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_RAW, PROTOCOL).close()
    except OSError:
        pytest.skip("raw sockets are for root, or there is no IPv6 here")
    listener = port_probe.listen([], [], 30, [PROTOCOL])
    assert listener["ip"] == [PROTOCOL]
    assert packets_of(PROTOCOL, address) == ["open"]
    assert port_probe.stop() == listener["name"]
    assert packets_of(PROTOCOL, address) != ["open"]


RAW = """\
  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode ref pointer drops
  112: 0B00580A:0070 00000000:0000 07 00000000:00000000 00:00000000 00000000     0        0 51042 2 0000000000000000 0
"""


def test_a_protocol_that_a_program_uses_is_left_alone(monkeypatch):
    assert port_probe.used_protocols(RAW) == {112}
    assert port_probe.used_protocols("") == set()
    monkeypatch.setattr(port_probe, "read_text", lambda path: RAW)
    assert port_probe.listen([], [], 30, [112])["ip"] == []
