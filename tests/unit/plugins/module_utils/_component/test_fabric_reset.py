# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What reset says before it removes the fabric, and when there is none to remove."""

from __future__ import annotations

import pytest
from ansible_collections.ipu.fabric.plugins.module_utils._component.fabric_reset import Seen, Settings, decide
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
        ({"own": ["nvidia-network-operator/network-operator"]}, "", "run it again"),
    ],
)
def test_what_is_said(seen, nothing, refusal):
    found = plan(**seen)
    for said, expected in ((found["nothing"], nothing), (found["refusal"], refusal)):
        assert expected in said
        assert bool(said) == bool(expected)


def test_an_option_that_would_be_refused_is_not_offered():
    assert "fabric_reset=cluster" not in plan(**NETWORK, removes_cluster=False)["refusal"]


def test_what_stays_is_said_at_the_end():
    others = ["MacvlanNetwork storage"]
    found = plan(
        request="fabric",
        stacks={"network_operator": {"needed_by": others}},
        whereabouts=["kube-system/whereabouts"],
        own=[],
    )
    assert found["end"] == (
        "Nothing of this fabric is left in the cluster or on its hosts but MacvlanNetwork storage,"
        " kube-system/whereabouts."
    )
    assert found["whereabouts_stays"] == ["kube-system/whereabouts"]
    assert "but the MPI operator (ipu.fabric.workloads" in plan(request="fabric", mpi_operator=True)["end"]
    assert plan(request="fabric")["end"] == "Nothing of this fabric is left in the cluster or on its hosts."


def test_hosts_without_a_cluster():
    hosts = site()
    assert plan(hosts=hosts)["bare"]
    assert not plan(hosts={**hosts, "w9": {}})["bare"]  # who does not answer may be a node
    assert not plan(hosts={})["bare"]
    assert not plan(hosts=finished())["bare"]
    hosts["w1"]["host"]["kubernetes"] = {"distribution": "k3s"}
    assert not plan(hosts=hosts)["bare"]
