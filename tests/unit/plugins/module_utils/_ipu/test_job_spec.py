import copy

import pytest
from ansible_collections.ipu.fabric.plugins.module_utils._ipu import job_spec
from ansible_collections.ipu.fabric.tests.unit.fixtures.jobs import request, restart, volume, workers

TEMPLATE = {"spec": {"containers": [{"name": "c", "image": "i"}]}}
LAUNCHER = {"command": ["mpirun"], "env": None}


def test_smallest_job_names_only_what_was_given():
    assert job_spec.build_job(request()) == {
        "apiVersion": "graphcore.ai/v1alpha1",
        "kind": "IPUJob",
        "metadata": {"name": "mnist", "namespace": "default"},
        "spec": {"jobInstances": 1, "ipusPerJobInstance": "2", "workers": {"template": TEMPLATE}},
    }


def test_whole_job():
    job = job_spec.build_job(
        request(
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


MPI = "OMPI_MCA_btl_tcp_if_include"


@pytest.mark.parametrize(
    ("launcher", "given", "value"),
    [
        ({}, {"workers_per_job_instance": 2, "networks": ["rdma-net"]}, "net1"),
        ({}, {"workers_per_job_instance": 2, "networks": ["a", "x/b@rail1", "c"]}, "net1,rail1,net3"),
        ({}, {"workers_per_job_instance": 2}, None),
        # Alone a worker has nobody to talk to.
        ({}, {"networks": ["rdma-net"]}, None),
        ({"mpi_interfaces": ["eth0"]}, {"networks": ["rdma-net"]}, "eth0"),
        ({"mpi_interfaces": ["10.5.0.0/24", "net2"]}, {}, "10.5.0.0/24,net2"),
        ({"mpi_interfaces": []}, {"workers_per_job_instance": 2, "networks": ["rdma-net"]}, None),
        (
            {"env": [{"name": MPI, "value": "own"}]},
            {"workers_per_job_instance": 2, "networks": ["rdma-net"]},
            "own",
        ),
    ],
)
def test_interfaces_of_mpi(launcher, given, value):
    made = job_spec.build_job(request(launcher={**LAUNCHER, **launcher}, **given))["spec"]["launcher"]
    assert [one["value"] for one in made.get("env", []) if one["name"] == MPI] == ([value] if value else [])
    assert set(made) <= {"command", "env"}


def test_instances_stay_as_they_were_scaled_unless_given():
    assert job_spec.build_job(request(), instances=4)["spec"]["jobInstances"] == 4
    assert job_spec.build_job(request(job_instances=2), instances=4)["spec"]["jobInstances"] == 2


def test_interactive():
    assert job_spec.build_job(request(interactive={"ttl": 60}))["spec"]["interactive"] == {"ttl": 60}


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
        request(
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
        ({"a": {"b": 1}}, {"a": 1}, ["spec.a"]),
        ({"a": [1]}, {"a": {"b": 1}}, ["spec.a"]),
    ],
)
def test_differing_fields(before, after, paths):
    assert job_spec.differing_fields(before, after) == paths


def test_partitions():
    job = job_spec.build_job(request(job_instances=2))
    assert job_spec.partition_names(job) == ["p-mnist-default-0", "p-mnist-default-1"]


def test_a_job_that_is_scaled_to_none_has_no_partition():
    metadata = {"name": "mnist", "namespace": "default"}
    assert job_spec.partition_names({"metadata": metadata, "spec": {"jobInstances": 0}}) == []


@pytest.mark.parametrize(
    ("finalizers", "held", "others"),
    [
        ({}, False, []),
        ({"finalizers": ["example.org/x"]}, False, ["example.org/x"]),
        ({"finalizers": ["ipu.finalizers.graphcore.ai"]}, True, []),
        ({"finalizers": ["example.org/x", "ipu.finalizers.graphcore.ai"]}, True, ["example.org/x"]),
    ],
)
def test_only_the_operators_finalizer_is_removed(finalizers, held, others):
    job = {"metadata": {"name": "mnist", "resourceVersion": "7", **finalizers}}
    assert job_spec.has_finalizer(job) is held
    assert job_spec.finalizer_patch(job) == {"metadata": {"finalizers": others, "resourceVersion": "7"}}
