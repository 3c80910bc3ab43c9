# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Plan on the controller: the plan needs no host, and what hosts reported is large."""

from __future__ import annotations

import datetime
import importlib.util
import json
import os
import socket
import typing as t

import yaml
from ansible.module_utils.basic import missing_required_lib
from ansible.plugins.action import ActionBase
from ansible_collections.ipu.fabric.plugins.module_utils._common.result import FabricError
from ansible_collections.ipu.fabric.plugins.module_utils._host.vipu import split_endpoint
from ansible_collections.ipu.fabric.plugins.module_utils._model.observation import Observations
from ansible_collections.ipu.fabric.plugins.module_utils._model.settings import Settings
from ansible_collections.ipu.fabric.plugins.module_utils._plan import build, observation_cache
from ansible_collections.ipu.fabric.plugins.module_utils._plan.endpoints import parse_address
from ansible_collections.ipu.fabric.plugins.module_utils._plan.report import as_text
from ansible_collections.ipu.fabric.plugins.modules import fabric_plan
from ansible_collections.ipu.fabric.plugins.plugin_utils import _plan_files as plan_files

LIBRARIES = ("netaddr",)
OPTION_KEYS = ("type", "elements", "required", "choices", "default")
ARGUMENT_SPEC = {
    name: {key: option[key] for key in OPTION_KEYS if key in option}
    for name, option in yaml.safe_load(fabric_plan.DOCUMENTATION)["options"].items()
}


def resolve_vipu(entries: t.Sequence[object]) -> t.Dict[str, str]:
    """Addresses of the host names among fixed V-IPU controllers; the plan itself asks nobody."""
    addresses = {}
    for entry in entries:
        host = str(entry.get("host", "")) if isinstance(entry, dict) else str(entry)
        try:
            name = split_endpoint(host)[0]
            if parse_address(name) is None:
                addresses[name] = str(socket.getaddrinfo(name, None, type=socket.SOCK_STREAM)[0][4][0])
        except (OSError, ValueError):  # the plan says what is wrong with it
            continue
    return addresses


def make_preflight(settings: Settings, observations: Observations) -> t.Dict[str, t.Any]:
    preflight = build.build_preflight(settings, observations)
    return {"changed": False, "plan": preflight, "text": as_text(preflight, "Preflight")}


def make_plan(settings: Settings, observations: Observations, check_mode: bool) -> t.Dict[str, t.Any]:
    """The plan, and its files in the artifacts folder."""
    folder = settings.artifacts_dir
    cached = plan_files.read_file(os.path.join(folder, plan_files.OBSERVATIONS)) if folder else ""
    cache = observation_cache.parse_cache(cached)
    plan = build.build_plan(settings, observation_cache.recall_hosts(observations, cache))
    kept: t.Dict[str, t.Any] = {"changed": False}
    if folder and not any(finding["check"] == "artifacts-dir" for finding in plan["findings"]):
        now = datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds")
        cache = observation_cache.update_cache(observations, cache, now)
        kept = plan_files.keep_plan(folder, plan, cache, check_mode)
    return {**kept, "plan": plan, "text": as_text(plan)}


class ActionModule(ActionBase):
    """The module of the same name has the documentation, and from it the options are taken."""

    TRANSFERS_FILES = False
    _requires_connection = False

    def run(self, tmp: t.Any = None, task_vars: t.Optional[t.Dict[str, t.Any]] = None) -> t.Dict[str, t.Any]:
        super().run(tmp, task_vars)
        _valid, arguments = self.validate_argument_spec(argument_spec=ARGUMENT_SPEC)
        missing = [name for name in LIBRARIES if importlib.util.find_spec(name) is None]
        if missing:
            return {"failed": True, "msg": missing_required_lib(missing[0])}
        # Plain data, as modules get it: values from templates carry tags that would travel with the plan.
        options = json.loads(json.dumps(arguments, default=str))
        observations, scope = options.pop("hosts"), options.pop("scope")
        settings = Settings(**options, resolved=resolve_vipu(options["vipu_hosts"]))
        try:
            if scope == "preflight":
                result = make_preflight(settings, observations)
            else:
                result = make_plan(settings, observations, self._task.check_mode)
        except FabricError as error:
            return {"failed": True, "msg": str(error), **error.as_dict()}
        levels = [finding["level"] for finding in result["plan"]["findings"]]
        return {**result, "errors": levels.count("error")}
