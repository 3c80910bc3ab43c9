# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A plan as text for a terminal, and the table rows that plan.html shows too."""

from __future__ import annotations

import itertools
import json
import os
import re
import shlex
import typing as t

from .._common.admission import ENFORCE
from .._common.text import NO_BREAK, printable, shorten_list, wrapped
from .._model.observation import EMBEDDED
from .._model.plan import (
    HOST,
    PVRDMA,
    Drift,
    Finding,
    Hardening,
    Made,
    Plan,
    PlannedHost,
    PlannedLink,
    PlannedNetwork,
    Preflight,
    Since,
)
from .._model.stacks import STACKS, describe_stack, has_stack, is_derived, stack_name
from .._network.support import describe_support
from .changes import change_lines, mark_of, show_change

WIDTH = 69  # columns: ansible.builtin.debug adds 11 around each line, and a terminal has 80
ROWS = 40  # of hosts; further ones are only in the plan's files
NAMES = 8  # host names in one line
MOVED = 20  # differences from the earlier plan that a terminal shows
PRODUCTS = {"calico": "Calico", "cilium": "Cilium"}  # others are written as in fabric_cni


def cut(text: str, width: int) -> str:
    return text if len(text) <= width else text[: max(width - 1, 0)] + "…"


def wrap_words(text: str, indent: str = "", width: int = WIDTH) -> t.List[str]:
    """The wrapped lines, at least one. Words are not cut; all lines but the first are indented."""
    return wrapped(text, width, then=indent) or [""]


def table(heading: t.Sequence[str], rows: t.Sequence[t.Sequence[str]], width: int = WIDTH) -> t.List[str]:
    """Lines of a table. The widest columns are wrapped between words until it fits, and cut if that is not enough."""
    columns = list(zip(heading, *rows))
    widths = [max(map(len, column)) for column in columns]
    words = [max(len(word) for cell in column for word in cell.split(" ")) for column in columns]
    while sum(widths) + 2 * (len(widths) - 1) > width and max(widths) > 4:
        wrappable = [index for index, room in enumerate(widths) if room > words[index]]
        widest = max(wrappable or range(len(widths)), key=lambda index: widths[index])
        widths[widest] = words[widest] if wrappable else widths[widest] - 1
    lines = []
    for row in [heading, *rows]:
        cells = [wrap_words(cell, width=room) for cell, room in zip(row, widths)]
        for line in itertools.zip_longest(*cells, fillvalue=""):
            text = "  ".join(cut(cell, room).ljust(room) for cell, room in zip(line, widths))
            lines.append(text.replace(NO_BREAK, " ").rstrip())
    return lines


def count(number: int, word: str) -> str:
    return f"{number} {word}{'' if number == 1 else 's'}"


def headline(plan: Preflight) -> str:
    errors = sum(finding["level"] == "error" for finding in plan["findings"])
    warnings = len(plan["findings"]) - errors
    if "not_proved" in plan:
        return "derived from the cluster, to be proved"
    if errors:
        return f"{count(errors, 'error')}, {count(warnings, 'warning')}: nothing changes until errors are fixed"
    return f"{count(warnings, 'warning')}: can be applied" if warnings else "no findings: can be applied"


def facts(plan: Preflight) -> t.List[t.Tuple[str, str]]:
    """The plan's decisions, one line each: a title and what is planned. A preflight has none."""
    return _decisions(t.cast("Plan", plan)) if "releases" in plan else []


def _derived(plan: Plan) -> t.List[t.Tuple[str, str]]:
    """What a derived plan will prove of a cluster, and what it leaves out."""
    lines = [("Made", made_text(plan["made"]))] if plan["made"]["by"] else []
    lines.append(("Cluster", f"Kubernetes {plan['releases']['kubernetes']}, API at {plan['cluster']['endpoint']}"))
    for network in plan["networks"]:
        lines += _network_facts(network, plan["hosts"])
        place = f"{network['namespace']}/{network['name']}"
        lines += [("", each["why"]) for each in plan["not_proved"] if each["network"] == place and not each["whole"]]
    for each in plan["not_proved"]:
        if each["whole"]:
            lines.append(("Broken" if each["fault"] else "Left out", f"{each['network']}: {each['why']}"))
            lines += [("", each["next"])] if each["next"] else []
    return lines


