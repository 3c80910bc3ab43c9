from __future__ import annotations

import functools
import json
import tempfile
import types

import pytest
from ansible_collections.ipu.fabric.plugins.module_utils._common.result import FabricError
from ansible_collections.ipu.fabric.plugins.module_utils._kube import client
from ansible_collections.ipu.fabric.tests.unit.fixtures import module as fake
from kubernetes.config import kube_config


def refused(status, message="no"):
    error = client.ApiError(status=status)
    error.body = json.dumps({"message": message})
    return error


@pytest.mark.parametrize(
    ("obj", "text"),
    [
        ({"kind": "Node", "metadata": {"name": "w1"}}, "Node w1"),
        ({"kind": "Pod", "metadata": {"name": "p", "namespace": "n"}}, "Pod n/p"),
    ],
)
def test_describe(obj, text):
    assert client.describe(obj) == text


def test_comparable_leaves_out_what_the_server_adds():
    obj = {
        "kind": "ConfigMap",
        "metadata": {"name": "a", "uid": "x", "resourceVersion": "1", "labels": {"a": "b"}},
        "data": {"k": "v"},
        "status": {},
    }
    assert client.comparable(obj) == {
        "kind": "ConfigMap",
        "metadata": {"name": "a", "labels": {"a": "b"}},
        "data": {"k": "v"},
    }
    assert client.comparable(None) is None


@pytest.mark.parametrize(
    ("error", "passes"),
    [
        (client.TransportError(), True),
        (refused(503), True),
        (refused(429), True),
        (refused(500, "etcdserver: request timed out"), True),
        (refused(403, 'RBAC: [clusterrole.rbac.authorization.k8s.io "system:basic-user" not found]'), True),
        (refused(403, 'User "team" cannot list resource "nodes"'), False),
        (refused(500, "failed to create typed patch object"), False),
        (refused(503, "failed calling webhook"), False),
        (refused(503, 'no endpoints available for service "http:proxy:80"'), False),
        (refused(503, "error trying to reach service: connection refused"), False),
        (refused(404), False),
        (refused(409), False),
    ],
)
def test_what_is_transient(error, passes):
    assert client.is_transient(error) is passes


def test_a_server_that_comes_back():
    answers = [client.TransportError(), refused(503), {"kind": "Node"}]

    def send():
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    assert client.persist(send, "here", pause=0) == {"kind": "Node"}


@pytest.mark.parametrize(
    ("seen", "step"),
    [
        ("Connection refused", "crictl ps"),
        ("[Errno 113] No route to host", "fabric_api_host"),
        ("[Errno 101] Network is unreachable", "fabric_api_host"),
    ],
)
def test_a_server_that_stays_away(monkeypatch, seen, step):
    def send():
        raise client.TransportError(seen)

    with pytest.raises(FabricError, match=r"stopped answering") as error:
        client.persist(send, "here", pause=0, patience=0)
    assert error.value.seen == seen
    assert step in error.value.next_step
    assert (error.value.code, error.value.transient) == ("api-unreachable", True)


def test_a_server_whose_certificate_has_expired_is_not_waited_for():
    def send():
        raise client.TransportError("certificate verify failed: certificate has expired (_ssl.c:1002)")

    with pytest.raises(FabricError, match=r"has expired.*renew_certificates") as error:
        client.persist(send, "here", pause=10**6)
    assert (error.value.code, error.value.transient) == ("expired", False)


Module = functools.partial(fake.Module, kubeconfig="/etc/kubernetes/admin.conf")


@pytest.fixture
def silent(monkeypatch):
    """A client that knows its server from a cache, and a server that does not answer any more."""

    def request(*unused, **options):
        raise client.TransportError("refused")

    dead = types.SimpleNamespace(client=types.SimpleNamespace(request=request))
    monkeypatch.setattr(client, "get_api_client", lambda **unused: dead)
    monkeypatch.setattr(client, "PATIENCE", -1)


def test_keys_of_a_kubeconfig_are_in_no_file_with_a_name(monkeypatch, tmp_path):
    """The client library writes them to /tmp, where a process that is killed leaves them."""
    read = []

    def log_in(**_unused):
        for _once_more in range(2):
            with open(kube_config._create_temp_file_with_content(b"planted-4711"), encoding="utf-8") as file:
                read.append(file.read())
        read.append([path.name for path in tmp_path.iterdir()])
        return types.SimpleNamespace(client=types.SimpleNamespace(request=lambda *_words, **_options: None))

    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(client, "get_api_client", log_in)
    client.connect(Module())
    assert read == ["planted-4711", "planted-4711", []]
    client.forget_keys()


@pytest.mark.usefixtures("silent")
def test_no_cluster_in_check_mode():
    module = Module(check_mode=True)
    cluster = client.connect(module)
    assert not cluster.present
    assert cluster.items("/api/v1/nodes") == []
    assert cluster.read({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "w1"}}) is None
    assert "/etc/kubernetes/admin.conf" in module.warnings[0]
    assert "check mode" not in module.warnings[0]  # a real run of `reset` asks in this way too


@pytest.mark.parametrize(
    ("raised", "code", "transient"),
    [
        (client.CoreException("Invalid kube-config file. No configuration found."), "api-unreachable", False),
        (refused(401), "api-denied", False),
        (OSError("no route to host"), "api-unreachable", False),
    ],
)
def test_why_no_cluster_answers(monkeypatch, raised, code, transient):
    def fail(**unused):
        raise raised

    monkeypatch.setattr(client, "get_api_client", fail)
    with pytest.raises(FabricError, match=r"does not answer|There is no kubeconfig here|refused to read") as error:
        client.connect(Module(check_mode=False))
    assert (error.value.code, error.value.transient) == (code, transient)


