"""IPUJobs and their finalizer on a real API server, with an operator that works, one that hangs, and none."""

from __future__ import annotations

import base64
import contextlib
import datetime
import json
import threading
import typing as t

import pytest
from ansible_collections.ipu.fabric.plugins.module_utils._ipu.webhook import ignore_failures
from ansible_collections.ipu.fabric.plugins.module_utils._kube.client import Cluster
from ansible_collections.ipu.fabric.tests.integration.api_server import ApiServer, ModuleFailedError, Modules, crds
from ansible_collections.ipu.fabric.tests.unit.fixtures.paths import ROOT
from ansible_collections.kubernetes.core.plugins.module_utils.k8s.client import get_api_client

NAMESPACE = "ipu-operator"
FINALIZER = "ipu.finalizers.graphcore.ai"
JOBS = ["default/train", "teams/infer"]
DEFINITION = ROOT / "testbed/standins/charts/ipu-operator-1.2.0/crds/graphcore.ai_ipujobs.yaml"
MANAGER = "ipu-operator-controller-manager"
ALL = {"state": "absent", "scope": "cluster"}
FORCED = {**ALL, "delete_all": True, "force": True}


def job(name: str, namespace: str, *finalizers: str, instances: int = 1) -> t.Dict[str, t.Any]:
    pod = {"spec": {"containers": [{"name": "worker", "image": "none"}]}}
    return {
        "apiVersion": "graphcore.ai/v1alpha1",
        "kind": "IPUJob",
        "metadata": {"name": name, "namespace": namespace, "finalizers": list(finalizers)},
        "spec": {"jobInstances": instances, "ipusPerJobInstance": "1", "workers": {"template": pod}},
    }


def namespace(name: str) -> t.Dict[str, t.Any]:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}


def webhook() -> t.Dict[str, t.Any]:
    """The chart's: it fails, and nobody answers for its Service."""
    service = {"name": "ipu-operator-webhook-svc", "namespace": NAMESPACE, "path": "/validate", "port": 443}
    rule = {"operations": ["CREATE", "UPDATE"], "apiGroups": ["graphcore.ai"], "apiVersions": ["v1alpha1"]}
    own = {"name": "vipujob.graphcore.ai", "failurePolicy": "Fail", "sideEffects": "None", "timeoutSeconds": 1}
    more = {"admissionReviewVersions": ["v1"], "clientConfig": {"service": service}}
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": "ipu-operator-admission"},
        "webhooks": [{**own, **more, "rules": [{**rule, "resources": ["ipujobs"]}]}],
    }


def manager() -> t.Dict[str, t.Any]:
    labels = {"app.kubernetes.io/name": "ipu-operator"}
    pod = {"containers": [{"name": "manager", "image": "graphcore/ipu-operator-controller:1.2.0"}]}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {
            "name": MANAGER,
            "namespace": NAMESPACE,
            "labels": {"helm.sh/chart": "ipu-operator-1.2.0"},
            "annotations": {"meta.helm.sh/release-name": "ipu-operator"},
        },
        "spec": {"selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}, "spec": pod}},
    }


def make_available(api: ApiServer) -> None:
    status = json.dumps({"status": {"replicas": 1, "readyReplicas": 1, "availableReplicas": 1}})
    api.kubectl("patch", "deployment", MANAGER, "-n", NAMESPACE, "--subresource=status", "--type=merge", "-p", status)


@contextlib.contextmanager
def operator(api: ApiServer) -> t.Iterator[None]:
    """Lets go of every job that is to be deleted, as the controller does."""
    done = threading.Event()

    def reconcile() -> None:
        while not done.wait(0.3):
            for each in api.get("ipujobs", "-A")["items"]:
                metadata = each["metadata"]
                if metadata.get("deletionTimestamp") and metadata.get("finalizers"):
                    where = ["-n", metadata["namespace"], metadata["name"]]
                    off = '{"metadata":{"finalizers":null}}'
                    api.kubectl("patch", "ipujob", *where, "--type=merge", "-p", off, check=False)

    thread = threading.Thread(target=reconcile)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


