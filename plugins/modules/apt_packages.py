#!/usr/bin/python
# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: apt_packages
short_description: Install and hold given versions of packages from their own repositories
version_added: 0.1.0
description:
  - Adds repositories and their keys, installs the requested versions of packages and holds them, in one call.
  - Needs only apt, dpkg and Python on the host. Recommended packages are not installed.
  - Waits for other programs that hold apt's locks, and finishes an interrupted installation.
  - apt reads no list while two of them name the same repository with different keys. An entry of another list that
    names a repository of O(repositories) is therefore commented out, with a warning; M(ipu.fabric.host_reset) restores
    it. An entry that offers more than the repository here is an error. If apt can't read its lists afterwards, all
    files are restored.
  - Uses no network in check mode, or when everything is already present. The exception is an expired key. It is fetched
    again, since vendors renew their keys under the same fingerprint, with a warning while the URL has no newer one.
author:
  - ipu.fabric contributors (@ipu-fabric)
extends_documentation_fragment:
  - ipu.fabric.proxy
  - ipu.fabric.attributes
  - ipu.fabric.attributes.action
options:
  repositories:
    description:
      - Repositories, by name. Each is written to C(/etc/apt/sources.list.d/NAME.sources), and its key to
        C(/etc/apt/keyrings/NAME.gpg), always in binary form.
      - Each takes C(uri), C(suite) (default V(/), a flat repository), C(components) (separated by spaces), C(key_url)
        (armored or binary; empty if the host's own keyrings have the key), C(key_sha256) (the digest that the served
        key must have), C(key_fingerprint) (the fingerprint of each key in it, separated by commas; not compared if
        there is a digest) and C(trusted) (V(true) accepts unsigned packages; only for a C(file:) URI, for files whose
        digests were checked before).
      - C(key_url) needs C(key_sha256) or C(key_fingerprint). With V(none) as C(key_fingerprint), any key is accepted.
    type: dict
    default: {}
  only:
    description:
      - Whether packages may come only from these repositories. Otherwise the host's own repositories are used too.
    type: bool
    default: false
  packages:
    description: Packages to install.
    type: list
    elements: dict
    default: []
    suboptions:
      name:
        description: Name of the package.
        type: str
        required: true
      version:
        description:
          - Version, in full or only its first parts.
          - V(1.35.4) is satisfied by C(1.35.4-1.1), V(2) by C(2.2.1-1~debian.12~bookworm).
          - Empty is satisfied by any version.
        type: str
        default: ""
      hold:
        description: Keep other runs of apt from changing it.
        type: bool
        default: true
  replaces:
    description:
      - Packages that may be removed because they conflict with O(packages). No others are ever removed.
      - M(ipu.fabric.host_reset) then leaves O(packages) installed, since the host would otherwise lack what it had
        before.
    type: list
    elements: str
    default: []
  keep:
    description: Packages that must not change if they are installed. The module fails if another version is requested.
    type: list
    elements: str
    default: []
  sets_proxy:
    description:
      - Whether O(download_proxy) is set permanently in C(/etc/apt/apt.conf.d), and removed there again if it is empty.
    type: bool
    default: false
  lock_timeout:
    description: Seconds to wait for the locks of apt and dpkg.
    type: int
    default: 300
  timeout:
    description: Seconds after which a command of apt or dpkg is killed, in addition to O(lock_timeout).
    type: int
    default: 1800
"""

EXAMPLES = r"""
- name: Install containerd
  ipu.fabric.apt_packages:
    repositories:
      containerd:
        uri: https://download.docker.com/linux/debian
        suite: bookworm
        components: stable
        key_url: https://download.docker.com/linux/debian/gpg
        key_fingerprint: 9DC858229FC7DD38854AE2D88D81803C0EBFCD88
    packages:
      - name: containerd.io
        version: "2"
"""

RETURN = r"""
versions:
  description:
    - Version of each requested package afterwards. In check mode, the requested version if it is not installed.
  type: dict
  returned: success
  sample: {"containerd.io": "2.2.1-1~debian.12~bookworm"}
"""

from ..module_utils._common.proxy import PROXY
from ..module_utils._common.result import run_module
from ..module_utils._host.apt import apply_packages

PACKAGE_OPTIONS = {
    "name": {"type": "str", "required": True},
    "version": {"type": "str", "default": ""},
    "hold": {"type": "bool", "default": True},
}


def main() -> None:
    run_module(
        {
            "repositories": {"type": "dict", "default": {}},
            "only": {"type": "bool", "default": False},
            "packages": {"type": "list", "elements": "dict", "default": [], "options": PACKAGE_OPTIONS},
            "replaces": {"type": "list", "elements": "str", "default": []},
            "keep": {"type": "list", "elements": "str", "default": []},
            "sets_proxy": {"type": "bool", "default": False},
            "lock_timeout": {"type": "int", "default": 300},
            "timeout": {"type": "int", "default": 1800},
            "download_proxy": PROXY,
        },
        apply_packages,
        hidden=("download_proxy",),
    )


if __name__ == "__main__":
    main()
