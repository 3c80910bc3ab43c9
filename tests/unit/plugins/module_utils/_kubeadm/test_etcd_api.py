"""Over real TLS, against a server that answers as etcd's HTTP gateway does."""

from __future__ import annotations

import datetime
import http.server
import json
import typing as t

import pytest
from ansible_collections.ipu.fabric.plugins.module_utils._common.result import FabricError
from ansible_collections.ipu.fabric.plugins.module_utils._kubeadm import etcd_api
from ansible_collections.ipu.fabric.tests.unit.fixtures.certificates import certificate
from ansible_collections.ipu.fabric.tests.unit.fixtures.web_server import Quiet, serving
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec


class Gateway(Quiet, http.server.BaseHTTPRequestHandler):
    """Answers by path; a list is a stream in chunks."""

    protocol_version = "HTTP/1.1"
    answers: t.ClassVar[t.Dict[str, t.Any]]

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        answer = self.answers.get(self.path)
        if answer is None:
            self.send_error(404, "Not Found")
        elif isinstance(answer, list):
            self.send_response(200)
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            for each in answer:
                line = json.dumps(each).encode() + b"\n" if each != "end" else b""
                self.wfile.write(b"%x\r\n%s\r\n" % (len(line), line))
            self.close_connection = True
        else:
            text = json.dumps({**answer, "asked": body}).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)


@pytest.fixture
def gateway(tmp_path, monkeypatch):
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "cp1")])
    now = datetime.datetime.now(datetime.timezone.utc)
    day = datetime.timedelta(days=1)
    own = (
        x509.CertificateBuilder(name, name, key.public_key(), 1, now - day, now + day)
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), False)
        .sign(key, hashes.SHA256())
        .public_bytes(serialization.Encoding.PEM)
    )
    pem, plain = serialization.Encoding.PEM, serialization.NoEncryption()
    (tmp_path / "ca.crt").write_bytes(own)
    (tmp_path / "server.crt").write_bytes(own)
    (tmp_path / "server.key").write_bytes(key.private_bytes(pem, serialization.PrivateFormat.PKCS8, plain))
    handler = type("Answers", (Gateway,), {"answers": {}})
    monkeypatch.setattr(etcd_api, "PKI", str(tmp_path))
    with serving(handler, (tmp_path / "server.crt", tmp_path / "server.key"), tmp_path / "ca.crt") as port:
        monkeypatch.setattr(etcd_api, "PORT", port)
        yield handler.answers


def test_ask(gateway):
    gateway["/v3/list"] = {"version": "3.6.6"}
    assert etcd_api.ask("/v3/list", {"linearizable": False}) == {"version": "3.6.6", "asked": {"linearizable": False}}


def test_refused(gateway):
    with pytest.raises(FabricError, match="/v3/status: HTTP 404"):
        etcd_api.ask("/v3/status")


def test_stream(gateway):
    gateway["/v3/snapshot"] = [{"result": {"blob": "YQ=="}}, {"result": {"blob": "Yg=="}}, "end"]
    assert [part["blob"] for part in etcd_api.stream("/v3/snapshot")] == ["YQ==", "Yg=="]


def test_a_stream_that_ends_with_an_error(gateway):
    gateway["/v3/snapshot"] = [{"result": {}}, {"error": {"grpc_code": 14, "message": "etcdserver: stopped"}}, "end"]
    with pytest.raises(FabricError, match="etcdserver: stopped"):
        list(etcd_api.stream("/v3/snapshot"))


def test_no_etcd_there(gateway, monkeypatch):
    monkeypatch.setattr(etcd_api, "PORT", 1)
    with pytest.raises(FabricError, match=r"/v3/status: .*refused"):
        etcd_api.ask("/v3/status")


def test_no_etcd_of_kubeadm(tmp_path, monkeypatch):
    monkeypatch.setattr(etcd_api, "PKI", str(tmp_path))
    with pytest.raises(FabricError, match=r"no ca\.crt, server\.crt, server\.key"):
        etcd_api.ask("/v3/status")


def test_another_ca(gateway, tmp_path):
    end = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(days=1)
    (tmp_path / "ca.crt").write_bytes(certificate(end))
    with pytest.raises(FabricError, match="CERTIFICATE_VERIFY_FAILED"):
        etcd_api.ask("/v3/status")
