"""Networks that are no longer planned, on the real CRDs. Their owner is what the API server recorded."""

from __future__ import annotations

import json
import threading
import typing as t
from pathlib import Path

import pytest
from ansible_collections.ipu.fabric.plugins.module_utils._kube.client import Cluster
from ansible_collections.ipu.fabric.plugins.module_utils._network.address_sources import address_sources
from ansible_collections.ipu.fabric.plugins.module_utils._verify.pool_checks import check_overlaps
from ansible_collections.ipu.fabric.tests.integration.api_server import ApiServer, ModuleFailedError, Modules, crds
from ansible_collections.ipu.fabric.tests.integration.test_examples import play
from ansible_collections.ipu.fabric.tests.integration.test_macvlan_network import Operator
from ansible_collections.kubernetes.core.plugins.module_utils.k8s.client import get_api_client

Object = t.Dict[str, t.Any]
FILES = (
    "network-operator/26.4.1/005-nv-ipam.nvidia.com_ippools.yaml",
    "network-operator/26.4.1/005-nv-ipam.nvidia.com_cidrpools.yaml",
    "network-operator/26.4.1/k8s.cni.cncf.io_networkattachmentdefinitions_crd.yaml",
    "network-operator/26.4.1/mellanox.com_macvlannetworks.yaml",
    "whereabouts/0.9.4/whereabouts.cni.cncf.io_ippools.yaml",
    "whereabouts/0.9.4/whereabouts.cni.cncf.io_overlappingrangeipreservations.yaml",
)
OPERATOR = "nvidia-network-operator"
ANNOTATION = "k8s.v1.cni.cncf.io/networks"
NV_IPAM, WHEREABOUTS = "nv-ipam.nvidia.com/v1alpha1", "whereabouts.cni.cncf.io/v1alpha1"
LOWER = ({"startIP": "10.5.0.0", "endIP": "10.5.0.127"},)
RANGE = {"type": "whereabouts", "range": "10.5.0.0/24", "range_start": "10.5.0.128", "range_end": "10.5.0.254"}


def pool(name: str, exclusions: t.Sequence[Object] = LOWER) -> Object:
    return {"name": name, "subnet": "10.5.0.0/24", "perNodeBlockSize": 8, "exclusions": list(exclusions)}


def nv_ipam(name: str, **more: t.Any) -> Object:
    return {
        "name": name,
        "namespace": "jobs",
        "ipam": {"type": "nv-ipam", "poolName": name},
        "pools": [pool(name)],
        **more,
    }


def objects(network: Object) -> t.List[Object]:
    """What the role makes of a network, and the NAD that the operator makes of it."""
    made = [
        {
            "apiVersion": NV_IPAM,
            "kind": "IPPool",
            "metadata": {"name": each["name"], "namespace": OPERATOR},
            "spec": {key: value for key, value in each.items() if key != "name"},
        }
        for each in network.get("pools", [])
    ]
    spec = {"networkNamespace": network["namespace"], "master": "eth1", "mode": "bridge", "mtu": 1500}
    macvlan = {"apiVersion": "mellanox.com/v1alpha1", "kind": "MacvlanNetwork", "metadata": {"name": network["name"]}}
    return [*made, {**macvlan, "spec": {**spec, "ipam": json.dumps(network["ipam"])}}]


def attachment(network: Object, **metadata: t.Any) -> Object:
    config = {"type": "macvlan", "master": "eth1", "mode": "bridge", "mtu": 1500, "ipam": network["ipam"]}
    return {
        "apiVersion": "k8s.cni.cncf.io/v1",
        "kind": "NetworkAttachmentDefinition",
        "metadata": {"name": network["name"], "namespace": network["namespace"], **metadata},
        "spec": {"config": json.dumps(config)},
    }


def create(api: ApiServer, *items: Object) -> None:
    api.kubectl(
        "create", "--validate=strict", "-f", "-", stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": items})
    )


def make(run: Modules, api: ApiServer, network: Object) -> None:
    run("kube_apply", objects=objects(network))
    owner = api.get("macvlannetwork", network["name"])
    reference = {key: owner[key] for key in ("apiVersion", "kind")} | {
        key: owner["metadata"][key] for key in ("name", "uid")
    }
    create(api, attachment(network, ownerReferences=[reference]))


def make_pod(
    api: ApiServer, name: str, networks: str, namespace: str = "jobs", phase: str = "Running", **more: t.Any
) -> None:
    metadata = {"name": name, "namespace": namespace, "annotations": {ANNOTATION: networks}, **more}
    spec = {"containers": [{"name": "c", "image": "none"}]}
    create(api, {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})
    body = json.dumps({"status": {"phase": phase}})
    api.kubectl("patch", "pod", name, "-n", namespace, "--subresource=status", "--type=merge", "-p", body)


