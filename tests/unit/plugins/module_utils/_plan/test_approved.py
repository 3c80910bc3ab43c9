"""What has moved since a plan was approved, in words; and files that are no plan of these hosts."""

import copy
import json

import pytest
from ansible_collections.ipu.fabric.plugins.module_utils._model.settings import PlanFile
from ansible_collections.ipu.fabric.plugins.module_utils._plan.approved import FINDINGS, decisions, moved
from ansible_collections.ipu.fabric.tests.unit.fixtures import site as sites

PLAN = json.loads(json.dumps(sites.plan(sites.site())))


def put(data, path, value):
    *above, last = path.split("/")
    for key in above:
        data = data[int(key) if isinstance(data, list) else key]
    if value is None and isinstance(data, dict):
        del data[last]
    else:
        data[int(last) if isinstance(data, list) else last] = value


def with_changes(changes):
    plan = copy.deepcopy(PLAN)
    for path, value in changes.items():
        put(plan, path, value)
    return plan


def told(approved, now):
    return [
        f"{each.host or 'all'}, {each.thing}: {'; '.join(each.fields)}"
        for each in moved(decisions(approved), decisions(now))
    ]


def test_a_plan_is_as_itself_in_any_order_of_its_keys():
    assert told(PLAN, dict(reversed(copy.deepcopy(PLAN).items()))) == []


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        (
            {"hosts/w1/links/rdma-net/netdev": "ens2f0", "hosts/w1/links/rdma-net/mtu": 4200},
            "w1, NIC on rdma-net: netdev: ens1f0 in the file, ens2f0 now; mtu: 9000 in the file, 4200 now",
        ),
        (
            {"hosts/w1/links/rdma-net/rate_gbps": 25.0},
            "w1, NIC on rdma-net: rate_gbps: 100.0 in the file, 25.0 now",
        ),
        (
            {"hosts/w1/links/rdma-net/addresses": []},
            "w1, NIC on rdma-net: addresses 10.5.0.12: address 10.5.0.12, prefix 24 in the file, absent now",
        ),
        ({"hosts/w1/address": ""}, "w1, Host: address: 10.88.0.12 in the file, none now"),
        ({"hosts/w1/roles": ["ipu"]}, "w1, Host: roles: only in the file worker"),
        ({"releases/network_operator": "26.4.0"}, "all, Releases: network_operator: 26.7.1 in the file, 26.4.0 now"),
        ({"cluster/single_node": True}, "all, Cluster: single_node: false in the file, true now"),
        (
            {"networks/0/subnets/0/range_start": "10.5.0.130"},
            "all, Network rdma-net: subnets 10.5.0.0/24 range_start: 10.5.0.129 in the file, 10.5.0.130 now",
        ),
        ({"networks/0/hosts": ["w2", "w1"]}, "all, Network rdma-net: hosts: w1, w2 in the file, w2, w1 now"),
        ({"vipu/controllers/0/port": 8091}, "all, V-IPU: controllers 10.5.0.20 port: 8090 in the file, 8091 now"),
        ({"hardening/level": "cis"}, "all, Hardening: level: baseline in the file, cis now"),
        ({"no_proxy/downloads": ["a"]}, "all, Addresses without the proxy: downloads: only now a"),
        ({"image_digests": None}, "all, Digests of images: {} in the file, absent now"),
        ({"hardening": []}, None),
        ({"networks/0": "x"}, None),
        ({"networks": {}}, None),
        ({"hosts/w1": []}, None),
        ({"hosts/w1/links": "x"}, None),
    ],
)
def test_a_difference_in_words(changes, sentence):
    """Also where a file has something else than a plan has there."""
    if sentence:
        assert told(PLAN, with_changes(changes)) == [sentence]
    else:
        assert told(with_changes(changes), PLAN)


@pytest.mark.parametrize(
    ("was", "becomes", "sentence"),
    [
        (
            [{"name": "a", "url": "x"}, {"name": "b"}],
            [{"name": "a", "url": "y"}, {"name": "b"}],
            "a url: x in the file, y now",
        ),
        ([{"name": "a"}, {"name": "b"}], [{"name": "b"}, {"name": "a"}], "order: a, b in the file, b, a now"),
        ([{"name": "a"}], [{"name": "a"}, {"name": "b"}], "b: absent in the file, name b now"),
        ([{"name": "a"}, {"name": "a"}], [{"name": "a"}], "name a, name a in the file, name a now"),
        ([1, 2], [2, 3], "only in the file 1, only now 3"),
        ([[1], None], [[1], True], "only in the file none, only now true"),
        (["same"], ["same"], ""),
    ],
)
def test_lists(was, becomes, sentence):
    found = told({**PLAN, "sources": was}, {**PLAN, "sources": becomes})
    assert found == ([f"all, Sources of downloads: {sentence}"] if sentence else [])


