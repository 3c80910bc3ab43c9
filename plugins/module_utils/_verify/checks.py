# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Plan + what pods saw -> checks. Pure: one generator a group of checks, one row of KINDS a check."""

from __future__ import annotations

import ipaddress
import itertools
import typing as t

from ansible_collections.ipu.fabric.plugins.module_utils._ipam.planned_ranges import address_fault, planned_ranges
from ansible_collections.ipu.fabric.plugins.module_utils._kube.multus import macvlan_part
from ansible_collections.ipu.fabric.plugins.module_utils._network.providers import (
    STACKS,
    has_own_routes,
    network_state,
    route_seen,
    stack_name,
)
from ansible_collections.ipu.fabric.plugins.module_utils._verify.addon_checks import (
    judge_addons,
    judge_overlaps,
    judge_pools,
)
from ansible_collections.ipu.fabric.plugins.module_utils._verify.catalog import (
    FAILED,
    KINDS,
    NO_IPU,
    NODE_POD,
    PASSED,
    SKIPPED,
    TWO_NODES,
    Check,
    Expect,
    result,
    skip,
)
from ansible_collections.ipu.fabric.plugins.module_utils._verify.pods import (
    IPU_DEPLOYMENTS,
    Facts,
    addresses_of,
    interface_of,
    link_of,
    mtu_of,
)
from ansible_collections.ipu.fabric.plugins.module_utils._verify.rdma_checks import judge_rdma, judge_traffic

PER_POD = ("multus", "interface", "address", "default_route", "mtu")


def per_pod(network: Facts) -> t.Tuple[str, ...]:
    """The checks of one network in one pod."""
    return (*PER_POD, "policy_routes") if has_own_routes(network) else PER_POD


def judge(plan: Facts, probe: Facts, expect: Expect) -> t.List[Check]:
    """Every check, in the order of KINDS."""
    if not probe.get("probed"):
        return [skip(check, probe.get("reason", "no facts")) for check in KINDS]
    groups = (
        judge_cluster,
        lambda plan, probe, _expect: judge_addons(plan, probe),
        judge_networks,
        lambda plan, probe, _expect: judge_pools(plan, probe),
        lambda plan, probe, _expect: judge_overlaps(plan, probe),
        judge_pods,
        judge_limits,
        judge_pairs,
        judge_ipu,
        judge_rdma,
        judge_traffic,
    )
    checks = list(itertools.chain.from_iterable(group(plan, probe, expect) for group in groups))
    order = {check: number for number, check in enumerate(KINDS)}
    return sorted(checks, key=lambda c: order[c.check])


def counts(checks: t.Sequence[Check]) -> t.Dict[str, int]:
    return {status: sum(c.status == status for c in checks) for status in (PASSED, FAILED, SKIPPED)}


def summary(checks: t.Sequence[Check]) -> str:
    return "{passed} passed, {failed} failed, {skipped} skipped".format(**counts(checks))


# Cluster


def judge_cluster(plan: Facts, probe: Facts, expect: Expect) -> t.Iterator[Check]:
    served = set(probe["kinds"])
    stack = stack_name(plan)
    wanted = {STACKS[stack].release: (stack, STACKS[stack].kinds)}
    if expect.ipu:
        wanted["ipu-operator"] = ("ipu_operator", frozenset({"IPUJob"}))
    for release, (key, kinds) in wanted.items():
        yield release_check(release, str(plan.get("releases", {}).get(key, "")), probe["releases"], kinds <= served)
        missing = ", ".join(sorted(kinds - served))
        yield result(
            "kinds", not missing, ", ".join(sorted(kinds)), f"missing: {missing}" if missing else "all", subject=release
        )
    if stack == "network_operator":
        yield policy_check(probe["policy"])
    for name, node in sorted(probe["nodes"].items()):
        yield result("node", node["ready"], "Ready", "Ready" if node["ready"] else node["reason"], node=name)


def release_check(name: str, version: str, releases: t.Sequence[Facts], served: bool) -> Check:
    found = next((r for r in releases if r["name"] == name), None)
    expected = f"{version}, deployed".lstrip(", ")
    if found is None:
        if served:
            return skip("release", "not installed by Helm: there is no release to compare", subject=name)
        return result("release", False, expected, "no such release", subject=name)
    seen = "{version}, {status}".format(**found)
    same = not version or found["version"].lstrip("v") == version.lstrip("v")
    return result("release", same and found["status"] == "deployed", expected, seen, subject=name)


