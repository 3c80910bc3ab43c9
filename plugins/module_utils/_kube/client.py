# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A few verbs for the Kubernetes API: strict about fields, with server-side apply and actionable errors.

Why not kubernetes.core's client: it silently drops unknown fields, and has no check mode without a cluster.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import time
import typing as t

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.kubernetes.core.plugins.module_utils.args_common import AUTH_ARG_SPEC
from ansible_collections.kubernetes.core.plugins.module_utils.k8s.client import get_api_client
from ansible_collections.kubernetes.core.plugins.module_utils.k8s.exceptions import CoreException

from .._common.admission import PROVER, PROVER_STEP
from .._common.command import nameless_file, path_of
from .._common.manager import MANAGER
from .._common.result import FabricError, fail_without
from .._common.text import EXPIRED, fingerprint
from .._model.failure import Code
from .query import Object

# If a library is missing, connect() reports it before any request is made.
ApiError: t.Any = OSError
TransportError: t.Any = OSError
try:
    import kubernetes.client.exceptions as api_exceptions
    import kubernetes.config.kube_config as key_files
    import urllib3.exceptions as http_exceptions

    HAS_KUBERNETES = True
    ApiError = api_exceptions.ApiException
    TransportError = http_exceptions.HTTPError
except ImportError:
    HAS_KUBERNETES = False

NAMES = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"  # of a list: only the metadata of its items
STRATEGIC = "application/strategic-merge-patch+json"  # lists are merged by the keys of their entries: others stay
REQUEST_TIMEOUT = 60
PROBE_TIMEOUT = 10
# Seconds for which requests to a restarting or busy server are repeated.
SERVER = "Check address and port of `server` in the kubeconfig. If they are right:"
LOOK = "Check the API server on its host with crictl ps, and the load of that host."
# An address of a family, or of a network, that only the hosts have.
NO_WAY = re.compile("No route to host|Network is unreachable")
NO_ROUTE = (
    "The machine that uses the API has no route to this address. Add a route, or set fabric_api_host to a control plane"
    " that this machine reaches by SSH: the API is then used from there."
)
PATIENCE = 60  # seconds for an API server to answer again
FIRST_LOOK = 10  # for one that nothing has changed: it is up, or the address is wrong
# A starting server has not loaded its roles yet: it lacks one that every cluster has.
WITHOUT_ROLES = '"system:basic-user" not found'
RENEW = "If certificates of the cluster have expired, run the playbook ipu.fabric.renew_certificates."
BUSY = (429, 502, 503, 504)
# Messages of a webhook, or about a Service without pods behind the API server: the server itself works. An eviction
# that a disruption budget forbids has the same status as a busy server.
FINAL = (
    "webhook",
    "no endpoints available for service",
    "no service port",
    "error trying to reach service",
    "disruption budget",
)
# Metadata that the server maintains; objects that differ only here count as equal.
SERVER_METADATA = ("managedFields", "resourceVersion", "generation", "uid", "creationTimestamp", "selfLink")

KEYS: t.Dict[str, t.IO[str]] = {}  # of kubeconfigs; a client opens them for each connection

Answer = t.TypeVar("Answer")


def arguments(**own: t.Any) -> t.Dict[str, t.Any]:
    """A module's argument spec: its own options and the login options of kubernetes.core."""
    return {**AUTH_ARG_SPEC, **own}


def describe(obj: Object) -> str:
    """Kind and name, as people write them."""
    metadata = obj.get("metadata") or {}
    place = "{namespace}/{name}" if metadata.get("namespace") else "{name}"
    return f"{obj.get('kind')} {place.format(**metadata)}"


def comparable(obj: t.Optional[Object]) -> t.Optional[Object]:
    """An object without what the server adds; the values of a Secret are replaced by fingerprints."""
    if obj is None:
        return None
    metadata = {k: v for k, v in obj.get("metadata", {}).items() if k not in SERVER_METADATA}
    kept = {k: v for k, v in obj.items() if k not in ("status", "metadata")}
    if obj.get("kind") == "Secret":
        for part in ("data", "stringData"):
            if part in kept:
                kept[part] = {k: fingerprint(v) for k, v in (kept[part] or {}).items()}
    return {**kept, "metadata": metadata}


class Resource(t.NamedTuple):
    """The API path of a kind's objects."""

    prefix: str
    plural: str
    namespaced: bool

    def path(self, name: str = "", namespace: str = "") -> str:
        middle = f"/namespaces/{namespace}" if self.namespaced and namespace else ""
        return f"{self.prefix}{middle}/{self.plural}" + (f"/{name}" if name else "")


