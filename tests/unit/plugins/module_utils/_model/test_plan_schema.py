"""Whole plans against docs/plan.schema.json: every field is there, has its type, and has a name that is published."""

import copy
import json

import jsonschema
import pytest
from ansible_collections.ipu.fabric.tests.unit.fixtures.paths import ROOT
from ansible_collections.ipu.fabric.tests.unit.fixtures.site import change, errors, host, link, plan, preflight, site

SCHEMA = json.loads((ROOT / "docs/plan.schema.json").read_text(encoding="utf-8"))
RAILS = [{"name": f"rail-{rail}", "select": {"name": f"rail{rail}"}} for rail in range(8)]
BOTH = {"name": "rdma-net", "families": ["ipv4", "ipv6"], "gateway": "10.5.0.1, fd00:5::1"}


def closed(schema):
    """The schema without room for other keys than those that it names."""
    strict = copy.deepcopy(schema)
    for part in [strict, *strict["$defs"].values()]:
        if "properties" in part:
            part["additionalProperties"] = False
    return strict


def validate(planned, schema=SCHEMA):
    jsonschema.Draft202012Validator(closed(schema)).validate(json.loads(json.dumps(planned)))


@pytest.fixture
def hosts():
    """A site of eight rails and two families."""
    hosts = site()
    for number, name in ((12, "w1"), (13, "w2")):
        links = hosts[name]["rdma"]["links"]
        links[1]["addresses"].append({"address": f"fd00:5::{number}", "prefix": 64})
        links += [link(f"rail{rail}", f"10.{20 + rail}.0.{number}") for rail in range(8)]
    return hosts


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"networks": RAILS},
        {"networks": [BOTH]},
        {"networks": [BOTH], "ipam": "whereabouts"},
        {"ipam": "whereabouts", "kubernetes_version": "1.32.1", "network_operator_version": "25.7.0"},
        {"stack": "spiderpool", "networks": [{**RAILS[0], "gateway": "10.20.0.1"}]},
        {"gpu": True, "ipu": False, "require_rdma": False},
        {"vipu_hosts": [{"host": "10.5.0.20", "serves": ["w1"]}, {"host": "v", "serves": ["w2"], "label": "rack=b"}]},
    ],
)
def test_plans_without_errors(hosts, settings):
    if "networks" not in settings:
        settings = {**settings, "networks": [{"name": "rdma-net", "select": {"name": "ens1f0"}}]}
    planned = plan(hosts, **settings)
    assert errors(planned) == {}
    validate(planned)


@pytest.mark.parametrize(
    ("settings", "check"),
    [
        ({"networks": [{"name": "rdma-net", "select": {"name": "ib*"}}]}, "fabric-nic"),  # a network without NICs
        ({"networks": [{"nmae": "x"}], "pod_cidr": "x", "kubernetes_version": "x", "stack": "x"}, "networks"),
        ({"networks": [RAILS[0]], "pods_per_node": 900}, "subnet"),  # a network without addresses
        ({"networks": RAILS, "network_operator_version": "9.9.9", "vipu_hosts": ["localhost"]}, "vipu-address"),
    ],
)
def test_plans_with_errors(hosts, settings, check):
    change(("host",), {})(hosts, ("w2",))
    planned = plan(hosts, **settings)
    assert {check, "unobserved"} <= set(errors(planned))
    validate(planned)


def test_a_single_host():
    validate(plan({"solo": host(11, ["kube_control_plane"])}))


def test_a_preflight_is_a_part_of_a_plan(hosts):
    checked = preflight(hosts, networks=RAILS)
    planned = plan(hosts, networks=RAILS)
    assert set(checked) == {"schema", "hosts", "findings"}
    validate({**planned, **checked})


@pytest.mark.parametrize(
    "spoil",
    [
        lambda planned: planned.pop("vipu"),
        lambda planned: planned.update(extra=1),
        lambda planned: planned["networks"][0].update(mtu="9000"),
        lambda planned: planned["networks"][0]["subnet"].pop("capacity"),
        lambda planned: planned["networks"][0]["pool"].update(perNodeBlockSize=None),
        lambda planned: planned["hosts"]["w1"].update(roles=["etcd"]),
        lambda planned: planned["hosts"]["w1"]["links"]["rdma-net"].pop("altname"),
    ],
)
def test_what_is_no_plan_is_refused(spoil):
    planned = plan(site())
    validate(planned)
    spoil(planned)
    with pytest.raises(jsonschema.ValidationError):
        validate(planned)


def test_fields_say_what_they_mean():
    fields = SCHEMA["$defs"]["PlannedNetwork"]["properties"]
    assert fields["mtu"]["description"] == "of pods, in bytes"
    assert SCHEMA["$defs"]["PlannedLink"]["properties"]["address"]["type"] == "string"
    assert all(part["description"] for part in SCHEMA["$defs"].values())
