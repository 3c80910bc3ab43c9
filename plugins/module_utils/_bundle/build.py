# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Makes a bundle part by part, recording each file once it is complete, so that an interrupted run can be continued."""

from __future__ import annotations

import contextlib
import dataclasses
import fcntl
import functools
import json
import os
import re
import shutil
import threading
import typing as t
from concurrent.futures import ThreadPoolExecutor

from .._common.command import output_of
from .._common.digests import plain_digest
from .._common.proxy import use_proxy
from .._common.result import FabricError, outcome
from .._common.text import fingerprint
from .._host import download
from .._host.bundle import fault_of, sha256_of
from .._kube.helm import packed_chart
from .._model.bundle import LIST, PACKAGES, RELEASES, SCHEMA, Bundle, BundleFile, BundleImage
from . import fetch, packages
from .images import always_pulled, archive_of, find_images, for_control_planes, normal_name

with contextlib.suppress(ImportError):  # run_module() reports a missing package, from the module's `libraries`
    import yaml

if t.TYPE_CHECKING:
    from ansible.module_utils.basic import AnsibleModule

WORK = ".work"
SUMS, LOCK = "SHA256SUMS", ".lock"
AT_A_TIME = 4  # images to fetch at the same time


@dataclasses.dataclass(frozen=True)
class Request:
    """What a bundle is made from: the options of the module."""

    path: str
    releases: t.Mapping[str, t.Any]
    platforms: t.List[str]
    repositories: t.Dict[str, t.Dict[str, str]]
    distributions: t.Dict[str, t.List[t.Dict[str, str]]]
    packages: t.List[t.Dict[str, str]]
    image_repository: str
    images: t.List[str]
    skip_images: t.List[str]
    charts: t.List[fetch.Chart]
    manifests: t.Dict[str, download.Source]
    helm: download.Source
    registry: str

    def digest(self) -> str:
        """A digest of everything that determines the contents. The bundle's location does not."""
        asked = {key: value for key, value in dataclasses.asdict(self).items() if key not in ("path", "registry")}
        return fingerprint(asked)

    @property
    def minor(self) -> str:
        return ".".join(self.releases["kubernetes"].split(".")[:2])

    @property
    def architectures(self) -> t.List[str]:
        return sorted({packages.parse_platform(name).architecture for name in self.platforms})


def read_list(path: str, schemas: t.Sequence[int] = (SCHEMA,)) -> t.Optional[Bundle]:
    """The list of a bundle; None if there is none, or it can't be read."""
    try:
        with open(os.path.join(path, LIST), encoding="utf-8") as file:
            content: Bundle = json.load(file)
        return content if content["schema"] in schemas and isinstance(content["files"], dict) else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


