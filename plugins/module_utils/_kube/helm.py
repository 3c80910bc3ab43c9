# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Helm releases: their state is read from the API, and the helm program runs only if something differs.

Why not kubernetes.core.helm: here check mode needs no chart, CRDs are upgraded, and a killed run can be repeated.
"""

from __future__ import annotations

import base64
import contextlib
import datetime
import hashlib
import inspect
import json
import os
import re
import shutil
import sys
import tarfile
import tempfile
import time
import typing as t

from ansible.module_utils.basic import AnsibleModule

from .._common.command import nameless_file, path_of, run_program
from .._common.digests import pinned_image, require_digest
from .._common.helm_record import RENDER_LABEL
from .._common.proxy import proxy_variables
from .._common.result import FabricError, outcome
from .._common.secrets import every_text, hide, hide_one
from .._common.text import fingerprint, scheme_of
from . import post_renderer
from .apply import apply_object, wait_for_kinds
from .certificates import first_end
from .client import ApiError, Cluster, TransportError, connect, describe
from .helm_storage import NO_RENDER, Release, read_releases, split_pending
from .merge_values import merge_values
from .ownership import HOOK, is_only_ours, own_labels
from .pod_problems import CRASHES, CRASHING, container_statuses, pod_problems
from .query import Object, query, quoted
from .readiness import network_problems

with contextlib.suppress(ImportError):  # the API client needs it too, so connect() has failed by then
    import yaml


# API groups of other projects whose CRDs charts include. The projects' own operators may need other schemas.
BORROWED = ("k8s.cni.cncf.io", "sriovnetwork.openshift.io")
HOOK_PATIENCE = 20  # seconds for which a hook's pod must be hopeless
MARGIN = 60  # seconds that helm may take beyond its own timeout
POLL = 5  # seconds between two checks of another running helm


def enabled(dependency: Object, values: Object) -> bool:
    """Whether a subchart is enabled: the first of its conditions with a boolean in the values decides."""
    for path in (dependency.get("condition") or "").split(","):
        keys = [quoted(key) for key in path.strip().split(".") if key]
        answer = query(".".join(keys), values) if keys else None
        if isinstance(answer, bool):
            return answer
    return True


def chart_crds(files: t.Mapping[str, str], values: Object) -> t.List[Object]:
    """The CRDs of a chart and its enabled subcharts. `files` are the chart's files by path in the chart."""
    everything = merge_values(yaml.safe_load(files.get("values.yaml", "")) or {}, values)
    chart = yaml.safe_load(files["Chart.yaml"])
    unused = {d["name"] for d in chart.get("dependencies") or [] if not enabled(d, everything)}
    found = []
    for path in sorted(files):
        parts = path.split("/")
        subchart = parts[1] if parts[0] == "charts" and len(parts) > 2 else ""
        if "crds" not in parts[:-1] or not path.endswith((".yaml", ".yml")) or subchart in unused:
            continue
        found += [d for d in yaml.safe_load_all(files[path]) if d and d.get("kind") == "CustomResourceDefinition"]
    return found


def chart_files(path: str) -> t.Dict[str, str]:
    """The text files of a chart, packed or not, that chart_crds() reads."""
    if os.path.isdir(path):
        names = [os.path.join(top, name) for top, _directories, files in os.walk(path) for name in files]
        wanted = {os.path.relpath(name, path): name for name in names if name.endswith((".yaml", ".yml"))}
        return {name: read_text(full) for name, full in wanted.items()}
    files = {}
    with tarfile.open(path) as archive:
        for member in archive.getmembers():
            name = member.name.partition("/")[2]
            content = archive.extractfile(member) if name.endswith((".yaml", ".yml")) else None
            if content:
                files[name] = content.read().decode()
    return files


def read_text(path: str) -> str:
    with open(path, encoding="utf-8") as file:
        return file.read()


def file_data(path: t.Optional[str]) -> str:
    """A file as a kubeconfig embeds it; empty without a file."""
    if not path:
        return ""
    with open(path, "rb") as file:
        return base64.b64encode(file.read()).decode()


