# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""How the control plane is hardened, and which control planes of an existing cluster differ from that."""

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

# The role turns it on where every control plane has the key. That kubelets have certificates of the cluster is known
# only after the hosts were changed, so that setting is not compared here.
MET = frozenset({"encryption"})
SHORT_TOKENS = "token-expiration"
EXTEND = "service-account-extend-token-expiration"


def plan_hardening(
    settings: Settings, hosts: Hosts, kubernetes: str, keeping: t.Sequence[str]
) -> t.Optional[Hardening]:
    """None where somebody else manages Kubernetes. keeping: planned CNI plugins that never read their token again."""
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
    """Where tokens end after an hour, a plugin that keeps its first one gives no pod its network from then on."""
    if not keeping or not any(setting.name == SHORT_TOKENS and is_in(level, setting) for setting in SETTINGS):
        return []
    return [{"name": SHORT_TOKENS, "why": f"{' and '.join(keeping)} would go on with a token that has ended"}]


def _exempt(settings: Settings) -> t.List[str]:
    """Where the IPU operator is. Others have pods in `default` too: what it needs there its role writes in labels."""
    namespace = settings.ipu_release.namespace
    return [namespace] if settings.ipu and namespace != "default" else []


def read_site(given: t.Mapping[str, object]) -> ClusterConfiguration:
    """What the site says of arguments itself. kubeadm says what else is wrong with it."""
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
    """Control planes whose tokens end after an hour because the site says so, or whoever else manages them."""
    planes = with_role(hosts, "control_plane")
    if settings.manage_kubernetes:
        arguments = (read_site(settings.cluster_config).get("apiServer") or {}).get("extraArgs") or []
        return planes if in_order(arguments).get(EXTEND) == "false" else []
    return [name for name in planes if _running(hosts[name]).get(EXTEND) == "false"]


def _running(host: PlacedHost) -> t.Mapping[str, str]:
    """Arguments of the API server of a host; empty where it has none, or was not read."""
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
    """None where the host is no control plane yet, or was not read."""
    seen = host.facts.get("control_plane") if host.facts else None
    if not seen:
        return None
    hardened = harden(from_manifests(seen["arguments"]), wanted, site)
    found = differences(hardened.configuration, seen["arguments"])
    changes = [f"{STATIC_POD[component]}: {', '.join(names)}" for component, names in found.items()]
    changes += [f"files: {', '.join(seen['open_files'])}"] if seen["open_files"] and wanted.level != "none" else []
    changes += ["super-admin.conf"] if seen["super_admin"] and wanted.level == CIS else []
    return {"host": host.name, "changes": changes, "kept": hardened.kept}