@pytest.mark.usefixtures("silent")
def test_no_cluster():
    with pytest.raises(FabricError, match="does not answer") as error:
        client.connect(Module(check_mode=False))
    assert error.value.next_step.startswith("Check address and port of `server` in the kubeconfig.")


@pytest.mark.parametrize("patience", [60, -1])
def test_a_server_that_starts_forbids_everything_for_a_moment(monkeypatch, patience):
    """Its version is for everybody, but it has not read the roles that say so."""
    answers = [refused(403), {}]

    def request(*unused, **options):
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    monkeypatch.setattr(client.time, "sleep", lambda _seconds: None)
    monkeypatch.setattr(client, "get_api_client", lambda **unused: types.SimpleNamespace(client=starting))
    monkeypatch.setattr(client, "PATIENCE", patience)
    starting = types.SimpleNamespace(request=request)
    if patience > 0:
        assert client.connect(Module(check_mode=False)).present
    else:
        with pytest.raises(FabricError, match="refused to read"):
            client.connect(Module(check_mode=False))


@pytest.mark.parametrize(
    ("answers", "passes", "asked"),
    [
        # While it starts, even its readiness is not for everybody yet.
        ([403, 403, 500, 200, 200], True, ["/x", "/readyz", "/readyz", "/readyz", "/x"]),
        ([403, 200, 403], False, ["/x", "/readyz", "/x"]),
        ([404], False, ["/x"]),
    ],
)
def test_what_is_forbidden_is_asked_again_when_the_server_is_ready(monkeypatch, answers, passes, asked):
    said: list[str] = []

    def request(_verb, path, **unused):
        said.append(path)
        status = answers.pop(0)
        if status != 200:
            raise refused(status)
        return types.SimpleNamespace(data="{}")

    monkeypatch.setattr(client.time, "sleep", lambda _seconds: None)
    cluster = client.Cluster(types.SimpleNamespace(request=request))
    if passes:
        assert cluster.request("get", "/x") == {}
    else:
        with pytest.raises(client.ApiError):
            cluster.request("get", "/x")
    assert said == asked


@pytest.mark.parametrize(
    ("status", "step", "code", "transient"),
    [
        (401, "Fetch a new kubeconfig", "api-denied", False),
        (403, "Give this user the right", "api-denied", False),
        (404, "Correct the value", "not-found", False),
        (409, "Something else changed", "conflict", True),
        (422, "Correct the value", "api-refused", False),
        (503, "Correct the value", "api-refused", True),
    ],
)
def test_refusal(status, step, code, transient):
    error = client.refusal(refused(status, "spec.x: bad"), "apply", "Node w1")
    assert (error.where, error.seen) == ("Node w1", "spec.x: bad")
    assert error.next_step.startswith(step)
    assert (error.code, error.transient) == (code, transient)


@pytest.mark.parametrize(
    ("user", "step"),
    [
        ("system:serviceaccount:ipu-fabric-proof:prover", "For a scheduled proof run ipu.fabric.verify"),
        ("system:serviceaccount:ci:runner", "Give this user the right"),
        ("prover", "Give this user the right"),
    ],
)
def test_a_scheduled_proof_is_told_what_gives_it_its_rights(user, step):
    message = f'nodes "w1" is forbidden: User "{user}" cannot patch resource "nodes/status" in API group ""'
    told = client.refusal(refused(403, message), "patch", "Node w1, its status")
    assert told.seen == message
    assert told.next_step.startswith(step)
    assert ("ClusterRole ipu-fabric-prover" in told.next_step) == step.startswith("For")
    assert "Give this user the right that the message names" in told.next_step


def test_an_object_that_came_between():
    """The API server says Conflict and AlreadyExists with the same status."""
    error = refused(409, 'namespaces "x" already exists')
    error.body = json.dumps({"message": 'namespaces "x" already exists', "reason": "AlreadyExists"})
    told = client.refusal(error, "create", "/api/v1/namespaces")
    assert (told.code, told.transient, told.seen) == ("conflict", True, 'namespaces "x" already exists')
    assert told.next_step.startswith("An object of this name is there already: another run has created it")


def test_a_field_that_cannot_be_changed():
    error = refused(422, "Job.batch x is invalid")
    quoted = "Invalid value: " + "{" * 5000 + "}: field is immutable"
    causes = [{"field": "spec.template", "message": quoted}, {"field": "spec.x", "message": "Required value"}]
    error.body = json.dumps({"message": quoted, "details": {"causes": causes}})
    told = client.refusal(error, "apply", "Job jobs/x")
    assert told.seen == "spec.template can't be changed"
    assert told.next_step == "Remove the object first, then run again: kubectl delete job -n jobs x."
    assert client.refusal(error, "apply", "the policy").next_step == "Remove the object first, then run again."


def test_wait_until():
    looks = [["a", "b"], ["b"], []]
    assert client.wait_until(lambda: looks.pop(0), 10, "It was expected.", "Look.", sleep=0) >= 0
    with pytest.raises(FabricError, match=r"It was expected.*a; b"):
        client.wait_until(lambda: ["a", "b"], 0, "It was expected.", "Look.", sleep=1)


@pytest.mark.parametrize(
    ("resource", "name", "namespace", "path"),
    [
        (client.Resource("/api/v1", "nodes", False), "w1", "default", "/api/v1/nodes/w1"),
        (client.Resource("/api/v1", "pods", True), "p", "n", "/api/v1/namespaces/n/pods/p"),
        (client.Resource("/api/v1", "pods", True), "", "", "/api/v1/pods"),
    ],
)
def test_paths(resource, name, namespace, path):
    assert resource.path(name, namespace) == path