def kubeconfig_of(configuration: t.Any) -> Object:
    """A kubeconfig that logs in like the API client, since helm may not have the client's files."""
    token = (configuration.api_key or {}).get("authorization", "")
    user = {
        "client-certificate-data": file_data(configuration.cert_file),
        "client-key-data": file_data(configuration.key_file),
        "token": token[7:] if token.lower().startswith("bearer ") else token,
        "username": configuration.username,
        "password": configuration.password,
    }
    server = {"server": configuration.host, "certificate-authority-data": file_data(configuration.ssl_ca_cert)}
    if not configuration.verify_ssl:
        server["insecure-skip-tls-verify"] = True
    name = "fabric"
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": name, "cluster": {k: v for k, v in server.items() if v}}],
        "users": [{"name": name, "user": {k: v for k, v in user.items() if v}}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
        "current-context": name,
    }


def check_chart(path: str, expected: str, source: str) -> None:
    """Refuse a chart that is not the expected one. `expected` is a SHA-256; empty accepts any."""
    wanted = require_digest(expected, "chart_sha256")
    if not wanted:
        return
    if os.path.isdir(path):
        raise FabricError(
            "A chart with a digest must be packed (.tgz).",
            path,
            "a directory",
            "Pack it, or leave chart_sha256 empty.",
            code="invalid-input",
        )
    with open(path, "rb") as file:
        seen = hashlib.sha256(file.read()).hexdigest()
    if seen != wanted:
        raise FabricError(
            "The chart is not the expected one, so it was not used.",
            source,
            f"SHA-256 {seen}, expected {wanted}",
            "Find out why. If your site has a chart of its own, set its digest, fabric_mirror: {chart_sha256:"
            " {CHART-VERSION: SHA256}}.",
            code="wrong-content",
        )


def chart_source(chart: str, repo: str) -> t.List[str]:
    """helm's arguments for a chart. It does not accept a registry as repository: the whole reference is the name."""
    if repo.startswith("oci://"):
        return [f"{repo.rstrip('/')}/{chart}"]
    return [chart, "--repo", repo] if repo else [chart]


def is_local(repo: str) -> bool:
    """Whether charts come from a directory, such as that of a bundle, instead of a repository."""
    return repo.startswith("/")


def packed_chart(directory: str, chart: str, version: str) -> str:
    """The path of a chart in a directory."""
    return os.path.join(directory, f"{chart.rpartition('/')[2]}-{version}.tgz")


class FailedHooks:
    """Whether helm waits for a hook whose pod keeps crashing or can't start, which would take until the time-out."""

    def __init__(self, cluster: Cluster, namespace: str, clock: t.Callable[[], float] = time.monotonic) -> None:
        self.cluster, self.path, self.clock = cluster, f"/apis/batch/v1/namespaces/{namespace}/jobs", clock
        self.pods = f"/api/v1/namespaces/{namespace}/pods"
        self.former = {job["metadata"]["uid"] for job in self.hooks()}
        self.since: t.Optional[float] = None
        self.seen = False

    def hooks(self) -> t.List[Object]:
        return [job for job in self.cluster.items(self.path) if query(HOOK, job)]

    def is_stuck(self) -> bool:
        new = {job["metadata"]["uid"] for job in self.hooks()} - self.former
        pods = self.cluster.items(self.pods, labelSelector="job-name") if new else []
        own = [pod for pod in pods if set(query("metadata.ownerReferences[].uid", pod) or ()) & new]
        return any(is_hopeless(pod) for pod in own)

    def __call__(self) -> bool:
        stuck = False
        with contextlib.suppress(ApiError, TransportError, FabricError):  # helm continues, and so do the checks
            stuck = self.is_stuck()
        self.since = None if not stuck else self.clock() if self.since is None else self.since
        self.seen = self.since is not None and self.clock() - self.since >= HOOK_PATIENCE
        return self.seen


def is_hopeless(pod: Object) -> bool:
    """Whether a pod has a fault. A container that crashed once or twice may come up the next time."""
    crashes = any(each.get("restartCount", 0) >= CRASHES for each in container_statuses(pod))
    return any(problem.fault and (crashes or CRASHING not in problem.text) for problem in pod_problems(pod))


