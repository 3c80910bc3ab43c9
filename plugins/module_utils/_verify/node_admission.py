# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Body of the module node_admission: reads all nodes, decides, and patches those that differ."""

from __future__ import annotations

import contextlib
import datetime
import json
import typing as t
from multiprocessing.pool import ThreadPool

from ansible.module_utils.basic import AnsibleModule

from .._common.admission import CONDITION, PROVER_STEP, RECORD, TAINT
from .._common.manager import MANAGER
from .._common.result import FabricError, outcome
from .._kube.client import STRATEGIC, ApiError, Cluster, connect, refusal
from .._kube.node_labels import NODES, patch_node
from .._kube.query import Object, by_name, query, quoted
from .._kube.rights import TO_MARK, require_rights
from .admission import TRUE, NodeProof, Proof, Verdict, decide, nic_parts, plan_verdicts, see_node, summary

LONGEST_EVENT = 1024  # bytes of a message that the API server accepts
MOST_EVENTS = 100  # in one run: more than that is not about single nodes
RIGHTS_STEP = (
    f"{PROVER_STEP}Give this user the ClusterRole ipu-fabric-admission of"
    " https://github.com/ipu-fabric/ipu.fabric/blob/main/docs/admission.md, name another kubeconfig, or set"
    " fabric_admission: off."
)
EVENTS = "/api/v1/namespaces/default/events"


def status_patch(node: Object, wanted: NodeProof, now: str) -> Object:
    """The patch of a node's condition and record; empty if nothing differs."""
    current = query(f"status.conditions[?type=='{CONDITION}'] | [0]", node) or {}
    record = json.dumps(wanted.record._asdict(), sort_keys=True) if wanted.record else None
    patch: Object = {}
    if record != query(f"metadata.annotations.{quoted(RECORD)}", node):
        patch["metadata"] = {"annotations": {RECORD: record}}
    if not wanted.status:
        return {**patch, "status": {"conditions": [{"$patch": "delete", "type": CONDITION}]}} if current else patch
    stays = current.get("status") == wanted.status
    condition = {
        "type": CONDITION,
        "status": wanted.status,
        "reason": wanted.reason,
        "message": wanted.message,
        "lastHeartbeatTime": wanted.time or (current.get("lastHeartbeatTime") if stays else now),
        "lastTransitionTime": current.get("lastTransitionTime") if stays else now,
    }
    return patch if condition == current else {**patch, "status": {"conditions": [condition]}}


def taints(wanted: NodeProof) -> Object:
    return {"taints": [{**TAINT, "state": "present" if wanted.tainted else "absent"}]}


def event(name: str, wanted: NodeProof, now: str) -> Object:
    """The event that kubectl shows for a change; it finds a node's events by the node's name as uid."""
    return {
        "metadata": {"generateName": f"{name}.", "namespace": "default"},
        "involvedObject": {"apiVersion": "v1", "kind": "Node", "name": name, "uid": name},
        "type": "Normal" if wanted.status == TRUE else "Warning",
        "reason": f"{CONDITION}{wanted.status}",
        "message": wanted.message[:LONGEST_EVENT],
        "source": {"component": MANAGER},
        "firstTimestamp": now,
        "lastTimestamp": now,
        "count": 1,
    }


def change_node(cluster: Cluster, node: Object, wanted: NodeProof, patch: Object) -> None:
    """Patch a node, with the taint first, so that it is closed even if the rest fails. A deleted node needs nothing."""
    name = node["metadata"]["name"]
    try:
        patch_node(cluster, node, taints(wanted))
        if patch:  # conditions are merged by type, annotations by key: foreign ones stay
            cluster.request("patch", f"{NODES}/{name}/status", patch, STRATEGIC, fieldManager=MANAGER)
    except ApiError as error:
        if error.status != 404:
            raise refusal(error, "patch", f"Node {name}, its status") from error
    except FabricError as error:
        if error.code != "not-found":
            raise


def tell(cluster: Cluster, happened: Object) -> None:
    """Create an event. If that is not allowed or not possible, the condition is enough."""
    with contextlib.suppress(ApiError):
        cluster.request("post", EVENTS, happened)


def view(status: str, reason: str, tainted: bool) -> Object:
    """The diff of a node: a proof with the same result at a later time is not a change."""
    return {**({CONDITION: f"{status}, {reason}"} if status else {}), **({"taint": TAINT["key"]} if tainted else {})}


def admit(module: AnsibleModule) -> t.Dict[str, t.Any]:
    """Body of the module node_admission."""
    params = module.params
    cluster = connect(module)
    nodes = by_name(cluster.items(NODES))
    plan = params["plan"]
    failed = any(finding["level"] == "error" for finding in plan.get("findings", []))
    nics = nic_parts(plan) if plan and not failed else {}  # with errors, the plan does not contain all of them
    seen = {name: see_node(node, nics.get(name, {})) for name, node in nodes.items()}
    said = {each["name"]: Verdict(each["status"], each["reason"], each["text"]) for each in params["proofs"]}
    proof, members = Proof(said, params["time"], params["report"]), set(nics)
    if failed:  # earlier runs show which nodes belong to the fabric
        proof = Proof(plan_verdicts(plan), plan["made"]["time"])
        members = {name for name, node in seen.items() if node.status}
    wanted = decide(params["mode"], params["max_unproved"], list(seen.values()), members, proof)
    now = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    patches = {name: status_patch(nodes[name], one, now) for name, one in wanted.items()}
    due = [name for name, one in wanted.items() if patches[name] or one.tainted != seen[name].tainted]
    if due and not module.check_mode:
        require_rights(cluster, TO_MARK, "Marks on nodes need rights in the cluster.", RIGHTS_STEP)
        with ThreadPool(min(params["concurrency"], len(due))) as pool:
            pool.map(lambda name: change_node(cluster, nodes[name], wanted[name], patches[name]), due)
            turned = [name for name in due if seen[name].status and wanted[name].status not in ("", seen[name].status)]
            pool.map(lambda name: tell(cluster, event(name, wanted[name], now)), turned[:MOST_EVENTS])
    before = {name: view(one.status, one.reason, one.tainted) for name, one in seen.items()}
    after = {name: view(one.status, one.reason, one.tainted) for name, one in wanted.items()}
    differing = [name for name in wanted if before[name] != after[name]]
    return outcome(
        {name: before[name] for name in differing},
        {name: after[name] for name in differing},
        nodes=differing,
        lines=summary(seen, wanted),
    )
