# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which releases go together, as tables, and the choice among them."""

from __future__ import annotations

import re
import typing as t

from ansible_collections.ipu.fabric.plugins.module_utils._common.findings import Findings

Version = t.Tuple[int, ...]
Image = t.Dict[str, str]

CNIS = {"calico": "v3.32.1", "flannel": "v0.28.4", "none": ""}
IPU_OPERATORS = ("1.1.0", "1.2.0")
# Network operators without whereabouts go with one that is installed on its own.
WHEREABOUTS = "0.9.4"
# What makes the fabric networks.
STACKS = ("network_operator", "spiderpool")
SPIDERPOOLS = ("1.2.0", "1.2.1", "1.2.2")
# From 25.10 on the licence of vGPU is a Secret.
GPU_OPERATORS = ("25.10.0", "25.10.1", "26.3.0", "26.3.1", "26.3.2", "26.3.3", "26.7.0")
# The pause image that kubeadm of each minor names; others are asked from kubeadm itself.
PAUSE = {31: "3.10", 32: "3.10", 33: "3.10", 34: "3.10.1", 35: "3.10.1", 36: "3.10.2", 37: "3.10.2"}
# The role kubernetes writes kubeadm v1beta4 (1.31 and later); newer minors are not tried yet.
KUBERNETES = ((1, 31), (1, 37))


class NetworkOperator(t.NamedTuple):
    """A line of releases: the newest one, the vendor's range of Kubernetes, and where images had their own versions."""

    newest: str
    kubernetes: t.Tuple[Version, Version]
    images: t.Dict[str, str]
    released: bool = True


def _own(rdma: str, plugins: str, multus: str, whereabouts: str, nv_ipam: str = "") -> t.Dict[str, str]:
    """Before 25.7 each component had its own version, in its own registry."""
    cloud = "nvcr.io/nvidia/cloud-native" if rdma == "v1.3.2" else "ghcr.io/mellanox"
    images = {
        "rdmaSharedDevicePlugin": f"{cloud}/k8s-rdma-shared-dev-plugin:{rdma}",
        "cniPlugins": f"ghcr.io/k8snetworkplumbingwg/plugins:{plugins}",
        "multus": f"ghcr.io/k8snetworkplumbingwg/multus-cni:{multus}",
        "ipamPlugin": f"ghcr.io/k8snetworkplumbingwg/whereabouts:{whereabouts}",
    }
    if nv_ipam:
        images["nvIpam"] = f"ghcr.io/mellanox/nvidia-k8s-ipam:{nv_ipam}"
    return images


_SHARED = {
    "rdmaSharedDevicePlugin": "nvcr.io/nvidia/mellanox/k8s-rdma-shared-dev-plugin",
    "cniPlugins": "nvcr.io/nvidia/mellanox/plugins",
    "multus": "nvcr.io/nvidia/mellanox/multus-cni",
    "ipamPlugin": "nvcr.io/nvidia/mellanox/whereabouts",
    "nvIpam": "nvcr.io/nvidia/mellanox/nvidia-k8s-ipam",
}
_24_1_PLUGIN = "sha-fe7f371c7e1b8315bf900f71cd25cfc1251dc775"

