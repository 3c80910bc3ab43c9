# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Removes secrets from objects and logs that leave the site. Pure functions; in doubt they remove more."""

from __future__ import annotations

import functools
import json
import math
import re
import typing as t

from .secrets import NOT_SHOWN, OF_REGISTRIES, is_secret_name, secrets_in

# Lines in programs' output have any length. All patterns below are bounded, so the time depends only on the length.
LONGEST_LINE = 8192
CUT = " (the rest of this line is not shown)"
PREFIXES = (
    *("A[KSB]IA[0-9A-Z]{16}", "A[CG]CA[0-9A-Z]{16}", "LTAI[0-9A-Za-z]{12,30}", r"AIza[\w-]{30,}", r"ya29\.[\w-]{20,}"),
    *(r"gh[pousr]_\w{20,}", r"github_pat_\w{20,}", r"gl[a-z]{2,6}-[\w-]{16,}", r"xox[a-z]-[\w-]{10,}"),
    *(r"xapp-[\w-]{10,}", r"npm_\w{20,}", r"hf_\w{16,}", r"api_org_\w{20,}", r"[srp]k[-_][\w-]{16,}"),
    *(r"nvapi-[\w-]{16,}", r"dckr_[a-z]{2,4}_[\w-]{12,}", r"hv[sbr]\.[\w-]{16,}", r"pypi-[\w-]{16,}"),
    *(r"do[opr]_v1_\w{20,}", r"SG\.[\w-]{16,}\.[\w-]{16,}", r"sha256~[\w-]{20,}", r"AGE-SECRET-KEY-1\w{20,}"),
    *(r"tskey-[\w-]{16,}", r"whsec_[\w+/=]{16,}", r"glsa_\w{20,}", r"PMAK-[\w-]{20,}", r"shp[a-z]{2}_\w{20,}"),
    *("dapi[0-9a-f]{32}", r"lin_api_\w{20,}", "rubygems_[0-9a-f]{20,}", r"(?:\w{10,16}\.)?atlasv1\.[\w-]{20,}"),
)
BEGINS = r"(?:(?<![A-Za-z0-9])|(?<=\\[nrt]))"
# Secrets that are recognized by their form. The tail of a log may end within a key.
BY_FORM = tuple(
    re.compile(form, re.DOTALL)
    for form in (
        r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY.*?(?:-----END [A-Z0-9 ]{0,40}PRIVATE KEY-----|\Z)",
        r"LS0tLS1CRUdJTi[A-Za-z0-9+/=_-]*",  # PEM in base64, as in kubeconfigs
        BEGINS + r"eyJ[\w-]{8,}(?:\.[\w-]*){1,2}",  # JSON web tokens
        r"(?<![a-z0-9])[a-z0-9]{6}\.[a-z0-9]{16}(?![a-z0-9])",  # of kubeadm join
        rf"{BEGINS}(?:{'|'.join(PREFIXES)})",
        # Password hashes.
        r"\$(?:2[abxy]?|[1567y]|apr1|argon2\w{0,2}|scrypt|pbkdf2[\w-]{0,10})\$[\w./$+=,*-]{8,}",
    )
)
HIDDEN = "\ue000"  # stands in for NOT_SHOWN, whose two words no pattern must take for a value
FORMS: t.Sequence[t.Tuple[t.Pattern[str], str]] = (
    *((form, HIDDEN) for form in BY_FORM),
    # Commands of workloads, as printed by kubelets and runc.
    (re.compile(r"(\b(?:Command|Args):\[)[^\]\n]{1,8192}"), rf"\1{HIDDEN}"),
    (re.compile(r"(\bexec: \\{0,3}\")[^\"\n]{0,2048} [^\"\n]{0,2048}"), rf"\1{HIDDEN}"),
    (re.compile(r"\b(bearer|basic)(\s{1,8})[\w.~+/=-]{6,}", re.IGNORECASE), rf"\1\2{HIDDEN}"),
    (
        re.compile(r"(slack\.com/services/|discord(?:app)?\.com/api/webhooks/|webhook\.office\.com/)[\w@/-]{8,}"),
        rf"\1{HIDDEN}",
    ),
    (re.compile(r"://(?:[^\s/:\"']{0,256}:\S{0,256}|[^\s/\"']{1,256})@(?!sha256:)"), f"://{HIDDEN}@"),
    (re.compile(r"(%3A%2F%2F)[^\s\"'&]{1,256}%40", re.IGNORECASE), rf"\1{HIDDEN}%40"),
    (
        re.compile(r"(?<![\w.@-])([\w.-]{1,64}):[^\s:/@\"']{1,128}@(?!sha256:)(?=[\w.-]{1,128}[:(])"),
        rf"\1:{HIDDEN}@",
    ),
    (
        re.compile(r"([?&](?:sig|signature|code|key)=)[^&\s\"'#]{1,2048}", re.IGNORECASE),
        rf"\1{HIDDEN}",
    ),
    # On command lines: a user with a password, or a password alone.
    (
        re.compile(r"(?<!\S)(-{1,2}(?:u|user|proxy-user|[a-z-]{0,16}creds)[ =][\"']?[^\s:\"'/]{1,64}):[^\s\"']{1,256}"),
        rf"\1:{HIDDEN}",
    ),
    (re.compile(r"(?<!\S)(-[pP] )(?![\d.:/-]{0,64}(?:\s|$)|/)\S{1,256}"), rf"\1{HIDDEN}"),
    (
        re.compile(r"\b((?:mysql|mariadb|sshpass|ldap)\w{0,20} [^\n|;]{0,512}?-[pw])(?![\s(])\S{1,256}"),
        rf"\1{HIDDEN}",
    ),
    (re.compile(r"\b(echo|printf)(\s{1,8})\S{6,256}(?=\s{1,8}\|)"), rf"\1\2{HIDDEN}"),
    (re.compile(r"(etcdctl [^\n]{0,256}?\bput \S{1,256} )[^\n]{1,4096}"), rf"\1{HIDDEN}"),
    (re.compile(r"(certificate[- ]key\W{1,4})[0-9a-f]{64}", re.IGNORECASE), rf"\1{HIDDEN}"),
    # In sentences.
    (
        re.compile(r"\b(pass(?:word|wd|phrase) (?:is|was) )\S{1,256}", re.IGNORECASE),
        rf"\1{HIDDEN}",
    ),
    (
        re.compile(
            r"\b((?:identified by|password|passwd|passphrase|psk)\s{1,8}([\"']))[^\n\"']{1,256}\2",
            re.IGNORECASE,
        ),
        rf"\1{HIDDEN}\2",
    ),
    (
        re.compile(r"\b((?:auth_pass|(?:r[ow])?community|requirepass|masterauth)[ \t]{1,8})\S{1,256}"),
        rf"\1{HIDDEN}",
    ),
    # The content of a Secret, as YAML.
    (re.compile(r"(?<![^\n])((?:string)?[dD]ata:[ \t]*)(?:\n[ \t]+[^\n]+)+"), rf"\1{HIDDEN}"),
)
ELEMENT = re.compile(r"(<([\w:.-]{1,64})(?:\s[^<>]{0,200})?>)[^<\n]{1,1024}(?=</)")
# What has no known form may still be too random for a word or a name.
WORDS = re.compile(r"[A-Za-z0-9+/_=-]{12,}")
RUN = re.compile(r"[A-Za-z0-9]{12,}")
HEX = re.compile(r"(?<![0-9A-Za-z])[0-9a-f]{32,}(?![0-9A-Za-z])")
IDENTITY = re.compile(
    r"(?:id|sha\d{0,3}|digest|hash|commit|revision|checksum|fingerprint|sandbox|container|containerd|docker|image|task|shim"
    r"|serial|sum|version)[\"'\\\s:=/()\[@]{0,8}$",
    re.IGNORECASE,
)
END_OF_KEY = re.compile(r"-----END [A-Z0-9 ]{0,40}PRIVATE KEY")
PART_OF_KEY = re.compile(r"[A-Za-z0-9+/=]{16,}\s*$")
# A name, and what separates it from its value: `=`, `:`, or a flag's separator. Quotes may be escaped.
NAMED = re.compile(
    r"(?<![\w.-])(?P<name>(?P<flag>-)?[\w.-]{1,256})"
    r"(?P<between>(?:\\{0,8}[\"'])?\s{0,8}(?:=>|:=|[:=])[ \t]*|(?(flag)(?:\\{0,8}[\"'])?[, \t]{1,8}|(?!)))"
)
# It ends at a quote that is escaped as often as the first: one that is escaped once more is inside.
QUOTED = re.compile(r"(?P<quote>\\{0,16}[\"']).*?(?P<end>(?<!\\)(?P=quote)|$)", re.MULTILINE)
WORD = re.compile(r"\S+")
LINE = re.compile(r"[^\n]+")
BLOCK = re.compile(r"(?:[|>][-+\d]{0,2})?[ \t]*(?:\n[ \t]+[^\n]+)+")  # a YAML block, below the name
# Environments as printed by kubelets (EnvVar{Name:A,Value:b,ValueFrom:nil,}), and as JSON and YAML within text.
OF_ENVIRONMENT = re.compile(
    r"\bname\\*[\"']?[:=]\s*\\*[\"']?[\w.-]+\\*[\"']?(?:[,\s]|\\+n){1,12}\\*[\"']?value\\*[\"']?[:=][ \t]*",
    re.IGNORECASE,
)
TO_THE_NEXT = re.compile(r".+?(?=,?\s*ValueFrom:|$)", re.MULTILINE)
OBJECT = re.compile(r"\{\s*\"")
# A token has no spaces, so text after `failed to fetch token:` stays. A passphrase may have some.
ONE_WORD = ("token", "secret", "key", "auth")
# A volume names its Secret, or a token that the kubelet will request: these are names, not secrets.
REFERENCES = ("secret", "serviceAccountToken")
REFERENCE_FIELDS = {"secretName", "name", "items", "optional", "defaultMode", "path", "expirationSeconds", "audience"}
SHORT = 256  # characters
OF_LOGINS = ("auths", ".dockerconfigjson", ".dockercfg")


