"""MPIJobs and native workloads, checked by a real API server, and the wait for the end of a job."""

from __future__ import annotations

import dataclasses
import typing as t

import pytest
import yaml
from ansible_collections.ipu.fabric.plugins.module_utils._component.mpi_operator import PROBE
from ansible_collections.ipu.fabric.plugins.module_utils._component.native_workload import Settings, native_workload
from ansible_collections.ipu.fabric.plugins.module_utils._component.settings import pick
from ansible_collections.ipu.fabric.plugins.plugin_utils._render.mpijob import mpi_job
from ansible_collections.ipu.fabric.tests.integration.api_server import ApiServer, ModuleFailedError, Modules, crds
from ansible_collections.ipu.fabric.tests.unit.fixtures.paths import SCHEMAS

RDMA = {"network": "rdma-net", "rdma_resource": "rdma/rdma_shared_device_a"}
EVERYTHING: t.Dict[str, t.Any] = {
    **RDMA,
    "image": "docker.io/library/busybox:1.37",
    "command": ["true"],
    "env": {"EPOCHS": 3},
    "vipu": {"host": "10.5.0.2", "port": 8090, "partition": "training"},
    "check_memlock": True,
    "group": 100,
    "volumes": [
        {"name": "data", "path": "/data", "nfs": {"server": "10.5.0.9", "path": "/sets"}, "read_only": True},
        {"name": "out", "path": "/out", "claim": "results"},
        {"name": "tmp", "path": "/scratch", "size": "1Gi"},
    ],
    "shm": "1Gi",
    "resources": {"requests": {"cpu": "100m"}, "limits": {"memory": "1Gi"}},
    "node_selector": {"ipunode": "true"},
    "tolerations": [{"key": "ipu", "operator": "Exists", "effect": "NoSchedule"}],
    "pull_secrets": ["site"],
    "deadline": 600,
}


@pytest.fixture
def mpi(run: Modules, schemas: t.Any) -> None:
    definition = SCHEMAS / "mpi-operator" / "0.8.2" / "kubeflow.org_mpijobs.yaml"
    run("kube_apply", objects=crds(definition), validation="Warn")


@pytest.mark.usefixtures("mpi")
@pytest.mark.parametrize("user", [0, 1000])
@pytest.mark.parametrize("transport", ["roce", "tcp"])
def test_mpi_job(run: Modules, transport: str, user: int) -> None:
    rails = {"network": "rail-a,rail-b", "rdma_resource": "rdma/a,rdma/b", "pml": "ob1", "one_per_node": True}
    devices = {"privileged": True, "network": "", "rdma_resource": "", "interfaces": ["ens224"]}
    more = {"workers": 4, "slots_per_worker": 2, "ttl": 60, "clean_pod_policy": "All", "suspend": True}
    for settings in ({}, rails, devices, more):
        job = mpi_job({**EVERYTHING, **settings, "name": f"job-{transport}", "transport": transport, "user": user})
        assert run("kube_apply", objects=[job])["changed"]
        assert not run("kube_apply", objects=[job])["changed"]
    run("kube_apply", objects=[job], state="absent")


@pytest.mark.usefixtures("mpi")
def test_what_the_definition_refuses(run: Modules) -> None:
    job = mpi_job({**EVERYTHING, "name": "typo", "transport": "tcp"})
    job["spec"]["cleanPodPolicy"] = "Running"  # where v1alpha2 had it
    with pytest.raises(ModuleFailedError, match=r"spec\.cleanPodPolicy: field not declared"):
        run("kube_apply", check=True, objects=[job])
    job = mpi_job({**EVERYTHING, "name": "kind", "transport": "tcp"})
    job["spec"]["mpiImplementation"] = "LAM"
    with pytest.raises(ModuleFailedError, match="Unsupported value"):
        run("kube_apply", check=True, objects=[job])


@pytest.mark.usefixtures("mpi")
def test_the_probe_of_the_role(run: Modules) -> None:
    assert not run("kube_wait", accepted=[PROBE], timeout=5)["pending"]


@pytest.mark.parametrize("user", [0, 1000])
@pytest.mark.parametrize("kind", ["Job", "Deployment"])
def test_native_workload(run: Modules, kind: str, user: int) -> None:
    own = {"kind": kind, "name": f"native-{kind.lower()}-{user}", "user": user, "port": 8000}
    settings = pick(Settings, {**EVERYTHING, **own, "vipu_host": "10.5.0.2", "partition": "training"})
    objects = native_workload(settings)
    run("kube_apply", objects=objects)
    assert not run("kube_apply", objects=objects)["changed"]
    if kind == "Deployment":
        assert run("kube_apply", objects=native_workload(dataclasses.replace(settings, replicas=3)))["updated"] == [
            f"Deployment default/{settings.name}"
        ]
    run("kube_apply", objects=objects, state="absent")


def end(api: ApiServer, name: str, *conditions: str, **status: t.Any) -> None:
    """Say that a Job has ended, as its controller would."""
    now = "2026-01-01T00:00:00Z"
    said = [{"type": kind, "status": "True", "reason": "Test", "message": "said so"} for kind in conditions]
    body = yaml.safe_dump({"status": {"startTime": now, "conditions": said, **status}})
    api.kubectl("patch", "job", name, "--subresource=status", "--type=merge", f"--patch={body}")


def job_of(run: Modules, name: str) -> None:
    run("kube_apply", objects=native_workload(Settings(name, "x")))


def test_a_job_that_succeeded(run: Modules, api: ApiServer) -> None:
    job_of(run, "good")
    end(api, "good", "SuccessCriteriaMet", "Complete", succeeded=1, completionTime="2026-01-01T00:00:09Z")
    assert run("kube_wait", job={"name": "good"}, timeout=5)["status"]["succeeded"] == 1


def test_a_job_that_failed(run: Modules, api: ApiServer) -> None:
    job_of(run, "bad")
    end(api, "bad", "FailureTarget", "Failed", failed=1)
    with pytest.raises(ModuleFailedError, match="Test: said so") as error:
        run("kube_wait", job={"name": "bad"}, timeout=5)
    assert error.value.result["error"]["where"] == "Job default/bad"


def test_a_job_that_goes_on(run: Modules, api: ApiServer) -> None:
    job_of(run, "long")
    assert run("kube_wait", check=True, job={"name": "long"})["status"] == {}
    with pytest.raises(ModuleFailedError, match="Job default/long goes on: no pod yet"):
        run("kube_wait", job={"name": "long"}, timeout=1, sleep=0.2)
    with pytest.raises(ModuleFailedError, match=r"waiting longer can't help.*Job default/none does not exist"):
        run("kube_wait", job={"name": "none"}, patience=1, sleep=0.2)
