# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which releases work together, as tables, and how a plan chooses among them."""

from __future__ import annotations

import re
import typing as t

from .._common.findings import Findings
from .._model.plan import Image, Releases
from .._model.settings import Settings
from .._model.stacks import STACKS
from .broken_pairs import check_pairs

Version = t.Tuple[int, ...]

CNIS = ("calico", "flannel", "none")
# Releases of Calico, and the operator release in each one's manifest.
CALICOS = {
    "3.31.0": "1.40.0",
    "3.31.1": "1.40.1",
    "3.31.2": "1.40.2",
    "3.31.3": "1.40.3",
    "3.31.4": "1.40.7",
    "3.31.5": "1.40.8",
    "3.31.6": "1.40.13",
    "3.31.7": "1.40.15",
    "3.32.0": "1.42.0",
    "3.32.1": "1.42.3",
    "3.32.2": "1.42.6",
}
# The newest Kubernetes that Calico's makers test each line with. Newer ones may work.
# https://docs.tigera.io/calico/latest/getting-started/kubernetes/requirements
CALICO_KUBERNETES: t.Dict[Version, Version] = {(3, 31): (1, 35), (3, 32): (1, 36), (3, 33): (1, 37)}


class CalicoImages(t.NamedTuple):
    """Images that Calico's operator runs on Linux for the role kubernetes' Installation, in quay.io/calico."""

    names: t.Tuple[str, ...]
    elsewhere: t.Tuple[str, ...] = ()  # those that do not run on every host

    @property
    def on_hosts(self) -> t.List[str]:
        return [name for name in self.names if name not in self.elsewhere]


# By the first line with each set. Since 3.33, calico/calico replaces most of them; standard CNI plugins have an image.
_CALICO_IMAGES: t.Dict[Version, CalicoImages] = {
    (3, 31): CalicoImages(
        ("node", "cni", "typha", "kube-controllers", "pod2daemon-flexvol", "csi", "node-driver-registrar"),
        ("typha", "kube-controllers"),
    ),
    (3, 33): CalicoImages(("node", "calico", "third-party-cni-plugins")),
}
# The releases of flannel and of its CNI plugin, as in the defaults of the role kubernetes.
# Documentation/kube-flannel.yml at the release's tag contains both.
FLANNEL = ("v0.28.10", "v1.9.1-flannel3")
IPU_OPERATORS = ("1.1.0", "1.2.0")
# Installed separately with network operators that do not bring whereabouts.
WHEREABOUTS = "0.9.4"
# Since 25.10, the vGPU licence is in a Secret.
GPU_OPERATORS = ("25.10.0", "25.10.1", "26.3.0", "26.3.1", "26.3.2", "26.3.3", "26.7.0")
# The vendor's range of Kubernetes on most distributions, as its page showed it at the end of each line.
# https://docs.nvidia.com/datacenter/cloud-native/gpu-operator/latest/platform-support.html
GPU_KUBERNETES: t.Dict[Version, t.Tuple[Version, Version]] = {
    (25, 10): ((1, 30), (1, 35)),
    (26, 3): ((1, 32), (1, 36)),
    (26, 7): ((1, 33), (1, 36)),
}


class NotKnown(t.NamedTuple):
    """A published release that this collection can't install yet."""

    lacks: str  # what is not published anywhere
    source: str  # where the release is announced


_MANIFESTS, _CALICO_TAG = "digests of its manifests", "https://github.com/projectcalico/calico/releases/tag/v"
NOT_KNOWN: t.Dict[str, t.Dict[str, NotKnown]] = {
    "Calico": {
        "3.32.4": NotKnown(f"{_MANIFESTS}, and the release of its operator", f"{_CALICO_TAG}3.32.4"),
        "3.33.0": NotKnown(_MANIFESTS, f"{_CALICO_TAG}3.33.0"),
        "3.33.1": NotKnown(_MANIFESTS, f"{_CALICO_TAG}3.33.1"),
    },
    "GPU operator": {
        "26.7.1": NotKnown(
            "which Kubernetes its vendor supports, and a digest of its chart",
            "https://docs.nvidia.com/run-ai/self-hosted/documentation/installation-and-configuration/support-matrix",
        )
    },
    "network operator": {
        "26.10.0": NotKnown(
            "which Kubernetes its vendor supports, its chart and its definitions",
            "https://docs.nvidia.com/networking/display/kubernetes26100/",
        )
    },
    "Spiderpool": {
        "1.2.3": NotKnown(
            "its chart's values and definitions, and a digest of it",
            "https://github.com/spidernet-io/spiderpool/releases/tag/v1.2.3",
        )
    },
}
# The pause image that kubeadm of each minor release uses; for others, kubeadm itself is asked.
PAUSE = {31: "3.10", 32: "3.10", 33: "3.10", 34: "3.10.1", 35: "3.10.1", 36: "3.10.2", 37: "3.10.2"}
# The role kubernetes writes kubeadm v1beta4 (1.31 and later); newer minor releases are not tested yet.
KUBERNETES = ((1, 31), (1, 37))


