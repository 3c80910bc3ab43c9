import pytest
import yaml
from ansible_collections.ipu.fabric.plugins.module_utils._kube import post_renderer

MANIFESTS = """\
---
# Source: chart/templates/secret.yaml
apiVersion: v1
kind: Secret
metadata:
  name: certificate
data:
  tls.crt: QUJD
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  template:
    metadata:
      annotations:
        kept: "yes"
    spec:
      initContainers: [{name: first, image: "old/init:1"}]
      containers:
        - name: main
          image: old/main:1
          args: [8090:40, 0x1F, 1_000, on, "true", ~, 2026-11-21, 1.50]
          command: |
            echo one
            echo two
      volumes:
        - secret: {secretName: certificate}
---
apiVersion: batch/v1
kind: CronJob
metadata: {name: job}
spec: {jobTemplate: {spec: {template: {spec: {containers: [{name: a, image: old/main:1}]}}}}}
---
"""


def rendered(images):
    return list(yaml.load_all(post_renderer.render(MANIFESTS, images), Loader=yaml.BaseLoader))


def test_images_wherever_pods_are():
    secret, deployment, job = rendered({"old/main:1": "new/main:2", "old/init:1": "new/init:2"})
    pod = deployment["spec"]["template"]["spec"]
    assert pod["initContainers"][0]["image"] == "new/init:2"
    assert pod["containers"][0]["image"] == "new/main:2"
    assert job["spec"]["jobTemplate"]["spec"]["template"]["spec"]["containers"][0]["image"] == "new/main:2"
    assert secret["data"] == {"tls.crt": "QUJD"}


def test_nothing_else_changes():
    before = [d for d in yaml.load_all(MANIFESTS, Loader=yaml.BaseLoader) if d]
    after = rendered({})
    del after[1]["spec"]["template"]["metadata"]["annotations"]["ipu.fabric/secret-certificate"]
    assert after == before
    typed = list(yaml.safe_load_all(post_renderer.render(MANIFESTS, {})))
    before_typed = [d for d in yaml.safe_load_all(MANIFESTS) if d]
    container = typed[1]["spec"]["template"]["spec"]["containers"][0]
    assert container == before_typed[1]["spec"]["template"]["spec"]["containers"][0]


@pytest.mark.parametrize(("old", "new", "same"), [("QUJD", "QUJD", True), ("QUJD", "REVG", False)])
def test_a_checksum_follows_the_secret(old, new, same):
    def checksum(content):
        _secret, deployment, _job = yaml.safe_load_all(post_renderer.render(MANIFESTS.replace("QUJD", content), {}))
        annotations = deployment["spec"]["template"]["metadata"]["annotations"]
        assert annotations["kept"] == "yes"
        return annotations["ipu.fabric/secret-certificate"]

    assert (checksum(old) == checksum(new)) is same


def test_templates_without_metadata():
    text = MANIFESTS.replace('    metadata:\n      annotations:\n        kept: "yes"\n', "")
    _secret, deployment, _job = yaml.safe_load_all(post_renderer.render(text, {}))
    assert list(deployment["spec"]["template"]["metadata"]["annotations"]) == ["ipu.fabric/secret-certificate"]


@pytest.mark.parametrize("own", ["", "      tolerations:\n", "      tolerations: []\n"])
def test_tolerations_for_pods_without_any(own):
    wanted = [{"key": "ipu", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}]
    text = MANIFESTS.replace("      volumes:\n", f"{own}      volumes:\n")
    _secret, deployment, job = yaml.safe_load_all(post_renderer.render(text, {}, wanted))
    assert deployment["spec"]["template"]["spec"]["tolerations"] == wanted
    assert job["spec"]["jobTemplate"]["spec"]["template"]["spec"]["tolerations"] == wanted


def test_tolerations_of_the_chart_stay():
    text = MANIFESTS.replace("      volumes:\n", "      tolerations: [{operator: Exists}]\n      volumes:\n")
    _secret, deployment, _job = yaml.safe_load_all(post_renderer.render(text, {}, [{"key": "ipu"}]))
    assert deployment["spec"]["template"]["spec"]["tolerations"] == [{"operator": "Exists"}]


def test_nothing_to_render():
    assert post_renderer.render("", {}) == ""
