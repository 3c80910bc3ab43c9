#!/usr/bin/python
# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: bundle
short_description: Write everything that a plan installs into one directory
version_added: 0.1.0
description:
  - Fetches packages with their dependencies, images, charts, manifests and Helm, and writes a list of them with their
    digests.
  - apt checks the packages with the keys of their repositories. The packages of each platform become a repository.
  - Each image becomes an archive of its own, under the name that pods use.
  - Complete files are not fetched again. An interrupted run continues where it stopped.
  - Removes only files that belonged to an earlier bundle in the directory.
author:
  - ipu.fabric contributors (@ipu-fabric)
extends_documentation_fragment:
  - ipu.fabric.proxy
  - ipu.fabric.attributes
  - ipu.fabric.attributes.action
requirements:
  - apt and dpkg, of Debian or Ubuntu
  - skopeo, from 1.9
  - helm 3, from 3.17
  - PyYAML
  - jmespath
  - cryptography
options:
  path:
    description: The directory.
    type: path
    required: true
  releases:
    description: Releases of the plan, as in its key RV(ipu.fabric.fabric_plan#module:plan).
    type: dict
    required: true
  platforms:
    description:
      - Platforms of the hosts, each as distribution, release and architecture, such as V(debian-bookworm-amd64).
    type: list
    elements: str
    required: true
  repositories:
    description:
      - apt repositories as M(ipu.fabric.apt_packages) takes them. C({distribution}), C({release}), C({architecture})
        and C({minor}) are replaced.
    type: dict
    default: {}
  distributions:
    description:
      - Repositories of each distribution, by its name. A key C(keyring) is a file of this machine.
    type: dict
    default: {}
  packages:
    description: Packages, each with C(name) and C(version), as M(ipu.fabric.apt_packages) takes them.
    type: list
    elements: dict
    default: []
  image_repository:
    description: Repository that kubeadm pulls its images from. Empty for its default.
    type: str
    default: ""
  images:
    description: Images besides those of kubeadm, charts and manifests.
    type: list
    elements: str
    default: []
  skip_images:
    description: Images to leave out.
    type: list
    elements: str
    default: []
  charts:
    description:
      - Charts, each with C(name) of its release, C(chart), C(repo), C(version), C(sha256) of the packed chart or empty,
        C(namespace), C(values), and C(images) that replace others. The charts are rendered to find the images that they
        need.
      - Values may contain secrets, so they appear in neither logs nor results.
    type: list
    elements: dict
    default: []
  manifests:
    description: Manifests by name, each with C(url) and C(checksum), which is V(sha256:DIGEST) or empty.
    type: dict
    default: {}
  helm:
    description: Helm's archive, with C(url) and C(checksum), which may be the URL of a list of digests.
    type: dict
    required: true
  registry:
    description: A registry that mirrors all others and is tried first.
    type: str
    default: ""
  helm_binary:
    description: The C(helm) program.
    type: path
    default: helm
  timeout:
    description: Seconds that one download may take.
    type: int
    default: 3600
"""

EXAMPLES = r"""
- name: Fetch everything for these hosts
  ipu.fabric.bundle:
    path: /media/bundle
    releases: "{{ fabric_plan.releases }}"
    platforms: [debian-bookworm-amd64]
    helm:
      url: https://get.helm.sh/helm-v3.22.0-linux-amd64.tar.gz
      checksum: sha256:https://get.helm.sh/helm-v3.22.0-linux-amd64.tar.gz.sha256sum
"""

RETURN = r"""
fetched:
  description: Files that were fetched.
  returned: success
  type: list
  elements: str
  sample: [charts/network-operator-26.7.1.tgz]
removed:
  description: Files of a former bundle that were removed.
  returned: success
  type: list
  elements: str
  sample: []
always:
  description: Images of containers with C(imagePullPolicy=Always), which do not start without a registry.
  returned: success
  type: list
  elements: str
  sample: []
"""

from ..module_utils._bundle.build import make_bundle
from ..module_utils._common.proxy import PROXY
from ..module_utils._common.result import run_module


def main() -> None:
    run_module(
        {
            "path": {"type": "path", "required": True},
            "releases": {"type": "dict", "required": True},
            "platforms": {"type": "list", "elements": "str", "required": True},
            "repositories": {"type": "dict", "default": {}},
            "distributions": {"type": "dict", "default": {}},
            "packages": {"type": "list", "elements": "dict", "default": []},
            "image_repository": {"type": "str", "default": ""},
            "images": {"type": "list", "elements": "str", "default": []},
            "skip_images": {"type": "list", "elements": "str", "default": []},
            "charts": {"type": "list", "elements": "dict", "default": []},
            "manifests": {"type": "dict", "default": {}},
            "helm": {"type": "dict", "required": True},
            "registry": {"type": "str", "default": ""},
            "helm_binary": {"type": "path", "default": "helm"},
            "timeout": {"type": "int", "default": 3600},
            "download_proxy": PROXY,
        },
        make_bundle,
        libraries=("yaml", "cryptography", "jmespath"),
        hidden=("charts", "download_proxy"),
    )


if __name__ == "__main__":
    main()
