"""The MPIJob of NVIDIA's document beside the one of docs/examples/mpi-horovod.yml, field by field."""

import pytest
import yaml
from ansible.parsing.dataloader import DataLoader
from ansible.template import trust_as_template
from ansible_collections.ipu.fabric.plugins.module_utils._common.result import FabricError
from ansible_collections.ipu.fabric.plugins.plugin_utils._render.mpijob import mpi_job
from ansible_collections.ipu.fabric.tests.unit.fixtures.paths import ROOT
from ansible_collections.ipu.fabric.tests.unit.fixtures.site import plan, site
from ansible_collections.ipu.fabric.tests.unit.fixtures.templates import templated

DOCUMENT = """
apiVersion: kubeflow.org/v1alpha2
kind: MPIJob
metadata:
  name: tensorflow-benchmarks
spec:
  slotsPerWorker: 1
  cleanPodPolicy: Running
  mpiReplicaSpecs:
    Launcher:
      replicas: 1
      template:
        spec:
          containers:
          - image: mpioperator/tensorflow-benchmarks:latest
            name: tensorflow-benchmarks
            command: [mpirun, --allow-run-as-root, -np, "4", -bind-to, none, -map-by, slot, -x, NCCL_DEBUG=INFO,
                      -x, NCCL_IB_DISABLE=0, -x, NCCL_IB_GDR_LEVEL=0, -x, HOROVOD_MPI_THREADS_DISABLE=1,
                      -x, LD_LIBRARY_PATH, -x, PATH, -mca, pml, ob1, -mca, btl, ^openib,
                      python, scripts/tf_cnn_benchmarks/tf_cnn_benchmarks.py, --model=resnet50, --batch_size=32,
                      --variable_update=horovod, --use_fp16, --xla=True, --num_batches=10000]
    Worker:
      replicas: 4
      template:
        spec:
          containers:
          - image: mpioperator/tensorflow-benchmarks:latest
            name: tensorflow-benchmarks
            securityContext:
              privileged: true
            volumeMounts:
            - mountPath: /dev/infiniband
              name: infiniband
            resources:
              limits:
                nvidia.com/gpu: 1
          volumes:
          - name: infiniband
            hostPath:
              path: /dev/infiniband
"""
SPEC, LAUNCHER, WORKER = "spec", "spec.mpiReplicaSpecs.Launcher", "spec.mpiReplicaSpecs.Worker"
POD = ".template.spec.containers.0"
API = "v1alpha2 is gone; v2beta1 has these fields, and starts workers by SSH"
NAMES = "the jobs over RoCE and over TCP may be there at once, and containers are called by what they do"
IMAGE = "the registry is named: a mirror stands for it"
SOCKETS = "sockets take the pod network alone, and no other interface of the pod"
SSH = "sshd passes nothing on: mpirun names the variables, which the pods have"
GID = "the rank finds the GID of its node's NIC"
RIGHTS = "only what needs them has rights"
IMAGE_NAME = "docker.io/mpioperator/tensorflow-benchmarks:latest"
ABSENT = "(not there)"
DIFFERENCES = {
    "apiVersion": ("kubeflow.org/v2beta1", API),
    "metadata.name": ("tensorflow-benchmarks-roce", NAMES),
    "metadata.namespace": ("default", "it is named"),
    f"{SPEC}.cleanPodPolicy": (ABSENT, API),
    f"{SPEC}.runPolicy.cleanPodPolicy": ("Running", API),
    f"{SPEC}.runPolicy.backoffLimit": (0, "a program that failed is not tried again by itself"),
    f"{SPEC}.runPolicy.suspend": (False, API),
    f"{SPEC}.mpiImplementation": ("OpenMPI", API),
    f"{SPEC}.launcherCreationPolicy": ("WaitForWorkersReady", API),
    f"{SPEC}.sshAuthMountPath": ("/root/.ssh", API),
    f"{LAUNCHER}.restartPolicy": ("Never", API),
    f"{LAUNCHER}{POD}.name": ("launcher", NAMES),
    f"{LAUNCHER}{POD}.image": (IMAGE_NAME, IMAGE),
    f"{LAUNCHER}{POD}.securityContext.runAsUser": (0, RIGHTS),
    f"{LAUNCHER}{POD}.securityContext.allowPrivilegeEscalation": (False, RIGHTS),
    f"{LAUNCHER}{POD}.mca.osc": ("^ucx", "as pml, for one-sided messages"),
    f"{LAUNCHER}{POD}.mca.btl_tcp_if_include": ("eth0", SOCKETS),
    f"{LAUNCHER}{POD}.env.NCCL_SOCKET_IFNAME": ("=eth0", SOCKETS),
    f"{LAUNCHER}{POD}.env.NCCL_NET_GDR_LEVEL": ("0", "the name that NCCL has for it today"),
    f"{LAUNCHER}{POD}.env.UCX_TLS": ("rc,sm,self", "what UCX would use, if the program does"),
    f"{LAUNCHER}{POD}.env.PRTE_MCA_prte_default_hostfile": ("/etc/mpi/hostfile", "Open MPI 5 works too"),
    f"{LAUNCHER}{POD}.env.PRTE_MCA_plm_ssh_args": ("-o ConnectionAttempts=10", "Open MPI 5 works too"),
    f"{LAUNCHER}{POD}.rails": ("node ens1f0", GID),
    f"{WORKER}.restartPolicy": ("Never", API),
    f"{WORKER}{POD}.name": ("worker", NAMES),
    f"{WORKER}{POD}.image": (IMAGE_NAME, IMAGE),
    f"{WORKER}{POD}.securityContext.runAsUser": (0, RIGHTS),
    f"{WORKER}{POD}.env.NCCL_DEBUG": ("INFO", SSH),
    f"{WORKER}{POD}.env.NCCL_IB_GDR_LEVEL": ("0", SSH),
    f"{WORKER}{POD}.env.NCCL_NET_GDR_LEVEL": ("0", SSH),
    f"{WORKER}{POD}.resources.limits.nvidia.com/gpu": ("1", "amounts are text"),
    f"{WORKER}.template.spec.initContainers": ("memlock", "locked memory is checked before the program starts"),
    f"{WORKER}.template.spec.volumes.0.hostPath.type": ("Directory", "no empty directory on a node without RDMA"),
}


