import pytest
import yaml
from ansible_collections.ipu.fabric.plugins.module_utils._common.result import FabricError
from ansible_collections.ipu.fabric.plugins.module_utils._kube import kubelets
from ansible_collections.ipu.fabric.plugins.module_utils._kube.kubelet_config import kubelet_config
from ansible_collections.ipu.fabric.tests.unit.fixtures import module as fake
from kubernetes.client.exceptions import ApiException

TEXT = """# by the site
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
authentication:
  anonymous:
    enabled: true
  x509:
    clientCAFile: /etc/kubernetes/pki/ca.crt
clusterDNS:
- 10.96.0.10
failSwapOn: false
streamingConnectionIdleTimeout: 0s
"""
CIS = {
    "authentication": {"anonymous": {"enabled": False}},
    "podPidsLimit": 16384,
    "streamingConnectionIdleTimeout": "30m0s",
}


def test_only_the_given_keys_change():
    before, after = yaml.safe_load(TEXT), yaml.safe_load(kubelet_config(TEXT, CIS))
    assert after["authentication"] == {**before["authentication"], "anonymous": {"enabled": False}}
    assert after["podPidsLimit"] == CIS["podPidsLimit"]
    assert {key: after[key] for key in before if key not in CIS} == {
        key: before[key] for key in before if key not in CIS
    }


def test_a_second_time_it_is_the_very_same_text():
    once = kubelet_config(TEXT, CIS)
    assert kubelet_config(once, CIS) == once


@pytest.mark.parametrize(
    ("text", "settings"),
    [(TEXT, {}), (TEXT, {"failSwapOn": False, "clusterDNS": ["10.96.0.10"]}), ("", CIS), ("\n", CIS)],
)
def test_what_is_there_already_is_left_as_it_is_written(text, settings):
    assert kubelet_config(text, settings) == text


@pytest.mark.parametrize("text", ["kind: Other\n", "- a\n", "a: [\n", "text\n"])
def test_what_is_no_configuration_is_refused(text):
    with pytest.raises(FabricError, match="/var/lib/kubelet/config"):
        kubelet_config(text, CIS)


class Memory:
    """An API with the ConfigMap, or without."""

    def __init__(self, text=None, status=0):
        self.status, self.writes = status, []
        self.map = None if text is None else {"metadata": {"resourceVersion": "7"}, "data": {"kubelet": text}}

    def get(self, path):
        assert path == "/api/v1/namespaces/kube-system/configmaps/kubelet-config"
        return self.map

    def patch(self, path, body):
        if self.status:
            raise ApiException(status=self.status, reason="Conflict")
        assert body["metadata"] == {"resourceVersion": "7"}
        self.writes.append(body["data"]["kubelet"])


def apply(monkeypatch, memory, check_mode=False):
    approved = {"changed": False, "approved": [], "diff": {"before": {"pending": []}, "after": {"pending": []}}}
    monkeypatch.setattr(kubelets, "connect", lambda module: memory)
    monkeypatch.setattr(kubelets, "manage_requests", lambda module: approved)
    return kubelets.manage_kubelets(fake.Module(check_mode=check_mode, settings=CIS, nodes=None))


@pytest.mark.parametrize(
    ("text", "check_mode", "changed", "writes"),
    [
        (TEXT, False, True, 1),
        (TEXT, True, True, 0),
        (kubelet_config(TEXT, CIS), False, False, 0),
        (None, False, False, 0),
    ],
)
def test_the_config_map(monkeypatch, text, check_mode, changed, writes):
    memory = Memory(text)
    result = apply(monkeypatch, memory, check_mode)
    assert (result["changed"], len(memory.writes)) == (changed, writes)
    assert (len(result["diff"]), result["approved"]) == (changed, [])


def test_somebody_else_changes_the_config_map(monkeypatch):
    with pytest.raises(FabricError, match="Wait until that has ended"):
        apply(monkeypatch, Memory(TEXT, status=409))
