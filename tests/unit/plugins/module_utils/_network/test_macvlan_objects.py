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


def test_every_field_is_set():
    assert set(macvlan_objects.macvlan_object(NETWORK)["spec"]) == {"networkNamespace", "master", "mode", "mtu", "ipam"}
