# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What leaves the site has no secret in it, and still says what happened."""

from __future__ import annotations

import base64
import json
import typing as t

import pytest
from ansible_collections.ipu.fabric.plugins.module_utils._common.redaction import redact, redact_text
from hypothesis import given
from hypothesis import strategies as st

WORD = "planted4711"
KEY = f"-----BEGIN RSA PRIVATE KEY-----\n{WORD}MIIEpAIBAAKCAQEA\n-----END RSA PRIVATE KEY-----"
TOKEN = "abcdef.0123456789abcdef"
JWT = "eyJhbGciOiJSUzI1NiJ9.eyJpc3MiOiJrdWJlIn0.c2lnbmF0dXJl"
# Each has a secret in it, by its form alone or by what stands before it.
TEXTS = {
    "private key": KEY,
    "its first part": KEY[:40],
    "its last part": f"MIIEpAIBAAKCAQEA{WORD}\n-----END PRIVATE KEY-----",
    "its last part in one line": f"MIIEpAIBAAKCAQEA{WORD}\\n-----END PRIVATE KEY-----",
    "in a journal": "\n".join(f"Nov 24 23:06:46 w1 kubelet[1]: {line}" for line in KEY.splitlines()),
    "key in base64": base64.b64encode(KEY.encode()).decode(),
    "join": f"kubeadm join cp1:6443 --token {TOKEN}",
    "bootstrap token": TOKEN,
    "web token": f"got {JWT}",
    "bearer": f"Authorization: Bearer {WORD}",
    "bearer in curl": f'-H "Authorization: Bearer {WORD}"',
    "basic": f"Authorization: Basic {base64.b64encode(WORD.encode()).decode()}",
    "digest": f'Authorization: Digest username="me", response="{WORD}"',
    "url": f"pull https://me:{WORD}@mirror.site/v2/ failed",
    "url, odd password": f"pull https://me:a/{WORD}@mirror.site/v2/ failed",
    "url, name with @": f"https://me@site:{WORD}@mirror.site",
    "url, only a token": f"https://{WORD}@mirror.site",
    "flag": f"start --admin-password {WORD} --verbose",
    "flag with =": f"start --admin-password={WORD} --verbose",
    "variable": f'DB_PASSWORD="{WORD}"',
    "variable, escaped quote": f'DB_PASSWORD="a\\"{WORD}"',
    "systemd": f'Environment="API_TOKEN={WORD}"',
    "JSON in a log": f'msg="answer {{\\"clientSecret\\":\\"{WORD}\\"}}"',
    "object in a log": f'{{"level": "info", "pod": {{"env": [{{"name": "PLAIN", "value": "{WORD}"}}]}}}}',
    "and escaped": f'msg="{{\\"env\\":[{{\\"name\\":\\"PLAIN\\",\\"value\\":\\"{WORD}\\"}}]}}"',
    "environment in a log": f"&Container{{Env:[]EnvVar{{EnvVar{{Name:A,Value:b, {WORD},ValueFrom:nil,}},}},}} failed",
    "environment in YAML": f"- name: PLAIN\n  value: two {WORD}",
    "YAML in one line": f'config="a: b\\npassword: two {WORD}\\n"',
    "arguments in a log": f'args="[\\"--token\\", \\"{WORD}\\"]"',
    "object in a log, and elsewhere": f'got {{"password": "{WORD}"}}, and {WORD} again',
    "quotes escaped twice": f'a="DB_PASSWORD=\\"a\\\\\\"{WORD}\\""',
    "YAML": f"  password: two {WORD}",
    "kubeconfig": f"client-key-data: {WORD}",
    "registry": f'{{"auths": {{"mirror.site": {{"auth": "{WORD}"}}}}}}',
}
OBJECTS: t.Dict[str, t.Any] = {
    "environment": {"env": [{"name": "PLAIN", "value": WORD}]},
    "value of a name": {"settings": [{"name": "apiToken", "value": WORD}]},
    "key": {"clientSecret": WORD},
    "below a key": {"credentials": {"a": [WORD]}},
    "number": {"password": 4711471147},
    "arguments": {"args": ["--token", WORD]},
    "Secret": {"kind": "Secret", "data": {"plain": WORD}},
    "annotation": {"annotations": {"last-applied": json.dumps({"env": [{"name": "A", "value": WORD}]})}},
    "registries": {"auths": {"mirror.site": {"username": WORD}}},
    "name of a key": {f"https://me:{WORD}@mirror.site": 1},
    "and elsewhere": [{"password": WORD}, f"the program repeats {WORD} here"],
}
SECRETS = (
    WORD,
    TOKEN,
    JWT,
    "4711471147",
    base64.b64encode(WORD.encode()).decode(),
    TEXTS["key in base64"],
    "MIIEpAIBA",
)


