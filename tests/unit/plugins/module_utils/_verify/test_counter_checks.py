"""Counters as NICs, software RDMA and TCP move them."""

from __future__ import annotations

import typing as t

import pytest
from ansible_collections.ipu.fabric.plugins.module_utils._model.checks import Check
from ansible_collections.ipu.fabric.plugins.module_utils._verify import parsers
from ansible_collections.ipu.fabric.plugins.module_utils._verify.counter_checks import check_counters
from ansible_collections.ipu.fabric.plugins.module_utils._verify.pods import Device
from ansible_collections.ipu.fabric.tests.unit.fixtures.paths import FIXTURES
from ansible_collections.ipu.fabric.tests.unit.plugins.module_utils._verify import test_checks as fabrics

Facts = t.Dict[str, t.Any]
DATA = 746000 * 65536  # bytes
QUIET = {"eth0": 12000, "net1": 900}
FULL = {"eth0": 12000, "net1": DATA + 10**9}


def moved(
    kinds: t.Optional[Facts], interfaces: t.Optional[t.Mapping[str, int]] = None, device: str = "mlx5_0"
) -> Facts:
    """Of one end; None: the pod sees no counters of its device."""
    return {
        "rdma": {} if kinds is None else {device: kinds},
        "interfaces": dict(QUIET if interfaces is None else interfaces),
    }


def checked(client: Facts, server: Facts, software: bool = False, **sent: str) -> Check:
    test = fabrics.traffic("write_bandwidth", "ib_write_bw", 97.8, "Gb/s", messages=746000, size=65536)
    test.update(moved=[client, server], sent={**test["sent"], **sent})
    devices = dict.fromkeys(("cp1", "w1"), Device("mlx5_0", software))
    return check_counters(t.cast(t.Any, [test]), devices)


@pytest.mark.parametrize(
    ("client", "server"),
    [
        (moved({"bytes": DATA * 2}), moved({"bytes": DATA})),  # shared by all pods of the node
        (moved({"packets": DATA // 4096}), moved({"packets": DATA // 1024})),
        (moved({"requests": 0}), moved({"requests": 746001})),
        (moved({"bytes": DATA, "requests": 0}), moved(None)),
        # rdma_rxe sends through the pod's interface.
        (moved({"packets": DATA // 1024}, FULL), moved({"packets": DATA // 1024}, FULL)),
    ],
)
def test_traffic_over_rdma(client: Facts, server: Facts) -> None:
    check = checked(client, server)
    assert (check.status, "mlx5_0 on " in check.seen) == ("passed", True)


@pytest.mark.parametrize(
    ("client", "server", "seen"),
    [
        (moved({"bytes": 0}, FULL), moved({"bytes": 4000}, FULL), "on cp1: 0 B of at least 48.9 GB; net1 of cp1"),
        (moved({"packets": 9}, FULL), moved({"packets": DATA // 1024}), "9 packets of at least 11936000 packets"),
        (moved({"requests": 0}, FULL), moved({"requests": 2}, FULL), "net1 of w1 moved 49.9 GB of 48.9 GB: it was TCP"),
        (moved({"bytes": DATA - 1}), moved({"bytes": DATA}), "mlx5_0 on cp1: 48.9 GB of at least 48.9 GB"),
        (moved(None, FULL), moved(None, FULL), "net1 of w1 moved 49.9 GB of 48.9 GB: it was TCP"),
    ],
)  # fmt: skip
def test_traffic_over_tcp_is_named(client: Facts, server: Facts, seen: str) -> None:
    check = checked(client, server)
    assert check.status == "failed"
    assert seen in check.seen


@pytest.mark.parametrize(
    ("sent", "seen"),
    [
        ({"device": "siw0", "transport": "IW"}, "ib_write_bw took siw0, which is iWARP: that goes over TCP"),
        ({"device": "mlx5_3"}, "ib_write_bw took mlx5_3, but the pod's address belongs to mlx5_0"),
    ],
)
def test_another_device_is_named(sent: Facts, seen: str) -> None:
    check = checked(moved({"bytes": DATA}), moved({"bytes": DATA}), **sent)
    assert (check.status, check.seen) == ("failed", seen)


@pytest.mark.parametrize("kinds", [None, {"requests": 0}])
def test_hardware_without_counters_is_proved_by_what_the_interfaces_did_not_carry(kinds: t.Optional[Facts]) -> None:
    check = checked(moved(kinds), moved(kinds))
    assert check.status == "passed"
    assert check.seen == (
        "no counters in the pods show the traffic of mlx5_0 on cp1 and mlx5_0 on w1, but the pods' interfaces moved "
        "12.9 kB of 48.9 GB: it was not TCP"
    )


@pytest.mark.parametrize("interfaces", [FULL, QUIET])
def test_software_without_counters_is_unproven(interfaces: Facts) -> None:
    check = checked(moved(None, interfaces), moved(None, interfaces), software=True)
    assert (check.status, "rdma of iproute2" in check.next) == ("unproven", True)
    assert checked(moved(None, {}), moved(None)).status == "unproven"


def test_a_pod_without_a_gid_proves_nothing() -> None:
    test = fabrics.traffic("rping", "rping", 10.0, "pings", messages=10, size=64)
    assert check_counters(t.cast(t.Any, [test]), {}).status == "unproven"


@pytest.mark.parametrize(
    ("name", "device", "messages"), [("ib_write_bw", "mlx5_0", 5000), ("ib_write_bw_rxe", "rxe0", 106)]
)
def test_what_perftest_sent(name: str, device: str, messages: int) -> None:
    text = (FIXTURES / f"probe/{name}.txt").read_text(encoding="utf-8")
    expected = {"device": device, "transport": "IB", "messages": messages, "size": 65536}
    assert parsers.read_sent("write_bandwidth", text) == expected
    assert parsers.read_sent("write_bandwidth", "Couldn't connect")["messages"] == 0
    assert parsers.read_sent("rping", "ping data: rdma-ping-0: A\n")["messages"] == 1


def test_counters_from_both_places_are_one() -> None:
    sysfs = "infiniband/rxe0/ports/1/hw_counters/sent_pkts:{n}\ninfiniband/rxe0/ports/1/hw_counters/lifespan:10\n"
    netlink = '[{{"ifindex":0,"ifname":"rxe0","port":1,"sent_pkts":{n},"rcvd_pkts":{n},"duplicate_request":9}}]'
    before, after = ((sysfs + netlink).format(n=n) for n in (5, 25))
    answers = {"before": parsers.Answer(0, before), "after": parsers.Answer(0, after)}
    assert parsers.read_moved(answers) == {"rdma": {"rxe0": {"packets": 40}}, "interfaces": {}}
    # A device that was not there before, one that was reset, and output that was cut off.
    assert parsers.read_moved({"after": answers["after"]})["rdma"] == {"rxe0": {"packets": 0}}
    assert parsers.read_moved({"before": answers["after"], "after": answers["before"]})["rdma"]["rxe0"] == {
        "packets": 0
    }
    # mlx5 counts requests in 32 bits.
    mlx5 = "infiniband/mlx5_0/ports/1/hw_counters/rx_write_requests:{}\n"
    wrapped = {
        "before": parsers.Answer(0, mlx5.format(2**32 - 5)),
        "after": parsers.Answer(0, mlx5.format(15)),
    }
    assert parsers.read_moved(wrapped)["rdma"] == {"mlx5_0": {"requests": 20}}
    assert parsers.read_moved({"after": parsers.Answer(0, netlink.format(n=5)[:-3])})["rdma"] == {}
