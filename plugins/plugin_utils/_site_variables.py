# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The names of the variables that an inventory may set: those of a site begin with fabric_, others with their role."""

from __future__ import annotations

import functools
import hashlib
import json
import re
import typing as t
from pathlib import Path

from ansible.module_utils.common.yaml import yaml_load

from ..module_utils._common.redaction import redact, redact_text
from ..module_utils._common.result import FabricError
from ..module_utils._common.secrets import NOT_SHOWN
from ..module_utils._plan.names import PREFIXES, ROLE_PREFIXES

ROLES = Path(__file__).parents[2] / "roles"
# Variables that playbooks read besides those of the role, and that plays keep for each other.
OF_PLAYBOOKS = (
    "fabric_backup",
    "fabric_bundle_plan",
    "fabric_distribution",
    "fabric_metrics",
    "fabric_mpi_operator",
    "fabric_plan",
    "fabric_prove_networks",
    "fabric_slice_plan",
    "fabric_verb",
    "fabric_remove_nodes",
    "fabric_renew_force",
    "fabric_reset",
    "fabric_reset_force",
    "fabric_reset_name",
    "fabric_restore",
    "fabric_restored",
    "fabric_site",
    "fabric_support_bundle",
    "fabric_support_lines",
    "fabric_support_namespaces",
    "fabric_support_units",
    "fabric_upgrade_plan",
)
# Variables that allow a step or say how long it may take.
HOW = (
    "_(timeouts?|force|throttle|retries|backup|kubeconfig|limit|delete_jobs|reboot.*|restart_.*|rotate_.*|allow_.*"
    "|require_.*)$"
)


Options = t.Dict[str, t.Dict[str, t.Any]]


@functools.lru_cache(maxsize=None)
def role_options(role: str) -> Options:
    """The argument specification of a role, by the names of its variables."""
    specs = yaml_load((ROLES / role / "meta/argument_specs.yml").read_text(encoding="utf-8"))["argument_specs"]
    return {name: option for entry in specs.values() for name, option in entry.get("options", {}).items()}


def has_secret(option: t.Mapping[str, t.Any]) -> bool:
    """Whether the option must not appear in logs."""
    return bool(option.get("no_log")) or any(map(has_secret, (option.get("options") or {}).values()))


@functools.lru_cache(maxsize=1)
def deciding_variables() -> Options:
    """Role variables that decide what site applies: not those that say how it goes on, nor those that it sets."""
    return {
        name: option
        for prefix in ROLE_PREFIXES
        if prefix not in ("native_workload_", "verify_")
        for name, option in role_options(prefix[:-1]).items()
        if name not in passed_variables() and not re.search(HOW, name)
    }


def shown_value(option: t.Mapping[str, t.Any], value: object) -> str:
    """A variable's value for plan.json, without secrets, and as a digest if it is a list or dictionary."""
    if has_secret(option):
        return NOT_SHOWN
    if isinstance(value, str):
        return redact_text(value)
    text = json.dumps(redact(json.loads(json.dumps(value, default=str))), sort_keys=True)
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()[:12]}" if isinstance(value, (list, dict)) else text


def refuse_facts(host: str, variables: t.Mapping[str, t.Any]) -> None:
    """Facts that a module returns take precedence over the inventory: a host must not change who it is or what it gets.

    Raises FabricError for facts with names of settings.
    """
    facts = sorted(key for key in variables.get("ansible_facts") or {} if key == "ip" or key.startswith(PREFIXES))
    if facts:
        raise FabricError(
            "Settings of a site are variables of the inventory, and not facts that come from a host.",
            f"ansible_facts of {host}",
            ", ".join(facts),
            "Set them in the inventory. If nothing here sets such facts, find out what answers on that host.",
            code="unsafe",
        )


def site_options() -> Options:
    return role_options("fabric")


def role_variables() -> t.FrozenSet[str]:
    """The names of the variables of all roles."""
    return frozenset(name for path in ROLES.glob("*/meta/argument_specs.yml") for name in role_options(path.parts[-3]))


@functools.lru_cache(maxsize=1)
def passed_variables() -> t.Dict[str, str]:
    """Role variables that site sets, whatever the inventory says, each with the one to set instead; empty: none."""
    found: t.Dict[str, str] = {}
    for play in ("kubernetes", "fabric", "prove"):
        passed = templates_in(f"plays/{play}.yml")
        found.update({name: _instead(name, str(text)) for name, text in passed.items() if name[0] != "_"})
    return found


def templates_in(playbook: str) -> t.Dict[str, t.Any]:
    """The variables of all `vars` in a playbook, with their templates."""
    found: t.Dict[str, t.Any] = {}
    _collect(yaml_load((ROLES.parent / "playbooks" / playbook).read_text(encoding="utf-8")), found)
    return found


def _collect(tree: t.Any, found: t.Dict[str, t.Any]) -> None:
    for each in tree if isinstance(tree, list) else ():
        _collect(each, found)
    for key, value in tree.items() if isinstance(tree, dict) else ():
        if key == "vars":
            found.update(value)
        _collect(value, found)


def _instead(name: str, template: str) -> str:
    """The variable of the site from which a template takes a role's variable."""
    taken = re.match(r"{{ fabric_(?:site\.)?(\w+)((?:\.\w+)*)", template)
    names = [f"fabric_{taken[1]}"] if taken else []
    names += [f"fabric_{name}", *(f"fabric_{name[at.end() :]}" for at in re.finditer("_", name))]
    known = next((each for each in names if each in site_options()), "")
    return known + taken[2] if taken and known == names[0] else known


def site_variables() -> t.FrozenSet[str]:
    return frozenset(OF_PLAYBOOKS).union(site_options())
