# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""All checks of a fabric: the plan compared with the probe; here those of networks and of pods on them. Pure."""

from __future__ import annotations

import ipaddress
import itertools
import typing as t

from .._common import cilium
from .._common.cni import split_chain
from .._common.text import printable
from .._ipam.planned_ranges import address_fault, planned_ranges
from .._kube.multus import Attachment, planned_config
from .._model.checks import Check, Expect, Place
from .._model.observation import ADVERTISED
from .._model.plan import Plan, PlannedLink, PlannedNetwork
from .._model.probe import NetworkFacts, PodFacts, PodLink, Probe, RoutingPolicy
from .._model.stacks import OWN_DEVICES, STACKS, has_stack, is_derived, stack_name, stack_of
from .._network.stacks import network_state, own_table, route_seen
from .catalog import (
    ACCEPTED,
    CHECK_TYPES,
    FAILED,
    LATER,
    NO_ADDRESS,
    NO_MULTUS,
    NO_NETWORK,
    NO_NODE,
    NODE_POD,
    NOT_READY,
    NOT_RUN,
    OF_IPUS,
    OF_OTHERS,
    PARTIAL,
    PASSED,
    PROVED,
    SKIPPED,
    STATUSES,
    UNPROVEN,
    need_image,
    result,
    skip,
    unproven,
)
from .cluster_checks import (
    check_addons,
    check_certificates,
    check_cluster,
    check_cni_tokens,
    check_images,
    check_kubelet_requests,
    check_workloads,
)
from .dns_checks import dns_check
from .gpu_checks import check_gpu_bandwidth, check_gpus
from .ipu_checks import check_ipu
from .limit_checks import check_limits
from .pods import Pods, addresses_of, advertised_to, interface_of, link_of, mtu_of, node_of
from .pool_checks import check_overlaps, check_pools
from .rail_checks import check_rails
from .rdma_checks import check_rdma
from .route_checks import gateway_check, gateways_of, main_routes_check
from .traffic_checks import check_pings, check_traffic

PER_POD = ("multus", "interface", "address", "default_route", "main_routes", "mtu")
OF_NETWORKS = ("network", "attachment", "unique", "workloads", "ip_pool", *PER_POD, "ping", "full_size")
BY_ADVERTISEMENT = " (by router advertisement)"
OF_ATTACHMENT = ("interface", "address", "unique", "default_route", "main_routes", "mtu", "ping", "full_size")
OF_LINK = ("address", "main_routes", "gateway", "mtu", "policy_routes")  # what a pod without the interface lacks too


class Cause(t.NamedTuple):
    """A failed check from which others may follow, if they share the given fields of a Place."""

    check: str
    fields: t.Tuple[str, ...]
    followers: t.Tuple[str, ...]
    also: str = ""  # what else must be done

    def place(self, check: Check) -> t.Tuple[str, ...]:
        """Where it failed, limited to the fields that its followers share."""
        return tuple(getattr(check, field) for field in self.fields)

    @property
    def advice(self) -> str:
        """A follower's advice, in place of its own."""
        title = CHECK_TYPES[self.check].title
        return f"First act on `{title}` of this {self.fields[0]}{self.also}: this may follow from it."


# The first one that applies is named.
CAUSES = (
    Cause("attachment", ("network",), OF_ATTACHMENT, ", and recreate its pods"),
    Cause("multus_node", ("node",), ("multus", "interface", *OF_LINK)),
    Cause("multus", ("node", "network"), ("interface", *OF_LINK)),
    Cause("interface", ("node", "network"), OF_LINK),
    Cause("unique", ("network",), ("ping", "full_size", "rping")),
    Cause("ping", ("pair", "network"), ("full_size", "rping")),
)
# Checks that fail if the NIC of the node, or of either end, was down on its host.
OF_NIC = ("gateway", "ping", "full_size", "rdma_link", "rping", "write_bandwidth", "read_latency")
# Checks that all fail if nothing of the fabric is installed.
NOT_INSTALLED = "First run the playbook ipu.fabric.site: nothing of the fabric is installed."
OF_INSTALLED = (
    *("release", "kinds", "policy", "multus_node", "gateway", "policy_routes"),
    *OF_NETWORKS,
    *("rdma_resource", "rdma_files", "gid", "rping", "write_bandwidth", "read_latency", "rdma_counters"),
    "gpu_bandwidth",
)


