"""What tools print, as data; and which pods are tested against which."""

from __future__ import annotations

import json
import typing as t
from itertools import combinations, islice, permutations

import pytest
from ansible_collections.ipu.fabric.plugins.module_utils._verify import pairs, parsers
from ansible_collections.ipu.fabric.tests.unit.fixtures.paths import FIXTURES


def fixture(name: str) -> str:
    return (FIXTURES / "probe" / name).read_text(encoding="utf-8")


def test_an_answer_that_was_cut_off_is_no_answer() -> None:
    assert parsers.sections("@@ uid\n0\n@@ rc 0\n@@ links\n[{") == {"uid": parsers.Answer(0, "0")}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (fixture("limits.txt"), {"soft": "8388608", "hard": "8388608"}),
        (
            "Max locked memory         unlimited            unlimited            bytes",
            {"soft": "unlimited", "hard": "unlimited"},
        ),
        ("cat: /proc/self/limits: Permission denied", None),
    ],
)
def test_read_limits(text: str, expected: object) -> None:
    answers = {"uid": parsers.Answer(0, "1000"), "limits": parsers.Answer(0, text)}
    assert parsers.read_limits(answers) == {"uid": 1000, "memlock": expected}


def test_read_links_has_a_link_local_address_apart_from_the_others() -> None:
    links = parsers.read_links(fixture("links.json"))
    assert links is not None
    assert links["net1"] == {
        "mtu": 1500,
        "kind": "macvlan",
        "mac": "ca:aa:09:c6:7c:dd",
        "addresses": [{"address": "10.5.0.130", "prefix": 24}],
        "link_local": "fe80::c8aa:9ff:fec6:7cdd",
    }
    assert links["lo"]["addresses"] == []


@pytest.mark.parametrize("text", ["", "sh: ip: not found", '[{"ifname"'])
def test_read_links_of_no_json_is_none(text: str) -> None:
    assert parsers.read_links(text) is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('[{"dst":"default","gateway":"10.244.1.1","dev":"eth0","flags":[]}]\n\n[]', ["eth0"]),
        ('[{"dst":"default","dev":"eth0"}]\n[{"dst":"default","gateway":"fd00::1","dev":"net1"}]', ["eth0", "net1"]),
        ('[{"dst":"default","nexthops":[{"dev":"eth0"},{"dev":"net1"}]}]', ["eth0", "net1"]),
        ("[]\n\n[]", []),
        ("sh: ip: not found", None),
    ],
)
def test_read_routes(text: str, expected: object) -> None:
    assert parsers.read_routes(text) == expected


# Of iproute2 6.1, in a namespace whose router advertises a prefix; later ones name the protocol.
def test_what_routers_advertise_in_a_pod() -> None:
    six: t.Dict[str, t.Any] = {"family": "inet6", "local": "2001:db8:7:1:50c7:73ff:fe7d:ccf0", "prefixlen": 64}
    six.update(scope="global", dynamic=True, valid_life_time=86398)
    given = {"family": "inet", "local": "10.5.0.130", "prefixlen": 24, "scope": "global", "label": "net1"}
    for more in ({"mngtmpaddr": True}, {"mngtmpaddr": True, "protocol": "kernel_ra"}):
        links = parsers.read_links(json.dumps([{"ifname": "net1", "addr_info": [{**six, **more}, given]}]))
        assert [each.get("origin") for each in (links or {})["net1"]["addresses"]] == ["advertised", None]
    routes = (
        '[{"dst":"default","gateway":"10.244.1.1","dev":"eth0","flags":[]}]\n'
        '[{"dst":"default","gateway":"fe80::70fd:4eff:fe13:10c9","dev":"net1","protocol":"ra","metric":1024,"flags":[],'
        '"expires":1796,"metrics":[{"hoplimit":64}],"pref":"medium"}]'
    )
    assert parsers.read_advertised(parsers.Answer(0, routes)) == ["net1"]
    assert parsers.read_routes(routes) == ["eth0", "net1"]


