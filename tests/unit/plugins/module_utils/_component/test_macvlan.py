"""What the role macvlan asks for, of the networks of a plan."""

from ansible_collections.ipu.fabric.plugins.module_utils._component.macvlan import Seen, decide
from ansible_collections.ipu.fabric.tests.unit.fixtures.components import defaults


def test_what_networks_stand_on():
    pool = {"name": "rdma-net", "subnet": "10.5.0.0/24", "perNodeBlockSize": 8}
    networks = [
        {"name": "a", "namespace": "default", "pool": pool},
        {"name": "b", "namespace": "jobs", "pool": None, "pools": []},
        {"name": "c", "namespace": "jobs"},
        {"name": "d", "namespace": "default", "pool": pool, "pools": [pool, {"name": "rdma-net.ipv6"}]},
    ]
    given = {"networks": networks, "pool_namespace": "operator", "namespace_labels": {"x": "y"}}
    objects = decide(defaults("macvlan", **given), Seen()).objects
    assert [o["metadata"]["name"] for o in objects] == ["jobs", "rdma-net", "rdma-net", "rdma-net.ipv6"]
    assert [o["kind"] for o in objects] == ["Namespace", "IPPool", "IPPool", "IPPool"]
    assert objects[0]["metadata"]["labels"] == {"x": "y"}
    assert objects[1]["spec"] == {"subnet": "10.5.0.0/24", "perNodeBlockSize": 8}
    assert objects[1]["metadata"]["namespace"] == "operator"


def test_a_plan_says_more_of_a_network_than_is_needed():
    taken = {
        "name": "rail",
        "namespace": "jobs",
        "master": "eth1",
        "mode": "bridge",
        "mtu": 9000,
        "ipam": {},
        "pools": [],
    }
    decided = decide(defaults("macvlan", networks=[{**taken, "hosts": ["w1"], "rdma": True}]), Seen())
    assert decided.networks == [taken]
    assert decided.pods == [{"name": "rail", "namespace": "jobs", "hosts": ["w1"]}]
