# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Kubelets' requests for serving certificates: only those that match the planned hosts are approved.

Kubernetes approves none by itself, since it can't know a node's own names and addresses. The plan does.
"""

from __future__ import annotations

import base64
import contextlib
import typing as t
from concurrent.futures import ThreadPoolExecutor

from ansible.module_utils.basic import AnsibleModule

from .._common.addresses import normal_addresses
from .._common.result import FabricError, outcome
from .._common.text import printable, shorten_list
from .._model.probe import KubeletRequest
from .client import ApiError, Cluster, TransportError, connect, message_of, refusal, wait_until
from .query import Object

with contextlib.suppress(ImportError):  # run_module() reports a missing package, from the module's `libraries`
    from cryptography import x509
    from cryptography.x509.oid import ExtensionOID, NameOID

REQUESTS = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
SIGNER = "kubernetes.io/kubelet-serving"
USER, GROUP = "system:node:", "system:nodes"
# As the signer requires; key encipherment is for RSA keys.
USAGES = (
    {"digital signature", "server auth"},
    {"digital signature", "key encipherment", "server auth"},
)
NEXT_STEP = (
    "See kubectl get csr, and journalctl -u kubelet on that host. If a request is right after all, approve it with"
    " kubectl certificate approve NAME; deny all others."
)
AT_ONCE = 16  # kubelets to query at the same time

Nodes = t.Mapping[str, t.Sequence[str]]  # planned addresses by node name


class Contents(t.NamedTuple):
    """What a request wants to have certified."""

    subject: t.List[t.Tuple[str, str]]  # name and value of each attribute
    names: t.List[str]
    addresses: t.List[str]
    others: t.List[str]  # kinds of other alternative names
    signed: bool  # signed by the key that it is for


def read_contents(pem: bytes) -> Contents:
    """The contents of a PEM text. ValueError if it is not a request."""
    request = x509.load_pem_x509_csr(pem)
    names: t.List[str] = []
    addresses: t.List[str] = []
    others: t.List[str] = []
    for extension in request.extensions:
        if extension.oid != ExtensionOID.SUBJECT_ALTERNATIVE_NAME:
            continue
        for name in extension.value:
            if isinstance(name, x509.DNSName):
                names.append(name.value)
            elif isinstance(name, x509.IPAddress):
                addresses.append(str(name.value))
            else:
                others.append(type(name).__name__)
    known = {NameOID.COMMON_NAME: "CN", NameOID.ORGANIZATION_NAME: "O"}
    subject = [(known.get(each.oid, each.oid.dotted_string), str(each.value)) for each in request.subject]
    return Contents(subject, names, addresses, others, request.is_signature_valid)


def is_pending(request: Object) -> bool:
    """Whether the request has not been decided yet."""
    return not (request.get("status") or {}).get("conditions")


def requested_node(request: Object) -> str:
    """The node whose kubelet made a request, according to the API server; empty if it was somebody else."""
    user = str(request["spec"].get("username", ""))
    return user[len(USER) :] if user.startswith(USER) else ""


def why_not(request: Object, nodes: Nodes) -> str:
    """Why a request can't be approved; empty if it is exactly what a planned host's kubelet would request."""
    spec, node = request["spec"], requested_node(request)
    if spec.get("signerName") != SIGNER:
        return f"it is for the signer {spec.get('signerName')}"
    if not node or GROUP not in (spec.get("groups") or []):
        return "it was not made by a kubelet"
    if node not in nodes:
        return f"no host of the inventory is the node {node}"
    if set(spec.get("usages") or []) not in USAGES:
        return f"its usages are {', '.join(sorted(spec.get('usages') or [])) or 'missing'}"
    try:
        contents = read_contents(base64.b64decode(spec.get("request", "")))
    except ValueError as error:
        return f"it can't be read: {error}"
    return why_not_contents(contents, node, nodes[node])


def why_not_contents(contents: Contents, node: str, planned: t.Sequence[str]) -> str:
    if not contents.signed:
        return "it is not signed with its own key"
    if sorted(contents.subject) != [("CN", f"{USER}{node}"), ("O", GROUP)]:
        return f"its subject is {', '.join('='.join(each) for each in contents.subject) or 'empty'}"
    if contents.others:
        return f"it has alternative names of the kind {', '.join(sorted(set(contents.others)))}"
    if set(contents.names) != {node}:
        return f"it is for the names {', '.join(sorted(contents.names)) or '(none)'}, and the node is {node}"
    asked, own = normal_addresses(contents.addresses), normal_addresses(planned)
    if asked != own:
        return (
            f"it is for the addresses {', '.join(sorted(asked)) or '(none)'},"
            f" and those planned for {node} are {', '.join(sorted(own)) or '(none)'}"
        )
    return ""


def judge(request: Object, nodes: Nodes) -> KubeletRequest:
    node = requested_node(request)
    return {
        "name": request["metadata"]["name"],
        "requestor": printable(str(request["spec"].get("username", ""))),
        "node": node if node in nodes else "",
        "problem": printable(why_not(request, nodes)),
    }


def pending_requests(cluster: Cluster) -> t.List[Object]:
    """All requests that have not been decided yet."""
    found = cluster.items(REQUESTS, fieldSelector=f"spec.signerName={SIGNER}")
    return sorted(filter(is_pending, found), key=lambda each: each["metadata"]["name"])


def describe_request(request: KubeletRequest) -> str:
    return f"{request['name']} of {request['requestor']}: {request['problem']}"


def approve(cluster: Cluster, request: Object) -> None:
    """Approve the version that was judged: its content can't change, but somebody else may have decided meanwhile."""
    metadata = request["metadata"]
    condition = {
        "type": "Approved",
        "status": "True",
        "reason": "PlannedHost",
        "message": "ipu.fabric: requestor, name and addresses are those of a planned host",
    }
    body = {
        "metadata": {"resourceVersion": metadata.get("resourceVersion")},
        "status": {"conditions": [condition]},
    }
    try:
        cluster.patch(f"{REQUESTS}/{metadata['name']}/approval", body)
    except ApiError as error:
        if error.status not in (404, 409):  # gone or decided: fine
            raise refusal(error, "approve", f"CertificateSigningRequest {metadata['name']}") from error