# Of iproute2 6.1: a rule and a default route of a table, IPv4 and IPv6, as they were set by hand.
RULES = (
    '[{"priority":0,"src":"all","table":"local"},{"priority":32764,"src":"172.16.0.0","srclen":16,"table":"9"},'
    '{"priority":32765,"src":"172.16.11.10","table":"107"},{"priority":32766,"src":"172.16.11.10","table":"108"}]'
    '\n\n[{"priority":0,"src":"all","table":"local"},{"priority":32765,"src":"fd00:11::10","table":"107"}]'
)
ROUTE4 = '{"dst":"default","gateway":"172.16.11.254","dev":"net1","table":"107","flags":[]}'
ROUTE6 = '{"dst":"default","gateway":"fd00:11::1","dev":"net1","table":"107","metric":1024,"flags":[],"pref":"medium"}'
MAIN = '{"dst":"default","gateway":"169.254.1.1","dev":"eth0","flags":[]}'
LOCAL = '{"type":"local","dst":"172.16.11.10","dev":"net1","table":"local","protocol":"kernel","flags":[]}'
LOOKUPS = {"all": "local", "172.16.11.10": "107", "fd00:11::10": "107"}
GATEWAYS = [{"gateway": "172.16.11.254", "dev": "net1"}, {"gateway": "fd00:11::1", "dev": "net1"}]


@pytest.mark.parametrize(
    ("rules", "tables", "expected"),
    [
        (RULES, f"[{ROUTE4},{MAIN},{LOCAL},{ROUTE6}]\n\n[{ROUTE6}]", {"rules": LOOKUPS, "defaults": {"107": GATEWAYS}}),
        (RULES.splitlines()[0], "[]", {"rules": {"all": "local", "172.16.11.10": "107"}, "defaults": {}}),
        ("[]\n\nRTNETLINK answers: Address family not supported", "[]\n\n[]", {"rules": {}, "defaults": {}}),
        ("ip: invalid option -- 'j'", "[]", None),
        (RULES, "", None),
        (None, "[]", None),
    ],
)
def test_read_policy(rules: t.Optional[str], tables: str, expected: object) -> None:
    answers = {"tables": parsers.Answer(0, tables)}
    if rules is not None:
        answers["rules"] = parsers.Answer(0, rules)
    assert parsers.read_policy(answers) == expected


MAIN_ROUTES = (
    '[{"dst":"default","gateway":"169.254.1.1","dev":"eth0","flags":[]},'
    '{"dst":"10.5.0.0/24","dev":"net1","protocol":"kernel","scope":"link","prefsrc":"10.5.0.130","flags":[]},'
    '{"dst":"10.244.0.0/16","gateway":"10.244.1.1","dev":"eth0","flags":[]},'
    '{"type":"local","dst":"10.5.0.130","dev":"net1","table":"local","flags":[]}]\n\n'
    '[{"dst":"10.5.0.0/24","dev":"net1"},{"dst":"fe80::/64","dev":"net1","protocol":"kernel","flags":[]}]'
)


def test_the_main_table_has_no_name() -> None:
    assert parsers.read_main_routes(parsers.Answer(0, MAIN_ROUTES)) == [
        {"dst": "10.5.0.0/24", "dev": "net1"},
        {"dst": "10.244.0.0/16", "dev": "eth0"},
        {"dst": "fe80::/64", "dev": "net1"},
    ]


@pytest.mark.parametrize("answer", [None, parsers.Answer(127, "sh: ip: not found")])
def test_routes_that_cannot_be_read_are_none(answer: t.Optional[parsers.Answer]) -> None:
    assert parsers.read_main_routes(answer) is None


REPLY = "2 packets transmitted, 2 received, 0% packet loss\nrtt min/avg/max/mdev = 0.05/0.06/0.07/0.01 ms"


def test_read_gateways() -> None:
    text = (
        f"@@ gateway 10.5.0.1 net1\n{REPLY}\n\n@@ rc 0\n"
        "@@ neighbour 10.5.0.1 net1\n10.5.0.1 lladdr 02:00:00:00:00:01 REACHABLE\n\n@@ rc 0\n"
        "@@ gateway fd00:6::1 net2\n2 packets transmitted, 0 received\n\n@@ rc 1\n"
    )
    wanted = {("10.5.0.1", "net1"): "rail-a", ("fd00:6::1", "net2"): "rail-b", ("10.7.0.1", "net3"): "rail-c"}
    found = parsers.read_gateways(text, wanted)
    assert [(each["network"], each["ping"]["received"], each["mac"]) for each in found] == [
        ("rail-a", 2, "02:00:00:00:00:01"),
        ("rail-b", 0, ""),
    ]


@pytest.mark.parametrize(
    ("text", "mac"),
    [
        ("10.5.0.1 lladdr 02:00:00:00:00:01 STALE", "02:00:00:00:00:01"),
        ("fd00::1 lladdr 02:00:00:00:00:01 router REACHABLE", "02:00:00:00:00:01"),
        ("10.5.0.1  INCOMPLETE", ""),
        ("10.5.0.1  FAILED", ""),
        ("", ""),
    ],
)
def test_who_answers_for_an_address(text: str, mac: str) -> None:
    assert parsers.read_neighbour(text) == mac


