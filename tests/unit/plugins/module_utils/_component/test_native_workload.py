import contextlib
import subprocess

import pytest
from ansible_collections.ipu.fabric.plugins.module_utils._common.result import FabricError
from ansible_collections.ipu.fabric.plugins.module_utils._component import native_workload as workload
from ansible_collections.ipu.fabric.plugins.plugin_utils._render import mpijob
from ansible_collections.ipu.fabric.tests.unit.fixtures.components import defaults

BASE = {"name": "mnist", "image": "poplar:1"}
RDMA = {"network": "rdma-net", "rdma_resource": "rdma/a"}


def objects(**settings):
    return workload.native_workload(workload.Settings(**{**BASE, **settings}))


def pod(**settings):
    return objects(**settings)[0]["spec"]["template"]


def container(**settings):
    return pod(**settings)["spec"]["containers"][0]


def test_the_smallest_job():
    labels = {"app.kubernetes.io/name": "mnist"}
    assert objects() == [
        {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {"name": "mnist", "namespace": "default", "labels": labels},
            "spec": {
                "backoffLimit": 1,
                "parallelism": 1,
                "completions": 1,
                "template": {
                    "metadata": {"labels": labels},
                    "spec": {
                        "restartPolicy": "OnFailure",
                        "containers": [
                            {
                                "name": "main",
                                "image": "poplar:1",
                                "terminationMessagePolicy": "FallbackToLogsOnError",
                                "securityContext": {"runAsUser": 0, "allowPrivilegeEscalation": False},
                            }
                        ],
                    },
                },
            },
        }
    ]


def test_a_deployment_has_a_service_when_it_has_a_port():
    assert [o["kind"] for o in objects(kind="Deployment")] == ["Deployment"]
    deployment, service = objects(kind="Deployment", port=8000, replicas=3, namespace="ml")
    assert deployment["spec"]["replicas"] == 3
    assert deployment["spec"]["minReadySeconds"] == 10
    assert deployment["spec"]["strategy"]["rollingUpdate"] == {"maxSurge": 0, "maxUnavailable": 1}
    assert service["spec"]["selector"] == deployment["spec"]["template"]["metadata"]["labels"]
    assert service["spec"]["ports"] == [{"port": 8000, "targetPort": 8000, "protocol": "TCP"}]
    assert service["metadata"]["namespace"] == "ml"


def test_a_job_asks_for_its_record():
    [job] = objects(record=True)
    assert job["metadata"]["annotations"] == {"fabric.ipu/record": "true"}
    assert "annotations" not in job["spec"]["template"]["metadata"]
    with pytest.raises(FabricError, match="look at a pod with"):
        objects(record=True, kind="Deployment")


def test_a_job_of_several_pods_that_ends():
    spec = objects(replicas=4, backoff_limit=0, deadline=600)[0]["spec"]
    assert (spec["parallelism"], spec["completions"], spec["backoffLimit"]) == (4, 4, 0)
    assert spec["activeDeadlineSeconds"] == 600


def test_network_and_device():
    found = pod(**RDMA)
    assert found["metadata"]["annotations"] == {"k8s.v1.cni.cncf.io/networks": "rdma-net"}
    assert found["spec"]["containers"][0]["resources"] == {"requests": {"rdma/a": "1"}, "limits": {"rdma/a": "1"}}
    assert "annotations" not in pod()["metadata"]


def test_own_resources_stay():
    given = {"requests": {"cpu": 2}, "limits": {"memory": "8Gi"}}
    assert container(**RDMA, resources=given)["resources"] == {
        "requests": {"cpu": "2", "rdma/a": "1"},
        "limits": {"memory": "8Gi", "rdma/a": "1"},
    }


