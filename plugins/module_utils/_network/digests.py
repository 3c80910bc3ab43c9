# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""SHA-256 digests of what upstream publishes for the releases of the table. A release is missing until it was read."""

from __future__ import annotations

import typing as t

from .._model.stacks import STACKS

CALICO_FILES = {"crds": "operator-crds.yaml", "operator": "tigera-operator.yaml"}  # by part, as in fabric_mirror.calico
# By Calico release, these two: the files in manifests/ at that release's tag.
_CALICO = {
    "3.31.0": (
        "2b2342a6d49e1ec7c43aaa2849e02254a208bdb2dafb4f117b1c6f833dae2234",
        "8ded4500cfe6380832e140d7a36d46aafa6b7c6851466fb98c61c7ac1bf95792",
    ),
    "3.31.1": (
        "a16bf72fd7bb8e69afd2bdb2fd3f75b64ffd111dcaafd41d720a45a1089c48e9",
        "85a0d32952592ec43bac13a4c45b62ae6774d045f60563ecf8a6d861767ed4f8",
    ),
    "3.31.2": (
        "a16bf72fd7bb8e69afd2bdb2fd3f75b64ffd111dcaafd41d720a45a1089c48e9",
        "c0b05a7f074adb266695e4b7e1fe712e2dbccd26f26e3b84e81c4e895d9879bb",
    ),
    "3.31.3": (
        "d6193da8ce442328c1a14d3a3bb7ad89fcaceceac5fb293254095fbf736c2499",
        "23d4b023fd862741b8c0fe068d27cecd18f27edda93ecc6b4433c7faeb2b940e",
    ),
    "3.31.4": (
        "7bb8ed6d44fd89c136b2361909c7d8f0461d162407328282ff3806c874af2d24",
        "44cbcccdfb9e05c5863247d61e7fd9cf83baf7dc2abacf0c04921d8080a863aa",
    ),
    "3.31.5": (
        "6cc851daf33f79497e095276fe448aed9e74b52a9ea8b4cb96dfb1e9b302b5e2",
        "02e1d5fe06735a8cb6bd2e4716e10186ff4f7ead10390a72fdf44af5694a9b42",
    ),
    "3.31.6": (
        "6cc851daf33f79497e095276fe448aed9e74b52a9ea8b4cb96dfb1e9b302b5e2",
        "14689b5b61ad1fbea12c68f0d4367f51f24ad47a2bc453fadb7641fe07d8a438",
    ),
    "3.31.7": (
        "380414d5756e9a1af29ddb1ad70cada07aa344ae7a2680ba7355248621f8adbf",
        "092c10b3d0cb73617aca51367ca59755348f4647e6d2e63fa4e5b81266203214",
    ),
    "3.32.0": (
        "d9fe9189f1003ea80d93fb4776bfbadfffa42a470909cd2494a0003197cb1a9a",
        "e48fe027f8be3d9136a012a32450f1eabc4c5257c0b76083cd1ab32316637d47",
    ),
    "3.32.1": (
        "192f8b2d934ef24b62e86b7e1a6e1762d1c8af26a916f78057bc13fa5ed60f71",
        "f18e073794207d372606bc3ea6f8fd73972f86d6828f4ba666dfe0d4aa8ab07f",
    ),
    "3.32.2": (
        "cb46786692404fb7955c6d31329c667d0dd8f1ff4821dc7869d0156c93d3a859",
        "4e372754e4e1c3a61cf7c0ceb9bc9fff2f78aa6575dcadcb5ea4e716bb00dffa",
    ),
}
# Packed charts, as `helm pull` saves them and as their repository's index lists them; by name and release without v.
_CHARTS = {
    "gpu-operator-26.3.3": "59abb5852a24b3ae0ef757bfea3051f419acbf559ee5efd72f0672d28af56a68",
    "ipu-operator-1.1.0": "91be441e368416717a088cad7a62043dc4243d7619e8bf8145d0f67522b2e397",
    "ipu-operator-1.2.0": "266bd9e337185f3b4e46b7a455d1488f0514081c4da2ce8463407389eb8d6d97",
    **{f"{row.release}-{release}": sha256 for row in STACKS.values() for release, sha256 in row.charts.items()},
}
# Archives of Helm by file name, as in the .sha256sum next to them.
_HELM = {
    "helm-v3.22.0-linux-amd64.tar.gz": "1e4ab49e429626cf6c6958d914248b78c9730803c2751b87627e171dc800e7bb",
    "helm-v3.22.0-linux-arm64.tar.gz": "f14e804dfee240f55525b667488fe9adca349e63e00c9af634c0beb1421ac310",
}
# Archives of cri-dockerd by file name. Its publisher gives no digests: these are kubespray's, which installs it too.
_CRI_DOCKERD = {
    "cri-dockerd-0.3.26.amd64.tgz": "87f31c964d974cdce9c883c79b69e355c3c323e51d3a7d36cda140e6df7b8d5a",
    "cri-dockerd-0.3.26.arm64.tgz": "d33e46e0d7ce28b22fdf7fa6327961cf0220ec3814fd7cc482f8cb77e7fd986a",
    "cri-dockerd-0.3.25.amd64.tgz": "adb9b9785dc10fe49107f5d9e6a62c4271d268a214b9813f5dce251afc9d78ff",
    "cri-dockerd-0.3.25.arm64.tgz": "7eda6e815ed80ddf28095587038a8c48cb9af2060f7b45f9d8e68603c42caa67",
}
CRI_DOCKERD_KNOWN = ("0.3.26", "0.3.25")
# The publishers' own repositories, the roles' default sources of charts.
PUBLISHERS = (
    "https://helm-charts.graphcore.ai",
    "https://helm.ngc.nvidia.com/nvidia",
    *(stack.repository for stack in STACKS.values() if stack.repository),
    "oci://ghcr.io/k8snetworkplumbingwg",
)
# The names that helm_release and the roles kubernetes and helm look up: a chart, calico-RELEASE/FILE, or an archive.
DIGESTS: t.Dict[str, str] = {
    **_CHARTS,
    **_HELM,
    **_CRI_DOCKERD,
    **{f"calico-{release}/operator-crds.yaml": crds for release, (crds, _operator) in _CALICO.items()},
    **{f"calico-{release}/tigera-operator.yaml": operator for release, (_crds, operator) in _CALICO.items()},
}


def chart_key(chart: str, version: str) -> str:
    """The name of a chart's release in the table and in a site's variables."""
    return f"{chart}-{version.lstrip('v')}"


def known_digest(name: str) -> str:
    """The SHA-256 of what upstream publishes under this name; empty if the table lacks it."""
    return DIGESTS.get(name, "")


def chart_digest(chart: str, version: str) -> str:
    """The SHA-256 of a chart's release; empty if the table lacks it."""
    return known_digest(chart_key(chart, version))
