"""What reset says before it removes the fabric, and when there is none to remove."""

import pytest
from ansible_collections.ipu.fabric.plugins.module_utils._component.fabric_reset import (
    HOST_SETTINGS,
    Seen,
    Settings,
    decide,
)
from ansible_collections.ipu.fabric.plugins.module_utils._component.ipu_operator import NOTHING
from ansible_collections.ipu.fabric.tests.unit.fixtures.site import finished, site

NETWORK = {"stacks": {"network_operator": {"objects": ["MacvlanNetwork a"], "pods": [], "needed_by": []}}}
USED = {"stacks": {"network_operator": {"objects": ["MacvlanNetwork a"], "pods": ["default/user"], "needed_by": []}}}


def plan(**seen):
    return decide(Settings(), Seen(**{"removes_cluster": True, **seen}))


@pytest.mark.parametrize(
    ("seen", "nothing", "refusal"),
    [
        ({}, "Nothing of this fabric is left in the cluster. -e fabric_reset=cluster shows what is left on", ""),
        ({"removes_cluster": False}, "Nothing of this fabric is left in the cluster.", ""),
        (
            {"ipu": {**NOTHING, "tracker": True}, "keeps_tracker": True},
            "is left in the cluster but the IPU operator's partitions (ipu_operator_keep_tracker)",
            "",
        ),
        (
            {"mpi_operator": True},
            "cluster but the MPI operator (ipu.fabric.workloads -e mpi_operator_state=absent -e",
            "",
        ),
        ({"request": "fabric"}, "", ""),
        (
            NETWORK,
            "",
            "Next: run it again with -e fabric_reset=fabric, which removes the fabric and leaves Kubernetes; -e",
        ),
        (
            {**NETWORK, "removes_cluster": False},
            "",
            "with -e fabric_reset=fabric, which removes the fabric and leaves Kubernetes.",
        ),
        ({**NETWORK, "request": "fabrik"}, "", "Seen: fabric_reset is fabrik. Next: run it again with -e"),
        (USED, "", "Next: stop the pods and jobs of the table above, then run it again with -e fabric_reset=fabric"),
        ({**NETWORK, "request": "fabric"}, "", ""),
        ({**USED, "request": "fabric"}, "", "Nothing may use the fabric when it is removed. Seen: default/user. Next:"),
        ({**USED, "request": "fabric", "force": True}, "", ""),
        (
            {"request": "fabric", "gpu_pods": ["ml/train"]},
            "",
            "If pods with GPUs are ending already, run it again when",
        ),
        ({"request": "fabric", "ipu": {**NOTHING, "jobs": ["train/a"]}}, "", "Seen: train/a."),
        ({"marked": ["w1"]}, "", "run it again"),
        ({"own": ["nvidia-network-operator/network-operator"]}, "", "their files on the hosts are removed with them"),
    ],
)
def test_what_is_said(seen, nothing, refusal):
    found = plan(**seen)
    for said, expected in ((found["nothing"], nothing), (found["refusal"], refusal)):
        assert expected in said
        assert bool(said) == bool(expected)


def test_a_pod_with_its_creator_is_in_one_row():
    stack = {"objects": ["Pod default/a", "IPPool n"], "pods": ["default/a of Job train"], "needed_by": []}
    table = plan(stacks={"network_operator": stack})["table"]
    assert [line.split(maxsplit=1)[1] for line in table if line.startswith("objects")] == ["IPPool n"]
    assert any("default/a of Job train" in line for line in table)


def test_an_option_that_would_be_refused_is_not_offered():
    assert "fabric_reset=cluster" not in plan(**NETWORK, removes_cluster=False)["refusal"]


def test_what_stays_is_said_at_the_end():
    others = ["MacvlanNetwork storage"]
    found = plan(
        request="fabric",
        stacks={"network_operator": {"needed_by": others}},
        whereabouts=["kube-system/whereabouts"],
        own=["nvidia-network-operator/network-operator"],
    )
    assert found["end"] == (
        "The network operator stays, with its files on the hosts, because MacvlanNetwork storage needs it; delete that"
        " first to remove it. Whereabouts stays, because kube-system/whereabouts is not of this fabric."
        f" Nothing else of this fabric is left in the cluster. {HOST_SETTINGS}"
    )
    assert found["whereabouts_stays"] == ["kube-system/whereabouts"]
    assert "but the MPI operator (ipu.fabric.workloads" in plan(request="fabric", mpi_operator=True)["end"]
    assert plan(request="fabric")["end"] == f"Nothing of this fabric is left in the cluster. {HOST_SETTINGS}"


@pytest.mark.parametrize(
    ("seen", "said"),
    [
        (
            {
                "stacks": {"network_operator": {"needed_by": ["NetworkAttachmentDefinition default/storage"]}},
                "own": ["nvidia-network-operator/network-operator"],
            },
            "The network operator stays, with multus and 00-multus.conf, because NetworkAttachmentDefinition"
            " default/storage needs it; delete that first to remove it. Nothing else of this fabric is left in the",
        ),
        (
            {
                "stacks": {
                    "spiderpool": {
                        "needed_by": ["SpiderIPPool a", "SpiderIPPool b"],
                        "installations": [{"namespace": "spiderpool", "name": "spiderpool"}],
                    }
                }
            },
            "Spiderpool stays, with its files on the hosts, because SpiderIPPool a, SpiderIPPool b need it; delete",
        ),
        (
            {
                "whereabouts": ["kube-system/whereabouts"],
                "own": ["kube-system/whereabouts"],
                "whereabouts_networks": ["default/storage"],
            },
            "Whereabouts stays, with its files on the hosts, because NetworkAttachmentDefinition default/storage needs",
        ),
    ],
)
def test_what_others_need_is_not_said_to_be_gone(seen, said):
    assert plan(request="fabric", **seen)["end"].startswith(said)
    found = plan(**seen)
    assert found["nothing"].startswith(said)  # what stays is nothing to ask for
    assert found["refusal"] == ""
    assert f"{'operators':<28}none" in found["table"]


def test_a_network_of_others_keeps_no_operator_that_is_not_ours():
    found = plan(request="fabric", stacks={"network_operator": {"needed_by": ["NetworkAttachmentDefinition a/b"]}})
    assert found["end"] == f"Nothing of this fabric is left in the cluster. {HOST_SETTINGS}"


def test_pods_on_the_networks_are_no_objects_that_are_removed():
    stack = {"objects": ["Pod default/user", "MacvlanNetwork a"], "pods": ["default/user"]}
    table = plan(stacks={"network_operator": stack})["table"]
    assert f"{'objects':<28}MacvlanNetwork a" in table
    assert [line for line in table if "default/user" in line] == [f"{'pods on the networks':<28}default/user"]


def test_hosts_without_a_cluster():
    hosts = site()
    assert plan(hosts=hosts)["bare"]
    assert not plan(hosts={**hosts, "w9": {}})["bare"]  # who does not answer may be a node
    assert not plan(hosts={})["bare"]
    assert not plan(hosts=finished())["bare"]
    hosts["w1"]["host"]["kubernetes"] = {"distribution": "k3s"}
    assert not plan(hosts=hosts)["bare"]
