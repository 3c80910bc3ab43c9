"""Which nodes an upgrade takes, in which turns, and what forbids it."""

import pytest
from ansible_collections.ipu.fabric.plugins.module_utils._plan.upgrade import MARK, plan_upgrade, upgrade_text
from ansible_collections.ipu.fabric.tests.unit.fixtures.site import errors, running, site


def planes(*versions):
    """A site whose hosts are control planes too, as many as there are versions of API servers."""
    hosts = site()
    for name, version in zip(hosts, versions):
        hosts[name]["groups"] = ["kube_control_plane"]
        hosts[name]["host"]["cluster"] = running(version=version)
    return hosts


def node(name, version="1.35.4", ready=True, marked=False):
    return {
        "name": name,
        "ready": ready,
        "version": version,
        "components": {},
        "own_labels": [MARK] if marked else [],
    }


def components(version, etcd="3.6.6-0"):
    names = ("kube-apiserver", "kube-controller-manager", "kube-scheduler")
    return {**dict.fromkeys(names, version), "etcd": etcd}


def nodes(hosts, **changed):
    """What the cluster has of them. A control plane whose components are not given runs what its kubelet does."""
    found = []
    for name in hosts:
        seen = {**node(hosts[name]["host"]["hostname"].lower()), **changed.get(name, {})}
        if "kube_control_plane" in hosts[name]["groups"] and not seen["components"]:
            seen["components"] = components(seen["version"])
        found.append(seen)
    return found


def upgrade(hosts, wanted="1.36.3", seen=None, allow=(), version="1.35.4"):
    cluster = {"version": version, "nodes": nodes(hosts) if seen is None else seen}
    return plan_upgrade(hosts, cluster, wanted, allow)


def test_control_planes_then_workers():
    hosts = planes("1.35.4", "1.35.4")
    cp1, cp2, *workers = hosts
    planned = upgrade(hosts)
    assert planned["findings"] == []
    assert (planned["control_planes"], planned["workers"], planned["done"]) == ([cp1, cp2], workers, [])
    assert not planned["begun"]
    text = upgrade_text(planned)
    assert f"Upgrade to Kubernetes 1.36.3: {len(hosts)} of {len(hosts)} nodes" in text
    assert "1.35.4" in text


def test_an_interrupted_one_goes_on():
    """With what it was at before all others; that node need not be well."""
    hosts = planes("1.36.3", "1.35.4")
    cp1, cp2, *workers = hosts
    new = {"version": "1.36.3"}
    seen = nodes(hosts, **{cp1: {**new, "own_labels": [MARK]}, workers[-1]: {"own_labels": [MARK], "ready": False}})
    planned = upgrade(hosts, seen=seen)
    assert planned["findings"] == []
    assert (planned["done"], planned["marked"], planned["begun"]) == ([cp1], [cp1], True)
    assert planned["control_planes"] == [cp2]
    assert planned["workers"] == [workers[-1], *workers[:-1]]


@pytest.mark.parametrize(
    ("half", "behind"),
    [
        ({"kube-scheduler": "1.35.4"}, "kube-scheduler 1.35.4"),
        ({"kube-apiserver": "1.35.4", "kube-controller-manager": "1.35.4"}, "kube-apiserver 1.35.4, kube-controller-"),
        # Its manifest is not there, or its kubelet has not said what it runs.
        ({"kube-apiserver": ""}, "kube-apiserver unknown"),
        # No release of Kubernetes is in its name, but the other control planes have a newer one.
        ({"etcd": "3.5.21-0"}, "etcd 3.5.21-0"),
    ],
)
def test_a_control_plane_is_done_when_all_of_it_is(half, behind):
    """Its kubelet runs the release, but a connection was lost before kubeadm had come to the other parts."""
    hosts = planes("1.36.3", "1.36.3")
    cp1, cp2, *_workers = hosts
    done = {"version": "1.36.3", "components": components("1.36.3", "3.6.6-0")}
    lost = {**done, "components": {**components("1.36.3"), **half}}
    planned = upgrade(hosts, seen=nodes(hosts, **{cp1: done, cp2: lost}))
    assert planned["findings"] == []
    assert (planned["done"], planned["control_planes"], planned["begun"]) == ([cp1], [cp2], True)
    assert planned["behind"][cp2].startswith(behind)
    assert behind.split()[0] in upgrade_text(planned)


def test_without_etcd_of_its_own_a_control_plane_may_be_done():
    hosts = planes("1.36.3")
    cp1, *_workers = hosts
    parts = {name: release for name, release in components("1.36.3").items() if name != "etcd"}
    planned = upgrade(hosts, seen=nodes(hosts, **{cp1: {"version": "1.36.3", "components": parts}}))
    assert (planned["done"], planned["control_planes"]) == ([cp1], [])