def everything(api: ApiServer) -> t.Set[str]:
    """Kind, namespace and name of all that a removal could touch."""
    kinds = "macvlannetworks,network-attachment-definitions,ippools.nv-ipam.nvidia.com,cidrpools"
    items = api.get(kinds, "-A")["items"]
    names = {(i["kind"], i["metadata"].get("namespace", ""), i["metadata"]["name"]) for i in items}
    return {f"{kind} {place}/{name}".replace(" /", " ") for kind, place, name in names}


OLD, NEW = nv_ipam("old"), nv_ipam("new")
OLDS = {"MacvlanNetwork old", "NetworkAttachmentDefinition jobs/old", f"IPPool {OPERATOR}/old"}


def test_a_fresh_cluster_has_nothing_unplanned(run: Modules) -> None:
    for prune in (False, True):
        result = run("macvlan_network", state="pruned", networks=[NEW], unplanned="remove" if prune else "check")
        assert (result["changed"], result["unplanned"], result["removed"]) == (False, [], [])


@pytest.fixture(scope="module")
def kinds(api: ApiServer, schemas: Path) -> t.Iterator[None]:
    definitions = crds(*(schemas / name for name in FILES))
    namespaces = [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}} for name in (OPERATOR, "jobs")]
    Modules(api.kubeconfig)("kube_apply", objects=definitions + namespaces, validation="Warn")
    yield
    api.kubectl("delete", "--ignore-not-found", "crd", *(each["metadata"]["name"] for each in definitions))


@pytest.fixture
def clean(api: ApiServer, kinds: None) -> t.Iterator[None]:
    """Each test leaves nothing to the next one."""
    yield
    listed = ["pods", "macvlannetworks", "network-attachment-definitions", "ippools.nv-ipam.nvidia.com", "cidrpools"]
    listed += ["ippools.whereabouts.cni.cncf.io", "overlappingrangeipreservations"]
    for kind in listed:
        for item in api.get(kind, "-A")["items"]:
            place = ["-n", item["metadata"]["namespace"]] if "namespace" in item["metadata"] else []
            api.kubectl("delete", kind, item["metadata"]["name"], *place, "--force", "--grace-period=0")


@pytest.mark.usefixtures("clean")
def test_a_renamed_network_is_refused_then_replaced(run: Modules, api: ApiServer) -> None:
    make(run, api, OLD)
    assert run("macvlan_network", state="pruned", networks=[OLD], unplanned="check")["unplanned"] == []
    for check in (False, True):
        with pytest.raises(ModuleFailedError) as refused:
            run("macvlan_network", state="pruned", networks=[NEW], unplanned="check", check=check)
        assert f"IPPool {OPERATOR}/old shares 127 addresses, 10.5.0.128 to 10.5.0.254, with network new" in str(
            refused.value
        )
        assert "fabric_prune_networks: true" in refused.value.result["error"]["next_step"]
    result = run("macvlan_network", state="pruned", networks=[NEW], check=True)
    assert result["changed"]
    assert set(result["removed"]) == set(result["diff"]["before"]) == OLDS
    assert everything(api) == OLDS
    assert set(run("macvlan_network", state="pruned", networks=[NEW])["removed"]) == OLDS
    assert everything(api) == set()
    make(run, api, NEW)
    assert not run("macvlan_network", state="pruned", networks=[NEW])["changed"]


@pytest.mark.usefixtures("clean")
def test_an_unplanned_network_without_conflict_is_named(run: Modules, api: ApiServer) -> None:
    make(run, api, OLD)
    other = nv_ipam("new", pools=[pool("new", [{"startIP": "10.5.0.128", "endIP": "10.5.0.255"}])])
    result = run("macvlan_network", state="pruned", networks=[other], unplanned="check")
    assert (result["changed"], result["unplanned"]) == (False, ["MacvlanNetwork old", f"IPPool {OPERATOR}/old"])
    assert "and kept: MacvlanNetwork old" in json.dumps(result["warnings"])
    assert everything(api) == OLDS


@pytest.mark.usefixtures("clean")
@pytest.mark.parametrize(
    ("networks", "namespace"),
    [
        ("old", "jobs"),
        ("jobs/old", "default"),
        ("foreign, jobs/old@net7", "default"),
        ('[{"name": "foreign"}, {"name": "old", "namespace": "jobs", "interface": "net7"}]', "default"),
        ('[{"name": "foreign", "cni-args": {"poolNames": ["old"]}}]', "default"),
    ],
)
def test_pods_keep_their_network(run: Modules, api: ApiServer, networks: str, namespace: str) -> None:
    make(run, api, OLD)
    make_pod(api, "ended", networks, namespace, "Succeeded")
    make_pod(api, "stranger", "old", "default" if namespace == "jobs" else OPERATOR)
    make_pod(api, "user", networks, namespace, "Pending")
    for check in (True, False):
        with pytest.raises(ModuleFailedError, match=f"1 pod uses them: {namespace}/user") as refused:
            run("macvlan_network", state="pruned", networks=[NEW], check=check)
        assert refused.value.result["error"]["code"] == "unsafe"
    assert everything(api) == OLDS


