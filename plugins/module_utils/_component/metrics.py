# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What Prometheus reads of the IPU operator, with whose token, and through which exporters."""

from __future__ import annotations

import dataclasses
import typing as t

from .._common.result import FabricError
from .._host.ipu_operator import METRICS_SERVICE, PROXY, WEBHOOK_SERVICE
from .._model.stacks import STACKS

# Sources that need no IPU operator; and the source of its controller, whose metrics need no exporter.
WITHOUT_IPUS = ("kube_state_metrics", *STACKS)
CONTROLLER = "ipu_operator"
TOKEN_SECRET = "ipu-operator-metrics-token"  # its name, not a secret


@dataclasses.dataclass(frozen=True)
class Settings:
    """Variables of the role, without its name as a prefix."""

    state: str
    ipu: bool
    namespace: str
    service_account: str
    prometheus_operator: str  # auto, true or false
    sources: t.Sequence[str]
    json_exporter: str
    blackbox: str
    blackbox_module: str
    ipu_operator_namespace: str
    target: str
    token_file: str
    ca_secret: str
    ca_file: str
    server_name: str


@dataclasses.dataclass(frozen=True)
class Seen:
    """What ipu.fabric.cluster_info found."""

    api_groups: t.Sequence[str] = ()


@dataclasses.dataclass(frozen=True)
class Target:
    """A target that Prometheus reads through an exporter."""

    source: str
    name: str
    exporter: str  # host:port
    module: str
    target: str


@dataclasses.dataclass(frozen=True)
class Monitoring:
    """Values for the templates."""

    prometheus_operator: bool
    verified: bool  # whether Prometheus itself reads the controller's metrics: only if it can verify who gets its token
    reader: str  # the service account that reads them
    reader_namespace: str
    token_secret: str
    token_file: str
    target: str  # host:port of the controller's metrics
    server_name: str
    probes: t.Sequence[Target]
    files: t.Sequence[str]
    sources: t.Sequence[str]  # of alerts and dashboards; includes CONTROLLER if there is an IPU operator
    pools: t.Sequence[t.Mapping[str, str]]  # of stacks among the sources: title, name of the kind, counter of refusals
    ipu_state: str  # present or absent: state of the objects that read the IPU operator


def decide(settings: Settings, seen: Seen) -> Monitoring:
    """Raise FabricError if a chosen exporter has no address. Without IPUs, their objects are removed."""
    ipu = settings.ipu and settings.state == "present"
    sources = [each for each in settings.sources if settings.ipu or each in WITHOUT_IPUS]
    operator = settings.prometheus_operator == "true"
    if settings.prometheus_operator == "auto":
        operator = "monitoring.coreos.com" in seen.api_groups
    verified = bool(settings.ca_secret if operator else settings.ca_file)
    own = settings.ipu_operator_namespace if operator else settings.namespace
    token = f"/etc/prometheus/secrets/{TOKEN_SECRET}/token"
    if settings.ca_file:
        token = "/var/run/secrets/kubernetes.io/serviceaccount/token"
    service = f"{METRICS_SERVICE}.{settings.ipu_operator_namespace}.svc"
    files = {"scrape.yml": CONTROLLER, "rules.yml": "", "json-exporter.yml": "json_exporter"}
    files["kube-state-metrics.yml"] = "ipujob_state"
    sources += [CONTROLLER] if settings.ipu else []
    return Monitoring(
        prometheus_operator=operator,
        verified=verified,
        reader=settings.service_account if verified else "ipu-operator-metrics",
        reader_namespace=settings.namespace if verified else own,
        token_secret=TOKEN_SECRET,
        token_file=settings.token_file or token,
        target=settings.target or f"{service}:8443",
        server_name=settings.server_name or service,
        probes=probes(settings, sources if ipu else None),
        files=[name for name, source in files.items() if not source or source in sources],
        sources=sources,
        pools=[
            {"title": stack.title, "plural": f"{stack.pool.lower()}s", "refusals": stack.refusals}
            for name, stack in STACKS.items()
            if name in sources and stack.refusals
        ],
        ipu_state="present" if ipu else "absent",
    )


def probes(settings: Settings, sources: t.Optional[t.Sequence[str]]) -> t.List[Target]:
    """The probes of these sources; None: all possible ones, for a removal."""
    home = f"{settings.ipu_operator_namespace}.svc"
    stats = f"http://{PROXY}.{home}/stats"
    known = (
        Target("json_exporter", "ipu-operator-stats", settings.json_exporter, "ipu_stats", stats),
        Target(
            "blackbox",
            "ipu-operator-webhook",
            settings.blackbox,
            settings.blackbox_module,
            f"{WEBHOOK_SERVICE}.{home}:443",
        ),
    )
    if sources is None:
        return list(known)
    named = [probe for probe in known if probe.source in sources]
    lacking = [probe.source for probe in named if not probe.exporter]
    if lacking:
        raise FabricError(
            "Prometheus needs the address of each exporter.",
            "metrics_sources",
            f"no address of {' and '.join(lacking)}",
            f"Set {' and '.join(f'metrics_{source}' for source in lacking)} to host:port.",
            code="invalid-input",
        )
    return named
