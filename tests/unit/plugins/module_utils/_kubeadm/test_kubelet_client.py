"""A client certificate for a kubelet, as the module kubeadm has it signed on a control plane."""

import os

import pytest
from ansible_collections.ipu.fabric.plugins.module_utils._kubeadm import paths


@pytest.mark.parametrize(("name", "client"), [("w1", "system:node:w1"), ("", "system:node:cp1")])
def test_it_is_signed_for_the_node(host, make_module, monkeypatch, name, client):
    monkeypatch.setattr("socket.gethostname", lambda: "CP1")
    module = make_module("client", node_name=name, printed={"version": "v1.35.4\n", "kubeconfig": "kind: Config"})
    assert module.apply() == {"changed": True, "client": "kind: Config"}
    assert module.calls == [
        "kubeadm version --output=short",
        f"kubeadm kubeconfig user --org=system:nodes --client-name={client}",
    ]
    assert not os.path.exists(paths.CONFIG)


def test_check_mode_makes_no_key(host, make_module):
    module = make_module("client", check_mode=True)
    assert module.apply() == {"changed": True, "client": ""}
    assert module.calls == []