def why_no_answer(cluster: Cluster, node: str) -> str:
    """Why the API server gets no answer from a kubelet, as without a certificate; empty if it gets one."""
    try:
        cluster.client.request("get", f"/api/v1/nodes/{node}/proxy/healthz", serialize=False, _request_timeout=10)
    except (ApiError, TransportError) as error:
        return message_of(error).strip() or "no answer"
    return ""


class Approval:
    """Approves matching requests until the kubelets that wait for a certificate have one."""

    def __init__(
        self, cluster: Cluster, nodes: Nodes, awaited: t.Sequence[str] = (), requested: t.Sequence[str] = ()
    ) -> None:
        self.cluster, self.nodes, self.awaited, self.requested = cluster, nodes, list(awaited), list(requested)
        self.approved: t.List[str] = []
        self.left: t.List[KubeletRequest] = []

    def judge(self) -> t.List[Object]:
        """The requests that match; the others are recorded as left."""
        found = pending_requests(self.cluster)
        judged = [judge(each, self.nodes) for each in found]
        self.left = [each for each in judged if each["problem"]]
        return [request for request, verdict in zip(found, judged) if not verdict["problem"]]

    def approve(self) -> None:
        for request in self.judge():
            approve(self.cluster, request)
            self.approved.append(f"{request['metadata']['name']} of {request['spec']['username']}")
            self.requested = [node for node in self.requested if node != requested_node(request)]

    def missing(self) -> t.List[str]:
        """Kubelets that still have no certificate, each with the reason as far as known."""
        self.approve()
        with ThreadPoolExecutor(max_workers=AT_ONCE) as pool:
            answers = list(pool.map(lambda node: why_no_answer(self.cluster, node), self.awaited))
        silent = [(node, answer) for node, answer in zip(self.awaited, answers) if answer]
        self.awaited = [node for node, _answer in silent]
        refused = {each["node"]: describe_request(each) for each in self.left if each["node"]}
        silent += [(node, "its kubelet has not asked for a certificate") for node in self.requested]
        return [f"{node}: {refused.get(node) or answer}" for node, answer in silent]


def manage_requests(module: AnsibleModule) -> t.Dict[str, t.Any]:
    """Approve matching requests, and wait for the kubelets that need a certificate."""
    params, cluster = module.params, connect(module)
    approval = Approval(cluster, params["nodes"], params["awaited"], params["requested"])
    if module.check_mode:
        fitting = [f"{each['metadata']['name']} of {each['spec']['username']}" for each in approval.judge()]
        approval.approved = fitting
    elif params["awaited"] or params["requested"]:
        try:
            wait_until(
                approval.missing,
                params["timeout"],
                "Kubelets did not get a certificate for their server. Without one, logs and exec of pods do not work.",
                NEXT_STEP,
                sleep=2.0,
            )
        except FabricError as error:
            raise FabricError(
                error.what,
                error.where,
                shorten_list(error.seen.split("; "), 5, "; "),
                NEXT_STEP,
                code=error.code,
                transient=error.transient,
            ) from error
    else:
        approval.approve()
    left = [describe_request(each) for each in approval.left]
    for each in left:
        module.warn(f"A request for a kubelet's certificate does not fit the inventory, and was not approved: {each}")
    return outcome({"pending": approval.approved}, {"pending": []}, approved=approval.approved, left=left)
