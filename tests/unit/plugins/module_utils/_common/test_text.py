# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest
from ansible_collections.ipu.fabric.plugins.module_utils._common.text import shorten_list


@pytest.mark.parametrize(
    ("names", "most", "text"),
    [
        ([], 2, ""),
        (["a"], 2, "a"),
        (["a", "b"], 2, "a, b"),
        (["a", "b", "c"], 2, "a, b and 1 more"),
        (iter("abcde"), 2, "a, b and 3 more"),
    ],
)
def test_shorten_list(names, most, text):
    assert shorten_list(names, most) == text


def test_another_separator():
    assert shorten_list("abc", 2, "; ") == "a; b and 1 more"