@pytest.mark.parametrize(
    ("settings", "context"),
    [
        (RDMA, {"runAsUser": 0, "capabilities": {"add": ["IPC_LOCK"]}}),
        ({**RDMA, "group": 5}, {"runAsUser": 0, "runAsGroup": 5, "capabilities": {"add": ["IPC_LOCK"]}}),
        (
            {**RDMA, "user": 1000},
            {
                "runAsUser": 1000,
                "runAsGroup": 1000,
                "runAsNonRoot": True,
                "capabilities": {"drop": ["ALL"], "add": ["IPC_LOCK"]},
            },
        ),
        (
            {"user": 1000, "group": 100},
            {"runAsUser": 1000, "runAsGroup": 100, "runAsNonRoot": True, "capabilities": {"drop": ["ALL"]}},
        ),
    ],
)
def test_security(settings, context):
    assert container(**settings)["securityContext"] == {**context, "allowPrivilegeEscalation": False}


def test_the_group_owns_the_volumes():
    assert pod(group=100)["spec"]["securityContext"] == {"fsGroup": 100}
    assert "securityContext" not in pod()["spec"]


@pytest.mark.parametrize(
    ("settings", "env"),
    [
        ({"vipu_host": "", "vipu_port": 8090, "partition": ""}, {}),
        (
            {"vipu_host": "10.5.0.2", "partition": "training"},
            {
                "IPUOF_VIPU_API_HOST": "10.5.0.2",
                "IPUOF_VIPU_API_PORT": "8090",
                "IPUOF_VIPU_API_PARTITION_ID": "training",
            },
        ),
        ({"env": {"EPOCHS": 3, "SHUFFLE": True, "NAME": "x"}}, {"EPOCHS": "3", "SHUFFLE": "true", "NAME": "x"}),
        (
            {"vipu_host": "10.5.0.2", "env": {"IPUOF_VIPU_API_PORT": 9}},
            {"IPUOF_VIPU_API_HOST": "10.5.0.2", "IPUOF_VIPU_API_PORT": "9"},
        ),
    ],
)
def test_environment(settings, env):
    assert {one["name"]: one["value"] for one in container(**settings).get("env", [])} == env


def test_volumes():
    wanted = [
        {"name": "data", "path": "/data", "nfs": {"server": "10.5.0.9", "path": "/sets"}, "read_only": True},
        {"name": "out", "path": "/out", "claim": "results", "size": None},
        {"name": "tmp", "path": "/scratch", "size": "1Gi"},
    ]
    spec = pod(volumes=wanted, shm="8Gi")["spec"]
    assert spec["volumes"] == [
        {"name": "data", "nfs": {"server": "10.5.0.9", "path": "/sets", "readOnly": True}},
        {"name": "out", "persistentVolumeClaim": {"claimName": "results"}},
        {"name": "tmp", "emptyDir": {"sizeLimit": "1Gi"}},
        {"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": "8Gi"}},
    ]
    assert spec["containers"][0]["volumeMounts"] == [
        {"name": "data", "mountPath": "/data", "readOnly": True},
        {"name": "out", "mountPath": "/out"},
        {"name": "tmp", "mountPath": "/scratch"},
        {"name": "shm", "mountPath": "/dev/shm"},
    ]


def test_where_it_runs():
    taint = {"key": "ipu", "operator": "Exists"}
    spec = pod(node_selector={"ipunode": "true"}, tolerations=[taint], pull_secrets=["site"])["spec"]
    assert spec["nodeSelector"] == {"ipunode": "true"}
    assert spec["tolerations"] == [taint]
    assert spec["imagePullSecrets"] == [{"name": "site"}]


@pytest.mark.parametrize("name", ["", "MNIST", "a_b", "-a", "a-", "a" * 64, "a.b"])
def test_names_that_kubernetes_refuses(name):
    with pytest.raises(FabricError, match="name that Kubernetes accepts"):
        objects(name=name)


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1"])
def test_a_pod_has_its_own_localhost(host):
    with pytest.raises(FabricError, match="its own localhost"):
        objects(vipu_host=host)