def _decisions(plan: Plan) -> t.List[t.Tuple[str, str]]:
    if is_derived(plan):
        return _derived(plan)
    releases, cluster = plan["releases"], plan["cluster"]
    lines = [
        *([("Made", made_text(plan["made"]))] if plan["made"]["by"] else []),
        *([("Recorded", f"{plan['recorded']}: no host was asked for this plan")] if plan.get("recorded") else []),
        (
            "Releases",
            f"Kubernetes {releases['kubernetes']}"
            + (f", {product(releases['cni'])} {releases['cni_version']}".rstrip() if releases["cni"] != "none" else "")
            + f", {describe_stack(releases)}"
            + (
                ""
                if not has_stack(releases) or STACKS[stack_name(releases)].ipam
                else f" ({releases['ipam'] or 'no IPAM'})"
            )
            + (f", GPU operator {releases['gpu_operator']}" if releases["gpu_operator"] else ""),
        ),
        ("", f"support: {describe_support(plan['support'])}"),
        (
            "Cluster",
            f"API at {cluster['endpoint'] or 'unknown'}, pods {cluster['pod_cidr']}, "
            f"services {cluster['service_cidr']}",
        ),
    ]
    runtime = cluster["runtime"]
    if runtime["cri_dockerd"]:
        gates = "".join(f", feature gate {name} of kubelets off" for name in runtime["kubelet_feature_gates"])
        lines.append(("", f"container runtime {runtime['name']}, by cri-dockerd {runtime['cri_dockerd']}{gates}"))
    distribution = cluster["distribution"]
    places = (("plugins", distribution["cni_bin_directory"]), ("configurations", distribution["cni_network_directory"]))
    told = [f"CNI {what} in {place}" for what, place in places if place]
    if told or distribution["name"] in EMBEDDED:
        lines.append(("", "; ".join([f"nodes made by {distribution['name']}", *told])))
    if cluster["running"]:
        networks = " and ".join(map(product, cluster["running"]["pod_networks"])) or "no pod network"
        operators = "".join(
            f", IPU operator {each['version']} ({each['release'] or 'not installed by Helm'} in {each['namespace']})"
            for each in cluster["running"]["ipu_operators"]
        )
        lines.append(("", f"existing cluster: Kubernetes {cluster['running']['version']}, {networks}{operators}"))
    if plan["hardening"]:
        lines += _hardening_facts(plan["hardening"])
    admission = plan.get("admission")
    if admission:
        closes = f", closes at most {admission['max_unproved']} of the nodes for failed proofs"
        lines.append(("Admission", f"{admission['mode']}{closes if admission['mode'] == ENFORCE else ''}"))
    for controller in plan["vipu"]["controllers"]:
        at = f"{controller['address']}:{controller['port']} ({controller['label']})"
        lines.append(
            (
                "V-IPU",
                f"{at}, IPU operator {releases['ipu_operator']}, serves {shorten_list(controller['serves'], NAMES)}",
            )
        )
    for network in plan["networks"]:
        lines += _network_facts(network, plan["hosts"])
    for number, group in enumerate(plan.get("nic_groups", ())):
        nics = [name for each in group["resources"] for name in each["selectors"].get("ifNames", [PVRDMA])]
        listed = f"{shorten_list(nics, NAMES)} on {shorten_list(group['hosts'], NAMES)}"
        lines.append(("" if number else "NIC groups", f"NicNodePolicy {group['name']}: {listed}"))
    return lines if plan["networks"] else [*lines, _without_networks(plan)]