class Store:
    """The directory of a bundle. Recorded files that are still intact need not be fetched."""

    def __init__(self, path: str) -> None:
        self.path, self.work = path, os.path.join(path, WORK)
        self.progress = os.path.join(self.work, "progress.json")
        self.known: t.Dict[str, BundleFile] = {}
        self.digests: t.Dict[str, str] = {}  # of images, by archive file
        self.done: t.Dict[str, BundleFile] = {}
        self.fetched: t.List[str] = []
        self.lock = threading.Lock()
        before = read_list(path, (1, SCHEMA))
        if before:
            self.know(before["schema"], before["files"])
            self.digests.update({image["file"]: image["digest"] for image in before["images"]})
        with contextlib.suppress(OSError, ValueError, KeyError):
            with open(self.progress, encoding="utf-8") as file:
                kept = json.load(file)
            self.know(kept.get("schema", 1), kept["files"])
            self.digests.update(kept["digests"])

    def know(self, schema: int, files: t.Mapping[str, BundleFile]) -> None:
        """Take over what an earlier run recorded."""
        self.known.update(
            {name: entry for name, entry in files.items() if schema == SCHEMA or not name.startswith(PACKAGES)}
        )

    def full(self, name: str) -> str:
        return os.path.join(self.path, name)

    def has(self, name: str, sha256: str = "", source: str = "") -> bool:
        """Whether a file is there as recorded and matches the request; then it becomes part of the new bundle.

        If a digest is given, it decides; otherwise the file's source does.
        """
        if name not in self.known or fault_of(self.full(name), self.known[name]):
            return False
        known = self.known[name]
        if sha256 != known["sha256"] if sha256 else source != known.get("source", ""):
            return False
        with self.lock:
            self.done[name] = self.known[name]
        return True

    def add(self, name: str, digest: str = "", source: str = "") -> None:
        """Record a file that is in place."""
        path = self.full(name)
        entry: BundleFile = {"size": os.stat(path).st_size, "sha256": sha256_of(path)}
        if source:
            entry["source"] = source
        with self.lock:
            self.known[name] = self.done[name] = entry
            self.fetched.append(name)
            if digest:
                self.digests[name] = digest
            self.write(self.progress, json.dumps({"schema": SCHEMA, "files": self.known, "digests": self.digests}))

    def fetch(self, name: str, get: t.Callable[[str], t.Optional[str]], sha256: str = "", url: str = "") -> None:
        """Provide a file: the existing one, or the one that `get` writes, which may return its image's digest."""
        source = fingerprint(url) if url and not sha256 else ""
        if not self.has(name, sha256, source):
            os.makedirs(os.path.dirname(self.full(name)), mode=0o755, exist_ok=True)
            digest = get(self.full(name))
            self.add(name, digest or "", source)

    def write(self, path: str, text: str) -> None:
        os.makedirs(os.path.dirname(path), mode=0o755, exist_ok=True)
        with open(f"{path}.part", "w", encoding="utf-8") as file:
            file.write(text)
        os.replace(f"{path}.part", path)

    def text(self, name: str) -> str:
        with open(self.full(name), encoding="utf-8") as file:
            return file.read()

    def remove_old(self) -> t.List[str]:
        """Remove recorded files that are no longer wanted. Foreign files stay."""
        gone = sorted(name for name in self.known if name not in self.done and os.path.exists(self.full(name)))
        for name in gone:
            os.remove(self.full(name))
        shutil.rmtree(self.work, ignore_errors=True)
        return gone


def file_name(url: str) -> str:
    return re.split(r"[?#]", url)[0].rpartition("/")[2]


def chart_file(chart: fetch.Chart) -> str:
    return packed_chart("charts", chart["chart"], chart["version"])


def fetch_packages(request: Request, store: Store, timeout: int) -> t.Dict[str, str]:
    """The repositories, and the path of kubeadm's package by architecture."""
    wanted = {package["name"]: package.get("version", "") for package in request.packages}
    kubeadm = {}
    for name in request.platforms if wanted else []:
        platform = packages.parse_platform(name)
        directory = f"apt/{name}"
        asked = fingerprint([request.repositories, request.distributions, wanted, request.minor])[7:]
        mark = f"{directory}/.request"
        complete = store.has(mark) and store.text(mark) == asked and _has_index(store, directory)
        if not complete:
            _fetch_platform(request, store, platform, wanted, timeout)
            store.write(store.full(mark), asked)
            store.add(mark)
        for file in store.done:
            if file.startswith(f"{directory}/kubeadm_"):
                kubeadm[platform.architecture] = store.full(file)
    return kubeadm


def _has_index(store: Store, directory: str) -> bool:
    """Whether a repository is complete: its index, and all files in it."""
    if not all(store.has(f"{directory}/{name}") for name in ("Packages", "Release")):
        return False
    names = re.findall(r"^Filename: \./(\S+)$", store.text(f"{directory}/Packages"), re.MULTILINE)
    lost = [name for name in names if not store.has(f"{directory}/{name}")]
    return not lost


def _apt_root(request: Request, store: Store, platform: packages.Platform, timeout: int) -> packages.AptRoot:
    root = packages.AptRoot(os.path.join(store.work, f"apt-{platform.name}"), platform, timeout)
    sources = request.distributions.get(platform.distribution)
    if not sources:
        raise FabricError(
            "A bundle needs the distribution's own packages.",
            "bundle_distributions",
            f"nothing for {platform.distribution}",
            "Add the repositories of this distribution to bundle_distributions.",
            code="invalid-input",
        )
    every = packages.repositories(platform, request.minor, request.repositories, sources)
    for name, (repository, keyring) in every.items():
        root.add(name, repository, keyring)
    return root


