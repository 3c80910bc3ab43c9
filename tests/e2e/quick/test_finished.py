# Copyright (c) 2026, ipu.fabric contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A finished cluster stays as it is: whole, in check mode, and one host at a time."""

from __future__ import annotations

import pytest
from ansible_collections.ipu.fabric.tests.e2e.bed import Bed


@pytest.mark.parametrize("arguments", [(), ("--check", "--diff"), ("--limit", "w1"), ("--limit", "cp1")], ids=" ".join)
def test_nothing_to_change(finished: Bed, arguments: tuple[str, ...]) -> None:
    result = finished.play("site", *arguments)
    assert result.code == 0
    assert result.changed() == {}


@pytest.mark.parametrize("host", ["w1", "cp1"])
def test_plan_of_one_host_is_of_the_whole_inventory(finished: Bed, host: str) -> None:
    assert finished.play("plan", "--limit", host).code == 0
    assert sorted(finished.plan()["hosts"]) == ["cp1", "w1"]


def test_the_webhook_gets_a_new_certificate_in_time(finished: Bed) -> None:
    def certificate() -> str:
        return finished.kubectl("-n ipu-operator get secret ipu-operator-admission")["data"]["cert"]

    before = certificate()
    result = finished.play("plan fabric", ipu_operator_renew_days=366)
    assert result.code == 0
    assert result.changed() == {"cp1": 1}
    assert certificate() != before
