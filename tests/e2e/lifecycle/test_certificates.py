"""A cluster whose certificates are about to end, and one whose certificates have ended: named, renewed, as good as new.

No clock is moved: the cluster's own CA signs its certificates again, with the same keys and other times.
"""

from __future__ import annotations

import base64
import datetime
import json
import re
from typing import Any

import pytest
from ansible_collections.ipu.fabric.tests.e2e.bed import KUBECTL, Bed
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization

fault = pytest.mark.fault
PKI = "/etc/kubernetes/pki"
CURRENT = "/var/lib/kubelet/pki/kubelet-client-current.pem"
PEM = re.compile(r"-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----\n?", re.DOTALL)
EMBEDDED = re.compile(r"(client-certificate-data: *)(\S+)")
# Certificates and the CA that signs them.
SIGNERS = {
    f"{PKI}/apiserver.crt": "ca",
    f"{PKI}/apiserver-kubelet-client.crt": "ca",
    f"{PKI}/apiserver-etcd-client.crt": "etcd/ca",
    f"{PKI}/front-proxy-client.crt": "front-proxy-ca",
    f"{PKI}/etcd/server.crt": "etcd/ca",
    f"{PKI}/etcd/peer.crt": "etcd/ca",
    f"{PKI}/etcd/healthcheck-client.crt": "etcd/ca",
    "/etc/kubernetes/admin.conf": "ca",
    "/etc/kubernetes/super-admin.conf": "ca",
    "/etc/kubernetes/controller-manager.conf": "ca",
    "/etc/kubernetes/scheduler.conf": "ca",
}


def sign_again(bed: Bed, pem: str, authority: str, days: float) -> str:
    """The same certificate of a year that ends in so many days."""
    old = x509.load_pem_x509_certificate(pem.encode())
    ca = x509.load_pem_x509_certificate(bed.on("cp1", f"cat {PKI}/{authority}.crt").encode())
    key: Any = serialization.load_pem_private_key(bed.on("cp1", f"cat {PKI}/{authority}.key").encode(), None)
    end = datetime.datetime.now(datetime.UTC) + datetime.timedelta(days=days)
    begin = end - datetime.timedelta(days=365)
    builder = x509.CertificateBuilder(
        ca.subject, old.subject, old.public_key(), x509.random_serial_number(), begin, end
    )
    for extension in old.extensions:
        builder = builder.add_extension(extension.value, extension.critical)
    return builder.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM).decode()


def let_end(bed: Bed, host: str, path: str, days: float) -> None:
    """Let the certificate of a file end in so many days, and leave the rest of the file as it is."""
    text, authority = bed.on(host, f"cat {path}"), SIGNERS.get(path, "ca")
    if path.endswith(".conf"):
        found = EMBEDDED.search(text)
        assert found
        signed = sign_again(bed, base64.b64decode(found.group(2)).decode(), authority, days)
        text = EMBEDDED.sub(rf"\g<1>{base64.b64encode(signed.encode()).decode()}", text)
    else:
        found = PEM.search(text)
        assert found
        text = text.replace(found.group(), sign_again(bed, found.group(), authority, days))
    bed.on(host, f"base64 -d > {path} <<'EOF'\n{base64.b64encode(text.encode()).decode()}\nEOF")


def last_day(bed: Bed, host: str, path: str) -> datetime.datetime:
    found = PEM.search(bed.on(host, f"cat {path}"))
    assert found
    return x509.load_pem_x509_certificate(found.group().encode()).not_valid_after_utc


def findings(bed: Bed, level: str) -> list[dict[str, Any]]:
    return [each for each in bed.plan()["findings"] if (each["check"], each["level"]) == ("certificates", level)]


def failed(bed: Bed) -> list[tuple[str, str]]:
    checks = json.loads((bed.artifacts / "report.json").read_text())["checks"]
    return [(check["check"], check["node"]) for check in checks if check["status"] == "failed"]


def keys(bed: Bed) -> str:
    """Everything that a renewal writes on hosts."""
    command = f"sha256sum {PKI}/*.* {PKI}/etcd/* /etc/kubernetes/*.conf /var/lib/kubelet/pki/*.pem 2>/dev/null"
    return "".join(bed.on(host, command, check=False) for host in ("cp1", "w1"))


def processes(bed: Bed) -> dict[str, str]:
    """Process numbers of the static pods."""
    names = ("etcd", "kube-apiserver", "kube-controller", "kube-scheduler")
    return {name: bed.on("cp1", f"pgrep -x {name}", check=False).strip() for name in names}