# From the vendor's platform support pages and the release.yaml of each tag.
NETWORK_OPERATORS: t.Dict[Version, NetworkOperator] = {
    (1, 3): NetworkOperator("1.3.0", ((1, 17), (1, 24)), _own("v1.3.2", "v0.8.7-amd64", "v3.8", "v0.5.2-amd64")),
    (1, 4): NetworkOperator("1.4.0", ((1, 21), (1, 25)), _own("v1.3.2", "v0.8.7-amd64", "v3.8", "v0.5.2-amd64")),
    (23, 1): NetworkOperator("23.1.0", ((1, 21), (1, 26)), _own("v1.3.2", "v0.8.7-amd64", "v3.8", "v0.5.4-amd64")),
    (23, 4): NetworkOperator("23.4.0", ((1, 21), (1, 27)), _own("v1.3.2", "v1.2.0-amd64", "v3.9.3", "v0.6.1-amd64")),
    (23, 5): NetworkOperator("23.5.0", ((1, 21), (1, 27)), _own("v1.3.2", "v1.2.0-amd64", "v3.9.3", "v0.6.1-amd64")),
    (23, 7): NetworkOperator(
        "23.7.0", ((1, 21), (1, 27)), _own("v1.3.2", "v1.2.0-amd64", "v3.9.3", "v0.6.1-amd64", "v0.0.3")
    ),
    (24, 1): NetworkOperator("24.1.1", ((1, 24), (1, 28)), _own(_24_1_PLUGIN, "v1.3.0", "v3.9.3", "v0.6.2", "v0.1.2")),
    (24, 4): NetworkOperator("24.4.1", ((1, 27), (1, 29)), _own("v1.4.0", "v1.3.0", "v3.9.3", "v0.7.0", "v0.1.2")),
    (24, 7): NetworkOperator("24.7.0", ((1, 27), (1, 30)), _own("v1.5.1", "v1.5.0", "v3.9.3", "v0.7.0", "v0.2.0")),
    (24, 10): NetworkOperator("24.10.1", ((1, 27), (1, 30)), _own("v1.5.2", "v1.5.0", "v4.1.0", "v0.7.0", "v0.2.0")),
    (25, 1): NetworkOperator("25.1.0", ((1, 27), (1, 31)), _own("v1.5.2", "v1.5.0", "v4.1.0", "v0.7.0", "v0.2.0")),
    (25, 4): NetworkOperator(
        "25.4.0", ((1, 29), (1, 32)), _own("v1.5.3", "v1.6.2-update.1", "v4.1.0", "v0.7.0", "v0.3.7")
    ),
    (25, 7): NetworkOperator("25.7.0", ((1, 29), (1, 32)), _SHARED),
    (25, 10): NetworkOperator("25.10.0", ((1, 30), (1, 34)), _SHARED),
    (26, 1): NetworkOperator("26.1.2", ((1, 31), (1, 35)), _SHARED),
    (26, 4): NetworkOperator("26.4.1", ((1, 31), (1, 35)), _SHARED),
    (26, 7): NetworkOperator("26.7.0", ((1, 32), (1, 37)), _SHARED, released=False),
}
# Lines with more than one release. One that is in no table is treated as its line, with a warning.
_PATCHES: t.Dict[Version, t.Tuple[str, ...]] = {
    (24, 1): ("24.1.0", "24.1.1"),
    (24, 4): ("24.4.0", "24.4.1"),
    (24, 7): ("24.7.0", "24.7.1"),
    (24, 10): ("24.10.0", "24.10.1"),
    (26, 1): ("26.1.0", "26.1.1", "26.1.2"),
    (26, 4): ("26.4.0", "26.4.1"),
}
# The release that brought each feature, and the first one without it.
_FEATURES: t.Dict[str, t.Tuple[Version, Version]] = {
    "deploy_cr": ((1, 3), (24, 10)),
    "policy_updates": ((23, 4), ()),
    "upgrade_crds": ((23, 5), ()),
    "tolerations": ((23, 7), ()),
    "nfd_rules": ((23, 7), ()),
    "nv_ipam": ((23, 7), ()),
    "container_resources": ((24, 1), ()),
    "cni_bin_directory": ((24, 1), ()),
    "nv_ipam_exclusions": ((24, 7), ()),
    "cni_network_directory": ((25, 7), ()),
    "whereabouts": ((1, 3), (25, 10)),
    "whereabouts_ranges": ((23, 4), ()),
    "restarts_plugins": ((26, 1), ()),
    "global": ((26, 4), ()),
}


def parse(version: str) -> Version:
    """1.35.4 -> (1, 35, 4); a leading v and what follows the numbers do not count; () if there are no three numbers."""
    match = re.match(r"v?(\d+)\.(\d+)\.(\d+)(?:[-+].*)?$", version.strip())
    return tuple(int(number) for number in match.groups()) if match else ()


def show(version: Version) -> str:
    return ".".join(str(number) for number in version)


def features(line: Version) -> t.Dict[str, bool]:
    """What a release of this line can do."""
    return {name: first <= line and (not last or line < last) for name, (first, last) in _FEATURES.items()}