def product(pod_network: str) -> str:
    """Its name as its makers write it."""
    return PRODUCTS.get(pod_network, pod_network)


def made_text(made: Made) -> str:
    """When, for which site, by whom and with what."""
    site = f"for {made['site']}" if made["site"] else ""
    return ", ".join(filter(None, [made["time"], site, f"by {made['by']}", f"ipu.fabric {made['collection']}"]))


def _without_networks(plan: Plan) -> t.Tuple[str, str]:
    """What pods get if there is no fabric network."""
    hosts = plan["hosts"]
    if any(each["check"] == "networks" and each["level"] == "error" for each in plan["findings"]):
        return ("Network", "none is valid, see the findings")
    links = [host["links"][HOST] for host in hosts.values() if HOST in host["links"]]
    names = shorten_list(sorted({f"{link['device']} of {link['netdev']}" for link in links}), NAMES)
    rdma = f"{names} by /dev/infiniband, in privileged containers" if links else "without RDMA"
    return ("Network", f"none: pods have the pod network alone, {rdma}")


def _hardening_facts(hardening: Hardening) -> t.List[t.Tuple[str, str]]:
    names = list(dict.fromkeys(setting["name"] for setting in hardening["settings"]))
    lines = [("Hardening", f"{hardening['level']}{': ' if names else ''}{', '.join(names)}")]
    lines += [("", f"without {each['name']}: {each['why']}") for each in hardening["left_out"]]
    for each in hardening["due"]:
        if each["changes"]:
            lines.append(("", f"changes on {each['host']}: {'; '.join(each['changes'])}"))
        if each["kept"]:
            where = f"stays on {each['host']}, set in kubernetes_cluster_config or by hand"
            lines.append(("", f"{where}: {'; '.join(each['kept'])}"))
    return lines


def _network_facts(network: PlannedNetwork, hosts: t.Mapping[str, PlannedHost]) -> t.List[t.Tuple[str, str]]:
    resource = network["resource"] if network["rdma"] else "without RDMA"
    name = f"{network['namespace']}/{network['name']}"
    links = [host["links"][network["name"]] for host in hosts.values() if network["name"] in host["links"]]
    renamed = shorten_list(sorted({link["netdev"] for link in links if link["altname"]}), 4)
    how = " ".join(filter(None, [network.get("cni", ""), network["mode"]]))
    mtu = f"MTU {network['mtu']}" if network["mtu"] else "the NIC's MTU"
    place = network["master"] or ("NICs" if network.get("cni") == "host-device" else "VFs of NICs")
    lines = [("Network", f"{name}: {how} on {place}, {mtu}, {resource}")]
    if not network["master"] and not links:
        return [("Network", f"{name}: no NIC, see the findings")]
    if renamed:
        lines.append(("", f"{network['master']} becomes an alternative name of {renamed}"))
    if not network["subnets"]:
        return [*lines, *([] if "made_by" in network else [("", "no addresses, see the findings")])]
    blocks = {pool["subnet"]: f", a block of {pool['perNodeBlockSize']} for each node" for pool in network["pools"]}
    for subnet in network["subnets"]:
        gateway = f", gateway {subnet['gateway']}" if subnet["gateway"] else ""
        span = f"{subnet['range_start']}-{subnet['range_end']}"
        addresses = (
            f"{subnet['capacity']} address{'' if subnet['capacity'] == 1 else 'es'}{blocks.get(subnet['cidr'], '')}"
        )
        pods = f"{span}, {addresses}" + ("" if "made_by" in network else f", {subnet['needed']} needed")
        lines.append(("", f"{subnet['cidr']}{gateway}; pods {pods}"))
        if subnet["exclude"] and "made_by" not in network:
            lines.append(("", f"never for pods: {shorten_list(subnet['exclude'], NAMES)}"))
    return lines


