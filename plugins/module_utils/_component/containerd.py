# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""containerd's configuration: our drop-in, and a main file that imports it and otherwise stays as it is. Pure.

What else a host gets, and for which runtime, is decided in kubernetes_host.py.

containerd 2 merges drop-ins table by table; containerd 1 takes all of a plugin's settings from the last file that has
any. A drop-in whose version differs from the main file's is partly ignored up to 2.2; 2.3 refuses a higher version.
"""

from __future__ import annotations

import contextlib
import fnmatch
import json
import posixpath
import re
import typing as t
import urllib.parse

from .._common.result import FabricError
from .._host.distributions import CNI_BIN, CNI_NETWORK, CONTAINERD_DROP_IN, CONTAINERD_DROP_INS
from .._kube.merge_values import merge_values

with contextlib.suppress(ImportError):  # every controller has it, and hosts don't need it
    import tomllib

Config = t.Dict[str, t.Any]  # parsed TOML

MAIN = "/etc/containerd/config.toml"
DROP_INS, DROP_IN = CONTAINERD_DROP_INS, CONTAINERD_DROP_IN
CERTS = "/etc/containerd/certs.d"
# Names of the CRI plugin in all versions. Docker's containerd package disables it.
CRI_1, IMAGES, RUNTIME = "io.containerd.grpc.v1.cri", "io.containerd.cri.v1.images", "io.containerd.cri.v1.runtime"
CRI = ("cri", CRI_1, IMAGES, RUNTIME)
# The first release that looks for CNI plugins in several directories (bin_dirs), and the first without bin_dir.
MANY_PLUGINS, NO_SINGLE_PLUGINS = (2, 1), (2, 4)


class CniDirectories(t.TypedDict):
    """Where pod networks put their files, the most important directory first."""

    plugins: t.List[str]
    networks: t.List[str]


USUAL_CNI: CniDirectories = {"plugins": [CNI_BIN], "networks": [CNI_NETWORK]}


class ContainerdConfig(t.TypedDict):
    """The text of the main file, and the settings of the drop-in."""

    main: str
    drop_in: Config


def read_config(text: str, path: str = MAIN) -> Config:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise FabricError(
            "containerd's configuration is not valid TOML.",
            path,
            str(error),
            "Correct the file, then run again. It was not changed.",
            code="unusable-file",
        ) from error


def main_version(main: Config, first: bool) -> int:
    """The version of the main file, or the one that a practically empty file gets."""
    version = main.get("version") or 1
    if version > 1:
        if first and version > 2:
            raise by_hand(f"version {version}, and containerd 1 knows version 2 at most", "Write it for version 2")
        return int(version)
    if main.get("plugins"):
        raise by_hand("settings of plugins in version 1", "Replace it with what `containerd config migrate` prints")
    return 2 if first else 3


def by_hand(seen: str, step: str) -> FabricError:
    what = "containerd's main configuration file has to import that of this collection."
    return FabricError(what, MAIN, seen, f"{step}, then run again. It was not changed.", code="wrong-state")


def imports_drop_in(entry: str) -> bool:
    """Whether an import matches our drop-in. An asterisk matches part of one name, never a slash."""
    names = posixpath.normpath(posixpath.join(posixpath.dirname(MAIN), entry)).split("/")
    ours = DROP_IN.split("/")
    return len(names) == len(ours) and all(map(fnmatch.fnmatchcase, ours, names))


def with_key(text: str, name: str, value: object) -> str:
    """The text with a top-level key set to a value, and otherwise unchanged."""
    line = f"{name} = {json.dumps(value, ensure_ascii=False)}"
    table = re.search(r"^[ \t]*\[", text, re.MULTILINE)
    head, rest = (text[: table.start()], text[table.start() :]) if table else (text, "")
    pattern = rf"^[ \t]*{name}[ \t]*=[ \t]*(\[[^\]]*\]|[^\n#]*[^\n# \t])"
    changed, count = re.subn(pattern, lambda _match: line, head, count=1, flags=re.MULTILINE)
    return changed + rest if count else f"{line}\n{text}"


def edit_main(text: str, main: Config, wanted: Config) -> str:
    """The text with these top-level values. Raises FabricError for what can't be edited safely."""
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