def test_read_network() -> None:
    text = "\n".join(
        [
            "@@ uid\n0\n\n@@ rc 0",
            f"@@ limits\n{fixture('limits.txt')}\n@@ rc 0",
            f"@@ links\n{fixture('links.json')}\n@@ rc 0",
            '@@ routes\n[{"dst":"default","dev":"eth0"}]\n\n[]\n@@ rc 0',
            "@@ vipu 10.5.0.20 8090\n\n@@ rc 0",
            "@@ vipu fd00::20 8090\nnc: connect failed: Connection refused\n@@ rc 1",
        ]
    )
    facts = parsers.read_network(text, "timed out after 60 s")
    assert facts["error"] == "timed out after 60 s"
    assert (facts["uid"], facts["tool_missing"], facts["default_routes"]) == (0, False, ["eth0"])
    assert facts["vipu"] == [
        {"host": "10.5.0.20", "port": 8090, "rc": 0, "seen": ""},
        {"host": "fd00::20", "port": 8090, "rc": 1, "seen": "nc: connect failed: Connection refused"},
    ]


def test_an_image_without_ip_is_told_apart_from_a_pod_without_links() -> None:
    facts = parsers.read_network("@@ links\nsh: 1: ip: not found\n@@ rc 127")
    assert (facts["tool_missing"], facts["links"]) == (True, None)


def test_read_rdma() -> None:
    text = "\n".join(
        [
            "@@ files\nissm0\nrdma_cm\numad0\nuverbs0\n@@ rc 0",
            f"@@ ports\n{fixture('ports.txt')}\n@@ rc 0",
            f"@@ gids\n{fixture('gids.txt')}\n@@ rc 0",
            "@@ tools\n/usr/bin/rping\n/usr/bin/ib_write_bw\n@@ rc 0",
        ]
    )
    facts = parsers.read_rdma(text)
    assert facts["files"] == ["issm0", "rdma_cm", "umad0", "uverbs0"]
    assert facts["ports"] == {
        "mlx5_0/1": {"state": "ACTIVE", "link_layer": "Ethernet"},
        "mlx5_1/1": {"state": "DOWN", "link_layer": "InfiniBand"},
    }
    assert facts["tools"] == ["rping", "ib_write_bw"]
    found = [
        (gid["index"], gid["type"], gid["netdev"])
        for gid in facts["gids"]
        if gid["gid"] == parsers.gid_of("10.5.0.130")
    ]
    assert found == [(4, "IB/RoCE v1", "net1"), (5, "RoCE v2", "net1")]


def test_no_device_files_are_an_empty_list() -> None:
    facts = parsers.read_rdma("@@ files\nls: cannot access '/dev/infiniband': No such file or directory\n@@ rc 2")
    assert (facts["files"], facts["ports"], facts["gids"], facts["tools"]) == ([], {}, [], [])


@pytest.mark.parametrize(
    ("address", "gid"),
    [
        ("10.5.0.130", "0000:0000:0000:0000:0000:ffff:0a05:0082"),
        ("fd00:5::1", "fd00:0005:0000:0000:0000:0000:0000:0001"),
    ],
)
def test_gid_of(address: str, gid: str) -> None:
    assert parsers.gid_of(address) == gid


@pytest.mark.parametrize(
    ("mac", "gid"),
    [
        (
            "00:00:10:29:fe:80:00:00:00:00:00:00:0c:42:a1:03:00:2c:7a:b2",
            "fe80:0000:0000:0000:0c42:a103:002c:7ab2",
        ),
        ("0c:42:a1:2c:7a:b2", ""),
        ("", ""),
    ],
)
def test_port_gid(mac: str, gid: str) -> None:
    assert parsers.port_gid(mac) == gid


