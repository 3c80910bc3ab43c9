import pytest
from ansible_collections.ipu.fabric.plugins.module_utils._network import macvlan_objects

NETWORK = {
    "name": "rdma-net",
    "namespace": "default",
    "master": "ens1f0",
    "mode": "bridge",
    "mtu": 1500,
    "ipam": {"a": [1]},
}


@pytest.mark.parametrize(
    ("spec", "readable"),
    [
        (None, None),
        ({"ipam": '{"b":1,"a":2}'}, {"mtu": 0, "mode": "bridge", "ipam": {"a": 2, "b": 1}}),
        ({"ipam": "broken"}, {"mtu": 0, "mode": "bridge", "ipam": "broken"}),
        ({"mtu": 5}, {"mtu": 5, "mode": "bridge"}),
    ],
)
def test_readable_spec(spec, readable):
    assert macvlan_objects.readable_spec(spec) == readable


@pytest.mark.parametrize(
    ("metadata", "owners"),
    [
        ({}, set()),
        ({"ownerReferences": [{"kind": "IPoIBNetwork", "name": "a"}]}, {("IPoIBNetwork", "a")}),
        ({"ownerReferences": [{"kind": "SpiderMultusConfig", "name": "a"}]}, set()),
        (
            {"annotations": {macvlan_objects.OWNER: "SriovNetwork.sriovnetwork.openshift.io/operator/a"}},
            {("SriovNetwork", "a")},
        ),
        (
            {"annotations": {macvlan_objects.OWNER: "unknown/operator/a"}},
            {("SriovNetwork", "a"), ("SriovIBNetwork", "a")},
        ),
        ({"annotations": {macvlan_objects.OWNER: "OVSNetwork.sriovnetwork.openshift.io/operator/a"}}, set()),
    ],
)
def test_owners(metadata, owners):
    assert macvlan_objects.owners({"metadata": metadata}) == owners


def test_options_of_vfs_that_nobody_asked_for_are_no_difference():
    spec = {"networkNamespace": "default", "resourceName": "a", "ipam": "{}", "logLevel": "info"}
    readable = {"networkNamespace": "default", "resourceName": "a", "ipam": {}}
    assert macvlan_objects.readable_spec(spec, "SriovNetwork") == readable


def test_every_field_is_set():
    assert set(macvlan_objects.network_object(NETWORK)["spec"]) == {"networkNamespace", "master", "mode", "mtu", "ipam"}
