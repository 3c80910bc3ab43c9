# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The proxy of a module, whose URLs may contain a password.

It is an option, since Ansible puts the environment of a task on a command line, which -vvv and `ps` show.
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
    """The proxy's environment variables for programs; none without a proxy."""
    urls = {"http_proxy": proxy.get("http") or "", "https_proxy": proxy.get("https") or ""}
    if not any(urls.values()):
        return {}
    variables = {**urls, "no_proxy": ",".join(proxy.get("no_proxy") or [])}
    return {**variables, **{name.upper(): value for name, value in variables.items()}}


def use_proxy(proxy: t.Mapping[str, t.Any]) -> None:
    """Set the proxy for all downloads of this process, and for programs that it starts."""
    os.environ.update(proxy_variables(proxy))
