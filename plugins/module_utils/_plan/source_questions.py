# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which sources must answer before anything is installed, which hosts ask them, and what is reported if they don't."""

from __future__ import annotations

import dataclasses
import typing as t

from .._common.findings import Findings
from .._common.text import shorten_list
from .._host.cri import DOCKER
from .._model.observation import EMBEDDED
from .._model.settings import Settings
from .._model.sources import Kind, SourceProblem, SourceQuestion, SourceQuestions
from .._network.digests import CALICO_FILES, chart_key, known_digest
from .._network.releases import KUBERNETES, newest_of, pod_network
from .hosts import Hosts, PlacedHost
from .running_cluster import Running
from .sources import DIGEST, as_written, text_of, without_credentials

CHECK = "sources"
OTHER_FILE = "source-digest"
KUBERNETES_VERSION = "fabric_kubernetes_version"
MANY = 4  # number of silent sources that become one finding
LISTED = 12
REGISTRY = "fabric_mirror.registry"
KUBERNETES_IMAGES = "registry.k8s.io"
# Fields of Calico's Installation that change the names of its images.
OTHER_NAMES = ("registry", "imagePath", "imagePrefix")
# Only a cluster that we build uses these sources, or asks the upstream registries.
OF_OUR_CLUSTER = tuple(f"fabric_mirror.{name}" for name in ("apt.", "calico.", "cri_dockerd.", "registry"))


@dataclasses.dataclass(frozen=True)
class Wanted:
    """What a site would install, and from which sources."""

    sources: t.Mapping[str, object]  # in the form of fabric_mirror, with upstream's sources filled in
    managed: bool  # whether this collection builds the cluster
    runtime: str
    kubernetes: str  # releases, with or without v
    cni: str
    calico: str
    charts: t.Mapping[str, str]  # releases by name, as in their variables and as key of fabric_mirror.charts
    names: t.Mapping[str, str]  # of the charts, by the same names
    upstream: t.Mapping[str, str]  # what upstream calls them, which their digests go by
    login: bool  # whether the site logs in to fabric_mirror.registry
    repository: str  # of kubeadm's images; empty: the default
    installation: t.Mapping[str, object]  # Calico's, as the site wrote it
    helm: str  # path where the program is kept
    manifests: t.Mapping[str, str]  # paths where Calico's are kept, by part
    crd_url: str  # of the IPUJob definition; empty: it is in the chart


def question(
    kind: Kind, variable: str, url: str, name: str = "", version: str = "", release: str = ""
) -> SourceQuestion:
    return {
        "kind": kind,
        "variable": variable,
        "url": url,
        "name": name,
        "version": version,
        "release": release,
        "images": [],
    }


def source_questions(wanted: Wanted) -> SourceQuestions:
    """All questions. Local files, such as those of a bundle, are checked by whoever answers the question."""
    version = wanted.kubernetes.lstrip("v")
    hosts = [*_packages(wanted, version), *_cri_dockerd(wanted)] if wanted.managed else []
    images, planes = _images(wanted, version)
    whole: t.List[SourceQuestion] = (
        [{**each, "kubelet": version} for each in hosts + images] if wanted.managed else images
    )
    return {
        "hosts": whole,
        "planes": [{**each, "kubelet": version} for each in planes],
        "api": _charts(wanted),
        "controller": _manifests(wanted),
    }


def _packages(wanted: Wanted, version: str) -> t.Iterator[SourceQuestion]:
    repositories = wanted.sources.get("apt")
    minor = ".".join(version.split(".")[:2])
    for name in repositories if isinstance(repositories, dict) else ():
        variable = f"fabric_mirror.apt.{name}"
        keys = ("uri", "suite", "components", "key_url")
        texts = {key: text_of(repositories, name, key).replace("{minor}", minor) for key in keys}
        if texts["key_url"]:
            digest, fingerprint = (text_of(repositories, name, key) for key in ("key_sha256", "key_fingerprint"))
            stated = ("key_sha256", DIGEST) if digest else ("key_fingerprint", "FINGERPRINT")
            key = question("key", f"{variable}.key_url", texts["key_url"], name)
            setting = as_written("fabric_mirror", "apt", name, stated[0], value=stated[1])
            yield {**key, "checksum": digest, "fingerprint": fingerprint, "setting": setting}
        package = ("kubelet", version, KUBERNETES_VERSION) if name == "kubernetes" else ("", "", "")
        components = texts["components"].split() or ["main"]
        asked = question("repository", f"{variable}.uri", texts["uri"], *package)
        # apt may log in, with credentials in files on the hosts.
        yield {**asked, "suite": texts["suite"], "component": components[0], "login": True}


