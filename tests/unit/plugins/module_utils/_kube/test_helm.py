# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import base64
import datetime
import gzip
import json
import types

import pytest
from ansible_collections.ipu.fabric.plugins.module_utils._common.result import FabricError
from ansible_collections.ipu.fabric.plugins.module_utils._kube import helm
from ansible_collections.ipu.fabric.plugins.module_utils._kube.chart_values import combined


def secret(revision, status, values=None, labels=None):
    body = {
        "version": revision,
        "info": {"status": status},
        "chart": {"metadata": {"name": "little", "version": "1.0.0"}},
        "config": values,
    }
    packed = base64.b64encode(base64.b64encode(gzip.compress(json.dumps(body).encode()))).decode()
    return {"metadata": {"name": f"v{revision}", "labels": labels}, "data": {"release": packed}}


def test_decode_release():
    release = helm.decode_release(secret(3, "deployed", {"a": 1}, {helm.RENDER_LABEL: "x"}))
    assert release == helm.Release(3, "deployed", "little", "1.0.0", {"a": 1}, "x", "v3")
    assert helm.decode_release(secret(1, "deployed")).render == helm.NO_RENDER


@pytest.mark.parametrize(
    ("statuses", "finished", "pending"),
    [
        ([], None, []),
        (["deployed"], 1, []),
        (["superseded", "deployed"], 2, []),
        (["pending-install"], None, [1]),
        (["deployed", "pending-upgrade"], 1, [2]),
        (["deployed", "failed", "pending-rollback"], 2, [3]),
        (["superseded", "pending-upgrade", "deployed"], 3, []),
    ],
)
def test_split_pending(statuses, finished, pending):
    releases = [helm.decode_release(secret(number, status)) for number, status in enumerate(statuses, 1)]
    latest, unfinished = helm.split_pending(releases)
    assert (latest.revision if latest else None) == finished
    assert [release.revision for release in unfinished] == pending


@pytest.mark.parametrize(
    ("base", "over", "result"),
    [
        ({}, {}, {}),
        ({"a": {"b": 1, "c": 2}}, {"a": {"b": 3}}, {"a": {"b": 3, "c": 2}}),
        ({"a": [1]}, {"a": [2]}, {"a": [2]}),
        ({"a": {"b": 1}}, {"a": None}, {"a": None}),
    ],
)
def test_combined(base, over, result):
    assert combined(base, over) == result


CRD = "kind: CustomResourceDefinition\nmetadata: {{name: {}}}\n"
FILES = {
    "Chart.yaml": "dependencies: [{name: nfd, condition: 'other.enabled,nfd.enabled'}, {name: always}]",
    "values.yaml": "nfd: {enabled: true}",
    "crds/b.yaml": CRD.format("b"),
    "crds/a.yaml": f"# {{}}\n---\n{CRD.format('a1')}---\n{CRD.format('a2')}",
    "crds/readme.txt": "no",
    "templates/crd.yaml": CRD.format("templated"),
    "charts/nfd/crds/nfd.yaml": CRD.format("nfd"),
    "charts/always/crds/x.yaml": CRD.format("x"),
    "charts/always/values.yaml": "a: b",
}


@pytest.mark.parametrize(
    ("values", "names"),
    [
        ({}, ["x", "nfd", "a1", "a2", "b"]),
        ({"nfd": {"enabled": False}}, ["x", "a1", "a2", "b"]),
        ({"other": {"enabled": False}}, ["x", "a1", "a2", "b"]),
    ],
)
def test_chart_crds(values, names):
    assert [crd["metadata"]["name"] for crd in helm.chart_crds(FILES, values)] == names


def certificate(end):
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "ipu-operator-webhook-svc")])
    builder = x509.CertificateBuilder(name, name, key.public_key(), 1, end - datetime.timedelta(days=365), end)
    return builder.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)


@pytest.mark.parametrize("year", [2027, 2051])
def test_not_after(year):
    end = datetime.datetime(year, 3, 4, 5, 6, 7, tzinfo=datetime.timezone.utc)
    assert helm.not_after(certificate(end).decode()) == end


