# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Expiry of a host's Kubernetes certificates and of the tokens of its CNI plugins.

Hosts have no library for this, so the DER is parsed here. Some of these files contain a private key beside the
certificate, or are a token: only the times leave this module.
"""

from __future__ import annotations

import base64
import datetime
import json
import os
import re
import ssl
import typing as t

from .._model.observation import Certificate
from .files import read_text

PEM = re.compile(r"-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----", re.DOTALL)
EMBEDDED = re.compile(r"^\s*client-certificate-data:\s*[\"']?([A-Za-z0-9+/=]+)", re.MULTILINE)
REFERENCE = re.compile(r"^\s*client-certificate:\s*[\"']?([^\s\"']+)", re.MULTILINE)
VERSION, UTC_TIME, GENERALIZED_TIME = 0xA0, 0x17, 0x18  # DER tags
DAY = 86400.0

# What `kubeadm certs renew all` renews, by kubeadm's names.
LEAVES = {
    "apiserver": "etc/kubernetes/pki/apiserver.crt",
    "apiserver-kubelet-client": "etc/kubernetes/pki/apiserver-kubelet-client.crt",
    "apiserver-etcd-client": "etc/kubernetes/pki/apiserver-etcd-client.crt",
    "front-proxy-client": "etc/kubernetes/pki/front-proxy-client.crt",
    "etcd-server": "etc/kubernetes/pki/etcd/server.crt",
    "etcd-peer": "etc/kubernetes/pki/etcd/peer.crt",
    "etcd-healthcheck-client": "etc/kubernetes/pki/etcd/healthcheck-client.crt",
    "admin.conf": "etc/kubernetes/admin.conf",
    "super-admin.conf": "etc/kubernetes/super-admin.conf",
    "controller-manager.conf": "etc/kubernetes/controller-manager.conf",
    "scheduler.conf": "etc/kubernetes/scheduler.conf",
}
AUTHORITIES = {
    "ca": "etc/kubernetes/pki/ca.crt",
    "etcd-ca": "etc/kubernetes/pki/etcd/ca.crt",
    "front-proxy-ca": "etc/kubernetes/pki/front-proxy-ca.crt",
}
KUBELET_CLIENT, KUBELET_SERVING = "kubelet-client", "kubelet-serving"
KUBELET_CONF = "etc/kubernetes/kubelet.conf"
KUBELET_PEM = "var/lib/kubelet/pki/kubelet-client-current.pem"
# Kubeconfigs that pods write for their CNI plugins, with the token of that time, and who rewrites each. Multus of the
# network operator does not (--skip-config-watch), nor does whereabouts before 0.9.
CNI_TOKENS = {
    "multus": ("multus.d/multus.kubeconfig", "nobody"),
    "whereabouts": ("whereabouts.d/whereabouts.kubeconfig", "nobody"),
    "calico": ("calico-kubeconfig", "calico-node"),
}
TOKEN = re.compile(r"^\s*token:\s*[\"']?[\w-]+\.([\w-]+)\.[\w-]+[\"']?\s*$", re.MULTILINE)
# The kubelet creates the second one itself unless it is configured to have the first one signed.
SERVING = ("var/lib/kubelet/pki/kubelet-server-current.pem", "var/lib/kubelet/pki/kubelet.crt")


class Element(t.NamedTuple):
    """A DER element."""

    tag: int
    content: bytes
    rest: bytes  # what follows the element


class Validity(t.NamedTuple):
    """The period in which a certificate is valid."""

    not_before: datetime.datetime
    not_after: datetime.datetime


def read_element(data: bytes) -> Element:
    """The first element. ValueError if there is none, or only a part of one."""
    if len(data) < 2:
        raise ValueError("cut off")
    length, begin = data[1], 2
    if length > 0x7F:  # then the low bits are the number of bytes that hold the length
        begin += length & 0x7F
        length = int.from_bytes(data[2:begin], "big")
    if len(data) < begin + length:
        raise ValueError("cut off")
    return Element(data[0], data[begin : begin + length], data[begin + length :])


def read_time(element: Element) -> datetime.datetime:
    """A UTCTime, whose year has two digits, or a GeneralizedTime. In certificates both are in UTC, to the second."""
    digits = element.content.decode("ascii")
    if element.tag == UTC_TIME:
        digits = ("20" if int(digits[:2]) < 50 else "19") + digits
    elif element.tag != GENERALIZED_TIME:
        raise ValueError("no time where it should be")
    return datetime.datetime.strptime(digits, "%Y%m%d%H%M%SZ").replace(tzinfo=datetime.timezone.utc)


def read_validity(pem: str) -> Validity:
    """The validity of the first certificate in a PEM text. ValueError if there is none."""
    found = PEM.search(pem)
    if not found:
        raise ValueError("no certificate")
    fields = read_element(read_element(ssl.PEM_cert_to_DER_cert(found.group())).content).content
    first = read_element(fields)
    fields = first.rest if first.tag == VERSION else fields
    for _field in ("serial number", "signature", "issuer"):
        fields = read_element(fields).rest
    begin = read_element(read_element(fields).content)
    return Validity(read_time(begin), read_time(read_element(begin.rest)))


def certificate_text(path: str) -> str:
    """The PEM text of a file, or the one that a kubeconfig contains. OSError or ValueError if there is none."""
    with open(path, encoding="utf-8", errors="replace") as file:
        text = file.read()
    if not path.endswith(".conf"):
        return text
    embedded = EMBEDDED.search(text)
    return base64.b64decode(embedded.group(1)).decode("ascii") if embedded else ""


def read_certificate(name: str, path: str, renewed_by: str) -> Certificate:
    certificate: Certificate = {
        "name": name,
        "path": path,
        "not_before": "",
        "not_after": "",
        "ca": name in AUTHORITIES,
        "renewed_by": renewed_by,
        "error": "",
    }
    try:
        validity = read_validity(certificate_text(path))
    except (OSError, ValueError) as error:
        return {**certificate, "error": getattr(error, "strerror", None) or str(error)}
    begin, end = (f"{moment:%Y-%m-%dT%H:%M:%SZ}" for moment in validity)
    return {**certificate, "not_before": begin, "not_after": end}


def kubelet_client_path(root: str) -> str:
    """The path of the kubelet's client certificate: the one that kubelet.conf names, or kubelet.conf itself."""
    path = os.path.join(root, KUBELET_CONF)
    text = read_text(path)
    reference = REFERENCE.search(text)
    if reference:
        return os.path.join(root, reference.group(1).lstrip("/"))
    return path if EMBEDDED.search(text) else os.path.join(root, KUBELET_PEM)