def assert_clean(value: object) -> None:
    text = json.dumps(value)
    assert [secret for secret in SECRETS if secret in text] == [], text


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_of_a_log(text: str) -> None:
    assert_clean(redact(f"first line\n{text}\nlast line"))


@pytest.mark.parametrize("item", OBJECTS.values(), ids=OBJECTS)
def test_of_an_object(item: t.Any) -> None:
    assert_clean(redact({"items": [item]}))


TEXT = st.text("ab1 .-:='\"\\{[\n", max_size=8)  # what texts with secrets are taken apart by
PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=8,
)
SECRET = st.sampled_from([*TEXTS.values(), *OBJECTS.values()])


@st.composite
def planted(draw: t.Callable[..., t.Any]) -> t.Any:
    """Any data with a secret somewhere in it: as a value, in a list, within a text, in JSON that is a text."""
    value = draw(SECRET)
    for _layer in range(draw(st.integers(0, 4))):
        way, plain = draw(st.sampled_from(["key", "list", "text", "json"])), draw(PLAIN)
        if way == "key":
            value = {**(plain if isinstance(plain, dict) else {}), draw(TEXT): value}
        elif way == "list":
            value = [plain, value, plain]
        elif way == "json" and isinstance(value, (dict, list)):
            value = json.dumps(value)
        elif way == "text" and isinstance(value, str):
            value = f"a line\n{value}\nanother line"
    return value


@given(planted())
def test_a_secret_anywhere_never_comes_out(value: t.Any) -> None:
    assert_clean(redact(value))


@given(planted() | PLAIN)
def test_twice_is_once(value: t.Any) -> None:
    once = redact(value)
    assert redact(once) == once


@pytest.mark.parametrize(
    "text",
    [
        "failed to pull image mirror.site:5000/a:v1@sha256:" + "0" * 64,
        "Get https://10.96.0.1:443/api/v1/nodes?limit=500: dial tcp 10.96.0.1:443: connect: connection refused",
        "secret \"webhook-cert\" not found in namespace ipu-operator",
        "plugin type=macvlan failed (add): failed to lookup master eth1: Link not found",
        "machine id 9f86d081884c7d659a2feaa0c55ad015, GID fe80:0000:0000:0000:0ac0:ebff:fe12:3456",
    ],
)  # fmt: skip
def test_what_happened_stays(text: str) -> None:
    assert redact_text(text) == text


def test_the_error_behind_a_token_stays() -> None:
    text = "failed to fetch token: Post https://10.88.0.11:6443: connection refused"
    assert redact_text(text).endswith("https://10.88.0.11:6443: connection refused")


def test_names_of_secrets_and_of_their_volumes_stay() -> None:
    volume = {"name": "certs", "secret": {"secretName": "webhook-cert", "defaultMode": 420}}
    pod = {"spec": {"volumes": [volume], "imagePullSecrets": [{"name": "pull"}]}, "status": "webhook-cert not found"}
    assert redact(pod) == pod
