# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Collect what hosts reported from the variables of a play."""

from __future__ import annotations

import contextlib
import ipaddress
import itertools
import json
import time
import typing as t
from pathlib import Path

from ansible import constants
from ansible.errors import AnsibleError
from ansible.module_utils.parsing.convert_bool import boolean

from ..module_utils._common.text import HUNG, HUNG_STEP
from ..module_utils._host.facts import clock_offset
from ..module_utils._host.vipu import split_endpoint
from ..module_utils._model.observation import ObservedParts
from ..module_utils._plan import cluster_identity
from ..module_utils._plan.names import GROUPS, may_be_ours, meant_connection_variables
from ..module_utils._plan.recording import faults
from ._messages import message_of
from ._site_variables import deciding_variables, refuse_facts, shown_value

MODULES = {"host": "host_info", "ports": "port_probe"}
PARTS = {"host": ("host", "rdma", "vipu"), "ports": ("listener", "probes", "listened")}  # of a result that has several
NEXT_STEP = (
    "Make it reachable by SSH (ansible_host, ansible_port) with Python 3 and privileges, or remove it from the"
    " inventory."
)
# Connection variables that Ansible does not list.
MORE_OF_SSH = ("ansible_python_interpreter", "ansible_ssh_args", "ansible_ssh_retries", "ansible_host_key_checking")
# What to do, by the message of SSH or sudo.
CAUSES = {
    "Host key verification failed": "Log in to it once by ssh, compare the key that it shows, and accept it.",
    "Permission denied": "Set ansible_user to a user of the host, and ansible_ssh_private_key_file to a key that it"
    " accepts, in the inventory.",
    "sudo: unknown user": "Set ansible_become_user to root: modules need its privileges.",
    "sudo: a password is required": "Add --ask-become-pass to the command, or let ansible_user use sudo without a"
    " password.",
    "Could not resolve hostname": "Correct the host's name in the inventory, or set ansible_host to its address there.",
    "sudo: not found": "Install sudo there, or set ansible_become to false if ansible_user is root.",
}
UNREADABLE = {
    "what": "The answer of the host is not what the module returns.",
    "where": "the host",
    "next_step": "Find out what answers there: another Python, or somebody else's program. Until then, take the host"
    " out of the inventory.",
}
KINDS = t.get_type_hints(ObservedParts)
Result = t.Mapping[str, t.Any]
Collected = t.Dict[str, t.Any]  # an Observation, as far as it is collected


def members(groups: t.Mapping[str, t.Sequence[str]]) -> t.List[str]:
    """All hosts of the planned cluster, each once, control planes first."""
    return list(dict.fromkeys(name for group in GROUPS for name in groups.get(group, ())))


def variables_of(
    hostvars: t.Mapping[str, t.Any], groups: t.Mapping[str, t.Sequence[str]]
) -> t.Dict[str, t.Mapping[str, t.Any]]:
    """The variables of each host of the cluster, read once, since Ansible merges all of them on each access."""
    variables: t.Dict[str, t.Mapping[str, t.Any]] = {name: hostvars[name] for name in members(groups)}
    for name, each in variables.items():
        refuse_facts(name, each)
    return variables


def address_of(text: object) -> str:
    """An address at which others can reach a host; empty for a name or a loopback address."""
    try:
        address = ipaddress.ip_address(str(text))
    except ValueError:
        return ""
    return "" if address.is_loopback else str(address)


def inventory_part(variables: t.Mapping[str, t.Any], groups: t.Sequence[str]) -> Collected:
    """What the inventory says about a host."""
    part: Collected = {"groups": sorted(groups), "address": variables.get("ip", ""), "errors": []}
    reached = address_of(variables.get("ansible_host", ""))
    if reached:
        part["reached"] = reached
    named = sorted(filter(may_be_ours, variables))
    if named:
        part["variables"] = named
        decided = {name: text for name in named for text in _decided(variables, name) if text}
        if decided:
            part["decided"] = decided
    if boolean(variables.get("rdma_host_reboot", False), strict=False):
        part["reboot"] = True
    return part


def _decided(variables: t.Mapping[str, t.Any], name: str) -> t.Iterator[str]:
    """The value of a variable by which a role decides, as plan.json shows it."""
    option = deciding_variables().get(name)
    if option is not None:
        with contextlib.suppress(AnsibleError):  # a template that needs what is not known yet
            yield shown_value(option, variables[name])


def error_of(source: str, where: str, result: Result) -> t.Dict[str, str]:
    """A failure of a module, or of a part of it, in the form of the plan."""
    limit = (result.get("timedout") or {}).get("period")
    if limit:
        return {
            "source": source,
            "what": HUNG,
            "where": where,
            "seen": f"nothing within {limit} s",
            "next_step": f"{HUNG_STEP} Or remove the host from the inventory.",
        }
    said = result.get("error", {})
    # If no module answered, what the host wrote instead says why.
    lines = str(result.get("module_stderr") or result.get("module_stdout") or "").strip().splitlines()
    seen = said.get("seen") or (lines[-1] if lines else message_of(result))
    return {
        "source": source,
        "what": said.get("what", "The host could not be observed."),
        "where": said.get("where", where),
        "seen": seen,
        "next_step": said.get("next_step")
        or next((step for cause, step in CAUSES.items() if cause in seen), NEXT_STEP),
    }


def misspelt(variables: t.Mapping[str, t.Any]) -> str:
    """A question for each variable that is nearly a connection variable, since Ansible does not report it."""
    known = set(itertools.chain(constants.COMMON_CONNECTION_VARS, *constants.MAGIC_VARIABLE_MAPPING.values()))
    meant = meant_connection_variables(variables, known | set(MORE_OF_SSH))
    return " ".join(
        f"The inventory sets {name}, which nothing reads: did you mean {ours}?" for name, ours in meant.items()
    )


