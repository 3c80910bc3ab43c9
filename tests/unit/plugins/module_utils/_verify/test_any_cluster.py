"""The proof of a plan that was derived from a cluster: nothing fails for what only a planned site has."""

from __future__ import annotations

import copy
import typing as t

import pytest
from ansible_collections.ipu.fabric.plugins.module_utils._model.checks import Check, Expect
from ansible_collections.ipu.fabric.plugins.module_utils._plan.derived import derive_plan
from ansible_collections.ipu.fabric.plugins.module_utils._verify.catalog import OF_OTHERS, ONE_ADDRESS
from ansible_collections.ipu.fabric.plugins.module_utils._verify.checks import check_fabric, outcome
from ansible_collections.ipu.fabric.plugins.module_utils._verify.pod_manifests import pod_manifest
from ansible_collections.ipu.fabric.plugins.module_utils._verify.pods import second_targets, targets
from ansible_collections.ipu.fabric.tests.unit.plugins.module_utils._plan import test_derived as clusters
from ansible_collections.ipu.fabric.tests.unit.plugins.module_utils._verify import test_checks as fabrics
from ansible_collections.ipu.fabric.tests.unit.plugins.module_utils._verify import test_pods

Facts = t.Dict[str, t.Any]
EXPECT = Expect(ipu=False, memlock="0", rdma_bandwidth="90", rdma_latency="5")
WHEREABOUTS = {"type": "whereabouts", "range": "10.5.0.0/24", "range_start": "10.5.0.128", "gateway": "10.5.0.1"}
STATIC = {"type": "static", "addresses": [{"address": "10.5.0.129/24"}]}
NODES = [clusters.node(name, "rdma/shared") for name in ("cp1", "w1")]


def derived(ipam: Facts, *more: Facts, **config: t.Any) -> Facts:
    network = clusters.annotated(clusters.nad("rdma-net", ipam, master="eth1", **config), "rdma/shared")
    return t.cast(Facts, derive_plan(clusters.cluster(network, *more, nodes=NODES)))


def probe() -> Facts:
    """What the probe sees of it: no operator, no policy, no MacvlanNetwork, locked memory as on any host."""
    facts = fabrics.probe()
    facts.update(releases=[], kinds=[], policy=None, pools=[], address_sources=[], ipu={}, webhook=None, images=[])
    facts["networks"]["rdma-net"]["state"] = None
    for pod in facts["pods"].values():
        for user in ("root", "user"):
            pod[user]["memlock"] = {"soft": "65536", "hard": "65536"}
        pod["root"]["vipu"] = []
    return facts


def failing(checks: t.Sequence[Check]) -> t.Dict[str, str]:
    return {check.check: check.seen for check in checks if check.status in ("failed", "unproven")}


def test_a_healthy_network_of_others_is_proved() -> None:
    checks = check_fabric(derived(WHEREABOUTS), probe(), EXPECT)
    assert (failing(checks), outcome(checks)) == ({}, "proved")
    skipped = {check.check: check.seen for check in checks if check.status == "skipped"}
    assert skipped["certificates"] == "hosts are not asked: the plan was derived from the cluster"
    assert skipped["memlock_user"] == "64 KiB; verify_memlock expects nothing"
    assert skipped["network"] == "it is only a NetworkAttachmentDefinition"
    assert {"rdma_resource", "gid", "rping", "address", "gateway", "ping"} <= fabrics.by_status(checks, "passed")


def test_expectations_that_a_site_states_are_checked() -> None:
    checks = check_fabric(derived(WHEREABOUTS), probe(), EXPECT._replace(memlock="unlimited"))
    assert set(failing(checks)) == {"memlock_root", "memlock_user"}
    assert not any("ipu.fabric" in check.next.replace("ipu.fabric.prove_cluster", "") for check in checks)


def test_a_policy_that_is_there_has_to_be_ready() -> None:
    facts = {**probe(), "policy": {"state": "notReady"}}
    assert failing(check_fabric(derived(WHEREABOUTS), facts, EXPECT)) == {"policy": "notReady"}


@pytest.mark.parametrize("multus", [[], ["kube-system/kube-multus-ds"]])
def test_where_no_multus_is_known_the_advice_is_to_install_it(multus: t.List[str]) -> None:
    facts = probe()
    facts["addons"].update(multus=multus, multus_nodes=["cp1", "w1"] if multus else [])
    facts["pods_without"]["rdma-net"] = ["jobs/a: multus did not attach it"]
    for pod in facts["pods"].values():
        pod["network_status"] = []
        del pod["root"]["links"]["net1"]
    said = {
        each.check: each.next for each in check_fabric(derived(WHEREABOUTS), facts, EXPECT) if each.status == "failed"
    }
    for check in ("multus", "workloads"):
        assert said[check].startswith("No DaemonSet of multus was found. Install multus: ") is not bool(multus)
    assert ("kube-multus-ds" in said["multus"]) is bool(multus)


