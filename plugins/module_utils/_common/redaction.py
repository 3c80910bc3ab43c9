# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Take secrets out of objects and logs that leave the site. Pure; in doubt it takes out more."""

from __future__ import annotations

import json
import re
import typing as t

from ansible_collections.ipu.fabric.plugins.module_utils._common.secrets import (
    NOT_SHOWN,
    OF_REGISTRIES,
    is_secret_name,
    secrets_in,
)

# What gives itself away by its form. The tail of a log may end within a key.
FORMS: t.Sequence[t.Tuple[t.Pattern[str], str]] = (
    (
        re.compile(r"-----BEGIN [A-Z0-9 ]*PRIVATE KEY.*?(?:-----END [A-Z0-9 ]*PRIVATE KEY-----|\Z)", re.DOTALL),
        NOT_SHOWN,
    ),
    (re.compile(r"LS0tLS1CRUdJTi[A-Za-z0-9+/=_-]*"), NOT_SHOWN),  # PEM in base64, as kubeconfigs have it
    (re.compile(r"eyJ[\w-]{8,}\.[\w-]{8,}(?:\.[\w-]*)?"), NOT_SHOWN),  # JSON web tokens
    (re.compile(r"(?<![a-z0-9])[a-z0-9]{6}\.[a-z0-9]{16}(?![a-z0-9])"), NOT_SHOWN),  # of kubeadm join
    (re.compile(r"\b(bearer|basic)(\s+)(?!\(not shown)[\w.~+/=-]{6,}", re.IGNORECASE), rf"\1\2{NOT_SHOWN}"),
    (re.compile(r"://(?!\(not shown\)@)(?:[^\s/:\"']*:[^\s\"']*|[^\s/\"']+)@(?!sha256:)"), f"://{NOT_SHOWN}@"),
    (re.compile(r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b|\bgh[pousr]_\w{20,}|\bnvapi-[\w-]{20,}"), NOT_SHOWN),
)
END_OF_KEY = re.compile(r"-----END [A-Z0-9 ]*PRIVATE KEY")
PART_OF_KEY = re.compile(r"[A-Za-z0-9+/=]{16,}\s*$")
# A name, and what stands between it and its value: `=`, `:`, or what divides a flag from it. Quotes may be escaped.
NAMED = re.compile(
    r"(?<![\w.-])(?P<name>(?P<flag>-)?[\w.-]+)"
    r"(?P<between>(?:\\*[\"'])?\s*(?:=>|:=|[:=])[ \t]*|(?(flag)(?:\\*[\"'])?[, \t]+|(?!)))"
)
# It ends at a quote that is escaped as often as the first: one that is escaped once more is within.
QUOTED = re.compile(r"(?P<quote>\\*[\"']).*?(?P<end>(?<!\\)(?P=quote)|$)", re.MULTILINE)
WORD = re.compile(r"(?:\(not shown\)|\S)+")
LINE = re.compile(r"[^\n]+")
# Environments as kubelets print them: EnvVar{Name:A,Value:b,ValueFrom:nil,}, and as JSON and YAML within a text.
OF_ENVIRONMENT = re.compile(
    r"\bname\\*[\"']?[:=]\s*\\*[\"']?[\w.-]+\\*[\"']?(?:[,\s]|\\+n){1,12}\\*[\"']?value\\*[\"']?[:=][ \t]*",
    re.IGNORECASE,
)
TO_THE_NEXT = re.compile(r".+?(?=,?\s*ValueFrom:|$)", re.MULTILINE)
OBJECT = re.compile(r"\{\s*\"")
# A token has no spaces, so what a program says behind `failed to fetch token:` stays. A passphrase may have some.
ONE_WORD = ("token", "secret", "key", "auth")
# A volume names its Secret, and a token that the kubelet will ask for: names, and no secrets.
REFERENCES = ("secret", "serviceAccountToken")
REFERENCE_FIELDS = {"secretName", "name", "items", "optional", "defaultMode", "path", "expirationSeconds", "audience"}
OF_LOGINS = ("auths", ".dockerconfigjson", ".dockercfg")


def redact(value: object) -> object:
    """The data without secrets. What is called a secret in one place is taken out of all others too."""
    known = sorted(known_secrets(value), key=len, reverse=True)
    pattern = re.compile("|".join(map(re.escape, known))) if known else None
    return _redacted(value, pattern)


def known_secrets(value: object) -> t.Set[str]:
    """Texts under the name of a secret, in data and in JSON within its texts."""
    if isinstance(value, dict):
        plain = {key: item for key, item in value.items() if not is_reference(str(key), item)}
        own = secrets_in({key: item for key, item in plain.items() if not isinstance(item, (dict, list))})
        hidden = secrets_in({key: item for key, item in plain.items() if is_secret_name(str(key))})
        return own.union(hidden, *map(known_secrets, plain.values())) - {NOT_SHOWN}
    if isinstance(value, (list, tuple)):
        return set().union(*map(known_secrets, value))
    if not isinstance(value, str):
        return set()
    inner = as_json(value)
    found = [each for _start, _end, each in _objects_in(value)] if inner is None else [inner]
    return set().union(*map(known_secrets, found))


def is_reference(key: str, item: object) -> bool:
    return key in REFERENCES and isinstance(item, dict) and set(item) <= REFERENCE_FIELDS


def as_json(value: object) -> object:
    """An object or a list that is a text in other data, as in annotations; None for all else."""
    if isinstance(value, str) and value.lstrip()[:1] in ("{", "["):
        try:
            return json.loads(value)
        except (ValueError, RecursionError):
            return None
    return None


def is_hidden(key: str, item: object, holder: t.Mapping[str, object]) -> bool:
    """Whether all that a key of an object holds is a secret."""
    if is_reference(key, item):
        return False
    if key in ("data", "stringData") and holder.get("kind") == "Secret":
        return True
    if key == "value" and is_secret_name(str(holder.get("name", ""))):
        return True
    return is_secret_name(key) or key in OF_LOGINS or (key in OF_REGISTRIES and not isinstance(item, (dict, list)))


def _redacted(value: object, known: t.Optional[t.Pattern[str]], in_env: bool = False) -> object:
    if isinstance(value, dict):
        return {
            _text(key, known) if isinstance(key, str) else key: (
                _blank(item)
                if is_hidden(str(key), item, value) or (in_env and key == "value")
                else _redacted(item, known, key == "env")
            )
            for key, item in value.items()
        }
    if isinstance(value, (list, tuple)):
        flags = [None, *value[:-1]]  # ["--token", "abc"]
        return [
            _blank(item) if is_flag(flag) and isinstance(item, str) else _redacted(item, known, in_env)
            for flag, item in zip(flags, value)
        ]
    if not isinstance(value, str):
        return value
    inner = as_json(value)
    return _text(value, known) if inner is None else json.dumps(_redacted(inner, known))


def is_flag(item: object) -> bool:
    return isinstance(item, str) and item.startswith("-") and is_secret_name(item)


def _blank(value: object) -> object:
    """Nothing of it but that there was something."""
    return value if value is None or isinstance(value, bool) or value in ("", {}, []) else NOT_SHOWN


def _text(text: str, known: t.Optional[t.Pattern[str]]) -> str:
    return redact_text(known.sub(NOT_SHOWN, text) if known else text)


def redact_text(text: str) -> str:
    """A log without what looks like a secret, and without what follows the name of one."""
    text = without_ends_of_keys(_with_objects_redacted(text))
    for pattern, instead in FORMS:
        text = pattern.sub(instead, text)
    text = _hide_values(text, OF_ENVIRONMENT, lambda _match: TO_THE_NEXT)
    return _hide_values(text, NAMED, _rule_of)


def _rule_of(named: t.Match[str]) -> t.Optional[t.Pattern[str]]:
    """What the value of this name is without quotes; None if it is no secret."""
    name = named["name"].lower()
    # Behind a newline that is written as \\n, the n belongs to it.
    names = (named["name"], named["name"][1:] if named.string[named.start() - 1 : named.start()] == "\\" else "")
    if not any(is_secret_name(each) or each.lower() in OF_REGISTRIES for each in names):
        return None
    return WORD if ":" not in named["between"] or name.endswith(ONE_WORD) else LINE


def _hide_values(
    text: str, named: t.Pattern[str], rule_of: t.Callable[[t.Match[str]], t.Optional[t.Pattern[str]]]
) -> str:
    """The text, without what follows a match of `named` if there is a rule for it."""
    parts: t.List[str] = []
    place = 0
    while True:
        match = named.search(text, place)
        if not match:
            return "".join([*parts, text[place:]])
        parts.append(text[place : match.end()])
        place = match.end()
        rule = rule_of(match)
        quoted = QUOTED.match(text, place) if rule else None
        plain = rule.match(text, place) if rule and not quoted else None
        if quoted:
            parts.append(f"{quoted['quote']}{NOT_SHOWN}{quoted['end']}")
        elif plain:
            parts.append(NOT_SHOWN)
        place = (quoted or plain or match).end()


def _with_objects_redacted(text: str) -> str:
    """Programs log objects as JSON, with other text around it."""
    parts: t.List[str] = []
    place = 0
    for start, end, value in _objects_in(text):
        parts += [text[place:start], json.dumps(_redacted(value, None))]
        place = end
    return "".join([*parts, text[place:]])


def _objects_in(text: str) -> t.Iterator[t.Tuple[int, int, object]]:
    """Where they begin and end in a text, and what they are."""
    decoder, end = json.JSONDecoder(), 0
    for start in (match.start() for match in OBJECT.finditer(text)):
        if start >= end:
            try:
                value, end = decoder.raw_decode(text, start)
            except (ValueError, RecursionError):
                continue
            yield start, end, value


def without_ends_of_keys(text: str) -> str:
    """The tail of a log may begin within a key."""
    if not END_OF_KEY.search(text):
        return text
    lines = text.split("\n")
    for number, line in enumerate(lines):
        end = END_OF_KEY.search(line)
        if end:
            lines[number], first = NOT_SHOWN + line[end.end() :], number
            while first and PART_OF_KEY.search(lines[first - 1]):
                first -= 1
                lines[first] = NOT_SHOWN
    return "\n".join(lines)
