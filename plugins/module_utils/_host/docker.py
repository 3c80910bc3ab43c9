# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Docker's settings, in daemon.json or in flags of dockerd, which refuses to start if a setting is in both."""

from __future__ import annotations

import json
import os
import re
import shlex
import time
import typing as t

from .._common.command import output_of, run_program
from .._common.result import FabricError
from . import cri
from .files import OWN_MARK, File, read_file, read_text
from .role_files import CRI_DOCKERD, CRI_DOCKERD_RECORD

if t.TYPE_CHECKING:
    from ansible.module_utils.basic import AnsibleModule

DAEMON = "/etc/docker/daemon.json"
UNIT = "docker.service"
CRI_UNIT = "cri-docker.service"
VALIDATE = "{} --validate --config-file %s"
# Flags whose key in daemon.json is neither their name nor its plural.
KEYS = {
    "H": "hosts",
    "D": "debug",
    "G": "group",
    "b": "bridge",
    "g": "data-root",
    "graph": "data-root",
    "l": "log-level",
    "p": "pidfile",
    "s": "storage-driver",
    "add-runtime": "runtimes",
}

LOG_DRIVER = "json-file"  # Docker's default
PATIENCE = 10  # seconds for Docker to read its files
SECONDS = 30  # seconds for cri-dockerd to print its release


class Flag(t.NamedTuple):
    """A flag of dockerd, without its dashes."""

    name: str
    value: str


class Ulimit(t.TypedDict):
    """A default ulimit in Docker's settings."""

    Name: str
    Hard: int
    Soft: int


class CriDockerd(t.TypedDict):
    """The installed cri-dockerd of a host."""

    others: bool  # not installed by us; then the other fields mean nothing
    program: str
    release: str  # empty if unknown
    silence: str  # why it does not answer; empty if it does


# The settings of Docker that are read here; all others are kept.
DaemonSettings = t.TypedDict("DaemonSettings", {"default-ulimits": t.Dict[str, Ulimit]}, total=False)


# ---- the flags ------------------------------------------------------------------------------------------------------


def unit_settings(text: str) -> t.Dict[str, t.List[str]]:
    """The settings in the files of a unit, by name; an empty value resets those before it, as in systemd."""
    found: t.Dict[str, t.List[str]] = {}
    for line in text.replace("\\\n", " ").splitlines():
        name, _equals, value = line.strip().partition("=")
        if name and not name.startswith(("#", ";", "[")):
            found[name.strip()] = [*found.get(name.strip(), []), value.strip()] if value.strip() else []
    return found


def split_words(text: str) -> t.List[str]:
    try:
        return shlex.split(text)
    except ValueError:  # an unclosed quote
        return text.split()


def environment(settings: t.Mapping[str, t.Sequence[str]]) -> t.Dict[str, str]:
    """The variables that a unit's command line may use."""
    words = [word for value in settings.get("Environment", ()) for word in split_words(value)]
    for path in settings.get("EnvironmentFile", ()):
        lines = [line.strip() for line in read_text(path.lstrip("-")).splitlines()]
        words += [" ".join(split_words(line)) for line in lines if not line.startswith(("#", ";"))]
    return {name: value for name, _equals, value in (word.partition("=") for word in words)}


def command_words(text: str) -> t.List[str]:
    """The command line in the files of a unit, with its variables expanded."""
    settings = unit_settings(text)
    variables = environment(settings)
    words = []
    for word in split_words((settings.get("ExecStart") or [""])[-1]):
        named = re.fullmatch(r"\$(?:(\w+)|\{(\w+)\})", word)
        if named and named[1]:
            words += split_words(variables.get(named[1], ""))
        else:
            words.append(variables.get(named[2], "") if named else word)
    return words


def parse_flags(words: t.Sequence[str]) -> t.List[Flag]:
    """The flags in a command line. A word that is not a flag is the value of the one before it."""
    found: t.List[Flag] = []
    for word in words:
        long, short = re.fullmatch(r"--([\w-]+)(?:=(.*))?", word), re.fullmatch(r"-(\w)=?(.*)", word)
        if long:
            found.append(Flag(long[1], long[2] or ""))
        elif short:
            found.append(Flag(short[1], short[2]))
        elif found and not found[-1].value:
            found[-1] = Flag(found[-1].name, word)
    return found