def policy_check(status: t.Optional[Facts]) -> Check:
    if status is None:
        return result("policy", False, "ready", "no NicClusterPolicy `nic-cluster-policy`")
    late = [s["name"] for s in status.get("appliedStates") or [] if s.get("state") not in ("ready", "ignore")]
    state = status.get("state") or "no state yet"
    return result("policy", state == "ready", "ready", f"{state}: {', '.join(late)}" if late else state)


# Networks


def judge_networks(plan: Facts, probe: Facts, expect: Expect) -> t.Iterator[Check]:
    stack = STACKS[stack_name(plan)]
    for network in plan.get("networks", []):
        name, seen = network["name"], probe["networks"][network["name"]]
        good, expected, text = network_state(stack, seen["state"])
        yield result("network", good, expected, text, network=name)
        yield attachment_check(network, seen["attachment"])
        yield unique_check(plan, network, probe["pods"])


def attachment_check(network: Facts, config: t.Any) -> Check:
    """The CNI configuration, field by field; IPAM as data."""
    name, config = network["name"], macvlan_part(config)
    planned = {
        "type": "macvlan",
        "master": network["master"],
        "mode": network.get("mode", "bridge"),
        "ipam": network["ipam"],
    }
    if network.get("mtu"):
        planned["mtu"] = network["mtu"]
    expected = ", ".join(f"{key}={planned[key]}" for key in ("type", "master", "mode"))
    if not isinstance(config, dict):
        seen = "no NetworkAttachmentDefinition" if config is None else f"not JSON: {config}"
        return result("attachment", False, expected, seen, network=name)
    different = [
        f"{key} is {config.get(key)!r}, planned {value!r}" for key, value in planned.items() if config.get(key) != value
    ]
    return result("attachment", not different, expected, "; ".join(different) or "equal", network=name)


def subnets_of(network: Facts) -> t.List[Facts]:
    """One of each family."""
    return network.get("subnets") or [network["subnet"]]


def unique_check(plan: Facts, network: Facts, pods: Facts) -> Check:
    """No address of a pod is another pod's, a host's, the gateway's or V-IPU's."""
    name = network["name"]
    owners: t.Dict[str, t.List[str]] = {}
    for host, facts in plan["hosts"].items():
        link = facts.get("links", {}).get(name, {})
        for entry in link.get("addresses") or [link]:
            owners.setdefault(entry.get("address", ""), []).append(f"host {host}")
    for subnet in subnets_of(network):
        owners.setdefault(subnet.get("gateway") or "", []).append("the gateway")
    for controller in plan.get("vipu", {}).get("controllers", []):
        owners.setdefault(controller.get("address", ""), []).append("V-IPU")
    given = [(address, f"pod on {node}") for node, pod in sorted(pods.items()) for address in addresses_of(pod, name)]
    for address, owner in given:
        owners.setdefault(address, []).append(owner)
    twice = sorted(f"{a}: {', '.join(owners[a])}" for a in {a for a, owner in given} if len(owners[a]) > 1)
    if not given:
        return skip("unique", "no pod has an address on this network", network=name)
    return result("unique", not twice, "each address once", "; ".join(twice) or f"{len(given)} addresses", network=name)


# Pods


def judge_pods(plan: Facts, probe: Facts, expect: Expect) -> t.Iterator[Check]:
    networks = {network["name"]: network for network in plan.get("networks", [])}
    for node, pod in sorted(probe["pods"].items()):
        good = pod["state"] == "running"
        yield result("pod", good, "running", "running" if good else pod["reason"], node=node)
        for name in pod["networks"]:
            where = {"node": node, "network": name}
            if good:
                yield from pod_checks(plan, networks[name], pod, where)
            else:
                yield from (skip(check, NODE_POD, **where) for check in per_pod(networks[name]))


def pod_checks(plan: Facts, network: Facts, pod: Facts, where: t.Dict[str, str]) -> t.Iterator[Check]:
    """What one pod says of one network."""
    name = network["name"]
    interface, link = interface_of(pod, name), link_of(pod, name)
    root = pod.get("root") or {}
    if root.get("tool_missing"):
        yield from (skip(check, "the image has no `ip` command", **where) for check in per_pod(network))
        return
    if root.get("links") is None:
        seen = root.get("error") or "`ip -j` gave no JSON"
        yield from (result(check, False, "facts from the pod", seen, **where) for check in per_pod(network))
        return
    yield multus_check(network, pod, bool(link), where)
    kind = link.get("kind") or "not there"
    yield result("interface", kind == "macvlan", f"{interface}, macvlan", f"{interface}, {kind}", **where)
    yield address_check(network, addresses_of(pod, name), where)
    routes: t.Optional[t.List[str]] = root.get("default_routes")
    seen = "not readable" if routes is None else ", ".join(routes) or "no default route"
    yield result("default_route", set(routes or ()) == {"eth0"}, "eth0", seen, **where)
    yield mtu_check(plan, network, pod, link, where)
    if has_own_routes(network):
        yield policy_routes_check(network, root.get("policy"), interface, addresses_of(pod, name), where)


