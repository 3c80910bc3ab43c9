"""Listings 8.1 to 8.4 and 8.7 of Graphcore's document beside what the commands of docs/workloads.md make."""

import re
import shlex

import pytest
from ansible.parsing.dataloader import DataLoader
from ansible.parsing.splitter import parse_kv
from ansible_collections.ipu.fabric.plugins.module_utils._component.native_workload import native_workload
from ansible_collections.ipu.fabric.plugins.module_utils._ipu.job_request import check_request
from ansible_collections.ipu.fabric.plugins.module_utils._ipu.job_spec import build_job
from ansible_collections.ipu.fabric.tests.unit.fixtures.components import defaults
from ansible_collections.ipu.fabric.tests.unit.fixtures.jobs import request
from ansible_collections.ipu.fabric.tests.unit.fixtures.paths import ROOT
from ansible_collections.ipu.fabric.tests.unit.fixtures.templates import templated
from ansible_collections.ipu.fabric.tests.unit.test_documents_rendered_mpi import ABSENT, fields

VIPU = "10.5.212.116"
MNIST = "pip3 install -r requirements.txt && python3 mnist_poptorch.py --epochs=1"
FOLDER = "/opt/tutorials/simple_applications/pytorch/mnist"
RDMA = {"rdma/rdma_shared_device_a": 1}

POD = "spec.template.spec"
IN_POD = f"{POD}.containers.0"
SHELL = "any image has sh"
AMOUNT = "amounts are text"
IMAGE = "the registry is named: a mirror stands for it"
LABEL = "Kubernetes' recommended label finds the pods"
IMAGE_NAME = "docker.io/graphcore/pytorch-tutorials:latest"
RIGHTS = "a normal user has no right but to lock memory"
EVERY = {
    f"{IN_POD}.image": (IMAGE_NAME, IMAGE),
    f"{IN_POD}.resources.limits.rdma/rdma_shared_device_a": ("1", AMOUNT),
    f"{IN_POD}.resources.requests.rdma/rdma_shared_device_a": ("1", AMOUNT),
    "metadata.namespace": ("default", "it is named"),
}
NATIVE = {
    **EVERY,
    "metadata.labels.app.kubernetes.io/name": ("NAME", LABEL),
    "spec.template.metadata.labels.app.kubernetes.io/name": ("NAME", LABEL),
    f"{POD}.securityContext.runAsUser": (ABSENT, "it is the container's"),
    f"{POD}.initContainers": ("memlock", "locked memory is checked as the same user before the program starts"),
    f"{IN_POD}.terminationMessagePolicy": ("FallbackToLogsOnError", "a restart loses the log, not its last lines"),
    f"{IN_POD}.name": ("main", "for each workload"),
    f"{IN_POD}.env.IPUOF_VIPU_API_HOST": (VIPU, "a pod has its own localhost"),
    f"{IN_POD}.securityContext.allowPrivilegeEscalation": (False, "it needs no more rights"),
}


def pod(user, name, partition="", labels=None, restart=None, **container):
    """The template of each listing; they differ in few fields."""
    if partition:
        values = {"HOST": "localhost", "PORT": "8090", "PARTITION_ID": partition}
        container["env"] = [{"name": f"IPUOF_VIPU_API_{key}", "value": value} for key, value in values.items()]
    container.update(
        name=name, image="graphcore/pytorch-tutorials:latest", resources={"limits": RDMA, "requests": RDMA}
    )
    container["securityContext"] = {"capabilities": {"add": ["IPC_LOCK"]}}
    spec = {"securityContext": {"runAsUser": user}, "containers": [container]}
    metadata = {"annotations": {"k8s.v1.cni.cncf.io/networks": "rdma-net"}}
    return {
        "metadata": {**metadata, **({"labels": labels} if labels else {})},
        "spec": {**spec, **({"restartPolicy": restart} if restart else {})},
    }


