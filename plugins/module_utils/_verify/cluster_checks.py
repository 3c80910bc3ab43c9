# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Checks of the cluster: releases, kinds, the NicClusterPolicy, nodes, multus and Node Feature Discovery. Pure."""

from __future__ import annotations

import typing as t

from .._common.text import shorten_list
from .._kube.nodes import PRESSURE
from .._model.checks import Check, Expect
from .._model.plan import Plan
from .._model.probe import ChartRelease, NodeFacts, PolicyStatus, Probe
from .._model.stacks import STACKS, has_stack, is_derived, stack_name
from .catalog import NOT_ASKED, result, skip, unproven
from .pods import ipu_release, targets


def check_cluster(plan: Plan, probe: Probe, expect: Expect) -> t.Iterator[Check]:
    served = set(probe["kinds"])
    stack = stack_name(plan["releases"]) if has_stack(plan["releases"]) else ""
    wanted: t.Dict[str, t.Tuple[str, t.FrozenSet[str]]] = {}
    if stack:
        wanted[STACKS[stack].release] = (stack, STACKS[stack].kinds)
    if expect.ipu:
        wanted[ipu_release(plan)["release"]] = ("ipu_operator", frozenset({"IPUJob"}))
    for release, (key, kinds) in wanted.items():
        yield release_check(release, version_of(plan, key), probe["releases"], kinds <= served)
        missing = ", ".join(sorted(kinds - served))
        yield result(
            "kinds", not missing, ", ".join(sorted(kinds)), f"missing: {missing}" if missing else "all", subject=release
        )
    if stack == "network_operator" or (is_derived(plan) and probe["policy"] is not None):
        yield policy_check(probe["policy"])
    for name, node in sorted(probe["nodes"].items()):
        yield node_check(name, node)


def node_check(name: str, node: NodeFacts) -> Check:
    """Check a node; one under pressure is Ready, but takes no new pods."""
    short = node.get("pressures", [])  # an older probe.json has none
    seen = "; ".join(["Ready" if node["ready"] else node["reason"], *short])
    check = result("node", node["ready"] and not short, "Ready", seen, node=name)
    return check._replace(next=PRESSURE) if short and node["ready"] else check


def is_new(plan: Plan) -> bool:
    """Whether the hosts were observed before the cluster existed, as in the run that builds it."""
    return (plan.get("cluster") or {}).get("running", True) is None and not is_derived(plan)


def check_certificates(plan: Plan) -> t.Iterator[Check]:
    """Check the certificates that the hosts reported when the plan was made, just before the proof."""
    hosts = plan.get("certificates", [])  # an older plan has none
    if not hosts:
        none = "kubeadm had made no certificates yet when the hosts were observed"
        yield skip("certificates", NOT_ASKED if is_derived(plan) else none, later=is_new(plan))
    for host in hosts:
        texts = ((host["expired"], "expired"), (host["ending"], "to be renewed"))
        bad = "; ".join(f"{text}: {', '.join(names)}" for names, text in texts if names)
        first = f"the first to expire is {host['first']}, {host['ends'][:10] or 'which cannot be read'}"
        expected = "none has expired or is about to"
        yield result("certificates", not bad, expected, f"{bad}; {first}" if bad else first, node=host["node"])


def check_cni_tokens(plan: Plan, probe: Probe) -> t.Iterator[Check]:
    """A plugin with an expired token can't set up pods' networks, although its own pod is Ready.

    The hosts reported the tokens when the plan was made. A pod that started later has written a new one.
    """
    since = probe["addons"].get("cni_since", {})
    hosts = plan["cni_token_ends"]["hosts"] if "cni_token_ends" in plan else []  # an older plan has none
    if not hosts:
        none = "no CNI plugin had a token on a host when the hosts were observed"
        yield skip("cni_tokens", NOT_ASKED if is_derived(plan) else none, later=is_new(plan))
    for host in hosts:
        texts = ((host["expired"], "has expired"), (host["ending"], "is about to expire"))
        kept = [
            ([name for name in names if since.get(name, {}).get(host["node"], "") <= host["seen"]], text)
            for names, text in texts
        ]
        bad = "; ".join(f"the token of {', '.join(names)} {text}" for names, text in kept if names)
        first = f"the first to expire is that of {host['first']}, {host['ends']}"
        expected = "none has expired or is about to"
        yield result("cni_tokens", not bad, expected, f"{bad}; {first}" if bad else first, node=host["node"])


