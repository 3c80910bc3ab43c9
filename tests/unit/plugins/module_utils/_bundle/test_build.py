"""A bundle is made once, goes on after an interruption, and is no longer whole when a byte of it differs."""

import json

import pytest
from ansible_collections.ipu.fabric.plugins.module_utils._bundle import build, fetch
from ansible_collections.ipu.fabric.plugins.module_utils._common.result import FabricError
from ansible_collections.ipu.fabric.plugins.module_utils._host import download

HELM = {"url": "https://get.example/helm-v3-linux-amd64.tar.gz", "checksum": "sha256:ab"}
CHART = {
    "name": "operator",
    "chart": "network-operator",
    "repo": "https://charts.example",
    "version": "26.4.1",
    "sha256": "",
    "namespace": "operator",
    "values": {"a": 1},
    "images": {"quay.io/old/proxy:1": "quay.io/new/proxy:2"},
}
OPTIONS = {
    "releases": {
        "kubernetes": "1.35.4",
        "cni": "calico",
        "cni_images": ["quay.io/calico/node:v3"],
        "components": {"multus": {"repository": "nvcr.io/nvidia", "image": "multus-cni", "version": "v4"}},
        "features": {},
    },
    "platforms": ["debian-bookworm-amd64"],
    "repositories": {},
    "distributions": {},
    "packages": [],
    "image_repository": "",
    "images": ["quay.io/own/job:1"],
    "skip_images": ["quay.io/large/driver:1"],
    "charts": [CHART],
    "manifests": {"mpi_operator": {"url": "https://mpi.example/mpi-operator.yaml", "checksum": ""}},
    "helm": HELM,
    "registry": "",
    "helm_binary": "helm",
    "timeout": 60,
    "download_proxy": {},
}
RENDERED = [
    {"kind": "Deployment", "containers": [{"name": "o", "image": "quay.io/op/op:1", "imagePullPolicy": "Always"}]},
    {"kind": "Deployment", "containers": [{"name": "p", "image": "quay.io/old/proxy:1"}]},
    {"kind": "DaemonSet", "containers": [{"name": "d", "image": "quay.io/large/driver:1"}]},
]
MANIFEST = "kind: Deployment\nspec:\n  containers:\n    - {name: m, image: mpioperator/mpi-operator:0.8.2}\n"
IMAGES = {
    "quay.io/calico/node:v3",
    "nvcr.io/nvidia/multus-cni:v4",
    "quay.io/own/job:1",
    "quay.io/op/op:1",
    "quay.io/new/proxy:2",
    "docker.io/mpioperator/mpi-operator:0.8.2",
}


class Module:
    """As much of an AnsibleModule as is used."""

    def __init__(self, path, check_mode=False, **changes):
        self.params = {**OPTIONS, "path": str(path), **changes}
        self.check_mode = check_mode
        self.warnings = []

    def warn(self, text):
        self.warnings.append(text)


@pytest.fixture
def net(monkeypatch):
    """Everything that is asked for, by its name; what is in `broken` can't be had."""
    asked, broken = [], set()

    def put(name, path, text):
        if name in broken:
            raise FabricError("It could not be fetched.", name, "refused", "Try again.")
        asked.append(name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)

    def get_file(source, path, timeout):
        put(source["url"], path, MANIFEST if source["url"].endswith(".yaml") else "helm")

    def get_image(skopeo, image, architecture, path, configuration):
        put(f"{image} {architecture}", path, image)
        return f"sha256:{image}"

    monkeypatch.setattr(download, "fetch_file", get_file)
    monkeypatch.setattr(fetch, "pull_chart", lambda helm, chart, path: put(chart["chart"], path, "chart"))
    monkeypatch.setattr(fetch, "render_chart", lambda helm, chart, path, kubernetes: RENDERED)
    monkeypatch.setattr(fetch, "copy_image", get_image)
    return asked, broken


def make(path, **changes):
    module = Module(path, **changes)
    return build.make_bundle(module), module


def read(path):
    return json.loads((path / "bundle.json").read_text(encoding="utf-8"))


def test_all_that_is_asked_for_is_in_it(tmp_path, net):
    result, module = make(tmp_path)
    bundle = read(tmp_path)
    assert result["changed"]
    assert {image["name"] for image in bundle["images"]} == IMAGES
    assert set(bundle["files"]) == {str(p.relative_to(tmp_path)) for p in tmp_path.rglob("*") if p.is_file()} - {
        "bundle.json",
        "SHA256SUMS",
        ".lock",
    }
    assert bundle["releases"]["kubernetes"] == "1.35.4"
    assert bundle["releases"]["gpu_operator"] == ""
    assert bundle["manifests"] == {"mpi_operator": "manifests/mpi_operator/mpi-operator.yaml"}
    assert result["always"] == ["quay.io/op/op:1"]
    assert len(module.warnings) == 1


def test_the_second_run_asks_nobody(tmp_path, net):
    asked, _broken = net
    make(tmp_path)
    asked.clear()
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
    result, _module = make(tmp_path)
    assert (result["changed"], asked) == (False, [])
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")} == before


