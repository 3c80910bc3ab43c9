"""Playbooks that need a cluster, on hosts that are in none, as after reset: they say so at once, and ask no API."""

import pytest
from ansible_collections.ipu.fabric.tests.unit.fixtures import site
from ansible_collections.ipu.fabric.tests.unit.fixtures.playbooks import play
from ansible_collections.ipu.fabric.tests.unit.playbooks.test_api import GROUPS


@pytest.mark.parametrize("playbook", ["verify", "drift", "upgrade"])
def test_no_host_is_in_a_cluster(tmp_path, playbook):
    found = {"host_info": site.observed(site.site())}
    done = play(tmp_path, f"ipu.fabric.{playbook}", GROUPS, found, fabric_probe_ports=False)
    assert done.code != 0
    assert "No host of this inventory is in a cluster. Seen: Plan: 3 hosts to install." in done.said, done.text
    assert "Next: run ipu.fabric.site first" in done.said
    assert {call.module for call in done.calls} == {"host_info"}
