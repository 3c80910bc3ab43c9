# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
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
    "arguments in a log", "digest", "basic", "flag", "value of a name", "url, only a token",
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


def test_it_never_says_the_secret() -> None:
    assert all(planted.WORD not in found for text in planted.TEXTS.values() for found in leaks({"a": text}))


@given(planted.planted() | planted.PLAIN | st.sampled_from(list(ITEMS.values())))
def test_it_finds_nothing_after_the_redaction(value: t.Any) -> None:
    cleaned = redact(value)
    assert leaks({"a.json": json.dumps(cleaned, indent=1), "a.log": cleaned if isinstance(cleaned, str) else ""}) == []
