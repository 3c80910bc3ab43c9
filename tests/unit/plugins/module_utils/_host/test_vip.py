import json
import socket

import pytest
from ansible_collections.ipu.fabric.plugins.module_utils._common.command import Done
from ansible_collections.ipu.fabric.plugins.module_utils._host import vip

ADDRESSES = [
    {},
    {"ifname": "lo", "addr_info": [{"local": "127.0.0.1", "prefixlen": 8}]},
    {"ifname": "eno1", "addr_info": [{"local": "10.88.0.11"}, {"local": "10.88.0.50"}, {"local": "fd00:88::50"}]},
]
MAC = "02:00:00:00:00:50"


def neighbour(*states, **more):
    return {"dst": "10.88.0.50", "dev": "eno1", "lladdr": MAC, "state": list(states), **more}


class Host:
    """`ip` on a host that shows one thing after another."""

    def __init__(self, addresses=(), neighbours=((),), routes=()):
        self.addresses, self.neighbours, self.routes = addresses, list(neighbours), routes

    def run(self, argv):
        if "neigh" in argv:
            found = self.neighbours.pop(0) if len(self.neighbours) > 1 else self.neighbours[0]
        else:
            found = self.addresses if "addr" in argv else self.routes
        return Done(0, json.dumps(list(found)))


@pytest.fixture(autouse=True)
def asked(monkeypatch):
    """What came of the connection."""
    answers = {"10.88.0.50": ""}
    monkeypatch.setattr(vip, "knock", lambda address: answers[address])
    monkeypatch.setattr(vip.time, "sleep", lambda seconds: None)
    return answers


@pytest.mark.parametrize(
    ("address", "device"), [("10.88.0.50", "eno1"), ("fd00:88:0::50", "eno1"), ("10.88.0.5", ""), ("127.0.0.1", "lo")]
)
def test_who_holds_it(address, device):
    assert vip.parse_holder(json.dumps(ADDRESSES), address) == device


@pytest.mark.parametrize("text", ["", "{}", "[{}]", "not JSON", "null"])
def test_an_ip_that_says_nothing(text):
    assert vip.parse_holder(text, "10.88.0.50") == ""
    assert vip.parse_neighbour(text) == ("", True)
    assert vip.parse_gateways(text) == []


@pytest.mark.parametrize(
    ("neighbours", "mac"),
    [
        ([[]], ""),
        ([[neighbour("REACHABLE")]], MAC),
        ([[neighbour("PERMANENT")]], MAC),
        ([[neighbour("FAILED")]], ""),
        # An entry of a host that is gone stays for a while, until the kernel has asked again.
        ([[neighbour("DELAY")], [neighbour("PROBE")], [neighbour("FAILED")]], ""),
        ([[neighbour("DELAY")], [neighbour("REACHABLE")]], MAC),
        ([[neighbour("INCOMPLETE")], [neighbour("FAILED")]], ""),
    ],
)
def test_who_answers_on_the_local_network(neighbours, mac):
    seen = vip.read_vip("10.88.0.50", root="/nowhere", run=Host(neighbours=neighbours).run)
    assert (seen["held"], seen["answered"], seen["mac"]) == (False, "", mac)


def test_a_neighbour_without_a_decision_is_not_waited_for_without_end():
    host = Host(neighbours=[[neighbour("STALE")]])
    assert vip.read_vip("10.88.0.50", root="/nowhere", run=host.run, seconds=0)["mac"] == ""


def test_its_holder_asks_nobody(tmp_path, asked):
    asked.clear()
    (tmp_path / "etc/keepalived").mkdir(parents=True)
    (tmp_path / "etc/keepalived/keepalived.conf").write_text("vrrp_instance mine {\n}\n")
    routes = [{"dst": "default", "gateway": "10.88.0.1"}, {"dst": "10.88.0.0/24", "dev": "eno1"}]
    assert vip.read_vip("10.88.0.50", root=str(tmp_path), run=Host(ADDRESSES, routes=routes).run) == {
        "address": "10.88.0.50",
        "held": True,
        "answered": "",
        "mac": "",
        "gateways": ["10.88.0.1"],
        "foreign_keepalived": True,
    }


@pytest.mark.parametrize("text", ["", "k8s.example.org", "10.88.0.50/24"])
def test_no_address(text):
    assert vip.read_vip(text, run=Host().run) is None


def test_the_roles_own_configuration_is_not_foreign():
    assert not vip.is_foreign(f"{vip.OWN_MARK}\nvrrp_instance control_plane {{\n}}\n")
    assert not vip.is_foreign("")
    assert vip.is_foreign("vrrp_instance other {\n}\n")


def test_knock(monkeypatch):
    monkeypatch.undo()
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        assert vip.knock("127.0.0.1", port) == "open"
    assert vip.knock("127.0.0.1", port) == "refused"
    assert vip.knock("::", 0) in ("", "refused")
