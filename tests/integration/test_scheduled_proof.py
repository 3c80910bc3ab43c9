"""The CronJob of scheduled proofs on a real API server, and what its account may and may not do there."""

from __future__ import annotations

import base64
import dataclasses
import gzip
import json
import typing as t

import pytest
from ansible_collections.ipu.fabric.plugins.module_utils._component import scheduled_proof
from ansible_collections.ipu.fabric.tests.integration.api_server import ApiServer, Modules, Result
from ansible_collections.ipu.fabric.tests.unit.fixtures.components import defaults

PLAN = {"hosts": {}, "networks": [{"name": "rail", "rdma": True}], "schema": 1}
SETTINGS = {
    "plan": PLAN,
    "schedule": "17 * * * *",
    "schedule_image": "registry.site/prover:1",
    "admission": "enforce",
}
HOME = "ipu-fabric-proof"
PROVER = f"system:serviceaccount:{HOME}:prover"
MAY = [
    ("create", "pods", HOME),
    ("deletecollection", "pods", HOME),
    ("create", "pods/exec", HOME),
    ("list", "pods", "jobs"),
    ("list", "nodes", ""),
    ("patch", "nodes/status", ""),
    ("patch", "nodes", ""),
    ("create", "events", "default"),
    ("list", "daemonsets.apps", "jobs"),
]
MAY_NOT = [
    ("create", "pods", "jobs"),
    ("delete", "pods", "kube-system"),
    ("create", "pods/exec", "kube-system"),
    ("get", "secrets", HOME),
    ("list", "secrets", "kube-system"),
    ("get", "configmaps", "kube-system"),
    ("create", "namespaces", ""),
    ("delete", "namespaces", ""),
    ("delete", "nodes", ""),
    ("create", "nodes", ""),
    ("create", "serviceaccounts/token", HOME),
    ("patch", "cronjobs.batch", HOME),
    ("create", "clusterrolebindings.rbac.authorization.k8s.io", ""),
    ("update", "clusterroles.rbac.authorization.k8s.io", ""),
    ("create", "deployments.apps", HOME),
    ("impersonate", "users", ""),
]


@pytest.fixture(scope="module")
def objects() -> t.List[Result]:
    wish = scheduled_proof.decide(defaults("verify", component="scheduled_proof", **SETTINGS), scheduled_proof.Seen())
    return t.cast(t.List[Result], json.loads(json.dumps(dataclasses.asdict(wish)["objects"])))


@pytest.fixture(scope="module")
def applied(objects: t.List[Result], api: ApiServer) -> None:
    Modules(api.kubeconfig)("kube_apply", objects=objects, state="present", only_ours=True)


@pytest.mark.usefixtures("applied")
def test_applied_strictly_and_twice(objects: t.List[Result], run: Modules, api: ApiServer) -> None:
    assert not run("kube_apply", objects=objects, state="present", only_ours=True)["changed"]
    job = api.get("cronjob", "prover", "--namespace", HOME)["spec"]
    assert (job["schedule"], job["concurrencyPolicy"]) == ("17 * * * *", "Forbid")
    config = api.get("configmap", "prover", "--namespace", HOME)
    assert json.loads(gzip.decompress(base64.b64decode(config["binaryData"]["plan.json.gz"]))) == PLAN
    settings = json.loads(config["data"]["settings.json"])
    assert (settings["verify_slice"], settings["verify_own_namespace"]) == ("10%", False)


@pytest.mark.usefixtures("applied")
@pytest.mark.parametrize(
    ("verb", "what", "namespace", "answer"),
    [(*each, "yes") for each in MAY] + [(*each, "no") for each in MAY_NOT],
)
def test_rights(api: ApiServer, verb: str, what: str, namespace: str, answer: str) -> None:
    resource, _slash, part = what.partition("/")
    place = [f"--namespace={namespace}"] if namespace else []
    seen = api.kubectl(
        "auth", "can-i", verb, resource, f"--subresource={part}", f"--as={PROVER}", *place, check=False
    ).stdout.split()
    assert seen[:1] == [answer]


@pytest.mark.usefixtures("applied")
def test_a_removal_leaves_nothing(objects: t.List[Result], run: Modules, api: ApiServer) -> None:
    inside = [each for each in objects if each["kind"] != "Namespace"]  # nothing ends namespaces here
    removed = run("kube_apply", objects=inside, state="absent", only_ours=True)["objects"]
    assert len(removed) == len(inside) == len({each["kind"] for each in inside}) + 1  # two accounts
    assert not run("kube_apply", objects=inside, state="absent", only_ours=True)["changed"]
    left = api.kubectl("get", "clusterrole,clusterrolebinding", "--output=name").stdout
    assert "ipu-fabric-prover" not in left
