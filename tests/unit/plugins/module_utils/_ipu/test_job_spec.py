# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import copy

import pytest
from ansible_collections.ipu.fabric.plugins.module_utils._common.result import FabricError
from ansible_collections.ipu.fabric.plugins.module_utils._ipu import job_spec
from hypothesis import given
from hypothesis import strategies as st

TEMPLATE = {"spec": {"containers": [{"name": "c", "image": "i"}]}}
PARAMS = {
    "name": "mnist",
    "namespace": "default",
    "state": "present",
    "job_instances": None,
    "ipus_per_job_instance": 2,
    "workers_per_job_instance": None,
    "model_replicas_per_worker": None,
    "launcher": None,
    "interactive": None,
    "workers": {"template": TEMPLATE, "replicas": None},
    "networks": [],
    "rdma_resource": "",
    "volumes": [],
    "restart_policy": None,
    "clean_pod_policy": None,
    "labels": {},
    "wait": True,
    "wait_timeout": 600,
}
LAUNCHER = {"command": ["mpirun"], "env": None}


def params(**changed):
    return {**copy.deepcopy(PARAMS), **changed}


def restart(kind, codes=None, limit=None):
    return {"type": kind, "exit_codes": codes, "back_off_limit": limit}


def volume(path="/data", **source):
    return {"nfs": None, "claim": None, "read_only": False, "mount_path": path, **source}


def workers(*containers, **rest):
    return {"template": {"spec": {"containers": list(containers)}}, "replicas": None, **rest}


@pytest.mark.parametrize(
    "changed",
    [
        {},
        {"name": "a" * 36},
        {"name": "0"},
        {"job_instances": 1, "workers_per_job_instance": 1, "model_replicas_per_worker": 1},
        {"ipus_per_job_instance": 1},
        {"ipus_per_job_instance": 64},
        {"launcher": LAUNCHER, "clean_pod_policy": "Workers"},
        {"interactive": {"ttl": 600}, "state": "finished"},
        {"interactive": {"ttl": 6000}},
        {"restart_policy": restart("ExitCode", ["1", "128-255"], 0)},
        {"volumes": [volume(claim="c"), volume("/nfs", nfs={"server": "s", "path": "/"})]},
        {"networks": ["rdma-net", "other/rail-1@net2"], "rdma_resource": "rdma/a"},
        {"state": "absent", "workers": None, "ipus_per_job_instance": None},
    ],
)
def test_no_problems(changed):
    assert job_spec.problems(params(**changed)) == []


@pytest.mark.parametrize(
    ("changed", "problem"),
    [
        ({"name": "a" * 37}, "has 37 characters, 36 are possible"),
        ({"name": "Mnist"}, "no DNS-1123 label"),
        ({"name": "mnist-"}, "no DNS-1123 label"),
        ({"name": ""}, "no DNS-1123 label"),
        ({"name": "m.nist"}, "no DNS-1123 label"),
        ({"name": "mnist\n"}, "no DNS-1123 label"),
        ({"name": "-x", "state": "absent"}, "no DNS-1123 label"),
        ({"namespace": "n" * 64}, "has 64 characters"),
        ({"ipus_per_job_instance": None}, "ipus_per_job_instance is needed"),
        ({"ipus_per_job_instance": 0}, "ipus_per_job_instance is 0"),
        ({"ipus_per_job_instance": -2}, "ipus_per_job_instance is -2"),
        ({"ipus_per_job_instance": 3}, "ipus_per_job_instance is 3"),
        ({"ipus_per_job_instance": 128}, "ipus_per_job_instance is 128"),
        ({"job_instances": 0}, "job_instances is 0"),
        ({"workers_per_job_instance": -1}, "workers_per_job_instance is -1"),
        ({"model_replicas_per_worker": 0}, "model_replicas_per_worker is 0"),
        ({"workers": None}, "workers is needed"),
        ({"workers": workers()}, "at least one container"),
        ({"workers": {"template": {}, "replicas": 1}}, "at least one container"),
        ({"workers": workers({"name": "c"})}, "containers[0] has no image"),
        ({"workers": workers({"name": "c", "image": "i"}, {"image": "i"})}, "containers[1] has no name"),
        ({"workers": workers({"name": "c", "image": "i"}, replicas=0)}, "workers.replicas is 0"),
        ({"launcher": {"command": [], "env": None}}, "launcher.command is empty"),
        ({"launcher": LAUNCHER, "interactive": {"ttl": 9}}, "exclude each other"),
        ({"interactive": {"ttl": 0}}, "interactive.ttl is 0"),
        ({"interactive": {"ttl": 601}, "state": "finished"}, "shorter than interactive.ttl"),
        ({"state": "finished", "wait": False}, "wait is false"),
        ({"wait_timeout": 0}, "wait_timeout is 0"),
        ({"restart_policy": restart("ExitCode")}, "exit_codes is needed"),
        ({"restart_policy": restart("OnFailure", ["1"])}, "only for the type ExitCode"),
        ({"restart_policy": restart("ExitCode", ["0"])}, "'0' is neither"),
        ({"restart_policy": restart("ExitCode", ["256"])}, "'256' is neither"),
        ({"restart_policy": restart("ExitCode", ["9-3"])}, "'9-3' is neither"),
        ({"restart_policy": restart("ExitCode", ["SIGTERM"])}, "'SIGTERM' is neither"),
        ({"restart_policy": restart("Always", limit=-1)}, "back_off_limit is -1"),
        ({"volumes": [volume()]}, "volumes[0] needs either nfs or claim"),
        ({"volumes": [volume(claim="c", nfs={"server": "s", "path": "/"})]}, "volumes[0] needs either nfs or claim"),
        ({"volumes": [volume("data", claim="c")]}, "'data' is not absolute"),
        ({"volumes": [volume(nfs={"server": "s", "path": "export"})]}, "'export' is not absolute"),
        ({"volumes": [volume(claim="c"), volume(claim="d")]}, "volumes[1].mount_path /data is taken"),
        ({"networks": ["rdma net"]}, "'rdma net' is not NAME"),
        ({"rdma_resource": "a/b/c"}, "rdma_resource 'a/b/c'"),
    ],
)
def test_problems(changed, problem):
    found = job_spec.problems(params(**changed))
    assert len(found) == 1 or changed.get("name") == ""
    assert problem in found[0]


