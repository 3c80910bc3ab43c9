# Copyright (c) 2026, ipu.fabric contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a failed result says, without what Ansible puts around it."""

from __future__ import annotations

import re
import typing as t

from ..module_utils._common.text import printable

# What Ansible puts before a message, to say where it failed.
BEFORE_MESSAGE = re.compile(
    r"(?:(?:Task|Module|Action) failed: |Finalization of task args for '[^']*' failed: "
    r"|Error while resolving value for '[^']*': |Error rendering template: |The filter plugin '[^']*' failed: )+"
)
AFTER_MESSAGE = re.compile(r"\n\nThe error appears to be in .*", re.DOTALL)  # ansible-core 2.18: the place in a file


def text_of(value: object) -> str:
    return printable(value if isinstance(value, str) else str(value)).strip()


def message_of(result: t.Mapping[str, t.Any]) -> str:
    return AFTER_MESSAGE.sub("", BEFORE_MESSAGE.sub("", text_of(result.get("msg", ""))))
