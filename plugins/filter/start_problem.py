# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json
import os
import re
import shlex
import sys
import typing as t
from importlib.metadata import version

from ansible import context
from ansible.errors import AnsibleError
from ansible.module_utils.ansible_release import __version__
from ansible.module_utils.common.arg_spec import ArgumentSpecValidator

from ..module_utils._common.result import FabricError
from ..module_utils._common.secrets import NOT_SHOWN

DOCUMENTATION = r"""
name: start_problem
short_description: Find what prevents a run from starting, as far as the controller alone can tell
version_added: 0.1.0
description:
  - Looks for packages and collections that the controller lacks, then for an inventory without hosts of a cluster and
    for misspelt tags, then for site variables, and variables of other roles, of a wrong type.
  - Site variables are those of the role P(ipu.fabric.fabric#role). That role itself makes the same check, but on every
    host, and prints its whole specification each time.
positional: sources
author: ipu.fabric contributors (@ipu-fabric)
options:
  _input:
    description: The variables of all hosts, V(hostvars).
    type: dict
    required: true
  sources:
    description: Sources of the inventory, V(ansible_inventory_sources).
    type: list
    elements: str
    required: true
"""

EXAMPLES = r"""
- name: Check the controller, the inventory and the types of its variables
  ansible.builtin.assert:
    that: not problem
    fail_msg: "{{ problem }}"
  vars:
    problem: "{{ hostvars | ipu.fabric.start_problem(ansible_inventory_sources) }}"
"""

RETURN = r"""
_value:
  description: One problem; empty if there is none.
  type: str
"""

CORE = "2.18"
COLLECTION = "kubernetes.core"
PACKAGES = ("jmespath", "netaddr")
API_PACKAGES = ("cryptography", "kubernetes")  # on the host that connects to the API, which fabric_api_host can change
GROUPS = ("kube_control_plane", "kube_node", "ipu_node")
DEAF_CLIENTS = ("34", "35")  # kubernetes-client/python#2460
CLIENT = "36.0.2"  # the first release without that bug
LONGEST = 60  # characters of a value that is shown
EMPTY = {"list": "[]", "dict": "{}"}  # by type of an option
# Lists that templates join with others as they are: a text there fails later, without its name.
JOINED = ("fabric_allow", "fabric_proxy")


def in_short(message: str, option: t.Mapping[str, t.Any]) -> str:
    """What Ansible says of a value, without the value, and with the key or the form that is probably meant."""
    from ..module_utils._plan.names import ALIKE_KEYS, nearest

    if message.startswith("Elements value"):
        example = option.get("default")
        such_as = f", such as {json.dumps(example)}" if isinstance(example, list) and example else ""
        return f"not a list of type {option['elements']}{such_as}"
    match = re.match("value of .* must be one of: (.*), got: ", message)
    if match:
        return f"not one of {match[1].lstrip(', ')}"
    match = re.match(r"argument '(\w+)' is of type \w+ found in '.*'\. and we were unable to convert to (\w+)", message)
    if match:
        return f"{match[1]} in it is not of type {match[2]}"
    match = re.match(r"(\S+\.)?(\w+)\. Supported parameters include: (.*)\.$", message)
    if match:
        keys = match[3].split(", ")
        longer = [key for key in keys if match[2].startswith(f"{key}_")]  # http_proxy, for http
        meant = next(iter(longer), "") or nearest(match[2], keys, ALIKE_KEYS)
        return f"it has no key {match[2]}{f' (did you mean {meant}?)' if meant else ''}; its keys are {match[3]}"
    return message


def text_for_list(name: str, option: t.Mapping[str, t.Any], value: object) -> str:
    """What to write instead of a text, where only a list will do; empty if it is none."""
    if name not in JOINED:
        return ""
    for key, inner in (option.get("options") or {}).items():
        part = value.get(key) if isinstance(value, dict) else None
        if inner["type"] == "list" and isinstance(part, str):
            return f"{name}.{key} is {json.dumps(part)}: write a list, [{part}]"
    return (
        f"{name} is {json.dumps(value)}: write a list, [{value}]"
        if isinstance(value, str) and option["type"] == "list"
        else ""
    )


