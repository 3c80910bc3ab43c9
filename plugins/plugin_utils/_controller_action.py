# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Actions that do all of their work on the controller. The module of the same name is their documentation."""

from __future__ import annotations

import abc
import copy
import importlib.util
import json
import types
import typing as t

import yaml
from ansible.errors import AnsibleActionFail
from ansible.module_utils.ansible_release import __version__
from ansible.module_utils.basic import missing_required_lib
from ansible.module_utils.compat.version import LooseVersion
from ansible.plugins.action import ActionBase

from ..module_utils._common.result import FabricError, plain_failure
from ..module_utils._model.failure import Code

OPTION_KEYS = ("type", "elements", "required", "choices", "default")


def argument_spec(module: types.ModuleType) -> t.Dict[str, t.Dict[str, t.Any]]:
    """The options that a module documents."""
    return option_spec(yaml.safe_load(module.DOCUMENTATION)["options"])


def option_spec(options: t.Mapping[str, t.Mapping[str, t.Any]]) -> t.Dict[str, t.Dict[str, t.Any]]:
    """Documented options, of a module or a role, as Ansible validates them."""
    return {name: {key: option[key] for key in OPTION_KEYS if key in option} for name, option in options.items()}


Result = t.Dict[str, t.Any]


def plain(data: t.Any) -> t.Any:
    """Plain data, as modules get it: values from templates carry tags that would travel on in the result."""
    return json.loads(json.dumps(data, default=str))


def missing_packages(names: t.Iterable[str], core: str = "") -> t.List[str]:
    """Packages and collections (kubernetes.core) that Ansible's Python lacks, and ansible-core if older than `core`."""
    old = bool(core) and LooseVersion(__version__) < LooseVersion(core)
    missing = [name for name in names if not importable(f"ansible_collections.{name}" if "." in name else name)]
    return [*([f"ansible-core>={core}"] if old else []), *missing]


def importable(name: str) -> bool:
    """Whether a package can be imported; one whose parent is missing can't."""
    try:
        return importlib.util.find_spec(name) is not None
    except ImportError:
        return False


def lacking(libraries: t.Sequence[str]) -> t.Optional[Result]:
    """The failure for the first Python package that this controller lacks; None if it has them all."""
    missing = missing_packages(libraries)
    return plain_result(missing_required_lib(missing[0]), "missing-requirement") if missing else None


def failure(error: FabricError) -> Result:
    """The result that tells a person what to act on."""
    return {"failed": True, **error.result()}


def plain_result(message: str, code: Code) -> Result:
    """The result of a failure whose message is all that is known."""
    return {"failed": True, "msg": message, "error": plain_failure(message, "this controller", code)}


class ControllerAction(ActionBase):
    """Validates the options, and ends with what `act` returns or with its FabricError."""

    TRANSFERS_FILES = False
    _requires_connection = False
    spec: t.ClassVar[t.Dict[str, t.Dict[str, t.Any]]] = {}
    libraries: t.Sequence[str] = ()  # Python packages that a controller may lack

    @abc.abstractmethod
    def act(self, options: t.Dict[str, t.Any]) -> t.Dict[str, t.Any]:
        """The result for these options. Raises FabricError if a person must act."""

    def run(self, tmp: t.Any = None, task_vars: t.Optional[t.Dict[str, t.Any]] = None) -> t.Dict[str, t.Any]:
        result: t.Dict[str, t.Any] = super().run(tmp, task_vars)
        try:
            # A copy: Ansible puts the defaults of suboptions into the default that it was given.
            _valid, arguments = self.validate_argument_spec(argument_spec=copy.deepcopy(self.spec))
            return {**result, **(lacking(self.libraries) or self.act(plain(arguments)))}
        except AnsibleActionFail as error:
            return {**result, **plain_result(str(error), "invalid-input")}
        except FabricError as error:
            return {**result, **failure(error)}