def test_what_is_left_out_is_in_the_report() -> None:
    plan = derived(
        WHEREABOUTS, clusters.nad("br", {}, type="bridge"), clusters.nad("gone", {"type": "nv-ipam", "poolName": "x"})
    )
    checks = check_fabric(plan, probe(), EXPECT)
    seen = {check.network: (check.status, check.seen) for check in checks if check.check == "network"}
    assert seen["default/br"][0] == "skipped"
    assert seen["default/gone"] == ("failed", "nv-ipam has no IPPool x")
    assert failing(checks) == {"network": "nv-ipam has no IPPool x"}


def test_pods_of_two_nodes_with_one_address() -> None:
    """host-local allocates on each node independently. A pod that pings its own address hears itself."""
    facts = probe()
    facts["pods"]["w1"]["root"]["links"]["net1"]["addresses"][0]["address"] = "10.5.0.129"
    facts["pods"]["w1"]["rdma"]["gids"] = facts["pods"]["cp1"]["rdma"]["gids"]
    facts["pairs"][0]["address"] = "10.5.0.129"
    plan = derived({"type": "host-local", "subnet": "10.5.0.0/24"})
    failed = [check for check in check_fabric(plan, facts, EXPECT) if check.status == "failed"]
    assert {check.check for check in failed} == {"unique", "ping", "full_size"}
    said = {check.check: check.next for check in failed}
    assert said["unique"].startswith("host-local allocates on each node independently")
    assert said["ping"].startswith("First act on `Addresses are unique`")


def test_that_no_pods_share_an_address_of_host_local_is_luck() -> None:
    plan = derived({"type": "host-local", "subnet": "10.5.0.0/24"})
    (check,) = [check for check in check_fabric(plan, probe(), EXPECT) if check.status in ("failed", "unproven")]
    assert (check.check, check.status) == ("unique", "unproven")
    assert "2 addresses, but host-local gives out the same ones on each node" in check.seen
    alone = probe()
    del alone["pods"]["w1"]
    assert "unique" not in failing(check_fabric(plan, alone, EXPECT))


def test_one_address_has_no_pairs() -> None:
    plan, facts = derived(STATIC), probe()
    assert second_targets(t.cast(t.Any, plan)) == []
    del facts["pods"]["w1"]
    facts.update(pairs=[], traffic=[])
    checks = check_fabric(plan, facts, EXPECT)
    assert failing(checks) == {}
    assert {check.check for check in checks if check.seen == ONE_ADDRESS} >= {"ping", "full_size", "rping"}


@pytest.mark.parametrize(
    ("cni", "kind", "failed"),
    [("ipvlan", "ipvlan", False), ("ipvlan", "macvlan", True), ("host-device", "", False), ("sriov", "", False)],
)
def test_interfaces_of_other_plugins(cni: str, kind: str, failed: bool) -> None:
    facts = probe()
    for pod in facts["pods"].values():
        pod["root"]["links"]["net1"]["kind"] = kind
    plan = derived(WHEREABOUTS, type=cni, chain=[{"type": "rdma"}])
    assert set(failing(check_fabric(plan, facts, EXPECT))) == ({"interface"} if failed else set())


@pytest.mark.parametrize(("cni", "count"), [("macvlan", "1"), ("sriov", "2")])
def test_each_network_of_devices_takes_one(cni: str, count: str) -> None:
    """A shared device is one for all networks of a pod."""
    other = clusters.annotated(
        clusters.nad("second", WHEREABOUTS, type=cni, master="eth1", chain=[{"type": "rdma"}]), "rdma/shared"
    )
    plan = derived(WHEREABOUTS, other, type=cni, chain=[{"type": "rdma"}])
    node = copy.deepcopy(NODES[0])
    manifest = pod_manifest(targets(t.cast(t.Any, plan))[0], t.cast(t.Any, plan), node, test_pods.OPTIONS)
    limits = t.cast(t.Any, manifest)["spec"]["containers"][-1]["resources"]["limits"]
    assert limits == {"rdma/shared": count}


def test_what_to_do_on_a_cluster_of_others_names_no_setting_of_ours():
    assert not [advice for advice in OF_OTHERS.values() if "fabric_" in advice or "ipu.fabric" in advice]