def redact(value: object) -> object:
    """The data without secrets. A secret that is recognized in one place is removed everywhere."""
    known = sorted(known_secrets(value), key=len, reverse=True)
    pattern = re.compile("|".join(map(re.escape, known))) if known else None
    return _redacted(value, pattern)


def known_secrets(value: object) -> t.Set[str]:
    """Texts that are secrets by their keys, in data and in JSON within its texts."""
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
    """An object or list stored as a string in other data, as in annotations; None for anything else."""
    if isinstance(value, str) and value.lstrip()[:1] in ("{", "["):
        try:
            return json.loads(value)
        except (ValueError, RecursionError):
            return None
    return None


def is_hidden(key: str, item: object, holder: t.Mapping[str, object]) -> bool:
    """Whether everything that an object has under a key is secret."""
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
                else item
                if isinstance(item, str) and HEX.fullmatch(item) and IDENTITY.search(str(key))
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
    """Hide a value, but show whether there was one."""
    return value if value is None or isinstance(value, bool) or value in ("", {}, []) else NOT_SHOWN


def _text(text: str, known: t.Optional[t.Pattern[str]]) -> str:
    return redact_text(known.sub(NOT_SHOWN, text) if known else text)


def redact_log(text: str, size: int) -> str:
    """The end of a log, redacted. It is cut before that at a line, well before the part that is kept."""
    text, most = with_short_lines(text), 4 * max(size, LONGEST_LINE)
    return redact_text(text if len(text) <= most else text[-most:].partition("\n")[2])[-size:]