class NetworkOperator(t.NamedTuple):
    """A line of releases: the newest one, the vendor's range of Kubernetes, and images that have their own versions.

    kernel_before: the first kernel on which its device plugin offers no RoCE NIC; () if there is none.
    """

    newest: str
    kubernetes: t.Tuple[Version, Version]
    images: t.Dict[str, str]
    kernel_before: Version = ()


def _own_images(rdma: str, plugins: str, multus: str, whereabouts: str, nv_ipam: str = "") -> t.Dict[str, str]:
    """Images before 25.7, when each component had its own version, in its own registry."""
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
    "ipoib": "nvcr.io/nvidia/mellanox/ipoib-cni",
    "sriovDevicePlugin": "nvcr.io/nvidia/mellanox/sriov-network-device-plugin",
}
# Since this release, all images are in one registry. With earlier ones, the collection supports only macvlan.
OTHER_TYPES = (25, 7)
# Device plugins before 1.5.2 need a device file issm*, which Linux creates only for InfiniBand since this release.
NO_ISSM = (6, 11)
_24_1_PLUGIN = "sha-fe7f371c7e1b8315bf900f71cd25cfc1251dc775"

# From the vendor's platform support pages and from release.yaml at each tag.
NETWORK_OPERATORS: t.Dict[Version, NetworkOperator] = {
    (1, 3): NetworkOperator(
        "1.3.0", ((1, 17), (1, 24)), _own_images("v1.3.2", "v0.8.7-amd64", "v3.8", "v0.5.2-amd64"), NO_ISSM
    ),
    (1, 4): NetworkOperator(
        "1.4.0", ((1, 21), (1, 25)), _own_images("v1.3.2", "v0.8.7-amd64", "v3.8", "v0.5.2-amd64"), NO_ISSM
    ),
    (23, 1): NetworkOperator(
        "23.1.0", ((1, 21), (1, 26)), _own_images("v1.3.2", "v0.8.7-amd64", "v3.8", "v0.5.4-amd64"), NO_ISSM
    ),
    (23, 4): NetworkOperator(
        "23.4.0", ((1, 21), (1, 27)), _own_images("v1.3.2", "v1.2.0-amd64", "v3.9.3", "v0.6.1-amd64"), NO_ISSM
    ),
    (23, 5): NetworkOperator(
        "23.5.0", ((1, 21), (1, 27)), _own_images("v1.3.2", "v1.2.0-amd64", "v3.9.3", "v0.6.1-amd64"), NO_ISSM
    ),
    (23, 7): NetworkOperator(
        "23.7.0", ((1, 21), (1, 27)), _own_images("v1.3.2", "v1.2.0-amd64", "v3.9.3", "v0.6.1-amd64", "v0.0.3"), NO_ISSM
    ),
    (24, 1): NetworkOperator(
        "24.1.1", ((1, 24), (1, 28)), _own_images(_24_1_PLUGIN, "v1.3.0", "v3.9.3", "v0.6.2", "v0.1.2"), NO_ISSM
    ),
    (24, 4): NetworkOperator(
        "24.4.1", ((1, 27), (1, 29)), _own_images("v1.4.0", "v1.3.0", "v3.9.3", "v0.7.0", "v0.1.2"), NO_ISSM
    ),
    (24, 7): NetworkOperator(
        "24.7.0", ((1, 27), (1, 30)), _own_images("v1.5.1", "v1.5.0", "v3.9.3", "v0.7.0", "v0.2.0"), NO_ISSM
    ),
    (24, 10): NetworkOperator(
        "24.10.1", ((1, 27), (1, 30)), _own_images("v1.5.2", "v1.5.0", "v4.1.0", "v0.7.0", "v0.2.0")
    ),
    (25, 1): NetworkOperator(
        "25.1.0", ((1, 27), (1, 31)), _own_images("v1.5.2", "v1.5.0", "v4.1.0", "v0.7.0", "v0.2.0")
    ),
    (25, 4): NetworkOperator(
        "25.4.0", ((1, 29), (1, 32)), _own_images("v1.5.3", "v1.6.2-update.1", "v4.1.0", "v0.7.0", "v0.3.7")
    ),
    (25, 7): NetworkOperator("25.7.0", ((1, 29), (1, 32)), _SHARED),
    (25, 10): NetworkOperator("25.10.0", ((1, 30), (1, 34)), _SHARED),
    (26, 1): NetworkOperator("26.1.2", ((1, 31), (1, 35)), _SHARED),
    (26, 4): NetworkOperator("26.4.2", ((1, 31), (1, 35)), _SHARED),
    (26, 7): NetworkOperator("26.7.1", ((1, 32), (1, 37)), _SHARED),
}
# Lines with several releases. A release missing from the table is treated as its line, with a warning.
_PATCHES: t.Dict[Version, t.Tuple[str, ...]] = {
    (24, 1): ("24.1.0", "24.1.1"),
    (24, 4): ("24.4.0", "24.4.1"),
    (24, 7): ("24.7.0", "24.7.1"),
    (24, 10): ("24.10.0", "24.10.1"),
    (26, 1): ("26.1.0", "26.1.1", "26.1.2"),
    (26, 4): ("26.4.0", "26.4.1", "26.4.2"),
    (26, 7): ("26.7.0", "26.7.1"),
}
# The release that introduced each feature, and the first one without it.
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
    "keep_policy_hook": ((26, 7), ()),
    "global": ((26, 4), ()),
    "node_policies": ((26, 4), ()),
}


