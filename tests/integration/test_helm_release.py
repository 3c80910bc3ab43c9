from __future__ import annotations

import base64
import datetime
import gzip
import json
import typing as t
from pathlib import Path

import pytest
from ansible_collections.ipu.fabric.plugins.module_utils._kube import helm
from ansible_collections.ipu.fabric.tests.integration.api_server import ApiServer, ModuleFailedError, Modules

NAMESPACE = "charted"
LEVEL = "pod-security.kubernetes.io/enforce"
CHART = {
    "Chart.yaml": """
apiVersion: v2
name: little
version: VERSION
dependencies:
  - name: extra
    version: 0.1.0
    condition: extra.enabled
""",
    "values.yaml": "colour: red\nextra:\n  enabled: false\n",
    "crds/things.yaml": """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: things.little.example
spec:
  group: little.example
  scope: Cluster
  names: {kind: Thing, plural: things, singular: thing}
  versions:
    - name: v1
      served: true
      storage: true
      schema:
        openAPIV3Schema:
          type: object
          properties:
            spec:
              type: object
              properties:
                PROPERTY: {type: string}
""",
    "templates/all.yaml": """
apiVersion: v1
kind: Secret
metadata:
  name: little-certificate
stringData:
  made: {{ randAlphaNum 20 }}
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: little
data:
  colour: {{ .Values.colour }}
---
apiVersion: apps/v1
kind: Deployment
metadata:
  name: little
spec:
  selector:
    matchLabels: {app: little}
  template:
    metadata:
      labels: {app: little}
    spec:
      containers:
        - name: main
          image: example.org/main:1
          args: ["--listen", 8090:40]
        - name: proxy
          image: retired.example.org/proxy:v0.8.0
      volumes:
        - name: certificate
          secret: {secretName: little-certificate}
""",
    "charts/extra/Chart.yaml": "apiVersion: v2\nname: extra\nversion: 0.1.0\n",
    "charts/extra/crds/extras.yaml": "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\n"
    "metadata: {name: extras.little.example}\nspec: {}\n",
}
IMAGES = {"retired.example.org/proxy:v0.8.0": "registry.example.org/proxy:v0.8.0"}


def write(folder: Path, version: str = "1.0.0", prop: str = "first") -> Path:
    chart = folder / "little"
    for name, text in CHART.items():
        path = chart / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text.replace("VERSION", version).replace("PROPERTY", prop))
    return chart


@pytest.fixture
def release(run: Modules, api: ApiServer, binaries: Path, tmp_path: Path) -> t.Iterator[t.Dict[str, t.Any]]:
    options = {
        "name": "little",
        "namespace": NAMESPACE,
        "binary": str(binaries / "helm"),
        "chart": str(write(tmp_path)),
        "chart_version": "1.0.0",
        "timeout": 20,
    }
    yield options
    run("helm_release", name="little", namespace=NAMESPACE, binary=options["binary"], state="absent")
    api.kubectl("delete", "crd", "things.little.example", "--ignore-not-found")


def images(api: ApiServer) -> t.List[str]:
    pod = api.get("deployment", "little", "-n", NAMESPACE)["spec"]["template"]["spec"]
    assert pod["containers"][0]["args"] == ["--listen", "8090:40"]
    return [container["image"] for container in pod["containers"]]


def pod_annotations(api: ApiServer) -> t.Any:
    return api.get("deployment", "little", "-n", NAMESPACE)["spec"]["template"]["metadata"]["annotations"]


