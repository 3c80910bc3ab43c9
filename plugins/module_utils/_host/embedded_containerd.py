# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Settings of the containerd that k3s and RKE2 bring: a registry mirror, and tables of its configuration.

Both write containerd's configuration whenever they start. Releases since April 2026 import a directory of drop-ins;
earlier ones need a template that extends theirs. Files that somebody else wrote stay as they are.
"""

from __future__ import annotations

import os
import re
import typing as t

from .._common.result import FabricError, outcome
from .._common.toml import to_toml
from .distributions import Found, find_distribution
from .files import File, Files, file_diffs, read_file, write_file
from .kubelets import node_name
from .runtime_restart import carries_api, restart_runtimes
from .systemd import keep_former, show_units, stale_units

if t.TYPE_CHECKING:
    from ansible.module_utils.basic import AnsibleModule

MARK = "# Written by the role embedded_containerd of ipu.fabric."
DROP_IN = "50-ipu-fabric.toml"
BASE = '{{ template "base" . }}'
MODE = "0600"  # as the distributions have it: files of this kind may hold credentials


class Wanted(t.NamedTuple):
    """What the module was asked for."""

    mirror: str  # URL; empty: none
    tables: str  # TOML; empty: none


def registries_text(mirror: str) -> str:
    """registries.yaml with one mirror for all registries."""
    return f'{MARK}\nmirrors:\n  "*":\n    endpoint:\n      - "{mirror}"\n'


def config_version(rendered: str) -> int:
    """The version of containerd's configuration format in use: 3 with containerd 2, and 2 before."""
    match = re.search(r"^version\s*=\s*(\d+)", rendered, re.MULTILINE)
    return int(match.group(1)) if match else 3


def imports_drop_ins(rendered: str, directory: str) -> bool:
    """Whether the configuration in use reads the drop-ins of this directory."""
    match = re.search(r"^imports\s*=\s*\[([^\]]*)\]", rendered, re.MULTILINE)
    return bool(match and f"{directory}/*.toml" in match.group(1))


def table_names(toml: str) -> t.Set[str]:
    """The tables in a TOML text, whatever the quotes around the parts of their names."""
    return {re.sub(r"['\"\s]", "", name) for name in re.findall(r"^\s*\[([^\[\]]+)\]", toml, re.MULTILINE)}


def of_distribution(rendered: str) -> str:
    """The part of a rendered configuration that does not come from our template."""
    return rendered.partition(MARK)[0]


def foreign(path: str, seen: str, next_step: str) -> FabricError:
    return FabricError("A file that somebody else wrote is left as it is.", path, seen, next_step, code="not-ours")


def wanted_registries(path: str, there: t.Optional[File], mirror: str) -> t.Optional[File]:
    """The wanted registries.yaml. One that somebody else wrote must name the mirror already."""
    if there and not there["content"].startswith(MARK):
        host = mirror.partition("://")[2].rstrip("/")
        if mirror and host not in there["content"]:
            raise foreign(
                path,
                f"it does not name the mirror {host} (fabric_mirror.registry)",
                f'Add {mirror} as an endpoint of mirrors "*" there, or remove the file: a run then writes its own.',
            )
        return there
    return {"content": registries_text(mirror), "mode": MODE} if mirror else None


def check_tables(tables: str, rendered: str, config: str) -> None:
    """Refuse what a template can't carry: containerd, and with it the node, would not start."""
    if "{{" in tables:
        next_step = "Write them without double braces: k3s and RKE2 would read these as commands of a template."
        raise FabricError(
            "Settings of containerd can't be written.",
            "embedded_containerd_config",
            "'{{'",
            next_step,
            code="invalid-input",
        )
    twice = sorted(table_names(tables) & table_names(of_distribution(rendered)))
    if twice:
        raise FabricError(
            "A table of containerd's configuration can be in it only once, or containerd does not start.",
            "embedded_containerd_config",
            f"{config} already has {', '.join(twice)}",
            "Leave these tables out, or upgrade to a release of k3s or RKE2 since April 2026: it imports drop-ins.",
            code="invalid-input",
        )


