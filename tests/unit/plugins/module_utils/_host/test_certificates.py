"""Certificates of a host and when they end, read without a library."""

import base64
import datetime
import json

import pytest
from ansible_collections.ipu.fabric.plugins.module_utils._host import certificates
from ansible_collections.ipu.fabric.tests.unit.fixtures import site
from ansible_collections.ipu.fabric.tests.unit.fixtures.certificates import certificate

UTC = datetime.timezone.utc
# From 2050 on, the form of the time is another one.
ENDS = [
    datetime.datetime(2026, 3, 1, 12, 30, 5, tzinfo=UTC),
    datetime.datetime(2049, 12, 31, 23, 59, 59, tzinfo=UTC),
    datetime.datetime(2050, 1, 1, tzinfo=UTC),
    datetime.datetime(2051, 1, 1, tzinfo=UTC),
    datetime.datetime(1999, 1, 1, tzinfo=UTC),
]
KEY = "-----BEGIN RSA PRIVATE KEY-----\nc2VjcmV0\n-----END RSA PRIVATE KEY-----\n"
OLD, NEW = (certificate(end).decode() for end in ENDS[::3][:2])
PKI = "etc/kubernetes/pki"


@pytest.mark.parametrize("end", ENDS)
def test_the_validity_of_the_first_certificate(end):
    text = KEY + certificate(end).decode() + OLD
    assert certificates.read_validity(text) == (end - datetime.timedelta(days=365), end)


def der(*parts):
    return b"".join(bytes([tag, len(content)]) + content for tag, content in parts)


def pem(validity):
    fields = der((2, b"\1"), (0x30, b""), (0x30, b""), (0x30, validity))
    text = base64.encodebytes(der((0x30, der((0x30, fields))))).decode()
    return f"-----BEGIN CERTIFICATE-----\n{text}-----END CERTIFICATE-----\n"


BEGIN = (0x17, b"250301123005Z")


def test_a_certificate_of_version_1_has_no_field_for_it():
    assert certificates.read_validity(pem(der(BEGIN, (0x18, b"20510301123005Z")))).not_after.year == 2051


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "no certificate"),
        ("certificate", "no certificate"),
        (KEY, "no certificate"),
        ("-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----", "cut off"),
        ("-----BEGIN CERTIFICATE-----\n!\n-----END CERTIFICATE-----", r"\w"),
        (pem(der(BEGIN)), "cut off"),
        (pem(der(BEGIN, (0x17, b"260301"))), "does not match"),
        (pem(der(BEGIN, (0x17, b"\xff\xff"))), "codec"),
        (pem(der(BEGIN, (0x04, b"260301123005Z"))), "no time where it should be"),
        (pem(der(BEGIN, (0x17, b"261301123005Z"))), "does not match"),  # a 13th month
    ],
)
def test_what_is_no_certificate(text, said):
    with pytest.raises(ValueError, match=said):
        certificates.read_validity(text)


def test_no_part_of_a_certificate_is_taken_for_a_whole_one():
    """Cut off anywhere, it is an error with words, and never another exception or another time."""
    whole = base64.b64decode("".join(OLD.splitlines()[1:-1]))
    for length in range(len(whole)):
        text = base64.b64encode(whole[:length]).decode()
        with pytest.raises(ValueError, match=r"\w"):
            certificates.read_validity(f"-----BEGIN CERTIFICATE-----\n{text}\n-----END CERTIFICATE-----\n")


def kubeconfig(text):
    data = base64.b64encode(text.encode()).decode()
    return f"users:\n- name: x\n  user:\n    client-certificate-data: {data}\n    client-key-data: c2VjcmV0\n"


@pytest.fixture
def put(tmp_path):
    def write(path, text):
        target = tmp_path / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)
        return str(target)

    return write


def test_certificates_of_a_control_plane(tmp_path, put):
    pem_file = put("var/lib/kubelet/pki/kubelet-client-current.pem", OLD + KEY)
    put(
        "etc/kubernetes/kubelet.conf",
        f"user:\n  client-certificate: {'/' + pem_file.partition(str(tmp_path) + '/')[2]}\n",
    )
    put("var/lib/kubelet/pki/kubelet.crt", NEW)
    for path in ("ca.crt", "apiserver.crt", "etcd/ca.crt", "etcd/peer.crt", "front-proxy-ca.crt"):
        put(f"{PKI}/{path}", NEW)
    put(f"{PKI}/apiserver-etcd-client.crt", "nothing")
    put("etc/kubernetes/admin.conf", kubeconfig(OLD))
    put("etc/kubernetes/scheduler.conf", "users: []\n")
    found = {each["name"]: each for each in certificates.read_certificates(str(tmp_path))}
    assert {name: each["not_after"] or each["error"] for name, each in found.items()} == {
        "apiserver": "2051-01-01T00:00:00Z",
        "apiserver-etcd-client": "no certificate",
        "etcd-peer": "2051-01-01T00:00:00Z",
        "admin.conf": "2026-03-01T12:30:05Z",
        "scheduler.conf": "no certificate",
        "kubelet-client": "2026-03-01T12:30:05Z",
        "kubelet-serving": "2051-01-01T00:00:00Z",
        "ca": "2051-01-01T00:00:00Z",
        "etcd-ca": "2051-01-01T00:00:00Z",
        "front-proxy-ca": "2051-01-01T00:00:00Z",
    }
    assert {name for name, each in found.items() if each["ca"]} == {"ca", "etcd-ca", "front-proxy-ca"}
    assert (found["kubelet-client"]["path"], found["kubelet-client"]["renewed_by"]) == (pem_file, "kubelet")
    assert found["admin.conf"]["not_before"] == "2025-03-01T12:30:05Z"
    assert "c2VjcmV0" not in json.dumps(found), "no private key leaves the host"


