# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which clusters a playbook refuses because others built them, and what it says."""

import re

import pytest
from ansible_collections.ipu.fabric.plugins.module_utils._common.result import FabricError
from ansible_collections.ipu.fabric.plugins.module_utils._component.managed_elsewhere import (
    VERBS,
    Seen,
    Settings,
    decide,
)
from ansible_collections.ipu.fabric.tests.unit.fixtures.paths import ROOT

OURS = {"kubernetes": None, "cluster": {"built_elsewhere": False}}
NODE = {"kubernetes": {"distribution": "rke2"}}
STRANGER = {"cluster": {"built_elsewhere": True}}


def test_our_own_cluster_goes_on():
    assert decide(Settings(), Seen("backup", True, ["cp1", "down"], [OURS, {}])) == {}


@pytest.mark.parametrize(
    ("managed", "hosts", "where", "seen", "step"),
    [
        (False, {"cp1": OURS}, "the inventory", "is false", "back it up with what manages it"),
        (
            True,
            {"cp1": NODE, "w1": NODE},
            "cp1, w1",
            "is true; the host is a node of rke2",
            "run rke2 etcd-snapshot save",
        ),
        (True, {"cp1": STRANGER}, "cp1", "lacks /etc/sysctl.d/99-z-kubernetes.conf", "back it up with what manages it"),
    ],
)
def test_clusters_of_others(managed, hosts, where, seen, step):
    with pytest.raises(FabricError, match="This cluster is managed elsewhere: it is backed up") as refused:
        decide(Settings(), Seen("backup", managed, [*hosts], [*hosts.values()]))
    assert refused.value.where == where
    assert seen in refused.value.seen
    assert refused.value.next_step.startswith(step)


def test_each_playbook_has_its_words():
    asking = {path.stem for path in (ROOT / "playbooks").glob("*.yml") if "tasks_from: managed" in path.read_text()}
    named = [re.findall(r"fabric_verb: (\w+)", (ROOT / f"playbooks/{name}.yml").read_text()) for name in sorted(asking)]
    assert named == [[name] for name in sorted(VERBS)]