def problem_of(name: str, option: t.Mapping[str, t.Any], value: object) -> str:
    """What is wrong with a value; empty if nothing is."""
    from ..module_utils._common.redaction import redact_text
    from ..plugin_utils._site_variables import has_secret

    plain = json.loads(json.dumps(value, default=str))
    result = ArgumentSpecValidator({name: option}).validate({name: plain})
    if not result.error_messages:
        return text_for_list(name, option, plain)
    said = in_short(result.error_messages[0], option)
    if any(message.startswith(f"argument '{name}' is of type") for message in result.error_messages):
        said = f"not of type {option['type']}"
        if option["type"] == "list" and option.get("elements") == "dict":
            said = in_short("Elements value", option)
    shown = NOT_SHOWN if has_secret(option) else redact_text(json.dumps(plain))
    return f"{name} is {shown if len(shown) <= LONGEST else shown[:LONGEST] + '...'}: {said}"


def proxy_url_problem(proxy: object) -> str:
    """A proxy's URL without a scheme: apt and containerd refuse it, each at its first download."""
    given = {key: proxy.get(key) for key in ("http", "https")} if isinstance(proxy, t.Mapping) else {}
    bare = [f"fabric_proxy.{key}" for key, url in given.items() if url and not re.match("(?i)https?://", str(url))]
    return f"{' and '.join(bare)} without a scheme: write http:// before the host" if bare else ""


def settings_problems(variables: t.Mapping[str, t.Any]) -> t.List[str]:
    """What is wrong with variables of the site and, as far as it sets them, with those of other roles."""
    from ..module_utils._plan.names import ROLE_PREFIXES
    from ..plugin_utils._site_variables import passed_variables, role_options, site_options

    found = []
    roles = {prefix[:-1] for prefix in ROLE_PREFIXES if any(name.startswith(prefix) for name in variables)}
    given = {name: option for role in roles for name, option in role_options(role).items() if name in variables}
    mine = {name: option for name, option in given.items() if name not in passed_variables()} if given else {}
    for name, option in sorted({**mine, **site_options()}.items()):
        try:
            value = variables.get(name)
        except AnsibleError:  # a template that needs what is not known before the hosts have answered
            continue
        if value is not None:
            found.append(
                problem_of(name, option, value) or (proxy_url_problem(value) if name == "fabric_proxy" else "")
            )
        elif (
            name in variables
            and name not in mine
            and option["type"] in EMPTY
            and option.get("default", EMPTY) is not None
        ):
            found.append(
                f"{name} is null, as YAML reads a name without a value: write {EMPTY[option['type']]} for none"
            )
    return [problem for problem in found if problem]


OF_ANSIBLE = ("all", "always", "never", "tagged", "untagged")
# Roles of other playbooks.
NOT_IN_SITE = {"bundle", "datasets", "drain", "metrics", "mpi_operator", "native_workload", "upgrade"}


def tags_problem(run: t.Sequence[str], skipped: t.Sequence[str]) -> t.Optional[FabricError]:
    """Find a tag that no task has, for which Ansible would silently run nothing.

    In a site's own playbook that imports ours, only a tag that is nearly one of ours counts: others may be the site's.
    """
    from ..module_utils._plan.names import ALIKE_VARIABLES, nearest
    from ..plugin_utils._site_variables import ROLES

    known = {path.name for path in ROLES.iterdir() if path.is_dir()}
    asked = [tag for tag in (*run, *skipped) if tag not in {*known, *OF_ANSIBLE}]
    meant = {tag: nearest(tag, known, ALIKE_VARIABLES) for tag in asked}
    ours = any(str(playbook).startswith("ipu.fabric.") for playbook in context.CLIARGS.get("args", ()))
    wrong = [f"{tag} (did you mean {name}?)" if name else tag for tag, name in meant.items() if name or ours]
    if not wrong:
        return None
    return FabricError(
        "No task has the tag that is asked for.",
        "--tags, --skip-tags",
        ", ".join(wrong),
        f"Correct the tag. Those of site are the names of its roles: {', '.join(sorted(known - NOT_IN_SITE))}.",
        code="invalid-input",
    )


def needed_packages(variables: t.Mapping[str, t.Any]) -> t.List[str]:
    """The needed Python packages and collections. A plan from a recording connects to no API."""
    if variables.get("fabric_observations"):
        return [*PACKAGES]
    here = variables.get("fabric_api_host", "localhost") in ("localhost", "127.0.0.1")
    return [COLLECTION, *PACKAGES, *(API_PACKAGES if here else ())]


