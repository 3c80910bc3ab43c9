"""Of an object only what is known to be harmless leaves the site, wherever a secret is in it."""

from __future__ import annotations

import json
import typing as t

import pytest
from ansible_collections.ipu.fabric.plugins.module_utils._kube.pod_problems import pod_problems
from ansible_collections.ipu.fabric.plugins.module_utils._support import cluster
from ansible_collections.ipu.fabric.plugins.module_utils._support.fields import ALLOWED, harmless, is_component

Object = t.Dict[str, t.Any]
SECRET = "planted4711"
CONTAINER = {
    "name": "c", "image": "a:1", "command": ["sh", "-c", SECRET], "args": [SECRET], "workingDir": SECRET,
    "env": [{"name": "A", "value": SECRET}], "envFrom": [{"secretRef": {"name": SECRET}}],
    "lifecycle": {"postStart": {"exec": {"command": [SECRET]}}}, "livenessProbe": {"exec": {"command": [SECRET]}},
    "resources": {"limits": {"rdma/hca": "1"}, "claims": [{"name": SECRET}]},
}  # fmt: skip
SPEC = {
    "containers": [CONTAINER],
    "initContainers": [CONTAINER],
    "volumes": [{"name": "v", "secret": {"secretName": SECRET}}],
}
TEMPLATE = {
    "metadata": {"annotations": {"a": SECRET}},
    "spec": {**SPEC, "tolerations": [{"key": "x", "operator": "Exists"}]},
}
METADATA = {
    "name": "a", "namespace": "b", "labels": {"a": SECRET}, "managedFields": [{"a": SECRET}],
    "annotations": {"kubectl.kubernetes.io/last-applied-configuration": json.dumps({"args": [SECRET]})},
}  # fmt: skip
ENDED = {"terminated": {"exitCode": 1, "reason": "Error", "message": SECRET}}
CONFIG = {
    "type": "macvlan",
    "master": "eth1",
    "etcd_password": SECRET,
    "ipam": {"type": "whereabouts", "etcd_password": SECRET},
}
ITEMS: t.Dict[str, Object] = {
    "Pod": {"spec": SPEC, "status": {"phase": "Running", "containerStatuses": [{"name": "c", "lastState": ENDED}]}},
    "DaemonSet": {"spec": {"template": TEMPLATE}, "status": {"numberReady": 1}},
    "Deployment": {"spec": {"template": TEMPLATE, "replicas": 1}},
    "IPUJob": {"spec": {"launcher": {"template": TEMPLATE}, "workers": {"replicas": 2, "template": TEMPLATE}}},
    "NicClusterPolicy": {"spec": {"ofedDriver": {"version": "1", "env": [{"name": "A", "value": SECRET}]}}},
    "NetworkAttachmentDefinition": {"spec": {"config": json.dumps({**CONFIG, "plugins": [CONFIG]})}},
    "MacvlanNetwork": {"spec": {"master": "eth1", "ipam": json.dumps(CONFIG["ipam"])}},
    "Event": {"type": "Warning", "reason": "FailedPostStartHook", "message": f"Exec hook ([{SECRET}]) failed"},
    "Node": {"spec": {"taints": [{"key": "a", "effect": "NoSchedule"}], "configSource": {"a": SECRET}}},
    "IPPool": {"spec": {"range": "10.0.0.0/8", "extra": SECRET}},
    "CIDRPool": {"spec": {"cidr": "10.0.0.0/8", "extra": SECRET}},
    "SpiderIPPool": {"spec": {"subnet": "10.0.0.0/8", "extra": SECRET}},
    "SpiderMultusConfig": {"spec": {"cniType": "macvlan", "customCNI": SECRET}},
}  # fmt: skip


@pytest.mark.parametrize("kind", ALLOWED)
def test_nothing_else_leaves(kind: str) -> None:
    metadata = {name: each for name, each in METADATA.items() if kind != "Node" or name != "labels"}
    left = harmless({"metadata": metadata, "data": {"a": SECRET}, **ITEMS[kind]}, kind, ours=False)
    assert SECRET not in json.dumps(left)
    assert left["metadata"]["name"] == "a"


def test_every_kind_that_is_read_has_its_fields() -> None:
    assert {kind for _version, kind in (*cluster.OF_CLUSTER, *cluster.OF_NAMESPACES)} == set(ALLOWED)


def test_what_a_judgement_needs_stays() -> None:
    status = {"name": "c", "restartCount": 5, "state": ENDED}
    pod = {"metadata": METADATA, "spec": SPEC, "status": {"phase": "Running", "containerStatuses": [status]}}
    theirs, ours = (harmless(pod, "Pod", ours) for ours in (False, True))
    assert [each.text for each in pod_problems(theirs)] == [
        "pod a, container c ends with exit code 1, 5 restarts: Error"
    ]
    assert [each.text for each in pod_problems(ours)] == [
        f"pod a, container c ends with exit code 1, 5 restarts: {SECRET}"
    ]
    assert theirs["spec"]["containers"] == [{"name": "c", "image": "a:1", "resources": {"limits": {"rdma/hca": "1"}}}]
    network = harmless(ITEMS["NetworkAttachmentDefinition"], "NetworkAttachmentDefinition", ours=True)
    assert json.loads(network["spec"]["config"])["ipam"] == {"type": "whereabouts"}
    event = {
        "reason": "FailedMount",
        "message": "no such secret",
        "involvedObject": {"kind": "Pod", "name": "a", "uid": "1"},
    }
    assert harmless(event, "Event", ours=False) == {**event, "involvedObject": {"kind": "Pod", "name": "a"}}


@pytest.mark.parametrize(
    ("namespace", "name", "kind", "expected"),
    [
        ("kube-system", "coredns-7d4b9c6f5d-x2x4z", "ReplicaSet", True),
        ("kube-system", "etcd-cp1", "Node", True),
        ("kube-system", "etcd-backup-1", "Job", False),
        ("kube-system", "velero-1", "ReplicaSet", False),
        ("nvidia-network-operator", "nv-ipam-node-1", "DaemonSet", True),
        ("nvidia-network-operator", "job-of-a-user", "Job", False),
    ],
)
def test_whose_logs_are_read(namespace: str, name: str, kind: str, expected: bool) -> None:
    pod = {"metadata": {"namespace": namespace, "name": name, "ownerReferences": [{"kind": kind}]}}
    assert is_component(pod) is expected