def _fetch_platform(
    request: Request, store: Store, platform: packages.Platform, wanted: t.Mapping[str, str], timeout: int
) -> None:
    directory = f"apt/{platform.name}"
    root = _apt_root(request, store, platform, timeout)
    names = []
    for archive in root.fetch(wanted):
        name = packages.pool_name(archive)
        os.makedirs(store.full(directory), mode=0o755, exist_ok=True)
        part = f"{store.full(f'{directory}/{name}')}.part"
        shutil.copyfile(archive, part)
        os.replace(part, part[: -len(".part")])
        store.add(f"{directory}/{name}")
        names.append(name)
    for name, text in packages.index(store.full(directory), names).items():
        store.write(store.full(f"{directory}/{name}"), text)
        store.add(f"{directory}/{name}")


def kubeadm_images(request: Request, store: Store, kubeadm: t.Mapping[str, str], timeout: int) -> t.List[str]:
    """The images that kubeadm lists, so it is run here: from its package for this machine."""
    native = output_of("dpkg", "--print-architecture")
    package = kubeadm.get(native)
    if not package:
        platform = packages.parse_platform(request.platforms[0])._replace(architecture=native)
        versions = {one["name"]: one.get("version", "") for one in request.packages}
        root = _apt_root(request, store, platform, timeout)
        package = next(path for path in root.fetch({"kubeadm": versions["kubeadm"]}) if "/kubeadm_" in path)
    scratch = os.path.join(store.work, "kubeadm")
    fetch.Tool("dpkg-deb", "dpkg", timeout).run("A package can't be unpacked.", package, "--extract", package, scratch)
    repository = ["--image-repository", request.image_repository] if request.image_repository else []
    listed = fetch.Tool(os.path.join(scratch, "usr/bin/kubeadm"), "kubeadm", timeout).run(
        "kubeadm does not name its images.",
        package,
        *("config", "images", "list", "--kubernetes-version", f"v{request.releases['kubernetes']}", *repository),
    )
    return listed.split()


def chart_images(request: Request, store: Store, helm: fetch.Tool) -> t.Tuple[t.Set[str], t.Set[str]]:
    """The images of charts and manifests, and those that kubelets would always pull from a registry."""
    found: t.Set[str] = set()
    always: t.Set[str] = set()
    for chart in request.charts:
        documents = fetch.render_chart(helm, chart, store.full(chart_file(chart)), request.releases["kubernetes"])
        instead = {normal_name(old): normal_name(new) for old, new in chart["images"].items() if new}
        found |= {instead.get(image, image) for image in find_images(documents)}
        always |= {instead.get(image, image) for image in always_pulled(documents)}
    for name, source in request.manifests.items():
        documents = list(yaml.safe_load_all(store.text(manifest_file(name, source))))
        found |= find_images(documents)
        always |= always_pulled(documents)
    return found, always


def manifest_file(name: str, source: download.Source) -> str:
    return f"manifests/{name}/{file_name(source['url'])}"


def fetch_images(request: Request, store: Store, images: t.Mapping[str, bool], timeout: int) -> t.List[BundleImage]:
    """Fetch images; `images` says of each whether only control planes run it."""
    configuration = ""
    if request.registry:
        configuration = os.path.join(store.work, "registries.conf")
        store.write(configuration, fetch.registries(images, request.registry))
    skopeo = fetch.Tool("skopeo", "apt install skopeo", timeout)

    def get(pair: t.Tuple[str, str]) -> None:
        image, architecture = pair
        store.fetch(
            archive_of(image, architecture),
            lambda path: fetch.copy_image(skopeo, image, architecture, path, configuration),
        )

    pairs = [(image, architecture) for architecture in request.architectures for image in sorted(images)]
    with ThreadPoolExecutor(AT_A_TIME) as pool:
        ends = [pool.submit(get, pair) for pair in pairs]
        errors = [error for error in (end.exception() for end in ends) if error]
    if errors:
        raise errors[0]
    return [
        {
            "name": image,
            "architecture": architecture,
            "digest": store.digests[archive_of(image, architecture)],
            "file": archive_of(image, architecture),
            "control_plane": images[image],
        }
        for image, architecture in pairs
    ]


def release_images(releases: t.Mapping[str, t.Any]) -> t.List[str]:
    """The images of a plan's releases: the pod network's, and those of the network operator's components."""
    parts = [f"{one['repository']}/{one['image']}:{one['version']}" for one in releases.get("components", {}).values()]
    return [*releases.get("cni_images", []), *parts]


