"""In which turns the role rdma_host reboots nodes, and which of them are its host's."""

from __future__ import annotations

import typing as t

import pytest
from ansible_collections.ipu.fabric.plugins.module_utils._common.result import FabricError
from ansible_collections.ipu.fabric.plugins.module_utils._component import rdma_host, rdma_host_node
from ansible_collections.ipu.fabric.tests.unit.fixtures.components import defaults

DUE = {"node": "n", "reboot": ["RDMA devices are exclusive"]}
NODE = {"metadata": {"name": "w1"}, "status": {"nodeInfo": {"machineID": "id-w1", "bootID": "b1"}}}


@pytest.mark.parametrize(("size", "workers"), [(1, [["w1"], ["w2"], ["w3"]]), (2, [["w1", "w2"], ["w3"]])])
def test_control_planes_one_at_a_time_then_workers(size: int, workers: t.List[t.List[str]]) -> None:
    results = {"w1": DUE, "cp1": DUE, "w2": DUE, "cp2": DUE, "w3": DUE, "ready": {**DUE, "reboot": []}}
    results.update(outside={**DUE, "node": ""}, failed={})
    seen = rdma_host.Seen(list(results), list(results.values()), ["cp1", "cp2", "cp3"])
    assert rdma_host.decide(defaults("rdma_host", reboot_workers=size), seen).turns == [["cp1"], ["cp2"], *workers]


@pytest.mark.parametrize(
    ("machine_id", "found", "error", "said"),
    [
        ("id-w1", [NODE], "", ""),
        ("", [NODE], "", ""),  # who does not say it is not another one
        (
            "other",
            [NODE],
            "",
            "its machine-id is id-w1, but that of the host is other. w1 was not rebooted.*kubeadm reset",
        ),
        ("id-w1", [], "", "no such node in that cluster. w1 was not rebooted.*kubeadm reset"),
        (
            "id-w1",
            [],
            "certificate has expired",
            "certificate has expired. w1 was not.*run ipu.fabric.renew_certificates",
        ),
    ],
)
def test_which_node_is_drained(machine_id: str, found: t.List[t.Any], error: str, said: str) -> None:
    settings = defaults("rdma_host", "rdma_host_node")
    seen = rdma_host_node.Seen("w1", "w1", machine_id, found, error)
    if not said:
        assert rdma_host_node.decide(settings, seen) == rdma_host_node.Node("w1", "b1")
        return
    with pytest.raises(FabricError, match=said):
        rdma_host_node.decide(settings, seen)
