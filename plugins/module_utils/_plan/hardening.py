# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How the control plane is hardened, and which control planes of a cluster that is there differ from that."""

from __future__ import annotations

import typing as t

from ansible_collections.ipu.fabric.plugins.module_utils._kubeadm.hardening import (
    API_VERSION,
    CIS,
    STATIC_POD,
    Setting,
    Wanted,
    differences,
    from_manifests,
    harden,
    parse_release,
)
from ansible_collections.ipu.fabric.plugins.module_utils._model.plan import Hardening, HardeningChange, HardeningSetting
from ansible_collections.ipu.fabric.plugins.module_utils._model.settings import Settings
from ansible_collections.ipu.fabric.plugins.module_utils._plan.hosts import Hosts, PlacedHost, with_role

# The role turns it on where every control plane has the key. That kubelets have certificates of the cluster is known
# only after the hosts were changed, so that setting is not compared here.
MET = frozenset({"encryption"})


def plan_hardening(settings: Settings, hosts: Hosts, kubernetes: str) -> t.Optional[Hardening]:
    """None where somebody else manages Kubernetes."""
    if not settings.manage_kubernetes:
        return None
    wanted = Wanted(settings.hardening, parse_release(kubernetes), MET)
    fresh = harden({"apiVersion": API_VERSION}, wanted._replace(met=MET | {"kubelet-ca"}))
    due = [_due(hosts[name], wanted) for name in with_role(hosts, "control_plane")]
    return {
        "level": settings.hardening,
        "settings": [_describe(setting) for setting in fresh.applied],
        "super_admin": settings.hardening != CIS,
        "due": [each for each in due if each and (each["changes"] or each["kept"])],
    }


def _describe(setting: Setting) -> HardeningSetting:
    return {
        "name": setting.name,
        "component": STATIC_POD[setting.component],
        "arguments": dict(setting.arguments),
        "checks": setting.checks,
    }


def _due(host: PlacedHost, wanted: Wanted) -> t.Optional[HardeningChange]:
    """None where the host is no control plane yet, or was not read."""
    seen = host.facts.get("control_plane") if host.facts else None
    if not seen:
        return None
    hardened = harden(from_manifests(seen["arguments"]), wanted)
    found = differences(hardened.configuration, seen["arguments"])
    changes = [f"{STATIC_POD[component]}: {', '.join(names)}" for component, names in found.items()]
    changes += [f"files: {', '.join(seen['open_files'])}"] if seen["open_files"] and wanted.level != "none" else []
    changes += ["super-admin.conf"] if seen["super_admin"] and wanted.level == CIS else []
    return {"host": host.name, "changes": changes, "kept": hardened.kept}
