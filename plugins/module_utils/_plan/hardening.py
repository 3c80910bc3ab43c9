# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""How the control plane is hardened, and which control planes of an existing cluster differ from it."""

from __future__ import annotations

import typing as t

from .._kubeadm.hardening import (
    API_VERSION,
    CIS,
    COMPONENTS,
    SETTINGS,
    STATIC_POD,
    Argument,
    ClusterConfiguration,
    Setting,
    Wanted,
    differences,
    from_manifests,
    harden,
    in_order,
    is_in,
    parse_release,
)
from .._model.plan import Hardening, HardeningChange, HardeningSetting, LeftOut
from .._model.settings import Settings
from .hosts import Hosts, PlacedHost, with_role

# The role turns it on once every control plane has the key. Whether kubelets have certificates signed by the cluster is
# known only after the hosts were changed, so that setting is not compared here.
MET = frozenset({"encryption"})
SHORT_TOKENS = "token-expiration"
EXTEND = "service-account-extend-token-expiration"


def plan_hardening(
    settings: Settings, hosts: Hosts, kubernetes: str, keeping: t.Sequence[str]
) -> t.Optional[Hardening]:
    """None if others manage Kubernetes. keeping: planned CNI plugins that read their token only once."""
    if not settings.manage_kubernetes:
        return None
    left_out = _left_out(settings.hardening, keeping)
    names = frozenset(each["name"] for each in left_out)
    wanted = Wanted(settings.hardening, parse_release(kubernetes), MET, names)
    fresh = harden({"apiVersion": API_VERSION}, wanted._replace(met=MET | {"kubelet-ca"}))
    site = read_site(settings.cluster_config)
    due = [_due(hosts[name], wanted, site) for name in with_role(hosts, "control_plane")]
    return {
        "level": settings.hardening,
        "settings": [_describe(setting) for setting in fresh.applied],
        "left_out": left_out,
        "super_admin": settings.hardening != CIS,
        "exempt": _exempt(settings),
        "due": [each for each in due if each and (each["changes"] or each["kept"])],
    }


def _left_out(level: str, keeping: t.Sequence[str]) -> t.List[LeftOut]:
    """With one-hour tokens, a plugin that keeps its first token gives no pod its network after that hour."""
    if not keeping or not any(setting.name == SHORT_TOKENS and is_in(level, setting) for setting in SETTINGS):
        return []
    return [{"name": SHORT_TOKENS, "why": f"{' and '.join(keeping)} would keep a token that has expired"}]


def _exempt(settings: Settings) -> t.List[str]:
    """The IPU operator's namespace. `default` has pods of others too: there, the role sets labels for what it needs."""
    namespace = settings.ipu_release.namespace
    return [namespace] if settings.ipu and namespace != "default" else []


def read_site(given: t.Mapping[str, object]) -> ClusterConfiguration:
    """Arguments that the site itself sets. kubeadm reports any other mistakes."""
    found: ClusterConfiguration = {}
    for component in COMPONENTS:
        section = given.get(component)
        listed = section.get("extraArgs") if isinstance(section, dict) else None
        arguments: t.List[Argument] = [
            {"name": str(each["name"]), "value": str(each["value"])}
            for each in (listed if isinstance(listed, list) else [])
            if isinstance(each, dict) and {"name", "value"} <= set(each)
        ]
        if arguments:
            found[component] = {"extraArgs": arguments}
    return found


def short_tokens(settings: Settings, hosts: Hosts) -> t.List[str]:
    """Control planes that issue one-hour tokens, because of the site's settings or of whoever else manages them."""
    planes = with_role(hosts, "control_plane")
    if settings.manage_kubernetes:
        arguments = (read_site(settings.cluster_config).get("apiServer") or {}).get("extraArgs") or []
        return planes if in_order(arguments).get(EXTEND) == "false" else []
    return [name for name in planes if _running(hosts[name]).get(EXTEND) == "false"]


def _running(host: PlacedHost) -> t.Mapping[str, str]:
    """The API server's arguments on a host; empty if it has none or was not read."""
    seen = host.facts.get("control_plane") if host.facts else None
    return seen["arguments"].get(STATIC_POD["apiServer"], {}) if seen else {}


def _describe(setting: Setting) -> HardeningSetting:
    return {
        "name": setting.name,
        "component": STATIC_POD[setting.component],
        "arguments": dict(setting.arguments),
        "checks": setting.checks,
    }


def _due(host: PlacedHost, wanted: Wanted, site: ClusterConfiguration) -> t.Optional[HardeningChange]:
    """None if the host is not a control plane yet, or was not read."""
    seen = host.facts.get("control_plane") if host.facts else None
    if not seen:
        return None
    hardened = harden(from_manifests(seen["arguments"]), wanted, site)
    found = differences(hardened.configuration, seen["arguments"])
    changes = [f"{STATIC_POD[component]}: {', '.join(names)}" for component, names in found.items()]
    changes += [f"files: {', '.join(seen['open_files'])}"] if seen["open_files"] and wanted.level != "none" else []
    changes += ["super-admin.conf"] if seen["super_admin"] and wanted.level == CIS else []
    return {"host": host.name, "changes": changes, "kept": hardened.kept}
