# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Writes a mapping as TOML."""

from __future__ import annotations

import json
import re
import typing as t

from ansible.errors import AnsibleFilterError

DOCUMENTATION = r"""
name: to_toml
short_description: Write a mapping as TOML
version_added: 0.1.0
author: ipu.fabric contributors (@ipu-fabric)
description:
  - Writes nested mappings as tables, in the order of their keys. Enough for configuration files such as containerd's.
options:
  _input:
    description: The mapping. Values are strings, numbers, booleans, lists of those, and mappings.
    type: dict
    required: true
"""

EXAMPLES = r"""
- name: Show a configuration
  ansible.builtin.debug:
    msg: "{{ {'version': 3, 'debug': {'level': 'info'}} | ipu.fabric.to_toml }}"
"""

RETURN = r"""
_value:
  description: The text.
  type: str
"""


def format_key(name: object) -> str:
    """A key, quoted unless it is a bare word."""
    return str(name) if re.fullmatch(r"[A-Za-z0-9_-]+", str(name)) else json.dumps(str(name), ensure_ascii=False)


def format_value(item: object, where: str) -> str:
    """A value. TOML's strings, numbers and booleans are written as JSON's."""
    if isinstance(item, (list, tuple)):
        return "[" + ", ".join(format_value(part, where) for part in item) + "]"
    if isinstance(item, (str, bool, int, float)):
        return json.dumps(item, ensure_ascii=False)
    raise AnsibleFilterError(f"to_toml: {where} is a {type(item).__name__}, which TOML can't express.")


def format_table(mapping: t.Mapping[str, object], path: t.Tuple[str, ...] = ()) -> t.List[str]:
    """The lines of a table, and after them those of the tables in it."""
    own = {name: item for name, item in mapping.items() if not isinstance(item, t.Mapping)}
    inner = {name: item for name, item in mapping.items() if isinstance(item, t.Mapping)}
    lines = [
        f"{format_key(name)} = {format_value(item, '.'.join((*path, format_key(name))))}"
        for name, item in sorted(own.items())
    ]
    if path and (lines or not inner):
        lines.insert(0, f"\n[{'.'.join(path)}]")
    for name, item in sorted(inner.items()):
        lines += format_table(item, (*path, format_key(name)))
    return lines


def to_toml(mapping: object) -> str:
    if not isinstance(mapping, t.Mapping):
        raise AnsibleFilterError(f"to_toml takes a mapping, not a {type(mapping).__name__}.")
    return "\n".join(format_table(mapping)).lstrip("\n") + "\n"


class FilterModule:
    def filters(self) -> t.Dict[str, t.Callable[[object], str]]:
        return {"to_toml": to_toml}