class Cluster:
    """A cluster whose API answers."""

    present = True
    silence = ""  # why its API gave no answer

    def __init__(self, client: t.Any) -> None:
        self.client = client
        self._resources: t.Dict[t.Tuple[str, str], Resource] = {}

    def request(
        self,
        verb: str,
        path: str,
        body: t.Any = None,
        content_type: str = "application/json",
        accept: str = "application/json",
        **query: t.Any,
    ) -> Object:
        """Send a request, repeated while the server restarts or is too busy. ApiError on a refusal.

        A starting server forbids requests whose roles it has not loaded yet: these are repeated when it is ready.
        """

        def send() -> Object:
            answer = self.client.request(
                verb,
                path,
                body=body,
                query_params=[(k, v) for k, v in query.items() if v is not None],
                content_type=content_type,
                header_params={"Accept": accept},
                serialize=False,
                _request_timeout=REQUEST_TIMEOUT,
            )
            return t.cast(Object, json.loads(answer.data))

        try:
            return persist(send, path)
        except ApiError as error:
            if error.status != 403:
                raise
        self.wait_until_ready()
        return persist(send, path)

    def wait_until_ready(self) -> None:
        """Wait until the server reports that it is ready; do not wait if it refuses to tell this user."""

        def ask() -> None:
            self.client.request("get", "/readyz", serialize=False, _request_timeout=PROBE_TIMEOUT)

        with contextlib.suppress(ApiError, TransportError, FabricError):
            persist(ask, "/readyz", passes=lambda _error: True)

    def get(self, path: str, **query: t.Any) -> t.Optional[Object]:
        """The object, or None if it, its namespace or its kind does not exist."""
        try:
            return self.request("get", path, **query)
        except ApiError as error:
            if error.status == 404:
                return None
            raise refusal(error, "read", path) from error

    def items(self, path: str, **query: t.Any) -> t.List[Object]:
        return (self.get(path, **query) or {}).get("items") or []

    def paths(self, folder: str) -> t.Set[str]:
        """The paths of all objects of a kind, in a namespace or in the cluster; they start with `folder`."""
        return {f"{folder}/{obj['metadata']['name']}" for obj in self.items(folder, accept=NAMES)}

    def resource(self, api_version: str, kind: str) -> t.Optional[Resource]:
        """The API path of a kind's objects; None if the cluster does not know the kind."""
        key = (api_version, kind)
        if key not in self._resources:
            prefix = ("/apis/" if "/" in api_version else "/api/") + api_version
            for known in (self.get(prefix) or {}).get("resources", []):
                if known["kind"] == kind and "/" not in known["name"]:
                    self._resources[key] = Resource(prefix, known["name"], known["namespaced"])
                    break
        return self._resources.get(key)

    def path_of(self, obj: Object) -> t.Optional[str]:
        """The path of an object; None if the cluster does not know its kind."""
        resource = self.resource(obj["apiVersion"], obj["kind"])
        metadata = obj["metadata"]
        return resource.path(metadata["name"], metadata.get("namespace") or "default") if resource else None

    def read(self, obj: Object) -> t.Optional[Object]:
        path = self.path_of(obj)
        return self.get(path) if path else None

    def apply(self, obj: Object, dry_run: bool = False, validation: str = "Strict") -> Object:
        """Server-side apply: this collection manages the fields of `obj`; an unknown field is an error."""
        path = self.path_of(obj)
        if path is None:
            raise unknown_kind(obj)
        try:
            return self.request(
                "patch",
                path,
                body=obj,
                content_type="application/apply-patch+yaml",
                fieldManager=MANAGER,
                force="true",
                fieldValidation=validation,
                dryRun="All" if dry_run else None,
            )
        except ApiError as error:
            raise refusal(error, "apply", describe(obj)) from error

    def patch(self, path: str, body: Object) -> Object:
        """A merge patch: null removes a field. ApiError on a conflict, for the caller to retry."""
        return self.request(
            "patch",
            path,
            body=body,
            content_type="application/merge-patch+json",
            fieldManager=MANAGER,
            fieldValidation="Strict",
        )

    def delete(self, path: str, seen: t.Optional[Object] = None) -> bool:
        """Delete an object and everything that it owns; False if it was gone already.

        With `seen`, fail with a conflict unless the object is still the one that was read.
        """
        body: Object = {"propagationPolicy": "Background"}
        if seen is not None:
            body["preconditions"] = {key: seen["metadata"][key] for key in ("uid", "resourceVersion")}
        try:
            self.request("delete", path, body=body)
        except ApiError as error:
            if error.status == 404:
                return False
            raise refusal(error, "delete", path) from error
        return True


