"""The mirror's images, under their real names and tags, pushed into a registry's storage."""

from __future__ import annotations

import hashlib
import http.client
import io
import json
import re
import socket
import subprocess
import tarfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from . import programs
from .common import ProblemError, output

PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
LAYER_TYPE = "application/vnd.oci.image.layer.v1.tar"
CONFIG_TYPE = "application/vnd.oci.image.config.v1+json"
MANIFEST_TYPE = "application/vnd.oci.image.manifest.v1+json"
# Not used by the stand-in of Calico's operator: hosts pull these, but nothing starts them.
CALICO_UNUSED = ("csi", "node-driver-registrar", "pod2daemon-flexvol")


@dataclass
class Image:
    """An image: its name, its files, and what it starts."""

    reference: str
    files: dict[str, Path]
    entrypoint: list[str] | None = None
    base: str = "scratch"  # or a tree: tools, mpi, calico, rdma

    @property
    def repository(self) -> str:
        """The name without registry and tag: the mirror replaces every registry."""
        return self.reference.partition("/")[2].rpartition(":")[0]

    @property
    def tag(self) -> str:
        return self.reference.rpartition(":")[2]


def kubernetes_images(bin_dir: Path) -> list[Image]:
    """The images that kubeadm lists. Since the list is kubeadm's own, an image that nobody builds is an error here."""
    wanted = output(bin_dir / "kubeadm", "config", "images", "list", "--kubernetes-version", f"v{programs.KUBERNETES}")
    images = []
    for reference in wanted.split():
        name = reference.rpartition("/")[2].partition(":")[0]
        if name == "pause":
            images.append(Image(reference, {"pause": bin_dir / "pause"}, ["/pause"]))
        elif name == "coredns":
            images.append(Image(reference, {"coredns": bin_dir / "coredns"}, ["/coredns"]))
        elif name == "etcd":
            tools = ("etcd", "etcdctl", "etcdutl")
            images.append(Image(reference, {f"usr/local/bin/{tool}": bin_dir / tool for tool in tools}))
        else:
            base = "tools" if name == "kube-proxy" else "scratch"
            images.append(Image(reference, {f"usr/local/bin/{name}": bin_dir / name}, base=base))
    built = {f"coredns:v{programs.COREDNS}", f"etcd:{programs.ETCD}-0"}
    for other in (image.reference for image in images if "/coredns:" in image.reference or "/etcd:" in image.reference):
        if other.rpartition("/")[2] not in built:
            raise ProblemError(f"kubeadm wants {other}, programs/ builds {', '.join(built)}: change the go.mod there")
    return images


def next_images(next_dir: Path, bin_dir: Path) -> list[Image]:
    """The images that the next release's kubeadm lists. etcd and CoreDNS are the testbed's, with other tags."""
    release = f"v{programs.KUBERNETES_NEXT}"
    wanted = output(next_dir / "kubeadm", "config", "images", "list", "--kubernetes-version", release)
    others = {image.repository: image for image in kubernetes_images(bin_dir)}
    images = []
    for reference in wanted.split():
        other = others[Image(reference, {}).repository]
        files = {
            place: next_dir / path.name if (next_dir / path.name).exists() else path
            for place, path in other.files.items()
        }
        images.append(Image(reference, files, other.entrypoint, other.base))
    return images


def flannel_images(bin_dir: Path, plugin: Path) -> list[Image]:
    """flannel's two images; flanneld calls iptables, and `cp` installs its plugin: the tools tree has both."""
    files = {f"opt/bin/{name}": bin_dir / name for name in ("flanneld", "install-conf")}
    return [
        Image(f"ghcr.io/flannel-io/flannel:v{programs.FLANNEL}", files, ["/opt/bin/flanneld"], base="tools"),
        Image("ghcr.io/flannel-io/flannel-cni-plugin:v1.9.1-flannel3", {"flannel": plugin / "flannel"}, base="tools"),
    ]


