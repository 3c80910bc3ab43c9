# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The proxy of apt and containerd. Its URL may have a password in it: then only root reads these files."""

from __future__ import annotations

import os
import re
import typing as t

from ansible_collections.ipu.fabric.plugins.module_utils._common.result import FabricError
from ansible_collections.ipu.fabric.plugins.module_utils._host.files import File, Files, read_file, write_file

if t.TYPE_CHECKING:
    from ansible.module_utils.basic import AnsibleModule

CONTAINERD = "/etc/containerd/proxy.env"
APT = "/etc/apt/apt.conf.d/90-ipu-fabric-proxy"
URL = re.compile(r"https?://[^\s\"\\]+")


# How these look as they are written here. Others of these names stay when there is no proxy any more.
APT_TEXT = re.compile(r"// Written by the role kubernetes of ipu\.fabric\.\n[\s\S]*")
CONTAINERD_TEXT = re.compile(r'(?:(?:HTTP|HTTPS|NO)_PROXY="[^"\n]*"\n)+')


def is_plain_host(word: str) -> bool:
    """Whether this is one host, which apt can be told about: no domain, network or port."""
    return not word.startswith((".", "*")) and "/" not in word and not re.search(r"^[^:]*:\d+$", word)


def apt_text(http: str, https: str, no_proxy: t.Sequence[str]) -> str:
    """apt.conf: the proxy, and hosts that are reached without it."""
    lines = ["// Written by the role kubernetes of ipu.fabric."]
    for scheme, url in (("http", http), ("https", https)):
        if url:
            lines.append(f'Acquire::{scheme}::Proxy "{url}";')
            lines += [f'Acquire::{scheme}::Proxy::{host} "DIRECT";' for host in no_proxy if is_plain_host(host)]
    return "\n".join(lines) + "\n"


def environment_text(http: str, https: str, no_proxy: t.Sequence[str]) -> str:
    """An environment file of systemd."""
    values = {"HTTP_PROXY": http, "HTTPS_PROXY": https, "NO_PROXY": ",".join(no_proxy)}
    return "".join(f'{name}="{value}"\n' for name, value in values.items() if value)


def wanted_files(http: str, https: str, no_proxy: t.Sequence[str]) -> Files:
    """Both files, or none of them."""
    for url in (http, https):
        if url and not URL.fullmatch(url):
            raise FabricError(
                "A proxy is a URL.",
                "kubernetes_proxy (fabric_proxy)",
                "a value that does not begin with http:// or https://, or has a space, a quote or a backslash in it",
                "Write http://proxy.site:3128, with special characters of a password as %XX.",
                code="invalid-input",
            )
    if not (http or https):
        return {APT: None, CONTAINERD: None}
    mode = "0600" if "@" in http + https else "0644"
    return {
        APT: File(content=apt_text(http, https, no_proxy), mode=mode),
        CONTAINERD: File(content=environment_text(http, https, no_proxy), mode="0600"),
    }


def apply_proxy(module: AnsibleModule) -> t.Dict[str, object]:
    """The body of M(ipu.fabric.host_proxy). No diff: it would show the URL."""
    params = module.params
    after = wanted_files(params["http"] or "", params["https"] or "", params["no_proxy"])
    before = {path: read_file(path) for path in after}
    for path, file in before.items():
        ours = file and any(text.fullmatch(file["content"]) for text in (APT_TEXT, CONTAINERD_TEXT))
        if not after[path] and not ours:
            after[path] = file
    changed = sorted(path for path in after if before[path] != after[path])
    for path in [] if module.check_mode else changed:
        file = after[path]
        if file is None:
            os.remove(path)
        else:
            write_file(module, path, file["content"], file["mode"])
    return {"changed": bool(changed), "files": changed}