def own_settings(version: int, pause_image: str, restrict_oom_score_adj: bool, registry: Config, cni: Config) -> Config:
    """What Kubernetes needs, in the table names of the version. Settings with a suitable default are left out."""
    runc = {"runtime_type": "io.containerd.runc.v2", "options": {"SystemdCgroup": True}}
    runtime: Config = {"containerd": {"runtimes": {"runc": runc}}}
    if restrict_oom_score_adj:
        runtime["restrict_oom_score_adj"] = True
    if cni:
        runtime["cni"] = cni
    images: Config = {"registry": registry} if registry else {}
    if version == 2:
        return {"version": 2, "plugins": {CRI_1: {**runtime, "sandbox_image": pause_image, **images}}}
    return {"version": 3, "plugins": {IMAGES: {"pinned_images": {"sandbox": pause_image}, **images}, RUNTIME: runtime}}


# ---- registries of the site -----------------------------------------------------------------------------------------


def table_of(site: Config, name: str) -> Config:
    """A table of the CRI, from any of its plugin's names."""
    plugins = site.get("plugins", {})
    found: Config = {}
    for plugin in (CRI_1, IMAGES, RUNTIME):
        found = merge_values(found, plugins.get(plugin, {}).get(name) or {})
    return found


def old_tables(registry: Config) -> t.List[str]:
    """Tables that keep containerd from loading its CRI if there is also a config_path."""
    mirrors = [f"registry.mirrors.{json.dumps(name)}" for name in registry.get("mirrors") or {}]
    configs = registry.get("configs") or {}
    return mirrors + [f"registry.configs.{json.dumps(name)}.tls" for name in configs if configs[name].get("tls")]


def without_login(url: str) -> str:
    """A registry's URL without a login, for messages."""
    parts = urllib.parse.urlsplit(url if "://" in url else f"https://{url}")
    return parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()


def host_lines(url: str, configs: Config) -> t.List[str]:
    """The lines of hosts.toml for one host."""
    parts = urllib.parse.urlsplit(url)
    tls = (configs.get(parts.netloc) or {}).get("tls") or {}
    lines = [f"[host.{json.dumps(url)}]", 'capabilities = ["pull", "resolve"]']
    if parts.path not in ("", "/"):
        lines.append("override_path = true")
    if tls.get("insecure_skip_verify"):
        lines.append("skip_verify = true")
    if tls.get("ca_file"):
        lines.append(f"ca = {json.dumps(tls['ca_file'])}")
    if tls.get("cert_file"):
        lines.append(f"client = [{json.dumps([tls['cert_file'], tls.get('key_file', '')])}]")
    return lines


def hosts_files(registry: Config) -> str:
    """The files under certs.d that are equivalent to the old tables."""
    configs, mirrors = registry.get("configs") or {}, registry.get("mirrors") or {}
    hosts = {name: list(map(without_login, mirror.get("endpoint") or [])) for name, mirror in mirrors.items()}
    served = {urllib.parse.urlsplit(url).netloc for urls in hosts.values() for url in urls}
    hosts |= {name: [without_login(name)] for name in configs if configs[name].get("tls") and name not in served}
    files = []
    for name, urls in hosts.items():
        files.append(f"{CERTS}/{'_default' if name == '*' else name}/hosts.toml:")
        for url in urls:
            files += host_lines(url, configs)
    return "\n".join(files)


def own_registry(site: Config, mirror: bool) -> Config:
    """Where hosts.toml files are. Keeps the site's registry settings; raises FabricError if they can't stay."""
    registry = table_of(site, "registry")
    path, old = registry.get("config_path") or "", old_tables(registry)
    if old and (path or mirror):
        raise FabricError(
            "containerd's CRI does not load with settings of registries in two forms.",
            f"{MAIN}, and the files that it imports",
            f"{', '.join(old)} beside "
            + (f"config_path = {json.dumps(path)}" if path else f"hosts.toml of the registry mirror, under {CERTS}"),
            f"Remove these tables, and write in their place\n{hosts_files(registry)}\nThen run again."
            " containerd was not changed.",
            code="wrong-state",
        )
    if path and mirror and CERTS not in map(posixpath.normpath, path.split(":")):
        raise FabricError(
            f"containerd has to read {CERTS}, where the registry mirror's hosts.toml is.",
            f"{MAIN}, and the files that it imports",
            f"config_path = {json.dumps(path)}",
            f"Set it to {json.dumps(f'{path}:{CERTS}')}, or remove it and move its files to {CERTS}. Then run"
            " again. containerd was not changed.",
            code="wrong-state",
        )
    return {} if path or old else {"config_path": CERTS}


