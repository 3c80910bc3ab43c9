from ansible_collections.ipu.fabric.plugins.filter.plan_nodes import plan_nodes

RDMA = {"rdma_netdevs": ["ens1f0"]}


def test_plan_nodes():
    plan = {
        "hosts": {
            "w1.site": {
                "node": "w1",
                "address": "10.0.0.1,fd00::1",
                "roles": ["worker"],
                "links": {"a": {"rdma_netdevs": ["ens1f0"]}},
            },
            "w2.site": {"node": "w2", "address": "10.0.0.2", "roles": [], "links": {"rdma-net": {"rdma_netdevs": []}}},
            "cp": {"node": "cp", "address": "10.0.0.3", "roles": ["control_plane"], "links": {}},
        },
        "vipu": {
            "controllers": [
                {"host": "v", "address": "10.5.0.20", "port": 8090, "label": "k=a", "serves": ["w1.site", "cp"]}
            ]
        },
        "nic_groups": [{"name": "fabric-0", "hosts": ["w1.site"], "resources": []}],
        "sources": [{"name": "chart gpu-operator v26.7.1", "sha256": "1f"}, {"name": "Helm", "sha256": "2e"}],
    }
    assert plan_nodes(plan) == {
        "rdma": ["w1"],
        "nic_groups": [{"name": "fabric-0", "hosts": ["w1.site"], "resources": [], "nodes": ["w1"]}],
        "taints": {},
        "addresses": {"w1": ["10.0.0.1", "fd00::1"], "w2": ["10.0.0.2"], "cp": ["10.0.0.3"]},
        "vipu_controllers": [{"host": "10.5.0.20", "port": 8090, "label": "k=a", "nodes": ["w1", "cp"]}],
        "chart_sha256": {"gpu-operator": "1f"},
    }
    taints = [{"key": "ipu.fabric/unproved", "effect": "NoSchedule"}]
    assert plan_nodes({**plan, "admission": {"mode": "enforce"}})["taints"] == {"w1": taints, "w2": taints}
    assert plan_nodes({**plan, "admission": {"mode": "warn"}})["taints"] == {}