@fault("certificates of the cluster are about to end")
def test_certificates_that_are_about_to_end(finished: Bed) -> None:
    bed = finished
    for path in (f"{PKI}/apiserver.crt", f"{PKI}/etcd/server.crt", "/etc/kubernetes/admin.conf"):
        let_end(bed, "cp1", path, 10)
    assert bed.play("plan").code == 0
    (warning,) = findings(bed, "warning")
    assert warning["hosts"] == ["cp1"]
    assert {"apiserver", "etcd-server", "admin.conf"} == set(re.findall(r"(\S+) \(", warning["seen"]))
    assert "ipu.fabric.renew_certificates" in warning["next"]

    assert bed.play("verify").code != 0
    assert failed(bed) == [("certificates", "cp1")]

    before, running = keys(bed), processes(bed)
    checked = bed.play("renew_certificates", "--check")
    assert checked.code == 0
    assert "kubeadm certs renew all" in checked.text
    assert (keys(bed), processes(bed)) == (before, running)

    renewed = bed.play("renew_certificates")
    assert renewed.code == 0
    assert renewed.changed() == checked.changed() == {"cp1": 2}  # what is on the host, and the kubeconfig
    assert not set(running.values()) & set(processes(bed).values()), "every static pod has read the new ones"
    assert (bed.artifacts / "admin.conf").read_text() == bed.on("cp1", "cat /etc/kubernetes/admin.conf")

    again = bed.play("renew_certificates")
    assert (again.code, again.changed()) == (0, {})
    # Controllers may have lost the API for a moment: site waits for them, and proves all.
    assert bed.play("site").code == 0
    assert findings(bed, "warning") == []


def test_a_worker_that_was_off_for_too_long(finished: Bed) -> None:
    """Its kubelet can't renew its certificate any more: it no longer starts."""
    bed = finished
    let_end(bed, "w1", CURRENT, -1)
    bed.on("w1", "systemctl restart kubelet", check=False)
    assert bed.play("plan").code != 0
    (error,) = findings(bed, "error")
    assert (error["hosts"], error["seen"].split()[0]) == (["w1"], "kubelet-client")
    checked, renewed = bed.play("renew_certificates", "--check"), bed.play("renew_certificates")
    assert (checked.code, renewed.code) == (0, 0)
    assert checked.changed() == renewed.changed() == {"w1": 1}
    assert "PRIVATE KEY" not in renewed.text
    assert "client-key-data" not in renewed.text
    bed.on("cp1", f"{KUBECTL} wait --for=condition=Ready node/w1 --timeout=180s")
    again = bed.play("renew_certificates")
    assert (again.code, again.changed()) == (0, {})


@fault("certificates of the cluster have expired")
def test_a_cluster_that_has_expired(finished: Bed) -> None:
    """Nothing of it answers any more, and no host is to be reset."""
    bed = finished
    for path in SIGNERS:
        if bed.on("cp1", f"ls {path}", check=False):
            let_end(bed, "cp1", path, -1)
    for host in ("cp1", "w1"):
        let_end(bed, host, CURRENT, -1)
        bed.on(host, "systemctl restart kubelet", check=False)
    # Nobody starts them again: the kubelet no longer starts either.
    bed.on("cp1", "pkill -x 'etcd|kube-apiserver|kube-controller|kube-scheduler'", check=False)

    for playbook in ("plan", "site"):
        refused = bed.play(playbook)
        assert refused.code != 0
        errors = bed.errors()
        assert {error["check"] for error in errors} == {"certificates"}
        assert sorted(host for error in errors for host in error["hosts"]) == ["cp1", "w1"]
        assert "kubeadm reset" not in refused.text
        assert "ipu.fabric.renew_certificates" in " ".join(refused.shown.split())

    before = keys(bed)
    checked = bed.play("renew_certificates", "--check")
    assert checked.code == 0
    assert keys(bed) == before

    renewed = bed.play("renew_certificates")
    assert renewed.code == 0
    assert renewed.changed() == checked.changed() == {"cp1": 2, "w1": 1}
    assert last_day(bed, "w1", CURRENT) > datetime.datetime.now(datetime.UTC) + datetime.timedelta(days=300)
    bed.on("cp1", f"{KUBECTL} wait --for=condition=Ready nodes --all --timeout=300s")

    again = bed.play("renew_certificates")
    assert (again.code, again.changed()) == (0, {})
    assert bed.play("site").code == 0
    assert findings(bed, "error") + findings(bed, "warning") == []