def test_install_again_upgrade_remove(
    run: Modules, api: ApiServer, release: t.Dict[str, t.Any], tmp_path: Path
) -> None:
    assert run("helm_release", check=True, **release)["upgraded"]
    labels = {LEVEL: "privileged"}
    assert run("helm_release", **release, namespace_labels=labels, images=IMAGES)["changed"]
    assert images(api) == ["example.org/main:1", "registry.example.org/proxy:v0.8.0"]
    assert labels.items() <= api.get("namespace", NAMESPACE)["metadata"]["labels"].items()
    assert not run("helm_release", **release, namespace_labels=labels, images=IMAGES)["changed"]
    assert not run("helm_release", check=True, **release, namespace_labels=labels, images=IMAGES)["changed"]

    # A label that somebody else has set stays.
    api.kubectl("label", "--overwrite", "namespace", NAMESPACE, f"{LEVEL}=baseline")
    with pytest.raises(ModuleFailedError, match=f"{LEVEL}=baseline; privileged is needed"):
        run("helm_release", **release, namespace_labels=labels, images=IMAGES)
    assert api.get("namespace", NAMESPACE)["metadata"]["labels"][LEVEL] == "baseline"

    # A CustomResourceDefinition goes along with the chart, and new content of a Secret rolls the Deployment.
    before = pod_annotations(api)
    write(tmp_path, "1.1.0", "second")
    upgrade = run("helm_release", **{**release, "chart_version": "1.1.0"}, values={"colour": "blue"}, images=IMAGES)
    assert upgrade["diff"]["before"]["release"]["version"] == "1.0.0"
    assert upgrade["diff"]["after"]["release"]["values"] == {"colour": "(not shown, after)"}
    assert api.get("configmap", "little", "-n", NAMESPACE)["data"]["colour"] == "blue"
    schema = api.get("crd", "things.little.example")["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    assert list(schema["properties"]["spec"]["properties"]) == ["second"]
    assert list(before) == ["ipu.fabric/secret-little-certificate"]
    assert pod_annotations(api) != before

    options = {key: release[key] for key in ("name", "namespace", "binary")}
    assert run("helm_release", **options, state="absent")["changed"]
    assert not run("helm_release", **options, state="absent")["changed"]


@pytest.mark.parametrize(
    ("place", "kind", "name"),
    [(["-n", NAMESPACE], "Deployment", "little"), ([], "CustomResourceDefinition", "things.little.example")],
)
def test_what_somebody_has_deleted_is_recreated(
    run: Modules, api: ApiServer, release: t.Dict[str, t.Any], place: t.List[str], kind: str, name: str
) -> None:
    run("helm_release", **release)
    api.kubectl("delete", kind, name, *place)
    assert run("helm_release", check=True, **release)["diff"]["before"]["missing"] == [f"{kind} {name}"]
    assert run("helm_release", **release)["upgraded"]
    assert api.get(kind, name, *place)
    assert not run("helm_release", **release)["changed"]


def test_other_images_are_a_change(run: Modules, api: ApiServer, release: t.Dict[str, t.Any]) -> None:
    run("helm_release", **release)
    assert images(api)[1] == "retired.example.org/proxy:v0.8.0"
    assert run("helm_release", **release, images=IMAGES)["changed"]
    assert images(api)[1] == "registry.example.org/proxy:v0.8.0"
    assert run("helm_release", **release)["changed"]
    assert images(api)[1] == "retired.example.org/proxy:v0.8.0"


def mark_pending(api: ApiServer, revision: int, status: str) -> None:
    """Makes a revision look as a killed helm leaves it."""
    name = f"sh.helm.release.v1.little.v{revision}"
    secret = api.get("secret", name, "-n", NAMESPACE)
    body = json.loads(gzip.decompress(base64.b64decode(base64.b64decode(secret["data"]["release"]))))
    body["info"]["status"] = status
    packed = base64.b64encode(base64.b64encode(gzip.compress(json.dumps(body).encode()))).decode()
    secret["metadata"]["labels"]["status"] = status
    secret["data"]["release"] = packed
    api.kubectl("replace", "-f", "-", stdin=json.dumps(secret))


@pytest.mark.parametrize("status", ["pending-install", "pending-upgrade", "pending-rollback", "failed"])
def test_a_killed_run(
    run: Modules, api: ApiServer, release: t.Dict[str, t.Any], status: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    later = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(hours=1)
    monkeypatch.setattr(helm, "utc_now", lambda: later)  # until then no helm may be at work
    run("helm_release", **release)
    if status != "pending-install":
        run("helm_release", **release, values={"colour": "green"})
    mark_pending(api, 1 if status == "pending-install" else 2, status)
    again = {**release, "values": {"colour": "green"}}
    assert run("helm_release", check=True, **again)["upgraded"]
    assert run("helm_release", **again)["upgraded"]
    assert api.get("configmap", "little", "-n", NAMESPACE)["data"]["colour"] == "green"
    assert not run("helm_release", **again)["changed"]


def test_what_is_there_already(run: Modules, api: ApiServer, release: t.Dict[str, t.Any]) -> None:
    run("kube_apply", objects=[{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}])
    api.kubectl("create", "secret", "generic", "little-certificate", "-n", NAMESPACE, "--from-literal=made=x")
    with pytest.raises(ModuleFailedError, match="invalid ownership metadata"):
        run("helm_release", **release)
    assert run("helm_release", **release, take_ownership=True)["changed"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"binary": "/nowhere/helm"}, "/nowhere/helm"),
        ({"chart": "little", "chart_repo_url": "http://127.0.0.1:9/"}, "Where: http://127.0.0.1:9/"),
        ({"chart": "/nowhere/little"}, "/nowhere/little"),
    ],
)
def test_failures_say_where(run: Modules, release: t.Dict[str, t.Any], options: t.Dict[str, str], message: str) -> None:
    with pytest.raises(ModuleFailedError, match=message):
        run("helm_release", **{**release, **options})