def parse(version: str) -> Version:
    """1.35.4 -> (1, 35, 4), without a leading v and anything after the numbers; () unless there are three numbers."""
    match = re.match(r"v?(\d+)\.(\d+)\.(\d+)(?:[-+].*)?$", version.strip())
    return tuple(int(number) for number in match.groups()) if match else ()


def show(version: Version) -> str:
    return ".".join(str(number) for number in version)


def features(line: Version) -> t.Dict[str, bool]:
    """The features of a release line."""
    return {name: first <= line and (not last or line < last) for name, (first, last) in _FEATURES.items()}


def kernel_before(version: str) -> Version:
    """The first kernel on which a network operator's device plugin offers no RoCE NIC; () if there is none."""
    operator = NETWORK_OPERATORS.get(parse(version)[:2])
    return operator.kernel_before if operator else ()


def components(version: str, ipam: str, types: t.Collection[str] = ()) -> t.Dict[str, Image]:
    """The images of a NicClusterPolicy, in its format; types: those of the networks."""
    line = parse(version)[:2]
    own = ipam == "whereabouts" and features(line)["whereabouts"]
    unused = {"ipamPlugin": not own, "nvIpam": ipam != "nv-ipam"}
    unused.update(ipoib="ipoib" not in types, sriovDevicePlugin="host_device" not in types)
    images: t.Dict[str, Image] = {}
    for name, image in NETWORK_OPERATORS[line].images.items():
        if not unused.get(name):
            path, _colon, tag = image.partition(":")
            repository, base = path.rsplit("/", 1)
            images[name] = {"repository": repository, "image": base, "version": tag or f"network-operator-v{version}"}
    return images


def pod_network(cni: str, calico: str) -> t.Tuple[str, t.List[str]]:
    """The tag of a pod network, and its images: those on nodes, and those of its operator."""
    if cni == "flannel":
        images = zip(("flannel", "flannel-cni-plugin"), FLANNEL)
        return FLANNEL[0], [f"ghcr.io/flannel-io/{image}:{tag}" for image, tag in images]
    operator = CALICOS.get(calico.lstrip("v")) if cni == "calico" else None
    if not operator:
        return "", []
    tag = f"v{calico.lstrip('v')}"
    return tag, [f"quay.io/tigera/operator:v{operator}", *calico_images(tag)]


def calico_parts(version: str) -> CalicoImages:
    """The images of a Calico release, which may be missing from the table."""
    line = parse(version)[:2]
    return _CALICO_IMAGES[max((first for first in _CALICO_IMAGES if first <= line), default=min(_CALICO_IMAGES))]


def calico_images(tag: str) -> t.List[str]:
    """The images that Calico's operator runs."""
    return [f"quay.io/calico/{name}:{tag}" for name in calico_parts(tag).names]


