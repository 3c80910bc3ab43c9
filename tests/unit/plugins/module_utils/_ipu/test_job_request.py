import pytest
import yaml
from ansible_collections.ipu.fabric.plugins.module_utils._common.result import FabricError
from ansible_collections.ipu.fabric.plugins.module_utils._ipu import job_request
from ansible_collections.ipu.fabric.plugins.modules import ipujob
from ansible_collections.ipu.fabric.tests.unit.fixtures.jobs import request, restart, volume, workers

LAUNCHER = {"command": ["mpirun"], "env": None}


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
    assert job_request.request_problems(request(**changed)) == []


@pytest.mark.parametrize(
    ("changed", "problem"),
    [
        ({"name": "a" * 37}, "has 37 characters, at most 36 are allowed"),
        ({"name": "Mnist"}, "not a DNS-1123 label"),
        ({"name": "mnist-"}, "not a DNS-1123 label"),
        ({"name": ""}, "not a DNS-1123 label"),
        ({"name": "m.nist"}, "not a DNS-1123 label"),
        ({"name": "mnist\n"}, "not a DNS-1123 label"),
        ({"name": "-x", "state": "absent"}, "not a DNS-1123 label"),
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
        ({"launcher": {**LAUNCHER, "mpi_interfaces": ["net1", "net 2"]}}, "'net 2' is neither the name"),
        ({"launcher": LAUNCHER, "interactive": {"ttl": 9}}, "exclude each other"),
        ({"interactive": {"ttl": 0}}, "interactive.ttl is 0"),
        ({"interactive": {"ttl": 601}, "state": "finished"}, "shorter than interactive.ttl"),
        ({"state": "finished", "wait": False}, "wait is false"),
        ({"wait_timeout": 0}, "wait_timeout is 0"),
        ({"record": True}, "record needs state: finished"),
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
    found = job_request.request_problems(request(**changed))
    assert len(found) == 1 or changed.get("name") == ""
    assert problem in found[0]


def test_all_problems_at_once():
    wrong = request(name="A", ipus_per_job_instance=3, job_instances=0, networks=["?"])
    with pytest.raises(FabricError) as error:
        job_request.check_request(wrong)
    assert all(word in error.value.seen for word in ("'A'", "is 3", "is 0", "'?'"))


def test_networks_twice():
    template = {
        **workers({"name": "c", "image": "i"})["template"],
        "metadata": {"annotations": {job_request.NETWORKS: "a"}},
    }
    found = job_request.request_problems(request(networks=["b"], workers={"template": template}))
    assert found == [f"networks and the annotation {job_request.NETWORKS} of workers.template exclude each other"]


def test_ipus_are_a_power_of_two():
    allowed = [n for n in range(-10, 1000) if job_request.count_problems(request(ipus_per_job_instance=n)) == []]
    assert allowed == [1, 2, 4, 8, 16, 32, 64]


@pytest.mark.parametrize(
    ("policy", "clean", "warned"),
    [("OnFailure", "All", True), ("Never", "All", False), ("OnFailure", "Workers", False), ("Always", "All", True)],
)
def test_clean_pod_policy_all_wins(policy, clean, warned):
    found = job_request.request_warnings(request(restart_policy=restart(policy), clean_pod_policy=clean))
    assert bool(found) == warned


ALL = {"name": "", "state": "absent", "workers": None}


@pytest.mark.parametrize(
    "changed",
    [
        {**ALL, "scope": "namespace", "delete_all": True},
        {**ALL, "scope": "namespace"},
        {**ALL, "scope": "cluster", "namespace": "", "force": True},
    ],
)
def test_all_jobs_of_a_scope(changed):
    assert job_request.request_problems(request(**changed)) == []


@pytest.mark.parametrize(
    ("changed", "problem"),
    [
        ({"state": "absent", "delete_all": True}, "delete_all is only for the scopes namespace and cluster"),
        ({**ALL, "name": "mnist", "scope": "namespace"}, "name is mnist, and the scope namespace means all jobs"),
        ({**ALL, "scope": "cluster"}, "namespace is default, and the scope cluster means all namespaces"),
        ({**ALL, "scope": "namespace", "namespace": ""}, "namespace '' is not a DNS-1123 label"),
        ({"name": "", "scope": "namespace"}, "the scope namespace is only for the state absent"),
        ({"name": "", "scope": "cluster", "namespace": "", "state": "finished"}, "only for the state absent"),
    ],
)
def test_all_jobs_are_never_meant_by_mistake(changed, problem):
    found = job_request.request_problems(request(**changed))
    assert len(found) == 1
    assert problem in found[0]


OPTIONS = {field.name: None for field in job_request.dataclasses.fields(job_request.JobRequest)}


@pytest.mark.parametrize(
    ("options", "namespace", "where"),
    [
        ({"scope": "job", "name": "a"}, "default", "IPUJob default/a"),
        ({"scope": "job", "name": "a", "namespace": "n"}, "n", "IPUJob n/a"),
        ({"scope": "namespace", "namespace": "n"}, "n", "IPUJobs of the namespace n"),
        ({"scope": "cluster"}, "", "IPUJobs of the cluster"),
    ],
)
def test_only_a_job_has_a_default_namespace(options, namespace, where):
    made = job_request.JobRequest.from_options({**OPTIONS, **options, "kubeconfig": "x"})
    assert (made.namespace, made.where, made.wait_timeout) == (namespace, where, 600)


def test_defaults_are_those_of_the_module():
    options = yaml.safe_load(ipujob.DOCUMENTATION)["options"]
    made = job_request.JobRequest()
    assert set(options) == set(OPTIONS)
    documented = {name: option["default"] for name, option in options.items() if "default" in option}
    own = {name: getattr(made, name) for name in documented}
    assert own == {**documented, "networks": (), "volumes": ()}
    assert made.logs == {"path": None, "tail": options["logs"]["suboptions"]["tail"]["default"]}


@pytest.mark.parametrize(
    ("options", "problems"),
    [
        ({"job_instances": 2}, []),
        ({}, ["job_instances is needed"]),
        ({"job_instances": 0}, ["job_instances is 0, the minimum is 1"]),
        (
            {"job_instances": 2, "ipus_per_job_instance": 2, "labels": {"a": "b"}},
            ["the state scaled changes job_instances alone, not ipus_per_job_instance, labels"],
        ),
        ({"job_instances": 2, "scope": "cluster"}, ["the scope cluster is only for the state absent"]),
    ],
)
def test_a_scale_needs_the_number_alone(options, problems):
    name = {} if "scope" in options else {"name": "mnist"}
    found = job_request.request_problems(job_request.JobRequest(**{**name, "state": "scaled", **options}))
    assert [problem for problem in found if "namespace" not in problem] == problems