def test_all_problems_at_once():
    wrong = params(name="A", ipus_per_job_instance=3, job_instances=0, networks=["?"])
    with pytest.raises(FabricError) as error:
        job_spec.refuse_problems(wrong)
    assert all(word in error.value.seen for word in ("'A'", "is 3", "is 0", "'?'"))


def test_networks_twice():
    template = {**TEMPLATE, "metadata": {"annotations": {job_spec.NETWORKS: "a"}}}
    found = job_spec.problems(params(networks=["b"], workers={"template": template}))
    assert found == [f"networks and the annotation {job_spec.NETWORKS} of workers.template exclude each other"]


@given(st.integers(-10, 1000))
def test_ipus_are_a_power_of_two(number):
    found = job_spec.count_problems(params(ipus_per_job_instance=number))
    assert (found == []) == (number in {2**n for n in range(7)})


def test_smallest_job_names_only_what_was_given():
    assert job_spec.build_job(params()) == {
        "apiVersion": "graphcore.ai/v1alpha1",
        "kind": "IPUJob",
        "metadata": {"name": "mnist", "namespace": "default"},
        "spec": {"jobInstances": 1, "ipusPerJobInstance": "2", "workers": {"template": TEMPLATE}},
    }


def test_whole_job():
    job = job_spec.build_job(
        params(
            job_instances=3,
            workers_per_job_instance=2,
            model_replicas_per_worker=4,
            launcher={"command": ["mpirun", "train"], "env": [{"name": "A", "value": "1"}]},
            workers=workers({"name": "c", "image": "i"}, replicas=2),
            restart_policy=restart("ExitCode", ["1", "128-255"], 5),
            clean_pod_policy="All",
            labels={"team": "vision"},
        )
    )
    assert job["metadata"]["labels"] == {"team": "vision"}
    assert job["spec"] == {
        "jobInstances": 3,
        "ipusPerJobInstance": "2",
        "workersPerJobInstance": "2",
        "modelReplicasPerWorker": "4",
        "launcher": {"command": ["mpirun", "train"], "env": [{"name": "A", "value": "1"}]},
        "restartPolicy": {"type": "ExitCode", "backOffLimit": 5, "exitCodes": "1,128-255"},
        "cleanPodPolicy": "All",
        "workers": {"template": TEMPLATE, "replicas": 2},
    }


def test_instances_stay_as_they_were_scaled_unless_given():
    assert job_spec.build_job(params(), instances=4)["spec"]["jobInstances"] == 4
    assert job_spec.build_job(params(job_instances=2), instances=4)["spec"]["jobInstances"] == 2


