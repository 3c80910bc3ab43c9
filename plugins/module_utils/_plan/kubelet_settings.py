# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The kubelet's settings of a site (kubernetes_kubelet_config), before a kubelet refuses or ignores them. Pure."""

from __future__ import annotations

import json
import math
import re
import typing as t

from .._common.findings import Findings
from .._model.observation import HostFacts
from .host_sizes import MIB_IN_GB
from .hosts import PlacedHost
from .names import with_meant

VARIABLE = "kubernetes_kubelet_config"
# Fields of KubeletConfiguration v1beta1 from Kubernetes 1.34 to 1.37 (k8s.io/kubelet, config/v1beta1/types.go), by what
# they hold. "a string" and "a number" are as in YAML: 2 is no string, "2" is.
_FIELDS: t.Mapping[str, str] = {
    "true or false": """
        cgroupsPerQOS cpuCFSQuota enableContentionProfiling enableControllerAttachDetach enableDebugFlagsHandler
        enableDebuggingHandlers enableProfilingHandler enableServer enableSystemLogHandler enableSystemLogQuery
        failCgroupV1 failSwapOn kernelMemcgNotification localStorageCapacityIsolation makeIPTablesUtilChains
        mergeDefaultEvictionSettings protectKernelDefaults registerNode rotateCertificates runOnce
        seccompDefault serializeImagePulls serverTLSBootstrap singleProcessOOMKill
    """,
    "a whole number": """
        containerLogMaxFiles containerLogMaxWorkers eventBurst eventRecordQPS evictionMaxPodGracePeriod
        healthzPort imageGCHighThresholdPercent imageGCLowThresholdPercent iptablesDropBit iptablesMasqueradeBit
        kubeAPIBurst kubeAPIQPS maxOpenFiles maxParallelImagePulls maxPods nodeLeaseDurationSeconds
        nodeStatusMaxImages oomScoreAdj podPidsLimit podsPerCore port readOnlyPort registryBurst registryPullQPS
    """,
    "a number": "memoryThrottlingFactor",
    "a string": """
        address apiVersion cgroupDriver cgroupRoot clusterDomain configMapAndSecretChangeDetectionStrategy
        containerLogMaxSize containerRuntimeEndpoint contentType cpuManagerPolicy hairpinMode healthzBindAddress
        imagePullCredentialsVerificationPolicy imageServiceEndpoint kind kubeletCgroups kubeReservedCgroup
        memoryManagerPolicy memoryReservationPolicy podCIDR podLogsDir providerID reservedSystemCPUs resolvConf
        showHiddenMetricsForVersion staticPodPath staticPodURL systemCgroups systemReservedCgroup tlsCertFile
        tlsMinVersion tlsPrivateKeyFile topologyManagerPolicy topologyManagerScope volumePluginDir
    """,
    "a duration such as 5m": """
        containerLogMonitorInterval cpuCFSQuotaPeriod cpuManagerReconcilePeriod evictionPressureTransitionPeriod
        fileCheckFrequency httpCheckFrequency imageMaximumGCAge imageMinimumGCAge nodeStatusReportFrequency
        nodeStatusUpdateFrequency runtimeRequestTimeout shutdownGracePeriod shutdownGracePeriodCriticalPods
        streamingConnectionIdleTimeout syncFrequency volumeStatsAggPeriod
    """,
    "a list": """
        allowedUnsafeSysctls clusterDNS enforceNodeAllocatable preloadedImagesVerificationAllowlist
        registerWithTaints reservedMemory shutdownGracePeriodByPodPriority tlsCipherSuites tlsCurvePreferences
    """,
    "a mapping of strings": """
        cpuManagerPolicyOptions defaultPodSysctls evictionHard evictionMinimumReclaim evictionSoft
        evictionSoftGracePeriod kubeReserved qosReserved systemReserved topologyManagerPolicyOptions
    """,
    "a mapping of true or false": "featureGates",
    "a mapping": """
        authentication authorization crashLoopBackOff logging memorySwap staticPodURLHeader tracing
        userNamespaces
    """,
}
KINDS: t.Mapping[str, str] = {name: kind for kind, names in _FIELDS.items() for name in names.split()}
# Upstream's disk thresholds of a kubelet: a site that sets any of them replaces all.
EVICTION: t.Mapping[str, object] = {"nodefs.available": "10%", "imagefs.available": "15%"}
SIGNALS = (
    *("memory.available", "nodefs.available", "nodefs.inodesFree", "imagefs.available", "imagefs.inodesFree"),
    *("containerfs.available", "containerfs.inodesFree", "pid.available", "allocatableMemory.available"),
)
_UNITS = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12, "Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40}
_DURATION = re.compile(r"[-+]?(0|([0-9]*[.]?[0-9]+(ns|us|µs|ms|s|m|h))+)")
_QUANTITY = re.compile(r"([0-9]+(?:[.][0-9]*)?)(%|[numkMGTPE]|[KMGTPE]i|[eE][0-9]+|)")
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
    wrong = [
        f"{name} is {json.dumps(value)}, not {KINDS[name]}" for name, value in given.items() if not _fits(name, value)
    ] or [
        f"{name} of evictionHard is {json.dumps(value)}, not a quantity such as 1Gi or 10%"
        for name, value in _thresholds(given).items()
        if name in SIGNALS and not _is_threshold(str(value))
    ]
    if wrong:
        findings.error(
            "kubelet-config",
            [],
            f"{VARIABLE} has a value that kubelets can't read: they would not start.",
            "; ".join(wrong),
            'Correct it; in YAML, 250 is a number, "250" a string.',
        )
    fields = sorted({*map(str, given)} - {*KINDS})
    if fields:
        findings.warning(
            "kubelet-config",
            [],
            f"{VARIABLE} has a field that kubelets don't know: they ignore it.",
            with_meant(fields, {*KINDS}),
            "Correct its name, which is case-sensitive, or remove it. Kubernetes after 1.37 may have more fields.",
        )


def _fits(name: str, value: object) -> bool:
    """Whether a kubelet could read this value of a field. It reads null as if the field were missing."""
    kind = KINDS.get(name, "")
    if value is None or not kind:
        return True
    if isinstance(value, dict):
        inner = {"a mapping of strings": str, "a mapping of true or false": bool}.get(kind, object)
        return kind.startswith("a mapping") and all(isinstance(each, inner) for each in value.values())
    if isinstance(value, str):
        return kind == "a string" or (kind.startswith("a duration") and bool(_DURATION.fullmatch(value)))
    if isinstance(value, (bool, list)):
        return kind == ("true or false" if isinstance(value, bool) else "a list")
    return kind == "a number" or (kind == "a whole number" and isinstance(value, int))


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


def _is_threshold(text: str) -> bool:
    """A quantity or a percentage up to 100; a kubelet takes 0% and 100% as no threshold."""
    match = _QUANTITY.fullmatch(text)
    return match is not None and (match[2] != "%" or float(match[1]) <= 100)


def _kept_mb(threshold: object, total: int) -> float:
    """MiB that a threshold such as 10% or 5Gi keeps free; 0 if it is invalid."""
    match = _THRESHOLD.fullmatch(str(threshold))
    if not match:
        return 0
    number, unit = float(match.group(1)), match.group(2)
    return total * number / 100 if unit == "%" else number * _UNITS[unit] / 2**20
