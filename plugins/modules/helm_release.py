#!/usr/bin/python
# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: helm_release
short_description: Install, upgrade or remove a Helm release
version_added: 0.1.0
description:
  - Compares chart, version, values, images and tolerations with the release that the cluster records, and runs C(helm)
    only when they differ. What a chart generates each time, like a certificate, is no change.
  - Applies the CustomResourceDefinitions of the chart, and of its subcharts in use, before C(helm) runs; C(helm) itself
    never upgrades one.
  - A release that a killed run left pending is taken up again. Where it is so young that a C(helm) may still be at work
    on it, here or on another machine, that one is waited for.
  - Uninstalls only what it has installed or upgraded. A release that somebody else installed is an error.
  - A Deployment, DaemonSet or StatefulSet that names a Secret of the same chart is rolled when that Secret changes.
  - Values go to C(helm) in a file that only its owner can read. They may hold secrets, so neither logs nor results have
    them, and diffs only say which of their texts change.
author: ipu.fabric contributors (@ipu-fabric)
extends_documentation_fragment:
  - kubernetes.core.k8s_auth_options
  - ipu.fabric.api
  - ipu.fabric.proxy
  - ipu.fabric.attributes
  - ipu.fabric.attributes.action
requirements:
  - helm 3, from 3.17
  - cryptography
options:
  name:
    description: Name of the release.
    type: str
    required: true
  namespace:
    description: Namespace of the release. It is created when it is missing.
    type: str
    required: true
  namespace_labels:
    description: Labels that the namespace needs.
    type: dict
    default: {}
  chart:
    description:
      - Name of a chart in O(chart_repo_url), an V(oci://) reference, the URL of a packed chart, or a path.
      - Needed with O(state=present).
    type: str
    default: ""
  chart_repo_url:
    description:
      - URL of the chart repository. It is used directly; no repository is added or refreshed.
      - An V(oci://) URL is a folder of charts in a registry, an absolute path one of charts as V(NAME-VERSION.tgz).
    type: str
    default: ""
  chart_version:
    description: Version of the chart. Needed with O(state=present).
    type: str
    default: ""
  chart_sha256:
    description:
      - SHA-256 of the packed chart, as C(sha256sum) says it. It is the C(digest) in the index of a repository, and in a
        registry that of the chart's layer.
      - Compared before anything is read from the chart. Empty takes whatever the source sends.
    type: str
    default: ""
  values:
    description: Values of the chart. They are all that the release gets; values of earlier revisions are not kept.
    type: dict
    default: {}
  images:
    description:
      - Images to use in place of others, by the image that the chart renders.
      - For images that no value of the chart sets. Hooks of the chart are not touched.
    type: dict
    default: {}
  image_digests:
    description:
      - Digests by image, V(sha256:) and 64 digits by the name with its tag, as the chart renders it or O(images) has
        it.
      - Images that are not in it stay as they are.
    type: dict
    default: {}
  tolerations:
    description: Tolerations for pods that the chart gives none, for charts without a value for them.
    type: list
    elements: dict
    default: []
  crds:
    description:
      - Whether to apply the CustomResourceDefinitions of the chart.
      - Those of multus and of SR-IOV operators, which several charts bring along, are left alone with a warning where
        somebody else has written them.
    type: bool
    default: true
  take_ownership:
    description: Whether to adopt objects that exist already and belong to no release.
    type: bool
    default: false
  renew:
    description: A certificate that the chart generates, and that an upgrade has to renew before it ends.
    type: dict
    suboptions:
      secret:
        description: Name of the Secret with the certificate. The first of its certificates to end counts.
        type: str
        required: true
      days:
        description: Days before its end at which the certificate is renewed.
        type: int
        default: 30
  hooks:
    description: Whether hooks of the chart run when it is uninstalled. Some delete what others have.
    type: bool
    default: true
  binary:
    description: The C(helm) program.
    type: path
    default: helm
  timeout:
    description:
      - Seconds that the hooks of the chart, and a removal, may take. A C(helm) that takes a minute longer is ended.
      - After that time, too, a pending release counts as left behind.
    type: int
    default: 300
  state:
    description: Whether the release is wanted.
    type: str
    choices: [present, absent]
    default: present
"""

EXAMPLES = r"""
- name: The IPU operator
  ipu.fabric.helm_release:
    kubeconfig: artifacts/admin.conf
    name: ipu-operator
    namespace: ipu-operator
    chart: ipu-operator
    chart_repo_url: https://helm-charts.graphcore.ai/
    chart_version: 1.2.0
    values:
      global:
        vipuControllers: "10.5.0.20:8090:vipu-ctrl=vctl1"
    images:
      gcr.io/kubebuilder/kube-rbac-proxy:v0.8.0: registry.k8s.io/kubebuilder/kube-rbac-proxy:v0.8.0
    renew:
      secret: ipu-operator-admission
  delegate_to: localhost
  run_once: true
"""

RETURN = r"""
upgraded:
  description: Whether C(helm) installed or upgraded the release, or would.
  returned: success
  type: bool
  sample: true
certificate_end:
  description: When the certificate of O(renew) ended or ends, as it was before this run. Empty when there was none.
  returned: success
  type: str
  sample: "2027-11-21T10:00:00+00:00"
"""

from ..module_utils._common.proxy import PROXY
from ..module_utils._common.result import Runner, run_module
from ..module_utils._kube.client import arguments
from ..module_utils._kube.helm import manage_release

RENEW = {
    "secret": {"type": "str", "required": True, "no_log": False},
    "days": {"type": "int", "default": 30},
}


def main(run: Runner = run_module) -> None:
    spec = arguments(
        name={"type": "str", "required": True},
        namespace={"type": "str", "required": True},
        namespace_labels={"type": "dict", "default": {}},
        chart={"type": "str", "default": ""},
        chart_repo_url={"type": "str", "default": ""},
        chart_version={"type": "str", "default": ""},
        chart_sha256={"type": "str", "default": ""},
        values={"type": "dict", "default": {}},
        image_digests={"type": "dict", "default": {}},
        images={"type": "dict", "default": {}},
        tolerations={"type": "list", "elements": "dict", "default": []},
        crds={"type": "bool", "default": True},
        take_ownership={"type": "bool", "default": False},
        hooks={"type": "bool", "default": True},
        renew={"type": "dict", "options": RENEW},
        binary={"type": "path", "default": "helm"},
        timeout={"type": "int", "default": 300},
        download_proxy=PROXY,
        state={"type": "str", "choices": ["present", "absent"], "default": "present"},
    )
    run(
        spec,
        manage_release,
        libraries=("jmespath", "cryptography"),
        hidden=("values", "download_proxy"),
        required_if=[("state", "present", ("chart", "chart_version"))],
    )


if __name__ == "__main__":
    main()