class Helm:
    """The helm program with its own scratch directory. Secrets go through nameless files, never through argv."""

    def __init__(self, module: AnsibleModule, cluster: Cluster) -> None:
        self.params = module.params
        self.hooks: t.Optional[FailedHooks] = None  # hooks that helm should not wait for
        self.scratch = tempfile.mkdtemp(prefix="ipu-fabric-helm-")
        self.secrets = contextlib.ExitStack()
        self.descriptors: t.List[int] = []
        self.env = {
            "HELM_REPOSITORY_CACHE": self.scratch,
            "HELM_REPOSITORY_CONFIG": os.path.join(self.scratch, "repositories.yaml"),
            "KUBECONFIG": self.kubeconfig(cluster),
            **proxy_variables(module.params.get("download_proxy") or {}),
        }

    def __enter__(self) -> Helm:
        return self

    def __exit__(self, *unused: t.Any) -> None:
        self.secrets.close()
        shutil.rmtree(self.scratch)

    def kubeconfig(self, cluster: Cluster) -> str:
        given = self.params.get("kubeconfig") or os.environ.get("K8S_AUTH_KUBECONFIG")
        if isinstance(given, str):
            return os.path.expanduser(given)
        return self.secret(json.dumps(given or kubeconfig_of(cluster.client.configuration)))

    def secret(self, text: str) -> str:
        """A path from which helm can read this text."""
        file = self.secrets.enter_context(nameless_file(text))
        self.descriptors.append(file.fileno())
        return path_of(file)

    def file(self, name: str, text: str) -> str:
        path = os.path.join(self.scratch, name)
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600), "w", encoding="utf-8") as file:
            file.write(text)
        return path

    def call(self, what: str, where: str, *args: str, step: str = "") -> str:
        command, limit = [self.params["binary"], *args], self.params["timeout"] + MARGIN
        done = run_program(command, limit, env=self.env, pass_fds=self.descriptors, in_vain=self.hooks)
        if done.rc == 0:
            return done.out
        said = (done.err or done.out).strip()
        if done.rc in (126, 127):
            raise FabricError(
                "The program helm is needed.",
                command[0],
                said,
                "Install it, for example with the role ipu.fabric.helm.",
                code="missing-requirement",
            )
        seen = said if done.rc is not None else f"timed out after {limit} s: {said or 'no output'}"
        if done.rc is None and self.hooks and self.hooks.seen:
            seen = "stopped early, since a hook of the chart does not succeed"
        raise FabricError(
            what, where, seen, f"{step or 'Run again with -vvv.'} The command was: {' '.join(command)}", code=done.code
        )

    def check_release(self) -> None:
        """Refuse Helm 4 before fetching a chart: its post-renderers can't be programs, only plugins."""
        release = self.call(
            "The release of helm could not be read.", self.params["binary"], "version", "--template", "{{.Version}}"
        ).strip()
        if not release.startswith("v3."):
            raise FabricError(
                "Helm 3 is needed.",
                self.params["binary"],
                f"{release or 'no release'}; from 4 on, only plugins can be post-renderers",
                "Use a release of Helm 3: the role ipu.fabric.helm installs one, from fabric_mirror.helm.url or"
                " helm_url.",
                code="missing-requirement",
            )

    def pull(self) -> str:
        """The chart as a local path, if it is the expected one. helm reads the same copy that was checked."""
        path = self.download()
        if os.path.isfile(path) and os.path.dirname(path) != os.path.join(self.scratch, "chart"):
            path = shutil.copy(path, self.scratch)
        source = " ".join(filter(None, (self.params["chart_repo_url"], self.params["chart"])))
        check_chart(path, self.params["chart_sha256"], source)
        return path

    def download(self) -> str:
        """Download the chart, unless it is local; returns its path."""
        chart, repo = self.params["chart"], self.params["chart_repo_url"]
        if is_local(repo) or (not repo and "://" not in chart):
            path = packed_chart(repo, chart, self.params["chart_version"]) if repo else os.path.expanduser(chart)
            if not os.path.exists(path):
                raise FabricError(
                    "The chart does not exist.",
                    path,
                    "no such file",
                    "Give a path, a URL, or the name of a chart together with chart_repo_url.",
                    code="not-found",
                )
            return path
        target = os.path.join(self.scratch, "chart")
        os.makedirs(target, exist_ok=True)  # helm does not create it
        self.call(
            f"The chart {chart} {self.params['chart_version']} could not be downloaded.",
            repo or chart,
            "pull", *chart_source(chart, repo), "--version", self.params["chart_version"], "--destination", target,
            step="Make the repository reachable from this machine, or set another in fabric_mirror.charts. It has to"
            " have this version.",
        )  # fmt: skip
        return os.path.join(target, os.listdir(target)[0])

    def upgrade(self, chart: str, render: str) -> None:
        params = self.params
        values = self.secret(json.dumps(params["values"]))
        changes = self.file("changes.json", json.dumps(rendered_changes(params)))
        # Run by the interpreter: temporary directories may be mounted with noexec.
        script = self.file("post-renderer.py", inspect.getsource(post_renderer))
        self.call(
            f"The release {params['name']} could not be installed or upgraded to {params['chart_version']}.",
            f"namespace {params['namespace']}",
            "upgrade", params["name"], chart, "--install", "--namespace", params["namespace"],
            "--values", values, "--reset-values", "--labels", f"{RENDER_LABEL}={render}", "--history-max", "3",
            "--post-renderer", sys.executable, "--post-renderer-args", script, "--post-renderer-args", changes,
            "--timeout", f"{params['timeout']}s", *(["--take-ownership"] if params["take_ownership"] else []),
            *self.context(),
        )  # fmt: skip

    def uninstall(self) -> None:
        name, namespace = self.params["name"], self.params["namespace"]
        self.call(
            f"The release {name} could not be uninstalled.", f"namespace {namespace}",
            "uninstall", name, "--namespace", namespace, "--wait", "--ignore-not-found",
            "--timeout", f"{self.params['timeout']}s",
            *([] if self.params["hooks"] else ["--no-hooks"]), *self.context(),
        )  # fmt: skip

    def context(self) -> t.List[str]:
        return ["--kube-context", self.params["context"]] if self.params.get("context") else []


