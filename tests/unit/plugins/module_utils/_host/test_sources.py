"""Sources that are asked before anything is installed: those that are well, and each kind broken in each way."""

import contextlib
import hashlib
import io
import json
import time

import pytest
from ansible_collections.ipu.fabric.plugins.module_utils._host import apt as packages
from ansible_collections.ipu.fabric.plugins.module_utils._host import sources
from ansible_collections.ipu.fabric.plugins.module_utils._plan.source_questions import question
from ansible_collections.ipu.fabric.tests.unit.fixtures.web_source import (
    DIGEST,
    FORMER,
    KEY,
    Handler,
    closed_port,
    serve,
)

NOWHERE = sources.Places("debian", "bookworm", "x86_64")


def apt(url, suite="/", version="1.36.3", **more):
    return {
        **question("repository", "fabric_mirror.apt.kubernetes.uri", url, "kubelet", version),
        "suite": suite,
        **more,
    }


def charts(url, name="network-operator", version="26.7.1"):
    return question("charts", "fabric_mirror.charts.network_operator", url, name, version)


def images(url, version="1.36.3"):
    image = f"registry.invalid/kube-apiserver:v{version}"
    return {**question("images", "fabric_mirror.registry", url), "images": [image]}


def file(url):
    return question("file", "fabric_mirror.helm.url", url)


def key(url, **stated):
    asked = question("key", "fabric_mirror.apt.kubernetes.key_url", url, "kubernetes")
    return {**asked, "setting": "here", **stated}


KINDS = {"packages": apt, "charts": charts, "images": images, "file": file, "key": key}


@pytest.fixture(autouse=True)
def patient(monkeypatch):
    """An answer may take a while beside other tests; what never comes is waited for in one test, and for a second."""
    monkeypatch.setattr(sources, "SECONDS", 30)
    monkeypatch.setattr(sources, "LIMIT", 60)
    monkeypatch.setattr(sources, "apt_has_proxy", lambda: False)
    monkeypatch.setenv("no_proxy", "127.0.0.1")


@pytest.fixture
def web():
    with serve() as url:
        yield url


def ask(*questions, **more):
    return sources.ask_sources(questions, {}, NOWHERE, **more)


def test_sources_that_are_well(web):
    suites = apt(f"{web}/suites", "{release}", component="stable")
    well = [apt(f"{web}/apt"), {**suites, "url": f"{web}/suites/"}, images(web)]
    well += [charts(f"{web}/charts"), charts(f"{web}/charts/", version="26.4.2")]
    well += [charts(f"{web}/charts", "gpu-operator", "26.7.0"), file(f"{web}/file"), file(f"{web}/get/file")]
    assert ask(*well) == []


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("broken", "seen"),
    [
        ("http://{closed}", "connection refused"),
        ("http://mirror.invalid", "DNS: "),
        ("{web}/hang", "no answer within 1 s"),
        ("{web}/nonsense", "what answers there does not speak HTTP"),
        ("{web}/503", "HTTP 503 Service Unavailable"),
        ("{tls}", "TLS: self"),
        ("https://{plain}", "TLS: "),
    ],
)
def test_each_kind_of_source_broken_in_each_way(tmp_path, web, kind, broken, seen, monkeypatch):
    if "hang" in broken:
        monkeypatch.setattr(sources, "SECONDS", 1)
    with serve(tmp_path) as tls:
        url = broken.format(web=web, tls=tls, closed=closed_port(), plain=web.partition("//")[2])
        (problem,) = ask(KINDS[kind](url))
    assert problem["seen"].startswith(seen), problem
    assert (problem["url"], problem["lacks"]) == (url, "")


@pytest.mark.parametrize(
    ("asked", "status"),
    [
        (apt("{web}/other"), 404), (apt("{web}/403"), 403), (charts("{web}/other"), 404), (charts("{web}/403"), 403),
        (file("{web}/other"), 404), (file("{web}/403"), 403), (images("{web}/410"), 410), (key("{web}/other"), 404),
    ],
)  # fmt: skip
def test_a_refusal(web, asked, status):
    (problem,) = ask({**asked, "url": asked["url"].format(web=web)})
    assert problem["seen"].startswith(f"HTTP {status}"), problem