def is_transient(error: t.Any) -> bool:
    """Whether the same request may succeed a little later. A webhook's refusal is final."""
    if isinstance(error, TransportError):
        return True
    message = message_of(error)
    if any(words in message for words in FINAL):
        return False
    # The server also returns 500 for a field that a custom resource does not have.
    if error.status == 500:
        return "etcdserver" in message
    return error.status in BUSY or (error.status == 403 and WITHOUT_ROLES in message)


def is_starting(error: t.Any) -> bool:
    """Transient, or from a server that has not loaded its roles yet: it forbids what everybody may read."""
    return is_transient(error) or error.status == 403


def persist(
    send: t.Callable[[], Answer],
    where: str,
    pause: float = 1.0,
    passes: t.Callable[[t.Any], bool] = is_transient,
    first: bool = False,
    patience: t.Optional[float] = None,
) -> Answer:
    """The answer to a request; an error if the server does not answer for `patience` seconds (None: PATIENCE).

    first: no request was made before, so the address may be wrong too.

    An expired server certificate is not renewed by itself, so that is an error at once.
    """
    start, limit = time.monotonic(), PATIENCE if patience is None else patience
    while True:
        try:
            return send()
        except (ApiError, TransportError) as error:
            expired = EXPIRED in str(error)
            is_over = expired or time.monotonic() - start > limit
            if not passes(error) or (is_over and not is_transient(error)):
                raise
            if is_over:
                look = f"{SERVER} {LOOK}" if first else LOOK
                raise FabricError(
                    f"The Kubernetes API {'does not answer' if first else 'stopped answering'}.",
                    where,
                    first_line(error),
                    RENEW if expired else NO_ROUTE if NO_WAY.search(str(error)) else look,
                    code="expired" if expired else "api-unreachable",
                ) from error
        time.sleep(pause)


class NoCluster(Cluster):
    """Stands in for a cluster that does not exist yet, in check mode: everything is missing, and nothing is changed."""

    present = False

    def __init__(self, silence: str = "") -> None:
        super().__init__(None)
        self.silence = silence

    def get(self, path: str, **query: t.Any) -> t.Optional[Object]:
        return None


@contextlib.contextmanager
def keys_without_names() -> t.Iterator[None]:
    """Keep the keys of a kubeconfig in nameless files: the client library's own files would stay after a kill."""

    def kept(content: t.Union[str, bytes], *_unused: t.Any, **_options: t.Any) -> str:
        text = content if isinstance(content, str) else content.decode()
        if text not in KEYS:
            KEYS[text] = nameless_file(text)
        return path_of(KEYS[text])

    before, key_files._create_temp_file_with_content = key_files._create_temp_file_with_content, kept
    try:
        yield
    finally:
        key_files._create_temp_file_with_content = before


def forget_keys() -> None:
    for file in KEYS.values():
        file.close()
    KEYS.clear()


def connect(module: AnsibleModule, patience: t.Optional[float] = None) -> Cluster:
    """The cluster that the options lead to; in check mode, one that does not exist yet counts as empty."""
    if not HAS_KUBERNETES:
        fail_without(module, "kubernetes")
    auth = {name: module.params[name] for name in AUTH_ARG_SPEC if module.params.get(name) is not None}
    where = str(auth.get("host") or auth.get("kubeconfig") or "the default kubeconfig")
    if isinstance(auth.get("kubeconfig"), dict):
        where = "the kubeconfig given as data"

    def log_in() -> Cluster:
        with keys_without_names():
            client = get_api_client(**auth).client
        # The client may know the server only from a cache: an answer shows that it is there.
        client.request("get", "/version", serialize=False, _request_timeout=PROBE_TIMEOUT)
        return Cluster(client)

    try:
        # In check mode a cluster may be missing, so don't wait for it.
        if module.check_mode:
            return log_in()
        return persist(log_in, where, passes=is_starting, first=True, patience=patience)
    except (CoreException, ApiError, TransportError, OSError) as error:
        if module.check_mode:
            missing = isinstance(auth.get("kubeconfig"), str) and not os.path.exists(os.path.expanduser(where))
            status = getattr(error, "status", 0)
            silence = f"HTTP {status}, {message_of(error)}" if status else first_line(error)
            why = f"there is no file {where}" if missing else f"{where}: {silence}"
            module.warn(f"The Kubernetes API did not answer ({why}): its cluster is treated as empty here.")
            return NoCluster(silence)
        if "No configuration found" in str(error):
            raise FabricError(
                "There is no kubeconfig here.",
                where,
                "no such file",
                "Name the file: fabric_kubeconfig for playbooks, NAME_kubeconfig for the role NAME. ipu.fabric.site"
                " keeps that of its cluster in artifacts/, so run this in the directory where site was run. If there is"
                " no cluster yet, run site without --tags.",
                code="api-unreachable",
                transient=False,
            ) from error
        if getattr(error, "status", 0) in (401, 403):
            raise refusal(error, "read", where) from error
        raise FabricError(
            "The Kubernetes API does not answer.",
            where,
            first_line(error),
            "Check that the server of the kubeconfig can be reached from the host where this module runs.",
            code="api-unreachable",
            transient=isinstance(error, TransportError) or (isinstance(error, ApiError) and is_transient(error)),
        ) from error


