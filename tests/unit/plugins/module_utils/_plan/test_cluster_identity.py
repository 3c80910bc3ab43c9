"""The cluster of a kubeconfig, and the one that the hosts are in."""

import pytest
from ansible_collections.ipu.fabric.plugins.module_utils._common.result import FabricError
from ansible_collections.ipu.fabric.plugins.module_utils._plan import cluster_identity
from ansible_collections.ipu.fabric.tests.unit.fixtures.site import site

OURS, OTHER = "0123456789abcdef", "fedcba9876543210"
NAMES = ("node11", "node12", "node13")


def observe(ca="", **changes):
    """Three hosts, of which each trusts this CA, or what `changes` says by its name."""
    hosts = site()
    for name, seen in hosts.items():
        seen["host"]["kubelet"]["cluster"] = changes.get(name, ca)
    return hosts


def cluster(ca=OURS, names=NAMES, ids=11):
    """Machine IDs of the nodes are numbers from `ids` on, those of the hosts from 11 on."""
    nodes = [{"name": name, "machine_id": f"{ids + n:032x}" if ids else ""} for n, name in enumerate(names)]
    return {"kubeconfig": "admin.conf", "ca": ca, "nodes": nodes}


@pytest.mark.parametrize(
    ("hosts", "found", "why"),
    [
        (observe(OURS), cluster(), ""),
        (observe(OTHER), cluster(), f"its CA is {OURS}, that of cp1, w1, w2 is {OTHER}"),
        (observe(OURS, w2=OTHER), cluster(), f"its CA is {OURS}, that of w2 is {OTHER}"),
        (observe(OURS, w2=""), cluster(names=["a"]), ""),  # the CA decides
        (observe(OURS), cluster(ca=""), ""),  # the API does not tell its CA
        (observe(OURS), cluster(ca="", names=["a", "b"], ids=None), "cp1, w1, w2) is one of its nodes (a, b)"),
        (observe(), cluster(), ""),  # no kubeadm, or observed before the cluster was built
        (observe(), cluster(ids=None), ""),
        (observe(), cluster(names=["other", "names", "here"]), ""),  # as with --hostname-override
        (observe(), cluster(names=["a", "node11"], ids=91), "is one of its nodes (a, node11)"),  # another site's node11
        (observe(), cluster(names=[]), "is one of its nodes (none)"),
        ({"cp1": {"groups": [], "address": "", "errors": []}}, cluster(), "no host of the inventory (cp1)"),
    ],
)
def test_why_another(hosts, found, why):
    seen = cluster_identity.why_another(hosts, found)
    assert why in seen
    assert bool(seen) == bool(why)


def test_another_cluster_is_refused():
    with pytest.raises(FabricError, match=r"Where: admin\.conf\. .*fabric_allow: \[other-cluster\]"):
        cluster_identity.check_cluster(observe(OTHER), cluster())
    cluster_identity.check_cluster(observe(OURS), cluster())
    with pytest.raises(FabricError, match=r"interrupted on cp1: ipu\.fabric\.site finishes it\.$"):
        cluster_identity.check_cluster(interrupted(observe(w1=OTHER)), cluster())


def interrupted(hosts):
    """cp1 as a failed or killed kubeadm init left it: with a CA that the next init replaces."""
    hosts["cp1"]["host"]["cluster"]["unfinished"] = True
    hosts["cp1"]["host"]["kubelet"]["server"] = "10.88.0.11:6443"
    return hosts


def test_the_ca_of_an_interrupted_init_is_not_compared():
    assert cluster_identity.why_another(observe(cp1=OTHER), cluster())
    assert cluster_identity.why_another(interrupted(observe(cp1=OTHER)), cluster()) == ""
    # It is no proof of the opposite either.
    assert "w1 is" in cluster_identity.why_another(interrupted(observe(w1=OTHER, cp1=OURS)), cluster())
    assert "is one of its nodes" in cluster_identity.why_another(interrupted(observe(cp1=OTHER)), cluster(ids=91))