@pytest.mark.usefixtures("clean")
def test_pods_that_are_being_deleted_are_waited_for(run: Modules, api: ApiServer) -> None:
    make(run, api, OLD)
    make_pod(api, "user", "old", finalizers=["test/hold"])
    api.kubectl("delete", "pod", "user", "-n", "jobs", "--force", "--wait=false")
    assert run("macvlan_network", state="pruned", networks=[NEW], check=True)["changed"]
    with pytest.raises(ModuleFailedError, match="Pod jobs/user still exists"):
        run("macvlan_network", state="pruned", networks=[NEW], timeout=2)
    assert everything(api) == OLDS
    release = ["patch", "pod", "user", "-n", "jobs", "--type=merge", "-p", '{"metadata": {"finalizers": null}}']
    later = threading.Timer(3, api.kubectl, release)
    later.start()
    assert set(run("macvlan_network", state="pruned", networks=[NEW])["removed"]) == OLDS
    later.join()


@pytest.mark.usefixtures("clean")
def test_a_pool_alone_is_unplanned_while_its_network_stays(run: Modules, api: ApiServer) -> None:
    """A network of two families that has one of them from now on: its pods may have an address of either pool."""
    both = nv_ipam("rail", pools=[pool("rail"), {"name": "rail.ipv6", "subnet": "fd00:5::/64", "perNodeBlockSize": 8}])
    both["ipam"]["poolName"] = "rail,rail.ipv6"
    make(run, api, both)
    make_pod(api, "user", "rail")
    rail, gone = [nv_ipam("rail")], [f"IPPool {OPERATOR}/rail.ipv6"]
    assert run("macvlan_network", state="pruned", networks=rail, unplanned="check")["unplanned"] == gone
    with pytest.raises(ModuleFailedError, match="jobs/user"):
        run("macvlan_network", state="pruned", networks=rail)
    api.kubectl("delete", "pod", "user", "-n", "jobs", "--force")
    assert run("macvlan_network", state="pruned", networks=rail)["removed"] == gone
    assert f"IPPool {OPERATOR}/rail" in everything(api)


@pytest.mark.usefixtures("clean")
def test_what_others_made_stays(run: Modules, api: ApiServer) -> None:
    foreign = nv_ipam("foreign")
    cidrs = {"cidr": "10.5.0.0/24", "perNodeNetworkPrefix": 28}
    metadata = {"name": "blocks", "namespace": OPERATOR}
    create(api, *objects(foreign), {"apiVersion": NV_IPAM, "kind": "CIDRPool", "metadata": metadata, "spec": cidrs})
    create(api, attachment({**foreign, "name": "copy"}))
    before = everything(api)
    make(run, api, OLD)
    create(api, attachment({**OLD, "namespace": "default"}))
    assert set(run("macvlan_network", state="pruned", networks=[NEW])["removed"]) == OLDS
    assert everything(api) == before | {"NetworkAttachmentDefinition default/old"}


@pytest.mark.usefixtures("clean")
def test_verify_sees_whoever_deals_the_same_addresses(run: Modules, api: ApiServer) -> None:
    lab = {"name": "lab", "namespace": "jobs", "ipam": {"type": "host-local", "subnet": "10.5.0.0/24"}}
    for network in (OLD, NEW):
        make(run, api, network)
    create(api, attachment(lab), attachment({**NEW, "name": "copy"}))
    found = address_sources(Cluster(get_api_client(kubeconfig=str(api.kubeconfig)).client))
    (check,) = check_overlaps({"networks": [{**NEW, "subnet": {"cidr": "10.5.0.0/24"}}]}, {"address_sources": found})
    assert check.status == "failed"
    assert check.seen.split("; ") == [
        f"IPPool {OPERATOR}/old (nv-ipam, left over): 127 addresses, 10.5.0.128 to 10.5.0.254",
        "NetworkAttachmentDefinition jobs/lab (host-local, not ours): 127 addresses, 10.5.0.128 to 10.5.0.254",
    ]


@pytest.mark.usefixtures("clean")
def test_an_attachment_that_the_operator_left_behind_goes_too(run: Modules, api: ApiServer) -> None:
    """Without an owner nobody collects it: it goes if it says what the network said."""
    run("kube_apply", objects=[*objects(OLD), *objects(nv_ipam("other"))])
    create(api, attachment(OLD), attachment({**nv_ipam("other"), "ipam": {"type": "static"}}))
    removed = run("macvlan_network", state="pruned", networks=[NEW])["removed"]
    assert [name for name in removed if "Attachment" in name] == ["NetworkAttachmentDefinition jobs/old"]
    assert everything(api) == {"NetworkAttachmentDefinition jobs/other"}