IPUTILS = """PING 10.5.0.138 (10.5.0.138) from 10.5.0.130 net1: 1472(1500) bytes of data.
1480 bytes from 10.5.0.138: icmp_seq=1 ttl=64 time=0.081 ms
1480 bytes from 10.5.0.138: icmp_seq=2 ttl=64 time=0.051 ms

--- 10.5.0.138 ping statistics ---
2 packets transmitted, 2 received, 0% packet loss, time 201ms
rtt min/avg/max/mdev = 0.051/0.066/0.081/0.015 ms"""
BUSYBOX = """PING 10.5.0.138 (10.5.0.138): 56 data bytes
64 bytes from 10.5.0.138: seq=0 ttl=64 time=0.120 ms

--- 10.5.0.138 ping statistics ---
2 packets transmitted, 2 packets received, 0% packet loss
round-trip min/avg/max = 0.090/0.105/0.120 ms"""
TOO_BIG = """PING 10.5.0.138 (10.5.0.138) from 10.5.0.130 net1: 8972(9000) bytes of data.
ping: local error: message too long, mtu=1500
ping: local error: message too long, mtu=1500

--- 10.5.0.138 ping statistics ---
2 packets transmitted, 0 received, +2 errors, 100% packet loss, time 204ms"""
ROUTER = """PING 10.6.0.9 (10.6.0.9) 8972(9000) bytes of data.
From 10.5.0.1 icmp_seq=1 Frag needed and DF set (mtu = 1400)

--- 10.6.0.9 ping statistics ---
1 packets transmitted, 0 received, +1 errors, 100% packet loss, time 0ms"""


@pytest.mark.parametrize(
    ("rc", "text", "expected"),
    [
        (0, IPUTILS, {"sent": 2, "received": 2, "rtt_ms": 0.066, "path_mtu": None, "supported": True}),
        (0, BUSYBOX, {"sent": 2, "received": 2, "rtt_ms": 0.105, "path_mtu": None, "supported": True}),
        (1, TOO_BIG, {"sent": 2, "received": 0, "rtt_ms": None, "path_mtu": 1500, "supported": True}),
        (1, ROUTER, {"sent": 1, "received": 0, "rtt_ms": None, "path_mtu": 1400, "supported": True}),
        (1, "ping: unrecognized option: M\nBusyBox v1.36.1", {"sent": 0, "supported": False}),
        (2, "ping: invalid option -- 'M'", {"sent": 0, "supported": False}),
        (127, "sh: ping: not found", {"sent": 0, "supported": False, "seen": "sh: ping: not found"}),
        (1, "", {"sent": 0, "received": 0, "supported": True, "seen": "no output"}),
    ],
)
def test_read_ping(rc: int, text: str, expected: dict[str, object]) -> None:
    found = parsers.read_ping(parsers.Answer(rc, text))
    assert {key: found[key] for key in expected} == expected


@pytest.mark.parametrize(
    ("address", "mtu", "size"), [("10.5.0.138", 9000, 8972), ("fd00::138", 1500, 1452), ("10.5.0.138", 0, 0)]
)
def test_a_full_size_packet_fills_the_mtu(address: str, mtu: int, size: int) -> None:
    assert parsers.ping_payload(address, mtu) == size


@pytest.mark.parametrize(
    ("check", "name", "value", "unit"),
    [
        ("write_bandwidth", "ib_write_bw.txt", 97.79, "Gb/s"),
        ("read_latency", "ib_read_lat.txt", 2.96, "us"),
        # As Soft-RoCE gave them: without a peak, which a test of fixed time does not measure.
        ("write_bandwidth", "ib_write_bw_rxe.txt", 0.027613, "Gb/s"),
        ("read_latency", "ib_read_lat_rxe.txt", 1051.4, "us"),
        ("rping", "rping.txt", 3.0, "pings"),
    ],
)
def test_read_traffic(check: str, name: str, value: float, unit: str) -> None:
    assert parsers.read_traffic(check, fixture(name)) == {"value": value, "unit": unit}


@pytest.mark.parametrize("check", ["write_bandwidth", "read_latency"])
def test_a_test_that_broke_off_has_no_figure(check: str) -> None:
    broken = fixture("ib_write_bw.txt" if check == "write_bandwidth" else "ib_read_lat.txt").split("#bytes")[0]
    assert parsers.read_traffic(check, broken + "Unexpected CM event bl blka 8\n Failed to connect\n")["value"] is None


def test_read_host_traffic() -> None:
    found = parsers.read_host_traffic(fixture("host_traffic.txt"))
    assert (found["value"], found["unit"]) == (23.4, "Gb/s")
    assert found["directions"]["host -> buffer -> tile"] == 56.5


@pytest.mark.parametrize("text", ["", "Error: no such device", '{"repeat_0": {}}', '{"repeat_0": 3}'])
def test_host_traffic_without_figures(text: str) -> None:
    assert parsers.read_host_traffic(text)["value"] is None