def _cri_dockerd(wanted: Wanted) -> t.Iterator[SourceQuestion]:
    if wanted.runtime == DOCKER:
        url = text_of(wanted.sources, "cri_dockerd", "url")
        url = url.replace("{version}", text_of(wanted.sources, "cri_dockerd", "version"))
        checksum = text_of(wanted.sources, "cri_dockerd", "checksum")
        yield _compared(question("file", "fabric_mirror.cri_dockerd.url", url), checksum, "cri_dockerd", "checksum")


def _images(wanted: Wanted, version: str) -> t.Tuple[t.List[SourceQuestion], t.List[SourceQuestion]]:
    """Questions for each host, and more for only one control plane: a mirror offers the same to all."""
    asked = _registry(wanted)
    if not wanted.managed:
        return [asked] if asked["url"] else [], []
    renamed = wanted.cni == "calico" and any(wanted.installation.get(key) for key in OTHER_NAMES)
    network = [] if renamed else pod_network(wanted.cni, wanted.calico)[1]
    server = f"{wanted.repository or KUBERNETES_IMAGES}/kube-apiserver:v{version}"
    each: SourceQuestion = {**asked, "images": [server], "release": KUBERNETES_VERSION}
    return [each], [_or_flannel(wanted, {**asked, "images": network})] if network else []


def _registry(wanted: Wanted) -> SourceQuestion:
    """The question to the site's mirror of registries, if it has one."""
    mirror = text_of(wanted.sources, "registry")
    mirror = mirror if "://" in mirror or not mirror else f"https://{mirror}"
    return {**question("images", REGISTRY, mirror), "login": wanted.login}


def _or_flannel(wanted: Wanted, asked: SourceQuestion) -> SourceQuestion:
    """Add flannel as the alternative to Calico: it needs only images. With a login, the answer would prove nothing."""
    if wanted.cni != "calico" or wanted.login:
        return asked
    images = pod_network("flannel", "")[1]
    return {**asked, "instead": {**_registry(wanted), "name": "flannel", "images": images}}


def _compared(asked: SourceQuestion, checksum: str, *setting: str) -> SourceQuestion:
    """A question whose answer has this checksum. setting: the keys below fabric_mirror that state it."""
    value = f"sha256:{DIGEST}" if setting[-1].endswith("checksum") else DIGEST
    return {**asked, "checksum": checksum, "setting": as_written("fabric_mirror", *setting, value=value)}


def _and_its_list(asked: SourceQuestion) -> t.Iterator[SourceQuestion]:
    """The question, and that for the list of digests where the checksum names one."""
    yield asked
    place = asked.get("checksum", "").replace("sha256:", "", 1)
    if "://" in place:
        variable = asked["variable"].replace("_url", "_checksum").replace(".url", ".checksum")
        yield {**question("file", variable, place), "path": asked.get("path", "")}


def _charts(wanted: Wanted) -> t.List[SourceQuestion]:
    found: t.List[SourceQuestion] = []
    for name, release in wanted.charts.items():
        variable = f"fabric_{name}_version" if name != "whereabouts" else ""
        url, key = text_of(wanted.sources, "charts", name), chart_key(wanted.upstream[name], release)
        asked = question("charts", f"fabric_mirror.charts.{name}", url, wanted.names[name], release, variable)
        digest = text_of(wanted.sources, "chart_sha256", key) or known_digest(key)
        found.append(_compared(asked, digest, "chart_sha256", key))
    if found:
        url, checksum = (text_of(wanted.sources, "helm", key) for key in ("url", "checksum"))
        helm = _compared(question("file", "fabric_mirror.helm.url", url), checksum, "helm", "checksum")
        found += _and_its_list({**helm, "path": wanted.helm})
    if "ipu_operator" in wanted.charts and wanted.crd_url:
        found.append(question("file", "ipu_operator_crd_url", wanted.crd_url))
    return found