def check_kubelet_requests(plan: Plan, probe: Probe) -> t.Iterator[Check]:
    """One check for the cluster, since foreign requests have no node. Clusters of others have their own approvers."""
    if not plan.get("certificates", []) and not is_new(plan):
        none = "kubeadm had made no certificates yet when the hosts were observed"
        yield skip("kubelet_requests", NOT_ASKED if is_derived(plan) else none)
        return
    found = probe.get("kubelet_requests", [])
    texts = [f"{each['name']} of {each['requestor']}: {each['problem'] or 'not approved yet'}" for each in found]
    seen = shorten_list(texts, 3, "; ") or "no request is pending"
    yield result("kubelet_requests", not found, "none is pending", seen)


def check_images(plan: Plan, probe: Probe) -> t.Iterator[Check]:
    """Check that containers run the pinned images. Which image a node stores under a tag does not matter."""
    digests = plan.get("image_digests", {})  # an older plan has none
    running = probe.get("images", [])
    if not digests:
        yield skip("image_digest", "no image is pinned (fabric_image_digests)")
    for image, digest in digests.items():
        mine = [each for each in running if each["image"] == image]
        other = [each for each in mine if "@" in each["id"] and not each["id"].endswith(f"@{digest}")]
        nameless = [each for each in mine if "@" not in each["id"]]
        places = shorten_list([pod for each in other for pod in each["pods"]], 3, "; ")
        if other:
            ids = ", ".join(sorted({each["id"].rpartition("@")[2] for each in other}))
            yield result("image_digest", False, digest, f"{ids}: {places}", subject=image)
        elif nameless:
            reason, missing = (
                "a node has the image without the digest of its registry",
                "On that node, delete the image (`crictl rmi`), then the pod: the next one pulls the image.",
            )
            yield unproven("image_digest", reason, missing, subject=image)
        else:
            seen = "all its containers run it" if mine else "no container runs it"
            yield result("image_digest", True, digest, seen, subject=image)


def version_of(plan: Plan, component: str) -> str:
    """The planned version; empty if any will do."""
    version: object = plan["releases"].get(component, "")
    return str(version)


def release_check(name: str, version: str, releases: t.Sequence[ChartRelease], served: bool) -> Check:
    found = next((r for r in releases if r["name"] == name), None)
    expected = f"{version}, deployed".lstrip(", ")
    if found is None:
        if served:
            return skip(
                "release",
                "not installed by Helm, or this account may not read it: there is no release to compare",
                subject=name,
            )
        return result("release", False, expected, "no such release", subject=name)
    seen = "{version}, {status}".format(**found)
    same = not version or found["version"].lstrip("v") == version.lstrip("v")
    return result("release", same and found["status"] == "deployed", expected, seen, subject=name)


def policy_check(status: t.Optional[PolicyStatus]) -> Check:
    if status is None:
        return result("policy", False, "ready", "no NicClusterPolicy `nic-cluster-policy`")
    late = [s["name"] for s in status.get("appliedStates") or [] if s.get("state") not in ("ready", "ignore")]
    state = status.get("state") or "no state yet"
    return result("policy", state == "ready", "ready", f"{state}: {', '.join(late)}" if late else state)


def check_workloads(plan: Plan, probe: Probe) -> t.Iterator[Check]:
    """Check pods that were already running: they keep the networks that they got at their start."""
    for network in plan["networks"]:
        lacking = probe["pods_without"][network["name"]]
        seen = shorten_list(lacking, 3, "; ") or "all have it"
        yield result(
            "workloads", not lacking, "each running pod that asks for the network has it", seen, network=network["name"]
        )


def check_addons(plan: Plan, probe: Probe) -> t.Iterator[Check]:
    addons = probe["addons"]
    for check, found in (("nfd", addons["nfd"]), ("multus_once", addons["multus"])):
        yield result(check, len(found) < 2, "one at most", ", ".join(found) or "none")
    for target in targets(plan):
        if not addons["multus"]:
            yield skip("multus_node", "there is no DaemonSet of multus", node=target.node)
        elif target.networks and target.node in probe["nodes"]:
            good, names = target.node in addons["multus_nodes"], ", ".join(addons["multus"])
            seen = f"{names}: ready" if good else f"{names}: no ready pod on this node"
            yield result("multus_node", good, "a ready pod of multus", seen, node=target.node)