def lacks_fabric(plan: Plan, probe: Probe) -> bool:
    """Whether the cluster has nothing of the planned stack: no release, none of the stack's kinds, no network.

    NetworkAttachmentDefinitions do not count: another multus may own them.
    """
    if not has_stack(plan["releases"]):
        return False
    stack = STACKS[stack_name(plan["releases"])]
    there = any(release["name"] == stack.release for release in probe["releases"])
    served = stack.kinds & set(probe["kinds"]) - {"NetworkAttachmentDefinition"}
    networks = [probe["networks"][network["name"]] for network in plan["networks"]]
    return not (there or served or any(seen["state"] or seen["attachment"] for seen in networks))


def per_pod(network: PlannedNetwork) -> t.Tuple[str, ...]:
    """The checks of one network in one pod."""
    gateway = ("gateway",) if gateways_of(network) else ()
    return (*PER_POD, *gateway, "policy_routes") if own_table(network) else (*PER_POD, *gateway)


def check_fabric(plan: Plan, probe: Probe, expect: Expect) -> t.List[Check]:
    """Every check, in the order of CHECK_TYPES."""
    if not probe["probed"]:
        return [skip(check, probe["reason"]) for check in CHECK_TYPES if expect.ipu or check not in OF_IPUS]
    groups = (
        check_cluster(plan, probe, expect),
        check_certificates(plan),
        check_cni_tokens(plan, probe),
        check_kubelet_requests(plan, probe),
        check_images(plan, probe),
        check_addons(plan, probe),
        check_workloads(plan, probe),
        check_networks(plan, probe),
        check_pools(plan, probe),
        check_overlaps(plan, probe),
        check_pods(plan, probe),
        check_limits(probe, expect),
        check_pings(plan, probe),
        check_rails(plan, probe, expect),
        check_ipu(plan, probe, expect),
        check_rdma(plan, probe),
        check_traffic(plan, probe, expect),
        check_gpus(plan, probe, expect),
        check_gpu_bandwidth(plan, probe, expect),
    )
    order = {check: number for number, check in enumerate(CHECK_TYPES)}
    checks = sorted(itertools.chain.from_iterable(groups), key=lambda c: order[c.check])
    advised = point_to_cause(checks, probe.get("exclusive_cilium", ""), lacks_fabric(plan, probe), nics_down(plan))
    if is_derived(plan):
        advised = [for_others(check, bool(probe["addons"]["multus"])) for check in advised]
    return [accept(cleaned(check), expect.allow_unproven) for check in advised]


def nics_down(plan: Plan) -> t.Dict[t.Tuple[str, str], str]:
    """The advice, by node and network, for NICs that were down on their hosts when the plan was made."""

    def advice(host: str, link: PlannedLink) -> str:
        return (
            f"First bring up {link['netdev']} of {host}, which was {link.get('down')} when the plan was made: check the"
            f" cable and the switch port, then `ip link set {link['netdev']} up`."
        )

    return {
        (host["node"], network): advice(name, link)
        for name, host in plan["hosts"].items()
        for network, link in host["links"].items()
        if link.get("down")
    }


def point_to_cause(
    checks: t.Sequence[Check], exclusive_cilium: str, bare: bool, down: t.Mapping[t.Tuple[str, str], str]
) -> t.List[Check]:
    """Give failures that follow from others the advice for their cause: hosts, switches and images are not at fault.

    bare: nothing of the fabric is installed, so its checks can't be proved either. down: the result of nics_down().
    """
    failed = [check for check in checks if check.status == FAILED]
    lacking = {(check.node, check.network) for check in failed if check.check == "multus"}
    places = {cause: {cause.place(check) for check in failed if check.check == cause.check} for cause in CAUSES}

    def advice(check: Check) -> str:
        if bare and check.status in (FAILED, UNPROVEN) and check.check in OF_INSTALLED and check.seen != NO_NODE[0]:
            return NOT_INSTALLED
        if check.status != FAILED:
            return check.next
        if check.seen == NO_NODE[0]:
            return NO_NODE[1]
        if exclusive_cilium and (check.check == "workloads" or (check.node, check.network) in lacking):
            return f"{cilium.WHY} {exclusive_cilium} has cni-exclusive: true. {cilium.ADVICE}"
        for key in check.pair or (check.node,):
            if check.check in OF_NIC and (node_of(key), check.network) in down:
                return down[node_of(key), check.network]
        for cause, where in places.items():
            if check.check in cause.followers and cause.place(check) in where:
                return cause.advice
        return check.next

    return [check._replace(next=advice(check)) for check in checks]