def test_the_release_of_each_api_server_counts():
    """One behind the address of the API may hide an older one: admin.conf leads to that address."""
    hosts = planes("1.36.3", "1.36.3")
    [cp1, cp2, *_workers] = hosts
    new = {"version": "1.36.3"}
    old = {"version": "1.36.3", "components": {**components("1.36.3"), "kube-apiserver": "1.35.4"}}
    planned = upgrade(hosts, wanted="1.37.0", seen=nodes(hosts, **{cp1: new, cp2: old}), version="1.36.3")
    assert planned["servers"] == ["1.35.4", "1.36.3"]
    assert [finding["check"] for finding in planned["findings"]] == ["upgrade-step"]


def test_what_a_worker_says_of_a_control_plane_counts_nothing():
    """A kubelet can show mirror pods of any name."""
    hosts = planes("1.36.3")
    seen = {name: {"version": "1.36.3"} for name in hosts}
    seen[list(hosts)[-1]]["components"] = {"kube-apiserver": "1.99.0", "etcd": "9.9.9-0"}
    planned = upgrade(hosts, seen=nodes(hosts, **seen), version="1.36.3")
    assert (planned["behind"], planned["servers"], planned["findings"]) == ({}, ["1.36.3"], [])


def test_a_finished_one_has_nothing_to_do():
    hosts = planes("1.36.3")
    planned = upgrade(hosts, seen=nodes(hosts, **{name: {"version": "1.36.3"} for name in hosts}), version="1.36.3")
    assert planned["control_planes"] == planned["workers"] == planned["findings"] == []
    assert planned["done"] == list(hosts)


@pytest.mark.parametrize(
    ("servers", "wanted", "said"),
    [
        (["1.35.4"], "1.36.0", None),
        (["1.35.4"], "1.35.9", None),
        (["1.35.4"], "1.35.4", None),
        (["1.35.4", "1.36.0"], "1.36.0", None),
        (["1.35.4"], "1.37.0", "Set fabric_kubernetes_version to a release of 1.36 first"),
        (["1.35.4", "1.36.0"], "1.37.0", "Set fabric_kubernetes_version to a release of 1.36 first"),
        (["1.35.4"], "1.34.9", "Set fabric_kubernetes_version to 1.35.4 or later"),
        (["1.35.4"], "1.35.3", "Set fabric_kubernetes_version to 1.35.4 or later"),
        (["1.35.4", "1.36.1"], "1.36.0", "Set fabric_kubernetes_version to 1.36.1 or later"),
        (["1.9.0"], "1.10.0", None),
    ],
)
def test_one_minor_release_at_a_time(servers, wanted, said):
    hosts = planes(*servers)
    seen = nodes(hosts, **{name: {"version": servers[0]} for name in hosts})
    found = errors(upgrade(hosts, wanted, seen=seen, version=servers[0]))
    assert set(found) & {"upgrade-step"} == ({"upgrade-step"} if said else set())
    if said:
        assert found["upgrade-step"]["next"].startswith(said)
        assert all(server in found["upgrade-step"]["seen"] for server in servers)


def test_without_a_cluster():
    found = errors(upgrade(site(), seen=[], version=""))
    assert found["upgrade-step"]["what"] == "There is no cluster to upgrade."


@pytest.mark.parametrize(
    ("kubelet", "said"),
    [
        ("1.33.0", None),
        ("1.32.9", "Upgrade this node to 1.33 or later first by hand: kubeadm upgrade node, then the package kubelet."),
        ("1.36.4", "Set fabric_kubernetes_version to 1.36.4."),
        ("", None),
    ],
)
def test_kubelets_are_not_too_far_from_the_api_server(kubelet, said):
    hosts = planes("1.35.4")
    last = list(hosts)[-1]
    found = errors(upgrade(hosts, seen=nodes(hosts, **{last: {"version": kubelet}})))
    assert set(found) == ({"upgrade-skew"} if said else set())
    if said:
        assert (found["upgrade-skew"]["hosts"], found["upgrade-skew"]["next"]) == ([last], said)


def test_nodes_are_ready():
    hosts = planes("1.35.4")
    last = list(hosts)[-1]
    seen = nodes(hosts, **{last: {"ready": False}})
    assert errors(upgrade(hosts, seen=seen))["upgrade-ready"]["hosts"] == [last]
    assert errors(upgrade(hosts, seen=seen, allow=["upgrade-ready"])) == {}


def test_nodes_are_in_the_inventory():
    hosts = planes("1.35.4")
    found = errors(upgrade(hosts, seen=[*nodes(hosts), node("stranger")]))
    assert "stranger" in found["upgrade-nodes"]["seen"]
    missing = upgrade(hosts, seen=nodes(hosts)[:-1])
    assert errors(missing) == {}
    assert errors(missing, "warning")["upgrade-nodes"]["hosts"] == [list(hosts)[-1]]