def components(version: str, ipam: str) -> t.Dict[str, Image]:
    """The images of a NicClusterPolicy, in its own words."""
    line = parse(version)[:2]
    own = ipam == "whereabouts" and features(line)["whereabouts"]
    unused = {"ipamPlugin": not own, "nvIpam": ipam != "nv-ipam"}
    found = {}
    for name, image in NETWORK_OPERATORS[line].images.items():
        if not unused.get(name):
            path, _colon, tag = image.partition(":")
            repository, base = path.rsplit("/", 1)
            found[name] = {"repository": repository, "image": base, "version": tag or f"network-operator-v{version}"}
    return found


def operators_for(minor: Version, ipam: str) -> t.List[str]:
    """The releases whose vendor supports this Kubernetes and that have this IPAM, newest first."""
    fit = [
        line
        for line, operator in NETWORK_OPERATORS.items()
        if operator.kubernetes[0] <= minor <= operator.kubernetes[1] and _has(line, ipam)
    ]
    fit.sort(key=lambda line: (NETWORK_OPERATORS[line].released, line), reverse=True)
    return [NETWORK_OPERATORS[line].newest for line in fit]


def _has(line: Version, ipam: str) -> bool:
    """Whether a release goes with an IPAM: its own, or whereabouts beside it."""
    return ipam in ("auto", "whereabouts") or (ipam == "nv-ipam" and features(line)["nv_ipam_exclusions"])


def _kubernetes(version: str, managed: bool, found: Findings) -> Version:
    parsed = parse(version)
    low, high = KUBERNETES
    if not parsed:
        found.error(
            "kubernetes-version",
            [],
            "The Kubernetes version can't be read.",
            f"fabric_kubernetes_version is '{version}'",
            f"Write all three numbers, for example {show(high)}.0 or 1.35.4.",
        )
    elif managed and not low <= parsed[:2] <= high:
        nearest = low if parsed[:2] < low else high
        found.error(
            "kubernetes-version",
            [],
            "The role kubernetes does not know this Kubernetes version.",
            f"fabric_kubernetes_version is {version}; known are {show(low)} to {show(high)}",
            f"Take a release of {show(nearest)}, the nearest one.",
        )
    return parsed[:2]


def _operator_line(version: str, kubernetes: Version, ipam: str, found: Findings) -> Version:
    line = parse(version)[:2]
    known = [operator.newest for operator in NETWORK_OPERATORS.values()]
    if line not in NETWORK_OPERATORS:
        fit = operators_for(kubernetes, ipam) or operators_for(kubernetes, "auto")
        best = f"For Kubernetes {show(kubernetes)} take {fit[0]}." if fit else f"Take one of {', '.join(known)}."
        found.error(
            "network-operator-version",
            [],
            "There is no such network operator release.",
            f"fabric_network_operator_version is '{version}'; known are {known[0]} to {known[-1]}",
            best,
        )
        return ()
    operator = NETWORK_OPERATORS[line]
    if not operator.released:
        found.warning(
            "prerelease",
            [],
            f"Network operator {show(line)} was a release candidate when this table was made.",
            f"fabric_network_operator_version is {version}",
            "Check that its chart is there, or take an older release.",
        )
    elif version.lstrip("v") not in _PATCHES.get(line, (operator.newest,)):
        found.warning(
            "release-table",
            [],
            f"Network operator {version} is not in the table; it is treated as {operator.newest}.",
            f"the newest of this line in the table is {operator.newest}",
            f"Check that the chart exists, or take {operator.newest}.",
        )
    return line


def _range(version: str, line: Version, kubernetes: Version, ipam: str, found: Findings) -> None:
    low, high = NETWORK_OPERATORS[line].kubernetes
    if low <= kubernetes <= high:
        return
    nearest = low if kubernetes < low else high
    fit = operators_for(kubernetes, ipam) or operators_for(kubernetes, "auto")
    instead = f", or network operator {fit[0]}" if fit else ""
    found.error(
        "kubernetes-range",
        [],
        f"Network operator {version} is not made for Kubernetes {show(kubernetes)}.",
        f"its vendor supports {show(low)} to {show(high)}",
        f"Take Kubernetes {show(nearest)}.x{instead}.",
    )