def read_flags(module: AnsibleModule) -> t.List[Flag]:
    """The flags with which Docker will start next: from its unit's files, which systemd may not have reloaded yet."""
    return parse_flags(command_words(module.run_command(["systemctl", "cat", UNIT])[1]))


def keys_of(flag: Flag) -> t.Set[str]:
    """The names that the setting of a flag may have in daemon.json."""
    name = KEYS.get(flag.name, flag.name)
    return {name, f"{name}s", re.sub("y$", "ies", name)}


def daemon_path(flags: t.Sequence[Flag]) -> str:
    return next((flag.value for flag in flags if flag.name == "config-file" and flag.value), DAEMON)


# ---- daemon.json ----------------------------------------------------------------------------------------------------


def parse_daemon(text: str, path: str) -> DaemonSettings:
    try:
        settings: DaemonSettings = json.loads(text) if text.strip() else {}
    except ValueError as error:
        raise FabricError(
            "Docker's configuration is not valid JSON.",
            path,
            str(error),
            "Correct the file (often a comma too many), then run again.",
            code="unusable-file",
        ) from error
    if not isinstance(settings, dict):
        raise FabricError(
            "Docker's configuration is not a JSON object.",
            path,
            text[:60],
            "Correct the file, then run again.",
            code="unusable-file",
        )
    return settings


def shown_ulimit(value: int) -> str:
    return f"--default-ulimit memlock={value}:{value}"


def check_flags(settings: t.Mapping[str, object], flags: t.Sequence[Flag], path: str, otherwise: str) -> None:
    """Refuse settings with which dockerd would not start, even if it runs now with what it read earlier."""
    both = sorted({f"{key} (flag {flag.name})" for flag in flags for key in keys_of(flag) & set(settings)})
    if both:
        raise FabricError(
            "Docker does not start with a setting that is both a flag and in its configuration.",
            f"{path} and ExecStart of {UNIT}",
            ", ".join(both),
            f"Remove it from one of them, then run again. {otherwise}",
            code="wrong-state",
        )


def flag_has_limit(flags: t.Sequence[Flag], value: int) -> bool:
    """Whether flags set the limit. If flags set any default ulimit, this one must be there, not in daemon.json."""
    ulimits = [flag.value for flag in flags if flag.name == "default-ulimit"]
    if not ulimits:
        return False
    seen = [limit for name, _equals, limit in (text.partition("=") for text in ulimits) if name == "memlock"]
    soft, _colon, hard = (seen[-1] if seen else "").partition(":")
    if soft != str(value) or (hard or soft) != str(value):
        raise FabricError(
            "Docker's default ulimits are set by flags, which lack the limit of locked memory.",
            f"ExecStart of {UNIT}",
            " ".join(f"--default-ulimit {text}" for text in ulimits),
            f"Give it the flag {shown_ulimit(value)}, or move all default ulimits from its flags to {DAEMON}.",
            code="wrong-state",
        )
    return True


def merge_daemon(text: str, limit: t.Optional[int], flags: t.Sequence[Flag] = (), path: str = DAEMON) -> str:
    """daemon.json with the default limit in bytes, all else kept; unchanged if the limit is set already."""
    settings = parse_daemon(text, path)
    check_flags(settings, flags, path, "Or remove docker from memlock_units: its limit then stays as it is.")
    value = -1 if limit is None else limit
    wanted: Ulimit = {"Name": "memlock", "Hard": value, "Soft": value}
    ulimits = settings.get("default-ulimits") or {}
    if flag_has_limit(flags, value) or ulimits.get("memlock") == wanted:
        return text
    return json.dumps({**settings, "default-ulimits": {**ulimits, "memlock": wanted}}, indent=2) + "\n"


def merge_value(there: object, wanted: object) -> object:
    """The new value of a setting: in an object only the wanted keys change; a list keeps entries with other names."""
    if isinstance(there, dict) and isinstance(wanted, dict):
        return {**there, **{key: merge_value(there.get(key), value) for key, value in wanted.items()}}
    if isinstance(there, list) and isinstance(wanted, list) and all(isinstance(item, str) for item in wanted):
        names = {item.partition("=")[0] for item in wanted}
        return [*(item for item in there if str(item).partition("=")[0] not in names), *wanted]
    return wanted