def for_others(check: Check, has_multus: bool) -> Check:
    """Replace the usual advice if it mentions what only a planned site has."""
    if check.next == LATER:
        return check._replace(next="Run ipu.fabric.prove_cluster again, which looks again.")
    usual = check.next == CHECK_TYPES[check.check].next_step
    if usual and not has_multus and check.check in ("multus", "workloads"):
        return check._replace(next=NO_MULTUS)
    return check._replace(next=OF_OTHERS.get(check.check, check.next)) if usual else check


def cleaned(check: Check) -> Check:
    """Make texts printable: terminals and browsers show them, and pods determine their content."""
    return check._replace(
        seen=printable(check.seen),
        expected=printable(check.expected),
        next=printable(check.next),
        subject=printable(check.subject),
    )


def accept(check: Check, allowed: t.Sequence[str]) -> Check:
    return check._replace(status=ACCEPTED) if check.status == UNPROVEN and check.check in allowed else check


def counts(checks: t.Sequence[Check]) -> t.Dict[str, int]:
    return {status: sum(c.status == status for c in checks) for status in STATUSES}


def outcome(checks: t.Sequence[Check], partial: bool = False) -> str:
    """The overall result: failed, unproven, proved, or not run. A selection of checks alone proves nothing."""
    number = counts(checks)
    good = PARTIAL if partial else PROVED
    return next((status for status in (FAILED, UNPROVEN) if number[status]), good if number[PASSED] else NOT_RUN)


def shown_counts(checks: t.Sequence[Check]) -> t.Dict[str, int]:
    """The counts, with unproven and accepted checks only if there are any."""
    return {status: n for status, n in counts(checks).items() if n or status not in (UNPROVEN, ACCEPTED)}


def summary(checks: t.Sequence[Check], partial: bool = False) -> str:
    """The headline: the outcome and the counts."""
    return f"{outcome(checks, partial)}: " + ", ".join(f"{n} {status}" for status, n in shown_counts(checks).items())


# Networks


def check_networks(plan: Plan, probe: Probe) -> t.Iterator[Check]:
    if not plan["networks"]:
        yield from (skip(check, NO_NETWORK) for check in OF_NETWORKS)
    for network in plan["networks"]:
        name, seen = network["name"], probe["networks"][network["name"]]
        stack = stack_of(plan, network)
        if stack:
            good, expected, text = network_state(stack, network, seen["state"])
            yield result("network", good, expected, text, network=name)
        else:
            yield skip("network", "it is only a NetworkAttachmentDefinition", network=name)
        if is_derived(plan):
            yield skip("attachment", "the plan was derived from it", network=name)
        else:
            yield attachment_check(network, seen["attachment"])
        yield unique_check(plan, network, probe["pods"])
    for each in plan.get("not_proved", []):
        if each["fault"]:
            check = result("network", False, "pods can join it", each["why"], network=each["network"])
            yield check._replace(next=each["next"])
        elif each["whole"]:
            yield skip("network", each["why"], network=each["network"])


def attachment_check(network: PlannedNetwork, config: object) -> Check:
    """Compare the CNI configuration field by field; IPAM as data."""
    name, planned = network["name"], planned_config(t.cast(Attachment, network))
    main, _following = split_chain(config, planned["type"])
    expected = ", ".join(f"{key}={value}" for key, value in planned.items() if key != "ipam")
    if main is None:
        seen = "no NetworkAttachmentDefinition" if config is None else f"no CNI configuration: {config}"
        return result("attachment", False, expected, seen, network=name)
    different = [
        f"{key} is {main.get(key)!r}, planned {value!r}" for key, value in planned.items() if main.get(key) != value
    ]
    return result("attachment", not different, expected, "; ".join(different) or "equal", network=name)


