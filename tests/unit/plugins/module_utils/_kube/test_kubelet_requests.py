"""Which requests for serving certificates are approved: only what the kubelet of a planned host asks for itself."""

import base64
import ipaddress
import types

import pytest
from ansible_collections.ipu.fabric.plugins.module_utils._common.result import FabricError
from ansible_collections.ipu.fabric.plugins.module_utils._kube import client, kubelet_requests
from ansible_collections.ipu.fabric.tests.unit.fixtures import module as fake
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from kubernetes.client.exceptions import ApiException

NODES = {"w1": ["10.88.0.21"], "w2": ["10.88.0.22", "fd00::22"]}
KEY = ec.generate_private_key(ec.SECP256R1())
USAGES = ["digital signature", "server auth"]


def pem(node="w1", organization="system:nodes", names=("w1",), addresses=("10.88.0.21",), others=(), subject=()):
    attributes = [
        x509.NameAttribute(NameOID.ORGANIZATION_NAME, organization),
        x509.NameAttribute(NameOID.COMMON_NAME, f"system:node:{node}"),
        *subject,
    ]
    alternatives = [
        *(x509.DNSName(name) for name in names),
        *(x509.IPAddress(ipaddress.ip_address(address)) for address in addresses),
        *others,
    ]
    builder = x509.CertificateSigningRequestBuilder(x509.Name(attributes))
    if alternatives:
        builder = builder.add_extension(x509.SubjectAlternativeName(alternatives), critical=False)
    return builder.sign(KEY, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)


def request(name="csr-1", request=None, status=None, **spec):
    text = pem() if request is None else request
    return {
        "metadata": {"name": name, "resourceVersion": "7"},
        "spec": {
            "signerName": "kubernetes.io/kubelet-serving",
            "username": "system:node:w1",
            "groups": ["system:nodes", "system:authenticated"],
            "usages": USAGES,
            "request": base64.b64encode(text).decode(),
            **spec,
        },
        "status": status or {},
    }


def test_what_a_planned_kubelet_asks_for_fits():
    assert kubelet_requests.why_not(request(), NODES) == ""
    rsa = request(usages=["server auth", "key encipherment", "digital signature"])
    assert kubelet_requests.why_not(rsa, NODES) == ""


def test_all_addresses_of_a_node_in_any_notation():
    both = request(
        username="system:node:w2",
        request=pem("w2", names=["w2"], addresses=["fd00::22", "10.88.0.22"]),
    )
    assert kubelet_requests.why_not(both, {"w2": ["10.88.0.22", "FD00:0:0::22"]}) == ""


@pytest.mark.parametrize(
    ("found", "problem"),
    [
        (
            {"signerName": "kubernetes.io/kube-apiserver-client"},
            "it is for the signer kubernetes.io/kube-apiserver-client",
        ),
        ({"username": "system:admin"}, "it was not made by a kubelet"),
        ({"username": "system:node:"}, "it was not made by a kubelet"),
        ({"groups": ["system:authenticated"]}, "it was not made by a kubelet"),
        ({"groups": None}, "it was not made by a kubelet"),
        ({"username": "system:node:x"}, "no host of the inventory is the node x"),
        ({"usages": ["digital signature", "client auth"]}, "its usages are client auth, digital signature"),
        ({"usages": [*USAGES, "client auth"]}, "its usages are client auth, digital signature, server auth"),
        ({"usages": None}, "its usages are missing"),
        ({"request": b"rubbish"}, "it can't be read: "),
        ({"request": pem("w2")}, "its subject is O=system:nodes, CN=system:node:w2"),
        ({"request": pem(organization="system:masters")}, "its subject is O=system:masters, CN=system:node:w1"),
        (
            {"request": pem(subject=[x509.NameAttribute(NameOID.ORGANIZATION_NAME, "system:masters")])},
            "its subject is O=system:nodes, CN=system:node:w1, O=system:masters",
        ),
        (
            {"request": pem(subject=[x509.NameAttribute(NameOID.ORGANIZATIONAL_UNIT_NAME, "x")])},
            "its subject is O=system:nodes, CN=system:node:w1, 2.5.4.11=x",
        ),
        ({"request": pem(names=["w1", "kubernetes"])}, "it is for the names kubernetes, w1, and the node is w1"),
        ({"request": pem(names=["*"])}, "it is for the names *, and the node is w1"),
        ({"request": pem(names=[])}, "it is for the names (none), and the node is w1"),
        (
            {"request": pem(addresses=["10.88.0.21", "10.88.0.11"])},
            "it is for the addresses 10.88.0.11, 10.88.0.21, and those planned for w1 are 10.88.0.21",
        ),
        ({"request": pem(addresses=["10.88.0.11"])}, "it is for the addresses 10.88.0.11, and those planned"),
        ({"request": pem(addresses=[])}, "it is for the addresses (none), and those planned"),
        ({"request": pem(names=[], addresses=[])}, "it is for the names (none)"),
        (
            {"request": pem(others=[x509.UniformResourceIdentifier("spiffe://x"), x509.RFC822Name("a@b")])},
            "it has alternative names of the kind RFC822Name, UniformResourceIdentifier",
        ),
    ],
)
def test_anything_else_does_not(found, problem):
    assert kubelet_requests.why_not(request(**found), NODES).startswith(problem)


