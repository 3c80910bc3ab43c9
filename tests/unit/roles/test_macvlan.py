"""The role macvlan ends with pods that start, unless the playbook proves the fabric after it."""

from __future__ import annotations

import typing as t
from pathlib import Path

import pytest
from ansible_collections.ipu.fabric.tests.unit.fixtures.paths import ROOT
from ansible_collections.ipu.fabric.tests.unit.fixtures.play import Answers, Data, play

POD: Data = {"name": "rail", "namespace": "jobs", "hosts": ["w1"]}


class Cluster(Answers):
    def kube_apply(self, args: Data) -> Data:
        return {"objects": []}


@pytest.mark.parametrize("more", [{}, {"macvlan_start_pod": False}])
def test_a_pod_on_each_network(tmp_path: Path, more: Data) -> None:
    content: t.List[Data] = [{"hosts": "cp1", "gather_facts": False, "roles": ["ipu.fabric.macvlan"]}]
    networks = [{**POD, "master": "eth1", "mtu": 9000, "ipam": {}}]
    result = play(tmp_path, content, Cluster, {"kube_control_plane": ["cp1"]}, macvlan_networks=networks, **more)
    assert result.code == 0, result.text
    assert result.calls[-1].args.get("pods") == (None if more else [POD])


def test_the_play_of_all_roles_leaves_it_to_the_proof() -> None:
    text = (ROOT / "playbooks/plays/fabric.yml").read_text(encoding="utf-8")
    assert all(f"{role}_start_pod: false" in text for role in ("spiderpool", "whereabouts"))
    assert "start_pod" not in (ROOT / "roles/macvlan/tasks/apply.yml").read_text(encoding="utf-8")