def first_line(error: BaseException) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0]


def status_of(error: t.Any) -> Object:
    """The Status that the API server has answered with; empty for anything else."""
    try:
        status = json.loads(error.body)
    except (TypeError, ValueError, AttributeError):
        return {}
    return status if isinstance(status, dict) else {}


def message_of(error: t.Any) -> str:
    """The API server's message, without the HTTP around it."""
    return status_of(error).get("message") or first_line(error)


def immutable_fields(error: t.Any) -> t.List[str]:
    """The immutable fields, such as the pods of a Job, whose change was refused."""
    causes = (status_of(error).get("details") or {}).get("causes") or ()
    return [each.get("field", "") for each in causes if each.get("message", "").endswith("field is immutable")]


def refusal_code(error: t.Any) -> Code:
    """The error code of a refusal, from its HTTP status."""
    kinds: t.Dict[int, Code] = {401: "api-denied", 403: "api-denied", 404: "not-found", 409: "conflict"}
    return kinds.get(error.status, "api-refused")


def refusal(error: t.Any, verb: str, where: str) -> FabricError:
    """The API server's refusal as an error with a next step."""
    scheduled = re.search(rf'User "system:serviceaccount:[^":]+:{PROVER}" cannot', message_of(error))
    steps = {
        401: f"Fetch a new kubeconfig: this one's certificate or token is not accepted. {RENEW}",
        403: f"{PROVER_STEP if scheduled else ''}Give this user the right that the message names, or use another"
        " kubeconfig.",
        409: "Something else changed the same object at the same time. Wait until that has ended, then run again.",
    }
    step = steps.get(error.status, "Correct the value that the message names and run again.")
    if status_of(error).get("reason") == "AlreadyExists":
        step = (
            "An object of this name is there already: another run has created it, or it is still being deleted. Wait"
            " until that has ended, then run again."
        )
    what, code = f"The API server refused to {verb} an object.", refusal_code(error)
    transient = code == "conflict" or is_transient(error)
    seen, fixed = message_of(error), immutable_fields(error)
    if fixed:  # the API's message quotes the whole field
        seen = f"{', '.join(fixed)} can't be changed"
        step = f"Remove the object first, then run again{_deletion(where)}."
    return FabricError(what, where, seen, step, code=code, transient=transient)


def _deletion(where: str) -> str:
    """The command that removes `Job default/training`; empty for anything else."""
    kind, _space, name = where.partition(" ")
    namespace, _slash, own = name.rpartition("/")
    return f": kubectl delete {kind.lower()} -n {namespace} {own}" if namespace and " " not in own else ""


def unknown_kind(obj: Object) -> FabricError:
    return FabricError(
        f"The cluster does not know the kind {obj['kind']}.",
        obj["apiVersion"],
        "no such kind",
        "Install the operator that defines it, or wait until its CustomResourceDefinition is Established.",
        code="not-found",
    )


def wait_until(
    pending: t.Callable[[], t.Sequence[str]], timeout: float, what: str, next_step: str, sleep: float = 1.0
) -> float:
    """Poll until nothing is pending. Returns the seconds that this took; the error lists what was still pending."""
    start = time.monotonic()
    while True:
        missing = pending()
        waited = time.monotonic() - start
        if not missing:
            return round(waited, 1)
        if waited + sleep > timeout:
            raise FabricError(what, f"after {waited:.0f} s", "; ".join(missing), next_step, code="timeout")
        time.sleep(sleep)