def test_check_mode_writes_nothing(tmp_path, net):
    asked, _broken = net
    result, _module = make(tmp_path / "new", check_mode=True)
    assert (result["changed"], asked, (tmp_path / "new").exists()) == (True, [], False)
    make(tmp_path)
    assert not make(tmp_path, check_mode=True)[0]["changed"]


def test_an_interrupted_run_goes_on(tmp_path, net):
    asked, broken = net
    broken.add("quay.io/op/op:1 amd64")
    with pytest.raises(FabricError):
        make(tmp_path)
    assert not (tmp_path / "bundle.json").exists()
    first = list(asked)
    broken.clear()
    asked.clear()
    make(tmp_path)
    assert asked == ["quay.io/op/op:1 amd64"]
    assert len(first) == len(IMAGES) - 1 + 3
    assert not (tmp_path / build.WORK).exists()


@pytest.mark.parametrize("harm", ["cut", "changed", "removed"])
def test_a_file_that_was_harmed_is_fetched_again(tmp_path, net, harm):
    asked, _broken = net
    make(tmp_path)
    asked.clear()
    path = tmp_path / "images/amd64/quay.io_op_op_1.tar"
    text = path.read_text(encoding="utf-8")
    if harm == "removed":
        path.unlink()
    else:
        path.write_text(text[:-1] if harm == "cut" else text[:-1] + "?", encoding="utf-8")
    result, _module = make(tmp_path)
    assert (result["changed"], asked) == (True, ["quay.io/op/op:1 amd64"])
    assert path.read_text(encoding="utf-8") == text


def test_what_another_plan_does_not_need_goes_and_files_of_others_stay(tmp_path, net):
    asked, _broken = net
    make(tmp_path)
    own = tmp_path / "images/amd64/my-own.tar"
    own.write_text("mine", encoding="utf-8")
    asked.clear()
    result, _module = make(tmp_path, images=["quay.io/own/job:2"])
    assert result["removed"] == ["images/amd64/quay.io_own_job_1.tar"]
    assert asked == ["quay.io/own/job:2 amd64"]
    assert own.exists()


def test_another_place_of_the_same_bundle_is_the_same(tmp_path, net):
    asked, _broken = net
    make(tmp_path / "a")
    (tmp_path / "a").rename(tmp_path / "b")
    asked.clear()
    assert not make(tmp_path / "b")[0]["changed"]
    assert asked == []


def test_a_mirror_is_asked_before_each_registry():
    text = fetch.registries(["a.io/b:1", "a.io/c:1", "busybox"], "http://mirror.site:5000")
    assert text.count('location = "mirror.site:5000"') == 2
    assert 'prefix = "a.io"' in text
    assert 'prefix = "docker.io"' in text
    assert "insecure = true" in text
    assert fetch.registries(["a.io/b:1"], "") == ""


def test_one_run_at_a_time(tmp_path, net):
    asked, _broken = net
    with build.locked(str(tmp_path)), pytest.raises(FabricError) as error:
        make(tmp_path)
    assert "Another run" in error.value.what
    assert asked == []
    assert make(tmp_path)[0]["changed"]


def test_packages_of_a_bundle_whose_keys_were_not_compared_are_fetched_again(tmp_path, net):
    make(tmp_path)
    bundle = read(tmp_path)
    (tmp_path / "apt/x").mkdir(parents=True)
    (tmp_path / "apt/x/a.deb").write_text("a")
    store = build.Store(str(tmp_path))
    store.add("apt/x/a.deb")
    for schema, known in ((1, False), (2, True)):
        old = {**bundle, "schema": schema, "files": {**bundle["files"], "apt/x/a.deb": store.known["apt/x/a.deb"]}}
        (tmp_path / "bundle.json").write_text(json.dumps(old))
        (tmp_path / ".work/progress.json").unlink(missing_ok=True)
        again = build.Store(str(tmp_path))
        assert ("apt/x/a.deb" in again.known, bundle["helm"] in again.known) == (known, True)
    (tmp_path / ".work/progress.json").write_text(json.dumps({"files": store.known, "digests": {}}))
    (tmp_path / "bundle.json").unlink()
    assert not build.Store(str(tmp_path)).has("apt/x/a.deb")


def test_a_file_of_another_url_or_digest_is_fetched_again(tmp_path, net):
    """Calico's manifests have the same name in each release."""
    asked, _broken = net
    make(tmp_path)
    asked.clear()
    newer = {"url": "https://mpi.example/v2/mpi-operator.yaml", "checksum": ""}
    make(tmp_path, manifests={"mpi_operator": newer})
    assert asked == [newer["url"]]
    asked.clear()
    make(tmp_path, manifests={"mpi_operator": {**newer, "checksum": f"sha256:{'0' * 64}"}})
    assert asked == [newer["url"]]
    asked.clear()
    digest = read(tmp_path)["files"]["charts/network-operator-26.4.1.tgz"]["sha256"]
    make(tmp_path, charts=[{**CHART, "sha256": digest, "repo": "https://elsewhere.example"}])
    assert CHART["chart"] not in asked
    make(tmp_path, charts=[{**CHART, "sha256": "1" * 64}])
    assert CHART["chart"] in asked