def training(user):
    program = {"workingDir": FOLDER, "command": ["bash"], "args": ["-c", MNIST]}
    template = pod(user, "mnist-training", "training_partition", restart="OnFailure", **program)
    spec = {"backoffLimit": 1, "template": template}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "simple-training"}, "spec": spec}


def inference(user):
    labels = {"app": "simple-inference"}
    template = pod(user, "mnist-inference", "inference_partition", labels=labels, command=["sleep", "infinity"])
    spec = {"replicas": 1, "selector": {"matchLabels": labels}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "simple-inference"}, "spec": spec}


def ipujob():
    program = {"workingDir": FOLDER, "command": ["bash"], "args": ["-c", MNIST]}
    template = pod(0, "mnist-training", restart="Never", **program)
    spec = {"jobInstances": 1, "ipusPerJobInstance": "1", "workers": {"template": template}}
    metadata = {"name": "mnist-training"}
    return {"apiVersion": "graphcore.ai/v1alpha1", "kind": "IPUJob", "metadata": metadata, "spec": spec}


LISTINGS = {"8.1": training(0), "8.2": inference(0), "8.3": training(1000), "8.4": inference(1000), "8.7": ipujob()}

JOB = {
    **NATIVE,
    f"{IN_POD}.runs": (f"sh -c {MNIST}", SHELL),
    "spec.parallelism": (1, "as many pods as replicas"),
    "spec.completions": (1, "as many pods as replicas"),
    f"{IN_POD}.volumeMounts.0.name": ("shm", "data loaders of PyTorch need more than 64 MiB"),
    f"{IN_POD}.volumeMounts.0.mountPath": ("/dev/shm", "likewise"),
    f"{POD}.volumes.0.name": ("shm", "likewise"),
    f"{POD}.volumes.0.emptyDir.medium": ("Memory", "likewise"),
    f"{POD}.volumes.0.emptyDir.sizeLimit": ("1Gi", "likewise"),
}
DEPLOYMENT = {
    **NATIVE,
    f"{IN_POD}.runs": ("sh -c sleep infinity", SHELL),
    "spec.minReadySeconds": (10, "a program that ends at once is no Deployment that is ready"),
    f"{IN_POD}.ports.0.containerPort": (8000, "the example has a Service"),
    f"{POD}.restartPolicy": ("Always", "a Deployment's default, written out"),
    "spec.selector.matchLabels.app": (ABSENT, LABEL),
    "spec.template.metadata.labels.app": (ABSENT, LABEL),
    "spec.selector.matchLabels.app.kubernetes.io/name": ("NAME", LABEL),
    "spec.strategy.type": ("RollingUpdate", "an update has no IPUs for one pod more"),
    "spec.strategy.rollingUpdate.maxSurge": (0, "likewise"),
    "spec.strategy.rollingUpdate.maxUnavailable": (1, "likewise"),
}


def as_user(user, differences, name):
    found = {path: (name if value == "NAME" else value, reason) for path, (value, reason) in differences.items()}
    found[f"{IN_POD}.securityContext.runAsUser"] = (user, "the container's")
    if user:
        found[f"{IN_POD}.securityContext.runAsGroup"] = (user, RIGHTS)
        found[f"{IN_POD}.securityContext.runAsNonRoot"] = (True, RIGHTS)
        found[f"{IN_POD}.securityContext.capabilities.drop.0"] = ("ALL", RIGHTS)
    return found


DIFFERENCES = {
    "8.1": as_user(0, JOB, "simple-training"),
    "8.2": as_user(0, DEPLOYMENT, "simple-inference"),
    "8.3": as_user(1000, JOB, "simple-training"),
    "8.4": as_user(1000, DEPLOYMENT, "simple-inference"),
    "8.7": {
        **{path.replace(POD, f"spec.workers.{POD[5:]}"): value for path, value in EVERY.items()},
        f"spec.workers.{IN_POD[5:]}.runs": (f"sh -c {MNIST}", SHELL),
    },
}