def policy_routes_check(
    network: Facts, policy: t.Optional[Facts], interface: str, addresses: t.Sequence[str], where: t.Dict[str, str]
) -> Check:
    """What comes in by a rail is answered by the same rail."""
    gateway = network["subnet"].get("gateway") if network["subnet"] else ""
    if not gateway:
        return skip("policy_routes", "the network has no gateway", **where)
    expected = f"own table, default via {gateway} dev {interface}"
    if policy is None:
        return result("policy_routes", False, expected, "`ip -j rule` and `ip -j route` gave no JSON", **where)
    version = ipaddress.ip_address(gateway).version
    mine = [address for address in addresses if ipaddress.ip_address(address).version == version]
    seen = [route_seen(policy, address, interface, gateway) for address in mine]
    good = bool(seen) and all(good for good, _text in seen)
    return result("policy_routes", good, expected, "; ".join(text for _good, text in seen) or "no address", **where)


def address_check(network: Facts, addresses: t.Sequence[str], where: t.Dict[str, str]) -> Check:
    if not network["subnet"]:
        return skip("address", "the plan has no subnet for this network", **where)
    faults = [fault for fault in (address_fault(network, address) for address in addresses) if fault]
    limits = []
    for planned in planned_ranges(network):
        limits.append(planned.text + (", not excluded" if planned.excluded else ""))
        if addresses and planned.bounds.version not in {ipaddress.ip_address(each).version for each in addresses}:
            faults.append(f"no address of {planned.text}")
    seen = "; ".join(faults) or ", ".join(addresses) or "no address"
    return result("address", bool(addresses) and not faults, " and ".join(limits), seen, **where)


def multus_check(network: Facts, pod: Facts, has_link: bool, where: t.Dict[str, str]) -> Check:
    """Multus writes on the pod what it attached; the interface itself is proof too."""
    name = f"{network.get('namespace', 'default')}/{network['name']}"
    status = pod.get("network_status")
    names = [entry.get("name", "") for entry in status or []]
    seen = name if name in names else ", ".join(names) or "no network status on the pod"
    return result("multus", has_link or name in names, f"{name} attached", seen, **where)


def mtu_check(plan: Facts, network: Facts, pod: Facts, link: Facts, where: t.Dict[str, str]) -> Check:
    mtu = mtu_of(plan, network, pod["host"])
    if not mtu:
        return skip("mtu", "the plan knows no MTU for this network", **where)
    return result("mtu", link.get("mtu") == mtu, str(mtu), str(link.get("mtu", "no interface")), **where)


# Limits


def limit_bytes(limit: str) -> float:
    return float("inf") if limit in ("unlimited", "infinity", "-1") else float(limit)


def readable(limit: str) -> str:
    """`unlimited`, or bytes in the largest binary unit that divides them."""
    if limit_bytes(limit) == float("inf"):
        return "unlimited"
    size = int(limit)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if size % 1024 or unit == "GiB" or not size:
            break
        size //= 1024
    return f"{size} {unit}"


def judge_limits(plan: Facts, probe: Facts, expect: Expect) -> t.Iterator[Check]:
    note = "" if readable(expect.memlock) == "unlimited" else " (expectation lowered from unlimited)"
    for node, pod in sorted(probe["pods"].items()):
        for check, name, uid in (("memlock_root", "root", 0), ("memlock_user", "user", 1000)):
            if pod["state"] != "running":
                yield skip(check, NODE_POD, node=node)
                continue
            facts = pod.get(name) or {}
            limit, who = facts.get("memlock"), facts.get("uid")
            expected = readable(expect.memlock) + note
            if limit is None or who != uid:
                seen = facts.get("error") or f"no limit read as uid {uid} (uid {who})"
                yield result(check, False, expected, seen, node=node)
                continue
            good = limit_bytes(limit["soft"]) >= limit_bytes(expect.memlock)
            yield result(check, good, expected, readable(limit["soft"]) + (note if good else ""), node=node)


# Pairs