def test_a_host_without_a_cluster_has_none(tmp_path):
    assert certificates.read_certificates(str(tmp_path)) == []


def test_the_certificate_that_the_kubelet_uses(tmp_path, put):
    """kubelet.conf may carry it, and one that is signed by the cluster comes before the kubelet's own."""
    put("etc/kubernetes/kubelet.conf", kubeconfig(NEW))
    put("var/lib/kubelet/pki/kubelet-client-current.pem", OLD)
    put("var/lib/kubelet/pki/kubelet.crt", OLD)
    put("var/lib/kubelet/pki/kubelet-server-current.pem", NEW)
    assert {each["not_after"][:4] for each in certificates.read_certificates(str(tmp_path))} == {"2051"}


def test_a_link_that_leads_nowhere_is_a_fact(tmp_path, put):
    put("etc/kubernetes/kubelet.conf", "user: {}\n")
    link = tmp_path / "var/lib/kubelet/pki/kubelet-client-current.pem"
    link.parent.mkdir(parents=True)
    link.symlink_to("none.pem")
    (found,) = certificates.read_certificates(str(tmp_path))
    assert (found["name"], found["error"]) == ("kubelet-client", "No such file or directory")


@pytest.mark.parametrize(
    ("days", "lifetime", "renewed_by", "expected"),
    [
        (31, 365, "kubeadm", False),
        (29, 365, "kubeadm", True),
        (-1, 365, "kubeadm", True),
        (10, 21, "kubeadm", False),  # a site may want them short
        (6, 21, "kubeadm", True),
        (100, 365, "kubelet", False),
        (29, 365, "kubelet", True),
        (5, 30, "kubelet", False),  # the kubelet is about to renew it
        (2, 30, "kubelet", True),  # it should have done so
    ],
)
def test_when_a_certificate_ends_soon(days, lifetime, renewed_by, expected):
    found = site.certificate(days, lifetime=lifetime, renewed_by=renewed_by)
    assert certificates.ends_soon(found, 0, 30) is expected
    assert certificates.has_expired(found, 0) is (days < 0)


def test_a_certificate_that_can_not_be_read_needs_a_person():
    found = site.certificate(100, not_after="", not_before="", error="cut off")
    assert certificates.ends_soon(found, 0, 30)
    assert not certificates.has_expired(found, 0)
    assert certificates.describe_end(found) == "apiserver (cut off)"


def test_expired_certificates(tmp_path, put):
    """Nobody checks what a kubelet shows as a server: that alone does not end a membership."""
    apiserver = put(f"{PKI}/apiserver.crt", OLD)
    put("var/lib/kubelet/pki/kubelet.crt", OLD)
    put(f"{PKI}/ca.crt", NEW)
    now = datetime.datetime(2026, 3, 2, tzinfo=UTC).timestamp()
    assert certificates.expired_certificates(str(tmp_path), now) == [f"{apiserver} on 2026-03-01"]
    assert certificates.expired_certificates(str(tmp_path), now - 2 * 86400) == []


def token(**claims):
    part = base64.urlsafe_b64encode(json.dumps(claims).encode()).decode().rstrip("=")
    return f"eyJhbGciOiJSUzI1NiJ9.{part}.c2lnbmVk-_"


LIVES = {"iat": 1795000000, "exp": 1795003607, "sub": "system:serviceaccount:ns:multus"}
KUBECONFIG = "users:\n- name: multus\n  user:\n    token: {}\n"


@pytest.mark.parametrize("padding", ["", "x", "xx", "xxx"])
@pytest.mark.parametrize("quoted", ["{}", '"{}"', "'{}'"])
def test_only_the_times_of_a_token_leave_the_host(tmp_path, quoted, padding):
    path = tmp_path / "etc/cni/net.d/multus.d/multus.kubeconfig"
    path.parent.mkdir(parents=True)
    path.write_text(KUBECONFIG.format(quoted.format(token(**LIVES, padding=padding))))
    (found,) = certificates.read_cni_tokens("/etc/cni/net.d", str(tmp_path))
    assert found == {
        "name": "multus",
        "path": str(path),
        "not_before": "2026-11-18T11:06:40Z",
        "not_after": "2026-11-18T12:06:47Z",
        "ca": False,
        "renewed_by": "nobody",
        "error": "",
    }


@pytest.mark.parametrize(
    "text",
    [
        "",
        "clusters: []",
        KUBECONFIG.format("no-jwt"),
        KUBECONFIG.format("a.b.c"),
        KUBECONFIG.format(token(iat=1)),  # of a Secret: it never ends
        KUBECONFIG.format(token(iat=1, exp="soon")),
        KUBECONFIG.format(token(iat=1, exp=10**30)),
        "users:\n- user:\n    client-certificate-data: eA==\n",
    ],
)
def test_what_has_no_token_that_ends(text):
    assert certificates.token_validity(text) is None


def test_who_has_a_token(tmp_path):
    for name in ("multus.d/multus.kubeconfig", "whereabouts.d/whereabouts.kubeconfig", "calico-kubeconfig"):
        path = tmp_path / "net" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(KUBECONFIG.format(token(**LIVES)))
    found = certificates.read_cni_tokens("/net", str(tmp_path))
    assert [(each["name"], each["renewed_by"]) for each in found] == [
        ("multus", "nobody"),
        ("whereabouts", "nobody"),
        ("calico", "calico-node"),
    ]
    third = LIVES["exp"] - 3607 / 3
    assert not certificates.ends_soon(found[0], third - 1, 30)
    assert certificates.ends_soon(found[0], third + 1, 30)
    assert not certificates.ends_soon(found[2], third + 1, 30)  # renews it itself
