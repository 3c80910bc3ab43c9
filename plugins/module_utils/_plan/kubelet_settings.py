# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The kubelet's settings of a site (kubernetes_kubelet_config), before a kubelet refuses or ignores them. Pure."""

from __future__ import annotations

import math
import re
import typing as t

from .._common.findings import Findings
from .._model.observation import HostFacts
from .host_sizes import MIB_IN_GB
from .hosts import PlacedHost
from .names import with_meant

VARIABLE = "kubernetes_kubelet_config"
# Fields of KubeletConfiguration v1beta1 from Kubernetes 1.34 to 1.36 (k8s.io/kubelet, config/v1beta1/types.go).
_NAMES = """
address allowedUnsafeSysctls apiVersion authentication authorization cgroupDriver cgroupRoot cgroupsPerQOS clusterDNS
clusterDomain configMapAndSecretChangeDetectionStrategy containerLogMaxFiles containerLogMaxSize
containerLogMaxWorkers containerLogMonitorInterval containerRuntimeEndpoint contentType cpuCFSQuota cpuCFSQuotaPeriod
cpuManagerPolicy cpuManagerPolicyOptions cpuManagerReconcilePeriod crashLoopBackOff enableContentionProfiling
enableControllerAttachDetach enableDebugFlagsHandler enableDebuggingHandlers enableProfilingHandler enableServer
enableSystemLogHandler enableSystemLogQuery enforceNodeAllocatable eventBurst eventRecordQPS evictionHard
evictionMaxPodGracePeriod evictionMinimumReclaim evictionPressureTransitionPeriod evictionSoft evictionSoftGracePeriod
failCgroupV1 failSwapOn featureGates fileCheckFrequency hairpinMode healthzBindAddress healthzPort httpCheckFrequency
imageGCHighThresholdPercent imageGCLowThresholdPercent imageMaximumGCAge imageMinimumGCAge
imagePullCredentialsVerificationPolicy imageServiceEndpoint iptablesDropBit iptablesMasqueradeBit
kernelMemcgNotification kind kubeAPIBurst kubeAPIQPS kubeletCgroups kubeReserved kubeReservedCgroup
localStorageCapacityIsolation logging makeIPTablesUtilChains maxOpenFiles maxParallelImagePulls maxPods
memoryManagerPolicy memoryReservationPolicy memorySwap memoryThrottlingFactor mergeDefaultEvictionSettings
nodeLeaseDurationSeconds nodeStatusMaxImages nodeStatusReportFrequency nodeStatusUpdateFrequency oomScoreAdj podCIDR
podLogsDir podPidsLimit podsPerCore port preloadedImagesVerificationAllowlist protectKernelDefaults providerID
qosReserved readOnlyPort registerNode registerWithTaints registryBurst registryPullQPS reservedMemory
reservedSystemCPUs resolvConf rotateCertificates runOnce runtimeRequestTimeout seccompDefault serializeImagePulls
serverTLSBootstrap showHiddenMetricsForVersion shutdownGracePeriod shutdownGracePeriodByPodPriority
shutdownGracePeriodCriticalPods singleProcessOOMKill staticPodPath staticPodURL staticPodURLHeader
streamingConnectionIdleTimeout syncFrequency systemCgroups systemReserved systemReservedCgroup tlsCertFile
tlsCipherSuites tlsCurvePreferences tlsMinVersion tlsPrivateKeyFile topologyManagerPolicy topologyManagerPolicyOptions
topologyManagerScope tracing userNamespaces volumePluginDir volumeStatsAggPeriod
"""
FIELDS = frozenset(_NAMES.split())
# Upstream's disk thresholds of a kubelet: a site that sets any of them replaces all.
EVICTION: t.Mapping[str, object] = {"nodefs.available": "10%", "imagefs.available": "15%"}
SIGNALS = (
    *("memory.available", "nodefs.available", "nodefs.inodesFree", "imagefs.available", "imagefs.inodesFree"),
    *("containerfs.available", "containerfs.inodesFree", "pid.available", "allocatableMemory.available"),
)
_UNITS = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12, "Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40}
_THRESHOLD = re.compile(rf"([0-9.]+)(%|{'|'.join(_UNITS)})")


def check_fields(given: t.Mapping[str, object], findings: Findings) -> None:
    """A kubelet ignores an unknown field, and ends at once on an unknown signal: site would wait for it."""
    signals = sorted({*map(str, _thresholds(given))} - {*SIGNALS})
    if signals:
        findings.error(
            "kubelet-config",
            [],
            f"evictionHard in {VARIABLE} has a signal that no kubelet knows: kubelets would not start.",
            ", ".join(signals),
            f"Known signals are {', '.join(SIGNALS)}.",
        )
    fields = sorted({*map(str, given)} - FIELDS)
    if fields:
        findings.warning(
            "kubelet-config",
            [],
            f"{VARIABLE} has a field that kubelets don't know: they ignore it.",
            with_meant(fields, FIELDS),
            "Correct its name, which is case-sensitive, or remove it. Kubernetes after 1.36 may have more fields.",
        )


def _thresholds(given: t.Mapping[str, object]) -> t.Mapping[str, object]:
    hard = given.get("evictionHard")
    return hard if isinstance(hard, dict) else {}


def check_eviction(host: PlacedHost, facts: HostFacts, given: t.Mapping[str, object], findings: Findings) -> None:
    """Below its thresholds a kubelet reports DiskPressure: no pod is placed there, and running ones are evicted.

    Without evictionHard in `given`, the kubelet of a member may have thresholds that nobody here knows.
    """
    member, own = bool(facts["kubelet"]["server"]), _thresholds(given)
    thresholds = own or EVICTION
    for path, total in facts.get("disk_total_mb", {}).items() if own or not member else ():
        free = facts["disk_mb"].get(path, total)
        kept = {signal: _kept_mb(thresholds.get(signal), total) for signal in EVICTION}
        signal = max(kept, key=lambda each: kept[each])
        if free >= kept[signal]:
            continue
        report = findings.warning if member else findings.error
        lower = max(100 * free // total // 2, 1)
        report(
            "disk",
            [host.name],
            f"A kubelet with less than {thresholds[signal]} of its disk free ({signal}) evicts pods and takes no new"
            " ones (DiskPressure).",
            f"{path} is on a file system of {total * MIB_IN_GB:.0f} GB with {free * MIB_IN_GB:.1f} GB free"
            f" ({100 * free // total}%)",
            f"Free {math.ceil((kept[signal] - free) * MIB_IN_GB)} GB or more there (`df -h {path}`), or set"
            f" {VARIABLE}: {{evictionHard: {{memory.available: 100Mi, nodefs.available: {lower}%,"
            f" imagefs.available: {lower}%, nodefs.inodesFree: 5%}}}}.",
        )


def _kept_mb(threshold: object, total: int) -> float:
    """MiB that a threshold such as 10% or 5Gi keeps free; 0 if it is invalid."""
    match = _THRESHOLD.fullmatch(str(threshold))
    if not match:
        return 0
    number, unit = float(match.group(1)), match.group(2)
    return total * number / 100 if unit == "%" else number * _UNITS[unit] / 2**20