@pytest.fixture
def jobs(run: Modules, api: ApiServer) -> t.Iterator[None]:
    run("kube_apply", objects=crds(DEFINITION), validation="Warn")
    run("kube_apply", objects=[namespace("teams"), namespace(NAMESPACE)])
    run("kube_apply", objects=[job("train", "default", FINALIZER), job("infer", "teams", FINALIZER, instances=2)])
    yield
    run("kube_apply", objects=[webhook(), manager()], state="absent")
    for each in api.get("ipujobs", "-A")["items"]:
        where = ["ipujob", "-n", each["metadata"]["namespace"], each["metadata"]["name"]]
        api.kubectl("patch", *where, "--type=merge", "-p", '{"metadata":{"finalizers":null}}', check=False)
        api.kubectl("delete", *where, "--ignore-not-found")


def names(api: ApiServer) -> t.List[str]:
    found = [each["metadata"] for each in api.get("ipujobs", "-A")["items"]]
    return sorted(f"{metadata['namespace']}/{metadata['name']}" for metadata in found)


def failure_policies(api: ApiServer) -> t.List[str]:
    """Of all webhooks; no configuration has the note of an unfinished change."""
    found = api.get("validatingwebhookconfigurations")["items"]
    assert not any("ipu.fabric/failure-policies" in str(each["metadata"].get("annotations")) for each in found)
    return [each["failurePolicy"] for configuration in found for each in configuration["webhooks"]]


@pytest.mark.usefixtures("jobs")
@pytest.mark.parametrize("check", [True, False])
def test_jobs_keep_their_operator(run: Modules, api: ApiServer, check: bool) -> None:
    run("kube_apply", objects=[manager()])
    make_available(api)
    with pytest.raises(ModuleFailedError, match="2: default/train, teams/infer"):
        run("ipujob", check=check, **ALL)
    assert names(api) == JOBS


@pytest.mark.usefixtures("jobs")
def test_the_operator_lets_them_go(run: Modules, api: ApiServer) -> None:
    run("kube_apply", objects=[manager()])
    make_available(api)
    planned = run("ipujob", check=True, delete_all=True, **ALL)
    assert (planned["changed"], sorted(planned["jobs"]), planned["partitions_left"]) == (True, JOBS, [])
    assert names(api) == JOBS
    with operator(api):
        assert run("ipujob", delete_all=True, wait_timeout=20, **ALL)["partitions_left"] == []
    assert names(api) == []
    assert not run("ipujob", delete_all=True, **ALL)["changed"]
    assert not run("ipujob", **ALL)["changed"]


@pytest.mark.usefixtures("jobs")
@pytest.mark.parametrize("check", [True, False])
def test_without_the_operator_nothing_is_begun(run: Modules, api: ApiServer, check: bool) -> None:
    with pytest.raises(ModuleFailedError, match="no controller of an IPU operator is available"):
        run("ipujob", check=check, delete_all=True, **ALL)
    assert names(api) == JOBS
    assert not any(each["metadata"].get("deletionTimestamp") for each in api.get("ipujobs", "-A")["items"])


@pytest.mark.usefixtures("jobs")
@pytest.mark.parametrize("asked", [False, True])
def test_force_without_the_operator(run: Modules, api: ApiServer, asked: bool) -> None:
    run("kube_apply", objects=[job("other", "teams", FINALIZER, "example.org/other")])
    if asked:
        run("kube_apply", objects=[webhook()])
    lost = ["p-infer-teams-0", "p-infer-teams-1", "p-other-teams-0", "p-train-default-0"]
    assert sorted(run("ipujob", check=True, **FORCED)["partitions_left"]) == lost
    # The finalizer of somebody else is left, and named.
    with pytest.raises(ModuleFailedError, match="IPUJob teams/other still exists"):
        run("ipujob", wait_timeout=3, **FORCED)
    assert names(api) == ["teams/other"]
    assert api.get("ipujob", "other", "-n", "teams")["metadata"]["finalizers"] == ["example.org/other"]
    # The webhook was asked again as soon as that was done.
    assert failure_policies(api) == (["Fail"] if asked else [])


@pytest.mark.usefixtures("jobs")
def test_an_operator_that_hangs(run: Modules, api: ApiServer) -> None:
    run("kube_apply", objects=[manager(), webhook()])
    make_available(api)
    with pytest.raises(ModuleFailedError, match=r"still exists.*log of the operator's controller"):
        run("ipujob", delete_all=True, wait_timeout=2, **ALL)
    assert names(api) == JOBS
    result = run("ipujob", wait_timeout=2, **FORCED)
    assert sorted(result["partitions_left"]) == ["p-infer-teams-0", "p-infer-teams-1", "p-train-default-0"]
    assert "p-train-default-0" in str(result["warnings"])
    assert names(api) == []
    assert failure_policies(api) == ["Fail"]
    assert not run("ipujob", **FORCED)["changed"]