def example(name="mpi-horovod", **given):
    """The settings that the example gives to the filter, with these variables of a user, where there is no plan."""
    (play,) = DataLoader().load_from_file(str(ROOT / f"docs/examples/{name}.yml"), trusted_as_template=True)
    scope = {**play["vars"], "planned": plan(site(), networks=[]), "plan_file": "", **given}
    return templated(trust_as_template("{{ job }}"), scope)


def started(container):
    """What mpirun is told, by its meaning: options have several spellings, and ranks get variables in several ways."""
    words, own = list(container["command"]), {each["name"]: each["value"] for each in container.get("env", [])}
    found = {"mca": {}, "env": dict(own)}
    assert words.pop(0) == "mpirun"
    while words[0].startswith("-"):
        option = words.pop(0).lstrip("-").replace("np", "n")
        if option == "x":
            name, _equals, value = words.pop(0).partition("=")
            found["env"][name] = value or own.get(name, "passed on")
        elif option == "mca":
            found["mca"].update([(words.pop(0), words.pop(0))])
        else:
            found[option] = True if option == "allow-run-as-root" else words.pop(0)
    if words[0] == "sh":
        end = words.index("--")
        found["rails"] = " ".join(words[4:6])
        found["env"].update(word.split("=", 1) for word in words[7:end])
        words = words[end + 1 :]
    return {**{key: value for key, value in container.items() if key != "command"}, **found, "program": words}


