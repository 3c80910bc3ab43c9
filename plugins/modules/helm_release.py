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
    only if they differ. What a chart generates again in each run, such as a certificate, is no change.
  - Applies the CustomResourceDefinitions of the chart, and of its subcharts in use, before C(helm) runs; C(helm) itself
    never upgrades one.
  - Recovers a release that a killed run left pending. If it is so recent that a C(helm), here or on another machine,
    may still be working on it, waits for that first.
  - Uninstalls only releases that it has installed or upgraded. A release that somebody else installed is an error.
  - A Deployment, DaemonSet or StatefulSet that names a Secret of the same chart is rolled out again when that Secret
    changes.
  - Values go to C(helm) in a file that only its owner can read. They may contain secrets, so they appear in neither
    logs nor results, and diffs only say which of their texts change.
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
    description: Namespace of the release. It is created if it is missing.
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
      - An V(oci://) URL is a folder of charts in a registry, an absolute path a directory of charts named
        V(NAME-VERSION.tgz).
    type: str
    default: ""
  chart_version:
    description: Version of the chart. Needed with O(state=present).
    type: str
    default: ""
  chart_sha256:
    description:
      - SHA-256 of the packed chart, as C(sha256sum) prints it. A repository's index has it as C(digest); in a registry
        it is the digest of the chart's layer.
      - Compared before anything is read from the chart. Empty accepts whatever the source sends.
    type: str
    default: ""
  values:
    description: Values of the chart. The release gets only these; values of earlier revisions are not kept.
    type: dict
    default: {}
  images:
    description:
      - Images to use instead of others, by the image that the chart renders.
      - For images that no value of the chart sets. Hooks of the chart are not touched.
    type: dict
    default: {}
  image_digests:
    description:
      - Digests by image, V(sha256:) and 64 digits by the name with its tag, as the chart renders the image or O(images)
        replaces it.
      - Other images stay as they are.
    type: dict
    default: {}
  tolerations:
    description: Tolerations for pods without any, for charts that have no value for them.
    type: list
    elements: dict
    default: []
  crds:
    description:
      - Whether to apply the CustomResourceDefinitions of the chart.
      - Those of multus and of SR-IOV operators, which several charts contain, are left alone with a warning if somebody
        else has written them.
    type: bool
    default: true
  take_ownership:
    description: Whether to adopt objects that exist already and belong to no release.
    type: bool
    default: false
  renew:
    description: A certificate that the chart generates and that an upgrade must renew before it expires.
    type: dict
    suboptions:
      secret:
        description: Name of the Secret with the certificate. The first of its certificates to expire counts.
        type: str
        required: true
      days:
        description: How many days before it expires the certificate is renewed.
        type: int
        default: 30
  hooks:
    description: Whether hooks of the chart run when it is uninstalled. Some delete objects of others.
    type: bool
    default: true
  binary:
    description: The C(helm) program.
    type: path
    default: helm
  timeout:
    description:
      - Seconds that the hooks of the chart, and a removal, may take. A C(helm) that takes a minute longer is killed.
      - A pending release that is older than this counts as left behind.
    type: int
    default: 300
  state:
    description: Whether the release should exist.
    type: str
    choices: [present, absent]
    default: present
"""

EXAMPLES = r"""
- name: Install the IPU operator
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
  description: Whether C(helm) installed or upgraded the release, or would do so.
  returned: success
  type: bool
  sample: true
certificate_end:
  description: When the certificate of O(renew) expires, as it was before this run. Empty if there was none.
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