@pytest.mark.usefixtures("jobs")
def test_the_next_run_repairs_webhooks_of_a_killed_one(run: Modules, api: ApiServer) -> None:
    run("kube_apply", objects=[webhook()])
    ignore_failures(Cluster(get_api_client(kubeconfig=str(api.kubeconfig)).client))
    with pytest.raises(AssertionError):
        failure_policies(api)
    assert run("ipujob", wait_timeout=20, **FORCED)["changed"]
    assert (names(api), failure_policies(api)) == ([], ["Fail"])


@pytest.mark.usefixtures("jobs")
def test_the_jobs_of_one_namespace(run: Modules, api: ApiServer) -> None:
    run("kube_apply", objects=[manager()])
    make_available(api)
    team = {"state": "absent", "scope": "namespace", "namespace": "teams"}
    with pytest.raises(ModuleFailedError, match=r"IPUJobs of the namespace teams.*1: teams/infer"):
        run("ipujob", **team)
    with operator(api):
        assert run("ipujob", delete_all=True, wait_timeout=20, **team)["jobs"] == ["teams/infer"]
    assert names(api) == ["default/train"]


@pytest.mark.usefixtures("jobs")
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"scope": "namespace", "delete_all": True}, "namespace"),
        ({"scope": "cluster", "namespace": "teams", "delete_all": True}, "scope cluster means all namespaces"),
        ({"scope": "cluster", "name": "train", "delete_all": True}, "scope cluster means all jobs"),
        ({"delete_all": True}, "name"),
    ],
)
def test_all_jobs_are_never_meant_by_mistake(
    run: Modules, api: ApiServer, options: t.Dict[str, t.Any], message: str
) -> None:
    with pytest.raises(ModuleFailedError, match=message):
        run("ipujob", state="absent", **options)
    assert not any(each["metadata"].get("deletionTimestamp") for each in api.get("ipujobs", "-A")["items"])


def pem(days: int) -> str:
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "ipu-operator")])
    end = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(days=days, hours=1)
    builder = x509.CertificateBuilder(name, name, key.public_key(), 1, end - datetime.timedelta(days=365), end)
    return base64.b64encode(builder.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)).decode()


@pytest.mark.usefixtures("jobs")
def test_what_there_is(run: Modules, api: ApiServer) -> None:
    empty = run("cluster_info", parts=["ipu"], namespace="nowhere")["ipu"]
    assert (empty["operators"], empty["vipu_controllers"], empty["certificate_days"]) == ([], [], None)
    home = {"namespace": NAMESPACE}
    nodes = [
        {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": {"vipu-ctrl": value}}}
        for name, value in (("ipu1", "v1"), ("ipu2", "v2"), ("ipu3", "v3"))
    ]
    config = {"controllers.yaml": "10.5.0.20:8090:vipu-ctrl=v1,[fd00::1]:8091:vipu-ctrl=v2\n"}
    objects = [
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "ipu-partitions-tracker", **home}},
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "ipu-operator-vipu-controllers", **home},
            "data": config,
        },
        {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": "ipu-operator-admission", **home},
            "data": {"ca": pem(300), "cert": pem(20), "key": "aGVsbG8="},
        },
        *nodes,
        manager(),
    ]
    run("kube_apply", objects=objects)
    make_available(api)
    seen = run("cluster_info", parts=["ipu"], labels=["vipu-ctrl=v3"])["ipu"]
    assert seen["operators"] == [
        {"namespace": NAMESPACE, "name": MANAGER, "version": "1.2.0", "release": "ipu-operator", "available": True}
    ]
    assert [each["label"] for each in seen["vipu_controllers"]] == ["vipu-ctrl=v1", "vipu-ctrl=v2"]
    assert [each["name"] for each in seen["labelled"]] == ["ipu1", "ipu2", "ipu3"]
    assert (seen["certificate_days"], seen["tracker"], sorted(seen["jobs"])) == (20, True, JOBS)
    run("kube_apply", objects=objects, state="absent")