def read_certificates(root: str) -> t.List[Certificate]:
    """The existing certificates of a control plane or worker that kubeadm set up."""
    serving = next(
        (path for path in (os.path.join(root, file) for file in SERVING) if os.path.exists(path)),
        os.path.join(root, SERVING[-1]),
    )
    wanted = [(name, os.path.join(root, path), "kubeadm") for name, path in LEAVES.items()]
    wanted += [(KUBELET_CLIENT, kubelet_client_path(root), "kubelet"), (KUBELET_SERVING, serving, "kubelet")]
    wanted += [(name, os.path.join(root, path), "nobody") for name, path in AUTHORITIES.items()]
    return [read_certificate(*each) for each in wanted if os.path.lexists(each[1])]


def token_validity(kubeconfig: str) -> t.Optional[Validity]:
    """The validity of the service account token in a kubeconfig. None if there is no token that expires."""
    found = TOKEN.search(kubeconfig)
    try:
        claims = json.loads(base64.urlsafe_b64decode(found.group(1) + "==")) if found else {}
        begin, end = (datetime.datetime.fromtimestamp(claims[name], datetime.timezone.utc) for name in ("iat", "exp"))
    except (KeyError, TypeError, ValueError, OverflowError, OSError):
        return None
    return Validity(begin, end)


def read_cni_tokens(directory: str, root: str) -> t.List[Certificate]:
    """Tokens of this host's CNI plugins; `directory` is that of their configurations."""
    found: t.List[Certificate] = []
    for name, (file, renewed_by) in CNI_TOKENS.items():
        path = os.path.join(root, directory.lstrip("/"), file)
        validity = token_validity(read_text(path))
        if validity:
            begin, end = (f"{moment:%Y-%m-%dT%H:%M:%SZ}" for moment in validity)
            found.append(
                {
                    "name": name,
                    "path": path,
                    "not_before": begin,
                    "not_after": end,
                    "ca": False,
                    "renewed_by": renewed_by,
                    "error": "",
                }
            )
    return found


def _seconds(moment: str) -> float:
    return datetime.datetime.strptime(moment, "%Y-%m-%dT%H:%M:%S%z").timestamp()


def seconds_left(certificate: Certificate, now: float) -> float:
    """Seconds until it expires; negative if it has. An unreadable certificate has 0 left: nobody can use it."""
    return _seconds(certificate["not_after"]) - now if certificate["not_after"] else 0.0


def has_expired(certificate: Certificate, now: float) -> bool:
    return bool(certificate["not_after"]) and seconds_left(certificate, now) < 0


def lifetime(certificate: Certificate) -> float:
    return _seconds(certificate["not_after"]) - _seconds(certificate["not_before"])


def ends_soon(certificate: Certificate, now: float, days: float) -> bool:
    """Whether it must be renewed: it expires within `days`, has expired, or can't be read.

    For short-lived certificates and tokens, it is due in the last third of the lifetime, or in the last tenth if the
    kubelet or Calico renews it: the kubelet renews at 70 to 90% of the lifetime and Calico earlier, so a later one was
    not renewed as it should have been.
    """
    if not certificate["not_after"]:
        return True
    own = lifetime(certificate) / (10 if certificate["renewed_by"] in ("kubelet", "calico-node") else 3)
    return seconds_left(certificate, now) < min(days * DAY, own)


def needed_by_cluster(certificate: Certificate) -> bool:
    """Whether the host leaves its cluster when this expires. A kubelet's serving certificate only affects logs."""
    return certificate["name"] != KUBELET_SERVING


def describe_end(certificate: Certificate) -> str:
    """Name and date of expiry (or the error), for people."""
    return f"{certificate['name']} ({certificate['error'] or certificate['not_after'][:10]})"


def expired_certificates(root: str, now: float) -> t.List[str]:
    """Expired certificates of a host without which its cluster does not trust it, each with the date."""
    return [
        f"{certificate['path']} on {certificate['not_after'][:10]}"
        for certificate in read_certificates(root)
        if needed_by_cluster(certificate) and has_expired(certificate, now)
    ]
