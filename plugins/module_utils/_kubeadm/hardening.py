# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a level of hardening means for the control plane: one table, and the kubeadm configuration derived from it.

An argument whose value is not one of the table's was set by the site: it stays, and its whole setting is skipped.
"""

from __future__ import annotations

import re
import typing as t

from .._common.result import FabricError
from .._model.stacks import STACKS
from . import paths

NONE, BASELINE, CIS = "none", "baseline", "cis"
LEVELS = (NONE, BASELINE, CIS)
API_VERSION = "kubeadm.k8s.io/v1beta4"
Component = t.Literal["apiServer", "controllerManager", "scheduler"]
COMPONENTS: t.Tuple[Component, ...] = ("apiServer", "controllerManager", "scheduler")
STATIC_POD: t.Dict[Component, str] = {
    "apiServer": "kube-apiserver",
    "controllerManager": "kube-controller-manager",
    "scheduler": "kube-scheduler",
}
Arguments = t.Dict[str, str]

CA = f"{paths.KUBERNETES}/pki/ca.crt"
AUDIT_LOGS = "/var/log/kubernetes/audit"
AUDIT_POLICY = f"{paths.HARDENING}/audit-policy.yaml"
AUTHENTICATION = f"{paths.HARDENING}/authentication.yaml"
ADMISSION = f"{paths.HARDENING}/admission.yaml"
# TLS 1.2 with forward secrecy and authenticated encryption. Cipher suites of TLS 1.3 can't be configured.
CIPHERS = ",".join(
    f"TLS_ECDHE_{key}_WITH_{cipher}"
    for cipher in ("AES_128_GCM_SHA256", "AES_256_GCM_SHA384", "CHACHA20_POLY1305_SHA256")
    for key in ("ECDSA", "RSA")
)
# Paths that the kubelet, load balancers and `kubeadm join` request without credentials.
ANONYMOUS_PATHS = ("/livez", "/readyz", "/healthz", "/api/v1/namespaces/kube-public/configmaps/cluster-info")
# Namespaces of the cluster's own pods and of what this collection installs; labels exempt others.
EXEMPT_NAMESPACES = (
    "calico-apiserver",
    "calico-system",
    "gpu-operator",
    "ipu-fabric-verify",
    "ipu-operator",
    "kube-flannel",
    "kube-system",
    "monitoring",
    "mpi-operator",
    "tigera-operator",
    *(stack.namespace for stack in STACKS.values()),
)


class Argument(t.TypedDict):
    """An argument of a component, in kubeadm's v1beta4 format."""

    name: str
    value: str


class Volume(t.TypedDict):
    """A host directory in a static pod."""

    name: str
    hostPath: str
    mountPath: str
    readOnly: bool
    pathType: str


class ComponentConfiguration(t.TypedDict, total=False):
    """The parts of a component's configuration that are read and written."""

    extraArgs: t.List[Argument]
    extraVolumes: t.List[Volume]


class ClusterConfiguration(t.TypedDict, total=False):
    """kubeadm's ClusterConfiguration. Other fields are kept as they are."""

    apiVersion: str
    kind: str
    kubernetesVersion: str
    apiServer: ComponentConfiguration
    controllerManager: ComponentConfiguration
    scheduler: ComponentConfiguration


class Setting(t.NamedTuple):
    """A row of the table: arguments of one component that only make sense together."""

    name: str
    level: str  # the lowest level that includes it
    component: Component
    arguments: t.Tuple[t.Tuple[str, str], ...]
    checks: str  # of the CIS benchmark for Kubernetes 1.12
    rivals: str = ""  # pattern of arguments with which the API server would not start, or which do the same
    since: t.Tuple[int, int] = (0, 0)  # minimum Kubernetes release
    condition: str = ""  # what must be in place first
    stays: bool = False  # kept when the level is lowered


