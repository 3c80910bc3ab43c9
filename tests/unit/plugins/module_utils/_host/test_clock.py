"""Which service sets the clock, and whether an NTP server answers: servers on the loopback address, with faults."""

import contextlib
import socket
import struct
import threading

import pytest
from ansible_collections.ipu.fabric.plugins.module_utils._host import clock

MARK = b"\x01\x02\x03\x04\x05\x06\x07\x08"


def answer(packet, mode=clock.SERVER, stratum=2, mark=None):
    """What a server makes of a question: the client's time comes back as the originate time."""
    fields = list(clock.FORM.unpack(packet))
    origin = struct.unpack("!II", mark) if mark else fields[13:15]
    return clock.FORM.pack(0x20 | mode, stratum, 0, -20, *[1] * 5, *origin, *[2] * 4)


@contextlib.contextmanager
def server(reply):
    """An NTP server for one question after another. reply: what becomes of a packet; empty is silence."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as bound:
        bound.bind(("127.0.0.1", 0))
        bound.settimeout(0.05)
        end = threading.Event()

        def serve():
            while not end.is_set():
                with contextlib.suppress(OSError):
                    packet, sender = bound.recvfrom(512)
                    if reply(packet):
                        bound.sendto(reply(packet), sender)

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield bound.getsockname()[1]
        finally:
            end.set()
            thread.join()


@pytest.mark.parametrize(
    ("reply", "answers"),
    [
        (answer, True),
        (lambda packet: answer(packet, stratum=1), True),
        (lambda packet: answer(packet, stratum=16), False),  # it has no time itself
        (lambda packet: answer(packet, stratum=0), False),  # it refuses
        (lambda packet: answer(packet, mode=3), False),  # a mirror, no server
        (lambda packet: answer(packet, mark=MARK), False),  # the answer to somebody else's question
        (lambda packet: packet[:20], False),
        (lambda packet: b"", False),
    ],
)
def test_a_server_that_answers(reply, answers, monkeypatch):
    monkeypatch.setattr(clock, "RESEND", 0.1)
    with server(reply) as port:
        assert clock.ask_server("127.0.0.1", port, 1) is answers


def test_a_question_is_of_version_4_and_from_a_client():
    packet = clock.question(MARK)
    assert (len(packet), packet[0], packet[-8:]) == (48, 0b00100011, MARK)
    assert clock.is_answer(answer(packet), MARK)


def test_servers_that_do_not_answer(monkeypatch):
    monkeypatch.setattr(clock, "SECONDS", 0.6)
    with server(answer) as port:
        names = ["127.0.0.1", "name.invalid", "192.0.2.1", "192.0.2.2", ""]
        assert clock.ask_servers(names, port) == {
            "127.0.0.1": True,
            "name.invalid": False,
            "192.0.2.1": False,
            "192.0.2.2": False,
        }
    assert clock.ask_servers([]) == {}


def test_servers_are_asked_at_once_and_not_waited_for(monkeypatch):
    """Each question waits until the others are under way, too; one goes on for longer than anybody waits."""
    together, end = threading.Barrier(3), threading.Event()

    def ask(name, _port, answers):
        together.wait()
        if name == "slow":
            end.wait()
        answers[name] = True

    monkeypatch.setattr(clock, "SECONDS", 2)
    monkeypatch.setattr(clock, "_ask", ask)
    try:
        assert clock.ask_servers(["one", "slow", "two"]) == {"one": True, "slow": False, "two": True}
    finally:
        end.set()


def test_services_that_run():
    shown = "Id=chrony.service\nActiveState=active\n\nId=systemd-timesyncd.service\nActiveState=inactive\n\n"
    assert clock.parse_services(shown + "Id=chrony.service\nActiveState=active\n") == ["chrony"]
    assert clock.parse_services("") == []
