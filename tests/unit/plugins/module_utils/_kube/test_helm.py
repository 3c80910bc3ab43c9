import base64
import contextlib
import datetime
import os
import subprocess
import sys
import tarfile
import types

import pytest
from ansible_collections.ipu.fabric.plugins.module_utils._common.result import FabricError
from ansible_collections.ipu.fabric.plugins.module_utils._kube import helm
from ansible_collections.ipu.fabric.plugins.module_utils._kube.client import Cluster, Resource
from ansible_collections.ipu.fabric.plugins.module_utils._kube.helm_storage import NO_RENDER, Release
from ansible_collections.ipu.fabric.plugins.module_utils._kube.merge_values import merge_values
from ansible_collections.ipu.fabric.tests.unit.fixtures.certificates import certificate
from ansible_collections.ipu.fabric.tests.unit.fixtures.module import Module


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
    assert merge_values(base, over) == result


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


DEFINITION = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {{name: "things.{0}"}}
spec: {{group: {0}}}
"""
SCHEDULING = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "untolerated taint"}


class Definitions:
    """A cluster with one definition that these managers have written, if there are any, and a hook without a node."""

    def __init__(self, managers):
        entries = [{"manager": name, "operation": "Apply" if name == "ipu.fabric" else "Update"} for name in managers]
        entries.append({"manager": "kube-apiserver", "operation": "Update", "subresource": "status"})
        self.found = {"metadata": {"name": "things", "managedFields": entries}} if managers else None

    def read(self, obj):
        return self.found

    def items(self, path, **query):
        if path == "/apis/batch/v1/namespaces/netops/jobs":
            return []
        assert (path, query) == ("/api/v1/namespaces/netops/pods", {"labelSelector": "job-name"})
        return [{"metadata": {"name": "init-1"}, "status": {"phase": "Pending", "conditions": [SCHEDULING]}}]


@pytest.mark.parametrize(
    ("release", "refused"),
    [("v3.22.0", None), ("v3.18.2+gabc", None), ("v4.3.2", "v4.3.2; from 4 on"), ("", "no release")],
)
def test_helm_4_takes_no_program_as_a_post_renderer(tmp_path, release, refused):
    program = tmp_path / "helm"
    program.write_text(f'#!/bin/sh\n[ "$*" = "version --template {{{{.Version}}}}" ] && echo {release}\n')
    program.chmod(0o755)
    error = pytest.raises(FabricError, match=refused) if refused else contextlib.nullcontext()
    with error, helm.Helm(Module(binary=str(program), timeout=600, kubeconfig={"a": "b"}), None) as client:
        client.check_release()


@pytest.fixture
def install(monkeypatch):
    """Install a chart with one definition; answers with the module and the definitions that were applied."""

    def run(group, managers=(), upgrade=lambda *_: None):
        applied = []
        module = Module(namespace="netops", crds=True, values={}, chart="spiderpool", chart_version="1.2.2")
        program = types.SimpleNamespace(check_release=lambda: None, pull=lambda: "", upgrade=upgrade)
        monkeypatch.setattr(helm, "Helm", lambda *_: contextlib.nullcontext(program))
        files = {"Chart.yaml": "name: spiderpool", "crds/a.yaml": DEFINITION.format(group)}
        monkeypatch.setattr(helm, "chart_files", lambda _path: files)
        monkeypatch.setattr(helm, "apply_object", lambda _cluster, crd, *_: applied.append(crd["metadata"]["name"]))
        monkeypatch.setattr(helm, "wait_for_kinds", lambda *_: None)
        helm.install(module, Definitions(managers), [], "")
        return module, applied

    return run


@pytest.mark.parametrize(
    ("group", "managers", "left"),
    [
        ("sriovnetwork.openshift.io", [], False),
        ("sriovnetwork.openshift.io", ["ipu.fabric"], False),
        ("sriovnetwork.openshift.io", ["helm"], True),
        # First ours, until an operator came.
        ("sriovnetwork.openshift.io", ["ipu.fabric", "olm"], True),
        ("k8s.cni.cncf.io", ["rke2"], True),
        # What somebody has installed by hand before is upgraded.
        ("spiderpool.spidernet.io", ["helm"], False),
    ],
)
def test_definitions_of_other_projects_stay_as_others_made_them(install, group, managers, left):
    module, applied = install(group, managers)
    assert applied == ([] if left else [f"things.{group}"])
    assert [f"things.{group}" in text and "spiderpool 1.2.2" in text for text in module.warnings] == [True] * left


def test_a_hook_that_no_node_takes_is_named(install):
    def upgrade(*_):
        raise FabricError("The release could not be installed.", "ns", "timed out waiting for the condition", "-vvv")

    with pytest.raises(FabricError, match=r"timed out.*pod init-1 is on no node yet: untolerated taint"):
        install("example.org", upgrade=upgrade)


class Counted(Cluster):
    """A cluster that has these paths, and knows two kinds."""

    def __init__(self, *paths):
        self.there, self.asked = paths, []

    def resource(self, api_version, kind):
        return {
            "Service": Resource("/api/v1", "services", True),
            "ClusterRole": Resource("/apis/rbac.authorization.k8s.io/v1", "clusterroles", False),
        }.get(kind)

    def items(self, path, **query):
        self.asked.append(path)
        return [{"metadata": {"name": each.rpartition("/")[2]}} for each in self.there if each.startswith(f"{path}/")]


def test_a_release_is_looked_at_with_one_question_for_each_kind_and_namespace():
    roles, services = "/apis/rbac.authorization.k8s.io/v1/clusterroles", "/api/v1/namespaces/{}/services"
    cluster = Counted(f"{roles}/a", f"{services.format('netops')}/a", f"{services.format('other')}/c")
    texts = [
        f"{{apiVersion: v1, kind: {kind}, metadata: {{name: {name}{place}}}}}"
        for kind, name, place in [
            ("ClusterRole", "a", ""), ("ClusterRole", "b", ""), ("Service", "a", ""), ("Service", "c", ""),
            ("Service", "c", ", namespace: other"), ("Thing", "a", ""),
        ]
    ]  # fmt: skip
    release = Release("x", "netops", 1, "deployed", "x", "1", {}, "", "", manifest="\n---\n".join(texts))
    assert helm.missing_objects(cluster, release, False) == ["ClusterRole b", "Service c", "Thing a"]
    assert sorted(cluster.asked) == [services.format("netops"), services.format("other"), roles]


def hook_job(uid, hook="pre-install"):
    return {"metadata": {"name": uid, "uid": uid, "annotations": {"helm.sh/hook": hook} if hook else {}}}


def hook_pod(job, restarts=0, waiting=""):
    state = {"waiting": {"reason": waiting}} if waiting else {"running": {}}
    last = {"terminated": {"exitCode": 1, "message": "no such policy"}} if restarts else {}
    container = {"name": "keep", "restartCount": restarts, "state": state, "lastState": last}
    metadata = {"name": f"{job}-x", "ownerReferences": [{"kind": "Job", "uid": job}]}
    return {"metadata": metadata, "status": {"phase": "Pending", "containerStatuses": [container]}}


@pytest.mark.parametrize(
    ("jobs", "pod", "stopped"),
    [
        ([hook_job("new")], hook_pod("new", 3, "CrashLoopBackOff"), True),
        ([hook_job("new")], hook_pod("new", 0, "ImagePullBackOff"), True),
        # It may succeed the next time, or it runs.
        ([hook_job("new")], hook_pod("new", 1, "CrashLoopBackOff"), False),
        ([hook_job("new")], hook_pod("new"), False),
        # A run before this one has left it, or it is no hook.
        ([hook_job("former")], hook_pod("former", 3, "CrashLoopBackOff"), False),
        ([hook_job("new", "")], hook_pod("new", 3, "CrashLoopBackOff"), False),
    ],
)
def test_helm_does_not_wait_out_its_time_for_a_hook_that_fails(tmp_path, jobs, pod, stopped, monkeypatch):
    now, answers = [0.0], {"/jobs": [hook_job("former")], "/pods": [pod]}
    cluster = types.SimpleNamespace(items=lambda path, **_query: answers[path[path.rindex("/") :]])
    hooks = helm.FailedHooks(cluster, "netops", lambda: now[0])
    answers["/jobs"] = [hook_job("former"), *jobs]
    assert not hooks()
    now[0] = helm.HOOK_PATIENCE - 1
    assert not hooks()
    now[0] = helm.HOOK_PATIENCE
    assert hooks() == stopped
    if stopped:
        monkeypatch.setattr(helm.run_program.__globals__["time"], "sleep", lambda _seconds: None)
        monkeypatch.setitem(helm.run_program.__globals__, "ASK", 0.05)
        program = tmp_path / "helm"
        program.write_text("#!/bin/sh\ntrap 'echo cancelled >&2; exit 1' TERM\nsleep 30 & wait")
        program.chmod(0o755)
        client = helm.Helm(Module(binary=str(program), timeout=600, kubeconfig={"a": "b"}), None)
        client.hooks = hooks
        with client, pytest.raises(FabricError, match="stopped early, since a hook of the chart does not succeed"):
            client.call("It was to be installed.", "here", "upgrade")


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
        (
            {"api_key": {"authorization": "Bearer abc"}},
            {"token": "abc"},
            {"certificate-authority-data": "b2YgY2EuY3J0"},
        ),
        (
            {"cert_file": "c", "key_file": "k", "verify_ssl": False, "ssl_ca_cert": None},
            {"client-certificate-data": "b2YgYw==", "client-key-data": "b2Ygaw=="},
            {"insecure-skip-tls-verify": True},
        ),
    ],
)
def test_kubeconfig_of(monkeypatch, tmp_path, login, user, server):
    """With the keys as data: the client has them in files that helm does not inherit."""
    monkeypatch.chdir(tmp_path)
    for name in ("c", "k", "ca.crt"):
        (tmp_path / name).write_text(f"of {name}")
    config = helm.kubeconfig_of(types.SimpleNamespace(**{**LOGIN, **login}))
    assert config["users"][0]["user"] == user
    assert config["clusters"][0]["cluster"] == {"server": "https://10.0.0.1:6443", **server}


RELEASE = Release("small", "ns", 1, "deployed", "little", "1.0.0", {"a": 1}, NO_RENDER, "v1")


def settings(chart):
    return {
        "chart": chart, "chart_repo_url": "", "chart_version": "v1.0.0",
        "chart_sha256": "", "values": {"a": 1}, "images": {}, "image_digests": {}, "tolerations": [],
    }  # fmt: skip


@pytest.mark.parametrize(
    ("chart", "shown"),
    [
        ("little", "little"),
        ("/a/b/little/", "little"),
        ("oci://host/charts/little", "little"),
        ("x/little-1.0.0.tgz", "little"),
        ("https://host/charts/little-v1.0.0.tgz", "little"),
        ("oci://host/charts/little:1.0.0", "little"),
        ("https://host/chart?download=1", ""),
    ],
)
def test_the_chart_of_a_release(chart, shown):
    wanted = helm.wanted_state(settings(chart))
    assert wanted["chart"] == shown
    assert helm.current_state(RELEASE, wanted) == wanted


@pytest.mark.parametrize("chart", ["little-one", "a-little", "lit", "/a/little-2", "oci://host/charts/little-one"])
def test_a_release_of_another_chart_is_upgraded(chart):
    wanted = helm.wanted_state(settings(chart))
    assert helm.current_state(RELEASE, wanted)["chart"] == "little"
    assert wanted["chart"] != "little"


@pytest.mark.parametrize("packed", [False, True])
def test_a_local_chart_says_its_name_itself(tmp_path, packed):
    path = tmp_path / "checkout"
    path.mkdir()
    (path / "Chart.yaml").write_text("name: little\n")
    if packed:
        with tarfile.open(tmp_path / "any.tgz", "w:gz") as archive:
            archive.add(path / "Chart.yaml", "little/Chart.yaml")
        path = tmp_path / "any.tgz"
    assert helm.wanted_state(settings(str(path)))["chart"] == "little"


def test_a_removed_release_counts_as_none():
    assert helm.current_state(RELEASE._replace(status="uninstalled"), {}) is None


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


def uninstall(monkeypatch, *releases):
    """What helm was asked to uninstall."""
    called = []
    program = types.SimpleNamespace(uninstall=lambda: called.append("small"))
    monkeypatch.setattr(helm, "Helm", lambda module, cluster: contextlib.nullcontext(program))
    helm.ensure_absent(Module(name="small", namespace="ns"), None, releases)
    return called


@pytest.mark.parametrize("hooks", [True, False])
def test_hooks_of_a_chart_run_only_if_they_may(monkeypatch, hooks):
    called = []
    monkeypatch.setattr(helm.Helm, "call", lambda self, what, where, *words: called.append(words))
    program = helm.Helm.__new__(helm.Helm)
    program.params = {"name": "small", "namespace": "apps", "timeout": 60, "hooks": hooks}
    program.uninstall()
    assert ("--no-hooks" in called[0]) == (not hooks)


def test_a_release_that_somebody_else_installed_is_not_uninstalled(monkeypatch):
    with pytest.raises(FabricError, match="revision 1 of small was not installed by this collection"):
        uninstall(monkeypatch, RELEASE)
    assert uninstall(monkeypatch, RELEASE._replace(status="uninstalled")) == []
    # Later by hand: it is ours still.
    assert uninstall(monkeypatch, RELEASE._replace(ours=True), RELEASE._replace(revision=2)) == ["small"]


def test_a_directory_of_charts(tmp_path):
    assert helm.is_local("/media/bundle/charts")
    assert not helm.is_local("https://charts.example")
    assert helm.packed_chart("/media/charts", "oci://a/network-operator", "26.4.1") == (
        "/media/charts/network-operator-26.4.1.tgz"
    )


def test_a_chart_has_to_be_the_expected_one(tmp_path):
    chart = tmp_path / "little-1.0.0.tgz"
    chart.write_bytes(b"chart")
    digest = "0e16dc8b3f0ef0c59b8d2b9b0ff6e0bb8e4d2c0f0a7f6b0a4f8b5f1f1c1e9d3c"
    for expected in (
        "",
        helm.hashlib.sha256(b"chart").hexdigest(),
        "sha256:" + helm.hashlib.sha256(b"chart").hexdigest(),
    ):
        helm.check_chart(str(chart), expected, "here")
    for path, expected, seen in (
        (chart, digest, "The chart is not the expected one"),
        (chart, "5", "A digest is not valid"),
        (tmp_path, digest, "must be packed"),
    ):
        with pytest.raises(FabricError, match=seen):
            helm.check_chart(str(path), expected, "here")


def test_helm_reads_the_chart_that_was_compared(tmp_path):
    chart = tmp_path / "little-1.0.0.tgz"
    chart.write_bytes(b"chart")
    digest = helm.hashlib.sha256(b"chart").hexdigest()
    module = Module(
        chart="little", chart_repo_url=str(tmp_path), chart_version="1.0.0", chart_sha256=digest, kubeconfig={"a": "b"}
    )
    with helm.Helm(module, None) as program:
        taken = program.pull()
        chart.write_bytes(b"another")
        with open(taken, "rb") as file:
            assert file.read() == b"chart"


def test_digests_of_images_are_what_is_rendered():
    plain = helm.wanted_state(settings("x/little"))["render"]
    pinned = {**settings("x/little"), "images": {"a:1": "b:1"}, "image_digests": {"b:1": "sha256:0", "c:1": "sha256:1"}}
    assert helm.rendered_changes(pinned)["images"] == {
        "b:1": "b:1@sha256:0",
        "c:1": "c:1@sha256:1",
        "a:1": "b:1@sha256:0",
    }
    assert helm.wanted_state(pinned)["render"] != plain


def test_secrets_are_not_on_a_command_line(tmp_path):
    """They go through files of their own, which only the user reads, and through the environment of helm."""
    program, said = tmp_path / "helm", tmp_path / "said"
    program.write_text(
        f'#!/bin/sh\necho "$@" > {said}\n'
        f'for word in "$@" "$KUBECONFIG"; do\n'
        f'grep -qs planted-4711 "$word" && stat -Lc %a "$word" >> {said}.modes; done\n'
        f'echo "$http_proxy" > {said}.proxy\n'
    )
    program.chmod(0o755)
    url = "http://me:planted-4711@proxy.site:3128"
    module = Module(
        binary=str(program), name="a", namespace="a", timeout=10, take_ownership=False, images={}, image_digests={},
        tolerations=[], chart_version="1", values={"deep": "planted-4711"}, kubeconfig={"token": "planted-4711"},
        download_proxy={"http": url},
    )  # fmt: skip
    with helm.Helm(module, None) as program_of_helm:
        program_of_helm.upgrade("/chart.tgz", "1")
        scratch = program_of_helm.scratch
    assert "planted-4711" not in said.read_text()
    assert set((tmp_path / "said.modes").read_text().split()) == {"600"}
    assert (tmp_path / "said.proxy").read_text().strip() == url
    assert not os.path.exists(scratch)


def test_no_secret_is_left_by_a_process_that_is_killed(tmp_path):
    """Its helm kills it, as the OOM killer or a reboot would."""
    program = tmp_path / "helm"
    program.write_text('#!/bin/sh\ngrep -c planted "$KUBECONFIG" "$8" >seen\nkill -9 $PPID\n')
    program.chmod(0o755)
    text = f"""
