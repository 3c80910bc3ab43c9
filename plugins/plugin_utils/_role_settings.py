# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The variables of a role, with the types of its argument specification, for the component that decides by them."""

from __future__ import annotations

import dataclasses
import typing as t

from ansible.errors import AnsibleActionFail
from ansible.module_utils.common.arg_spec import ArgumentSpecValidator

from ..module_utils._component.settings import Settings, pick
from ._controller_action import Result, option_spec, plain
from ._site_variables import refuse_facts, role_options

try:
    from ansible.template import trust_as_template
except ImportError:  # before ansible-core 2.19 every text is a template

    def trust_as_template(value: str) -> str:
        return value


def own_options(role: str, names: t.Collection[str]) -> t.Dict[str, Result]:
    """The role's documentation of these variables, whose names lack the role's prefix."""
    known = role_options(role) if names else {}  # what only a playbook asks for has no role
    return {name: known[f"{role}_{name}"] for name in names if f"{role}_{name}" in known}


def default(option: Result) -> t.Any:
    """The default of a variable of a role whose own tasks don't run, from the role's documentation."""
    value = option.get("default")
    return trust_as_template(value) if isinstance(value, str) else value


def validated(role: str, names: t.Collection[str], given: Result) -> Result:
    """These variables of the role, without its prefix, in the types that it documents."""
    valid = ArgumentSpecValidator(option_spec(own_options(role, names))).validate(plain(given))
    if valid.error_messages:
        raise AnsibleActionFail("; ".join(valid.error_messages))
    return dict(valid.validated_parameters)


def role_settings(
    kind: t.Type[Settings], role: str, variables: Result, template: t.Callable[[t.Any], t.Any]
) -> Settings:
    """The settings that a component decides by, from the variables of a host, but not from its facts."""
    refuse_facts(variables.get("inventory_hostname", ""), variables)
    names = [field.name for field in dataclasses.fields(kind)]  # type: ignore[arg-type]  # no bound says "dataclass"
    own = {name: variables.get(f"{role}_{name}", default(option)) for name, option in own_options(role, names).items()}
    return pick(kind, validated(role, names, template(own)))