def _manifests(wanted: Wanted) -> t.List[SourceQuestion]:
    release = wanted.calico.lstrip("v")
    found: t.List[SourceQuestion] = []
    for part, file in CALICO_FILES.items() if wanted.managed and wanted.cni == "calico" else ():
        url, checksum = (text_of(wanted.sources, "calico", f"{part}_{key}") for key in ("url", "checksum"))
        variable = f"fabric_mirror.calico.{part}_url"
        asked = question("file", variable, url.replace("{version}", release), release="fabric_calico_version")
        asked = _or_flannel(wanted, {**asked, "path": wanted.manifests.get(part, "")})
        checksum = checksum or known_digest(f"calico-{release}/{file}")
        found += _and_its_list(_compared(asked, checksum, "calico", f"{part}_checksum"))
    mpi_operator = question("file", "fabric_mirror.mpi_operator.url", text_of(wanted.sources, "mpi_operator", "url"))
    digest = text_of(wanted.sources, "mpi_operator", "sha256")
    return [*found, {**_compared(mpi_operator, digest, "mpi_operator", "sha256"), "playbook": "workloads"}]


def check_answers(settings: Settings, hosts: Hosts, running: t.Optional[Running], findings: Findings) -> None:
    """One finding for each source and problem; a single one if many sources are silent, as without internet."""
    installed = (running.facts.get("charts") or []) if running else []
    seen = [("", problem) for problem in settings.source_problems]
    for host in hosts.values():
        if host.facts and "recalled" not in host.observation:
            seen += [(host.name, problem) for problem in host.facts.get("sources") or []]
    seen = [(name, problem) for name, problem in seen if not problem["chart"] or problem["chart"] not in installed]
    if not settings.manage_kubernetes:  # only in k3s and RKE2 does site configure the mirror
        seen = [each for each in seen if each[1]["variable"] != REGISTRY or _is_embedded(hosts.get(each[0]))]
        mirror = text_of(settings.sources, "registry")
        if mirror and not any(_is_embedded(host) for host in hosts.values()):
            findings.warning(
                CHECK,
                [],
                f"{REGISTRY} has no effect: others manage this cluster, and its nodes pull images as they did.",
                f"{REGISTRY} is {without_credentials(mirror)}",
                "Leave it out. Without internet, the nodes need a mirror in their /etc/containerd/certs.d.",
            )
    # An operator's release that does not exist is one error, not a second one of its source.
    seen = [each for each in seen if not (each[1]["chart"] and findings.has_error(_check_of(each[1]["release"])))]
    if findings.has_error("cluster-builder"):
        seen = [each for each in seen if not each[1]["variable"].startswith(OF_OUR_CLUSTER)]
    _report_later([each for each in seen if each[1].get("later")], findings)
    seen = [each for each in seen if not each[1].get("later")]
    # If hosts don't get images, it is not enough that the controller reaches flannel's.
    no_images = any(problem["variable"] == REGISTRY and not problem.get("instead") for _name, problem in seen)
    silent = [each for each in seen if _is_silent(each[1])]
    texts = dict.fromkeys(_seen(problem) for _name, problem in silent)
    if len(texts) >= MANY:
        findings.error(
            CHECK,
            dict.fromkeys(name for name, _problem in silent if name),
            f"{len(texts)} sources of this site do not answer.",
            shorten_list(texts, LISTED, "; "),
            "Without internet, set fabric_mirror to a mirror of the site, or bring everything along with fabric_bundle:"
            " https://github.com/ipu-fabric/ipu.fabric/blob/main/docs/guides/air-gap.md. Otherwise let the hosts"
            " through, by fabric_proxy or the firewall.",
        )
        seen = [each for each in seen if not _is_silent(each[1])]
    for name, problem in seen:
        instead = "" if running or no_images else problem.get("instead", "")
        _report(problem, [name] if name else [], instead, findings)