def certificate_end(cluster: Cluster, namespace: str, renew: t.Optional[Object]) -> t.Optional[datetime.datetime]:
    """When the chart's certificate expires; None if its Secret does not exist yet."""
    secret = cluster.get(f"/api/v1/namespaces/{namespace}/secrets/{renew['secret']}") if renew else None
    if not (renew and secret):
        return None
    end = first_end(secret)
    if end is None:  # must not count as a certificate that never expires
        raise FabricError(
            "The certificate in a Secret has to be renewed before it ends.",
            f"Secret {namespace}/{renew['secret']}",
            f"no certificate under its keys {', '.join(sorted(secret.get('data') or {})) or '(none)'}",
            "Delete the Secret and run this again, so that the chart creates a new one, or name another Secret.",
            code="not-found",
        )
    return end


def namespace_object(params: Object) -> Object:
    metadata = {"name": params["namespace"], "labels": params["namespace_labels"]}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}


def refuse_other_labels(cluster: Cluster, params: Object) -> None:
    """A namespace that others labelled keeps their values: these decide what all of its pods may do."""
    wanted = params["namespace_labels"]
    there = cluster.read(namespace_object(params)) if wanted else None
    given = query("metadata.labels", there) or {}
    lost = [key for key, value in wanted.items() if given.get(key, value) != value]
    if there and set(lost) - set(own_labels(there)):
        raise FabricError(
            "The namespace has a label of somebody else's with another value than the release needs.",
            f"namespace {params['namespace']}",
            ", ".join(f"{key}={given[key]}; {wanted[key]} is needed" for key in lost),
            "Choose a namespace of its own for the release. Or label this one yourself, if all of its pods may have"
            " that.",
            code="not-ours",
        )


def chart_name(chart: str, version: str) -> str:
    """The chart's name in its reference; empty for a URL that does not contain it."""
    last = re.split(r"[?#]", chart.rstrip("/"))[0].rpartition("/")[2].partition(":")[0]
    packed = re.fullmatch(rf"(.+?)-v?{re.escape(version.lstrip('v'))}\.tgz", last)
    if packed:
        return packed[1]
    return "" if scheme_of(chart) in ("http", "https") else last


def local_chart_name(chart: str) -> str:
    """The name in the metadata of a local chart; empty if there is no such chart."""
    path = os.path.expanduser(chart)
    if not os.path.exists(path):
        return ""
    return str((yaml.safe_load(chart_files(path).get("Chart.yaml", "")) or {}).get("name", ""))


def rendered_changes(params: Object) -> Object:
    """What the post-renderer changes in the manifests."""
    digests = params["image_digests"]
    replaced = {image: pinned_image(other, digests) for image, other in params["images"].items()}
    pinned = {image: pinned_image(image, digests) for image in digests}
    return {"images": {**pinned, **replaced}, "tolerations": params["tolerations"]}