def add_result(observation: Collected, part: str, result: Result) -> None:
    """Add what one module returned, or how it failed; nothing if it did not run."""
    found = {name: result[name] for name in PARTS.get(part, (part,)) if name in result}
    fault = next((fault for name, value in found.items() for fault in faults(value, KINDS[name], name)), "")
    if "vipu" in found:
        fault = fault or vipu_fault(found["vipu"])
    if fault:
        observation["errors"].append(error_of("host", MODULES[part], {"error": {**UNREADABLE, "seen": fault}}))
        return
    observation.update(found)
    if part == "host" and "host" in result:
        for source, failure in result.get("failures", {}).items():
            named = source if source == "vipu" else "host"
            observation["errors"].append(error_of(named, MODULES[part], {"error": failure}))
    elif part not in result and "msg" in result and not result.get("skipped"):
        observation["errors"].append(error_of("host", MODULES[part], result))


def vipu_fault(vipu: t.Mapping[str, t.Any]) -> str:
    """What is wrong with a controller that a host names: other hosts are asked to connect to it."""
    try:
        split_endpoint(vipu["host"])
        ipaddress.ip_address(vipu["address"] or "0.0.0.0")
    except ValueError as error:
        return f"vipu: {error}"
    return "" if 0 < vipu["port"] < 65536 else f"vipu.port is {vipu['port']}"


def results_of(
    variables: t.Mapping[str, t.Any], results: t.Mapping[str, t.Sequence[str]]
) -> t.Iterator[t.Tuple[str, str, Result]]:
    """Host, part and result. Results delegated to many hosts are in one variable, which all hosts of the play have."""
    delegated: t.Set[str] = set()
    for name, (part, registered) in itertools.product(variables, results.items()):
        for variable in registered:
            result = {} if variable in delegated else variables[name].get(variable) or {}
            if "hosts" in result:
                delegated.add(variable)
            yield from ((host, part, answer) for host, answer in result.get("hosts", {name: result}).items())


def observations(
    hostvars: t.Mapping[str, t.Any],
    groups: t.Mapping[str, t.Sequence[str]],
    results: t.Mapping[str, t.Sequence[str]],
) -> t.Dict[str, Collected]:
    """For each host of the cluster its groups, its address if the inventory names one, and what it reported."""
    names = members(groups)
    of_host: t.Dict[str, t.List[str]] = {name: [] for name in names}
    for group, listed in groups.items():
        for name in listed:
            if name in of_host and group not in ("all", "ungrouped"):
                of_host[name].append(group)
    variables = variables_of(hostvars, groups)
    collected = {name: inventory_part(variables[name], of_host[name]) for name in names}
    for host, part, result in results_of(variables, results):
        if host in collected:
            add_result(collected[host], part, result)
            hint = misspelt(variables[host]) if result.get("unreachable") else ""
            if hint and collected[host]["errors"]:
                error = collected[host]["errors"][-1]
                error["next_step"] = f"{hint} If that is not it: {error['next_step']}"
    arrived = time.time()
    for observation in collected.values():
        clock = observation.get("host", {}).get("time")
        if clock:
            offset = clock_offset(clock["asked"], clock["read"], arrived)
            observation["host"] = {**observation["host"], "time": {**clock, "offset": offset}}
    return collected


def read_plan(path: str) -> t.Dict[str, t.Any]:
    """plan.json of the last run; empty if there is none or it can't be read."""
    try:
        plan: t.Dict[str, t.Any] = json.loads(Path(path).read_text(encoding="utf-8"))
        return plan
    except (OSError, ValueError):
        return {}


def host_of(endpoint: str) -> str:
    try:
        return split_endpoint(endpoint, 6443)[0]
    except ValueError:
        return ""


def known_nodes(
    hostvars: t.Mapping[str, t.Any],
    groups: t.Mapping[str, t.Sequence[str]],
    registered: str,
    plan_file: str,
    virtual: str,
    endpoint: str,
) -> cluster_identity.KnownNodes:
    """Which node each host of the cluster is, if the host agrees with the inventory or the plan of the last run."""
    variables = variables_of(hostvars, groups)
    answers = {name: each.get(registered) or {} for name, each in variables.items()}
    plan = read_plan(plan_file)
    # If a plan found a host's identity wrong, it does not say what the host is.
    doubted = {
        name
        for finding in plan.get("findings") or []
        if finding["level"] == "error" and finding["check"] in ("host-identity", "unique-hostname")
        for name in finding["hosts"]
    }
    cluster = plan.get("cluster") or {}
    planned = {name: host for name, host in (plan.get("hosts") or {}).items() if name not in doubted}
    given = {name: str(each.get("ip") or "") for name, each in variables.items()}
    # Without a name of its own, the endpoint is the address of the first control plane.
    planes = {
        address
        for name in groups.get("kube_control_plane", ())
        for address in (given.get(name) or planned.get(name, {}).get("address", "")).split(",")
    }
    api = {host_of(endpoint), host_of(cluster.get("endpoint") or "")} - planes
    held = {virtual, (cluster.get("virtual_address") or {}).get("address", "")}
    claims = {name: str(answer["node"]).lower() for name, answer in answers.items() if answer.get("node")}
    found = cluster_identity.known_nodes(
        given,
        claims,
        planned,
        cluster_identity.Reserved(api | held, cluster.get("service_cidr") or ""),
        [name for name in claims if answers[name].get("requested")],
    )
    cluster_identity.check_planned(found, given, claims, plan.get("hosts") or {}, plan_file)
    return found