def _choose_ipam(line: Version, version: str, kubernetes: Version, ipam: str, found: Findings) -> str:
    able = features(line)
    if ipam == "auto":
        return "whereabouts" if able["whereabouts"] else "nv-ipam"
    if ipam not in ("nv-ipam", "whereabouts"):
        found.error(
            "ipam", [], "There is no such IPAM.", f"fabric_ipam is '{ipam}'", "Write auto, nv-ipam or whereabouts."
        )
    elif not _has(line, ipam):
        fit = operators_for(kubernetes, ipam)
        instead = f", or take network operator {fit[0]}" if fit else ""
        found.error(
            "ipam",
            [],
            f"Network operator {version} does not go with {ipam}.",
            "its nv-ipam can't exclude addresses (24.7 and later can)",
            f"Set fabric_ipam to whereabouts or auto{instead}.",
        )
    return ipam


def _known(what: str, check: str, version: str, table: t.Sequence[str], found: Findings) -> str:
    """A release that has to be in its table."""
    if version.lstrip("v") not in table:
        variable = f"fabric_{check.replace('-', '_')}"
        found.error(
            check,
            [],
            f"There is no such {what} release in the table.",
            f"{variable} is '{version}'; known are {', '.join(table)}",
            f"Take {table[-1]}.",
        )
    return version.lstrip("v")


def _spiderpool(version: str, ipam: str, found: Findings) -> t.Dict[str, t.Any]:
    """What a plan says of releases with Spiderpool in the network operator's place."""
    if ipam not in ("auto", "spiderpool"):
        seen = f"fabric_ipam is '{ipam}', fabric_stack is spiderpool"
        found.error("ipam", [], "Spiderpool deals addresses by itself.", seen, "Set fabric_ipam to auto.")
    known = _known("Spiderpool", "spiderpool-version", version, SPIDERPOOLS, found)
    return {"network_operator": "", "spiderpool": known, "ipam": "spiderpool"}


def resolve(
    kubernetes: str,
    network_operator: str,
    ipu_operator: str,
    ipam: str,
    cni: str,
    found: Findings,
    managed: bool = True,
    stack: str = "network_operator",
    spiderpool: str = "",
    gpu_operator: str = "",
) -> t.Dict[str, t.Any]:
    """The releases of a plan. What can't work together goes into `found`, each with the nearest that does."""
    minor = _kubernetes(kubernetes, managed, found)
    releases: t.Dict[str, t.Any] = {
        "kubernetes": kubernetes.lstrip("v"),
        "stack": stack,
        "spiderpool": "",
        "gpu_operator": "",
        "network_operator": network_operator.lstrip("v"),
        "ipu_operator": ipu_operator.lstrip("v"),
        "cni": cni,
        "cni_version": CNIS.get(cni, ""),
        "pause": PAUSE.get(minor[1], "") if minor else "",
        "ipam": "",
        "whereabouts": "",
        "whereabouts_standalone": False,
        "features": {},
        "components": {},
    }
    if cni not in CNIS:
        found.error("cni", [], "There is no such pod network.", f"fabric_cni is '{cni}'", f"Take {', '.join(CNIS)}.")
    if releases["ipu_operator"] not in IPU_OPERATORS:
        found.error(
            "ipu-operator-version",
            [],
            "There is no such IPU operator release.",
            f"fabric_ipu_operator_version is '{ipu_operator}'",
            f"Take {IPU_OPERATORS[-1]}, or {IPU_OPERATORS[0]} for a cluster that has it.",
        )
    if gpu_operator:
        version = _known("GPU operator", "gpu-operator-version", gpu_operator, GPU_OPERATORS, found)
        releases["gpu_operator"] = version
    if stack not in STACKS:
        seen = f"fabric_stack is '{stack}'"
        found.error("stack", [], "Nothing of this name makes fabric networks.", seen, f"Take {' or '.join(STACKS)}.")
    if stack == "spiderpool":
        return {**releases, **_spiderpool(spiderpool, ipam, found)}
    line = _operator_line(network_operator, minor, ipam, found)
    if line:
        if minor:
            _range(network_operator, line, minor, ipam, found)
        releases["ipam"] = _choose_ipam(line, network_operator, minor, ipam, found)
        releases["features"] = features(line)
        if releases["ipam"] == "whereabouts" and not releases["features"]["whereabouts"]:
            releases.update(whereabouts=WHEREABOUTS, whereabouts_standalone=True)
        releases["components"] = components(releases["network_operator"], releases["ipam"])
    return releases
