#!/usr/bin/env python3
"""Write roles/*/README.md and docs/variables.md from meta/argument_specs.yml.

With --check, only report which are out of date.
"""

from __future__ import annotations

import json
import re
import sys
from typing import Any

import generated
import yaml
from generated import ROOT

Specs = dict[str, Any]  # the entry points of a role

WIDEST = 70  # longer defaults are not shown in the table of all variables
# Variables that playbooks read and no role has: default, playbook, description.
OF_PLAYBOOKS = {
    "fabric_backup": ("", "restore", "The directory of the backup to restore."),
    "fabric_bundle_plan": ("plan.json", "bundle", "The plan whose releases are fetched."),
    "fabric_metrics": ("true", "workloads", "Whether metrics are set up."),
    "fabric_mpi_operator": ("true", "workloads", "Whether the MPI operator is installed."),
    "fabric_prove_networks": ("[]", "prove_cluster", "The only networks to prove, as namespace/name. Empty is all."),
    "fabric_remove_nodes": ("", "remove_node", "Nodes or hosts to remove, with commas between."),
    "fabric_renew_force": ("false", "renew_certificates", "Renews certificates that are valid for long, too."),
    "fabric_reset": (
        "",
        "reset",
        "What is removed: `fabric` or `cluster`. Empty lists what `fabric` would remove.",
    ),
    "fabric_reset_force": ("false", "reset", "Deletes pods and jobs that use what is removed."),
    "fabric_reset_name": ("", "reset", "The name of the cluster to remove, as the playbook prints it."),
    "fabric_restore": ("", "restore", "The name of the running cluster to give up, as the playbook prints it."),
    "fabric_slice_plan": ("", "prove_slice", "The plan whose nodes are proved, a slice at a time."),
    "fabric_support_bundle": ("", "support", "An archive to judge. No host is asked then."),
    "fabric_support_lines": ("200", "support", "Lines of each log in the archive."),
    "fabric_support_namespaces": (
        "",
        "support",
        "Namespaces of workloads that are in the archive, without their logs.",
    ),
    "fabric_support_units": ("see docs/support.md", "support", "Units whose journal is in the archive."),
}
VARIABLES = """\
# Variables

A site usually sets a few of the `fabric_` variables, in `group_vars/all.yml` of its inventory. The plan gives each role
its values. A role's own variables are for what the plan does not decide, and for your own playbooks; its page has a
table of them with type, default and keys of dictionaries. `ansible-doc -t role ipu.fabric.fabric` shows the same.

<!-- Written by hack/role_docs.py (make docs). -->
"""


def plain(text: str) -> str:
    """Convert Ansible's markup to Markdown."""
    text = re.sub(r"\b(?:O|V|C|M|P|E|RV)\(([^()#]*(?:\([^()]*\)[^()#]*)*)(?:#\w+)?\)", r"`\1`", text)
    return re.sub(r"\b[BI]\(([^()]*)\)", r"*\1*", text).strip()


def sentences(value: str | list[str] | None) -> list[str]:
    return [plain(text) for text in ([value] if isinstance(value, str) else value or [])]


def shown(option: dict[str, Any]) -> str:
    if option.get("required"):
        return "needed"
    default = option.get("default")
    return "" if default is None else f"`{default if isinstance(default, str) and default else json.dumps(default)}`"


def line(*cells: str) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def row(name: str, option: dict[str, Any]) -> str:
    kind = option.get("type", "str") + (f" of {option['elements']}" if "elements" in option else "")
    return line(f"`{name}`", kind, shown(option), " ".join(sentences(option.get("description"))))


def readme(role: str, specs: Specs) -> str:
    lines = []
    for entry, spec in specs.items():
        title = f"# ipu.fabric.{role}" if entry == "main" else f"## Entry point {entry}"
        lines += [title, "", f"{plain(spec['short_description'])}.", ""]
        lines += [f"- {text}" for text in sentences(spec.get("description"))]
        if spec.get("options"):
            lines += ["", "| variable | type | default | |", "|---|---|---|---|"]
            lines += [row(name, option) for name, option in spec["options"].items()]
        lines.append("")
    return "\n".join(lines)


def first_sentence(option: dict[str, Any]) -> str:
    text = " ".join(sentences(option.get("description")))
    end = re.search(r"[.:](?= [A-Z`])", text)
    return text[: end.start()] + "." if end else text


def variable(name: str, option: dict[str, Any]) -> str:
    default = "" if option.get("default") in ("", [], {}) else shown(option)
    return line(f"`{name}`", default if len(default) <= WIDEST else "see the role", first_sentence(option))


def all_variables(roles: dict[str, Specs]) -> str:
    lines = [VARIABLES, "## Site variables", "", "| variable | default | what |", "|---|---|---|"]
    site = roles["fabric"]["main"]["options"]
    lines += [variable(name, site[name]) for name in sorted(site)]
    lines += ["", "Of single playbooks:", "", "| variable | playbook | default | what |", "|---|---|---|---|"]
    for name, (default, playbook, what) in OF_PLAYBOOKS.items():
        lines.append(line(f"`{name}`", f"`{playbook}`", f"`{default}`" if default else "", what))
    lines += ["", "## Roles", "", "| role | does |", "|---|---|"]
    for role, specs in roles.items():
        lines.append(line(f"[{role}](../roles/{role}/README.md)", plain(specs["main"]["short_description"])))
    lines += ["", "## Role variables", ""]
    for role in (role for role in roles if role != "fabric"):
        names = [name for spec in roles[role].values() for name in spec.get("options", {})]
        lines.append(f"- {role}: {', '.join(f'`{name}`' for name in names)}")
    return "\n".join(lines) + "\n"


def main() -> int:
    paths = sorted((ROOT / "roles").glob("*/meta/argument_specs.yml"))
    roles = {path.parents[1].name: yaml.safe_load(path.read_text())["argument_specs"] for path in paths}
    pages = {ROOT / f"roles/{role}/README.md": readme(role, specs) for role, specs in roles.items()}
    pages[ROOT / "docs/variables.md"] = all_variables(roles)
    return generated.write(pages)


if __name__ == "__main__":
    sys.exit(main())