def commands():
    """The command of each listing, in docs/workloads.md."""
    page = (ROOT / "docs/workloads.md").read_text("utf-8")
    return {
        number: shlex.split(line)
        for line, numbers in re.findall(
            r"^ansible-playbook (docs/examples/.*?) +# listings? ([\d., and]+)$", page, re.M
        )
        for number in re.findall(r"\d\.\d", numbers)
    }


def play_of(example):
    (play,) = DataLoader().load_from_file(str(ROOT / example), trusted_as_template=True)
    return play


def ipujob_of(options, scope):
    how = ("state", "recreate", "wait_timeout", "logs")
    wanted = {key: value for key, value in options.items() if key not in how}
    own = templated(wanted, scope)
    asked = request(**{**own, "workers": {"replicas": None, **own["workers"]}})
    check_request(asked)
    return build_job(asked)


def rendered(number):
    example, *options = commands()[number]
    given = {name: value for option in options if option != "-e" for name, value in parse_kv(option).items()}
    play = play_of(example)
    task = next(each for each in play["tasks"] if "vars" in each or "ipu.fabric.ipujob" in each)
    scope = {**play["vars"], "example_vipu": VIPU, **given}
    if "ipu.fabric.ipujob" in task:
        return ipujob_of(task["ipu.fabric.ipujob"], scope)
    own = templated(task["vars"], scope)
    own = {name[len("native_workload_") :]: value for name, value in {**own, **given}.items()}
    own = {name: value for name, value in own.items() if name not in ("state", "timeout", "kubeconfig")}
    for name in {"user", "port", "replicas"} & set(own):
        own[name] = int(own[name])
    return native_workload(defaults("native_workload", **own))[0]


def shown(listing):
    """Its fields; a command is what it runs, however it is split."""
    spec = listing["spec"]
    template = (spec.get("template") or spec["workers"]["template"])["spec"]
    for each in template["containers"]:
        run = {**each, "runs": " ".join([*each["command"], *each.get("args", [])])}
        template["containers"] = [{key: value for key, value in run.items() if key not in ("command", "args")}]
    return dict(fields(listing))


@pytest.mark.parametrize("number", LISTINGS)
def test_the_examples_are_the_listings_but_for_what_is_listed(number):
    document, found = shown(LISTINGS[number]), shown(rendered(number))
    differing = {
        path: found.get(path, ABSENT)
        for path in {**document, **found}
        if found.get(path, ABSENT) != document.get(path, ABSENT)
    }
    assert differing == {path: value for path, (value, _reason) in DIFFERENCES[number].items()}


@pytest.mark.parametrize(
    ("given", "namespace"), [({}, "ipu-operator"), ({"ipu_operator_namespace": "default"}, "default")]
)
def test_the_example_asks_the_operator_where_it_is(given, namespace):
    play = play_of("docs/examples/training.yml")
    asked = play["tasks"][0]["ipu.fabric.ipujob_info"]["vipu_proxy"]
    assert templated(asked, {**play["vars"], **given}) == {"namespace": namespace}


@pytest.mark.parametrize(("given", "interfaces"), [({}, "net1"), ({"networks": []}, "")])
def test_the_ranks_of_the_example_meet_on_interfaces_that_its_pods_have(given, interfaces):
    play = play_of("docs/examples/training-mpi.yml")
    scope = {**play["vars"], "mpirun_options": ["--mca", "btl", "tcp,self"], **given}
    launcher = ipujob_of(play["tasks"][0]["ipu.fabric.ipujob"], scope)["spec"]["launcher"]
    env = {entry["name"]: entry["value"] for entry in launcher.get("env", [])}
    assert env.get("OMPI_MCA_btl_tcp_if_include", "") == interfaces
    assert launcher["command"][-4:] == ["--mca", "btl", "tcp,self", "/home/mpiuser/pi"]