def wanted_state(params: Object) -> Object:
    """The state with which a release is compared."""
    changes = rendered_changes(params)
    chart, local = params["chart"], not params["chart_repo_url"] and "://" not in params["chart"]
    return {
        "status": "deployed",
        "chart": (local_chart_name(chart) if local else "") or chart_name(chart, params["chart_version"]),
        "version": params["chart_version"].lstrip("v"),
        "values": json.loads(json.dumps(params["values"])),
        "render": fingerprint(changes)[7:] if any(changes.values()) else NO_RENDER,
    }


def current_state(release: t.Optional[Release], wanted: Object) -> t.Optional[Object]:
    if release is None or release.status == "uninstalled":
        return None
    return {
        "status": release.status,
        "chart": release.chart if wanted["chart"] else "",  # not in the reference: the version must do
        "version": release.version.lstrip("v"),
        "values": release.values,
        "render": release.render,
    }


def missing_objects(cluster: Cluster, release: Release, crds: bool) -> t.List[str]:
    """Objects of a release that somebody has deleted, which an upgrade recreates. crds: whether its CRDs count.

    One request for each kind and namespace: a release has dozens of objects.
    """
    placed = {"namespace": release.namespace}
    texts = [release.manifest, release.crds if crds else ""]
    objects = [obj for text in texts for obj in yaml.safe_load_all(text) if obj]
    paths = [cluster.path_of({**obj, "metadata": {**placed, **obj["metadata"]}}) for obj in objects]
    folders = {path.rpartition("/")[0] for path in paths if path}
    there = {path for folder in folders for path in cluster.paths(folder)}
    return [describe(obj) for obj, path in zip(objects, paths) if path not in there]


def install(module: AnsibleModule, cluster: Cluster, pending: t.Sequence[Release], render: str) -> None:
    """Remove what a killed run left, upgrade the CRDs, then run helm."""
    namespace = module.params["namespace"]
    for release in pending:
        # Without this record, helm continues from the previous revision and adopts existing objects.
        cluster.delete(f"/api/v1/namespaces/{namespace}/secrets/{release.secret}")
    with Helm(module, cluster) as helm:
        helm.check_release()
        chart = helm.pull()
        if module.params["crds"]:
            crds = chart_crds(chart_files(chart), module.params["values"])
            left = [crd for crd in crds if is_borrowed(cluster, crd)]
            for crd in crds:
                if crd not in left:
                    apply_object(cluster, crd, False, "Warn")
            wait_for_kinds(cluster, crds, False, 60)
            warn_of_borrowed(module, left)
        helm.hooks = FailedHooks(cluster, namespace)
        try:
            helm.upgrade(chart, render)
        except FabricError as error:
            seen = "; ".join([error.seen, *stuck_hooks(cluster, namespace)])
            raise FabricError(
                error.what, error.where, seen, error.next_step, code=error.code, transient=error.transient
            ) from error


def is_borrowed(cluster: Cluster, crd: Object) -> bool:
    """Whether a CRD is another project's, and somebody else has written the existing one."""
    there = cluster.read(crd) if query("spec.group", crd) in BORROWED else None
    return there is not None and not is_only_ours(there)


def warn_of_borrowed(module: AnsibleModule, crds: t.Sequence[Object]) -> None:
    if crds:
        names = ", ".join(crd["metadata"]["name"] for crd in crds)
        chart = f"{module.params['chart']} {module.params['chart_version']}"
        module.warn(
            f"CustomResourceDefinitions that somebody else has written were left as they are: {names}. The chart"
            f" {chart} has its own, so the existing ones have to work for both."
        )


def stuck_hooks(cluster: Cluster, namespace: str) -> t.List[str]:
    """What keeps Job pods in the namespace from running: helm waits for its hooks without saying why."""
    with contextlib.suppress(ApiError, FabricError):  # helm's own failure is what counts
        pods = cluster.items(f"/api/v1/namespaces/{namespace}/pods", labelSelector="job-name")
        found = [problem for pod in pods for problem in pod_problems(pod)] + network_problems(cluster, namespace, pods)
        return [problem.text for problem in found]
    return []


def refuse_other_chart(release: t.Optional[Release], chart: str) -> None:
    """helm would turn somebody's release of another chart into this one, and delete its objects."""
    if release and release.status != "uninstalled" and not release.ours and chart not in ("", release.chart):
        raise FabricError(
            "A release of this name is of another chart.",
            f"release {release.name} in namespace {release.namespace}",
            f"chart {release.chart} {release.version}, installed by somebody else; {chart} is wanted",
            "Choose another namespace for the wanted release (network_operator_namespace for the network operator)."
            f" Or uninstall this one if nobody needs it: helm uninstall -n {release.namespace} {release.name}",
            code="not-ours",
        )