def redact_text(text: str) -> str:
    """A log without what looks like a secret, and without what follows a secret's name."""
    return _redact_short(text) if len(text) < SHORT else _redact_text(text)


def _redact_text(text: str) -> str:
    text = with_short_lines(text)
    text = without_ends_of_keys(_with_objects_redacted(text)).replace(NOT_SHOWN, HIDDEN)
    for pattern, instead in FORMS:
        text = pattern.sub(instead, text)
    text = ELEMENT.sub(lambda match: f"{match[1]}{HIDDEN}" if is_secret_name(match[2]) else match[0], text)
    text = _hide_values(text, OF_ENVIRONMENT, lambda _match: TO_THE_NEXT)
    text = _hide_values(text, NAMED, _rule_of)
    return HEX.sub(_shortened, WORDS.sub(_unless_random, text)).replace(HIDDEN, NOT_SHOWN)


_redact_short = functools.lru_cache(maxsize=8192)(_redact_text)  # names, addresses and states are repeated often


def with_short_lines(text: str) -> str:
    if len(text) <= LONGEST_LINE:
        return text
    return "\n".join(
        line if len(line) <= LONGEST_LINE else line[: LONGEST_LINE - len(CUT)] + CUT for line in text.split("\n")
    )


def _unless_random(match: t.Match[str]) -> str:
    word = match[0]
    padded = word.endswith("=") and len(word) % 4 == 0 and is_mixed(word)
    return NOT_SHOWN if padded or any(is_random(run) for run in RUN.findall(word)) or is_base64(word) else word