def unique_check(plan: Plan, network: PlannedNetwork, pods: Pods) -> Check:
    """Check that no pod's address is also that of another pod, a host, the gateway or V-IPU."""
    name = network["name"]
    owners: t.Dict[str, t.List[str]] = {}
    for host, facts in plan["hosts"].items():
        link = facts["links"].get(name)
        for address in [entry["address"] for entry in link["addresses"]] if link else ():
            owners.setdefault(address, []).append(f"host {host}")
    for subnet in network["subnets"]:
        owners.setdefault(subnet["gateway"], []).append("the gateway")
    for controller in plan["vipu"]["controllers"]:
        owners.setdefault(controller["address"], []).append("V-IPU")
    given = [(address, f"pod on {node}") for node, pod in sorted(pods.items()) for address in addresses_of(pod, name)]
    for address, owner in given:
        owners.setdefault(address, []).append(owner)
    twice = sorted(f"{a}: {', '.join(owners[a])}" for a in {a for a, owner in given} if len(owners[a]) > 1)
    if not given:
        return unproven("unique", "no pod has an address on this network", NO_ADDRESS[1], network=name)
    seen = "; ".join(twice) or f"{len(given)} address{'' if len(given) == 1 else 'es'}"
    check = result("unique", not twice, "each address once", seen, network=name)
    if network["ipam"].get("type") != "host-local":
        return check
    if not twice and len({pods[node]["host"] for node, pod in pods.items() if addresses_of(pod, name)}) > 1:
        return unproven(
            "unique", f"{seen}, but host-local gives out the same ones on each node", HOST_LOCAL, network=name
        )
    return check._replace(next=HOST_LOCAL) if twice else check


# Pods

HOST_LOCAL = "host-local allocates on each node independently: use whereabouts or nv-ipam."
WITHOUT_ADVERTISEMENTS = "Turn router advertisements off on the routers of this network's VLAN."
NIC_TAKEN = (
    "Something else has the NIC: ipvlans of other pods (NetworkAttachmentDefinitions of type ipvlan), a bond, a bridge"
    " or Open vSwitch. See `ip -d link` on the node, and run ipu.fabric.plan, which names it."
)


def check_pods(plan: Plan, probe: Probe) -> t.Iterator[Check]:
    networks = {network["name"]: network for network in plan["networks"]}
    for node, pod in sorted(probe["pods"].items()):
        good = pod["state"] == "running"
        check = result("pod", good, "running", "running" if good else pod["reason"], node=node)
        if not good and "device or resource busy" in pod["reason"]:
            check = check._replace(next=NIC_TAKEN)
        elif not good and pod["reason"].startswith(NOT_READY):
            check = check._replace(next=CHECK_TYPES["node"].next_step)
        yield check
        if node == node_of(node):
            yield dns_check(pod, probe.get("dns_problems", []), node) if good else unproven("dns", *NODE_POD, node=node)
        for name in pod["networks"]:
            where: Place = {"node": node, "network": name}
            if good:
                yield from pod_checks(plan, networks[name], pod, where)
            else:
                yield from (unproven(check, *NODE_POD, **where) for check in per_pod(networks[name]))