def test_is_bare():
    assert cluster_identity.is_bare(observe())
    assert not cluster_identity.is_bare(observe(w1=OURS))
    assert cluster_identity.is_bare(interrupted(observe(cp1=OURS)))
    assert not cluster_identity.is_bare(interrupted(observe(w1=OURS)))


def named(**claims):
    """Hosts that call themselves so; None does not answer. Each has ip in the inventory where its claim is a pair."""
    seen = {}
    for name, claim in claims.items():
        hostname, ip = claim if isinstance(claim, tuple) else (claim, "")
        seen[name] = {"groups": [], "address": ip, "errors": []}
        if hostname:
            seen[name]["host"] = {"hostname": hostname}
    return seen


def reached(hostname):
    """A host of that name, to which the inventory connects by the address of w1."""
    return {"a": {**named(a=hostname)["a"], "reached": "10.0.0.21"}}


NODES = [
    {"name": name, "machine_id": "", "addresses": [address]}
    for name, address in (("cp1", "10.0.0.11"), ("w1", "10.0.0.21"), ("w2", "10.0.0.22"), ("x7", "10.0.0.77"))
]


@pytest.mark.parametrize(
    ("hosts", "nodes", "why"),
    [
        (named(cp1="cp1", w1="w1"), NODES, {}),
        (named(cp1="cp1", w1="cp1"), [], {"w1": "w1 says that it is cp1, but that name is taken by cp1"}),
        (named(cp1=None, w1="CP1"), [], {"w1": "w1 says that it is cp1, but that name is taken by cp1"}),
        (
            named(**{"cp1.example.org": None}, w1="cp1"),
            [],
            {"w1": "w1 says that it is cp1, but that name is taken by cp1.example.org"},
        ),
        # Names of the inventory that are only aliases: it is still clear which host has which name.
        (named(a="w1", b="w2"), NODES, {}),
        (named(node1="node0", node2="node1"), [], {}),
        (
            named(a="w1", b="w1"),
            [],
            {
                "a": "a says that it is w1, but that name is taken by b",
                "b": "b says that it is w1, but that name is taken by a",
            },
        ),
        # The cluster knows better.
        (named(cp1="cp1", w1="x7"), NODES, {"w1": "w1 says that it is x7, but the inventory has it as w1"}),
        (named(a=("x7", "10.0.0.21")), NODES, {"a": "a says that it is x7, but the inventory has it as w1"}),
        (
            named(a=("x7", "10.0.0.99")),
            NODES,
            {
                "a": "a says that it is x7, which has the address 10.0.0.77 in the cluster,"
                " but a has 10.0.0.99 in the inventory"
            },
        ),
        (named(a=("x7", "10.0.0.77")), NODES, {}),
        (named(w1=("w2", "10.0.0.22"), w2=("w1", "10.0.0.21")), NODES, {}),  # crosswise, and their addresses say so
        (named(w1="new"), NODES, {}),  # no node has this name
        (reached("w1"), NODES, {}),
        ({**reached("w2"), "b": reached("w1")["a"]}, NODES, {}),  # by ports of one address
        (
            reached("w2"),
            NODES,
            {"a": "a says that it is w2, but the inventory has it as w1"},
        ),
    ],
)
def test_hosts_that_say_they_are_another(hosts, nodes, why):
    assert cluster_identity.mistaken(hosts, nodes) == why
    if why:
        with pytest.raises(FabricError, match="Each host has to be the node that it says it is"):
            cluster_identity.check_names(hosts, nodes)


