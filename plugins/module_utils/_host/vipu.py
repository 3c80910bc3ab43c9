# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The address of the V-IPU controller, from the vipu command.

Exit codes and messages of vipu are undocumented: anything that is not an answer is a failure that quotes the output.
"""

from __future__ import annotations

import functools
import ipaddress
import json
import os
import pwd
import re
import socket
import time
import typing as t

from .._common.command import SYSTEM_PATHS, Done, find_program, run_program
from .._common.result import FabricError
from .._model.observation import VipuFacts

# The options of find_controller, as modules accept them.
OPTIONS: t.Dict[str, t.Dict[str, object]] = {
    "executable": {"type": "str", "default": "vipu"},
    "api_host": {"type": "str", "default": ""},
    "api_port": {"type": "int"},
    "config": {"type": "str", "default": ""},
    "timeout": {"type": "int", "default": 30},
}
DEFAULT_PORT = 8090
SHORT = 3  # values up to this length are not treated as secrets
SITE_CONFIG = "/etc/vipu/vipu-cli.hcl"
KEY = re.compile(r"""(api[-_]access[-_]key["']?(?:\s*[=:]\s*|\s+))("[^"]*"|'[^']*'|[^\s,"'}]+)""", re.IGNORECASE)
# Shells of the connected user: vipu's settings may be in files that only an interactive login reads.
SHELLS = ("bash", "dash", "ksh", "sh", "zsh")
NOT_FOUND = 127
MARK = "ipu.fabric asks vipu: "
AS_LOGIN = f"cd 2>/dev/null; printf '\\n%s%s\\n' '{MARK}' \"$VIPU_CLI_API_ACCESS_KEY\"; exec \"$@\""
HOST_NAME = re.compile(r"^[A-Za-z0-9_]([A-Za-z0-9_-]*[A-Za-z0-9_])?(\.[A-Za-z0-9_]([A-Za-z0-9_-]*[A-Za-z0-9_])?)*\.?$")


Run = t.Callable[[t.Sequence[str], float], Done]


class Answer(t.NamedTuple):
    """What vipu reports about its controller."""

    endpoint: str
    version: str
    source: str


# ---- pure -----------------------------------------------------------------------------------------------------------


def parse_json(text: str) -> t.Optional[Answer]:
    """The answer in a JSON object, possibly after warnings."""
    for start in re.finditer(r"\{", text):
        try:
            found, _end = json.JSONDecoder().raw_decode(text, start.start())
        except ValueError:
            continue
        if isinstance(found, dict) and isinstance(found.get("host"), str) and found["host"].strip():
            return Answer(found["host"].strip(), str(found.get("version") or ""), "json")
    return None


def parse_text(text: str) -> t.Optional[Answer]:
    """The answer in lines like `host: 10.5.212.116:8090`."""
    found = dict(re.findall(r"^\s*(host|version)\s*:[ \t]*(\S+)\s*$", text, re.MULTILINE))
    return Answer(found["host"], found.get("version", ""), "text") if "host" in found else None


def split_endpoint(endpoint: str, default_port: int = DEFAULT_PORT) -> t.Tuple[str, int]:
    """Host and port of `host:port`, `host`, `[IPv6]:port` or an IPv6 address. ValueError for anything else."""
    bracketed = re.match(r"^\[([^\]]+)\](?::(\d+))?$", endpoint)
    if bracketed:
        host, port = str(ipaddress.IPv6Address(bracketed.group(1))), bracketed.group(2)
    elif endpoint.count(":") > 1:
        # Without brackets, a last group equal to the default port is taken for the port.
        head, _colon, tail = endpoint.rpartition(":")
        is_port = tail == str(default_port) and not head.endswith(":")
        host, port = str(ipaddress.IPv6Address(head if is_port else endpoint)), tail if is_port else None
    else:
        host, _colon, port = endpoint.partition(":")
        port = port if _colon else None
        if not HOST_NAME.match(host):
            raise ValueError(f"{host!r} is not a host name")
    number = int(port) if port is not None else default_port
    if not 0 < number < 65536:
        raise ValueError(f"{number} is not a port")
    return host, number


def redact(text: str, secrets: t.Iterable[str] = ()) -> str:
    """The text without API access keys."""
    for secret in secrets:
        text = text.replace(secret, "********")
    return KEY.sub(r"\1********", text)


def quote(done: Done, secrets: t.Iterable[str] = (), limit: int = 400) -> str:
    """What vipu printed and how it ended, shortened for a message."""
    parts = ["timed out" if done.rc is None else f"rc {done.rc}"]
    for name, text in (("stdout", done.out), ("stderr", done.err)):
        shown = redact(text, secrets).strip()
        if shown:
            parts.append(f"{name} {shown if len(shown) <= limit else '...' + shown[-limit:]!r}")
    return ", ".join(parts if len(parts) > 1 else [*parts, "no output"])


def reachable(addresses: t.Iterable[str]) -> str:
    """The first address that pods and other hosts can use too; empty if there is none."""
    for text in addresses:
        address = ipaddress.ip_address(text.partition("%")[0])
        if not (address.is_loopback or address.is_unspecified or address.is_link_local or address.is_multicast):
            return str(address)
    return ""


# ---- I/O ------------------------------------------------------------------------------------------------------------


def _secrets(config: str) -> t.List[str]:
    """Access keys that vipu may echo, from the environment and the configuration file."""
    found = [os.environ.get("VIPU_CLI_API_ACCESS_KEY", "")]
    try:
        with open(config or SITE_CONFIG, encoding="utf-8", errors="replace") as stream:
            found += [value.strip("\"'") for _name, value in KEY.findall(stream.read())]
    except OSError:
        pass  # missing or unreadable for us: then vipu can't echo it either
    return [secret for secret in found if len(secret) > SHORT]


def _command(executable: str, api_host: str, api_port: t.Optional[int], config: str) -> t.List[str]:
    command = [executable]
    for option, value in (("--api-host", api_host), ("--api-port", api_port), ("--config", config)):
        if value:
            command += [option, str(value)]
    return [*command, "--server-version"]


def _connected_user() -> t.Optional[pwd.struct_passwd]:
    """The user who connected and became root by sudo. None if root connected, or if this is not root."""
    name = os.environ.get("SUDO_USER", "")
    if os.geteuid() or not name:
        return None
    try:
        user = pwd.getpwnam(name)
    except KeyError:
        return None
    return user if user.pw_uid else None


def _run_as(user: pwd.struct_passwd, argv: t.Sequence[str], timeout: float) -> Done:
    """Run a command with this user's privileges and login environment. Access keys are removed from its output."""
    shell = user.pw_shell if os.path.basename(user.pw_shell) in SHELLS else "/bin/sh"
    own = {"HOME": user.pw_dir, "USER": user.pw_name, "LOGNAME": user.pw_name, "SHELL": shell, "LC_ALL": "C"}
    environment = [f"{name}={value}" for name, value in {**own, "PATH": os.pathsep.join(SYSTEM_PATHS)}.items()]
    identity = [f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", "--init-groups"]
    login = ["env", "-i", *environment, shell, "-lic", AS_LOGIN, "sh", *argv]
    done = run_program(["setpriv", *identity, *login], timeout)
    key, _line, out = done.out.partition(MARK)[2].partition("\n")  # the user's login files may print before the mark
    secrets = [key] if len(key) > SHORT else []
    return Done(done.rc, redact(out, secrets), redact(done.err, secrets))


def _check_timeout(timeout: float) -> None:
    if timeout <= 0:
        raise FabricError(
            "The time-out in seconds must be positive.",
            "timeout",
            str(timeout),
            "Set a number above 0.",
            code="invalid-input",
        )


def _check_input(executable: str, config: str, user: t.Optional[pwd.struct_passwd]) -> None:
    if not find_program(executable):
        raise FabricError(
            "The vipu command is needed to find the V-IPU controller.",
            f"{executable} on the search path of {f'{user.pw_name} and ' if user else ''}"
            f"{os.environ.get('USER', 'this user')}",
            "no such program",
            "Install the V-IPU command line tools on this host, or set `executable`. In an inventory:"
            " fabric_vipu: {executable: ...}, or fabric_vipu_hosts.",
            code="missing-requirement",
        )
    if config and not os.access(config, os.R_OK):
        raise FabricError(
            "The configuration file for vipu must be readable.",
            config,
            "it cannot be read",
            "Correct `config`, or leave it out for /etc/vipu/vipu-cli.hcl.",
            code="unusable-file",
        )


def _query(run: Run, command: t.List[str], timeout: float, secrets: t.Sequence[str]) -> Answer:
    """Ask for JSON first, then for text; both within one time-out."""
    deadline = time.monotonic() + timeout
    done = run([*command, "--showjson"], timeout)
    # Releases without --showjson may print text, or refuse.
    answer = (parse_json(done.out) or parse_text(done.out)) if done.rc == 0 else None
    if answer is None and done.rc not in (None, NOT_FOUND):
        first, done = done, run(command, deadline - time.monotonic())
        answer = parse_text(done.out) if done.rc == 0 else None
        done = done if done.out.strip() or done.err.strip() else first
    if answer is not None:
        return answer
    what = (
        f"vipu did not answer within {timeout:g} s."
        if done.rc is None
        else "vipu did not say where the V-IPU controller is."
    )
    raise FabricError(
        what,
        " ".join(command),
        quote(done, secrets),
        "Run the command on this host. Is the controller up, and its address right in `api_host`, VIPU_CLI_API_HOST"
        f" or {SITE_CONFIG}? In an inventory: fabric_vipu: {{api_host: ...}}, or fabric_vipu_hosts.",
        code=done.code,
    )


def _resolve(host: str, port: int, where: str, here: bool) -> str:
    """The controller's address as other hosts and pods reach it, or possibly a loopback of this host if `here`."""
    try:
        found = [str(item[4][0]) for item in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)]
    except (OSError, UnicodeError) as error:
        raise FabricError(
            "The V-IPU controller's host name must resolve on this host.",
            where,
            f"{host}: {error}",
            "Fix DNS or /etc/hosts, or set `api_host` to the controller's address.",
            code="not-found",
        ) from error
    address = reachable(found)
    loopback = [text for text in found if ipaddress.ip_address(text).is_loopback]
    if not address and here and loopback:
        return loopback[0]
    if not address:
        raise FabricError(
            "The V-IPU controller needs an address that other hosts and pods can reach.",
            where,
            f"{host}:{port} is {', '.join(dict.fromkeys(found))}, which on each host means that host itself",
            "Set `api_host` (in an inventory fabric_vipu: {api_host: ...}), or api-host in the vipu configuration, to"
            " the controller's address on the network.",
            code="invalid-input",
        )
    return address


