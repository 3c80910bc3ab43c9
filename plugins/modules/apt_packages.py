#!/usr/bin/python
# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: apt_packages
short_description: Install packages at a version from their own repositories, and hold them
version_added: 0.1.0
description:
  - Adds repositories with their keys, installs packages at the version asked for, and holds them, in one call.
  - Needs nothing on the host but apt, dpkg and Python. Recommended packages are left out.
  - Waits for other programs that hold the locks of apt, and finishes an installation that was interrupted.
  - apt reads nothing while two lists name one repository with different keys. An entry of another list that names a
    repository of O(repositories) is therefore commented out, with a warning; M(ipu.fabric.host_reset) gives it back.
    One that offers more than the repository here is an error. If apt can't read its lists afterwards, all files get
    their former content.
  - Uses no network when everything is present already, and in check mode. But a key that has expired is fetched again,
    since vendors renew theirs under the same fingerprint; there is a warning while the URL has no other.
author:
  - ipu.fabric contributors (@ipu-fabric)
extends_documentation_fragment:
  - ipu.fabric.proxy
  - ipu.fabric.attributes
  - ipu.fabric.attributes.action
options:
  repositories:
    description:
      - Repositories, by name. Each is written to C(/etc/apt/sources.list.d/NAME.sources), its key to
        C(/etc/apt/keyrings/NAME.gpg), in binary form, whichever way it is served.
      - Keys of each are C(uri), C(suite) (default V(/), a flat repository), C(components) (with spaces between),
        C(key_url) (armored or binary; empty when the host's own keyrings know the key), C(key_sha256) (the digest
        that the served key must have), C(key_fingerprint) (that of each key in it, several with commas between; not
        compared when there is a digest) and C(trusted) (V(true) takes packages without a signature; only for a C(file:)
        URI, for files whose digests were checked before).
      - C(key_url) needs C(key_sha256) or C(key_fingerprint). With V(none) as C(key_fingerprint) any key is taken.
    type: dict
    default: {}
  only:
    description: Whether packages may come from these repositories alone. Otherwise also from all that the host has.
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
          - Version, whole or only its first parts.
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
      - Packages that may be removed because they can't be there beside O(packages). No other is ever removed.
      - M(ipu.fabric.host_reset) then leaves O(packages) on the host, which would lack what it had before.
    type: list
    elements: str
    default: []
  keep:
    description: Packages that may not change where they are installed. Where another version is asked for, it fails.
    type: list
    elements: str
    default: []
  sets_proxy:
    description: Whether apt gets O(download_proxy) for good, in C(/etc/apt/apt.conf.d), and without one loses it again.
    type: bool
    default: false
  lock_timeout:
    description: Seconds to wait for the locks of apt and dpkg.
    type: int
    default: 300
  timeout:
    description: Seconds that one command of apt or dpkg may take, besides O(lock_timeout). It is ended then.
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
  description: Version of each asked package afterwards. In check mode the one asked for, if it is not there.
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
