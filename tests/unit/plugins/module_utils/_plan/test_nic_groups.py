"""Hosts in groups by their NICs, and which policy of the network operator has the device plugin."""

from __future__ import annotations

import typing as t

import pytest
from ansible_collections.ipu.fabric.plugins.module_utils._plan.report import as_text
from ansible_collections.ipu.fabric.tests.unit.fixtures.site import errors, finished, plan, running, site

Data = t.Dict[str, t.Any]


def renamed(hosts: Data, host: str, name: str) -> Data:
    """With another name of the host's RDMA NIC."""
    link = hosts[host]["rdma"]["links"][1]
    link.update(netdev=name, rdma_netdevs=[name])
    return hosts


def policy(kind: str = "NicClusterPolicy", **more: t.Any) -> Data:
    name = "nic-cluster-policy" if kind == "NicClusterPolicy" else "fabric-0"
    seen = {"kind": kind, "name": name, "sections": ["rdmaSharedDevicePlugin"], "node_selector": {}, "ours": True}
    return {**seen, **more}


def cluster(*policies: Data, uneven: bool = True) -> Data:
    hosts = finished()
    hosts["cp1"]["host"]["cluster"] = running(nic_policies=list(policies))
    return renamed(hosts, "w2", "enp1s0") if uneven else hosts


def test_hosts_alike_are_in_no_group() -> None:
    assert "nic_groups" not in plan(site())


def test_groups_of_hosts_that_differ() -> None:
    groups = plan(renamed(site(), "w2", "enp1s0"))["nic_groups"]
    assert [group["hosts"] for group in groups] == [["w1"], ["w2"]]
    assert [group["resources"][0]["selectors"] for group in groups] == [
        {"ifNames": ["ens1f0"]},
        {"ifNames": ["enp1s0"]},
    ]
    assert all(group["name"].startswith("fabric-") and len(group["name"]) == 15 for group in groups)
    lines = as_text(plan(renamed(site(), "w2", "enp1s0")))
    assert f"NicNodePolicy {groups[0]['name']}: ens1f0 on w1" in lines
    # A host more leaves the names of the other groups, and so their nodes.
    assert plan(renamed(site(), "w1", "ens9"))["nic_groups"][1]["name"] == groups[0]["name"]


@pytest.mark.parametrize(
    ("settings", "policies", "grouped"),
    [
        ({}, [], True),
        ({"nic_policy": "cluster"}, [], False),
        ({"network_operator_version": "26.1.2", "kubernetes_version": "1.35.4"}, [], False),
        ({"stack": "spiderpool"}, [], False),
        ({}, [policy()], False),  # a cluster keeps what it has
        ({}, [policy(ours=False)], False),  # by whomever
        ({}, [policy("NicNodePolicy")], True),
        ({"nic_policy": "node"}, [policy()], True),
        ({"nic_policy": "cluster"}, [policy("NicNodePolicy")], False),
        ({}, [policy(sections=["ofedDriver"])], True),
    ],
)
def test_which_policy_has_the_plugin(settings: Data, policies: t.Sequence[Data], grouped: bool) -> None:
    hosts = cluster(*policies)
    if "kubernetes_version" in settings:
        hosts = renamed(site(), "w2", "enp1s0")
    assert ("nic_groups" in plan(hosts, **settings)) == grouped


def test_one_group_is_a_policy_too() -> None:
    planned = plan(cluster(policy("NicNodePolicy"), uneven=False))
    assert [group["hosts"] for group in planned["nic_groups"]] == [["w1", "w2"]]
    assert planned["findings"] == []


def test_a_name_of_another_nic() -> None:
    """The other NIC of w2 is called as the fabric's NIC on w1: one list for all nodes would offer both."""
    hosts = renamed(site(), "w2", "enp1s0")
    other = {**hosts["w2"]["rdma"]["links"][1], "netdev": "ens1f0", "rdma_netdevs": ["ens1f0"], "addresses": []}
    hosts["w2"]["rdma"]["links"].append(other)
    chosen = [{"name": "rdma-net", "select": {"subnet": "10.5.0.0/24"}}]
    assert "rdma-resource" not in errors(plan(hosts, networks=chosen), "warning")
    found = errors(plan(hosts, networks=chosen, nic_policy="cluster"), "warning")["rdma-resource"]
    assert found["hosts"] == ["w2"]
    assert found["next"].endswith("Or set fabric_nic_policy to node, with network operator 26.4 or later.")


def test_an_operator_without_node_policies() -> None:
    old = {"network_operator_version": "26.1.2", "kubernetes_version": "1.35.4"}
    found = errors(plan(site(), nic_policy="node", **old))["nic-policy"]
    assert found["what"] == "Network operator 26.1.2 has no NicNodePolicy."


@pytest.mark.parametrize(
    ("settings", "policies", "seen"),
    [
        ({"nic_policy": "node"}, [policy()], "moves from the NicClusterPolicy to the NicNodePolicy."),
        ({"nic_policy": "cluster"}, [policy("NicNodePolicy")], "moves from the NicNodePolicy to the NicClusterPolicy."),
        # A run that was killed in the middle of it.
        ({"nic_policy": "node"}, [policy(sections=[]), policy("NicNodePolicy")], ""),
        ({"nic_policy": "node"}, [policy(sections=[])], ""),
    ],
)
def test_a_move_is_said(settings: Data, policies: t.Sequence[Data], seen: str) -> None:
    found = errors(plan(cluster(*policies), **settings), "warning")
    assert found.get("nic-policy", {"what": ""})["what"].endswith(seen)
    assert ("nic-policy" in found) == bool(seen)


@pytest.mark.parametrize(
    ("policies", "level", "seen"),
    [
        (
            [policy("NicNodePolicy", name="gpu", ours=False), policy()],
            "error",
            "NicNodePolicy gpu, which this collection did not create, has",
        ),
        (
            [policy("NicNodePolicy", name="gpu", ours=False, node_selector={"a": "b"}), policy("NicNodePolicy")],
            "warning",
            "NicNodePolicy gpu, which this collection did not create, has rdmaSharedDevicePlugin, for nodes with a=b",
        ),
        ([policy("NicNodePolicy", name="gpu", ours=False), policy("NicNodePolicy")], "error", "NicNodePolicy gpu"),
        (
            [policy(ours=False), policy("NicNodePolicy")],
            "error",
            "NicClusterPolicy nic-cluster-policy, which this collection did not create",
        ),
        ([policy("NicNodePolicy", ours=False, sections=["ofedDriver"]), policy()], "", ""),
    ],
)
def test_policies_of_others(policies: t.Sequence[Data], level: str, seen: str) -> None:
    found = [each for each in plan(cluster(*policies))["findings"] if each["check"] == "nic-policy"]
    assert [each["level"] for each in found] == ([level] if level else [])
    assert all(seen in each["seen"] for each in found)