@pytest.mark.usefixtures("clean")
def test_whereabouts_keeps_no_address_for_pods_that_are_gone(run: Modules, api: ApiServer) -> None:
    old = {"name": "old", "namespace": "jobs", "ipam": RANGE}
    new = {"name": "new", "namespace": "jobs", "ipam": {**RANGE, "exclude": ["10.5.0.200/32"]}}
    make(run, api, old)
    make_pod(api, "alive", "another")
    held = {"129": "jobs/alive", "130": "jobs/gone", "131": "jobs/gone-too"}
    allocations = {offset: {"id": f"c{offset}", "podref": pod, "ifname": "net1"} for offset, pod in held.items()}
    pools = {"10.5.0.0-24": ("10.5.0.0/24", allocations), "10.6.0.0-24": ("10.6.0.0/24", allocations)}
    for name, (cidr, entries) in pools.items():
        spec = {"range": cidr, "allocations": entries}
        metadata = {"name": name, "namespace": "kube-system"}
        create(api, {"apiVersion": WHEREABOUTS, "kind": "IPPool", "metadata": metadata, "spec": spec})
    reserved = {
        "10.5.0.129": "jobs/alive",
        "10.5.0.130": "jobs/gone",
        "10.5.0.150": "jobs/gone",
        "10.6.0.130": "jobs/gone",
    }
    for name, pod in reserved.items():
        kind = {"apiVersion": WHEREABOUTS, "kind": "OverlappingRangeIPReservation"}
        create(api, {**kind, "metadata": {"name": name, "namespace": "kube-system"}, "spec": {"podref": pod}})
    with pytest.raises(ModuleFailedError, match="MacvlanNetwork old shares 126 addresses"):
        run("macvlan_network", state="pruned", networks=[new], unplanned="check")
    dead = ["10.5.0.130: jobs/gone", "10.5.0.130: jobs/gone", "10.5.0.131: jobs/gone-too", "10.5.0.150: jobs/gone"]
    for check in (True, False):
        result = run("macvlan_network", state="pruned", networks=[new], check=check)
        assert result["diff"]["before"]["addresses of pods that are gone"] == dead
    found = api.get("ippools.whereabouts.cni.cncf.io", "-A")["items"]
    assert {item["metadata"]["name"]: set(item["spec"]["allocations"]) for item in found} == {
        "10.5.0.0-24": {"129"},
        "10.6.0.0-24": {"129", "130", "131"},
    }
    left = api.get("overlappingrangeipreservations", "-A")["items"]
    assert {item["metadata"]["name"] for item in left} == {"10.5.0.129", "10.6.0.130"}
    assert not run("macvlan_network", state="pruned", networks=[new])["changed"]


@pytest.mark.usefixtures("clean")
def test_the_role_renames_a_network_in_one_run(api: ApiServer, tmp_path: Path) -> None:
    def playbook(name: str, tasks_from: str = "main") -> Path:
        imported = {"name": "ipu.fabric.macvlan", "tasks_from": tasks_from}
        task = {"name": "The role", "ansible.builtin.import_role": imported}
        path = tmp_path / f"{name}.yml"
        path.write_text(json.dumps([{"hosts": "localhost", "gather_facts": False, "tasks": [task]}]))
        return path

    def apply(path: Path, network: Object, *options: str, **more: t.Any) -> str:
        planned = {"master": "eth1", "mode": "bridge", "mtu": 1500, **network}
        given = {"macvlan_kubeconfig": str(api.kubeconfig), "macvlan_networks": [planned], **more}
        given["macvlan_start_pod"] = False  # there is no kubelet
        return play(api, path, *options, **given)

    role, check = playbook("role"), playbook("check", "check")
    operator = Operator(api)
    operator.start()
    try:
        assert "changed=2 " in apply(role, OLD)
        assert "changed=0 " in apply(role, OLD)
        for refused in (role, check):
            with pytest.raises(AssertionError, match="IPPool nvidia-network-operator/old shares 127 addresses"):
                apply(refused, NEW)
        assert everything(api) == OLDS
        assert "changed=0 " in apply(check, NEW, macvlan_prune=True)
        assert "changed=3 " in apply(role, NEW, "--check", "--diff", macvlan_prune=True)
        assert everything(api) == OLDS
        assert "changed=3 " in apply(role, NEW, macvlan_prune=True)
        assert everything(api) == {name.replace("old", "new") for name in OLDS}
        assert "changed=0 " in apply(role, NEW, macvlan_prune=True)
    finally:
        operator.ended.set()
        operator.join()