def host_rows(plan: Preflight) -> t.Tuple[t.List[str], t.List[t.List[str]]]:
    """Heading and rows of the table of hosts: the change of each, its NICs, and its number of findings."""
    changes = t.cast("Plan", plan)["summary"]["hosts"] if "summary" in plan else {}
    networks = list(dict.fromkeys(name for host in plan["hosts"].values() for name in host["links"]))
    shown = networks if len(networks) <= 2 else ["FABRIC"]
    rows = []
    for name, host in plan["hosts"].items():
        if len(networks) <= 2:
            links = [_link(host["links"][network]) if network in host["links"] else "-" for network in networks]
        else:
            links = [count(len({link["netdev"] for link in host["links"].values()}), "NIC")]
        mine = [finding["level"] for finding in plan["findings"] if name in finding["hosts"]]
        state = ", ".join(count(mine.count(level), level) for level in ("error", "warning") if level in mine) or "ok"
        roles = ", ".join(role.replace("control_plane", "control-plane") for role in host["roles"])
        change = [show_change(changes[name])] if changes else []
        rows.append([name, *change, host["address"] or "-", roles, *links, state])
    return ["HOST", *(["CHANGE"] if changes else []), "ADDRESS", "ROLES", *shown, "FINDINGS"], rows


def _link(link: PlannedLink) -> str:
    return f"{link['netdev']} {link['address']}/{link['prefix']}" if link["address"] else link["netdev"]


def finding_lines(finding: Finding) -> t.List[str]:
    hosts = shorten_list(finding["hosts"], NAMES) or "all"
    lines = [f"{finding['level'].upper()} {finding['check']}: {hosts}"]
    for label, text in (("", finding["what"]), ("seen: ", finding["seen"]), ("next: ", finding["next"])):
        lines.append(f"  {label}{text}")
    return lines


def known_line(finding: Finding) -> str:
    """One line for a finding that was reported in full before."""
    return f"{finding['level'].upper()} {finding['check']}: {shorten_list(finding['hosts'], NAMES) or 'all'}, as before"


def since_headline(since: Since) -> str:
    if since["applied"]:
        what = f"the plan that was applied{', of ' if since['time'] else ''}{since['time']}"
    else:
        what = f"the last plan{', of ' if since['time'] else ''}{since['time']}"
    if not since["moved"]:
        return f"all decisions are as in {what}"
    verb = "differs" if len(since["moved"]) == 1 else "differ"
    return f"{count(len(since['moved']), 'decision')} {verb} from {what}"


def since_lines(since: Since, in_full: bool) -> t.List[str]:
    """Differences from the earlier plan, or their number; empty if there are none."""
    if not since["moved"]:
        return []
    if not in_full:
        return ["", *wrap_words(f"Before: {since_headline(since)}: see plan.html", "  ")]
    lines = ["", *wrap_words(f"Before: {since_headline(since)}", "  ")]
    for each in since["moved"][:MOVED]:
        lines += wrap_words(" ".join(filter(None, [f"  {each['mark']}", each["host"], each["thing"]])), "    ")
        for field in each["fields"]:
            lines += wrap_words(f"      {field}", "        ")
    rest = len(since["moved"]) - MOVED
    return [*lines, *([f"  ... and {rest} more, in plan.html"] if rest > 0 else [])]


def job_variables(plan: Plan, kubeconfig: str) -> t.Dict[str, object]:
    """Values of this site for docs/examples/training.yml; kubeconfig: empty if jobs find it by default."""
    network = plan["networks"][0] if plan["networks"] else None
    name = network["name"] if network and network["namespace"] == "default" else ""
    resource = network["resource"] if network and network["rdma"] else ""
    namespace = plan["ipu_operator"]["namespace"] if plan["ipu_operator"] else ""
    wanted: t.Dict[str, t.Tuple[object, object]] = {  # each with the example's own value
        "fabric_kubeconfig": (kubeconfig, ""),
        "ipu_operator_namespace": (namespace, "ipu-operator"),
        "networks": ([name or f"{network['namespace']}/{network['name']}"] if network else [], ["rdma-net"]),
        "rdma_resource": (
            resource[len("rdma/") :] if resource.startswith("rdma/") else resource,
            "rdma_shared_device_a",
        ),
    }
    return {variable: value for variable, (value, default) in wanted.items() if value != default}


