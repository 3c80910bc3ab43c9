# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Settings of a site that all playbooks share, and where it takes everything from: upstream, mirrors or a bundle."""

from __future__ import annotations

import dataclasses
import json
import posixpath
import typing as t

from .._common.result import FabricError
from .._kube.merge_values import merge_values
from .._model.stacks import STACKS
from .._network.digests import known_digest

Sources = t.Mapping[str, t.Any]  # as the variable fabric_mirror
CHARTS = (*STACKS, "gpu_operator", "ipu_operator", "whereabouts")
CALICO = {"crds": "calico_crds", "operator": "calico_operator"}  # parts of its manifests, by their names in a bundle
AT_API = "/var/lib/ipu-fabric"


@dataclasses.dataclass(frozen=True)
class Settings:
    """Variables of the role fabric, without its name before them."""

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
    prune_networks: bool
    require_rdma: bool
    ntp: t.Sequence[str]
    mirror: Sources
    observations: str


@dataclasses.dataclass(frozen=True)
class Seen:
    """Paths, and what was read of the controller."""

    paths: t.Mapping[str, str]  # of the site, as they were given: some are of the host of the API
    defaults: t.Mapping[str, t.Any]  # of all roles, by variable
    bundle: str  # directory; empty: none
    listed: str  # text of its list; empty without one
    only_plans: bool = False  # the playbook works on no host


def decide(settings: Settings, seen: Seen) -> t.Dict[str, t.Any]:
    """What is wrong with the list of a bundle the plan says. No playbook works on hosts by what others were once."""
    if settings.observations and not seen.only_plans:
        raise FabricError(
            "Only ipu.fabric.plan works with a recording.",
            "fabric_observations",
            settings.observations,
            "Leave fabric_observations out, or run ipu.fabric.plan with it.",
            code="invalid-input",
        )
    is_local = settings.api_host in ("localhost", "127.0.0.1")
    upstream = upstream_sources(seen.defaults, settings.mirror)
    at_api = seen.bundle if is_local else f"{AT_API}/bundle"
    others = bundle_sources(seen.bundle, at_api, seen.listed, settings.mirror) if seen.bundle else settings.mirror
    return {
        **dataclasses.asdict(settings),
        **seen.paths,
        "api_become": not is_local,
        "helm_directory": f"{seen.paths['artifacts_dir'] if is_local else AT_API}/bin",
        "bundle": seen.bundle,
        "mirror": merge_values(upstream, others),
    }


def upstream_sources(defaults: t.Mapping[str, t.Any], mirror: Sources) -> t.Dict[str, t.Any]:
    """Where upstream is stands in the defaults of the roles that take from there."""
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
    """A bundle in place of all sources. Charts and Helm are used where the API is spoken to."""
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
        # A bundle that was made from a mirror has the charts of that mirror.
        "chart_sha256": mirror.get("chart_sha256", {}),
        "helm": {"url": f"file://{at_api}/{helm}", "checksum": f"sha256:{digest(helm)}"},
        "calico": {
            **{f"{part}_url": f"file://{bundle}/{name}" for part, name in calico.items()},
            **{f"{part}_checksum": f"sha256:{digest(name)}" for part, name in calico.items()},
        },
        "mpi_operator": {"url": f"{bundle}/{mpi_operator}", "sha256": digest(mpi_operator)},
    }
