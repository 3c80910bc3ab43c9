"""A failed check once more: its object, and the commands that show it and repeat it."""

import json

import pytest
from ansible_collections.ipu.fabric.plugins.module_utils._verify.again import (
    LONGEST,
    LOOK,
    PLACES,
    VERIFY,
    live_object,
    look_command,
    nodes_at_fault,
    repeat_command,
)
from ansible_collections.ipu.fabric.plugins.module_utils._verify.catalog import CHECK_TYPES, result
from ansible_collections.ipu.fabric.tests.bench import sites
from ansible_collections.ipu.fabric.tests.unit.fixtures import pages


def failed(check="mtu", **more):
    return result(check, False, "1500", "9000", **more)


def pair(first, second):
    return failed("ping", pair=(first, second), network="a")


@pytest.mark.parametrize(
    ("checks", "nodes"),
    [
        ([failed(node="w1")], ["w1"]),
        ([failed(node="w1"), failed(node="w2")], ["w1", "w2"]),
        ([pair("w1", "w2")], ["w1", "w2"]),
        ([pair("w1", "w2"), pair("w3", "w1")], ["w1"]),  # what they have in common
        ([pair("w1", "w1 (second pod)")], ["w1"]),
        ([failed("policy")], []),
        ([], []),
    ],
)
def test_which_nodes_a_repetition_needs(checks, nodes):
    assert nodes_at_fault(checks) == nodes


@pytest.mark.parametrize(
    ("checks", "options"),
    [
        ([failed(node="w1")], ' -e \'{"verify_checks": ["mtu"], "verify_nodes": ["w1"]}\''),
        ([failed(node=f"w{number}") for number in range(9)], ' -e \'{"verify_checks": ["mtu"]}\''),
        ([failed("policy")], ' -e \'{"verify_checks": ["policy"]}\''),
    ],
)
def test_the_command_that_repeats_it(checks, options):
    assert repeat_command(checks) == f"{VERIFY}{options}"
    assert repeat_command(checks, any_cluster=True) == f"ansible-playbook ipu.fabric.prove_cluster{options}"


def test_the_command_that_shows_it():
    assert look_command(failed("node", node="w1")) == "kubectl describe node w1"
    assert look_command(failed("attachment", network="rail0")).endswith("metadata.name=rail0 -o yaml")
    assert look_command(failed(node="w1")) == ""


def test_tables_name_checks():
    assert set(LOOK) | set(PLACES) <= set(CHECK_TYPES)


def test_places_are_those_of_a_probe():
    """Each place of a check that a probe has made has something, by the same keys."""
    plan = pages.one_host()
    probe = sites.proof(plan)
    (node,), network = probe["pods"], plan["networks"][0]["name"]
    found = {name: live_object(failed(name, node=node, network=network), probe) for name in PLACES}
    assert {name for name, text in found.items() if not text} <= {
        *("ipu_operator", "ipu_certificate", "vipu_proxy", "webhook"),  # of the IPU operator
        *("policy_routes", "workloads", "kubelet_requests", "rail_isolation", "gateway", "image_digest"),  # none here
    }
    assert json.loads(found["attachment"])["type"] == "macvlan"


def test_an_object_is_shown_without_secrets():
    text = live_object(failed("policy"), {"policy": {"token": "hunter2hunter2", "state": "error"}})
    assert "hunter2" not in text
    assert '"state": "error"' in text


def test_what_the_probe_lacks_is_not_shown_and_long_objects_are_cut():
    assert live_object(failed(node="w9"), {"pods": {"w1": {}}}) == ""
    assert live_object(failed("ping", pair=("a", "b")), {"pods": {}}) == ""
    text = live_object(failed("kinds"), {"kinds": ["x" * 99] * 99})
    assert len(text) < LONGEST + 99
    assert text.endswith("probe.json has all of it")