@pytest.mark.parametrize(("count", "most"), [(0, 10), (1, 10), (2, 10), (5, 10)])
def test_few_nodes_try_every_pair(count: int, most: int) -> None:
    nodes = [f"n{i}" for i in range(count)]
    assert pairs.choose_pairs(nodes, most) == list(combinations(nodes, 2))


@pytest.mark.parametrize(("count", "most"), [(2, 0), (3, 1), (6, 10), (7, 3), (200, 100), (201, 300), (1000, 100)])
def test_many_nodes_try_a_ring_and_its_diameters(count: int, most: int) -> None:
    nodes = [f"n{i}" for i in range(count)]
    chosen = pairs.choose_pairs(nodes, most)
    assert len({frozenset(pair) for pair in chosen}) == len(chosen) <= max(1, 2 * count)
    others = {node: {other for pair in chosen for other in pair if node in pair} - {node} for node in nodes}
    assert all(len(found) >= min(3, count - 1) for found in others.values())
    assert all(a != b for a, b in chosen)


@pytest.mark.parametrize("count", [0, 1, 2, 3, 5, 16, 201])
def test_steps_have_each_pair_once_and_begin_with_those_that_tell_nodes_from_paths(count: int) -> None:
    nodes = [f"n{i}" for i in range(count)]
    steps = list(pairs.by_distance(nodes))
    tried = [pair for step in steps for pair in step]
    assert sorted(tried) == sorted(permutations(nodes, 2))
    needed = [pair for step in steps[: pairs.NEEDED] for pair in step]
    for node in nodes if count > 1 else []:
        asked, served = {b for a, b in needed if a == node}, {a for a, b in needed if b == node}
        assert len(asked) == len(served) == min(2, count - 1) or count == 3
    # What follows is spread: each few steps reach all over the ring.
    far = [nodes.index(step[0][1]) for step in steps[2:6]]
    assert count < 16 or max(far) - min(far) > count // 3


@pytest.mark.parametrize("count", [2, 5, 14, 200])
def test_rounds_keep_every_pair_and_use_no_node_twice(count: int) -> None:
    for step in islice(pairs.by_distance([f"n{i}" for i in range(count)]), 4):
        rounds = pairs.rounds(step, lambda pair: pair)
        assert sorted(pair for some in rounds for pair in some) == sorted(step)
        assert len(rounds) <= 3
        for some in rounds:
            nodes = [node for pair in some for node in pair]
            assert len(nodes) == len(set(nodes))


# Outputs by perftest's own formats: REPORT_FMT and REPORT_FMT_LAT of perftest_parameters.h, for all lengths of figures.


@pytest.mark.parametrize("bandwidth", [0.04, 9.87, 97.79, 392.15, 12345.67])
@pytest.mark.parametrize("extension", ["", "\t    12.50"])
def test_bandwidth_by_the_format_of_perftest(bandwidth: float, extension: str) -> None:
    head = " #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]"
    head += "    CPU_Util[%]" if extension else ""
    form = " {:<7d}    {:<10d}       {:<7.2f}            {:<7.2f}\t\t     {:<7.6f}"
    row = form.format(65536, 5000, bandwidth + 1, bandwidth, 0.18)
    found = parsers.read_traffic("write_bandwidth", f"{head}\n{row}{extension}\n{'-' * 87}\n")
    assert found == {"value": bandwidth, "unit": "Gb/s"}


@pytest.mark.parametrize("latency", [0.83, 2.96, 147.21, 10234.5])
def test_latency_by_the_format_of_perftest(latency: float) -> None:
    head = " #bytes #iterations    t_min[usec]    t_max[usec]  t_typical[usec]    t_avg[usec]    t_stdev[usec]   "
    head += "99% percentile[usec]   99.9% percentile[usec] "
    form = " {:<7d} {:d}          {:<7.2f}        {:<7.2f}      {:<7.2f}  \t       {:<7.2f}     \t{:<7.2f}\t\t{:<7.2f}"
    row = (form + " \t\t{:<7.2f}").format(2, 1000, 0.5, latency + 9, latency, latency + 0.1, 0.2, latency + 1, 99)
    assert parsers.read_traffic("read_latency", f"{head}\n{row}\n") == {"value": latency, "unit": "us"}


def test_the_last_try_counts() -> None:
    table = fixture("ib_write_bw.txt")
    assert parsers.read_traffic("write_bandwidth", table.replace("97.79", "11.11") + table)["value"] == 97.79


def test_what_the_server_of_rping_prints_is_not_the_clients() -> None:
    text = fixture("rping.txt").replace("ping data", "server ping data")
    assert parsers.read_traffic("rping", text)["value"] == 0
