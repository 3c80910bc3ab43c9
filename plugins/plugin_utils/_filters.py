# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What all filters share.

Ansible reads all filter files of a collection in each process that uses one filter, and forks a process for each task
and host, so a filter imports what it needs when it is called.
"""

from __future__ import annotations

import functools
import importlib
import typing as t

from ansible.errors import AnsibleFilterError

from ..module_utils._common.result import FabricError


def plain(value: t.Any) -> t.Any:
    """A value without the tags that Ansible adds for filters, and that YAML can't write."""
    if isinstance(value, dict):
        return {str(key): plain(each) for key, each in value.items()}
    if isinstance(value, list):
        return [plain(each) for each in value]
    return next((kind(value) for kind in (bool, str, int, float) if isinstance(value, kind)), value)


def readable(function: t.Callable[..., t.Any]) -> t.Callable[..., t.Any]:
    """Make a filter show its FabricError in a play. ansible-core 2.18 shows other errors as a crash."""

    @functools.wraps(function)
    def result(*args: t.Any, **settings: t.Any) -> t.Any:
        try:
            return function(*args, **settings)
        except FabricError as error:
            raise AnsibleFilterError(str(error)) from error

    return result


def on_first_use(place: str, name: str) -> t.Callable[..., t.Any]:
    """The named function of a module below `plugins`, as a filter that imports the module when it is called."""

    @readable
    def call(*args: t.Any, **settings: t.Any) -> t.Any:
        module = importlib.import_module(f"ansible_collections.ipu.fabric.plugins.{place}")
        return getattr(module, name)(*args, **settings)

    return call