def _locate(
    run: Run, command: t.List[str], port: int, timeout: float, secrets: t.Sequence[str], here: bool
) -> VipuFacts:
    where = " ".join(command)
    answer = _query(run, command, timeout, secrets)
    try:
        host, port = split_endpoint(answer.endpoint, port)
    except ValueError as error:
        raise FabricError(
            "The V-IPU controller's address must be host:port.",
            where,
            f"host {answer.endpoint} ({error})",
            "Correct api-host in the vipu configuration, or set `api_host`.",
            code="invalid-input",
        ) from error
    return {
        "host": host,
        "port": port,
        "address": _resolve(host, port, where, here),
        "version": answer.version,
        "source": answer.source,
    }


def controller_addresses(entries: t.Sequence[object]) -> t.List[str]:
    """The IP addresses among configured V-IPU controllers; the plan resolves names."""
    addresses = []
    for entry in entries:
        try:
            text = str(entry["host"] if isinstance(entry, dict) else entry)
            addresses.append(str(ipaddress.ip_address(split_endpoint(text)[0])))
        except (KeyError, ValueError):  # a name, or an entry that the plan rejects with a finding
            continue
    return addresses


def find_controller(
    *,
    executable: str = "vipu",
    api_host: str = "",
    api_port: t.Optional[int] = None,
    config: str = "",
    timeout: float = 30,
    here: bool = False,
) -> VipuFacts:
    """Find the V-IPU controller; a loopback address will do if `here` is set. See the module host_info."""
    _check_timeout(timeout)
    secrets, user = _secrets(config), _connected_user()
    command = _command(executable, api_host, api_port, config)
    port = api_port or DEFAULT_PORT
    failure: t.Optional[FabricError] = None
    if user:
        try:
            return _locate(functools.partial(_run_as, user), command, port, timeout, secrets, here)
        except FabricError as error:
            failure = error
    try:
        _check_input(executable, config, user)
        return _locate(run_program, command, port, timeout, secrets, here)
    except FabricError as error:
        # The failure of a user whose vipu ran says more than that root has no vipu.
        lacks = error.code == "missing-requirement"
        told = failure if failure and lacks and failure.code != "missing-requirement" else error
        # Redact what vipu printed, and drop the errors that led here, which may quote it too.
        parts = (redact(text, secrets) for text in (told.what, told.where, told.seen, told.next_step))
        raise FabricError(*parts, code=told.code, transient=told.transient) from None
