"""`drift` says what `site` would change in the API, and changes nothing."""

import pytest
from ansible_collections.ipu.fabric.tests.unit.fixtures.playbooks import play
from ansible_collections.ipu.fabric.tests.unit.playbooks.test_api import GROUPS, answers

READERS = {"host_info", "cluster_info"}
# The part of the action that notes it is tested in test_api_action.py: here a stand-in answers.
POOL = {
    "object": "IPPool n/a",
    "change": "change",
    "ours": True,
    "fields": ["spec perNodeBlockSize: 8 now, 16 planned"],
}


def test_what_site_would_change(tmp_path):
    found = answers()
    found["kube_apply"]["*"]["ansible_facts"] = {"_fabric_drift_found": [POOL]}
    done = play(tmp_path, "ipu.fabric.drift", GROUPS, found, fabric_probe_ports=False)
    assert done.code == 0, done.text
    assert "site would change 1 object of the cluster" in done.said
    assert "spec perNodeBlockSize: 8 now, 16 planned" in done.said
    assert done.read("artifacts/plan.json")["drift"] == [POOL]
    assert "perNodeBlockSize" in (tmp_path / "artifacts/plan.html").read_text(encoding="utf-8")
    tried = {call.module for call in done.calls if call.module not in READERS}
    assert tried >= {"helm_release", "kube_apply", "macvlan_network", "node_labels"}
    assert [call for call in done.calls if call.module in tried and not call.check] == []
    assert not (tmp_path / "artifacts/bin").exists()


@pytest.mark.parametrize(("drifted", "code"), [([POOL], 2), ([], 0)])
def test_a_timer_notices_drift(tmp_path, drifted, code):
    found = answers()
    found["kube_apply"]["*"]["ansible_facts"] = {"_fabric_drift_found": drifted}
    done = play(tmp_path, "ipu.fabric.drift", GROUPS, found, fabric_probe_ports=False, fabric_fail_on_drift=True)
    assert done.code == code, done.text
    assert ("fabric_fail_on_drift is set" in done.said) == bool(drifted)


def test_another_cluster_has_no_drift(tmp_path):
    done = play(tmp_path, "ipu.fabric.drift", GROUPS, answers(ca="fedcba9876543210"), fabric_probe_ports=False)
    assert done.code != 0
    assert "must lead to the cluster that the hosts of this inventory are in" in done.said, done.text
    assert {call.module for call in done.calls} <= READERS