def judge_pairs(plan: Facts, probe: Facts, expect: Expect) -> t.Iterator[Check]:
    for network in plan.get("networks", []):
        pairs = [pair for pair in probe["pairs"] if pair["network"] == network["name"]]
        if not pairs:
            yield from (skip(check, TWO_NODES, network=network["name"]) for check in ("ping", "full_size"))
        for pair in pairs:
            yield from pair_checks(pair, {"network": network["name"], "pair": (pair["from"], pair["to"])})


def pair_checks(pair: Facts, where: Facts) -> t.Iterator[Check]:
    """A small packet that comes back and a full-size one that does not is an MTU fault, not a broken path."""
    full, small = pair.get("full"), pair.get("small")
    if small is None:
        reason = pair.get("error") or "no output"
        yield from (result(check, False, "answers", reason, **where) for check in ("ping", "full_size"))
        return
    if not small["supported"]:
        yield from (skip(check, f"the image's ping: {small['seen']}", **where) for check in ("ping", "full_size"))
        return
    seen = f"{small['received']} of {small['sent']} answered" + (f", {small['rtt_ms']} ms" if small["rtt_ms"] else "")
    good = small["received"] > 0
    yield result("ping", good, f"answers from {pair['address']}", seen, value=small["rtt_ms"], unit="ms", **where)
    expected = f"{pair['mtu']} bytes, not fragmented"
    if full is None:
        yield skip("full_size", "the plan knows no MTU for this network", **where)
    elif not full["supported"]:
        yield skip("full_size", "the image's ping cannot forbid fragments (-M do): use one with iputils", **where)
    else:
        seen = f"{full['received']} of {full['sent']} answered"
        seen += f", the path's MTU is {full['path_mtu']}" if full["path_mtu"] else ""
        yield result("full_size", full["received"] > 0, expected, seen, **where)


# IPU

CERTIFICATE_DAYS = 14


def judge_ipu(plan: Facts, probe: Facts, expect: Expect) -> t.Iterator[Check]:
    if not expect.ipu:
        yield from (skip(check, NO_IPU) for check, kind in KINDS.items() if kind.area == "ipu")
        return
    yield from vipu_checks(probe["pods"])
    yield from label_checks(plan, probe["nodes"])
    deployments = probe["ipu"].get("deployments", [])
    late = [f"{d['name']} {d['ready']} of {d['wanted']} ready" for d in deployments if d["ready"] < d["wanted"]]
    seen = "; ".join(late) or ", ".join(d["name"] for d in deployments) or "no Deployment"
    good = len(deployments) >= len(IPU_DEPLOYMENTS) and not late
    yield result("ipu_operator", good, " and ".join(IPU_DEPLOYMENTS) + " ready", seen)
    webhook, proxy = probe["webhook"], probe["ipu"]["proxy"]
    yield result("webhook", webhook["passed"], "a dry-run IPUJob is accepted", webhook["seen"])
    yield result("vipu_proxy", proxy["healthy"], "GET /health: 200", proxy["seen"])
    end, days = probe["ipu"]["certificate"]["end"], probe["ipu"]["certificate"]["days"]
    seen = f"{days} days, until {end}" if end else "no certificate in the Secret ipu-operator-admission"
    yield result("ipu_certificate", bool(end) and days >= CERTIFICATE_DAYS, f"{CERTIFICATE_DAYS} days at least", seen)


def vipu_checks(pods: Facts) -> t.Iterator[Check]:
    asked = False
    for node, pod in sorted(pods.items()):
        for seen in (pod.get("root") or {}).get("vipu", []):
            asked = True
            where = f"{seen['host']}:{seen['port']}"
            if seen["rc"] == 127:
                yield skip("vipu", "the image has neither nc nor bash", node=node, subject=where)
            else:
                good = seen["rc"] == 0
                text = "open" if good else f"not open: {seen['seen']}" if seen["seen"] else "no answer within 3 s"
                yield result("vipu", good, "open", text, node=node, subject=where)
    if not asked:
        yield skip("vipu", "no V-IPU controller in the plan, or no pod to ask from")


def label_checks(plan: Facts, nodes: Facts) -> t.Iterator[Check]:
    planned = plan.get("vipu", {}).get("node_labels", {})
    if not planned:
        yield skip("ipu_labels", "the plan has no node labels")
    for host, labels in sorted(planned.items()):
        node = plan["hosts"][host]["node"]
        have = nodes.get(node, {}).get("labels", {})
        wrong = [
            f"{key}={have.get(key, '(none)')}" for key, value in sorted(labels.items()) if have.get(key) != str(value)
        ]
        expected = ", ".join(f"{key}={value}" for key, value in sorted(labels.items()))
        yield result("ipu_labels", not wrong, expected, ", ".join(wrong) or expected, node=node)