def native_job_variables(network: PlannedNetwork, kubeconfig: str, image: str) -> t.Dict[str, object]:
    """Values with which docs/examples/native-training.yml shows a pod's interface on the network, without IPUs.

    image: the proof's, which the nodes already have.
    """
    namespace, name = network["namespace"], network["name"]
    given: t.Dict[str, object] = {
        "native_workload_name": "first-job",
        "native_workload_network": name if namespace == "default" else f"{namespace}/{name}",
        "native_workload_rdma_resource": network["resource"] if network["rdma"] else "",
        "example_image": image,
        "example_folder": "",
        "example_training": "ip address show net1",
        "example_vipu": "",
    }
    if not network["rdma"]:
        given["native_workload_check_memlock"] = False
    return {**given, **({"native_workload_kubeconfig": kubeconfig} if kubeconfig else {})}


def next_steps(
    plan: Plan,
    kubeconfig: str,
    api_host: str,
    examples: str,
    usual: bool,
    image: str,
    report: str = "",
    proved: bool = False,
) -> t.List[str]:
    """The commands to run after site.

    kubeconfig: a path on api_host; usual: jobs find it by default. examples: the path of docs/examples. image: of the
    proof's pods. report: the path of report.html; empty if none is written. proved: an earlier run has proved the
    fabric, and has already shown how to run a first job.
    """
    local = api_host in ("localhost", "127.0.0.1")
    kubectl = f"kubectl --kubeconfig {shlex.quote(kubeconfig)} get nodes"
    lines = [f"  {kubectl if local else f'ssh {api_host} sudo {kubectl}'}"]
    job, name, told = "", "training.yml", "" if usual else kubeconfig
    given: t.Dict[str, object] = {}
    if not local or proved:
        pass
    elif plan["ipu_operator"]:
        job, given = "IPUJob", job_variables(plan, told)
    elif plan["networks"]:
        job, name = "job on the network", "native-training.yml"
        given = native_job_variables(plan["networks"][0], told, image)
    if job:
        options = f" -e {shlex.quote(json.dumps(given))}" if given else ""
        lines.append(f"  ansible-playbook {shlex.quote(os.path.join(examples, name))}{options}")
    steps = f"Next: look at the nodes{f', then run a first {job}' if job else ''}."
    return [*([f"Report: {report}"] if report else []), steps, "", *lines]


def split_drift(drift: t.Sequence[Drift]) -> t.Tuple[t.List[Drift], t.List[Drift]]:
    """Objects that site would change, and those that it would leave."""
    return [one for one in drift if one["change"] != "leave"], [one for one in drift if one["change"] == "leave"]


def drift_headline(drift: t.Sequence[Drift]) -> str:
    would, left = split_drift(drift)
    objects = list(dict.fromkeys(one["object"] for one in would))
    said = f"site would change {count(len(objects), 'object')} of the cluster" if would else "site would change nothing"
    return f"{said}; {count(len(left), 'object')} outside the plan would stay" if left else said


def drift_mark(one: Drift) -> str:
    """The same marks as for hosts: + added, ~ changed, - removed; blank for objects that stay."""
    return {"create": "+", "remove": "-", "leave": " "}.get(one["change"], "~")


def why_left(one: Drift) -> str:
    return "made by this collection, but no longer planned" if one["ours"] else "made by others"


