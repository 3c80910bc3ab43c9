# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest
from ansible_collections.ipu.fabric.plugins.module_utils._plan.restoring import restore_problems
from ansible_collections.ipu.fabric.tests.unit.fixtures import site

CA, ENDPOINT = "0123456789abcdef", "10.88.0.1:6443"
PLAN = {
    "releases": {"kubernetes": "1.35.4"},
    "cluster": {"pod_cidr": "10.244.0.0/16", "service_cidr": "10.96.0.0/12", "endpoint": ENDPOINT},
    "hosts": {"cp1": {"node": "node1"}, "w1": {"node": "node2"}},
}


def about(**changes):
    cluster = {
        "name": ENDPOINT,
        "ca": CA,
        "version": "1.35.4",
        "pod_cidr": "10.244.0.0/16",
        "service_cidr": "10.96.0.0/12",
        "nodes": ["node1", "node2", "node3"],
    }
    return {"format": 1, "name": "20261123T004500Z", "cluster": {**cluster, **changes}}


def host(number, ca="", answered=False, endpoint=ENDPOINT):
    facts = site.host(number, [])["host"]
    facts["kubelet"].update(cluster=ca)
    facts["cluster"].update(answered=answered, endpoint=endpoint, version="1.35.4")
    return facts


BARE = {"cp1": host(1), "w1": host(2)}
LOST = {"cp1": host(1, CA), "w1": host(2, CA)}
ALIVE = {"cp1": host(1, CA, answered=True), "w1": host(2, CA)}


@pytest.mark.parametrize(
    ("backup", "hosts", "named", "restoring", "seen"),
    [
        (about(), BARE, "", "", ""),
        (about(), LOST, "", "", ""),
        (about(), ALIVE, "", "", f"-e fabric_restore={ENDPOINT}."),
        (about(), ALIVE, "kubernetes", "", "A cluster lives: the API server of cp1 answers"),
        (about(), ALIVE, ENDPOINT, "", ""),
        (about(), ALIVE, "", "20261123T004500Z", ""),  # the cluster is the one that it has begun
        (about(), ALIVE, "", "20261122T004500Z", "A cluster lives"),
        (about(), {**BARE, "w1": host(2, "fedcba9876543210")}, "", "", "w1 belongs to another cluster"),
        (about(), {**BARE, "w1": host(2, "fedcba9876543210")}, "", "20261123T004500Z", "w1 belongs to another"),
        (about(version="1.34.4"), BARE, "", "", "set it to 1.34.4"),
        (about(pod_cidr="10.9.0.0/16"), BARE, "", "", "fabric_pod_cidr: the backup is of a cluster with 10.9.0.0/16"),
        (about(name="10.88.0.9:6443"), BARE, "", "", "fabric_control_plane_endpoint"),
        (about(nodes=["a", "b"]), BARE, "", "", "its nodes were a, b, the hosts are node1, node2"),
        ({**about(), "format": 2}, BARE, "", "", "format 2, this release reads 1"),
    ],
)
def test_restore_problems(backup, hosts, named, restoring, seen):
    found = restore_problems(backup, PLAN, hosts, named, restoring)
    assert len(found) == bool(seen)
    assert seen in " ".join(found)
