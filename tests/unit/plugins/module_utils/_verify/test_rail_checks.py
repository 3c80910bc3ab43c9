"""Rails that are to be apart, or to reach each other: what an answer says, and who is asked."""

from __future__ import annotations

import json
import typing as t

import pytest
from ansible_collections.ipu.fabric.plugins.module_utils._model.checks import Expect
from ansible_collections.ipu.fabric.plugins.module_utils._verify import parsers
from ansible_collections.ipu.fabric.plugins.module_utils._verify.pairs import MOST_CROSSINGS, crossings
from ansible_collections.ipu.fabric.plugins.module_utils._verify.rail_checks import check_rails
from ansible_collections.ipu.fabric.tests.unit.plugins.module_utils._verify.test_checks import crossing

PLAN: t.Any = {"networks": [{"name": "rail0"}, {"name": "rail1"}]}
BACK = {"network": "rail1", "other": "rail0", "from": "w1", "to": "cp1"}


@pytest.mark.parametrize(
    ("seen", "apart", "together", "said"),
    [
        ({}, "passed", "failed", "no answer"),  # on the rail that was asked on
        ({"far": False, "mac": ""}, "passed", "failed", "no answer"),
        ({"near": True}, "failed", "passed", "cp1 on rail0 reaches w1 on rail1 on layer 2"),
        ({"near": True, "far": False, "mac": ""}, "failed", "passed", "on layer 2"),
        ({"mac": ""}, "failed", "passed", "cp1 on rail0 reaches w1 on rail1 by a router"),
        ({"asked": ""}, "unproven", "failed", "no"),
        ({"far": False, "mac": "", "error": "exec failed"}, "failed", "failed", ""),
    ],
)
def test_what_an_answer_says(seen: t.Dict[str, t.Any], apart: str, together: str, said: str) -> None:
    """One direction is enough."""
    probe: t.Any = {"crossings": [crossing(**BACK), crossing(**seen)]}
    for wanted, status in (("expect", apart), ("forbid", together)):
        (check,) = check_rails(PLAN, probe, Expect(rail_isolation=wanted))
        assert (check.status, check.subject) == (status, "rail0 and rail1")
        assert said in check.seen


@pytest.mark.parametrize(
    ("networks", "wanted", "said"),
    [
        (2, "", "fabric_rail_isolation does not say whether rails must be isolated"),
        (1, "", "there is only one network"),
        (1, "expect", "there is only one network"),
        (0, "", "planned without a fabric network"),
    ],
)
def test_why_rails_are_not_tested(networks: int, wanted: str, said: str) -> None:
    """A site with one network was told that nobody had said whether its rails are apart."""
    plan: t.Any = {"networks": PLAN["networks"][:networks]}
    probe: t.Any = {"crossings": []}
    assert [check.seen for check in check_rails(plan, probe, Expect(rail_isolation=wanted))] == [said]


def test_what_the_pod_prints() -> None:
    """With rails that are apart: silence on the link-local address, and an answer on the rail that was asked on."""
    ping = "2 packets transmitted, {0} received, 0% packet loss\nrtt min/avg/max/mdev = 0.1/0.1/0.1/0.0 ms\n"
    text = "".join(
        f"@@ {name}\n{body}\n@@ rc {rc}\n"
        for name, body, rc in (
            ("near", ping.format(0), 1),
            ("far", ping.format(2), 0),
            ("neighbour", "10.1.0.2 lladdr 4e:32:90:e3:26:11 REACHABLE", 0),
        )
    )
    near, far, mac = parsers.read_crossing(text, "fe80::2")
    assert (near["received"], far["received"], mac) == (0, 2, "4e:32:90:e3:26:11")
    assert parsers.read_crossing(text, "")[0]["seen"] == "not asked"


def test_a_link_local_address_is_read_where_there_is_one() -> None:
    own = {"family": "inet6", "local": "fe80::2", "scope": "link"}
    read = parsers.read_links(json.dumps([{"ifname": "net1", "addr_info": [own]}, {"ifname": "net2"}])) or {}
    assert [link.get("link_local") for link in read.values()] == ["fe80::2", None]


def test_each_two_rails_are_tested_in_both_directions_with_different_nodes() -> None:
    rails = {f"rail{number}": ["a", "b", "c", "d"] for number in range(8)}
    found = crossings(rails)
    assert {(one[0], other[0]) for one, other in found} == {(x, y) for x in rails for y in rails if x != y}
    assert all(one[1] != other[1] for one, other in found)
    assert {end[1] for pair in found for end in pair} == {"a", "b", "c", "d"}


def test_a_node_is_no_other_node_and_many_rails_have_so_many_tests() -> None:
    assert crossings({"rail0": ["a"], "rail1": ["a"]}) == []
    many = crossings({f"rail{number}": [f"n{node}" for node in range(300)] for number in range(30)})
    assert MOST_CROSSINGS / 2 < len(many) <= MOST_CROSSINGS