@pytest.mark.parametrize(
    ("asked", "lacks", "seen"),
    [
        (apt("{web}/apt", version="1.36.9"), "kubelet 1.36.9", "on offer: 1.36.3-1.1, 1.36.2-1.1"),
        (apt("{web}/apt", version="1.36"), "kubelet 1.36", "on offer: 1.36.3-1.1, 1.36.2-1.1"),
        (charts("{web}/charts", version="26.7.9"), "chart network-operator 26.7.9", "on offer: 26.7.1, 26.4.2"),
        (charts("{web}/charts", "spiderpool"), "chart spiderpool 26.7.1", "on offer: no chart of that name"),
        (images("{web}", "1.36.9"), "registry.invalid/kube-apiserver:v1.36.9", "HTTP 404, and registry.invalid: "),
    ],
)
def test_a_release_that_is_not_there(web, asked, lacks, seen):
    (problem,) = ask({**asked, "url": asked["url"].format(web=web)})
    assert problem["lacks"] == lacks
    assert problem["seen"].startswith(seen)
    assert problem["offers"] == (["1.36.3", "1.36.2"] if "kubelet" in lacks else [])


# ---- what it serves -------------------------------------------------------------------------------------------------

FINGERPRINT = hashlib.sha1(b"\x99\x00\x05" + KEY[2:].encode("latin-1")).hexdigest().upper()
KEY_SHA256 = hashlib.sha256(KEY.encode("latin-1")).hexdigest()
FILE = hashlib.sha256(b"key").hexdigest()
WRONG = "0" * 64


def compared(asked, checksum):
    return {**asked, "checksum": checksum, "setting": "here"}


def test_what_is_served_as_stated(web):
    well = [key(f"{web}/key", fingerprint=f"{FINGERPRINT[:4]} {FINGERPRINT[4:].lower()}"), key(f"{web}/file")]
    well += [key(f"{web}/key", checksum=KEY_SHA256), key(f"{web}/key", fingerprint="none")]
    well += [compared(file(f"{web}/file"), checksum) for checksum in (FILE, f"sha256:{FILE}", f"sha256:{web}/sums")]
    well += [compared(charts(f"{web}/charts"), checksum) for checksum in (DIGEST, f"sha256:{DIGEST.upper()}")]
    well += [compared(charts(f"{web}/charts", "whereabouts-chart", "0.9.3"), DIGEST)]  # its index is behind
    assert ask(*well) == []


@pytest.mark.parametrize(
    ("asked", "seen", "expected"),
    [
        (key("{web}/key", fingerprint="AB12"), f"fingerprint {FINGERPRINT}", "AB12"),
        (key("{web}/key", checksum=WRONG, fingerprint=FINGERPRINT), f"sha256 {KEY_SHA256}", WRONG),
        (key("{web}/file", fingerprint="ab12,cd 34"), "b'key'", "AB12, CD34"),
        (key("{web}/file", fingerprint="none"), "b'key'", "an OpenPGP key"),
        (compared(file("{web}/file"), f"sha256:{WRONG}"), f"sha256 {FILE}", WRONG),
        (compared(file("{web}/get/file"), f"sha256:{WRONG}"), f"sha256 {FILE}", WRONG),
        (compared(file("{web}/file"), "sha256:abc"), f"sha256 {FILE}", "abc"),
        (compared(charts("{web}/charts"), WRONG), f"chart network-operator 26.7.1 has sha256 {DIGEST}", WRONG),
        (
            compared(charts("{web}/charts", "gpu-operator", "26.7.0"), WRONG),
            f"chart gpu-operator 26.7.0 has sha256 {hashlib.sha256(b'another packed chart').hexdigest()}",
            WRONG,
        ),
        (
            compared(charts("{web}/charts", "whereabouts-chart", "0.9.4"), WRONG),
            f"chart whereabouts-chart 0.9.4 has sha256 {FORMER}",
            WRONG,
        ),
    ],
)
def test_what_is_served_is_something_else(web, asked, seen, expected):
    checksum = asked.get("checksum", "").format(web=web)
    (problem,) = ask({**asked, "url": asked["url"].format(web=web), "checksum": checksum})
    assert (problem["seen"], problem["lacks"], problem["expected"]) == (seen, "", expected)
    assert problem["setting"] == "here"


