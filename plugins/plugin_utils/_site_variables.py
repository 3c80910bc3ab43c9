# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The names of the variables that an inventory may set: those of a site begin with fabric_, others with their role."""

from __future__ import annotations

import functools
import typing as t
from pathlib import Path

from ansible.module_utils.common.yaml import yaml_load

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


Options = t.Dict[str, t.Dict[str, t.Any]]


@functools.lru_cache(maxsize=None)
def role_options(role: str) -> Options:
    """The argument specification of a role, by the names of its variables."""
    specs = yaml_load((ROLES / role / "meta/argument_specs.yml").read_text(encoding="utf-8"))["argument_specs"]
    return {name: option for entry in specs.values() for name, option in entry.get("options", {}).items()}


def site_options() -> Options:
    return role_options("fabric")


def role_variables() -> t.FrozenSet[str]:
    """The names of the variables of all roles."""
    return frozenset(name for path in ROLES.glob("*/meta/argument_specs.yml") for name in role_options(path.parts[-3]))


def site_variables() -> t.FrozenSet[str]:
    return frozenset(OF_PLAYBOOKS).union(site_options())