def fill(request: Request, store: Store, helm: fetch.Tool, timeout: int) -> t.Tuple[Bundle, t.List[str]]:
    """Fetch everything; returns the list, and the images that kubelets would always pull from a registry."""
    helm_file = f"helm/{file_name(request.helm['url'])}"
    files = {helm_file: request.helm, **{manifest_file(name, one): one for name, one in request.manifests.items()}}
    for name, source in files.items():
        get = functools.partial(download.fetch_file, source, timeout=timeout)
        store.fetch(name, get, plain_digest(source["checksum"]), source["url"])
    for chart in request.charts:
        pull = functools.partial(fetch.pull_chart, helm, chart)
        store.fetch(chart_file(chart), pull, plain_digest(chart["sha256"]), chart["repo"])
    kubeadm = fetch_packages(request, store, timeout)
    named = kubeadm_images(request, store, kubeadm, timeout) if request.packages else []
    rendered, always = chart_images(request, store, helm)
    every = {normal_name(image): False for image in (*release_images(request.releases), *request.images, *rendered)}
    every.update({normal_name(image): for_control_planes(image) for image in named})
    skipped = set(map(normal_name, request.skip_images))
    wanted = {image: planes for image, planes in every.items() if image not in skipped}
    images = fetch_images(request, store, wanted, timeout)
    bundle: Bundle = {
        "schema": SCHEMA,
        "request": request.digest(),
        "releases": {name: str(request.releases.get(name, "")) for name in RELEASES},
        "platforms": request.platforms,
        "helm": helm_file,
        "manifests": {name: manifest_file(name, source) for name, source in request.manifests.items()},
        "images": images,
        "files": {name: store.done[name] for name in sorted(store.done)},
    }
    return bundle, sorted(always & set(wanted))


def is_whole(request: Request) -> bool:
    """Whether the bundle is exactly what is requested, to the last byte. Makes no network request."""
    before = read_list(request.path)
    if before is None or before["request"] != request.digest():
        return False
    return all(not fault_of(os.path.join(request.path, name), wanted) for name, wanted in before["files"].items())


def make_bundle(module: AnsibleModule) -> t.Dict[str, t.Any]:
    """The body of M(ipu.fabric.bundle)."""
    params = module.params
    use_proxy(params["download_proxy"])
    request = Request(**{field.name: params[field.name] for field in dataclasses.fields(Request)})
    for name in request.platforms:
        packages.parse_platform(name)
    if is_whole(request):
        return {"changed": False, "fetched": [], "removed": [], "always": []}
    if module.check_mode:
        return {"changed": True, "fetched": [], "removed": [], "always": []}
    os.makedirs(request.path, mode=0o755, exist_ok=True)
    with locked(request.path):
        return write_bundle(module, request, params["timeout"])


@contextlib.contextmanager
def locked(path: str) -> t.Iterator[None]:
    """Allow one run at a time: an interrupted one may still be fetching."""
    with open(os.path.join(path, LOCK), "w", encoding="utf-8") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise FabricError(
                "Another run writes this bundle.",
                path,
                str(error),
                "Wait for it, or end it. Then run again.",
                code="busy",
            ) from error
        yield


def write_bundle(module: AnsibleModule, request: Request, timeout: int) -> t.Dict[str, t.Any]:
    store = Store(request.path)
    helm = fetch.Tool(module.params["helm_binary"], "the role ipu.fabric.helm", timeout)
    bundle, always = fill(request, store, helm, timeout)
    sums = "".join(f"{entry['sha256']}  {name}\n" for name, entry in bundle["files"].items())
    store.write(store.full(SUMS), sums)
    store.write(store.full(LIST), json.dumps(bundle, indent=2) + "\n")
    removed = store.remove_old()
    for image in always:
        module.warn(
            f"A container of {image} has imagePullPolicy Always: without a registry it does not start. Set the value of"
            " its chart to IfNotPresent, for the site and for the bundle."
        )
    result = outcome({"files": []}, {"files": sorted(store.fetched)}, fetched=sorted(store.fetched), always=always)
    return {**result, "changed": True, "removed": removed}