@pytest.mark.parametrize(
    ("stated", "is_asked"),
    [
        ({"fingerprint": FINGERPRINT}, False),
        ({"fingerprint": "none"}, False),
        ({"checksum": KEY_SHA256}, False),
        ({"checksum": WRONG}, True),
        ({"fingerprint": "AB12"}, True),
    ],
)
def test_a_key_that_the_host_has_is_not_asked_for(tmp_path, monkeypatch, stated, is_asked):
    """As apt_packages would not fetch it either, whatever is served by now."""
    monkeypatch.setattr(packages, "SOURCES", str(tmp_path))
    monkeypatch.setattr(packages, "KEYRINGS", str(tmp_path))
    url = f"http://{closed_port()}/debian/key"
    repository = packages.as_repository("kubernetes", {"uri": "http://m/", "key_url": url, "key_fingerprint": "none"})
    (tmp_path / "kubernetes.gpg").write_bytes(KEY.encode("latin-1"))
    text = packages.sources_text(repository, [str(tmp_path / "kubernetes.gpg")], KEY_SHA256)
    (tmp_path / "kubernetes.sources").write_text(text)
    assert bool(ask(key(url.replace("debian", "{distribution}"), **stated))) is is_asked


def test_all_that_is_wrong_is_told_at_once(web):
    wrong = [key(f"{web}/key", fingerprint="AB12"), compared(charts(f"{web}/charts"), WRONG)]
    wrong += [compared(file(f"{web}/file"), WRONG)] * 2
    assert len(ask(*wrong)) == 4


def test_what_is_not_compared(web, monkeypatch):
    """A large file, a version of a chart whose digest nobody has, and a list that says nothing of the file."""
    asked = [compared(file(f"{web}/large"), WRONG), key(f"{web}/large", fingerprint="AB12")]
    asked += [compared(charts(f"{web}/charts", version="26.4.2"), WRONG)]
    asked += [compared(file(f"{web}/file"), f"sha256:{web}/{place}") for place in ("charts/index.yaml", "other")]
    assert ask(*asked) == []
    monkeypatch.setattr(sources, "SECONDS", 0)  # it comes slowly
    assert sources.read_small(Registry.answer(b"key")) is None


class Registry:
    """The manifest of a packed chart in an OCI registry."""

    def __init__(self, manifest, status=200):
        self.manifest, self.status, self.asked = manifest, status, []

    @staticmethod
    def answer(content):
        found = io.BytesIO(content)
        found.length = None
        return found

    def fetch(self, url, method, _kinds):
        self.asked.append(f"{method} {url}")
        if self.status != 200:
            raise sources.SilentError(f"HTTP {self.status}", self.status)
        return contextlib.closing(self.answer(self.manifest))


LAYERS = [{"mediaType": "text/plain", "digest": f"sha256:{FORMER}"}, {"mediaType": sources.CHART, "digest": DIGEST}]


@pytest.mark.parametrize(
    ("manifest", "status", "checksum", "found"),
    [
        ({"layers": LAYERS}, 200, DIGEST, []),
        ({"layers": LAYERS}, 200, WRONG, [f"chart network-operator 26.7.1 has sha256 {DIGEST}"]),
        ({"layers": LAYERS}, 200, "", []),
        ({"layers": LAYERS[:1]}, 200, WRONG, []),
        ({"manifests": []}, 200, WRONG, []),
        ([], 200, WRONG, []),
        ({}, 401, WRONG, []),
        ({}, 404, WRONG, ["HTTP 404"]),
    ],
)
def test_a_chart_in_a_registry(monkeypatch, manifest, status, checksum, found):
    registry = Registry(json.dumps(manifest).encode(), status)
    monkeypatch.setattr(sources, "fetch", registry.fetch)
    problems = ask(compared(charts("oci://registry.site/charts"), checksum))
    assert [each["seen"] for each in problems] == found
    place = "https://registry.site/v2/charts/network-operator/manifests/26.7.1"
    assert registry.asked == [f"{'GET' if checksum else 'HEAD'} {place}"]