def test_a_key_that_did_not_sign_it():
    other = ec.generate_private_key(ec.SECP256R1()).public_key()
    one = KEY.public_key()
    point = serialization.PublicFormat.SubjectPublicKeyInfo
    mine, theirs = (key.public_bytes(serialization.Encoding.DER, point) for key in (one, other))
    der = x509.load_pem_x509_csr(pem()).public_bytes(serialization.Encoding.DER).replace(mine, theirs)
    forged = b"-----BEGIN CERTIFICATE REQUEST-----\n" + base64.encodebytes(der) + b"-----END CERTIFICATE REQUEST-----\n"
    assert kubelet_requests.why_not(request(request=forged), NODES) == "it is not signed with its own key"


def test_a_node_without_a_planned_address_gets_none():
    assert "those planned for w1 are (none)" in kubelet_requests.why_not(request(), {"w1": [""]})


class Memory:
    """An API with requests. Kubelets answer once one of theirs is approved; each list brings the next of `later`."""

    present = True

    def __init__(self, *requests, later=(), refusal=0):
        self.requests, self.later, self.refusal = list(requests), list(later), refusal
        self.approved = []
        self.client = types.SimpleNamespace(request=self.ask)

    def items(self, path, **query):
        assert query == {"fieldSelector": "spec.signerName=kubernetes.io/kubelet-serving"}
        found, self.requests = list(self.requests), self.requests + self.later[:1]
        self.later = self.later[1:]
        return found

    def patch(self, path, body):
        name = path.split("/")[-2]
        assert path.endswith(f"/certificatesigningrequests/{name}/approval")
        assert body["metadata"] == {"resourceVersion": "7"}
        if self.refusal:
            raise ApiException(status=self.refusal, reason="no")
        found = next(each for each in self.requests if each["metadata"]["name"] == name)
        found["status"] = body["status"]
        self.approved.append(found["spec"]["username"].rpartition(":")[2])

    def ask(self, verb, path, **options):
        node = path.split("/")[4]
        assert path == f"/api/v1/nodes/{node}/proxy/healthz"
        if node not in self.approved:
            raise ApiException(status=500, reason="remote error: tls: internal error")


def manage(monkeypatch, memory, check_mode=False, **params):
    monkeypatch.setattr(kubelet_requests, "connect", lambda module: memory)
    monkeypatch.setattr(client.time, "sleep", lambda seconds: None)
    module = fake.Module(
        check_mode=check_mode, **{"nodes": NODES, "awaited": [], "requested": [], "timeout": 30, **params}
    )
    return module, kubelet_requests.manage_requests(module)


FOREIGN = request("csr-9", username="system:node:x", request=pem("x", names=["x"]))


def test_what_fits_is_approved_and_the_rest_is_named(monkeypatch):
    memory = Memory(request(), FOREIGN, request("csr-2", status={"conditions": [{"type": "Denied"}]}))
    module, result = manage(monkeypatch, memory)
    assert memory.approved == ["w1"]
    assert result["approved"] == ["csr-1 of system:node:w1"]
    assert result["left"] == ["csr-9 of system:node:x: no host of the inventory is the node x"]
    assert result["changed"]
    assert "was not approved: csr-9 of system:node:x" in module.warnings[0]
    _module, again = manage(monkeypatch, memory)
    assert not again["changed"]


def test_check_mode_says_the_same_and_approves_nothing(monkeypatch):
    memory = Memory(request(), FOREIGN)
    _module, result = manage(monkeypatch, memory, check_mode=True, awaited=["w1"])
    assert (memory.approved, result["approved"], result["changed"]) == ([], ["csr-1 of system:node:w1"], True)


def test_kubelets_that_have_not_asked_yet_are_waited_for(monkeypatch):
    memory = Memory(later=[request()])
    _module, result = manage(monkeypatch, memory, awaited=["w1"])
    assert result["approved"] == ["csr-1 of system:node:w1"]


def test_kubelets_that_have_one_and_are_to_get_another(monkeypatch):
    memory = Memory(later=[FOREIGN, request()])
    memory.approved = ["w1"]
    _module, result = manage(monkeypatch, memory, requested=["w1"])
    assert result["approved"] == ["csr-1 of system:node:w1"]


@pytest.mark.parametrize(
    ("requests", "seen"),
    [
        ([], "w1: (500)"),
        ([request(request=pem(names=["w1", "api"]))], "w1: csr-1 of system:node:w1: it is for the names api, w1"),
    ],
)
def test_one_that_gets_none_is_an_error_with_the_reason(monkeypatch, requests, seen):
    with pytest.raises(FabricError) as caught:
        manage(monkeypatch, Memory(*requests), awaited=["w1"], timeout=0)
    assert seen in caught.value.seen
    assert "kubectl get csr" in caught.value.next_step


@pytest.mark.parametrize("status", [404, 409])
def test_one_that_somebody_else_has_decided_meanwhile(monkeypatch, status):
    manage(monkeypatch, Memory(request(), refusal=status))


def test_a_user_without_the_right_to_approve(monkeypatch):
    with pytest.raises(FabricError, match="refused to approve"):
        manage(monkeypatch, Memory(request(), refusal=403))
