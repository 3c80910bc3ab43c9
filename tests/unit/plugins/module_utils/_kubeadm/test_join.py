"""Configuration of hosts that join."""

from ansible_collections.ipu.fabric.plugins.module_utils._kubeadm.init import Init
from ansible_collections.ipu.fabric.plugins.module_utils._kubeadm.join import with_discovery

DISCOVERY = {"endpoint": "192.0.2.1:6443", "token": "abcdef.0123", "ca_hashes": ["sha256:12"], "certificate_key": "key"}
JOIN = {"kind": "JoinConfiguration", "nodeRegistration": {"name": "w1"}}


def test_discovery_of_a_worker():
    (document,) = with_discovery([JOIN], DISCOVERY)
    assert document["discovery"]["bootstrapToken"] == {
        "token": "abcdef.0123",
        "apiServerEndpoint": "192.0.2.1:6443",
        "caCertHashes": ["sha256:12"],
    }
    assert "controlPlane" not in document
    assert "discovery" not in JOIN


def test_discovery_of_a_control_plane():
    local = {"localAPIEndpoint": {"advertiseAddress": "192.0.2.2"}}
    documents = [{"kind": "Other"}, {**JOIN, "controlPlane": local}]
    other, document = with_discovery(documents, DISCOVERY)
    assert other == {"kind": "Other"}
    assert document["controlPlane"] == {**local, "certificateKey": "key"}


def test_documents_without_discovery_stay(make_module):
    assert Init(make_module(documents=[JOIN])).documents() == [JOIN]