def test_what_proves_nothing(web):
    """A login that apt has, one that a registry wants, an index that can't be read, a host whose apt has a proxy."""
    assert ask({**apt(f"{web}/401"), "login": True}, images(f"{web}/401")) == []
    assert ask(apt(f"{web}/suites", "bookworm", component="other")) == []
    assert ask({**images(web, "1.36.9"), "login": True}) == []
    assert sources.chart_versions("{'entries': {}}", "a") is None


def test_an_apt_that_goes_another_way_is_not_judged(monkeypatch):
    monkeypatch.setattr(sources, "apt_has_proxy", lambda: True)
    assert ask(apt(f"http://{closed_port()}")) == []


@pytest.mark.parametrize(
    ("text", "has"),
    [
        ('Acquire::http::Proxy "http://cache:3142";', True),
        ('Acquire::http::Proxy "";', False),
        ('Acquire::https::proxy::pkgs.k8s.io "DIRECT";', False),
        ('Acquire::http::Proxy-Auto-Detect "/bin/a";', True),
    ],
)
def test_the_proxy_of_apt(monkeypatch, text, has):
    monkeypatch.undo()
    monkeypatch.setattr(sources, "output_of", lambda *_argv, **_options: f'APT "";\n{text}')
    assert sources.apt_has_proxy() is has


def test_nothing_is_asked_where_nothing_is_fetched(tmp_path):
    dead = f"http://{closed_port()}"
    (tmp_path / "helm").touch()
    there = [
        {**apt(dead), "kubelet": "1.36.3"},
        {**file(dead), "path": str(tmp_path / "helm")},
        file("file:///media/a"),
    ]
    assert ask(*there, kubelet="1.36.3") == []
    assert len(ask(*there, kubelet="1.36.2")) == 1
    assert ask(charts("/media/bundle/charts"), file("")) == []


@pytest.mark.parametrize(
    ("url", "seen"),
    [
        ("http://{closed}", ["connection refused"]),
        ("{web}/503", ["HTTP 503 Service Unavailable"]),
        ("{web}", []),
        ("{web}/401", []),
        ("{web}/404", []),
        ("", []),  # a site whose internet was there for its installation only
    ],
)
def test_a_finished_host_needs_its_mirror_for_new_pods(web, url, seen):
    """It was asked for nothing, and the next pod did not start. Which images it has is not asked."""
    asked = {**images(url.format(web=web, closed=closed_port()), "9.9.9"), "kubelet": "1.36.3"}
    found = ask({**asked, "release": "fabric_kubernetes_version"}, kubelet="1.36.3")
    assert [each["seen"] for each in found] == seen
    assert all(each["later"] and not each["lacks"] and not each["release"] for each in found)
    assert not any("kube-apiserver" in each for each in Handler.asked)


def test_all_are_asked_at_once_and_with_an_end(web, monkeypatch):
    """One after the other, six that hang for 30 s would take three minutes."""
    monkeypatch.setattr(sources, "LIMIT", 5)
    begun = time.monotonic()
    found = ask(*(file(f"{web}/hang/{number}") for number in range(6)), file(f"{web}/file"))
    assert time.monotonic() - begun < 30
    assert [each["seen"] for each in found] == ["no answer within 5 s"] * 6


def test_the_proxy_is_asked_and_its_password_is_not_shown(web, monkeypatch):
    monkeypatch.delenv("no_proxy")
    proxy = {"http": web.replace("//", "//me:word@"), "https": "", "no_proxy": ["direct.invalid"]}
    asked = [file("http://away.invalid/404"), file("http://me:word@direct.invalid/")]
    found = sources.ask_sources(asked, proxy)
    assert "HEAD http://away.invalid/404" in Handler.asked
    assert [each["seen"][:8] for each in found] == ["HTTP 404", "DNS: Nam"]
    assert "word" not in str(found)


@pytest.mark.parametrize(
    ("calico", "flannel", "said"),
    [("503", "", "flannel"), ("503", "/503", None), ("file", "/503", ...)],
)
def test_another_pod_network_is_asked_for_where_this_one_fails(web, calico, flannel, said):
    instead = {**images(f"{web}{flannel}"), "name": "flannel"}
    found = ask({**file(f"{web}/{calico}"), "instead": instead})
    assert [each.get("instead") for each in found] == ([] if said is ... else [said])