@pytest.mark.parametrize("source", [{}, {"claim": "a", "size": "1Gi"}])
def test_a_volume_has_one_source(source):
    with pytest.raises(FabricError, match="one source"):
        objects(volumes=[{"name": "v", "path": "/v", **source}])


def test_the_memlock_check_runs_as_the_workload_does():
    spec = pod(check_memlock=True, user=1000, **RDMA)["spec"]
    check, main = spec["initContainers"][0], spec["containers"][0]
    assert check["securityContext"] == main["securityContext"]
    assert check["resources"] == main["resources"]
    assert "initContainers" not in pod(check_memlock=False)["spec"]


@pytest.mark.parametrize("shell", ["sh", "bash"])
@pytest.mark.parametrize(
    ("limit", "caps", "code", "said"),
    [
        ("unlimited", "0000000000000000", 0, "locked memory: unlimited"),
        ("64", "00000000a80465fb", 0, "locked memory: 64 KiB, lifted by IPC_LOCK"),
        ("64", "00000000a80425fb", 1, "locked memory: 64 KiB for uid"),
        ("8192", "0000000000000000", 1, "Next: run the role ipu.fabric.memlock"),
    ],
)
def test_memlock_script(tmp_path, shell, limit, caps, code, said):
    status = tmp_path / "status"
    status.write_text(f"Name:\tsh\nCapPrm:\tffffffffffffffff\nCapEff:\t{caps}\nThreads:\t1\n")
    script = workload.MEMLOCK_SCRIPT.replace("$(ulimit -l)", limit).replace("/proc/self/status", str(status))
    done = subprocess.run([shell, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == code
    assert said in done.stdout + done.stderr


def controller(address, label="ipunode=true", serves=("ipu1",), port=8090, host=""):
    return {"host": host or address, "address": address, "port": port, "label": label, "serves": list(serves)}


ONE = {"vipu": {"controllers": [controller("10.5.0.20", host="vipu-server", port=8091)]}}
TWO = {
    "vipu": {
        "controllers": [
            controller("10.5.0.20", "rack=a", ["ipu1", "ipu2"], host="vipu-a"),
            controller("10.5.0.21", "rack=b", ["ipu3"], port=8091),
        ]
    },
    "hosts": {name: {"node": f"{name}.site"} for name in ("ipu1", "ipu2", "ipu3")},
}


def found_vipu(**settings):
    """Host, port and node selector that come of a plan."""
    env = {one["name"]: one["value"] for one in container(**settings).get("env", [])}
    selector = pod(**settings)["spec"].get("nodeSelector", {})
    return env.get("IPUOF_VIPU_API_HOST"), env.get("IPUOF_VIPU_API_PORT"), selector


@pytest.mark.parametrize(
    ("settings", "found"),
    [
        # A pod does not know the names that a host's file has.
        ({"plan": ONE}, ("10.5.0.20", "8091", {})),
        ({"plan": ONE, "vipu_host": "", "vipu_port": 0, "partition": "p"}, ("10.5.0.20", "8091", {})),
        ({"plan": ONE, "vipu_port": 9000}, ("10.5.0.20", "9000", {})),
        ({"plan": ONE, "vipu_host": "10.5.0.9"}, ("10.5.0.9", "8090", {})),
        ({"plan": {}}, (None, None, {})),
        ({"plan": {"vipu": {"controllers": []}}}, (None, None, {})),
        ({"plan": TWO, "vipu_host": "10.5.0.9"}, ("10.5.0.9", "8090", {})),
        *(
            ({"plan": TWO, "vipu_controller": asked}, ("10.5.0.21", "8091", {"rack": "b"}))
            for asked in ("rack=b", "10.5.0.21", "10.5.0.21:8091", "ipu3", "ipu3.site")
        ),
        ({"plan": TWO, "vipu_controller": "vipu-a:8090"}, ("10.5.0.20", "8090", {"rack": "a"})),
        ({"plan": TWO, "node_selector": {"rack": "a"}}, ("10.5.0.20", "8090", {"rack": "a"})),
        (
            {"plan": TWO, "node_selector": {"kubernetes.io/hostname": "ipu3.site"}},
            ("10.5.0.21", "8091", {"kubernetes.io/hostname": "ipu3.site"}),
        ),
    ],
)
def test_v_ipu_is_found_in_the_plan(settings, found):
    assert found_vipu(**settings) == found


@pytest.mark.parametrize(
    ("settings", "count"),
    [
        ({}, 2),
        ({"vipu_controller": "ipu9"}, 0),
        ({"vipu_controller": "rack=a", "node_selector": {"rack": "b"}}, 0),
        ({"vipu_controller": "ipu1", "node_selector": {"kubernetes.io/hostname": "ipu3.site"}}, 0),
        ({"node_selector": {"rack": "c"}}, 0),
    ],
)
def test_a_v_ipu_that_the_plan_leaves_open_is_an_error_that_lists_them(settings, count):
    listed = r"10.5.0.20:8090 \(rack=a\) for ipu1, ipu2; 10.5.0.21:8091 \(rack=b\) for ipu3"
    with pytest.raises(FabricError, match=f"{count} of the controllers fit: {listed}"):
        objects(plan=TWO, **settings)


def test_a_plan_with_a_loopback_address_is_refused():
    with pytest.raises(FabricError, match="its own localhost"):
        objects(plan={"vipu": {"controllers": [controller("127.0.0.1")]}})


def test_an_mpi_job_finds_v_ipu_in_the_plan_too():
    settings = {**BASE, "command": ["x"], "transport": "tcp", "plan": TWO, "vipu": {"controller": "ipu3"}}
    worker = mpijob.mpi_job(settings)["spec"]["mpiReplicaSpecs"]["Worker"]["template"]["spec"]
    assert worker["nodeSelector"] == {"rack": "b"}
    assert {"name": "IPUOF_VIPU_API_HOST", "value": "10.5.0.21"} in worker["containers"][0]["env"]


def test_the_role_has_a_variable_for_all_of_it():
    settings = {"vipu_host": "10.5.0.20", "vipu_port": 8091, "partition": "p", "user": 1000, "shm": "8Gi"}
    decided = workload.decide(defaults("native_workload", **BASE, **settings), workload.Seen())
    known = {"network": "rdma-net", "rdma_resource": "rdma/rdma_shared_device_a", "check_memlock": True}
    assert decided.objects == objects(**known, **settings)


@pytest.mark.parametrize(
    ("rdma", "resource", "state", "refused"),
    [
        ([False], "rdma/a", "present", True),
        ([False], "rdma/a", "finished", True),
        ([False], "rdma/a", "absent", False),
        ([False, True], "rdma/a", "present", False),
        ([False], "", "present", False),
        ([], "rdma/a", "present", False),
    ],
)
def test_rdma_where_the_plan_has_none(rdma, resource, state, refused):
    networks = [{"name": f"rail-{number}", "rdma": each} for number, each in enumerate(rdma)]
    settings = workload.Settings(**BASE, rdma_resource=resource, plan={"networks": networks}, state=state)
    with pytest.raises(FabricError) if refused else contextlib.nullcontext() as error:
        workload.decide(settings, workload.Seen())
    assert not refused or "-e native_workload_rdma_resource=" in error.value.next_step


@pytest.mark.parametrize(("settings", "kept"), [({}, True), ({"restart_policy": "Never"}, False)])
def test_a_container_that_is_started_again_leaves_its_last_words(settings, kept):
    spec = pod(check_memlock=True, **settings)["spec"]
    assert spec["restartPolicy"] == settings.get("restart_policy", "OnFailure")
    containers = spec["containers"] + spec["initContainers"]
    assert [each.get("terminationMessagePolicy") == "FallbackToLogsOnError" for each in containers] == [kept] * 2