def calico_images(calico: Path, files: Path, plugins: Path, standins: Path) -> list[Image]:
    """Calico's images under its operator's names, and the operator, a stand-in, under the name in the real manifest."""
    rootfs, place = files / "node/filesystem", "opt/cni/bin"
    start = {str(file.relative_to(rootfs)): file for file in rootfs.rglob("*") if file.is_file()}
    # In Debian, /bin and /sbin are links into /usr.
    node = {re.sub(r"^(s?bin)/", r"usr/\1/", name): file for name, file in start.items()}
    others = ("bandwidth", "host-local", "loopback", "portmap", "tuning")
    cni = {f"{place}/{name}": plugins / name for name in others} | {f"{place}/install": calico / "install"}
    cni |= {f"{place}/{name}": calico / "calico" for name in ("calico", "calico-ipam")}
    controllers = {f"usr/bin/{name}": calico / name for name in ("kube-controllers", "check-status")}
    manifest = (files / "manifests/tigera-operator.yaml").read_text()
    operator = re.findall(r"image: (\S*/operator:\S+)", manifest)[0]

    def image(name: str, files: dict[str, Path], *start: str, base: str = "scratch") -> Image:
        return Image(f"quay.io/calico/{name}:v{programs.CALICO}", files, list(start), base)

    unused = (image(name, {"loopback": plugins / "loopback"}) for name in CALICO_UNUSED)
    return [
        *unused,
        image("node", node | {"usr/bin/calico-node": calico / "calico-node"}, "start_runit", base="calico"),
        image("cni", cni, f"/{place}/install"),
        image("typha", {"usr/bin/calico-typha": calico / "calico-typha"}, "/usr/bin/calico-typha"),
        image("kube-controllers", controllers, "/usr/bin/kube-controllers"),
        Image(operator, {"usr/local/bin/operator": standins / "tigera-operator"}, ["operator"]),
    ]


def whereabouts_content(whereabouts: Path, scripts: Path) -> dict[str, Path]:
    """The files at the root of the whereabouts image."""
    programs_of = {"whereabouts": whereabouts / "cmd", "ip-control-loop": whereabouts / "controlloop"}
    return programs_of | {path.name: path for path in (scripts / "script").iterdir()}


def standin_images(
    built: Path, plugins: Path, device_plugin: Path, kubernetes: Path, whereabouts: dict[str, Path]
) -> list[Image]:
    """The images in standins/images.json (see standins/README.md)."""
    images = []
    for entry in json.loads((programs.STANDINS / "images.json").read_text()):
        files = {f"plugins/{name}": plugins / name for name in entry.get("programs", [])}
        files |= {f"usr/local/bin/{name}": kubernetes / name for name in entry.get("beside", [])}
        files |= whereabouts if "/whereabouts:" in entry["image"] else {}
        start: list[str] | None = entry.get("entrypoint")
        if "package" in entry:
            program = Path(entry["package"]).name
            if not (built / program).exists():
                raise ProblemError(f"standins/images.json: no program {program} for {entry['image']}")
            around: str = entry.get("around", "")
            if around:
                files[f"usr/local/bin/{around}"] = device_plugin / around
            place = f"bin/{around}" if around else f"usr/local/bin/{program}"
            files[place] = built / program
            start = start or [f"/{place}"]
        images.append(Image(entry["image"], files, start, entry["base"]))
    return images


def references(bin_dir: Path) -> list[str]:
    """What a worker may pull: the newest release of each image, and of kubeadm's images those that do not only run on
    control planes."""
    everywhere = ("kube-proxy", "coredns", "pause")
    wanted = [image.reference for image in kubernetes_images(bin_dir)]
    wanted = [reference for reference in wanted if reference.rpartition("/")[2].partition(":")[0] in everywhere]
    wanted += [image.reference for image in flannel_images(Path(), Path())]
    newest: dict[str, str] = {}
    for entry in json.loads((programs.STANDINS / "images.json").read_text()):
        newest.setdefault(entry["image"].rpartition(":")[0], entry["image"])  # the list has the newest one first
    return [*wanted, *newest.values()]


def _layer(files: dict[str, Path], target: Path) -> None:
    """A layer that is identical for identical files: no time stamps, no owners."""
    with tarfile.open(target, "w") as archive:
        for name, source in sorted(files.items()):
            entry = archive.gettarinfo(source, name)
            entry.mtime, entry.uid, entry.gid, entry.uname, entry.gname = 0, 0, 0, "", ""
            entry.mode = 0o755 if source.stat().st_mode & 0o111 else 0o644
            entry.type, entry.linkname, entry.size = tarfile.REGTYPE, "", source.stat().st_size
            with source.open("rb") as content:
                archive.addfile(entry, content)


