# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Settings of a site that all playbooks share, and its sources of downloads: upstream, mirrors or a bundle."""

from __future__ import annotations

import dataclasses
import json
import posixpath
import typing as t

from .._common.admission import at_most
from .._common.result import FabricError
from .._kube.merge_values import merge_values
from .._model.stacks import STACKS
from .._network.digests import CALICO_FILES, known_digest
from .._network.releases import WHEREABOUTS, features, parse
from .._plan.proxy import ALWAYS, host_of, sources
from .._plan.source_questions import Wanted, source_questions
from .kubernetes_pod_network import kept_manifest

Sources = t.Mapping[str, t.Any]  # in the form of the variable fabric_mirror
CHARTS = (*STACKS, "gpu_operator", "ipu_operator", "whereabouts")
CALICO = {"crds": "calico_crds", "operator": "calico_operator"}  # Calico's manifests by the names that a bundle uses
AT_API = "/var/lib/ipu-fabric"


@dataclasses.dataclass(frozen=True)
class Settings:
    """Variables of the role fabric, without its name as a prefix."""

    api_host: str
    backup_keep: int
    hardening: str
    pod_security_exempt: t.Sequence[str]
    renew_days: int
    manage_kubernetes: bool
    allow: t.Sequence[str]
    runtime: str
    ipu: bool
    gpu: bool
    upgrade_batch: t.Union[int, str]
    admission: str
    max_unproved: t.Union[int, str]
    prune_networks: bool
    require_rdma: bool
    ntp: t.Sequence[str]
    mirror: Sources
    proxy: t.Mapping[str, t.Any]
    observations: str
    baseline: str
    report_key: str
    rail_isolation: str
    kubernetes_version: str
    cni: str
    calico_version: str
    stack: str
    networks: t.Sequence[t.Any]
    ipam: str
    network_operator_version: str
    spiderpool_version: str
    gpu_operator_version: str
    ipu_operator_version: str


# Settings that only the plan or the questions to sources need.
OF_THE_PLAN = (
    "kubernetes_version",
    "cni",
    "calico_version",
    "stack",
    "networks",
    "ipam",
    "network_operator_version",
    "spiderpool_version",
    "gpu_operator_version",
    "ipu_operator_version",
)


@dataclasses.dataclass(frozen=True)
class Seen:
    """Paths, and what was read on the controller."""

    paths: t.Mapping[str, str]  # of the site, as given; some are on the API host
    defaults: t.Mapping[str, t.Any]  # of all roles, by variable
    bundle: str  # directory; empty: none
    listed: str  # text of its list; empty without one
    only_plans: bool = False  # the playbook changes no host
    login: bool = False  # whether the site logs in to its registry
    repository: str = ""  # of kubeadm's images, if not the default
    installation: t.Mapping[str, t.Any] = dataclasses.field(default_factory=dict)  # of Calico
    helm_binary: str = ""  # the site's own, if it has one
    crd_url: str = ""  # of IPUJobs
    charts: t.Mapping[str, str] = dataclasses.field(default_factory=dict)  # names that the site uses for charts


def decide(settings: Settings, seen: Seen) -> t.Dict[str, t.Any]:
    """Settings of all playbooks; the plan reports a faulty bundle list. FabricError if a recording is for hosts."""
    if settings.observations and not seen.only_plans:
        raise FabricError(
            "Only ipu.fabric.plan works with a recording.",
            "fabric_observations",
            settings.observations,
            "Leave fabric_observations out, or run ipu.fabric.plan with it.",
            code="invalid-input",
        )
    at_most(settings.max_unproved, 1)
    is_local = settings.api_host in ("localhost", "127.0.0.1")
    upstream = upstream_sources(seen.defaults, settings.mirror)
    at_api = seen.bundle if is_local else f"{AT_API}/bundle"
    others = bundle_sources(seen.bundle, at_api, seen.listed, settings.mirror) if seen.bundle else settings.mirror
    mirror = merge_values(upstream, others)
    upstream_charts = {name: seen.defaults[f"{name}_chart"] for name in CHARTS}
    helm_directory = f"{seen.paths['artifacts_dir'] if is_local else AT_API}/bin"
    everything = dataclasses.asdict(settings)
    asks = not seen.bundle and not settings.observations
    wanted = Wanted(
        sources=mirror,
        managed=settings.manage_kubernetes,
        runtime=settings.runtime,
        kubernetes=settings.kubernetes_version,
        cni=settings.cni,
        calico=settings.calico_version,
        charts=charts_wanted(settings),
        names={name: seen.charts.get(name) or chart for name, chart in upstream_charts.items()},
        upstream=upstream_charts,
        login=seen.login,
        repository=seen.repository,
        installation=seen.installation,
        helm=seen.helm_binary or f"{helm_directory}/{posixpath.basename(mirror['helm']['url'])[: -len('.tar.gz')]}",
        manifests={
            part: kept_manifest(
                seen.paths["kubeconfig"], part, mirror["calico"][f"{part}_url"], settings.calico_version
            )
            for part in CALICO_FILES
        },
        crd_url=seen.crd_url,
    )
    return {
        **{name: value for name, value in everything.items() if name not in OF_THE_PLAN},
        **seen.paths,
        "api_become": not is_local,
        "helm_directory": helm_directory,
        "bundle": seen.bundle,
        "mirror": mirror,
        "namespaces": [seen.defaults[f"{name}_namespace"] for name in CHARTS],  # unless a site has chosen others
        "proxy": proxy_of(settings.proxy),
        "questions": source_questions(wanted) if asks else {"hosts": [], "planes": [], "api": [], "controller": []},
        # Used before the plan, which also knows the hosts' networks.
        "no_proxy": [*ALWAYS, *dict.fromkeys(filter(None, map(host_of, sources(settings.mirror))))],
    }


