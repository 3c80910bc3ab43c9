# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A proxy of a module, whose URLs may have a password in them.

It is an option: Ansible puts the environment of a task on a command line, which -vvv and `ps` show.
"""

from __future__ import annotations

import os
import typing as t

PROXY: t.Dict[str, t.Any] = {
    "type": "dict",
    "default": {},
    "options": {
        "http": {"type": "str", "default": ""},
        "https": {"type": "str", "default": ""},
        "no_proxy": {"type": "list", "elements": "str", "default": []},
    },
}


def proxy_variables(proxy: t.Mapping[str, t.Any]) -> t.Dict[str, str]:
    """The variables that tell programs of it; none without a proxy."""
    urls = {"http_proxy": proxy.get("http") or "", "https_proxy": proxy.get("https") or ""}
    if not any(urls.values()):
        return {}
    variables = {**urls, "no_proxy": ",".join(proxy.get("no_proxy") or [])}
    return {**variables, **{name.upper(): value for name, value in variables.items()}}


def use_proxy(proxy: t.Mapping[str, t.Any]) -> None:
    """For all that this process downloads, and for the programs that it starts."""
    os.environ.update(proxy_variables(proxy))
