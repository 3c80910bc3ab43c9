# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What may be secret in a module's options: it is kept out of the host's log, of diffs and of results.

redaction.py removes secrets from what leaves the site.
"""

from __future__ import annotations

import re
import typing as t

NOT_SHOWN = "(not shown)"
# The text that Ansible shows for an option with no_log.
IN_INVOCATION = "VALUE_SPECIFIED_IN_NO_LOG_PARAMETER"
# Names of secrets, after splitting camelCase. secretName and tokenTTL do not match.
SECRET_NAME = re.compile(
    r"(?:pass(?:wd|word|phrase)s?|(?:^|[_.-])(?:pass|pwd?|bindpw|tokens?|secret(?:[_-]id)?|cred(?:ential)?s?|cookies?|jwt|psk"
    r"|authorization|(?:api|access|account|auth|certificate|client|deploy|encryption|license|master|pre[_-]?shared|private|root"
    r"|secret|session|shared|signing|storage)[_-]?keys?(?:[_-](?:data|pem))?))$",
    re.IGNORECASE,
)
CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
# A line of TOML, YAML, INI or keepalived that sets a secret.
SECRET_LINE = re.compile(
    r"""^(\s*(?:export\s+)?["']?)([\w.-]+)(["']?\s*(?:[=:]\s*|\s))(\S.*)$""",
    re.MULTILINE,
)
# A URL with a login: the whole login, and its password.
LOGIN = re.compile(r"://([^\s/:@]{0,256}:([^\s/]{1,256}))@(?!sha256:)")
OF_REGISTRIES = ("auth", "identitytoken", "auth_pass")
SHORTEST = 6  # characters of a secret that is searched for in other texts; a shorter one would match everywhere

Path = t.Tuple[t.Union[str, int], ...]
IsSecret = t.Callable[[Path], bool]


def is_secret_name(name: str) -> bool:
    """Whether a key or environment variable has a name that secrets have."""
    return bool(SECRET_NAME.search(CAMEL.sub("_", name)))


def hide_lines(text: str) -> str:
    """The text of a configuration file for a diff, without logins in URLs and values with the names of secrets."""

    def line(match: t.Match[str]) -> str:
        start, name, between, _value = match.groups()
        secret = name.lower() in OF_REGISTRIES or is_secret_name(name)
        return f"{start}{name}{between}{NOT_SHOWN}" if secret else match[0]

    return LOGIN.sub(f"://{NOT_SHOWN}@", SECRET_LINE.sub(line, text))


def every_text(_path: Path) -> bool:
    """For chart values: a password may be under any key."""
    return True


def in_objects(path: Path) -> bool:
    """For API objects: values in containers' environments, and values with the names of secrets."""
    last = path[-1] if path else ""
    if last == "value" and "env" in path[-3:-1]:
        return True
    return isinstance(last, str) and is_secret_name(last)


def hide(before: object, after: object, is_secret: IsSecret) -> t.Tuple[object, object]:
    """Both values for a diff, which shows that a secret has changed, but not its value."""
    return _hidden(before, after, "before", is_secret, ()), _hidden(after, before, "after", is_secret, ())


def hide_one(value: object, is_secret: IsSecret) -> object:
    return _hidden(value, value, "", is_secret, ())


def _hidden(value: object, other: object, side: str, is_secret: IsSecret, path: Path) -> object:
    if isinstance(value, dict):
        others: t.Mapping[str, object] = other if isinstance(other, dict) else {}
        return {key: _hidden(item, others.get(key), side, is_secret, (*path, key)) for key, item in value.items()}
    if isinstance(value, list):
        items: t.Sequence[object] = other if isinstance(other, list) else ()
        pairs = [(item, items[place] if place < len(items) else None) for place, item in enumerate(value)]
        return [_hidden(item, beside, side, is_secret, (*path, place)) for place, (item, beside) in enumerate(pairs)]
    if not isinstance(value, str) or not value or not is_secret(path):
        return value
    return NOT_SHOWN if value == other else f"{NOT_SHOWN[:-1]}, {side})"


def texts(value: object) -> t.Iterator[str]:
    """Every string and number in this data, as text."""
    if isinstance(value, dict):
        for item in value.values():
            yield from texts(item)
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from texts(item)
    elif value is not None and not isinstance(value, bool):
        yield str(value)


def secrets_in(value: object) -> t.Set[str]:
    """Texts with a secret's name, as a key or environment variable, and logins in URLs.

    Errors of programs may repeat these texts.
    """
    found: t.Set[str] = set()
    if isinstance(value, list):
        return found.union(*map(secrets_in, value))
    if isinstance(value, str):
        return {each for login in LOGIN.findall(value) for each in login if len(each) >= SHORTEST}
    if not isinstance(value, dict):
        return found
    for key, item in value.items():
        found |= secrets_in(item)
        if is_secret_name(str(key)):
            found.update(texts(item))
    if is_secret_name(str(value.get("name", ""))):
        found.update(texts(value.get("value")))
    return {each for each in found if len(each) >= SHORTEST}
