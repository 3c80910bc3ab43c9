"""The scan finds what a redaction lets through that does not work, and nothing in what one leaves that does."""

from __future__ import annotations

import base64
import json
import typing as t

import pytest
from ansible_collections.ipu.fabric.plugins.module_utils._common.redaction import redact
from ansible_collections.ipu.fabric.plugins.module_utils._support.scan import leaks
from ansible_collections.ipu.fabric.tests.unit.plugins.module_utils._common import test_redaction as planted
from hypothesis import given
from hypothesis import strategies as st

# What only the name of a variable tells, or nothing but the kind of object around it: the redaction alone sees these.
BY_MEANING = {
    "environment", "below a key", "number", "Secret", "annotation", "registries", "arguments", "and elsewhere", "key",
    "its last part in one line", "object in a log", "and escaped", "environment in a log", "environment in YAML",
    "arguments in a log", "digest", "basic", "flag", "value of a name", "url, only a token", *planted.BY_PLACE,
}  # fmt: skip
ITEMS: t.Dict[str, t.Any] = {**planted.TEXTS, **planted.OBJECTS}


@pytest.mark.parametrize("name", [name for name in ITEMS if name not in BY_MEANING])
def test_it_finds_what_was_not_redacted(name: str) -> None:
    text = json.dumps({"items": ["before", ITEMS[name], "after"]}, indent=1)
    assert leaks({"cluster/objects.json": text})


@pytest.mark.parametrize("name", planted.TEXTS)
def test_and_in_logs(name: str) -> None:
    if name not in BY_MEANING:
        assert leaks({"hosts/w1/kubelet.log": planted.TEXTS[name]})


@pytest.mark.parametrize("before", ["", "a", "ab"])
def test_a_key_in_base64_wherever_it_begins(before: str) -> None:
    encoded = base64.b64encode((before + planted.KEY).encode()).decode()
    assert leaks({"a": encoded}) == ["a private key in base64 in a"]


TOKENS = {
    "AWS": "AKIAIOSFODNN7EXAMPLE",
    "GitHub": "ghp_" + "a1B2" * 9,
    "GitHub, fine": "github_pat_" + "a1B2" * 9,
    "GitLab": "glpat-" + "a1B2" * 5,
    "Slack": "xoxb-123456789012-1234567890123-a1B2",
    "Hugging Face": "hf_" + "a1B2" * 8,
    "OpenAI": "sk-proj-" + "a1B2" * 8,
    "npm": "npm_" + "a1B2" * 9,
    "Google": "AIzaSy" + "a1B2" * 8 + "x",
    "NGC": "nvapi-" + "a1B2" * 8,
    "Vault": "hvs." + "a1B2" * 8,
    "Docker": "dckr_pat_" + "a1B2" * 6,
    "hash": "$6$salt$a1B2",
    "certificate key": "--certificate-key " + "0f" * 32,
    "no form": "Zk3pQ9vLm2Xw8RtBa7Yc",
}


@pytest.mark.parametrize("name", TOKENS)
def test_tokens_of_services_and_random_ones(name: str) -> None:
    text = f"a line\nsays {TOKENS[name]} here"
    assert len(leaks({"a.log": text})) == 1
    assert leaks({"a.log": str(redact(text))}) == []


@given(st.text("abcxyzABCXYZ0123456789-_/+=. ", min_size=12, max_size=60))
def test_nothing_that_looks_random_is_left(text: str) -> None:
    assert leaks({"a.log": str(redact(text))}) == []


@pytest.mark.parametrize(
    "text",
    [
        "sha256:3f1c9a0b7d2e4f5a6b7c8d9e0f1a2b3c4d5e6f708192a3b4c5d6e7f8091a2b3c",
        "6f1c2d3e-4b5a-6978-8796-a5b4c3d2e1f0",
        "containerd://3f1c9a0b7d2e4f5a6b7c8d9e0f1a2b3c4d5e6f708192a3b4c5d6e7f8091a2b3c",
        "InPlacePodVerticalScalingExclusiveCPUs UserNamespacesPodSecurityStandards",
        "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",
        "2026-11-24T23:06:46.123456789Z",
        'Unable to authenticate the request" err="[invalid bearer token, service account token has expired]"',
    ],
)
def test_no_false_alarm(text: str) -> None:
    assert leaks({"a": text}) == []


def test_it_never_says_the_secret() -> None:
    assert all(planted.WORD not in found for text in planted.TEXTS.values() for found in leaks({"a": text}))


@given(st.sampled_from(["bearer", "Bearer"]), st.text('aZ9._~+/=-,;"(', max_size=12))
def test_what_the_redaction_leaves_behind_a_word_is_no_token(word: str, after: str) -> None:
    assert leaks({"a.log": str(redact(f"an invalid {word} {after} was seen"))}) == []


@given(planted.planted() | planted.PLAIN | st.sampled_from(list(ITEMS.values())))
def test_it_finds_nothing_after_the_redaction(value: t.Any) -> None:
    cleaned = redact(value)
    assert leaks({"a.json": json.dumps(cleaned, indent=1), "a.log": cleaned if isinstance(cleaned, str) else ""}) == []