def test_certificate_end():
    end = datetime.datetime(2027, 3, 4, 5, 6, 7, tzinfo=datetime.timezone.utc)
    found = {"data": {"cert": base64.b64encode(certificate(end)).decode(), "key": ""}}
    there, none = (types.SimpleNamespace(get={"/api/v1/namespaces/ipu/secrets/tls": s}.get) for s in (found, None))
    assert helm.certificate_end(there, "ipu", {"secret": "tls"}) == end
    assert helm.certificate_end(there, "ipu", None) is None
    assert helm.certificate_end(none, "ipu", {"secret": "tls"}) is None
    # A Secret without a certificate must not read as one that never ends.
    empty = types.SimpleNamespace(get={"/api/v1/namespaces/ipu/secrets/tls": {"data": {"key": "aGVsbG8="}}}.get)
    with pytest.raises(FabricError, match="no certificate under its keys key"):
        helm.certificate_end(empty, "ipu", {"secret": "tls"})


def test_the_first_certificate_that_ends_counts_whatever_its_key():
    early, late = (datetime.datetime(year, 3, 4, 5, 6, 7, tzinfo=datetime.timezone.utc) for year in (2027, 2051))
    texts = [base64.b64encode(certificate(end)).decode() for end in (late, early)]
    assert helm.first_end({"data": {"ca": texts[0], "cert": texts[1], "key": "aGVsbG8="}}) == early
    assert helm.first_end({"data": {"key": "/////w=="}}) is None
    assert helm.first_end({}) is helm.first_end(None) is None


LOGIN = {
    "host": "https://10.0.0.1:6443",
    "ssl_ca_cert": "ca.crt",
    "verify_ssl": True,
    "cert_file": None,
    "key_file": None,
    "username": None,
    "password": None,
    "api_key": {},
}


@pytest.mark.parametrize(
    ("login", "user", "server"),
    [
        ({"api_key": {"authorization": "Bearer abc"}}, {"token": "abc"}, {"certificate-authority": "ca.crt"}),
        (
            {"cert_file": "c", "key_file": "k", "verify_ssl": False, "ssl_ca_cert": None},
            {"client-certificate": "c", "client-key": "k"},
            {"insecure-skip-tls-verify": True},
        ),
    ],
)
def test_kubeconfig_of(login, user, server):
    config = helm.kubeconfig_of(types.SimpleNamespace(**{**LOGIN, **login}))
    assert config["users"][0]["user"] == user
    assert config["clusters"][0]["cluster"] == {"server": "https://10.0.0.1:6443", **server}


@pytest.mark.parametrize(
    ("chart", "shown"),
    [
        ("little", "little"),
        ("/a/b/little/", "little"),
        ("oci://host/charts/little", "little"),
        ("x/little-1.0.0.tgz", "little-1.0.0"),
    ],
)
def test_the_chart_of_a_release(chart, shown):
    params = {"chart": chart, "chart_version": "v1.0.0", "values": {"a": 1}, "images": {}}
    wanted = helm.wanted_state(params)
    assert wanted["chart"] == shown
    release = helm.decode_release(secret(1, "deployed", {"a": 1}))
    assert helm.current_state(release, wanted) == wanted


def test_a_removed_release_counts_as_none():
    release = helm.decode_release(secret(1, "uninstalled"))
    assert helm.current_state(release, {}) is None


@pytest.mark.parametrize(
    ("chart", "repo", "source"),
    [
        ("network-operator", "http://mirror/charts", ["network-operator", "--repo", "http://mirror/charts"]),
        (
            "whereabouts-chart",
            "oci://ghcr.io/k8snetworkplumbingwg/",
            ["oci://ghcr.io/k8snetworkplumbingwg/whereabouts-chart"],
        ),
        ("oci://registry/charts/x", "", ["oci://registry/charts/x"]),
    ],
)
def test_chart_source(chart, repo, source):
    assert helm.chart_source(chart, repo) == source