TLS = (("tls-min-version", "VersionTLS12"), ("tls-cipher-suites", CIPHERS))
NO_PROFILING = (("profiling", "false"),)
# kubeadm's defaults are not repeated: bind-address 127.0.0.1, authorization Node and RBAC, files of mode 0600.
SETTINGS = (
    Setting("profiling", BASELINE, "apiServer", NO_PROFILING, "1.2.15"),
    Setting("profiling", BASELINE, "controllerManager", NO_PROFILING, "1.3.2"),
    Setting("profiling", BASELINE, "scheduler", NO_PROFILING, "1.4.1"),
    Setting("tls", BASELINE, "apiServer", TLS, "1.2.29"),
    Setting("tls", BASELINE, "controllerManager", TLS, ""),
    Setting("tls", BASELINE, "scheduler", TLS, ""),
    Setting(
        "audit",
        BASELINE,
        "apiServer",
        (
            ("audit-policy-file", AUDIT_POLICY),
            ("audit-log-path", f"{AUDIT_LOGS}/audit.log"),
            ("audit-log-maxage", "30"),
            ("audit-log-maxbackup", "10"),
            ("audit-log-maxsize", "100"),
        ),
        "1.2.16-19, 3.2.1, 3.2.2",
        rivals="audit-webhook-.*",
    ),
    Setting("finished-pods", CIS, "controllerManager", (("terminated-pod-gc-threshold", "1000"),), "1.3.1"),
    Setting("token-expiration", CIS, "apiServer", (("service-account-extend-token-expiration", "false"),), "1.2.30"),
    Setting(
        "anonymous",
        CIS,
        "apiServer",
        (("authentication-config", AUTHENTICATION),),
        "1.2.1",
        rivals="anonymous-auth|oidc-.*",
        since=(1, 32),
    ),
    Setting(
        "admission",
        CIS,
        "apiServer",
        (("admission-control-config-file", ADMISSION), ("enable-admission-plugins", "NodeRestriction,EventRateLimit")),
        "1.2.9, 5.2",
    ),
    Setting(
        "encryption",
        CIS,
        "apiServer",
        (("encryption-provider-config", paths.ENCRYPTION),),
        "1.2.27, 1.2.28",
        condition="encryption",
        stays=True,
    ),
    Setting(
        "kubelet-ca",
        CIS,
        "apiServer",
        (("kubelet-certificate-authority", CA),),
        "1.2.5",
        condition="kubelet-ca",
    ),
)
VOLUMES: t.Tuple[Volume, ...] = (
    {
        "name": "hardening",
        "hostPath": paths.HARDENING,
        "mountPath": paths.HARDENING,
        "readOnly": True,
        "pathType": "DirectoryOrCreate",
    },
    {
        "name": "audit-logs",
        "hostPath": AUDIT_LOGS,
        "mountPath": AUDIT_LOGS,
        "readOnly": False,
        "pathType": "DirectoryOrCreate",
    },
)

POLICY = """\
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
  # What the cluster asks itself all the time.
  - level: None
    nonResourceURLs: ["/healthz*", "/livez*", "/readyz*", "/version", "/openapi/*", "/metrics"]
  - level: None
    resources:
      - {group: "", resources: [events]}
      - {group: events.k8s.io, resources: [events]}
      - {group: coordination.k8s.io, resources: [leases]}
      - {group: "", resources: [nodes/status, pods/status]}
  # Who reads or writes them, nodes among them; never what is in them.
  - level: Metadata
    resources:
      - {group: "", resources: [secrets, serviceaccounts/token]}
      - {group: authentication.k8s.io, resources: [tokenreviews]}
  - level: None
    userGroups: ["system:nodes"]
    verbs: [get, list, watch]
  - level: None
    users: ["system:kube-proxy", "system:apiserver", "system:kube-scheduler", "system:kube-controller-manager"]
    verbs: [get, list, watch]
  - level: Metadata
    resources:
      - {group: "", resources: [configmaps]}
  # Ways into pods and nodes.
  - level: Metadata
    resources:
      - {group: "", resources: [pods/exec, pods/attach, pods/portforward, pods/proxy, services/proxy, nodes/proxy]}
  - level: None
    userGroups: ["system:serviceaccounts"]
    verbs: [get, list, watch]
  # Who may do what.
  - level: RequestResponse
    verbs: [create, update, patch, delete, deletecollection]
    resources:
      - {group: rbac.authorization.k8s.io}
  - level: Metadata
"""
AUTHENTICATION_FILE = """\
apiVersion: apiserver.config.k8s.io/{version}
kind: AuthenticationConfiguration
anonymous:
  enabled: true
  conditions:
{conditions}"""
ADMISSION_FILE = """\
apiVersion: apiserver.config.k8s.io/v1
kind: AdmissionConfiguration
plugins:
  - name: EventRateLimit
    configuration:
      apiVersion: eventratelimit.admission.k8s.io/v1alpha1
      kind: Configuration
      limits:
        - {{type: Server, qps: 5000, burst: 20000}}
        - {{type: Namespace, qps: 500, burst: 2000, cacheSize: 4096}}
  - name: PodSecurity
    configuration:
      apiVersion: pod-security.admission.config.k8s.io/v1
      kind: PodSecurityConfiguration
      # Labels of a namespace come before these.
      defaults: {{enforce: baseline, audit: restricted, warn: restricted}}
      exemptions:
        namespaces:
{namespaces}"""


class Wanted(t.NamedTuple):
    """What is requested for a cluster."""

    level: str
    release: t.Tuple[int, int]  # of Kubernetes
    met: t.FrozenSet[str]  # fulfilled conditions of settings
    left_out: t.FrozenSet[str] = frozenset()  # settings that something on the cluster can't work with