def drift_text(drift: t.Sequence[Drift]) -> str:
    """Objects that differ from the plan, for a terminal."""
    lines = wrap_words(f"Drift: {drift_headline(drift)}", "  ")
    for one in drift:
        lines += ["", *wrap_words(f"{drift_mark(one)} {one['change']} {one['object']}", "    ")]
        for field in one["fields"] or ([why_left(one)] if one["change"] == "leave" else []):
            lines += wrap_words(f"  {field}", "    ")
    if split_drift(drift)[0]:
        lines += ["", *wrap_words("Next: ipu.fabric.fabric changes what is listed here; --check --diff shows how.", "")]
    return printable("\n".join(lines)) + "\n"


def limit_text(limit: str, others: t.Collection[str]) -> str:
    """A note that a run with --limit sets up no other hosts. others: inventory hosts outside the limit."""
    if not limit or not others:
        return ""
    more = f" and {len(others) - NAMES} more" if len(others) > NAMES else ""
    return (
        f"\nLimited to {limit} (--limit): this run sets up no other host.\n"
        f"The plan covers these too, and has read their state: {', '.join(sorted(others)[:NAMES])}{more}\n"
    )


def files_text(folder: str, kubeconfig: str, recorded: bool) -> str:
    """A site's files in the folder. kubeconfig: the one that site writes; recorded: the plan is from a recording."""
    proof = "" if recorded else "; site adds report.html, report.json, junit.xml"
    name = kubeconfig.rpartition("/")[2] if kubeconfig.startswith(folder) and not recorded else ""
    rights = f"  {name}, with all rights on the cluster, comes from site\n" if name else ""
    return f"\nFiles in {folder}:\n  plan.json and plan.html{proof}\n{rights}"


def as_text(plan: Preflight, title: str = "Plan", known: t.Sequence[Finding] = ()) -> str:
    """The whole plan for a terminal: decisions, hosts, findings, differences from the earlier plan, a closing line.

    known: findings that the last run reported. Warnings among them get one line; errors are always shown in full.
    """
    lines = [
        *wrap_words(f"{title}: {count(len(plan['hosts']), 'host')}, {headline(plan)}", "  "),
        *([""] if facts(plan) else []),
    ]
    for word, text in facts(plan):
        lines += wrap_words(f"{word:<10}{text}", " " * 12)
    heading, rows = host_rows(plan)
    rows = [[*cells, re.sub(r"(?<=\d) ", NO_BREAK, state)] for *cells, state in rows]
    summary = t.cast("Plan", plan)["summary"] if "summary" in plan else None
    if summary:  # follow-up words go below the table, which has no room for them
        marks = [mark_of(change) for change in summary["hosts"].values()]
        rows = [[f"{mark}{NO_BREAK}{name}", *cells] for mark, (name, _change, *cells) in zip(marks, rows)]
        heading = [f"{NO_BREAK * 2}{heading[0]}", *heading[2:]]
    lines += ["", *table(heading, rows[:ROWS])]
    if len(rows) > ROWS:
        lines.append(f"... and {len(rows) - ROWS} more hosts, in plan.json")
    if summary:
        told = [row for line in change_lines(summary["hosts"], NAMES) for row in wrap_words(line, "    ")]
        lines += ["", *told] if told else []
    again = [finding for finding in plan["findings"] if finding["level"] != "error" and finding in known]
    for finding in plan["findings"]:
        if finding not in again:
            lines.append("")
            for line in finding_lines(finding):
                lines += wrap_words(line, "    ")
    if again:
        lines.append("")
        lines += [row for finding in again for row in wrap_words(known_line(finding), "    ")]
        lines += wrap_words("  fabric_all_findings=true shows these in full, as plan.html does.", "  ")
    since = t.cast("Plan", plan)["since"] if summary else None
    lines += since_lines(since, since["applied"] or bool(plan.get("recorded"))) if since else []
    if summary:
        lines += ["", *wrap_words(summary["line"], "  ")]
    return printable("\n".join(lines)) + "\n"  # names of NICs and addresses come from the hosts
