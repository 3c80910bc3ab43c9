"""Which images a host can get: a mirror of this process answers, and no name of a registry resolves."""

from __future__ import annotations

import base64
import http.server
import typing as t

import pytest
from ansible_collections.ipu.fabric.plugins.module_utils._host import registry
from ansible_collections.ipu.fabric.tests.unit.fixtures.web_server import Quiet, serving

NODE, CNI = "quay.invalid/calico/node:v3.32.1", "quay.invalid/calico/cni:v3.32.1"
NOBODY = registry.Login(username="", password="")
PULLER = registry.Login(username="puller", password="s3cret")


class Mirror(Quiet, http.server.BaseHTTPRequestHandler):
    """Has what is in `images`, wants `login` if there is one, and notes what it was asked."""

    images: tuple[str, ...] = ()
    login = ""
    status = 404
    asked: t.ClassVar[list[str]] = []

    def do_HEAD(self):
        self.asked.append(self.path)
        allowed = not self.login or self.headers.get("Authorization") == f"Basic {self.login}"
        has = any(self.path.startswith(f"/v2/{name}?") for name in self.images)
        self.send_response(401 if not allowed else 200 if has else self.status)
        self.end_headers()


@pytest.fixture
def mirror(monkeypatch):
    for name, value in (("images", ("calico/node/manifests/v3.32.1",)), ("login", ""), ("status", 404), ("asked", [])):
        monkeypatch.setattr(Mirror, name, value)
    with serving(Mirror) as port:
        yield f"http://127.0.0.1:{port}"


@pytest.mark.parametrize(
    ("image", "parts"),
    [
        (NODE, ("quay.invalid", "calico/node", "v3.32.1")),
        ("docker.io/library/busybox", ("docker.io", "library/busybox", "latest")),
        ("flannel/flannel:v1", ("docker.io", "flannel/flannel", "v1")),
        ("busybox:1", ("docker.io", "library/busybox", "1")),
        ("ghcr.io/a/b:v1@sha256:abcd", ("ghcr.io", "a/b", "sha256:abcd")),
        ("registry.site:5000/a:1", ("registry.site:5000", "a", "1")),
    ],
)
def test_names(image, parts):
    assert registry.split_name(image) == parts


def test_what_neither_the_mirror_nor_its_own_registry_has_is_lacking(mirror):
    found = registry.find_lacking(mirror, [NODE, CNI], NOBODY, 5)
    assert [each["image"] for each in found] == [CNI]
    assert found[0]["seen"].startswith("quay.invalid: DNS: ")
    assert "/v2/calico/cni/manifests/v3.32.1?ns=quay.invalid" in Mirror.asked


def test_what_comes_from_its_own_registry_is_not_lacking(mirror, monkeypatch):
    """Any answer counts: a registry may want a login for its first page."""
    ask = registry.ask
    monkeypatch.setattr(registry, "ask", lambda url, *rest: (401, "") if "quay" in url[:20] else ask(url, *rest))
    assert registry.find_lacking(mirror, [NODE, CNI], NOBODY, 5) == []


@pytest.mark.parametrize("status", [401, 403, 500, 503])
def test_another_answer_of_the_mirror_proves_nothing(mirror, monkeypatch, status):
    monkeypatch.setattr(Mirror, "status", status)
    assert registry.find_lacking(mirror, [CNI], NOBODY, 5) == []


def test_a_mirror_that_does_not_answer_proves_nothing():
    assert registry.find_lacking("http://127.0.0.1:1", [CNI], NOBODY, 5) == []


def test_the_login_is_sent(mirror, monkeypatch):
    monkeypatch.setattr(Mirror, "login", base64.b64encode(b"puller:s3cret").decode())
    assert registry.find_lacking(mirror, [CNI], NOBODY, 5) == []  # who is not let in learns nothing
    assert [each["image"] for each in registry.find_lacking(mirror, [NODE, CNI], PULLER, 5)] == [CNI]


def test_an_image_of_the_mirror_itself_has_no_other_place(mirror):
    own = f"{mirror.partition('//')[2]}/calico/cni:v3.32.1"
    assert registry.find_lacking(mirror, [own], NOBODY, 5) == [{"image": own, "seen": "it is the mirror itself"}]


def test_nothing_to_ask():
    assert registry.find_lacking("http://127.0.0.1:1", [], NOBODY, 5) == []