class Registry:
    """The registry program on a local port, running while images are pushed into its storage."""

    def __init__(self, program: Path, storage: Path, config: Path) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        config.write_text(configuration(f"127.0.0.1:{self.port}", storage))
        # It ends with this process, however that ends.
        command = ["setpriv", "--pdeathsig", "KILL", str(program), "serve", str(config)]
        self._process = subprocess.Popen(command, stderr=subprocess.DEVNULL)

    def __enter__(self) -> Registry:
        for _ in range(100):
            try:
                socket.create_connection(("127.0.0.1", self.port)).close()
                return self
            except OSError:
                time.sleep(0.1)
        raise ProblemError("the registry does not answer after 10 s")

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        self._process.wait()

    def _ask(self, method: str, path: str, body: Any = None, media_type: str = "", size: int = 0) -> str:
        """Send a request to the registry and return the answer's location. A refusal is a problem, except for HEAD."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port)
        headers = {"Content-Type": media_type} | ({"Content-Length": str(size)} if size else {})
        connection.request(method, path, body=body, headers=headers)
        answer = connection.getresponse()
        answer.read()
        if answer.status >= 300 and method != "HEAD":
            raise ProblemError(f"the registry refused {method} {path}: {answer.status} {answer.reason}")
        return (answer.getheader("Location") or path) if answer.status < 300 else ""

    def blob(self, repository: str, content: BinaryIO, media_type: str) -> dict[str, str | int]:
        """Put a blob into a repository and return its descriptor."""
        name = f"sha256:{hashlib.file_digest(content, 'sha256').hexdigest()}"  # type: ignore[arg-type] # any binary file
        size = content.seek(0, io.SEEK_END)
        content.seek(0)
        if not self._ask("HEAD", f"/v2/{repository}/blobs/{name}"):
            place = self._ask("POST", f"/v2/{repository}/blobs/uploads/").partition(f":{self.port}")[2]
            self._ask("PUT", f"{place}&digest={name}", content, "application/octet-stream", size)
        return {"mediaType": media_type, "digest": name, "size": size}

    def push(self, image: Image, layers: list[Path]) -> None:
        descriptors = []
        for layer in layers:
            with layer.open("rb") as content:
                descriptors.append(self.blob(image.repository, content, LAYER_TYPE))
        config = {
            "architecture": "amd64",
            "os": "linux",
            "config": {"Env": [f"PATH={PATH}"], "Entrypoint": image.entrypoint},
            "rootfs": {"type": "layers", "diff_ids": [layer["digest"] for layer in descriptors]},
        }
        manifest = {
            "schemaVersion": 2,
            "mediaType": MANIFEST_TYPE,
            "config": self.blob(image.repository, io.BytesIO(json.dumps(config).encode()), CONFIG_TYPE),
            "layers": descriptors,
        }
        self._ask("PUT", f"/v2/{image.repository}/manifests/{image.tag}", json.dumps(manifest), MANIFEST_TYPE)


def configuration(address: str, storage: Path | str, readonly: bool = False) -> str:
    """The registry's own configuration file."""
    settings = {
        "version": 0.1,
        "log": {"level": "error", "accesslog": {"disabled": True}},
        "storage": {"filesystem": {"rootdirectory": str(storage)}, "maintenance": {"readonly": {"enabled": readonly}}},
        "http": {"addr": address},
    }
    return json.dumps(settings)


def fill(target: Path, program: Path, images: list[Image], trees: dict[str, list[Path]]) -> None:
    """Fill target/storage with the images; trees are the layers below them, lowest first."""
    storage, scratch = target / "storage", target / "layer.tar"
    storage.mkdir()
    with Registry(program, storage, target / "registry.yml") as registry:
        for image in images:
            _layer(image.files, scratch)
            base = [] if image.base == "scratch" else trees[image.base]
            registry.push(image, base + ([scratch] if image.files else []))
    scratch.unlink()
    (target / "registry.yml").write_text(configuration(":5000", "/srv/storage", readonly=True))
