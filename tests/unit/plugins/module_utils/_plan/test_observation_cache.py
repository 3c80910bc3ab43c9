"""A host that is down keeps its place in the plan."""

import json

import pytest
from ansible_collections.ipu.fabric.plugins.module_utils._plan import observation_cache
from ansible_collections.ipu.fabric.tests.unit.fixtures.site import errors, plan, site

THEN = "2026-11-21T12:00:00+00:00"
UNREACHABLE = {
    "source": "host",
    "what": "The host could not be observed.",
    "where": "preflight_info",
    "seen": "no route to host",
    "next_step": "Start it.",
}


def down(hosts, name):
    return {**hosts, name: {"groups": hosts[name]["groups"], "address": "", "errors": [UNREACHABLE]}}


def test_planned_as_it_was_seen():
    hosts = site()
    last = observation_cache.parse_cache(json.dumps(observation_cache.update_cache(hosts, {}, THEN)))
    planned = plan(observation_cache.recall_hosts(down(hosts, "w1"), last), allow=["unobserved"])
    before = plan(hosts)
    changed = {key for key in planned if planned[key] != before[key]}
    assert changed == {"findings", "summary"}
    assert planned["summary"]["hosts"]["w1"]["word"] == "unknown"
    (finding,) = planned["findings"]
    assert (finding["check"], finding["level"], finding["hosts"]) == ("unobserved", "warning", ["w1"])
    assert finding["seen"] == f"no route to host (at preflight_info); planned from its last observation, of {THEN}"


def test_not_seen_is_an_error_and_never_seen_says_what_follows():
    hosts = site()
    last = observation_cache.update_cache(hosts, {}, THEN)
    assert (
        "planned from its last observation"
        in errors(plan(observation_cache.recall_hosts(down(hosts, "w1"), last)))["unobserved"]["seen"]
    )
    unknown = errors(plan(observation_cache.recall_hosts(down(hosts, "w1"), {})))["unobserved"]["seen"]
    assert unknown.endswith("its addresses are not known, so pods may get them")


def test_what_is_kept():
    hosts = site()
    first = observation_cache.update_cache(hosts, {}, THEN)
    assert {entry["when"] for entry in first.values()} == {THEN}
    later = observation_cache.update_cache({name: down(hosts, "w1")[name] for name in ("cp1", "w1")}, first, "now")
    assert {name: entry["when"] for name, entry in later.items()} == {"cp1": "now", "w1": THEN}
    assert later["w1"] == first["w1"]


def test_a_host_that_answers_is_not_recalled():
    hosts = site()
    assert observation_cache.recall_hosts(hosts, observation_cache.update_cache(hosts, {}, THEN)) == hosts


@pytest.mark.parametrize("text", ["", "[]", "{", '{"w1": 1}', '{"w1": {"when": "x"}}'])
def test_a_file_that_is_something_else(text):
    assert observation_cache.parse_cache(text) == {}


@pytest.mark.parametrize(("then", "now", "recalled"), [("10.0.0.2", "10.0.0.2", True), ("10.0.0.2", "10.0.0.9", False)])
def test_what_was_seen_at_another_address_is_another_host(then, now, recalled):
    hosts = site()
    hosts["w1"]["reached"] = then
    last = observation_cache.update_cache(hosts, {}, THEN)
    gone = down(hosts, "w1")
    gone["w1"]["reached"] = now
    assert ("recalled" in observation_cache.recall_hosts(gone, last)["w1"]) is recalled