def wanted_config(directory: str, rendered: str, there: Files, tables: str) -> Files:
    """Drop-in and template, one of which holds the tables. `there` has the present files at both paths."""
    version = config_version(rendered)
    stem = "config-v3.toml" if version >= 3 else "config.toml"
    drop_in, template = f"{directory}/{stem}.d/{DROP_IN}", f"{directory}/{stem}.tmpl"
    old = there.get(template)
    ours = old is None or MARK in old["content"]
    wanted: Files = {drop_in: None, template: None if ours else old}
    if not tables:
        return wanted
    if imports_drop_ins(rendered, f"{directory}/{stem}.d"):
        wanted[drop_in] = {"content": f"{MARK}\nversion = {version}\n\n{tables}", "mode": MODE}
        return wanted
    if not ours:
        raise foreign(
            template,
            "it is a template of the site, and lacks the tables of embedded_containerd_config",
            f'Add the tables there, or import drop-ins in its first line: imports = ["{directory}/{stem}.d/*.toml"]',
        )
    check_tables(tables, rendered, f"{directory}/config.toml")
    wanted[template] = {"content": f"{BASE}\n\n{MARK}\n{tables}", "mode": MODE}
    return wanted


def wanted_files(found: Found, wanted: Wanted) -> t.Tuple[Files, Files]:
    """The present and the wanted files."""
    registries = found.distribution.registries
    config = found.path(found.distribution.containerd_config)
    directory = os.path.dirname(config)
    rendered = found.text(found.distribution.containerd_config)
    templates = [f"{directory}/{stem}.tmpl" for stem in ("config-v3.toml", "config.toml")]
    there: Files = {path: read_file(path) for path in (registries, *templates)}
    after: Files = {
        registries: wanted_registries(registries, there[registries], wanted.mirror),
        **wanted_config(directory, rendered, there, wanted.tables),
    }
    before: Files = {path: there[path] if path in there else read_file(path) for path in after}
    return before, after


def set_embedded_containerd(module: AnsibleModule) -> t.Dict[str, object]:
    """The body of M(ipu.fabric.embedded_containerd)."""
    params = module.params
    found = find_distribution()
    if not found or not found.distribution.embeds_containerd:
        raise FabricError(
            "Only k3s and RKE2 carry a containerd of their own.",
            os.uname().nodename,
            f"the node was made by {found.distribution.name}" if found else "the host is not a node",
            "Leave this host out of the role embedded_containerd.",
            code="wrong-state",
        )
    before, after = wanted_files(
        found, Wanted(params["registry_mirror"], to_toml(params["config"]) if params["config"] else "")
    )
    changed = [path for path in after if before[path] != after[path]]
    if not module.check_mode:
        for name in found.units if changed else ():
            keep_former(module, name, {path: before[path] for path in changed})
        for path in changed:
            file = after[path]
            if file:
                write_file(module, path, file["content"], file["mode"])
            else:
                os.remove(path)
    units = {name: unit for name, unit in show_units(module, found.units).items() if unit["LoadState"] == "loaded"}
    old = stale_units(units, {name: list(after) for name in units})
    running = [name for name, unit in units.items() if unit["ActiveState"] == "active"]
    stale = [name for name in running if old[name] or changed]
    restart = stale if params["restart"] else []
    if restart and not module.check_mode:
        restart_runtimes(module, units, restart)
    left = [name for name in stale if name not in restart]
    result = outcome(
        {"files": before, "stale": stale},
        {"files": after, "stale": left},
        distribution=found.distribution.name,
        server=any(map(carries_api, found.units)),
        stale=stale,
        node=node_name(params["node_name"]),
    )
    return {**result, "diff": [*file_diffs(before, after), {"before": {"stale": stale}, "after": {"stale": left}}]}
