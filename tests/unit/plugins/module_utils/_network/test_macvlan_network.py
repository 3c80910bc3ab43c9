"""Networks under an operator that, like the real one, leaves a NAD alone as long as its own note of it is the same."""

import copy
import json
import types

import pytest
from ansible_collections.ipu.fabric.plugins.module_utils._common.result import FabricError
from ansible_collections.ipu.fabric.plugins.module_utils._kube.drift import drift_of
from ansible_collections.ipu.fabric.plugins.module_utils._network import macvlan_network
from ansible_collections.ipu.fabric.plugins.module_utils._network.macvlan_objects import network_object

NETWORK = {
    "name": "rail",
    "namespace": "jobs",
    "master": "ens1f0",
    "mode": "bridge",
    "mtu": 9000,
    "ipam": {"type": "nv-ipam", "poolName": "rail"},
}
PLACE = "NetworkAttachmentDefinition jobs/rail"
REVISION = "nvidia.network-operator.revision"
OURS = [{"manager": "ipu.fabric", "operation": "Apply"}]


class Operator:
    """A cluster with one MacvlanNetwork and its operator."""

    present = True

    def __init__(self, managed=None):
        network = copy.deepcopy(network_object(NETWORK))
        network["metadata"].update(uid="u1", managedFields=OURS if managed is None else managed)
        self.objects, self.version, self.deleted = {"MacvlanNetwork": network}, 0, []
        self.works = True
        self.render()

    def render(self):
        """As the operator does when one of the two objects changes."""
        network, nad = self.objects["MacvlanNetwork"], self.objects.get("NetworkAttachmentDefinition")
        spec, revision = network["spec"], json.dumps(network["spec"])
        if not self.works or (nad and nad["metadata"]["annotations"].get(REVISION) == revision):
            return
        config = {"cniVersion": "0.3.1", "name": "rail", "type": "macvlan", **spec, "ipam": json.loads(spec["ipam"])}
        del config["networkNamespace"]
        self.version += 1
        self.objects["NetworkAttachmentDefinition"] = {
            "metadata": {
                "uid": f"n{self.version}",
                "resourceVersion": str(self.version),
                "annotations": {REVISION: revision},
                "ownerReferences": [{"kind": "MacvlanNetwork", "name": "rail", "uid": "u1", "controller": True}],
            },
            "spec": {"config": json.dumps(config)},
        }

    def edit(self, text=None, **changes):
        """By hand."""
        spec = self.objects["NetworkAttachmentDefinition"]["spec"]
        spec["config"] = json.dumps({**json.loads(spec["config"]), **changes}) if text is None else text
        self.render()

    def get(self, path):
        return {}

    def path_of(self, obj):
        return obj["kind"]

    def read(self, obj):
        return copy.deepcopy(self.objects.get(obj["kind"]))

    def apply(self, obj, _dry_run):
        raise AssertionError("the MacvlanNetwork is as planned")

    def delete(self, path, seen):
        assert seen["metadata"]["resourceVersion"] == self.objects[path]["metadata"]["resourceVersion"]
        self.deleted.append(path)
        del self.objects[path]
        self.render()


def run(monkeypatch, cluster, check=False):
    monkeypatch.setattr(macvlan_network, "connect", lambda _module: cluster)
    options = {"cni": "macvlan", "resource": "", "meta_plugins": [], "pool_namespace": "nvidia-network-operator"}
    params = {**NETWORK, **options, "networks": None, "state": "present", "timeout": 0}
    return macvlan_network.manage_networks(types.SimpleNamespace(params=params, check_mode=check))


@pytest.mark.parametrize(
    ("edit", "field"),
    [
        ({"mtu": 1500}, "mtu: 1500 now, 9000 planned"),
        ({"master": "eno1"}, "master: eno1 now, ens1f0 planned"),
        ({"ipam": {"type": "nv-ipam", "poolName": "x"}}, "ipam poolName: x now, rail planned"),
        ({"vlan": 5}, "vlan: 5 now, absent planned"),
        ({"text": "{broken"}, "config: {broken now, absent planned"),
        ({"text": "[1]"}, "config: [1] now, absent planned"),
        ({"text": '{"plugins": ["x"]}'}, "mtu: absent now, 9000 planned"),
    ],
)
def test_a_nad_that_was_edited_is_a_difference_and_is_created_again(monkeypatch, edit, field):
    cluster = Operator()
    cluster.edit(**edit)
    found = run(monkeypatch, cluster, check=True)
    assert (found["changed"], found["networks"], cluster.deleted) == (True, ["rail"], [])
    [drift] = drift_of("macvlan_network", {"state": "present"}, found)
    assert (drift["object"], drift["change"], drift["ours"]) == (PLACE, "change", True)
    assert field in drift["fields"]

    assert run(monkeypatch, cluster) == found
    assert cluster.deleted == ["NetworkAttachmentDefinition"]
    assert (run(monkeypatch, cluster)["changed"], run(monkeypatch, cluster, check=True)["changed"]) == (False, False)


@pytest.mark.parametrize("stranger", ["its owner", "the network's owner"])
def test_what_is_not_owned_by_a_network_of_ours_is_not_deleted_but_named(monkeypatch, stranger):
    cluster = Operator([] if stranger == "the network's owner" else OURS)
    if stranger == "its owner":
        cluster.objects["NetworkAttachmentDefinition"]["metadata"]["ownerReferences"][0]["uid"] = "other"
    cluster.edit(mtu=1500)
    assert run(monkeypatch, cluster, check=True)["changed"]
    with pytest.raises(FabricError, match="mtu=1500, but 9000 is planned") as error:
        run(monkeypatch, cluster)
    assert f"does not overwrite {PLACE}: delete it unless somebody needs it" in error.value.next_step
    assert cluster.deleted == []


@pytest.mark.parametrize("check", [True, False])
def test_an_object_of_others_with_a_planned_name_is_not_overwritten(monkeypatch, check):
    cluster = Operator()
    del cluster.objects["MacvlanNetwork"]
    with pytest.raises(AssertionError):  # its network was deleted a moment ago: the operator will delete it too
        run(monkeypatch, cluster)
    del cluster.objects["NetworkAttachmentDefinition"]["metadata"]["ownerReferences"]
    with pytest.raises(FabricError, match="was made for no MacvlanNetwork") as error:
        run(monkeypatch, cluster, check=check)
    assert error.value.where == PLACE


def test_an_operator_that_does_not_create_it_again_is_what_to_look_at(monkeypatch):
    cluster = Operator()
    cluster.works = False
    cluster.edit(mtu=1500)
    with pytest.raises(FabricError, match="jobs/rail does not exist") as error:
        run(monkeypatch, cluster)
    assert error.value.next_step.startswith("Read the log of the network operator's controller")