class Hardened(t.NamedTuple):
    """A configuration as it should be."""

    configuration: ClusterConfiguration
    applied: t.List[Setting]
    kept: t.List[str]  # settings that the site configured itself, with their values


class HardenedFile(t.TypedDict):
    """A file that arguments refer to."""

    path: str
    content: str


def is_in(level: str, setting: Setting) -> bool:
    return LEVELS.index(setting.level) <= LEVELS.index(level)


def parse_release(version: str) -> t.Tuple[int, int]:
    """Major and minor of a version."""
    found = re.match(r"v?(\d+)\.(\d+)", version)
    return (int(found.group(1)), int(found.group(2))) if found else (0, 0)


def own_values(component: Component) -> t.Dict[str, t.Set[str]]:
    """All values that any level gives an argument, by argument."""
    values: t.Dict[str, t.Set[str]] = {}
    for setting in SETTINGS:
        if setting.component == component:
            for name, value in setting.arguments:
                values.setdefault(name, set()).add(value)
    return values


def in_order(arguments: t.Sequence[Argument]) -> Arguments:
    """Values by name; the last one of a name wins, as with Go's flags."""
    return {argument["name"]: argument["value"] for argument in arguments}


def site_arguments(setting: Setting, arguments: t.Mapping[str, str]) -> t.List[str]:
    """Arguments of the site that override a setting."""
    own = own_values(setting.component)
    named = dict(setting.arguments)
    return sorted(
        f"--{name}={value}"
        for name, value in arguments.items()
        if (name in named and value not in own[name]) or (setting.rivals and re.fullmatch(setting.rivals, name))
    )


def is_wanted(setting: Setting, there: bool, wanted: Wanted) -> bool:
    """Whether to apply a setting; one that is applied stays when a new node does not meet its condition yet."""
    if setting.stays and (there or "encrypted" in wanted.met):
        return True
    if setting.name in wanted.left_out:
        return False
    met = not setting.condition or setting.condition in wanted.met or there
    return is_in(wanted.level, setting) and wanted.release >= setting.since and met


def choose(component: Component, arguments: Arguments, wanted: Wanted) -> t.Tuple[t.List[Setting], t.List[str]]:
    """Settings of a component to apply, and those that the site configured itself."""
    applied, kept = [], []
    for setting in SETTINGS:
        if setting.component != component:
            continue
        theirs = site_arguments(setting, arguments)
        there = all(arguments.get(name) == value for name, value in setting.arguments)
        if not theirs and is_wanted(setting, there, wanted):
            applied.append(setting)
        if theirs and is_in(wanted.level, setting):
            kept.append(f"{setting.name} ({STATIC_POD[component]}): {', '.join(theirs)}")
    return applied, kept


def is_own(component: Component, name: str, value: str) -> bool:
    return value in own_values(component).get(name, ())


def with_arguments(
    component: Component, arguments: t.Sequence[Argument], settings: t.Sequence[Setting]
) -> t.List[Argument]:
    """The arguments with those of the settings, and without others of the table. The order is kept."""
    wanted = {name: value for setting in settings for name, value in setting.arguments}
    stay = [
        argument
        for argument in arguments
        if argument["name"] not in wanted and not is_own(component, argument["name"], argument["value"])
    ]
    names = {argument["name"] for argument in stay}
    own = [argument for argument in arguments if wanted.get(argument["name"]) == argument["value"]]
    there = {argument["name"] for argument in own}
    result = [argument for argument in arguments if argument in stay or argument in own]
    for name, value in wanted.items():
        if name not in there | names:
            result.append({"name": name, "value": value})
    return result


def with_volumes(volumes: t.Sequence[Volume], settings: t.Sequence[Setting]) -> t.List[Volume]:
    """The volumes of a static pod, with ours for the directories that arguments refer to."""
    values = [value for setting in settings for _name, value in setting.arguments]
    names = {volume["name"] for volume in VOLUMES}
    needed = [volume for volume in VOLUMES if any(value.startswith(f"{volume['hostPath']}/") for value in values)]
    return [*(volume for volume in volumes if volume["name"] not in names), *needed]