def operators_for(minor: Version, ipam: str) -> t.List[str]:
    """The releases with this IPAM whose vendor supports this Kubernetes, newest first."""
    fit = [
        line
        for line, operator in NETWORK_OPERATORS.items()
        if operator.kubernetes[0] <= minor <= operator.kubernetes[1] and _supports_ipam(line, ipam)
    ]
    return [NETWORK_OPERATORS[line].newest for line in sorted(fit, reverse=True)]


def _supports_ipam(line: Version, ipam: str) -> bool:
    """Whether a release works with an IPAM: its own, or whereabouts installed separately."""
    return ipam in ("auto", "whereabouts") or (ipam == "nv-ipam" and features(line)["nv_ipam_exclusions"])


def choose_releases(settings: Settings, findings: Findings, offered: t.Sequence[str] = ()) -> Releases:
    """The releases of a plan. A finding about releases that don't work together names the nearest that do.

    offered: Kubernetes releases in the site's package repositories, as far as they were reported.
    """
    kubernetes = _check_kubernetes(settings, offered, findings)
    releases: Releases = {
        "kubernetes": settings.kubernetes_version.lstrip("v"),
        "stack": settings.stack,
        "spiderpool": "",
        "gpu_operator": "",
        "network_operator": settings.network_operator_version.lstrip("v"),
        "ipu_operator": settings.ipu_operator_version.lstrip("v"),
        "cni": settings.cni if settings.manage_kubernetes else "none",
        "cni_version": "",
        "cni_images": [],
        "pause": PAUSE.get(kubernetes[1], "") if kubernetes else "",
        "ipam": "",
        "whereabouts": "",
        "whereabouts_standalone": False,
        "features": {},
        "components": {},
    }
    if settings.manage_kubernetes:
        _check_cni(settings, findings)
        releases["cni_version"], releases["cni_images"] = pod_network(settings.cni, settings.calico_version)
    _check_ipu_operator(settings, findings)
    if settings.gpu and settings.gpu_operator_version:
        _check_known("GPU operator", "gpu-operator-version", settings.gpu_operator_version, GPU_OPERATORS, findings)
        releases["gpu_operator"] = settings.gpu_operator_version.lstrip("v")
        _check_gpu_range(settings, kubernetes, findings)
        check_pairs(settings, findings)
    if not settings.networks:
        _check_ofed(settings, findings, "there is no fabric network", "plan one (fabric_networks)")
        return {**releases, "stack": "", "network_operator": ""}
    _check_stack(settings, findings)
    if settings.stack == "spiderpool":
        _check_spiderpool(settings, findings)
        return {
            **releases,
            "network_operator": "",
            "spiderpool": settings.spiderpool_version.lstrip("v"),
            "ipam": "spiderpool",
        }
    line = _network_operator_line(settings, kubernetes, findings)
    if line:
        if kubernetes:
            _check_range(settings, line, kubernetes, offered, findings)
        releases["ipam"] = _choose_ipam(settings, line, kubernetes, findings)
        releases["features"] = features(line)
        if releases["ipam"] == "whereabouts" and not releases["features"]["whereabouts"]:
            releases["whereabouts"], releases["whereabouts_standalone"] = WHEREABOUTS, True
        types = {str(entry.get("type")) for entry in settings.networks if isinstance(entry, dict)}
        releases["components"] = components(releases["network_operator"], releases["ipam"], types)
    return releases


def newest_of(offered: t.Iterable[str], low: Version, high: Version) -> str:
    """The newest of these releases whose minor release is in the range; empty: none is."""
    return max((release for release in offered if low <= parse(release)[:2] <= high), key=parse, default="")


def such_as(minor: Version, offered: t.Iterable[str]) -> str:
    """An example of a Kubernetes release that the site's repositories have: a mirror may have no other."""
    example = newest_of(offered, minor, minor)
    return f", such as {example}" if example else ""


def _check_kubernetes(settings: Settings, offered: t.Sequence[str], findings: Findings) -> Version:
    """The minor release; () if the version is not valid."""
    version = parse(settings.kubernetes_version)
    low, high = KUBERNETES
    best = parse(newest_of(offered, low, high))[:2]
    if not version:
        findings.error(
            "kubernetes-version",
            [],
            "The Kubernetes version is not valid.",
            f"fabric_kubernetes_version is '{settings.kubernetes_version}'",
            "Set fabric_kubernetes_version to all three numbers of a release"
            f"{such_as(best, offered) or ' (https://kubernetes.io/releases lists them)'}.",
        )
    elif settings.manage_kubernetes and not low <= version[:2] <= high:
        nearest = best or (low if version[:2] < low else high)
        findings.error(
            "kubernetes-version",
            [],
            "The role kubernetes does not know this Kubernetes version.",
            f"fabric_kubernetes_version is {settings.kubernetes_version}; known are {show(low)} to {show(high)}",
            f"Set fabric_kubernetes_version to a release of {show(nearest)}{such_as(nearest, offered)}.",
        )
    return version[:2]


