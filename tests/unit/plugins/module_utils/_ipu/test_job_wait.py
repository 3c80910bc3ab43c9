# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest
from ansible_collections.ipu.fabric.plugins.module_utils._common.result import FabricError
from ansible_collections.ipu.fabric.plugins.module_utils._ipu import job_wait as wait

REFUSED = FabricError("The API server refused to read an object.", "x", "forbidden", "y")
PARAMS = {"name": "mnist", "namespace": "n", "wait_timeout": 100, "logs": {"path": None, "tail": 5}}


class Clock:
    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


class Cluster:
    """Gives what the test sets: a job, or an error."""

    def __init__(self, job=None, pods=()):
        self.job, self.pods = job, list(pods)

    def get(self, _path):
        if isinstance(self.job, Exception):
            raise self.job
        return self.job

    def items(self, path, **_query):
        if isinstance(self.pods, Exception):
            raise self.pods
        return self.pods if path == "/api/v1/pods" else []


def operator(ready="True", name="manager"):
    conditions = [{"type": "Ready", "status": ready}]
    return {"metadata": {"name": name, "namespace": "o"}, "status": {"conditions": conditions}}


def job(word, **spec):
    metadata = {"name": "mnist", "namespace": "n", "uid": "u"}
    return {"metadata": metadata, "spec": {"jobInstances": 1, **spec}, "status": {"launcherStatus": word}}


def a_wait(cluster, clock):
    said = []
    return wait.Wait(cluster, "/path", PARAMS, said.append, clock), said


@pytest.mark.parametrize(
    ("pods", "fault"),
    [
        ([operator()], ""),
        ([operator("False", "old"), operator()], ""),
        ([], "is not there"),
        ([operator("False")], "no ready pod (o/manager)"),
    ],
)
def test_operator_fault(pods, fault):
    found = wait.operator_fault(Cluster(pods=pods))
    assert fault in found
    assert bool(found) == bool(fault)


def test_a_user_who_may_not_look_learns_nothing_about_the_operator():
    cluster = Cluster()
    cluster.pods = REFUSED
    assert wait.operator_fault(cluster) == ""


def test_stay_starts_anew_after_a_break():
    clock = Clock()
    stay, seen = wait.Stay(clock), []
    for clock.now, so in [(0, True), (4, True), (5, False), (6, True), (10, True), (11, True)]:
        seen.append(stay.long(so, 5))
    assert seen == [False, False, False, False, False, True]


def test_a_refusal_in_the_midst_of_a_wait_is_borne_for_a_while_and_not_at_its_start():
    clock, cluster = Clock(), Cluster(REFUSED)
    with pytest.raises(FabricError, match="forbidden"):
        a_wait(cluster, clock)[0].look()
    cluster.job = job("Running")
    waiting, _said = a_wait(cluster, clock)
    assert waiting.look().phase == "Running"
    cluster.job, clock.now = REFUSED, 29
    assert waiting.look() is None
    clock.now = 31
    with pytest.raises(FabricError, match="forbidden"):
        waiting.look()


def test_a_job_that_is_gone_is_looked_for_twice():
    clock, cluster = Clock(), Cluster(job("Running"))
    waiting, _said = a_wait(cluster, clock)
    waiting.look()
    cluster.job = None
    assert waiting.look() is None
    clock.now = wait.PATIENCE
    with pytest.raises(FabricError, match="was deleted while it was waited for"):
        waiting.look()


def test_progress_has_only_what_changed():
    clock, cluster = Clock(), Cluster(job("Pending"), [operator()])
    waiting, said = a_wait(cluster, clock)
    for clock.now, word in enumerate(["Pending", "Pending", "Running", "Running", "Completed"]):
        cluster.job = job(word)
        waiting.look()
    assert [(step["seconds"], step["state"]) for step in waiting.progress] == [
        (0, "Pending"),
        (2, "Running"),
        (4, "Completed"),
    ]
    assert len(said) == 3
    assert said[1].startswith("IPUJob n/mnist, after 2 s: Running")


@pytest.mark.parametrize(
    ("word", "spec", "goal", "now", "ends"),
    [
        ("Pending", {}, "present", 0, ""),
        ("Running", {"launcher": {"command": ["x"]}}, "present", 0, "done"),
        ("Running", {"launcher": {"command": ["x"]}}, "finished", 0, ""),
        ("Completed", {}, "finished", 0, "done"),
        ("Failed", {}, "present", 0, "mnist failed"),
        ("Failed", {"restartPolicy": {"type": "OnFailure"}}, "finished", 0, ""),
        ("Running", {}, "finished", 101, "has not ended within wait_timeout"),
        ("Pending", {}, "present", 101, "does not run within wait_timeout"),
    ],
)
def test_when_a_wait_ends(word, spec, goal, now, ends):
    clock = Clock()
    waiting, _said = a_wait(Cluster(job(word, **spec), [operator()]), clock)
    clock.now = now
    if ends in ("", "done"):
        assert waiting.done(goal) == (ends == "done")
        return
    with pytest.raises(wait.JobError, match=ends) as error:
        waiting.done(goal)
    assert error.value.as_dict()["job"]["state"] == word
    assert error.value.as_dict()["progress"]