def is_mixed(text: str) -> bool:
    return text != text.lower() and text != text.upper() and any(map(str.isdigit, text))


def is_base64(word: str) -> bool:
    """Whether a word is encoded data: paths contain no `+`, and 40 characters are an AWS key."""
    enough = (len(word) >= 24 and "+" in word) or (len(word) == 40 and "-" not in word and "_" not in word)
    return enough and is_mixed(word) and evenness(word) >= 3.8


def is_random(run: str) -> bool:
    """Whether letters and digits alternate as in no word or name."""
    kinds = ["d" if each.isdigit() else "u" if each.isupper() else "l" for each in run]
    changes = sum(a != b for a, b in zip(kinds, kinds[1:])) / len(run)
    groups = len(re.findall("[0-9]+", run))
    if is_mixed(run):
        return changes >= 0.45 or (groups > 1 and len(run) >= 14 and evenness(run) >= 3.4)
    return len(run) >= 20 and groups >= 4 and bool(re.search("[g-zG-Z]", run)) and evenness(run) >= 3.4


def evenness(text: str) -> float:
    """The Shannon entropy of the text's characters, in bits."""
    shares = [text.count(each) / len(text) for each in set(text)]
    return -sum(share * math.log2(share) for share in shares)


def _shortened(match: t.Match[str]) -> str:
    """Digests and IDs that are named as such stay; others are shortened as crictl and docker shorten IDs."""
    before = match.string[max(0, match.start() - 32) : match.start()]
    plain = len(set(match[0])) <= 2  # zeros
    return match[0] if plain or IDENTITY.search(before) else f"{match[0][:12]}{NOT_SHOWN}"


def _rule_of(named: t.Match[str]) -> t.Optional[t.Pattern[str]]:
    """The pattern of this name's unquoted value; None if it is not a secret."""
    name = named["name"].lower()
    # After a newline written as \\n, the match includes the n.
    names = (named["name"], named["name"][1:] if named.string[named.start() - 1 : named.start()] == "\\" else "")
    if not any(is_secret_name(each) or each.lower() in OF_REGISTRIES for each in names):
        return None
    return WORD if ":" not in named["between"] or name.endswith(ONE_WORD) else LINE


def _hide_values(
    text: str, named: t.Pattern[str], rule_of: t.Callable[[t.Match[str]], t.Optional[t.Pattern[str]]]
) -> str:
    """The text, with what follows each match of `named` hidden if there is a rule for it."""
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
        block = BLOCK.match(text, place) if rule in (WORD, LINE) and not quoted else None
        plain = block or (rule.match(text, place) if rule and not quoted else None)
        if quoted:
            parts.append(f"{quoted['quote']}{HIDDEN}{quoted['end']}")
        elif plain:
            parts.append(HIDDEN)
        place = (quoted or plain or match).end()


def _with_objects_redacted(text: str) -> str:
    """Redact JSON objects that programs log within other text."""
    parts: t.List[str] = []
    place = 0
    for start, end, value in _objects_in(text):
        parts += [text[place:start], json.dumps(_redacted(value, None))]
        place = end
    return "".join([*parts, text[place:]])


def _objects_in(text: str) -> t.Iterator[t.Tuple[int, int, object]]:
    """Start, end and value of the JSON objects in a text."""
    decoder, end, budget = json.JSONDecoder(), 0, 4 * len(text)
    for start in (match.start() for match in OBJECT.finditer(text)):
        if start >= end and budget > 0:
            try:
                value, end = decoder.raw_decode(text, start)
            except json.JSONDecodeError as error:
                budget -= error.pos - start + 1
            except RecursionError:
                budget = 0
            else:
                yield start, end, value


def without_ends_of_keys(text: str) -> str:
    """Remove the ends of keys: the tail of a log may begin within a key."""
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