def _check_cni(settings: Settings, findings: Findings) -> None:
    if settings.cni not in CNIS:
        seen, step = f"fabric_cni is '{settings.cni}'", f"Set fabric_cni to {', '.join(CNIS[:-1])} or {CNIS[-1]}."
        findings.error("cni", [], "There is no such pod network.", seen, step)
    if settings.cni == "calico":
        _check_known("Calico", "calico-version", settings.calico_version, tuple(CALICOS), findings)
        if not findings.has_error("kubernetes-version"):
            _check_calico_range(settings, findings)


def _check_stack(settings: Settings, findings: Findings) -> None:
    if settings.stack not in STACKS:
        seen, step = f"fabric_stack is '{settings.stack}'", f"Set fabric_stack to {' or '.join(STACKS)}."
        findings.error("stack", [], "There is no such stack for fabric networks.", seen, step)


def _check_calico_range(settings: Settings, findings: Findings) -> None:
    kubernetes, line = parse(settings.kubernetes_version)[:2], parse(settings.calico_version)[:2]
    newest = CALICO_KUBERNETES.get(line, kubernetes)
    if kubernetes > newest:
        fit = [release for release in CALICOS if kubernetes <= CALICO_KUBERNETES[parse(release)[:2]]]
        findings.warning(
            "calico-version",
            [],
            f"Calico {show(line)} is not tested with Kubernetes {show(kubernetes)} by its makers.",
            f"the newest that they test it with is {show(newest)}",
            f"Set fabric_calico_version to {fit[-1]}."
            if fit
            else "Nothing, if you have tested it: no release of the table is tested with this Kubernetes.",
        )


def _check_gpu_range(settings: Settings, kubernetes: Version, findings: Findings) -> None:
    line = parse(settings.gpu_operator_version)[:2]
    low, high = GPU_KUBERNETES.get(line, (kubernetes, kubernetes))
    if kubernetes and not low <= kubernetes <= high:
        fit = [
            release
            for release in GPU_OPERATORS
            if GPU_KUBERNETES[parse(release)[:2]][0] <= kubernetes <= GPU_KUBERNETES[parse(release)[:2]][1]
        ]
        findings.warning(
            "gpu-operator-version",
            [],
            f"GPU operator {show(line)} is not supported with Kubernetes {show(kubernetes)} by its vendor.",
            f"its vendor supports {show(low)} to {show(high)}",
            f"Set fabric_gpu_operator_version to {fit[-1]}."
            if fit
            else "Nothing, if you have tested it: no release of the table is supported with this Kubernetes.",
        )


def _check_ipu_operator(settings: Settings, findings: Findings) -> None:
    if settings.ipu and settings.ipu_operator_version.lstrip("v") not in IPU_OPERATORS:
        findings.error(
            "ipu-operator-version",
            [],
            "This IPU operator release is not in the table.",
            f"fabric_ipu_operator_version is '{settings.ipu_operator_version}'; known are {', '.join(IPU_OPERATORS)}"
            " of Graphcore's chart repository. Earlier ones, such as 1.0.3, came as a tarball",
            f"Set fabric_ipu_operator_version to {IPU_OPERATORS[-1]}, or to {IPU_OPERATORS[0]} for a cluster that has"
            " it. To keep an operator from a tarball as it is, set fabric_ipu to false.",
        )


def _check_spiderpool(settings: Settings, findings: Findings) -> None:
    if settings.ipam not in ("auto", "spiderpool"):
        seen = f"fabric_ipam is '{settings.ipam}', fabric_stack is spiderpool"
        findings.error("ipam", [], "Spiderpool is its own IPAM.", seen, "Set fabric_ipam to auto.")
    _check_known(
        "Spiderpool", "spiderpool-version", settings.spiderpool_version, tuple(STACKS["spiderpool"].charts), findings
    )
    _check_ofed(settings, findings, "fabric_stack is spiderpool", "set fabric_stack to network_operator")