def ensure_present(module: AnsibleModule, cluster: Cluster, releases: t.Sequence[Release]) -> Object:
    params = module.params
    latest, pending = split_pending(releases)
    wanted = wanted_state(params)
    before: Object = {"release": current_state(latest, wanted)}
    after: Object = {"release": wanted}
    refuse_other_chart(latest, wanted["chart"])
    refuse_other_labels(cluster, params)
    if pending:
        before["unfinished"] = [f"revision {release.revision} is {release.status}" for release in pending]
    end = certificate_end(cluster, params["namespace"], params["renew"])
    left = (end - utc_now()).days if end else None
    if left is not None and left < params["renew"]["days"]:
        before["certificate"], after["certificate"] = f"ends in {left} days", "renewed"
    missing = missing_objects(cluster, latest, params["crds"]) if latest and latest.status == "deployed" else []
    if missing:
        before["missing"], after["missing"] = missing, []
    due = before != after
    before["namespace"], after["namespace"] = apply_object(
        cluster, namespace_object(params), module.check_mode, "Strict"
    )
    if due and not module.check_mode:
        install(module, cluster, pending, wanted["render"])
    if before["release"]:
        values = hide(before["release"]["values"], wanted["values"], every_text)
        before["release"], after["release"] = ({**r, "values": v} for r, v in zip((before["release"], wanted), values))
    else:
        after["release"] = {**wanted, "values": hide_one(wanted["values"], every_text)}
    return outcome(before, after, upgraded=due, certificate_end=end.isoformat() if end else "")


def ensure_absent(module: AnsibleModule, cluster: Cluster, releases: t.Sequence[Release]) -> Object:
    there = [release for release in releases if release.status != "uninstalled"]
    if there and not any(release.ours for release in there):
        last = max(there, key=lambda release: release.revision)
        raise FabricError(
            "Only a release that this collection has installed or upgraded is uninstalled.",
            f"release {last.name} in namespace {last.namespace}",
            f"revision {last.revision} of {last.name} was not installed by this collection",
            f"Leave it to those who installed it, or remove it by hand: helm uninstall -n {last.namespace} {last.name}",
            code="not-ours",
        )
    before = {r.secret: f"{r.chart} {r.version} {r.status}" for r in there}
    if before and not module.check_mode:
        with Helm(module, cluster) as helm:
            helm.uninstall()
    return outcome(before, {}, upgraded=False, certificate_end="")


def utc_now() -> datetime.datetime:
    return datetime.datetime.now(datetime.timezone.utc)


def may_be_at_work(release: Release, limit: float) -> bool:
    """Whether the helm that stored this revision may still be running, if it takes no longer than `limit` seconds."""
    if not (release.pending and release.stored):
        return False
    stored = datetime.datetime.fromisoformat(release.stored.replace("Z", "+00:00"))
    return (utc_now() - stored).total_seconds() < limit


def settled_releases(module: AnsibleModule, cluster: Cluster) -> t.List[Release]:
    """The revisions of the release, once no helm is working on it: somebody else may run one, on another machine."""
    name, namespace = module.params["name"], module.params["namespace"]
    limit, start = module.params["timeout"] + MARGIN, time.monotonic()
    first: t.Optional[t.Set[str]] = None
    while True:
        releases = read_releases(cluster, name, namespace)
        busy = {r.secret: r for r in split_pending(releases)[1] if may_be_at_work(r, limit)}
        first = set(busy) if first is None else first
        if not busy or module.check_mode:
            return releases
        if time.monotonic() - start > limit:
            if set(busy) <= first:  # they did not change for that long: the clocks differ
                return releases
            raise FabricError(
                f"Another helm is at work on the release {name}.",
                f"namespace {namespace}",
                ", ".join(f"revision {r.revision} has been {r.status} since {r.stored}" for r in busy.values()),
                "Find out who runs it, wait until it has ended, then run again.",
                code="busy",
            )
        time.sleep(POLL)


def manage_release(module: AnsibleModule) -> t.Dict[str, t.Any]:
    """Body of the module helm_release."""
    cluster = connect(module)
    releases = settled_releases(module, cluster)
    ensure = ensure_present if module.params["state"] == "present" else ensure_absent
    return ensure(module, cluster, releases)