def harden(
    configuration: ClusterConfiguration, wanted: Wanted, site: t.Optional[ClusterConfiguration] = None
) -> Hardened:
    """The cluster's configuration at a level. The site's own settings stay: those in it, and those in `site`."""
    site = site or {}
    configuration = with_site(configuration, site)
    version = configuration.get("apiVersion", "")
    if version != API_VERSION:
        raise FabricError(
            f"Only a configuration of {API_VERSION} can be hardened.",
            "ConfigMap kube-system/kubeadm-config",
            f"apiVersion {version or '(none)'}",
            "Run kubeadm config migrate on it, or upgrade the cluster: kubeadm 1.31 and later write this version. Or"
            " set fabric_hardening to none.",
            code="wrong-state",
        )
    result: ClusterConfiguration = {**configuration}
    applied: t.List[Setting] = []
    kept: t.List[str] = []
    for component in COMPONENTS:
        before: ComponentConfiguration = configuration.get(component) or {}
        arguments = before.get("extraArgs") or []
        settings, theirs = choose(component, in_order(arguments), wanted)
        applied += settings
        kept += theirs
        after: ComponentConfiguration = {**before, "extraArgs": with_arguments(component, arguments, settings)}
        if component == "apiServer":
            after["extraVolumes"] = with_volumes(before.get("extraVolumes") or [], settings)
        if after.get("extraVolumes") == [] and "extraVolumes" not in before:
            del after["extraVolumes"]
        if after["extraArgs"] or "extraArgs" in before:
            result[component] = after
    return Hardened(with_site(result, site), applied, kept)


def present(configuration: ClusterConfiguration) -> t.List[Setting]:
    """Settings that a configuration already contains."""
    found = []
    for setting in SETTINGS:
        arguments = in_order((configuration.get(setting.component) or {}).get("extraArgs") or [])
        if all(arguments.get(name) == value for name, value in setting.arguments):
            found.append(setting)
    return found


def with_site(configuration: ClusterConfiguration, site: ClusterConfiguration) -> ClusterConfiguration:
    """A cluster's configuration with the site's own values for arguments of the table."""
    result: ClusterConfiguration = {**configuration}
    for component in COMPONENTS:
        names = own_values(component)
        rivals = [setting.rivals for setting in SETTINGS if setting.component == component and setting.rivals]
        theirs = [
            argument
            for argument in (site.get(component) or {}).get("extraArgs") or []
            if argument["name"] in names or any(re.fullmatch(rival, argument["name"]) for rival in rivals)
        ]
        before: ComponentConfiguration = result.get(component) or {}
        there = in_order(before.get("extraArgs") or [])
        if any(there.get(argument["name"]) != argument["value"] for argument in theirs):
            replaced = {argument["name"] for argument in theirs}
            others = [each for each in before.get("extraArgs") or [] if each["name"] not in replaced]
            result[component] = {**before, "extraArgs": [*others, *theirs]}
    return result


def files(applied: t.Sequence[Setting], release: t.Tuple[int, int], exempt: t.Sequence[str]) -> t.List[HardenedFile]:
    """The files that applied settings refer to; the one with keys is written elsewhere."""
    conditions = "".join(f"    - path: {path}\n" for path in ANONYMOUS_PATHS)
    namespaces = "".join(f"          - {name}\n" for name in sorted({*EXEMPT_NAMESPACES, *exempt}))
    version = "v1" if release >= (1, 34) else "v1beta1"
    contents = {
        "audit": (AUDIT_POLICY, POLICY),
        "anonymous": (AUTHENTICATION, AUTHENTICATION_FILE.format(version=version, conditions=conditions)),
        "admission": (ADMISSION, ADMISSION_FILE.format(namespaces=namespaces)),
    }
    names = [setting.name for setting in applied]
    return [{"path": path, "content": text} for name, (path, text) in contents.items() if name in names]


def differences(
    configuration: ClusterConfiguration, arguments: t.Mapping[str, t.Mapping[str, str]]
) -> t.Dict[Component, t.List[str]]:
    """By component, arguments of the table whose values on a control plane differ from the configuration."""
    found: t.Dict[Component, t.List[str]] = {}
    for component in COMPONENTS:
        wanted = in_order((configuration.get(component) or {}).get("extraArgs") or [])
        running = arguments.get(STATIC_POD[component], {})
        own = own_values(component)
        differing = sorted(
            name
            for name in own
            if wanted.get(name) != running.get(name) and (name in wanted or running.get(name) in own[name])
        )
        if differing:
            found[component] = differing
    return found


def from_manifests(arguments: t.Mapping[str, t.Mapping[str, str]]) -> ClusterConfiguration:
    """A configuration with the arguments that a control plane runs with, so that the site's own ones are recognized."""
    result: ClusterConfiguration = {"apiVersion": API_VERSION}
    for component in COMPONENTS:
        running = arguments.get(STATIC_POD[component], {})
        names = own_values(component)
        result[component] = {
            "extraArgs": [
                {"name": name, "value": value}
                for name, value in running.items()
                # a default of kubeadm, not set by the site
                if (name, value) != ("enable-admission-plugins", "NodeRestriction")
                and (name in names or any(s.rivals and re.fullmatch(s.rivals, name) for s in SETTINGS))
            ]
        }
    return result