def proxy_problem(packages: t.Sequence[str], environment: t.Mapping[str, str]) -> t.Optional[FabricError]:
    """Some releases of the Kubernetes client send everything to the proxy, whatever NO_PROXY says."""
    proxies = [name for name in ("HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy") if environment.get(name)]
    spared = [name for name in ("NO_PROXY", "no_proxy") if environment.get(name)]
    if "kubernetes" not in packages or not proxies or not spared:
        return None
    release = version("kubernetes")
    if release.split(".")[0] not in DEAF_CLIENTS:
        return None
    return FabricError(
        f"The Python package kubernetes {release} ignores {spared[0]}: its requests to the API would go to the proxy.",
        sys.executable,
        f"kubernetes {release}, with {proxies[0]} and {spared[0]} in the environment",
        f"{sys.executable} -m pip install 'kubernetes>={CLIENT}', or unset {proxies[0]}.",
        code="missing-requirement",
    )


def controller_problem(packages: t.Sequence[str]) -> t.Optional[FabricError]:
    from ..plugin_utils._controller_action import missing_packages

    missing = missing_packages(packages, CORE)
    if not missing:
        return proxy_problem(packages, os.environ)
    absent = [name for name in missing if not name.startswith("ansible-core")]
    pip = [name for name in missing if name != COLLECTION]
    commands = [f"{sys.executable} -m pip install {' '.join(map(shlex.quote, pip))}"] if pip else []
    commands += [f"ansible-galaxy collection install {COLLECTION}"] if COLLECTION in missing else []
    return FabricError(
        f"The controller must have ansible-core {CORE}, the Python packages of the collection and {COLLECTION}.",
        sys.executable,
        f"ansible-core {__version__}{', without ' * bool(absent)}{', '.join(absent)}",
        " && ".join(commands),
        code="missing-requirement",
    )


def no_hosts(groups: t.Mapping[str, t.Sequence[str]], sources: t.Sequence[str]) -> FabricError:
    from ..module_utils._plan.names import meant_group

    meant = [(group, meant_group(group)) for group, hosts in groups.items() if hosts]
    renamed = ", ".join(f"{group} to {ours}" for group, ours in meant if ours)
    kept = "; ".join(f"{ours}: {{children: {{{group}: }}}}" for group, ours in meant if ours)
    keeping = f"Or, where another tool needs these names, pass a second file with -i: {kept}. "
    check = "Check the file with ansible-inventory --graph."
    return FabricError(
        "The inventory must name the hosts of the cluster.",
        ", ".join(sources) or "no inventory",
        f"no host in the groups {', '.join(GROUPS[:-1])} and {GROUPS[-1]} (the groups are {', '.join(groups)})",
        f"Rename {renamed}. {keeping}{check}" if renamed else f"Put at least one host into kube_control_plane. {check}",
        code="invalid-input",
    )


def checks_problem(asked: object, only_proves: bool) -> t.Optional[FabricError]:
    """Refuse single checks in playbooks such as site and upgrade, which need the whole proof."""
    if only_proves or not asked:
        return None
    return FabricError(
        "Only ipu.fabric.verify makes single checks; any other playbook needs the whole proof.",
        "variable verify_checks",
        str(asked),
        "Leave verify_checks out, or run ipu.fabric.verify with it.",
        code="invalid-input",
    )


def start_problem(
    hosts: t.Mapping[str, t.Mapping[str, t.Any]],
    sources: t.Sequence[str],
    only_proves: bool = False,
    any_cluster: bool = False,
) -> str:
    groups = {} if any_cluster else hosts["localhost"]["groups"]
    members = [host for group in GROUPS for host in groups.get(group, [])]
    some = members[0] if members else "localhost"
    found = controller_problem(needed_packages(hosts[some]))
    if not found and not members and not any_cluster:
        found = no_hosts(groups, sources)
    if not found:
        found = tags_problem(hosts[some].get("ansible_run_tags", ()), hosts[some].get("ansible_skip_tags", ()))
    if not found:
        found = checks_problem(hosts[some].get("verify_checks"), only_proves)
    problems = [] if found else settings_problems(hosts[some])
    if problems:
        found = FabricError(
            "Variables of the collection must have values of their types.",
            f"the inventory and -e, as {some} has them",
            "; ".join(problems),
            "Correct them; ansible-doc -t role ipu.fabric.fabric shows all with their types, and in place of fabric the"
            " role that a name begins with.",
            code="invalid-input",
        )
    return str(found or "")


class FilterModule:
    """The filter of this file."""

    def filters(self) -> t.Dict[str, t.Callable[..., t.Any]]:
        return {"start_problem": start_problem}