def _is_embedded(host: t.Optional[PlacedHost]) -> bool:
    made = host.facts.get("kubernetes") if host and host.facts else None
    return bool(made and made["distribution"] in EMBEDDED)


def _report_later(seen: t.Sequence[t.Tuple[str, SourceProblem]], findings: Findings) -> None:
    """One warning for all finished hosts whose mirror of registries does not answer."""
    if seen:
        url = seen[0][1]["url"].rstrip("/")
        findings.warning(
            CHECK,
            dict.fromkeys(name for name, _problem in seen),
            "The mirror of registries has to answer, for the images of new pods.",
            shorten_list(dict.fromkeys(_seen(problem) for _name, problem in seen), LISTED, "; "),
            "Pods whose images are not on their node yet will not start, unless the images' own registries answer it."
            f" Start the mirror, or set {REGISTRY} to one that answers. Check with `curl -IL {url}/v2/`.",
        )


def offered_releases(hosts: Hosts) -> t.List[str]:
    """Kubernetes releases offered to all hosts whose repositories lack the requested one."""
    found = [
        set(problem.get("offers", []))
        for host in hosts.values()
        for problem in (host.facts.get("sources", []) if host.facts else [])
        if problem["release"] == KUBERNETES_VERSION and problem.get("offers")
    ]
    return sorted(set.intersection(*found)) if found else []


def _check_of(release: str) -> str:
    """The check of a variable with a release: network-operator-version of fabric_network_operator_version."""
    return release.replace("fabric_", "", 1).replace("_", "-")


def _is_silent(problem: SourceProblem) -> bool:
    """Whether site needs the source but it did not answer at all."""
    return not problem["lacks"] and not problem["playbook"] and not problem.get("expected")


def _seen(problem: SourceProblem) -> str:
    return f"{problem['url']} ({problem['variable']}): {problem['seen']}"


def _curl(problem: SourceProblem) -> str:
    """A command that asks the source. A registry that answers may refuse (401) who has not logged in."""
    scheme, _colon, rest = problem["url"].partition("://")
    if scheme == "oci":
        return f"curl -IL https://{rest.partition('/')[0]}/v2/"
    return f"curl -fIL {problem['url'].rstrip('/')}/index.yaml" if problem["chart"] else f"curl -fIL {problem['url']}"


def _report(problem: SourceProblem, hosts: t.Sequence[str], instead: str, findings: Findings) -> None:
    """instead: a pod network whose source answers."""
    value = "sha256:URL" if problem["variable"].endswith("checksum") else "URL"
    setting = as_written(*problem["variable"].split("."), value=value)
    who = "these hosts" if hosts else "the machine that runs Ansible"
    seen, check = _seen(problem), CHECK
    if problem.get("expected"):
        check, what = OTHER_FILE, "What a source serves does not have the expected digest or fingerprint."
        seen += f", expected {problem['expected']}"
        step = (
            "Find out from its publisher which of the two is right. Then name a source that serves it,"
            f" {setting}, or correct {problem['setting']}."
        )
    elif problem["lacks"]:
        what = f"A source does not have {shorten_list(problem['lacks'].split(', '), 4)}."
        best = newest_of(problem.get("offers", []), *KUBERNETES) if problem["release"] == KUBERNETES_VERSION else ""
        release = f"{best}, which it has" if best else "a release that it has"
        other = f"set {problem['release']} to {release}" if problem["release"] else ""
        step = f"Add it there, or name a source that has it, {setting}{f', or {other}' if other else ''}."
    else:
        missing = problem["seen"].startswith("HTTP 404")
        what = "A source has nothing at this URL." if missing else f"A source of this site has to answer {who}."
        other = f"let {who} reach this one, through fabric_proxy or the firewall"
        step = (
            f"Name a source that answers, {setting}, or {'put it there' if missing else other}."
            f" Check with `{_curl(problem)}`."
        )
    if instead:
        step += f" Or set fabric_cni to {instead}, whose images are available."
    if problem["playbook"]:
        findings.warning(check, hosts, what, seen, f"Only the playbook {problem['playbook']} needs it. {step}")
    else:
        findings.error(check, hosts, what, seen, step)
