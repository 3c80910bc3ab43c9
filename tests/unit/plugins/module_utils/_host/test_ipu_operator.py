"""What a control plane says of the IPU operators of its cluster, from an API that answers from a table."""

import base64
import gzip
import json

import pytest
from ansible_collections.ipu.fabric.plugins.module_utils._common.helm_record import RENDER_LABEL
from ansible_collections.ipu.fabric.plugins.module_utils._host import ipu_operator

DEFINITION = {ipu_operator.DEFINITION: {"kind": "CustomResourceDefinition"}}
CONTROLLERS = "pod1:8090:ipunode=pod1,[fd00::2]:8091:rack=b"
VALUES = {"global": {"vipuControllers": CONTROLLERS}, "worker": {"hostNetwork": True}, "registry": {"password": "p4"}}


def deployment(prefix="", release="ipu-operator", namespace="ipu-operator", chart="ipu-operator-1.1.0"):
    metadata = {"namespace": namespace, "name": f"{prefix}ipu-operator-controller-manager"}
    metadata["annotations"] = {"meta.helm.sh/release-name": release} if release else {}
    return {"metadata": {**metadata, "labels": {"helm.sh/chart": chart}}}


def secret(revision, version, values, status="deployed", **labels):
    chart = {"metadata": {"version": version}, "values": {"worker": {"hostNetwork": True}, "controller": {"tag": 1}}}
    text = json.dumps({"config": values, "chart": chart}).encode()
    packed = base64.b64encode(base64.b64encode(gzip.compress(text))).decode()
    labels = {"version": str(revision), "status": status, **labels}
    return {"metadata": {"labels": labels}, "data": {"release": packed}}


def read(answers):
    asked = []

    def asks(path):
        asked.append(path)
        return {**DEFINITION, **answers}.get(path, {})

    return ipu_operator.read_ipu(asks), asked


def test_a_cluster_without_the_definition_is_asked_nothing_else():
    assert read({ipu_operator.DEFINITION: {}}) == (None, [ipu_operator.DEFINITION])


def test_a_definition_alone():
    assert read({})[0] == {"operators": [], "jobs": []}


@pytest.mark.parametrize(
    ("prefix", "release", "namespace"), [("", "gc", "default"), ("gc-", "gc", "default"), ("", "ipu-operator", "ipus")]
)
def test_what_helm_has_installed(prefix, release, namespace):
    home = f"/api/v1/namespaces/{namespace}"
    secrets = [
        secret(9, "1.0.0", {}, "superseded"),
        secret(10, "1.1.0", VALUES),
        secret(11, "1.2.0", {}, "pending-upgrade"),
    ]
    seen, _asked = read(
        {
            ipu_operator.DEPLOYMENTS: {
                "items": [deployment(prefix, release, namespace), {"metadata": {"name": "coredns"}}]
            },
            f"{home}/secrets?labelSelector=owner%3Dhelm%2Cname%3D{release}": {"items": secrets},
            f"{home}/configmaps/{prefix}ipu-operator-vipu-controllers": {"data": {"controllers.yaml": CONTROLLERS}},
        }
    )
    (operator,) = seen["operators"]
    assert operator == {
        "namespace": namespace,
        "name": f"{prefix}ipu-operator-controller-manager",
        "release": release,
        "version": "1.1.0",
        "ours": False,
        "values": {
            "global.vipuControllers": CONTROLLERS,
            "worker.hostNetwork": "true",
            "registry.password": operator["values"]["registry.password"],
        },
        "defaults": {"worker.hostNetwork": "true", "controller.tag": "1"},
        "controllers": CONTROLLERS.split(","),
    }
    assert "p4" not in json.dumps(seen)


def test_ours_by_any_of_its_revisions():
    path = "/api/v1/namespaces/ipu-operator/secrets?labelSelector=owner%3Dhelm%2Cname%3Dipu-operator"
    secrets = [secret(1, "1.1.0", {}, **{RENDER_LABEL: "none"}), secret(2, "1.2.0", {})]
    seen, _asked = read({ipu_operator.DEPLOYMENTS: {"items": [deployment()]}, path: {"items": secrets}})
    assert [(each["ours"], each["version"]) for each in seen["operators"]] == [(True, "1.2.0")]


def test_what_no_helm_has_installed():
    seen, asked = read({ipu_operator.DEPLOYMENTS: {"items": [deployment(release="", chart="gc-v1.0.3")]}})
    assert [(each["release"], each["version"], each["values"]) for each in seen["operators"]] == [("", "1.0.3", {})]
    assert not [path for path in asked if "secrets" in path]


def test_the_jobs_that_run():
    def job(name, status, **metadata):
        template = {"metadata": metadata} if metadata else {}
        return {
            "metadata": {"namespace": "team", "name": name},
            "spec": {"workers": {"template": template}},
            "status": status,
        }

    jobs = [
        job("new", {}),
        job("runs", {"launcherStatus": "Running"}, annotations={"k8s.v1.cni.cncf.io/networks": "rdma-net"}),
        job("done", {"launcherStatus": "Completed"}),
        job("failed", {"launcherStatus": "Running", "completionTime": "2026-11-27T00:00:00Z"}),
    ]
    assert read({ipu_operator.JOBS: {"items": jobs}})[0]["jobs"] == [
        {"name": "team/new", "networks": ""},
        {"name": "team/runs", "networks": "rdma-net"},
    ]