# ---- directories of pod networks ------------------------------------------------------------------------------------


def release_of(text: str) -> t.Tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", text)[:2])


def one_directory(what: str, said: str, wanted: t.Sequence[str], usual: str, release: str) -> str:
    """The one directory that containerd has to be told; empty if it looks there already."""
    if said in wanted:
        return ""
    if len(wanted) > 1:
        raise FabricError(
            f"containerd {release} looks for the {what} of pod networks in one directory.",
            f"kubernetes_calico_installation.cni, fabric_cni_bin_directory, fabric_cni_network_directory, and {MAIN}",
            " and ".join(wanted),
            "Put all of them into one directory, and name that in kubernetes_containerd_config. Then run again."
            " containerd was not changed.",
            code="wrong-state",
        )
    return "" if (said or usual) == wanted[0] else wanted[0]


def own_cni(site: Config, settings: Config, version: int, release: str, wanted: CniDirectories) -> Config:
    """Where containerd looks for CNI files, unless they are there already: Debian's package looks in /usr/lib/cni."""
    said, told = table_of(site, "cni"), table_of(settings, "cni")
    cni: Config = {}
    number = release_of(release)
    if told.get("bin_dir") or told.get("bin_dirs"):
        pass
    elif version > 2 and number >= MANY_PLUGINS and (number >= NO_SINGLE_PLUGINS or not said.get("bin_dir")):
        there = said.get("bin_dirs") or USUAL_CNI["plugins"]
        if not set(wanted["plugins"]) <= set(there):
            cni["bin_dirs"] = [*wanted["plugins"], *(path for path in there if path not in wanted["plugins"])]
    else:
        usual = USUAL_CNI["plugins"][0]
        cni["bin_dir"] = one_directory("plugins", said.get("bin_dir") or "", wanted["plugins"], usual, release)
    if not told.get("conf_dir"):
        usual = USUAL_CNI["networks"][0]
        cni["conf_dir"] = one_directory(
            "configurations", said.get("conf_dir") or "", wanted["networks"], usual, release
        )
    return {name: value for name, value in cni.items() if value}


# ---- both files -----------------------------------------------------------------------------------------------------


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
            code="invalid-input",
        )


def containerd_config(
    text: str,
    release: str,
    pause_image: str,
    restrict_oom_score_adj: bool = False,
    settings: t.Optional[Config] = None,
    others: t.Optional[t.Mapping[str, str]] = None,
    mirror: bool = False,
    cni: t.Optional[CniDirectories] = None,
) -> ContainerdConfig:
    """Both files, from the current main file and drop-ins of `others`, for this release of containerd."""
    first = release.startswith("1.")
    main = read_config(text)
    version = main_version(main, first)
    imports = main.get("imports", [])
    wanted = {**main, "version": version, "imports": imports}
    if not any(map(imports_drop_in, imports)):
        wanted["imports"] = [*imports, DROP_INS]
    if "disabled_plugins" in main:
        wanted["disabled_plugins"] = [name for name in main["disabled_plugins"] if name not in CRI]
    format_version = 2 if version == 2 else 3
    check_settings(settings or {}, format_version)
    # containerd 1 takes settings from the last file: a drop-in after ours replaces ours.
    site = main
    for path, other in sorted((others or {}).items()):
        if not first or path < DROP_IN:
            site = merge_values(site, read_config(other, path))
    registry = own_registry(merge_values(site, settings or {}), mirror)
    directories = own_cni(site, settings or {}, version, release, cni or USUAL_CNI)
    own = own_settings(format_version, pause_image, restrict_oom_score_adj, registry, directories)
    drop_in: Config = merge_values(own, settings or {})
    if first:
        kept = {name: site["plugins"][name] for name in drop_in["plugins"] if name in site.get("plugins", {})}
        drop_in = merge_values({"plugins": kept}, drop_in)
    return {"main": edit_main(text, main, wanted), "drop_in": drop_in}
