# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The proxy of apt and containerd. Its URL may contain a password, and then only root can read these files."""

from __future__ import annotations

import os
import re
import typing as t

from .._common.result import FabricError
from .files import File, read_file, write_file

if t.TYPE_CHECKING:
    from ansible.module_utils.basic import AnsibleModule

CONTAINERD = "/etc/containerd/proxy.env"
APT = "/etc/apt/apt.conf.d/90-ipu-fabric-proxy"
URL = re.compile(r"https?://[^\s\"\\]+")


# The text of these files as written here. Files that look different are not ours, and stay when there is no proxy.
APT_TEXT = re.compile(r"// Written by the role kubernetes of ipu\.fabric\.\n[\s\S]*")
CONTAINERD_TEXT = re.compile(r'(?:(?:HTTP|HTTPS|NO)_PROXY="[^"\n]*"\n)+')


def is_plain_host(word: str) -> bool:
    """Whether this is a single host, the only kind apt can exclude: no domain, network or port."""
    return not word.startswith((".", "*")) and "/" not in word and not re.search(r"^[^:]*:\d+$", word)


def apt_text(http: str, https: str, no_proxy: t.Sequence[str]) -> str:
    """apt.conf: the proxy, and hosts that are reached directly."""
    lines = ["// Written by the role kubernetes of ipu.fabric."]
    for scheme, url in (("http", http), ("https", https)):
        if url:
            lines.append(f'Acquire::{scheme}::Proxy "{url}";')
            lines += [f'Acquire::{scheme}::Proxy::{host} "DIRECT";' for host in no_proxy if is_plain_host(host)]
    return "\n".join(lines) + "\n"


def environment_text(http: str, https: str, no_proxy: t.Sequence[str]) -> str:
    """A systemd environment file."""
    values = {"HTTP_PROXY": http, "HTTPS_PROXY": https, "NO_PROXY": ",".join(no_proxy)}
    return "".join(f'{name}="{value}"\n' for name, value in values.items() if value)


class Proxy(t.TypedDict, total=False):
    """A proxy as configured by the site."""

    http: t.Optional[str]  # URLs
    https: t.Optional[str]
    no_proxy: t.Optional[t.List[str]]


def has_proxy(proxy: Proxy) -> bool:
    """Whether a proxy is configured; FabricError if it is not a URL."""
    urls = list(filter(None, (proxy.get("http"), proxy.get("https"))))
    if not all(URL.fullmatch(url) for url in urls):
        raise FabricError(
            "A proxy must be a URL.",
            "kubernetes_proxy (fabric_proxy)",
            "a value that does not begin with http:// or https://, or has a space, a quote or a backslash in it",
            "Write http://proxy.site:3128, with special characters of a password as %XX.",
            code="invalid-input",
        )
    return bool(urls)


def set_apt_proxy(module: AnsibleModule, proxy: Proxy) -> bool:
    """Configure apt's proxy, or remove ours; returns whether that changed anything. No diff: it would show the URL."""
    there = read_file(APT)
    wanted: t.Optional[File]
    if has_proxy(proxy):
        http, https = proxy.get("http") or "", proxy.get("https") or ""
        content = apt_text(http, https, proxy.get("no_proxy") or [])
        wanted = File(content=content, mode="0600" if "@" in http + https else "0644")
    else:
        wanted = None if there and APT_TEXT.fullmatch(there["content"]) else there
    if wanted != there and not module.check_mode:
        if wanted:
            write_file(module, APT, wanted["content"], wanted["mode"])
        else:
            os.remove(APT)
    return wanted != there