def _check_ofed(settings: Settings, findings: Findings, why: str, instead: str) -> None:
    if settings.ofed:
        findings.error(
            "ofed",
            [],
            "Only the network operator has a driver container: the hosts keep the driver that they have.",
            f"fabric_ofed is set, but {why}",
            f"Install MLNX_OFED or DOCA on the hosts, and set fabric_ofed to {{}}; or {instead}.",
        )


def _check_known(what: str, check: str, version: str, known: t.Sequence[str], findings: Findings) -> None:
    if version.lstrip("v") not in known:
        variable = f"fabric_{check.replace('-', '_')}"
        findings.error(
            check,
            [],
            f"There is no such {what} release in the table.",
            f"{variable} is '{version}'; known are {', '.join(known)}{_not_known(what, version)}",
            f"Set {variable} to {known[-1]}.",
        )


def _not_known(what: str, version: str) -> str:
    """Why a published release is missing from the table."""
    found = NOT_KNOWN.get(what, {}).get(version.lstrip("v"))
    return f". {version.lstrip('v')} has come out, but this collection does not know {found.lacks}" if found else ""


def _network_operator_line(settings: Settings, kubernetes: Version, findings: Findings) -> Version:
    """The line of releases; () if there is none."""
    version = settings.network_operator_version
    line = parse(version)[:2]
    known = [operator.newest for operator in NETWORK_OPERATORS.values()]
    if line not in NETWORK_OPERATORS:
        fit = operators_for(kubernetes, settings.ipam) or operators_for(kubernetes, "auto")
        best = f"Set fabric_network_operator_version to {fit[0] if fit else known[-1]}."
        findings.error(
            "network-operator-version",
            [],
            "There is no such network operator release in the table.",
            f"fabric_network_operator_version is '{version}'; known are {known[0]} to {known[-1]}"
            + _not_known("network operator", version),
            best,
        )
        return ()
    operator = NETWORK_OPERATORS[line]
    if version.lstrip("v") not in _PATCHES.get(line, (operator.newest,)):
        findings.warning(
            "release-table",
            [],
            f"Network operator {version} is not in the table; it is treated as {operator.newest}.",
            f"the newest of this line in the table is {operator.newest}",
            f"Check that the chart exists, or set fabric_network_operator_version to {operator.newest}.",
        )
    return line


def _check_range(
    settings: Settings, line: Version, kubernetes: Version, offered: t.Sequence[str], findings: Findings
) -> None:
    low, high = NETWORK_OPERATORS[line].kubernetes
    if low <= kubernetes <= high or findings.has_error("kubernetes-version"):
        return
    nearest = low if kubernetes < low else high
    fit = operators_for(kubernetes, settings.ipam) or operators_for(kubernetes, "auto")
    steps = [f"set fabric_network_operator_version to {release}" for release in fit[:1]]
    if not settings.manage_kubernetes:
        if kubernetes < low:  # a cluster can't be downgraded
            steps.append(f"take the cluster to Kubernetes {show(nearest)} with what manages it")
    elif KUBERNETES[0] <= nearest <= KUBERNETES[1]:
        steps.append(f"set fabric_kubernetes_version to a release of {show(nearest)}{such_as(nearest, offered)}")
    step = ", or ".join(steps) or "no release fits: the vendor supports none with this Kubernetes"
    findings.error(
        "kubernetes-range",
        [],
        f"Network operator {settings.network_operator_version} does not support Kubernetes {show(kubernetes)}.",
        f"its vendor supports {show(low)} to {show(high)}",
        f"{step[0].upper()}{step[1:]}.",
    )


def _choose_ipam(settings: Settings, line: Version, kubernetes: Version, findings: Findings) -> str:
    ipam, usual = settings.ipam, "whereabouts" if features(line)["whereabouts"] else "nv-ipam"
    if ipam == "auto":
        return usual
    if ipam not in ("nv-ipam", "whereabouts"):
        findings.error(
            "ipam",
            [],
            "There is no such IPAM.",
            f"fabric_ipam is '{ipam}'",
            "Set fabric_ipam to auto, nv-ipam or whereabouts.",
        )
        return usual
    if not _supports_ipam(line, ipam):
        fit = operators_for(kubernetes, ipam)
        instead = f", or fabric_network_operator_version to {fit[0]}" if fit else ""
        findings.error(
            "ipam",
            [],
            f"Network operator {settings.network_operator_version} does not work with {ipam}.",
            "its nv-ipam can't exclude addresses (24.7 and later can)",
            f"Set fabric_ipam to whereabouts or auto{instead}.",
        )
    return ipam