def fitting(there: t.Mapping[str, object], wanted: t.Mapping[str, object]) -> t.Dict[str, object]:
    """The present settings without parts that conflict with the wanted ones: dockerd would not start with them.

    Options belong to their driver, and the fields of a runtime to that runtime."""
    kept = dict(there)
    if "log-driver" in wanted and wanted["log-driver"] != there.get("log-driver", LOG_DRIVER):
        kept.pop("log-opts", None)
    options, runtimes = there.get("storage-opts"), there.get("runtimes")
    if "storage-driver" in wanted and isinstance(options, list):
        kept["storage-opts"] = [item for item in options if str(item).startswith(f"{wanted['storage-driver']}.")]
        if not kept["storage-opts"]:
            del kept["storage-opts"]
    if isinstance(runtimes, dict):
        replaced = wanted.get("runtimes")
        names = set(replaced) if isinstance(replaced, dict) else set()
        kept["runtimes"] = {name: value for name, value in runtimes.items() if name not in names}
    return kept


def merge_settings(text: str, wanted: t.Mapping[str, object], flags: t.Sequence[Flag] = (), path: str = DAEMON) -> str:
    """daemon.json with the wanted settings, all else kept; unchanged if it has them already.

    Options of a driver other than the wanted one are dropped. A wanted setting that is also a flag is refused: dockerd
    would not start."""
    settings = dict(t.cast("t.Mapping[str, object]", parse_daemon(text, path)))
    kept = fitting(settings, wanted)
    merged = {**kept, **{key: merge_value(kept.get(key), value) for key, value in wanted.items()}}
    check_flags(merged, flags, path, "What a node needs goes into the configuration file.")
    return text if merged == settings else json.dumps(merged, indent=2) + "\n"


# ---- cri-dockerd ----------------------------------------------------------------------------------------------------


def read_cri_dockerd() -> CriDockerd:
    """The installed cri-dockerd. Ours is recognized by its units or, before they are written, by its record."""
    text = output_of("systemctl", "cat", CRI_UNIT)
    program = next(iter(command_words(text)), CRI_DOCKERD)
    alone = os.path.lexists(CRI_DOCKERD) and not os.path.exists(CRI_DOCKERD_RECORD)
    others = OWN_MARK not in text and bool(text or alone)
    done = run_program([program, "--version"], SECONDS) if others and os.path.exists(program) else None
    release = re.search(r"\d+\.\d+\.\d+\S*", done.out + done.err) if done else None
    silence = cri.silence("cri-docker") if others else None
    return {
        "others": others,
        "program": program,
        "release": release[0] if release else "",
        "silence": silence.seen if silence else "",
    }


def with_settings(module: AnsibleModule, settings: t.Mapping[str, object]) -> t.Tuple[str, File]:
    """The new daemon.json with these settings, and its path, which a flag of Docker's unit may set."""
    flags = read_flags(module)
    path = daemon_path(flags)
    there: File = read_file(path) or {"content": "", "mode": "0644"}
    return path, {**there, "content": merge_settings(there["content"], settings, flags, path)}


def check_keeps(module: AnsibleModule, path: str) -> None:
    """Wait until Docker has loaded live-restore, which keeps containers running while it restarts.

    The reload signal has no reply, and Docker keeps its old settings if it refuses one of the new ones."""
    for attempt in range(PATIENCE + 1):
        if attempt:
            time.sleep(1)
        if keeps_containers(module):
            return
    host = os.uname().nodename
    raise FabricError(
        f"A restart of Docker would end all containers of {host}, so it was not restarted.",
        path,
        "the file turns on live-restore, but the running Docker has it off (docker info)",
        "See journalctl -u docker for the setting that Docker refuses, and correct it (kubernetes_docker_config). Then"
        " run again.",
        code="unsafe",
    )


def validation(module: AnsibleModule) -> str:
    """The command with which dockerd validates a file; empty without dockerd."""
    program = module.get_bin_path("dockerd")
    return VALIDATE.format(program) if program else ""


def keeps_containers(module: AnsibleModule) -> bool:
    """Whether containers keep running while Docker restarts: the running daemon has live-restore on."""
    program = module.get_bin_path("docker")
    words = ["info", "--format", "{{.LiveRestoreEnabled}}"]
    return bool(program) and module.run_command([program, *words])[1].strip() == "true"