import os, types
from ansible_collections.ipu.fabric.plugins.module_utils._kube import helm
params = dict(
    binary={str(program)!r}, name="a", namespace="a", timeout=10, take_ownership=False, images={{}}, image_digests={{}},
    tolerations=[], chart_version="1", values={{"deep": "planted-4711"}}, kubeconfig={{"token": "planted-4711"}},
)
helm.Helm(types.SimpleNamespace(params=params), None).upgrade("/chart.tgz", "1")
"""
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    script = [sys.executable, "-c", text]
    environment = {**os.environ, "TMPDIR": str(temporary), "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(script, cwd=tmp_path, env=environment, check=False)
    assert done.returncode == -9
    assert [line.rpartition(":")[2] for line in (tmp_path / "seen").read_text().split()] == ["1", "1"]
    left = [path for path in temporary.rglob("*") if path.is_file()]
    assert [path.name for path in left if "planted" in path.read_text()] == []


@pytest.mark.parametrize(
    ("release", "chart", "refused"),
    [
        (None, "big", False),
        (RELEASE, "little", False),
        (RELEASE, "", False),  # a reference that does not contain its name
        (RELEASE, "big", True),
        (RELEASE._replace(ours=True), "big", False),
        (RELEASE._replace(status="uninstalled"), "big", False),
    ],
)
def test_a_release_of_another_chart_stays(release, chart, refused):
    with pytest.raises(FabricError, match="of another chart") if refused else contextlib.nullcontext():
        helm.refuse_other_chart(release, chart)
