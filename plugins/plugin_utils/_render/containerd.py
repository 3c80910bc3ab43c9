# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""containerd's configuration: a drop-in of ours, and a main file that imports it and is otherwise left as it is. Pure.

containerd 2 merges drop-ins table by table; containerd 1 takes all of a plugin's settings from the last file with any.
Up to 2.2 a drop-in of another version than the main file is ignored in part, and 2.3 refuses one of a higher version.
"""

from __future__ import annotations

import fnmatch
import json
import posixpath
import re
import typing as t

import tomllib
from ansible_collections.ipu.fabric.plugins.module_utils._common.result import FabricError
from ansible_collections.ipu.fabric.plugins.module_utils._kube.merge_values import merge_values

Config = t.Dict[str, t.Any]  # as TOML has it

MAIN = "/etc/containerd/config.toml"
DROP_INS = "/etc/containerd/conf.d/*.toml"  # where containerd itself looks since 2.2, without a main file
DROP_IN = "/etc/containerd/conf.d/10-kubernetes.toml"
CERTS = "/etc/containerd/certs.d"
# The CRI by its names in all versions. Docker's package turns it off.
CRI_1, IMAGES, RUNTIME = "io.containerd.grpc.v1.cri", "io.containerd.cri.v1.images", "io.containerd.cri.v1.runtime"
CRI = ("cri", CRI_1, IMAGES, RUNTIME)


class ContainerdConfig(t.TypedDict):
    """The text of the main file, and the settings of the drop-in."""

    main: str
    drop_in: Config


def read_main(text: str) -> Config:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise FabricError(
            "containerd's configuration is not valid TOML.",
            MAIN,
            str(error),
            "Correct the file, then run again. Nothing of it was changed.",
        ) from error


def main_version(main: Config, first: bool) -> int:
    """The version that the main file has, or gets when it is as good as empty."""
    version = main.get("version") or 1
    if version > 1:
        if first and version > 2:
            raise by_hand(f"version {version}, and containerd 1 knows version 2 at most", "Write it for version 2")
        return int(version)
    if main.get("plugins"):
        raise by_hand("settings of plugins in version 1", "Put what `containerd config migrate` shows in its place")
    return 2 if first else 3


def by_hand(seen: str, step: str) -> FabricError:
    what = "containerd's main configuration file has to import that of this collection."
    return FabricError(what, MAIN, seen, f"{step}, then run again. Nothing of it was changed.")


def imports_drop_in(entry: str) -> bool:
    """Whether an import names the drop-in of ours. An asterisk stands for a part of one name, never for a slash."""
    names = posixpath.normpath(posixpath.join(posixpath.dirname(MAIN), entry)).split("/")
    ours = DROP_IN.split("/")
    return len(names) == len(ours) and all(map(fnmatch.fnmatchcase, ours, names))


def with_key(text: str, name: str, value: object) -> str:
    """The text with a key of the top level set to a value, everything else as it was."""
    line = f"{name} = {json.dumps(value, ensure_ascii=False)}"
    table = re.search(r"^[ \t]*\[", text, re.MULTILINE)
    head, rest = (text[: table.start()], text[table.start() :]) if table else (text, "")
    pattern = rf"^[ \t]*{name}[ \t]*=[ \t]*(\[[^\]]*\]|[^\n#]*[^\n# \t])"
    changed, count = re.subn(pattern, lambda _match: line, head, count=1, flags=re.MULTILINE)
    return changed + rest if count else f"{line}\n{text}"


def edit_main(text: str, main: Config, wanted: Config) -> str:
    """The text with these values of the top level. What can't be edited safely is left to a person."""
    edited = text
    for name in ("disabled_plugins", "imports", "version"):
        if main.get(name) != wanted.get(name):
            edited = with_key(edited, name, wanted[name])
    try:
        right = tomllib.loads(edited) == wanted
    except tomllib.TOMLDecodeError:
        right = False
    if not right:
        lines = "; ".join(f"{name} = {json.dumps(wanted[name])}" for name in wanted if wanted[name] != main.get(name))
        raise by_hand("keys in a form that can't be edited safely", f"Set at its top: {lines}")
    return edited


def own_settings(version: int, pause_image: str, restrict_oom_score_adj: bool) -> Config:
    """What Kubernetes needs, in the table names of the version. What is default anyway is left to others."""
    runc = {"runtime_type": "io.containerd.runc.v2", "options": {"SystemdCgroup": True}}
    runtime: Config = {"containerd": {"runtimes": {"runc": runc}}}
    if restrict_oom_score_adj:
        runtime["restrict_oom_score_adj"] = True
    registry = {"config_path": CERTS}
    if version == 2:
        return {"version": 2, "plugins": {CRI_1: {**runtime, "sandbox_image": pause_image, "registry": registry}}}
    images = {"pinned_images": {"sandbox": pause_image}, "registry": registry}
    return {"version": 3, "plugins": {IMAGES: images, RUNTIME: runtime}}


def check_settings(settings: Config, version: int) -> None:
    """Refuse settings of the site that containerd would not read in a drop-in of this version."""
    foreign = (IMAGES, RUNTIME) if version == 2 else (CRI_1,)
    wrong = [name for name in foreign if name in settings.get("plugins", {})]
    if settings.get("version", version) != version:
        wrong.append(f"version = {settings['version']}")
    if wrong:
        raise FabricError(
            "Settings for containerd have to be of the version of its main configuration file.",
            f"kubernetes_containerd_config, and version {version} in {MAIN}",
            ", ".join(wrong),
            f"Write them for version {version}, or migrate the file: containerd config migrate.",
        )


def containerd_config(
    text: str, release: str, pause_image: str, restrict_oom_score_adj: bool = False, settings: t.Optional[Config] = None
) -> ContainerdConfig:
    """Both files, from what the main file says now and from containerd's release."""
    first = release.startswith("1.")
    main = read_main(text)
    version = main_version(main, first)
    imports = main.get("imports", [])
    wanted = {**main, "version": version, "imports": imports}
    if not any(map(imports_drop_in, imports)):
        wanted["imports"] = [*imports, DROP_INS]
    if "disabled_plugins" in main:
        wanted["disabled_plugins"] = [name for name in main["disabled_plugins"] if name not in CRI]
    own = own_settings(version, pause_image, restrict_oom_score_adj)
    check_settings(settings or {}, own["version"])
    drop_in: Config = merge_values(own, settings or {})
    if first:
        kept = {name: main["plugins"][name] for name in drop_in["plugins"] if name in main.get("plugins", {})}
        drop_in = merge_values({"plugins": kept}, drop_in)
    return {"main": edit_main(text, main, wanted), "drop_in": drop_in}