def proxy_of(given: t.Mapping[str, t.Any]) -> t.Dict[str, str]:
    """The proxy for downloads; empty: none. Its URLs may contain a password, so the plan does not get it."""
    http, https = given.get("http") or "", given.get("https") or ""
    return {"http": http, "https": https or http} if http or https else {}


def charts_wanted(settings: Settings) -> t.Dict[str, str]:
    """Releases of the charts that a plan may install, by their names in fabric_mirror.charts."""
    wanted: t.Dict[str, str] = {}
    line = parse(settings.network_operator_version)[:2]
    if settings.networks and settings.stack == "spiderpool":
        wanted["spiderpool"] = settings.spiderpool_version
    if settings.networks and settings.stack == "network_operator":
        wanted["network_operator"] = settings.network_operator_version
        if settings.ipam == "whereabouts" and not features(line)["whereabouts"]:
            wanted["whereabouts"] = WHEREABOUTS
    if settings.gpu:
        wanted["gpu_operator"] = settings.gpu_operator_version
    if settings.ipu:
        wanted["ipu_operator"] = settings.ipu_operator_version
    return {name: release.lstrip("v") for name, release in wanted.items()}


def upstream_sources(defaults: t.Mapping[str, t.Any], mirror: Sources) -> t.Dict[str, t.Any]:
    """The upstream sources, from the defaults of the roles that use them."""
    helm = (mirror.get("helm") or {}).get("url", defaults["helm_url"])
    return {
        "apt": defaults["kubernetes_apt"],
        "registry": "",
        "charts": {name: defaults[f"{name}_chart_repo_url"] for name in CHARTS},
        "chart_sha256": {},
        "helm": {"url": helm, "checksum": f"sha256:{known_digest(posixpath.basename(helm)) or helm + '.sha256sum'}"},
        "cri_dockerd": defaults["kubernetes_cri_dockerd"],
        "calico": defaults["kubernetes_calico"],
        "mpi_operator": {
            "url": defaults["mpi_operator_manifest_url"],
            "sha256": defaults["mpi_operator_manifest_sha256"],
        },
    }


def bundle_sources(bundle: str, at_api: str, listed: str, mirror: Sources) -> t.Dict[str, t.Any]:
    """A bundle in place of all sources. Charts and Helm are used on the API host."""
    about = json.loads(listed) if listed.startswith("{") else {}
    manifests, files, helm = about.get("manifests", {}), about.get("files", {}), about.get("helm", "")

    def digest(name: str) -> str:
        found: str = files.get(name, {}).get("sha256", "")
        return found

    calico = {part: manifests.get(name, "") for part, name in CALICO.items()}
    mpi_operator = manifests.get("mpi_operator", "")
    return {
        "registry": "",
        "charts": dict.fromkeys(CHARTS, f"{at_api}/charts"),
        # A bundle made from a mirror contains that mirror's charts.
        "chart_sha256": mirror.get("chart_sha256", {}),
        "helm": {"url": f"file://{at_api}/{helm}", "checksum": f"sha256:{digest(helm)}"},
        "calico": {
            **{f"{part}_url": f"file://{bundle}/{name}" for part, name in calico.items()},
            **{f"{part}_checksum": f"sha256:{digest(name)}" for part, name in calico.items()},
        },
        "mpi_operator": {"url": f"{bundle}/{mpi_operator}", "sha256": digest(mpi_operator)},
    }