def test_what_was_seen_when_the_plan_was_made_is_no_decision():
    """A plan of bare hosts is still the one to apply when the cluster is there, days later, with other findings."""
    hosts = sites.finished()
    hosts["cp1"]["host"]["certificates"] = [sites.certificate(29)]
    hosts["w1"]["host"].update(memory_mb=900, disk_mb={"/var/lib": 60000}, swap=["/dev/sdb"])
    hosts["w1"]["rdma"]["gpus"] = [{"pci": "0000:82:00.0", "path": "", "numa_node": 0}]
    later = sites.plan(hosts, today="2027-11-23", plan_file=PlanFile("plan.json", "", PLAN))
    assert later["findings"]
    assert later["hosts"]["w1"]["gpus"]
    assert {each["check"] for each in later["findings"]}.isdisjoint({"plan-moved", "plan-file"})


def test_one_finding_for_each_difference():
    hosts = sites.site()
    hosts["w1"]["rdma"]["links"][1].update(netdev="ens2f0", rdma_netdevs=["ens2f0"])
    planned = sites.plan(hosts, plan_file=PlanFile("plan.json", "", PLAN))
    found = {(*each["hosts"], each["what"]): each for each in planned["findings"] if each["check"] == "plan-moved"}
    nic = found["w1", "NIC on rdma-net has to be as in the approved plan, plan.json."]
    assert nic["level"] == "error"
    assert "netdev: ens1f0 in the file, ens2f0 now" in nic["seen"]
    assert "ipu.fabric.plan without fabric_plan_file" in nic["next"]


def test_it_can_not_be_allowed():
    moved = with_changes({"releases/pause": "1"})
    planned = sites.plan(sites.site(), allow=["plan-moved", "plan-file"], plan_file=PlanFile("plan.json", "", moved))
    assert [each["check"] for each in planned["findings"] if each["level"] == "error"] == ["plan-moved"]


def test_a_site_that_has_changed_as_a_whole_is_no_endless_list():
    names = [f"w{number}" for number in range(1, 60)]
    hosts = {name: sites.host(number, ["kube_node"]) for number, name in enumerate(names, 20)}
    hosts["cp1"] = sites.host(11, ["kube_control_plane"])
    approved = json.loads(json.dumps(sites.plan(hosts)))
    for name in names:
        approved["hosts"][name]["links"]["rdma-net"]["mac"] = name
    planned = sites.plan(hosts, plan_file=PlanFile("plan.json", "", approved))
    found = [each for each in planned["findings"] if each["check"] == "plan-moved"]
    assert len(found) == FINDINGS + 1
    assert found[-1]["seen"] == f"{len(names) - FINDINGS} more differences"


@pytest.mark.parametrize(
    ("file", "seen"),
    [
        (PlanFile("plan.json", "No such file or directory", None), "No such file or directory"),
        (PlanFile("plan.json", "", {**PLAN, "schema": 2}), "its schema is 2, this release of the collection writes 1"),
        (PlanFile("plan.json", "", {"hosts": {}}), "its schema is None, this release of the collection writes 1"),
        (PlanFile("plan.json", "", {"schema": 1, "hosts": {}}), "it is a plan of other hosts: none"),
        (PlanFile("plan.json", "", {**PLAN, "hosts": {"x1": {}, "x2": {}}}), "it is a plan of other hosts: x1, x2"),
        (PlanFile("plan.json", "", with_changes({"hosts/w2": None})), "only in the inventory: w2"),
        (
            PlanFile("plan.json", "", with_changes({"hosts/w2": None, "hosts/w9": {}})),
            "only in the file: w9; only in the inventory: w2",
        ),
    ],
)
def test_a_file_that_is_no_plan_of_these_hosts_is_one_error(file, seen):
    planned = sites.plan(sites.site(), plan_file=file)
    (finding,) = planned["findings"]
    assert (finding["level"], finding["check"], finding["seen"]) == ("error", "plan-file", seen)
    assert "plan.json" in finding["what"]
    assert finding["next"]