@pytest.mark.parametrize(
    ("host", "refused"),
    [
        ({"hostname": "x7", "machine_id": "a" * 32}, True),
        ({"hostname": "x7", "machine_id": "b" * 32}, False),
        ({"hostname": "x7", "machine_id": ""}, False),
        ({"hostname": "a", "machine_id": "a" * 32}, False),  # reinstalled, under the name of the inventory
    ],
)
def test_a_node_outside_the_inventory_is_told_by_its_machine_id(host, refused):
    nodes = [{"name": name, "machine_id": "b" * 32, "addresses": ["10.0.0.77"]} for name in ("a", "x7")]
    hosts = {"a": {"groups": [], "address": "", "errors": [], "host": host}}
    assert bool(cluster_identity.mistaken(hosts, nodes[1 if host["hostname"] == "x7" else 0 :][:1])) == refused
    hosts["a"]["address"] = "10.0.0.77"  # the inventory says that it is this node: it was reinstalled
    assert cluster_identity.mistaken(hosts, nodes[-1:]) == {}


PLANNED = {
    "cp1": {"node": "master", "address": "10.0.0.11"},
    "w1": {"node": "worker", "address": "10.0.0.21,fd00::21"},
}
API = cluster_identity.Reserved({"10.0.0.50"}, "10.96.0.0/12,fd00:1::/112")


def known(claims, plan=None, inventory=("cp1", "w1"), reserved=API, **ips):
    plan = PLANNED if plan is None else plan
    return cluster_identity.known_nodes({name: ips.get(name, "") for name in inventory}, claims, plan, reserved)


def test_nodes_that_are_known():
    assert known({"cp1": "master", "w1": "worker"}) == {
        "nodes": {"cp1": "master", "w1": "worker"},
        "addresses": {"master": ["10.0.0.11"], "worker": ["10.0.0.21", "fd00::21"]},
        "problems": {},
    }
    # Without a plan, by the inventory; with a domain in one of the two.
    found = known({"W1.example": "w1"}, {}, ["W1.example"], **{"W1.example": "10.0.0.21"})
    assert (found["nodes"], found["addresses"]) == ({"W1.example": "w1"}, {"w1": ["10.0.0.21"]})
    assert known({"w1": "w1"}, {}, ["w1"])["addresses"] == {"w1": []}
    # The inventory may have another address since.
    assert known({"w1": "worker"}, w1="10.0.0.22")["addresses"] == {"worker": ["10.0.0.22"]}


@pytest.mark.parametrize(
    ("claims", "plan", "problem"),
    [
        ({"w1": "master"}, PLANNED, "w1 says that it is master, but plan.json has it as worker"),
        ({"w1": "other"}, PLANNED, "w1 says that it is other, but plan.json has it as worker"),
        ({"w1": "cp1"}, {}, "w1 says that it is cp1, but the inventory has it as w1"),
        ({"w1": "x"}, {"w1": {"node": "x", "address": ""}, "cp1": {"node": "x", "address": ""}}, "w1 is x, and so is"),
    ],
)
def test_a_host_is_not_what_it_says(claims, plan, problem):
    found = known({**claims, "cp1": "cp1" if not plan else "master"}, plan)
    assert problem in found["problems"]["w1"]
    assert "w1" not in found["nodes"]
    assert set(found["addresses"]) <= {"master", "cp1"}


@pytest.mark.parametrize("address", ["10.0.0.50", "10.96.0.1", "fd00:1::1", "10.0.0.11", "nonsense"])
def test_an_address_of_the_api_or_of_another_is_no_hosts_own(address):
    assert known({"cp1": "master", "w1": "worker"}, w1=address)["addresses"]["worker"] == []


def test_a_kubelet_that_no_request_can_fit_is_left_alone():
    """It would be restarted to ask, and nothing could be approved. The others go on."""
    inventory = {"cp1": "10.0.0.11", "w1": "10.0.0.50"}
    claims = {"cp1": "master", "w1": "worker"}
    found = cluster_identity.known_nodes(inventory, claims, PLANNED, API, ["cp1", "w1"])
    assert list(found["problems"]) == ["w1"]
    assert found["nodes"] == {"cp1": "master"}
