# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json
import types

import pytest
from ansible_collections.ipu.fabric.plugins.module_utils import _kube
from ansible_collections.ipu.fabric.plugins.module_utils._result import FabricError


def refused(status, message="no"):
    error = _kube.ApiError(status=status)
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
    assert _kube.describe(obj) == text


def test_comparable_leaves_out_what_the_server_adds():
    obj = {
        "kind": "ConfigMap",
        "metadata": {"name": "a", "uid": "x", "resourceVersion": "1", "labels": {"a": "b"}},
        "data": {"k": "v"},
        "status": {},
    }
    assert _kube.comparable(obj) == {
        "kind": "ConfigMap",
        "metadata": {"name": "a", "labels": {"a": "b"}},
        "data": {"k": "v"},
    }
    assert _kube.comparable(None) is None


@pytest.mark.parametrize(
    ("path", "value"), [("status.state", "ready"), ("status.none", None), ("status.state.deeper", None), ("x.y", None)]
)
def test_field(path, value):
    assert _kube.field({"status": {"state": "ready"}}, path) == value


@pytest.mark.parametrize(
    ("error", "passes"),
    [
        (_kube.TransportError(), True),
        (refused(503), True),
        (refused(429), True),
        (refused(500, "etcdserver: request timed out"), True),
        (refused(500, "failed to create typed patch object"), False),
        (refused(503, "failed calling webhook"), False),
        (refused(503, 'no endpoints available for service "http:proxy:80"'), False),
        (refused(503, "error trying to reach service: connection refused"), False),
        (refused(404), False),
        (refused(409), False),
    ],
)
def test_what_passes(error, passes):
    assert _kube.passing(error) is passes


def test_a_server_that_comes_back():
    answers = [_kube.TransportError(), refused(503), {"kind": "Node"}]

    def send():
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    assert _kube.persist(send, "here", pause=0) == {"kind": "Node"}


def test_a_server_that_stays_away(monkeypatch):
    def send():
        raise _kube.TransportError("refused")

    monkeypatch.setattr(_kube, "PATIENCE", 0)
    with pytest.raises(FabricError, match=r"stopped answering.*refused"):
        _kube.persist(send, "here", pause=0)


class Module:
    """As much of an AnsibleModule as connect() needs."""

    def __init__(self, check_mode):
        self.check_mode, self.warnings = check_mode, []
        self.params = {"kubeconfig": "/etc/kubernetes/admin.conf"}

    def warn(self, text):
        self.warnings.append(text)


@pytest.fixture
def silent(monkeypatch):
    """A client that knows its server from a cache, and a server that does not answer any more."""

    def request(*unused, **options):
        raise _kube.TransportError("refused")

    client = types.SimpleNamespace(client=types.SimpleNamespace(request=request))
    monkeypatch.setattr(_kube, "get_api_client", lambda **unused: client)
    monkeypatch.setattr(_kube, "PATIENCE", -1)


@pytest.mark.usefixtures("silent")
def test_no_cluster_in_check_mode():
    module = Module(check_mode=True)
    cluster = _kube.connect(module)
    assert not cluster.present
    assert cluster.items("/api/v1/nodes") == []
    assert cluster.read({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "w1"}}) is None
    assert "/etc/kubernetes/admin.conf" in module.warnings[0]


@pytest.mark.usefixtures("silent")
def test_no_cluster():
    with pytest.raises(FabricError, match="stopped answering"):
        _kube.connect(Module(check_mode=False))


@pytest.mark.parametrize(
    ("status", "step"), [(401, "Fetch a new kubeconfig"), (403, "Give this user the right"), (422, "Correct the value")]
)
def test_refusal(status, step):
    error = _kube.refusal(refused(status, "spec.x: bad"), "apply", "Node w1")
    assert (error.where, error.seen) == ("Node w1", "spec.x: bad")
    assert error.next_step.startswith(step)


def test_wait_until():
    looks = [["a", "b"], ["b"], []]
    assert _kube.wait_until(lambda: looks.pop(0), 10, "It was expected.", "Look.", sleep=0) >= 0
    with pytest.raises(FabricError, match=r"It was expected.*a; b"):
        _kube.wait_until(lambda: ["a", "b"], 0, "It was expected.", "Look.", sleep=1)


@pytest.mark.parametrize(
    ("resource", "name", "namespace", "path"),
    [
        (_kube.Resource("/api/v1", "nodes", False), "w1", "default", "/api/v1/nodes/w1"),
        (_kube.Resource("/api/v1", "pods", True), "p", "n", "/api/v1/namespaces/n/pods/p"),
        (_kube.Resource("/api/v1", "pods", True), "", "", "/api/v1/pods"),
    ],
)
def test_paths(resource, name, namespace, path):
    assert resource.path(name, namespace) == path