def fields(value, path=""):
    """Each field of an object, by its path."""
    if isinstance(value, dict):
        for key, inner in value.items():
            if key == "initContainers":
                yield f"{path}.{key}", " ".join(each["name"] for each in inner)
            elif key == "env" and isinstance(inner, list):
                yield from fields({each["name"]: each["value"] for each in inner}, f"{path}.{key}")
            else:
                yield from fields(inner, f"{path}.{key}".lstrip("."))
    elif isinstance(value, list):
        for at, inner in enumerate(value):
            yield from fields(
                started(inner) if isinstance(inner, dict) and "command" in inner else inner, f"{path}.{at}"
            )
    else:
        yield path, value


def test_the_job_is_the_documents_but_for_what_is_listed():
    document, rendered = dict(fields(yaml.safe_load(DOCUMENT))), dict(fields(mpi_job(example())))
    differing = {
        path: rendered.get(path, ABSENT)
        for path in {**document, **rendered}
        if rendered.get(path, ABSENT) != document.get(path, ABSENT)
    }
    assert differing == {path: value for path, (value, _reason) in DIFFERENCES.items()}


@pytest.mark.parametrize(
    ("given", "changed"),
    [
        ({"example_transport": "tcp"}, {"NCCL_IB_DISABLE": "1", "HOROVOD_MPI_THREADS_DISABLE": "0"}),
        ({"example_network": "rail-0"}, {"NCCL_SOCKET_IFNAME": "=net1"}),
        ({"example_interfaces": ["ens224"], "planned": None}, {}),
    ],
)
def test_other_ways_to_run_it(given, changed):
    replicas = mpi_job(example(**given))["spec"]["mpiReplicaSpecs"]
    launcher, worker = (replicas[name]["template"]["spec"]["containers"][0] for name in ("Launcher", "Worker"))
    assert changed.items() <= started(launcher)["env"].items()
    # Over TCP, or on a network of the fabric with its device plugin, nothing is privileged.
    assert ("privileged" in worker["securityContext"]) == (not changed)


def test_gpus_are_ranks():
    spec = mpi_job(example(example_gpus="2", example_workers="3"))["spec"]
    worker = spec["mpiReplicaSpecs"]["Worker"]
    assert (spec["slotsPerWorker"], worker["replicas"]) == (2, 3)
    assert worker["template"]["spec"]["containers"][0]["resources"] == {"limits": {"nvidia.com/gpu": "2"}}
    none = mpi_job(example(example_gpus="0"))["spec"]["mpiReplicaSpecs"]["Worker"]["template"]["spec"]["containers"][0]
    assert "resources" not in none


@pytest.mark.parametrize(
    ("given", "transport", "rails"),
    [({"example_network": ""}, "roce", "node ens1f0"), ({"example_network": ""}, "tcp", "none ens1f0"),
     ({}, "roce", "pod net1")],
)  # fmt: skip
def test_the_comparison_without_a_network(given, transport, rails):
    job = {**example("mpi-compare", artifacts="", **given), "name": "a", "transport": transport, "command": ["true"]}
    replicas = mpi_job(job)["spec"]["mpiReplicaSpecs"]
    launcher, worker = (replicas[name]["template"]["spec"]["containers"][0] for name in ("Launcher", "Worker"))
    assert started(launcher)["rails"] == rails
    assert ("privileged" in worker["securityContext"]) == rails.startswith("node")
    assert ("resources" in worker) == (not given)


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("mpi", {"native_workload_rdma_resource": ""}),
        ("mpi-compare", {"artifacts": ""}),
        ("mpi-horovod", {"example_network": "rdma-net"}),
    ],
)
def test_roce_is_refused_where_the_plan_is_without_rdma(name, given):
    planned = {"planned": plan(site(), require_rdma=False), "plan_file": str(ROOT / "README.md")}
    settings = {"name": "a", "command": ["true"], **example(name, **planned, **given)}
    with pytest.raises(FabricError, match="planned without RDMA: rdma-net"):
        mpi_job({**settings, "transport": "roce"})
    mpi_job({**settings, "transport": "tcp"})