def pod_checks(plan: Plan, network: PlannedNetwork, pod: PodFacts, where: Place) -> t.Iterator[Check]:
    """The checks of one pod on one network."""
    name = network["name"]
    interface, link, root = interface_of(pod, name), link_of(pod, name), pod["root"]
    if root["tool_missing"]:
        missing = need_image("ip of iproute2")
        yield from (unproven(check, "the image has no `ip` command", missing, **where) for check in per_pod(network))
        return
    if root["links"] is None:
        seen = root["error"] or "`ip -j` gave no JSON"
        yield from (result(check, False, "facts from the pod", seen, **where) for check in per_pod(network))
        return
    yield multus_check(network, pod, interface in root["links"], where)
    kind = link["kind"] or "not there"
    cni, stack = network.get("cni", "macvlan"), stack_of(plan, network)
    good = interface in root["links"] if cni in OWN_DEVICES else kind == cni
    yield result("interface", good, f"{interface}, {cni}", f"{interface}, {kind}", **where)
    advice = stack.advertised if stack else WITHOUT_ADVERTISEMENTS
    address = address_check(network, addresses_of(pod, name), where)
    yield without_advertised(address, advertised_to(pod, name), advice)
    yield default_route_check(root, advice, where)
    yield main_routes_check(plan, network, pod, where)
    yield gateway_check(network, pod, where)
    yield mtu_check(plan, network, pod, link, where)
    if own_table(network):
        yield policy_routes_check(network, root["policy"], interface, addresses_of(pod, name), where)


def policy_routes_check(
    network: PlannedNetwork,
    policy: t.Optional[RoutingPolicy],
    interface: str,
    addresses: t.Sequence[str],
    where: Place,
) -> Check:
    """Check that traffic that arrives on a rail is answered on the same rail."""
    gateway = network["subnet"]["gateway"] if network["subnet"] else ""
    if not gateway and own_table(network) != "all":
        return skip("policy_routes", "the network has no gateway", **where)
    expected = f"own table, default via {gateway} dev {interface}" if gateway else "own table"
    if policy is None:
        return result("policy_routes", False, expected, "`ip -j rule` and `ip -j route` gave no JSON", **where)
    version = ipaddress.ip_address(gateway).version if gateway else 0
    mine = [each for each in addresses if not version or ipaddress.ip_address(each).version == version]
    seen = [route_seen(policy, address, interface, gateway) for address in mine]
    good = bool(seen) and all(good for good, _text in seen)
    return result("policy_routes", good, expected, "; ".join(text for _good, text in seen) or "no address", **where)


def without_advertised(check: Check, advertised: t.Sequence[str], advice: str) -> Check:
    """Fail the check of planned addresses if routers advertised others: each takes entries in the GID table."""
    if not advertised or check.status == SKIPPED:
        return check
    seen = ", ".join([check.seen, *(f"{address}{BY_ADVERTISEMENT}" for address in advertised)])
    return check._replace(status=FAILED, seen=seen, next=check.next or advice)


def default_route_check(root: NetworkFacts, advice: str, where: Place) -> Check:
    routes, advertised = root["default_routes"], root.get("advertised_routes")
    if advertised is None:  # an earlier release did not read the origin of a route: an advertised address shows it
        links = (root["links"] or {}).items()
        advertised = [name for name, link in links if any(one.get("origin") == ADVERTISED for one in link["addresses"])]
    named = [f"{name}{BY_ADVERTISEMENT if name in advertised else ''}" for name in routes or ()]
    seen = "not readable" if routes is None else ", ".join(named) or "no default route"
    check = result("default_route", set(routes or ()) == {"eth0"}, "eth0", seen, **where)
    others = set(routes or ()) - {"eth0"}
    return check._replace(next=advice) if others and others <= set(advertised) else check


def address_check(network: PlannedNetwork, addresses: t.Sequence[str], where: Place) -> Check:
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


def multus_check(network: PlannedNetwork, pod: PodFacts, has_link: bool, where: Place) -> Check:
    """Check multus' status on the pod; the interface itself is a proof too."""
    name = f"{network['namespace']}/{network['name']}"
    status = pod.get("network_status")
    names = [entry.get("name", "") for entry in status or []]
    seen = name if name in names else ", ".join(names) or "no network status on the pod"
    return result("multus", has_link or name in names, f"{name} attached", seen, **where)


def mtu_check(plan: Plan, network: PlannedNetwork, pod: PodFacts, link: PodLink, where: Place) -> Check:
    mtu = mtu_of(plan, network, pod["host"])
    if not mtu:
        return skip("mtu", "the plan has no MTU for this network", **where)
    return result("mtu", link["mtu"] == mtu, str(mtu), str(link["mtu"] or "no interface"), **where)