def test_interactive():
    assert job_spec.build_job(params(interactive={"ttl": 60}))["spec"]["interactive"] == {"ttl": 60}


def test_networks_volumes_and_rdma_are_written_into_the_template():
    template = {
        "metadata": {"annotations": {"a": "b"}},
        "spec": {
            "volumes": [{"name": "own", "emptyDir": {}}],
            "containers": [
                {"name": "c", "image": "i", "securityContext": {"runAsUser": 0}, "resources": {"limits": {"cpu": "1"}}},
                {"name": "d", "image": "i", "volumeMounts": [{"name": "own", "mountPath": "/own"}]},
            ],
        },
    }
    given_template = copy.deepcopy(template)
    made = job_spec.pod_template(
        params(
            workers={"template": template},
            networks=["rdma-net", "x/rail-1"],
            rdma_resource="rdma_shared_device_a",
            volumes=[volume(claim="data", read_only=True), volume("/n", nfs={"server": "s", "path": "/e"})],
        )
    )
    assert template == given_template
    assert made["metadata"]["annotations"] == {"a": "b", job_spec.NETWORKS: "rdma-net,x/rail-1"}
    assert made["spec"]["volumes"] == [
        {"name": "own", "emptyDir": {}},
        {"name": "fabric-0", "persistentVolumeClaim": {"claimName": "data", "readOnly": True}},
        {"name": "fabric-1", "nfs": {"server": "s", "path": "/e", "readOnly": False}},
    ]
    first, second = made["spec"]["containers"]
    assert [mount["mountPath"] for mount in first["volumeMounts"]] == ["/data", "/n"]
    assert [mount["mountPath"] for mount in second["volumeMounts"]] == ["/own", "/data", "/n"]
    assert first["resources"]["limits"] == {"cpu": "1", "rdma/rdma_shared_device_a": "1"}
    assert first["securityContext"] == {"runAsUser": 0, "capabilities": {"add": ["IPC_LOCK"]}}
    assert "securityContext" not in second


def test_ipc_lock_is_added_once():
    container = {"securityContext": {"capabilities": {"add": ["IPC_LOCK"]}}}
    job_spec.add_rdma(container, "vendor.com/hca")
    assert container["securityContext"]["capabilities"]["add"] == ["IPC_LOCK"]
    assert container["resources"]["requests"] == {"vendor.com/hca": "1"}


@pytest.mark.parametrize(
    ("before", "after", "paths"),
    [
        ({"a": 1}, {"a": 1}, []),
        ({"a": 1}, {"a": 2}, ["spec.a"]),
        ({"a": {"b": [1, {"c": 2}]}}, {"a": {"b": [1, {"c": 3}]}}, ["spec.a.b[1].c"]),
        ({"a": [1]}, {"a": [1, 2]}, ["spec.a"]),
        ({"a": 1}, {"b": 1}, ["spec.a", "spec.b"]),
    ],
)
def test_differences(before, after, paths):
    assert job_spec.differences(before, after) == paths


@pytest.mark.parametrize(
    ("policy", "clean", "warned"),
    [("OnFailure", "All", True), ("Never", "All", False), ("OnFailure", "Workers", False), ("Always", "All", True)],
)
def test_clean_pod_policy_all_wins(policy, clean, warned):
    found = job_spec.advice(params(restart_policy=restart(policy), clean_pod_policy=clean))
    assert bool(found) == warned


def test_partitions():
    job = job_spec.build_job(params(job_instances=2))
    assert job_spec.partitions(job) == ["p-mnist-default-0", "p-mnist-default-1"]


def test_a_job_that_is_scaled_to_none_has_no_partition():
    metadata = {"name": "mnist", "namespace": "default"}
    assert job_spec.partitions({"metadata": metadata, "spec": {"jobInstances": 0}}) == []


@pytest.mark.parametrize(
    ("finalizers", "held", "others"),
    [
        ({}, False, []),
        ({"finalizers": ["example.org/x"]}, False, ["example.org/x"]),
        ({"finalizers": ["ipu.finalizers.graphcore.ai"]}, True, []),
        ({"finalizers": ["example.org/x", "ipu.finalizers.graphcore.ai"]}, True, ["example.org/x"]),
    ],
)
def test_only_the_operators_finalizer_is_taken_off(finalizers, held, others):
    job = {"metadata": {"name": "mnist", "resourceVersion": "7", **finalizers}}
    assert job_spec.held(job) is held
    assert job_spec.release_patch(job) == {"metadata": {"finalizers": others, "resourceVersion": "7"}}
